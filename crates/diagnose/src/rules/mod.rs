//! The rules: one file each. A check may look at what earlier ones found.

mod broadcast_failed;
mod executor_lost;
mod fail_analysis;
mod fail_code;
mod fail_delta_clustering;
mod fail_delta_conflict;
mod fail_dependency;
mod fail_disk_full;
mod fail_fetch;
mod fail_heartbeat;
mod fail_serializer;
mod fail_startup;
mod fail_storage;
mod fail_timeout;
mod low_parallelism;
mod oom_container;
mod oom_driver;
mod oom_executor;
mod oom_python;
mod result_size;
mod big_partition;
mod gc_pressure;
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
    // Failures: removals by the cluster before any diagnosis of memory.
    executor_lost::check,
    fail_dependency::check,
    oom_container::check,
    oom_executor::check,
    oom_python::check,
    oom_driver::check,
    result_size::check,
    broadcast_failed::check,
    fail_disk_full::check,
    fail_serializer::check,
    fail_storage::check,
    fail_delta_conflict::check,
    fail_delta_clustering::check,
    fail_analysis::check,
    fail_startup::check,
    fail_timeout::check,
    fail_heartbeat::check,
    fail_fetch::check,
    fail_code::check,
    low_parallelism::check,
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
    Rule { id: "FAIL_CONTAINER_VMEM", meaning: "YARN killed a container for its virtual memory" },
    Rule { id: "OOM_CONTAINER", meaning: "a container went over its memory limit" },
    Rule { id: "OOM_EXECUTOR_HEAP", meaning: "an executor ran out of heap" },
    Rule { id: "OOM_PYTHON", meaning: "a Python worker died or could not allocate memory" },
    Rule { id: "OOM_DRIVER", meaning: "the driver ran out of memory" },
    Rule { id: "FAIL_RESULT_SIZE", meaning: "task results were larger than spark.driver.maxResultSize" },
    Rule { id: "BROADCAST_TOO_LARGE", meaning: "a table is too large to broadcast" },
    Rule { id: "BROADCAST_TIMEOUT", meaning: "a broadcast did not finish in time" },
    Rule { id: "EXECUTOR_LOST", meaning: "an executor went away and nothing proves why" },
    Rule { id: "FAIL_SPOT", meaning: "an executor went away with its machine" },
    Rule { id: "FAIL_DECOMMISSION", meaning: "an executor was decommissioned" },
    Rule { id: "AUTOSCALE_REMOVED", meaning: "an executor was removed by scaling down" },
    Rule { id: "FAIL_DEPENDENCY", meaning: "a class, method or module is missing or of another version" },
    Rule { id: "FAIL_HEARTBEAT", meaning: "executors did not report in time" },
    Rule { id: "FAIL_FETCH", meaning: "shuffle output could not be read" },
    Rule { id: "FAIL_DISK_FULL", meaning: "a local disk ran full" },
    Rule { id: "FAIL_SERIALIZER", meaning: "an object does not fit the serialiser's buffer" },
    Rule { id: "FAIL_TASK_SIZE", meaning: "a task is too large to send" },
    Rule { id: "FAIL_TIMEOUT", meaning: "a time limit ended the run" },
    Rule { id: "FAIL_STORAGE_THROTTLE", meaning: "the storage refused requests for their rate" },
    Rule { id: "FAIL_AUTH", meaning: "the storage or a service refused the identity" },
    Rule { id: "FAIL_DELTA_CONFLICT", meaning: "a Delta transaction lost against another writer" },
    Rule { id: "FAIL_DELTA_CLUSTERING", meaning: "clustering does not allow the statement" },
    Rule { id: "FAIL_STARTUP", meaning: "the application did not get going" },
    Rule { id: "FAIL_ANALYSIS", meaning: "Spark refused the statement before any task ran" },
    Rule { id: "FAIL_SCHEMA", meaning: "data or schema do not fit the statement" },
    Rule { id: "FAIL_CODE", meaning: "the user's code threw" },
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
