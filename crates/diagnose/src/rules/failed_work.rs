//! FAILED_WORK: work that was thrown away and done again (section 4.6 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use model::{EndReason, Metric, Millis, RemedyKind, Severity, Share, TaskStatus};
use std::collections::BTreeSet;

/// Adds up failed, killed, resubmitted and repeated work.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let run: i64 = cx.stages.iter().map(|s| s.sum(Metric::RunMs)).sum();
    let lost = lost(cx);
    let total = lost.failed_ms + lost.killed_ms + lost.resubmitted_ms + lost.repeated_ms;
    if run == 0 {
        return;
    }
    match total as f64 / run as f64 {
        share if share >= cx.config.lost_work_share && total > 1_000 => out.push(draft(cx, &lost, total, share)),
        _ if total == 0 => out.fine("failed tasks", "no task failed or was repeated"),
        share => out.fine("failed tasks", format!("{} of the run time was repeated", Share(share))),
    }
}

#[derive(Default)]
struct Lost {
    failed: u64,
    failed_ms: i64,
    killed: u64,
    killed_ms: i64,
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
        let before = lost.failed + lost.killed + lost.resubmitted;
        for row in 0..tasks.len() {
            // A task that died with its executor reports no run time: its duration counts.
            let ms = tasks.value(Metric::RunMs, row).max(tasks.value(Metric::DurationMs, row));
            match (tasks.status(row), tasks.failure(row)) {
                (_, Some(EndReason::Killed { reason })) if reason.contains("another attempt succeeded") => {}
                (TaskStatus::Failed, _) => (lost.failed, lost.failed_ms) = (lost.failed + 1, lost.failed_ms + ms),
                (TaskStatus::Killed, _) => (lost.killed, lost.killed_ms) = (lost.killed + 1, lost.killed_ms + ms),
                _ => {}
            }
        }
        lost.resubmitted += u64::from(stage.resubmitted);
        lost.resubmitted_ms += stage.resubmitted_run_ms;
        if stage.attempt > 0 {
            lost.attempts += 1;
            // What an attempt after the first computes was computed before, as far as it succeeds.
            lost.repeated_ms += tasks.successful().map(|r| tasks.value(Metric::RunMs, r)).sum::<i64>();
        }
        if lost.failed + lost.killed + lost.resubmitted > before || stage.attempt > 0 {
            lost.stages.insert(stage.id);
        }
    }
    lost
}

fn draft(cx: &Context<'_>, lost: &Lost, total: i64, share: f64) -> Draft {
    let title = format!("{} of work ({} of the run time) was lost or done again: {}", Millis(total), Share(share), parts(lost));
    let severity = match share {
        s if s >= 0.25 => Severity::Medium,
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
        .evidence("resubmitted_tasks", lost.resubmitted, "tasks")
        .evidence("resubmitted_ms", lost.resubmitted_ms, "ms")
        .evidence("stage_reattempts", lost.attempts, "stages")
        .evidence("repeated_ms", lost.repeated_ms, "ms")
        .not("speculation", "attempts that lost against a copy are counted apart")
        .explained_anywhere_by(&[
            "FAIL_CODE", "FAIL_DEPENDENCY", "OOM_EXECUTOR_HEAP", "OOM_CONTAINER", "OOM_PYTHON", "FAIL_SPOT", "FAIL_DECOMMISSION",
            "AUTOSCALE_REMOVED", "EXECUTOR_LOST", "FAIL_FETCH", "FAIL_DISK_FULL", "FAIL_HEARTBEAT", "FAIL_RESULT_SIZE",
        ])
        .remedy(RemedyKind::Ops, "Mend what made the tasks fail; the first failure in time tells")
        .useless("more retries", "each repeats the work once more")
        .confirm("failed and killed tasks, and stage attempts after the first");
    draft.finding.scope.stages = lost.stages.iter().copied().collect();
    draft
}

fn parts(lost: &Lost) -> String {
    let part = |n: u64, ms: i64, what: &str| (n > 0).then(|| format!("{n} {what} ({})", Millis(ms)));
    let parts = [
        part(lost.failed, lost.failed_ms, "failed"),
        part(lost.killed, lost.killed_ms, "killed"),
        part(lost.resubmitted, lost.resubmitted_ms, "resubmitted tasks"),
        part(lost.attempts, lost.repeated_ms, "stage attempts after the first"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
