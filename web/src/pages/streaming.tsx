// Does each stream keep up with its source?
import { useMemo } from "preact/hooks";
import { appUrl, useData } from "../base/fetch.ts";
import { count, duration, factor } from "../base/units.ts";
import type { Maybe } from "../base/api.ts";
import { t } from "../base/words.ts";
import { Card, Help, Moment } from "../parts/bits.tsx";
import { Columns } from "../parts/chart.tsx";
import { durationColumn, figureColumn } from "../parts/columns.tsx";
import { Empty, With } from "../parts/states.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Verdict } from "../parts/text.tsx";
import type { TabProps } from "./tabs.ts";

interface Batch {
  batch: number;
  t: number;
  input_rows: Maybe<number>;
  rows_per_s_in: Maybe<number>;
  rows_per_s_done: Maybe<number>;
  duration_ms: Maybe<number>;
  parts: { name: string; ms: number }[];
  state_rows: Maybe<number>;
  state_bytes: Maybe<number>;
  watermark: Maybe<string>;
  late_rows: Maybe<number>;
}

interface Stream {
  id: string;
  run_id: string;
  name: Maybe<string>;
  started_ms: Maybe<number>;
  ended_ms: Maybe<number>;
  error: Maybe<string>;
  sentence: Maybe<string>;
  batches: Batch[];
  batches_total: number;
}

export default function Streaming({ app }: TabProps) {
  const list = useData<Stream[]>(`${appUrl(app)}/streams`);
  return (
    <>
      <With of={list} rows={8}>
        {(streams) =>
          streams.length ? (
            <>
              {streams.map((s) => (
                <StreamCard key={s.run_id} stream={s} />
              ))}
            </>
          ) : (
            <Empty title={t.noStreams}>
              <p>{t.noStreamsNext}</p>
            </Empty>
          )
        }
      </With>
      <Help>{t.streamingHelp}</Help>
    </>
  );
}

function StreamCard({ stream }: { stream: Stream }) {
  const { batches } = stream;
  const columns = useMemo(batchColumns, []);
  const total = batches.reduce((sum, b) => sum + (b.duration_ms ?? 0), 0);
  const rows = batches.reduce((sum, b) => sum + (b.input_rows ?? 0), 0);
  return (
    <>
      <section class="card verdict">
        <p class="say">{stream.sentence ? <Verdict text={stream.sentence} /> : <b>{stream.name ?? stream.id}</b>}</p>
        <div class="facts">
          <span>
            {t.stream} <b>{stream.name ?? stream.id}</b>
          </span>
          <span>
            {t.batches} <b>{count(stream.batches_total)}</b>
          </span>
          <span>
            {t.rowsRead} <b>{count(rows)}</b>
          </span>
          <span>
            {t.meanBatch} <b>{duration(batches.length ? total / batches.length : null)}</b>
          </span>
          {stream.started_ms ? (
            <span>
              {t.startedWord}{" "}
              <b>
                <Moment ms={stream.started_ms} />
              </b>
            </span>
          ) : null}
        </div>
        {stream.error && (
          <div class="failure">
            <div>
              <p>
                <b>{stream.error.split("\n")[0]}</b>
              </p>
            </div>
          </div>
        )}
      </section>
      <div class="cols even">
        <Card title={t.batchTime} note={t.byBatch}>
          <Columns
            values={batches.map((b) => b.duration_ms ?? null)}
            labels={batches.map((b) => String(b.batch))}
            format={duration}
            name={t.batchTime}
          />
        </Card>
        <Card title={t.rowsPerSecond} note={t.inAndDone}>
          <Columns
            values={batches.map((b) => b.rows_per_s_in ?? null)}
            lines={batches.map((b) => b.rows_per_s_done ?? null)}
            labels={batches.map((b) => String(b.batch))}
            format={count}
            name={t.rowsPerSecond}
          />
        </Card>
      </div>
      <section class="card">
        {stream.batches.length < stream.batches_total && (
          <p class="pad dim">
            {t.ofCount(count(stream.batches.length), count(stream.batches_total))} {t.batches.toLowerCase()}
          </p>
        )}
        <Table
          name={t.batches}
          columns={columns}
          rows={batches}
          id={(b) => b.batch}
          sort="-batch"
          sortKey={`sort.${stream.name ?? stream.id}`}
          box={460}
        />
      </section>
    </>
  );
}

const slowest = (b: Batch): string => {
  const worst = [...b.parts].sort((x, y) => y.ms - x.ms)[0];
  return worst ? `${worst.name} ${duration(worst.ms)}` : "";
};

const batchColumns = (): Column<Batch>[] => [
  { key: "batch", head: t.batch, num: true, width: 80, by: (b) => b.batch, cell: (b) => b.batch },
  { key: "t", head: t.started, num: true, width: 130, by: (b) => b.t, cell: (b) => <Moment ms={b.t} seconds /> },
  durationColumn(92, (b) => b.duration_ms),
  { key: "slowest", head: t.longestPart, cell: slowest },
  figureColumn("rows", t.rowsRead, "count", 100, (b) => b.input_rows),
  figureColumn("in", t.arrived, "count", 110, (b) => b.rows_per_s_in, { leaves: 2 }),
  figureColumn("done", t.processed, "count", 110, (b) => b.rows_per_s_done, { leaves: 2 }),
  {
    key: "pressure",
    head: t.pressure,
    num: true,
    width: 96,
    leaves: 2,
    title: t.pressureTitle,
    by: pressure,
    cell: (b) => <span class={(pressure(b) ?? 0) > 1.05 ? "slow" : ""}>{factor(pressure(b))}</span>,
  },
  figureColumn("state", t.stateRows, "count", 110, (b) => b.state_rows, { leaves: 1 }),
  figureColumn("statebytes", t.stateSize, "bytes", 100, (b) => b.state_bytes, { leaves: 1 }),
  { key: "watermark", head: t.watermark, width: 190, leaves: 3, cell: (b) => b.watermark ?? "–" },
  figureColumn("late", t.lateRows, "count", 90, (b) => b.late_rows, { leaves: 1 }),
];

/** How many times as long a batch takes as its rows took to arrive. */
function pressure(b: Batch): number | null {
  return b.rows_per_s_in && b.rows_per_s_done ? b.rows_per_s_in / b.rows_per_s_done : null;
}
