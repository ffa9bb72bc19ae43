//! Tables of figures: the name in Spark's JSON and the metric it is. One table serves tasks, stages,
//! executors and quantiles.

use model::Metric;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

pub(super) type Table = &'static [(&'static str, Metric)];

/// Of a task, outside its parts.
pub(super) const TASK: Table = {
    use Metric::*;
    &[
        ("executorDeserializeTime", DeserializeMs),
        ("executorDeserializeCpuTime", DeserializeCpuNs),
        ("executorRunTime", RunMs),
        ("executorCpuTime", CpuNs),
        ("resultSize", ResultBytes),
        ("jvmGcTime", GcMs),
        ("resultSerializationTime", ResultSerializationMs),
        ("memoryBytesSpilled", MemorySpillBytes),
        ("diskBytesSpilled", DiskSpillBytes),
        ("peakExecutionMemory", PeakExecutionBytes),
    ]
};

/// What the quantiles of a stage have beside [`TASK`].
pub(super) const TIMES: Table = {
    use Metric::*;
    &[("duration", DurationMs), ("schedulerDelay", SchedulerDelayMs), ("gettingResultTime", GettingResultTimeMs)]
};

pub(super) const INPUT: Table = &[("bytesRead", Metric::InputBytes), ("recordsRead", Metric::InputRecords)];

pub(super) const OUTPUT: Table = &[("bytesWritten", Metric::OutputBytes), ("recordsWritten", Metric::OutputRecords)];

pub(super) const SHUFFLE_READ: Table = {
    use Metric::*;
    &[
        ("remoteBlocksFetched", RemoteBlocksFetched),
        ("localBlocksFetched", LocalBlocksFetched),
        ("fetchWaitTime", FetchWaitMs),
        ("remoteBytesRead", RemoteBytesRead),
        ("remoteBytesReadToDisk", RemoteBytesReadToDisk),
        ("localBytesRead", LocalBytesRead),
        ("recordsRead", ShuffleRecordsRead),
        ("remoteReqsDuration", RemoteRequestsMs),
    ]
};

pub(super) const SHUFFLE_READ_QUANTILES: Table = {
    use Metric::*;
    &[
        ("readBytes", ShuffleReadBytes),
        ("readRecords", ShuffleRecordsRead),
        ("remoteBlocksFetched", RemoteBlocksFetched),
        ("localBlocksFetched", LocalBlocksFetched),
        ("totalBlocksFetched", BlocksFetched),
        ("fetchWaitTime", FetchWaitMs),
        ("remoteBytesRead", RemoteBytesRead),
        ("remoteBytesReadToDisk", RemoteBytesReadToDisk),
        ("remoteReqsDuration", RemoteRequestsMs),
    ]
};

/// Push-based shuffle.
pub(super) const PUSH: Table = {
    use Metric::*;
    &[
        ("corruptMergedBlockChunks", CorruptMergedBlockChunks),
        ("mergedFetchFallbackCount", MergedFetchFallbacks),
        ("remoteMergedBlocksFetched", MergedRemoteBlocks),
        ("localMergedBlocksFetched", MergedLocalBlocks),
        ("remoteMergedChunksFetched", MergedRemoteChunks),
        ("localMergedChunksFetched", MergedLocalChunks),
        ("remoteMergedBytesRead", MergedRemoteBytes),
        ("localMergedBytesRead", MergedLocalBytes),
        ("remoteMergedReqsDuration", MergedRemoteRequestsMs),
    ]
};

pub(super) const SHUFFLE_WRITE: Table = {
    use Metric::*;
    &[("bytesWritten", ShuffleBytesWritten), ("writeTime", ShuffleWriteNs), ("recordsWritten", ShuffleRecordsWritten)]
};

pub(super) const SHUFFLE_WRITE_QUANTILES: Table = {
    use Metric::*;
    &[("writeBytes", ShuffleBytesWritten), ("writeRecords", ShuffleRecordsWritten), ("writeTime", ShuffleWriteNs)]
};

/// Sums over a stage's tasks, beside [`TASK`].
pub(super) const STAGE: Table = {
    use Metric::*;
    &[
        ("inputBytes", InputBytes),
        ("inputRecords", InputRecords),
        ("outputBytes", OutputBytes),
        ("outputRecords", OutputRecords),
        ("shuffleRemoteBlocksFetched", RemoteBlocksFetched),
        ("shuffleLocalBlocksFetched", LocalBlocksFetched),
        ("shuffleFetchWaitTime", FetchWaitMs),
        ("shuffleRemoteBytesRead", RemoteBytesRead),
        ("shuffleRemoteBytesReadToDisk", RemoteBytesReadToDisk),
        ("shuffleLocalBytesRead", LocalBytesRead),
        ("shuffleReadBytes", ShuffleReadBytes),
        ("shuffleReadRecords", ShuffleRecordsRead),
        ("shuffleRemoteReqsDuration", RemoteRequestsMs),
        ("shuffleCorruptMergedBlockChunks", CorruptMergedBlockChunks),
        ("shuffleMergedFetchFallbackCount", MergedFetchFallbacks),
        ("shuffleMergedRemoteBlocksFetched", MergedRemoteBlocks),
        ("shuffleMergedLocalBlocksFetched", MergedLocalBlocks),
        ("shuffleMergedRemoteChunksFetched", MergedRemoteChunks),
        ("shuffleMergedLocalChunksFetched", MergedLocalChunks),
        ("shuffleMergedRemoteBytesRead", MergedRemoteBytes),
        ("shuffleMergedLocalBytesRead", MergedLocalBytes),
        ("shuffleMergedRemoteReqsDuration", MergedRemoteRequestsMs),
        ("shuffleWriteBytes", ShuffleBytesWritten),
        ("shuffleWriteTime", ShuffleWriteNs),
        ("shuffleWriteRecords", ShuffleRecordsWritten),
    ]
};

/// Sums over one executor's tasks in a stage.
pub(super) const EXECUTOR_IN_STAGE: Table = {
    use Metric::*;
    &[
        ("taskTime", DurationMs),
        ("inputBytes", InputBytes),
        ("inputRecords", InputRecords),
        ("outputBytes", OutputBytes),
        ("outputRecords", OutputRecords),
        ("shuffleRead", ShuffleReadBytes),
        ("shuffleReadRecords", ShuffleRecordsRead),
        ("shuffleWrite", ShuffleBytesWritten),
        ("shuffleWriteRecords", ShuffleRecordsWritten),
        ("memoryBytesSpilled", MemorySpillBytes),
        ("diskBytesSpilled", DiskSpillBytes),
    ]
};

/// Executor metrics in the order of Spark's list; one that nobody collected is 0.
pub(super) const EXECUTOR_METRICS: [&str; 23] = [
    "JVMHeapMemory",
    "JVMOffHeapMemory",
    "OnHeapExecutionMemory",
    "OffHeapExecutionMemory",
    "OnHeapStorageMemory",
    "OffHeapStorageMemory",
    "OnHeapUnifiedMemory",
    "OffHeapUnifiedMemory",
    "DirectPoolMemory",
    "MappedPoolMemory",
    "ProcessTreeJVMVMemory",
    "ProcessTreeJVMRSSMemory",
    "ProcessTreePythonVMemory",
    "ProcessTreePythonRSSMemory",
    "ProcessTreeOtherVMemory",
    "ProcessTreeOtherRSSMemory",
    "MinorGCCount",
    "MinorGCTime",
    "MajorGCCount",
    "MajorGCTime",
    "TotalGCTime",
    "ConcurrentGCCount",
    "ConcurrentGCTime",
];

/// A table as an object: each figure computed when it is written.
pub(super) struct Figures<F>(pub Table, pub F);

impl<T: Serialize, F: Fn(Metric) -> T> Serialize for Figures<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, metric) in self.0 {
            map.serialize_entry(name, &(self.1)(*metric))?;
        }
        map.end()
    }
}

/// Executor metrics as an object.
pub(super) struct Peaks<F>(pub F);

impl<T: Serialize, F: Fn(&str) -> T> Serialize for Peaks<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(EXECUTOR_METRICS.iter().map(|name| (name, (self.0)(name))))
    }
}

/// Pairs as an object.
pub(super) struct Pairs<'a>(pub &'a [(model::Text, model::Text)]);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (&**key, &**value)))
    }
}

/// Values at some quantiles, by Spark's definition: sorted, the value at `floor(q * n)`.
pub(super) fn at_quantiles(mut values: Vec<i64>, quantiles: &[f64]) -> Vec<f64> {
    values.sort_unstable();
    quantiles.iter().map(|&q| model::quantile(&values, q).unwrap_or_default() as f64).collect()
}
