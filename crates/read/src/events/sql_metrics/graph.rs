//! Spark's graph of a plan: which nodes it shows, how it numbers them, and which rows go where.
//!
//! The rules are those of `SparkPlanGraph` of Spark 4.0.1: wrappers vanish, a whole-stage codegen
//! is a cluster around its nodes, an exchange or a subquery that was seen before is pointed at
//! rather than shown again.

use super::ValueKind;
use crate::plan::PlanInfo;
use foldhash::HashMap;
use model::{Plan, Text};

/// A plan as Spark's pages and its REST API draw it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SqlGraph {
    /// Nodes; the position is the node's id.
    pub nodes: Vec<GraphNode>,
    /// Edges in Spark's order: the node that gives rows, the one that takes them.
    pub edges: Vec<(u32, u32)>,
}

/// A node of the graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphNode {
    /// Name without surrounding space.
    pub name: Text,
    /// Number of the whole-stage codegen whose cluster it is in.
    pub codegen: Option<i64>,
    /// Metrics in the plan's order.
    pub metrics: Vec<GraphMetric>,
}

/// A metric of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphMetric {
    /// Name without surrounding space.
    pub name: Text,
    /// Accumulator that holds it.
    pub accumulator: i64,
    /// How its updates are summed up.
    pub kind: ValueKind,
}

/// A plan from either source, with what tells equal subtrees.
#[derive(Default)]
struct Tree<'a> {
    names: Vec<&'a str>,
    children: Vec<Vec<usize>>,
    /// Equal numbers mean subtrees of equal names, texts and children.
    classes: Vec<u32>,
    /// What a node takes the rows of, where the copy below it was left out.
    reuses: Vec<Option<usize>>,
    metrics: Vec<Vec<GraphMetric>>,
}

impl SqlGraph {
    /// The graph of a plan as the log writes it.
    pub(super) fn of_info(info: &PlanInfo<'_>) -> Self {
        let nodes = &info.nodes;
        let metric = |m: &crate::plan::InfoMetric<'_>| GraphMetric {
            name: m.name.trim().into(),
            accumulator: m.accumulator_id,
            kind: ValueKind::of(&m.metric_type),
        };
        let parents: Vec<_> = nodes.iter().map(|n| n.parent).collect();
        let texts: Vec<_> = nodes.iter().map(|n| (&*n.node_name, &*n.simple_string)).collect();
        Tree {
            metrics: nodes.iter().map(|n| n.metrics.iter().map(metric).collect()).collect(),
            reuses: vec![None; nodes.len()],
            ..Tree::new(&parents, &texts)
        }
        .graph()
    }

    /// The graph of a plan of the model, for when the log cannot be read again. Where two
    /// exchanges read alike it may number them otherwise than [`crate::sql_metrics`] does.
    #[must_use]
    pub fn of_plan(plan: &Plan) -> Self {
        let nodes = &plan.nodes;
        let metric = |m: &model::PlanMetric| GraphMetric {
            name: m.name.clone(),
            accumulator: m.accumulator,
            kind: m.kind.into(),
        };
        let parents: Vec<_> = nodes.iter().map(|n| n.parent).collect();
        let texts: Vec<_> = nodes.iter().map(|n| (&*n.name, &*n.detail)).collect();
        Tree {
            metrics: nodes.iter().map(|n| n.metrics.iter().map(metric).collect()).collect(),
            reuses: nodes.iter().map(|n| n.reuses).collect(),
            ..Tree::new(&parents, &texts)
        }
        .graph()
    }

    /// Metrics of all nodes.
    pub fn metrics(&self) -> impl Iterator<Item = &GraphMetric> {
        self.nodes.iter().flat_map(|node| &node.metrics)
    }
}

impl From<model::MetricKind> for ValueKind {
    fn from(kind: model::MetricKind) -> Self {
        match kind {
            model::MetricKind::Sum => Self::Sum,
            model::MetricKind::Size => Self::Size,
            model::MetricKind::Timing => Self::Timing,
            model::MetricKind::NsTiming => Self::NsTiming,
            model::MetricKind::Average => Self::Average,
            model::MetricKind::Max | model::MetricKind::Min => Self::Unknown,
        }
    }
}

/// A node to visit: its position, the node that takes its rows, the cluster it is in.
type Visit = (usize, Option<u32>, Option<u32>);

impl<'a> Tree<'a> {
    /// Nodes in pre-order, so that every child stands behind its parent.
    fn new(parents: &[Option<usize>], texts: &[(&'a str, &'a str)]) -> Self {
        let mut children = vec![Vec::new(); parents.len()];
        for (at, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                children[*parent].push(at);
            }
        }
        let mut known = HashMap::default();
        let mut classes = vec![0; parents.len()];
        for at in (0..parents.len()).rev() {
            let below: Vec<u32> = children[at].iter().map(|&child| classes[child]).collect();
            let next = known.len() as u32;
            classes[at] = *known.entry((texts[at], below)).or_insert(next);
        }
        Self { names: texts.iter().map(|(name, _)| *name).collect(), children, classes, ..Self::default() }
    }

    fn graph(mut self) -> SqlGraph {
        let mut graph = SqlGraph::default();
        // The node of each exchange and subquery so far, by the class of its subtree.
        let mut shared: HashMap<u32, u32> = HashMap::default();
        let mut open: Vec<Visit> = if self.names.is_empty() { Vec::new() } else { vec![(0, None, None)] };
        while let Some((at, parent, cluster)) = open.pop() {
            let (next, pointed_at) = self.step(at, parent, cluster, &shared);
            if let (Some(node), Some(parent)) = (pointed_at, parent) {
                graph.edges.push((node, parent));
            }
            match next {
                Some(visit) => open.push(visit),
                None if pointed_at.is_some() => {}
                None => self.show(at, parent, cluster, &mut graph, &mut shared, &mut open),
            }
        }
        graph
    }

    /// Where to go from a node that is not shown, or which node it points at; neither when it is
    /// to be shown.
    fn step(
        &self,
        at: usize,
        parent: Option<u32>,
        cluster: Option<u32>,
        shared: &HashMap<u32, u32>,
    ) -> (Option<Visit>, Option<u32>) {
        let child = self.children[at].first().copied();
        let below = child.or(self.reuses[at]).and_then(|child| shared.get(&self.classes[child])).copied();
        let inside = |cluster| child.map(|child| (child, parent, cluster));
        match self.names[at] {
            "InputAdapter" | "TableCacheQueryStage" | "ResultQueryStage" => (inside(None), None),
            "BroadcastQueryStage" | "ShuffleQueryStage" if below.is_none() => (inside(None), None),
            "BroadcastQueryStage" | "ShuffleQueryStage" | "ReusedExchange" => (None, below),
            // A subquery stands in no cluster.
            "Subquery" if cluster.is_some() => (Some((at, parent, None)), None),
            "Subquery" => (None, shared.get(&self.classes[at]).copied()),
            "ReusedSubquery" => (inside(cluster), None),
            _ => (None, None),
        }
    }

    fn show(
        &mut self,
        at: usize,
        parent: Option<u32>,
        cluster: Option<u32>,
        graph: &mut SqlGraph,
        shared: &mut HashMap<u32, u32>,
        open: &mut Vec<Visit>,
    ) {
        let (id, name) = (graph.nodes.len() as u32, self.names[at]);
        let codegen = cluster.and_then(|cluster| codegen_number(&graph.nodes[cluster as usize].name));
        let metrics = std::mem::take(&mut self.metrics[at]);
        graph.nodes.push(GraphNode { name: name.trim().into(), codegen, metrics });
        if name.starts_with("WholeStageCodegen") {
            graph.nodes[id as usize].codegen = None;
            open.extend(self.children[at].first().map(|&child| (child, parent, Some(id))));
            return;
        }
        if name.contains("Exchange") || name == "Subquery" {
            shared.insert(self.classes[at], id);
        }
        graph.edges.extend(parent.map(|parent| (id, parent)));
        open.extend(self.children[at].iter().rev().map(|&child| (child, Some(id), cluster)));
    }
}

/// N of `WholeStageCodegen (N)`.
fn codegen_number(name: &str) -> Option<i64> {
    name.strip_prefix("WholeStageCodegen (")?.strip_suffix(')')?.parse().ok()
}
