//! SCHED_WAIT: tasks wait for the driver, for their code, for a slot (section 4.2 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use model::{Count, Locality, Metric, Millis, RemedyKind, Share};

/// Looks at every stage.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for facts in &cx.stages {
        let found = delayed(cx, facts).or_else(|| locality(cx, facts)).or_else(|| queued(cx, facts));
        if let Some(draft) = found {
            out.push(draft);
        }
    }
}

/// The driver hands out tasks, or their code, too slowly.
fn delayed(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let d = facts.uneven().warm;
    let (sched, deser) = (warm_sum(facts, Metric::SchedulerDelayMs), warm_sum(facts, Metric::DeserializeMs));
    let share = sched as f64 / d.sum.max(1) as f64;
    let slots = facts.slots.round().max(1.0) as i64;
    if d.median < 1_000 || share < cx.config.sched_wait_share || !cx.above_noise(facts, sched / slots) {
        return None;
    }
    let deser_share = deser as f64 / d.sum.max(1) as f64;
    let large_code = deser_share >= 0.2;
    let why = match large_code {
        true => format!(", and {} goes into unpacking their code: it is large", Share(deser_share)),
        false => String::new(),
    };
    let title = format!(
        "{} of the time of {} tasks is waiting to be started or to report{why}",
        Share(share),
        Count(facts.n as u64)
    );
    let normal = facts.q(Metric::SchedulerDelayMs).min;
    let changed = cx.durations(facts).into_iter().map(|d| (d - sched / facts.n.max(1) as i64 + normal).max(1));
    let draft = Draft::new("SCHED_WAIT", title)
        .at_stage(facts)
        .estimate(cx.estimate(facts, changed.collect(), "every task with the smallest delay of the stage"))
        .fix("a driver that keeps up")
        .figures(facts, &[Metric::DurationMs, Metric::SchedulerDelayMs, Metric::DeserializeMs])
        .evidence("scheduler_delay_share", share, "share")
        .over(cx.config.sched_wait_share)
        .evidence("deserialize_share", deser_share, "share");
    let draft = match large_code {
        true => draft.remedy(RemedyKind::Code, "Keep large objects out of the task: broadcast them (or read them on the executor), and do not capture them in a function"),
        false => draft.remedy(RemedyKind::Code, "Give the driver fewer tasks at once, and take other work off it while they run"),
    };
    Some(
        draft
            .remedy(RemedyKind::Compute, "Give the driver more cores")
            .useless("more executors", "more tasks would wait for the same driver")
            .confirm("scheduler delay of the median task"),
    )
}

/// Sum over tasks that are no cold start; of a paste over all.
fn warm_sum(facts: &StageFacts<'_>, metric: Metric) -> i64 {
    match facts.has_tasks() {
        true => facts.warm_rows().map(|row| facts.stage.tasks.value(metric, row)).sum(),
        false => facts.q(metric).sum,
    }
}

/// Tasks are there and slots are free, but each waits for a place near its data.
fn locality(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let tasks = &facts.stage.tasks;
    let slots = facts.slots.round().max(1.0);
    let near = |row: usize| matches!(tasks.locality(row), Locality::ProcessLocal | Locality::NodeLocal);
    let wait_ms = locality_wait_ms(cx);
    if wait_ms == 0 || (facts.n as f64) < 2.0 * slots || facts.wall_ms < 2 * wait_ms {
        return None;
    }
    let local = tasks.successful().filter(|&r| near(r)).count();
    if local * 2 < facts.n {
        return None;
    }
    let (from, _) = facts.stage.span_ms()?;
    let last_launch = (0..tasks.len()).map(|r| tasks.value(Metric::LaunchMs, r)).max()?;
    let window = last_launch - from;
    let idle = |busy: i64| (window as f64 - busy as f64 / slots) as i64;
    let enough = |idle_ms: i64| idle_ms >= 2 * wait_ms && cx.above_noise(facts, idle_ms);
    let own = cx.busy_ms(facts, from, last_launch);
    // Most stages end here: what ran elsewhere is looked at for the others only.
    if !enough(idle(own)) {
        return None;
    }
    let idle_ms = idle(own + cx.busy_elsewhere_ms(facts, from, last_launch));
    if !enough(idle_ms) {
        return None;
    }
    let others = facts.n - local;
    let title = format!(
        "Slots stood idle for {} although tasks were waiting: {} of {} tasks waited for a place near their data",
        Millis(idle_ms),
        Count(local as u64),
        Count(facts.n as u64)
    );
    Some(
        Draft::new("SCHED_WAIT", title)
            .at_stage(facts)
            .figures(facts, &[Metric::DurationMs, Metric::SchedulerDelayMs])
            .evidence("idle_while_pending_ms", idle_ms, "ms")
            .evidence("tasks_near_data", local, "tasks")
            .evidence("tasks_elsewhere", others, "tasks")
            .evidence("locality_wait_ms", wait_ms, "ms")
            .sure(model::Confidence::Medium, "a driver that was busy looks the same in a log")
            .remedy(RemedyKind::Conf, "Wait less for a place near the data")
            .snippet("spark.locality.wait=0s")
            .computed(format!("now {}", Millis(wait_ms)))
            .useless("more executors", "the slots that are there stand idle")
            .confirm("wall time of the stage over the run time of its tasks by slots"),
    )
}

fn locality_wait_ms(cx: &Context<'_>) -> i64 {
    let text = cx.app.conf("spark.locality.wait").unwrap_or("3s").trim();
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let number: i64 = digits.parse().unwrap_or(3);
    match text[digits.len()..].trim() {
        "ms" | "" => number,
        "m" | "min" => number * 60_000,
        _ => number * 1_000,
    }
}

/// The stage waited for slots that another job held.
fn queued(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let submitted = facts.stage.submitted_ms?;
    let (first, _) = facts.stage.span_ms()?;
    let wait = first - submitted;
    let slots = cx.slots.integral(submitted, first);
    if wait < 10_000 || (wait as f64) < 0.05 * cx.wall_ms as f64 || slots == 0 {
        return None;
    }
    // Adaptive execution runs the stages of one query as jobs side by side: no other's fault.
    let others = |f: &&StageFacts<'_>| {
        let same_query = f.sql.is_some() && f.sql.map(|s| s.id) == facts.sql.map(|s| s.id);
        !same_query && !f.stage.jobs.iter().any(|j| facts.stage.jobs.contains(j))
    };
    let near = |f: &&StageFacts<'_>| f.stage.span_ms().is_some_and(|(begin, end)| begin < first && end > submitted);
    let held: i64 = cx.stages.iter().filter(near).filter(others).map(|f| cx.busy_ms(f, submitted, first)).sum();
    let share = held as f64 / slots as f64;
    if share < 0.8 {
        return None;
    }
    let fair = cx.app.conf("spark.scheduler.mode").is_some_and(|m| m.eq_ignore_ascii_case("FAIR"));
    let title = format!("The stage waited {} for slots: another job held {} of them", Millis(wait), Share(share));
    let draft = Draft::new("SCHED_WAIT", title)
        .at_stage(facts)
        .evidence("wait_for_slots_ms", wait, "ms")
        .evidence("slots_held_by_others_share", share, "share")
        .useless("tuning this stage", "it did not run yet");
    let draft = match fair {
        false => draft
            .remedy(RemedyKind::Conf, "Let jobs share the slots: the default pool runs them first in, first out")
            .snippet("spark.scheduler.mode=FAIR"),
        true => draft.remedy(RemedyKind::Conf, "Give its pool a minimum share or a higher weight"),
    };
    Some(draft.confirm("time between submission of the stage and its first task"))
}
