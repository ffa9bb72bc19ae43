//! What the pages and answers are about: the applications that a source holds.

use model::Application;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

/// One attempt of an application, as lists show it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    /// Application id.
    pub id: String,
    /// Attempt id, where the application has attempts (YARN).
    pub attempt: Option<String>,
    /// Name.
    pub name: String,
    /// User.
    pub user: String,
    /// Version that wrote the log.
    pub spark_version: String,
    /// Start, epoch ms.
    pub started_ms: i64,
    /// End, epoch ms; `None` while it runs or when the log has no end.
    pub ended_ms: Option<i64>,
    /// Latest time in the log, epoch ms.
    pub last_event_ms: i64,
    /// When the log was written last, epoch ms.
    pub updated_ms: i64,
}

/// Pages for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page<'a> {
    /// Which applications need a person, and why.
    Applications,
    /// The diagnosis of one attempt.
    Application {
        /// Application id.
        id: &'a str,
        /// Attempt id.
        attempt: Option<&'a str>,
    },
}

/// Where applications come from.
pub trait History: Debug + Send + Sync {
    /// All attempts that can be opened, in any order.
    fn list(&self) -> Vec<Listed>;

    /// An attempt with everything that its log says; `None` when there is no such one.
    ///
    /// # Errors
    /// When its log cannot be read: what was wrong with which file.
    fn open(&self, id: &str, attempt: Option<&str>) -> Result<Option<Arc<Application>>, String>;

    /// The files of an attempt's log, in order; `None` when there is no such attempt.
    fn log_files(&self, id: &str, attempt: Option<&str>) -> Option<Vec<PathBuf>>;

    /// A page for people, as HTML; `None` when it is about an attempt that is not there.
    ///
    /// # Errors
    /// When a log cannot be read.
    fn page(&self, page: &Page<'_>) -> Result<Option<String>, String>;

    /// The diagnosis of an attempt as the JSON of `lakescope diagnose`; `None` when there is no
    /// such attempt.
    ///
    /// # Errors
    /// When its log cannot be read.
    fn diagnosis(&self, id: &str, attempt: Option<&str>) -> Result<Option<String>, String>;

    /// Whether what was there at the start has been read.
    fn is_ready(&self) -> bool;
}
