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

/// A task that succeeded: when it ended, whether it came after the stage's own first round, and
/// whether its partition had been done or tried before.
struct Ended {
    finish: i64,
    late: bool,
    rerun: bool,
}

fn stage(cx: &Context<'_>, attempts: &[&StageFacts<'_>]) -> Option<Draft> {
    let last = attempts.last()?;
    let mut tried = BTreeSet::new();
    let mut ended: Vec<Ended> = attempts.iter().flat_map(|facts| ended(facts, &mut tried)).collect();
    if ended.len() < 4 || !ended.iter().any(|t| t.late) {
        return None;
    }
    ended.sort_by_key(|t| t.finish);
    let at = ((ended.len() as f64 * 0.9) as usize).min(ended.len() - 1);
    let tail = &ended[at..];
    let reruns = tail.iter().filter(|t| t.late).count();
    if reruns * 2 < tail.len() {
        return None;
    }
    let first_time = ended.iter().filter(|t| !t.late).map(|t| t.finish).max();
    let end = ended.last()?.finish;
    let begin = attempts.iter().filter_map(|f| f.stage.span_ms()).map(|s| s.0).min()?;
    let tail_ms = end - first_time.unwrap_or(begin);
    let wall = end - begin;
    let floor = cx.config.noise_stage_ms.max((cx.config.noise_excess_share * wall as f64) as i64);
    if tail_ms < floor || (wall as f64) < cx.config.noise_stage_share * cx.base_wall_ms() as f64 {
        return None;
    }
    let count = |of: fn(&Ended) -> bool| ended.iter().filter(|t| of(t)).count();
    let tail =
        Tail { ms: tail_ms, wall, late: count(|t| t.late), reruns: count(|t| t.rerun), parents: parents(cx, last) };
    Some(draft(cx, last, attempts, &tail))
}

/// What a stage waits for at its end.
struct Tail {
    ms: i64,
    wall: i64,
    /// Tasks that succeeded in a later attempt of the stage or as a later attempt of the task.
    late: usize,
    /// Those of them whose partition had been begun before.
    reruns: usize,
    /// Stages that it reads and that had to run again, with the time that took, ms.
    parents: Vec<(u32, i64)>,
}

/// The successful tasks of a stage attempt; `tried` gathers the partitions that were begun.
fn ended(facts: &StageFacts<'_>, tried: &mut BTreeSet<i64>) -> Vec<Ended> {
    let tasks = &facts.stage.tasks;
    let late = |row| !tasks.speculative(row) && (facts.stage.attempt > 0 || tasks.attempt(row) > 0);
    let rerun = |row| late(row) && (tasks.attempt(row) > 0 || tried.contains(&partition(facts, row)));
    let one = |row| Ended { finish: tasks.value(Metric::FinishMs, row), late: late(row), rerun: rerun(row) };
    let ended = tasks.successful().map(one).collect();
    tried.extend((0..tasks.len()).map(|row| partition(facts, row)));
    ended
}

fn partition(facts: &StageFacts<'_>, row: usize) -> i64 {
    match facts.stage.tasks.partition(row) {
        -1 => i64::from(facts.stage.tasks.index(row)),
        partition => partition,
    }
}

/// Stages that a stage reads and that ran again for it: its later attempts waited for them.
fn parents(cx: &Context<'_>, last: &StageFacts<'_>) -> Vec<(u32, i64)> {
    if last.stage.attempt == 0 {
        return Vec::new();
    }
    let again = cx.stages.iter().filter(|f| f.stage.attempt > 0 && last.stage.parents.contains(&f.stage.id));
    again.map(|f| (f.stage.id, f.wall_ms)).collect()
}

fn draft(cx: &Context<'_>, last: &StageFacts<'_>, attempts: &[&StageFacts<'_>], tail: &Tail) -> Draft {
    let failed: usize = attempts.iter().map(|f| f.stage.count(TaskStatus::Failed)).sum();
    let title = title(last, failed, tail);
    let estimate = cx.run.as_ref().map(|run| {
        let change = Change { stages: without_failures(cx, last), driver_ms: 0 };
        run.estimate(&change, "without the attempts that failed and the tasks that ran again")
    });
    let mut draft = Draft::new("RETRY_TAIL", title)
        .at_stage(last)
        .estimate(estimate)
        .fix("curing the failure")
        .evidence("tasks_run_again", tail.reruns, "tasks")
        .evidence("tasks_after_the_failure", tail.late, "tasks")
        .evidence("attempts_failed", failed, "tasks")
        .evidence("tail_ms", tail.ms, "ms")
        .evidence("stage_wall_ms", tail.wall, "ms")
        .evidence("stage_attempts", attempts.len(), "")
        .explained_by(&CAUSES)
        .explained_anywhere_by(&CAUSES)
        .remedy(RemedyKind::Ops, "Cure the first failure, see its finding: what ran after it is its consequence")
        .useless(
            "salting or more partitions",
            "the tasks at the end are late because of the failure, not because of their data",
        )
        .confirm("task attempts that failed: none");
    for (stage, ms) in &tail.parents {
        draft = draft.evidence("map_stage_again_ms", *ms, "ms").seen_at(format!("stage {stage}"));
    }
    let read = last.q(Metric::ShuffleReadBytes);
    if read.max > 0 && last.n >= 4 {
        draft = draft.not(
            "key skew",
            format!(
                "the tasks at the end read up to {}, three quarters of them up to {}",
                model::Bytes(read.max.unsigned_abs()),
                model::Bytes(read.p75.unsigned_abs())
            ),
        );
    }
    draft
}

/// What came after the failure is called repeated only as far as it had been begun before.
fn title(last: &StageFacts<'_>, failed: usize, tail: &Tail) -> String {
    let id = last.stage.id;
    let after = words::count(failed as u64, "failed attempt");
    let (ms, wall) = (Millis(tail.ms), Millis(tail.wall));
    let first_time = tail.late - tail.reruns;
    match (last.stage.attempt, tail.parents.as_slice()) {
        (0, _) => {
            let verb = if tail.reruns == 1 { "runs" } else { "run" };
            let again = words::count(tail.reruns as u64, "task");
            format!("Stage {id} waits {ms} of {wall} for {again} that {verb} again, after {after}")
        }
        (_, [(parent, again), ..]) => format!(
            "After {after} stage {id} waited {} for stage {parent} to run again, then ran {}; from the failure to the end {ms} of {wall}",
            Millis(*again),
            split(tail.reruns, first_time)
        ),
        (_, []) => format!(
            "After {after} stage {id} ran {} in a later attempt: {ms} of {wall}",
            split(tail.reruns, first_time)
        ),
    }
}

/// `five tasks again and nine for the first time`.
fn split(reruns: usize, first_time: usize) -> String {
    let tasks = |n: usize| words::count(n as u64, "task");
    match (reruns, first_time) {
        (n, 0) => format!("{} again", tasks(n)),
        (0, n) => format!("{} for the first time", tasks(n)),
        (n, m) => format!("{} again and {} for the first time", tasks(n), words::number(m as u64)),
    }
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
    rows.retain(|&r| done.insert((facts.stage.id, partition(facts, r))));
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

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn first_time_work_is_not_called_repeated() {
        assert_eq!(split(0, 14), "14 tasks for the first time");
        assert_eq!(split(1, 0), "one task again");
        assert_eq!(split(2, 9), "two tasks again and nine for the first time");
    }
}
