//! What a shuffle will do: partitions, waves, the wait for the slowest task.
//!
//! In: bytes, cores, memory of a core, the size a task should have, the share of the largest key,
//! whether adaptive execution is on. Out: the partitions that are proposed and what becomes of
//! any number of them. Spark's own steps are played on the partition sizes: skewed partitions are
//! split, small neighbours merged, tasks started in order on free cores.
//!
//! ```
//! use diagnose::shuffle::{Shuffle, play, propose};
//!
//! let shuffle = Shuffle { bytes: 64 << 30, cores: 64, ..Shuffle::default() };
//! let outcome = play(&shuffle, propose(&shuffle));
//! assert_eq!((outcome.partitions, outcome.waves), (512, 8));
//! ```

mod answer;
mod propose;
mod recorded;

pub use answer::Answer;
pub use propose::{Proposal, proposal, propose};
pub use recorded::{Recorded, of_stage};

use crate::sizing;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const MIB: i64 = 1 << 20;
/// More partitions than Spark can use are not played.
pub const MAX_PARTITIONS: i64 = 1_000_000;
/// Heap below which Spark refuses to start: 1.5 times what it keeps for itself. Source:
/// `UnifiedMemoryManager.getMaxMemory`.
pub const LEAST_HEAP_BYTES: i64 = RESERVED_BYTES * 3 / 2;
/// Bytes that a core spills in a second: written and read back, each at the 100 MiB a second that
/// the rules assume of a disk (`spill_bytes_per_s`).
const SPILL_BYTES_PER_SECOND: f64 = 50.0 * MIB as f64;
/// Of an executor's heap, what Spark keeps for itself before memory is shared out.
const RESERVED_BYTES: i64 = 300 * MIB;
/// `spark.sql.adaptive.coalescePartitions.minPartitionSize`.
const MIN_PARTITION_BYTES: i64 = MIB;
/// Share of the execution memory from which a task is tight in it.
const TIGHT: f64 = 0.7;
/// Spark keeps a merged neighbour below this multiple of the target.
const SMALL_PARTITION_FACTOR: f64 = 0.2;

/// A shuffle and the cluster that reads it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shuffle {
    /// Bytes that the stage reads.
    pub bytes: i64,
    /// Slots: cores over all executors, divided by `spark.task.cpus`.
    pub cores: i64,
    /// Heap of an executor divided by its cores, bytes.
    pub memory_per_core: i64,
    /// Cores of an executor.
    pub cores_per_executor: i64,
    /// `spark.memory.fraction`.
    pub memory_fraction: f64,
    /// Bytes that a task should read.
    pub target: i64,
    /// Share of the rows that have the most frequent key, 0 to 1.
    pub skew: f64,
    /// Whether adaptive execution is on.
    pub adaptive: bool,
    /// Whether adaptive execution merges small partitions
    /// (`spark.sql.adaptive.coalescePartitions.enabled`, and no `repartition(n)`).
    pub merging: bool,
    /// Whether the stage joins; adaptive execution splits nothing else.
    pub join: bool,
    /// `spark.sql.adaptive.skewJoin.enabled`.
    pub splitting: bool,
    /// Tasks that wrote the shuffle, where known: a partition is split between their outputs only,
    /// so into no more pieces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map_tasks: Option<i64>,
    /// `spark.sql.adaptive.skewJoin.skewedPartitionFactor`.
    pub skew_factor: f64,
    /// `spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes`.
    pub skew_threshold: i64,
    /// `spark.sql.adaptive.advisoryPartitionSizeInBytes`.
    pub advisory: i64,
    /// Bytes that one core gets through in a second.
    pub bytes_per_second: f64,
    /// What a task takes besides its bytes: to be sent, to start, to hand over its result, ms.
    pub fixed_ms: f64,
    /// Bytes in memory for each byte of shuffle, which is packed.
    pub expansion: f64,
}

impl Default for Shuffle {
    fn default() -> Self {
        Self {
            bytes: 0,
            cores: 1,
            memory_per_core: 4 << 30,
            cores_per_executor: 4,
            memory_fraction: 0.6,
            target: 128 * MIB,
            skew: 0.0,
            adaptive: true,
            merging: true,
            join: true,
            splitting: true,
            map_tasks: None,
            skew_factor: 5.0,
            skew_threshold: 256 * MIB,
            advisory: 64 * MIB,
            bytes_per_second: 32.0 * MIB as f64,
            fixed_ms: 20.0,
            expansion: 3.0,
        }
    }
}

/// What becomes of a shuffle with a number of partitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Partitions as set.
    pub partitions: i64,
    /// Tasks that run, after adaptive execution.
    pub tasks: i64,
    /// Partitions that adaptive execution split, and into how many pieces.
    pub split_partitions: i64,
    /// Pieces of the split partitions.
    pub split_pieces: i64,
    /// Partitions that it merged away.
    pub merged_away: i64,
    /// Why the largest partition is not split; `None` when it is, or when none is large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_split_because: Option<String>,
    /// Bytes of the usual task.
    pub task_bytes: i64,
    /// Bytes of the largest task.
    pub largest_bytes: i64,
    /// Rounds in which the cores are filled.
    pub waves: i64,
    /// Run time of the usual task, ms.
    pub task_ms: i64,
    /// Run time of the largest task, ms.
    pub largest_ms: i64,
    /// Run time of the stage, ms.
    pub stage_ms: i64,
    /// Time in which only the slowest task runs, ms.
    pub waiting_ms: i64,
    /// Core time that is idle while the stage runs, ms.
    pub idle_core_ms: i64,
    /// Memory that the largest task needs and has, and what it would spill.
    pub memory: Memory,
}

/// Whether tasks fit their memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Bytes that each of the tasks of an executor may use for certain.
    pub available: i64,
    /// Bytes that the usual task needs.
    pub needed: i64,
    /// Bytes that the largest task needs.
    pub needed_by_largest: i64,
    /// Tasks that need more than they have for certain.
    pub spilling_tasks: i64,
    /// How likely tasks spill.
    pub risk: Risk,
}

/// How likely tasks spill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// All tasks fit.
    #[default]
    None,
    /// The largest task takes more than seven tenths of what it has.
    Tight,
    /// The largest task spills, perhaps with others; not all do.
    LargestSpills,
    /// Every task spills.
    AllSpill,
}

/// Plays the shuffle with so many partitions, the most frequent key in one of them.
#[must_use]
pub fn play(shuffle: &Shuffle, partitions: i64) -> Outcome {
    play_sizes(shuffle, &sizes(shuffle, partitions))
}

/// Plays a shuffle whose partition sizes are known.
#[must_use]
pub fn play_sizes(shuffle: &Shuffle, sizes: &[i64]) -> Outcome {
    let adapted = adapt(shuffle, sizes);
    let timing = schedule(shuffle, &adapted.tasks);
    let (usual, largest) = usual_and_largest(&adapted.tasks);
    let tasks = adapted.tasks.len() as i64;
    Outcome {
        partitions: sizes.len() as i64,
        tasks,
        split_partitions: adapted.split,
        split_pieces: adapted.pieces,
        merged_away: sizes.len() as i64 - (tasks - adapted.pieces + adapted.split),
        not_split_because: adapted.not_split_because,
        task_bytes: usual,
        largest_bytes: largest,
        waves: sizing::ceil_div(tasks, shuffle.cores.max(1)),
        task_ms: task_ms(shuffle, usual),
        largest_ms: task_ms(shuffle, largest),
        stage_ms: timing.end_ms,
        // With one core nothing waits: tasks run one after another anyway.
        waiting_ms: if shuffle.cores > 1 { timing.end_ms - timing.others_end_ms } else { 0 },
        idle_core_ms: (timing.end_ms.saturating_mul(shuffle.cores.max(1)) - timing.run_ms).max(0),
        memory: memory(shuffle, &adapted.tasks, usual, largest),
    }
}

/// The largest task, and the median of the others: the largest is not compared with itself.
fn usual_and_largest(tasks: &[i64]) -> (i64, i64) {
    let mut sorted = tasks.to_vec();
    sorted.sort_unstable();
    let Some((largest, others)) = sorted.split_last() else { return (0, 0) };
    (model::quantile(others, 0.5).unwrap_or(*largest), *largest)
}

/// Sizes of partitions by hash: the rest evenly, the most frequent key on top of one of them.
fn sizes(shuffle: &Shuffle, partitions: i64) -> Vec<i64> {
    let n = partitions.clamp(1, MAX_PARTITIONS);
    let hot = (shuffle.bytes as f64 * shuffle.skew.clamp(0.0, 1.0)) as i64;
    let rest = shuffle.bytes - hot;
    let mut sizes: Vec<i64> = (0..n).map(|i| rest / n + i64::from(i < rest % n)).collect();
    sizes[0] += hot;
    sizes
}

struct Adapted {
    tasks: Vec<i64>,
    split: i64,
    pieces: i64,
    not_split_because: Option<String>,
}

/// What adaptive execution makes of partitions: first it splits, then it merges the others.
fn adapt(shuffle: &Shuffle, sizes: &[i64]) -> Adapted {
    let limit = shuffle.skew_threshold.max((median(sizes) as f64 * shuffle.skew_factor) as i64);
    let largest = sizes.iter().copied().max().unwrap_or_default();
    let large = largest as f64 > 1.5 * median(sizes) as f64 && largest > shuffle.target;
    let not_split_because = if large { why_not_split(shuffle, sizes, largest) } else { None };
    let mut adapted = Adapted { tasks: Vec::with_capacity(sizes.len()), split: 0, pieces: 0, not_split_because };
    if !shuffle.adaptive {
        adapted.tasks.extend_from_slice(sizes);
        return adapted;
    }
    let piece = piece_bytes(shuffle, sizes, limit);
    let goal = merge_bytes(shuffle, sizes);
    for part in sizes.chunk_by(|a, b| (*a > limit) == (*b > limit)) {
        if !splits(shuffle) || part[0] <= limit {
            if shuffle.merging {
                merge(part, goal, &mut adapted.tasks)
            } else {
                adapted.tasks.extend_from_slice(part)
            }
            continue;
        }
        for size in part {
            let n = sizing::ceil_div(*size, piece).min(shuffle.map_tasks.unwrap_or(i64::MAX)).max(1);
            adapted.tasks.extend((0..n).map(|i| size / n + i64::from(i < size % n)));
            adapted.split += 1;
            adapted.pieces += n;
        }
    }
    adapted
}

/// The tasks that ran, with their own sizes where the shuffle is still the same.
#[must_use]
pub fn as_ran(shuffle: &Shuffle, recorded: &Recorded) -> Outcome {
    if shuffle.bytes != recorded.shuffle.bytes || shuffle.skew != recorded.shuffle.skew {
        return play(shuffle, recorded.tasks);
    }
    // What adaptive execution left must not be merged or split once more.
    let left = play_sizes(&Shuffle { adaptive: false, ..shuffle.clone() }, &recorded.sizes);
    let whole =
        left.not_split_because.as_ref().and_then(|_| why_not_split(shuffle, &recorded.sizes, left.largest_bytes));
    Outcome { not_split_because: whole, ..left }
}

fn splits(shuffle: &Shuffle) -> bool {
    shuffle.join && shuffle.splitting
}

/// Why adaptive execution leaves the largest partition whole, in the order in which it asks.
fn why_not_split(shuffle: &Shuffle, sizes: &[i64], largest: i64) -> Option<String> {
    let by_factor = (median(sizes) as f64 * shuffle.skew_factor) as i64;
    let shown = |bytes: i64| model::Bytes(bytes.max(0) as u64);
    if !shuffle.adaptive {
        Some("adaptive execution is off".to_owned())
    } else if !shuffle.join {
        Some("adaptive execution splits joins only".to_owned())
    } else if !shuffle.splitting {
        Some("spark.sql.adaptive.skewJoin.enabled is false".to_owned())
    } else if shuffle.map_tasks == Some(1) {
        Some("one map task wrote it, and it is split between map tasks only".to_owned())
    } else if largest <= by_factor {
        let (factor, largest, limit) = (shuffle.skew_factor, shown(largest), shown(by_factor));
        Some(format!("{largest} is not over {factor} times the median, {limit}"))
    } else if largest <= shuffle.skew_threshold {
        Some(format!("{} is not over the threshold of {}", shown(largest), shown(shuffle.skew_threshold)))
    } else {
        None
    }
}

/// Size of the pieces: the advisory size, or the average of the partitions that are not skewed.
fn piece_bytes(shuffle: &Shuffle, sizes: &[i64], limit: i64) -> i64 {
    let (sum, n) = sizes.iter().filter(|s| **s <= limit).fold((0, 0), |(sum, n), s| (sum + s, n + 1));
    if n == 0 { shuffle.advisory.max(1) } else { shuffle.advisory.max(sum / n).max(1) }
}

/// Size up to which neighbours are merged: the advisory size unless cores would stay without work
/// (`parallelismFirst`, on by default).
fn merge_bytes(shuffle: &Shuffle, sizes: &[i64]) -> i64 {
    let total: i64 = sizes.iter().sum();
    let for_all_cores = sizing::ceil_div(total, shuffle.cores.max(1));
    for_all_cores.min(shuffle.advisory).max(MIN_PARTITION_BYTES)
}

fn merge(sizes: &[i64], goal: i64, tasks: &mut Vec<i64>) {
    let mut open: Option<i64> = None;
    for &size in sizes {
        open = match open {
            Some(sum) if sum + size <= goal => Some(sum + size),
            Some(sum) => {
                tasks.push(sum);
                Some(size)
            }
            None => Some(size),
        };
    }
    // A last piece that is tiny goes to the one before it.
    match (open, tasks.last_mut()) {
        (Some(sum), Some(last)) if (sum as f64) < SMALL_PARTITION_FACTOR * goal as f64 && *last <= goal => *last += sum,
        (Some(sum), _) => tasks.push(sum),
        (None, _) => {}
    }
}

struct Timing {
    end_ms: i64,
    others_end_ms: i64,
    run_ms: i64,
}

/// Starts tasks in their order, each on the core that is free first.
fn schedule(shuffle: &Shuffle, tasks: &[i64]) -> Timing {
    let cores = (shuffle.cores.max(1) as usize).min(tasks.len().max(1));
    let mut free: BinaryHeap<Reverse<i64>> = (0..cores).map(|_| Reverse(0)).collect();
    let (mut end_ms, mut others_end_ms, mut run_ms) = (0, 0, 0);
    for bytes in tasks {
        let Reverse(start) = free.pop().unwrap_or(Reverse(0));
        let end = start + task_ms(shuffle, *bytes);
        run_ms += end - start;
        others_end_ms = others_end_ms.max(end.min(end_ms));
        end_ms = end_ms.max(end);
        free.push(Reverse(end));
    }
    Timing { end_ms, others_end_ms, run_ms }
}

fn task_ms(shuffle: &Shuffle, bytes: i64) -> i64 {
    let work_ms = bytes as f64 / shuffle.bytes_per_second.max(1.0) * 1e3;
    (shuffle.fixed_ms + work_ms + spill_ms(shuffle, bytes)) as i64
}

/// Time that a task loses by spilling: what does not fit is written and read back, packed.
fn spill_ms(shuffle: &Shuffle, bytes: i64) -> f64 {
    let over = bytes as f64 * shuffle.expansion - available(shuffle) as f64;
    (over / shuffle.expansion.max(1.0)).max(0.0) / SPILL_BYTES_PER_SECOND * 1e3
}

/// Execution memory of a task when all cores of its executor are busy.
fn available(shuffle: &Shuffle) -> i64 {
    let reserved = RESERVED_BYTES / shuffle.cores_per_executor.max(1);
    ((shuffle.memory_per_core - reserved).max(0) as f64 * shuffle.memory_fraction) as i64
}

fn memory(shuffle: &Shuffle, tasks: &[i64], usual: i64, largest: i64) -> Memory {
    let available = available(shuffle);
    let needs = |bytes: i64| (bytes as f64 * shuffle.expansion) as i64;
    let (needed, needed_by_largest) = (needs(usual), needs(largest));
    let spilling = tasks.iter().filter(|bytes| needs(**bytes) > available).count() as i64;
    let risk = match () {
        () if spilling == tasks.len() as i64 => Risk::AllSpill,
        () if spilling > 0 => Risk::LargestSpills,
        () if needed_by_largest as f64 > TIGHT * available as f64 => Risk::Tight,
        () => Risk::None,
    };
    Memory { available, needed, needed_by_largest, spilling_tasks: spilling, risk }
}

/// The middle of the sizes as Spark takes it for skewed partitions: of an even number the mean of
/// the two in the middle, at least 1. Source: `Utils.median`.
fn median(sizes: &[i64]) -> i64 {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let half = sorted.len() / 2;
    match (sorted.len() % 2, sorted.as_slice()) {
        (_, []) => 0,
        (0, all) => ((all[half - 1] + all[half]) / 2).max(1),
        (_, all) => all[half].max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: i64 = 1 << 30;

    fn shuffle() -> Shuffle {
        Shuffle { bytes: 64 * GIB, cores: 64, ..Shuffle::default() }
    }

    #[test]
    fn proposes_whole_waves_of_the_target_size() {
        let outcome = play(&shuffle(), propose(&shuffle()));
        assert_eq!((outcome.partitions, outcome.tasks, outcome.waves), (512, 512, 8));
        assert_eq!(outcome.task_bytes, 128 * MIB);
        assert_eq!((outcome.waiting_ms, outcome.memory.risk), (0, Risk::None));
        assert_eq!(outcome.stage_ms, 8 * 4_020);
    }

    #[test]
    fn a_hot_key_holds_the_stage_when_nothing_splits_it() {
        let skewed = Shuffle { skew: 0.4, adaptive: false, ..shuffle() };
        for partitions in [200, 512, 4_000] {
            let outcome = play(&skewed, partitions);
            assert!(outcome.largest_bytes >= 25 * GIB, "{partitions}");
            assert!(outcome.waiting_ms * 10 > outcome.stage_ms * 9, "{partitions}");
            assert_eq!(outcome.memory.risk, Risk::LargestSpills);
        }
    }

    #[test]
    fn adaptive_execution_splits_a_join_over_factor_and_threshold() {
        let skewed = Shuffle { skew: 0.4, ..shuffle() };
        let outcome = play(&skewed, 512);
        assert_eq!((outcome.split_partitions, outcome.not_split_because.as_deref()), (1, None));
        // 25.6 GiB and a usual 76.8 MiB, in pieces of the average of the others.
        assert_eq!(outcome.split_pieces, 343);
        assert!(outcome.waiting_ms < outcome.stage_ms / 4);
        let aggregate = play(&Shuffle { join: false, ..skewed }, 512);
        assert_eq!(aggregate.not_split_because.as_deref(), Some("adaptive execution splits joins only"));
    }

    #[test]
    fn both_limits_must_be_passed() {
        // 200 MB at 30 times the median stays whole until the threshold is below it.
        let sizes: Vec<i64> = (0..100).map(|i| if i == 0 { 200 * MIB } else { 7 * MIB }).collect();
        let shuffle = Shuffle { cores: 100, target: 64 * MIB, ..shuffle() };
        let outcome = play_sizes(&shuffle, &sizes);
        assert_eq!(outcome.not_split_because.as_deref(), Some("200 MiB is not over the threshold of 256 MiB"));
        let lower = Shuffle { skew_threshold: 128 * MIB, ..shuffle.clone() };
        assert_eq!(play_sizes(&lower, &sizes).split_pieces, 4);
        let stricter = Shuffle { skew_factor: 40.0, ..lower };
        assert_eq!(play_sizes(&stricter, &sizes).split_pieces, 0);
    }

    #[test]
    fn small_partitions_are_merged_while_all_cores_have_work() {
        let small = Shuffle { bytes: 200 * MIB, cores: 4, ..shuffle() };
        let outcome = play(&small, 200);
        // 50 MiB for each of four cores is below the advisory 64 MiB.
        assert_eq!((outcome.tasks, outcome.merged_away), (4, 196));
        assert_eq!(play(&Shuffle { adaptive: false, ..small }, 200).tasks, 200);
    }

    #[test]
    fn nothing_to_read_is_no_error() {
        let outcome = play(&Shuffle::default(), 1);
        assert_eq!((outcome.tasks, outcome.largest_bytes, outcome.waves), (1, 0, 1));
    }
}
