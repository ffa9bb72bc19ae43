//! EXECUTOR_SHAPE: executors that are cut badly (section 4.6 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::memory::{self, RESERVED};
use crate::words;
use model::{Bytes, Executor, Metric, RemedyKind, Severity, Share};
use std::collections::BTreeMap;

/// More cores than this share one heap badly.
const MOST_CORES: u32 = 8;
/// Larger heaps collect slowly.
const LARGEST_HEAP: i64 = 64 << 30;
/// Collection below this is no pressure, whatever its share, ms.
const LEAST_GC_MS: f64 = 10_000.0;
/// Cores that an executor should have, where its host has them.
const GOOD_CORES: u32 = 4;
/// Failures for which every other shape of the same memory is a guess.
const OUT_OF_MEMORY: [&str; 2] = ["OOM_EXECUTOR_HEAP", "OOM_CONTAINER"];

/// Looks at the default shape: that of most executors.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let workers: Vec<&Executor> =
        cx.app.executors.iter().filter(|e| e.added && !e.is_driver() && e.cores > 0).collect();
    let Some(cores) = workers.iter().map(|e| e.cores).max() else { return };
    if cx.app.is_databricks() {
        return out.fine("executor shape", "not judged: on Databricks the node type decides");
    }
    // The setting is what the executors got; its default is a gigabyte.
    let heap = cx.app.conf_bytes("spark.executor.memory", 1 << 20).unwrap_or(1 << 30);
    let gc = gc_share(cx);
    let stated = cx.app.conf("spark.executor.memory").is_some();
    let (executors, on_one_host) = side_by_side(&workers);
    let shape = Shape { cores, heap, gc, stated, executors, on_one_host };
    match problem(&shape, cx.config.gc_share).filter(|_| !out.any(&OUT_OF_MEMORY)) {
        Some((title, severity, remedy)) => out.push(draft(cx, &shape, title, severity, remedy)),
        None => out.fine(
            "executor shape",
            format!(
                "{} and {} of heap each, {} of task time in collection",
                words::counted(u64::from(cores), "core"),
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
    /// Executors that were there at once.
    executors: usize,
    /// Most cores that executors of one host had at once.
    on_one_host: u32,
}

/// Most executors at once, and most cores of them on one host: replacements of lost executors
/// are no further ones.
fn side_by_side(workers: &[&Executor]) -> (usize, u32) {
    let at = |t: i64| {
        let alive = workers.iter().filter(move |e| e.added_ms.unwrap_or(0) <= t && e.removed_ms.is_none_or(|r| r > t));
        let mut hosts: BTreeMap<&str, u32> = BTreeMap::new();
        let mut n = 0;
        for executor in alive {
            n += 1;
            *hosts.entry(&executor.host).or_default() += executor.cores;
        }
        (n, hosts.into_values().max().unwrap_or(0))
    };
    let moments = workers.iter().map(|e| at(e.added_ms.unwrap_or(0)));
    moments.fold((0, 0), |most, now| (most.0.max(now.0), most.1.max(now.1)))
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
    if shape.cores < 2 && shape.on_one_host >= GOOD_CORES {
        let title = format!(
            "{} executors have one core each: every one keeps its own copy of broadcasts and its own overhead",
            shape.executors
        );
        return Some((title, Severity::Info, shaped(GOOD_CORES, shape.heap * i64::from(GOOD_CORES), shape)));
    }
    None
}

fn shaped(cores: u32, heap: i64, from: &Shape) -> (String, String) {
    let (now, cores_now) = (Bytes(from.heap.max(0) as u64), words::counted(u64::from(from.cores), "core"));
    let formula = format!("the same memory per core as now: {now} / {cores_now}");
    (format!("spark.executor.cores {cores}\nspark.executor.memory {}", memory::setting(heap)), formula)
}

fn draft(cx: &Context<'_>, shape: &Shape, title: String, severity: Severity, remedy: (String, String)) -> Draft {
    let fraction = cx.app.conf("spark.memory.fraction").and_then(|v| v.parse().ok()).unwrap_or(0.6);
    let per_slot = ((shape.heap - RESERVED).max(0) as f64 * fraction / f64::from(shape.cores)) as i64;
    let mut peaks: Vec<i64> = cx.stages.iter().map(|s| s.q(Metric::PeakExecutionBytes).max).collect();
    peaks.sort_unstable();
    let peak = model::quantile(&peaks, 0.95).unwrap_or(0);
    let draft = Draft::new("EXECUTOR_SHAPE", title)
        .severity(severity)
        .evidence("executors", shape.executors, "executors")
        .seen_at("executors page")
        .evidence("cores_per_executor", shape.cores, "cores")
        .evidence("heap_bytes", shape.heap, "bytes")
        .evidence("gc_share", shape.gc, "share");
    let draft = if shape.gc > cx.config.gc_share { draft.over(cx.config.gc_share) } else { draft };
    draft
        .evidence("memory_per_slot_bytes", per_slot, "bytes")
        .evidence("peak_execution_bytes_p95", peak, "bytes")
        .remedy(RemedyKind::Compute, "Cut the same machines into executors of this shape")
        .snippet(remedy.0)
        .computed(remedy.1)
        .confirm("collection time on the executors page")
}
