//! LOG_INCOMPLETE: the log does not hold the end of the application (section 4.9 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::words;
use model::{Job, Millis, RemedyKind, Severity, StageStatus, TaskStatus};

/// Looks for the end of the application.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    if cx.app.pasted.is_some() || cx.app.log.lines == 0 || cx.app.ended_ms.is_some() {
        return;
    }
    out.push(draft(cx));
}

fn draft(cx: &Context<'_>) -> Draft {
    let open: Vec<&Job> = cx.app.jobs.iter().filter(|j| j.status == StageStatus::Active).collect();
    let running: usize = cx.app.stages.iter().map(|s| s.count(TaskStatus::Running)).sum();
    let title = match open.as_slice() {
        [] => format!("the log has no end of the application: it stops after {}", Millis(cx.wall_ms)),
        [job] => format!(
            "the log has no end of the application: it stops after {} while job {} is running",
            Millis(cx.wall_ms),
            job.id
        ),
        more => format!(
            "the log has no end of the application: it stops after {} while {} are running",
            Millis(cx.wall_ms),
            words::count(more.len() as u64, "job")
        ),
    };
    let cut = cx.app.log.warnings.iter().any(|w| w.code == "LOG_TRUNCATED");
    let mut draft = Draft::new("LOG_INCOMPLETE", title)
        .severity(severity(cx, !open.is_empty() || running > 0 || cut))
        .evidence("wall_ms", cx.wall_ms, "ms")
        .evidence("tasks_started", cx.app.log.task_starts, "tasks")
        .evidence("unparsable_lines", cx.app.log.bad_lines, "lines")
        .evidence("running_tasks", running, "tasks")
        .not("an application that ended well", "Spark writes ApplicationEnd when its context stops")
        .remedy(RemedyKind::Ops, "Take durations as \"at least\". Whether the driver was killed or still runs is in its own log and in the cluster's events")
        .confirm("a log without the ending .inprogress");
    if !open.is_empty() {
        let names: Vec<String> = open.iter().map(|j| format!("job {}", j.id)).collect();
        draft = draft.evidence("unfinished_jobs", names, "");
    }
    draft.finding.scope.job = open.first().map(|j| j.id);
    draft
}

/// Databricks seldom writes an end: without anything running its absence says nothing. Where
/// something failed that is the matter, and the end of the log a remark.
fn severity(cx: &Context<'_>, in_work: bool) -> Severity {
    let failed = cx.blame.troubles.iter().any(|t| t.fatal);
    if failed {
        return Severity::Low;
    }
    match (in_work, cx.app.is_databricks()) {
        (true, false) => Severity::Medium,
        (true, true) | (false, false) => Severity::Low,
        (false, true) => Severity::Info,
    }
}
