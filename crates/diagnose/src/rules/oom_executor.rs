//! OOM_EXECUTOR_HEAP: an executor's heap, or Spark's share of it, was too small (section 4.3).

use crate::blame::Trouble;
use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, has_any};
use crate::{memory, plan_text, words};
use model::{Metric, Operator, Origin, PlanNode, RemedyKind, Scope, Severity};
use std::collections::BTreeSet;

/// Looks at memory errors of executors.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::ExecutorHeap, heap);
    for (_, trouble) in cx.blame.of_cause(Cause::ExecutorHeap) {
        out.drafts.extend(same_task(cx, trouble));
    }
}

/// A job that ended because one task ran out of memory wherever it ran: its code or its data,
/// folded under the memory finding.
fn same_task(cx: &Context<'_>, trouble: &Trouble) -> Option<Draft> {
    if cx.app.pasted.is_some() || !trouble.fatal {
        return None;
    }
    let thrown: Vec<_> = cx.blame.members(trouble).filter(|i| i.origin == Origin::Task).collect();
    let first = *thrown.first()?;
    let (index, (stage, attempt)) = first.task_index.zip(first.stage)?;
    let executors: BTreeSet<_> = thrown.iter().filter_map(|i| i.executor.as_deref()).collect();
    let same = thrown.iter().all(|i| i.task_index == Some(index) && i.stage == first.stage);
    if !same || thrown.len() < 2 || executors.len() < 2 {
        return None;
    }
    let (times, on) = (words::number(thrown.len() as u64), words::count(executors.len() as u64, "executor"));
    let title = format!(
        "task {index} of stage {stage}.{attempt} threw OutOfMemoryError {times} times, on {on}: its code or its data"
    );
    let mut draft =
        Draft::new("FAIL_CODE", title).explained_anywhere_by(&["OOM_EXECUTOR_HEAP"]).severity(Severity::Low);
    draft.finding.scope = Scope {
        job: first.job,
        stage: Some(stage),
        attempt: Some(attempt),
        sql: first.sql,
        task: first.task_id,
        ..Scope::default()
    };
    Some(
        draft
            .evidence("class", first.class.as_deref().unwrap_or_default(), "")
            .evidence("task_index", index, "")
            .evidence("failed_attempts", thrown.len(), "tasks")
            .evidence("executors", executors.len(), "executors")
            .remedy(
                RemedyKind::Code,
                format!("Look at the input of task {index}: what it needs in memory, no other task needs"),
            )
            .useless("more retries", "it fails wherever it runs"),
    )
}

/// What filled the heap, with what to do about it.
struct Filling {
    name: &'static str,
    what: &'static str,
    kind: RemedyKind,
    remedy: &'static str,
}

/// Told by the frames of the task that ran out.
const BY_FRAME: [(&[&str], Filling); 6] = [
    (
        &["HashedRelation", "BroadcastExchangeExec", "ShuffledHashJoin", "buildHashedRelation"],
        Filling {
            name: "hash_build",
            what: "building a hash table for a join",
            kind: RemedyKind::Sql,
            remedy: "Join by sorting instead of hashing: MERGE hint on the large side, or spark.sql.autoBroadcastJoinThreshold=-1 for this query",
        },
    ),
    (
        &[
            "DynamicPartitionDataWriter",
            "DynamicPartitionDataSingleWriter",
            "ParquetOutputWriter",
            "OrcOutputWriter",
            "MemoryManager.addWriter",
        ],
        Filling {
            name: "open_files",
            what: "writing many partitions at once: each open file has its own buffers",
            kind: RemedyKind::Code,
            remedy: "Distribute by the partition columns before the write, so that a task has few files open: df.repartition(partition columns)",
        },
    ),
    (
        &[
            "ArrayData",
            "CollectList",
            "CollectSet",
            "collect_list",
            "ObjectHashAggregate",
            "TypedImperativeAggregate",
            "ArrayBuffer",
            "GenerateExec",
            "explode",
        ],
        Filling {
            name: "large_values",
            what: "building large arrays or objects within single rows",
            kind: RemedyKind::Sql,
            remedy: "Keep rows small: aggregate instead of collecting values into arrays, limit the array, explode later",
        },
    ),
    (
        &["MemoryStore", "UnrollMemory", "BlockManager.doPut", "PartitionedValues"],
        Filling {
            name: "cache",
            what: "caching deserialised data",
            kind: RemedyKind::Code,
            remedy: "Cache less, or with MEMORY_AND_DISK_SER / DISK_ONLY",
        },
    ),
    (
        &["VectorizedColumnReader", "ParquetFileReader", "VectorizedParquetRecordReader", "OrcColumnarBatchReader"],
        Filling {
            name: "wide_batches",
            what: "reading wide column batches",
            kind: RemedyKind::Sql,
            remedy: "Read fewer columns, or smaller batches: spark.sql.parquet.columnarReaderBatchSize=1024",
        },
    ),
    (
        &[
            "ExternalSorter",
            "ExternalAppendOnlyMap",
            "UnsafeExternal",
            "BytesToBytesMap",
            "TaskMemoryManager",
            "SortExec",
        ],
        Filling {
            name: "big_partitions",
            what: "sorting or aggregating partitions that are too large",
            kind: RemedyKind::Conf,
            remedy: "More, smaller partitions: raise spark.sql.shuffle.partitions so that a task gets about 128 MB",
        },
    ),
];

const UNKNOWN: Filling = Filling {
    name: "unknown",
    what: "",
    kind: RemedyKind::Code,
    remedy: "Find what the task holds in memory: collect_list, a user function that keeps rows, a window without PARTITION BY, a hot key; then make partitions smaller (about 128 MB a task)",
};

fn heap(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let executors = f.cx.blame.lost_executors(f.trouble).len();
    let indexes = f.indexes();
    let filling = filling(f, &text);
    let what = if filling.what.is_empty() { String::new() } else { format!(" while {}", filling.what) };
    let expression = gathering(f).filter(|_| matches!(filling.name, "large_values" | "unknown"));
    let what = match &expression {
        Some((call, _)) => format!(" in {call}"),
        None => what,
    };
    let who = if memory::is_local(f.cx) { "the JVM of local mode" } else { "executors" };
    let lost =
        if executors > 0 { format!("; {} lost", words::count(executors as u64, "executor")) } else { String::new() };
    let mut draft = f
        .draft(format!("{who} ran out of heap{what}: {}{lost}", failure::shortened(&f.first.message)))
        .evidence("cause", if expression.is_some() { "large_values" } else { filling.name }, "")
        .evidence("executors", f.executors(), "")
        .evidence("executors_lost", executors, "executors");
    if has_any(&text, &["exit code 52", "exited with code 52", "status: 52", "code 52"]) {
        draft = draft.evidence("exit_code", 52_i64, "");
    }
    if indexes == 1 && f.attempts() > 1 {
        draft = draft.evidence("task_index", f.first.task_index.unwrap_or_default(), "").not(
            "one bad node",
            format!(
                "the same task failed {} times on {}",
                f.attempts(),
                words::count(f.executors().len() as u64, "executor")
            ),
        );
    }
    if !has_any(&text, &["memory used", "OOMKilled"]) {
        draft = draft.not("container limit", "the JVM itself reported the error; no container was killed for its size");
    }
    draft = draft.not("autoscaling or spot loss", "no removal by the cluster stands before the error");
    match expression {
        Some((call, node)) => {
            let draft = draft.evidence("expression", call.clone(), "").evidence("operator", node, "");
            let text = format!(
                "{call} holds all its values in one row of one task: keep fewer (filter, limit, count or sum instead), or explode later"
            );
            remedies(f, draft.remedy(RemedyKind::Sql, text))
        }
        None => remedies(f, draft.remedy(filling.kind, filling.remedy)),
    }
}

/// Functions whose result grows with the rows of a key or with an argument.
const GATHERING: [&str; 8] = [
    "collect_list(",
    "collect_set(",
    "array_agg(",
    "array_repeat(",
    "listagg(",
    "string_agg(",
    "percentile(",
    "sequence(",
];

/// The expression of the failing stage that gathers values in one row, and its operator. A stage
/// that never finished may have left no metrics that tell its operators: then its whole plan.
fn gathering(f: &Failure<'_>) -> Option<(String, String)> {
    let (stage, attempt) = f.first.stage?;
    let facts = f.cx.stage(stage, attempt)?;
    let call = |n: &PlanNode| call_in(&n.detail).map(|call| (call, n.name.to_string()));
    let mut own = facts.operators().filter_map(|(_, n)| call(n));
    let whole = || facts.plan().filter(|_| facts.nodes.is_empty())?.nodes.iter().find_map(call);
    own.next().or_else(whole)
}

/// `collect_list(message)` out of `ObjectHashAggregate(keys=[…], functions=[partial_collect_list(message#3, 0, 0)])`.
fn call_in(detail: &str) -> Option<String> {
    let found = GATHERING.iter().filter_map(|name| detail.find(name));
    let begin = found.filter(|&at| !detail[..at].ends_with("approx_")).min()?;
    let text = &detail[begin..];
    let mut depth = 0;
    let end = text.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        *c == ')' && depth == 0
    });
    let call = plan_text::without_ids(&text[..=end?.0]).replace(", 0, 0)", ")");
    (call.chars().count() <= 80).then_some(call)
}

fn filling(f: &Failure<'_>, text: &str) -> Filling {
    let frames = BY_FRAME.into_iter().find(|(words, _)| has_any(text, words)).map(|(_, filling)| filling);
    frames.or_else(|| skewed(f)).or_else(|| by_operator(f)).unwrap_or(UNKNOWN)
}

/// The failing stage reads one partition far above the rest.
fn skewed(f: &Failure<'_>) -> Option<Filling> {
    let (stage, attempt) = f.first.stage?;
    let read = f.cx.stage(stage, attempt)?.q(Metric::ShuffleReadBytes);
    (read.max >= f.cx.config.skew_min_bytes && read.max_over_peers() >= 2.0 * f.cx.config.skew_ratio).then_some(
        Filling {
            name: "skew",
            what: "handling one partition far above the rest",
            kind: RemedyKind::Sql,
            remedy: "Cure the skew of the key first: more partitions leave the large one as it is",
        },
    )
}

fn by_operator(f: &Failure<'_>) -> Option<Filling> {
    let (stage, attempt) = f.first.stage?;
    let facts = f.cx.stage(stage, attempt)?;
    let coalesce = facts.operators().any(|(_, n)| matches!(n.op, Operator::Coalesce { .. }));
    coalesce.then_some(Filling {
        name: "coalesce",
        what: "computing everything in the few partitions that coalesce(n) left",
        kind: RemedyKind::Code,
        remedy: "Use repartition(n) instead of coalesce(n): the work before it keeps its parallelism",
    })
}

fn remedies(f: &Failure<'_>, draft: Draft) -> Draft {
    let draft = match fewer_at_once(f) {
        Some(fewer) => draft.remedy(RemedyKind::Conf, fewer),
        None => draft,
    };
    let key = memory::heap_key(f.cx);
    let now = f.cx.app.conf(key).map(|m| format!(" (now {m})")).unwrap_or_default();
    let more = match (f.cx.app.is_databricks(), memory::is_local(f.cx)) {
        (true, _) => "If that is not enough, a node type with more memory per core".to_owned(),
        (false, true) => format!("If that is not enough, a larger {key}{now}"),
        (false, false) => {
            format!("If that is not enough, a worker type with more memory per core, or a larger {key}{now}")
        }
    };
    draft
        .remedy(RemedyKind::Compute, more)
        .useless("more executors of the same size", "each task still gets the same share of a heap")
        .useless("more retries", "the same task needs the same memory again")
        .confirm("peak execution memory and GC time of the stage's tasks")
}

/// Fewer tasks that share a heap; nothing where one has it alone.
fn fewer_at_once(f: &Failure<'_>) -> Option<String> {
    let app = &f.cx.app;
    let local = memory::is_local(f.cx);
    let seen = app.executors.iter().filter(|e| e.is_driver() == local && (e.added || local)).map(|e| e.cores).max();
    let cores = seen.filter(|c| *c > 0).or_else(|| app.conf("spark.executor.cores")?.parse().ok());
    match (cores, local) {
        (Some(1), _) => None,
        (Some(n), true) => {
            Some(format!("Fewer tasks at once in the one heap: local[{}] instead of local[{n}]", n.div_ceil(2)))
        }
        (Some(n), false) if app.is_databricks() => {
            Some(format!("Fewer tasks at once per heap: spark.task.cpus 2, for {} instead of {n}", n / 2))
        }
        (Some(n), false) => {
            Some(format!("Fewer tasks at once per heap: spark.executor.cores={} instead of {n}", n.div_ceil(2)))
        }
        (None, _) => Some("Fewer tasks at once per heap (spark.executor.cores or a higher spark.task.cpus)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_call_that_gathers() {
        for (detail, call) in [
            (
                "ObjectHashAggregate(keys=[u#1], functions=[partial_collect_list(message#3, 0, 0)])",
                Some("collect_list(message)"),
            ),
            (
                "Project [CASE WHEN (id#0L = 5) THEN array_repeat(id#0L, 180000000) END AS x#2]",
                Some("array_repeat(id, 180000000)"),
            ),
            ("HashAggregate(keys=[], functions=[sum(a#1)])", None),
            ("Project [collect_list(cut...", None),
        ] {
            assert_eq!(call_in(detail).as_deref(), call, "{detail}");
        }
    }
}
