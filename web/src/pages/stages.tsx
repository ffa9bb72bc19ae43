// Which stage took the time and what moved through it?
import { useMemo } from "preact/hooks";
import { SPARK, useData } from "../base/fetch.ts";
import type { SparkJob, SparkStage } from "../base/spark.ts";
import { sparkTime } from "../base/time.ts";
import { bytes, count, duration } from "../base/units.ts";
import { appKey, appPath, here, setQuery, type AppRef } from "../base/url.ts";
import type { AppPage, FindingRef } from "../base/api.ts";
import { t } from "../base/words.ts";
import { Filter, FindingDots, Moment, Seg, StatusWord } from "../parts/bits.tsx";
import { durationColumn, figureColumn } from "../parts/columns.tsx";
import { Peek } from "../parts/peek.tsx";
import { Place } from "../parts/spans.tsx";
import { Empty, With } from "../parts/states.tsx";
import { Table, type Column } from "../parts/table.tsx";
import type { TabProps } from "./tabs.ts";
import { Tasks } from "./jobs.tsx";

interface StageLine {
  stage: SparkStage;
  from: number | null;
  to: number | null;
  length: number | null;
  findings: FindingRef[];
}

/** Findings of the diagnosis by the stage that they are about. */
export function findingsByStage(page: AppPage | null): Map<number, FindingRef[]> {
  const map = new Map<number, FindingRef[]>();
  for (const { number, root } of page?.chapters ?? []) {
    if (root.stage === null || root.stage === undefined) continue;
    map.set(root.stage, [...(map.get(root.stage) ?? []), { number, severity: root.severity, title: root.title }]);
  }
  return map;
}

export default function Stages({ app, page }: TabProps) {
  const stages = useData<SparkStage[]>(`${SPARK}/applications/${appKey(app)}/stages`);
  const job = here.value.query.get("job");
  const jobs = useData<SparkJob[]>(job ? `${SPARK}/applications/${appKey(app)}/jobs` : null);
  const only = job ? jobs.data?.find((j) => j.jobId === Number(job))?.stageIds : undefined;
  return (
    <With of={stages} rows={8}>
      {(list) =>
        list.length ? (
          <StageTable app={app} page={page} stages={list} only={only} />
        ) : (
          <Empty title={t.noStages}>
            <p>{t.noJobsNext}</p>
          </Empty>
        )
      }
    </With>
  );
}

type Which = "ran" | "failed" | "skipped" | "all";

function lineOf(stage: SparkStage, findings: Map<number, FindingRef[]>): StageLine {
  const from = sparkTime(stage.submissionTime);
  const to = sparkTime(stage.completionTime);
  return {
    stage,
    from,
    to,
    length: from !== null && to !== null ? to - from : null,
    findings: findings.get(stage.stageId) ?? [],
  };
}

const isShown = (stage: SparkStage, which: Which): boolean =>
  which === "all" || (which === "ran" ? stage.status !== "SKIPPED" : stage.status === which.toUpperCase());

function StageTable({
  app,
  page,
  stages,
  only,
}: {
  app: AppRef;
  page: AppPage | null;
  stages: SparkStage[];
  only: number[] | undefined;
}) {
  const { query } = here.value;
  const q = query.get("q") ?? "";
  const which = (query.get("show") ?? "ran") as Which;
  const lines = useMemo(() => stages.map((s) => lineOf(s, findingsByStage(page))), [stages, page]);
  const shown = useMemo(
    () =>
      lines.filter(
        ({ stage }) =>
          isShown(stage, which) &&
          (!only || only.includes(stage.stageId)) &&
          `${stage.stageId} ${stage.name} ${stage.description ?? ""}`.toLowerCase().includes(q.toLowerCase()),
      ),
    [lines, which, q, only],
  );
  const start = page?.application.started_ms ?? Math.min(...lines.map((l) => l.from ?? Infinity));
  const end = page?.application.ended_ms ?? Math.max(...lines.map((l) => l.to ?? 0));
  const columns = useMemo(() => stageColumns(app, start, end), [app, start, end]);
  const longest = lines.reduce((a, b) => ((b.length ?? 0) > (a.length ?? 0) ? b : a));
  const ran = lines.filter((l) => l.stage.status !== "SKIPPED").length;
  return (
    <>
      <p class="lead">
        <b>{t.longestStage(longest.stage.stageId, duration(longest.length))}</b> {t.ranAndSkipped(ran, lines.length - ran)}
      </p>
      <section class="card">
        <div class="bar">
          <Filter value={q} label={t.filterStages} onInput={(value) => setQuery({ q: value })} />
          <Seg<Which>
            label={t.showOnly}
            value={which}
            options={[
              ["ran", t.ranWord],
              ["failed", t.failed],
              ["skipped", t.status("skipped")],
              ["all", t.all],
            ]}
            onChange={(value) => setQuery({ show: value === "ran" ? null : value })}
          />
          <span class="dim" role="status">
            {t.nStages(count(shown.length))}
          </span>
          {only && (
            <button type="button" class="chip" aria-pressed="true" onClick={() => setQuery({ job: null })}>
              {t.jobN(query.get("job")!)} ×
            </button>
          )}
        </div>
        <Table
          name={t.tabs.stages}
          columns={columns}
          rows={shown}
          id={(l) => `${l.stage.stageId}.${l.stage.attemptId}`}
          sort="-duration"
          open={(l) => stageTo(app, l.stage)}
          peek={(l) => <StagePeek app={app} line={l} />}
          rowClass={(l) => (l.stage.status === "FAILED" ? "bad" : "")}
          empty={<p class="pad dim">{t.nothingMatches}</p>}
        />
      </section>
    </>
  );
}

const stageTo = (app: AppRef, stage: SparkStage): string => appPath(app, `stages/${stage.stageId}/${stage.attemptId}`);

function stageColumns(app: AppRef, start: number, end: number): Column<StageLine>[] {
  return [
    {
      key: "id",
      head: t.stage,
      num: true,
      width: 72,
      by: (l) => l.stage.stageId + l.stage.attemptId / 100,
      cell: (l) => (
        <a class="strong" href={stageTo(app, l.stage)}>
          {l.stage.stageId}
          {l.stage.attemptId > 0 && `.${l.stage.attemptId}`}
        </a>
      ),
    },
    {
      key: "name",
      head: t.description,
      by: (l) => l.stage.name,
      cell: (l) => (
        <span title={l.stage.failureReason ?? l.stage.description ?? l.stage.name}>
          {l.stage.failureReason ? (
            <span class="mark-fail">{l.stage.failureReason.split("\n")[0]}</span>
          ) : (
            (l.stage.description ?? l.stage.name)
          )}
        </span>
      ),
    },
    {
      key: "findings",
      head: t.findings,
      width: 88,
      leaves: 1,
      by: (l) => -l.findings.length,
      cell: (l) => <FindingDots findings={l.findings} base={appPath(app)} />,
    },
    {
      key: "status",
      head: t.state,
      width: 112,
      leaves: 1,
      by: (l) => l.stage.status,
      cell: (l) => <StatusWord status={l.stage.status} />,
    },
    {
      key: "place",
      head: t.inTime,
      width: 130,
      leaves: 3,
      cell: (l) => <Place from={l.from} to={l.to} start={start} end={end} bad={l.stage.status === "FAILED"} />,
    },
    durationColumn(88, (l) => l.length),
    {
      key: "tasks",
      head: t.tasks,
      num: true,
      width: 96,
      by: (l) => l.stage.numTasks,
      cell: (l) => <Tasks done={l.stage.numCompleteTasks} all={l.stage.numTasks} failed={l.stage.numFailedTasks} />,
    },
    figureColumn("input", t.input, "bytes", 84, (l) => l.stage.inputBytes, { leaves: 2 }),
    figureColumn("output", t.output, "bytes", 84, (l) => l.stage.outputBytes, { leaves: 1 }),
    figureColumn("read", t.shuffleRead, "bytes", 100, (l) => l.stage.shuffleReadBytes, { leaves: 2 }),
    figureColumn("write", t.shuffleWrite, "bytes", 102, (l) => l.stage.shuffleWriteBytes, { leaves: 2 }),
    figureColumn("spill", t.spill, "bytes", 80, (l) => l.stage.diskBytesSpilled, { leaves: 1 }),
  ];
}

function StagePeek({ app, line }: { app: AppRef; line: StageLine }) {
  const { stage: s } = line;
  return (
    <Peek
      title={t.stageN(s.stageId, s.attemptId)}
      to={stageTo(app, s)}
      text={s.failureReason ? <span class="mark-fail">{s.failureReason.split("\n")[0]}</span> : (s.description ?? s.name)}
      facts={[
        [t.state, <StatusWord status={s.status} />],
        [t.duration, duration(line.length)],
        [t.started, <Moment ms={line.from} seconds />],
        [t.tasks, <Tasks done={s.numCompleteTasks} all={s.numTasks} failed={s.numFailedTasks} />],
        [t.taskTime, duration(s.executorRunTime)],
        [t.gc, duration(s.jvmGcTime)],
        [t.input, bytes(s.inputBytes)],
        [t.output, bytes(s.outputBytes)],
        [t.shuffleRead, bytes(s.shuffleReadBytes)],
        [t.shuffleWrite, bytes(s.shuffleWriteBytes)],
        [t.spillMemory, bytes(s.memoryBytesSpilled)],
        [t.spillDisk, bytes(s.diskBytesSpilled)],
      ]}
      findings={line.findings}
      base={appPath(app)}
    />
  );
}
