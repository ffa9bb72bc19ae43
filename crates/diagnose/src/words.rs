//! Numbers as people say them.

const NUMBERS: [&str; 13] =
    ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// `two`, `12`, `1 205`: small numbers in words.
#[must_use]
pub fn number(n: u64) -> String {
    match usize::try_from(n).ok().and_then(|n| NUMBERS.get(n)) {
        Some(word) => (*word).to_owned(),
        None => model::Count(n).to_string(),
    }
}

/// `one task`, `two tasks`.
#[must_use]
pub fn count(n: u64, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", number(n))
}

/// `1 file`, `1 200 files`: in digits.
#[must_use]
pub fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", model::Count(n), if n == 1 { "" } else { "s" })
}

/// A join type as people say it, with its article: `an inner`, `a left outer`.
#[must_use]
pub fn a_join_kind(kind: &str) -> String {
    let name = kind.split('(').next().unwrap_or_default();
    let words = name.chars().fold(String::new(), |mut words, c| {
        if c.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
        words
    });
    let article = if words.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {words}")
}

/// The first `most` characters of a text; what is cut off is marked.
#[must_use]
pub fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `0, 1 and 2`.
#[must_use]
pub fn and(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Ids in the order of their numbers: `2` before `10`.
#[must_use]
pub fn by_number(ids: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut ids: Vec<String> = ids.into_iter().collect();
    ids.sort_by_key(|id| (id.len(), id.clone()));
    ids
}

/// `two and a half minutes of eight and a half`: a saving beside the whole, in the same unit
/// where it fits.
#[must_use]
pub fn saving(saved_ms: i64, wall_ms: i64) -> String {
    let (saved, unit) = spoken(saved_ms);
    let (wall, wall_unit) = spoken(wall_ms);
    match unit == wall_unit {
        true => format!("{} of {wall}", with_unit(&saved, unit)),
        false => format!("{} of {}", with_unit(&saved, unit), with_unit(&wall, wall_unit)),
    }
}

/// `two and a half minutes`.
#[must_use]
pub fn duration(ms: i64) -> String {
    let (value, unit) = spoken(ms);
    with_unit(&value, unit)
}

fn with_unit(value: &str, unit: &str) -> String {
    let singular = value == "one" || value == "half an";
    match (value, singular) {
        ("half an", _) => format!("half an {unit}"),
        (_, true) => format!("one {unit}"),
        _ => format!("{value} {unit}s"),
    }
}

fn spoken(ms: i64) -> (String, &'static str) {
    let s = ms.max(0) as f64 / 1_000.0;
    match s {
        _ if s < 1.0 => (ms.max(0).to_string(), "millisecond"),
        _ if s < 20.0 => (number(s.round() as u64), "second"),
        _ if s < 87.5 => (number((s / 5.0).round() as u64 * 5), "second"),
        _ if s < 5_400.0 => (halves(s / 60.0), "minute"),
        _ if s < 129_600.0 => (halves(s / 3_600.0), "hour"),
        _ => (halves(s / 86_400.0), "day"),
    }
}

/// To the nearest half below ten, to the nearest whole above.
fn halves(value: f64) -> String {
    if value >= 9.75 {
        return number(value.round() as u64);
    }
    let halves = (value * 2.0).round() as u64;
    match (halves / 2, halves % 2) {
        (whole, 0) => number(whole),
        (whole, _) => format!("{} and a half", number(whole)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_durations_as_people_do() {
        for (saved, wall, said) in [
            (154_000, 508_614, "two and a half minutes of eight and a half"),
            (60_000, 90_000, "60 seconds of one and a half minutes"),
            (12_300, 60_000, "twelve seconds of 60"),
            (3_600_000 * 2, 3_600_000 * 9, "two hours of nine"),
            (450_000, 487_000, "seven and a half minutes of eight"),
            (400, 2_000, "400 milliseconds of two seconds"),
            (0, 0, "0 milliseconds of 0"),
        ] {
            assert_eq!(saving(saved, wall), said);
        }
        assert_eq!(duration(60_000), "60 seconds");
        assert_eq!(count(1, "task"), "one task");
        assert_eq!(count(20, "task"), "20 tasks");
        assert_eq!((counted(1, "file"), counted(20, "file")), ("1 file".to_owned(), "20 files".to_owned()));
        assert_eq!(
            (a_join_kind("Inner"), a_join_kind("LeftOuter")),
            ("an inner".to_owned(), "a left outer".to_owned())
        );
    }
}
