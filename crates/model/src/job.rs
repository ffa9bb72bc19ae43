//! Jobs: one action, or a part of one.

use crate::{Label, StageStatus, Text};
use serde::{Deserialize, Serialize};

/// A Spark job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Job id.
    pub id: u32,
    /// Submission, epoch ms.
    pub submitted_ms: Option<i64>,
    /// Completion, epoch ms.
    pub completed_ms: Option<i64>,
    /// `Active`, `Complete` or `Failed`.
    pub status: StageStatus,
    /// Message of the failure; it repeats the last task's failure.
    #[serde(with = "crate::shared")]
    pub error: Option<Text>,
    /// Stages it lists, run or skipped.
    pub stages: Vec<u32>,
    /// Name: that of its last stage.
    pub name: Label,
    /// SQL execution that it works for (`spark.sql.execution.id`).
    pub sql: Option<i64>,
    /// Root of nested executions (`spark.sql.execution.root.id`).
    pub sql_root: Option<i64>,
    /// `spark.job.description`.
    #[serde(with = "crate::shared")]
    pub description: Option<Text>,
    /// `spark.jobGroup.id`.
    #[serde(with = "crate::shared")]
    pub group: Option<Text>,
    /// `callSite.short`.
    #[serde(with = "crate::shared")]
    pub call_site: Option<Text>,
    /// `spark.job.tags`, split.
    #[serde(with = "crate::shared")]
    pub tags: Vec<Text>,
    /// `sql.streaming.queryId`.
    #[serde(with = "crate::shared")]
    pub stream: Option<Text>,
    /// `streaming.sql.batchId`.
    pub batch: Option<i64>,
    /// Other properties that tie it to a run: `spark.databricks.job.id` and the like.
    #[serde(with = "crate::shared")]
    pub ties: Vec<(Text, Text)>,
}
