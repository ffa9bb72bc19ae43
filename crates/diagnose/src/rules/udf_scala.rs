//! UDF_SCALA: a compiled user function in a filter over a scan (section 4.4 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::plan_text::{columns, conjuncts, without_ids};
use crate::queries::{self, Query};
use model::{Count, Operator, RemedyKind, Scan, Severity};

/// Looks at every filter over a scan.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for query in queries::of_users(cx) {
        for (at, node) in query.nodes() {
            let Operator::Scan(scan) = &node.op else { continue };
            if scan.format == "rdd" {
                continue;
            }
            let filter = query.chain_above(at).into_iter().find_map(|n| match &query.plan.nodes[n].op {
                Operator::Filter { condition } => {
                    conjuncts(condition).into_iter().find(|c| calls_udf(c)).map(|c| (n, c))
                }
                _ => None,
            });
            if let Some((filter, conjunct)) = filter {
                out.push(draft(cx, &query, at, filter, scan, conjunct));
            }
        }
    }
}

/// `UDF(` as a word of its own: Spark's name for a function that it cannot look into. Python
/// functions have operators of their own.
fn calls_udf(conjunct: &str) -> bool {
    conjunct
        .match_indices("UDF(")
        .any(|(at, _)| conjunct[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric()))
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize, filter: usize, scan: &Scan, conjunct: &str) -> Draft {
    let names = columns(conjunct);
    let name = queries::short_source(scan);
    let read =
        query.rows(cx, at).map(|r| format!(" after {} rows were read", Count(r.max(0) as u64))).unwrap_or_default();
    let title =
        format!("a user function decides which rows of {name} are kept{read}: nothing of it is pushed to the source");
    let mut draft = Draft::new("UDF_SCALA", title)
        .severity(Severity::Low)
        .evidence("condition", without_ids(conjunct), "")
        .seen_at(query.location())
        .evidence("columns", names.clone(), "");
    if let Some(rows) = query.rows(cx, at) {
        draft = draft.evidence("rows_read", rows, "rows");
    }
    if let Some(rows) = query.rows(cx, filter) {
        draft = draft.evidence("rows_kept", rows, "rows");
    }
    query
        .place_node(cx, filter, draft)
        .remedy(RemedyKind::Code, format!("Write the condition on {} with built-in functions", names.join(", ")))
        .remedy(
            RemedyKind::Code,
            "Or add a plain comparison beside it that lets through all that the function may keep",
        )
        .confirm("the condition in PushedFilters of the scan")
}
