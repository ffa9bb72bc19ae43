//! FILE_SMALL_WRITE: many small files are written (section 4.4 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use crate::{sizing, words};
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
            // Plain files have nothing that compacts them in place.
            let plain = matches!(&node.op, Operator::Write { command, .. } if command.contains("InsertIntoHadoopFs"));
            if files > cx.config.small_files && bytes / files < cx.config.small_file_bytes {
                found += 1;
                out.push(draft(cx, query, at, &Written { target, plain, files, bytes }));
            }
        }
    }
    if writes > 0 && found == 0 {
        out.fine(
            "file sizes written",
            format!("{}, none of more than {} small files", words::count(writes, "write"), cx.config.small_files),
        );
    }
}

/// What a write wrote.
struct Written {
    target: Option<String>,
    plain: bool,
    files: i64,
    bytes: i64,
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize, written: &Written) -> Draft {
    let &Written { ref target, plain, files, bytes } = written;
    let average = bytes / files;
    let partitions = query.metric(cx, at, "number of dynamic part").filter(|n| *n > 0);
    let name = target.clone().unwrap_or_else(|| "the output".to_owned());
    let each = partitions
        .map(|p| format!(", {:.0} in each of {}", files as f64 / p as f64, words::counted(p as u64, "partition")))
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
        .evidence("average_limit_bytes", cx.config.small_file_bytes, "bytes")
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
                "{} / {} = {} each",
                Bytes(bytes as u64),
                words::counted(p as u64, "partition"),
                Bytes((bytes / p) as u64)
            )),
        None => draft
            .remedy(RemedyKind::Code, format!("Write {}", words::counted(wanted.unsigned_abs(), "file")))
            .snippet(format!("df.repartition({wanted}).write…"))
            .computed(format!("{} / {target_size}", Bytes(bytes as u64))),
    };
    let draft =
        draft.remedy(RemedyKind::Sql, "Or let adaptive execution size the output").snippet("SELECT /*+ REBALANCE */ …");
    let draft = match plain {
        true => draft,
        false => draft.remedy(RemedyKind::Layout, "Compact what is there already").snippet(format!("OPTIMIZE {name}")),
    };
    draft
        .useless("coalesce(n)", "it also takes the parallelism from everything before it, up to the last shuffle")
        .confirm("number of written files")
}
