//! FAIL_FETCH: shuffle output that could not be read (section 4.5).

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure};
use crate::words;
use model::{Confidence, RemedyKind};
use std::collections::BTreeSet;

/// Looks at fetch failures, stage by stage.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::Fetch, fetch);
}

fn fetch(f: &Failure<'_>) -> Draft {
    let blame = &f.cx.blame;
    let from: BTreeSet<String> = blame
        .members(f.trouble)
        .filter_map(|i| {
            let id = i.from_executor.as_ref().map(|id| format!("executor {id}"));
            let host = i.from_host.as_deref();
            match (id, host) {
                (Some(id), Some(host)) => Some(format!("{id} on {host}")),
                (id, host) => id.or_else(|| host.map(str::to_owned)),
            }
        })
        .collect();
    let from: Vec<String> = from.into_iter().collect();
    let times = f.attempts().max(f.trouble.members.len().min(1));
    let whose = match from.as_slice() {
        [] => "that is gone".to_owned(),
        [one] => format!("of {one}"),
        [one, rest @ ..] => format!("of {one} and {} more", rest.len()),
    };
    let mut draft = f
        .draft(format!("{} could not read shuffle output {whose}", words::count(times as u64, "task")))
        .evidence("tasks", times, "tasks")
        .evidence("from", from, "");
    if let Some((stage, _)) = f.first.stage {
        let attempts = f.cx.app.stages.iter().filter(|s| s.id == stage).count();
        if attempts > 0 {
            draft = draft.evidence("stage_attempts", attempts, "attempts").over(4.0);
        }
    }
    let (repeated, run_ms) = f.repeated_work();
    if repeated > 0 {
        draft = draft.evidence("resubmitted_tasks", repeated, "tasks").evidence("recomputed_core_ms", run_ms, "ms");
    }
    match f.trouble.caused_by {
        Some(_) => draft
            .remedy(RemedyKind::Ops, "Mend what took the executor away; the fetch failure follows from it")
            .useless("larger spark.shuffle.io.* values", "the files are gone with their executor"),
        None => alive(draft),
    }
}

/// The other side is not known to be lost: the network, its disk or the shuffle service.
fn alive(draft: Draft) -> Draft {
    draft
        .not("a lost executor", "no loss of that executor is in the input")
        .sure(Confidence::Medium, "whether the other side lived on is not proven by an absence")
        .remedy(RemedyKind::Ops, "Look at the host that could not be read: its network, its local disk, its shuffle service, and whether it was in long collections")
        .remedy(RemedyKind::Conf, "For a busy network: spark.shuffle.io.maxRetries=10, spark.shuffle.io.retryWait=15s, and fewer blocks in flight (spark.reducer.maxBlocksInFlightPerAddress)")
        .remedy(RemedyKind::Code, "Fewer and larger shuffle blocks: fewer partitions on both sides of the shuffle")
        .confirm("no repeated attempt of the stage")
}
