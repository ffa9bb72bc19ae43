//! SQL executions, their plans, and what their metrics add up to.

use super::super::texts::Interner;
use super::super::wire_sql::{DriverAccumUpdates, SqlEnd, SqlMetricUpdates, SqlStart, SqlUpdate};
use super::{Clock, Keep};
use foldhash::{HashMap, HashSet};
use model::{Accumulator, MetricKind, Plan, SqlExecution};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Sql {
    executions: BTreeMap<i64, SqlExecution>,
    sums: HashMap<i64, Sum>,
    /// Accumulators in whose updates −1 means "not set": sizes and times. Adaptive plans bring
    /// new ids with each update, so all of them are kept.
    minus_one_is_unset: HashSet<i64>,
    /// Nodes of all plans that are kept.
    nodes: usize,
}

/// An accumulator before it is known what −1 means in it.
#[derive(Debug)]
struct Sum {
    sum: i64,
    max: i64,
    updates: u32,
    minus_ones: u32,
    stage: Option<u32>,
}

/// Bytes of a plan node with its texts, roughly.
const NODE_BYTES: usize = 1_000;

impl Sql {
    fn get(&mut self, id: i64) -> &mut SqlExecution {
        self.executions.entry(id).or_insert_with(|| SqlExecution { id, ..SqlExecution::default() })
    }

    pub fn start(&mut self, start: SqlStart, keep: Keep, texts: &mut Interner, clock: &mut Clock) {
        self.note_kinds(&start.plan);
        let execution = self.get(start.id);
        execution.root_id = start.root_id.or(Some(start.id));
        execution.description = texts.label(&start.description);
        execution.started_ms = clock.see(start.time_ms);
        execution.modified_configs =
            start.modified_configs.iter().map(|(key, value)| (texts.text(key), texts.text(value))).collect();
        if keep.texts {
            execution.details = texts.label(&start.details);
            execution.plan_text = start.plan_text.map(Into::into);
        }
        if keep.plans {
            execution.first_plan = start.plan;
            let nodes = execution.first_plan.nodes.len();
            self.nodes += nodes;
        }
    }

    /// The last plan stands; of those between it and the first only the metrics' sums remain.
    pub fn update(&mut self, update: SqlUpdate, keep: Keep) {
        self.note_kinds(&update.plan);
        let execution = self.get(update.id);
        execution.updates = execution.updates.saturating_add(1);
        if keep.texts {
            execution.plan_text = update.plan_text.map(Into::into).or(execution.plan_text.take());
        }
        if keep.plans {
            let nodes = update.plan.nodes.len();
            let replaced = execution.last_plan.replace(update.plan).map_or(0, |p| p.nodes.len());
            self.nodes = self.nodes + nodes - replaced;
        }
    }

    pub fn end(&mut self, end: &SqlEnd, texts: &mut Interner, clock: &mut Clock) {
        let time_ms = clock.see(end.time_ms);
        let error = texts.option(end.error.as_deref().filter(|e| !e.is_empty()));
        let execution = self.get(end.id);
        execution.ended_ms = time_ms;
        execution.error = error;
        // Shared only now: adaptive execution replaces the text many times.
        execution.plan_text = execution.plan_text.take().map(|text| texts.text(&text));
    }

    pub fn metrics(&mut self, event: &SqlMetricUpdates) {
        let unset = event.metrics.iter().filter(|m| has_unset(m.kind));
        self.minus_one_is_unset.extend(unset.map(|m| m.accumulator));
    }

    pub fn driver_updates(&mut self, event: &DriverAccumUpdates) {
        for &(id, value) in &event.updates {
            self.add(id, value, None);
        }
    }

    /// Adds the updates of a task that succeeded in a stage (its position).
    pub fn task_updates(&mut self, stage: u32, updates: &[(i64, i64)]) {
        for &(id, value) in updates {
            self.add(id, value, Some(stage));
        }
    }

    fn add(&mut self, id: i64, value: i64, stage: Option<u32>) {
        let new = || Sum { sum: 0, max: i64::MIN, updates: 0, minus_ones: 0, stage };
        let sum = self.sums.entry(id).or_insert_with(new);
        sum.sum = sum.sum.saturating_add(value);
        sum.max = sum.max.max(value);
        sum.updates = sum.updates.saturating_add(1);
        sum.minus_ones += u32::from(value == -1);
        sum.stage = sum.stage.or(stage);
    }

    fn note_kinds(&mut self, plan: &Plan) {
        let metrics = plan.nodes.iter().flat_map(|n| &n.metrics);
        self.minus_one_is_unset.extend(metrics.filter(|m| has_unset(m.kind)).map(|m| m.accumulator));
    }

    /// Lets go of what is only for display.
    pub fn forget_texts(&mut self) {
        for execution in self.executions.values_mut() {
            execution.plan_text = None;
            execution.details = model::Label::default();
        }
    }

    pub fn heap_bytes(&self) -> usize {
        let accumulators = self.sums.capacity() * (size_of::<Sum>() + 9) + self.minus_one_is_unset.capacity() * 9;
        accumulators + self.nodes * NODE_BYTES
    }

    pub fn finish(self) -> (Vec<SqlExecution>, HashMap<i64, Accumulator>) {
        let unset = self.minus_one_is_unset;
        let accumulators = self.sums.into_iter().map(|(id, sum)| (id, sum.finish(unset.contains(&id))));
        let accumulators = accumulators.collect();
        (self.executions.into_values().collect(), accumulators)
    }
}

impl Sum {
    fn finish(self, minus_one_is_unset: bool) -> Accumulator {
        let unset = if minus_one_is_unset { self.minus_ones } else { 0 };
        let updates = self.updates - unset;
        Accumulator {
            sum: self.sum.saturating_add(i64::from(unset)),
            max: if updates == 0 { 0 } else { self.max },
            updates,
            stage: self.stage,
        }
    }
}

fn has_unset(kind: MetricKind) -> bool {
    matches!(kind, MetricKind::Size | MetricKind::Timing | MetricKind::NsTiming)
}
