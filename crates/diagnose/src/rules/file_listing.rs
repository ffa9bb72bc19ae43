//! FILE_LISTING: finding the files takes long (section 4.4 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use crate::run_model::Change;
use crate::words;
use model::{Count, Millis, Operator, RemedyKind, Scan, Severity, Share};

/// Listing time of one scan from which it is a finding.
const LONG_MS: i64 = 5_000;
/// Or this share of the execution, from a second on.
const SHARE: f64 = 0.10;
/// Or this many files.
const FILES: i64 = 100_000;

/// Looks at every scan of files.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let (mut longest, mut found) = (None, 0);
    for query in queries::of_users(cx) {
        for (at, node) in query.nodes() {
            let Operator::Scan(scan) = &node.op else { continue };
            let listing = query.metric(cx, at, "metadata time");
            let files = query.files(cx, at).map_or(0, |f| f.0);
            longest = longest.max(listing);
            if let Some(draft) = draft(cx, &query, at, scan, listing.unwrap_or(0), files) {
                found += 1;
                out.push(draft);
            }
        }
    }
    if let Some(ms) = longest.filter(|_| found == 0) {
        out.fine("file listing", format!("longest {}", Millis(ms)));
    }
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize, scan: &Scan, listing: i64, files: i64) -> Option<Draft> {
    let whole = query.sql.and_then(model::SqlExecution::duration_ms).unwrap_or(0);
    let share = listing as f64 / whole.max(1) as f64;
    let long = listing >= LONG_MS || listing >= 1_000 && share >= SHARE;
    if !long && files < FILES {
        return None;
    }
    let name = queries::short_source(scan);
    let title = match long {
        true => {
            format!("finding the {} of {name} took {}", words::counted(files.max(0) as u64, "file"), Millis(listing))
        }
        false => format!("{name} has {} files to find and open", Count(files as u64)),
    };
    let estimate = cx
        .run
        .as_ref()
        .filter(|_| long)
        .map(|r| r.estimate(&Change { driver_ms: listing, ..Change::default() }, "the time of listing"));
    let draft = Draft::new("FILE_LISTING", title)
        .at_least(if files >= FILES { Severity::Low } else { Severity::Info })
        .estimate(estimate)
        .evidence("metadata_time_ms", listing, "ms")
        .seen_at(query.location())
        .evidence("files", files, "files")
        .evidence("sql_ms", whole, "ms")
        .evidence("listing_share", share, "share");
    let draft =
        query.place_node(cx, at, draft).remedy(RemedyKind::Layout, format!("Keep fewer and larger files in {name}"));
    let draft = match scan.format.as_str() {
        // The list of files is read from the table's log: no folder is listed.
        "delta" => draft.snippet(format!("OPTIMIZE {}", queries::sql_source(scan))),
        _ => draft.remedy(RemedyKind::Sql, "Filter by a partition column, so that only its folders are listed").remedy(
            RemedyKind::Layout,
            "A table format keeps the list of files in its log, so that folders need not be listed",
        ),
    };
    Some(
        draft
            .useless("more executors", "the driver lists, and storage answers at its own pace")
            .confirm(format!("metadata time of the scan; it is {} of the execution now", Share(share))),
    )
}
