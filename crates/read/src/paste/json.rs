//! JSON values in a text: the whole of it, one a line, or between words; also as Python prints
//! a dictionary.

use super::{python, units};
use serde_json::Value;

/// Places at which a value is looked for, at most.
const MAX_TRIES: usize = 256;

/// The objects and arrays in a text that could be figures of a stage or progress of a stream.
pub(super) fn values(text: &str) -> Vec<Value> {
    if !may_hold_figures(text) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut at = 0;
    for _ in 0..MAX_TRIES {
        let Some(start) = next_start(text, at) else {
            break;
        };
        let Some((value, length)) = value_at(&text[start..]) else {
            at = start + 1;
            continue;
        };
        at = start + length;
        found.push(value);
        if found.len() >= super::MAX_ROWS {
            break;
        }
    }
    found
}

/// Words of the objects that are read; a driver log of megabytes has none of them.
fn may_hold_figures(text: &str) -> bool {
    [
        "durationMs",
        "triggerExecution",
        "\"summary\"",
        "\"tasks\"",
        "quantiles",
        "RunTime",
        "duration_ms",
        "wall_ms",
        "taskMetrics",
    ]
    .iter()
    .any(|word| text.contains(word))
}

/// The next bracket that begins a line or follows a word like `progress =`.
fn next_start(text: &str, from: usize) -> Option<usize> {
    text.get(from..)?.find(['{', '[']).map(|at| from + at)
}

fn value_at(text: &str) -> Option<(Value, usize)> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match stream.next() {
        Some(Ok(value)) if holds_objects(&value) => Some((value, stream.byte_offset())),
        Some(Ok(_)) => None,
        _ => {
            let (json, length) = python::to_json(text)?;
            let value: Value = serde_json::from_str(&json).ok()?;
            holds_objects(&value).then_some((value, length))
        }
    }
}

/// `[1, 2]` and `[stage 3]` in a sentence are no figures.
fn holds_objects(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => items.iter().any(Value::is_object),
        _ => false,
    }
}

/// A number, also as text (`"12"`); NaN and infinities are none.
pub(super) fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(n) => n.as_f64()?,
        Value::String(s) => s.trim().parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// A whole number, as [`number`]; none where it is too large for a figure.
pub(super) fn integer(value: &Value) -> Option<i64> {
    number(value).and_then(units::figure)
}

/// A text, or the JSON of anything else that is not null.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(s) => Some(s.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}
