//! A stage: Spark's summary, what differs in its slow tasks, and its tasks sorted, paged or drawn.

use super::columns::Columns;
use super::failure::Failure;
use super::timeline;
use crate::Opened;
use crate::params::Params;
use crate::spark_rest::{error_message, locality};
use axum::response::Response;
use diagnose::telling::{self, clean, one_line};
use model::{Application, Finding, Metric, Severity, Stage, TaskStatus, Tasks};
use serde::Serialize;

mod differences;

use differences::{Difference, Slow};

/// Tasks of a page unless told otherwise, and at most.
const PAGE: usize = 100;
const MOST: usize = 10_000;

/// A finding by its number on the page of the application.
#[derive(Clone, Serialize)]
pub(super) struct FindingRef {
    number: usize,
    severity: Severity,
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

/// The answer.
#[derive(Serialize)]
pub(super) struct StagePage {
    stage: u32,
    attempt: u32,
    name: String,
    details: String,
    description: Option<String>,
    status: &'static str,
    failure: Option<String>,
    submitted_ms: Option<i64>,
    completed_ms: Option<i64>,
    first_task_ms: Option<i64>,
    last_task_ms: Option<i64>,
    sql: Option<i64>,
    jobs: Vec<u32>,
    attempts: Vec<u32>,
    num_tasks: u32,
    tasks: usize,
    succeeded: usize,
    failed: usize,
    killed: usize,
    running: usize,
    speculative: usize,
    summary: Vec<SummaryRow>,
    slow: Option<Slow>,
    differs: Vec<Difference>,
    findings: Vec<FindingRef>,
    reads_shuffle: bool,
}

/// A row of Summary Metrics.
#[derive(Serialize)]
struct SummaryRow {
    label: &'static str,
    unit: &'static str,
    min: i64,
    p25: i64,
    median: i64,
    p75: i64,
    p95: i64,
    max: i64,
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
        values.sort_unstable();
        let at = |q: f64| model::quantile(&values, q).unwrap_or_default();
        SummaryRow {
            label,
            unit,
            min: at(0.0),
            p25: at(0.25),
            median: at(0.5),
            p75: at(0.75),
            p95: at(0.95),
            max: at(1.0),
            sum: values.iter().fold(0, |sum: i64, value| sum.saturating_add(*value)),
            show: always || at(1.0) > 0,
        }
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

/// A page of tasks.
#[derive(Serialize)]
pub(super) struct TaskPage {
    total: usize,
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
pub(super) fn columns(app: &Application, id: u32, attempt: u32) -> Result<Response, Failure> {
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
    columns.u32("task", rows().map(|row| tasks.id(row)));
    columns.u32("index", rows().map(|row| i64::from(tasks.index(row))));
    columns.u32("executor", rows().map(|row| tasks.executor(row) as i64));
    columns.u8("attempt", rows().map(|row| u8::try_from(tasks.attempt(row)).unwrap_or(u8::MAX)));
    columns.u32("start", launched.iter().map(|launch| launch - start));
    columns.u32("duration", durations.iter().copied());
    let share = |row: usize| (gc[row].max(0) * 255 / durations[row].max(1)).min(255);
    columns.u8("gc", rows().map(|row| u8::try_from(share(row)).unwrap_or(u8::MAX)));
    columns.u8("state", rows().map(|row| timeline::state(tasks.status(row))));
    columns.u8("spill", spilled.iter().map(|bytes| u8::from(*bytes > 0)));
    columns.f32("bytes", rows().map(|row| read[0][row].saturating_add(read[1][row])));
    columns.f32("rows", rows().map(|row| records[0][row].saturating_add(records[1][row])));
    let executors: Vec<String> = app.executors.iter().map(|e| one_line(&e.id)).collect();
    let more = [("start_ms".to_owned(), start.into()), ("executors".to_owned(), executors.into())];
    Ok(columns.answer(more.into_iter().collect()))
}
