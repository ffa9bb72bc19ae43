//! Things that went wrong, as text: from a log's failures or from a pasted excerpt.

use crate::Text;

/// One failure, error line or loss, in the order in which it happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Incident {
    /// When, epoch ms, where a time is known (a pasted one may have no zone: read as UTC).
    pub time_ms: Option<i64>,
    /// Line in the pasted text, from 1.
    pub line: Option<u64>,
    /// What kind of record it came from.
    pub origin: Origin,
    /// Exception class, e.g. `java.lang.OutOfMemoryError`.
    pub class: Option<Text>,
    /// Error class in brackets, e.g. `DELTA_CONCURRENT_APPEND`.
    pub error_class: Option<Text>,
    /// First line of the message.
    pub message: String,
    /// Stack frames or traceback, one a line; with the causes below it.
    pub stack: String,
    /// Executor it happened on (or that was lost).
    pub executor: Option<Text>,
    /// Host.
    pub host: Option<Text>,
    /// Stage and attempt.
    pub stage: Option<(u32, u32)>,
    /// Job.
    pub job: Option<u32>,
    /// SQL execution.
    pub sql: Option<i64>,
    /// Task id.
    pub task_id: Option<i64>,
    /// Task index.
    pub task_index: Option<u32>,
    /// Task attempt.
    pub task_attempt: Option<u32>,
}

/// What record an [`Incident`] came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Origin {
    /// A task end (or `Lost task …` line).
    Task,
    /// A fetch failure of a task.
    Fetch,
    /// A task that ended because its executor was lost.
    TaskOfLostExecutor,
    /// An executor that was removed.
    Executor,
    /// A stage that failed.
    Stage,
    /// A job that failed; its text repeats the last task failure.
    Job,
    /// An SQL execution that failed.
    Sql,
    /// A streaming query that failed.
    Stream,
    /// A line or trace in a text.
    #[default]
    Text,
}
