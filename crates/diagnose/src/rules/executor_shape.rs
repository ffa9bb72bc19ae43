//! EXECUTOR_SHAPE: executors that are cut badly (section 4.6 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use model::{Bytes, Executor, Metric, RemedyKind, Severity, Share};

/// More cores than this share one heap badly.
const MOST_CORES: u32 = 8;
/// Larger heaps collect slowly.
const LARGEST_HEAP: i64 = 64 << 30;
/// Collection below this is no pressure, whatever its share, ms.
const LEAST_GC_MS: f64 = 10_000.0;
/// What the JVM keeps before memory.fraction applies.
const RESERVED: i64 = 300 << 20;

/// Looks at the default shape: that of most executors.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let workers: Vec<&Executor> =
        cx.app.executors.iter().filter(|e| e.added && !e.is_driver() && e.cores > 0).collect();
    let Some(cores) = workers.iter().map(|e| e.cores).max() else { return };
    // The setting is what the executors got; its default is a gigabyte.
    let heap = cx.app.conf_bytes("spark.executor.memory", 1 << 20).unwrap_or(1 << 30);
    let gc = gc_share(cx);
    let stated = cx.app.conf("spark.executor.memory").is_some();
    let shape = Shape { cores, heap, gc, stated, executors: workers.len() };
    match problem(&shape, cx.config.gc_share) {
        Some((title, severity, remedy)) => out.push(draft(cx, &shape, title, severity, remedy)),
        None => out.fine(
            "executor shape",
            format!(
                "{cores} cores and {} of heap each, {} of task time in collection",
                Bytes(heap.max(0) as u64),
                Share(gc)
            ),
        ),
    }
}

struct Shape {
    cores: u32,
    heap: i64,
    gc: f64,
    /// Whether the heap is set in the log rather than Spark's default.
    stated: bool,
    executors: usize,
}

/// Share of task time in collection; less than ten seconds of it are no pressure.
fn gc_share(cx: &Context<'_>) -> f64 {
    let sum = |m| cx.stages.iter().map(|s| s.sum(m)).sum::<i64>() as f64;
    let gc = sum(Metric::GcMs);
    if gc < LEAST_GC_MS { 0.0 } else { gc / sum(Metric::DurationMs).max(1.0) }
}

fn problem(shape: &Shape, gc_limit: f64) -> Option<(String, Severity, (String, String))> {
    let heap = Bytes(shape.heap.max(0) as u64);
    if shape.cores > MOST_CORES && shape.gc > gc_limit {
        let size = if shape.stated { format!(" of {heap}") } else { String::new() };
        let title =
            format!("{} cores share one heap{size} and {} of task time is collection", shape.cores, Share(shape.gc));
        let each = shape.heap * 5 / i64::from(shape.cores);
        return Some((title, Severity::Low, shaped(5, each, shape)));
    }
    if shape.heap > LARGEST_HEAP {
        let title = format!("heaps of {heap} are collected slowly and end compressed pointers");
        let parts = (shape.heap + (32 << 30) - 1) / (32 << 30);
        let cores = (i64::from(shape.cores) / parts).max(1) as u32;
        return Some((
            title,
            if shape.gc > gc_limit { Severity::Low } else { Severity::Info },
            shaped(cores, shape.heap / parts, shape),
        ));
    }
    if shape.cores < 2 && shape.executors > 1 {
        let title = format!(
            "{} executors have {} core each: every one keeps its own copy of broadcasts and its own overhead",
            shape.executors, shape.cores
        );
        return Some((title, Severity::Info, shaped(4, shape.heap * 4 / i64::from(shape.cores.max(1)), shape)));
    }
    None
}

fn shaped(cores: u32, heap: i64, from: &Shape) -> (String, String) {
    let gib = (heap >> 30).max(1);
    let formula = format!("the same memory per core as now: {} / {} cores", Bytes(from.heap.max(0) as u64), from.cores);
    (format!("spark.executor.cores {cores}\nspark.executor.memory {gib}g"), formula)
}

fn draft(cx: &Context<'_>, shape: &Shape, title: String, severity: Severity, remedy: (String, String)) -> Draft {
    let fraction = cx.app.conf("spark.memory.fraction").and_then(|v| v.parse().ok()).unwrap_or(0.6);
    let per_slot = ((shape.heap - RESERVED).max(0) as f64 * fraction / f64::from(shape.cores)) as i64;
    let mut peaks: Vec<i64> = cx.stages.iter().map(|s| s.q(Metric::PeakExecutionBytes).max).collect();
    peaks.sort_unstable();
    let peak = model::quantile(&peaks, 0.95).unwrap_or(0);
    Draft::new("EXECUTOR_SHAPE", title)
        .severity(severity)
        .evidence("executors", shape.executors, "executors")
        .seen_at("executors page")
        .evidence("cores_per_executor", shape.cores, "cores")
        .evidence("heap_bytes", shape.heap, "bytes")
        .evidence("gc_share", shape.gc, "share")
        .over(cx.config.gc_share)
        .evidence("memory_per_slot_bytes", per_slot, "bytes")
        .evidence("peak_execution_bytes_p95", peak, "bytes")
        .remedy(RemedyKind::Compute, "Cut the same machines into executors of this shape")
        .snippet(remedy.0)
        .computed(remedy.1)
        .confirm("collection time on the executors page")
}
