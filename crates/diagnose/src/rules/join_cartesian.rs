//! JOIN_CARTESIAN: a product of two inputs, with a task for each pair of partitions (section 4.4).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::plan_text::without_ids;
use crate::queries::{self, Query};
use model::{Count, Join, JoinAlgorithm, Operator, RemedyKind, Severity};

/// Tasks from which their number alone is a burden.
const MANY_TASKS: u64 = 10_000;

/// Looks at every cartesian product.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for query in queries::of_users(cx) {
        for (at, node) in query.nodes() {
            let Operator::Join(join) = &node.op else { continue };
            if join.algorithm == JoinAlgorithm::Cartesian {
                let product = Product::of(cx, &query, at, join);
                out.push(draft(cx, &query, at, &product));
            }
        }
    }
}

struct Product {
    /// Partitions of the two sides.
    partitions: Option<(u64, u64)>,
    rows: Option<(i64, i64)>,
    cause: &'static str,
    constant: Option<String>,
    /// Both sides have few rows by their plan: aggregates over a constant or over everything.
    single_rows: bool,
    condition: Option<String>,
}

impl Product {
    fn of(cx: &Context<'_>, query: &Query<'_>, at: usize, join: &Join) -> Self {
        let inputs = query.plan.inputs(at);
        let both = |f: &dyn Fn(usize) -> Option<u64>| Some((f(*inputs.first()?)?, f(*inputs.get(1)?)?));
        let rows = |n: usize| inputs.get(n).and_then(|&i| query.rows(cx, i));
        let constant = constant_key(query, &inputs);
        let copies = copies(query, &inputs);
        let cause = match (&constant, join.condition.is_some(), copies) {
            (Some(_), _, _) => "the join key is a constant, so the optimizer dropped the condition",
            (None, true, _) => "the condition has no equality of two columns",
            (None, false, true) => {
                "no condition is left: both sides are the same relation, and a column compared with itself is always true"
            }
            (None, false, false) => "there is no join condition",
        };
        let single = inputs.len() == 2
            && inputs.iter().all(|&i| constant.is_some() && is_aggregate(query, i) || is_total(query, i));
        Self {
            partitions: both(&|i| partitions(query, i)),
            rows: rows(0).zip(rows(1)),
            cause,
            constant,
            single_rows: single,
            condition: join.condition.clone(),
        }
    }

    fn tasks(&self) -> Option<u64> {
        self.partitions.map(|(l, r)| l.saturating_mul(r))
    }
}

/// Partitions of a side: those of the exchange that feeds it.
fn partitions(query: &Query<'_>, at: usize) -> Option<u64> {
    let node = &query.plan.nodes[at];
    match &node.op {
        Operator::Exchange(e) => e.partitions,
        Operator::Coalesce { partitions } => *partitions,
        Operator::Scan(_) | Operator::Join(_) | Operator::Union => None,
        _ => query.plan.inputs(at).first().and_then(|&i| partitions(query, i)),
    }
}

fn is_aggregate(query: &Query<'_>, at: usize) -> bool {
    match &query.plan.nodes[at].op {
        Operator::Aggregate(_) => true,
        Operator::Project { .. } | Operator::Filter { .. } => {
            query.plan.inputs(at).first().is_some_and(|&i| is_aggregate(query, i))
        }
        _ => false,
    }
}

fn is_total(query: &Query<'_>, at: usize) -> bool {
    matches!(&query.plan.nodes[at].op, Operator::Aggregate(a) if a.keys.is_empty())
}

/// A grouping or shuffle key that is a literal. Spark names such a column by its value, so its
/// name is no name that a column of a table can have without quotes.
fn constant_key(query: &Query<'_>, inputs: &[usize]) -> Option<String> {
    let of_side = |&side: &usize| {
        query.plan.below(side).into_iter().find_map(|n| match &query.plan.nodes[n].op {
            Operator::Aggregate(a) => a.keys.iter().find(|k| is_literal(k)).cloned(),
            Operator::Exchange(e) => e.keys.iter().find(|k| is_literal(k)).cloned(),
            Operator::Project { expressions } => literal_alias(expressions),
            _ => None,
        })
    };
    let found: Vec<String> = inputs.iter().filter_map(of_side).collect();
    (found.len() == 2).then(|| found[0].clone())
}

fn is_literal(key: &str) -> bool {
    let key = key.trim();
    key.starts_with(|c: char| c.is_ascii_digit()) || key.starts_with(['\'', '"'])
}

/// `20251216 AS week#7` in a projection.
fn literal_alias(expressions: &str) -> Option<String> {
    let items = crate::plan_text::split(expressions.trim_matches(['[', ']']));
    items.into_iter().find_map(|item| {
        let (value, name) = item.rsplit_once(" AS ")?;
        let literal = !value.contains('#') && !value.contains('(');
        literal.then(|| without_ids(name))
    })
}

/// Whether both sides read the same relation.
fn copies(query: &Query<'_>, inputs: &[usize]) -> bool {
    let sources = |side: usize| {
        let mut all: Vec<String> = query.scans_below(side).into_iter().map(|(_, s)| queries::sql_source(s)).collect();
        all.sort();
        all
    };
    match inputs {
        [l, r] => !sources(*l).is_empty() && sources(*l) == sources(*r),
        _ => false,
    }
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize, product: &Product) -> Draft {
    let size = match (product.rows, product.partitions) {
        (Some((l, r)), _) => format!("{} × {} rows", Count(l.max(0) as u64), Count(r.max(0) as u64)),
        (None, Some((l, r))) => format!("{} × {} partitions", Count(l), Count(r)),
        _ => "two inputs".to_owned(),
    };
    let tasks = product.tasks().map(|t| format!(" in {} tasks", Count(t))).unwrap_or_default();
    let title = format!("a cartesian product of {size}{tasks}: {}", product.cause);
    let mut draft = Draft::new("JOIN_CARTESIAN", title)
        .severity(severity(cx, query, product))
        .evidence("cause", product.cause, "")
        .seen_at(query.location());
    if let Some((l, r)) = product.partitions {
        draft = draft
            .evidence("tasks", format!("{l} x {r} = {}", l.saturating_mul(r)), "")
            .evidence("task_count", l.saturating_mul(r), "tasks")
            .evidence("left_partitions", l, "partitions")
            .evidence("right_partitions", r, "partitions");
    }
    if let Some((l, r)) = product.rows {
        draft = draft.evidence("left_rows", l, "rows").evidence("right_rows", r, "rows");
    }
    if let Some(out) = query.rows(cx, at) {
        draft = draft.evidence("number_of_output_rows", out, "rows");
    }
    if let Some(constant) = &product.constant {
        draft = draft
            .evidence("constant_key", constant.clone(), "")
            .not("key skew", "rows are not shuffled by a key; each task is a pair of partitions");
    }
    if let Some(condition) = &product.condition {
        draft = draft.evidence("condition", without_ids(condition), "");
    }
    with_remedies(query.place_node(cx, at, draft), product)
}

fn severity(cx: &Context<'_>, query: &Query<'_>, product: &Product) -> Severity {
    let pairs = product.rows.map(|(l, r)| l as f64 * r as f64);
    let by_rows = match pairs {
        Some(p) if p >= 1e10 => Severity::High,
        Some(p) if p >= cx.config.nested_loop_rows / 10.0 => Severity::Medium,
        Some(_) => Severity::Low,
        None if query.is_lint() => Severity::High,
        None => Severity::Medium,
    };
    match product.tasks() {
        Some(t) if t >= MANY_TASKS => by_rows.max(Severity::High),
        _ => by_rows,
    }
}

fn with_remedies(draft: Draft, product: &Product) -> Draft {
    let draft = match &product.constant {
        Some(_) => draft
            .remedy(RemedyKind::Code, "Join on a real column, or join first and select the constant after joining")
            .snippet("SELECT '<constant>' AS week, a.*, b.* FROM a JOIN b ON a.<column> = b.<column>"),
        None => draft
            .remedy(RemedyKind::Code, "Give the join an equality between columns of both sides")
            .snippet("FROM a JOIN b ON a.<key> = b.<key>"),
    };
    let draft = match (product.single_rows, product.partitions) {
        (true, parts) => draft
            .remedy(RemedyKind::Code, "Coalesce both single-row sides first: then the product is one task")
            .snippet("a.coalesce(1).crossJoin(b.coalesce(1))")
            .computed(parts.map_or_else(String::new, |(l, r)| format!("{l} × {r} tasks become 1 × 1"))),
        (false, Some((l, r))) if l.saturating_mul(r) > 200 => draft
            .remedy(RemedyKind::Code, "If the product is meant, broadcast the smaller side or coalesce both: tasks are partitions left × right")
            .computed(format!("{l} × {r} = {} tasks", l.saturating_mul(r))),
        _ => draft.remedy(RemedyKind::Code, "If the product is meant, broadcast the smaller side"),
    };
    draft
        .useless("more shuffle partitions", "tasks grow with the square of their number")
        .useless("salting", "there is no key")
        .confirm("no CartesianProduct in the plan, and the number of tasks of its stage")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_no_column_names() {
        for (key, literal) in [("20251216_20251222", true), ("week", false), ("_c0", false), ("'a'", true)] {
            assert_eq!(is_literal(key), literal, "{key}");
        }
        assert_eq!(literal_alias("[host#1, 20251216 AS week#7]").as_deref(), Some("week"));
        assert_eq!(literal_alias("[host#1, upper(x#2) AS week#7]"), None);
    }
}
