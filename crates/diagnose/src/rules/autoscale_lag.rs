//! AUTOSCALE_LAG: work waited while executors were still being added (section 4.6 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::run_model::Change;
use crate::words;
use model::{Millis, RemedyKind, Severity, Stage};

/// Waits from this on are a finding.
const LAG_MS: i64 = 60_000;

/// Looks at the stages that were submitted before the executors for them were there; the worst counts.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let added = cx.app.executors.iter().filter(|e| e.added && !e.is_driver()).count();
    if added == 0 || cx.app.pasted.is_some() {
        return;
    }
    let worst = cx.app.stages.iter().filter_map(|s| lag(cx, s)).max_by_key(|l| l.ms);
    match worst {
        Some(lag) => out.push(draft(cx, &lag)),
        None => out.fine("scaling up", format!("no stage waited {} for executors", Millis(LAG_MS))),
    }
}

struct Lag<'a> {
    stage: &'a Stage,
    ms: i64,
    /// Time of it without a single slot, ms.
    without_ms: i64,
    slots_before: u32,
    slots_after: u32,
    missed_core_ms: i64,
}

/// From the submission of a stage to 90 % of the slots that it had later, while it had more
/// tasks than slots.
fn lag<'a>(cx: &Context<'_>, stage: &'a Stage) -> Option<Lag<'a>> {
    let submitted = stage.submitted_ms?;
    let (_, end) = stage.span_ms()?;
    let within: Vec<(i64, u32)> = cx.slots.steps.iter().copied().filter(|s| s.0 > submitted && s.0 <= end).collect();
    let before = cx.slots.at(submitted);
    let most = within.iter().map(|s| s.1).max()?.min(stage.num_tasks);
    if before >= most || stage.num_tasks <= before {
        return None;
    }
    let reached = within.iter().find(|s| f64::from(s.1) >= 0.9 * f64::from(most))?.0;
    let ms = reached - submitted;
    let first = within.iter().find(|s| s.1 > 0).map_or(reached, |s| s.0);
    (ms >= LAG_MS).then(|| Lag {
        stage,
        ms,
        without_ms: if before == 0 { first - submitted } else { 0 },
        slots_before: before,
        slots_after: most,
        missed_core_ms: i64::from(most) * ms - cx.slots.integral(submitted, reached),
    })
}

fn draft(cx: &Context<'_>, lag: &Lag<'_>) -> Draft {
    let stage = lag.stage;
    let title = format!(
        "stage {}.{} waited {} for executors: {} when it was submitted, {} when they were there",
        stage.id,
        stage.attempt,
        Millis(lag.ms),
        words::count(lag.slots_before.into(), "slot"),
        lag.slots_after
    );
    // Time without any slot is lost for certain; slots that come later only spread the work.
    let saved = lag.without_ms.max(lag.missed_core_ms / i64::from(lag.slots_after.max(1)) / 2);
    let change = Change { driver_ms: saved, ..Change::default() };
    let estimate =
        cx.run.as_ref().map(|r| r.estimate(&change, "the wait without a slot, and half of the slots that came late"));
    let mut draft = Draft::new("AUTOSCALE_LAG", title)
        .at_least(Severity::Low)
        .estimate(estimate)
        .evidence("lag_ms", lag.ms, "ms")
        .over(LAG_MS as f64)
        .seen_at("event timeline")
        .evidence("slots_before", lag.slots_before, "slots")
        .evidence("slots_after", lag.slots_after, "slots")
        .evidence("without_slots_ms", lag.without_ms, "ms")
        .evidence("missed_core_ms", lag.missed_core_ms, "ms")
        .evidence("tasks", stage.num_tasks, "tasks")
        .not("too few tasks", format!("{} tasks were ready for {} slots", stage.num_tasks, lag.slots_before));
    draft.finding.scope.stage = Some(stage.id);
    draft.finding.scope.attempt = Some(stage.attempt);
    draft.finding.scope.job = stage.jobs.first().copied();
    let dynamic = cx.app.conf_bool("spark.dynamicAllocation.enabled", false);
    let draft = match dynamic {
        true => draft
            .remedy(
                RemedyKind::Conf,
                format!("Start with more executors: the stage could use {} slots", lag.slots_after),
            )
            .snippet(format!("spark.dynamicAllocation.initialExecutors {0}", executors(cx, lag.slots_after)))
            .computed(format!("{} slots / {} cores an executor", lag.slots_after, cores(cx))),
        false => draft.remedy(
            RemedyKind::Compute,
            "Use a pool of started workers, or keep the cluster between runs: start-up is paid for each time",
        ),
    };
    draft
        .useless("a higher number of partitions", "the tasks that are there wait for slots")
        .confirm("time from the submission of the stage to its first task")
}

fn cores(cx: &Context<'_>) -> u32 {
    cx.app.executors.iter().filter(|e| e.added && !e.is_driver()).map(|e| e.cores).max().unwrap_or(1).max(1)
}

fn executors(cx: &Context<'_>, slots: u32) -> u32 {
    slots.div_ceil(cores(cx))
}
