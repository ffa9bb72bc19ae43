//! The memory of a JVM that runs tasks: what execution and storage share, and what its settings
//! make of it. Source: `UnifiedMemoryManager`, Spark 1.6 to 4.1.

use crate::context::Context;
use crate::draft::Draft;
use model::{Bytes, Metric, RemedyKind};

/// What the JVM keeps before the fraction applies, bytes.
pub const RESERVED: i64 = 300 << 20;
/// Default of `spark.memory.fraction`.
pub const FRACTION: f64 = 0.6;
/// Default of `spark.memory.storageFraction`.
pub const STORAGE_FRACTION: f64 = 0.5;

/// Memory of one JVM that runs tasks.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Heap as set, bytes; Spark's default where it is not.
    pub heap: i64,
    /// What execution and storage share, bytes: as the block manager reported it, else computed.
    pub unified: i64,
    /// `spark.memory.fraction` in force.
    pub fraction: f64,
    /// `spark.memory.storageFraction` in force.
    pub storage_fraction: f64,
    /// Tasks that run side by side.
    pub slots: i64,
    /// Whether tasks run in the driver's own JVM.
    pub local: bool,
    /// Whether operators work outside the heap, where the fraction does not count.
    off_heap: bool,
}

/// Whether tasks run inside the driver: `local[n]`, not `local-cluster[…]`.
#[must_use]
pub fn is_local(cx: &Context<'_>) -> bool {
    if let Some(master) = cx.app.conf("spark.master") {
        return master.starts_with("local") && !master.starts_with("local-cluster");
    }
    let mut workers = cx.app.executors.iter().filter(|e| e.added || cx.app.executors.len() == 1);
    cx.app.executors.iter().any(model::Executor::is_driver) && workers.all(model::Executor::is_driver)
}

/// The setting that gives heap to the JVM in which tasks run.
#[must_use]
pub fn heap_key(cx: &Context<'_>) -> &'static str {
    if is_local(cx) { "spark.driver.memory" } else { "spark.executor.memory" }
}

/// `how to give a task more memory`, for the machine that this is.
#[must_use]
pub fn more_heap(cx: &Context<'_>) -> &'static str {
    match (is_local(cx), cx.app.is_databricks()) {
        (_, true) => "Take a node type with more memory per core",
        (true, _) => {
            "Give the one JVM of local mode more heap (spark.driver.memory), or run fewer tasks at once (local[n])"
        }
        _ => "Give each executor more heap, or fewer cores that share it",
    }
}

impl Memory {
    /// Of the executors, or of the driver in local mode; `None` when no JVM that runs tasks is known.
    #[must_use]
    pub fn of(cx: &Context<'_>) -> Option<Self> {
        let local = is_local(cx);
        let jvm = cx.app.executors.iter().find(|e| e.is_driver() == local && (e.added || local))?;
        let number = |key, default| cx.app.conf(key).and_then(|v| v.trim().parse::<f64>().ok()).unwrap_or(default);
        let heap = cx.app.conf_bytes(heap_key(cx), 1 << 20).unwrap_or(1 << 30);
        let fraction = number("spark.memory.fraction", FRACTION);
        let off_heap = cx.app.conf_bool("spark.memory.offHeap.enabled", false);
        let cpus = number("spark.task.cpus", 1.0).max(1.0);
        let computed = ((heap - RESERVED).max(0) as f64 * fraction) as i64;
        let reported = jvm.max_memory_bytes.saturating_sub(jvm.max_off_heap_bytes.unwrap_or(0)) as i64;
        let size = cx.app.conf_bytes("spark.memory.offHeap.size", 1).unwrap_or(0);
        Some(Self {
            heap,
            unified: if off_heap && size > 0 { size } else { Some(reported).filter(|r| *r > 0).unwrap_or(computed) },
            fraction,
            storage_fraction: number("spark.memory.storageFraction", STORAGE_FRACTION),
            slots: ((f64::from(jvm.cores) / cpus) as i64).max(1),
            local,
            off_heap: off_heap && size > 0,
        })
    }

    /// What one slot has for execution while no data is cached, bytes.
    #[must_use]
    pub fn slot(&self) -> i64 {
        self.unified / self.slots
    }

    /// What execution and storage would share with the default fraction, bytes, where the fraction
    /// is set lower.
    #[must_use]
    pub fn unified_by_default(&self) -> Option<i64> {
        let low = self.fraction > 0.0 && self.fraction < FRACTION - 0.001 && !self.off_heap;
        low.then(|| (self.unified as f64 * FRACTION / self.fraction) as i64)
    }

    /// Whether the default settings would give a slot `needed` bytes that it does not have now.
    #[must_use]
    pub fn default_fits(&self, cx: &Context<'_>, needed: i64) -> bool {
        self.unified_by_default().is_some_and(|u| u / self.slots >= needed) || self.storage_keeps(cx, needed).is_some()
    }

    /// Execution memory a slot is sure of with the default storage fraction, where a higher one
    /// lets cached data keep it, and it would be enough.
    fn storage_keeps(&self, cx: &Context<'_>, needed: i64) -> Option<i64> {
        let high = self.storage_fraction > STORAGE_FRACTION + 0.001;
        let cached: u64 = cx.app.cached.iter().map(|r| r.peak_memory_bytes).max().unwrap_or(0);
        let sure = (self.slot() as f64 * (1.0 - STORAGE_FRACTION)) as i64;
        (high && cached > 0 && sure >= needed).then_some(sure)
    }

    /// Names the setting that leaves a slot too little, if one was set that does.
    #[must_use]
    pub fn restore_defaults(&self, cx: &Context<'_>, draft: Draft, needed: i64) -> Draft {
        if let Some(unified) = self.unified_by_default() {
            let slot = unified / self.slots;
            let enough = if slot >= needed { "" } else { ", which is not yet enough" };
            return draft
                .evidence("memory_fraction", self.fraction, "share")
                .evidence("execution_memory_by_default_bytes", slot, "bytes")
                .remedy(
                    RemedyKind::Conf,
                    format!(
                        "spark.memory.fraction is {} (default {FRACTION}): remove it. A slot then has {} for execution instead of {}; {} are needed{enough}",
                        self.fraction,
                        bytes(slot),
                        bytes(self.slot()),
                        bytes(needed)
                    ),
                )
                .snippet(format!("spark.memory.fraction {FRACTION}"))
                .computed(format!("{} × {FRACTION} / {}", bytes(self.slot()), self.fraction));
        }
        let Some(sure) = self.storage_keeps(cx, needed) else { return draft };
        draft
            .evidence("memory_storage_fraction", self.storage_fraction, "share")
            .remedy(
                RemedyKind::Conf,
                format!(
                    "spark.memory.storageFraction is {} (default {STORAGE_FRACTION}): remove it. Cached data may then keep less, and a slot is sure of {} for execution; {} are needed",
                    self.storage_fraction,
                    bytes(sure),
                    bytes(needed)
                ),
            )
            .snippet(format!("spark.memory.storageFraction {STORAGE_FRACTION}"))
    }

    /// Heap that gives every slot `needed` bytes for execution, bytes, to the next 256 MiB.
    #[must_use]
    pub fn heap_for(&self, needed: i64) -> i64 {
        let unified = needed.max(0) as f64 * self.slots as f64;
        crate::sizing::round_up(RESERVED + (unified / self.fraction.max(0.01)) as i64, 256 << 20)
    }
}

/// Highest execution memory of one task in the run, bytes.
#[must_use]
pub fn peak_execution(cx: &Context<'_>) -> i64 {
    cx.stages.iter().map(|s| s.q(Metric::PeakExecutionBytes).max).max().unwrap_or(0)
}

/// A size for `spark.executor.memory` and the like: whole gibibytes where it is some.
#[must_use]
pub fn setting(bytes: i64) -> String {
    if bytes % (1 << 30) == 0 { format!("{}g", bytes >> 30) } else { format!("{}m", bytes >> 20) }
}

fn bytes(n: i64) -> Bytes {
    Bytes(n.unsigned_abs())
}
