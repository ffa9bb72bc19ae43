//! From nodes in reading order to a [`Plan`], and what only the neighbours tell of a node.

use super::kind::{is_photon, kind};
use super::list::{first_number, is_cut};
use super::operator::{operator, origin};
use model::{ExchangeOrigin, JoinAlgorithm, Operator, Partitioning, Plan, PlanMetric, PlanNode, Side, Statistics};

/// A node as it was written, before it is understood.
#[derive(Clone, Debug, Default)]
pub(crate) struct Raw {
    /// Position of the parent; the list is in pre-order.
    pub(crate) parent: Option<usize>,
    pub(crate) name: String,
    pub(crate) detail: String,
    pub(crate) codegen: Option<u32>,
    pub(crate) number: Option<u32>,
    pub(crate) statistics: Option<Statistics>,
    pub(crate) output: Vec<String>,
    pub(crate) metrics: Vec<PlanMetric>,
    /// Operator number of a formatted plan whose rows a reused exchange takes.
    pub(crate) reuses_number: Option<u32>,
}

/// Understands the nodes and ties them together.
pub(crate) fn build(raw: Vec<Raw>) -> Plan {
    let mut plan = Plan::default();
    let mut reuses = Vec::new();
    for raw in raw {
        reuses.push(raw.reuses_number);
        push(&mut plan, raw);
    }
    tie_reused(&mut plan, &reuses);
    photon_exchanges(&mut plan);
    partial_aggregates(&mut plan);
    codegen_below(&mut plan);
    plan
}

fn push(plan: &mut Plan, raw: Raw) {
    let at = plan.nodes.len();
    let op = operator(&raw.name, &raw.detail);
    if op == Operator::Adaptive && plan.is_final.is_none() {
        plan.is_final = Some(raw.detail.contains("isFinalPlan=true"));
    }
    let name = raw.name.trim();
    if kind(name).is_none() && !plan.unknown.iter().any(|n| n == name) {
        plan.unknown.push(name.to_owned());
    }
    plan.cut |= is_cut(&raw.detail);
    match raw.parent {
        // A subquery hands its rows to its host but is none of its inputs.
        _ if op == Operator::Subquery => plan.subqueries.push(at),
        Some(parent) => plan.nodes[parent].children.push(at),
        None if at > 0 => plan.subqueries.push(at),
        None => {}
    }
    plan.nodes.push(PlanNode {
        parent: raw.parent,
        name: name.into(),
        photon: is_photon(name),
        detail: raw.detail.into(),
        op,
        codegen: raw.codegen,
        number: raw.number,
        statistics: raw.statistics,
        output: raw.output,
        metrics: raw.metrics,
        ..PlanNode::default()
    });
}

/// Finds the node whose rows a `ReusedExchange` takes, by operator number or plan id.
fn tie_reused(plan: &mut Plan, numbers: &[Option<u32>]) {
    for (at, number) in numbers.iter().enumerate() {
        if plan.nodes[at].op != Operator::Reused {
            continue;
        }
        let id = exchange_id(&plan.nodes[at].detail);
        let found = plan.nodes.iter().position(|node| {
            let exchange = matches!(node.op, Operator::Exchange(_) | Operator::BroadcastExchange { .. });
            exchange && id.is_some() && exchange_id(&node.detail) == id
        });
        let numbered = || plan.nodes.iter().position(|n| n.number.is_some() && n.number == *number);
        plan.nodes[at].reuses = found.or_else(numbered);
    }
}

/// N of `[plan_id=N]`, or of `[id=#N]` up to Spark 3.2.
pub(crate) fn exchange_id(detail: &str) -> Option<u64> {
    let at = detail.rfind("[plan_id=").or_else(|| detail.rfind("[id=#"))?;
    first_number(&detail[at..])
}

/// Photon writes the origin on the stage above the exchange, and sends a broadcast as a shuffle
/// to one partition that the build side of a join reads (`EXECUTOR_BROADCAST`).
fn photon_exchanges(plan: &mut Plan) {
    for at in 0..plan.nodes.len() {
        if !plan.nodes[at].photon || !matches!(plan.nodes[at].op, Operator::Exchange(_)) {
            continue;
        }
        let stage = plan.nodes[at].parent.map(|p| plan.nodes[p].detail.clone()).unwrap_or_default();
        let broadcast = stage.contains("EXECUTOR_BROADCAST") || feeds_broadcast_join(plan, at);
        let id = exchange_id(&stage);
        let Operator::Exchange(exchange) = &mut plan.nodes[at].op else { continue };
        exchange.plan_id = exchange.plan_id.or(id);
        if let Some(origin) = stage.split([' ', ',']).find_map(origin)
            && exchange.origin == ExchangeOrigin::Requirements
        {
            exchange.origin = origin;
        }
        if broadcast && exchange.partitioning == Partitioning::Single {
            plan.nodes[at].op = Operator::BroadcastExchange { mode: "EXECUTOR_BROADCAST".to_owned() };
        }
    }
}

fn feeds_broadcast_join(plan: &Plan, node: usize) -> bool {
    let Some(consumer) = plan.consumer(node) else { return false };
    let Operator::Join(join) = &plan.nodes[consumer].op else { return false };
    let broadcast = matches!(join.algorithm, JoinAlgorithm::BroadcastHash | JoinAlgorithm::NestedLoop);
    let inputs = plan.inputs(consumer);
    let built = match join.build {
        Some(Side::Left) => inputs.first(),
        Some(Side::Right) => inputs.get(1),
        None => return false,
    };
    broadcast && built == Some(&node)
}

/// An aggregate without functions (`distinct`, `IN`) does not say that it is partial: it is when
/// another aggregate by the same keys takes its rows behind an exchange.
fn partial_aggregates(plan: &mut Plan) {
    for at in 0..plan.nodes.len() {
        let Operator::Aggregate(aggregate) = &plan.nodes[at].op else { continue };
        if !aggregate.functions.is_empty() || aggregate.partial {
            continue;
        }
        let exchange = plan.consumer(at).filter(|&c| matches!(plan.nodes[c].op, Operator::Exchange(_)));
        let above = exchange.and_then(|e| plan.consumer(e)).map(|c| &plan.nodes[c].op);
        let partial = matches!(above, Some(Operator::Aggregate(next)) if next.keys == aggregate.keys);
        if let Operator::Aggregate(aggregate) = &mut plan.nodes[at].op {
            aggregate.partial = partial;
        }
    }
}

/// In the log's JSON a `WholeStageCodegen (n)` stands above its nodes, down to an `InputAdapter`.
fn codegen_below(plan: &mut Plan) {
    // In text the ids are prefixes of the nodes themselves, and there are no such nodes.
    if !plan.nodes.iter().any(|n| matches!(n.op, Operator::Codegen { id: Some(_) })) {
        return;
    }
    for at in 0..plan.nodes.len() {
        let inherited = plan.nodes[at].parent.and_then(|p| plan.nodes[p].codegen);
        let ends = &*plan.nodes[at].name == "InputAdapter" || plan.subqueries.contains(&at);
        match &plan.nodes[at].op {
            Operator::Codegen { id } => plan.nodes[at].codegen = *id,
            _ if ends => plan.nodes[at].codegen = None,
            _ => plan.nodes[at].codegen = inherited,
        }
    }
}
