//! Progress of a streaming query: `lastProgress`, `recentProgress`, lines of a listener, or the
//! event of a log, wrapped or not.

use super::json::{integer, number, text};
use super::{MAX_ROWS, header, pattern, units};
use model::{Application, Batch, SourceProgress, StateProgress, StreamingQuery, Text};
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

static INTERVAL: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d+(?:\.\d+)?)\s*([a-zA-Zµ]+)"));
static FALLING_BEHIND: LazyLock<Regex> = LazyLock::new(|| pattern(r"trigger interval is (\d+) milliseconds"));

/// Reads the progress objects of a value.
pub(super) fn read(value: &Value, app: &mut Application) {
    read_at(value, None, app, 0);
    for query in &mut app.streams {
        query.batches.sort_by_key(|b| b.id);
        // Spark repeats the last progress while it waits.
        query.batches.dedup_by_key(|b| b.id);
    }
}

/// Values nest as `[…]`, `{"progress": …}`, `{"progress": [ … ]}`; nobody nests deeper.
const MAX_DEPTH: usize = 4;

fn read_at(value: &Value, around: Option<&Value>, app: &mut Application, depth: usize) {
    match value {
        Value::Array(items) if depth < MAX_DEPTH => {
            items.iter().take(MAX_ROWS).for_each(|item| read_at(item, around, app, depth + 1));
        }
        Value::Object(_) if value.get("durationMs").is_some_and(Value::is_object) => add(value, around, app),
        Value::Object(map) if depth < MAX_DEPTH => {
            for key in ["progress", "recentProgress", "lastProgress", "batches"] {
                if let Some(inner) = map.get(key) {
                    read_at(inner, Some(value), app, depth + 1);
                }
            }
        }
        // A listener may carry the progress as a text of JSON.
        Value::String(json) if depth > 0 && depth < MAX_DEPTH => {
            if let Ok(inner) = serde_json::from_str(json) {
                read_at(&inner, around, app, depth + 1);
            }
        }
        _ => {}
    }
}

fn add(progress: &Value, around: Option<&Value>, app: &mut Application) {
    let name = progress["name"].as_str().or_else(|| around?["query"].as_str()).or_else(|| around?["name"].as_str());
    let run = progress["runId"].as_str().unwrap_or_default();
    let at = app.streams.iter().position(|q| &*q.run_id == run && (q.name.as_deref() == name || name.is_none()));
    let at = at.unwrap_or_else(|| {
        app.streams.push(StreamingQuery {
            id: progress["id"].as_str().unwrap_or_default().into(),
            run_id: run.into(),
            name: name.map(Text::from),
            trigger_ms: around.and_then(trigger_ms),
            ..StreamingQuery::default()
        });
        app.streams.len() - 1
    });
    if app.streams[at].batches.len() < MAX_ROWS {
        app.streams[at].batches.push(batch(progress));
    }
}

/// The trigger from `ProcessingTime(10 minutes)`, `10 seconds`, milliseconds, or from Spark's
/// warning that a batch falls behind.
fn trigger_ms(around: &Value) -> Option<i64> {
    let given = ["trigger", "triggerInterval", "trigger_interval", "processingTime", "trigger_ms", "triggerIntervalMs"]
        .into_iter()
        .find_map(|key| match &around[key] {
            Value::Number(n) => n.as_i64(),
            Value::String(s) => interval_ms(s),
            object @ Value::Object(_) => object["processingTime"].as_str().and_then(interval_ms),
            _ => None,
        });
    given.or_else(|| {
        let lines = around.as_object()?.values().filter_map(Value::as_str);
        lines.filter_map(|line| FALLING_BEHIND.captures(line)?[1].parse().ok()).next()
    })
}

/// Milliseconds of an interval in words; a one-time trigger has none.
fn interval_ms(words: &str) -> Option<i64> {
    if let Ok(ms) = words.trim().parse() {
        return Some(ms);
    }
    let found = INTERVAL.captures(words)?;
    units::duration_ms(&found[1], &found[2].to_ascii_lowercase())
}

fn batch(progress: &Value) -> Batch {
    let sources: Vec<SourceProgress> = items(&progress["sources"]).map(source).collect();
    let phases = progress["durationMs"].as_object().into_iter().flatten();
    let rows = integer(&progress["numInputRows"]);
    Batch {
        id: integer(&progress["batchId"]).unwrap_or_default(),
        started_ms: progress["timestamp"].as_str().and_then(header::time_ms),
        phases: phases.filter_map(|(name, ms)| Some((Text::from(name.as_str()), integer(ms)?))).collect(),
        input_rows: rows.unwrap_or_else(|| sources.iter().map(|s| s.rows).sum()),
        input_rate: rate(progress, "inputRowsPerSecond"),
        process_rate: rate(progress, "processedRowsPerSecond"),
        sources,
        state: items(&progress["stateOperators"]).map(state).collect(),
        sink: progress["sink"]["description"].as_str().unwrap_or_default().into(),
        watermark: progress["eventTime"]["watermark"].as_str().map(Text::from),
    }
}

/// A rate of the whole batch, else the sum over its sources.
fn rate(progress: &Value, name: &str) -> Option<f64> {
    if !progress[name].is_null() {
        return number(&progress[name]);
    }
    let rates: Vec<f64> = items(&progress["sources"]).filter_map(|s| number(&s[name])).collect();
    (!rates.is_empty()).then(|| rates.iter().sum())
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten().take(MAX_ROWS)
}

fn source(value: &Value) -> SourceProgress {
    SourceProgress {
        description: value["description"].as_str().unwrap_or_default().into(),
        rows: integer(&value["numInputRows"]).unwrap_or_default(),
        end_offset: text(&value["endOffset"]).map(Text::from),
        latest_offset: text(&value["latestOffset"]).map(Text::from),
    }
}

fn state(value: &Value) -> StateProgress {
    let int = |name: &str| integer(&value[name]).unwrap_or_default();
    StateProgress {
        operator: value["operatorName"].as_str().unwrap_or_default().into(),
        rows_total: int("numRowsTotal"),
        rows_updated: int("numRowsUpdated"),
        rows_removed: int("numRowsRemoved"),
        rows_dropped: int("numRowsDroppedByWatermark"),
        memory_bytes: int("memoryUsedBytes"),
        partitions: int("numShufflePartitions"),
    }
}

#[cfg(test)]
mod tests {
    use super::interval_ms;
    use crate::paste;

    #[test]
    fn intervals_in_words() {
        for (words, ms) in [
            ("ProcessingTime(10 minutes)", Some(600_000)),
            ("ProcessingTimeTrigger(30000 milliseconds)", Some(30_000)),
            ("5 seconds", Some(5_000)),
            ("1 MINUTE", Some(60_000)),
            ("60000", Some(60_000)),
            ("AvailableNow", None),
        ] {
            assert_eq!(interval_ms(words), ms, "{words}");
        }
    }

    #[test]
    fn every_wrapping_of_progress() {
        let one = r#"{"id":"q","runId":"r","name":"n","batchId":7,"timestamp":"2025-10-01T06:00:00.000Z","numInputRows":10,"inputRowsPerSecond":2.0,"processedRowsPerSecond":1.5,"durationMs":{"triggerExecution":9},"stateOperators":[{"operatorName":"dedupe","numRowsTotal":3}],"sources":[{"description":"KafkaV2","numInputRows":10,"endOffset":{"t":{"0":1}}}],"sink":{"description":"X"}}"#;
        let python = "{'id': 'q', 'runId': 'r', 'name': 'n', 'batchId': 7, 'timestamp': '2025-10-01T06:00:00.000Z', 'numInputRows': 10, 'inputRowsPerSecond': nan, 'processedRowsPerSecond': 1.5, 'durationMs': {'triggerExecution': 9}, 'stateOperators': [{'operatorName': 'dedupe', 'numRowsTotal': 3}], 'sources': [{'description': \"KafkaV2\", 'numInputRows': 10, 'endOffset': {'t': {'0': 1}}}], 'sink': {'description': 'X'}}";
        for text in [
            one.to_owned(),
            format!("[{one}]"),
            format!("{one}\n{one}"),
            format!("here it is:\n{one}\nany idea?"),
            format!("{{\"trigger\":\"5 seconds\",\"progress\":[{one}]}}"),
            format!(
                "{{\"Event\":\"org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent\",\"progress\":{one}}}"
            ),
            python.to_owned(),
            format!("progress = [{python}, {python}]"),
        ] {
            let app = paste::read(&text, None);
            assert_eq!(app.streams.len(), 1, "{text}");
            let query = &app.streams[0];
            assert_eq!((&*query.id, query.batches.len()), ("q", 1), "{text}");
            let batch = &query.batches[0];
            assert_eq!((batch.id, batch.input_rows, batch.phase_ms("triggerExecution")), (7, 10, Some(9)));
            assert_eq!((batch.started_ms, batch.process_rate), (Some(1_759_298_400_000), Some(1.5)));
            assert_eq!(batch.state[0].rows_total, 3);
            assert_eq!(batch.sources[0].end_offset.as_deref(), Some(r#"{"t":{"0":1}}"#));
        }
    }
}
