//! The rules: one file each. A check may look at what earlier ones found.

mod low_parallelism;
mod aqe_changed;
mod aqe_off;
mod autoscale_lag;
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
mod driver_gap;
mod exchange_not_reused;
mod exchange_redundant;
mod executor_shape;
mod failed_work;
mod file_listing;
mod file_small_read;
mod file_small_write;
mod filter_not_pushed;
mod join_cartesian;
mod join_nested_loop;
mod join_should_broadcast;
mod log_damage;
mod log_incomplete;
mod log_plan_cut;
mod long_filter;
mod merge_full_scan;
mod partition_not_pruned;
mod rows_explode;
mod shuffle_fetch_wait;
mod shuffle_heavy;
mod speculation_waste;
mod stream_lag;
mod stream_late;
mod stream_overhead;
mod stream_stall;
mod stream_state_growth;
mod udf_python;
mod udf_scala;

use crate::context::Context;
use crate::draft::Findings;

/// One pass over the application.
pub type Check = fn(&Context<'_>, &mut Findings);

/// All checks, in the order in which they run: what explains others comes first.
pub const CHECKS: &[Check] = &[
    low_parallelism::check,
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

/// Every finding id that a check can give.
pub const RULES: &[Rule] = &[
    Rule { id: "LOW_PARALLELISM", meaning: "a stage has fewer tasks than the application has slots" },
    Rule { id: "BIG_PARTITION", meaning: "a task handles far more bytes than it should" },
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
    Rule { id: "CLUSTERING_NOT_USED", meaning: "a clustered table is filtered by other columns, so no files are skipped" },
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
];

#[cfg(test)]
mod plan_tests;
