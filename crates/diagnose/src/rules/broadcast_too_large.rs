//! BROADCAST_TOO_LARGE: a table is sent whole to every executor though it is large (section 4.3).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use crate::words;
use model::{Bytes, Confidence, Factor, Join, Millis, Operator, RemedyKind, Severity};

/// Larger than this in any case.
const LARGE: i64 = 1 << 30;
/// Share of the driver's heap.
const DRIVER_SHARE: f64 = 0.10;
/// Share of an executor's heap.
const EXECUTOR_SHARE: f64 = 0.20;
/// Spark's default for `autoBroadcastJoinThreshold`.
const THRESHOLD: i64 = 10 << 20;
/// Times the threshold: Spark would never have chosen this by itself.
const FAR: i64 = 10;
/// Smaller than this hurts nobody, whatever the heaps are.
const LITTLE: i64 = 100 << 20;

/// Looks at every broadcast that worked; one that failed is told by its error.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let before = out.drafts.len();
    let mut largest = 0;
    for query in queries::of_users(cx) {
        for (at, _) in query.nodes().filter(|(_, n)| matches!(n.op, Operator::BroadcastExchange { .. })) {
            let Some(bytes) = query.metric(cx, at, "data size") else { continue };
            largest = largest.max(bytes);
            if let Some(limit) = limit(cx, &query, bytes) {
                out.push(draft(cx, &query, at, bytes, &limit));
            }
        }
    }
    if out.drafts.len() == before && largest > 0 {
        out.fine("broadcasts", format!("largest {}", Bytes(largest as u64)));
    }
}

struct Limit {
    bytes: i64,
    what: &'static str,
    /// Heap that it is a share of, and whether the log states it.
    heap: Option<(i64, bool)>,
}

fn heap(cx: &Context<'_>, key: &str) -> (i64, bool) {
    let set = cx.app.conf_bytes(key, 1 << 20).filter(|b| *b > 0);
    (set.unwrap_or(1 << 30), set.is_some())
}

/// The smallest limit that the size crosses; Photon keeps broadcasts outside the driver's heap.
fn limit(cx: &Context<'_>, query: &Query<'_>, bytes: i64) -> Option<Limit> {
    let (driver, executor) = (heap(cx, "spark.driver.memory"), heap(cx, "spark.executor.memory"));
    let share =
        |heap: (i64, bool), share: f64, what| Limit { bytes: (heap.0 as f64 * share) as i64, what, heap: Some(heap) };
    let mut limits = vec![Limit { bytes: LARGE, what: "a size at which every copy hurts", heap: None }];
    if !query.plan.nodes.iter().any(|n| n.photon) {
        limits.push(share(driver, DRIVER_SHARE, "a tenth of the driver's heap, which collects and builds it"));
        limits.push(share(executor, EXECUTOR_SHARE, "a fifth of an executor's heap"));
    }
    let threshold = threshold(cx, query).max(THRESHOLD);
    limits.push(Limit { bytes: threshold.saturating_mul(FAR), what: "ten times the threshold in force", heap: None });
    limits.into_iter().filter(|l| bytes > l.bytes && bytes > LITTLE).min_by_key(|l| l.bytes)
}

fn join_of(query: &Query<'_>, at: usize) -> Option<(usize, Join)> {
    let mut now = at;
    loop {
        now = query.plan.nodes[now].parent?;
        if let Operator::Join(join) = &query.plan.nodes[now].op {
            return Some((now, join.clone()));
        }
        if !query.plan.nodes[now].op.is_wrapper() {
            return None;
        }
    }
}

/// The threshold in force for an execution, bytes; negative: broadcasts are off.
pub(super) fn threshold(cx: &Context<'_>, query: &Query<'_>) -> i64 {
    let key = "spark.sql.autoBroadcastJoinThreshold";
    cx.conf(query.sql, key).and_then(|v| model::parse_bytes(v, 1)).unwrap_or(THRESHOLD)
}

/// Size of the files behind a broadcast that only a hint explains: the first plan has it, before
/// any size was measured, its side is files without a catalog's statistics, so that their size is
/// Spark's estimate, and that is far above the threshold.
pub(super) fn only_a_hint(cx: &Context<'_>, query: &Query<'_>, at: usize) -> Option<i64> {
    let planned = |n: &model::PlanNode| matches!(n.op, Operator::BroadcastExchange { .. });
    let [(scan_at, scan)] = query.scans_below(at)[..] else { return None };
    let (_, bytes) = query.files(cx, scan_at)?;
    // Columns that are not read make the estimate smaller, hardly ten times.
    let far = bytes > threshold(cx, query).max(0).saturating_mul(FAR);
    let first = query.sql?.first_plan.nodes.iter().any(planned);
    (first && far && scan.table.is_none()).then_some(bytes)
}

/// A hint that is written in the statement or in the logical plan beside it.
fn hint_seen(query: &Query<'_>) -> bool {
    let text = query.sql.map(|s| s.description.to_ascii_uppercase()).unwrap_or_default();
    let hinted = ["BROADCAST(", "BROADCASTJOIN(", "MAPJOIN("].iter().any(|h| text.contains("/*+") && text.contains(h));
    let sections = query.plan.sections.iter().map(|(_, body)| body);
    hinted || sections.into_iter().any(|b| b.contains("strategy=broadcast"))
}

fn source(query: &Query<'_>, at: usize) -> Option<(String, String, Vec<String>)> {
    let scans = query.scans_below(at);
    let (_, scan) = scans.first()?;
    Some((queries::short_source(scan), queries::sql_source(scan), scan.columns.clone()))
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize, bytes: i64, limit: &Limit) -> Draft {
    let rows = query.rows(cx, at).unwrap_or(0);
    let threshold = threshold(cx, query);
    let name = source(query, at).map_or_else(|| "one side of a join".to_owned(), |s| s.0);
    let hint = hint_seen(query);
    let implied = only_a_hint(cx, query, at).filter(|_| !hint);
    let forced = match (hint, threshold > 0 && bytes > threshold) {
        (true, _) => ", as its BROADCAST hint asks".to_owned(),
        (false, true) if implied.is_some() => {
            format!(
                ", {} the threshold of {}, which only a hint does",
                Factor(bytes as f64 / threshold as f64),
                Bytes(threshold as u64)
            )
        }
        (false, true) => {
            format!(", {} the threshold of {}", Factor(bytes as f64 / threshold as f64), Bytes(threshold as u64))
        }
        _ => String::new(),
    };
    let (waited, built) = waited(cx, query, at);
    let wait = if waited >= 1_000 { format!("; the query waited {} for it", Millis(waited)) } else { String::new() };
    let title = format!(
        "{name} is broadcast with {} and {} to every executor{forced}{wait}",
        Bytes(bytes as u64),
        words::counted(rows.max(0) as u64, "row")
    );
    let c = cx.config;
    let costly = built >= c.medium_ms && built as f64 >= c.medium_share * cx.base_wall_ms() as f64;
    let by_time = if costly { Severity::Medium } else { Severity::Info };
    let draft = Draft::new("BROADCAST_TOO_LARGE", title)
        .severity(severity(bytes, limit).max(by_time))
        .evidence("waited_ms", waited, "ms")
        .evidence("data_size_bytes", bytes, "bytes")
        .over(limit.bytes as f64)
        .seen_at(query.location())
        .evidence("rows", rows, "rows")
        .evidence("threshold_bytes", threshold, "bytes")
        .evidence("over_threshold", bytes as f64 / threshold.max(1) as f64, "ratio")
        .evidence("limit_bytes", limit.bytes, "bytes")
        .evidence("limit", limit.what, "");
    let draft = times(cx, query, at, draft);
    let draft = match limit.heap {
        Some((heap, false)) => draft
            .evidence("heap_bytes", heap, "bytes")
            .sure(Confidence::Medium, "the heap is not set in the log; Spark's default of 1 GiB is assumed"),
        Some((heap, true)) => draft.evidence("heap_bytes", heap, "bytes"),
        None => draft,
    };
    let node = join_of(query, at).map_or(at, |j| j.0);
    let draft = query.place_node(cx, node, draft);
    let draft = match hint {
        true => draft.evidence("hint", "BROADCAST", ""),
        false if implied.is_some() => draft.evidence("files_bytes", implied.unwrap_or_default(), "bytes"),
        false if threshold > 0 && bytes > threshold => draft.sure(
            Confidence::Medium,
            "a hint, or an estimate far below the true size: the plan in the log does not tell which",
        ),
        false => draft,
    };
    with_remedies(query, at, draft, &Sizes { threshold, bytes, files: implied, hint, name })
}

/// A share of a heap is a danger; a size far above the threshold only a cost.
fn severity(bytes: i64, limit: &Limit) -> Severity {
    match limit.heap {
        _ if bytes > LARGE => Severity::High,
        Some(_) => Severity::Medium,
        None => Severity::Low,
    }
}

/// Time, ms, in which the query waited for the table, and that part of it in which no task works:
/// building and sending it.
fn waited(cx: &Context<'_>, query: &Query<'_>, at: usize) -> (i64, i64) {
    let ms = |name| query.metric(cx, at, name).unwrap_or(0);
    let built = ms("time to build") + ms("time to broadcast");
    (ms("time to collect") + built, built)
}

fn times(cx: &Context<'_>, query: &Query<'_>, at: usize, draft: Draft) -> Draft {
    let names = [
        ("time to collect", "time_to_collect_ms"),
        ("time to build", "time_to_build_ms"),
        ("time to broadcast", "time_to_broadcast_ms"),
    ];
    names.into_iter().fold(draft, |draft, (metric, name)| match query.metric(cx, at, metric) {
        Some(ms) => draft.evidence(name, ms, "ms"),
        None => draft,
    })
}

/// What the remedies speak of.
struct Sizes {
    threshold: i64,
    bytes: i64,
    /// Size of the files where only a hint explains the broadcast.
    files: Option<i64>,
    hint: bool,
    name: String,
}

fn with_remedies(query: &Query<'_>, at: usize, draft: Draft, sizes: &Sizes) -> Draft {
    let (_, sql_name, columns) = source(query, at).unwrap_or_default();
    let name = &sizes.name;
    let hinted = sizes.hint || sizes.files.is_some();
    let text = match (sizes.files, sizes.hint) {
        (_, true) => format!("Remove the broadcast hint on {name}: Spark obeys it whatever the size"),
        (Some(files), _) => format!(
            "Remove the broadcast hint on {name}: Spark estimates it by its files ({}), far above the threshold of {}, so that only a hint broadcasts it",
            Bytes(files.unsigned_abs()),
            Bytes(sizes.threshold.unsigned_abs())
        ),
        _ => format!("Remove the broadcast hint on {name}, if there is one: Spark obeys it whatever the size"),
    };
    let mut draft = draft.remedy(RemedyKind::Code, text);
    if !columns.is_empty() {
        draft = draft
            .remedy(
                RemedyKind::Code,
                format!("Select only the columns that the join and later steps need; {} sent now", are(columns.len())),
            )
            .computed(format!(
                "columns of the broadcast side: {}",
                columns.iter().take(6).cloned().collect::<Vec<_>>().join(", ")
            ));
    }
    if !hinted {
        let of_catalog = query.scans_below(at).first().is_some_and(|(_, s)| s.table.is_some());
        if of_catalog {
            draft = draft
                .remedy(RemedyKind::Sql, "Give the optimizer true sizes, if no hint forces the broadcast")
                .snippet(format!("ANALYZE TABLE {sql_name} COMPUTE STATISTICS"));
        }
        let (bytes, threshold) = (Bytes(sizes.bytes.unsigned_abs()), sizes.threshold);
        draft = draft
            .remedy(RemedyKind::Conf, "Or switch automatic broadcasts off for this query; a hint still wins")
            .snippet("spark.sql.autoBroadcastJoinThreshold -1")
            .computed(match threshold {
                t if t < 0 => format!("{bytes} although automatic broadcasts are off"),
                t => format!("{bytes} against a threshold of {}", Bytes(t.unsigned_abs())),
            });
    }
    draft
        .remedy(RemedyKind::Sql, "Or ask for a merge join, which needs no table in memory")
        .snippet(format!("SELECT /*+ MERGE({name}) */ …"))
        .useless("more workers", "each gets one more copy of the table")
        .useless("more shuffle partitions", "a broadcast is not partitioned")
        .confirm("data size of the BroadcastExchange, or a SortMergeJoin in its place")
}

/// `one column is`, `5 columns are`.
fn are(columns: usize) -> String {
    format!("{} {}", words::count(columns as u64, "column"), if columns == 1 { "is" } else { "are" })
}
