//! Streaming queries with their batches.

use crate::Opened;
use diagnose::telling::{capital, clean, one_line};
use model::{Batch, StreamingQuery};
use serde::Serialize;

/// Batches of one query that are sent; of more, every second one, every third one, and so on.
const MOST: usize = 2_000;

/// A query.
#[derive(Serialize)]
pub(super) struct Stream {
    id: String,
    run_id: String,
    name: Option<String>,
    started_ms: Option<i64>,
    ended_ms: Option<i64>,
    error: Option<String>,
    sentence: Option<String>,
    batches: Vec<BatchRow>,
    batches_total: usize,
}

#[derive(Serialize)]
struct BatchRow {
    batch: i64,
    t: Option<i64>,
    input_rows: i64,
    rows_per_s_in: Option<f64>,
    rows_per_s_done: Option<f64>,
    duration_ms: Option<i64>,
    parts: Vec<Phase>,
    state_rows: Option<i64>,
    state_bytes: Option<i64>,
    watermark: Option<String>,
    late_rows: Option<i64>,
}

#[derive(Serialize)]
struct Phase {
    name: String,
    ms: i64,
}

/// All queries by start.
pub(super) fn list(opened: &Opened) -> Vec<Stream> {
    opened.app().streams.iter().map(|query| stream(opened, query)).collect()
}

fn stream(opened: &Opened, query: &StreamingQuery) -> Stream {
    let every = query.batches.len().div_ceil(MOST).max(1);
    let about = opened.report().findings.iter().find(|f| f.scope.query.as_deref().is_some_and(|id| names(query, id)));
    Stream {
        id: one_line(&query.id),
        run_id: one_line(&query.run_id),
        name: query.name.as_deref().map(one_line),
        started_ms: query.started_ms,
        ended_ms: query.ended_ms,
        error: query.error.as_deref().map(|error| clean(error).into_owned()),
        sentence: about.map(|finding| capital(&one_line(&finding.title))),
        batches: query.batches.iter().step_by(every).map(row).collect(),
        batches_total: query.batches.len(),
    }
}

/// Whether a finding's name for a query is this one's name or id.
fn names(query: &StreamingQuery, named: &str) -> bool {
    query.name.as_deref() == Some(named) || *query.id == *named
}

fn row(batch: &Batch) -> BatchRow {
    const WHOLE: &str = "triggerExecution";
    let state = |of: fn(&model::StateProgress) -> i64| {
        (!batch.state.is_empty()).then(|| batch.state.iter().map(of).fold(0, i64::saturating_add))
    };
    let parts = batch.phases.iter().filter(|(name, _)| &**name != WHOLE);
    BatchRow {
        batch: batch.id,
        t: batch.started_ms,
        input_rows: batch.input_rows,
        rows_per_s_in: batch.input_rate,
        rows_per_s_done: batch.process_rate,
        duration_ms: batch.phase_ms(WHOLE),
        parts: parts.map(|(name, ms)| Phase { name: one_line(name), ms: *ms }).collect(),
        state_rows: state(|s| s.rows_total),
        state_bytes: state(|s| s.memory_bytes),
        watermark: batch.watermark.as_deref().map(one_line),
        late_rows: state(|s| s.rows_dropped),
    }
}
