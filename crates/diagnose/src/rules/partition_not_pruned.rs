//! PARTITION_NOT_PRUNED: a filtered query reads every partition of a table (section 4.4).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::plan_text::{columns, conjuncts, without_ids};
use crate::queries::{self, Query};
use model::{Confidence, Count, Join, JoinAlgorithm, Operator, RemedyKind, Scan, Severity, Side};

/// Looks at every scan of a partitioned source.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let (mut pruned, mut found) = (0, 0);
    for query in queries::of_users(cx) {
        for (at, node) in query.nodes() {
            let Operator::Scan(scan) = &node.op else { continue };
            let partitions = partition_columns(cx, &query, scan);
            if partitions.is_empty() {
                continue;
            }
            if has_partition_filter(scan) {
                pruned += 1;
                continue;
            }
            // A cut list of filters may hold one on a partition column.
            let unknown =
                scan.partition_filters.is_none() || scan.partition_filters.iter().flatten().any(|f| f.contains("..."));
            let why = if unknown { None } else { why(cx, &query, at, &partitions) };
            if let Some(why) = why {
                found += 1;
                out.push(draft(cx, &query, at, scan, &partitions, &why));
            }
        }
    }
    if pruned > 0 && found == 0 {
        out.fine(
            "partition pruning",
            format!("{pruned} scans of partitioned tables have a filter on a partition column"),
        );
    }
}

/// Partition columns by the plan: what the scan gives out and the files do not hold; or by the paste.
fn partition_columns(cx: &Context<'_>, query: &Query<'_>, scan: &Scan) -> Vec<String> {
    let stated = cx.app.pasted.as_ref().map(|p| p.partition_columns.clone()).filter(|_| query.is_lint());
    match scan.partition_columns.is_empty() {
        false => scan.partition_columns.clone(),
        true => stated.unwrap_or_default(),
    }
}

fn has_partition_filter(scan: &Scan) -> bool {
    scan.partition_filters.iter().flatten().any(|f| !queries::is_not_null_only(f))
}

/// Why partitions should have been left out, and were not.
enum Why {
    /// The filters are on other columns.
    OtherColumns(Vec<String>),
    /// A filter on a partition column hides in code that Spark cannot look into.
    Hidden { column: String, function: String },
    /// A filter on a partition column is there, but not as a partition filter.
    Expression(String),
    /// A join key is a partition column and the other side is filtered.
    Join { column: String, build: String },
}

fn why(cx: &Context<'_>, query: &Query<'_>, at: usize, partitions: &[String]) -> Option<Why> {
    let chain = query.chain_above(at);
    hidden(query, &chain, partitions)
        .or_else(|| filtered(query, &chain, partitions))
        .or_else(|| star_join(cx, query, at, partitions))
}

/// Python code over a partition column whose result a filter uses.
fn hidden(query: &Query<'_>, chain: &[usize], partitions: &[String]) -> Option<Why> {
    let python = chain.iter().find_map(|&n| match &query.plan.nodes[n].op {
        Operator::Python { functions, .. } => Some((n, functions)),
        _ => None,
    });
    let (node, functions) = python?;
    let detail = &query.plan.nodes[node].detail;
    let column = columns(detail).into_iter().find(|c| partitions.contains(c))?;
    let used = chain
        .iter()
        .any(|&n| matches!(&query.plan.nodes[n].op, Operator::Filter { condition } if condition.contains("pythonUDF")));
    used.then(|| Why::Hidden { column, function: functions.clone() })
}

/// Filters on the rows of the scan, other than that something is not NULL.
fn filtered(query: &Query<'_>, chain: &[usize], partitions: &[String]) -> Option<Why> {
    let mut names: Vec<String> = Vec::new();
    for &node in chain {
        let Operator::Filter { condition } = &query.plan.nodes[node].op else { continue };
        for part in
            conjuncts(condition).into_iter().filter(|c| !queries::is_not_null_only(c) && !queries::is_runtime_filter(c))
        {
            let of = columns(part);
            if of.iter().any(|c| partitions.contains(c)) {
                return Some(Why::Expression(without_ids(part)));
            }
            names.extend(of);
        }
    }
    names.dedup();
    (!names.is_empty()).then_some(Why::OtherColumns(names))
}

/// A star join without dynamic pruning: the key is a partition column, the other side is filtered.
fn star_join(cx: &Context<'_>, query: &Query<'_>, at: usize, partitions: &[String]) -> Option<Why> {
    let top = query.chain_above(at).last().copied().unwrap_or(at);
    let (join_at, join, side) = join_above(query, top)?;
    let keys = if side == Side::Left { &join.left_keys } else { &join.right_keys };
    let column = keys.iter().find(|k| partitions.contains(k))?.clone();
    if !may_prune(join, side)
        || cx.conf(query.sql, "spark.sql.optimizer.dynamicPartitionPruning.enabled") == Some("false")
    {
        return None;
    }
    let other = *query.plan.inputs(join_at).get(usize::from(side == Side::Left))?;
    let selective = query.plan.below(other).into_iter().any(|n| match &query.plan.nodes[n].op {
        Operator::Filter { condition } => {
            conjuncts(condition).iter().any(|c| !queries::is_not_null_only(c) && !queries::is_runtime_filter(c))
        }
        _ => false,
    });
    let build = query.scans_below(other).first().map(|(_, s)| queries::short_source(s))?;
    selective.then_some(Why::Join { column, build })
}

/// The join that takes a node's rows, through exchanges and sorts, and the side they come from.
fn join_above<'a>(query: &Query<'a>, at: usize) -> Option<(usize, &'a Join, Side)> {
    let mut below = at;
    loop {
        let above = query.plan.consumer(below)?;
        match &query.plan.nodes[above].op {
            Operator::Join(join) if join.algorithm != JoinAlgorithm::Cartesian => {
                let left = *query.plan.inputs(above).first()?;
                let side = if left == below { Side::Left } else { Side::Right };
                return Some((above, join, side));
            }
            Operator::Exchange(_) | Operator::Sort { .. } | Operator::Project { .. } | Operator::Filter { .. } => {
                below = above
            }
            _ => return None,
        }
    }
}

/// Sides that Spark prunes by the other one: never the side whose rows an outer join must keep.
fn may_prune(join: &Join, side: Side) -> bool {
    matches!(
        (join.kind.as_str(), side),
        ("Inner" | "LeftSemi", _) | ("LeftOuter", Side::Right) | ("RightOuter", Side::Left)
    )
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize, scan: &Scan, partitions: &[String], why: &Why) -> Draft {
    let name = queries::short_source(scan);
    let files = query.files(cx, at);
    let read = query.metric(cx, at, "number of partitions read");
    let list = partitions.join(", ");
    let all = match (read, files) {
        (Some(n), _) => format!("all {} partitions of {name} are read", Count(n.max(0) as u64)),
        (None, Some((n, _))) => format!("all {} files of {name} are read", Count(n.max(0) as u64)),
        (None, None) => format!("every partition of {name} is read"),
    };
    let title = match why {
        Why::OtherColumns(_) => format!("{all}: the query filters, but not by its partition column {list}"),
        Why::Hidden { column, .. } => {
            format!("{all}: the filter on its partition column {column} is hidden in a Python function")
        }
        Why::Expression(part) => format!("{all}: {part} is not a filter that selects partitions"),
        Why::Join { column, build } => format!(
            "{all}: it is joined by its partition column {column} with a filtered {build}, without dynamic pruning"
        ),
    };
    let mut draft = Draft::new("PARTITION_NOT_PRUNED", title)
        .severity(severity(cx, query, at, files))
        .evidence("partition_columns", partitions.to_vec(), "")
        .seen_at(query.location())
        .evidence("partition_filters", scan.partition_filters.clone().unwrap_or_default(), "");
    if let Some((files, bytes)) = files {
        draft = draft.evidence("number_of_files_read", files, "files").evidence("size_of_files_read", bytes, "bytes");
    }
    if let Some(read) = read {
        draft = draft.evidence("number_of_partitions_read", read, "partitions");
    }
    if let Some(rows) = query.rows(cx, at) {
        draft = draft.evidence("number_of_output_rows", rows, "rows");
    }
    if let Why::OtherColumns(names) = why {
        draft = draft
            .evidence("filtered_columns", names.clone(), "")
            .sure(Confidence::Medium, "whether the wanted rows lie in few partitions is not in the plan");
    }
    let draft = query.place_node(cx, at, draft).not("a query that needs everything", "a filter stands above the scan");
    with_remedies(draft, why, partitions)
}

fn severity(cx: &Context<'_>, query: &Query<'_>, at: usize, files: Option<(i64, i64)>) -> Severity {
    const GIB: i64 = 1 << 30;
    let Some((_, bytes)) = files else { return if query.is_lint() { Severity::Medium } else { Severity::Low } };
    let share = query.stage_of(cx, at).map_or(0.0, |f| f.wall_ms as f64 / cx.base_wall_ms().max(1) as f64);
    match (bytes, share) {
        (b, s) if b >= 10 * GIB && s >= 0.10 => Severity::High,
        (b, s) if b >= GIB || s >= 0.10 => Severity::Medium,
        _ => Severity::Low,
    }
}

fn with_remedies(draft: Draft, why: &Why, partitions: &[String]) -> Draft {
    let column = &partitions[0];
    let draft = match why {
        Why::OtherColumns(names) => draft
            .remedy(RemedyKind::Sql, format!("Add a filter on {column} that follows from the one on {}", names.join(", ")))
            .snippet(format!("WHERE {column} = <value> AND …"))
            .remedy(RemedyKind::Layout, format!("Or cluster the table by {}, if most queries filter by it", names.join(", "))),
        Why::Hidden { column, function } => draft
            .remedy(RemedyKind::Code, format!("Replace {function} by a plain comparison of {column}: Spark cannot look into Python code"))
            .snippet(format!("WHERE {column} = DATE '<day>'")),
        Why::Expression(_) => draft
            .remedy(RemedyKind::Sql, format!("Compare {column} itself with a value of its own type"))
            .snippet(format!("WHERE {column} = <value>")),
        Why::Join { column, build } => draft
            .remedy(RemedyKind::Sql, format!("Let {build} be broadcast, so that its values of {column} prune the other side, or state the range of {column} in the query"))
            .snippet(format!("SELECT /*+ BROADCAST({build}) */ …")),
    };
    draft
        .useless("more executors", "they read the same files that nobody needs")
        .confirm("number of partitions read by the scan")
}
