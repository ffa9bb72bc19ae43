//! LOG_TRUNCATED, LOG_EVENTS_DROPPED, LOG_PARTIAL, LOG_CLOCK, LOG_UNKNOWN: what the reading of the
//! log itself found (section 4.9 of the rules). One finding an id; the reader's words are kept.

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::words;
use model::{Count, Metric, RemedyKind, Severity, Share, StageStatus};
use std::collections::{BTreeMap, BTreeSet};

/// Turns what the reader noted into findings.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    if cx.app.pasted.is_some() {
        return;
    }
    let found = [truncated(cx), dropped(cx), partial(cx), clock(cx), unknown(cx)];
    let before = out.drafts.len();
    found.into_iter().flatten().for_each(|d| out.push(d));
    let whole = cx.app.log.warnings.is_empty() && !out.any(&["LOG_INCOMPLETE"]);
    if out.drafts.len() == before && whole && cx.app.log.lines > 0 {
        out.fine("log", format!("all {} lines were read", Count(cx.app.log.lines)));
    }
}

/// The reader's sentences of one code, without full stops.
fn said(cx: &Context<'_>, code: &str) -> Vec<String> {
    let of = cx.app.log.warnings.iter().filter(|w| w.code == code);
    of.map(|w| w.text.trim_end_matches('.').to_owned()).collect()
}

fn lower_first(sentence: &str) -> String {
    let mut text = sentence.to_owned();
    if let Some(head) = text.get_mut(..1) {
        head.make_ascii_lowercase();
    }
    text
}

fn truncated(cx: &Context<'_>) -> Option<Draft> {
    let said = said(cx, "LOG_TRUNCATED");
    let log = &cx.app.log;
    let first = said.first()?;
    Some(
        Draft::new("LOG_TRUNCATED", format!("the log is cut: {}", lower_first(first)))
            .severity(Severity::Low)
            .evidence("unparsable_lines", log.bad_lines, "lines")
            .evidence("lines", log.lines, "lines")
            .evidence("reader", said.clone(), "")
            .remedy(
                RemedyKind::Ops,
                "Copy the log again once the application has ended; if it was killed, this is all there is",
            )
            .confirm("no warning about a cut line"),
    )
}

/// Tasks of completed stages that left no successful end.
fn missing_tasks(cx: &Context<'_>) -> (u64, u64) {
    let (mut missing, mut all) = (0, 0);
    let complete = cx.app.stages.iter().filter(|s| s.status == StageStatus::Complete && s.attempt == 0);
    for stage in complete {
        let done: BTreeSet<u32> = stage.tasks.successful().map(|r| stage.tasks.index(r)).collect();
        let known = u64::from(stage.num_tasks).saturating_sub(done.len() as u64);
        missing += known;
        all += u64::from(stage.num_tasks);
    }
    (missing, all)
}

fn dropped(cx: &Context<'_>) -> Option<Draft> {
    let (missing, all) = missing_tasks(cx);
    let log = &cx.app.log;
    let cut = u64::from(!said(cx, "LOG_TRUNCATED").is_empty());
    let bad = log.bad_lines.saturating_sub(cut);
    if missing == 0 && bad == 0 {
        return None;
    }
    let share = missing as f64 / all.max(1) as f64;
    let title = match (missing, bad) {
        (0, bad) => format!("{} of {} of the log could not be read", Count(bad), words::count(log.lines, "line")),
        _ => format!(
            "{} of {} are missing from the log: sums are lower bounds",
            Count(missing),
            words::count(all, "task end")
        ),
    };
    let draft = Draft::new("LOG_EVENTS_DROPPED", title)
        .severity(if share >= 0.01 { Severity::Medium } else { Severity::Low })
        .evidence("missing_task_ends", missing, "tasks")
        .evidence("tasks_of_completed_stages", all, "tasks")
        .evidence("missing_share", share, "share")
        .evidence("unparsable_lines", log.bad_lines, "lines")
        .evidence("lines", log.lines, "lines")
        .evidence("reader", said(cx, "LOG_EVENTS_DROPPED"), "")
        .not("an application that stopped early", "only stages that completed are counted");
    Some(match missing {
        0 => draft.remedy(
            RemedyKind::Ops,
            format!(
                "{} of the lines is lost; whatever they told is not in this report",
                Share(bad as f64 / log.lines.max(1) as f64)
            ),
        ),
        // Lines that are there and cannot be read, or files that are not there, were not dropped.
        _ if bad > 0 || cut > 0 || !said(cx, "LOG_PARTIAL").is_empty() => draft.remedy(
            RemedyKind::Ops,
            "Copy the log again, with all of its files: what is missing may stand in the part that could not be read",
        ),
        _ => draft
            .remedy(RemedyKind::Conf, "The driver's event queue overflowed: give it more room")
            .snippet("spark.scheduler.listenerbus.eventqueue.eventLog.capacity 100000")
            .computed("ten times the default of 10000 events"),
    })
}

fn partial(cx: &Context<'_>) -> Option<Draft> {
    let said = said(cx, "LOG_PARTIAL");
    let first = said.first()?;
    Some(
        Draft::new("LOG_PARTIAL", lower_first(first))
            .severity(Severity::Low)
            .evidence("reader", said.clone(), "")
            .evidence("lines", cx.app.log.lines, "lines")
            .remedy(RemedyKind::Ops, "Read the whole folder: older parts of a rolling log stand beside the newest one")
            .confirm("an ApplicationStart at the beginning"),
    )
}

fn clock(cx: &Context<'_>) -> Option<Draft> {
    let errors = cx.app.log.clock_errors;
    let late = late_executors(cx);
    (errors > 0 || late > 0).then(|| {
        let title = match errors {
            0 => late_title(cx, late),
            n => format!(
                "{} with a finish before the start, which counts as 0: clocks of the machines differ",
                words::count(n, "task")
            ),
        };
        Draft::new("LOG_CLOCK", title)
            .severity(Severity::Low)
            .evidence("clock_errors", errors, "tasks")
            .evidence("executors_added_after_their_tasks", late, "executors")
            .remedy(RemedyKind::Ops, "Let a time service keep the clocks of all machines alike")
            .confirm("no task that finishes before it starts")
    })
}

/// With how far the clock is off, in days, where the reader left it out for that.
fn late_title(cx: &Context<'_>, late: u64) -> String {
    let who = words::count(late, "executor");
    let was = if late == 1 { "was" } else { "were" };
    match said(cx, "LOG_CLOCK").into_iter().find(|text| text.starts_with("Executor events")) {
        Some(text) => lower_first(&text),
        None => format!("{who} {was} added long after tasks had run there: times in this log do not fit together"),
    }
}

/// Executors whose start is more than an hour after a task that they ran.
fn late_executors(cx: &Context<'_>) -> u64 {
    const HOUR_MS: i64 = 3_600_000;
    let mut first = vec![i64::MAX; cx.app.executors.len()];
    for stage in &cx.app.stages {
        for row in 0..stage.tasks.len() {
            if let Some(known) = first.get_mut(stage.tasks.executor(row)) {
                *known = (*known).min(stage.tasks.value(Metric::LaunchMs, row));
            }
        }
    }
    let added = cx.app.executors.iter().map(|e| e.added_ms.unwrap_or(0));
    added.zip(first).filter(|(added, first)| added - HOUR_MS > *first).count() as u64
}

fn unknown(cx: &Context<'_>) -> Option<Draft> {
    let events: u64 = cx.app.log.unknown_events.values().sum();
    let mut nodes: BTreeMap<&str, u64> = BTreeMap::new();
    let logged = cx.app.sql.iter().map(model::SqlExecution::plan);
    for name in logged.flat_map(|p| &p.unknown) {
        *nodes.entry(name).or_default() += 1;
    }
    if events == 0 && nodes.is_empty() {
        return None;
    }
    let operators: u64 = nodes.values().sum();
    let title = format!(
        "{} and {} of kinds that are not known here",
        words::count(events, "event"),
        words::count(operators, "plan node")
    );
    let names = cx.app.log.unknown_events.iter().map(|(name, n)| format!("{name} ({n})"));
    let names = names.chain(nodes.iter().map(|(name, n)| format!("{name} ({n})"))).take(20).collect::<Vec<_>>();
    Some(
        Draft::new("LOG_UNKNOWN", title)
            .severity(Severity::Info)
            .evidence("unknown_events", events, "events")
            .evidence("unknown_nodes", operators, "nodes")
            .evidence("names", names, ""),
    )
}
