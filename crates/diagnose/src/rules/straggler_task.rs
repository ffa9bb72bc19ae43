//! STRAGGLER_TASK: one task is far slower than its peers although its data is normal and its
//! executor otherwise is too (section 4.1 of the rules).

use super::skew_key::Skew;
use super::speculation_waste::Speculation;
use super::{skew_explode, straggler_node};
use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::run_model;
use crate::words;
use model::{Confidence, Metric, Millis, Quantiles, RemedyKind, Severity, TaskStatus};

/// Looks at every stage.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let mut looked_at = 0;
    let before = out.drafts.len();
    for facts in cx.stages.iter().filter(|f| f.n >= 4) {
        looked_at += 1;
        let known = ["SKEW_KEY", "SKEW_INPUT", "SKEW_EXPLODE", "SKEW_WRITE", "STRAGGLER_NODE"];
        if out.any_at(&known, facts.stage.id, facts.stage.attempt) {
            continue;
        }
        if let Some(draft) = replaced(cx, facts).or_else(|| slowest(cx, facts)) {
            out.push(draft);
        }
    }
    if looked_at > 0 && out.drafts.len() == before {
        let stages = words::count(looked_at, "stage");
        out.fine("stragglers", format!("no task of {stages} is slow without a reason in its data"));
    }
}

fn slowest(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let uneven = facts.uneven();
    let tasks = &facts.stage.tasks;
    let duration = uneven.slowest.map_or(uneven.duration.max, |row| tasks.value(Metric::DurationMs, row));
    let p75 = peers(facts).p75;
    let far = duration as f64 >= cx.config.straggler_task_ratio * p75.max(1) as f64;
    if !far || !cx.above_noise(facts, duration - p75) || !has_normal_data(cx, facts) {
        return None;
    }
    if let Some(row) = uneven.slowest {
        // A rerun is late because of what came before it.
        let rerun = tasks.attempt(row) > 0 && !tasks.speculative(row);
        if rerun
            || !is_waited_for(facts, row)
            || in_first_wave(cx, facts, row)
            || straggler_node::slow_executor_of(cx, facts, row).is_some()
        {
            return None;
        }
    } else {
        let pasted = facts.stage.pasted.as_ref()?;
        let slow_peers = pasted.peers_on_executor_ms? as f64 >= cx.config.straggler_ratio * p75 as f64;
        if slow_peers || pasted.slowest_attempt.is_some_and(|n| n > 0) {
            return None;
        }
    }
    Some(draft(cx, facts, duration))
}

/// Durations of the other tasks, ms: of few tasks the slowest is the 75th percentile itself. First
/// tasks of a slot count as well where there are no others.
fn peers(facts: &StageFacts<'_>) -> Quantiles {
    let uneven = facts.uneven();
    let Some(slowest) = uneven.slowest else { return uneven.warm };
    let of = |rows: &mut dyn Iterator<Item = usize>| {
        let others = rows.filter(|&r| r != slowest);
        Quantiles::of(others.map(|r| facts.stage.tasks.value(Metric::DurationMs, r)).collect())
    };
    let warm = of(&mut facts.warm_rows());
    if warm.count >= 3 { warm } else { of(&mut facts.stage.tasks.successful()) }
}

/// Whether the stage had nothing else to begin once the task was done: else another task would
/// have filled its slot, and nobody waited for it.
fn is_waited_for(facts: &StageFacts<'_>, row: usize) -> bool {
    let tasks = &facts.stage.tasks;
    let finish = tasks.value(Metric::FinishMs, row);
    (0..tasks.len()).all(|other| tasks.value(Metric::LaunchMs, other) < finish)
}

/// Whether a task was the first of this stage in its slot, on an executor that had not run much
/// before: code of the stage is loaded and compiled in it. In a stage of one wave all tasks are.
fn in_first_wave(cx: &Context<'_>, facts: &StageFacts<'_>, row: usize) -> bool {
    let tasks = &facts.stage.tasks;
    if (facts.n as f64) < 2.0 * facts.slots {
        return false;
    }
    let (executor, launch) = (tasks.executor(row), tasks.value(Metric::LaunchMs, row));
    let slots = cx.executor(executor).map_or(1, |e| e.cores.max(1)) as usize;
    let earlier = |f: &StageFacts<'_>| {
        let t = &f.stage.tasks;
        (0..t.len()).filter(|&r| t.executor(r) == executor && t.value(Metric::LaunchMs, r) < launch).count()
    };
    let here = earlier(facts);
    let before: usize = cx.stages.iter().filter(|f| f.position != facts.position).map(earlier).sum();
    here < slots && before < 10 * slots
}

/// Whether the slowest task reads and writes what its peers do.
fn has_normal_data(cx: &Context<'_>, facts: &StageFacts<'_>) -> bool {
    if Skew::of(cx, facts).is_some() || skew_explode::multiplies(cx, facts).is_some() {
        return false;
    }
    let Some(row) = facts.uneven().slowest else { return straggler_node::usual_quantiles(cx, facts) };
    let tasks = &facts.stage.tasks;
    let usual = |metric, floor: i64| {
        let own = tasks.value(metric, row);
        own < floor || (own as f64) < cx.config.skew_ratio * facts.q(metric).p75 as f64
    };
    let bytes = [Metric::ShuffleReadBytes, Metric::InputBytes, Metric::OutputBytes, Metric::ShuffleBytesWritten];
    let records =
        [Metric::ShuffleRecordsRead, Metric::InputRecords, Metric::OutputRecords, Metric::ShuffleRecordsWritten];
    bytes.into_iter().all(|m| usual(m, cx.config.skew_min_bytes))
        && records.into_iter().all(|m| usual(m, cx.config.skew_min_records))
}

fn draft(cx: &Context<'_>, facts: &StageFacts<'_>, duration: i64) -> Draft {
    let uneven = facts.uneven();
    let (p75, median) = (peers(facts).p75, peers(facts).median);
    let why = where_time_went(facts);
    let limit = (cx.config.straggler_task_ratio * p75 as f64) as i64;
    let slow = facts.warm_rows().filter(|&r| facts.stage.tasks.value(Metric::DurationMs, r) > limit).count().max(1);
    let run = if slow == 1 { "runs" } else { "run up to" };
    let title = format!(
        "{} of {} {run} {} while the others take {}, on the same amount of data{}",
        words::count(slow as u64, "task"),
        facts.n,
        Millis(duration),
        Millis(median),
        why.as_ref().map(|w| format!(": {w}")).unwrap_or_default()
    );
    let changed = match facts.has_tasks() {
        true => {
            let cold = |row: usize| facts.cold.binary_search(&row).is_ok();
            facts.redone(cx, |row, d| if d > limit && !cold(row) { median } else { d })
        }
        false => cx.durations(facts).into_iter().map(|d| if d > limit { median.max(1) } else { d }).collect(),
    };
    let mut draft = Draft::new("STRAGGLER_TASK", title)
        .at_stage(facts)
        .estimate(cx.estimate(facts, changed, "the slow task as long as the median task"))
        .fix(if slow == 1 { "running it like the others" } else { "running them like the others" })
        .at_least(if duration - p75 >= cx.config.low_ms { Severity::Low } else { Severity::Info })
        .figures(
            facts,
            &[
                Metric::DurationMs,
                Metric::RunMs,
                Metric::GcMs,
                Metric::ShuffleReadBytes,
                Metric::ShuffleRecordsRead,
                Metric::InputBytes,
            ],
        )
        .evidence("warm_duration_ms_median", median, "ms")
        .evidence("warm_duration_ms_p75", p75, "ms")
        .evidence("max_over_p75", duration as f64 / p75.max(1) as f64, "ratio")
        .over(cx.config.straggler_task_ratio)
        .evidence("max_over_median", duration as f64 / median.max(1) as f64, "ratio");
    draft = draft.evidence("slow_tasks", slow, "tasks");
    if let Some(row) = uneven.slowest {
        draft = copy_that_lost(cx, of_task(cx, draft, facts, row), facts, row);
    } else {
        draft = draft.sure(Confidence::Low, "from quantiles alone: the task itself cannot be looked at");
    }
    if uneven.slowest_was_cold {
        draft = draft.not(
            "cold JVM",
            format!(
                "the slowest task of all ({}) was a first task of a slot and is left out",
                Millis(uneven.duration.max)
            ),
        );
    }
    let median_ms = facts.q(Metric::DurationMs).median;
    remedies(cx, draft.not("key skew", data_words(facts)), duration, median_ms)
}

/// A speculative copy that had run as long without an end: the executor is not to blame.
fn copy_that_lost(cx: &Context<'_>, draft: Draft, facts: &StageFacts<'_>, row: usize) -> Draft {
    let tasks = &facts.stage.tasks;
    let same = |r: &usize| *r != row && tasks.index(*r) == tasks.index(row);
    let until = run_model::last_moment(cx.app, facts.stage);
    let copies = (0..tasks.len()).filter(same).filter(|&r| tasks.status(r) != TaskStatus::Success);
    let longest = copies.map(|r| run_model::slot_ms(facts.stage, r, until)).max();
    match longest.filter(|ms| ms * 2 >= tasks.value(Metric::DurationMs, row)) {
        Some(ms) => draft.evidence("copy_ran_ms", ms, "ms").not(
            "a slow executor",
            format!(
                "another attempt at it had run for {} when it was done: the wait is in the code or its data",
                Millis(ms)
            ),
        ),
        None => draft,
    }
}

fn data_words(facts: &StageFacts<'_>) -> String {
    let (read, input) = (facts.q(Metric::ShuffleReadBytes), facts.q(Metric::InputBytes));
    let q = if read.max >= input.max { read } else { input };
    match q.max {
        0 => "no task of the stage reads data".to_owned(),
        _ => format!(
            "the largest task reads {}, three quarters up to {}",
            model::Bytes(q.max.unsigned_abs()),
            model::Bytes(q.p75.unsigned_abs())
        ),
    }
}

/// Where the slow task spent its time, if one thing took more than half of it.
fn where_time_went(facts: &StageFacts<'_>) -> Option<String> {
    let row = facts.uneven().slowest?;
    let tasks = &facts.stage.tasks;
    let duration = tasks.value(Metric::DurationMs, row).max(1);
    let parts = [
        (Metric::GcMs, "of it in garbage collection"),
        (Metric::FetchWaitMs, "of it waiting for shuffle data"),
        (Metric::CpuMs, "of it computing"),
        (Metric::DeserializeMs, "of it loading its code (jars, libraries)"),
        (Metric::SchedulerDelayMs, "of it waiting to start or to report"),
        (Metric::IoWaitMs, "of it waiting off the CPU (a source, another process, a lock, a sleep)"),
    ];
    let (metric, words) = parts.into_iter().max_by_key(|(m, _)| tasks.value(*m, row))?;
    let spent = tasks.value(metric, row);
    (spent * 2 > duration).then(|| format!("{} {words}", Millis(spent)))
}

fn of_task(cx: &Context<'_>, mut draft: Draft, facts: &StageFacts<'_>, row: usize) -> Draft {
    let tasks = &facts.stage.tasks;
    let executor = tasks.executor(row);
    draft.finding.scope.task = Some(tasks.id(row));
    draft.finding.scope.executor = cx.executor(executor).map(|e| e.id.to_string());
    for metric in [Metric::DurationMs, Metric::CpuMs, Metric::GcMs, Metric::IoWaitMs, Metric::FetchWaitMs] {
        let name = format!("task_{}", crate::figures::name(metric).0);
        draft = draft.evidence(&name, tasks.value(metric, row), "ms").seen_at(format!("task {}", tasks.id(row)));
    }
    draft = draft.evidence("task_index", tasks.index(row), "");
    let peers: Vec<i64> = facts
        .warm_rows()
        .filter(|&r| r != row && tasks.executor(r) == executor)
        .map(|r| tasks.value(Metric::DurationMs, r))
        .collect();
    if peers.len() >= 2 {
        let q = model::Quantiles::of(peers);
        return draft.not("slow executor", format!("its other {} tasks take {}", q.count, Millis(q.median)));
    }
    draft.sure(Confidence::Medium, "its executor ran too few other tasks to tell a slow executor from a slow task")
}

/// A task that a speculative copy overtook: the original was the straggler.
fn replaced(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let tasks = &facts.stage.tasks;
    let copies = tasks.successful().filter(|&r| tasks.speculative(r));
    let waits = copies.filter_map(|copy| {
        let original = (0..tasks.len()).find(|&r| {
            r != copy
                && tasks.index(r) == tasks.index(copy)
                && !tasks.speculative(r)
                && tasks.status(r) != TaskStatus::Success
        })?;
        let wait = tasks.value(Metric::FinishMs, copy) - tasks.value(Metric::LaunchMs, original);
        Some((wait, original, copy))
    });
    let (wait, original, copy) = waits.max()?;
    let warm = facts.uneven().warm;
    let far = wait as f64 >= cx.config.straggler_task_ratio * warm.p75.max(1) as f64;
    if !far || !cx.above_noise(facts, wait - warm.p75) {
        return None;
    }
    let duration = tasks.value(Metric::DurationMs, copy);
    let title = format!(
        "Task {} hung for {} until a speculative copy did its work in {}",
        tasks.index(original),
        Millis(wait - duration),
        Millis(duration)
    );
    let mut draft = Draft::new("STRAGGLER_TASK", title)
        .at_stage(facts)
        .at_least(Severity::Low)
        .figures(facts, &[Metric::DurationMs, Metric::RunMs])
        .evidence("winner_index", tasks.index(copy), "")
        .evidence("winner_attempt", tasks.attempt(copy), "")
        .evidence("winner_duration_ms", duration, "ms")
        .evidence("original_hung_ms", wait - duration, "ms")
        .evidence("original_wait_ms", wait, "ms")
        .evidence("tasks_started", tasks.len(), "tasks")
        .not("key skew", data_words(facts))
        .remedy(
            RemedyKind::Ops,
            "Find out why the first attempt hung: its executor, host and stderr; the copy only hid it",
        );
    draft = sooner(cx, draft, facts.q(Metric::DurationMs).median)
        .useless("salting", "the copy read the same data and was done in the usual time")
        .confirm("time between the start of the original and the end of its copy");
    draft.finding.scope.task = Some(tasks.id(original));
    draft.finding.scope.executor = cx.executor(tasks.executor(original)).map(|e| e.id.to_string());
    Some(draft)
}

/// A lower multiplier, where that lets a copy start noticeably sooner than as set.
fn sooner(cx: &Context<'_>, draft: Draft, median_ms: i64) -> Draft {
    const LOW: f64 = 1.5;
    let now = Speculation::of(cx);
    let gain_ms = ((now.multiplier - LOW) * median_ms as f64) as i64;
    match gain_ms >= 1_000 {
        true => draft
            .remedy(RemedyKind::Conf, format!("Let copies start {} sooner", Millis(gain_ms)))
            .snippet("spark.speculation.multiplier=1.5")
            .computed(format!("({} - {LOW}) × median task {}", now.multiplier, Millis(median_ms))),
        false => draft,
    }
}

fn remedies(cx: &Context<'_>, draft: Draft, duration: i64, median_ms: i64) -> Draft {
    let hosts: std::collections::BTreeSet<&str> =
        cx.app.executors.iter().filter(|e| !e.is_driver()).map(|e| &*e.host).collect();
    let one_host = hosts.len() == 1;
    let draft = draft.remedy(
        RemedyKind::Ops,
        "See what the task does while it waits: a thread dump of its executor, its stderr, and the calls to other systems in its code",
    );
    let draft = match (cx.app.conf_bool("spark.speculation", false), one_host) {
        (true, true) => draft
            .useless("speculation", "it is on, but all executors are on one host, and a copy must run on another one"),
        // A copy is due once the task has run for the multiplier times the median.
        (true, false) if (duration as f64) < Speculation::of(cx).multiplier * median_ms as f64 => {
            sooner(cx, draft, median_ms)
        }
        (true, false) => draft,
        (false, true) => {
            draft.useless("speculation", "all executors are on one host, and a copy must run on another one")
        }
        (false, false) => draft
            .remedy(RemedyKind::Conf, "As a stop-gap, let a copy of a slow task run elsewhere")
            .snippet("spark.speculation=true\nspark.speculation.quantile=0.9\nspark.speculation.multiplier=3"),
    };
    draft
        .useless("salting or more partitions", "the task has no more data than the others")
        .confirm("longest task over the 75th percentile")
}
