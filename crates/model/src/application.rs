//! The application: everything that one event log, or one paste, says.

use crate::{
    Accumulator, CachedRdd, Executor, Incident, Job, Label, Plan, Process, ResourceProfile, SqlExecution, Stage,
    StreamingQuery, Text,
};
use foldhash::HashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All that was read. A pasted plan, trace or stage becomes one too: most parts stay empty and
/// [`Application::pasted`] says what it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Application {
    /// Application id.
    pub id: Label,
    /// Attempt id (YARN).
    #[serde(with = "crate::shared")]
    pub attempt_id: Option<Text>,
    /// Name.
    pub name: Label,
    /// User.
    pub user: Label,
    /// Version that wrote the log.
    pub spark_version: Label,
    /// Start, epoch ms.
    pub started_ms: Option<i64>,
    /// End, epoch ms; `None` when the log has no ApplicationEnd.
    pub ended_ms: Option<i64>,
    /// Exit code (4.0+).
    pub exit_code: Option<i32>,
    /// Latest time in any event, epoch ms.
    pub last_event_ms: Option<i64>,
    /// Earliest time in any event, epoch ms.
    pub first_event_ms: Option<i64>,
    /// Settings.
    pub environment: Environment,
    /// Executors, the driver among them.
    pub executors: Vec<Executor>,
    /// Other processes.
    pub processes: Vec<Process>,
    /// Resource profiles.
    pub profiles: Vec<ResourceProfile>,
    /// Jobs by id.
    pub jobs: Vec<Job>,
    /// Stage attempts by id and attempt.
    pub stages: Vec<Stage>,
    /// SQL executions by id.
    pub sql: Vec<SqlExecution>,
    /// Accumulators by id, those of SQL metrics.
    pub accumulators: HashMap<i64, Accumulator>,
    /// Streaming queries by start.
    pub streams: Vec<StreamingQuery>,
    /// Persisted RDDs by id.
    pub cached: Vec<CachedRdd>,
    /// What the reading itself found.
    pub log: LogFacts,
    /// Set when this came from a paste.
    pub pasted: Option<Pasted>,
}

/// Settings by origin, redacted by Spark where it does so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Spark properties.
    #[serde(with = "crate::shared")]
    pub spark: BTreeMap<Text, Text>,
    /// System properties.
    #[serde(with = "crate::shared")]
    pub system: BTreeMap<Text, Text>,
    /// Hadoop properties.
    #[serde(with = "crate::shared")]
    pub hadoop: BTreeMap<Text, Text>,
    /// Metrics properties (3.4+).
    #[serde(with = "crate::shared")]
    pub metrics: BTreeMap<Text, Text>,
    /// JVM: `Java Version`, `Scala Version`, `Java Home`.
    #[serde(with = "crate::shared")]
    pub jvm: BTreeMap<Text, Text>,
    /// Class path entries with their source.
    #[serde(with = "crate::shared")]
    pub class_path: Vec<(Text, Text)>,
}

/// What reading a log found besides the application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogFacts {
    /// Lines, unreadable ones among them.
    pub lines: u64,
    /// Bytes before and after decompression.
    pub bytes_stored: u64,
    /// Bytes after decompression.
    pub bytes: u64,
    /// Lines that are no JSON event.
    pub bad_lines: u64,
    /// Lines equal to the one before, left out.
    pub repeated_lines: u64,
    /// Events by short name.
    #[serde(with = "crate::shared")]
    pub events: BTreeMap<Text, u64>,
    /// Events that are not known, by full name.
    #[serde(with = "crate::shared")]
    pub unknown_events: BTreeMap<Text, u64>,
    /// TaskStart events with distinct ids.
    pub task_starts: u64,
    /// TaskEnd events, `Resubmitted` among them.
    pub task_ends: u64,
    /// TaskEnd events that are no success, `Resubmitted` among them.
    pub task_ends_not_successful: u64,
    /// Block updates seen; without them storage figures are unknown.
    pub block_updates: u64,
    /// Whether a name said the application was still running.
    pub in_progress: bool,
    /// Whether a start event was seen: a log that begins in the middle has none.
    pub starts_at_beginning: bool,
    /// Task times that run backwards, clamped to 0.
    pub clock_errors: u64,
    /// What could not be read, and where.
    pub warnings: Vec<Warning>,
}

/// Something about the input that a reader should know; never fatal unless `--strict`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Warning {
    /// Finding id of the spec's section on the log itself, e.g. `LOG_TRUNCATED`.
    pub code: String,
    /// One sentence: what, where, how much.
    pub text: String,
}

/// Where an [`Application`] that is no event log came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pasted {
    /// What it was taken for.
    pub kind: PasteKind,
    /// The text as given.
    pub text: String,
    /// Failures and error lines found, in order.
    pub incidents: Vec<Incident>,
    /// Failures and error lines past the limit of the reader.
    pub incidents_left_out: u64,
    /// Plans found in it.
    pub plans: Vec<Plan>,
    /// File systems from a `df` listing.
    pub volumes: Vec<Volume>,
    /// Partition columns of the table in question, where the text tells them.
    pub partition_columns: Vec<String>,
    /// Clustering columns of the table in question, where the text tells them.
    pub clustering_columns: Vec<String>,
    /// MERGE condition, where the text tells it.
    pub merge_condition: Option<String>,
    /// Rows of a pasted jobs table: id, call site, duration in ms.
    pub job_rows: Vec<JobRow>,
    /// Number of jobs or tasks that the text states in words ("200 jobs").
    pub stated_jobs: Option<u64>,
    /// Number of tasks of one stage that the text states in words ("1000000 tasks").
    pub stated_tasks: Option<u64>,
}

/// A row of a pasted jobs table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRow {
    /// Job id.
    pub id: u64,
    /// Description: action and call site.
    pub description: String,
    /// Tasks.
    pub tasks: u64,
    /// Duration, ms.
    pub duration_ms: i64,
}

/// A file system of a `df` listing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Device.
    pub device: String,
    /// Mount point.
    pub mount: String,
    /// Size as written, e.g. `394G`.
    pub size: String,
    /// Free as written.
    pub available: String,
    /// Used, per cent.
    pub used_percent: u32,
}

/// What a paste is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PasteKind {
    /// `explain()` text.
    Plan,
    /// A stack trace or a log excerpt.
    #[default]
    Stack,
    /// Figures of a stage.
    StageMetrics,
    /// Progress objects of a streaming query.
    Streaming,
    /// A jobs table or words.
    Question,
}

impl Application {
    /// A Spark setting.
    #[must_use]
    pub fn conf(&self, key: &str) -> Option<&str> {
        self.environment.spark.get(key).map(|v| &**v)
    }

    /// A boolean Spark setting, with Spark's default for it.
    #[must_use]
    pub fn conf_bool(&self, key: &str, default: bool) -> bool {
        self.conf(key).map_or(default, |v| v.trim().eq_ignore_ascii_case("true"))
    }

    /// A size setting in bytes (`10MB`, `1g`, `10485760b`); `None` when absent or not a size.
    #[must_use]
    pub fn conf_bytes(&self, key: &str, unit: u64) -> Option<i64> {
        parse_bytes(self.conf(key)?, unit)
    }

    /// Start: the event's, else the earliest time seen, epoch ms.
    #[must_use]
    pub fn start_ms(&self) -> Option<i64> {
        self.started_ms.or(self.first_event_ms)
    }

    /// End: the event's, else the latest time seen, epoch ms.
    #[must_use]
    pub fn end_ms(&self) -> Option<i64> {
        self.ended_ms.or(self.last_event_ms)
    }

    /// Wall time, ms; "at least" when the log has no end. 0 when unknown.
    #[must_use]
    pub fn wall_ms(&self) -> i64 {
        match (self.start_ms(), self.end_ms()) {
            (Some(start), Some(end)) => (end - start).max(0),
            _ => 0,
        }
    }

    /// A stage attempt.
    #[must_use]
    pub fn stage(&self, id: u32, attempt: u32) -> Option<&Stage> {
        let at = self.stages.binary_search_by_key(&(id, attempt), |s| (s.id, s.attempt)).ok()?;
        Some(&self.stages[at])
    }

    /// A job.
    #[must_use]
    pub fn job(&self, id: u32) -> Option<&Job> {
        Some(&self.jobs[self.jobs.binary_search_by_key(&id, |j| j.id).ok()?])
    }

    /// An SQL execution.
    #[must_use]
    pub fn sql(&self, id: i64) -> Option<&SqlExecution> {
        Some(&self.sql[self.sql.binary_search_by_key(&id, |s| s.id).ok()?])
    }

    /// Bytes that it takes in memory, about: tasks and plans are counted, texts that many share are
    /// not.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let stage = |s: &Stage| {
            size_of::<Stage>()
                + s.tasks.heap_bytes()
                + s.task_accumulables.len() * size_of::<crate::TaskAccumulable>()
                + s.accumulables.len() * size_of::<crate::Accumulable>()
        };
        let node = |n: &crate::PlanNode| {
            size_of::<crate::PlanNode>() + 2 * n.detail.len() + n.metrics.len() * size_of::<crate::PlanMetric>()
        };
        let plan = |p: &Plan| p.nodes.iter().map(node).sum::<usize>();
        let sql = |s: &SqlExecution| {
            let texts = s.plan_text.as_deref().map_or(0, str::len) + s.details.len();
            size_of::<SqlExecution>() + plan(&s.first_plan) + s.last_plan.as_ref().map_or(0, plan) + texts
        };
        let batches = |s: &StreamingQuery| s.batches.len() * (size_of::<crate::Batch>() + 512);
        self.stages.iter().map(stage).sum::<usize>()
            + self.sql.iter().map(sql).sum::<usize>()
            + self.streams.iter().map(batches).sum::<usize>()
            + self.jobs.len() * size_of::<Job>()
            + self.executors.len() * size_of::<Executor>()
            + self.accumulators.capacity() * size_of::<(i64, Accumulator)>()
    }

    /// Whether Photon or a Databricks runtime wrote the log.
    #[must_use]
    pub fn is_databricks(&self) -> bool {
        self.environment.spark.keys().any(|k| k.starts_with("spark.databricks.clusterUsageTags."))
    }

    /// Spark's major and minor version.
    #[must_use]
    pub fn version(&self) -> Option<(u32, u32)> {
        let mut parts = self.spark_version.split(['.', '-']);
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }
}

/// Reads a size as Spark does: a number with `b`, `k`, `m`, `g`, `t`, `p` (and `kb`, …), binary;
/// a bare number counts in `unit` bytes.
#[must_use]
pub fn parse_bytes(text: &str, unit: u64) -> Option<i64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let scale = match suffix.trim().trim_end_matches("ib").trim_end_matches('b') {
        "" if suffix.trim().is_empty() => unit,
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        "p" => 1 << 50,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * scale as f64) as i64)
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn sizes_as_spark_reads_them() {
        for (text, unit, bytes) in [
            ("10MB", 1, Some(10 << 20)),
            ("1g", 1, Some(1 << 30)),
            ("10485760b", 1, Some(10_485_760)),
            ("-1", 1, Some(-1)),
            ("1024", 1 << 20, Some(1 << 30)),
            ("2.0 GiB", 1, Some(2 << 30)),
            ("many", 1, None),
        ] {
            assert_eq!(parse_bytes(text, unit), bytes, "{text}");
        }
    }
}
