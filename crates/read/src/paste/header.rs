//! The head of a log line: time, level, logger, in the many layouts that people paste.

use super::pattern;
use regex::Regex;
use std::sync::LazyLock;

/// Severity words of the common loggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Low,
    Warn,
    Error,
}

/// A line taken apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Header<'a> {
    /// When, epoch ms; a time without a zone is read as UTC, one without a date is left out.
    pub time_ms: Option<i64>,
    /// Severity, where the line names one.
    pub level: Option<Level>,
    /// What follows.
    pub rest: &'a str,
    /// Whether anything of a head was there: such a line begins a new record.
    pub found: bool,
}

/// `25/11/04 02:14:09` (Spark's own layout), `2025-11-04T02:14:09,123Z`, `11/04/2025 02:14:09`.
static DATE_TIME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\[?(?:(?<y>\d{4})[-/.](?<m>\d\d?)[-/.](?<d>\d\d?)|(?<y2>\d\d)/(?<m2>\d\d)/(?<d2>\d\d)|(?<m3>\d\d)/(?<d3>\d\d)/(?<y3>\d{4}))[T ,]{1,3}(?<h>\d\d):(?<min>\d\d):(?<s>\d\d)(?:[.,:](?<f>\d{1,9}))?\s?(?<z>Z|UTC|GMT|[+-]\d\d:?\d\d)?\]?",
    )
});

/// `04/Nov/2025:02:14:09`, `Nov 04 02:14:09`, `02:14:09.123`: a head, but no usable date.
static OTHER_TIME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\[?(?:\d\d/[A-Z][a-z]{2}/\d{4}[: ]|[A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:\s?(?:Z|[+-]\d\d:?\d\d))?\]?(?:\s|$)",
    )
});

static ERROR_CLASS: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\[[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:\.[A-Z0-9_]+)*\]"));

/// Pieces of a head after which nothing new can follow.
const MAX_PIECES: usize = 8;

/// Takes a line apart. A scheduler may put its own head before Spark's
/// (`[2025-11-04, 02:14:09 UTC] {subprocess.py:93} INFO - 25/11/04 02:14:09 ERROR …`): the
/// innermost counts.
pub(super) fn split(line: &str) -> Header<'_> {
    let mut head = Header { time_ms: None, level: None, rest: line.trim_start(), found: false };
    // An indented line is a continuation even if a word of it looks like a level.
    if line.starts_with(['\t', ' ']) && !DATE_TIME.is_match(head.rest) {
        head.rest = line;
        return head;
    }
    for _ in 0..MAX_PIECES {
        if !take_piece(&mut head) {
            break;
        }
    }
    if head.level.is_some() {
        head.rest = without_logger(head.rest);
    }
    head
}

fn take_piece(head: &mut Header<'_>) -> bool {
    let text = head.rest;
    if let Some(found) = DATE_TIME.captures(text) {
        head.time_ms = epoch_ms(&found).or(head.time_ms);
        let end = found.get(0).map_or(0, |m| m.end());
        return advance(head, end);
    }
    if let Some(found) = OTHER_TIME.find(text) {
        return advance(head, found.end());
    }
    let word = text.split_whitespace().next().unwrap_or_default();
    if let Some(level) = level_of(word.trim_matches(|c| matches!(c, '[' | ']' | ':' | '(' | ')'))) {
        head.level = Some(level);
        return advance(head, word.len());
    }
    if !head.found {
        return false;
    }
    match text.as_bytes().first() {
        Some(b'[') if !ERROR_CLASS.is_match(text) => skip_to(head, ']'),
        Some(b'{') if word.ends_with('}') => advance(head, word.len()),
        _ if matches!(word, "-" | "---" | ":" | "stderr" | "stdout" | "F" | "P" | "#") => advance(head, word.len()),
        _ => false,
    }
}

fn skip_to(head: &mut Header<'_>, end: char) -> bool {
    match head.rest.find(end) {
        Some(at) if at < 120 => advance(head, at + 1),
        _ => false,
    }
}

fn advance<'a>(head: &mut Header<'a>, by: usize) -> bool {
    let text: &'a str = head.rest;
    head.rest = text.get(by..).unwrap_or_default().trim_start();
    head.found = true;
    !head.rest.is_empty()
}

fn level_of(word: &str) -> Option<Level> {
    Some(match word {
        "TRACE" | "DEBUG" | "INFO" => Level::Low,
        "WARN" | "WARNING" => Level::Warn,
        "ERROR" | "FATAL" | "CRITICAL" | "SEVERE" => Level::Error,
        _ => return None,
    })
}

/// Drops `TaskSetManager: ` or `org.apache.spark.scheduler.TaskSetManager - `, but never a class
/// of an exception.
fn without_logger(text: &str) -> &str {
    let text = text.trim_start_matches(['-', ' ']);
    let word = text.split_whitespace().next().unwrap_or_default();
    let name = word.strip_suffix(':').unwrap_or_default();
    let is_name = !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'$' | b'_' | b'-'))
        && !["Exception", "Error", "Throwable"].iter().any(|end| name.ends_with(end));
    if is_name {
        return text.get(word.len()..).unwrap_or_default().trim_start();
    }
    match text.split_once(" - ") {
        Some((name, rest)) if !name.contains(' ') => rest,
        _ => text,
    }
}

fn epoch_ms(found: &regex::Captures<'_>) -> Option<i64> {
    let number = |name: &str| found.name(name).and_then(|m| m.as_str().parse::<i64>().ok());
    let either = |names: [&str; 3]| names.into_iter().find_map(number);
    let year = either(["y", "y2", "y3"])?;
    let days = days_from_civil(
        if year < 100 { year + 2_000 } else { year },
        either(["m", "m2", "m3"])?,
        either(["d", "d2", "d3"])?,
    )?;
    let seconds = number("h")? * 3_600 + number("min")? * 60 + number("s")?;
    let fraction = found.name("f").map_or(0, |m| millis_of_fraction(m.as_str()));
    let zone = found.name("z").map_or(0, |m| zone_ms(m.as_str()));
    Some(days * 86_400_000 + seconds * 1_000 + fraction - zone)
}

fn millis_of_fraction(digits: &str) -> i64 {
    digits.bytes().chain([b'0', b'0', b'0']).take(3).fold(0, |n, b| n * 10 + i64::from(b.saturating_sub(b'0')))
}

fn zone_ms(zone: &str) -> i64 {
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits: Vec<i64> = zone.bytes().filter(u8::is_ascii_digit).map(|b| i64::from(b - b'0')).collect();
    match digits[..] {
        [h1, h2, m1, m2] => sign * ((h1 * 10 + h2) * 60 + m1 * 10 + m2) * 60_000,
        _ => 0,
    }
}

/// Days since 1970-01-01 of the proleptic Gregorian calendar (H. Hinnant's algorithm); `None`
/// for a month or day that cannot be.
fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// Epoch ms of a time that stands alone: `2025-10-01T06:00:00.000Z`, `2025-10-01T06:00:00.000GMT`.
pub(super) fn time_ms(text: &str) -> Option<i64> {
    epoch_ms(&DATE_TIME.captures(text.trim())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, time_ms: Option<i64>, level: Option<Level>, rest: &str) {
        let head = split(line);
        assert_eq!((head.time_ms, head.level, head.rest), (time_ms, level, rest), "{line}");
    }

    #[test]
    fn layouts_of_many_loggers() {
        let at = Some(1_762_222_449_000);
        let exact = Some(1_762_222_449_123);
        let error = Some(Level::Error);
        check("25/11/04 02:14:09 ERROR TaskSetManager: gone", at, error, "gone");
        check("2025-11-04 02:14:09,123 ERROR [main] o.a.s.Exec: gone", exact, error, "gone");
        check("2025-11-04T02:14:09.123Z WARN o.a.s.Exec - gone", exact, Some(Level::Warn), "gone");
        check("2025-11-04T02:14:09.123456789Z stderr F 25/11/04 02:14:09 ERROR X: gone", at, error, "gone");
        check(
            "[2025-11-04, 02:14:09 UTC] {subprocess.py:93} INFO - 25/11/04 02:14:09 ERROR X: gone",
            at,
            error,
            "gone",
        );
        check("2025-11-04 03:14:09.123+01:00 [worker-1] ERROR gone - far", exact, error, "far");
        check("11/04/2025 02:14:09 INFO X: gone", at, Some(Level::Low), "gone");
        check("13:06:49  Databricks adapter: error", None, None, "Databricks adapter: error");
        check("Nov 04 02:14:09 node kernel: killed", None, None, "node kernel: killed");
        check("ERROR java.lang.NoSuchMethodError: x", None, error, "java.lang.NoSuchMethodError: x");
        check("2025-11-04 02:14:09 ERROR [DELTA_CONCURRENT_APPEND] x", at, error, "[DELTA_CONCURRENT_APPEND] x");
        check("\tat org.apache.INFO", None, None, "\tat org.apache.INFO");
        check("99/99/99 02:14:09 gone", None, None, "gone");
    }
}
