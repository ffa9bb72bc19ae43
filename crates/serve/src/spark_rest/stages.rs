//! `/stages`: attempts, newest first, with tasks, executors and quantiles where asked for.

use super::errors::Failure;
use super::figures::{self, Peaks};
use super::tasks::{self, AccumulatorUpdate, Quantiles, TaskData, killed_by_reason};
use super::times::Time;
use crate::params::Params;
use model::{Application, Metric, Stage, StageStatus, TaskStatus, Text};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A stage attempt and what of it is wanted.
pub(super) struct StageData<'a> {
    app: &'a Application,
    stage: &'a Stage,
    /// Tasks of these states (all when empty), and executors.
    details: Option<Vec<TaskStatus>>,
    /// Quantiles of tasks and executors.
    summaries: Option<Vec<f64>>,
}

impl Serialize for StageData<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.head(&mut map)?;
        self.counts(&mut map)?;
        for (name, metric) in figures::TASK.iter().chain(figures::STAGE) {
            map.serialize_entry(name, &self.stage.sum(*metric))?;
        }
        self.tail(&mut map)?;
        map.end()
    }
}

impl<'a> StageData<'a> {
    fn head<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let stage = self.stage;
        map.serialize_entry("status", status(stage.status))?;
        map.serialize_entry("stageId", &stage.id)?;
        map.serialize_entry("attemptId", &stage.attempt)?;
        map.serialize_entry("name", &*stage.name)?;
        if let Some(description) = &stage.description {
            map.serialize_entry("description", &**description)?;
        }
        map.serialize_entry("details", &*stage.details)?;
        map.serialize_entry("schedulingPool", stage.pool.as_deref().unwrap_or("default"))?;
        let rdds: Vec<u32> = stage.rdds.iter().map(|rdd| rdd.id).collect();
        map.serialize_entry("rddIds", &rdds)?;
        map.serialize_entry("resourceProfileId", &stage.resource_profile)?;
        let launched = (0..stage.tasks.len()).map(|row| stage.tasks.value(Metric::LaunchMs, row)).min();
        let times = [
            ("submissionTime", stage.submitted_ms),
            ("firstTaskLaunchedTime", launched),
            ("completionTime", stage.completed_ms),
        ];
        for (name, time) in times {
            if let Some(ms) = time {
                map.serialize_entry(name, &Time(ms))?;
            }
        }
        match &stage.failure {
            Some(failure) => map.serialize_entry("failureReason", &**failure),
            None => Ok(()),
        }
    }

    fn counts<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let stage = self.stage;
        map.serialize_entry("numTasks", &stage.num_tasks)?;
        map.serialize_entry("numActiveTasks", &stage.count(TaskStatus::Running))?;
        map.serialize_entry("numCompleteTasks", &stage.count(TaskStatus::Success))?;
        map.serialize_entry("numFailedTasks", &(stage.count(TaskStatus::Failed) + stage.resubmitted as usize))?;
        map.serialize_entry("numKilledTasks", &stage.count(TaskStatus::Killed))?;
        map.serialize_entry("numCompletedIndices", &completed_indices(stage))?;
        let mut killed = BTreeMap::new();
        killed_by_reason(&stage.tasks, &mut killed);
        map.serialize_entry("killedTasksSummary", &killed)?;
        map.serialize_entry("isShufflePushEnabled", &stage.pushed_to.is_some())?;
        map.serialize_entry("shuffleMergersCount", &stage.pushed_to.unwrap_or_default())
    }

    fn tail<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let stage = self.stage;
        let accumulators: Vec<_> = stage.accumulables.iter().map(AccumulatorUpdate::of_stage).collect();
        map.serialize_entry("accumulatorUpdates", &accumulators)?;
        map.serialize_entry("peakExecutorMetrics", &Peaks(|name: &str| self.peak(name)))?;
        if let Some(speculation) = Speculation::of(stage) {
            map.serialize_entry("speculationSummary", &speculation)?;
        }
        let executors = self.executors();
        if let Some(wanted) = &self.details {
            map.serialize_entry("tasks", &TasksById { data: self, wanted })?;
            map.serialize_entry("executorSummary", &ExecutorsById(&executors))?;
        }
        if let Some(quantiles) = &self.summaries {
            map.serialize_entry("taskMetricsDistributions", &Quantiles::of(stage, quantiles))?;
            map.serialize_entry(
                "executorMetricsDistributions",
                &ExecutorQuantiles { executors: &executors, quantiles },
            )?;
        }
        Ok(())
    }

    fn peak(&self, name: &str) -> i64 {
        self.stage.peaks.iter().map(|(_, peaks)| value_of(peaks, name)).max().unwrap_or_default()
    }

    /// Executors that had tasks of the stage, that reported metrics during it, or that it excluded.
    fn executors(&self) -> Vec<ExecutorInStage<'a>> {
        if self.details.is_none() && self.summaries.is_none() {
            return Vec::new();
        }
        let tasks = &self.stage.tasks;
        let mut positions: BTreeSet<usize> = (0..tasks.len()).map(|row| tasks.executor(row)).collect();
        positions.extend(self.stage.peaks.iter().map(|(at, _)| *at as usize));
        positions.extend((0..self.app.executors.len()).filter(|&at| excluded(self.app, self.stage, at)));
        positions.into_iter().map(|at| ExecutorInStage::of(self.app, self.stage, at)).collect()
    }
}

fn value_of(peaks: &[(Text, i64)], name: &str) -> i64 {
    peaks.iter().find(|(n, _)| &**n == name).map_or(0, |(_, value)| *value)
}

fn excluded(app: &Application, stage: &Stage, executor: usize) -> bool {
    let of_stage = Some((stage.id, stage.attempt));
    app.executors[executor].exclusions.iter().any(|e| e.stage == of_stage)
}

/// Tasks by id, which JSON has as text.
struct TasksById<'d, 'a> {
    data: &'d StageData<'a>,
    wanted: &'d [TaskStatus],
}

impl Serialize for TasksById<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (app, stage) = (self.data.app, self.data.stage);
        let rows = (0..stage.tasks.len()).filter(|&row| tasks::is_wanted(stage, row, self.wanted));
        serializer.collect_map(rows.map(|row| (stage.tasks.id(row), TaskData { app, stage, row })))
    }
}

/// Figures of one executor in a stage.
struct ExecutorInStage<'a> {
    id: &'a str,
    sums: Vec<i64>,
    succeeded: u64,
    failed: u64,
    killed: u64,
    excluded: bool,
    peaks: &'a [(Text, i64)],
}

impl<'a> ExecutorInStage<'a> {
    fn of(app: &'a Application, stage: &'a Stage, at: usize) -> Self {
        let tasks = &stage.tasks;
        let mut found = Self {
            id: &app.executors[at].id,
            sums: vec![0; figures::EXECUTOR_IN_STAGE.len()],
            succeeded: 0,
            failed: 0,
            killed: 0,
            excluded: excluded(app, stage, at),
            peaks: stage.peaks.iter().find(|(e, _)| *e as usize == at).map_or(&[], |(_, peaks)| peaks),
        };
        for row in (0..tasks.len()).filter(|&row| tasks.executor(row) == at) {
            match tasks.status(row) {
                TaskStatus::Success => found.succeeded += 1,
                TaskStatus::Failed => found.failed += 1,
                TaskStatus::Killed => found.killed += 1,
                TaskStatus::Running => {}
            }
            for (sum, (_, metric)) in found.sums.iter_mut().zip(figures::EXECUTOR_IN_STAGE) {
                *sum += tasks.value(*metric, row);
            }
        }
        found
    }
}

impl Serialize for ExecutorInStage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for ((name, _), sum) in figures::EXECUTOR_IN_STAGE.iter().zip(&self.sums) {
            map.serialize_entry(name, sum)?;
        }
        map.serialize_entry("succeededTasks", &self.succeeded)?;
        map.serialize_entry("failedTasks", &self.failed)?;
        map.serialize_entry("killedTasks", &self.killed)?;
        map.serialize_entry("isBlacklistedForStage", &self.excluded)?;
        map.serialize_entry("isExcludedForStage", &self.excluded)?;
        map.serialize_entry("peakMemoryMetrics", &Peaks(|name: &str| value_of(self.peaks, name)))?;
        map.end()
    }
}

struct ExecutorsById<'d, 'a>(&'d [ExecutorInStage<'a>]);

impl Serialize for ExecutorsById<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|e| (e.id, e)))
    }
}

/// Quantiles over the executors of a stage.
struct ExecutorQuantiles<'d, 'a> {
    executors: &'d [ExecutorInStage<'a>],
    quantiles: &'d [f64],
}

impl ExecutorQuantiles<'_, '_> {
    fn over(&self, value: impl Fn(&ExecutorInStage<'_>) -> i64) -> Vec<f64> {
        figures::at_quantiles(self.executors.iter().map(value).collect(), self.quantiles)
    }
}

impl Serialize for ExecutorQuantiles<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("quantiles", self.quantiles)?;
        for (at, (name, _)) in figures::EXECUTOR_IN_STAGE.iter().enumerate() {
            map.serialize_entry(name, &self.over(|e| e.sums[at]))?;
        }
        map.serialize_entry("succeededTasks", &self.over(|e| e.succeeded as i64))?;
        map.serialize_entry("failedTasks", &self.over(|e| e.failed as i64))?;
        map.serialize_entry("killedTasks", &self.over(|e| e.killed as i64))?;
        map.serialize_entry("peakMemoryMetrics", &Peaks(|name: &str| self.over(|e| value_of(e.peaks, name))))?;
        map.end()
    }
}

/// Counts of speculative copies; stages without any have none.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Speculation {
    num_tasks: usize,
    num_active_tasks: usize,
    num_completed_tasks: usize,
    num_failed_tasks: usize,
    num_killed_tasks: usize,
}

impl Speculation {
    fn of(stage: &Stage) -> Option<Self> {
        let copies: Vec<usize> = (0..stage.tasks.len()).filter(|&row| stage.tasks.speculative(row)).collect();
        let count = |status| copies.iter().filter(|&&row| stage.tasks.status(row) == status).count();
        (!copies.is_empty()).then(|| Self {
            num_tasks: copies.len(),
            num_active_tasks: count(TaskStatus::Running),
            num_completed_tasks: count(TaskStatus::Success),
            num_failed_tasks: count(TaskStatus::Failed),
            num_killed_tasks: count(TaskStatus::Killed),
        })
    }
}

/// Distinct partitions of which a task succeeded.
pub(super) fn completed_indices(stage: &Stage) -> usize {
    stage.tasks.successful().map(|row| stage.tasks.index(row)).collect::<HashSet<_>>().len()
}

fn status(status: StageStatus) -> &'static str {
    match status {
        StageStatus::Pending => "PENDING",
        StageStatus::Active => "ACTIVE",
        StageStatus::Complete => "COMPLETE",
        StageStatus::Failed => "FAILED",
        StageStatus::Skipped => "SKIPPED",
    }
}

/// Attempts of a stage, the first one first.
pub(super) fn of_id(app: &Application, id: u32) -> impl Iterator<Item = &Stage> {
    let from = app.stages.partition_point(|s| s.id < id);
    app.stages[from..].iter().take_while(move |s| s.id == id)
}

fn data<'a>(app: &'a Application, stage: &'a Stage, params: &Params, details: bool) -> Result<StageData<'a>, Failure> {
    let details = params.flag("details", details);
    let wanted = tasks::statuses(params, "taskStatus")?;
    let summaries = match params.flag("withSummaries", false) {
        true => Some(params.quantiles("0.0,0.25,0.5,0.75,1.0")?),
        false => None,
    };
    Ok(StageData { app, stage, details: details.then_some(wanted), summaries })
}

pub(super) fn list<'a>(app: &'a Application, params: &Params) -> Result<Vec<StageData<'a>>, Failure> {
    let words = [
        ("active", StageStatus::Active),
        ("complete", StageStatus::Complete),
        ("pending", StageStatus::Pending),
        ("failed", StageStatus::Failed),
        ("skipped", StageStatus::Skipped),
    ];
    let wanted = params.choices("status", &words)?;
    let stages = app.stages.iter().rev().filter(|s| wanted.is_empty() || wanted.contains(&s.status));
    stages.map(|stage| data(app, stage, params, false)).collect()
}

pub(super) fn attempts<'a>(app: &'a Application, id: u32, params: &Params) -> Result<Vec<StageData<'a>>, Failure> {
    let found: Result<Vec<_>, _> = of_id(app, id).map(|stage| data(app, stage, params, true)).collect();
    let found = found?;
    match found.is_empty() {
        true => Err(Failure::not_found(format!("unknown stage: {id}"))),
        false => Ok(found),
    }
}

pub(super) fn one<'a>(app: &'a Application, id: u32, attempt: u32, params: &Params) -> Result<StageData<'a>, Failure> {
    data(app, find(app, id, attempt)?, params, true)
}

pub(super) fn find(app: &Application, id: u32, attempt: u32) -> Result<&Stage, Failure> {
    if let Some(stage) = app.stage(id, attempt) {
        return Ok(stage);
    }
    let known: Vec<String> = of_id(app, id).map(|s| s.attempt.to_string()).collect();
    Err(Failure::not_found(match known.is_empty() {
        true => format!("unknown stage: {id}"),
        // The two spaces are Spark's.
        false => format!("unknown attempt for stage {id}.  Found attempts: [{}]", known.join(",")),
    }))
}
