//! What the page of an application shows, in words.

use super::applications::{Usual, around};
use super::asked::Asked;
use super::openapi::shapes;
use super::openapi::words::{BudgetKind, Certainty, RemedyWord, RunState};
use super::{Answer, failure, json};
use crate::Opened;
use diagnose::telling::{self, Money};
use model::{Application, Finding, Part, Report, Severity};
use serde::Serialize;
use utoipa::ToSchema;

/// What is wrong with an application, in words.
#[derive(Serialize, ToSchema)]
pub(super) struct Page {
    /// The application.
    application: Facts,
    /// How it ended.
    #[schema(value_type = RunState)]
    state: &'static str,
    /// The answer in short.
    verdict: VerdictCard,
    /// Severity of the worst finding.
    #[schema(value_type = Option<shapes::Severity>)]
    severity: Option<Severity>,
    /// Where the wall time went; the parts add up to it.
    budget: Vec<BudgetPart>,
    /// Findings, the worst first, each with those that follow from it.
    chapters: Vec<Chapter>,
    /// What was checked and found fine, or could not be judged.
    checked: Vec<Checked>,
    /// Rules that were checked.
    rules_checked: usize,
    /// What else there is to know, in a sentence.
    more: Option<String>,
    /// What could not be read of the log.
    #[schema(value_type = Vec<shapes::Warning>)]
    warnings: Vec<model::Warning>,
    /// How many of each kind the log holds.
    counts: Counts,
}

/// Facts of an application.
#[derive(Serialize, ToSchema)]
#[schema(as = PageFacts)]
struct Facts {
    /// Application id; empty of a pasted text.
    id: String,
    /// Attempt id, where the application has attempts.
    attempt: Option<String>,
    /// Name.
    name: String,
    /// User.
    user: String,
    /// Version of Spark that wrote the log.
    spark_version: String,
    /// Whether Photon operators ran.
    photon: bool,
    /// Start, epoch ms.
    started_ms: Option<i64>,
    /// End, epoch ms; null when the log has none.
    ended_ms: Option<i64>,
    /// Wall time, ms; at least this when `complete` is false.
    wall_ms: i64,
    /// Whether it runs.
    in_progress: bool,
    /// Whether the log holds the end of the application.
    complete: bool,
    #[serde(flatten)]
    usual: Usual,
    /// Exit code, where the log tells it.
    exit_code: Option<i32>,
    /// Jobs that failed.
    failed_jobs: u64,
    /// Executors; in local mode the driver counts.
    executors: usize,
    /// Tasks that could run at once, the average over time.
    slots: Option<f64>,
    /// Share of the slots' time in which tasks ran, 0 to 1.
    busy_share: Option<f64>,
    /// What it cost, with the currency; null without a price (`--rate`).
    cost: Option<String>,
    /// What a pasted text was taken for, in words; null of an application.
    pasted: Option<&'static str>,
}

/// The answer in short.
#[derive(Serialize, ToSchema)]
struct VerdictCard {
    /// What is wrong.
    sentence: String,
    /// Wall time that mending the first finding saves, with its unit.
    saving: Option<String>,
    /// What the saving depends on.
    saving_note: Option<String>,
}

/// A part of the wall time.
#[derive(Serialize, ToSchema)]
struct BudgetPart {
    /// What it went to.
    name: String,
    /// How much of it, ms.
    ms: i64,
    /// Kind.
    #[schema(value_type = BudgetKind)]
    kind: &'static str,
}

/// A finding and those that follow from it.
#[derive(Serialize, ToSchema)]
struct Chapter {
    /// Its number, from 1.
    number: usize,
    /// The finding.
    root: FindingCard,
    /// Findings that follow from it.
    follows: Vec<FindingCard>,
}

/// A finding.
#[derive(Serialize, ToSchema)]
struct FindingCard {
    /// Its rule, e.g. `SKEW_KEY`.
    id: String,
    /// What it says.
    title: String,
    /// How bad it is.
    #[schema(value_type = shapes::Severity)]
    severity: Severity,
    /// How certain it is.
    #[schema(value_type = Certainty)]
    certainty: &'static str,
    /// Why it is not more certain.
    certainty_because: Option<String>,
    /// Where it holds, from the whole to the part.
    place: Vec<String>,
    /// Id of the stage.
    stage: Option<u32>,
    /// Attempt of the stage.
    attempt: Option<u32>,
    /// Id of the SQL execution.
    sql: Option<i64>,
    /// Id of the job.
    job: Option<u32>,
    /// Id of the task.
    task: Option<i64>,
    /// Wall time that mending it saves, with its unit.
    saved: Option<String>,
    /// What the saving depends on.
    saved_note: Option<String>,
    /// What it might have been, and why it is not.
    #[schema(value_type = Vec<shapes::Excluded>)]
    excluded: Vec<model::Excluded>,
    /// Figures that show it.
    evidence: Vec<Evidence>,
    /// Whether the tasks of the stage are worth drawing beside it.
    strip: bool,
    /// What to do, the best first.
    remedies: Vec<Remedy>,
    /// What people try that would not help.
    #[schema(value_type = Vec<shapes::WillNotHelp>)]
    will_not_help: Vec<model::WillNotHelp>,
    /// How to make sure.
    confirm: Option<String>,
    /// How the saving was computed.
    method: Option<String>,
    /// Where to read on.
    links: Vec<String>,
}

/// A figure that shows a finding.
#[derive(Serialize, ToSchema)]
#[schema(as = EvidenceLine)]
struct Evidence {
    /// What was measured.
    label: String,
    /// The value with its unit, or the values of a series of quantiles.
    value: String,
    /// The line that it crossed, e.g. `over 30 s`.
    limit: Option<String>,
    /// Where it stands.
    #[serde(rename = "where")]
    location: String,
    /// Whether it is a series of quantiles.
    series: bool,
}

/// Something to do about a finding.
#[derive(Serialize, ToSchema)]
#[schema(as = RemedyCard)]
struct Remedy {
    /// What is to be changed.
    #[schema(value_type = RemedyWord)]
    kind: &'static str,
    /// What to do.
    text: String,
    /// Code or settings to copy.
    snippet: Option<String>,
    /// The formula behind its numbers.
    computed_from: Option<String>,
}

/// Something that was checked.
#[derive(Serialize, ToSchema)]
#[schema(as = CheckedLine)]
struct Checked {
    /// What.
    what: String,
    /// What came of it, with its numbers.
    result: String,
    /// Whether it is fine; if not, it could not be judged.
    fine: bool,
}

/// How many of each kind a log holds.
#[derive(Serialize, ToSchema)]
#[schema(as = PageCounts)]
struct Counts {
    /// SQL executions.
    sql: usize,
    /// Jobs.
    jobs: usize,
    /// Stage attempts.
    stages: usize,
    /// Executors, with the driver.
    executors: usize,
    /// Cached data sets.
    cached: usize,
    /// Streaming queries.
    streams: usize,
    /// Tasks.
    tasks: u64,
}

/// What is wrong with an application, in words.
///
/// What the page of an application shows: the answer in a sentence, where the time went, findings
/// with evidence and remedies.
#[utoipa::path(
    get, path = "/page", operation_id = "getPage", tag = "applications",
    responses(
        (status = 200, description = "The page", body = Page),
        (status = 404, description = "There is no such application or attempt", body = failure::Body),
    ),
)]
pub(super) async fn show(asked: Asked) -> Answer {
    asked
        .answer(|history, opened, _| {
            let (usual, running) = around(history, opened.app());
            Ok(json(&of(opened, usual, running)))
        })
        .await
}

/// The page of an application.
pub(super) fn of(opened: &Opened, usual: Usual, running: bool) -> Page {
    let (app, config) = (opened.app(), opened.config());
    // Names come from a log: what a browser would obey is spelled out.
    let report = telling::clean_report(opened.report());
    let money = config.core_hour_price.map(|per_core_hour| Money { per_core_hour, currency: config.currency.clone() });
    let wall = report.application.wall_ms;
    let card = |finding: &Finding| FindingCard::of(finding, app, wall, money.as_ref());
    let chapters = telling::chapters(&report, true);
    let chapters = chapters.iter().map(|chapter| Chapter {
        number: chapter.number,
        root: card(chapter.root),
        follows: chapter.follows.iter().map(|finding| card(finding)).collect(),
    });
    Page {
        state: state(app, &report, running),
        verdict: verdict(&report, money.as_ref()),
        severity: report.summary.severity,
        budget: telling::parts(&report.summary.time).map(BudgetPart::of).collect(),
        chapters: chapters.collect(),
        checked: report.checked.iter().map(Checked::of).collect(),
        rules_checked: diagnose::rules::RULES.len(),
        more: telling::more(&report.summary.more),
        warnings: report.warnings.clone(),
        counts: counts(app, &report),
        application: Facts { in_progress: running, ..facts(app, &report, usual, money.as_ref()) },
    }
}

fn facts(app: &Application, report: &Report, usual: Usual, money: Option<&Money>) -> Facts {
    let facts = &report.application;
    let executors = app.executors.iter().filter(|e| !e.is_driver()).count();
    Facts {
        id: facts.id.clone(),
        attempt: facts.attempt_id.clone(),
        name: facts.name.clone(),
        user: facts.user.clone(),
        spark_version: facts.spark_version.clone(),
        photon: facts.photon,
        started_ms: facts.started_ms,
        ended_ms: facts.ended_ms,
        wall_ms: facts.wall_ms,
        in_progress: app.log.in_progress,
        complete: facts.complete,
        usual,
        exit_code: app.exit_code,
        failed_jobs: facts.counts.failed_jobs,
        // In local mode the driver runs the tasks.
        executors: if executors == 0 { app.executors.len() } else { executors },
        slots: Some(report.summary.slots).filter(|slots| *slots > 0.0),
        busy_share: telling::busy(report),
        cost: money.map(|money| money.of(telling::core_total_ms(report))),
        pasted: facts.pasted.map(telling::paste),
    }
}

fn state(app: &Application, report: &Report, running: bool) -> &'static str {
    let failed = report.application.counts.failed_jobs > 0 || app.exit_code.is_some_and(|code| code != 0);
    match (failed, report.application.complete, running) {
        (true, ..) => "failed",
        (_, true, _) => "succeeded",
        (.., true) => "running",
        _ => "incomplete",
    }
}

/// The sentence, and the one number worth acting on: what the first finding costs.
fn verdict(report: &Report, money: Option<&Money>) -> VerdictCard {
    let chapters = telling::chapters(report, false);
    let first = chapters.first().map(|chapter| chapter.root);
    let saved = first.and_then(|root| telling::saved(root, report.application.wall_ms, None));
    let saving = saved.and_then(|saved| saved.time);
    let core = first.and_then(|root| root.estimate.as_ref()).map_or(0, |estimate| estimate.saved_core_ms);
    let cost = money.filter(|_| core > 0).map(|money| format!(", about {}", money.of(core))).unwrap_or_default();
    VerdictCard {
        sentence: telling::one_line(&report.summary.sentence),
        saving_note: saving.is_some().then(|| format!("per run if finding 1 is fixed{cost}")),
        saving,
    }
}

fn counts(app: &Application, report: &Report) -> Counts {
    Counts {
        sql: app.sql.len(),
        jobs: app.jobs.len(),
        stages: app.stages.len(),
        executors: app.executors.len(),
        cached: app.cached.len(),
        streams: app.streams.len(),
        tasks: report.application.counts.tasks,
    }
}

impl BudgetPart {
    fn of(part: &Part) -> Self {
        let kind = match telling::Budget::of(part) {
            telling::Budget::Wait => "wait",
            telling::Budget::Few => "few",
            telling::Budget::Compute => "cpu",
            telling::Budget::Shuffle => "shuffle",
            telling::Budget::OffCpu => "offcpu",
            telling::Budget::Collect => "gc",
            telling::Budget::Driver => "driver",
            telling::Budget::Start => "start",
        };
        Self { name: part.name.clone(), ms: part.ms, kind }
    }
}

impl Checked {
    fn of(checked: &model::Checked) -> Self {
        Self { what: checked.what.clone(), result: checked.result.clone(), fine: checked.state.is_fine() }
    }
}

impl FindingCard {
    fn of(finding: &Finding, app: &Application, wall_ms: i64, money: Option<&Money>) -> Self {
        let saved = telling::saved(finding, wall_ms, money);
        let (time, note) = match saved {
            Some(saved) if saved.time.is_some() => (saved.time, Some(saved.range + &saved.beside)),
            Some(saved) => (None, Some(saved.range + &saved.beside)),
            None => (None, None),
        };
        let drawn = telling::drawn_stage(finding, app);
        let evidence = telling::shown(finding);
        Self {
            id: finding.id.clone(),
            title: telling::one_line(&finding.title),
            severity: finding.severity,
            certainty: telling::certainty(finding.confidence),
            certainty_because: finding.confidence_because.clone(),
            place: telling::place(&finding.scope),
            stage: finding.scope.stage.or(drawn.map(|stage| stage.id)),
            attempt: finding.scope.attempt.or(drawn.map(|stage| stage.attempt)),
            sql: finding.scope.sql,
            job: finding.scope.job,
            task: finding.scope.task,
            saved: time,
            saved_note: note,
            excluded: finding.excluded.clone(),
            evidence: evidence.into_iter().map(Evidence::of).collect(),
            strip: drawn.is_some(),
            remedies: finding.remedies.iter().map(Remedy::of).collect(),
            will_not_help: finding.will_not_help.clone(),
            confirm: finding.confirm.clone(),
            method: finding.estimate.as_ref().map(|e| e.method.clone()).filter(|method| !method.is_empty()),
            links: finding.links.clone(),
        }
    }
}

impl Evidence {
    fn of(line: telling::Shown) -> Self {
        Self { label: line.label, value: line.value, limit: line.limit, location: line.location, series: line.series }
    }
}

impl Remedy {
    fn of(remedy: &model::Remedy) -> Self {
        Self {
            kind: telling::remedy(remedy.kind),
            text: remedy.text.clone(),
            snippet: remedy.snippet.as_deref().map(|snippet| snippet.trim_end().to_owned()),
            computed_from: remedy.computed_from.clone(),
        }
    }
}
