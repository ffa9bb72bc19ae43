//! STREAM_STATE_GROWTH: state that only grows (section 4.7 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::streams::{self, Stream, trigger_ms};
use model::{Bytes, Confidence, Count, Millis, RemedyKind, Severity, Share, StateProgress};

/// Batches that growth must last.
const BATCHES: usize = 20;
/// Growth over them.
const GROWTH: f64 = 0.2;
/// Share of updated rows that must leave for state to be in balance.
const REMOVED: f64 = 0.1;
/// Time in which state may fill up after a start, ms.
const FILLING_MS: i64 = 3_600_000;

/// Looks at every stateful operator of every query.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for stream in streams::all(cx) {
        let operators = stream.query.batches.iter().map(|b| b.state.len()).max().unwrap_or(0);
        for operator in 0..operators {
            match Growth::of(cx, &stream, operator) {
                Some(growth) => out.push(draft(&stream, &growth)),
                None => out.fine("streaming state", format!("query {} keeps its state within bounds", stream.name())),
            }
        }
    }
}

struct Growth {
    operator: String,
    batches: usize,
    first: i64,
    last: i64,
    removed: i64,
    updated: i64,
    memory: i64,
    span_ms: i64,
    watermark: bool,
    /// Keys and watermark column of a deduplication that cannot forget: the column is no key.
    keyed_without_time: Option<(String, String)>,
    /// Growth of the batch time a batch, ms.
    slope_ms: f64,
    last_ms: i64,
}

impl Growth {
    fn of(cx: &Context<'_>, stream: &Stream<'_>, operator: usize) -> Option<Self> {
        let seen: Vec<_> = stream.query.batches.iter().filter_map(|b| Some((b, b.state.get(operator)?))).collect();
        let seen = &seen[usize::from(seen.len() > 1)..];
        let (first, last) = (seen.first()?, seen.last()?);
        let sum = |f: fn(&StateProgress) -> i64| seen.iter().map(|(_, s)| f(s)).sum::<i64>();
        let (removed, updated) = (sum(|s| s.rows_removed), sum(|s| s.rows_updated));
        let risen = last.1.rows_total as f64 >= (1.0 + GROWTH) * first.1.rows_total as f64
            && last.1.rows_total > first.1.rows_total;
        let stays = removed == 0 || (removed as f64) < REMOVED * updated as f64;
        // The middle must lie between: a single jump is no growth.
        let middle = seen[seen.len() / 2].1.rows_total;
        let steady = first.1.rows_total <= middle && middle <= last.1.rows_total && middle < last.1.rows_total;
        let times: Vec<i64> = seen.iter().map(|(b, _)| trigger_ms(b)).collect();
        (seen.len() >= BATCHES && risen && stays && steady).then(|| Self {
            operator: last.1.operator.to_string(),
            batches: seen.len(),
            first: first.1.rows_total,
            last: last.1.rows_total,
            removed,
            updated,
            memory: last.1.memory_bytes,
            span_ms: last.0.started_ms.unwrap_or(0) - first.0.started_ms.unwrap_or(0),
            watermark: last.0.watermark.as_deref().is_some_and(|w| !w.starts_with("1970")),
            keyed_without_time: (&*last.1.operator == "dedupe").then(|| keyed_without_time(cx, stream)).flatten(),
            slope_ms: slope(&times),
            last_ms: times.last().copied().unwrap_or(0),
        })
    }

    /// A watermark and a young query: the state may still be filling up to its window.
    fn may_be_filling(&self) -> bool {
        self.watermark && self.span_ms < FILLING_MS && self.keyed_without_time.is_none()
    }
}

/// `dropDuplicates` forgets a key once the watermark has passed it, for which the watermark's
/// column must be one of the keys.
fn keyed_without_time(cx: &Context<'_>, stream: &Stream<'_>) -> Option<(String, String)> {
    let of_stream = |sql: &&model::SqlExecution| {
        sql.jobs.iter().filter_map(|&j| cx.app.job(j)).any(|j| j.stream.as_deref() == Some(&*stream.query.id))
    };
    let nodes = &cx.app.sql.iter().find(of_stream)?.plan().nodes;
    let detail = |name: &str| nodes.iter().find(|n| &*n.name == name).map(|n| &*n.detail);
    let keys = detail("StreamingDeduplicate")?.split_once('[')?.1.split_once(']')?.0;
    let watermark = detail("EventTimeWatermark")?.split_once(": ")?.0;
    let column = watermark.rsplit([' ', ',']).next().filter(|c| c.contains('#'))?;
    let is_key = keys.split(',').any(|key| key.trim() == column);
    let bare = |text: &str| crate::plan_text::without_ids(text);
    (!is_key).then(|| (bare(keys), bare(column)))
}

/// Slope of a line through the values, a step.
fn slope(values: &[i64]) -> f64 {
    let n = values.len() as f64;
    let mean_x = (n - 1.0) / 2.0;
    let mean_y = values.iter().sum::<i64>() as f64 / n.max(1.0);
    let (mut above, mut below) = (0.0, 0.0);
    for (x, y) in values.iter().enumerate() {
        above += (x as f64 - mean_x) * (*y as f64 - mean_y);
        below += (x as f64 - mean_x).powi(2);
    }
    if below > 0.0 { above / below } else { 0.0 }
}

fn draft(stream: &Stream<'_>, growth: &Growth) -> Draft {
    let title = format!(
        "state of query {} only grows: {} rows became {} in {} batches, {} were removed",
        stream.name(),
        Count(growth.first.max(0) as u64),
        Count(growth.last.max(0) as u64),
        growth.batches,
        Count(growth.removed.max(0) as u64)
    );
    let filling = growth.may_be_filling();
    let operator = if growth.operator.is_empty() { "stateful operator".to_owned() } else { growth.operator.clone() };
    let draft = Draft::new("STREAM_STATE_GROWTH", title)
        .at_node(operator)
        .severity(if filling { Severity::Info } else { Severity::Medium })
        .evidence("state_rows_first", growth.first, "rows")
        .seen_at(format!("query {}", stream.name()))
        .evidence("state_rows_last", growth.last, "rows")
        .evidence("batches", growth.batches, "batches")
        .evidence("rows_removed", growth.removed, "rows")
        .evidence("rows_updated", growth.updated, "rows")
        .evidence("state_memory_bytes", growth.memory, "bytes")
        .evidence("span_ms", growth.span_ms, "ms");
    let draft = stream.place(draft);
    let draft = match filling {
        true => draft.sure(
            Confidence::Low,
            format!("the query ran for {}: its state may still be filling up to the window", Millis(growth.span_ms)),
        ),
        false => draft.not("state that fills up after the start", format!("it grew over {}", Millis(growth.span_ms))),
    };
    with_remedies(stream, draft, growth)
}

fn by_time_too(draft: Draft, growth: &Growth) -> Draft {
    let Some((keys, column)) = &growth.keyed_without_time else { return draft };
    draft
        .evidence("keys", keys.clone(), "")
        .evidence("watermark_column", column.clone(), "")
        .remedy(
            RemedyKind::Code,
            format!("Deduplicate within the watermark: {column}, on which the watermark is, is none of the keys ({keys}), so no key is ever forgotten"),
        )
        .snippet(format!(".dropDuplicatesWithinWatermark([\"{}\"])   // or {column} among the keys", keys.replace(", ", "\", \"")))
}

fn with_remedies(stream: &Stream<'_>, draft: Draft, growth: &Growth) -> Draft {
    let draft = match growth.watermark {
        false => draft
            .remedy(RemedyKind::Code, "Set a watermark: without one Spark may never forget a row")
            .snippet(".withWatermark(\"event_time\", \"2 hours\")")
            .computed("no batch has a watermark"),
        true if growth.keyed_without_time.is_some() => by_time_too(draft, growth),
        true => draft.remedy(RemedyKind::Code, "Use the watermark: its column must be among the keys of a deduplication and in the condition of a stream join, and arbitrary state needs a timeout"),
    };
    let draft = match stream.trigger.filter(|t| growth.slope_ms > 0.0 && growth.last_ms < t.ms) {
        Some(t) => {
            let left = ((t.ms - growth.last_ms) as f64 / growth.slope_ms).ceil() as i64;
            draft.evidence("batches_until_trigger_is_met", left, "batches").evidence(
                "batch_growth_ms",
                growth.slope_ms,
                "ms",
            )
        }
        None => draft,
    };
    draft
        .remedy(RemedyKind::Conf, format!("State of {} is better kept outside the heap", Bytes(growth.memory.max(0) as u64)))
        .snippet("spark.sql.streaming.stateStore.providerClass org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
        .useless("more memory", format!("{} of the updated rows leave; the rest is kept for ever", Share(growth.removed as f64 / growth.updated.max(1) as f64)))
        .confirm("numRowsRemoved, and numRowsTotal from batch to batch")
}
