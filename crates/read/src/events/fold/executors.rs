//! Executors: added, removed, excluded, and how high their metrics went.

use super::super::parse::Parsed;
use super::super::texts::Interner;
use super::super::wire;
use super::{Clock, size};
use foldhash::HashMap;
use model::{Exclusion, Executor, ResourceProfile, Text};

#[derive(Debug, Default)]
pub(super) struct Executors {
    list: Vec<Executor>,
    positions: HashMap<Text, u32>,
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
        let pairs = added.info.log_urls.0.iter().chain(&added.info.attributes.0);
        let attributes = pairs.map(|(key, value)| (texts.text(key), texts.text(value))).collect();
        let executor = self.get(&added.id, texts);
        executor.host = host;
        executor.cores = added.info.cores;
        executor.resource_profile = added.info.resource_profile;
        executor.attributes = attributes;
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
        let executor = event.executor.iter().map(|(name, r)| (texts.text(name), r.amount as i64)).collect();
        let task = event.task.iter().map(|(name, r)| (texts.text(name), r.amount)).collect();
        self.profiles.retain(|p| p.id != event.id);
        self.profiles.push(ResourceProfile { id: event.id, executor, task });
    }

    pub fn peaks(&mut self, event: &wire::StageExecutorMetrics, texts: &mut Interner) {
        let at = self.position(&event.executor, texts);
        for (name, &value) in &event.metrics {
            raise(&mut self.list[at].peaks, name, value, texts);
        }
    }

    /// The highest executor metrics that a batch's tasks reported.
    pub fn task_peaks(&mut self, parsed: &Parsed, texts: &mut Interner) {
        for (executor, values) in &parsed.peaks.executors {
            let at = self.position(&parsed.texts[*executor as usize], texts);
            for (name, &value) in parsed.peaks.names.iter().zip(values) {
                raise(&mut self.list[at].peaks, name, value, texts);
            }
        }
    }

    pub fn finish(self) -> (Vec<Executor>, Vec<ResourceProfile>) {
        let mut profiles = self.profiles;
        profiles.sort_by_key(|p| p.id);
        (self.list, profiles)
    }
}

fn raise(peaks: &mut Vec<(Text, i64)>, name: &str, value: i64, texts: &mut Interner) {
    match peaks.iter_mut().find(|(n, _)| &**n == name) {
        Some((_, highest)) => *highest = value.max(*highest),
        // Metrics that nobody collected are written as 0.
        None if value > 0 => peaks.push((texts.text(name), value)),
        None => {}
    }
}
