//! The rules: one file each. A check may look at what earlier ones found.

mod big_partition;
mod gc_pressure;
mod low_parallelism;
mod many_tiny_jobs;
mod mem_size;
mod retry_tail;
mod sched_wait;
mod single_partition;
mod skew_aqe_missed;
mod skew_explode;
mod skew_input;
mod skew_key;
mod skew_null_key;
mod skew_write;
mod spill;
#[cfg(test)]
mod stage_tests;
mod straggler_node;
mod straggler_task;
mod tiny_tasks;

use crate::context::Context;
use crate::draft::Findings;

/// One pass over the application.
pub type Check = fn(&Context<'_>, &mut Findings);

/// All checks, in the order in which they run: what explains others comes first.
pub const CHECKS: &[Check] = &[
    skew_null_key::check,
    skew_key::check,
    skew_aqe_missed::check,
    skew_input::check,
    skew_explode::check,
    skew_write::check,
    straggler_node::check,
    straggler_task::check,
    retry_tail::check,
    single_partition::check,
    low_parallelism::check,
    big_partition::check,
    tiny_tasks::check,
    many_tiny_jobs::check,
    sched_wait::check,
    spill::check,
    gc_pressure::check,
    mem_size::check,
];

/// A finding id and what it means, in one line.
pub struct Rule {
    /// Id, e.g. `SKEW_KEY`.
    pub id: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// Every finding id that a check can give.
pub const RULES: &[Rule] = &[
    Rule { id: "SKEW_NULL_KEY", meaning: "rows whose key is NULL all go to one task" },
    Rule { id: "SKEW_KEY", meaning: "one or few tasks read far more of a shuffle than the others" },
    Rule { id: "SKEW_AQE_MISSED", meaning: "adaptive execution could have split a skewed join and did not" },
    Rule { id: "SKEW_INPUT", meaning: "some tasks of a scan read far more than the others" },
    Rule { id: "SKEW_EXPLODE", meaning: "rows multiply in one task that reads no more than the others" },
    Rule { id: "SKEW_WRITE", meaning: "a write has few huge tasks and many tiny files" },
    Rule { id: "STRAGGLER_NODE", meaning: "one executor or host is slow whatever it gets" },
    Rule { id: "STRAGGLER_TASK", meaning: "one task is slow although its data is normal" },
    Rule { id: "RETRY_TAIL", meaning: "a stage waits at its end for tasks that run again" },
    Rule { id: "SINGLE_PARTITION", meaning: "all rows go through one task" },
    Rule { id: "LOW_PARALLELISM", meaning: "a stage has fewer tasks than the application has slots" },
    Rule { id: "BIG_PARTITION", meaning: "a task handles far more bytes than it should" },
    Rule { id: "TINY_TASKS", meaning: "starting many small tasks takes longer than their work" },
    Rule { id: "MANY_TINY_JOBS", meaning: "a loop on the driver runs one small job after the other" },
    Rule { id: "SCHED_WAIT", meaning: "tasks wait for the driver, for their code or for a slot" },
    Rule { id: "SPILL_EVEN", meaning: "all tasks have more data than execution memory" },
    Rule { id: "SPILL_SKEW", meaning: "few tasks have more data than execution memory" },
    Rule { id: "GC_PRESSURE", meaning: "too much of the task time is garbage collection" },
    Rule { id: "MEM_SIZE", meaning: "the heap is far larger, or smaller, than the run needs" },
];
