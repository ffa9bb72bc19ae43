//! Jobs: one action, or a part of one.

use crate::{Label, StageStatus, Text};

/// A Spark job.
#[derive(Clone, Debug, Default)]
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
    pub description: Option<Text>,
    /// `spark.jobGroup.id`.
    pub group: Option<Text>,
    /// `callSite.short`.
    pub call_site: Option<Text>,
    /// `spark.job.tags`, split.
    pub tags: Vec<Text>,
    /// `sql.streaming.queryId`.
    pub stream: Option<Text>,
    /// `streaming.sql.batchId`.
    pub batch: Option<i64>,
    /// Other properties that tie it to a run: `spark.databricks.job.id` and the like.
    pub ties: Vec<(Text, Text)>,
}
