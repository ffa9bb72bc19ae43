//! A stage: Spark's summary, what differs in its slow tasks, and its tasks sorted, paged or drawn.

use super::asked::{Asked, At, StageOf};
use super::columns::{Columns, KIND};
use super::failure::{self, Failure};
use super::openapi::shapes;
use super::openapi::words::{MetricUnit, StageStatus, TaskState};
use super::{Answer, json, timeline};
use crate::Opened;
use crate::params::Params;
use crate::spark_rest::{error_message, locality};
use axum::response::Response;
use diagnose::telling::{self, clean, one_line};
use model::{Application, Finding, Metric, Severity, Stage, TaskStatus, Tasks};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

mod differences;

use differences::{Difference, Slow};

/// Tasks of a page unless told otherwise, and at most.
const PAGE: usize = 100;
const MOST: usize = 10_000;

/// A finding by its number on the page of the application.
#[derive(Clone, Serialize, ToSchema)]
pub(super) struct FindingRef {
    /// Its number, from 1; findings that follow from one have the number of that one.
    number: usize,
    /// How bad it is.
    #[schema(value_type = shapes::Severity)]
    severity: Severity,
    /// What it says.
    title: String,
}

impl FindingRef {
    /// The findings that are about something.
    pub fn all(opened: &Opened, about: impl Fn(&Finding) -> bool) -> Vec<Self> {
        let mut all = Vec::new();
        for chapter in telling::chapters(opened.report(), true) {
            let findings = std::iter::once(chapter.root).chain(chapter.follows.iter().copied());
            all.extend(findings.filter(|finding| about(finding)).map(|finding| Self {
                number: chapter.number,
                severity: finding.severity,
                title: one_line(&telling::capital(&finding.title)),
            }));
        }
        all
    }
}

/// A stage attempt.
#[derive(Serialize, ToSchema)]
pub(super) struct StagePage {
    /// Id of the stage.
    stage: u32,
    /// Attempt of the stage; 0 is the first.
    attempt: u32,
    /// Name: the operation and where it stands in the code.
    name: String,
    /// Call stack of the operation.
    details: String,
    /// Description of its job, where it was given one.
    description: Option<String>,
    /// How it stands.
    #[schema(value_type = StageStatus)]
    status: &'static str,
    /// Why it failed.
    failure: Option<String>,
    /// When it was submitted, epoch ms.
    submitted_ms: Option<i64>,
    /// When it ended, epoch ms.
    completed_ms: Option<i64>,
    /// Start of its first task, epoch ms.
    first_task_ms: Option<i64>,
    /// End of its last task, epoch ms.
    last_task_ms: Option<i64>,
    /// Id of the SQL execution that it ran for.
    sql: Option<i64>,
    /// Ids of the jobs that use it.
    jobs: Vec<u32>,
    /// Attempts of the stage in the log.
    attempts: Vec<u32>,
    /// Tasks that Spark planned.
    num_tasks: u32,
    /// Task attempts in the log.
    tasks: usize,
    /// Task attempts that ended well.
    succeeded: usize,
    /// Task attempts that failed.
    failed: usize,
    /// Task attempts that were killed.
    killed: usize,
    /// Task attempts that run, or whose end is not in the log.
    running: usize,
    /// Speculative task attempts.
    speculative: usize,
    /// Quantiles of each figure over the tasks that ended well, as on Spark's page.
    summary: Vec<SummaryRow>,
    /// The slow tasks; null when none stand out.
    slow: Option<Slow>,
    /// In what the slow tasks differ from the others, what tells most first.
    differs: Vec<Difference>,
    /// Findings about the stage.
    findings: Vec<FindingRef>,
    /// Whether it reads a shuffle, so that the shuffle calculator can start from it.
    reads_shuffle: bool,
}

/// Quantiles of a figure over the tasks of a stage; each is a value that occurred.
#[derive(Serialize, ToSchema)]
struct SummaryRow {
    /// Spark's name of the figure.
    label: &'static str,
    /// Unit of all values of the row.
    #[schema(value_type = MetricUnit)]
    unit: &'static str,
    /// Smallest value.
    min: i64,
    /// First quartile.
    p25: i64,
    /// Median.
    median: i64,
    /// Third quartile.
    p75: i64,
    /// 95th percentile.
    p95: i64,
    /// Largest value.
    max: i64,
    /// Sum.
    sum: i64,
    /// Whether Spark's page shows it without being asked.
    show: bool,
}

/// Rows of Spark's stage page in its order: label, unit, metric, and whether it is shown at once.
const ROWS: [(&str, &str, Metric, bool); 22] = [
    ("Task deserialization time", "ms", Metric::DeserializeMs, false),
    ("Duration", "ms", Metric::DurationMs, true),
    ("Run time", "ms", Metric::RunMs, false),
    ("CPU time", "ms", Metric::CpuMs, false),
    ("GC time", "ms", Metric::GcMs, true),
    ("Result serialization time", "ms", Metric::ResultSerializationMs, false),
    ("Getting result time", "ms", Metric::GettingResultTimeMs, false),
    ("Scheduler delay", "ms", Metric::SchedulerDelayMs, false),
    ("Peak execution memory", "bytes", Metric::PeakExecutionBytes, false),
    ("Spill (memory)", "bytes", Metric::MemorySpillBytes, false),
    ("Spill (disk)", "bytes", Metric::DiskSpillBytes, false),
    ("Input size", "bytes", Metric::InputBytes, false),
    ("Input records", "count", Metric::InputRecords, false),
    ("Output size", "bytes", Metric::OutputBytes, false),
    ("Output records", "count", Metric::OutputRecords, false),
    ("Shuffle read fetch wait time", "ms", Metric::FetchWaitMs, false),
    ("Shuffle read size", "bytes", Metric::ShuffleReadBytes, false),
    ("Shuffle read records", "count", Metric::ShuffleRecordsRead, false),
    ("Shuffle remote reads", "bytes", Metric::RemoteBytesRead, false),
    ("Shuffle write size", "bytes", Metric::ShuffleBytesWritten, false),
    ("Shuffle write records", "count", Metric::ShuffleRecordsWritten, false),
    ("Shuffle write time", "ms", Metric::ShuffleWriteMs, false),
];

/// A stage.
///
/// Spark's summary of its tasks, what its slow tasks have in common, and findings about it.
#[utoipa::path(
    get, path = "/stages/{stage}/{stage_attempt}", operation_id = "getStage", tag = "stages", params(StageOf),
    responses(
        (status = 200, description = "The stage attempt", body = StagePage),
        (status = 404, description = "There is no such application or stage", body = failure::Body),
    ),
)]
pub(super) async fn show(asked: Asked, At(of): At<StageOf>) -> Answer {
    asked.answer(move |_, opened, _| Ok(json(&one(opened, of.stage, of.stage_attempt)?))).await
}

/// Tasks of a stage, filtered, sorted and cut to a page.
#[utoipa::path(
    get, path = "/stages/{stage}/{stage_attempt}/tasks", operation_id = "listTasks", tag = "stages",
    params(StageOf, Wanted),
    responses(
        (status = 200, description = "A page of tasks", body = TaskPage),
        (status = 400, description = "A value is none of its kind", body = failure::Body),
        (status = 404, description = "There is no such application or stage", body = failure::Body),
    ),
)]
pub(super) async fn show_tasks(asked: Asked, At(of): At<StageOf>) -> Answer {
    asked.answer(move |_, opened, params| Ok(json(&tasks(opened.app(), of.stage, of.stage_attempt, params)?))).await
}

/// All tasks of a stage as binary columns.
///
/// For drawing without a parser on the way. The first 4 bytes are the length of a JSON header in
/// bytes; the header follows, with spaces up to a multiple of 4, then the columns one after the
/// other, each at a multiple of 4 bytes. All numbers are little-endian. The header has `rows` and
/// `columns`, each with `name`, `type` (`u8`, `u16`, `u32` or `f32`, as narrow as its values allow)
/// and `offset`, in bytes from the end of the header; a column of zeros is left out.
/// The header also has `start_ms`, the start of the first task in epoch ms, and `executors`, their
/// ids by number. The columns: `task` (id), `index`, `executor` (number), `attempt`, `start` (ms
/// after `start_ms`), `duration` (ms), `gc` (share of the duration in 1/255), `state` (0 running, 1
/// success, 2 failed, 3 killed), `spill` (1 when it spilled to disk), `bytes` and `rows` (read from
/// sources and shuffles).
#[utoipa::path(
    get, path = "/stages/{stage}/{stage_attempt}/tasks.columns", operation_id = "getTaskColumns", tag = "stages",
    params(StageOf),
    responses(
        (status = 200, description = "The columns", body = inline(shapes::Bytes), content_type = KIND),
        (status = 404, description = "There is no such application or stage", body = failure::Body),
    ),
)]
pub(super) async fn show_columns(asked: Asked, At(of): At<StageOf>) -> Answer {
    asked.answer(move |_, opened, _| columns(opened.app(), of.stage, of.stage_attempt)).await
}

/// A stage attempt.
pub(super) fn one(opened: &Opened, id: u32, attempt: u32) -> Result<StagePage, Failure> {
    let app = opened.app();
    let stage = find(app, id, attempt)?;
    let (slow, differs) = differences::of(app, stage);
    let about = |finding: &Finding| {
        let scope = &finding.scope;
        scope.stages.contains(&id) || (scope.stage == Some(id) && scope.attempt.is_none_or(|a| a == attempt))
    };
    let span = stage.span_ms();
    Ok(StagePage {
        stage: id,
        attempt,
        name: one_line(&stage.name),
        details: clean(&stage.details).into_owned(),
        description: stage.description.as_deref().map(one_line),
        status: timeline::status(stage.status),
        failure: stage.failure.as_deref().map(|text| clean(text).into_owned()),
        submitted_ms: stage.submitted_ms,
        completed_ms: stage.completed_ms,
        first_task_ms: span.map(|span| span.0),
        last_task_ms: span.map(|span| span.1),
        sql: stage.sql,
        jobs: stage.jobs.clone(),
        attempts: app.stages.iter().filter(|s| s.id == id).map(|s| s.attempt).collect(),
        num_tasks: stage.num_tasks,
        tasks: stage.tasks.len(),
        succeeded: stage.count(TaskStatus::Success),
        failed: stage.count(TaskStatus::Failed),
        killed: stage.count(TaskStatus::Killed),
        running: stage.count(TaskStatus::Running),
        speculative: (0..stage.tasks.len()).filter(|&row| stage.tasks.speculative(row)).count(),
        summary: summary(stage),
        slow,
        differs,
        findings: FindingRef::all(opened, about),
        reads_shuffle: stage.sum(Metric::ShuffleReadBytes) > 0,
    })
}

fn find(app: &Application, id: u32, attempt: u32) -> Result<&Stage, Failure> {
    app.stage(id, attempt).ok_or_else(|| Failure::no_such_stage(id, attempt))
}

fn summary(stage: &Stage) -> Vec<SummaryRow> {
    let row = |&(label, unit, metric, always): &(&'static str, &'static str, Metric, bool)| {
        let mut values = stage.tasks.successful_values(metric);
        let sum = values.iter().fold(0, |sum: i64, value| sum.saturating_add(*value));
        let quantiles = model::quantiles(&mut values, [0.0, 0.25, 0.5, 0.75, 0.95, 1.0]);
        let [min, p25, median, p75, p95, max] = quantiles.unwrap_or_default();
        SummaryRow { label, unit, min, p25, median, p75, p95, max, sum, show: always || max > 0 }
    };
    ROWS.iter().map(row).collect()
}

/// Columns of the task table with their metric; `task`, `index` and the like are none.
const FIGURES: [(&str, Metric); 24] = [
    ("launch_ms", Metric::LaunchMs),
    ("duration_ms", Metric::DurationMs),
    ("scheduler_delay_ms", Metric::SchedulerDelayMs),
    ("deserialize_ms", Metric::DeserializeMs),
    ("gc_ms", Metric::GcMs),
    ("cpu_ms", Metric::CpuMs),
    ("run_ms", Metric::RunMs),
    ("result_serialization_ms", Metric::ResultSerializationMs),
    ("getting_result_ms", Metric::GettingResultTimeMs),
    ("peak_memory_bytes", Metric::PeakExecutionBytes),
    ("input_bytes", Metric::InputBytes),
    ("input_records", Metric::InputRecords),
    ("shuffle_read_bytes", Metric::ShuffleReadBytes),
    ("shuffle_read_records", Metric::ShuffleRecordsRead),
    ("fetch_wait_ms", Metric::FetchWaitMs),
    ("shuffle_write_bytes", Metric::ShuffleBytesWritten),
    ("shuffle_write_records", Metric::ShuffleRecordsWritten),
    ("shuffle_write_ms", Metric::ShuffleWriteMs),
    ("spill_memory_bytes", Metric::MemorySpillBytes),
    ("spill_disk_bytes", Metric::DiskSpillBytes),
    ("output_bytes", Metric::OutputBytes),
    ("output_records", Metric::OutputRecords),
    ("result_bytes", Metric::ResultBytes),
    ("finish_ms", Metric::FinishMs),
];

/// Which tasks, and in which order.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)] // Says what `Params` are asked for.
struct Wanted {
    /// States, several with commas; all when it is not given.
    #[param(required = false, inline, explode = false, style = Form)]
    status: Vec<TaskState>,
    /// Id of the executor that they ran on.
    #[param(required = false)]
    executor: String,
    /// Text that the host or the error holds, or the id of a task; upper and lower case are the same.
    #[param(required = false)]
    q: String,
    /// A field of a task, with `-` in front for the largest first; `error` is none of them.
    #[param(required = false, default = "task", example = "-duration_ms")]
    sort: String,
    /// Tasks to leave out at the start.
    #[param(required = false, default = 0, minimum = 0)]
    offset: usize,
    /// Tasks of a page; larger numbers count as the largest.
    #[param(required = false, default = 100, minimum = 0, maximum = 10_000)]
    limit: usize,
}

/// A page of tasks.
#[derive(Serialize, ToSchema)]
pub(super) struct TaskPage {
    /// Tasks that match, on this page and on others.
    total: usize,
    /// The tasks of the page.
    #[schema(value_type = Vec<shapes::TaskRow>)]
    tasks: Vec<serde_json::Map<String, serde_json::Value>>,
}

/// Tasks filtered, sorted and cut to a page.
pub(super) fn tasks(app: &Application, id: u32, attempt: u32, params: &Params) -> Result<TaskPage, Failure> {
    let stage = find(app, id, attempt)?;
    let mut rows = filtered(app, stage, params)?;
    sort(app, &stage.tasks, params.get("sort").unwrap_or("task"), &mut rows)?;
    let number = |name| params.parsed::<usize>(name, "a number");
    let (offset, limit) = (number("offset")?.unwrap_or(0), number("limit")?.unwrap_or(PAGE).min(MOST));
    let page = rows.iter().skip(offset).take(limit).map(|&row| task(app, &stage.tasks, row));
    Ok(TaskPage { total: rows.len(), tasks: page.collect() })
}

fn filtered(app: &Application, stage: &Stage, params: &Params) -> Result<Vec<usize>, Failure> {
    let tasks = &stage.tasks;
    let words = params.get("status").unwrap_or_default();
    let known = ["running", "success", "failed", "killed"];
    let wanted: Vec<&str> = words.split(',').filter(|word| !word.is_empty()).collect();
    if let Some(word) = wanted.iter().find(|word| !known.contains(word)) {
        let message = format!("status cannot be {word:?}");
        return Err(Failure::bad_request(message, "use running, success, failed or killed, several with commas"));
    }
    let executor = params.get("executor").filter(|id| !id.is_empty());
    let text = params.get("q").map(str::to_lowercase).filter(|text| !text.is_empty());
    let keeps = |&row: &usize| {
        let runs_on = executor_of(app, tasks, row);
        (wanted.is_empty() || wanted.contains(&status(tasks.status(row))))
            && executor.is_none_or(|id| runs_on.is_some_and(|e| *e.id == *id))
            && text.as_deref().is_none_or(|text| matches(app, tasks, row, text))
    };
    Ok((0..tasks.len()).filter(keeps).collect())
}

fn matches(app: &Application, tasks: &Tasks, row: usize, text: &str) -> bool {
    let host = executor_of(app, tasks, row).map(|e| e.host.to_lowercase()).unwrap_or_default();
    let error = tasks.failure(row).map(|failure| error_message(failure).to_lowercase()).unwrap_or_default();
    host.contains(text) || error.contains(text) || tasks.id(row).to_string() == text
}

fn sort(app: &Application, tasks: &Tasks, by: &str, rows: &mut [usize]) -> Result<(), Failure> {
    let (name, descends) = by.strip_prefix('-').map_or((by, false), |name| (name, true));
    if let Some((_, metric)) = FIGURES.iter().find(|(figure, _)| *figure == name) {
        let values = tasks.values(*metric);
        rows.sort_unstable_by_key(|&row| (values[row], tasks.id(row)));
    } else {
        match name {
            "task" => rows.sort_unstable_by_key(|&row| tasks.id(row)),
            "index" => rows.sort_unstable_by_key(|&row| (tasks.index(row), tasks.id(row))),
            "attempt" => rows.sort_unstable_by_key(|&row| (tasks.attempt(row), tasks.id(row))),
            "partition" => rows.sort_unstable_by_key(|&row| (tasks.partition(row), tasks.id(row))),
            "executor" => rows.sort_by_cached_key(|&row| {
                let id = executor_of(app, tasks, row).map(|e| e.id.to_string()).unwrap_or_default();
                (id.parse().unwrap_or(u64::MAX), id, tasks.id(row))
            }),
            "host" => rows
                .sort_by_cached_key(|&row| (executor_of(app, tasks, row).map(|e| e.host.to_string()), tasks.id(row))),
            "status" => rows.sort_unstable_by_key(|&row| (status(tasks.status(row)), tasks.id(row))),
            "locality" => rows.sort_unstable_by_key(|&row| (locality(tasks.locality(row)), tasks.id(row))),
            "speculative" => rows.sort_unstable_by_key(|&row| (tasks.speculative(row), tasks.id(row))),
            _ => {
                let next = "use a column of the answer, with - in front for the largest first";
                return Err(Failure::bad_request(format!("cannot sort by {name:?}"), next));
            }
        }
    }
    if descends {
        rows.reverse();
    }
    Ok(())
}

fn executor_of<'a>(app: &'a Application, tasks: &Tasks, row: usize) -> Option<&'a model::Executor> {
    app.executors.get(tasks.executor(row))
}

fn task(app: &Application, tasks: &Tasks, row: usize) -> serde_json::Map<String, serde_json::Value> {
    let executor = executor_of(app, tasks, row);
    let mut map = serde_json::Map::new();
    let mut put = |key: &str, value: serde_json::Value| drop(map.insert(key.to_owned(), value));
    put("task", tasks.id(row).into());
    put("index", tasks.index(row).into());
    put("attempt", tasks.attempt(row).into());
    put("partition", Some(tasks.partition(row)).filter(|p| *p >= 0).into());
    put("executor", executor.map(|e| one_line(&e.id)).into());
    put("host", executor.map(|e| one_line(&e.host)).into());
    put("status", status(tasks.status(row)).into());
    put("locality", locality(tasks.locality(row)).into());
    put("speculative", tasks.speculative(row).into());
    put("error", tasks.failure(row).map(|failure| clean(&error_message(failure)).into_owned()).into());
    let ended = tasks.status(row) != TaskStatus::Running;
    for (name, metric) in FIGURES {
        let known = match metric {
            Metric::LaunchMs => true,
            Metric::DurationMs | Metric::FinishMs => ended,
            _ => tasks.has_metrics(row),
        };
        put(name, known.then(|| tasks.value(metric, row)).into());
    }
    map
}

fn status(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Running => "running",
        TaskStatus::Success => "success",
        TaskStatus::Failed => "failed",
        TaskStatus::Killed => "killed",
    }
}

/// All tasks as columns to draw.
fn columns(app: &Application, id: u32, attempt: u32) -> Result<Response, Failure> {
    let stage = find(app, id, attempt)?;
    let tasks = &stage.tasks;
    let rows = || 0..tasks.len();
    let start = stage.span_ms().map_or(0, |span| span.0);
    let (launched, durations, gc) =
        (tasks.values(Metric::LaunchMs), tasks.values(Metric::DurationMs), tasks.values(Metric::GcMs));
    let read = [Metric::InputBytes, Metric::ShuffleReadBytes].map(|metric| tasks.values(metric));
    let records = [Metric::InputRecords, Metric::ShuffleRecordsRead].map(|metric| tasks.values(metric));
    let spilled = tasks.values(Metric::DiskSpillBytes);
    let mut columns = Columns::new(tasks.len());
    columns.whole("task", rows().map(|row| tasks.id(row)));
    columns.whole("index", rows().map(|row| i64::from(tasks.index(row))));
    columns.whole("executor", rows().map(|row| tasks.executor(row) as i64));
    columns.whole("attempt", rows().map(|row| tasks.attempt(row).into()));
    columns.whole("start", launched.iter().map(|launch| launch - start));
    columns.whole("duration", durations.iter().copied());
    let share = |row: usize| (gc[row].max(0) * 255 / durations[row].max(1)).min(255);
    columns.whole("gc", rows().map(share));
    columns.whole("state", rows().map(|row| timeline::state(tasks.status(row)).into()));
    columns.whole("spill", spilled.iter().map(|bytes| (*bytes > 0).into()));
    columns.rough("bytes", rows().map(|row| read[0][row].saturating_add(read[1][row])));
    columns.rough("rows", rows().map(|row| records[0][row].saturating_add(records[1][row])));
    let executors: Vec<String> = app.executors.iter().map(|e| one_line(&e.id)).collect();
    let more = [("start_ms".to_owned(), start.into()), ("executors".to_owned(), executors.into())];
    Ok(columns.answer(more.into_iter().collect()))
}
