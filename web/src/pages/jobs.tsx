// Which action took the time, and when did nothing run between two of them?
import { useMemo } from "preact/hooks";
import { appUrl, SPARK, useData } from "../base/fetch.ts";
import type { Timeline } from "../base/api.ts";
import type { SparkJob, SparkStage } from "../base/spark.ts";
import { clock, sparkTime } from "../base/time.ts";
import { count, duration } from "../base/units.ts";
import { appKey, appPath, here, setQuery, type AppRef } from "../base/url.ts";
import { t } from "../base/words.ts";
import { Card, Filter, Moment, StatusWord } from "../parts/bits.tsx";
import { durationColumn, momentColumn } from "../parts/columns.tsx";
import { Peek } from "../parts/peek.tsx";
import { Place, Spans, type Span } from "../parts/spans.tsx";
import { Empty, With } from "../parts/states.tsx";
import { Table, type Column } from "../parts/table.tsx";
import type { TabProps } from "./tabs.ts";

export interface JobLine {
  job: SparkJob;
  from: number | null;
  to: number | null;
  length: number | null;
}

const jobLine = (job: SparkJob, now: number): JobLine => {
  const from = sparkTime(job.submissionTime);
  const to = sparkTime(job.completionTime) ?? (job.status === "RUNNING" ? now : null);
  return { job, from, to, length: from !== null && to !== null ? to - from : null };
};

export default function Jobs({ app }: TabProps) {
  const jobs = useData<SparkJob[]>(`${SPARK}/applications/${appKey(app)}/jobs`);
  const stages = useData<SparkStage[]>(`${SPARK}/applications/${appKey(app)}/stages`);
  const line = useData<Timeline>(`${appUrl(app)}/timeline?by=executor&pixels=1200`);
  return (
    <With of={jobs} rows={8}>
      {(list) =>
        list.length ? (
          <JobPage app={app} jobs={list} stages={stages.data ?? []} line={line.data} />
        ) : (
          <Empty title={t.noJobs}>
            <p>{t.noJobsNext}</p>
          </Empty>
        )
      }
    </With>
  );
}

/** The failed stage of a job with its reason, so that the cause is one click away. */
const failedStage = (job: SparkJob, stages: SparkStage[]): SparkStage | undefined =>
  stages.find((s) => s.status === "FAILED" && job.stageIds.includes(s.stageId));

/** Where a job spent longest. */
function longestStage(job: SparkJob, stages: SparkStage[]): SparkStage | undefined {
  const length = (s: SparkStage) => (sparkTime(s.completionTime) ?? 0) - (sparkTime(s.submissionTime) ?? 0);
  return stages
    .filter((s) => job.stageIds.includes(s.stageId) && s.completionTime && s.submissionTime)
    .sort((a, b) => length(b) - length(a))[0];
}

function JobPage({ app, jobs, stages, line }: { app: AppRef; jobs: SparkJob[]; stages: SparkStage[]; line: Timeline | null }) {
  const lines = useMemo(() => jobs.map((job) => jobLine(job, line?.end_ms ?? Date.now())), [jobs, line]);
  const q = here.value.query.get("q") ?? "";
  const shown = useMemo(
    () =>
      lines.filter((l) =>
        `${l.job.jobId} ${l.job.name} ${l.job.description ?? ""} ${l.job.status}`.toLowerCase().includes(q.toLowerCase()),
      ),
    [lines, q],
  );
  const start = line?.start_ms ?? Math.min(...lines.map((l) => l.from ?? Infinity));
  const end = line?.end_ms ?? Math.max(...lines.map((l) => l.to ?? 0));
  const columns = useMemo(() => jobColumns(app, stages, start, end), [app, stages, start, end]);
  return (
    <>
      <Lead app={app} lines={lines} stages={stages} />
      <JobTimeline app={app} lines={lines} stages={stages} line={line} start={start} end={end} />
      <section class="card">
        <div class="bar">
          <Filter value={q} label={t.filterJobs} onInput={(value) => setQuery({ q: value })} />
          <span class="dim" role="status">
            {t.nJobs(count(shown.length))}
          </span>
        </div>
        <Table
          name={t.tabs.jobs}
          columns={columns}
          rows={shown}
          id={(l) => l.job.jobId}
          sort="-duration"
          rowHeight={42}
          open={(l) => jobTo(app, l.job, stages)}
          peek={(l) => <JobPeek app={app} line={l} stages={stages} />}
          rowClass={(l) => (l.job.status === "FAILED" ? "bad" : "")}
          empty={<p class="pad dim">{t.nothingMatches}</p>}
        />
      </section>
    </>
  );
}

function jobTo(app: AppRef, job: SparkJob, stages: SparkStage[]): string {
  const stage = failedStage(job, stages) ?? longestStage(job, stages);
  return stage ? appPath(app, `stages/${stage.stageId}/${stage.attemptId}`) : `${appPath(app, "stages")}?job=${job.jobId}`;
}

function Lead({ app, lines, stages }: { app: AppRef; lines: JobLine[]; stages: SparkStage[] }) {
  const longest = lines.reduce((a, b) => ((b.length ?? 0) > (a.length ?? 0) ? b : a));
  const others = lines
    .filter((l) => l !== longest)
    .map((l) => l.length ?? 0)
    .sort((a, b) => a - b);
  const middle = others[others.length >> 1];
  const stage = longestStage(longest.job, stages);
  const failed = lines.filter((l) => l.job.status === "FAILED");
  return (
    <p class="lead">
      {failed.length > 0 && (
        <>
          <b class="mark-fail">
            {t.jobsFailed(
              failed
                .map((l) => l.job.jobId)
                .slice(0, 5)
                .join(", "),
              failed.length,
            )}
          </b>{" "}
        </>
      )}
      <b>{t.longestJob(longest.job.jobId, duration(longest.length))}</b>
      {middle && lines.length > 2 ? ` ${t.othersTake(duration(middle))}` : ""}
      {stage && (
        <>
          {" "}
          <a class="link" href={appPath(app, `stages/${stage.stageId}/${stage.attemptId}`)}>
            {t.itsLongestStage(stage.stageId)}
          </a>
        </>
      )}
    </p>
  );
}

function JobTimeline({
  app,
  lines,
  stages,
  line,
  start,
  end,
}: {
  app: AppRef;
  lines: JobLine[];
  stages: SparkStage[];
  line: Timeline | null;
  start: number;
  end: number;
}) {
  const spans: Span[] = lines.flatMap((l) =>
    l.from === null || l.to === null
      ? []
      : [
          {
            id: l.job.jobId,
            from: l.from,
            to: l.to,
            bad: l.job.status === "FAILED",
            running: l.job.status === "RUNNING",
            text: `${t.jobN(l.job.jobId)} · ${duration(l.length)}`,
            title: `${t.jobN(l.job.jobId)}: ${l.job.description ?? l.job.name}, ${duration(l.length)}`,
            to_href: jobTo(app, l.job, stages),
          },
        ],
  );
  const gaps = line?.gaps ?? [];
  const marks = line?.marks.filter((m) => !/added/.test(m.kind)) ?? [];
  return (
    <Card title={t.jobsOverTime} note={gaps.length ? t.nGaps(gaps.length) : line ? t.noGaps : ""} class="timeline-card">
      <Spans spans={spans} start={start} end={end} gaps={gaps} marks={marks} />
      {gaps.length > 0 && (
        <ul class="plain">
          {gaps.map((gap) => (
            <li key={gap.from_ms}>
              <a
                class="timeline-line"
                href={`${appPath(app, "timeline")}?from=${Math.max(0, Math.round(gap.from_ms - start - 20000))}&to=${Math.round(gap.to_ms - start + 20000)}`}
              >
                <span class="num">{clock(gap.from_ms, true)}</span>
                <b class="num">{duration(gap.to_ms - gap.from_ms)}</b>
                <span class="soft">{gap.text}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function jobColumns(app: AppRef, stages: SparkStage[], start: number, end: number): Column<JobLine>[] {
  return [
    {
      key: "id",
      head: t.job,
      num: true,
      width: 64,
      by: (l) => l.job.jobId,
      cell: (l) => (
        <a class="strong" href={jobTo(app, l.job, stages)}>
          {l.job.jobId}
        </a>
      ),
    },
    {
      key: "name",
      head: t.description,
      by: (l) => l.job.description ?? l.job.name,
      cell: (l) => <JobName app={app} job={l.job} stages={stages} />,
    },
    { key: "status", head: t.state, width: 116, by: (l) => l.job.status, cell: (l) => <StatusWord status={l.job.status} /> },
    {
      key: "place",
      head: t.inTime,
      width: 200,
      leaves: 1,
      cell: (l) => <Place from={l.from} to={l.to} start={start} end={end} bad={l.job.status === "FAILED"} />,
    },
    durationColumn(92, (l) => l.length),
    {
      key: "stages",
      head: t.tabs.stages,
      num: true,
      width: 92,
      leaves: 2,
      by: (l) => l.job.stageIds.length,
      cell: (l) => (
        <a href={`${appPath(app, "stages")}?job=${l.job.jobId}`} title={t.stagesOfJob(l.job.jobId)}>
          {count(l.job.stageIds.length - l.job.numSkippedStages)}
          {l.job.numSkippedStages > 0 && <span class="dim"> +{l.job.numSkippedStages}</span>}
        </a>
      ),
    },
    {
      key: "tasks",
      head: t.tasks,
      num: true,
      width: 132,
      leaves: 2,
      by: (l) => l.job.numTasks,
      cell: (l) => (
        <Tasks
          done={l.job.numCompletedIndices ?? l.job.numCompletedTasks}
          all={l.job.numTasks - l.job.numSkippedTasks}
          failed={l.job.numFailedTasks}
        />
      ),
    },
    momentColumn("started", t.started, 92, (l) => l.from, { leaves: 2 }),
  ];
}

function JobName({ app, job, stages }: { app: AppRef; job: SparkJob; stages: SparkStage[] }) {
  const stage = failedStage(job, stages);
  return (
    <div class="two">
      <span class="cut" title={job.description ?? job.name}>
        {job.description ?? job.name}
      </span>
      {stage ? (
        <a
          class="mark-fail cut"
          href={appPath(app, `stages/${stage.stageId}/${stage.attemptId}?status=failed`)}
          title={stage.failureReason}
        >
          {t.failedIn(stage.stageId)}: {stage.failureReason?.split("\n")[0]}
        </a>
      ) : (
        <span class="dim cut">{job.description ? job.name : (job.jobGroup ?? "")}</span>
      )}
    </div>
  );
}

function JobPeek({ app, line, stages }: { app: AppRef; line: JobLine; stages: SparkStage[] }) {
  const { job } = line;
  const failed = failedStage(job, stages);
  const longest = longestStage(job, stages);
  return (
    <Peek
      title={t.jobN(job.jobId)}
      to={jobTo(app, job, stages)}
      text={failed ? <span class="mark-fail">{failed.failureReason?.split("\n")[0]}</span> : (job.description ?? job.name)}
      facts={[
        [t.state, <StatusWord status={job.status} />],
        [t.duration, duration(line.length)],
        [t.started, <Moment ms={line.from} seconds />],
        [t.tabs.stages, count(job.stageIds.length - job.numSkippedStages)],
        [t.status("skipped"), count(job.numSkippedStages)],
        [t.tasks, count(job.numTasks - job.numSkippedTasks)],
        [t.failed, count(job.numFailedTasks)],
        ...(longest ? [[t.longestStageShort, t.stageN(longest.stageId, longest.attemptId)] as [string, string]] : []),
      ]}
    />
  );
}

export const Tasks = ({ done, all, failed }: { done: number; all: number; failed: number }) => (
  <span>
    {done === all ? count(all) : `${count(done)} / ${count(all)}`}
    {failed > 0 && <span class="mark-fail"> {t.shortFailed(count(failed))}</span>}
  </span>
);
