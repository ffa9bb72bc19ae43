//! SPECULATION_WASTE: copies of tasks whose work was thrown away (section 4.6 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::words;
use model::{EndReason, Metric, Millis, RemedyKind, Severity, TaskStatus};

/// Looks at every stage with speculative copies.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let run: i64 = cx.stages.iter().map(|s| s.sum(Metric::RunMs)).sum();
    let before = out.drafts.len();
    let mut copies = 0;
    for facts in &cx.stages {
        let losers = losers(cx, facts);
        copies += losers.len();
        let lost: i64 = losers.iter().map(|l| l.ms).sum();
        if lost > 0 && lost as f64 >= cx.config.lost_work_share * run as f64 {
            out.push(draft(cx, facts, &losers, lost, run));
        }
    }
    if copies > 0 && out.drafts.len() == before {
        out.fine("speculation", format!("{} thrown away, little time", words::count(copies as u64, "attempt")));
    }
}

/// An attempt that lost against another one of the same index.
struct Loser {
    index: u32,
    ms: i64,
    /// Whether the copy lost (rather than the original).
    copy: bool,
    winner_ms: i64,
}

fn losers(cx: &Context<'_>, facts: &StageFacts<'_>) -> Vec<Loser> {
    let tasks = &facts.stage.tasks;
    let rows = 0..tasks.len();
    if !rows.clone().any(|r| tasks.speculative(r)) {
        return Vec::new();
    }
    let winner = |index| tasks.successful().find(|&r| tasks.index(r) == index);
    rows.filter(|&r| lost(facts, r))
        .filter_map(|r| {
            let won = winner(tasks.index(r))?;
            // One of the two must be a copy: a retry after a failure is no speculation.
            (tasks.speculative(r) || tasks.speculative(won)).then(|| Loser {
                index: tasks.index(r),
                ms: spent_ms(cx, facts, r),
                copy: tasks.speculative(r),
                winner_ms: tasks.value(Metric::DurationMs, won),
            })
        })
        .collect()
}

/// Killed because the other attempt was first, or without an end though the other one is done.
fn lost(facts: &StageFacts<'_>, row: usize) -> bool {
    let tasks = &facts.stage.tasks;
    match (tasks.status(row), tasks.failure(row)) {
        (TaskStatus::Running, _) => true,
        (_, Some(EndReason::Killed { reason })) => reason.contains("another attempt succeeded"),
        _ => false,
    }
}

/// An attempt without an end was busy at least until its stage was done.
fn spent_ms(cx: &Context<'_>, facts: &StageFacts<'_>, row: usize) -> i64 {
    let tasks = &facts.stage.tasks;
    match tasks.value(Metric::FinishMs, row) {
        0 => {
            let end = facts.stage.completed_ms.or(cx.app.end_ms()).unwrap_or_default();
            (end - tasks.value(Metric::LaunchMs, row)).max(0)
        }
        _ => tasks.value(Metric::DurationMs, row),
    }
}

fn copies(n: usize) -> String {
    if n == 1 { "one speculative copy".to_owned() } else { format!("{} speculative copies", words::number(n as u64)) }
}

fn draft(cx: &Context<'_>, facts: &StageFacts<'_>, losers: &[Loser], lost: i64, run: i64) -> Draft {
    let originals = losers.iter().filter(|l| !l.copy).count();
    let share = lost as f64 / (run + lost).max(1) as f64;
    let title = match originals {
        0 => {
            format!("stage {} threw away {} of work: {} lost the race", facts.key(), Millis(lost), copies(losers.len()))
        }
        n => format!(
            "{} of stage {} hung until a speculative copy won; {} of work was thrown away",
            words::count(n as u64, "task"),
            facts.key(),
            Millis(lost)
        ),
    };
    let winner = losers.iter().map(|l| l.winner_ms).max().unwrap_or(0);
    let draft = Draft::new("SPECULATION_WASTE", title)
        .at_stage(facts)
        .severity(if share >= 0.2 { Severity::Medium } else { Severity::Low })
        .evidence("lost_ms", lost, "ms")
        .seen_at(format!("stage {} tasks", facts.key()))
        .evidence("lost_share", share, "share")
        .over(cx.config.lost_work_share)
        .evidence("attempts_thrown_away", losers.len(), "tasks")
        .evidence("originals_that_lost", originals, "tasks")
        .evidence("winner_duration_ms", winner, "ms")
        .evidence("index", losers[0].index, "")
        .explained_by(&["STRAGGLER_NODE", "STRAGGLER_TASK", "SKEW_KEY"]);
    let draft = draft.evidence("idle_slots", idle_slots(facts), "slots");
    match originals > 0 {
        true => draft
            .not("useless copies", format!("the copy was done in {}", Millis(winner)))
            .remedy(
                RemedyKind::Ops,
                "Find out why the first attempt hung: its executor, host and input; speculation only hides it",
            )
            .confirm("tasks killed because another attempt succeeded"),
        false => copies_lost(cx, draft, facts, losers, winner),
    }
}

/// Slots that the stage's own tasks did not need: a copy there takes nothing from anybody.
fn idle_slots(facts: &StageFacts<'_>) -> i64 {
    (facts.slots.round() as i64 - i64::from(facts.stage.num_tasks)).max(0)
}

fn copies_lost(cx: &Context<'_>, draft: Draft, facts: &StageFacts<'_>, losers: &[Loser], winner: i64) -> Draft {
    let long = losers.iter().map(|l| l.ms).max().unwrap_or(0);
    let draft = match idle_slots(facts) {
        0 => draft,
        n => draft.severity(Severity::Info).not(
            "slots taken from other tasks",
            format!("{} had no task of this stage", words::count(n.unsigned_abs(), "slot")),
        ),
    };
    let draft = match long * 2 >= winner {
        // A copy on another executor waited as well: no machine is to blame.
        true => draft
            .not("a slow executor", format!("a copy elsewhere had run for {} when the task was done in {}", Millis(long), Millis(winner)))
            .remedy(RemedyKind::Code, "Look at what the task waits for or computes: its copy took as long on another executor, so the time is in the code or its data"),
        false => draft,
    };
    later(cx, draft)
        .useless("speculation against skew", "a copy of a task with more data is as slow as the task")
        .confirm("tasks killed because another attempt succeeded")
}

/// Values that start copies later than those in force; none when they are late already.
fn later(cx: &Context<'_>, draft: Draft) -> Draft {
    let now = Speculation::of(cx);
    let mut lines = Vec::new();
    if now.multiplier < 3.0 {
        lines.push("spark.speculation.multiplier 3");
    }
    if now.quantile < 0.9 {
        lines.push("spark.speculation.quantile 0.9");
    }
    match lines.is_empty() {
        true => draft,
        false => draft
            .remedy(RemedyKind::Conf, "Start copies later, and only of tasks that are far slower than the others")
            .snippet(lines.join("\n"))
            .computed(format!("now multiplier {}, quantile {}", now.multiplier, now.quantile)),
    }
}

/// When Spark starts a copy: once this share of a stage's tasks is done, of a task that has run
/// this many times the median.
#[derive(Clone, Copy, Debug)]
pub struct Speculation {
    /// `spark.speculation.multiplier`; by default 3, before Spark 4.0 1.5.
    pub multiplier: f64,
    /// `spark.speculation.quantile`; by default 0.9, before Spark 4.0 0.75.
    pub quantile: f64,
}

impl Speculation {
    /// As set, else by the default of the version.
    #[must_use]
    pub fn of(cx: &Context<'_>) -> Self {
        let number = |key, default| cx.app.conf(key).and_then(|v| v.trim().parse().ok()).unwrap_or(default);
        let new = cx.app.version().is_some_and(|v| v >= (4, 0));
        let (multiplier, quantile) = if new { (3.0, 0.9) } else { (1.5, 0.75) };
        Self {
            multiplier: number("spark.speculation.multiplier", multiplier),
            quantile: number("spark.speculation.quantile", quantile),
        }
    }
}
