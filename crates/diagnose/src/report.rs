//! From findings to the report: severity, order, cause and consequence, the sentence.

use crate::config::Config;
use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::words;
use model::{
    Application, ApplicationFacts, Confidence, Counterfactual, Counts, EndReason, Estimate, Finding, Millis, ModelFit,
    Report, Severity, StageStatus, Summary, TaskStatus,
};
use std::collections::BTreeMap;

/// Puts findings into their final form.
#[must_use]
pub fn assemble(cx: &Context<'_>, found: Findings) -> Report {
    let fit = cx.run.as_ref().map(crate::run_model::RunModel::fit);
    let mut drafts = found.drafts;
    for draft in &mut drafts {
        finish(cx, fit.as_ref(), draft);
    }
    let (findings, titles) = order(drafts);
    let summary = summary(cx, fit, &findings, &titles);
    let mut checked = found.checked;
    checked.dedup();
    Report {
        version: model::REPORT_VERSION,
        application: facts(cx.app),
        summary,
        findings,
        checked,
        warnings: cx.app.log.warnings.clone(),
    }
}

/// Severity, certainty and title, now that the estimate is known.
fn finish(cx: &Context<'_>, fit: Option<&ModelFit>, draft: &mut Draft) {
    let wall = cx.base_wall_ms();
    let by_time = draft.finding.estimate.as_ref().map(|e| severity(cx.config, e.saved_ms, wall));
    let capped = draft.at_most.map_or(by_time.unwrap_or_default(), |most| by_time.unwrap_or_default().min(most));
    draft.finding.severity = capped.max(draft.at_least);
    if draft.is_failure && draft.at_most.is_none() {
        draft.finding.severity = Severity::Critical;
    }
    let Some(estimate) = &mut draft.finding.estimate else { return };
    temper(fit, estimate, &mut draft.finding.confidence, &mut draft.finding.confidence_because);
    let (saved, low, high) = (estimate.saved_ms, estimate.saved_ms_low, estimate.saved_ms_high);
    for (metric, value) in [("saved_ms", saved), ("saved_ms_low", low), ("saved_ms_high", high)] {
        draft.finding.evidence.push(model::Evidence {
            metric: metric.to_owned(),
            value: value.into(),
            unit: "ms".to_owned(),
            ..model::Evidence::default()
        });
    }
    // A saving that nobody would notice is no reason to change something.
    let noticed = saved >= 1_000 || saved as f64 >= cx.config.low_share * wall as f64;
    if let Some(fix) = draft.fix.as_ref().filter(|_| saved > 0 && wall > 0 && noticed) {
        let verb = if draft.fix_is_plural { "save" } else { "saves" };
        let whole = words::saving(saved, wall);
        draft.finding.title = format!("{}; {fix} {verb} about {whole}", draft.finding.title);
        draft.finding.evidence.push(model::Evidence {
            metric: "wall_ms".to_owned(),
            value: wall.into(),
            unit: "ms".to_owned(),
            ..model::Evidence::default()
        });
    }
}

/// Lowers the certainty of an estimate whose model does not reproduce the run (rule 4 of the model).
fn temper(fit: Option<&ModelFit>, estimate: &mut Estimate, confidence: &mut Confidence, because: &mut Option<String>) {
    let Some(fit) = fit.filter(|f| f.error > 0.15) else { return };
    *confidence = match *confidence {
        Confidence::High => Confidence::Medium,
        _ => Confidence::Low,
    };
    let percent = model::Share(fit.error);
    because.get_or_insert_with(|| format!("the model of the run is off by {percent}"));
    if fit.error > 0.4 {
        estimate.method = format!("{}; only the range is meant: the model is off by {percent}", estimate.method);
    }
}

/// Severity by the time that could be saved (section 2 of the rules).
#[must_use]
pub fn severity(config: &Config, saved_ms: i64, wall_ms: i64) -> Severity {
    if saved_ms <= 0 || wall_ms <= 0 {
        return Severity::Info;
    }
    let share = saved_ms as f64 / wall_ms as f64;
    let scale = if wall_ms < config.short_run_ms { 10 } else { 1 };
    let reaches = |ms: i64| saved_ms * scale >= ms;
    if share >= config.critical_share && reaches(config.critical_ms) {
        Severity::Critical
    } else if share >= config.high_share && reaches(config.high_ms) {
        Severity::High
    } else if share >= config.medium_share && reaches(config.medium_ms) {
        Severity::Medium
    } else if share >= config.low_share || reaches(config.low_ms) {
        Severity::Low
    } else {
        Severity::Info
    }
}

/// Roots first, worst first, each followed by what it explains. Gives the findings and, in the
/// same order, whether each is a root.
fn order(mut drafts: Vec<Draft>) -> (Vec<Finding>, Vec<bool>) {
    let parents: Vec<Option<usize>> = (0..drafts.len()).map(|at| cause_of(&drafts, at)).collect();
    let root = |mut at: usize| {
        // A chain of causes cannot be longer than the list; a circle ends here.
        for _ in 0..parents.len() {
            let Some(parent) = parents[at] else { break };
            at = parent;
        }
        at
    };
    for at in 0..drafts.len() {
        inherit(&mut drafts, root(at), at);
    }
    let rank = |at: usize| {
        let d = &drafts[at];
        let saved = d.finding.estimate.as_ref().map_or(0, |e| e.saved_ms);
        (
            d.finding.severity,
            d.is_failure,
            std::cmp::Reverse(d.time_ms.filter(|_| d.is_failure)),
            saved,
            d.finding.confidence,
        )
    };
    let mut places: Vec<usize> = (0..drafts.len()).collect();
    places.sort_by(|&a, &b| {
        let (ra, rb) = (root(a), root(b));
        rank(rb)
            .cmp(&rank(ra))
            .then(ra.cmp(&rb))
            .then((a != ra).cmp(&(b != rb)))
            .then(rank(b).cmp(&rank(a)))
            .then(a.cmp(&b))
    });
    let mut new_place = vec![0; drafts.len()];
    for (new, &old) in places.iter().enumerate() {
        new_place[old] = new;
    }
    let mut findings: Vec<Finding> = places.iter().map(|&old| drafts[old].finding.clone()).collect();
    for (old, parent) in parents.iter().enumerate() {
        let Some(parent) = parent else { continue };
        findings[new_place[old]].caused_by = Some(new_place[*parent]);
        findings[new_place[*parent]].causes.push(new_place[old]);
    }
    for finding in &mut findings {
        finding.causes.sort_unstable();
    }
    let roots = findings.iter().map(|f| f.caused_by.is_none()).collect();
    (findings, roots)
}

/// Who cures the root cures what it explains: the root weighs no less, and may save as much.
fn inherit(drafts: &mut [Draft], root: usize, at: usize) {
    if root == at || drafts[root].is_failure {
        return;
    }
    let (severity, high) = {
        let child = &drafts[at].finding;
        (child.severity, child.estimate.as_ref().map_or(0, |e| e.saved_ms_high))
    };
    let most = drafts[root].at_most.unwrap_or(Severity::Critical);
    let finding = &mut drafts[root].finding;
    finding.severity = finding.severity.max(severity.min(most));
    let Some(estimate) = finding.estimate.as_mut().filter(|e| e.saved_ms > 0 && e.saved_ms_high < high) else { return };
    estimate.saved_ms_high = high;
    if let Some(shown) = finding.evidence.iter_mut().find(|e| e.metric == "saved_ms_high") {
        shown.value = high.into();
    }
}

/// The finding that explains this one: the first of its causes' ids, in the order in which the
/// rule names them, found at the same place.
fn cause_of(drafts: &[Draft], at: usize) -> Option<usize> {
    let draft = &drafts[at];
    let near = |id: &&'static str| {
        drafts
            .iter()
            .enumerate()
            .position(|(i, d)| i != at && d.finding.id == **id && same_place(&d.finding, &draft.finding))
    };
    let anywhere = |id: &&'static str| drafts.iter().enumerate().position(|(i, d)| i != at && d.finding.id == **id);
    let found =
        draft.explained_by.iter().find_map(near).or_else(|| draft.explained_anywhere_by.iter().find_map(anywhere))?;
    // Two findings that name each other: the one that was added first stays the root.
    let mutual = drafts[found].explained_by.contains(&id_of(draft))
        || drafts[found].explained_anywhere_by.contains(&id_of(draft));
    (!(mutual && at < found)).then_some(found)
}

fn id_of(draft: &Draft) -> &str {
    &draft.finding.id
}

fn same_place(a: &Finding, b: &Finding) -> bool {
    match (a.scope.stage, b.scope.stage) {
        (Some(x), Some(y)) => x == y && a.scope.attempt.unwrap_or(0) == b.scope.attempt.unwrap_or(0),
        _ => match (a.scope.sql, b.scope.sql) {
            (Some(x), Some(y)) => x == y,
            _ => true,
        },
    }
}

fn summary(cx: &Context<'_>, fit: Option<ModelFit>, findings: &[Finding], roots: &[bool]) -> Summary {
    let mut counts: BTreeMap<Severity, u32> = BTreeMap::new();
    let mut by_id: BTreeMap<&str, u32> = BTreeMap::new();
    for finding in findings.iter().filter(|f| f.severity > Severity::Info) {
        *counts.entry(finding.severity).or_default() += 1;
        *by_id.entry(&finding.id).or_default() += 1;
    }
    let most = cx.config.max_per_id as u32;
    let budget = cx.budget().clone();
    Summary {
        sentence: sentence(cx, findings, roots),
        severity: counts.keys().next_back().copied(),
        counts: counts.into_iter().rev().collect(),
        time: budget.wall,
        core_time: budget.core,
        slots: cx.run.as_ref().map_or(0.0, |r| r.slots),
        run_ms: cx.stages.iter().map(|s| s.sum(model::Metric::RunMs)).sum(),
        model: fit,
        counterfactuals: counterfactuals(cx),
        more: by_id.into_iter().filter(|(_, n)| *n > most).map(|(id, n)| (id.to_owned(), n - most)).collect(),
    }
}

/// The sentence to repeat on the phone: the worst root's title, or that nothing was found.
fn sentence(cx: &Context<'_>, findings: &[Finding], roots: &[bool]) -> String {
    let shown = findings.iter().zip(roots).filter(|(f, root)| **root && f.severity > Severity::Info);
    match shown.map(|(f, _)| f).next() {
        Some(worst) => worst.title.clone(),
        None if cx.app.pasted.is_some() => "nothing in the text points to a known problem".to_owned(),
        None if ran_no_job(cx) => {
            format!("no job ran in {}: the application submitted none", words::duration(cx.wall_ms))
        }
        None if is_idle(cx) => format!(
            "nothing stands out: tasks ran for {} of {}",
            words::duration(task_wall_ms(cx)),
            words::duration(cx.wall_ms)
        ),
        None if cx.wall_ms > 0 => {
            let start = start_ms(cx).filter(|ms| ms * 3 >= cx.wall_ms);
            let start = start.map_or_else(String::new, |ms| format!(", {} of it before the first task", Millis(ms)));
            format!("nothing stands out in {} of run time{start}", Millis(cx.wall_ms))
        }
        None => "nothing stands out".to_owned(),
    }
}

/// Whether the whole log is there and holds no job.
fn ran_no_job(cx: &Context<'_>) -> bool {
    let whole = cx.app.ended_ms.is_some() && cx.app.log.starts_at_beginning;
    whole && cx.app.jobs.is_empty() && cx.app.stages.is_empty() && cx.wall_ms > 0
}

/// Time before the first task, ms.
fn start_ms(cx: &Context<'_>) -> Option<i64> {
    cx.gaps().iter().find(|gap| gap.before_all).map(crate::gaps::Gap::ms)
}

/// Time in which at least one task ran, ms.
fn task_wall_ms(cx: &Context<'_>) -> i64 {
    cx.wall_ms - cx.gaps().iter().map(crate::gaps::Gap::ms).sum::<i64>()
}

/// Whether next to nothing ran in a run of a minute or more.
fn is_idle(cx: &Context<'_>) -> bool {
    let ran = cx.stages.iter().any(StageFacts::has_tasks);
    ran && cx.wall_ms >= 60_000 && task_wall_ms(cx) * 20 < cx.wall_ms
}

/// Point 7 of the model: other slot counts, in whole slots of those that there were at most. A
/// share that is no other number of whole slots is left out.
fn counterfactuals(cx: &Context<'_>) -> Vec<Counterfactual> {
    let Some(run) = &cx.run else { return Vec::new() };
    let (most, wall) = (cx.slots.most(), run.wall_ms.max(1) as f64);
    let (Some(start), Some(end)) = (cx.app.start_ms(), cx.app.end_ms()) else { return Vec::new() };
    if most == 0 {
        return Vec::new();
    }
    let mut choices: Vec<u32> =
        [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0].iter().map(|f| (f * f64::from(most)).round().max(1.0) as u32).collect();
    choices.dedup();
    choices
        .into_iter()
        .map(|slots| {
            let factor = f64::from(slots) / f64::from(most);
            let wall_ms = run.with_slots(factor);
            // The recorded slots came and went: what they cost is the time for which they were there.
            let core_ms = (cx.slots.integral(start, end) as f64 * factor * wall_ms as f64 / wall) as i64;
            let change = format!("{:.0} % of the slots", factor * 100.0);
            Counterfactual { change, slots: f64::from(slots), wall_ms, core_ms }
        })
        .collect()
}

/// Facts of the application.
#[must_use]
pub fn facts(app: &Application) -> ApplicationFacts {
    let photon = app.sql.iter().any(|s| s.plan().nodes.iter().any(|n| n.photon));
    ApplicationFacts {
        id: app.id.to_string(),
        attempt_id: app.attempt_id.as_deref().map(str::to_owned),
        name: app.name.to_string(),
        user: app.user.to_string(),
        spark_version: app.spark_version.to_string(),
        photon,
        pasted: app.pasted.as_ref().map(|p| p.kind),
        started_ms: app.start_ms(),
        ended_ms: app.ended_ms,
        wall_ms: app.wall_ms(),
        complete: app.pasted.is_some() || app.ended_ms.is_some(),
        counts: counts(app),
        traits: traits(app, photon),
    }
}

fn traits(app: &Application, photon: bool) -> Vec<String> {
    let delta =
        app.sql.iter().any(|s| s.description.contains("Delta") || s.details.contains("org.apache.spark.sql.delta"));
    [("streaming", !app.streams.is_empty()), ("delta", delta), ("photon", photon), ("cache", !app.cached.is_empty())]
        .into_iter()
        .filter(|(_, has)| *has)
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn counts(app: &Application) -> Counts {
    let jobs = |status| app.jobs.iter().filter(|j| j.status == status).count() as u64;
    let ended = |s: &&model::Stage| matches!(s.status, StageStatus::Complete | StageStatus::Failed);
    let failed = |s: &model::Stage| {
        s.tasks
            .failures()
            .filter(|(row, reason)| {
                s.tasks.status(*row) == TaskStatus::Failed
                    && !matches!(reason, EndReason::Killed { .. } | EndReason::Resubmitted)
            })
            .count() as u64
    };
    Counts {
        events: app.log.lines,
        bad_lines: app.log.bad_lines,
        unknown_events: app.log.unknown_events.values().sum(),
        jobs: app.jobs.len() as u64,
        failed_jobs: jobs(StageStatus::Failed),
        unfinished_jobs: jobs(StageStatus::Active),
        stage_attempts_completed: app.stages.iter().filter(ended).count() as u64,
        tasks_started: app.log.task_starts,
        task_ends: app.log.task_ends,
        task_ends_not_successful: app.log.task_ends_not_successful,
        tasks: app.stages.iter().map(|s| s.tasks.len() as u64).sum(),
        task_attempts_failed: app.stages.iter().map(failed).sum(),
        sql_executions: app.sql.len() as u64,
        executors_removed: app.executors.iter().filter(|e| e.removed_ms.is_some()).count() as u64,
        streaming_batches: app.streams.iter().map(|s| s.batches.len() as u64).sum(),
    }
}
