//! Two runs of the same job: where the added time came from (section 4.8 of the rules).
//!
//! Wall time of each run is cut into pieces that add up: start-up, the SQL executions and jobs
//! in order, what is between and after them. Pieces are matched by plan, and the difference of
//! each goes to one of eight parts: start-up, data growth, plan change, cluster, configuration, a
//! finding that the baseline lacks, a slower machine or contention (the same CPU time, more run
//! time), and an unexplained rest that is always shown. The parts add up to the difference of the
//! wall times.

mod config_changes;
mod decompose;
mod findings;
mod history;
mod pieces;

pub use config_changes::ConfigChange;
pub use history::History;

use crate::config::Config;
use model::{Application, Finding, Report};
use serde::Serialize;

/// A run in a comparison.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    /// Application id.
    pub id: String,
    /// Application name.
    pub name: String,
    /// Spark version.
    pub spark_version: String,
    /// Start, epoch ms.
    pub started_ms: Option<i64>,
    /// Wall time, ms.
    pub wall_ms: i64,
    /// Slots, time average from the first task on.
    pub slots: f64,
    /// Bytes read from files and tables.
    pub input_bytes: i64,
    /// Rows read from files and tables.
    pub input_rows: i64,
    /// Bytes read from shuffles.
    pub shuffle_read_bytes: i64,
    /// Why it did not end well: its worst finding; absent when it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// Kinds of causes, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// From the start of the application to its first query or job.
    StartUp,
    /// The same work per byte on more (or fewer) bytes.
    DataGrowth,
    /// Another plan, a query that is new or gone.
    PlanChange,
    /// Slots.
    Cluster,
    /// Settings that changed the plan or the partitions.
    Configuration,
    /// A finding that the baseline lacks, work that was repeated.
    NewFinding,
    /// The same CPU time and more run time: a slower machine or disk, or others on it.
    Contention,
    /// What none of these explains.
    Unexplained,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 8] = [
        Self::DataGrowth,
        Self::PlanChange,
        Self::Cluster,
        Self::Configuration,
        Self::NewFinding,
        Self::Contention,
        Self::StartUp,
        Self::Unexplained,
    ];

    /// How it is called in a text.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::StartUp => "start-up",
            Self::DataGrowth => "data growth",
            Self::PlanChange => "plan change",
            Self::Cluster => "cluster change",
            Self::Configuration => "configuration",
            Self::NewFinding => "new finding",
            Self::Contention => "machine speed or contention",
            Self::Unexplained => "unexplained",
        }
    }
}

/// Time that went to one cause, with the places where it did.
#[derive(Clone, Debug, Serialize)]
pub struct CausePart {
    /// Cause.
    pub cause: Cause,
    /// Time added (negative: saved), ms.
    pub ms: i64,
    /// Where, largest first.
    pub places: Vec<Place>,
}

/// One contribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    /// Time added, ms.
    pub ms: i64,
    /// What happened there, a sentence with its numbers.
    pub text: String,
    /// SQL execution of the new run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<i64>,
    /// Stage of the new run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
}

/// A query or job of both runs, side by side.
#[derive(Clone, Debug, Serialize)]
pub struct PieceDelta {
    /// What it is: description or call site.
    pub name: String,
    /// Place in the baseline, e.g. `SQL 3`, `job 7`; absent when it is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Place in the new run; absent when it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// Wall time of its own in the baseline, ms.
    pub base_ms: i64,
    /// Wall time of its own in the new run, ms.
    pub new_ms: i64,
    /// Bytes read, both.
    pub base_bytes: i64,
    /// Bytes read, both.
    pub new_bytes: i64,
    /// Whether the plans are the same after literals and ids are taken out.
    pub same_plan: bool,
}

/// The result.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Version of this form.
    pub version: u32,
    /// The baseline: the given run, or the median one of many.
    pub base: Run,
    /// The run in question.
    pub new: Run,
    /// The answer in one sentence.
    pub sentence: String,
    /// New wall time minus the baseline's, ms.
    pub delta_ms: i64,
    /// Whether no query of the two runs has the same plan or description; of runs without queries,
    /// no job.
    pub nothing_in_common: bool,
    /// Where it went; adds up to `delta_ms`.
    pub parts: Vec<CausePart>,
    /// Findings about the difference (`REG_*`, `FLAKY`, `IMPROVED`).
    pub findings: Vec<Finding>,
    /// Findings of the new run that the baseline lacks: id and title.
    pub appeared: Vec<(String, String)>,
    /// Findings of the baseline that the new run lacks: id and title.
    pub disappeared: Vec<(String, String)>,
    /// Settings that differ and matter.
    pub settings: Vec<ConfigChange>,
    /// Queries and jobs side by side, largest difference first.
    pub pieces: Vec<PieceDelta>,
    /// The baseline's spread, when several runs were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
}

/// Compares a run with one or many earlier ones. `None` without a baseline.
///
/// With several, the baseline is the run of median wall time among the last ten that ended well.
#[must_use]
pub fn compare(base: &[&Application], new: &Application, config: &Config) -> Option<Comparison> {
    let at = history::median_run(base)?;
    let baseline = base[at];
    let (old, now) = (Side::new(baseline, config), Side::new(new, config));
    let settings = config_changes::changes(baseline, new);
    let (parts, pieces) = decompose::decompose(&old, &now, &settings);
    let history = History::of(base, new);
    let delta_ms = new.wall_ms() - baseline.wall_ms();
    let mut comparison = Comparison {
        version: 1,
        base: run(&old),
        new: run(&now),
        sentence: String::new(),
        delta_ms,
        nothing_in_common: nothing_in_common(&pieces),
        parts,
        findings: Vec::new(),
        appeared: titles(&now.report, &old.report),
        disappeared: titles(&old.report, &now.report),
        settings,
        pieces,
        history,
    };
    comparison.sentence = findings::sentence(&comparison);
    comparison.findings = findings::all(&comparison, base, new, config);
    Some(comparison)
}

/// One of the two runs with its diagnosis.
struct Side<'a> {
    app: &'a Application,
    report: Report,
    slots: crate::slots::Slots,
}

impl<'a> Side<'a> {
    fn new(app: &'a Application, config: &Config) -> Self {
        Self { app, report: crate::diagnose(app, config), slots: crate::slots::Slots::of(app) }
    }
}

fn run(side: &Side<'_>) -> Run {
    let app = side.app;
    let sum = |metric| app.stages.iter().map(|s| s.sum(metric)).sum();
    // Before the first task there may be no slot yet: that is start-up.
    let from = app.stages.iter().filter_map(|s| s.span_ms()).map(|(from, _)| from).min().or(app.start_ms());
    Run {
        id: app.id.to_string(),
        name: app.name.to_string(),
        spark_version: app.spark_version.to_string(),
        started_ms: app.start_ms(),
        wall_ms: app.wall_ms(),
        slots: from.zip(app.end_ms()).map_or(0.0, |(from, to)| side.slots.average(from, to)),
        input_bytes: sum(model::Metric::InputBytes),
        input_rows: sum(model::Metric::InputRecords),
        shuffle_read_bytes: sum(model::Metric::ShuffleReadBytes),
        failed: failed(side),
    }
}

/// Title of the worst finding of a run with a failed job, a failed query or a bad exit code.
fn failed(side: &Side<'_>) -> Option<String> {
    let app = side.app;
    let job = app.jobs.iter().any(|j| j.status == model::StageStatus::Failed);
    let exit = app.exit_code.is_some_and(|code| code != 0);
    if !job && !exit {
        return None;
    }
    let worst = side.report.findings.iter().filter(|f| f.severity >= model::Severity::High).max_by_key(|f| f.severity);
    Some(worst.map_or_else(|| "a job failed".to_owned(), |f| f.title.clone()))
}

/// Jobs that read the schema of files look the same in every application: where there are
/// queries, only these are compared.
fn nothing_in_common(pieces: &[PieceDelta]) -> bool {
    let is_sql = |key: &Option<String>| key.as_ref().is_some_and(|key| key.starts_with("SQL"));
    let queries: Vec<&PieceDelta> = pieces.iter().filter(|p| is_sql(&p.base) || is_sql(&p.new)).collect();
    let in_both = |p: &&PieceDelta| p.base.is_some() && p.new.is_some();
    match queries.is_empty() {
        true => !pieces.is_empty() && !pieces.iter().any(|p| p.same_plan),
        false => !queries.iter().any(in_both),
    }
}

/// Findings above info of one report whose id the other lacks.
fn titles(of: &Report, lacking_in: &Report) -> Vec<(String, String)> {
    let counted = |f: &&Finding| f.severity > model::Severity::Info;
    let known: Vec<&str> = lacking_in.findings.iter().filter(counted).map(|f| f.id.as_str()).collect();
    let new = of.findings.iter().filter(counted).filter(|f| !known.contains(&f.id.as_str()));
    new.map(|f| (f.id.clone(), f.title.clone())).collect()
}
