//! `/storage/rdd`: cached data.

use super::errors::Failure;
use model::{Application, CachedRdd, StorageLevel};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RddStorageInfo<'a> {
    id: u32,
    name: &'a str,
    num_partitions: u32,
    num_cached_partitions: usize,
    storage_level: String,
    memory_used: u64,
    disk_used: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_distribution: Option<Vec<Distribution<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partitions: Option<Vec<Partition<'a>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Distribution<'a> {
    address: &'a str,
    memory_used: u64,
    memory_remaining: u64,
    disk_used: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Partition<'a> {
    block_name: String,
    storage_level: String,
    memory_used: u64,
    disk_used: u64,
    executors: Vec<&'a str>,
}

impl<'a> RddStorageInfo<'a> {
    fn of(app: &'a Application, rdd: &'a CachedRdd) -> Self {
        let mut partitions: BTreeMap<u32, Partition<'a>> = BTreeMap::new();
        for block in &rdd.held {
            let partition = partitions.entry(block.partition).or_insert_with(|| Partition {
                block_name: format!("rdd_{}_{}", rdd.id, block.partition),
                storage_level: description(&rdd.level),
                memory_used: 0,
                disk_used: 0,
                executors: Vec::new(),
            });
            partition.memory_used += block.memory_bytes;
            partition.disk_used += block.disk_bytes;
            partition.executors.push(&block.executor);
        }
        let distribution = distribution(app, rdd);
        Self {
            id: rdd.id,
            name: &rdd.name,
            num_partitions: rdd.partitions,
            num_cached_partitions: partitions.len(),
            storage_level: description(&rdd.level),
            memory_used: rdd.memory_bytes,
            disk_used: rdd.disk_bytes,
            data_distribution: (!distribution.is_empty()).then_some(distribution),
            partitions: Some(partitions.into_values().collect()),
        }
    }
}

/// What each executor holds of it.
fn distribution<'a>(app: &'a Application, rdd: &'a CachedRdd) -> Vec<Distribution<'a>> {
    let of = |executor: &'a model::Executor| {
        let held: Vec<_> = rdd.held.iter().filter(|b| *b.executor == *executor.id).collect();
        let used = executor.cached_on_heap_bytes + executor.cached_off_heap_bytes;
        (!held.is_empty()).then(|| Distribution {
            address: executor.host_port.as_deref().unwrap_or(&executor.host),
            memory_used: held.iter().map(|b| b.memory_bytes).sum(),
            memory_remaining: executor.max_memory_bytes.saturating_sub(used),
            disk_used: held.iter().map(|b| b.disk_bytes).sum(),
        })
    };
    app.executors.iter().filter_map(of).collect()
}

/// A level in Spark's words.
fn description(level: &StorageLevel) -> String {
    let disk = if level.disk { "Disk " } else { "" };
    let memory = match (level.memory, level.off_heap) {
        (false, _) => "",
        (true, true) => "Memory (off heap) ",
        (true, false) => "Memory ",
    };
    let form = if level.deserialized { "Deserialized" } else { "Serialized" };
    format!("{disk}{memory}{form} {}x Replicated", level.replication)
}

/// Cached data that is there.
pub(super) fn list(app: &Application) -> Vec<RddStorageInfo<'_>> {
    let cached = app.cached.iter().filter(|rdd| rdd.unpersisted_ms.is_none() && !rdd.held.is_empty());
    cached
        .map(|rdd| RddStorageInfo { data_distribution: None, partitions: None, ..RddStorageInfo::of(app, rdd) })
        .collect()
}

/// An RDD that was ever persisted.
pub(super) fn one(app: &Application, id: u32) -> Result<RddStorageInfo<'_>, Failure> {
    let rdd = app.cached.iter().find(|rdd| rdd.id == id && rdd.unpersisted_ms.is_none());
    let rdd = rdd.ok_or_else(|| Failure::not_found(format!("no rdd found w/ id {id}")))?;
    Ok(RddStorageInfo::of(app, rdd))
}
