//! When two parts of plans compute the same: signatures without ids, names given by plans, and
//! partition numbers.

use crate::plan_text::without_ids;
use foldhash::fast::FixedState;
use model::{Operator, Plan, Scan};
use std::hash::{BuildHasher, Hash, Hasher};

/// What a signature takes into account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Parts that read other columns are different.
    Count,
    /// Column pruning aside: a cached copy with all the columns would serve both.
    Ignore,
}

/// Signatures of all nodes of a plan; `None` for what cannot be told equal: rows from the
/// driver or from an RDD, results of subqueries, cached data, texts that Spark cut.
#[must_use]
pub fn of_plan(plan: &Plan, columns: Columns) -> Vec<Option<u64>> {
    let mut signatures = vec![None; plan.nodes.len()];
    // Children stand after their parents.
    for at in (0..plan.nodes.len()).rev() {
        signatures[at] = of_node(plan, at, &signatures, columns);
    }
    signatures
}

fn of_node(plan: &Plan, at: usize, known: &[Option<u64>], columns: Columns) -> Option<u64> {
    let node = &plan.nodes[at];
    let inputs: Option<Vec<u64>> = node.children.iter().map(|&c| known[c]).collect();
    let inputs = inputs?;
    // A pasted plan leaves out parts (`+- ...`): an operator without its input is like no other.
    if inputs.is_empty() && !matches!(node.op, Operator::Scan(_)) {
        return None;
    }
    let through = node.op.is_wrapper()
        || matches!(node.op, Operator::Sort { .. } | Operator::Reused)
        || columns == Columns::Ignore && matches!(node.op, Operator::Project { .. });
    if let ([only], true) = (inputs.as_slice(), through) {
        return Some(*only);
    }
    let own = text_of(&node.op, columns)?;
    let mut hasher = FixedState::default().build_hasher();
    own.hash(&mut hasher);
    inputs.hash(&mut hasher);
    Some(hasher.finish())
}

/// What an operator does, as text without ids.
fn text_of(op: &Operator, columns: Columns) -> Option<String> {
    let text = match op {
        Operator::Scan(scan) => scan_text(scan, columns)?,
        Operator::Filter { condition } => format!("filter {condition}"),
        Operator::Project { expressions } => format!("project {expressions}"),
        Operator::Exchange(e) => format!("exchange {:?} {}", e.partitioning, e.keys.join(",")),
        Operator::BroadcastExchange { .. } => "broadcast".to_owned(),
        Operator::Join(j) => format!(
            "join {} {} {} {}",
            j.kind,
            j.left_keys.join(","),
            j.right_keys.join(","),
            j.condition.as_deref().unwrap_or_default()
        ),
        Operator::Aggregate(a) => format!("aggregate {} {}", a.keys.join(","), a.functions.join(",")),
        Operator::Window { partition_by, order_by } => {
            format!("window {} {}", partition_by.join(","), order_by.join(","))
        }
        Operator::Generate { generator } => format!("generate {generator}"),
        Operator::Python { functions, .. } => format!("python {functions}"),
        Operator::Expand => "expand".to_owned(),
        Operator::Union => "union".to_owned(),
        Operator::Limit { limit } => format!("limit {limit:?}"),
        Operator::TopK { limit } => format!("top {limit:?}"),
        Operator::Coalesce { .. } => "coalesce".to_owned(),
        _ => return None,
    };
    let unsure = ["...", "dynamicpruning", "subquery", "Subquery", "rand(", "uuid(", "monotonically_increasing_id"];
    (!unsure.iter().any(|w| text.contains(w))).then(|| without_ids(&text))
}

fn scan_text(scan: &Scan, columns: Columns) -> Option<String> {
    let source = scan.location.as_ref().or(scan.table.as_ref()).filter(|_| scan.format != "rdd")?;
    let list = |filters: &Option<Vec<String>>| filters.as_ref().map(|f| f.join(" & ")).unwrap_or_default();
    let read = if columns == Columns::Count { scan.columns.join(",") } else { String::new() };
    Some(format!(
        "scan {} {source} {} {} {} {read}",
        scan.format,
        list(&scan.partition_filters),
        list(&scan.data_filters),
        list(&scan.pushed)
    ))
}
