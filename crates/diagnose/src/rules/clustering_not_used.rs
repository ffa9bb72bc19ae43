//! CLUSTERING_NOT_USED: a clustered table is filtered by other columns, so no files are skipped
//! (section 4.4 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::plan_text::columns;
use crate::queries::{self, Query};
use model::{Confidence, Count, Operator, RemedyKind, Scan, Severity, Share};
use std::collections::BTreeMap;

/// Share of files that a filter must skip.
const SKIPPED: f64 = 0.10;
/// Files below which skipping saves nothing.
const FILES: i64 = 10;

/// Looks at every filtered scan of a Delta table.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let queries = queries::of_users(cx);
    for query in &queries {
        for (at, node) in query.nodes() {
            let Operator::Scan(scan) = &node.op else { continue };
            if scan.format == "delta"
                && let Some(draft) = draft(cx, &queries, query, at, scan)
            {
                out.push(draft);
            }
        }
    }
}

/// Columns that the scan is filtered by, as identifiers.
fn filtered(scan: &Scan) -> Vec<String> {
    let lists = scan.data_filters.iter().flatten().chain(scan.partition_filters.iter().flatten());
    let mut names: Vec<String> = lists.filter(|f| !queries::is_not_null_only(f)).flat_map(|f| columns(f)).collect();
    names.sort();
    names.dedup();
    names
}

/// Files read and files of the snapshot, where the run tells both.
fn skipped(cx: &Context<'_>, query: &Query<'_>, at: usize) -> Option<(i64, i64)> {
    let (read, _) = query.files(cx, at)?;
    let pruned = ["files pruned", "number of files pruned", "pruned files", "number of pruned files"]
        .iter()
        .find_map(|n| query.metric(cx, at, n))?;
    Some((read, read + pruned))
}

fn draft(cx: &Context<'_>, all: &[Query<'_>], query: &Query<'_>, at: usize, scan: &Scan) -> Option<Draft> {
    let names = filtered(scan);
    let clustering = cx.app.pasted.as_ref().map(|p| p.clustering_columns.clone()).unwrap_or_default();
    if names.is_empty() || scan.cut || names.iter().any(|n| clustering.contains(n)) {
        return None;
    }
    let files = skipped(cx, query, at);
    let share = files.map(|(read, all)| 1.0 - read as f64 / all.max(1) as f64);
    let proven = files.is_some_and(|(_, all)| all >= FILES) && share.is_some_and(|s| s < SKIPPED);
    if !proven && clustering.is_empty() {
        return None;
    }
    let name = queries::short_source(scan);
    let title = match (files, share) {
        (Some((read, all)), Some(share)) => format!(
            "the filter on {} skips {} of the files of {name}: {} of {} are read",
            names.join(", "),
            Share(share),
            Count(read as u64),
            Count(all as u64)
        ),
        _ => format!("{name} is clustered by {} and filtered by {}", clustering.join(", "), names.join(", ")),
    };
    let mut draft = Draft::new("CLUSTERING_NOT_USED", title)
        .severity(if query.is_lint() { Severity::Medium } else { Severity::Low })
        .evidence("filtered_columns", names.clone(), "")
        .seen_at(query.location())
        .evidence("clustering_columns", clustering.clone(), "");
    if let (Some((read, all)), Some(share)) = (files, share) {
        draft = draft
            .evidence("files_read", read, "files")
            .evidence("files_in_snapshot", all, "files")
            .evidence("skipped_share", share, "share")
            .over(SKIPPED);
    }
    if clustering.is_empty() {
        draft = draft.sure(Confidence::Medium, "the columns that the table is clustered by are not in the log");
    }
    let wanted = by_use(all, scan);
    let draft = query.place_node(cx, at, draft);
    Some(
        draft
            .remedy(
                RemedyKind::Sql,
                "Add a filter on a column that the table is clustered by, if one follows from this filter",
            )
            .remedy(
                RemedyKind::Layout,
                format!("Or cluster the table by what queries filter by: {}", wanted.join(", ")),
            )
            .snippet(format!(
                "ALTER TABLE {} CLUSTER BY ({});\nOPTIMIZE {0}",
                queries::sql_source(scan),
                wanted.join(", ")
            ))
            .computed("columns counted over the filters of all queries on this table")
            .useless("more executors", "they read files that nobody needs")
            .confirm("files read against files of the table"),
    )
}

/// At most four columns that queries on the same source filter by, the most frequent first.
fn by_use(all: &[Query<'_>], scan: &Scan) -> Vec<String> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for query in all {
        for (_, node) in query.nodes() {
            let Operator::Scan(other) = &node.op else { continue };
            if queries::sql_source(other) == queries::sql_source(scan) {
                filtered(other).into_iter().for_each(|c| *counts.entry(c).or_default() += 1);
            }
        }
    }
    let mut counts: Vec<(String, u32)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    counts.into_iter().take(4).map(|(name, _)| name).collect()
}
