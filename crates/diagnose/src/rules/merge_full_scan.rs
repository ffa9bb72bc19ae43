//! MERGE_FULL_SCAN: a MERGE reads and rewrites far more of its target than it changes (section 4.4).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use model::{Bytes, Count, Factor, Operator, PlanNode, RemedyKind, Severity, Share};

/// Share of the target's files that is scanned.
const SCANNED: f64 = 0.50;
/// Rows copied over rows changed.
const COPIED: f64 = 100.0;
/// Target files below which a scan of all is nothing.
const FILES: i64 = 10;

/// Looks at every MERGE with figures.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for query in queries::all(cx) {
        for (at, node) in query.nodes() {
            if let Some(merge) = Merge::of(cx, node)
                && let Some(draft) = draft(cx, &query, at, &merge)
            {
                out.push(draft);
            }
        }
    }
}

struct Merge {
    before: i64,
    after: i64,
    bytes: i64,
    copied: i64,
    changed: i64,
    by_source: bool,
    materialize_ms: i64,
    scan_ms: i64,
    rewrite_ms: i64,
}

impl Merge {
    /// Figures of the command. The driver reports them more than once, each time in full: the
    /// largest report is the value, not their sum.
    fn of(cx: &Context<'_>, node: &PlanNode) -> Option<Self> {
        let Operator::Write { .. } = node.op else { return None };
        let value = |name: &str| {
            let metric = node.metrics.iter().find(|m| &*m.name == name)?;
            cx.app.accumulators.get(&metric.accumulator).map(|a| a.max)
        };
        let before = value("number of target files before skipping")?;
        let sum = |names: &[&str]| names.iter().filter_map(|n| value(n)).sum::<i64>();
        Some(Self {
            before,
            after: value("number of target files after skipping")?,
            bytes: value("number of target bytes after skipping").unwrap_or(0),
            copied: value("number of target rows rewritten unmodified")
                .or_else(|| value("number of target rows copied"))
                .unwrap_or(0),
            changed: sum(&["number of updated rows", "number of deleted rows", "number of inserted rows"]),
            by_source: sum(&[
                "number of rows updated by a not matched by source clause",
                "number of rows deleted by a not matched by source clause",
            ]) > 0,
            materialize_ms: value("time taken to materialize source (or determine it's not needed)").unwrap_or(0),
            scan_ms: value("time taken to scan the files for matches").unwrap_or(0),
            rewrite_ms: value("time taken to rewrite the matched files").unwrap_or(0),
        })
    }

    fn scanned(&self) -> f64 {
        self.after as f64 / self.before.max(1) as f64
    }

    fn copies(&self) -> f64 {
        self.copied as f64 / self.changed.max(1) as f64
    }
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize, merge: &Merge) -> Option<Draft> {
    if merge.before < FILES || merge.scanned() < SCANNED || merge.copies() < COPIED {
        return None;
    }
    let (scanned, copies) = (merge.scanned(), merge.copies());
    let title = format!(
        "MERGE scans {} of the target's {} files and copies {} rows to change {}",
        Share(scanned),
        Count(merge.before as u64),
        Count(merge.copied as u64),
        Count(merge.changed as u64)
    );
    let time = merge.scan_ms + merge.rewrite_ms;
    let share = time as f64 / cx.base_wall_ms().max(1) as f64;
    let draft = Draft::new("MERGE_FULL_SCAN", title)
        .severity(if share >= 0.25 {
            Severity::High
        } else if share >= 0.05 {
            Severity::Medium
        } else {
            Severity::Low
        })
        .evidence("files_before_skipping", merge.before, "files")
        .seen_at(query.location())
        .evidence("files_scanned", merge.after, "files")
        .evidence("scanned_share", scanned, "share")
        .over(SCANNED)
        .evidence("bytes_scanned", merge.bytes, "bytes")
        .evidence("rows_copied", merge.copied, "rows")
        .evidence("rows_changed", merge.changed, "rows")
        .evidence("copied_over_changed", copies, "ratio")
        .over(COPIED)
        .evidence("scan_ms", merge.scan_ms, "ms")
        .evidence("rewrite_ms", merge.rewrite_ms, "ms")
        .evidence("materialize_source_ms", merge.materialize_ms, "ms");
    let draft = query.place_node(cx, at, draft);
    Some(with_remedies(draft, merge))
}

fn with_remedies(draft: Draft, merge: &Merge) -> Draft {
    let draft = match merge.by_source {
        true => draft.not("a condition that is too wide", "WHEN NOT MATCHED BY SOURCE needs the whole target: every row that has no match must be found"),
        false => draft
            .remedy(RemedyKind::Sql, "Say in the ON condition, with literals, which part of the target the source can touch: its smallest and largest key, its dates")
            .snippet("MERGE INTO target t USING source s\nON t.key = s.key AND t.<partition column> BETWEEN <smallest in source> AND <largest in source>")
            .computed(format!("{} of {} files are scanned for {} changed rows", merge.after, merge.before, Count(merge.changed.max(0) as u64))),
    };
    draft
        .remedy(
            RemedyKind::Layout,
            "Cluster the target by the key of the MERGE, so that files without a match are skipped",
        )
        .snippet("ALTER TABLE target CLUSTER BY (<merge key>);\nOPTIMIZE target")
        .remedy(
            RemedyKind::Layout,
            format!("Turn deletion vectors on, so that {} a changed row need not be copied", Factor(merge.copies())),
        )
        .snippet("ALTER TABLE target SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
        .useless(
            "more executors",
            format!(
                "{} are read and {} rows copied all the same",
                Bytes(merge.bytes.max(0) as u64),
                Count(merge.copied.max(0) as u64)
            ),
        )
        .confirm("target files after skipping, and rows rewritten unmodified, in the MERGE metrics")
}
