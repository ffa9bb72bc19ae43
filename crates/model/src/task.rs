//! Tasks of one stage attempt, by column.

use crate::{Column, Text};
use serde::{Deserialize, Serialize};

/// A figure of a task. The first group is stored, one [`Column`] each; the second is derived
/// from it by Spark's own definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)] // Each name is Spark's, with its unit.
pub enum Metric {
    /// Launch time, epoch ms.
    LaunchMs,
    /// Finish time, epoch ms; 0 for a task that never ended.
    FinishMs,
    /// When the driver began to fetch the result, epoch ms; 0 when unused.
    GettingResultMs,
    DeserializeMs,
    DeserializeCpuNs,
    RunMs,
    CpuNs,
    ResultBytes,
    GcMs,
    ResultSerializationMs,
    PeakExecutionBytes,
    MemorySpillBytes,
    DiskSpillBytes,
    RemoteBlocksFetched,
    LocalBlocksFetched,
    FetchWaitMs,
    RemoteBytesRead,
    RemoteBytesReadToDisk,
    LocalBytesRead,
    ShuffleRecordsRead,
    RemoteRequestsMs,
    ShuffleBytesWritten,
    ShuffleWriteNs,
    ShuffleRecordsWritten,
    InputBytes,
    InputRecords,
    OutputBytes,
    OutputRecords,
    // Push-based shuffle.
    CorruptMergedBlockChunks,
    MergedFetchFallbacks,
    MergedRemoteBlocks,
    MergedLocalBlocks,
    MergedRemoteChunks,
    MergedLocalChunks,
    MergedRemoteBytes,
    MergedLocalBytes,
    MergedRemoteRequestsMs,
    PeakOnHeapExecutionBytes,
    PeakOffHeapExecutionBytes,
    // --- derived from here on; see `Tasks::value`.
    /// Finish minus launch; 0 for a task without an end.
    DurationMs,
    /// Duration less run, deserialisation, result serialisation and result fetch; never below 0.
    SchedulerDelayMs,
    /// Time in which the driver fetched the result.
    GettingResultTimeMs,
    /// Local and remote shuffle bytes read.
    ShuffleReadBytes,
    /// Local and remote blocks fetched.
    BlocksFetched,
    /// CPU time in ms.
    CpuMs,
    /// Shuffle write time in ms.
    ShuffleWriteMs,
    /// Run time that is neither CPU, fetch wait, shuffle write nor collection; never below 0.
    IoWaitMs,
}

impl Metric {
    /// Number of stored metrics.
    pub const STORED: usize = Self::DurationMs as usize;

    /// The stored metrics in column order.
    pub const ALL_STORED: [Self; Self::STORED] = {
        use Metric::*;
        [
            LaunchMs,
            FinishMs,
            GettingResultMs,
            DeserializeMs,
            DeserializeCpuNs,
            RunMs,
            CpuNs,
            ResultBytes,
            GcMs,
            ResultSerializationMs,
            PeakExecutionBytes,
            MemorySpillBytes,
            DiskSpillBytes,
            RemoteBlocksFetched,
            LocalBlocksFetched,
            FetchWaitMs,
            RemoteBytesRead,
            RemoteBytesReadToDisk,
            LocalBytesRead,
            ShuffleRecordsRead,
            RemoteRequestsMs,
            ShuffleBytesWritten,
            ShuffleWriteNs,
            ShuffleRecordsWritten,
            InputBytes,
            InputRecords,
            OutputBytes,
            OutputRecords,
            CorruptMergedBlockChunks,
            MergedFetchFallbacks,
            MergedRemoteBlocks,
            MergedLocalBlocks,
            MergedRemoteChunks,
            MergedLocalChunks,
            MergedRemoteBytes,
            MergedLocalBytes,
            MergedRemoteRequestsMs,
            PeakOnHeapExecutionBytes,
            PeakOffHeapExecutionBytes,
        ]
    };
}

/// How a task stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Started; no end in the log.
    #[default]
    Running,
    /// Ended well.
    Success,
    /// Ended with a failure that counts.
    Failed,
    /// Stopped by Spark (speculation, a cancelled stage); no failure.
    Killed,
}

/// How near a task ran to its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Locality {
    ProcessLocal,
    NodeLocal,
    NoPref,
    RackLocal,
    #[default]
    Any,
}

/// One task on its way into [`Tasks`].
#[derive(Clone, Debug)]
pub struct TaskRow {
    /// Unique in the application.
    pub id: i64,
    /// Place in the stage; equal for all attempts at one partition.
    pub index: u32,
    /// Attempt at this index, from 0.
    pub attempt: u32,
    /// Partition; −1 before Spark 3.3.
    pub partition: i64,
    /// Position in [`crate::Application::executors`].
    pub executor: u32,
    /// How near it ran to its data.
    pub locality: Locality,
    /// Whether it is a speculative copy.
    pub speculative: bool,
    /// How it stands.
    pub status: TaskStatus,
    /// Whether the end carried metrics; without them figures are unknown, not zero.
    pub has_metrics: bool,
    /// Why it did not succeed.
    pub failure: Option<Box<EndReason>>,
    values: [i64; Metric::STORED],
}

impl TaskRow {
    /// A task of which nothing but the id is known.
    #[must_use]
    pub fn new(id: i64) -> Self {
        Self {
            id,
            index: 0,
            attempt: 0,
            partition: -1,
            executor: 0,
            locality: Locality::default(),
            speculative: false,
            status: TaskStatus::Success,
            has_metrics: true,
            failure: None,
            values: [0; Metric::STORED],
        }
    }

    /// Sets a stored metric; a derived one is ignored.
    pub fn set(&mut self, metric: Metric, value: i64) -> &mut Self {
        if let Some(slot) = self.values.get_mut(metric as usize) {
            *slot = value;
        }
        self
    }

    /// A stored metric.
    #[must_use]
    pub fn get(&self, metric: Metric) -> i64 {
        self.values.get(metric as usize).copied().unwrap_or_default()
    }
}

/// Why a task ended other than well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum EndReason {
    /// The task threw.
    Exception {
        #[serde(with = "crate::shared")]
        class: Text,
        #[serde(with = "crate::shared")]
        message: Text,
        #[serde(with = "crate::shared")]
        stack: Text,
    },
    /// Shuffle blocks of another task could not be read.
    FetchFailed {
        #[serde(with = "crate::shared")]
        executor: Option<Text>,
        #[serde(with = "crate::shared")]
        host: Option<Text>,
        shuffle: i64,
        map_index: i64,
        reduce: i64,
        #[serde(with = "crate::shared")]
        message: Text,
    },
    /// Its executor went away.
    ExecutorLost {
        #[serde(with = "crate::shared")]
        executor: Text,
        caused_by_app: bool,
        #[serde(with = "crate::shared")]
        reason: Text,
    },
    /// Spark stopped it.
    Killed {
        #[serde(with = "crate::shared")]
        reason: Text,
    },
    /// The driver refused its output commit.
    CommitDenied {
        #[serde(with = "crate::shared")]
        message: Text,
    },
    /// Its result was lost on the way.
    ResultLost,
    /// A finished task whose output was lost: a second end of the same task, no failure of its own.
    Resubmitted,
    /// Anything else, as written.
    Other {
        #[serde(with = "crate::shared")]
        reason: Text,
    },
}

/// Tasks of one stage attempt. Each task id stands once; rows are in the order of their ends,
/// tasks that never ended last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tasks {
    columns: Vec<Column>,
    id: Column,
    index: Column,
    attempt: Column,
    partition: Column,
    executor: Column,
    flags: Column,
    failures: Vec<(u32, Box<EndReason>)>,
    /// Rows that did not succeed.
    unsuccessful: usize,
    span: Option<(i64, i64)>,
}

const SPECULATIVE: i64 = 1;
const HAS_METRICS: i64 = 2;
const STATUS_SHIFT: i64 = 2;
const LOCALITY_SHIFT: i64 = 4;

/// Status in the flags of a task.
fn status(flags: i64) -> TaskStatus {
    match flags >> STATUS_SHIFT & 3 {
        0 => TaskStatus::Running,
        1 => TaskStatus::Success,
        2 => TaskStatus::Failed,
        _ => TaskStatus::Killed,
    }
}

impl Tasks {
    /// Adds a task.
    pub fn push(&mut self, row: TaskRow) {
        if self.columns.is_empty() {
            self.columns.resize_with(Metric::STORED, Column::default);
        }
        let at = self.len() as u32;
        self.extend_span(row.get(Metric::LaunchMs), row.get(Metric::FinishMs));
        for (column, value) in self.columns.iter_mut().zip(row.values) {
            column.push(value);
        }
        self.unsuccessful += usize::from(row.status != TaskStatus::Success);
        self.id.push(row.id);
        self.index.push(i64::from(row.index));
        self.attempt.push(i64::from(row.attempt));
        self.partition.push(row.partition);
        self.executor.push(i64::from(row.executor));
        self.flags.push(
            i64::from(row.speculative)
                | i64::from(row.has_metrics) << 1
                | (row.status as i64) << STATUS_SHIFT
                | (row.locality as i64) << LOCALITY_SHIFT,
        );
        if let Some(reason) = row.failure {
            self.failures.push((at, reason));
        }
    }

    /// Kept up to date with every task: asked for far more often than tasks are added.
    fn extend_span(&mut self, launch: i64, finish: i64) {
        let (begin, end) = self.span.unwrap_or((i64::MAX, i64::MIN));
        let begin = if launch > 0 { begin.min(launch) } else { begin };
        self.span = Some((begin, end.max(finish)));
    }

    /// First launch and last finish, epoch ms; `None` without a launched task that ended.
    #[must_use]
    pub fn span_ms(&self) -> Option<(i64, i64)> {
        self.span.filter(|(begin, end)| end >= begin)
    }

    /// Number of tasks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.id.is_empty()
    }

    /// A metric of a row, stored or derived.
    #[must_use]
    pub fn value(&self, metric: Metric, row: usize) -> i64 {
        let at = |m: Metric| self.columns.get(m as usize).map_or(0, |c| c.get(row));
        match metric {
            Metric::DurationMs => match at(Metric::FinishMs) {
                0 => 0,
                finish => (finish - at(Metric::LaunchMs)).max(0),
            },
            Metric::GettingResultTimeMs => match (at(Metric::GettingResultMs), at(Metric::FinishMs)) {
                (0, _) | (_, 0) => 0,
                (begin, finish) => (finish - begin).max(0),
            },
            Metric::SchedulerDelayMs => {
                let known = at(Metric::RunMs)
                    + at(Metric::DeserializeMs)
                    + at(Metric::ResultSerializationMs)
                    + self.value(Metric::GettingResultTimeMs, row);
                (self.value(Metric::DurationMs, row) - known).max(0)
            }
            Metric::ShuffleReadBytes => at(Metric::LocalBytesRead) + at(Metric::RemoteBytesRead),
            Metric::BlocksFetched => at(Metric::LocalBlocksFetched) + at(Metric::RemoteBlocksFetched),
            Metric::CpuMs => at(Metric::CpuNs) / 1_000_000,
            Metric::ShuffleWriteMs => at(Metric::ShuffleWriteNs) / 1_000_000,
            Metric::IoWaitMs => {
                let explained = self.value(Metric::CpuMs, row)
                    + at(Metric::FetchWaitMs)
                    + self.value(Metric::ShuffleWriteMs, row)
                    + at(Metric::GcMs);
                (at(Metric::RunMs) - explained).max(0)
            }
            stored => at(stored),
        }
    }

    /// Task id of a row.
    #[must_use]
    pub fn id(&self, row: usize) -> i64 {
        self.id.get(row)
    }

    /// Index in the stage.
    #[must_use]
    pub fn index(&self, row: usize) -> u32 {
        self.index.get(row) as u32
    }

    /// Attempt at the index, from 0.
    #[must_use]
    pub fn attempt(&self, row: usize) -> u32 {
        self.attempt.get(row) as u32
    }

    /// Partition; −1 when the log has none.
    #[must_use]
    pub fn partition(&self, row: usize) -> i64 {
        self.partition.get(row)
    }

    /// Position in [`crate::Application::executors`].
    #[must_use]
    pub fn executor(&self, row: usize) -> usize {
        self.executor.get(row) as usize
    }

    /// How near the task ran to its data.
    #[must_use]
    pub fn locality(&self, row: usize) -> Locality {
        match self.flags.get(row) >> LOCALITY_SHIFT {
            0 => Locality::ProcessLocal,
            1 => Locality::NodeLocal,
            2 => Locality::NoPref,
            3 => Locality::RackLocal,
            _ => Locality::Any,
        }
    }

    /// Whether the row is a speculative copy.
    #[must_use]
    pub fn speculative(&self, row: usize) -> bool {
        self.flags.get(row) & SPECULATIVE != 0
    }

    /// Whether the end carried metrics.
    #[must_use]
    pub fn has_metrics(&self, row: usize) -> bool {
        self.flags.get(row) & HAS_METRICS != 0
    }

    /// How the task stands.
    #[must_use]
    pub fn status(&self, row: usize) -> TaskStatus {
        status(self.flags.get(row))
    }

    /// Why a row did not succeed, where the log says so.
    #[must_use]
    pub fn failure(&self, row: usize) -> Option<&EndReason> {
        let at = self.failures.binary_search_by_key(&(row as u32), |f| f.0).ok()?;
        Some(&self.failures[at].1)
    }

    /// Rows that did not succeed with their reasons, in row order.
    pub fn failures(&self) -> impl Iterator<Item = (usize, &EndReason)> {
        self.failures.iter().map(|(row, reason)| (*row as usize, &**reason))
    }

    /// A figure of every row.
    #[must_use]
    pub fn values(&self, metric: Metric) -> Vec<i64> {
        let column = |m: Metric| self.columns.get(m as usize).map(Column::to_vec).unwrap_or_default();
        match metric {
            Metric::DurationMs => {
                let duration = |(launch, finish): (i64, i64)| if finish == 0 { 0 } else { (finish - launch).max(0) };
                column(Metric::LaunchMs).into_iter().zip(column(Metric::FinishMs)).map(duration).collect()
            }
            Metric::ShuffleReadBytes => {
                let (local, remote) = (column(Metric::LocalBytesRead), column(Metric::RemoteBytesRead));
                local.into_iter().zip(remote).map(|(local, remote)| local + remote).collect()
            }
            stored if (stored as usize) < Metric::STORED => column(stored),
            derived => (0..self.len()).map(|row| self.value(derived, row)).collect(),
        }
    }

    /// A figure of every row that succeeded.
    #[must_use]
    pub fn successful_values(&self, metric: Metric) -> Vec<i64> {
        let values = self.values(metric);
        match self.unsuccessful {
            0 => values,
            _ => {
                let flags = self.flags.to_vec();
                let all = values.into_iter().zip(flags);
                all.filter(|(_, flags)| status(*flags) == TaskStatus::Success).map(|(value, _)| value).collect()
            }
        }
    }

    /// Rows that succeeded.
    pub fn successful(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).filter(|&row| self.status(row) == TaskStatus::Success)
    }

    /// Row of a task id. Linear: for the rare look-up only.
    #[must_use]
    pub fn find(&self, id: i64) -> Option<usize> {
        (0..self.len()).rev().find(|&row| self.id(row) == id)
    }

    /// Gives back what was allocated ahead; for a stage that is complete.
    pub fn shrink_to_fit(&mut self) {
        self.columns.shrink_to_fit();
        for column in self.columns.iter_mut().chain([
            &mut self.id,
            &mut self.index,
            &mut self.attempt,
            &mut self.partition,
            &mut self.executor,
            &mut self.flags,
        ]) {
            column.shrink_to_fit();
        }
        self.failures.shrink_to_fit();
    }

    /// Bytes on the heap, failure texts left out.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let fixed = self.columns.capacity() * size_of::<Column>();
        let columns: usize = self.columns.iter().map(Column::heap_bytes).sum();
        let keys = [&self.id, &self.index, &self.attempt, &self.partition, &self.executor, &self.flags];
        fixed + columns + keys.into_iter().map(Column::heap_bytes).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_metrics_stand_in_column_order() {
        for (i, metric) in Metric::ALL_STORED.into_iter().enumerate() {
            assert_eq!(metric as usize, i);
        }
    }

    #[test]
    fn derives_as_spark_does() {
        let mut row = TaskRow::new(7);
        row.set(Metric::LaunchMs, 1_000).set(Metric::FinishMs, 2_000).set(Metric::RunMs, 700);
        row.set(Metric::DeserializeMs, 100).set(Metric::GettingResultMs, 1_950);
        row.set(Metric::CpuNs, 300_000_000).set(Metric::GcMs, 50).set(Metric::FetchWaitMs, 100);
        let mut tasks = Tasks::default();
        tasks.push(row);
        assert_eq!(tasks.value(Metric::DurationMs, 0), 1_000);
        assert_eq!(tasks.value(Metric::SchedulerDelayMs, 0), 150);
        assert_eq!(tasks.value(Metric::IoWaitMs, 0), 250);
        assert_eq!(tasks.status(0), TaskStatus::Success);
        assert_eq!(tasks.find(7), Some(0));
    }

    #[test]
    fn a_whole_column_says_what_its_rows_say() {
        let mut tasks = Tasks::default();
        for (i, status) in [TaskStatus::Success, TaskStatus::Failed, TaskStatus::Success, TaskStatus::Running]
            .into_iter()
            .cycle()
            .take(40)
            .enumerate()
        {
            let mut row = TaskRow::new(i as i64);
            row.status = status;
            for (at, metric) in Metric::ALL_STORED.into_iter().enumerate() {
                row.set(metric, (i * 7_919 % 1_000 + at * 300) as i64);
            }
            // Some never finish, some seem to finish before they begin.
            row.set(Metric::FinishMs, if i % 5 == 0 { 0 } else { (i * 31) as i64 });
            tasks.push(row);
        }
        let derived = [Metric::DurationMs, Metric::ShuffleReadBytes, Metric::BlocksFetched, Metric::IoWaitMs];
        for metric in Metric::ALL_STORED.into_iter().chain(derived) {
            let rows: Vec<i64> = (0..tasks.len()).map(|row| tasks.value(metric, row)).collect();
            assert_eq!(tasks.values(metric), rows, "{metric:?}");
            let successful: Vec<i64> = tasks.successful().map(|row| tasks.value(metric, row)).collect();
            assert_eq!(tasks.successful_values(metric), successful, "{metric:?}");
        }
        assert!(Tasks::default().values(Metric::RunMs).is_empty());
    }

    #[test]
    fn a_plain_task_costs_well_under_200_bytes() {
        let mut tasks = Tasks::default();
        for i in 0..10_000_i64 {
            let mut row = TaskRow::new(i);
            for metric in Metric::ALL_STORED.into_iter().take(28) {
                row.set(metric, (i * 7_919) % 1_000_000);
            }
            tasks.push(row);
        }
        tasks.shrink_to_fit();
        assert!(tasks.heap_bytes() / tasks.len() < 140, "{}", tasks.heap_bytes() / tasks.len());
    }
}
