//! Structured streaming queries.

use crate::{Label, Text};
use serde::{Deserialize, Serialize};

/// One run of a streaming query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamingQuery {
    /// Query id, kept over restarts.
    pub id: Label,
    /// Run id, new with each start.
    pub run_id: Label,
    /// Name, where one was given.
    #[serde(with = "crate::shared")]
    pub name: Option<Text>,
    /// Start, epoch ms.
    pub started_ms: Option<i64>,
    /// Termination, epoch ms.
    pub ended_ms: Option<i64>,
    /// Exception that ended it.
    #[serde(with = "crate::shared")]
    pub error: Option<Text>,
    /// Trigger interval, ms, where the input tells it (the event log does not).
    pub trigger_ms: Option<i64>,
    /// Batches in order.
    pub batches: Vec<Batch>,
    /// Idle events (3.5+).
    pub idle_events: u32,
}

/// Progress of one micro-batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// Batch id.
    pub id: i64,
    /// Start, epoch ms.
    pub started_ms: Option<i64>,
    /// Phases with ms, e.g. `triggerExecution`, `addBatch`.
    #[serde(with = "crate::shared")]
    pub phases: Vec<(Text, i64)>,
    /// Rows read over all sources.
    pub input_rows: i64,
    /// Rows a second that arrived; `None` when missing, NaN or infinite.
    pub input_rate: Option<f64>,
    /// Rows a second that were processed; `None` when missing, NaN or infinite.
    pub process_rate: Option<f64>,
    /// Sources.
    pub sources: Vec<SourceProgress>,
    /// Stateful operators.
    pub state: Vec<StateProgress>,
    /// Sink description.
    pub sink: Label,
    /// Watermark, as written.
    #[serde(with = "crate::shared")]
    pub watermark: Option<Text>,
}

/// One source in a batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceProgress {
    /// Description, e.g. `KafkaV2[Subscribe[orders]]`.
    pub description: Label,
    /// Rows read.
    pub rows: i64,
    /// Offsets as written: where the batch ended and what was the latest known.
    #[serde(with = "crate::shared")]
    pub end_offset: Option<Text>,
    /// Latest offset known.
    #[serde(with = "crate::shared")]
    pub latest_offset: Option<Text>,
}

/// One stateful operator in a batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StateProgress {
    /// Operator name, e.g. `stateStoreSave`, `dedupe`.
    pub operator: Label,
    /// Rows kept.
    pub rows_total: i64,
    /// Rows updated in this batch.
    pub rows_updated: i64,
    /// Rows removed in this batch.
    pub rows_removed: i64,
    /// Rows dropped because they were older than the watermark.
    pub rows_dropped: i64,
    /// Memory used, bytes.
    pub memory_bytes: i64,
    /// Shuffle partitions of the state.
    pub partitions: i64,
}

impl Batch {
    /// A phase's time, ms.
    #[must_use]
    pub fn phase_ms(&self, name: &str) -> Option<i64> {
        self.phases.iter().find(|(n, _)| &**n == name).map(|(_, ms)| *ms)
    }
}
