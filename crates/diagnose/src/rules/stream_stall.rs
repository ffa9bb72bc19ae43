//! STREAM_STALL: a running query that made no progress (section 4.7 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::streams::{self, Stream, trigger_ms};
use model::{Confidence, Millis, RemedyKind, Severity};

/// Intervals without progress.
const INTERVALS: i64 = 5;
/// Shorter silences are no stall, ms.
const LEAST_MS: i64 = 60_000;

/// Looks at every query.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for stream in streams::all(cx) {
        // Idle events say that a query looks and finds nothing; the log has no time for them.
        if stream.query.idle_events == 0
            && let Some(draft) = draft(cx, &stream)
        {
            out.push(stream.place(draft));
        }
    }
}

fn draft(cx: &Context<'_>, stream: &Stream<'_>) -> Option<Draft> {
    let usual = stream.trigger.map(|t| t.ms).or_else(|| spacing(stream))?;
    let limit = (INTERVALS * usual).max(LEAST_MS);
    let (after, silent) = silences(cx, stream).max_by_key(|s| s.1)?;
    if silent <= limit {
        return None;
    }
    let title = format!("query {} made no progress for {} after batch {after}", stream.name(), Millis(silent));
    let draft = Draft::new("STREAM_STALL", title)
        .severity(Severity::Medium)
        .evidence("silent_ms", silent, "ms")
        .over(limit as f64)
        .seen_at(format!("query {}", stream.name()))
        .evidence("interval_ms", usual, "ms")
        .evidence("after_batch", after, "")
        .not("a source without data", "a query that looks and finds nothing reports idle or empty batches")
        .remedy(RemedyKind::Ops, format!("Look at the driver's log and thread dump from the end of batch {after} on: source, checkpoint storage, a blocked foreachBatch"))
        .confirm("time between progress events");
    Some(match stream.trigger {
        Some(t) if !t.inferred => draft,
        _ => draft.sure(Confidence::Medium, "the trigger interval is not in the log"),
    })
}

/// Median time from one batch to the next, ms.
fn spacing(stream: &Stream<'_>) -> Option<i64> {
    let starts: Vec<i64> = stream.query.batches.iter().filter_map(|b| b.started_ms).collect();
    let mut gaps: Vec<i64> = starts.windows(2).map(|w| w[1] - w[0]).collect();
    gaps.sort_unstable();
    if gaps.len() < 3 { None } else { model::quantile(&gaps, 0.5) }
}

/// From the end of each batch to the next one, or to the end of the query: batch id and ms.
fn silences(cx: &Context<'_>, stream: &Stream<'_>) -> impl Iterator<Item = (i64, i64)> {
    let batches = &stream.query.batches;
    let end = stream.query.ended_ms.or(cx.app.end_ms());
    let silences: Vec<_> = batches
        .iter()
        .enumerate()
        .filter_map(|(at, b)| {
            let next = match batches.get(at + 1) {
                Some(next) => next.started_ms,
                None if cx.app.pasted.is_some() => None,
                None => end,
            };
            Some((b.id, next? - (b.started_ms? + trigger_ms(b))))
        })
        .collect();
    silences.into_iter()
}
