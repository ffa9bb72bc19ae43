// One stage: where its tasks lie, what the slow ones have in common, and every task.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { StagePage, SummaryRow, TaskRow } from "../base/api.ts";
import { ask, Failure, freshness, stageUrl, tasksUrl, useData } from "../base/fetch.ts";
import { bytes, count, duration, factor, show, type Unit } from "../base/units.ts";
import { appKey, appPath, here, setQuery, type AppRef } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Card, Fact, Filter, FindingList, Help, Seg, StatusPill, StatusWord } from "../parts/bits.tsx";
import { durationColumn, figureColumn, momentColumn } from "../parts/columns.tsx";
import { Icon } from "../parts/icons.tsx";
import { Empty, ErrorBox, With } from "../parts/states.tsx";
import type { StageTasks } from "../parts/bars.ts";
import { asStageTasks } from "../parts/prepare.ts";
import { Strip } from "../parts/strip.tsx";
import { Window, type Column } from "../parts/table.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Code, CopyButton, Prose } from "../parts/text.tsx";
import { TimelineView } from "../parts/timeline.tsx";
import { TimelineLegend } from "../parts/timeline-legend.tsx";
import { sceneOfStage, type Spot } from "../parts/timeline-model.ts";
import { stands } from "../parts/quantiles.ts";
import { partOf, useView } from "../parts/view.ts";
import { stageOf, type TabProps } from "./tabs.ts";

interface Ref {
  app: AppRef;
  stage: number;
  attempt: number;
}

export default function StageDetail({ app, rest }: TabProps) {
  const [stage, attempt] = stageOf({ rest });
  const ref = { app, stage, attempt };
  const base = stageUrl(app, ref.stage, ref.attempt);
  const page = useData<StagePage>(base);
  const tasks = useData<StageTasks>(tasksUrl(app, ref.stage, ref.attempt), asStageTasks);
  return (
    <>
      <With of={page} rows={10}>
        {(data) => <Top at={ref} page={data} tasks={tasks.data} />}
      </With>
      {tasks.error && <ErrorBox error={tasks.error} again={tasks.again} />}
      {page.data && (
        <div class="cols">
          <Summary page={page.data} />
          <Differs page={page.data} />
        </div>
      )}
      {tasks.data && tasks.data.rows > 0 && <StripCard tasks={tasks.data} />}
      {tasks.data && tasks.data.rows > 0 && <TaskTimeline tasks={tasks.data} at={ref} />}
      <TaskTable base={base} page={page.data} />
      {page.data?.details && (
        <details class="card details">
          <summary>{t.whereInCode}</summary>
          <Code text={page.data.details} />
        </details>
      )}
    </>
  );
}

const row = (page: StagePage, pattern: RegExp): SummaryRow | undefined => page.summary.find((r) => pattern.test(r.label));

/** The one sentence about this stage. */
function sentence(page: StagePage, tasks: StageTasks | null): string {
  if (/fail/i.test(page.status)) return t.stageFailed(count(page.failed), count(page.tasks));
  const durations = tasks?.durations;
  if (!page.tasks || !durations) return t.stageNoTasks;
  const { p75, median } = durations;
  const worst = tasks.bars.length[durations.slowest]!;
  if (tasks.rows > 1 && worst > p75 * 3 && worst > 1000)
    return t.stageStraggler(duration(worst), factor(worst / Math.max(1, median)), duration(median));
  return t.stageEven(count(tasks.rows), duration(median), duration(worst));
}

function Top({ at, page, tasks }: { at: Ref; page: StagePage; tasks: StageTasks | null }) {
  const spill = row(page, /spill.*disk|disk.*spill/i)?.sum ?? 0;
  const length = page.submitted_ms && page.completed_ms ? page.completed_ms - page.submitted_ms : null;
  return (
    <>
      <section class="card verdict">
        <p class="say">
          <b>{sentence(page, tasks)}</b> {spill ? t.didSpill(bytes(spill)) : t.didNotSpill}
        </p>
        <div class="facts">
          <StatusPill status={page.status} />
          <span class="cut soft" title={page.name}>
            {page.description ?? page.name}
          </span>
          <Fact label={t.ran}>{duration(length)}</Fact>
          <Fact label={t.tasks}>{count(page.tasks)}</Fact>
          {page.failed > 0 && <Fact label={t.failed}>{count(page.failed)}</Fact>}
          {page.killed > 0 && <Fact label={t.status("killed")}>{count(page.killed)}</Fact>}
          {page.running > 0 && <Fact label={t.running}>{count(page.running)}</Fact>}
          {page.speculative > 0 && <Fact label={t.speculative}>{count(page.speculative)}</Fact>}
          {page.sql !== null && page.sql !== undefined && (
            <a class="link" href={appPath(at.app, `sql/${page.sql}`)}>
              {t.sqlN(page.sql)}
            </a>
          )}
          {page.jobs.slice(0, 3).map((job) => (
            <a class="link" key={job} href={`${appPath(at.app, "stages")}?job=${job}`}>
              {t.jobN(job)}
            </a>
          ))}
          {page.reads_shuffle && (
            <a
              class="link"
              href={`/tools/shuffle-calculator?app=${encodeURIComponent(appKey(at.app))}&stage=${at.stage}&attempt=${at.attempt}`}
            >
              {t.calculator}
            </a>
          )}
          {page.attempts
            .filter((a) => a !== at.attempt)
            .map((a) => (
              <a class="link" key={a} href={appPath(at.app, `stages/${at.stage}/${a}`)}>
                {t.attemptN(a)}
              </a>
            ))}
        </div>
        {page.failure && <Failed text={page.failure} />}
      </section>
      <FindingList findings={page.findings} base={appPath(at.app)} />
    </>
  );
}

function Failed({ text }: { text: string }) {
  const [first, ...rest] = text.split("\n");
  return (
    <div class="failure">
      <Icon name="fail" />
      <div>
        <p>
          <b>{first}</b>
        </p>
        {rest.length > 0 && (
          <details>
            <summary>{t.wholeError}</summary>
            <pre class="code wrap" tabIndex={0}>
              {text}
            </pre>
          </details>
        )}
      </div>
    </div>
  );
}

// Spark's summary

const QUANTILES: (keyof SummaryRow)[] = ["min", "p25", "median", "p75", "p95", "max"];

function Summary({ page }: { page: StagePage }) {
  const rows = page.summary.filter((r) => r.show);
  const heads = [t.min, "P25", t.median, "P75", "P95", t.max, t.maxOverP75, t.total];
  if (!rows.length) return null;
  return (
    <Card title={t.summary} note={t.summaryNote}>
      <div class="scroll-x" tabIndex={0} role="region" aria-label={t.summary}>
        <table class="quant">
          <thead>
            <tr>
              <th scope="col">{t.measured}</th>
              {heads.map((h) => (
                <th key={h} scope="col" class="num">
                  {h}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((r) => (
              <SummaryLine key={r.label} r={r} />
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function SummaryLine({ r }: { r: SummaryRow }) {
  const times = r.p75 ? (r.max ?? 0) / r.p75 : null;
  const hit = stands(r);
  return (
    <tr>
      <th scope="row">{r.label}</th>
      {QUANTILES.map((key) => (
        <td key={key} class={`num ${key === "max" && hit ? "hit" : ""} ${r[key] ? "" : "dim"}`}>
          {show(r[key] as number | null, r.unit)}
        </td>
      ))}
      <td class={`num ${hit ? "x" : "dim"}`}>{factor(times)}</td>
      <td class="num">{show(r.sum, r.unit)}</td>
    </tr>
  );
}

function Differs({ page }: { page: StagePage }) {
  const { slow } = page;
  return (
    <Card title={t.whatDiffers} note={slow ? t.slowTasks(slow.tasks, duration(slow.from_ms)) : undefined}>
      {!slow || !page.differs.length ? (
        <p class="pad soft">{t.nothingDiffers}</p>
      ) : (
        <table class="differs">
          <thead>
            <tr>
              <th scope="col" />
              <th scope="col">{t.slowOnes}</th>
              <th scope="col">{t.theRest}</th>
            </tr>
          </thead>
          <tbody>
            {[...page.differs]
              .sort((a, b) => b.score - a.score)
              .map((d) => (
                <tr key={d.what} class={d.score >= 0.5 ? "strong-row" : ""}>
                  <th scope="row">
                    {d.what}
                    <span class={`share ${d.score >= 0.5 ? "hot" : ""}`} aria-hidden="true">
                      <i style={{ width: `${d.score * 100}%` }} />
                    </span>
                  </th>
                  <td>
                    <Prose text={d.slow} />
                  </td>
                  <td class="soft">
                    <Prose text={d.rest} />
                  </td>
                </tr>
              ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}

// All tasks at once

const StripCard = ({ tasks }: { tasks: StageTasks }) => (
  <section class="card strip-card">
    <Strip tasks={tasks} title={t.allTasksByDuration(count(tasks.rows))} />
  </section>
);

function TaskTimeline({ tasks, at }: { tasks: StageTasks; at: Ref }) {
  const scene = useMemo(() => sceneOfStage(tasks, at.stage, at.attempt), [tasks]);
  const [view, setView] = useView();
  const choose = (spot: Spot | null) => setQuery({ task: spot && String(spot.bars.task[spot.i]) });
  return (
    <Card
      title={t.tasksOverTime}
      note={t.byExecutor}
      class="timeline-card"
      id="event-timeline"
      right={<TimelineLegend scene={scene} />}
    >
      <div class="stack">
        <TimelineView scene={scene} full view={view} onView={(next) => setView(partOf(next, scene.span))} onSelect={choose} tasks={tasks.rows} most={420} />
        <Help>{t.timelineHelp}</Help>
      </div>
    </Card>
  );
}

// The task table: sorted, filtered and paged by the server

const PAGE = 100;

interface TaskPage {
  total: number;
  tasks: TaskRow[];
}

interface Pages {
  url: string;
  total: number;
  got: Map<number, TaskRow[]>;
  asked: Set<number>;
}

const noPages = (url: string): Pages => ({ url, total: 0, got: new Map(), asked: new Set() });

/** Rows as they come into sight; after a new sort the old rows stay until the first new ones are there. */
function usePaged(url: string) {
  const [, redraw] = useState(0);
  const [error, setError] = useState<Failure | null>(null);
  const pages = useRef<Pages>(noPages(""));
  const before = useRef<Pages>(pages.current);
  const begin = () => {
    if (pages.current.got.size) before.current = pages.current;
    pages.current = noPages(url);
  };
  if (pages.current.url !== url) begin();
  const load = (page: number) => {
    const mine = pages.current;
    if (mine.asked.has(page)) return;
    mine.asked.add(page);
    ask<TaskPage>(`${url}&offset=${page * PAGE}&limit=${PAGE}`).then(
      (answer) => {
        mine.total = answer.total;
        mine.got.set(page, answer.tasks);
        setError(null);
        if (pages.current === mine) redraw((n) => n + 1);
      },
      (failure: Failure) => {
        mine.asked.delete(page);
        setError(failure);
      },
    );
  };
  useLayoutEffect(() => load(0), [url]);
  const shown = pages.current.got.size ? pages.current : before.current;
  const range = (from: number, to: number) => {
    for (let page = Math.floor(from / PAGE); page <= Math.floor(Math.max(from, to - 1) / PAGE); page++) load(page);
  };
  return {
    total: shown.total,
    ready: shown.got.size > 0,
    rowAt: (i: number) => shown.got.get(Math.floor(i / PAGE))?.[i % PAGE],
    range,
    error,
    again: () => {
      begin();
      load(0);
    },
  };
}

/** How many tasks a running stage has by now; they wait under a count, so that no row moves under the reader's hand. */
function useTotal(url: string): number {
  const [known, setKnown] = useState({ url, total: 0 });
  const fresh = freshness.value;
  useEffect(() => {
    if (!fresh) return;
    const stop = new AbortController();
    ask<TaskPage>(`${url}&offset=0&limit=1`, { signal: stop.signal }).then(
      (page) => setKnown({ url, total: page.total }),
      () => undefined,
    );
    return () => stop.abort();
  }, [url, fresh]);
  return known.url === url ? known.total : 0;
}

type Which = "" | "success" | "failed" | "killed" | "running";

/** What the summary says of a column of the table. */
const SUMMED: Record<string, string> = {
  gc_ms: "GC time",
  input_bytes: "Input size",
  input_records: "Input records",
  shuffle_read_bytes: "Shuffle read size",
  shuffle_read_records: "Shuffle read records",
  shuffle_write_bytes: "Shuffle write size",
  spill_memory_bytes: "Spill (memory)",
  spill_disk_bytes: "Spill (disk)",
  peak_memory_bytes: "Peak execution memory",
  output_bytes: "Output size",
  scheduler_delay_ms: "Scheduler delay",
  deserialize_ms: "Task deserialization time",
  fetch_wait_ms: "Shuffle read fetch wait time",
  shuffle_write_ms: "Shuffle write time",
  cpu_ms: "CPU time",
};

/** Columns in which no task has anything; a stage without any task that succeeded has no summary to tell. */
function zeroColumns(page: StagePage | null): Set<string> {
  if (!page || !page.summary.some((r) => r.max)) return new Set();
  const zero = new Set(page.summary.filter((r) => !r.max).map((r) => r.label));
  return new Set(Object.keys(SUMMED).filter((key) => zero.has(SUMMED[key]!)));
}

function TaskTable({ base, page }: { base: string; page: StagePage | null }) {
  const { query } = here.value;
  const sort = query.get("sort") ?? "-duration_ms";
  const status = (query.get("status") ?? "") as Which;
  const q = query.get("q") ?? "";
  const url = `${base}/tasks?${new URLSearchParams({ sort, status, q })}`;
  const paged = usePaged(url);
  const newer = useTotal(url) - paged.total;
  const [failure, setFailure] = useState<TaskRow | null>(null);
  const zero = useMemo(() => zeroColumns(page), [page]);
  const whole = query.get("columns") === "all";
  const columns = useMemo(
    () => taskColumns(setFailure, status === "failed", page?.failed !== 0 || page.killed > 0).filter((c) => whole || !zero.has(c.key)),
    [status, page, zero, whole],
  );
  return (
    <section class="card" id="tasks">
      <div class="bar">
        <h2 class="bar-title">{t.tasks}</h2>
        <Filter value={q} label={t.filterTasks} onInput={(value) => setQuery({ q: value })} />
        <Seg<Which>
          label={t.showOnly}
          value={status}
          options={[
            ["", t.all],
            ["failed", t.failed],
            ["killed", t.status("killed")],
            ["running", t.running],
          ]}
          onChange={(value) => setQuery({ status: value || null })}
        />
        <span class="dim" role="status">
          {t.nTasks(count(paged.total))}
        </span>
        {newer > 0 && (
          <button type="button" class="btn sm news" onClick={paged.again}>
            <Icon name="up" />
            {t.newTasks(newer)}
          </button>
        )}
        {zero.size > 0 && (
          <button type="button" class="btn ghost sm" onClick={() => setQuery({ columns: whole ? null : "all" })}>
            {whole ? t.hideZeros : `${t.zeroColumns(zero.size)}: ${t.showAll.toLowerCase()}`}
          </button>
        )}
      </div>
      {paged.error && <ErrorBox error={paged.error} again={paged.again} />}
      {paged.ready && paged.total === 0 ? (
        <Empty title={t.nothingMatches} />
      ) : (
        <Window
          name={t.tasks}
          columns={columns}
          total={paged.total}
          rowAt={paged.rowAt}
          id={(task: TaskRow) => task.task}
          sorted={sort}
          onSort={(key) => setQuery({ sort: key === "-duration_ms" ? null : key })}
          sortable={(c) => c.key !== "error"}
          rowClass={(task) =>
            `${task.status.toLowerCase() === "failed" ? "bad" : ""} ${query.get("task") === String(task.task) ? "on" : ""}`
          }
          box={28 * 18 + 34}
          onRange={paged.range}
        />
      )}
      {failure && <TaskError task={failure} close={() => setFailure(null)} />}
      {query.get("task") && (
        <p class="pad">
          <button type="button" class="chip" aria-pressed="true" onClick={() => setQuery({ task: null, q: null })}>
            {t.taskN(Number(query.get("task")))} ×
          </button>{" "}
          {q !== query.get("task") && (
            <button type="button" class="btn sm" onClick={() => setQuery({ q: query.get("task") })}>
              {t.showThisTask}
            </button>
          )}
        </p>
      )}
    </section>
  );
}

/** The whole error of one task, with its stack trace. */
function TaskError({ task, close }: { task: TaskRow; close: () => void }) {
  const text = task.error ?? "";
  return (
    <Dialog label={t.taskN(task.task)} close={close} class="error-dialog">
      <div class="hd">
        <h2>
          {t.taskN(task.task)}, {t.executor.toLowerCase()} {task.executor}
        </h2>
        <div class="r">
          <CopyButton text={text} />
          <button type="button" class="btn ghost sm" onClick={close} aria-label={t.close}>
            <Icon name="close" />
          </button>
        </div>
      </div>
      <pre class="code wrap" tabIndex={0}>
        {text}
      </pre>
    </Dialog>
  );
}

/** When only failed tasks are shown, why they failed stands in front. */
function taskColumns(openError: (task: TaskRow) => void, errorsFirst: boolean, errors: boolean): Column<TaskRow>[] {
  const error: Column<TaskRow> = {
    key: "error",
    head: t.error,
    width: 420,
    cell: (task) =>
      task.error ? (
        <button type="button" class="mark-fail cut errorline" onClick={() => openError(task)}>
          {task.error.split("\n")[0]}
        </button>
      ) : (
        ""
      ),
  };
  const columns = figureColumns();
  if (errors) columns.splice(errorsFirst ? 3 : columns.length, 0, error);
  return columns;
}

function figureColumns(): Column<TaskRow>[] {
  const figure = (key: string, head: string, unit: Unit, width: number): Column<TaskRow> =>
    figureColumn(key, head, unit, width, (task) => task[key] as number | null);
  return [
    { key: "index", head: t.index, num: true, width: 70, cell: (task) => count(task.index) },
    {
      key: "task",
      head: t.task,
      num: true,
      width: 84,
      cell: (task) => (
        <>
          {task.task}
          {task.attempt > 0 && <span class="dim"> .{task.attempt}</span>}
        </>
      ),
    },
    { key: "status", head: t.state, width: 106, cell: (task) => <StatusWord status={task.status} /> },
    durationColumn(96, (task) => task["duration_ms"] as number | null, "duration_ms"),
    {
      key: "executor",
      head: t.executor,
      width: 90,
      cell: (task) => (
        <span title={task.host ?? ""}>
          {task.executor}
          {task.speculative && (
            <span class="dim" title={t.speculative}>
              {" "}
              s
            </span>
          )}
        </span>
      ),
    },
    { key: "host", head: t.host, width: 112, cell: (task) => task.host ?? "–" },
    { key: "locality", head: t.locality, width: 108, cell: (task) => (task.locality ?? "–").toLowerCase().replaceAll("_", " ") },
    momentColumn("launch_ms", t.started, 92, (task) => task.launch_ms),
    figure("gc_ms", t.gc, "ms", 84),
    figure("input_bytes", t.input, "bytes", 90),
    figure("input_records", t.rowsRead, "count", 96),
    figure("shuffle_read_bytes", t.shuffleRead, "bytes", 104),
    figure("shuffle_read_records", t.shuffleRows, "count", 108),
    figure("shuffle_write_bytes", t.shuffleWrite, "bytes", 106),
    figure("spill_memory_bytes", t.spillMemory, "bytes", 112),
    figure("spill_disk_bytes", t.spillDisk, "bytes", 96),
    figure("peak_memory_bytes", t.peakMemory, "bytes", 108),
    figure("output_bytes", t.output, "bytes", 90),
    figure("scheduler_delay_ms", t.schedulerDelay, "ms", 124),
    figure("deserialize_ms", t.deserialize, "ms", 108),
    figure("fetch_wait_ms", t.fetchWait, "ms", 96),
    figure("shuffle_write_ms", t.writeTime, "ms", 96),
    figure("cpu_ms", t.cpu, "ms", 84),
  ];
}
