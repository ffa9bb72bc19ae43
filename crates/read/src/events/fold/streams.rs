//! Structured streaming queries, one entry a run.

use super::super::texts::Interner;
use super::super::wire_sql::{self, Progress, QueryEvent};
use super::Clock;
use foldhash::HashMap;
use model::{Batch, SourceProgress, StateProgress, StreamingQuery, Text};

#[derive(Debug, Default)]
pub(super) struct Streams {
    list: Vec<StreamingQuery>,
    positions: HashMap<Text, usize>,
}

impl Streams {
    fn get(&mut self, id: Option<&str>, run_id: Option<&str>, texts: &mut Interner) -> &mut StreamingQuery {
        let run_id = texts.text(run_id.or(id).unwrap_or_default());
        let at = *self.positions.entry(run_id.clone()).or_insert_with(|| {
            self.list.push(StreamingQuery { run_id: run_id.into(), ..StreamingQuery::default() });
            self.list.len() - 1
        });
        let query = &mut self.list[at];
        if query.id.is_empty() {
            query.id = texts.label(id.unwrap_or_default());
        }
        query
    }

    fn of(&mut self, event: &QueryEvent, texts: &mut Interner) -> &mut StreamingQuery {
        self.get(event.id.as_deref(), event.run_id.as_deref(), texts)
    }

    pub fn started(&mut self, event: &QueryEvent, texts: &mut Interner, clock: &mut Clock) {
        let time_ms = clock.see(time(event.timestamp.as_deref()));
        let name = texts.option(event.name.as_deref());
        let query = self.of(event, texts);
        query.started_ms = time_ms;
        query.name = name;
    }

    pub fn idle(&mut self, event: &QueryEvent, texts: &mut Interner, clock: &mut Clock) {
        clock.see(time(event.timestamp.as_deref()));
        let query = self.of(event, texts);
        query.idle_events = query.idle_events.saturating_add(1);
    }

    /// The event has no time of its own: the query ended no later than now.
    pub fn terminated(&mut self, event: &QueryEvent, texts: &mut Interner, now_ms: Option<i64>) {
        let error = texts.option(event.exception.as_deref().filter(|e| !e.is_empty()));
        let query = self.of(event, texts);
        query.ended_ms = now_ms;
        query.error = error;
    }

    pub fn progress(&mut self, progress: Progress, texts: &mut Interner, clock: &mut Clock) {
        let started_ms = clock.see(time(progress.timestamp.as_deref()));
        let batch = batch(&progress, started_ms, texts);
        let name = texts.option(progress.name.as_deref());
        let query = self.get(progress.id.as_deref(), progress.run_id.as_deref(), texts);
        query.name = name.or(query.name.take());
        query.started_ms = query.started_ms.or(started_ms);
        query.batches.push(batch);
    }

    pub fn finish(self) -> Vec<StreamingQuery> {
        self.list
    }
}

/// The batch that a progress object describes. The event log has no totals: sources are added up.
fn batch(progress: &Progress, started_ms: Option<i64>, texts: &mut Interner) -> Batch {
    let rate = |of: fn(&wire_sql::Source) -> Option<f64>, total: Option<f64>| {
        total.or_else(|| progress.sources.iter().filter_map(of).reduce(|a, b| a + b))
    };
    let rows = progress.sources.iter().fold(0_i64, |sum, s| sum.saturating_add(s.num_input_rows.max(0)));
    let watermark = progress.event_time.0.iter().find(|(name, _)| &**name == "watermark");
    Batch {
        id: progress.batch_id,
        started_ms,
        phases: progress.duration_ms.0.iter().map(|(name, ms)| (texts.text(name), *ms)).collect(),
        input_rows: progress.num_input_rows.unwrap_or(rows),
        input_rate: rate(|s| s.input_rows_per_second.0, progress.input_rows_per_second.0),
        process_rate: rate(|s| s.processed_rows_per_second.0, progress.processed_rows_per_second.0),
        sources: progress.sources.iter().map(|s| source(s, texts)).collect(),
        state: progress.state_operators.iter().map(|s| state(s, texts)).collect(),
        sink: texts.label(progress.sink.description.as_deref().unwrap_or_default()),
        watermark: watermark.map(|(_, text)| texts.text(text)),
    }
}

fn source(source: &wire_sql::Source, texts: &mut Interner) -> SourceProgress {
    SourceProgress {
        description: texts.label(source.description.as_deref().unwrap_or_default()),
        rows: source.num_input_rows,
        end_offset: texts.option(source.end_offset.0.as_deref()),
        latest_offset: texts.option(source.latest_offset.0.as_deref()),
    }
}

fn state(state: &wire_sql::StateOperator, texts: &mut Interner) -> StateProgress {
    StateProgress {
        operator: texts.label(state.operator_name.as_deref().unwrap_or_default()),
        rows_total: state.num_rows_total,
        rows_updated: state.num_rows_updated,
        rows_removed: state.num_rows_removed,
        rows_dropped: state.num_rows_dropped_by_watermark,
        memory_bytes: state.memory_used_bytes,
        partitions: state.num_shuffle_partitions,
    }
}

/// Epoch ms of an ISO time such as `2020-07-29T12:18:00.123Z`.
pub(in crate::events) fn time(text: Option<&str>) -> Option<i64> {
    text?.parse::<jiff::Timestamp>().ok().map(|t| t.as_millisecond())
}
