//! `/taskList` and `/taskSummary`, and tasks inside a stage.

use super::errors::Failure;
use super::figures::{self, Figures, Pairs};
use super::times::Time;
use crate::params::Params;
use model::{Accumulable, Application, EndReason, Locality, Metric, Stage, TaskStatus, Tasks};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Tasks that `taskList` gives unless told otherwise.
const PAGE: usize = 20;

/// An accumulator of the user's code.
#[derive(Serialize)]
pub(super) struct AccumulatorUpdate<'a> {
    id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    update: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
}

impl<'a> AccumulatorUpdate<'a> {
    pub fn of_stage(accumulator: &'a Accumulable) -> Self {
        let (name, value) = (accumulator.name.0.as_deref(), accumulator.value.0.as_deref());
        Self { id: accumulator.id, name, update: None, value }
    }
}

/// A task of a stage.
pub(super) struct TaskData<'a> {
    pub app: &'a Application,
    pub stage: &'a Stage,
    pub row: usize,
}

impl Serialize for TaskData<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (tasks, row) = (&self.stage.tasks, self.row);
        let executor = &self.app.executors[tasks.executor(row)];
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("taskId", &tasks.id(row))?;
        map.serialize_entry("index", &tasks.index(row))?;
        map.serialize_entry("attempt", &tasks.attempt(row))?;
        map.serialize_entry("partitionId", &tasks.partition(row))?;
        map.serialize_entry("launchTime", &Time(tasks.value(Metric::LaunchMs, row)))?;
        if tasks.value(Metric::GettingResultMs, row) > 0 {
            map.serialize_entry("resultFetchStart", &Time(tasks.value(Metric::GettingResultMs, row)))?;
        }
        if tasks.status(row) != TaskStatus::Running {
            map.serialize_entry("duration", &tasks.value(Metric::DurationMs, row))?;
        }
        map.serialize_entry("executorId", &*executor.id)?;
        map.serialize_entry("host", &*executor.host)?;
        map.serialize_entry("status", status(tasks.status(row)))?;
        map.serialize_entry("taskLocality", locality(tasks.locality(row)))?;
        map.serialize_entry("speculative", &tasks.speculative(row))?;
        map.serialize_entry("accumulatorUpdates", &self.accumulators())?;
        if let Some(message) = tasks.failure(row).map(error_message) {
            map.serialize_entry("errorMessage", &message)?;
        }
        if tasks.has_metrics(row) {
            map.serialize_entry("taskMetrics", &TaskMetrics { tasks, row })?;
        }
        map.serialize_entry("executorLogs", &Pairs(&executor.logs))?;
        map.serialize_entry("schedulerDelay", &tasks.value(Metric::SchedulerDelayMs, row))?;
        map.serialize_entry("gettingResultTime", &tasks.value(Metric::GettingResultTimeMs, row))?;
        map.end()
    }
}

impl<'a> TaskData<'a> {
    fn accumulators(&self) -> Vec<AccumulatorUpdate<'a>> {
        let id = self.stage.tasks.id(self.row);
        let of_task = self.stage.task_accumulables.iter().filter(|a| a.task == id);
        let updates = of_task.map(|a| AccumulatorUpdate {
            update: a.update.0.as_deref(),
            ..AccumulatorUpdate::of_stage(&a.accumulator)
        });
        updates.collect()
    }
}

struct TaskMetrics<'a> {
    tasks: &'a Tasks,
    row: usize,
}

impl Serialize for TaskMetrics<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = |metric| self.tasks.value(metric, self.row);
        let mut map = serializer.serialize_map(None)?;
        for (name, metric) in figures::TASK {
            map.serialize_entry(name, &value(*metric))?;
        }
        map.serialize_entry("inputMetrics", &Figures(figures::INPUT, value))?;
        map.serialize_entry("outputMetrics", &Figures(figures::OUTPUT, value))?;
        map.serialize_entry(
            "shuffleReadMetrics",
            &ShuffleRead { value, table: figures::SHUFFLE_READ, push: "shufflePushReadMetrics" },
        )?;
        map.serialize_entry("shuffleWriteMetrics", &Figures(figures::SHUFFLE_WRITE, value))?;
        map.end()
    }
}

/// Shuffle read with the part on push-based shuffle inside it.
struct ShuffleRead<F> {
    value: F,
    table: figures::Table,
    push: &'static str,
}

impl<T: Serialize, F: Fn(Metric) -> T> Serialize for ShuffleRead<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, metric) in self.table {
            map.serialize_entry(name, &(self.value)(*metric))?;
        }
        map.serialize_entry(self.push, &Figures(figures::PUSH, &self.value))?;
        map.end()
    }
}

/// Quantiles over the successful tasks of a stage.
pub(super) struct Quantiles<'a> {
    stage: &'a Stage,
    rows: Vec<usize>,
    quantiles: &'a [f64],
}

impl<'a> Quantiles<'a> {
    pub fn of(stage: &'a Stage, quantiles: &'a [f64]) -> Self {
        Self { stage, rows: stage.tasks.successful().collect(), quantiles }
    }

    fn over(&self, metric: Metric) -> Vec<f64> {
        let values = self.rows.iter().map(|&row| self.stage.tasks.value(metric, row)).collect();
        figures::at_quantiles(values, self.quantiles)
    }
}

impl Serialize for Quantiles<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = |metric| self.over(metric);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("quantiles", self.quantiles)?;
        for (name, metric) in figures::TIMES.iter().chain(figures::TASK) {
            map.serialize_entry(name, &value(*metric))?;
        }
        map.serialize_entry("inputMetrics", &Figures(figures::INPUT, value))?;
        map.serialize_entry("outputMetrics", &Figures(figures::OUTPUT, value))?;
        let read = ShuffleRead { value, table: figures::SHUFFLE_READ_QUANTILES, push: "shufflePushReadMetricsDist" };
        map.serialize_entry("shuffleReadMetrics", &read)?;
        map.serialize_entry("shuffleWriteMetrics", &Figures(figures::SHUFFLE_WRITE_QUANTILES, value))?;
        map.end()
    }
}

/// `taskSummary` with the quantiles of the request.
pub(super) struct Summary<'a> {
    stage: &'a Stage,
    quantiles: Vec<f64>,
}

impl Serialize for Summary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Quantiles::of(self.stage, &self.quantiles).serialize(serializer)
    }
}

pub(super) fn summary<'a>(stage: &'a Stage, params: &Params) -> Result<Summary<'a>, Failure> {
    let quantiles = params.quantiles("0.05,0.25,0.5,0.75,0.95")?;
    match stage.tasks.successful().next() {
        Some(_) => Ok(Summary { stage, quantiles }),
        None => Err(Failure::not_found("No tasks reported metrics yet.")),
    }
}

#[derive(Clone, Copy)]
enum Order {
    Id,
    Shortest,
    Longest,
}

pub(super) fn list<'a>(app: &'a Application, stage: &'a Stage, params: &Params) -> Result<Vec<TaskData<'a>>, Failure> {
    let words = [
        ("ID", Order::Id),
        ("INCREASING_RUNTIME", Order::Shortest),
        ("runtime", Order::Shortest),
        ("+runtime", Order::Shortest),
        // A plus sign in a query is a space.
        (" runtime", Order::Shortest),
        ("DECREASING_RUNTIME", Order::Longest),
        ("-runtime", Order::Longest),
    ];
    let order = params.choice("sortBy", &words)?.unwrap_or(Order::Id);
    let wanted = statuses(params, "status")?;
    let (offset, length) = (params.number("offset", 0)?, params.number("length", PAGE)?);
    let tasks = &stage.tasks;
    let mut rows: Vec<usize> = (0..tasks.len()).filter(|&row| is_wanted(stage, row, &wanted)).collect();
    let by_time = |&row: &usize| (tasks.value(Metric::RunMs, row), tasks.id(row));
    match order {
        Order::Id => rows.sort_unstable_by_key(|&row| tasks.id(row)),
        Order::Shortest => rows.sort_unstable_by_key(by_time),
        Order::Longest => rows.sort_unstable_by_key(|row| std::cmp::Reverse(by_time(row))),
    }
    Ok(rows.into_iter().skip(offset).take(length).map(|row| TaskData { app, stage, row }).collect())
}

/// The states that a parameter names.
pub(super) fn statuses(params: &Params, name: &str) -> Result<Vec<TaskStatus>, Failure> {
    let words = [
        ("running", TaskStatus::Running),
        ("success", TaskStatus::Success),
        ("failed", TaskStatus::Failed),
        ("killed", TaskStatus::Killed),
    ];
    params.choices(name, &words)
}

pub(super) fn is_wanted(stage: &Stage, row: usize, wanted: &[TaskStatus]) -> bool {
    wanted.is_empty() || wanted.contains(&stage.tasks.status(row))
}

/// Adds the killed tasks by their reason.
pub(super) fn killed_by_reason(tasks: &Tasks, into: &mut BTreeMap<String, u64>) {
    for (row, reason) in tasks.failures() {
        if let (TaskStatus::Killed, EndReason::Killed { reason }) = (tasks.status(row), reason) {
            *into.entry(reason.to_string()).or_default() += 1;
        }
    }
}

fn status(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Running => "RUNNING",
        TaskStatus::Success => "SUCCESS",
        TaskStatus::Failed => "FAILED",
        TaskStatus::Killed => "KILLED",
    }
}

pub(crate) fn locality(locality: Locality) -> &'static str {
    match locality {
        Locality::ProcessLocal => "PROCESS_LOCAL",
        Locality::NodeLocal => "NODE_LOCAL",
        Locality::NoPref => "NO_PREF",
        Locality::RackLocal => "RACK_LOCAL",
        Locality::Any => "ANY",
    }
}

/// A failure as Spark words it.
pub(crate) fn error_message(reason: &EndReason) -> String {
    match reason {
        EndReason::Exception { class, message, stack } if stack.is_empty() => format!("{class}: {message}"),
        EndReason::Exception { stack, .. } => stack.to_string(),
        EndReason::FetchFailed { executor, host, shuffle, map_index, reduce, message } => {
            let address = match (executor, host) {
                (Some(executor), Some(host)) => format!("BlockManagerId({executor}, {host})"),
                _ => "null".to_owned(),
            };
            format!(
                "FetchFailed({address}, shuffleId={shuffle}, mapIndex={map_index}, reduceId={reduce}, message=\n{message}\n)"
            )
        }
        EndReason::ExecutorLost { executor, caused_by_app, reason } => {
            let how = match caused_by_app {
                true => "exited caused by one of the running tasks",
                false => "exited unrelated to the running tasks",
            };
            format!("ExecutorLostFailure (executor {executor} {how}) Reason: {reason}")
        }
        EndReason::Killed { reason } => reason.to_string(),
        EndReason::CommitDenied { message } => message.to_string(),
        EndReason::ResultLost => "TaskResultLost (result lost from block manager)".to_owned(),
        EndReason::Resubmitted => "Resubmitted (resubmitted due to lost executor)".to_owned(),
        EndReason::Other { reason } => reason.to_string(),
    }
}
