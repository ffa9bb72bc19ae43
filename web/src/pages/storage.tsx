// What was cached, and where it lay.
import { useMemo } from "preact/hooks";
import { SPARK, useData } from "../base/fetch.ts";
import type { SparkRdd } from "../base/spark.ts";
import { bytes, count } from "../base/units.ts";
import { appKey } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Help, ShareBar } from "../parts/bits.tsx";
import { figureColumn } from "../parts/columns.tsx";
import { Empty, With } from "../parts/states.tsx";
import { Table, type Column } from "../parts/table.tsx";
import type { TabProps } from "./tabs.ts";

export default function Storage({ app }: TabProps) {
  const list = useData<SparkRdd[]>(`${SPARK}/applications/${appKey(app)}/storage/rdd`);
  return (
    <>
      <With of={list} rows={4}>
        {(rdds) =>
          rdds.length ? (
            <Cached rdds={rdds} />
          ) : (
            <Empty title={t.nothingCached}>
              <p>{t.nothingCachedNext}</p>
            </Empty>
          )
        }
      </With>
      <Help>{t.storageHelp}</Help>
    </>
  );
}

function Cached({ rdds }: { rdds: SparkRdd[] }) {
  const columns = useMemo(storageColumns, []);
  const memory = rdds.reduce((sum, r) => sum + r.memoryUsed, 0);
  const disk = rdds.reduce((sum, r) => sum + r.diskUsed, 0);
  const partly = rdds.filter((r) => r.numCachedPartitions < r.numPartitions).length;
  return (
    <>
      <p class="lead">
        <b>{t.cachedSum(rdds.length, bytes(memory), bytes(disk))}</b>
        {partly > 0 && ` ${t.partlyCached(partly)}`}
      </p>
      <section class="card">
        <Table name={t.tabs.storage} columns={columns} rows={rdds} id={(r) => r.id} sort="-memory" />
      </section>
    </>
  );
}

const storageColumns = (): Column<SparkRdd>[] => [
  { key: "id", head: t.id, num: true, width: 64, by: (r) => r.id, cell: (r) => r.id },
  { key: "name", head: t.description, by: (r) => r.name, cell: (r) => <span title={r.name}>{r.name.split("\n")[0]}</span> },
  { key: "level", head: t.level, width: 230, leaves: 2, by: (r) => r.storageLevel, cell: (r) => r.storageLevel },
  {
    key: "partitions",
    head: t.partitions,
    num: true,
    width: 150,
    by: (r) => r.numCachedPartitions / Math.max(1, r.numPartitions),
    cell: (r) => (
      <span class="withbar">
        <ShareBar share={r.numCachedPartitions / Math.max(1, r.numPartitions)} />
        {count(r.numCachedPartitions)} / {count(r.numPartitions)}
      </span>
    ),
  },
  figureColumn("memory", t.inMemory, "bytes", 110, (r) => r.memoryUsed),
  figureColumn("disk", t.onDisk, "bytes", 110, (r) => r.diskUsed),
];
