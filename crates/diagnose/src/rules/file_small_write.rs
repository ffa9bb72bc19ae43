//! FILE_SMALL_WRITE: many small files are written (section 4.4 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use crate::sizing;
use model::{Bytes, Count, Operator, RemedyKind, Severity};

/// Looks at every write.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let (mut writes, mut found) = (0, 0);
    for query in queries::of_users(cx).iter().filter(|q| q.stream(cx).is_none()) {
        for (at, node) in query.nodes() {
            let first = |names: &[&str]| names.iter().find_map(|n| query.metric(cx, at, n));
            let Some(files) = first(&["number of written files", "number of files added"]).filter(|n| *n > 0) else {
                continue;
            };
            let Some(bytes) = first(&["written output", "number of written bytes"]) else { continue };
            writes += 1;
            let target = match &node.op {
                Operator::Write { target, .. } => target.clone(),
                _ => None,
            };
            if files > cx.config.small_files && bytes / files < cx.config.small_file_bytes {
                found += 1;
                out.push(draft(cx, query, at, target, files, bytes));
            }
        }
    }
    if writes > 0 && found == 0 {
        out.fine(
            "file sizes written",
            format!("{writes} writes, none of more than {} small files", cx.config.small_files),
        );
    }
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize, target: Option<String>, files: i64, bytes: i64) -> Draft {
    let average = bytes / files;
    let partitions = query.metric(cx, at, "number of dynamic part").filter(|n| *n > 0);
    let name = target.clone().unwrap_or_else(|| "the output".to_owned());
    let each = partitions
        .map(|p| format!(", {:.0} in each of {} partitions", files as f64 / p as f64, Count(p as u64)))
        .unwrap_or_default();
    let title =
        format!("{} files of {} on average are written to {name}{each}", Count(files as u64), Bytes(average as u64));
    let draft = Draft::new("FILE_SMALL_WRITE", title)
        .severity(Severity::Low)
        .evidence("files", files, "files")
        .over(cx.config.small_files as f64)
        .seen_at(query.location())
        .evidence("bytes", bytes, "bytes")
        .evidence("average_bytes", average, "bytes")
        .over(cx.config.small_file_bytes as f64)
        .evidence("partitions_written", partitions.unwrap_or(0), "partitions")
        .explained_by(&["SKEW_WRITE"]);
    let draft = query.place_node(cx, at, draft);
    let wanted = sizing::ceil_div(bytes, cx.config.target_partition_bytes).max(1);
    let target_size = Bytes(cx.config.target_partition_bytes as u64);
    let draft = match partitions {
        Some(p) => draft
            .remedy(
                RemedyKind::Code,
                "Bring the rows of each partition value together before the write: about one file a value",
            )
            .snippet("df.repartition(\"<partition column>\").write.partitionBy(\"<partition column>\")…")
            .computed(format!(
                "{} / {} partitions = {} each",
                Bytes(bytes as u64),
                Count(p as u64),
                Bytes((bytes / p) as u64)
            )),
        None => draft
            .remedy(RemedyKind::Code, format!("Write {wanted} files"))
            .snippet(format!("df.repartition({wanted}).write…"))
            .computed(format!("{} / {target_size}", Bytes(bytes as u64))),
    };
    draft
        .remedy(RemedyKind::Sql, "Or let adaptive execution size the output")
        .snippet("SELECT /*+ REBALANCE */ …")
        .remedy(RemedyKind::Layout, "Compact what is there already")
        .snippet(format!("OPTIMIZE {name}"))
        .useless("coalesce(n)", "it also takes the parallelism from everything before it, up to the last shuffle")
        .confirm("number of written files")
}
