//! Completes a plan of the log from its `physicalPlanDescription`.

use super::scan::partition_columns;
use super::text::{first_column, parse_text};
use model::{ExchangeOrigin, Operator, Plan, Scan};

/// The log's JSON cuts fields of scans at 100 characters and does not say who asked for Photon's
/// exchanges; the description does both in full.
pub(crate) fn complete(plan: &mut Plan, description: &str) {
    let cut = plan.nodes.iter().any(|n| matches!(&n.op, Operator::Scan(scan) if scan.cut));
    let photon = plan.nodes.iter().any(|n| n.photon && matches!(n.op, Operator::Exchange(_)));
    if !cut && !photon {
        return;
    }
    let Some(text) = parse_text(description).into_iter().next() else { return };
    for node in &mut plan.nodes {
        let column = first_column(&node.detail).map(str::to_owned);
        let Operator::Scan(scan) = &mut node.op else { continue };
        let fuller = text.nodes.iter().find_map(|other| match &other.op {
            Operator::Scan(full) if column.is_some() && first_column(&other.detail) == column.as_deref() => Some(full),
            _ => None,
        });
        if let Some(fuller) = fuller.filter(|_| scan.cut) {
            fill(scan, fuller);
        }
    }
    origins(plan, &text);
}

fn fill(scan: &mut Scan, fuller: &Scan) {
    let longer = |own: &Option<Vec<String>>, other: &Option<Vec<String>>| match (own, other) {
        (Some(own), Some(other)) if own.iter().any(|f| f.contains("...")) || own.len() < other.len() => {
            Some(other.clone())
        }
        (None, other) => other.clone(),
        (own, _) => own.clone(),
    };
    scan.pushed = longer(&scan.pushed, &fuller.pushed);
    scan.partition_filters = longer(&scan.partition_filters, &fuller.partition_filters);
    scan.data_filters = longer(&scan.data_filters, &fuller.data_filters);
    if fuller.schema.len() > scan.schema.len() {
        scan.schema.clone_from(&fuller.schema);
    }
    if fuller.columns.len() > scan.columns.len() {
        scan.columns.clone_from(&fuller.columns);
        scan.more_columns = fuller.more_columns;
    }
    let cut = |filters: &Option<Vec<String>>| filters.iter().flatten().any(|f| f.contains("..."));
    scan.cut = scan.more_columns > 0 || cut(&scan.pushed) || cut(&scan.partition_filters) || fuller.cut;
    scan.partition_columns = partition_columns(scan, !fuller.schema.is_empty());
}

/// Takes over the origins of exchanges where both plans are drawn alike.
fn origins(plan: &mut Plan, text: &Plan) {
    let (own, other) = (steps(plan), steps(text));
    let alike =
        own.len() == other.len() && own.iter().zip(&other).all(|(&a, &b)| plan.nodes[a].name == text.nodes[b].name);
    if !alike {
        return;
    }
    for (a, b) in own.into_iter().zip(other) {
        let told = match &text.nodes[b].op {
            Operator::Exchange(told) if told.origin != ExchangeOrigin::Requirements => told.origin,
            _ => continue,
        };
        if let Operator::Exchange(exchange) = &mut plan.nodes[a].op {
            exchange.origin = told;
        }
    }
}

/// Nodes of the main tree in pre-order, without those that only the JSON has.
fn steps(plan: &Plan) -> Vec<usize> {
    if plan.nodes.is_empty() {
        return Vec::new();
    }
    plan.below(0).into_iter().filter(|&n| !plan.nodes[n].op.is_wrapper()).collect()
}
