//! Cold starts (section 2 of the rules): the first task in each slot of an executor loads
//! classes, compiles code and starts Python workers. It is slow whatever data it reads.

use model::{Application, Metric};
use std::collections::{BTreeMap, BinaryHeap};

/// Run time, in cold times, past which a first task is no longer slow for being the first.
const LONGEST_STARTS: i64 = 3;

/// Rows of cold starts by position of their stage, ascending: the first tasks of an executor, as
/// many as it has slots, within `cold_ms` of its start or of its first task.
///
/// The time since the first task counts as well as that since the start because an executor that
/// waits a minute for work is as cold as before.
pub fn rows(app: &Application, cold_ms: i64) -> BTreeMap<usize, Vec<usize>> {
    let cpus = app.conf("spark.task.cpus").and_then(|v| v.trim().parse().ok()).unwrap_or(1).max(1);
    let mut first: Vec<BinaryHeap<(i64, usize, usize)>> = vec![BinaryHeap::new(); app.executors.len()];
    for (position, stage) in app.stages.iter().enumerate() {
        for row in 0..stage.tasks.len() {
            let at = stage.tasks.executor(row);
            let Some(heap) = first.get_mut(at) else { continue };
            let slots = (app.executors[at].cores / cpus).max(1) as usize;
            let task = (stage.tasks.value(Metric::LaunchMs, row), position, row);
            if heap.len() < slots {
                heap.push(task);
            } else if heap.peek().is_some_and(|last| task < *last) {
                heap.pop();
                heap.push(task);
            }
        }
    }
    let mut by_stage: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (executor, heap) in app.executors.iter().zip(first) {
        let Some(begin) = heap.iter().map(|t| t.0).min() else { continue };
        let until = begin.max(executor.added_ms.unwrap_or(begin)) + cold_ms;
        let tasks = |position: usize| &app.stages[position].tasks;
        // Nothing loads for so long: a task that ran on after that has a reason of its own.
        let started = |t: &(i64, usize, usize)| tasks(t.1).value(Metric::RunMs, t.2) <= LONGEST_STARTS * cold_ms;
        for (_, position, row) in heap.into_iter().filter(|t| t.0 < until).filter(started) {
            by_stage.entry(position).or_default().push(row);
        }
    }
    by_stage.values_mut().for_each(|rows| rows.sort_unstable());
    by_stage
}
