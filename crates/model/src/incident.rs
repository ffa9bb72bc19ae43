//! Things that went wrong, as text: from a log's failures or from a pasted excerpt.

use crate::Text;
use serde::{Deserialize, Serialize};

/// One failure, error line or loss, in the order in which it happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// When, epoch ms, where a time is known (a pasted one may have no zone: read as UTC).
    pub time_ms: Option<i64>,
    /// Line in the pasted text, from 1.
    pub line: Option<u64>,
    /// What kind of record it came from.
    pub origin: Origin,
    /// Exception class, e.g. `java.lang.OutOfMemoryError`.
    #[serde(with = "crate::shared")]
    pub class: Option<Text>,
    /// Error class in brackets, e.g. `DELTA_CONCURRENT_APPEND`.
    #[serde(with = "crate::shared")]
    pub error_class: Option<Text>,
    /// First line of the message.
    pub message: String,
    /// The lines after it (frames, traceback, causes), one a line; they begin with the outermost
    /// exception where `class` and `message` are those of a cause.
    pub stack: String,
    /// Executor it happened on (or that was lost).
    #[serde(with = "crate::shared")]
    pub executor: Option<Text>,
    /// Host.
    #[serde(with = "crate::shared")]
    pub host: Option<Text>,
    /// Executor whose output could not be read (fetch failures).
    #[serde(with = "crate::shared")]
    pub from_executor: Option<Text>,
    /// Host whose output could not be read (fetch failures).
    #[serde(with = "crate::shared")]
    pub from_host: Option<Text>,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

impl Incident {
    /// Message and the lines below it that are no stack frames: what the failure says of itself.
    pub fn heads(&self) -> impl Iterator<Item = &str> {
        let below = self.stack.lines().filter(|line| {
            let line = line.trim_start();
            !line.starts_with("at ") && !line.starts_with("... ")
        });
        std::iter::once(self.message.as_str()).chain(below)
    }

    /// The stack frames of JVM and Python.
    pub fn frames(&self) -> impl Iterator<Item = &str> {
        self.stack.lines().map(str::trim_start).filter(|line| line.starts_with("at ") || line.starts_with("File \""))
    }
}

/// Exceptions of Delta before it had error classes (and their names in `delta.exceptions` of
/// Python), with the class of today.
const OLD_NAMES: [(&str, &str); 7] = [
    ("ConcurrentAppendException", "DELTA_CONCURRENT_APPEND"),
    ("ConcurrentDeleteReadException", "DELTA_CONCURRENT_DELETE_READ"),
    ("ConcurrentDeleteDeleteException", "DELTA_CONCURRENT_DELETE_DELETE"),
    ("ConcurrentTransactionException", "DELTA_CONCURRENT_TRANSACTION"),
    ("ConcurrentWriteException", "DELTA_CONCURRENT_WRITE"),
    ("MetadataChangedException", "DELTA_METADATA_CHANGED"),
    ("ProtocolChangedException", "DELTA_PROTOCOL_CHANGED"),
];

/// Error classes that only wrap another failure.
const WRAPPING_CLASSES: [&str; 6] = [
    "TASK_WRITE_FAILED",
    "PYTHON_EXCEPTION",
    "STREAM_FAILED",
    "FAILED_EXECUTE_UDF",
    "UNCLASSIFIED_ERROR",
    "USER_DEFINED_FUNCTIONS.GENERIC",
];

/// The error class that a failure names in brackets (`[DELTA_CONCURRENT_APPEND] …`), or the one
/// that its old exception name stands for.
#[must_use]
pub fn error_class_of(class: Option<&str>, text: &str) -> Option<String> {
    let named = text.split('[').skip(1).filter_map(|part| {
        let (name, _) = part.split_once(']')?;
        (is_error_class(name) && !WRAPPING_CLASSES.contains(&name)).then(|| name.to_owned())
    });
    let simple = class.map(|c| c.rsplit(['.', '$']).next().unwrap_or(c));
    let old = OLD_NAMES.iter().find(|(name, _)| simple == Some(name)).map(|(_, today)| (*today).to_owned());
    named.into_iter().next().or(old)
}

/// `UPPER_CASE` in at least two words, with dotted sub-classes.
fn is_error_class(name: &str) -> bool {
    let main = name.split('.').next().unwrap_or_default();
    main.contains('_')
        && main.starts_with(|c: char| c.is_ascii_uppercase())
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || matches!(b, b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_classes_and_old_names() {
        let check = |class, text, wanted: Option<&str>| {
            assert_eq!(error_class_of(class, text).as_deref(), wanted, "{class:?} {text}");
        };
        check(
            None,
            "x: [DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT] y",
            Some("DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT"),
        );
        check(None, "[TASK_WRITE_FAILED] y: [CAST_INVALID_INPUT] z", Some("CAST_INVALID_INPUT"));
        check(Some("io.delta.exceptions.ConcurrentWriteException"), "no brackets", Some("DELTA_CONCURRENT_WRITE"));
        check(Some("java.lang.Error"), "Thread[main,5] [id=#71] [A]", None);
    }
}
