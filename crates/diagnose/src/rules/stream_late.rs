//! STREAM_LATE: rows that came after the watermark and were dropped (section 4.7 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::streams::{self, Stream};
use model::{Confidence, Count, RemedyKind, Severity, Share};

/// Share of dropped rows from which it is a finding.
const SHARE: f64 = 0.001;

/// Looks at every query.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for stream in streams::all(cx) {
        let input: i64 = stream.query.batches.iter().map(|b| b.input_rows).sum();
        let dropped: i64 = stream.query.batches.iter().flat_map(|b| &b.state).map(|s| s.rows_dropped).sum();
        let share = dropped as f64 / input.max(1) as f64;
        if dropped > 0 && share > SHARE {
            out.push(stream.place(draft(&stream, input, dropped, share)));
        } else if input > 0 && stream.query.batches.iter().any(|b| !b.state.is_empty()) {
            out.fine(
                "late rows",
                format!("query {} dropped {} by its watermark", stream.name(), Count(dropped.max(0) as u64)),
            );
        }
    }
}

fn draft(stream: &Stream<'_>, input: i64, dropped: i64, share: f64) -> Draft {
    let title =
        format!("query {} dropped {} late rows: {} of its input", stream.name(), Count(dropped as u64), Share(share));
    Draft::new("STREAM_LATE", title)
        .severity(if share >= 0.01 { Severity::Medium } else { Severity::Low })
        .evidence("rows_dropped", dropped, "rows")
        .seen_at(format!("query {}", stream.name()))
        .evidence("input_rows", input, "rows")
        .evidence("dropped_share", share, "share")
        .over(SHARE)
        // The counter is of rows that reach the operator: after a partial aggregate fewer than arrived.
        .sure(Confidence::Medium, "the counter is taken at the stateful operator, where rows may already be aggregated")
        .remedy(
            RemedyKind::Code,
            "Wait longer for late rows: a larger watermark delay keeps state for that much longer",
        )
        .snippet(".withWatermark(\"event_time\", \"<longest lateness seen>\")")
        .remedy(RemedyKind::Code, "Or write late rows to a table of their own before the aggregate")
        .confirm("numRowsDroppedByWatermark")
}
