//! EXCHANGE_NOT_REUSED: one plan computes and shuffles the same rows twice (section 4.4).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use crate::signature::{self, Columns};
use model::{Bytes, Operator, RemedyKind, Severity};
use std::collections::BTreeMap;

/// Bytes of one copy from which it is worth a word.
const LEAST: i64 = 100 << 20;

/// Looks for equal parts below the exchanges of one plan.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for query in queries::of_users(cx) {
        for copies in groups(&query) {
            if let Some(draft) = draft(cx, &query, &copies) {
                out.push(draft);
            }
        }
    }
}

/// Exchanges that this plan computes itself and that are equal but for the columns.
fn groups(query: &Query<'_>) -> Vec<Vec<usize>> {
    let signatures = signature::of_plan(query.plan, Columns::Ignore);
    let mut groups: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (at, node) in query.nodes() {
        if let (Operator::Exchange(_), Some(signature)) = (&node.op, signatures[at]) {
            groups.entry(signature).or_default().push(at);
        }
    }
    groups.into_values().filter(|g| g.len() > 1).collect()
}

fn draft(cx: &Context<'_>, query: &Query<'_>, copies: &[usize]) -> Option<Draft> {
    let sizes: Vec<i64> = copies
        .iter()
        .filter_map(|&at| query.metric(cx, at, "shuffle bytes written").or_else(|| query.data_size(cx, at)))
        .collect();
    let smallest = sizes.iter().min().copied();
    if smallest.map_or(!query.is_lint(), |s| s < LEAST) {
        return None;
    }
    let exact = signature::of_plan(query.plan, Columns::Count);
    let same_columns = copies.iter().all(|&at| exact[at].is_some() && exact[at] == exact[copies[0]]);
    let cause = match same_columns {
        true => "the parts are equal; exchange reuse is off or an expression may differ from call to call",
        false => "they read different columns",
    };
    let total: i64 = sizes.iter().sum();
    let moved = if total > 0 { format!(", {} in all", Bytes(total as u64)) } else { String::new() };
    let title = format!("the same rows are computed and shuffled {} times in one query{moved}: {cause}", copies.len());
    let draft = Draft::new("EXCHANGE_NOT_REUSED", title)
        .severity(if total >= 10 * LEAST { Severity::Medium } else { Severity::Low })
        .evidence("copies", copies.len(), "exchanges")
        .seen_at(query.location())
        .evidence("shuffle_bytes_written", total, "bytes")
        .evidence("exchange", queries::human(query.plan, copies[0]), "")
        .not("a reused exchange", "each copy has metrics of its own and no ReusedExchange stands in its place");
    let draft = query.place_node(cx, copies[0], draft);
    let draft = match same_columns {
        false => draft
            .remedy(RemedyKind::Code, "Select the same columns in both uses, so that Spark sees one part")
            .snippet("base = df.select(<all columns that either use needs>)"),
        true => draft.remedy(RemedyKind::Conf, "Let Spark reuse exchanges").snippet("spark.sql.exchange.reuse true"),
    };
    Some(
        draft
            .remedy(RemedyKind::Code, "Or cache the common part once")
            .useless("more shuffle partitions", "both copies are computed all the same")
            .confirm("ReusedExchange in the plan"),
    )
}
