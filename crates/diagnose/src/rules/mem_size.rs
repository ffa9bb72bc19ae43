//! MEM_SIZE: executors or the driver have far more heap than they use, or too little
//! (section 4.3 of the rules). Only for logs with executor metrics.

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::memory::{self, Memory};
use crate::words;
use model::{Bytes, Confidence, Executor, Metric, RemedyKind, Severity, Share};

const HEAP: &str = "JVMHeapMemory";
/// Findings that a smaller heap would make worse, and that a full heap may have caused.
const AT_RISK: [&str; 7] =
    ["GC_PRESSURE", "SPILL_EVEN", "SPILL_SKEW", "OOM_EXECUTOR_HEAP", "OOM_CONTAINER", "OOM_DRIVER", "FAIL_RESULT_SIZE"];
/// Heaps up to Spark's default are not worth cutting, bytes.
const SMALL: i64 = 1 << 30;

/// Looks at the highest heap use of executors and driver.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let (driver, workers): (Vec<&Executor>, Vec<&Executor>) =
        cx.app.executors.iter().filter(|e| e.peak(HEAP).is_some_and(|p| p > 0)).partition(|e| e.is_driver());
    if driver.is_empty() && workers.is_empty() {
        if cx.app.pasted.is_none() && !cx.stages.is_empty() {
            out.unknown("memory size", "the log has no executor metrics (spark.eventLog.logStageExecutorMetrics)");
        }
        return;
    }
    if cx.app.is_databricks() {
        return out.unknown("memory size", "on Databricks the heap follows from the node type");
    }
    for (what, key, group) in
        [("executor", "spark.executor.memory", workers), ("driver", "spark.driver.memory", driver)]
    {
        look_at(cx, out, &Group { what, key, members: &group });
    }
}

/// JVMs of one kind.
struct Group<'g> {
    what: &'static str,
    key: &'static str,
    members: &'g [&'g Executor],
}

fn look_at(cx: &Context<'_>, out: &mut Findings, group: &Group<'_>) {
    let Some(peak) = group.members.iter().filter_map(|e| e.peak(HEAP)).max() else { return };
    let heap = cx.app.conf_bytes(group.key, 1 << 20).unwrap_or(1 << 30);
    let share = peak as f64 / heap.max(1) as f64;
    let at_risk = out.any(&AT_RISK);
    if at_risk && share >= 0.95 {
        return out.push(too_small(group, peak, heap));
    }
    if !at_risk
        && share < 0.7
        && heap > SMALL
        && let Some(wanted) = smaller(cx, group, peak, heap)
    {
        return out.push(too_large(group, peak, heap, &wanted));
    }
    if at_risk {
        // Samples miss the moment in which a heap was full.
        return out
            .unknown("memory size", "other findings show too little memory where the samples of the heap do not");
    }
    let gc: i64 = cx.stages.iter().map(|s| s.q(Metric::GcMs).sum).sum();
    let all: i64 = cx.stages.iter().map(|s| s.q(Metric::DurationMs).sum).sum();
    let gc = Share(gc as f64 / all.max(1) as f64);
    out.fine(
        "memory size",
        format!(
            "the {} heap was seen {} full at most; collection takes {gc} of the task time",
            group.what,
            Share(share)
        ),
    );
}

fn too_small(group: &Group<'_>, peak: i64, heap: i64) -> Draft {
    let share = peak as f64 / heap.max(1) as f64;
    let setting = round_up_mib((heap as f64 * 1.2) as i64);
    let title = format!("The {} heap of {} is full ({}), and the run shows it", group.what, bytes(heap), Share(share));
    figures(Draft::new("MEM_SIZE", title).severity(Severity::Medium), peak, heap, setting)
        .remedy(RemedyKind::Compute, format!("Set {} to {}", group.key, bytes(setting)))
        .snippet(format!("{}={}", group.key, memory::setting(setting)))
        .computed(format!("{} × 1.2", bytes(heap)))
        .explained_anywhere_by(&AT_RISK)
}

/// A heap that would do, with how it was found.
struct Wanted {
    bytes: i64,
    formula: String,
}

/// A heap that holds the highest sample and the execution memory of all slots at once; `None`
/// where it would not be much smaller.
fn smaller(cx: &Context<'_>, group: &Group<'_>, peak: i64, heap: i64) -> Option<Wanted> {
    let by_sample = (peak as f64 * 1.2) as i64;
    let memory = Memory::of(cx).filter(|m| m.local == (group.what == "driver"));
    let execution = memory::peak_execution(cx);
    let by_execution = memory.map_or(0, |m| m.heap_for(execution));
    let wanted = round_up_mib(by_sample.max(by_execution));
    let formula = match memory {
        Some(m) if by_execution > by_sample => format!(
            "300 MiB + {} × {} of execution memory / {}",
            words::counted(m.slots.unsigned_abs(), "slot"),
            bytes(execution),
            m.fraction
        ),
        _ => {
            format!("{} × 1.2, the highest of {}", bytes(peak), words::counted(group.members.len() as u64, group.what))
        }
    };
    (wanted as f64 <= 0.75 * heap as f64).then_some(Wanted { bytes: wanted, formula })
}

/// A heap that is larger than needed costs no time: a remark.
fn too_large(group: &Group<'_>, peak: i64, heap: i64, wanted: &Wanted) -> Draft {
    let share = Share(peak as f64 / heap.max(1) as f64);
    let title = format!("The {} heap of {} was seen at most {share} full", group.what, bytes(heap));
    figures(Draft::new("MEM_SIZE", title).severity(Severity::Info), peak, heap, wanted.bytes)
        .remedy(
            RemedyKind::Compute,
            format!("To pack more onto a machine, set {} to {}", group.key, bytes(wanted.bytes)),
        )
        .snippet(format!("{}={}", group.key, memory::setting(wanted.bytes)))
        .computed(wanted.formula.clone())
        .sure(Confidence::Medium, "the heap is sampled: what it held between two samples is not in the log")
}

fn figures(draft: Draft, peak: i64, heap: i64, proposed: i64) -> Draft {
    draft
        .evidence("peak_heap_bytes", peak, "bytes")
        .evidence("heap_bytes", heap, "bytes")
        .evidence("heap_share", peak as f64 / heap.max(1) as f64, "share")
        .evidence("heap_proposed_bytes", proposed, "bytes")
        .confirm("highest JVMHeapMemory over the heap")
}

fn bytes(n: i64) -> Bytes {
    Bytes(n.unsigned_abs())
}

/// Up to the next 256 MiB.
fn round_up_mib(bytes: i64) -> i64 {
    crate::sizing::round_up(bytes, 256 << 20).max(512 << 20)
}
