//! From the log's plan JSON to a [`Plan`].

use super::build::{Raw, build, exchange_id};
use super::info::{InfoMetric, InfoNode, PlanInfo};
use super::list::is_cut;
use super::text::statistics;
use model::{MetricKind, Plan, PlanMetric};

/// Reads a plan of the log. `description` is the event's `physicalPlanDescription`: it completes
/// the scans, whose fields the JSON may hold cut.
#[must_use]
pub fn from_info(info: &PlanInfo<'_>, description: Option<&str>) -> Plan {
    let keep = kept(info);
    let mut position = vec![None; info.nodes.len()];
    let mut raw = Vec::with_capacity(info.nodes.len());
    for (at, node) in info.nodes.iter().enumerate().filter(|(at, _)| keep[*at]) {
        position[at] = Some(raw.len());
        raw.push(one(node, node.parent.and_then(|p| position[p])));
    }
    let mut plan = build(raw);
    plan.title = "Physical Plan".to_owned();
    if let Some(text) = description {
        super::complete::complete(&mut plan, text);
    }
    plan
}

/// From 3.4 on the JSON repeats below a `ReusedExchange` what it reuses. The copy would count
/// twice, so it goes where the original is in the same plan.
fn kept(info: &PlanInfo<'_>) -> Vec<bool> {
    let nodes = &info.nodes;
    let reused = |at: usize| nodes[at].node_name.ends_with("ReusedExchange");
    let mut keep = vec![true; nodes.len()];
    let mut inside = vec![false; nodes.len()];
    for at in 0..nodes.len() {
        inside[at] = nodes[at].parent.is_some_and(|p| inside[p] || reused(p));
    }
    let ids = |copies: bool| {
        let own = |at: &usize| inside[*at] == copies && !reused(*at);
        (0..nodes.len()).filter(own).filter_map(|at| exchange_id(&nodes[at].simple_string)).collect::<Vec<_>>()
    };
    let originals = ids(false);
    for at in 0..nodes.len() {
        let Some(parent) = nodes[at].parent else { continue };
        let copied = reused(parent) && has_original(nodes, parent, &originals);
        keep[at] = keep[parent] && !copied;
    }
    keep
}

fn has_original(nodes: &[InfoNode<'_>], reused: usize, originals: &[u64]) -> bool {
    match exchange_id(&nodes[reused].simple_string) {
        Some(id) => originals.contains(&id),
        // Photon's stages have no id in the JSON.
        None => nodes[reused].simple_string.contains("Photon"),
    }
}

fn one(node: &InfoNode<'_>, parent: Option<usize>) -> Raw {
    Raw {
        parent,
        name: node.node_name.trim().to_owned(),
        detail: detail(node),
        statistics: statistics(&node.simple_string),
        metrics: node.metrics.iter().map(metric).collect(),
        ..Raw::default()
    }
}

/// The one-line text with the fields of `metadata`, which are cut later than the line's own.
fn detail(node: &InfoNode<'_>) -> String {
    let line = node.simple_string.as_ref();
    let fuller = node.metadata.iter().any(|(_, value)| !is_cut(value)) && is_cut(line);
    if !fuller {
        return line.to_owned();
    }
    let first = node.metadata.iter().filter_map(|(key, _)| line.find(&format!("{key}: "))).min();
    let mut text = first.map_or(line, |at| &line[..at]).trim_end().to_owned();
    for (at, (key, value)) in node.metadata.iter().enumerate() {
        text.push_str(if at == 0 { " " } else { ", " });
        text.push_str(&format!("{key}: {value}"));
    }
    text
}

fn metric(metric: &InfoMetric<'_>) -> PlanMetric {
    PlanMetric {
        name: metric.name.as_ref().into(),
        accumulator: metric.accumulator_id,
        kind: metric_kind(&metric.metric_type),
    }
}

/// `metricType`. Databricks adds `count`, `maximum` and `minimum`; connectors `v2Custom_<class>`.
fn metric_kind(name: &str) -> MetricKind {
    match name {
        "size" => MetricKind::Size,
        "timing" => MetricKind::Timing,
        "nsTiming" => MetricKind::NsTiming,
        "average" => MetricKind::Average,
        "maximum" => MetricKind::Max,
        "minimum" => MetricKind::Min,
        _ => MetricKind::Sum,
    }
}
