//! OOM_PYTHON: a Python worker went away or could not allocate (section 4.3).

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, has_any};
use model::{Confidence, Operator, RemedyKind};

/// Looks at Python workers.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::Python, python);
}

fn python(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let allocation = has_any(&text, &["MemoryError", "malloc of size", "Unable to allocate"]);
    let title = match allocation {
        true => format!("a Python worker could not allocate memory: {}", failure::shortened(&f.first.message)),
        false => "a Python worker died in the middle of its work: the usual reason is memory outside the JVM's heap"
            .to_owned(),
    };
    let mut draft = f.draft(title).evidence("class", f.class(), "");
    if !allocation {
        draft =
            draft.sure(Confidence::Medium, "the worker left no word of its own; its stderr or the kernel log has it");
    }
    let draft = draft
        .not(
            "a missing module or another Python version",
            "no ModuleNotFoundError and no version message stands in the traceback",
        )
        .not("a crash in a native library", "no segmentation fault is reported");
    let draft = match by_row(f) {
        true => draft.remedy(RemedyKind::Code, "See what the function keeps from row to row (a cache, a list, a model loaded for each call): it gets one row at a time, so no batch is too large"),
        false => smaller_batches(f, draft),
    };
    draft
        .remedy(
            RemedyKind::Conf,
            "Give Python its own room: spark.executor.pyspark.memory, or a larger spark.executor.memoryOverhead",
        )
        .useless("a larger spark.executor.memory", "it is the JVM's heap; Python lives outside it")
        .confirm("resident memory of the Python workers; no more crashed workers")
}

/// Whether the plan shows that every Python function of the failing stage gets single rows.
fn by_row(f: &Failure<'_>) -> bool {
    let at = f.first.stage.and_then(|(stage, attempt)| f.cx.stage(stage, attempt));
    let mut functions = at.into_iter().flat_map(|s| s.operators()).filter_map(|(_, node)| match node.op {
        Operator::Python { row_at_a_time, .. } => Some(row_at_a_time),
        _ => None,
    });
    functions.next().is_some_and(|first| first && functions.all(|by_row| by_row))
}

fn smaller_batches(f: &Failure<'_>, draft: Draft) -> Draft {
    let set = f.cx.app.conf("spark.sql.execution.arrow.maxRecordsPerBatch").and_then(|v| v.parse::<i64>().ok());
    let batch = set.unwrap_or(10_000);
    draft
        .evidence("arrow_records_per_batch", batch, "rows")
        .remedy(
            RemedyKind::Conf,
            format!("Hand the function fewer rows at a time: spark.sql.execution.arrow.maxRecordsPerBatch={}", (batch / 10).max(100)),
        )
        .computed(format!("a tenth of {batch} (10000 × target row bytes / observed row bytes, where rows are known)"))
        .remedy(RemedyKind::Code, "Process iterators of batches (mapInPandas, Iterator[pd.Series]) instead of whole groups; applyInPandas holds a whole group in memory")
}
