//! Cached data.

use crate::{Label, Text};
use serde::{Deserialize, Serialize};

/// Where an RDD is persisted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct StorageLevel {
    pub memory: bool,
    pub disk: bool,
    pub off_heap: bool,
    pub deserialized: bool,
    pub replication: u32,
}

impl StorageLevel {
    /// Whether anything is kept at all.
    #[must_use]
    pub fn is_persisted(&self) -> bool {
        self.memory || self.disk || self.off_heap
    }
}

/// A block of cached data at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedBlock {
    /// Partition.
    pub partition: u32,
    /// Executor that holds it.
    #[serde(with = "crate::shared")]
    pub executor: Text,
    /// Bytes in memory.
    pub memory_bytes: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
}

/// One persisted RDD over the life of the application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CachedRdd {
    /// RDD id.
    pub id: u32,
    /// Name; for a cached DataFrame its plan text.
    pub name: Label,
    /// Level asked for.
    pub level: StorageLevel,
    /// Partitions.
    pub partitions: u32,
    /// Unpersisted at, epoch ms.
    pub unpersisted_ms: Option<i64>,
    /// Highest memory held at one time, bytes; from block updates.
    pub peak_memory_bytes: u64,
    /// Highest disk held at one time, bytes; from block updates.
    pub peak_disk_bytes: u64,
    /// Memory held at the end (or before unpersist), bytes.
    pub memory_bytes: u64,
    /// Disk held at the end (or before unpersist), bytes.
    pub disk_bytes: u64,
    /// Blocks at the end (or before unpersist).
    pub blocks: u32,
    /// Which blocks those are, by partition.
    pub held: Vec<CachedBlock>,
    /// Blocks that went from memory to disk.
    pub moved_to_disk: u32,
    /// Blocks that were dropped altogether before unpersist.
    pub dropped: u32,
    /// Blocks that were stored again after they had been dropped.
    pub stored_again: u32,
}
