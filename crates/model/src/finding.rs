//! What the diagnosis says: findings with evidence, and the report around them.

use crate::{PasteKind, Warning};
use serde::{Deserialize, Serialize};

/// Version of the report's JSON form; grows when a field changes its meaning or goes away.
pub const REPORT_VERSION: u32 = 1;

/// Everything that a diagnosis says: the JSON object of `--format json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// Version of this form.
    pub version: u32,
    /// What was looked at.
    pub application: ApplicationFacts,
    /// The answer in short.
    pub summary: Summary,
    /// Findings, worst root first; a consequence names its root in `caused_by`.
    pub findings: Vec<Finding>,
    /// What was checked and found fine, and what could not be judged.
    pub checked: Vec<Checked>,
    /// What could not be read.
    pub warnings: Vec<Warning>,
}

/// Facts of the application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationFacts {
    /// Application id.
    pub id: String,
    /// Attempt id (YARN).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attempt_id: Option<String>,
    /// Name.
    pub name: String,
    /// User.
    pub user: String,
    /// Spark version.
    pub spark_version: String,
    /// Whether Photon operators ran.
    pub photon: bool,
    /// Set when no log was given but a paste.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pasted: Option<PasteKind>,
    /// Start, epoch ms.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started_ms: Option<i64>,
    /// End, epoch ms; absent when the log has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended_ms: Option<i64>,
    /// Wall time, ms; at least this when `complete` is false.
    pub wall_ms: i64,
    /// Whether the log holds the end of the application.
    pub complete: bool,
    /// Counts as they stand in the log.
    pub counts: Counts,
    /// What the application did besides batch SQL: `streaming`, `delta`, `photon`, `cache`.
    pub traits: Vec<String>,
}

/// Counts as they stand in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub struct Counts {
    /// Lines with unreadable ones.
    pub events: u64,
    pub bad_lines: u64,
    pub unknown_events: u64,
    pub jobs: u64,
    pub failed_jobs: u64,
    pub unfinished_jobs: u64,
    pub stage_attempts_completed: u64,
    pub tasks_started: u64,
    pub task_ends: u64,
    /// `Resubmitted` ends among them.
    pub task_ends_not_successful: u64,
    /// Distinct tasks.
    pub tasks: u64,
    /// Attempts that really failed: killed ones and `Resubmitted` repeats left out.
    pub task_attempts_failed: u64,
    pub sql_executions: u64,
    pub executors_removed: u64,
    pub streaming_batches: u64,
}

/// The answer in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// One sentence that a tired person can repeat on the phone.
    pub sentence: String,
    /// Worst severity among the findings; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub severity: Option<Severity>,
    /// Findings by severity, worst first.
    pub counts: Vec<(Severity, u32)>,
    /// Where the wall time went: parts that add up to it.
    pub time: Vec<Part>,
    /// Where the slot time went: parts that add up to slots × time. Milliseconds of one core.
    pub core_time: Vec<Part>,
    /// Slots, time average.
    pub slots: f64,
    /// Run time of all tasks, ms.
    pub run_ms: i64,
    /// Simulated wall time of what was recorded, ms, and its error against the real one, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<ModelFit>,
    /// Run time and cost with other slot counts, and with causes removed.
    pub counterfactuals: Vec<Counterfactual>,
    /// Findings left out beyond three of one id: id and number.
    pub more: Vec<(String, u32)>,
}

/// A part of a total.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// What, e.g. `driver only`.
    pub name: String,
    /// How much, ms.
    pub ms: i64,
}

/// How well the model of the run reproduces it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelFit {
    /// Simulated wall time, ms.
    pub simulated_ms: i64,
    /// |simulated − real| / real.
    pub error: f64,
    /// Wall time with unlimited slots, ms.
    pub unlimited_ms: i64,
    /// Wall time with perfect packing on the same slots, ms.
    pub fair_ms: i64,
}

/// What another choice would have given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counterfactual {
    /// What is changed, e.g. `50 % of the slots`, `without skew`.
    pub change: String,
    /// Slots.
    pub slots: f64,
    /// Wall time, ms.
    pub wall_ms: i64,
    /// Slots × wall, core ms.
    pub core_ms: i64,
}

/// How bad, by the time it costs (section 2 of the rules).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub enum Severity {
    #[default]
    Info,
    Low,
    Medium,
    High,
    Critical,
}

/// How sure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Confidence {
    /// Inferred from a part or from a log with losses.
    Low,
    /// A lookalike could not be tested.
    #[default]
    Medium,
    /// Direct evidence, every lookalike excluded by data.
    High,
}

/// One thing that is wrong (or worth knowing, at severity info).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Id of the rules, e.g. `SKEW_KEY`.
    pub id: String,
    /// One sentence with its numbers; each of them stands in `evidence`.
    pub title: String,
    /// How bad.
    pub severity: Severity,
    /// How sure.
    pub confidence: Confidence,
    /// Why not surer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub confidence_because: Option<String>,
    /// Where.
    pub scope: Scope,
    /// Numbers and texts that show it.
    pub evidence: Vec<Evidence>,
    /// What it looks like but is not.
    pub excluded: Vec<Excluded>,
    /// What it costs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub estimate: Option<Estimate>,
    /// What to do, best first.
    pub remedies: Vec<Remedy>,
    /// What people try that does not help here.
    pub will_not_help: Vec<WillNotHelp>,
    /// The metric that must move once it is mended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub confirm: Option<String>,
    /// Pages that show it.
    pub links: Vec<String>,
    /// Position in the report of the finding that explains it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub caused_by: Option<usize>,
    /// Positions in the report of the findings that it explains.
    pub causes: Vec<usize>,
}

/// Where a finding holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[allow(missing_docs)]
pub struct Scope {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<i64>,
    /// Operator, e.g. `SortMergeJoin on customer_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Line of the user's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_line: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// Streaming query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// RDDs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rdds: Vec<u32>,
    /// Other SQL executions or stages that show the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sqls: Vec<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<u32>,
}

/// A number, or a text, that shows a finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// What was measured, in snake case, e.g. `shuffle_read_bytes_max`.
    pub metric: String,
    /// The value.
    pub value: Value,
    /// Unit of a number: `ms`, `bytes`, `rows`, `tasks`, `ratio`, `share`, `files`, …
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub unit: String,
    /// The line it crossed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub threshold: Option<f64>,
    /// Where it stands in the UI or the input, e.g. `stage 7.0 summary`, `line 12`.
    #[serde(rename = "where", skip_serializing_if = "String::is_empty", default)]
    pub location: String,
}

/// A value of evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub enum Value {
    Int(i64),
    Float(f64),
    Text(String),
    Texts(Vec<String>),
}

/// A lookalike that was ruled out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Excluded {
    /// What it could be taken for, e.g. `slow executor`.
    pub lookalike: String,
    /// Why it is not that, with numbers.
    pub because: String,
}

/// What a finding costs, from the model of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Wall time saved when half of the excess goes, ms.
    pub saved_ms_low: i64,
    /// Wall time saved, ms: between the two.
    pub saved_ms: i64,
    /// Wall time saved when all of the excess goes, ms.
    pub saved_ms_high: i64,
    /// Core time saved, ms.
    pub saved_core_ms: i64,
    /// How it was computed.
    pub method: String,
}

/// Something to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remedy {
    /// What kind of change.
    pub kind: RemedyKind,
    /// What to do, in a sentence.
    pub text: String,
    /// Lines to copy: SQL, code or settings.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub snippet: Option<String>,
    /// How its numbers were computed from this run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub computed_from: Option<String>,
}

/// Kinds of change, in the order in which they are preferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub enum RemedyKind {
    #[default]
    Code,
    Sql,
    /// Table layout.
    Layout,
    Conf,
    Compute,
    Ops,
}

/// Something that people try and that does not help here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WillNotHelp {
    /// What.
    pub what: String,
    /// Why not.
    pub because: String,
}

/// Something that was looked at and is no finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checked {
    /// What, in a word or two: `spill`, `garbage collection`.
    pub what: String,
    /// The number that says so, e.g. `no task spilled`; for what could not be judged, why not.
    pub result: String,
    /// Whether it was judged at all.
    #[serde(skip_serializing_if = "CheckState::is_fine", default)]
    pub state: CheckState,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CheckState {
    /// Looked at and fine.
    #[default]
    Fine,
    /// Not judged: what it needs is not in the input.
    Unknown,
}

impl CheckState {
    /// Whether it was looked at and is fine.
    #[must_use]
    pub fn is_fine(&self) -> bool {
        *self == Self::Fine
    }
}

impl From<i64> for Value {
    fn from(v: i64) -> Self {
        Self::Int(v)
    }
}
impl From<u64> for Value {
    fn from(v: u64) -> Self {
        Self::Int(i64::try_from(v).unwrap_or(i64::MAX))
    }
}
impl From<u32> for Value {
    fn from(v: u32) -> Self {
        Self::Int(v.into())
    }
}
impl From<usize> for Value {
    fn from(v: usize) -> Self {
        Self::Int(i64::try_from(v).unwrap_or(i64::MAX))
    }
}
impl From<f64> for Value {
    fn from(v: f64) -> Self {
        Self::Float(v)
    }
}
impl From<&str> for Value {
    fn from(v: &str) -> Self {
        Self::Text(v.to_owned())
    }
}
impl From<String> for Value {
    fn from(v: String) -> Self {
        Self::Text(v)
    }
}
impl From<Vec<String>> for Value {
    fn from(v: Vec<String>) -> Self {
        Self::Texts(v)
    }
}
impl Default for Value {
    fn default() -> Self {
        Self::Int(0)
    }
}
