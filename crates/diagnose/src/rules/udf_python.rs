//! UDF_PYTHON: rows go through Python workers (section 4.4 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use crate::run_model::Change;
use crate::words;
use model::{Confidence, Metric, Millis, Operator, RemedyKind, Severity, Share};

/// Own timers of Python nodes: Spark 4, 3.x, Databricks.
const RUN: [&str; 4] = [
    "time to run Python workers",
    "time spent executing Python",
    "total time to run Python workers",
    "time spent running Python workers",
];
const START: [&str; 2] = ["time to start Python workers", "total time to start Python workers"];
const INIT: [&str; 2] = ["time to initialize Python workers", "total time to initialize Python workers"];

/// Looks at every Python node.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let (mut nodes, mut found) = (0, 0);
    for query in queries::of_users(cx) {
        for (at, node) in query.nodes() {
            let Operator::Python { row_at_a_time, functions } = &node.op else { continue };
            nodes += 1;
            let cost = Cost::of(cx, &query, at);
            let matters = query.is_lint() || cost.as_ref().is_some_and(|c| c.share >= cx.config.python_share);
            if matters {
                found += 1;
                out.push(draft(cx, &query, at, *row_at_a_time, functions, cost));
            }
        }
    }
    if nodes > 0 && found == 0 {
        out.fine(
            "Python functions",
            format!("{}, each below {} of its stage", words::count(nodes, "operator"), Share(cx.config.python_share)),
        );
    }
}

/// What Python takes of a stage's run time.
struct Cost<'c, 'a> {
    facts: &'c StageFacts<'a>,
    python_ms: i64,
    run_ms: i64,
    share: f64,
    /// From waiting time, not from a timer of the node.
    estimated: bool,
    /// Part of `python_ms` in which workers start and set themselves up, ms, where it can be told.
    starting_ms: Option<i64>,
}

impl<'c, 'a> Cost<'c, 'a> {
    fn of(cx: &'c Context<'a>, query: &Query<'a>, at: usize) -> Option<Self> {
        let facts = query.stage_of(cx, at)?;
        let run_ms = facts.sum(Metric::RunMs);
        let timer = RUN.iter().find_map(|n| query.metric(cx, at, n));
        // The JVM waits while Python computes: what is neither CPU, collection nor shuffle.
        let waited = facts.sum(Metric::IoWaitMs);
        let python_ms = timer.unwrap_or(waited).min(run_ms);
        let first = |names: &[&str]| names.iter().find_map(|n| query.metric(cx, at, n));
        // Spark's run time of workers goes from their request to their last row, so start and
        // set-up are part of it. Those of a worker that is used again contain its idle time: then
        // they are no part and tell nothing.
        let starting = first(&START).zip(first(&INIT)).map(|(start, init)| start + init);
        let starting_ms = starting.filter(|ms| timer.is_some_and(|t| *ms <= t));
        (run_ms > 0).then(|| Self {
            facts,
            python_ms,
            run_ms,
            share: python_ms as f64 / run_ms as f64,
            estimated: timer.is_none(),
            starting_ms,
        })
    }
}

fn draft(
    cx: &Context<'_>,
    query: &Query<'_>,
    at: usize,
    rows: bool,
    functions: &str,
    cost: Option<Cost<'_, '_>>,
) -> Draft {
    let how = if rows { "row by row" } else { "in batches" };
    let name = functions.trim_matches(['[', ']']);
    let title = match &cost {
        Some(c) => format!(
            "the Python function {name} runs {how}: Python takes {}{} of the {} of task time of stage {} ({}){}",
            if c.estimated { "about " } else { "" },
            Millis(c.python_ms),
            Millis(c.run_ms),
            c.facts.key(),
            Share(c.share),
            c.starting_ms
                .filter(|ms| *ms >= 1_000)
                .map(|ms| format!(", {} of it to start workers", Millis(ms)))
                .unwrap_or_default()
        ),
        None => format!("the Python function {name} runs {how}"),
    };
    let mut draft = Draft::new("UDF_PYTHON", title).evidence("function", name, "").seen_at(query.location()).evidence(
        "row_at_a_time",
        if rows { "yes" } else { "no" },
        "",
    );
    let facts = [
        ("data sent to Python workers", "data_sent_bytes", "bytes"),
        ("data returned from Python workers", "data_returned_bytes", "bytes"),
        ("number of output rows", "rows", "rows"),
    ];
    for (metric, evidence, unit) in facts {
        if let Some(value) = query.metric(cx, at, metric) {
            draft = draft.evidence(evidence, value, unit);
        }
    }
    draft = match &cost {
        Some(c) => {
            let fix = if rows { "a built-in expression" } else { "doing without it" };
            let draft = draft
                .fix(fix)
                .estimate(estimate(cx, c))
                .at_least(if c.facts.wall_ms as f64 >= 0.02 * cx.base_wall_ms() as f64 {
                    Severity::Low
                } else {
                    Severity::Info
                })
                .evidence("python_ms", c.python_ms, "ms")
                .evidence("run_ms", c.run_ms, "ms")
                .evidence("python_share", c.share, "share")
                .over(cx.config.python_share);
            let draft = started(draft, c);
            match c.estimated {
                true => draft.sure(
                    Confidence::Medium,
                    "this version has no timer for Python; it is the time in which the JVM waited",
                ),
                false => draft,
            }
        }
        None => draft.severity(if rows { Severity::Medium } else { Severity::Low }),
    };
    let draft = query.place_node(cx, at, draft);
    with_remedies(query, at, draft, rows, name)
}

/// Starting workers is paid once a slot: said apart, where it can be told.
fn started(draft: Draft, cost: &Cost<'_, '_>) -> Draft {
    let Some(starting) = cost.starting_ms else { return draft };
    let own = cost.python_ms - starting.min(cost.python_ms);
    let share = own as f64 / cost.run_ms.max(1) as f64;
    draft.evidence("start_and_set_up_ms", starting, "ms").evidence("function_ms", own, "ms").not(
        "starting the workers alone",
        format!("without their start and set-up {} ({} of the task time) remain", Millis(own), Share(share)),
    )
}

/// Each task without its share of Python time.
fn estimate(cx: &Context<'_>, cost: &Cost<'_, '_>) -> Option<model::Estimate> {
    let python = |row| (cost.facts.stage.tasks.value(Metric::RunMs, row) as f64 * cost.share) as i64;
    let shorter = cost.facts.shortened(python);
    let change = Change::stage(cost.facts.position, shorter);
    cx.run.as_ref().map(|r| r.estimate(&change, "each task without its share of Python time"))
}

/// Whether a filter waits for the function's result.
fn is_barrier(query: &Query<'_>, at: usize) -> bool {
    query
        .chain_above(at)
        .iter()
        .any(|&n| matches!(&query.plan.nodes[n].op, Operator::Filter { condition } if condition.contains("pythonUDF")))
}

fn with_remedies(query: &Query<'_>, at: usize, draft: Draft, rows: bool, name: &str) -> Draft {
    let barrier = is_barrier(query, at);
    let draft = match barrier {
        true => draft
            .evidence("filter_waits_for_it", "yes", "")
            .remedy(RemedyKind::Code, format!("Write the filter without {name}: behind a Python function nothing is pushed to the source and every row is read")),
        false => draft,
    };
    let draft = draft.remedy(
        RemedyKind::Code,
        format!(
            "Replace {name} by built-in functions (pyspark.sql.functions): they run inside the JVM, without moving rows"
        ),
    );
    let draft = match rows {
        true => draft
            .remedy(RemedyKind::Code, "If it must be Python, take batches: a pandas function, or Arrow for plain ones")
            .snippet("@udf(returnType=…, useArrow=True)\n# or\n@pandas_udf(\"…\")"),
        false => draft.remedy(
            RemedyKind::Code,
            "It runs on Arrow batches already; work on whole columns inside it, without loops over rows",
        ),
    };
    draft
        .useless("more executor memory", "the function runs in Python processes outside the heap")
        .confirm("time to run Python workers, or the operator gone from the plan")
}
