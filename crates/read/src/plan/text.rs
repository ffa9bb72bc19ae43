//! `explain()` text.

use super::list::first_number;
use model::Statistics;

/// `Statistics(sizeInBytes=160.2 MiB, rowCount=1.50E+6)` in a line.
pub(crate) fn statistics(line: &str) -> Option<Statistics> {
    let text = &line[line.find("Statistics(")? + "Statistics(".len()..];
    let text = &text[..text.find(')').unwrap_or(text.len())];
    let value = |key: &str| text.split(',').find_map(|part| part.trim().strip_prefix(key));
    let size = value("sizeInBytes=")?;
    let _ = first_number(size)?;
    Some(Statistics { size_bytes: size_bytes(size)?, rows: value("rowCount=").and_then(|n| n.parse().ok()) })
}

/// `160.2 MiB`, `8.0 EiB`, `2.4 KB` (Spark 2), in bytes. All binary, as Spark counts them.
fn size_bytes(text: &str) -> Option<f64> {
    let (number, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), "B"));
    let power = "BKMGTPE".find(unit.chars().next()?)?;
    Some(number.parse::<f64>().ok()? * 1024_f64.powi(i32::try_from(power).ok()?))
}
