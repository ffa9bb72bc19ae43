//! FAIL_HEARTBEAT: executors that did not report in time (section 4.5).

use crate::blame::{Blame, Trouble};
use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, find};
use model::{Confidence, Metric, RemedyKind, Share};
use std::collections::BTreeSet;

/// Looks at lost heartbeats.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::Heartbeat, heartbeat);
}

/// Silences in ms, in the words of their lines.
fn silences(blame: &Blame, trouble: &Trouble) -> Vec<i64> {
    let of = |text: &str| find(r"(?:heartbeats: |timed out after )(\d+) ?ms", text).and_then(|m| m[1].parse().ok());
    blame.members(trouble).filter_map(|i| of(&i.message).or_else(|| of(&i.stack))).collect()
}

/// `4 executors, 123-125 s`.
#[must_use]
pub fn summary(blame: &Blame, trouble: &Trouble) -> String {
    let executors = blame.lost_executors(trouble).len().max(1);
    let silences = silences(blame, trouble);
    let noun = if executors == 1 { "executor" } else { "executors" };
    match (silences.iter().min(), silences.iter().max()) {
        (Some(min), Some(max)) if min / 1_000 != max / 1_000 => {
            format!("{executors} {noun}, {}-{} s", min / 1_000, max / 1_000)
        }
        (Some(min), _) => format!("{executors} {noun}, {} s", min / 1_000),
        _ => format!("{executors} {noun}"),
    }
}

fn heartbeat(f: &Failure<'_>) -> Draft {
    let blame = &f.cx.blame;
    let silences = silences(blame, f.trouble);
    let executors = blame.lost_executors(f.trouble).len().max(f.executors().len());
    let timeout = find(r"exceeds timeout (\d+) ?ms", &f.text()).and_then(|m| m[1].parse::<i64>().ok());
    let draft = f
        .draft(format!("no heartbeat in time: {}", summary(blame, f.trouble)))
        .evidence("summary", summary(blame, f.trouble), "")
        .evidence("executors", executors, "executors")
        .evidence("silence_ms_max", silences.iter().max().copied().unwrap_or_default(), "ms");
    let draft = match timeout {
        Some(timeout) => draft.over(timeout as f64).evidence("timeout_ms", timeout, "ms"),
        None => draft,
    };
    with_cause(f, draft, executors)
}

/// Long pauses of the collector, one host, or all at once: what the figures can tell.
fn with_cause(f: &Failure<'_>, draft: Draft, executors: usize) -> Draft {
    if f.trouble.caused_by.is_some() {
        return draft.remedy(RemedyKind::Ops, "Mend what stands before it: the heartbeats stopped because of it");
    }
    let hosts: BTreeSet<&str> = f.cx.blame.members(f.trouble).filter_map(|i| i.host.as_deref()).collect();
    let gc = gc_share(f);
    if let Some(share) = gc.filter(|&s| s > 0.3) {
        return remedies(
            draft.evidence("cause", "garbage collection", "").evidence("gc_share", share, "share").over(0.3),
            Some(share),
        );
    }
    let cause = match (executors, hosts.len()) {
        (2.., 1) => "the network or the host: all executors are of one host",
        (2.., _) => "the driver paused, or the network: several executors fell silent together",
        _ => "not in the log",
    };
    let draft = draft.evidence("cause", cause, "").sure(
        Confidence::Medium,
        "why the executor fell silent stands in its own log (GC, OutOfMemoryError, dead thread)",
    );
    let draft = match gc {
        Some(share) => draft
            .evidence("gc_share", share, "share")
            .not("garbage collection", format!("its tasks spent {} on it", Share(share))),
        None => draft,
    };
    remedies(draft, None)
}

/// Collection share of the tasks that ran on the first silent executor.
fn gc_share(f: &Failure<'_>) -> Option<f64> {
    let lost = f.first.executor.as_ref()?;
    let (mut gc, mut run) = (0, 0);
    for stage in &f.cx.app.stages {
        let tasks = &stage.tasks;
        let own = (0..tasks.len()).filter(|&row| f.cx.executor(tasks.executor(row)).is_some_and(|e| *e.id == **lost));
        for row in own {
            gc += tasks.value(Metric::GcMs, row);
            run += tasks.value(Metric::RunMs, row);
        }
    }
    (run > 0).then(|| gc as f64 / run as f64)
}

fn remedies(draft: Draft, gc: Option<f64>) -> Draft {
    let first = match gc {
        Some(share) => format!("Take pressure off the heap: its tasks spent {} in collection; more partitions or fewer cores per executor", Share(share)),
        None => "Look at the executor's own log for the minutes before: OutOfMemoryError, long collections, a dead thread; and at the host's network".to_owned(),
    };
    draft
        .remedy(if gc.is_some() { RemedyKind::Code } else { RemedyKind::Ops }, first)
        .useless("waiting longer for heartbeats", "without proof of one long pause it only delays the same loss")
        .confirm("no executor is removed for its heartbeat")
}
