//! The lines that findings are measured against. Every number that the rules mark as
//! configurable stands here under a name; the defaults are the rules' own.

use serde::{Deserialize, Serialize};

/// Thresholds and prices. Ratios and shares are plain numbers (0.1 is ten per cent), sizes bytes,
/// times milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Critical from this share of the run saved …
    pub critical_share: f64,
    /// … and this time.
    pub critical_ms: i64,
    /// High from this share …
    pub high_share: f64,
    /// … and this time.
    pub high_ms: i64,
    /// Medium from this share …
    pub medium_share: f64,
    /// … and this time.
    pub medium_ms: i64,
    /// Low from this share, or …
    pub low_share: f64,
    /// … this time.
    pub low_ms: i64,
    /// Runs shorter than this divide the times above by ten.
    pub short_run_ms: i64,
    /// Noise floor: shortest stage that a timing finding may be about.
    pub noise_stage_ms: i64,
    /// Noise floor: smallest share of the run such a stage must take.
    pub noise_stage_share: f64,
    /// Noise floor: smallest excess as a share of the stage.
    pub noise_excess_share: f64,
    /// How long an executor counts as cold after its start.
    pub cold_start_ms: i64,
    /// Slowest task over the 75th percentile from which a stage is suspect.
    pub skew_ratio: f64,
    /// Slowest task over the median from which skew is severe.
    pub skew_severe_ratio: f64,
    /// Shuffle bytes of the largest task below which there is no key skew.
    pub skew_min_bytes: i64,
    /// Shuffle records of the largest task below which there is no key skew.
    pub skew_min_records: i64,
    /// Slow executor: its median over the others'.
    pub straggler_ratio: f64,
    /// One slow task: its duration over the 75th percentile of the others.
    pub straggler_task_ratio: f64,
    /// Tasks of this median are tiny.
    pub tiny_task_ms: i64,
    /// Share of task time spent on starting and shipping from which tiny tasks matter.
    pub tiny_overhead_share: f64,
    /// Bytes that one task should handle.
    pub target_partition_bytes: i64,
    /// 75th percentile of bytes a task from which partitions are big.
    pub big_partition_bytes: i64,
    /// Bytes of one task from which a partition is far too big.
    pub huge_partition_bytes: i64,
    /// Median task from which a stage of little data is still worth more tasks.
    pub long_task_ms: i64,
    /// The same where something fixed the number of tasks: `coalesce(1)`, a file that is not split.
    pub fixed_task_ms: i64,
    /// Jobs in a row that make a driver loop.
    pub tiny_jobs: u64,
    /// Share of scheduler delay from which waiting is a finding.
    pub sched_wait_share: f64,
    /// Spill from which it is at least medium.
    pub spill_medium_bytes: i64,
    /// Spill from which it is high.
    pub spill_high_bytes: i64,
    /// Spill over bytes read from which it is medium.
    pub spill_share: f64,
    /// Disk throughput assumed for spill, bytes a second.
    pub spill_bytes_per_s: i64,
    /// Collection time over task time from which memory is under pressure.
    pub gc_share: f64,
    /// Collection share from which it is high.
    pub gc_high_share: f64,
    /// Collection share of one task from which it is an outlier.
    pub gc_task_share: f64,
    /// Driver gap from which it is a finding.
    pub gap_ms: i64,
    /// Driver time outside gaps, share of the run.
    pub driver_busy_share: f64,
    /// Idle share of the cluster.
    pub idle_share: f64,
    /// Lost work (failed, killed, speculation), share of run time.
    pub lost_work_share: f64,
    /// Shuffle read over input from which there is too much shuffle.
    pub shuffle_ratio: f64,
    /// Shuffle read from which that matters.
    pub shuffle_min_bytes: i64,
    /// Share of fetch wait in run time.
    pub fetch_wait_share: f64,
    /// Rows compared by a nested loop from which it is medium.
    pub nested_loop_rows: f64,
    /// Rows out over rows in from which rows explode.
    pub explode_ratio: f64,
    /// Files read from which small files matter.
    pub small_files: i64,
    /// Average file size below which files are far too small.
    pub small_file_bytes: i64,
    /// Average file size below which files are rather small.
    pub smallish_file_bytes: i64,
    /// Share of a stage's run in Python from which it is a finding.
    pub python_share: f64,
    /// Share of the run that repeated work must take.
    pub repeat_share: f64,
    /// Batches looked at for a streaming query.
    pub stream_batches: usize,
    /// Rows arriving over rows processed from which a stream falls behind.
    pub stream_ratio: f64,
    /// Findings of one id in the summary; the rest is counted.
    pub max_per_id: usize,
    /// Price of a core hour; `None`: costs are not shown.
    pub core_hour_price: Option<f64>,
    /// Its currency.
    pub currency: String,
}

impl Default for Config {
    fn default() -> Self {
        const MB: i64 = 1 << 20;
        Self {
            critical_share: 0.25,
            critical_ms: 60_000,
            high_share: 0.10,
            high_ms: 30_000,
            medium_share: 0.03,
            medium_ms: 10_000,
            low_share: 0.01,
            low_ms: 5_000,
            short_run_ms: 60_000,
            noise_stage_ms: 1_000,
            noise_stage_share: 0.01,
            noise_excess_share: 0.20,
            cold_start_ms: 10_000,
            skew_ratio: 1.5,
            skew_severe_ratio: 10.0,
            skew_min_bytes: MB,
            skew_min_records: 10_000,
            straggler_ratio: 1.5,
            straggler_task_ratio: 2.0,
            tiny_task_ms: 100,
            tiny_overhead_share: 0.25,
            target_partition_bytes: 128 * MB,
            big_partition_bytes: 1_024 * MB,
            huge_partition_bytes: 5 * 1_024 * MB,
            long_task_ms: 60_000,
            fixed_task_ms: 5_000,
            tiny_jobs: 50,
            sched_wait_share: 0.20,
            spill_medium_bytes: 1_024 * MB,
            spill_high_bytes: 10 * 1_024 * MB,
            spill_share: 0.10,
            spill_bytes_per_s: 100 * MB,
            gc_share: 0.10,
            gc_high_share: 0.20,
            gc_task_share: 0.30,
            gap_ms: 60_000,
            driver_busy_share: 0.30,
            idle_share: 0.50,
            lost_work_share: 0.05,
            shuffle_ratio: 1.5,
            shuffle_min_bytes: 1_024 * MB,
            fetch_wait_share: 0.20,
            nested_loop_rows: 1e8,
            explode_ratio: 10.0,
            small_files: 100,
            small_file_bytes: 3 * MB,
            smallish_file_bytes: 16 * MB,
            python_share: 0.20,
            repeat_share: 0.05,
            stream_batches: 10,
            stream_ratio: 1.05,
            max_per_id: 3,
            core_hour_price: None,
            currency: "$".to_owned(),
        }
    }
}
