//! `/executors`, `/allexecutors` and `/allmiscellaneousprocess`.

use super::figures::{Pairs, Peaks};
use super::times::Time;
use model::{Application, Executor, Metric, TaskStatus, Text};
use serde::{Serialize, Serializer};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExecutorSummary<'a> {
    id: &'a str,
    host_port: &'a str,
    is_active: bool,
    rdd_blocks: u32,
    memory_used: u64,
    disk_used: u64,
    total_cores: u32,
    max_tasks: u32,
    active_tasks: u64,
    failed_tasks: u64,
    completed_tasks: u64,
    total_tasks: u64,
    total_duration: i64,
    #[serde(rename = "totalGCTime")]
    total_gc_time: i64,
    total_input_bytes: i64,
    total_shuffle_read: i64,
    total_shuffle_write: i64,
    is_blacklisted: bool,
    max_memory: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    add_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remove_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remove_reason: Option<&'a str>,
    executor_logs: Pairs<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_metrics: Option<MemoryMetrics>,
    blacklisted_in_stages: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory_metrics: Option<PeaksOf<'a>>,
    attributes: Pairs<'a>,
    resources: Resources<'a>,
    resource_profile_id: u32,
    is_excluded: bool,
    excluded_in_stages: Vec<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MemoryMetrics {
    used_on_heap_storage_memory: u64,
    used_off_heap_storage_memory: u64,
    total_on_heap_storage_memory: u64,
    total_off_heap_storage_memory: u64,
}

struct PeaksOf<'a>(&'a Executor);

impl Serialize for PeaksOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Peaks(|name: &str| self.0.peak(name).unwrap_or_default()).serialize(serializer)
    }
}

struct Resources<'a>(&'a [(Text, Vec<Text>)]);

impl Serialize for Resources<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Resource<'a> {
            name: &'a str,
            addresses: &'a [Text],
        }
        let resources = self.0.iter().map(|(name, addresses)| (&**name, Resource { name, addresses }));
        serializer.collect_map(resources)
    }
}

/// What an executor's tasks add up to.
#[derive(Default)]
struct Totals {
    all: u64,
    active: u64,
    completed: u64,
    failed: u64,
    duration_ms: i64,
    gc_ms: i64,
    input_bytes: i64,
    shuffle_read_bytes: i64,
    shuffle_write_bytes: i64,
}

/// Of all executors, in one pass over the tasks.
fn totals(app: &Application) -> Vec<Totals> {
    let mut totals: Vec<Totals> = app.executors.iter().map(|_| Totals::default()).collect();
    for stage in &app.stages {
        let tasks = &stage.tasks;
        for row in 0..tasks.len() {
            let Some(of) = totals.get_mut(tasks.executor(row)) else { continue };
            of.all += 1;
            match tasks.status(row) {
                TaskStatus::Running => of.active += 1,
                TaskStatus::Success => of.completed += 1,
                TaskStatus::Failed => of.failed += 1,
                TaskStatus::Killed => {}
            }
            of.duration_ms += tasks.value(Metric::DurationMs, row);
            of.gc_ms += tasks.value(Metric::GcMs, row);
            of.input_bytes += tasks.value(Metric::InputBytes, row);
            of.shuffle_read_bytes += tasks.value(Metric::ShuffleReadBytes, row);
            of.shuffle_write_bytes += tasks.value(Metric::ShuffleBytesWritten, row);
        }
    }
    totals
}

impl<'a> ExecutorSummary<'a> {
    fn of(app: &'a Application, executor: &'a Executor, totals: &Totals) -> Self {
        let cpus = app.conf("spark.task.cpus").and_then(|v| v.parse().ok()).unwrap_or(1).max(1);
        let excluded = executor.exclusions.iter().any(|e| e.stage.is_none() && e.until_ms.is_none());
        // An exclusion for a stage ends with the stage.
        let in_stages: Vec<u32> = executor
            .exclusions
            .iter()
            .filter_map(|e| e.stage)
            .filter(|(id, attempt)| app.stage(*id, *attempt).is_some_and(|s| s.completed_ms.is_none()))
            .map(|(id, _)| id)
            .collect();
        // In the driver's row Spark shows the application's time and the driver's own collections.
        let (duration, gc_ms) = match executor.is_driver() {
            true => (app.wall_ms(), executor.peak("TotalGCTime").unwrap_or_default()),
            false => (totals.duration_ms, totals.gc_ms),
        };
        let heap = executor.max_on_heap_bytes.zip(executor.max_off_heap_bytes);
        Self {
            id: &executor.id,
            host_port: executor.host_port.as_deref().unwrap_or(&executor.host),
            is_active: executor.removed_ms.is_none(),
            rdd_blocks: executor.rdd_blocks,
            memory_used: executor.cached_on_heap_bytes + executor.cached_off_heap_bytes,
            disk_used: executor.cached_disk_bytes,
            total_cores: executor.cores,
            max_tasks: executor.cores / cpus,
            active_tasks: totals.active,
            failed_tasks: totals.failed,
            completed_tasks: totals.completed,
            total_tasks: totals.all,
            total_duration: duration,
            total_gc_time: gc_ms,
            total_input_bytes: totals.input_bytes,
            total_shuffle_read: totals.shuffle_read_bytes,
            total_shuffle_write: totals.shuffle_write_bytes,
            is_blacklisted: excluded,
            max_memory: executor.max_memory_bytes,
            add_time: executor.added_ms.map(Time),
            remove_time: executor.removed_ms.map(Time),
            remove_reason: executor.removed_reason.as_deref(),
            executor_logs: Pairs(&executor.logs),
            memory_metrics: heap.map(|(on_heap, off_heap)| MemoryMetrics {
                used_on_heap_storage_memory: executor.cached_on_heap_bytes,
                used_off_heap_storage_memory: executor.cached_off_heap_bytes,
                total_on_heap_storage_memory: on_heap,
                total_off_heap_storage_memory: off_heap,
            }),
            blacklisted_in_stages: in_stages.clone(),
            // Without a task or a metrics event Spark has no peaks, not even zeros.
            peak_memory_metrics: (totals.all > totals.active || !executor.peaks.is_empty())
                .then_some(PeaksOf(executor)),
            attributes: Pairs(&executor.attributes),
            resources: Resources(&executor.resources),
            resource_profile_id: executor.resource_profile,
            is_excluded: excluded,
            excluded_in_stages: in_stages,
        }
    }
}

/// All executors by id, as text.
pub(super) fn all(app: &Application) -> Vec<ExecutorSummary<'_>> {
    let totals = totals(app);
    let mut list: Vec<_> = app.executors.iter().zip(&totals).map(|(e, t)| ExecutorSummary::of(app, e, t)).collect();
    list.sort_by(|a, b| a.id.cmp(b.id));
    list
}

/// Those that were not removed, last id first.
pub(super) fn active(app: &Application) -> Vec<ExecutorSummary<'_>> {
    let mut list = all(app);
    list.retain(|e| e.is_active);
    list.reverse();
    list
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProcessSummary<'a> {
    id: &'a str,
    host_port: &'a str,
    is_active: bool,
    total_cores: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    add_time: Option<Time>,
    process_logs: Pairs<'a>,
}

pub(super) fn processes(app: &Application) -> Vec<ProcessSummary<'_>> {
    app.processes
        .iter()
        .map(|p| ProcessSummary {
            id: &p.id,
            host_port: &p.host_port,
            // Nothing in a log says that such a process ended.
            is_active: true,
            total_cores: p.cores,
            add_time: p.added_ms.map(Time),
            process_logs: Pairs(&p.logs),
        })
        .collect()
}
