//! Names under which figures of a stage stand in evidence: one for each metric, with its unit.

use crate::context::StageFacts;
use crate::draft::Draft;
use model::{Metric, Quantiles, TaskStatus};

/// Name and unit of a metric in evidence; `<name>_max`, `<name>_median`, … are its quantiles.
#[must_use]
pub fn name(metric: Metric) -> (&'static str, &'static str) {
    match metric {
        Metric::DurationMs => ("duration_ms", "ms"),
        Metric::RunMs => ("run_ms", "ms"),
        Metric::CpuMs => ("cpu_ms", "ms"),
        Metric::GcMs => ("gc_ms", "ms"),
        Metric::IoWaitMs => ("io_wait_ms", "ms"),
        Metric::FetchWaitMs => ("fetch_wait_ms", "ms"),
        Metric::SchedulerDelayMs => ("scheduler_delay_ms", "ms"),
        Metric::DeserializeMs => ("deserialize_ms", "ms"),
        Metric::ResultSerializationMs => ("result_serialization_ms", "ms"),
        Metric::ShuffleReadBytes => ("shuffle_read_bytes", "bytes"),
        Metric::ShuffleRecordsRead => ("shuffle_read_records", "rows"),
        Metric::ShuffleBytesWritten => ("shuffle_write_bytes", "bytes"),
        Metric::ShuffleRecordsWritten => ("shuffle_write_records", "rows"),
        Metric::InputBytes => ("input_bytes", "bytes"),
        Metric::InputRecords => ("input_records", "rows"),
        Metric::OutputBytes => ("output_bytes", "bytes"),
        Metric::OutputRecords => ("output_records", "rows"),
        Metric::MemorySpillBytes => ("spill_memory_bytes", "bytes"),
        Metric::DiskSpillBytes => ("spill_disk_bytes", "bytes"),
        Metric::PeakExecutionBytes => ("peak_execution_memory_bytes", "bytes"),
        _ => ("other", ""),
    }
}

impl Draft {
    /// The five values of a metric and its sum: `<name>_min` … `<name>_max`, `<name>_sum`.
    #[must_use]
    pub fn quantiles(mut self, name: &str, q: Quantiles, unit: &str, place: &str) -> Self {
        let five = [("min", q.min), ("p25", q.p25), ("median", q.median), ("p75", q.p75), ("max", q.max)];
        for (at, value) in five.into_iter().chain([("sum", q.sum)]) {
            self = self.evidence(&format!("{name}_{at}"), value, unit).seen_at(place);
        }
        self
    }

    /// Number of tasks of a stage, how many did not succeed, and the quantiles of `metrics`.
    /// Metrics that are 0 throughout are left out.
    #[must_use]
    pub fn figures(mut self, facts: &StageFacts<'_>, metrics: &[Metric]) -> Self {
        let place = format!("stage {} summary", facts.key());
        self = self.evidence("tasks", facts.n, "tasks").seen_at(&*place);
        if facts.has_tasks() {
            let bad = facts.stage.count(TaskStatus::Failed) + facts.stage.count(TaskStatus::Killed);
            self = self.evidence("not_successful", bad, "tasks").seen_at(&*place);
        }
        for &metric in metrics {
            let q = facts.q(metric);
            if q.max != 0 {
                let (name, unit) = name(metric);
                self = self.quantiles(name, q, unit, &place);
            }
        }
        self
    }
}
