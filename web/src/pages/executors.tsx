// Were the executors the right size, and did they have something to do?
import { useMemo } from "preact/hooks";
import { SPARK, useData } from "../base/fetch.ts";
import type { SparkExecutor } from "../base/spark.ts";
import { sparkTime } from "../base/time.ts";
import { bytes, count, duration, percent } from "../base/units.ts";
import { appKey, appPath, here, setQuery } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Filter, Help } from "../parts/bits.tsx";
import { figureColumn, momentColumn } from "../parts/columns.tsx";
import { Empty, With } from "../parts/states.tsx";
import { Table, type Column } from "../parts/table.tsx";
import type { TabProps } from "./tabs.ts";

interface Line {
  e: SparkExecutor;
  from: number | null;
  to: number | null;
  reserved: number | null;
  busy: number | null;
  gc: number | null;
  memory: number | null;
  heap: number | null;
}

function lineOf(e: SparkExecutor, end: number | null): Line {
  const from = sparkTime(e.addTime);
  const to = sparkTime(e.removeTime);
  const until = to ?? end;
  const reserved = from !== null && until !== null && e.id !== "driver" ? (until - from) * Math.max(1, e.totalCores) : null;
  const peak = e.peakMemoryMetrics ?? {};
  const unified = peak["OnHeapUnifiedMemory"];
  return {
    e,
    from,
    to,
    reserved,
    busy: reserved ? Math.min(1, e.totalDuration / reserved) : null,
    gc: e.totalTasks > 0 && e.totalDuration > 0 ? e.totalGCTime / e.totalDuration : null,
    memory: unified !== undefined && e.maxMemory > 0 ? unified / e.maxMemory : null,
    heap: peak["JVMHeapMemory"] || null,
  };
}

export default function Executors({ app, page }: TabProps) {
  const list = useData<SparkExecutor[]>(`${SPARK}/applications/${appKey(app)}/allexecutors`);
  const end = page?.application.ended_ms ?? null;
  return (
    <>
      <With of={list} rows={8}>
        {(executors) =>
          executors.length ? (
            <Page executors={executors} end={end} timeline={appPath(app, "timeline")} />
          ) : (
            <Empty title={t.noExecutors} />
          )
        }
      </With>
      <Help>{t.executorsHelp}</Help>
    </>
  );
}

/** Used core time beside reserved core time, then memory: too much, too little or right. */
function verdict(lines: Line[]): string {
  const workers = lines.filter((l) => l.reserved !== null);
  const used = workers.reduce((sum, l) => sum + l.e.totalDuration, 0);
  const reserved = workers.reduce((sum, l) => sum + l.reserved!, 0);
  const lost = lines.filter((l) => l.to !== null && /lost|kill|exit|heartbeat|137|143|oom/i.test(l.e.removeReason ?? "")).length;
  const memory = Math.max(...lines.map((l) => l.memory ?? 0));
  const parts = [reserved ? t.coreUse(percent(Math.min(1, used / reserved)), duration(reserved)) : ""];
  if (reserved) parts.push(used / reserved < 0.4 ? t.moreCoresThanWork : used / reserved > 0.9 ? t.coresFull : "");
  if (memory > 0) parts.push(t.memoryUse(percent(memory)));
  if (lost) parts.push(t.nLost(lost));
  return parts.filter(Boolean).join(" ");
}

function Page({ executors, end, timeline }: { executors: SparkExecutor[]; end: number | null; timeline: string }) {
  const lines = useMemo(() => executors.map((e) => lineOf(e, end)), [executors, end]);
  const q = here.value.query.get("q") ?? "";
  const shown = useMemo(
    () => lines.filter((l) => `${l.e.id} ${l.e.hostPort} ${l.e.removeReason ?? ""}`.toLowerCase().includes(q.toLowerCase())),
    [lines, q],
  );
  const most = useMemo(
    () => ({ failed: Math.max(1, ...lines.map((l) => l.e.failedTasks)), heap: Math.max(1, ...lines.map((l) => l.heap ?? 0)) }),
    [lines],
  );
  const columns = useMemo(
    () => [...executorColumns(most), ...(lines.some((l) => logsOf(l.e).length) ? [LOGS()] : [])],
    [most, lines],
  );
  const text = verdict(lines);
  const cut = text.indexOf(".") + 1;
  return (
    <>
      {text && (
        <p class="lead">
          <b>{text.slice(0, cut)}</b>
          {text.slice(cut)}
        </p>
      )}
      <section class="card">
        <div class="bar">
          <Filter value={q} label={t.filterExecutors} onInput={(value) => setQuery({ q: value })} />
          <span class="dim" role="status">
            {t.nExecutors(shown.length)}
          </span>
          <div class="r">
            <a class="btn sm" href={timeline}>
              {t.wholeTimeline}
            </a>
          </div>
        </div>
        <Table
          name={t.tabs.executors}
          columns={columns}
          rows={shown}
          id={(l) => l.e.id}
          sort="id"
          rowClass={(l) => (l.e.removeReason ? "gone" : "")}
          empty={<p class="pad dim">{t.nothingMatches}</p>}
        />
      </section>
    </>
  );
}

/** A cell whose ground says how much; the number says it too. */
function Heat({ share, text, bad = false }: { share: number | null; text: string; bad?: boolean }) {
  if (share === null) return <span class="dim">–</span>;
  const level = share <= 0 ? 0 : Math.min(5, Math.ceil(share * 5));
  return <span class={`heat ${bad ? "bad" : ""} h${level}`}>{text}</span>;
}

/** Where an executor's output lies. The addresses come from the log: only those that a browser may follow. */
function logsOf(e: SparkExecutor): [string, string][] {
  return Object.entries(e.executorLogs ?? {}).filter(([, address]) => /^https?:\/\//i.test(address));
}

const LOGS = (): Column<Line> => ({
  key: "logs",
  head: t.logs,
  width: 116,
  title: t.logsTitle,
  cell: (l) => (
    <span class="row">
      {logsOf(l.e).map(([name, address]) => (
        <a key={name} class="link" href={address} target="_blank" rel="noreferrer noopener">
          {name}
        </a>
      ))}
    </span>
  ),
});

function executorColumns(most: { failed: number; heap: number }): Column<Line>[] {
  return [
    { key: "id", head: t.executor, width: 92, by: (l) => l.e.id, cell: (l) => <b>{l.e.id}</b> },
    {
      key: "host",
      head: t.host,
      by: (l) => l.e.hostPort,
      cell: (l) => (
        <span title={l.e.removeReason ?? l.e.hostPort}>
          {l.e.removeReason ? (
            <>
              <span class="mark-fail">{l.e.removeReason}</span> ·{" "}
            </>
          ) : (
            ""
          )}
          {l.e.hostPort}
        </span>
      ),
    },
    figureColumn("cores", t.cores, "count", 64, (l) => l.e.totalCores),
    {
      key: "busy",
      head: t.busy,
      num: true,
      width: 84,
      title: t.busyTitle,
      by: (l) => l.busy,
      cell: (l) => <Heat share={l.busy} text={percent(l.busy)} />,
    },
    {
      key: "gc",
      head: t.gc,
      num: true,
      width: 78,
      title: t.gcTitle,
      by: (l) => l.gc,
      cell: (l) => <Heat share={l.gc === null ? null : l.gc * 5} text={percent(l.gc)} bad={(l.gc ?? 0) > 0.1} />,
    },
    {
      key: "memory",
      head: t.memory,
      num: true,
      width: 90,
      title: t.memoryTitle,
      by: (l) => l.memory,
      cell: (l) => <Heat share={l.memory} text={percent(l.memory)} bad={(l.memory ?? 0) > 0.95} />,
    },
    {
      key: "heap",
      head: t.peakHeap,
      num: true,
      width: 96,
      leaves: 1,
      by: (l) => l.heap,
      cell: (l) => <Heat share={l.heap === null ? null : l.heap / most.heap} text={bytes(l.heap)} />,
    },
    {
      key: "storage",
      head: t.cachedBlocks,
      num: true,
      width: 112,
      leaves: 3,
      title: t.cachedTitle,
      by: (l) => l.e.memoryUsed,
      cell: (l) => (
        <span class={l.e.memoryUsed ? "" : "dim"}>
          {bytes(l.e.memoryUsed)}
          {l.e.diskUsed > 0 && <span class="dim"> + {bytes(l.e.diskUsed)}</span>}
        </span>
      ),
    },
    figureColumn("tasks", t.tasks, "count", 76, (l) => l.e.totalTasks),
    {
      key: "failed",
      head: t.failed,
      num: true,
      width: 76,
      leaves: 2,
      by: (l) => l.e.failedTasks,
      cell: (l) => (l.e.failedTasks ? <span class="mark-fail">{count(l.e.failedTasks)}</span> : <span class="dim">0</span>),
    },
    figureColumn("time", t.taskTime, "ms", 92, (l) => (l.e.totalTasks ? l.e.totalDuration : null), { leaves: 2 }),
    figureColumn("input", t.input, "bytes", 88, (l) => l.e.totalInputBytes, { leaves: 3 }),
    figureColumn("read", t.shuffleRead, "bytes", 100, (l) => l.e.totalShuffleRead, { leaves: 1 }),
    momentColumn("from", t.added, 84, (l) => l.from, { leaves: 2 }),
    momentColumn("to", t.removed, 84, (l) => l.to, { leaves: 2 }),
  ];
}
