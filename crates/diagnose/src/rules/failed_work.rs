//! FAILED_WORK: work that was thrown away and done again (section 4.6 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::run_model;
use model::{EndReason, Incident, Metric, Millis, Origin, RemedyKind, Severity, Share, Stage, StageStatus, TaskStatus};
use std::collections::BTreeSet;

/// Adds up failed, killed, resubmitted and repeated work.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let lost = lost(cx);
    let total = lost.failed_ms + lost.killed_ms + lost.cut_ms + lost.resubmitted_ms + lost.repeated_ms;
    // Repeated work is part of the work that succeeded; failed work is not.
    let all = lost.successful_ms + lost.failed_ms + lost.killed_ms + lost.cut_ms;
    if all == 0 {
        return;
    }
    match total as f64 / all as f64 {
        share if share >= cx.config.lost_work_share && total > 1_000 => out.push(draft(cx, &lost, total, share)),
        _ if total == 0 => out.fine("failed tasks", "no task failed or was repeated"),
        share => out.fine("failed tasks", format!("{} of the task time was lost or done again", Share(share))),
    }
}

#[derive(Default)]
struct Lost {
    successful_ms: i64,
    failed: u64,
    failed_ms: i64,
    killed: u64,
    killed_ms: i64,
    /// Tasks without an end, stopped with their stage.
    cut: u64,
    cut_ms: i64,
    resubmitted: u64,
    resubmitted_ms: i64,
    /// Stage attempts after the first.
    attempts: u64,
    repeated_ms: i64,
    stages: BTreeSet<u32>,
}

fn lost(cx: &Context<'_>) -> Lost {
    let mut lost = Lost::default();
    for facts in &cx.stages {
        let (stage, tasks) = (facts.stage, &facts.stage.tasks);
        let before = lost.failed + lost.killed + lost.cut + lost.resubmitted;
        for row in 0..tasks.len() {
            // A task that died with its executor reports no run time: its duration counts.
            let ms = tasks.value(Metric::RunMs, row).max(tasks.value(Metric::DurationMs, row));
            match (tasks.status(row), tasks.failure(row)) {
                (_, Some(EndReason::Killed { reason })) if reason.contains("another attempt succeeded") => {}
                (TaskStatus::Failed, _) => (lost.failed, lost.failed_ms) = (lost.failed + 1, lost.failed_ms + ms),
                (TaskStatus::Success, _) => lost.successful_ms += ms,
                (TaskStatus::Killed, _) => (lost.killed, lost.killed_ms) = (lost.killed + 1, lost.killed_ms + ms),
                // Cut off when their stage failed or the application ended; without either they
                // are still at work, and a copy that lost a race is no failure.
                (TaskStatus::Running, _) if was_cut_off(cx, stage, row) => {
                    let until = run_model::last_moment(cx.app, stage);
                    lost.cut += 1;
                    lost.cut_ms += run_model::slot_ms(stage, row, until);
                }
                (TaskStatus::Running, _) => {}
            }
        }
        lost.resubmitted += u64::from(stage.resubmitted);
        lost.resubmitted_ms += stage.resubmitted_run_ms;
        if stage.attempt > 0 {
            lost.attempts += 1;
            lost.repeated_ms += repeated_ms(cx, stage);
        }
        if lost.failed + lost.killed + lost.cut + lost.resubmitted > before || stage.attempt > 0 {
            lost.stages.insert(stage.id);
        }
    }
    lost
}

fn was_cut_off(cx: &Context<'_>, stage: &Stage, row: usize) -> bool {
    let over = stage.status == StageStatus::Failed || stage.completed_ms.is_none() && cx.app.ended_ms.is_some();
    let tasks = &stage.tasks;
    over && !tasks.successful().any(|r| tasks.index(r) == tasks.index(row))
}

/// Work of a later attempt on partitions that an earlier attempt had finished: its output was lost.
fn repeated_ms(cx: &Context<'_>, stage: &Stage) -> i64 {
    let partition = |s: &Stage, row| match s.tasks.partition(row) {
        -1 => i64::from(s.tasks.index(row)),
        known => known,
    };
    let earlier = cx.app.stages.iter().filter(|s| s.id == stage.id && s.attempt < stage.attempt);
    let done: BTreeSet<i64> = earlier.flat_map(|s| s.tasks.successful().map(move |r| partition(s, r))).collect();
    let again = stage.tasks.successful().filter(|&r| done.contains(&partition(stage, r)));
    again.map(|r| stage.tasks.value(Metric::RunMs, r)).sum()
}

fn draft(cx: &Context<'_>, lost: &Lost, total: i64, share: f64) -> Draft {
    let title =
        format!("{} of task time ({} of all) was lost or done again: {}", Millis(total), Share(share), parts(lost));
    let severity = match share {
        s if s >= 0.25 && total >= 60_000 => Severity::Medium,
        _ => Severity::Low,
    };
    let mut draft = Draft::new("FAILED_WORK", title)
        .severity(severity)
        .evidence("lost_ms", total, "ms")
        .evidence("lost_share", share, "share")
        .over(cx.config.lost_work_share)
        .evidence("failed_tasks", lost.failed, "tasks")
        .evidence("failed_ms", lost.failed_ms, "ms")
        .evidence("killed_tasks", lost.killed, "tasks")
        .evidence("killed_ms", lost.killed_ms, "ms")
        .evidence("cut_off_tasks", lost.cut, "tasks")
        .evidence("cut_off_ms", lost.cut_ms, "ms")
        .evidence("resubmitted_tasks", lost.resubmitted, "tasks")
        .evidence("resubmitted_ms", lost.resubmitted_ms, "ms")
        .evidence("stage_reattempts", lost.attempts, "stages")
        .evidence("repeated_ms", lost.repeated_ms, "ms")
        .not("speculation", "attempts that lost against a copy are counted apart")
        .remedy(RemedyKind::Ops, "Mend what made the tasks fail; the first failure in time tells")
        .useless("more retries", "each repeats the work once more")
        .confirm("failed and killed tasks, and stage attempts after the first");
    draft.finding.scope.stages = lost.stages.iter().copied().collect();
    match sole_cause(cx) {
        Some(causes) => draft.explained_anywhere_by(&causes),
        None => draft,
    }
}

/// The findings that explain all failed tasks: those of the one root of them, if there is one.
fn sole_cause(cx: &Context<'_>) -> Option<[&'static str; 2]> {
    let blame = &cx.blame;
    let of_tasks = |i: &Incident| matches!(i.origin, Origin::Task | Origin::Fetch | Origin::TaskOfLostExecutor);
    let with_tasks = (0..blame.troubles.len()).filter(|&t| blame.all(&blame.troubles[t]).any(of_tasks));
    let mut roots: BTreeSet<usize> = with_tasks.map(|t| blame.root(t)).collect();
    if roots.is_empty() {
        // No task failed by itself: what ended the job cut them off.
        roots.extend((0..blame.troubles.len()).filter(|&t| blame.troubles[t].fatal).map(|t| blame.root(t)));
    }
    match roots.into_iter().collect::<Vec<_>>().as_slice() {
        // What failed on a bad executor only is filed under that.
        [root] => Some([blame.troubles[*root].cause.id(), "BAD_EXECUTOR"]),
        _ => None,
    }
}

fn parts(lost: &Lost) -> String {
    let part = |n: u64, ms: i64, what: &str| (n > 0).then(|| format!("{n} {what} ({})", Millis(ms)));
    let parts = [
        part(lost.failed, lost.failed_ms, "failed"),
        part(lost.killed, lost.killed_ms, "killed"),
        part(lost.cut, lost.cut_ms, "cut off with their stage"),
        part(lost.resubmitted, lost.resubmitted_ms, "resubmitted tasks"),
        (lost.repeated_ms > 0).then(|| format!("{} repeated by later stage attempts", Millis(lost.repeated_ms))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
