//! SINGLE_PARTITION: all rows go through one task (section 4.2 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::words;
use crate::work::Operation;
use model::{Bytes, Count, Metric, Millis, Operator, Partitioning, RemedyKind};

const MANY_ROWS: i64 = 1_000_000;
const LIMIT: &str = "a limit over all rows ends in one partition";

/// Looks at every stage that reads a single partition.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for facts in &cx.stages {
        if let Some(draft) = stage(cx, facts) {
            out.push(draft);
        }
    }
}

fn stage(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let work = facts.work(cx);
    if work.partitioning() != Some(Partitioning::Single) || facts.n != 1 {
        return None;
    }
    let rows = facts.sum(Metric::ShuffleRecordsRead);
    let long = facts.wall_ms as f64 >= 0.05 * cx.base_wall_ms() as f64 && facts.wall_ms >= cx.config.noise_stage_ms;
    if !(rows >= MANY_ROWS || long) || is_last_step(cx, facts, rows) {
        return None;
    }
    let slots = (facts.slots.round() as i64).max(1);
    let duration: i64 = cx.durations(facts).iter().sum();
    let why = why(facts, work.operation);
    let title = format!(
        "One task handles all {} ({}) in {}: {why}",
        words::counted(rows.unsigned_abs(), "row"),
        Bytes(facts.sum(Metric::ShuffleReadBytes).unsigned_abs()),
        Millis(facts.wall_ms)
    );
    let draft = Draft::new("SINGLE_PARTITION", title).at_stage(facts);
    let draft = match why {
        // The rows that a limit keeps come from one partition whatever is done.
        LIMIT => draft,
        _ => draft.fix("spreading the rows").estimate(cx.estimate(
            facts,
            vec![(duration / slots).max(1); slots as usize],
            "the same work spread over all slots",
        )),
    };
    let draft = draft
        .figures(facts, &[Metric::DurationMs, Metric::ShuffleReadBytes, Metric::ShuffleRecordsRead])
        .evidence("stage_wall_ms", facts.wall_ms, "ms")
        .evidence("slots", slots, "slots")
        .not(
            "a last small aggregate",
            format!("it reads {} rows, far more than one a task of the stage before", Count(rows.unsigned_abs())),
        );
    let draft = match &work.label {
        Some(label) => draft.at_node(label.clone()),
        None => draft,
    };
    Some(remedies(draft, work.operation, why))
}

/// A total over all rows ends in one task with one row (or a few) from each task before it.
fn is_last_step(cx: &Context<'_>, facts: &StageFacts<'_>, rows: i64) -> bool {
    let before: usize = cx.stages.iter().filter(|s| facts.stage.parents.contains(&s.stage.id)).map(|s| s.n).sum();
    before > 0 && rows <= 4 * before as i64
}

fn why(facts: &StageFacts<'_>, operation: Operation) -> &'static str {
    let top = facts.operators().any(|(_, n)| matches!(n.op, Operator::TopK { .. } | Operator::Limit { .. }));
    match operation {
        Operation::Window => "the window has no PARTITION BY",
        Operation::Sort => "a sort over all rows ends in one partition",
        Operation::Aggregate => "an aggregate without keys gathers them",
        _ if top => LIMIT,
        _ => "an operator asks for a single partition",
    }
}

fn remedies(draft: Draft, operation: Operation, why: &str) -> Draft {
    let draft = match operation {
        Operation::Window => draft
            .remedy(RemedyKind::Sql, "Give the window a PARTITION BY; for a running number over all rows use monotonically_increasing_id() or zipWithIndex, which need no single partition")
            .remedy(RemedyKind::Conf, "If this is the pandas API on Spark, its default index makes the window")
            .snippet("ps.set_option('compute.default_index_type', 'distributed')"),
        Operation::Sort => draft.remedy(RemedyKind::Sql, "Sort with ORDER BY ... LIMIT n if only the first rows are needed, or write without the coalesce(1) that follows"),
        Operation::Aggregate => draft.remedy(RemedyKind::Sql, "Aggregate by a key first, then over the keys; do not gather all values of a column in one list"),
        _ if why == LIMIT => draft.remedy(RemedyKind::Sql, "Take a sample instead of the first rows, or a smaller limit: every task before sends as many rows as the limit keeps, and one task takes them all")
            .snippet("df.sample(<fraction>)"),
        _ => draft.remedy(RemedyKind::Sql, "Look for an offset or a global window in the query: a key would let many tasks share the work"),
    };
    draft
        .useless("more executors or partitions", "the operator asks for one partition whatever their number")
        .confirm("number of tasks of the stage")
}
