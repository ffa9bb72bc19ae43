//! A plan from data to result, as a reader goes through it: steps, stages, and what to notice.

mod changes;
mod names;
mod notes;
mod steps;

pub use changes::{Change, ChangeKind, read_change};
pub use names::human_name;
pub use notes::{Note, NoteKind};

use model::{Application, Operator, Plan};
use serde::Serialize;

/// A plan in the order in which rows pass through it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlanReading {
    /// Heading that the plan stood under.
    pub title: String,
    /// One line: what it reads, moves and joins.
    pub summary: String,
    /// Operators, leaves first; each stands after its inputs.
    pub steps: Vec<Step>,
    /// Parts between shuffles, in the order in which they run.
    pub stages: Vec<StageBox>,
    /// What to notice, worst first.
    pub notes: Vec<Note>,
    /// Up to which size Spark broadcasts a side of a join by itself, where the plan has joins.
    pub broadcast_threshold: Option<String>,
    /// `isFinalPlan` of adaptive execution.
    pub is_final: Option<bool>,
    /// Node names that nobody knows.
    pub unknown: Vec<String>,
    /// Whether Spark cut its text.
    pub cut: bool,
}

/// An operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Step {
    /// From 1, in reading order.
    pub number: usize,
    /// Position in [`Plan::nodes`].
    pub node: usize,
    /// As people say it: `Read lake.orders`.
    pub name: String,
    /// As Spark says it: `Scan parquet lake.orders`.
    pub operator: String,
    /// Number in a formatted plan.
    pub operator_number: Option<u32>,
    /// Steps whose rows it takes.
    pub inputs: Vec<usize>,
    /// The stage it is in, from 1.
    pub stage: usize,
    /// What the plan says of it, in short lines.
    pub details: Vec<String>,
    /// Rows that leave it, where the run was measured.
    pub rows: Option<i64>,
    /// Bytes that it read, wrote or sent.
    pub bytes: Option<i64>,
    /// Its time over all tasks, ms.
    pub time_ms: Option<i64>,
    /// Whether that time was shared out by rows rather than measured.
    pub time_estimated: bool,
}

/// A part of the plan without a shuffle in it: its operators run in the same tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StageBox {
    /// From 1.
    pub number: usize,
    /// Its steps.
    pub steps: Vec<usize>,
    /// How its rows leave it.
    pub ends: String,
    /// Spark's stage id, where the run is known.
    pub spark_stage: Option<u32>,
}

/// Reads a plan; with an application also its rows, bytes, times and settings.
#[must_use]
pub fn read_plan(plan: &Plan, app: Option<&Application>) -> PlanReading {
    let order = Order::of(plan);
    let mut reading = PlanReading {
        title: plan.title.clone(),
        is_final: plan.is_final,
        unknown: plan.unknown.clone(),
        cut: plan.cut,
        ..PlanReading::default()
    };
    reading.steps = order.nodes.iter().map(|&at| steps::step(plan, app, at, &order)).collect();
    if let Some(app) = app {
        steps::measure(plan, app, &mut reading.steps);
    }
    reading.stages = steps::stages(plan, &reading.steps, &order, app);
    reading.notes = notes::notes(plan, app, &reading.steps);
    reading.broadcast_threshold = has_joins(plan).then(|| notes::threshold_words(app));
    reading.summary = summary(plan, &order.nodes);
    reading
}

fn has_joins(plan: &Plan) -> bool {
    plan.nodes.iter().any(|n| matches!(n.op, Operator::Join(_)))
}

fn is_exchange(op: &Operator) -> bool {
    matches!(op, Operator::Exchange(_) | Operator::BroadcastExchange { .. })
}

/// Steps in the order in which they are read: part after part, each part whole, and every part
/// after those whose rows it takes.
struct Order {
    /// Nodes without wrappers.
    nodes: Vec<usize>,
    /// Step number of each node of the plan, 0 for wrappers.
    numbers: Vec<usize>,
    /// Number of its part, 0 for wrappers.
    parts: Vec<usize>,
}

impl Order {
    fn of(plan: &Plan) -> Self {
        let walked = walk(plan);
        let ends = ends(plan);
        let mut last = vec![0; plan.nodes.len()];
        walked.iter().enumerate().for_each(|(index, &at)| last[ends[at]] = index);
        let mut nodes: Vec<(usize, usize)> = walked.iter().map(|&at| (last[ends[at]], at)).collect();
        // Stable: within a part the steps keep their order.
        nodes.sort_by_key(|(last, _)| *last);
        let mut order = Self {
            nodes: nodes.iter().map(|(_, at)| *at).collect(),
            numbers: vec![0; plan.nodes.len()],
            parts: vec![0; plan.nodes.len()],
        };
        let (mut part, mut before) = (0, None);
        for (index, (last, at)) in nodes.into_iter().enumerate() {
            part += usize::from(before != Some(last));
            before = Some(last);
            order.numbers[at] = index + 1;
            order.parts[at] = part;
        }
        order
    }
}

/// Nodes from data to result without wrappers: subqueries before what asks for them, inputs
/// before what takes them, and an exchange before those who use it again.
fn walk(plan: &Plan) -> Vec<usize> {
    let mut asked = vec![Vec::new(); plan.nodes.len()];
    for &root in &plan.subqueries {
        if let Some(host) = plan.nodes[root].parent {
            asked[host].push(root);
        }
    }
    let mut order = Vec::new();
    let mut seen = vec![false; plan.nodes.len()];
    let mut open: Vec<(usize, bool)> = plan.nodes.first().map(|_| (0, false)).into_iter().collect();
    while let Some((at, entered)) = open.pop() {
        if entered {
            order.push(at);
            continue;
        }
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        open.push((at, true));
        let node = &plan.nodes[at];
        let inputs = node.children.iter().chain(&asked[at]).chain(&node.reuses);
        open.extend(inputs.rev().map(|&child| (child, false)));
    }
    order.retain(|&at| !plan.nodes[at].op.is_wrapper() && plan.nodes[at].op != Operator::Subquery);
    order
}

/// The node that ends the part of each node: an exchange, the root of a subquery, what fills a
/// cache, the result.
fn ends(plan: &Plan) -> Vec<usize> {
    let mut ends: Vec<usize> = (0..plan.nodes.len()).collect();
    for at in 0..plan.nodes.len() {
        let node = &plan.nodes[at];
        let own = is_exchange(&node.op)
            || plan.subqueries.contains(&at)
            || node.parent.is_none_or(|parent| plan.nodes[parent].op == Operator::CacheScan);
        if let (false, Some(parent)) = (own, node.parent) {
            ends[at] = ends[parent];
        }
    }
    ends
}

/// Nodes that computed cached data: they ran when the cache was filled, maybe for another query.
fn of_cache(plan: &Plan) -> Vec<bool> {
    let mut cached = vec![false; plan.nodes.len()];
    for at in 0..plan.nodes.len() {
        let parent = plan.nodes[at].parent;
        cached[at] = parent.is_some_and(|p| cached[p] || plan.nodes[p].op == Operator::CacheScan);
    }
    cached
}

fn summary(plan: &Plan, order: &[usize]) -> String {
    let count = |wanted: fn(&Operator) -> bool| order.iter().filter(|&&at| wanted(&plan.nodes[at].op)).count() as u64;
    let parts = [
        (count(|op| matches!(op, Operator::Scan(_) | Operator::CacheScan)), "read"),
        (count(|op| matches!(op, Operator::Exchange(_))), "shuffle"),
        (count(|op| matches!(op, Operator::BroadcastExchange { .. })), "broadcast"),
        (count(|op| matches!(op, Operator::Join(_))), "join"),
        (count(|op| matches!(op, Operator::Reused)), "reused exchange"),
        (count(|op| matches!(op, Operator::Write { .. })), "write"),
    ];
    let told = parts.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| crate::words::count(*n, noun));
    let told: Vec<String> = told.collect();
    let operators = crate::words::count(order.len() as u64, "operator");
    if told.is_empty() { operators } else { format!("{operators}: {}", told.join(", ")) }
}

#[cfg(test)]
mod tests;
