//! EXCHANGE_REDUNDANT: rows are shuffled or sorted and then shuffled again (section 4.4).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use model::{Bytes, Exchange, ExchangeOrigin, Operator, Partitioning, RemedyKind, Severity};

/// Bytes from which a second shuffle is worth a word.
const LOW: i64 = 100 << 20;

/// Looks at every exchange whose rows come straight from another exchange or sort.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for query in queries::of_users(cx) {
        for (at, node) in query.nodes() {
            let Operator::Exchange(upper) = &node.op else { continue };
            if let Some(draft) = in_a_row(cx, &query, at, upper) {
                out.push(draft);
            }
        }
    }
}

/// What lies directly below an exchange: through projections and wrappers only.
fn below(query: &Query<'_>, at: usize) -> Option<usize> {
    let [input] = query.plan.inputs(at)[..] else { return None };
    match &query.plan.nodes[input].op {
        // A projection that calls a function may be why rows were spread out first.
        Operator::Project { expressions } if !expressions.contains("UDF") && !expressions.contains('(') => {
            below(query, input)
        }
        _ => Some(input),
    }
}

fn in_a_row(cx: &Context<'_>, query: &Query<'_>, at: usize, upper: &Exchange) -> Option<Draft> {
    let first = below(query, at)?;
    match &query.plan.nodes[first].op {
        Operator::Exchange(lower) => Some(twice(cx, query, at, first, upper, lower)),
        Operator::Sort { global: true, .. } if upper.partitioning == Partitioning::Hash => sorted(cx, query, at, first),
        _ => None,
    }
}

fn severity(query: &Query<'_>, bytes: Option<i64>) -> Severity {
    match bytes {
        Some(b) if b >= 10 * LOW => Severity::Medium,
        Some(b) if b >= LOW => Severity::Low,
        Some(_) => Severity::Info,
        None if query.is_lint() => Severity::Low,
        None => Severity::Info,
    }
}

fn asked(exchange: &Exchange) -> Option<&'static str> {
    match exchange.origin {
        ExchangeOrigin::RepartitionByNumber => Some("repartition with a number"),
        ExchangeOrigin::RepartitionByColumns => Some("repartition by columns"),
        ExchangeOrigin::Rebalance => Some("the REBALANCE hint"),
        _ => None,
    }
}

fn on(exchange: &Exchange) -> String {
    match exchange.keys.is_empty() {
        true => format!("{:?}", exchange.partitioning).to_lowercase(),
        false => exchange.keys.join(", "),
    }
}

fn twice(cx: &Context<'_>, query: &Query<'_>, at: usize, first: usize, upper: &Exchange, lower: &Exchange) -> Draft {
    let bytes = query.metric(cx, first, "shuffle bytes written");
    let who = asked(lower).unwrap_or("the plan");
    let same = upper.keys == lower.keys && upper.partitioning == lower.partitioning;
    let size = bytes.map(|b| format!("{} are", Bytes(b.max(0) as u64))).unwrap_or_else(|| "rows are".to_owned());
    let title = match same {
        true => format!("{size} shuffled twice in a row by {}", on(upper)),
        false => format!("{size} shuffled by {} and at once again by {}", on(lower), on(upper)),
    };
    let draft = Draft::new("EXCHANGE_REDUNDANT", title)
        .severity(severity(query, bytes))
        .evidence("first_shuffle", queries::human(query.plan, first), "")
        .seen_at(query.location())
        .evidence("second_shuffle", queries::human(query.plan, at), "")
        .evidence("asked_by", who, "")
        .evidence("shuffle_bytes_written", bytes.unwrap_or(0), "bytes")
        .not("a shuffle that spreads out heavy work", "nothing but columns is chosen between the two");
    query
        .place_node(cx, first, draft)
        .remedy(
            RemedyKind::Code,
            match asked(lower) {
                Some(_) => format!("Remove {who}: the next step shuffles by {} anyway", on(upper)),
                None => "Combine the two steps, so that one shuffle serves both".to_owned(),
            },
        )
        .computed("exchanges in a row: 2, needed: 1")
        .useless("caching between the two", "cached rows are shuffled all the same")
        .confirm("number of exchanges in the plan")
}

/// A total order that the next shuffle by hash destroys.
fn sorted(cx: &Context<'_>, query: &Query<'_>, at: usize, sort: usize) -> Option<Draft> {
    let Operator::Sort { order, .. } = &query.plan.nodes[sort].op else { return None };
    let exchange = query.feeding_exchange(sort);
    let bytes = exchange.and_then(|e| query.metric(cx, e, "shuffle bytes written"));
    let order: Vec<String> = order.iter().map(|o| crate::plan_text::without_ids(o)).collect();
    let title = format!(
        "rows are sorted by {} and then shuffled by {}, which loses the order",
        order.join(", "),
        queries::human(query.plan, at)
    );
    let draft = Draft::new("EXCHANGE_REDUNDANT", title)
        .severity(severity(query, bytes))
        .evidence("sort_order", order, "")
        .seen_at(query.location())
        .evidence("shuffle_bytes_written", bytes.unwrap_or(0), "bytes");
    Some(
        query
            .place_node(cx, sort, draft)
            .remedy(RemedyKind::Code, "Remove the ORDER BY before the aggregate or join, or move it to the end")
            .confirm("no range-partitioned exchange before the other shuffle"),
    )
}
