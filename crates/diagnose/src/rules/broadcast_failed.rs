//! BROADCAST_TOO_LARGE and BROADCAST_TIMEOUT from errors (section 4.3). A broadcast that worked
//! but is too large is found from its data size, elsewhere.

use super::broadcast_too_large;
use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, find, has_any, size};
use crate::queries::{self, Query};
use model::{JoinAlgorithm, Operator, Plan, RemedyKind, Side};

/// Looks at broadcasts that failed.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::BroadcastTooLarge, too_large);
    failure::each(cx, out, Cause::BroadcastTimeout, timeout);
    broadcast_results(cx, out);
}

/// A result that was too large because a broadcast collected it: the broadcast is the cause.
fn broadcast_results(cx: &Context<'_>, out: &mut Findings) {
    let collected = |d: &&Draft| {
        let is_broadcast = |e: &model::Evidence| e.metric == "cause" && e.value == model::Value::from("broadcast");
        d.finding.id == "FAIL_RESULT_SIZE" && d.finding.evidence.iter().any(is_broadcast)
    };
    let drafts: Vec<Draft> = out.drafts.iter().filter(collected).filter_map(|d| of_result(cx, d)).collect();
    for draft in drafts.into_iter().take(cx.config.max_per_id) {
        out.push(draft);
    }
}

fn of_result(cx: &Context<'_>, result: &Draft) -> Option<Draft> {
    let value = |metric: &str| {
        let found = result.finding.evidence.iter().find(|e| e.metric == metric)?;
        if let model::Value::Int(v) = found.value { Some(v) } else { None }
    };
    let (bytes, limit) = (value("result_bytes")?, value("limit_bytes")?);
    let sql = result.finding.scope.sql.or_else(|| cx.app.job(result.finding.scope.job?)?.sql);
    let query = sql.and_then(|id| cx.app.sql(id)).map(|sql| Query::new(sql.plan(), Some(sql)));
    let side = query.as_ref().and_then(|q| build_side(q.plan)).or_else(|| pasted_build_side(cx));
    let which = side.as_ref().map_or("a table", |s| s.name.as_str());
    let title = format!(
        "{which} is too large to broadcast: {} had arrived when the limit of {} ended it",
        size(bytes),
        size(limit)
    );
    let mut draft = Draft::new("BROADCAST_TOO_LARGE", title);
    draft.finding.scope = result.finding.scope.clone();
    draft.time_ms = result.time_ms;
    draft.is_failure = result.is_failure;
    draft = draft.evidence("result_bytes", bytes, "bytes").over(limit as f64).evidence("limit_bytes", limit, "bytes");
    let hint = match (&query, &side) {
        _ if hinted(cx) => Hint::Seen,
        (Some(query), Some(side)) => {
            broadcast_too_large::only_a_hint(cx, query, side.input).map_or(Hint::Unknown, |files| Hint::Implied {
                files,
                threshold: broadcast_too_large::threshold(cx, query),
            })
        }
        _ => Hint::Unknown,
    };
    Some(remedies(draft, side.as_ref(), hint))
}

/// What is known of a BROADCAST hint.
#[derive(Clone, Copy)]
enum Hint {
    /// It is written there.
    Seen,
    /// Nothing else explains the broadcast: size of the files and threshold, bytes.
    Implied { files: i64, threshold: i64 },
    /// Nothing.
    Unknown,
}

/// The side that a broadcast join builds: its table, where the plan names one.
struct BuildSide {
    /// As people say it.
    name: String,
    /// Its catalog name; `None` for files, which have no statistics to compute.
    table: Option<String>,
    /// The node that the join builds from.
    input: usize,
    side: &'static str,
    many_columns: bool,
}

fn pasted_build_side(cx: &Context<'_>) -> Option<BuildSide> {
    let pasted = cx.app.pasted.as_ref()?;
    pasted.plans.iter().find_map(build_side)
}

fn build_side(plan: &Plan) -> Option<BuildSide> {
    let (at, join) = plan.nodes.iter().enumerate().find_map(|(at, node)| match &node.op {
        Operator::Join(join) if matches!(join.algorithm, JoinAlgorithm::BroadcastHash | JoinAlgorithm::NestedLoop) => {
            Some((at, join))
        }
        _ => None,
    })?;
    let inputs = plan.inputs(at);
    let (side, input) = match join.build? {
        Side::Left => ("BuildLeft", *inputs.first()?),
        Side::Right => ("BuildRight", *inputs.last()?),
    };
    let scan = plan.below(input).into_iter().find_map(|n| match &plan.nodes[n].op {
        Operator::Scan(scan) => Some((scan, &plan.nodes[n])),
        _ => None,
    })?;
    let known = scan.0.table.is_some() || queries::path_of(scan.0).is_some();
    let name = known.then(|| queries::short_source(scan.0))?;
    let many_columns = scan.0.columns.len() >= 50 || scan.1.detail.contains("more fields");
    Some(BuildSide { name, table: scan.0.table.clone(), input, side, many_columns })
}

fn hinted(cx: &Context<'_>) -> bool {
    let text = cx.app.pasted.as_ref().map_or("", |p| p.text.as_str());
    let upper = text.to_ascii_uppercase();
    has_any(&upper, &["BROADCAST(", "BROADCASTJOIN(", "MAPJOIN(", "STRATEGY=BROADCAST"])
}

fn too_large(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let limit = find(r"maxResultSize ?=? ?\(?(\d[\d.]*(?: ?[KMGT]i?B)?)", &text)
        .or_else(|| find(r"larger than (\d[\d.]* ?[KMGT]i?B)", &text))
        .and_then(|m| failure::bytes(&m[1]));
    let data =
        find(r"larger than \d[\d.]* ?[KMGT]i?B: (\d[\d.]* ?[KMGT]i?B)", &text).and_then(|m| failure::bytes(&m[1]));
    let rows = text.contains("rows") && text.contains("Cannot broadcast the table over");
    let side = pasted_build_side(f.cx);
    let which = side.as_ref().map_or_else(|| "a table".to_owned(), |s| s.name.clone());
    let measure = match (data, limit) {
        (Some(data), Some(limit)) => format!(": {} against a limit of {}", size(data), size(limit)),
        (None, Some(limit)) => format!(": more than the limit of {}", size(limit)),
        _ if rows => ": more than 512 million rows".to_owned(),
        _ => String::new(),
    };
    let cause = if hinted(f.cx) {
        "a BROADCAST hint, which is obeyed whatever the threshold"
    } else {
        "size estimate too low, no statistics"
    };
    let mut draft = f.draft(format!("{which} is too large to broadcast{measure}")).evidence("cause", cause, "");
    if let Some(limit) = limit {
        draft = draft.evidence("limit_bytes", limit, "bytes");
    }
    if let Some(data) = data {
        draft = draft.evidence("data_bytes", data, "bytes");
    }
    draft = draft
        .not("collect or toPandas", "the bytes came to the driver for the join: the stack is in BroadcastExchange");
    remedies(draft, side.as_ref(), if hinted(f.cx) { Hint::Seen } else { Hint::Unknown })
}

fn remedies(draft: Draft, side: Option<&BuildSide>, hint: Hint) -> Draft {
    let mut draft = draft;
    if let Some(side) = side {
        draft = draft.evidence("build_side", format!("{} ({})", side.name, side.side), "");
    }
    let on = side.map(|s| format!(" on {}", s.name)).unwrap_or_default();
    draft = match hint {
        Hint::Seen => draft.remedy(
            RemedyKind::Sql,
            format!("Remove the BROADCAST hint{on}: it is obeyed whatever the threshold says"),
        ),
        Hint::Implied { files, threshold } => draft
            .evidence("files_bytes", files, "bytes")
            .evidence("threshold_bytes", threshold, "bytes")
            .remedy(
                RemedyKind::Sql,
                format!(
                    "Remove the BROADCAST hint{on}: Spark estimates it by its files ({}), far above the threshold ({}), so that only a hint broadcasts it",
                    size(files),
                    size(threshold.max(0))
                ),
            ),
        Hint::Unknown => draft,
    };
    draft = without_hint(draft, side, hint);
    let columns = match side.is_some_and(|s| s.many_columns) {
        true => "Select only the needed columns of the wide side before the join",
        false => "Select only the needed columns of this side before the join, and filter it earlier",
    };
    draft
        .remedy(RemedyKind::Sql, columns)
        .useless("more workers", "each one gets another copy of the same table")
        .useless("more shuffle partitions", "a broadcast has none")
        .useless("a higher spark.driver.maxResultSize", "the driver would have to hold and send even more")
        .confirm("join operator in the final plan, and data size of its exchange")
}

/// Statistics and the threshold decide only where no hint does; a MERGE hint always does.
fn without_hint(draft: Draft, side: Option<&BuildSide>, hint: Hint) -> Draft {
    let name = side.map_or("<the broadcast table>", |s| s.name.as_str());
    if !matches!(hint, Hint::Unknown) {
        return draft
            .useless("spark.sql.autoBroadcastJoinThreshold=-1", "a hint is obeyed whatever the threshold says")
            .remedy(RemedyKind::Sql, "Or ask for a merge join")
            .snippet(format!("SELECT /*+ MERGE({name}) */ …"));
    }
    let table = side.map_or(Some("<the broadcast table>"), |s| s.table.as_deref());
    let draft = match table {
        Some(table) => draft
            .remedy(
                RemedyKind::Sql,
                format!("Give the optimizer a true size: ANALYZE TABLE {table} COMPUTE STATISTICS"),
            )
            .snippet(format!(
                "ANALYZE TABLE {table} COMPUTE STATISTICS;\nANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS;"
            )),
        None => draft,
    };
    draft.remedy(
        RemedyKind::Conf,
        "Do not broadcast in this query: spark.sql.autoBroadcastJoinThreshold=-1 for this query, or a MERGE hint on the join; a BROADCAST hint, if there is one, must go",
    )
}

fn timeout(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let seconds = find(r"(?:broadcast in|timed out after \[?)\s?(\d+)", &text).and_then(|m| m[1].parse::<i64>().ok());
    let title = match seconds {
        Some(s) => format!("a broadcast did not finish within {s} s: its build side was too slow"),
        None => "a broadcast did not finish in time: its build side was too slow".to_owned(),
    };
    let side = pasted_build_side(f.cx);
    let mut draft = f.draft(title);
    if let Some(s) = seconds {
        draft = draft.evidence("timeout_s", s, "s");
    }
    if let Some(side) = &side {
        draft = draft.evidence("build_side", format!("{} ({})", side.name, side.side), "");
    }
    draft
        .not("network timeout between driver and executors", "the wait is that for a broadcast table")
        .remedy(RemedyKind::Sql, "Make the build-side query fast: filter it, select fewer columns, materialise it first; see whether its job waited for free slots")
        .remedy(RemedyKind::Conf, "Or do not broadcast it: remove the hint, spark.sql.autoBroadcastJoinThreshold=-1 for this query")
        .remedy(RemedyKind::Conf, "Last: a higher spark.sql.broadcastTimeout, when the build side is known to be small but slow")
        .useless("more shuffle partitions", "a broadcast table has none")
        .confirm("time to collect and to build of the broadcast exchange")
}
