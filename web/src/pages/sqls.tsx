// Which query took the time?
import { useMemo } from "preact/hooks";
import type { SqlRow } from "../base/api.ts";
import { appUrl, useData } from "../base/fetch.ts";
import { bytes, count, duration } from "../base/units.ts";
import { appPath, here, setQuery, type AppRef } from "../base/url.ts";
import { t } from "../base/words.ts";
import { FindingDots, Filter, Moment, ShareBar, StatusWord } from "../parts/bits.tsx";
import { figureColumn, momentColumn } from "../parts/columns.tsx";
import { Peek } from "../parts/peek.tsx";
import { Empty, With } from "../parts/states.tsx";
import { Table, type Column } from "../parts/table.tsx";
import type { TabProps } from "./tabs.ts";

export default function SqlList({ app, page }: TabProps) {
  const list = useData<SqlRow[]>(`${appUrl(app)}/sql`);
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
          peek={(r) => <SqlPeek app={app} row={r} />}
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
    figureColumn("tasktime", t.taskTime, "ms", 96, (r) => r.task_ms, { leaves: 2 }),
    figureColumn("input", t.input, "bytes", 88, (r) => r.input_bytes, { leaves: 2 }),
    figureColumn("shuffle", t.shuffle, "bytes", 88, (r) => r.shuffle_bytes, { leaves: 1 }),
    figureColumn("spill", t.spill, "bytes", 88, (r) => r.spill_bytes, { leaves: 1 }),
    figureColumn("stages", t.tabs.stages, "count", 72, (r) => r.stages, { leaves: 1 }),
    momentColumn("submitted", t.started, 92, (r) => r.submitted_ms, { leaves: 2 }),
  ];
}

function SqlPeek({ app, row }: { app: AppRef; row: SqlRow }) {
  return (
    <Peek
      title={t.sqlN(row.id)}
      to={appPath(app, `sql/${row.id}`)}
      text={row.failure ? <span class="mark-fail">{row.failure.split("\n")[0]}</span> : row.description}
      facts={[
        [t.state, <StatusWord status={row.status} />],
        [t.duration, duration(row.duration_ms)],
        [t.started, <Moment ms={row.submitted_ms} seconds />],
        [t.taskTime, duration(row.task_ms)],
        [t.tabs.stages, count(row.stages)],
        [t.input, bytes(row.input_bytes)],
        [t.shuffle, bytes(row.shuffle_bytes)],
        [t.spill, bytes(row.spill_bytes)],
      ]}
      findings={row.findings}
      base={appPath(app)}
    />
  );
}
