//! MEM_SIZE: executors or the driver have far more heap than they use, or too little
//! (section 4.3 of the rules). Only for logs with executor metrics.

use crate::context::Context;
use crate::draft::{Draft, Findings};
use model::{Bytes, Executor, Metric, RemedyKind, Severity, Share};

const HEAP: &str = "JVMHeapMemory";
const AT_RISK: [&str; 6] =
    ["GC_PRESSURE", "SPILL_EVEN", "SPILL_SKEW", "OOM_EXECUTOR_HEAP", "OOM_CONTAINER", "OOM_DRIVER"];

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
    for (what, key, group) in
        [("executor", "spark.executor.memory", workers), ("driver", "spark.driver.memory", driver)]
    {
        look_at(cx, out, what, key, &group);
    }
}

fn look_at(cx: &Context<'_>, out: &mut Findings, what: &'static str, key: &str, group: &[&Executor]) {
    let Some(peak) = group.iter().filter_map(|e| e.peak(HEAP)).max() else { return };
    let heap = cx.app.conf_bytes(key, 1 << 20).unwrap_or(1 << 30);
    let share = peak as f64 / heap.max(1) as f64;
    let risky = share >= 0.95 && out.any(&AT_RISK);
    if share >= 0.7 && !risky {
        let gc: i64 = cx.stages.iter().map(|s| s.q(Metric::GcMs).sum).sum();
        let all: i64 = cx.stages.iter().map(|s| s.q(Metric::DurationMs).sum).sum();
        let gc = Share(gc as f64 / all.max(1) as f64);
        out.fine(
            "memory size",
            format!(
                "{what} heap peaks at {}, normal for a JVM: collection takes {gc} and nothing spills",
                Share(share)
            ),
        );
        return;
    }
    let wanted = round_up_mib((peak as f64 * 1.2) as i64).max(512 << 20);
    let title = match risky {
        true => format!("The {what} heap of {} is full ({}), and the run shows it", bytes(heap), Share(share)),
        false => format!("The {what} heap of {} is at most {} full", bytes(heap), Share(share)),
    };
    let setting = if risky { round_up_mib((heap as f64 * 1.2) as i64) } else { wanted };
    // A heap that is larger than needed costs no time.
    let severity = match () {
        () if risky => Severity::Medium,
        () if share < 0.5 && heap >= 4 << 30 => Severity::Low,
        () => Severity::Info,
    };
    let draft = Draft::new("MEM_SIZE", title)
        .severity(severity)
        .evidence("peak_heap_bytes", peak, "bytes")
        .evidence("heap_bytes", heap, "bytes")
        .evidence("heap_share", share, "share")
        .over(0.7)
        .evidence("heap_proposed_bytes", setting, "bytes")
        .remedy(RemedyKind::Compute, format!("Set {key} to {}", bytes(setting)))
        .snippet(format!("{key}={}m", setting >> 20))
        .computed(if risky {
            format!("{} x 1.2", bytes(heap))
        } else {
            format!("{} x 1.2, the highest of {} {what}s", bytes(peak), group.len())
        })
        .confirm("highest JVMHeapMemory over the heap");
    if risky || wanted < heap {
        out.push(if risky { draft.explained_anywhere_by(&AT_RISK) } else { draft });
    }
}

fn bytes(n: i64) -> Bytes {
    Bytes(n.unsigned_abs())
}

/// Up to the next 256 MiB.
fn round_up_mib(bytes: i64) -> i64 {
    crate::sizing::round_up(bytes, 256 << 20)
}
