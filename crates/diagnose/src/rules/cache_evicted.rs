//! CACHE_EVICTED: cached data did not stay in memory (section 4.3 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::memory::{self, FRACTION, Memory, STORAGE_FRACTION};
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

/// Memory for cached data: what is there, and what all of it takes.
struct Room {
    /// Memory of the JVMs that run tasks; `None` when none is known.
    memory: Option<Memory>,
    /// Storage memory of all that were there at once, bytes.
    storage: u64,
    /// What the cached data takes together, bytes.
    needed: u64,
}

impl Room {
    fn of(cx: &Context<'_>) -> Self {
        let sizes = cx.app.cached.iter().filter(|r| r.level.memory);
        let needed = sizes.map(|r| (r.memory_bytes + r.disk_bytes).max(r.peak_memory_bytes)).sum();
        Self { memory: Memory::of(cx), storage: storage_bytes(cx), needed }
    }

    /// Storage memory with the default fraction, bytes, where a lower one was set.
    fn by_default(&self) -> Option<u64> {
        let memory = self.memory?;
        memory.unified_by_default()?;
        Some((self.storage as f64 * FRACTION / memory.fraction) as u64)
    }

    /// Storage memory that no sort or aggregate may take, bytes.
    fn safe(&self) -> u64 {
        let fraction = self.memory.map_or(STORAGE_FRACTION, |m| m.storage_fraction);
        (self.storage as f64 * fraction) as u64
    }

    /// Why it did not stay, as far as the sizes tell.
    fn why(&self, cx: &Context<'_>) -> String {
        let (needed, storage) = (Bytes(self.needed), Bytes(self.storage));
        let low = self.by_default().and(self.memory).map(|m| m.fraction);
        match low {
            Some(fraction) => {
                return format!(
                    ": with spark.memory.fraction at {fraction} cache, sorts and aggregates share {storage}, {needed} are cached"
                );
            }
            None if self.storage == 0 => return String::new(),
            None => {}
        }
        match () {
            () if self.needed > self.storage => format!(": {needed} in all, storage memory is {storage}"),
            () if self.needed > self.safe() && memory::peak_execution(cx) > 0 => format!(
                ": {needed} are cached, and sorts and aggregates may take the {storage} that they share down to {}",
                Bytes(self.safe())
            ),
            () => format!(": {needed} would fit into {storage} altogether, not on the executors that held it"),
        }
    }
}

fn draft(cx: &Context<'_>, evicted: &[&CachedRdd]) -> Draft {
    let all = &cx.app.cached;
    let memory: u64 = all.iter().map(|r| r.memory_bytes).sum();
    let disk: u64 = all.iter().map(|r| r.disk_bytes).sum();
    let (moved, dropped, again) = evicted.iter().fold((0, 0, 0), |sum, r| {
        (sum.0 + u64::from(r.moved_to_disk), sum.1 + u64::from(r.dropped), sum.2 + u64::from(r.stored_again))
    });
    let room = Room::of(cx);
    let lost = evicted.iter().any(|r| r.dropped > 0 && !r.level.disk);
    let what = match (lost, disk) {
        (true, _) if again > 0 => format!("{} dropped and computed again", blocks(dropped)),
        (true, _) => format!("{} dropped", blocks(dropped)),
        (_, 0) => format!("{} pushed out of memory", blocks(moved + dropped)),
        _ => format!("{} went to disk", Bytes(disk)),
    };
    let title = format!("Cached {} did not stay in memory, {what}{}", names(evicted), room.why(cx));
    let much = disk.saturating_mul(10) >= room.needed;
    let severity = match () {
        // The one setting costs every read of the cache, and often spill as well.
        () if (lost || much) && room.by_default().is_some() => Severity::Medium,
        () if lost || disk > 0 => Severity::Low,
        () => Severity::Info,
    };
    let mut draft = Draft::new("CACHE_EVICTED", title)
        .at_least(severity)
        .evidence("disk_bytes", disk, "bytes")
        .seen_at("storage page")
        .evidence("memory_bytes", memory, "bytes")
        .seen_at("storage page")
        .evidence("cached_data_that_left", evicted.iter().map(|r| name(r)).collect::<Vec<_>>(), "")
        .evidence("blocks_moved_to_disk", moved, "blocks")
        .evidence("blocks_dropped", dropped, "blocks")
        .evidence("blocks_stored_again", again, "blocks")
        .not(
            "spill of a sort or aggregate",
            "these are cached blocks; spill is counted per task and stands in findings of its own",
        );
    draft.finding.scope.rdds = evicted.iter().map(|r| r.id).collect();
    with_remedies(cx, draft, &room, lost)
}

/// `orders and customers`; several are counted.
fn names(evicted: &[&CachedRdd]) -> String {
    match evicted {
        [one] => short(one),
        [one, other] => format!("{} and {}", short(one), short(other)),
        more => words::count(more.len() as u64, "data set"),
    }
}

/// Its name without the number that tells it from others.
fn short(rdd: &CachedRdd) -> String {
    let name = name(rdd);
    name.split_once(" (RDD ").map_or(name.clone(), |(short, _)| short.to_owned())
}

/// The name that the user gave it, else what its plan reads, else its number.
fn name(rdd: &CachedRdd) -> String {
    let text = rdd.name.trim();
    if !text.is_empty() && text.len() <= 40 && !text.contains(['\n', '(', '+']) {
        return text.to_owned();
    }
    let place = text.split_once("Location: ").and_then(|(_, rest)| rest.split_once('[')).map(|(_, rest)| rest);
    let path = place.and_then(|rest| rest.split([',', ']']).next()).filter(|p| !p.contains("..."));
    match path.and_then(|p| p.trim_end_matches('/').rsplit('/').next()) {
        Some(last) if !last.is_empty() => format!("{last} (RDD {})", rdd.id),
        _ => format!("RDD {}", rdd.id),
    }
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

fn with_remedies(cx: &Context<'_>, draft: Draft, room: &Room, lost: bool) -> Draft {
    let mut draft = draft
        .evidence("needed_bytes", room.needed, "bytes")
        .evidence("storage_memory_bytes", room.storage, "bytes")
        .seen_at("executors page");
    draft = settings(draft, room);
    if cx.app.cached.len() > 1 {
        draft = draft
            .remedy(RemedyKind::Code, "Unpersist each data set after its last use, before the next one is cached")
            .snippet("df.unpersist()")
            .computed(format!("together they need {}, storage memory is {}", Bytes(room.needed), Bytes(room.storage)));
    }
    draft = draft
        .remedy(RemedyKind::Code, "Cache only the columns and rows that later steps read")
        .snippet("df.select(\"…\").where(\"…\").cache()");
    if lost {
        draft = draft
            .remedy(RemedyKind::Code, "Keep what does not fit on disk: MEMORY_ONLY computes it again on every read")
            .snippet("rdd.persist(StorageLevel.MEMORY_AND_DISK)");
    }
    more_memory(cx, draft, room)
        .useless("more shuffle partitions", "cached blocks take the same memory however they are cut")
        .confirm("size on disk and fraction cached on the storage page")
}

/// Settings that were set below their defaults and leave storage too little.
fn settings(draft: Draft, room: &Room) -> Draft {
    let Some(memory) = room.memory else { return draft };
    if let Some(usual) = room.by_default() {
        let safe = (usual as f64 * memory.storage_fraction) as u64;
        return draft
            .evidence("memory_fraction", memory.fraction, "share")
            .remedy(
                RemedyKind::Conf,
                format!(
                    "spark.memory.fraction is {} (default {FRACTION}): remove it. Storage and execution then share {} instead of {}, {} of it is safe from sorts; {} are needed",
                    memory.fraction,
                    Bytes(usual),
                    Bytes(room.storage),
                    Bytes(safe),
                    Bytes(room.needed)
                ),
            )
            .snippet(format!("spark.memory.fraction {FRACTION}"))
            .computed(format!("{} × {FRACTION} / {}", Bytes(room.storage), memory.fraction));
    }
    let usual = (room.storage as f64 * STORAGE_FRACTION) as u64;
    if memory.storage_fraction < STORAGE_FRACTION && room.needed <= usual && room.needed > room.safe() {
        return draft
            .evidence("memory_storage_fraction", memory.storage_fraction, "share")
            .remedy(
                RemedyKind::Conf,
                format!(
                    "spark.memory.storageFraction is {} (default {STORAGE_FRACTION}): remove it. Sorts may then take storage down to {} instead of {}; {} are needed",
                    memory.storage_fraction,
                    Bytes(usual),
                    Bytes(room.safe()),
                    Bytes(room.needed)
                ),
            )
            .snippet(format!("spark.memory.storageFraction {STORAGE_FRACTION}"));
    }
    draft
}

/// A larger heap, where no setting is to blame.
fn more_memory(cx: &Context<'_>, draft: Draft, room: &Room) -> Draft {
    let (needed, storage) = (room.needed, room.storage);
    if storage == 0 || needed <= storage || room.by_default().is_some_and(|usual| usual >= needed) {
        return draft;
    }
    if cx.app.is_databricks() {
        return draft.remedy(RemedyKind::Compute, memory::more_heap(cx));
    }
    let key = memory::heap_key(cx);
    let heap = cx.app.conf_bytes(key, 1 << 20).unwrap_or(1 << 30);
    let wanted = sizing::round_up((heap as f64 * needed as f64 / storage as f64) as i64, 1 << 30) >> 30;
    let whose = if memory::is_local(cx) { "Or a driver" } else { "Or executors" };
    draft
        .remedy(RemedyKind::Compute, format!("{whose} with {wanted} GiB of heap"))
        .snippet(format!("{key} {wanted}g"))
        .computed(format!(
            "{} × {} needed / {} of storage memory, rounded up to a GiB",
            Bytes(heap.unsigned_abs()),
            Bytes(needed),
            Bytes(storage)
        ))
}
