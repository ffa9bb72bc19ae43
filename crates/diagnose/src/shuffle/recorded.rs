//! A shuffle read off a stage that ran.

use super::{MIB, Shuffle, play_sizes, spill_ms};
use crate::plans;
use crate::slots::Slots;
use model::{Application, ExchangeOrigin, JoinAlgorithm, Metric, Operator, Quantiles, Stage};
use serde::Serialize;

/// A stage as it ran, in the terms of this page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recorded {
    /// What it read, on what.
    pub shuffle: Shuffle,
    /// Tasks that ran.
    pub tasks: i64,
    /// How long it took, ms.
    pub wall_ms: i64,
    /// What playing the tasks that ran gives, ms.
    pub played_ms: i64,
    /// Bytes that each task read, in the order in which they started.
    #[serde(skip)]
    pub sizes: Vec<i64>,
}

/// Reads a shuffle off a stage that ran; `None` when the stage reads none.
#[must_use]
pub fn of_stage(app: &Application, stage: &Stage) -> Option<Recorded> {
    let read = stage.quantiles(Metric::ShuffleReadBytes);
    let run_ms: i64 = stage.tasks.successful().map(|row| stage.tasks.value(Metric::DurationMs, row)).sum();
    if read.sum <= 0 || run_ms <= 0 {
        return None;
    }
    let mut rows: Vec<usize> = stage.tasks.successful().collect();
    rows.sort_unstable_by_key(|row| stage.tasks.value(Metric::LaunchMs, *row));
    let sizes: Vec<i64> = rows.iter().map(|row| stage.tasks.value(Metric::ShuffleReadBytes, *row)).collect();
    let shuffle = calibrated(in_its_settings(app, stage, &read)?, stage, &sizes, run_ms);
    // The tasks are what adaptive execution left; it must not act on them once more.
    let as_ran = Shuffle { adaptive: false, ..shuffle.clone() };
    let played_ms = play_sizes(&as_ran, &sizes).stage_ms;
    Some(Recorded { shuffle, tasks: sizes.len() as i64, wall_ms: stage.wall_ms(), played_ms, sizes })
}

/// The shuffle with the settings and the slots that it had.
fn in_its_settings(app: &Application, stage: &Stage, read: &Quantiles) -> Option<Shuffle> {
    let defaults = Shuffle::default();
    let factor = |key: &str, default: f64| app.conf(key).and_then(|v| v.trim().parse().ok()).unwrap_or(default);
    let size = |key: &str, default: i64| app.conf_bytes(key, 1).filter(|b| *b > 0).unwrap_or(default);
    let (from, to) = stage.span_ms()?;
    let cores = (Slots::of(app).average(from, to).round() as i64).max(1);
    let (memory_per_core, cores_per_executor) = memory_of(app, cores);
    Some(Shuffle {
        bytes: read.sum,
        cores,
        memory_per_core,
        cores_per_executor,
        memory_fraction: factor("spark.memory.fraction", defaults.memory_fraction),
        skew: hot_share(read),
        adaptive: app.conf_bool("spark.sql.adaptive.enabled", app.version().is_none_or(|v| v >= (3, 2))),
        merging: app.conf_bool("spark.sql.adaptive.coalescePartitions.enabled", true) && !numbered(app, stage),
        join: joins(app, stage),
        splitting: app.conf_bool("spark.sql.adaptive.skewJoin.enabled", true),
        map_tasks: map_tasks(app, stage),
        skew_factor: factor("spark.sql.adaptive.skewJoin.skewedPartitionFactor", defaults.skew_factor),
        skew_threshold: size("spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", defaults.skew_threshold),
        advisory: size("spark.sql.adaptive.advisoryPartitionSizeInBytes", defaults.advisory),
        expansion: expansion(stage).unwrap_or(defaults.expansion),
        ..defaults
    })
}

/// Fixed cost of a task and time per byte, so that the tasks that ran take what they took
/// altogether.
fn calibrated(shuffle: Shuffle, stage: &Stage, sizes: &[i64], run_ms: i64) -> Shuffle {
    let shuffle = Shuffle { fixed_ms: around_run_ms(stage).max(1) as f64, ..shuffle };
    let spilled = stage.sum(Metric::DiskSpillBytes) > 0;
    let spill: f64 = if spilled { sizes.iter().map(|bytes| spill_ms(&shuffle, *bytes)).sum() } else { 0.0 };
    let fixed = sizes.len() as f64 * shuffle.fixed_ms;
    // Where next to nothing is left, bytes are not what takes the time; some of it stays theirs.
    let work_ms = (run_ms as f64 - fixed - spill).max(0.05 * run_ms as f64);
    Shuffle { bytes_per_second: shuffle.bytes as f64 * 1e3 / work_ms, ..shuffle }
}

/// What the usual task takes besides its run, ms: delay of the scheduler, deserialisation, result.
/// The first task of an executor also loads code, which is paid once and not by each.
fn around_run_ms(stage: &Stage) -> i64 {
    let mut rows: Vec<usize> = stage.tasks.successful().collect();
    rows.sort_unstable_by_key(|row| stage.tasks.value(Metric::LaunchMs, *row));
    let around =
        |row: &usize| (stage.tasks.value(Metric::DurationMs, *row) - stage.tasks.value(Metric::RunMs, *row)).max(0);
    let mut seen = std::collections::HashSet::new();
    let (first, later): (Vec<usize>, Vec<usize>) =
        rows.into_iter().partition(|row| seen.insert(stage.tasks.executor(*row)));
    if later.is_empty() {
        return first.iter().map(around).min().unwrap_or_default();
    }
    let mut all: Vec<i64> = later.iter().map(around).collect();
    all.sort_unstable();
    model::quantile(&all, 0.5).unwrap_or_default()
}

/// Heap of an executor by its cores, and these; in local mode the driver is the executor.
fn memory_of(app: &Application, slots: i64) -> (i64, i64) {
    let local = app.conf("spark.master").is_some_and(|master| master == "local" || master.starts_with("local["));
    let key = if local { "spark.driver.memory" } else { "spark.executor.memory" };
    let heap = app.conf_bytes(key, MIB as u64).unwrap_or(1 << 30);
    let known = app.executors.iter().filter(|e| local || !e.is_driver()).map(|e| i64::from(e.cores)).max();
    let cores = known.filter(|cores| *cores > 0).unwrap_or(slots).max(1);
    (heap / cores, cores)
}

/// Share of the bytes that the largest task has beyond the usual one.
fn hot_share(read: &Quantiles) -> f64 {
    match read.max_over_peers() {
        ratio if ratio < 1.5 => 0.0,
        _ => (read.max - read.median) as f64 / read.sum.max(1) as f64,
    }
}

/// Whether a join of shuffled rows runs in the stage; without a plan it is taken for one.
fn joins(app: &Application, stage: &Stage) -> bool {
    let Some(sql) = stage.sql.and_then(|id| app.sql(id)) else { return true };
    let plan = sql.plan();
    let shuffled = |node: &usize| match &plan.nodes[*node].op {
        Operator::Join(join) => matches!(join.algorithm, JoinAlgorithm::SortMerge | JoinAlgorithm::ShuffledHash),
        _ => false,
    };
    let at = app.stages.iter().position(|s| s.id == stage.id && s.attempt == stage.attempt);
    let here = at.map(|at| plans::nodes_of_stage(app, plan, at)).unwrap_or_default();
    if here.is_empty() { (0..plan.nodes.len()).any(|at| shuffled(&at)) } else { here.iter().any(shuffled) }
}

/// Whether all shuffles of the query have a number that somebody asked for: these are not merged.
fn numbered(app: &Application, stage: &Stage) -> bool {
    let Some(sql) = stage.sql.and_then(|id| app.sql(id)) else { return false };
    let mut exchanges = sql.plan().nodes.iter().filter_map(|node| match &node.op {
        Operator::Exchange(exchange) => Some(exchange.origin),
        _ => None,
    });
    let first = exchanges.next();
    first == Some(ExchangeOrigin::RepartitionByNumber) && exchanges.all(|o| o == ExchangeOrigin::RepartitionByNumber)
}

/// Tasks of the largest stage that wrote the shuffle.
fn map_tasks(app: &Application, stage: &Stage) -> Option<i64> {
    let writers = app.stages.iter().filter(|s| stage.parents.contains(&s.id));
    writers.map(|s| i64::from(s.num_tasks)).max().filter(|n| *n > 0)
}

/// Bytes in memory for a byte of shuffle: what tasks held at their peak, and what they had spilled
/// before. Tasks of less than a mebibyte show the pages that every operator takes.
fn expansion(stage: &Stage) -> Option<f64> {
    if stage.quantiles(Metric::ShuffleReadBytes).max < MIB {
        return None;
    }
    let peak = stage.sum(Metric::PeakExecutionBytes);
    let memory = peak + stage.sum(Metric::MemorySpillBytes);
    let read = stage.sum(Metric::ShuffleReadBytes);
    (peak > 0 && read > 0).then(|| (memory as f64 / read as f64).clamp(0.1, 20.0))
}
