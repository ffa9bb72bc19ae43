//! Executors and what they were given.

use crate::{Label, Text};
use serde::{Deserialize, Serialize};

/// An executor; in local mode the one executor is `driver`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Executor {
    /// Executor id.
    pub id: Label,
    /// Host, without port.
    pub host: Label,
    /// Host and port of its block manager.
    #[serde(with = "crate::shared")]
    pub host_port: Option<Text>,
    /// Cores; 0 when the log does not tell (1.3 and 1.4).
    pub cores: u32,
    /// When it was added, epoch ms.
    pub added_ms: Option<i64>,
    /// When it was removed, epoch ms.
    pub removed_ms: Option<i64>,
    /// Why, as written.
    #[serde(with = "crate::shared")]
    pub removed_reason: Option<Text>,
    /// Storage memory, bytes.
    pub max_memory_bytes: u64,
    /// Storage memory on the heap, bytes, where told apart.
    pub max_on_heap_bytes: Option<u64>,
    /// Storage memory off the heap, bytes.
    pub max_off_heap_bytes: Option<u64>,
    /// Resource profile id.
    pub resource_profile: u32,
    /// Whether the log has an ExecutorAdded for it (a driver has none past local mode).
    pub added: bool,
    /// Highest value of each executor metric (`JVMHeapMemory`, …); empty when the log has none.
    #[serde(with = "crate::shared")]
    pub peaks: Vec<(Text, i64)>,
    /// Exclusions (formerly blacklisting): when, and for which stage.
    pub exclusions: Vec<Exclusion>,
    /// Links to its logs by file name.
    #[serde(with = "crate::shared")]
    pub logs: Vec<(Text, Text)>,
    /// Attributes as written, for display.
    #[serde(with = "crate::shared")]
    pub attributes: Vec<(Text, Text)>,
    /// Addresses of its resources (GPUs) by resource name.
    #[serde(with = "crate::shared")]
    pub resources: Vec<(Text, Vec<Text>)>,
    /// Cached blocks at the end; from block updates.
    pub rdd_blocks: u32,
    /// Memory on the heap of cached blocks at the end, bytes.
    pub cached_on_heap_bytes: u64,
    /// Memory off the heap of cached blocks at the end, bytes.
    pub cached_off_heap_bytes: u64,
    /// Disk of cached blocks at the end, bytes.
    pub cached_disk_bytes: u64,
}

/// A time in which an executor got no tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclusion {
    /// From, epoch ms.
    pub from_ms: i64,
    /// Until, epoch ms.
    pub until_ms: Option<i64>,
    /// Stage and attempt it holds for; `None`: the whole application.
    pub stage: Option<(u32, u32)>,
    /// Task failures that led to it.
    pub task_failures: u32,
    /// Whether the whole node was excluded.
    pub node: bool,
}

impl Executor {
    /// Whether it is the driver.
    #[must_use]
    pub fn is_driver(&self) -> bool {
        matches!(&*self.id, "driver" | "<driver>")
    }

    /// Highest value of an executor metric.
    #[must_use]
    pub fn peak(&self, name: &str) -> Option<i64> {
        self.peaks.iter().find(|(n, _)| &**n == name).map(|(_, v)| *v)
    }
}

/// A process of the application that is no executor: YARN's application master.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id, e.g. `yarn-am`.
    pub id: Label,
    /// Host and port.
    pub host_port: Label,
    /// When it was added, epoch ms.
    pub added_ms: Option<i64>,
    /// Cores.
    pub cores: u32,
    /// Links to its logs by file name.
    #[serde(with = "crate::shared")]
    pub logs: Vec<(Text, Text)>,
}

/// What one executor of a profile gets of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceRequest {
    /// Resource, e.g. `cores`, `memory`, `gpu`.
    #[serde(with = "crate::shared")]
    pub name: Text,
    /// Amount; memory in MiB.
    pub amount: i64,
    /// Script that finds its addresses.
    pub discovery_script: Label,
    /// Vendor.
    pub vendor: Label,
}

/// What a resource profile asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceProfile {
    /// Profile id; 0 is the default one.
    pub id: u32,
    /// Executor requests.
    pub executor: Vec<ResourceRequest>,
    /// Task requests: name and amount.
    #[serde(with = "crate::shared")]
    pub task: Vec<(Text, f64)>,
}
