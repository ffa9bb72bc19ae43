//! Stages: one record per attempt.

use crate::{Metric, Quantiles, TaskStatus, Tasks, Text};
use serde::{Deserialize, Serialize};

/// The largest sum over the tasks of a stage: whatever a log claims, a rule may add a few sums and
/// multiply them by small numbers.
pub const MAX_SUM: i64 = 1 << 58;

/// How a stage attempt or a job stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageStatus {
    /// Listed by a job, not submitted (yet).
    #[default]
    Pending,
    /// Submitted, no end in the log.
    Active,
    /// Completed without a failure reason.
    Complete,
    /// Completed with a failure reason.
    Failed,
    /// Listed by a job that ended without it.
    Skipped,
}

/// One attempt of a stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Stage id.
    pub id: u32,
    /// Attempt, from 0.
    pub attempt: u32,
    /// Name: action and call site.
    pub name: Label,
    /// Call stack, JVM frames one a line.
    pub details: Label,
    /// Number of tasks it is made of.
    pub num_tasks: u32,
    /// Ids of the stages whose output it reads.
    pub parents: Vec<u32>,
    /// How it stands.
    pub status: StageStatus,
    /// Submission, epoch ms.
    pub submitted_ms: Option<i64>,
    /// Completion, epoch ms.
    pub completed_ms: Option<i64>,
    /// Why it failed.
    #[serde(with = "crate::shared")]
    pub failure: Option<Text>,
    /// RDDs it computes.
    pub rdds: Vec<Rdd>,
    /// Resource profile id (3.1+).
    pub resource_profile: u32,
    /// Jobs that list it, ascending.
    pub jobs: Vec<u32>,
    /// SQL execution it works for.
    pub sql: Option<i64>,
    /// Scheduler pool.
    #[serde(with = "crate::shared")]
    pub pool: Option<Text>,
    /// `spark.job.description` in force at submission.
    #[serde(with = "crate::shared")]
    pub description: Option<Text>,
    /// `callSite.short` in force at submission.
    #[serde(with = "crate::shared")]
    pub call_site: Option<Text>,
    /// Its tasks.
    pub tasks: Tasks,
    /// Task ends with reason `Resubmitted`: repeats of ends that are in `tasks`.
    pub resubmitted: u32,
    /// Run time, ms, of the finished tasks whose output was lost and that were resubmitted.
    pub resubmitted_run_ms: i64,
    /// Accumulators of the user's code (not SQL, not internal) with their last value.
    pub accumulables: Vec<Accumulable>,
    /// What tasks added to such accumulators.
    pub task_accumulables: Vec<TaskAccumulable>,
    /// Highest value of each executor metric while it ran, by position of the executor.
    #[serde(with = "crate::shared")]
    pub peaks: Vec<(u32, Vec<(Text, i64)>)>,
    /// Whether its shuffle output is pushed to merge services, and to how many.
    pub pushed_to: Option<u32>,
    /// Whether it is a barrier stage.
    pub barrier: bool,
    /// Figures that came without tasks: a pasted Summary Metrics table.
    pub pasted: Option<PastedSummary>,
}

/// An accumulator that the user's code made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accumulable {
    /// Accumulator id.
    pub id: i64,
    /// Name.
    pub name: Label,
    /// Value at the end of the stage, as text.
    pub value: Label,
}

/// What one task added to such an accumulator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAccumulable {
    /// Task id.
    pub task: i64,
    /// The accumulator with its value after the task.
    pub accumulator: Accumulable,
    /// What the task added, as text.
    pub update: Label,
}

/// A text that may be empty, shared like [`Text`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label(#[serde(with = "crate::shared")] pub Option<Text>);

impl std::ops::Deref for Label {
    type Target = str;
    fn deref(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl From<Text> for Label {
    fn from(text: Text) -> Self {
        Self(Some(text))
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        Self(Some(text.into()))
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self)
    }
}

/// An RDD as a stage describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rdd {
    /// RDD id.
    pub id: u32,
    /// Name: class or the user's own.
    pub name: Label,
    /// Name inside the `Scope` JSON, e.g. `WholeStageCodegen (1)`.
    #[serde(with = "crate::shared")]
    pub scope: Option<Text>,
    /// Id inside the `Scope` JSON.
    #[serde(with = "crate::shared")]
    pub scope_id: Option<Text>,
    /// Where the user's code made it.
    pub call_site: Label,
    /// Parents.
    pub parents: Vec<u32>,
    /// Number of partitions.
    pub partitions: u32,
    /// Cached partitions at the time of the event.
    pub cached_partitions: u32,
    /// Bytes cached in memory at the time of the event.
    pub memory_bytes: u64,
    /// Bytes cached on disk at the time of the event.
    pub disk_bytes: u64,
    /// Whether it is persisted, and where.
    pub storage: crate::StorageLevel,
}

/// A stage as somebody pastes it: quantiles without tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PastedSummary {
    /// Quantiles by metric.
    pub quantiles: Vec<(Metric, Quantiles)>,
    /// Wall time, ms.
    pub wall_ms: Option<i64>,
    /// Slots of the application while it ran.
    pub slots: Option<f64>,
    /// The operator that the paste names, e.g. `SortMergeJoin [a#1], [b#2], LeftOuter`.
    pub node: Option<String>,
    /// Plan sketch, e.g. `WriteFiles <- Exchange RoundRobinPartitioning(2) <- Scan parquet`.
    pub plan: Option<String>,
    /// Share of NULL in the key, 0 to 1.
    pub null_share: Option<f64>,
    /// Whether adaptive execution was on.
    pub aqe: Option<bool>,
    /// Whether its skew join was on.
    pub aqe_skew_join: Option<bool>,
    /// Duration, ms, of the other tasks on the slowest task's executor (median).
    pub peers_on_executor_ms: Option<i64>,
    /// Executor of the slowest task.
    pub slowest_executor: Option<String>,
    /// Attempt of the slowest task, from 0.
    pub slowest_attempt: Option<u32>,
    /// Wall time of the application, ms.
    pub app_wall_ms: Option<i64>,
}

impl Stage {
    /// An attempt of which only the key is known.
    #[must_use]
    pub fn new(id: u32, attempt: u32) -> Self {
        Self { id, attempt, ..Self::default() }
    }

    /// Quantiles over the successful tasks (or the pasted ones), by Spark's definition.
    #[must_use]
    pub fn quantiles(&self, metric: Metric) -> Quantiles {
        if let Some(pasted) = &self.pasted
            && let Some((_, q)) = pasted.quantiles.iter().find(|(m, _)| *m == metric)
        {
            return *q;
        }
        Quantiles::of(self.tasks.successful_values(metric))
    }

    /// Sum over all tasks that reported, failed ones too, as Spark's stage page shows it; at most
    /// [`MAX_SUM`].
    #[must_use]
    pub fn sum(&self, metric: Metric) -> i64 {
        if self.tasks.is_empty()
            && let Some(pasted) = &self.pasted
            && let Some((_, q)) = pasted.quantiles.iter().find(|(m, _)| *m == metric)
        {
            return q.sum.clamp(-MAX_SUM, MAX_SUM);
        }
        self.tasks.values(metric).into_iter().fold(0, i64::saturating_add).clamp(-MAX_SUM, MAX_SUM)
    }

    /// First launch and last finish of its tasks, epoch ms; `None` without a finished task.
    #[must_use]
    pub fn span_ms(&self) -> Option<(i64, i64)> {
        self.tasks.span_ms()
    }

    /// Last task finish minus first task launch, ms: without the time it waited to start.
    #[must_use]
    pub fn wall_ms(&self) -> i64 {
        match self.span_ms() {
            Some((begin, end)) => end - begin,
            None => self.pasted.as_ref().and_then(|p| p.wall_ms).unwrap_or_default(),
        }
    }

    /// Number of tasks with a status.
    #[must_use]
    pub fn count(&self, status: TaskStatus) -> usize {
        (0..self.tasks.len()).filter(|&row| self.tasks.status(row) == status).count()
    }
}
