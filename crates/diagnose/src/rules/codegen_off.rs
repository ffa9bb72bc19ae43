//! CODEGEN_OFF: operators that could be compiled together run one by one (section 4.4).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use model::{Metric, Operator, PlanNode, RemedyKind, Share};

/// Columns above which Spark does not compile an operator (`spark.sql.codegen.maxFields`).
const MAX_FIELDS: u64 = 100;
/// Share of the run that the stage must take.
const SHARE: f64 = 0.1;

/// Looks at every plan that is not Photon's.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for query in queries::of_users(cx) {
        // A plan without any codegen mark may come from a text that does not show them.
        let shows = query.plan.nodes.iter().any(|n| n.codegen.is_some());
        let disabled = setting(cx, &query, "spark.sql.codegen.wholeStage") == Some("false");
        if query.plan.nodes.iter().any(|n| n.photon) || !(shows || disabled) {
            continue;
        }
        if let Some(draft) = query.nodes().find_map(|(at, node)| draft(cx, &query, at, node, disabled)) {
            out.push(draft);
        }
    }
}

fn setting<'a>(cx: &'a Context<'_>, query: &Query<'a>, key: &str) -> Option<&'a str> {
    query.sql.map_or_else(|| cx.app.conf(key), |s| cx.conf(Some(s), key))
}

/// Operators that Spark compiles whenever it can.
fn compiles(node: &PlanNode) -> bool {
    match &node.op {
        Operator::Filter { .. } | Operator::Project { .. } => true,
        Operator::Aggregate(a) => !a.sort_based && node.name.starts_with("HashAggregate"),
        _ => false,
    }
}

/// Widest list of columns at the node or in the scan below it.
fn width(query: &Query<'_>, at: usize) -> u64 {
    let below = query.plan.inputs(at).into_iter().filter_map(|n| match &query.plan.nodes[n].op {
        Operator::Scan(scan) => Some(scan.columns.len() as u64 + cut_columns(&query.plan.nodes[n].detail)),
        _ => None,
    });
    let own = query.plan.nodes[at].output.len() as u64;
    below.chain([own, listed(&query.plan.nodes[at])]).max().unwrap_or(0)
}

/// Items of a projection, with those that Spark cut.
fn listed(node: &PlanNode) -> u64 {
    match &node.op {
        Operator::Project { expressions } => {
            crate::plan_text::split(expressions.trim_matches(['[', ']'])).len() as u64 + cut_columns(&node.detail)
        }
        _ => 0,
    }
}

/// N of `... N more fields`.
fn cut_columns(text: &str) -> u64 {
    let after = text.split("... ").nth(1).and_then(|t| t.split_once(" more field"));
    after.and_then(|(n, _)| n.parse().ok()).unwrap_or(0)
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize, node: &PlanNode, disabled: bool) -> Option<Draft> {
    if !compiles(node) || node.codegen.is_some() {
        return None;
    }
    let limit = setting(cx, query, "spark.sql.codegen.maxFields").and_then(|v| v.parse().ok()).unwrap_or(MAX_FIELDS);
    let fields = width(query, at);
    let cause = match (disabled, fields > limit) {
        (true, _) => "spark.sql.codegen.wholeStage is false".to_owned(),
        (false, true) => format!("it has {fields} columns, more than {limit}"),
        (false, false) => return None,
    };
    let facts = query.stage_of(cx, at);
    let share = facts.map(|f| f.wall_ms as f64 / cx.base_wall_ms().max(1) as f64);
    if !query.is_lint() && share.is_none_or(|s| s < SHARE) {
        return None;
    }
    let draft = Draft::new(
        "CODEGEN_OFF",
        format!("{} is interpreted row by row instead of compiled: {cause}", queries::human(query.plan, at)),
    )
    .severity(model::Severity::Low)
    .evidence("columns", fields, "columns")
    .over(limit as f64)
    .seen_at(query.location());
    let draft = query.place_node(cx, at, draft);
    let draft = match (facts, share) {
        (Some(f), Some(share)) => draft
            .evidence("stage_share", share, "share")
            .evidence("cpu_share", f.sum(Metric::CpuMs) as f64 / f.sum(Metric::RunMs).max(1) as f64, "share")
            .not("a stage that does not matter", format!("it takes {} of the run", Share(share))),
        _ => draft,
    };
    Some(match disabled {
        true => draft.remedy(RemedyKind::Conf, "Remove the setting").snippet("spark.sql.codegen.wholeStage true").confirm("*(n) before the operator in the plan"),
        false => draft
            .remedy(RemedyKind::Code, "Select the columns that are used before this step")
            .remedy(RemedyKind::Conf, "Or let wider rows be compiled; a generated method over 64 KB falls back all the same, one over 8000 bytes is not compiled by the JIT")
            .snippet(format!("spark.sql.codegen.maxFields {}", fields.next_multiple_of(100)))
            .computed(format!("{fields} columns, rounded up to a hundred"))
            .confirm("*(n) before the operator in the plan"),
    })
}
