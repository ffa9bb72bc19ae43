//! ROWS_EXPLODE: an operator makes far more rows than it gets (section 4.4 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use model::{Count, Factor, JoinAlgorithm, Operator, RemedyKind, Severity, Share};

/// Rows out below which growth costs little.
const LEAST: i64 = 10_000_000;

/// Looks at joins, generators and expands.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for query in queries::of_users(cx) {
        for (at, node) in query.nodes() {
            // A product is a finding of its own.
            let multiplies = match &node.op {
                Operator::Join(j) => !matches!(j.algorithm, JoinAlgorithm::Cartesian | JoinAlgorithm::NestedLoop),
                Operator::Generate { .. } | Operator::Expand => true,
                _ => false,
            };
            if multiplies && let Some(draft) = draft(cx, &query, at) {
                out.push(draft);
            }
        }
    }
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize) -> Option<Draft> {
    let out = query.rows(cx, at)?;
    let inputs: Vec<i64> = query.plan.inputs(at).into_iter().map(|i| query.rows(cx, i)).collect::<Option<_>>()?;
    let most = *inputs.iter().max()?;
    let ratio = out as f64 / most.max(1) as f64;
    if out < LEAST || ratio < cx.config.explode_ratio {
        return None;
    }
    let name = queries::subject(query.plan, at);
    let title = format!("{name} makes {} rows of {}: {}", Count(out as u64), Count(most.max(0) as u64), Factor(ratio));
    let facts = query.stage_of(cx, at);
    let share = facts.map_or(0.0, |f| f.wall_ms as f64 / cx.base_wall_ms().max(1) as f64);
    let mut draft = Draft::new("ROWS_EXPLODE", title)
        .severity(severity(share))
        .evidence("rows_out", out, "rows")
        .over(LEAST as f64)
        .seen_at(query.location())
        .evidence("rows_in_most", most, "rows")
        .evidence("rows_out_over_in", ratio, "ratio")
        .over(cx.config.explode_ratio)
        .evidence("stage_share", share, "share");
    for (side, rows) in ["left_rows", "right_rows"].iter().zip(&inputs).filter(|_| inputs.len() == 2) {
        draft = draft.evidence(side, *rows, "rows");
    }
    let draft = query
        .place_node(cx, at, draft)
        .explained_by(&["SKEW_EXPLODE"])
        .not("a cartesian product", "the operator has a key or a generator");
    Some(with_remedies(cx, query, at, draft, out))
}

/// By the share of the run that its stage takes.
fn severity(share: f64) -> Severity {
    match share {
        s if s >= 0.25 => Severity::High,
        s if s >= 0.10 => Severity::Medium,
        _ => Severity::Low,
    }
}

/// The first step above that makes rows few again: what should come earlier.
fn reducer(cx: &Context<'_>, query: &Query<'_>, at: usize, out: i64) -> Option<(usize, i64)> {
    let mut now = at;
    while let Some(next) = query.plan.consumer(now) {
        if let Some(rows) = query.rows(cx, next).filter(|r| *r * 10 <= out) {
            return Some((next, rows));
        }
        now = next;
    }
    None
}

fn with_remedies(cx: &Context<'_>, query: &Query<'_>, at: usize, draft: Draft, out: i64) -> Draft {
    let node = &query.plan.nodes[at];
    let mut draft = match reducer(cx, query, at, out) {
        Some((up, rows)) => draft
            .evidence("rows_after", rows, "rows")
            .remedy(RemedyKind::Code, format!("{} throws all but {} of the rows away again: move what it does, or as much of its condition as can be, before {}", queries::human(query.plan, up), Share(rows as f64 / out.max(1) as f64), queries::human(query.plan, at)))
            .computed(format!("{} rows after it, {} before", Count(rows.max(0) as u64), Count(out as u64))),
        None => draft,
    };
    draft = match &node.op {
        Operator::Join(join) => draft
            .remedy(RemedyKind::Code, format!("Check that {} identifies rows on at least one side: equal keys on both sides multiply; deduplicate a side or join by more columns", join.left_keys.join(", ")))
            .snippet(format!("SELECT {0}, count(*) FROM … GROUP BY {0} ORDER BY 2 DESC LIMIT 20", join.right_keys.join(", "))),
        Operator::Generate { .. } => draft.remedy(RemedyKind::Code, "Filter and drop columns before the explode, and aggregate right after it; array functions may do without it").snippet("transform(…), filter(…), aggregate(…)"),
        _ => draft.remedy(RemedyKind::Code, "Each grouping set or DISTINCT adds a copy of the rows: use fewer, or approx_count_distinct"),
    };
    draft.useless("more memory", "the rows are made all the same").confirm("number of output rows of the operator")
}
