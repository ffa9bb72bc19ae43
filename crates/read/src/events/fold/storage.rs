//! Cached data: from RDD infos of stages, and from block updates where the log has them.

use super::super::texts::Interner;
use super::super::wire::{self, BlockUpdatedInfo, StageInfo};
use super::size;
use foldhash::HashMap;
use model::{CachedBlock, CachedRdd, StorageLevel, Text};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Storage {
    rdds: BTreeMap<u32, CachedRdd>,
    blocks: HashMap<(u32, u32, Text), Block>,
}

/// What one executor holds of one partition, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    memory: u64,
    disk: u64,
    dropped: bool,
}

impl Storage {
    /// Takes note of the persisted RDDs that a stage computes or reads.
    pub fn stage(&mut self, info: &StageInfo, texts: &mut Interner) {
        for rdd in &info.rdds {
            let level = level(rdd.level);
            if level.is_persisted() {
                let cached = self.rdds.entry(rdd.id).or_insert_with(|| new(rdd.id));
                cached.name = texts.label(&rdd.name);
                cached.level = level;
                cached.partitions = rdd.partitions;
            }
        }
    }

    pub fn unpersist(&mut self, rdd: u32, now_ms: Option<i64>) {
        if let Some(cached) = self.rdds.get_mut(&rdd) {
            // The event has no time of its own.
            cached.unpersisted_ms = now_ms;
        }
    }

    pub fn block(&mut self, update: &BlockUpdatedInfo, texts: &mut Interner) {
        let Some((rdd, partition)) = rdd_block(&update.block) else { return };
        let cached = self.rdds.entry(rdd).or_insert_with(|| new(rdd));
        let key = (rdd, partition, texts.text(&update.manager.executor));
        let block = self.blocks.entry(key).or_default();
        block.apply(update, cached);
        cached.peak_memory_bytes = cached.peak_memory_bytes.max(cached.memory_bytes);
        cached.peak_disk_bytes = cached.peak_disk_bytes.max(cached.disk_bytes);
    }

    pub fn heap_bytes(&self) -> usize {
        self.blocks.capacity() * 64
    }

    pub fn finish(self) -> Vec<CachedRdd> {
        let mut rdds = self.rdds;
        for ((rdd, partition, executor), block) in self.blocks.into_iter().filter(|(_, block)| block.held()) {
            if let Some(cached) = rdds.get_mut(&rdd) {
                let (memory_bytes, disk_bytes) = (block.memory, block.disk);
                cached.held.push(CachedBlock { partition, executor, memory_bytes, disk_bytes });
            }
        }
        rdds.values_mut()
            .for_each(|rdd| rdd.held.sort_by(|a, b| (a.partition, &a.executor).cmp(&(b.partition, &b.executor))));
        rdds.into_values().collect()
    }
}

impl Block {
    /// A size is an amount added when its `Use` flag is set, and an amount freed when it is not:
    /// a block that moves to disk carries its old memory size without `Use Memory`.
    fn apply(&mut self, update: &BlockUpdatedInfo, rdd: &mut CachedRdd) {
        let before = *self;
        self.memory = changed(self.memory, update.memory_bytes, update.level.memory);
        self.disk = changed(self.disk, update.disk_bytes, update.level.disk);
        let gone = !update.level.memory && !update.level.disk;
        if gone {
            (self.memory, self.disk) = (0, 0);
        }
        rdd.memory_bytes = moved(rdd.memory_bytes, before.memory, self.memory);
        rdd.disk_bytes = moved(rdd.disk_bytes, before.disk, self.disk);
        match (before.held(), self.held()) {
            (false, true) => {
                rdd.blocks += 1;
                rdd.stored_again += u32::from(before.dropped);
            }
            (true, false) => {
                rdd.blocks = rdd.blocks.saturating_sub(1);
                rdd.dropped += u32::from(rdd.unpersisted_ms.is_none());
            }
            _ => {}
        }
        self.dropped = before.held() && !self.held();
        let left_memory = before.memory > 0 && self.memory == 0;
        rdd.moved_to_disk += u32::from(left_memory && self.disk > 0);
    }

    fn held(self) -> bool {
        self.memory > 0 || self.disk > 0
    }
}

fn changed(held: u64, amount: i64, used: bool) -> u64 {
    match used {
        true => held.saturating_add(size(amount)),
        false => held.saturating_sub(size(amount)),
    }
}

fn moved(total: u64, before: u64, after: u64) -> u64 {
    total.saturating_add(after).saturating_sub(before)
}

fn new(id: u32) -> CachedRdd {
    CachedRdd { id, ..CachedRdd::default() }
}

/// `rdd_12_3` is partition 3 of RDD 12; other blocks are no cached data.
fn rdd_block(name: &str) -> Option<(u32, u32)> {
    let (rdd, partition) = name.strip_prefix("rdd_")?.split_once('_')?;
    Some((rdd.parse().ok()?, partition.parse().ok()?))
}

pub(super) fn level(level: wire::StorageLevel) -> StorageLevel {
    StorageLevel {
        memory: level.memory,
        disk: level.disk,
        off_heap: level.off_heap,
        deserialized: level.deserialized,
        replication: level.replication,
    }
}
