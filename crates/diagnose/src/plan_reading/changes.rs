//! What adaptive execution changed.

use super::names::{algorithm_words, human_name, lower};
use crate::plans::metric;
use model::{Application, Join, Operator, Plan};
use serde::Serialize;

/// What adaptive execution changed between the first plan and the last.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// What was changed.
    pub kind: ChangeKind,
    /// One sentence.
    pub text: String,
    /// Node of the first plan, where there is one.
    pub before: Option<usize>,
    /// Node of the last plan, where there is one.
    pub after: Option<usize>,
}

/// Kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ChangeKind {
    JoinAlgorithm,
    SkewSplit,
    Coalesced,
    LocalRead,
    EmptyRelation,
    Removed,
    Nothing,
}

/// Compares the plan before the run with the one after; an application tells the numbers of
/// partitions.
#[must_use]
pub fn read_change(first: &Plan, last: &Plan, app: Option<&Application>) -> Vec<Change> {
    let mut changes = join_changes(first, last);
    let mut reads = Vec::new();
    for (at, node) in last.nodes.iter().enumerate() {
        let Operator::ShuffleRead { coalesced, skewed, local } = node.op else { continue };
        let kinds =
            [(skewed, ChangeKind::SkewSplit), (coalesced, ChangeKind::Coalesced), (local, ChangeKind::LocalRead)];
        reads.extend(kinds.into_iter().filter(|(does, _)| *does).map(|(_, kind)| (kind, at)));
    }
    reads.sort_by_key(|(kind, at)| (*kind, *at));
    let mut told: Vec<(Change, u64)> = Vec::new();
    for (kind, at) in reads {
        let text = read_words(last, app, kind, at);
        match told.iter_mut().find(|(change, _)| change.text == text) {
            Some((_, times)) => *times += 1,
            None => told.push((Change { kind, text, before: None, after: Some(at) }, 1)),
        }
    }
    changes.extend(told.into_iter().map(|(mut change, times)| {
        if times > 1 {
            change.text = format!("{} ({times} times)", change.text.trim_end_matches('.'));
        }
        change
    }));
    changes.extend(removed(first, last));
    changes
}

fn read_words(plan: &Plan, app: Option<&Application>, kind: ChangeKind, at: usize) -> String {
    let shuffle = shuffle_below(plan, at);
    let into = app.and_then(|app| metric(app, &plan.nodes[at], "number of partitions"));
    let into = into.map(|n| format!(", {} left", crate::words::count(n.unsigned_abs(), "task"))).unwrap_or_default();
    match kind {
        ChangeKind::SkewSplit => format!("Skewed partitions were split after: {shuffle}{into}."),
        ChangeKind::LocalRead => format!("Read on the same executor, without the network: {shuffle}."),
        _ => format!("Small partitions were merged after: {shuffle}{into}."),
    }
}

fn shuffle_below(plan: &Plan, at: usize) -> String {
    let below = plan.below(at);
    let exchange = below.into_iter().find(|&n| matches!(plan.nodes[n].op, Operator::Exchange(_)));
    exchange.map_or_else(|| "a shuffle".to_owned(), |n| lower(&human_name(plan, n)))
}

/// Joins by their keys: the order of joins stays, their algorithm may not.
fn join_changes(first: &Plan, last: &Plan) -> Vec<Change> {
    let joins = |plan: &'_ Plan| -> Vec<(usize, Join)> {
        let join = |(at, node): (usize, &model::PlanNode)| match &node.op {
            Operator::Join(join) => Some((at, join.clone())),
            _ => None,
        };
        plan.nodes.iter().enumerate().filter_map(join).collect()
    };
    let mut left = joins(last);
    let mut changes = Vec::new();
    for (before, old) in joins(first) {
        let same =
            |new: &Join| new.left_keys == old.left_keys && new.right_keys == old.right_keys && new.kind == old.kind;
        let Some(index) = left.iter().position(|(_, new)| same(new)) else { continue };
        let (after, new) = left.remove(index);
        if new.algorithm != old.algorithm {
            let text = format!(
                "{} became {}: {}.",
                algorithm_words(&old),
                algorithm_words(&new),
                lower(&human_name(last, after))
            );
            changes.push(Change { kind: ChangeKind::JoinAlgorithm, text, before: Some(before), after: Some(after) });
        }
    }
    changes
}

/// Joins and aggregates that are gone: a side turned out to be empty.
fn removed(first: &Plan, last: &Plan) -> Option<Change> {
    let count = |plan: &Plan| plan.nodes.iter().filter(|n| matches!(n.op, Operator::Join(_))).count();
    let empty = |plan: &Plan| plan.nodes.iter().any(|n| &*n.name == "EmptyRelation" || &*n.name == "LocalTableScan");
    let gone = count(first).saturating_sub(count(last)) as u64;
    if gone == 0 {
        return None;
    }
    let kind = if empty(last) && !empty(first) { ChangeKind::EmptyRelation } else { ChangeKind::Removed };
    let why = if kind == ChangeKind::EmptyRelation { ": an input turned out to be empty" } else { "" };
    Some(Change {
        kind,
        text: format!("{} left out{why}.", crate::words::count(gone, "join")),
        before: None,
        after: None,
    })
}
