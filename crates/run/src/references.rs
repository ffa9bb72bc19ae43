//! Dynamic values: `{{job.parameters.day}}` and the like in the settings of a task.
//!
//! What is in double braces and begins with a known first word has to be known to its last one: a
//! misspelt reference is an error that names it. Everything else stays as it is, since braces occur
//! in templates of others too.

use std::fmt::Write;
use thiserror::Error;

/// Why a text cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReferenceError {
    /// The first word is known, the rest is not.
    #[error("{{{{{reference}}}}} is no reference; {hint}")]
    Unknown {
        /// What stands in the braces.
        reference: String,
        /// What could stand there.
        hint: String,
    },
    /// It is one, but has no value now.
    #[error("{{{{{reference}}}}} has no value: {why}")]
    NoValue {
        /// What stands in the braces.
        reference: String,
        /// Why.
        why: String,
    },
}

/// Where the values come from.
pub trait Values {
    /// The value of `path`, e.g. `["job", "parameters", "day"]`.
    fn value(&self, path: &[&str]) -> Value;
}

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A value, as text.
    Is(String),
    /// Nothing that anybody knows; what could stand there.
    Unknown(String),
    /// Known, and without a value now; why.
    None(String),
}

/// What references can name in a run or in a definition.
pub trait Names {
    /// Names of the job's parameters.
    fn parameters(&self) -> impl Iterator<Item = &str>;
    /// Keys of its tasks.
    fn tasks(&self) -> impl Iterator<Item = &str>;
}

/// What could stand there, of a path that nobody knows; `None`: it is known, though it may have no
/// value yet. What an input has in it is known to the run only.
pub fn unknown(path: &[&str], names: &impl Names) -> Option<String> {
    const JOB: [&str; 7] = ["id", "name", "parameters", "repair_count", "run_id", "start_time", "trigger"];
    const TASK: [&str; 3] = ["name", "run_id", "execution_count"];
    const OTHER: [&str; 5] = ["result_state", "error_code", "values", "run_id", "execution_count"];
    match path {
        ["job", "id" | "run_id" | "name" | "repair_count"] | ["job", "trigger", "type"] => None,
        ["job", "start_time", part] => (!TIME_PARTS.contains(part)).then(|| hint(part, TIME_PARTS)),
        ["job", "parameters", name] => {
            let is_known = names.parameters().any(|known| known == *name);
            (!is_known).then(|| hint(name, names.parameters()))
        }
        ["job", wrong, ..] => Some(hint(wrong, JOB)),
        ["task", "name" | "run_id" | "execution_count"] => None,
        ["task", rest @ ..] => Some(hint(rest.first().unwrap_or(&""), TASK)),
        ["tasks", key, ..] if !names.tasks().any(|known| known == *key) => Some(hint(key, names.tasks())),
        ["tasks", _, "result_state" | "error_code" | "run_id" | "execution_count"] => None,
        ["tasks", _, "values", _] => None,
        ["tasks", _, rest @ ..] => Some(hint(rest.first().unwrap_or(&""), OTHER)),
        ["input" | "backfill", ..] => None,
        ["job" | "tasks"] => Some("name one of its members".to_owned()),
        _ => Some(hint("", ["job", "task", "tasks", "input"])),
    }
}

/// First words of references. Others are left alone.
const FIRST: [&str; 5] = ["job", "task", "tasks", "input", "backfill"];

/// Bytes of the longest reference.
const LONGEST: usize = 512;

/// A text with its references replaced by their values.
///
/// # Errors
/// At the first reference that is misspelt or has no value.
pub fn resolve(text: &str, values: &dyn Values) -> Result<String, ReferenceError> {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Reference(_, reference) => out.push_str(&one(reference, values)?),
        }
    }
    Ok(out)
}

/// The references of a text, for checking settings before anything runs.
pub fn references(text: &str) -> impl Iterator<Item = Vec<&str>> {
    pieces(text).filter_map(|piece| piece.reference()).map(|(_, reference)| reference.split('.').collect())
}

fn one(reference: &str, values: &dyn Values) -> Result<String, ReferenceError> {
    let path: Vec<&str> = reference.split('.').collect();
    let reference = reference.to_owned();
    match values.value(&path) {
        Value::Is(value) => Ok(value),
        Value::Unknown(hint) => Err(ReferenceError::Unknown { reference, hint }),
        Value::None(why) => Err(ReferenceError::NoValue { reference, why }),
    }
}

pub(crate) enum Piece<'a> {
    Text(&'a str),
    /// With its braces, and what stands in them.
    Reference(&'a str, &'a str),
}

impl<'a> Piece<'a> {
    /// A reference with its braces, and what stands in them.
    pub(crate) fn reference(&self) -> Option<(&'a str, &'a str)> {
        match self {
            Self::Text(_) => None,
            Self::Reference(whole, inside) => Some((whole, inside)),
        }
    }
}

pub(crate) fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some((reference, after)) = leading(rest) {
            let whole = &rest[..rest.len() - after.len()];
            rest = after;
            return Some(Piece::Reference(whole, reference));
        }
        // Up to the next braces that begin a reference.
        let next = (1..rest.len()).find(|&at| rest.as_bytes()[at] == b'{' && leading(&rest[at..]).is_some());
        let (piece, after) = rest.split_at(next.unwrap_or(rest.len()));
        rest = after;
        Some(Piece::Text(piece))
    })
}

/// The reference that a text begins with, and what follows.
fn leading(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix("{{")?;
    let end = inside.as_bytes().windows(2).take(LONGEST).position(|two| two == b"}}")?;
    let (inside, after) = (inside[..end].trim(), &inside[end + 2..]);
    let first = inside.split('.').next()?;
    FIRST.contains(&first).then_some((inside, after))
}

/// The parts of a time that references may name, e.g. `{{job.start_time.iso_date}}`.
pub const TIME_PARTS: [&str; 11] = [
    "iso_date",
    "iso_datetime",
    "iso_weekday",
    "is_weekday",
    "timestamp_ms",
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
];

/// One part of a time in UTC; `None` for a name that is no part.
#[must_use]
pub fn time_part(at: jiff::Timestamp, part: &str) -> Option<String> {
    let time = at.to_zoned(jiff::tz::TimeZone::UTC);
    let weekday = time.weekday().to_monday_one_offset();
    Some(match part {
        "iso_date" => time.date().to_string(),
        "iso_datetime" => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "iso_weekday" => weekday.to_string(),
        "is_weekday" => (weekday <= 5).to_string(),
        "timestamp_ms" => at.as_millisecond().to_string(),
        "year" => time.year().to_string(),
        "month" => time.month().to_string(),
        "day" => time.day().to_string(),
        "hour" => time.hour().to_string(),
        "minute" => time.minute().to_string(),
        "second" => time.second().to_string(),
        _ => return None,
    })
}

/// A hint that lists what could stand in a place, the likeliest first.
#[must_use]
pub fn hint<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.into_iter().collect();
    known.sort_by_key(|word| (distance(wrong, word), *word));
    let mut out = match known.first() {
        Some(first) if is_near(wrong, first) => return format!("did you mean {first}?"),
        Some(_) => "there is ".to_owned(),
        None => return "there is nothing of that kind".to_owned(),
    };
    for (n, word) in known.iter().take(8).enumerate() {
        let _ = write!(out, "{}{word}", if n == 0 { "" } else { ", " });
    }
    out
}

/// Whether one word may have been meant by the other.
fn is_near(wrong: &str, word: &str) -> bool {
    let distance = distance(wrong, word);
    distance <= 2 && distance < wrong.chars().count()
}

/// Letters that have to change for one word to become the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Some3;

    impl Values for Some3 {
        fn value(&self, path: &[&str]) -> Value {
            match path {
                ["job", "parameters", "day"] => Value::Is("2026-11-30".to_owned()),
                ["job", "parameters", wrong] => Value::Unknown(hint(wrong, ["day", "region"])),
                ["job", wrong, ..] => Value::Unknown(hint(wrong, ["id", "name", "parameters", "run_id"])),
                ["tasks", key, ..] => Value::None(format!("task {key:?} has not run")),
                _ => Value::Unknown(hint("", [])),
            }
        }
    }

    #[test]
    fn what_is_known_is_replaced_and_what_is_not_ours_stays() {
        for (text, resolved) in [
            ("", ""),
            ("--day={{job.parameters.day}}", "--day=2026-11-30"),
            ("{{ job.parameters.day }}/{{job.parameters.day}}", "2026-11-30/2026-11-30"),
            ("{{ config.table }} {{job.parameters.day}}", "{{ config.table }} 2026-11-30"),
            ("{{{job.parameters.day}}}", "{2026-11-30}"),
            ("{{jobs.id}} {{}} {{", "{{jobs.id}} {{}} {{"),
            ("{{job.parameters.day", "{{job.parameters.day"),
            ("č{{job.parameters.day}}č", "č2026-11-30č"),
        ] {
            assert_eq!(resolve(text, &Some3).as_deref(), Ok(resolved), "{text}");
        }
    }

    #[test]
    fn a_misspelt_reference_is_named() {
        for (text, error) in [
            ("{{job.parameters.dya}}", "{{job.parameters.dya}} is no reference; did you mean day?"),
            ("{{job.owner}}", "{{job.owner}} is no reference; there is name, id, run_id, parameters"),
            ("{{tasks.load.values.rows}}", "{{tasks.load.values.rows}} has no value: task \"load\" has not run"),
            ("{{input}}", "{{input}} is no reference; there is nothing of that kind"),
        ] {
            assert_eq!(resolve(text, &Some3).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn times_have_parts() {
        let at = "2026-03-01T04:05:06.789Z".parse().unwrap();
        let parts: Vec<String> = TIME_PARTS.iter().filter_map(|part| time_part(at, part)).collect();
        let wanted =
            ["2026-03-01", "2026-03-01T04:05:06Z", "7", "false", "1772337906789", "2026", "3", "1", "4", "5", "6"];
        assert_eq!(parts, wanted);
        assert_eq!(time_part(at, "fortnight"), None);
    }
}
