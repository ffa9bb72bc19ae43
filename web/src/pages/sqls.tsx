// Which query took the time?
import { useMemo } from "preact/hooks";
import type { SqlRow } from "../base/api.ts";
import { OWN, useData } from "../base/fetch.ts";
import { bytes, count, duration } from "../base/units.ts";
import { appKey, appPath, here, setQuery, type AppRef } from "../base/url.ts";
import { t } from "../base/words.ts";
import { FindingDots, Filter, Moment, ShareBar, StatusWord } from "../parts/bits.tsx";
import { Empty, With } from "../parts/states.tsx";
import { Table, type Column } from "../parts/table.tsx";
import type { TabProps } from "./application.tsx";

export default function SqlList({ app, page }: TabProps) {
  const list = useData<SqlRow[]>(`${OWN}/applications/${appKey(app)}/sql`);
  return (
    <With of={list} rows={8}>
      {(rows) =>
        rows.length ? (
          <Queries app={app} rows={rows} wall={page?.application.wall_ms ?? 0} />
        ) : (
          <Empty title={t.noSql}>
            <p>{t.noSqlNext}</p>
          </Empty>
        )
      }
    </With>
  );
}

function Queries({ app, rows, wall }: { app: AppRef; rows: SqlRow[]; wall: number }) {
  const q = here.value.query.get("q") ?? "";
  const shown = useMemo(
    () => rows.filter((r) => `${r.id} ${r.description} ${r.failure ?? ""} ${r.status}`.toLowerCase().includes(q.toLowerCase())),
    [rows, q],
  );
  const whole = wall || Math.max(1, ...rows.map((r) => r.duration_ms ?? 0));
  const columns = useMemo(() => sqlColumns(app, whole), [app, whole]);
  const longest = rows.reduce((a, b) => ((b.duration_ms ?? 0) > (a.duration_ms ?? 0) ? b : a));
  const failed = rows.filter((r) => r.status === "failed").length;
  return (
    <>
      <p class="lead">
        <b>{t.longestSql(longest.id, duration(longest.duration_ms))}</b>
        {failed > 0 && ` ${t.nFailed(failed)}`}
      </p>
      <section class="card">
        <div class="bar">
          <Filter value={q} label={t.filterSql} onInput={(value) => setQuery({ q: value })} />
          <span class="dim" role="status">
            {t.nQueries(count(shown.length))}
          </span>
        </div>
        <Table
          name={t.tabs.sql}
          columns={columns}
          rows={shown}
          id={(r) => r.id}
          sort="-duration"
          open={(r) => appPath(app, `sql/${r.id}`)}
          empty={<p class="pad dim">{t.nothingMatches}</p>}
        />
      </section>
    </>
  );
}

function sqlColumns(app: AppRef, whole: number): Column<SqlRow>[] {
  return [
    {
      key: "id",
      head: t.id,
      num: true,
      width: 64,
      by: (r) => r.id,
      cell: (r) => (
        <a class="strong" href={appPath(app, `sql/${r.id}`)}>
          {r.id}
        </a>
      ),
    },
    {
      key: "description",
      head: t.description,
      by: (r) => r.description,
      cell: (r) => (
        <span title={r.failure ?? r.description}>{r.failure ? <span class="mark-fail">{r.failure}</span> : r.description}</span>
      ),
    },
    {
      key: "findings",
      head: t.findings,
      width: 96,
      leaves: 1,
      by: (r) => -r.findings.length,
      cell: (r) => <FindingDots findings={r.findings} base={appPath(app)} />,
    },
    { key: "status", head: t.state, width: 112, by: (r) => r.status, cell: (r) => <StatusWord status={r.status} /> },
    {
      key: "duration",
      head: t.duration,
      num: true,
      width: 136,
      by: (r) => r.duration_ms,
      cell: (r) => (
        <span class="withbar">
          <ShareBar share={(r.duration_ms ?? 0) / whole} />
          <b class="figure">{duration(r.duration_ms)}</b>
        </span>
      ),
    },
    {
      key: "tasktime",
      head: t.taskTime,
      num: true,
      width: 96,
      leaves: 2,
      by: (r) => r.task_ms,
      cell: (r) => duration(r.task_ms),
    },
    { key: "input", head: t.input, num: true, width: 88, leaves: 2, by: (r) => r.input_bytes, cell: (r) => bytes(r.input_bytes) },
    {
      key: "shuffle",
      head: t.shuffle,
      num: true,
      width: 88,
      leaves: 1,
      by: (r) => r.shuffle_bytes,
      cell: (r) => bytes(r.shuffle_bytes),
    },
    { key: "spill", head: t.spill, num: true, width: 88, leaves: 1, by: (r) => r.spill_bytes, cell: (r) => bytes(r.spill_bytes) },
    { key: "stages", head: t.tabs.stages, num: true, width: 72, leaves: 1, by: (r) => r.stages, cell: (r) => count(r.stages) },
    {
      key: "submitted",
      head: t.started,
      num: true,
      width: 92,
      leaves: 2,
      by: (r) => r.submitted_ms,
      cell: (r) => <Moment ms={r.submitted_ms} seconds date={false} />,
    },
  ];
}
