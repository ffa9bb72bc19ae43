//! Durations and sizes as Spark's pages print them.

use crate::MAX_FIGURE;

/// Milliseconds of a number with a unit: `8.0 min`, `24 s`, `0.3 h`, `61 ms`.
pub(super) fn duration_ms(number: &str, unit: &str) -> Option<i64> {
    let scale = match unit {
        "ns" => 1e-6,
        "us" | "µs" | "μs" => 1e-3,
        "ms" | "millis" | "millisecond" | "milliseconds" => 1.0,
        "s" | "sec" | "secs" | "second" | "seconds" => 1e3,
        "m" | "min" | "mins" | "minute" | "minutes" => 60e3,
        "h" | "hour" | "hours" => 3_600e3,
        "d" | "day" | "days" => 86_400e3,
        _ => return None,
    };
    scaled(number, scale)
}

/// Bytes of a number with a unit: `10.7 MiB`, `0.0 B`. Spark's pages of before 3.0 write `MB`
/// for the binary unit, so both mean it.
pub(super) fn size_bytes(number: &str, unit: &str) -> Option<i64> {
    let power = match unit.to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" if !unit.is_empty() => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    scaled(number, 1024_f64.powi(power))
}

/// A whole number that may hold separators: `1,000,000`, `1 000 000`, `1_000_000`.
pub(super) fn count(text: &str) -> Option<u64> {
    let digits: String = text.chars().filter(|c| !matches!(c, ',' | '_' | ' ' | '\u{202f}')).collect();
    digits.parse().ok().filter(|&n| n <= MAX_FIGURE)
}

fn scaled(number: &str, scale: f64) -> Option<i64> {
    let number: String = number.chars().filter(|c| !matches!(c, ',' | '_')).collect();
    figure(number.parse::<f64>().ok()? * scale)
}

/// A figure as a whole number; what no metric of Spark can be is none.
pub(super) fn figure(value: f64) -> Option<i64> {
    (value.abs() <= MAX_FIGURE as f64).then_some(value.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_pages_print() {
        assert_eq!(duration_ms("8.0", "min"), Some(480_000));
        assert_eq!(duration_ms("24", "s"), Some(24_000));
        assert_eq!(duration_ms("24", "MiB"), None);
        assert_eq!(size_bytes("10.7", "MiB"), Some(11_219_763));
        assert_eq!(size_bytes("0.0", "B"), Some(0));
        assert_eq!(size_bytes("2", "g"), Some(2 << 30));
        assert_eq!(size_bytes("2", "min"), None);
        assert_eq!(count("1,000,000"), Some(1_000_000));
        assert_eq!(size_bytes("8192", "PiB"), None, "no figure of Spark");
        assert_eq!(count("10000000000000000000"), None);
    }
}
