//! What the pages and answers are about: the applications that a source holds.

use crate::api::shapes;
use diagnose::{Config, telling};
use model::{Application, Metric, Report, Severity};
use read::SqlMetrics;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::io::Read;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use utoipa::ToSchema;

/// One attempt of an application, as lists show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Whether the log says by its name that the application runs.
    pub in_progress: bool,
    /// What the diagnosis says in short.
    pub verdict: Verdict,
    /// What it used.
    pub usage: Usage,
    /// The task run of a job that it was started by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_run_id: Option<i64>,
}

/// A diagnosis in one row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Verdict {
    /// Severity of the worst finding.
    #[schema(value_type = Option<shapes::Severity>)]
    pub severity: Option<Severity>,
    /// The sentence.
    pub sentence: String,
    /// Findings that are told on their own.
    pub findings: usize,
    /// The worst one.
    pub worst: Option<Worst>,
    /// Wall time that mending it saves, ms.
    pub saving_ms: Option<i64>,
    /// Whether a job failed, or the application ended with an exit code.
    pub failed: bool,
}

/// A finding in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Worst {
    /// Its rule, e.g. `SKEW_KEY`.
    pub id: String,
    /// What it says.
    pub title: String,
}

/// What an application used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Core time that was reserved, ms.
    pub core_ms: i64,
    /// Run time of the tasks, ms.
    pub run_ms: i64,
    /// Bytes spilled to disk.
    pub spill_bytes: i64,
    /// Bytes written to shuffles.
    pub shuffle_bytes: i64,
    /// Bytes read from sources.
    pub input_bytes: i64,
    /// Tasks.
    pub tasks: u64,
    /// Task attempts that failed.
    pub failed_tasks: u64,
}

/// An application whose log has not grown for so long does not run any more: Spark writes with
/// every task and batch, and drivers idle for a while.
const SILENT_MS: i64 = 60 * 60 * 1_000;

impl Listed {
    /// The row of an attempt.
    #[must_use]
    pub fn of(opened: &Opened, updated_ms: i64) -> Self {
        let app = opened.app();
        Self {
            id: app.id.to_string(),
            attempt: app.attempt_id.as_deref().map(str::to_owned),
            name: app.name.to_string(),
            user: app.user.to_string(),
            spark_version: app.spark_version.to_string(),
            started_ms: app.start_ms().unwrap_or_default(),
            ended_ms: app.ended_ms,
            last_event_ms: app.end_ms().unwrap_or_default(),
            updated_ms,
            in_progress: app.log.in_progress,
            verdict: Verdict::of(opened),
            usage: Usage::of(opened),
            task_run_id: app.environment.spark.get(run::book::TASK_RUN_PROPERTY).and_then(|id| id.parse().ok()),
        }
    }

    /// Path of its page.
    #[must_use]
    pub fn page(&self) -> String {
        page(&self.id, self.attempt.as_deref())
    }

    /// Whether it runs: its log says so and has been written lately. The log of an application that
    /// was killed says so for ever.
    #[must_use]
    pub fn is_running(&self, now_ms: i64) -> bool {
        self.in_progress && self.ended_ms.is_none() && now_ms - self.updated_ms < SILENT_MS
    }

    /// Wall time, ms; so far, where it has not ended.
    #[must_use]
    pub fn wall_ms(&self) -> i64 {
        (self.ended_ms.unwrap_or(self.last_event_ms) - self.started_ms).max(0)
    }
}

/// Path of the page of an attempt. Ids come from logs, where anything may stand.
pub(crate) fn page(id: &str, attempt: Option<&str>) -> String {
    let safe = |b: u8| b.is_ascii_alphanumeric() || b"-_.~".contains(&b);
    let encoded = |b: u8| if safe(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    let segment = |text: &str| format!("/{}", text.bytes().map(encoded).collect::<String>());
    format!("/applications{}{}", segment(id), attempt.map(segment).unwrap_or_default())
}

impl Verdict {
    fn of(opened: &Opened) -> Self {
        let report = opened.report();
        let chapters = telling::chapters(report, false);
        let worst = chapters.first().map(|chapter| chapter.root);
        Self {
            severity: report.summary.severity,
            sentence: telling::capital(&telling::one_line(&report.summary.sentence)),
            findings: chapters.len(),
            worst: worst.map(|f| Worst { id: f.id.clone(), title: telling::one_line(&f.title) }),
            saving_ms: worst.and_then(|f| f.estimate.as_ref()).map(|e| e.saved_ms).filter(|ms| *ms > 0),
            failed: report.application.counts.failed_jobs > 0 || opened.app().exit_code.is_some_and(|code| code != 0),
        }
    }
}

impl Usage {
    fn of(opened: &Opened) -> Self {
        let report = opened.report();
        let sum = |metric| opened.app().stages.iter().map(|stage| stage.sum(metric)).fold(0, i64::saturating_add);
        Self {
            core_ms: telling::core_total_ms(report),
            run_ms: report.summary.run_ms,
            spill_bytes: sum(Metric::DiskSpillBytes),
            shuffle_bytes: sum(Metric::ShuffleBytesWritten),
            input_bytes: sum(Metric::InputBytes),
            tasks: report.application.counts.tasks,
            failed_tasks: report.application.counts.task_attempts_failed,
        }
    }
}

/// A log that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Unreadable {
    /// Its first file.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// An application with its diagnosis, which is made when it is first asked for, unless it is known.
#[derive(Debug)]
pub struct Opened {
    app: Arc<Application>,
    config: Arc<Config>,
    report: OnceLock<Report>,
    /// What a second reading of the log told of its SQL executions.
    sql: Mutex<Option<Arc<SqlMetrics>>>,
}

impl Opened {
    /// An application that is to be diagnosed by `config`.
    #[must_use]
    pub fn new(app: Arc<Application>, config: Arc<Config>) -> Self {
        Self { app, config, report: OnceLock::new(), sql: Mutex::default() }
    }

    /// The same with the report that `config` gave earlier.
    #[must_use]
    pub fn reported(app: Arc<Application>, config: Arc<Config>, report: Report) -> Self {
        Self { report: report.into(), ..Self::new(app, config) }
    }

    /// All that its log says.
    #[must_use]
    pub fn app(&self) -> &Application {
        &self.app
    }

    /// The same, to keep.
    #[must_use]
    pub fn shared(&self) -> Arc<Application> {
        Arc::clone(&self.app)
    }

    /// What is wrong with it.
    #[must_use]
    pub fn report(&self) -> &Report {
        self.report.get_or_init(|| diagnose::diagnose(&self.app, &self.config))
    }

    /// Graphs and metrics of its SQL executions, which are read when they are first asked for; who
    /// asks meanwhile waits. What cannot be read now may be later.
    pub(crate) fn sql_metrics(&self, read: impl FnOnce() -> Option<SqlMetrics>) -> Option<Arc<SqlMetrics>> {
        let mut known = self.sql.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            *known = read().map(Arc::new);
        }
        known.clone()
    }

    /// Thresholds and prices.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }
}

/// Pages for people that run no script.
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

/// A file of a log.
pub struct LogFile {
    /// Name in an archive.
    pub name: String,
    /// Its bytes as they are stored.
    pub content: Box<dyn Read + Send>,
}

impl Debug for LogFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogFile").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why a log was not taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is none, or too large, or none are taken.
    Refused(String),
    /// It could not be kept.
    Failed(String),
}

/// Where applications come from.
pub trait History: Debug + Send + Sync {
    /// All attempts that can be opened, in any order.
    fn list(&self) -> Vec<Listed>;

    /// Logs that cannot be read.
    fn unreadable(&self) -> Vec<Unreadable>;

    /// An attempt with everything that its log says; `None` when there is no such one.
    ///
    /// # Errors
    /// When its log cannot be read: what was wrong with which file.
    fn open(&self, id: &str, attempt: Option<&str>) -> Result<Option<Arc<Opened>>, String>;

    /// The files of an attempt's log, in order; `None` when there is no such attempt.
    fn log_files(&self, id: &str, attempt: Option<&str>) -> Option<Result<Vec<LogFile>, String>>;

    /// Reads the log of an attempt once more, for the graphs and metrics of its SQL executions;
    /// `None` when the log is there no more.
    fn sql_metrics(&self, _id: &str, _attempt: Option<&str>) -> Option<SqlMetrics> {
        None
    }

    /// Takes in a log that somebody hands over, by the name of its file; gives the id and attempt
    /// of its application.
    ///
    /// # Errors
    /// When no logs are taken, or this is none.
    fn add(&self, name: &str, content: &mut dyn Read) -> Result<(String, Option<String>), Added>;

    /// A page for people that runs no script, as HTML; `None` when it is about an attempt that is
    /// not there.
    ///
    /// # Errors
    /// When a log cannot be read.
    fn page(&self, page: &Page<'_>) -> Result<Option<String>, String>;

    /// Thresholds and prices of the diagnosis.
    fn config(&self) -> Arc<Config>;

    /// Whether what was there at the start has been read.
    fn is_ready(&self) -> bool;

    /// A number that changes with every change of the list.
    fn revision(&self) -> u64;
}
