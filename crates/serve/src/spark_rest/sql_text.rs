//! SQL metrics in Spark's words: `MetricUtils.stringValue`, `Utils.bytesToString` and
//! `Utils.msDurationToString` of Spark 4.0.1.

use read::{MetricValue, ValueKind};

/// A metric as Spark prints it; `None` for a type that Spark does not know.
pub(super) fn value(value: &MetricValue) -> Option<String> {
    let print: fn(i64) -> String = match value.kind {
        ValueKind::Sum => return Some(grouped(value.sum)),
        // The connector's code would sum it up, which a history server does not have.
        ValueKind::Connector => return Some("N/A".to_owned()),
        ValueKind::Unknown => return None,
        ValueKind::Average => tenths,
        ValueKind::Size => bytes,
        ValueKind::Timing => millis,
        ValueKind::NsTiming => |nanos| millis(nanos / 1_000_000),
    };
    if value.count <= 1 {
        return Some(print(value.max));
    }
    let place = match &value.task {
        Some(at) => format!("(stage {}.{}: task {})", at.stage, at.attempt, at.task),
        None => "(driver)".to_owned(),
    };
    let range = format!("({}, {}, {} {place})", print(value.min), print(value.median), print(value.max));
    Some(match value.kind {
        ValueKind::Average => format!("(min, med, max (stageId: taskId)):\n{range}"),
        _ => format!("total (min, med, max (stageId: taskId))\n{} {range}", print(value.sum)),
    })
}

/// A whole number with commas: `1,234,567`.
pub(super) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number that is stored times ten.
fn tenths(number: i64) -> String {
    match number % 10 {
        0 => grouped(number / 10),
        rest => format!("{}.{}", grouped(number / 10), rest.abs()),
    }
}

/// Bytes in the largest unit of which there are two.
fn bytes(size: i64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let size = i128::from(size);
    let power = (1..UNITS.len()).rev().find(|&power| size >= 2 << (10 * power)).unwrap_or(0);
    let unit = 1_i128 << (10 * power);
    let tenths = (size * 10 + unit / 2) / unit;
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[power])
}

/// A time in the largest unit of which there is one.
fn millis(ms: i64) -> String {
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{} s", decimal(ms as f32 / 1_000.0, 1)),
        60_000..3_600_000 => format!("{} m", decimal(ms as f32 / 60_000.0, 1)),
        _ => format!("{} h", decimal(ms as f32 / 3_600_000.0, 2)),
    }
}

/// A positive number with some decimals, as Java formats a `float`: the digits of the `double` of
/// the same value, a five rounded up.
fn decimal(number: f32, decimals: usize) -> String {
    let exact = format!("{}", f64::from(number));
    let (whole, fraction) = exact.split_once('.').unwrap_or((&exact, ""));
    let digit = |at: usize| fraction.as_bytes().get(at).map_or(0, |b| u64::from(b - b'0'));
    let kept = (0..decimals).fold(whole.parse::<u64>().unwrap_or_default(), |number, at| number * 10 + digit(at));
    let rounded = kept + u64::from(digit(decimals) >= 5);
    let scale = 10_u64.pow(decimals as u32);
    format!("{}.{:0decimals$}", rounded / scale, rounded % scale)
}

#[cfg(test)]
mod tests {
    use super::{bytes, grouped, millis, tenths};

    #[test]
    fn numbers_read_as_in_spark() {
        for (number, text) in [(0, "0"), (999, "999"), (-1_000, "-1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        for (number, text) in [(10, "1"), (12, "1.2"), (12_345, "1,234.5")] {
            assert_eq!(tenths(number), text);
        }
        for (size, text) in [
            (0, "0.0 B"),
            (2_047, "2047.0 B"),
            (2_048, "2.0 KiB"),
            (2_099_200, "2.0 MiB"),
            (16_777_216, "16.0 MiB"),
            // Half a tenth goes up.
            (2_048 + 51, "2.0 KiB"),
            (2_048 + 52, "2.1 KiB"),
            (i64::MAX, "8.0 EiB"),
        ] {
            assert_eq!(bytes(size), text, "{size}");
        }
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_250, "1.3 s"),
            (59_999, "60.0 s"),
            (60_000, "1.0 m"),
            (3_600_000, "1.00 h"),
            (5_425_000, "1.51 h"),
        ] {
            assert_eq!(millis(ms), text, "{ms}");
        }
    }
}
