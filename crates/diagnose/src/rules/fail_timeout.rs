//! FAIL_TIMEOUT: a job or query ran longer than it was allowed to (section 4.5).

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, find};
use model::RemedyKind;

/// Looks at time-outs.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::Timeout, timeout);
}

fn timeout(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let limit =
        find(r"(?i)(\d+)\s*(ms|milliseconds|s|secs?|seconds?|min|minutes?|h|hours?)\b", &text).map(|m| m[0].to_owned());
    let said = limit.as_ref().map(|l| format!(" after {l}")).unwrap_or_default();
    let mut draft = f.draft(format!("it ran into a time limit{said}: {}", failure::shortened(&f.first.message)));
    if let Some(limit) = limit {
        draft = draft.evidence("limit", limit, "");
    }
    let mut running = f.cx.app.stages.iter().filter(|s| s.status == model::StageStatus::Active).map(|s| s.id);
    if let Some(stage) = running.next_back() {
        draft = draft.evidence("running_stage", stage, "");
    }
    draft
        .remedy(RemedyKind::Ops, "See which stage was running when it stopped and whether it grows from run to run: that stage is what to mend")
        .remedy(RemedyKind::Ops, "Let a warning threshold come before the time limit, so that a slow run is seen while it can be helped")
        .useless("a longer limit alone", "a run that grows reaches the next limit as well")
        .confirm("wall time of the run against its limit")
}
