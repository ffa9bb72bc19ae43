//! EXECUTOR_LOST, FAIL_SPOT, FAIL_DECOMMISSION, AUTOSCALE_REMOVED: executors that went away
//! (section 4.5). Looked at before any diagnosis of memory.

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, find};
use crate::words;
use model::{Confidence, Origin, RemedyKind, Severity};
use std::collections::BTreeSet;

/// Looks at removed executors.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::Spot, spot);
    failure::each(cx, out, Cause::Decommission, decommission);
    failure::each(cx, out, Cause::Autoscale, autoscale);
    failure::each(cx, out, Cause::ExecutorLost, lost);
}

/// What went away with the executors, for all four.
fn losses(f: &Failure<'_>, what: &str) -> Draft {
    let blame = &f.cx.blame;
    let executors = blame.lost_executors(f.trouble);
    let reasons: BTreeSet<String> = blame
        .members(f.trouble)
        .filter(|i| i.origin == Origin::Executor)
        .map(|i| failure::shortened(&i.message))
        .collect();
    let reason = reasons.iter().next().cloned().unwrap_or_else(|| failure::shortened(&f.first.message));
    let (repeated, run_ms) = f.repeated_work();
    let running = f.running_lost_ms();
    let attempts = f.attempts();
    let mut effects = Vec::new();
    if attempts > 0 {
        effects.push(words::count(attempts as u64, "failed attempt"));
    }
    if repeated > 0 {
        effects.push(format!("{} to repeat", words::count(repeated, "finished task")));
    }
    let effect = if effects.is_empty() { String::new() } else { format!(": {}", effects.join(", ")) };
    let who = match executors.len() {
        0 => "an executor".to_owned(),
        1 => format!("executor {}", executors[0]),
        n => words::count(n as u64, "executor"),
    };
    let how = if executors.len() > 1 { format!("were {what}") } else { format!("was {what}") };
    let why = if reason.is_empty() { String::new() } else { format!(" ({})", spelled(&reason)) };
    let ids: Vec<String> = executors.iter().map(|id| id.to_string()).collect();
    let mut draft = f
        .draft(format!("{who} {how}{why}{effect}"))
        .evidence("executors", ids, "")
        .evidence("executors_lost", executors.len(), "executors")
        .evidence("removed_reason", reason, "")
        .evidence("resubmitted_tasks", repeated, "tasks")
        .evidence("recomputed_core_ms", run_ms + running, "ms");
    if let Some(code) = exit_code(&f.text()) {
        draft = draft.evidence("exit_code", code, "");
    }
    draft.finding.scope.executor = executors.first().map(|id| id.to_string());
    draft.confirm("executors removed, and tasks resubmitted")
}

/// A reason with what its exit code means, where that is not said.
fn spelled(reason: &str) -> String {
    let signal = match exit_code(reason) {
        Some(137) => "SIGKILL",
        Some(143) => "SIGTERM",
        _ => return reason.to_owned(),
    };
    match reason.contains(signal) {
        true => reason.to_owned(),
        false => format!("{reason}: {signal}"),
    }
}

fn exit_code(text: &str) -> Option<i64> {
    find(r"(?i)exit(?:ed)?(?: with)?[ _]?(?:exit )?(?:code|status)?:? ?\(?(-?\d+)", text)?[1].parse().ok()
}

fn spot(f: &Failure<'_>) -> Draft {
    let draft = losses(f, "taken away by the cloud or the cluster");
    let proven = failure::has_any(&f.text().to_lowercase(), &["spot", "preempt", "-102", "reclaim", "terminat"]);
    let draft = match proven {
        true => draft,
        false => draft.sure(Confidence::Medium, "exit code 143 says that the process was asked to stop, not by whom"),
    };
    draft
        .not("memory", "the machine went away; no OutOfMemoryError and no memory limit is named")
        .remedy(RemedyKind::Compute, "Keep the driver on demand, and a share of the workers: on-demand fallback for spot machines, several machine types")
        .remedy(RemedyKind::Conf, "Move the shuffle files away in time: spark.decommission.enabled=true, spark.storage.decommission.enabled=true, spark.storage.decommission.shuffleBlocks.enabled=true; or an external shuffle service")
        .useless("more memory per executor", "the machine would be taken all the same")
}

fn decommission(f: &Failure<'_>) -> Draft {
    losses(f, "decommissioned")
        .not("memory", "the cluster manager asked the executor to go")
        .remedy(RemedyKind::Conf, "Let it hand over its blocks: spark.storage.decommission.enabled=true and spark.storage.decommission.shuffleBlocks.enabled=true, with time enough before the machine goes (spark.executor.decommission.killInterval)")
        .remedy(RemedyKind::Compute, "Scale down between jobs, not during a stage")
        .useless("more memory per executor", "memory was not the reason")
}

fn autoscale(f: &Failure<'_>) -> Draft {
    let draft = losses(f, "removed by scaling down").not("a crash", "Spark or the cluster removed it on purpose");
    // Idle executors that are given back are what dynamic allocation is for.
    if costs_nothing(f) {
        return draft.severity(Severity::Info);
    }
    let set = |key| f.cx.app.conf_bool(key, false);
    let keeps_files = set("spark.shuffle.service.enabled") || set("spark.dynamicAllocation.shuffleTracking.enabled");
    let draft = match keeps_files {
        true => draft,
        false => draft
            .remedy(RemedyKind::Conf, "Keep executors that hold shuffle files")
            .snippet("spark.dynamicAllocation.shuffleTracking.enabled true"),
    };
    let timeout = f.cx.app.conf("spark.dynamicAllocation.executorIdleTimeout").unwrap_or("60s");
    draft.remedy(
        RemedyKind::Conf,
        format!("Wait longer before an idle executor is given back: spark.dynamicAllocation.executorIdleTimeout is {timeout}"),
    )
}

/// Whether nothing that ran or had run went away with the executors.
fn costs_nothing(f: &Failure<'_>) -> bool {
    f.cx.app.pasted.is_none() && f.attempts() == 0 && f.repeated_work().0 == 0
}

/// Whether a task ever ran on one of the executors that went away.
fn had_tasks(f: &Failure<'_>) -> bool {
    let ids = f.cx.blame.lost_executors(f.trouble);
    let gone = |at: usize| f.cx.executor(at).is_some_and(|e| ids.iter().any(|id| **id == *e.id));
    f.cx.app.stages.iter().any(|s| (0..s.tasks.len()).any(|row| gone(s.tasks.executor(row))))
}

fn lost(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let draft = losses(f, "lost");
    let killed = failure::has_any(&text, &["137", "SIGKILL"]);
    let native = crate::cause::is_native_crash(&text)
        || failure::has_any(&text, &["code 134", "code 139", "status: 134", "status: 139"]);
    let draft = draft.sure(Confidence::Medium, "nothing in the input proves why it went away");
    let draft = match (costs_nothing(f), f.cx.app.pasted.is_none() && had_tasks(f)) {
        (true, false) => draft.severity(Severity::Info),
        (true, true) => draft.severity(Severity::Low),
        _ => draft,
    };
    let draft = match (killed, native) {
        (_, true) => draft.evidence("cause", "native crash", "").not("memory", "a crash in native code (signal 6 or 11) is no memory limit").remedy(
            RemedyKind::Ops,
            "Read hs_err_pid*.log on that host: the problematic frame names the native library; then update or remove it",
        ),
        (true, _) => draft.evidence("cause", "unknown: killed by SIGKILL", "").not("memory", "exit code 137 alone is no proof: any SIGKILL gives it, often the out-of-memory killer of the kernel or the container, and no memory message stands beside it"),
        _ => draft.evidence("cause", "unknown", "").not("memory", "no memory message stands beside the loss"),
    };
    draft
        .remedy(RemedyKind::Ops, "See the end of that executor's stderr, the kernel log of its host (oom-kill) and the events of the cluster manager within a minute of the loss")
        .remedy(RemedyKind::Conf, "So that a loss costs less: an external shuffle service, which keeps the files of an executor that is gone")
        .useless("more retries", "they repeat the work; they do not keep the executor")
        .useless("decommissioning", "it moves files while an executor is asked to go; a process that is killed has no time for it")
}
