//! Executors: added, removed, excluded, and how high their metrics went.

use super::super::texts::Interner;
use super::super::wire;
use super::{Clock, size};
use foldhash::HashMap;
use model::{Exclusion, Executor, Process, ResourceProfile, ResourceRequest, Text};

#[derive(Debug, Default)]
pub(super) struct Executors {
    list: Vec<Executor>,
    positions: HashMap<Text, u32>,
    processes: Vec<Process>,
    profiles: Vec<ResourceProfile>,
}

impl Executors {
    fn position(&mut self, id: &str, texts: &mut Interner) -> usize {
        if let Some(&known) = self.positions.get(id) {
            return known as usize;
        }
        let id = texts.text(id);
        self.positions.insert(id.clone(), self.list.len() as u32);
        self.list.push(Executor { id: id.into(), ..Executor::default() });
        self.list.len() - 1
    }

    fn get(&mut self, id: &str, texts: &mut Interner) -> &mut Executor {
        let at = self.position(id, texts);
        &mut self.list[at]
    }

    /// Position of the executor of a task; one that no event added gets an entry of its own.
    pub fn of_task(&mut self, id: &str, host: &str, texts: &mut Interner) -> u32 {
        let at = self.position(id, texts);
        let executor = &mut self.list[at];
        if executor.host.is_empty() {
            executor.host = texts.label(host);
        }
        at as u32
    }

    pub fn block_manager(&mut self, added: &wire::BlockManagerAdded, texts: &mut Interner, clock: &mut Clock) {
        let time_ms = clock.see(added.time_ms);
        let host_port = texts.text(&format!("{}:{}", added.id.host, added.id.port));
        let host = texts.label(&added.id.host);
        let executor = self.get(&added.id.executor, texts);
        executor.host_port = Some(host_port);
        if executor.host.is_empty() {
            executor.host = host;
        }
        executor.added_ms = executor.added_ms.or(time_ms);
        executor.max_memory_bytes = size(added.max_bytes);
        executor.max_on_heap_bytes = added.max_on_heap_bytes.map(size);
        executor.max_off_heap_bytes = added.max_off_heap_bytes.map(size);
    }

    /// An executor that comes back under its old id is there again.
    pub fn added(&mut self, added: &wire::ExecutorAdded, texts: &mut Interner, clock: &mut Clock) {
        let time_ms = clock.see(added.time_ms);
        let host = texts.label(&added.info.host);
        let logs = pairs(&added.info.log_urls, texts);
        let attributes = pairs(&added.info.attributes, texts);
        let resources = added.info.resources.iter().map(|(name, resource)| {
            let addresses = resource.addresses.iter().map(|a| texts.text(a)).collect();
            (texts.text(name), addresses)
        });
        let resources = resources.collect();
        let executor = self.get(&added.id, texts);
        executor.host = host;
        executor.cores = added.info.cores;
        executor.resource_profile = added.info.resource_profile;
        executor.logs = logs;
        executor.attributes = attributes;
        executor.resources = resources;
        executor.added_ms = time_ms.or(executor.added_ms);
        executor.added = true;
        executor.removed_ms = None;
        executor.removed_reason = None;
    }

    pub fn removed(
        &mut self,
        removed: &wire::ExecutorRemoved,
        texts: &mut Interner,
        clock: &mut Clock,
        now_ms: Option<i64>,
    ) {
        let time_ms = clock.see(removed.time_ms);
        let reason = texts.option(removed.reason.as_deref());
        let executor = self.get(&removed.id, texts);
        // The removal stands even when its time is none.
        executor.removed_ms = time_ms.or(now_ms);
        executor.removed_reason = reason;
    }

    /// Spark up to 4.0 writes each exclusion twice, under the new and the old name.
    pub fn excluded(&mut self, event: &wire::Exclusion, clock: &mut Clock) {
        let exclusion = Exclusion {
            from_ms: clock.see(event.time_ms).unwrap_or_default(),
            until_ms: None,
            stage: event.stage.map(|stage| (stage, event.stage_attempt)),
            task_failures: event.task_failures,
            node: event.executor.is_none(),
        };
        for executor in self.meant_by(event) {
            if !executor.exclusions.contains(&exclusion) {
                executor.exclusions.push(exclusion.clone());
            }
        }
    }

    pub fn unexcluded(&mut self, event: &wire::Exclusion, clock: &mut Clock) {
        let time_ms = clock.see(event.time_ms);
        for executor in self.meant_by(event) {
            for exclusion in executor.exclusions.iter_mut().filter(|e| e.stage.is_none() && e.until_ms.is_none()) {
                exclusion.until_ms = time_ms;
            }
        }
    }

    /// The executor that an exclusion names, or all of the node that it names.
    fn meant_by<'a>(&'a mut self, event: &'a wire::Exclusion) -> impl Iterator<Item = &'a mut Executor> {
        self.list.iter_mut().filter(|executor| match (&event.executor, &event.host) {
            (Some(id), _) => *executor.id == **id,
            (None, Some(host)) => *executor.host == **host && !executor.is_driver(),
            (None, None) => false,
        })
    }

    pub fn profile(&mut self, event: wire::ResourceProfileAdded, texts: &mut Interner) {
        let request = |(name, r): (&String, &wire::ResourceRequest)| ResourceRequest {
            name: texts.text(name),
            amount: r.amount as i64,
            discovery_script: texts.label(r.discovery_script.as_deref().unwrap_or_default()),
            vendor: texts.label(r.vendor.as_deref().unwrap_or_default()),
        };
        let executor = event.executor.iter().map(request).collect();
        let task = event.task.iter().map(|(name, r)| (texts.text(name), r.amount)).collect();
        self.profiles.retain(|p| p.id != event.id);
        self.profiles.push(ResourceProfile { id: event.id, executor, task });
    }

    /// Takes note of an executor's metrics; gives its position.
    pub fn peaks(&mut self, event: &wire::StageExecutorMetrics, texts: &mut Interner) -> u32 {
        let at = self.position(&event.executor, texts);
        for (name, &value) in &event.metrics {
            raise(&mut self.list[at].peaks, name, value, texts);
        }
        at as u32
    }

    /// The highest executor metrics that a batch's tasks of one executor and stage reported; gives
    /// the executor's position.
    pub fn task_peaks(&mut self, executor: &str, names: &[Box<str>], values: &[i64], texts: &mut Interner) -> u32 {
        let at = self.position(executor, texts);
        for (name, &value) in names.iter().zip(values) {
            raise(&mut self.list[at].peaks, name, value, texts);
        }
        at as u32
    }

    pub fn process(&mut self, added: &wire::ProcessAdded, texts: &mut Interner, clock: &mut Clock) {
        let process = Process {
            id: texts.label(&added.id),
            host_port: texts.label(&added.info.host_port),
            added_ms: clock.see(added.time_ms),
            cores: added.info.cores,
            logs: pairs(&added.info.logs, texts),
        };
        self.processes.retain(|p| p.id != process.id);
        self.processes.push(process);
    }

    pub fn finish(self) -> (Vec<Executor>, Vec<Process>, Vec<ResourceProfile>) {
        let mut profiles = self.profiles;
        profiles.sort_by_key(|p| p.id);
        (self.list, self.processes, profiles)
    }
}

fn pairs(map: &wire::Map, texts: &mut Interner) -> Vec<(Text, Text)> {
    map.0.iter().map(|(key, value)| (texts.text(key), texts.text(value))).collect()
}

pub(super) fn raise(peaks: &mut Vec<(Text, i64)>, name: &str, value: i64, texts: &mut Interner) {
    match peaks.iter_mut().find(|(n, _)| &**n == name) {
        Some((_, highest)) => *highest = value.max(*highest),
        // Metrics that nobody collected are written as 0.
        None if value > 0 => peaks.push((texts.text(name), value)),
        None => {}
    }
}
