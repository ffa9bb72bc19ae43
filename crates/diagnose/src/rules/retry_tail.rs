//! RETRY_TAIL: what a stage waits for at its end are tasks that run again (section 4.1).

use super::straggler_node;
use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::run_model::Change;
use crate::words;
use model::{Confidence, Metric, Millis, RemedyKind, TaskStatus};
use std::collections::{BTreeMap, BTreeSet};

/// Looks at every stage, all its attempts together.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let mut by_id: BTreeMap<u32, Vec<&StageFacts<'_>>> = BTreeMap::new();
    for facts in cx.stages.iter().filter(|f| f.has_tasks()) {
        by_id.entry(facts.stage.id).or_default().push(facts);
    }
    for facts in cx.stages.iter().filter(|f| !f.has_tasks()) {
        if let Some(draft) = pasted(cx, facts) {
            out.push(draft);
        }
    }
    for attempts in by_id.values() {
        if let Some(draft) = stage(cx, attempts) {
            out.push(draft);
        }
    }
}

/// A summary whose slowest task was run again, on the data that its peers have.
fn pasted(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let attempt = facts.stage.pasted.as_ref()?.slowest_attempt.filter(|&n| n > 0)?;
    let d = facts.uneven().duration;
    let slow = d.max as f64 >= cx.config.skew_ratio * d.p75 as f64 && cx.above_noise(facts, d.max - d.p75);
    if facts.n < 4 || !slow || !straggler_node::usual_quantiles(cx, facts) {
        return None;
    }
    let title = format!(
        "The slowest task ({}, the others {}) is attempt {attempt} of its partition, and reads no more than they do",
        Millis(d.max),
        Millis(d.median)
    );
    Some(
        Draft::new("RETRY_TAIL", title)
            .at_stage(facts)
            .figures(facts, &[Metric::DurationMs, Metric::ShuffleReadBytes, Metric::InputBytes])
            .evidence("slowest_attempt", attempt, "")
            .sure(Confidence::Low, "from a pasted summary: why the first attempt failed is not in it")
            .estimate(cx.estimate(
                facts,
                cx.durations(facts).into_iter().map(|t| t.min(d.p75)).collect(),
                "the slowest task as long as three quarters of its peers",
            ))
            .remedy(
                RemedyKind::Ops,
                "Find the first failure of this partition (executor log, lost executors): the rerun is its consequence",
            )
            .useless("salting or more partitions", "the task is late because it ran twice, not because of its data")
            .confirm("task attempts that failed: none"),
    )
}

/// A task that succeeded: when it ended, and whether it was a rerun.
struct Ended {
    finish: i64,
    rerun: bool,
}

fn stage(cx: &Context<'_>, attempts: &[&StageFacts<'_>]) -> Option<Draft> {
    let last = attempts.last()?;
    let mut ended: Vec<Ended> = attempts.iter().flat_map(|facts| ended(facts)).collect();
    if ended.len() < 4 || !ended.iter().any(|t| t.rerun) {
        return None;
    }
    ended.sort_by_key(|t| t.finish);
    let at = ((ended.len() as f64 * 0.9) as usize).min(ended.len() - 1);
    let tail = &ended[at..];
    let reruns = tail.iter().filter(|t| t.rerun).count();
    if reruns * 2 < tail.len() {
        return None;
    }
    let first_time = ended.iter().filter(|t| !t.rerun).map(|t| t.finish).max();
    let end = ended.last()?.finish;
    let begin = attempts.iter().filter_map(|f| f.stage.span_ms()).map(|s| s.0).min()?;
    let tail_ms = end - first_time.unwrap_or(begin);
    let wall = end - begin;
    let floor = cx.config.noise_stage_ms.max((cx.config.noise_excess_share * wall as f64) as i64);
    if tail_ms < floor || (wall as f64) < cx.config.noise_stage_share * cx.base_wall_ms() as f64 {
        return None;
    }
    Some(draft(cx, last, attempts, ended.iter().filter(|t| t.rerun).count(), tail_ms, wall))
}

fn ended(facts: &StageFacts<'_>) -> Vec<Ended> {
    let tasks = &facts.stage.tasks;
    let rerun = |row| !tasks.speculative(row) && (facts.stage.attempt > 0 || tasks.attempt(row) > 0);
    tasks.successful().map(|row| Ended { finish: tasks.value(Metric::FinishMs, row), rerun: rerun(row) }).collect()
}

fn draft(
    cx: &Context<'_>,
    last: &StageFacts<'_>,
    attempts: &[&StageFacts<'_>],
    reruns: usize,
    tail_ms: i64,
    wall: i64,
) -> Draft {
    let failed: usize = attempts.iter().map(|f| f.stage.count(TaskStatus::Failed)).sum();
    let again = match (last.stage.attempt, reruns) {
        (0, 1) => "one task that runs again".to_owned(),
        (0, n) => format!("{} tasks that run again", words::number(n as u64)),
        (n, _) => format!("{} of the whole stage", words::count(u64::from(n), "repetition")),
    };
    let title = format!(
        "Stage {} waits {} of {} for {again}, after {}",
        last.stage.id,
        Millis(tail_ms),
        Millis(wall),
        words::count(failed as u64, "failed attempt"),
    );
    let estimate = cx.run.as_ref().map(|run| {
        let change = Change { stages: without_failures(cx, last), driver_ms: 0 };
        run.estimate(&change, "without the attempts that failed and the tasks that ran again")
    });
    let mut draft = Draft::new("RETRY_TAIL", title)
        .at_stage(last)
        .estimate(estimate)
        .fix("no failure")
        .evidence("tasks_run_again", reruns, "tasks")
        .evidence("attempts_failed", failed, "tasks")
        .evidence("tail_ms", tail_ms, "ms")
        .evidence("stage_wall_ms", wall, "ms")
        .evidence("stage_attempts", attempts.len(), "")
        .explained_by(&CAUSES)
        .explained_anywhere_by(&CAUSES)
        .remedy(RemedyKind::Ops, "Cure the first failure, see its finding: the reruns are its consequence")
        .useless(
            "salting or more partitions",
            "the tasks at the end are late because they ran twice, not because of their data",
        )
        .confirm("task attempts that failed: none");
    let read = last.q(Metric::ShuffleReadBytes);
    if read.max > 0 && last.n >= 4 {
        draft = draft.not(
            "key skew",
            format!(
                "the tasks that ran again read up to {}, three quarters of them up to {}",
                model::Bytes(read.max.unsigned_abs()),
                model::Bytes(read.p75.unsigned_abs())
            ),
        );
    }
    draft
}

/// What the job would have run without failures: of every partition its first success.
fn without_failures(cx: &Context<'_>, last: &StageFacts<'_>) -> Vec<(usize, Vec<i64>)> {
    let mut done = BTreeSet::new();
    let of_job = cx.stages.iter().filter(|f| f.stage.jobs.iter().any(|j| last.stage.jobs.contains(j)));
    of_job.map(|facts| (facts.position, first_tries(facts, &mut done))).collect()
}

fn first_tries(facts: &StageFacts<'_>, done: &mut BTreeSet<(u32, i64)>) -> Vec<i64> {
    let tasks = &facts.stage.tasks;
    let mut rows: Vec<usize> = tasks.successful().collect();
    rows.sort_by_key(|&r| tasks.value(Metric::LaunchMs, r));
    rows.retain(|&r| {
        let partition = match tasks.partition(r) {
            -1 => i64::from(tasks.index(r)),
            partition => partition,
        };
        done.insert((facts.stage.id, partition))
    });
    rows.into_iter().map(|r| tasks.value(Metric::DurationMs, r)).collect()
}

/// Failures after which tasks run again, in the order in which they explain it.
const CAUSES: [&str; 9] = [
    "OOM_EXECUTOR_HEAP",
    "OOM_CONTAINER",
    "OOM_PYTHON",
    "FAIL_SPOT",
    "FAIL_DISK_FULL",
    "EXECUTOR_LOST",
    "FAIL_FETCH",
    "FAIL_HEARTBEAT",
    "FAIL_CODE",
];
