//! FAIL_STARTUP: Spark never started, or never got an executor (section 4.5).

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, has_any};
use model::{Confidence, RemedyKind};

/// Looks at starts that failed.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::Startup, startup);
}

fn startup(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let lower = text.to_lowercase();
    let (cause, remedy) = if has_any(&lower, &["init script", "init_script", "initialization script", "bootstrap"]) {
        (
            "init script",
            "Read the output of the init script on the node that failed; run it by hand on one machine of the same image",
        )
    } else if has_any(
        &lower,
        &["capacity", "cloud_provider", "quota", "unschedulable", "insufficient", "not accepted any resources"],
    ) {
        (
            "capacity",
            "Ask for what is there: another machine type or zone, a smaller request, a higher quota; see the cluster's own list of events",
        )
    } else if has_any(&lower, &["imagepull", "errimage"]) {
        ("image", "Make the container image reachable: its name, tag and pull secret")
    } else if has_any(&lower, &["library", "package"]) {
        ("libraries", "Install the failing library by itself and pin its version")
    } else {
        ("unknown", "See the driver's own log and the events of the cluster manager for the minutes before")
    };
    f.draft(format!("the application did not get going ({cause}): {}", failure::shortened(&f.first.message)))
        .evidence("cause", cause, "")
        .sure(Confidence::Medium, "an event log begins after the start; it cannot explain this")
        .remedy(RemedyKind::Ops, remedy)
        .remedy(RemedyKind::Ops, "Where to look: compute event log, init script output, capacity and quota of the pool, library installation")
        .useless("changes to the query", "no task has run yet")
        .confirm("time from submission to the first task")
}
