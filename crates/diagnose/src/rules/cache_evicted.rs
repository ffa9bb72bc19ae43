//! CACHE_EVICTED: cached data did not stay in memory (section 4.3 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::{sizing, words};
use model::{Bytes, CachedRdd, RemedyKind, Severity};

/// Looks at all persisted data together: it shares one memory.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    if cx.app.cached.is_empty() {
        return;
    }
    if cx.app.log.block_updates == 0 {
        return out.unknown("cache", "the log has no block updates (spark.eventLog.logBlockUpdates.enabled)");
    }
    let evicted: Vec<&CachedRdd> = cx.app.cached.iter().filter(|r| did_not_fit(r)).collect();
    match evicted.is_empty() {
        true => out
            .fine("cache", format!("{} stayed in memory", words::count(cx.app.cached.len() as u64, "cached data set"))),
        false => out.push(draft(cx, &evicted)),
    }
}

/// Whether blocks meant for memory went to disk, were dropped, or never found room.
fn did_not_fit(rdd: &CachedRdd) -> bool {
    if !rdd.level.memory {
        return false;
    }
    let never_stored = rdd.blocks < rdd.partitions && rdd.unpersisted_ms.is_none() && rdd.stored_again > 0;
    rdd.moved_to_disk > 0 || rdd.dropped > 0 || rdd.disk_bytes > 0 || never_stored
}

fn draft(cx: &Context<'_>, evicted: &[&CachedRdd]) -> Draft {
    let all = &cx.app.cached;
    let memory: u64 = all.iter().map(|r| r.memory_bytes).sum();
    let disk: u64 = all.iter().map(|r| r.disk_bytes).sum();
    let (moved, dropped, again) = evicted.iter().fold((0, 0, 0), |sum, r| {
        (sum.0 + u64::from(r.moved_to_disk), sum.1 + u64::from(r.dropped), sum.2 + u64::from(r.stored_again))
    });
    let what = words::count(evicted.len() as u64, "cached data set");
    let lost = evicted.iter().any(|r| r.dropped > 0 && !r.level.disk);
    let title = match (lost, disk) {
        (true, _) => {
            format!("{what} did not fit in storage memory: {} dropped and computed again when read", blocks(dropped))
        }
        (_, 0) => format!("{what} did not stay in storage memory: {} left it", blocks(moved + dropped)),
        _ => format!("{what} did not fit in storage memory: {} of them are read from disk", Bytes(disk)),
    };
    let mut draft = Draft::new("CACHE_EVICTED", title)
        .at_least(if lost || disk > 0 { Severity::Low } else { Severity::Info })
        .evidence("memory_bytes", memory, "bytes")
        .seen_at("storage page")
        .evidence("disk_bytes", disk, "bytes")
        .evidence("data_sets", evicted.len(), "data sets")
        .evidence("blocks_moved_to_disk", moved, "blocks")
        .evidence("blocks_dropped", dropped, "blocks")
        .evidence("blocks_stored_again", again, "blocks")
        .not(
            "spill of a sort or aggregate",
            "these are cached blocks; spill is counted per task and stands in findings of its own",
        );
    draft.finding.scope.rdds = evicted.iter().map(|r| r.id).collect();
    with_remedies(cx, draft, evicted, lost)
}

fn blocks(n: u64) -> String {
    format!("{} {}", words::count(n, "block"), if n == 1 { "was" } else { "were" })
}

/// Storage memory of the executors, bytes: of all that were there at once at most.
fn storage_bytes(cx: &Context<'_>) -> u64 {
    let workers: Vec<_> = cx.app.executors.iter().filter(|e| e.added).collect();
    let lived =
        |t: i64| workers.iter().filter(move |e| e.added_ms.unwrap_or(0) <= t && e.removed_ms.is_none_or(|r| r > t));
    let starts = workers.iter().map(|e| e.added_ms.unwrap_or(0));
    starts.map(|t| lived(t).map(|e| e.max_memory_bytes).sum()).max().unwrap_or(0)
}

fn with_remedies(cx: &Context<'_>, draft: Draft, evicted: &[&CachedRdd], lost: bool) -> Draft {
    let needed: u64 = cx
        .app
        .cached
        .iter()
        .filter(|r| r.level.memory)
        .map(|r| (r.memory_bytes + r.disk_bytes).max(r.peak_memory_bytes))
        .sum();
    let storage = storage_bytes(cx);
    let mut draft = draft
        .evidence("needed_bytes", needed, "bytes")
        .evidence("storage_memory_bytes", storage, "bytes")
        .seen_at("executors page");
    if evicted.len() > 1 || cx.app.cached.len() > 1 {
        draft = draft
            .remedy(RemedyKind::Code, "Unpersist each data set after its last use, before the next one is cached")
            .snippet("df.unpersist()")
            .computed(format!("together they need {}, storage memory is {}", Bytes(needed), Bytes(storage)));
    }
    draft = draft
        .remedy(RemedyKind::Code, "Cache only the columns and rows that later steps read")
        .snippet("df.select(\"…\").where(\"…\").cache()");
    if lost {
        draft = draft
            .remedy(RemedyKind::Code, "Keep what does not fit on disk: MEMORY_ONLY computes it again on every read")
            .snippet("rdd.persist(StorageLevel.MEMORY_AND_DISK)");
    }
    memory_remedy(cx, draft, needed, storage)
        .useless("more shuffle partitions", "cached blocks take the same memory however they are cut")
        .confirm("size on disk and fraction cached on the storage page")
}

/// More memory for storage: first the share that was set low, then the heap.
fn memory_remedy(cx: &Context<'_>, draft: Draft, needed: u64, storage: u64) -> Draft {
    if storage == 0 || needed <= storage {
        return draft;
    }
    let factor = needed as f64 / storage as f64;
    let fraction = cx.app.conf("spark.memory.fraction").and_then(|v| v.parse::<f64>().ok());
    if let Some(fraction) = fraction.filter(|f| *f < 0.6) {
        return draft
            .evidence("memory_fraction", fraction, "share")
            .over(0.6)
            .remedy(
                RemedyKind::Conf,
                format!("Give storage and execution the usual share of the heap again: it was set to {fraction}"),
            )
            .snippet("spark.memory.fraction 0.6")
            .computed(format!(
                "{storage_shown} × 0.6 / {fraction} = {}, {} are needed",
                Bytes((storage as f64 * 0.6 / fraction) as u64),
                Bytes(needed),
                storage_shown = Bytes(storage)
            ));
    }
    let heap = cx.app.conf_bytes("spark.executor.memory", 1 << 20).unwrap_or(1 << 30);
    let wanted = sizing::round_up((heap as f64 * factor) as i64, 1 << 30) >> 30;
    draft
        .remedy(RemedyKind::Compute, format!("Or executors with {wanted} GiB of heap each"))
        .snippet(format!("spark.executor.memory {wanted}g"))
        .computed(format!(
            "{} × {} needed / {} of storage memory, rounded up to a GiB",
            Bytes(heap as u64),
            Bytes(needed),
            Bytes(storage)
        ))
}
