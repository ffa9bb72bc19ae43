//! What the page of an application shows, in words.

use super::applications::Usual;
use crate::Opened;
use diagnose::telling::{self, Money};
use model::{Application, Finding, Part, Report, Severity};
use serde::Serialize;

/// The page.
#[derive(Serialize)]
pub(super) struct Page {
    application: Facts,
    state: &'static str,
    verdict: VerdictCard,
    severity: Option<Severity>,
    budget: Vec<BudgetPart>,
    chapters: Vec<Chapter>,
    checked: Vec<Checked>,
    rules_checked: usize,
    more: Option<String>,
    warnings: Vec<model::Warning>,
    counts: Counts,
}

#[derive(Serialize)]
struct Facts {
    id: String,
    attempt: Option<String>,
    name: String,
    user: String,
    spark_version: String,
    photon: bool,
    started_ms: Option<i64>,
    ended_ms: Option<i64>,
    wall_ms: i64,
    in_progress: bool,
    complete: bool,
    #[serde(flatten)]
    usual: Usual,
    exit_code: Option<i32>,
    failed_jobs: u64,
    executors: usize,
    slots: Option<f64>,
    busy_share: Option<f64>,
    cost: Option<String>,
    pasted: Option<&'static str>,
}

#[derive(Serialize)]
struct VerdictCard {
    sentence: String,
    saving: Option<String>,
    saving_note: Option<String>,
}

#[derive(Serialize)]
struct BudgetPart {
    name: String,
    ms: i64,
    kind: &'static str,
}

#[derive(Serialize)]
struct Chapter {
    number: usize,
    root: FindingCard,
    follows: Vec<FindingCard>,
}

#[derive(Serialize)]
struct FindingCard {
    id: String,
    title: String,
    severity: Severity,
    certainty: &'static str,
    certainty_because: Option<String>,
    place: Vec<String>,
    stage: Option<u32>,
    attempt: Option<u32>,
    sql: Option<i64>,
    job: Option<u32>,
    task: Option<i64>,
    saved: Option<String>,
    saved_note: Option<String>,
    excluded: Vec<model::Excluded>,
    evidence: Vec<Evidence>,
    strip: bool,
    remedies: Vec<Remedy>,
    will_not_help: Vec<model::WillNotHelp>,
    confirm: Option<String>,
    method: Option<String>,
    links: Vec<String>,
}

#[derive(Serialize)]
struct Evidence {
    label: String,
    value: String,
    limit: Option<String>,
    #[serde(rename = "where")]
    location: String,
    series: bool,
}

#[derive(Serialize)]
struct Remedy {
    kind: &'static str,
    text: String,
    snippet: Option<String>,
    computed_from: Option<String>,
}

#[derive(Serialize)]
struct Checked {
    what: String,
    result: String,
    fine: bool,
}

#[derive(Serialize)]
struct Counts {
    sql: usize,
    jobs: usize,
    stages: usize,
    executors: usize,
    cached: usize,
    streams: usize,
    tasks: u64,
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
