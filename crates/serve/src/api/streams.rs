//! Streaming queries with their batches.

use super::asked::Asked;
use super::{Answer, failure, json};
use crate::Opened;
use diagnose::telling::{capital, clean, one_line};
use model::{Batch, StreamingQuery};
use serde::Serialize;
use utoipa::ToSchema;

/// Batches of one query that are sent; of more, every second one, every third one, and so on.
const MOST: usize = 2_000;

/// A streaming query.
#[derive(Serialize, ToSchema)]
struct Stream {
    /// Id, the same over restarts.
    id: String,
    /// Id of this run of it.
    run_id: String,
    /// Name, where it was given one.
    name: Option<String>,
    /// Start, epoch ms.
    started_ms: Option<i64>,
    /// End, epoch ms; null while it runs.
    ended_ms: Option<i64>,
    /// Why it failed.
    error: Option<String>,
    /// The worst finding about it, a sentence.
    sentence: Option<String>,
    /// Batches in order; of more than 2 000 every second one, every third one, and so on.
    batches: Vec<BatchRow>,
    /// How many batches there are in the log.
    batches_total: usize,
}

/// A batch of a streaming query.
#[derive(Serialize, ToSchema)]
#[schema(as = StreamBatch)]
struct BatchRow {
    /// Id.
    batch: i64,
    /// Start, epoch ms.
    t: Option<i64>,
    /// Rows that it read.
    input_rows: i64,
    /// Rows a second that came in.
    rows_per_s_in: Option<f64>,
    /// Rows a second that were worked off.
    rows_per_s_done: Option<f64>,
    /// Duration of the whole batch, ms.
    duration_ms: Option<i64>,
    /// Its parts by Spark's names.
    parts: Vec<Phase>,
    /// Rows in the state stores; null without any.
    state_rows: Option<i64>,
    /// Memory of the state stores, bytes; null without any.
    state_bytes: Option<i64>,
    /// Watermark as the log writes it.
    watermark: Option<String>,
    /// Rows that came after the watermark and were dropped; null without state.
    late_rows: Option<i64>,
}

/// A part of a batch.
#[derive(Serialize, ToSchema)]
#[schema(as = StreamPhase)]
struct Phase {
    /// Spark's name, e.g. `addBatch`.
    name: String,
    /// How long it took, ms.
    ms: i64,
}

/// Streaming queries with their batches.
#[utoipa::path(
    get, path = "/streams", operation_id = "listStreams", tag = "applications",
    responses(
        (status = 200, description = "All streaming queries by start", body = Vec<Stream>),
        (status = 404, description = "There is no such application or attempt", body = failure::Body),
    ),
)]
pub(super) async fn show(asked: Asked) -> Answer {
    asked.answer(|_, opened, _| Ok(json(&list(opened)))).await
}

/// All queries by start.
fn list(opened: &Opened) -> Vec<Stream> {
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
