//! JOB_CANCELLED: the context was shut down while a job ran (section 4.5 of the rules: what only
//! follows is not to blame). Spark writes `cancelled because SparkContext was shut down`.

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure};
use crate::words;
use model::{Confidence, Job, Millis, Origin, RemedyKind, Severity};

/// Looks at jobs that ended with their context.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::Cancelled, cancelled);
}

/// A paste tells that something was stopped, and not by whom.
fn told(f: &Failure<'_>) -> Draft {
    let said = failure::shortened(&f.first.message);
    let late = f.text().contains("stopped SparkContext");
    let title = match late {
        true => format!("the SparkContext had been stopped before this call: {said}"),
        false => format!("the work was stopped from outside: {said}"),
    };
    let draft = f
        .draft(title)
        .severity(Severity::Medium)
        .not("a failed task", "nothing in the text failed for a reason of its own")
        .sure(Confidence::Medium, "the text does not say who stopped it")
        .useless("more retries or memory", "nothing failed before it was stopped")
        .confirm("the first error or warning before this one in the driver's log");
    match late {
        true => draft.remedy(RemedyKind::Code, "See the driver's log above this line for why the context stopped (spark.stop() in another place, a lost driver, a failed start); make a new session with SparkSession.builder.getOrCreate() only once that is known"),
        false => draft.remedy(RemedyKind::Ops, "Find who stopped it: a cancel in the UI or by the API, a time limit of the job, the end of the main program while another thread ran it"),
    }
}

fn cancelled(f: &Failure<'_>) -> Draft {
    if f.cx.app.pasted.is_some() {
        return told(f);
    }
    let ids = f.cx.blame.members(f.trouble).filter(|i| i.origin == Origin::Job).filter_map(|i| i.job);
    let jobs: Vec<&Job> = ids.filter_map(|id| f.cx.app.job(id)).collect();
    let at_ms = f.first.time_ms.zip(f.cx.app.start_ms()).map_or(0, |(time, start)| (time - start).max(0));
    let who = match jobs.as_slice() {
        [job] => format!("job {} was", job.id),
        more => format!("{} were", words::count(more.len() as u64, "job")),
    };
    let title = format!("{who} cancelled {} after the start because the SparkContext was shut down", Millis(at_ms));
    let streams = jobs.iter().all(|j| j.stream.is_some());
    let mut draft = f
        .draft(title)
        // A stream is stopped in this way by intent, as often as not.
        .severity(if streams { Severity::Info } else { Severity::Medium })
        .evidence("jobs", jobs.iter().map(|j| j.id.to_string()).collect::<Vec<_>>(), "")
        .evidence("shutdown_ms", at_ms, "ms")
        .not("lost executors", "they go away with the context; those of its last seconds are not counted as lost")
        .not("a failed task", "the jobs ended for no reason of their own")
        .sure(Confidence::Medium, "the log does not say who stopped the context")
        .remedy(RemedyKind::Ops, "Find what stopped the context: spark.stop() or the end of the main program while another thread ran the job, a kill of the driver, the end of the cluster; the driver's log just before this time tells")
        .useless("more retries or memory", "nothing failed before the context was stopped")
        .confirm("no job with \"SparkContext was shut down\"");
    draft.finding.scope.job = jobs.first().map(|j| j.id);
    draft
}
