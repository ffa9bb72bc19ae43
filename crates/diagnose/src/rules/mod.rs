//! The rules: one file each. A check may look at what earlier ones found.

pub mod about;
mod aqe_changed;
mod aqe_off;
mod autoscale_lag;
mod big_partition;
mod broadcast_failed;
mod broadcast_too_large;
mod cache_evicted;
mod cache_missing;
mod cache_unused;
mod cluster_idle;
mod clustering_not_used;
mod codegen_off;
mod columns_wide;
mod delta_log_heavy;
mod driver_busy;
pub(crate) mod driver_gap;
mod exchange_not_reused;
mod exchange_redundant;
mod executor_lost;
mod executor_shape;
mod fail_analysis;
mod fail_code;
mod fail_delta_clustering;
mod fail_delta_conflict;
mod fail_dependency;
mod fail_disk_full;
mod fail_fetch;
mod fail_file_missing;
mod fail_heartbeat;
mod fail_serializer;
mod fail_startup;
mod fail_storage;
mod fail_timeout;
mod failed_work;
#[cfg(test)]
mod failure_tests;
mod file_listing;
mod file_small_read;
mod file_small_write;
mod filter_not_pushed;
mod gc_pressure;
mod job_cancelled;
mod join_cartesian;
mod join_nested_loop;
mod join_should_broadcast;
mod log_damage;
mod log_incomplete;
mod log_plan_cut;
mod long_filter;
mod low_parallelism;
mod many_tiny_jobs;
mod mem_size;
mod merge_full_scan;
mod oom_container;
mod oom_driver;
mod oom_executor;
mod oom_python;
mod partition_not_pruned;
mod result_size;
mod retry_tail;
mod rows_explode;
mod sched_wait;
mod shuffle_fetch_wait;
mod shuffle_heavy;
mod single_partition;
mod skew_aqe_missed;
mod skew_explode;
mod skew_input;
mod skew_key;
mod skew_null_key;
mod skew_write;
mod speculation_waste;
mod spill;
#[cfg(test)]
mod stage_tests;
mod straggler_node;
mod straggler_task;
mod stream_lag;
mod stream_late;
mod stream_overhead;
mod stream_stall;
mod stream_state_growth;
mod tiny_tasks;
mod udf_python;
mod udf_scala;

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
    fail_file_missing::check,
    fail_analysis::check,
    fail_startup::check,
    fail_timeout::check,
    fail_heartbeat::check,
    fail_fetch::check,
    fail_code::check,
    job_cancelled::check,
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
    broadcast_too_large::check,
    cache_evicted::check,
    cache_missing::check,
    cache_unused::check,
    rows_explode::check,
    shuffle_heavy::check,
    shuffle_fetch_wait::check,
    exchange_redundant::check,
    exchange_not_reused::check,
    join_should_broadcast::check,
    join_nested_loop::check,
    join_cartesian::check,
    filter_not_pushed::check,
    partition_not_pruned::check,
    clustering_not_used::check,
    columns_wide::check,
    long_filter::check,
    file_listing::check,
    file_small_read::check,
    file_small_write::check,
    merge_full_scan::check,
    delta_log_heavy::check,
    udf_python::check,
    udf_scala::check,
    codegen_off::check,
    driver_gap::check,
    driver_busy::check,
    cluster_idle::check,
    autoscale_lag::check,
    speculation_waste::check,
    failed_work::check,
    executor_shape::check,
    stream_lag::check,
    stream_state_growth::check,
    stream_overhead::check,
    stream_late::check,
    stream_stall::check,
    log_incomplete::check,
    log_damage::check,
    log_plan_cut::check,
    aqe_off::check,
    aqe_changed::check,
];

/// A finding id and what it means, in one line.
pub struct Rule {
    /// Id, e.g. `SKEW_KEY`.
    pub id: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// Every finding id that a check or a comparison can give; [`about`] explains each.
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
    Rule { id: "FAIL_FILE_MISSING", meaning: "a file was gone when a task opened it" },
    Rule { id: "FAIL_SCHEMA", meaning: "data or schema do not fit the statement" },
    Rule { id: "FAIL_CODE", meaning: "the user's code threw" },
    Rule { id: "BAD_EXECUTOR", meaning: "tasks fail on some executors and succeed on the others" },
    Rule { id: "JOB_CANCELLED", meaning: "a job was cancelled because its context was shut down" },
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
    Rule { id: "BROADCAST_TOO_LARGE", meaning: "a table is sent whole to every executor though it is large" },
    Rule { id: "CACHE_EVICTED", meaning: "cached data did not stay in memory" },
    Rule { id: "CACHE_MISSING", meaning: "the same rows are computed again and again, and nothing is cached" },
    Rule { id: "CACHE_UNUSED", meaning: "persisted data that nothing read again" },
    Rule { id: "SHUFFLE_HEAVY", meaning: "far more bytes cross shuffles than are read" },
    Rule { id: "SHUFFLE_FETCH_WAIT", meaning: "tasks wait for shuffle blocks" },
    Rule { id: "EXCHANGE_REDUNDANT", meaning: "rows are shuffled or sorted and then shuffled again" },
    Rule { id: "EXCHANGE_NOT_REUSED", meaning: "one plan computes and shuffles the same rows twice" },
    Rule { id: "JOIN_SHOULD_BROADCAST", meaning: "both sides of a join are shuffled although one is small" },
    Rule { id: "JOIN_NESTED_LOOP", meaning: "every row of one side is compared with every row of the other" },
    Rule { id: "JOIN_CARTESIAN", meaning: "a product of two inputs, with a task for each pair of partitions" },
    Rule { id: "ROWS_EXPLODE", meaning: "an operator makes far more rows than it gets" },
    Rule { id: "FILTER_NOT_PUSHED", meaning: "a condition is applied after every row was read" },
    Rule { id: "PARTITION_NOT_PRUNED", meaning: "a filtered query reads every partition of a table" },
    Rule {
        id: "CLUSTERING_NOT_USED",
        meaning: "a clustered table is filtered by other columns, so no files are skipped",
    },
    Rule { id: "COLUMNS_WIDE", meaning: "many columns are read and few are used" },
    Rule { id: "LONG_FILTER", meaning: "a condition so long that planning and evaluating it costs" },
    Rule { id: "FILE_LISTING", meaning: "finding the files takes long" },
    Rule { id: "FILE_SMALL_READ", meaning: "many small files are read" },
    Rule { id: "FILE_SMALL_WRITE", meaning: "many small files are written" },
    Rule { id: "MERGE_FULL_SCAN", meaning: "a MERGE reads and rewrites far more of its target than it changes" },
    Rule { id: "DELTA_LOG_HEAVY", meaning: "reading Delta's own log takes much of the run" },
    Rule { id: "UDF_PYTHON", meaning: "rows go through Python workers" },
    Rule { id: "UDF_SCALA", meaning: "a compiled user function in a filter over a scan" },
    Rule { id: "CODEGEN_OFF", meaning: "operators that could be compiled together run one by one" },
    Rule { id: "DRIVER_GAP", meaning: "a long time in which no task ran" },
    Rule { id: "DRIVER_BUSY", meaning: "the driver alone takes much of the run in many short pieces" },
    Rule { id: "CLUSTER_IDLE", meaning: "slots that are paid for and do nothing" },
    Rule { id: "AUTOSCALE_LAG", meaning: "work waited while executors were still being added" },
    Rule { id: "SPECULATION_WASTE", meaning: "copies of tasks whose work was thrown away" },
    Rule { id: "FAILED_WORK", meaning: "work that was thrown away and done again" },
    Rule { id: "EXECUTOR_SHAPE", meaning: "executors that are cut badly" },
    Rule { id: "STREAM_LAG", meaning: "a streaming query falls behind its input" },
    Rule { id: "STREAM_STATE_GROWTH", meaning: "state that only grows" },
    Rule { id: "STREAM_OVERHEAD", meaning: "batches that are mostly bookkeeping" },
    Rule { id: "STREAM_LATE", meaning: "rows that came after the watermark and were dropped" },
    Rule { id: "STREAM_STALL", meaning: "a running query that made no progress" },
    Rule { id: "LOG_INCOMPLETE", meaning: "the log does not hold the end of the application" },
    Rule { id: "LOG_TRUNCATED", meaning: "the log is cut" },
    Rule { id: "LOG_EVENTS_DROPPED", meaning: "events are missing from the log" },
    Rule { id: "LOG_PARTIAL", meaning: "the log begins in the middle" },
    Rule { id: "LOG_CLOCK", meaning: "times run backwards" },
    Rule { id: "LOG_UNKNOWN", meaning: "events or plan nodes of kinds that are not known" },
    Rule { id: "LOG_PLAN_CUT", meaning: "Spark cut the text of plans" },
    Rule { id: "AQE_OFF", meaning: "adaptive execution is off and would have cured something" },
    Rule { id: "AQE_CHANGED", meaning: "what adaptive execution did" },
    // Of a comparison.
    Rule { id: "REG_FAILED", meaning: "compare: the new run failed" },
    Rule { id: "REG_DATA_GROWTH", meaning: "compare: time added by more data" },
    Rule { id: "REG_PLAN_CHANGE", meaning: "compare: time added by another plan or a new query" },
    Rule { id: "REG_CLUSTER", meaning: "compare: time added by fewer slots" },
    Rule { id: "REG_SETUP", meaning: "compare: time added before the first query or job" },
    Rule { id: "REG_CONFIG", meaning: "compare: time added by a setting that changed a plan" },
    Rule { id: "REG_CONTENTION", meaning: "compare: the same CPU time, more run time" },
    Rule { id: "REG_SKEW_TREND", meaning: "compare: skew that grows from run to run" },
    Rule { id: "FLAKY", meaning: "compare: some runs failed and others did not" },
    Rule { id: "IMPROVED", meaning: "compare: the run is faster than the baseline" },
];

#[cfg(test)]
mod plan_tests;
