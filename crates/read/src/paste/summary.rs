//! The stage page's Summary Metrics, copied from the browser.

use super::{pattern, units};
use model::{Application, Metric, PastedSummary, Quantiles, Stage};
use regex::Regex;
use std::sync::LazyLock;

/// A cell: a number with an optional unit, and the records behind a slash.
static CELL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?<n>\d[\d.,]*)(?:\s?(?<u>ns|us|µs|ms|min|s|h|d|B|[KMGTP]i?B))?(?:\s*/\s*(?<r>\d[\d,]*))?(?:\s|\||$)")
});
static COMPLETED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)(?:Summary Metrics for|Completed Tasks:?)\s*([\d,]+)|\b([\d,]+) Completed Tasks"));
static STAGE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\bstage\s*:?\s*(\d+)(?:\s*\(Attempt\s*:?\s*(\d+)\)|\.(\d+))?"));

static SLOTS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\b(\d[\d,]*) (?:slots|cores)\b"));
static NULLS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)(\d+(?:\.\d+)?) ?% (?:of [^\n%]{0,40})?nulls?\b"));
static NODE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(?:SortMergeJoin|ShuffledHashJoin|HashAggregate|SortAggregate|ObjectHashAggregate|Window)\b *[\[(][^\n]*",
    )
});

/// Labels of the page (2.x to 4.x) with the metric of the cell and of the records behind it.
/// Longer labels stand before those that they begin with.
const LABELS: [(&str, Metric, Option<Metric>); 21] = [
    ("task deserialization time", Metric::DeserializeMs, None),
    ("result serialization time", Metric::ResultSerializationMs, None),
    ("getting result time", Metric::GettingResultTimeMs, None),
    ("scheduler delay", Metric::SchedulerDelayMs, None),
    ("peak execution memory", Metric::PeakExecutionBytes, None),
    ("spill (memory)", Metric::MemorySpillBytes, None),
    ("shuffle spill (memory)", Metric::MemorySpillBytes, None),
    ("spill (disk)", Metric::DiskSpillBytes, None),
    ("shuffle spill (disk)", Metric::DiskSpillBytes, None),
    ("shuffle read fetch wait time", Metric::FetchWaitMs, None),
    ("shuffle read blocked time", Metric::FetchWaitMs, None),
    ("shuffle remote reads", Metric::RemoteBytesRead, None),
    ("shuffle read size", Metric::ShuffleReadBytes, Some(Metric::ShuffleRecordsRead)),
    ("shuffle read", Metric::ShuffleReadBytes, Some(Metric::ShuffleRecordsRead)),
    ("shuffle write time", Metric::ShuffleWriteMs, None),
    ("shuffle write size", Metric::ShuffleBytesWritten, Some(Metric::ShuffleRecordsWritten)),
    ("shuffle write", Metric::ShuffleBytesWritten, Some(Metric::ShuffleRecordsWritten)),
    ("input", Metric::InputBytes, Some(Metric::InputRecords)),
    ("output", Metric::OutputBytes, Some(Metric::OutputRecords)),
    ("gc time", Metric::GcMs, None),
    ("duration", Metric::DurationMs, None),
];

/// Reads a table into a stage. One row with five cells makes a table, if another row or the
/// table's head stands beside it.
pub(super) fn read(text: &str, app: &mut Application) {
    let text = super::start_of(text, super::MAX_TEXT_BYTES);
    let has_head = text.contains("25th percentile") || text.contains("Summary Metrics");
    let rows: Vec<(Metric, Quantiles)> = text.lines().flat_map(row).collect();
    if rows.len() < if has_head { 1 } else { 2 } {
        return;
    }
    let count = stated_tasks(text).unwrap_or_default();
    let mut summary = PastedSummary::default();
    for (metric, mut quantiles) in rows {
        quantiles.count = count;
        quantiles.sum = sum_of_five(&quantiles);
        if !summary.quantiles.iter().any(|(m, _)| *m == metric) {
            summary.quantiles.push((metric, quantiles));
        }
    }
    words_around(text, &mut summary);
    let (id, attempt) = stage_of(text);
    let mut stage = Stage::new(id, attempt);
    stage.num_tasks = u32::try_from(count).unwrap_or(u32::MAX);
    stage.pasted = Some(summary);
    app.stages.push(stage);
}

/// What people write beside the table: the operator, the share of NULL, the slots. A stage takes
/// at least as long as its slowest task, and as its work takes on its slots.
fn words_around(text: &str, summary: &mut PastedSummary) {
    summary.slots = SLOTS.captures(text).and_then(|m| units::count(&m[1])).map(|n| n as f64).filter(|&n| n > 0.0);
    summary.null_share = NULLS.captures(text).and_then(|m| m[1].parse::<f64>().ok()).map(|percent| percent / 100.0);
    summary.node = NODE.find(text).map(|m| m.as_str().trim().to_owned());
    let duration = summary.quantiles.iter().find(|(m, _)| *m == Metric::DurationMs).map(|(_, q)| *q);
    summary.wall_ms = duration.map(|q| q.max.max((q.sum as f64 / summary.slots.unwrap_or(f64::MAX)) as i64));
}

fn row(line: &str) -> Vec<(Metric, Quantiles)> {
    let line = line.trim_start_matches([' ', '\t', '|']);
    let lower = line.to_ascii_lowercase();
    let Some((label, metric, records)) = LABELS.into_iter().find(|(label, ..)| lower.starts_with(label)) else {
        return Vec::new();
    };
    // Cells begin after the label; `Size / Records` and `(disk)` belong to it.
    let cells = line.get(label.len()..).unwrap_or_default();
    let cells: Vec<_> = CELL.captures_iter(cells).collect();
    let Some(values) = five(&cells, |c| cell_value(metric, &c["n"], c.name("u").map_or("", |m| m.as_str()))) else {
        return Vec::new();
    };
    let mut found = vec![(metric, values)];
    if let Some(records) = records
        && let Some(values) = five(&cells, |c| i64::try_from(units::count(c.name("r")?.as_str())?).ok())
    {
        found.push((records, values));
    }
    found
}

fn five(cells: &[regex::Captures<'_>], value: impl Fn(&regex::Captures<'_>) -> Option<i64>) -> Option<Quantiles> {
    let values: Vec<i64> = cells.iter().take(5).filter_map(value).collect();
    let [min, p25, median, p75, max] = values[..] else {
        return None;
    };
    Some(Quantiles { min, p25, median, p75, max, ..Quantiles::default() })
}

fn cell_value(metric: Metric, number: &str, unit: &str) -> Option<i64> {
    if unit.is_empty() {
        // A bare number is the metric's own unit: milliseconds or bytes.
        return number.replace(',', "").parse::<f64>().ok().and_then(units::figure);
    }
    match is_time(metric) {
        true => units::duration_ms(number, unit),
        false => units::size_bytes(number, unit),
    }
}

fn is_time(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::DurationMs
            | Metric::GcMs
            | Metric::DeserializeMs
            | Metric::ResultSerializationMs
            | Metric::GettingResultTimeMs
            | Metric::SchedulerDelayMs
            | Metric::FetchWaitMs
            | Metric::ShuffleWriteMs
    )
}

fn stated_tasks(text: &str) -> Option<u64> {
    let found = COMPLETED.captures(text)?;
    units::count(found.get(1).or(found.get(2))?.as_str())
}

fn stage_of(text: &str) -> (u32, u32) {
    let Some(found) = STAGE.captures(text) else {
        return (0, 0);
    };
    let number = |group: usize| found.get(group).and_then(|m| m.as_str().parse().ok());
    (number(1).unwrap_or_default(), number(2).or(number(3)).unwrap_or_default())
}

/// An estimate of the sum from five quantiles: straight lines between the first four, and the
/// maximum counted once, because one task may be far out.
pub(super) fn sum_of_five(q: &Quantiles) -> i64 {
    if q.count == 0 {
        return 0;
    }
    let quarter = (q.count - 1) as f64 / 4.0;
    let middle = |a: i64, b: i64| (a as f64 + b as f64) / 2.0 * quarter;
    let body = middle(q.min, q.p25) + middle(q.p25, q.median) + middle(q.median, q.p75) + q.p75 as f64 * quarter;
    (body + q.max as f64).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) {
        let mut app = Application::default();
        read(text, &mut app);
        let stage = &app.stages[0];
        let duration = stage.quantiles(Metric::DurationMs);
        assert_eq!((duration.min, duration.median, duration.p75, duration.max), (24_000, 30_000, 31_000, 480_000));
        let read = stage.quantiles(Metric::ShuffleReadBytes);
        assert_eq!((read.min, read.max), (11_219_763, 168_820_736));
        assert_eq!(stage.quantiles(Metric::ShuffleRecordsRead).max, 4_260_000);
        assert_eq!(stage.quantiles(Metric::MemorySpillBytes).max, 0);
    }

    #[test]
    fn tabs_spaces_and_bars() {
        let rows = [
            "Metric\tMin\t25th percentile\tMedian\t75th percentile\tMax",
            "Duration\t24 s\t28 s\t30 s\t31 s\t8.0 min",
            "Spill (memory)\t0.0 B\t0.0 B\t0.0 B\t0.0 B\t0.0 B",
            "Shuffle Read Size / Records\t10.7 MiB / 290000\t11.5 MiB / 312,000\t12 MiB / 320000\t12.4 MiB / 330000\t161 MiB / 4260000",
        ]
        .join("\n");
        check(&rows);
        check(&rows.replace('\t', "    "));
        check(&rows.replace('\t', " "));
        check(&rows.replace('\t', " | "));
    }

    #[test]
    fn count_and_stage_from_the_page() {
        let mut app = Application::default();
        read(
            "Details for Stage 14 (Attempt 1)\nSummary Metrics for 20 Completed Tasks\nGC Time\t1 ms\t2 ms\t3 ms\t4 ms\t90 ms",
            &mut app,
        );
        let stage = &app.stages[0];
        assert_eq!((stage.id, stage.attempt, stage.num_tasks), (14, 1, 20));
        let gc = stage.quantiles(Metric::GcMs);
        assert_eq!((gc.count, gc.sum), (20, 145));
    }

    #[test]
    fn words_beside_the_table() {
        let mut app = Application::default();
        let text = "SortMergeJoin [k#1], [k#2], LeftOuter on 20 slots, 40 % of the keys are NULL\nSummary Metrics\nDuration\t1 s\t1 s\t1 s\t2 s\t90 s";
        read(text, &mut app);
        let pasted = app.stages[0].pasted.as_ref().unwrap();
        assert!(pasted.node.as_deref().unwrap().starts_with("SortMergeJoin [k#1]"));
        assert_eq!((pasted.slots, pasted.null_share, pasted.wall_ms), (Some(20.0), Some(0.4), Some(90_000)));
    }

    #[test]
    fn words_are_no_table() {
        let mut app = Application::default();
        read("Duration 24 s 28 s 30 s 31 s and we waited\ninput 3 4", &mut app);
        assert!(app.stages.is_empty());
    }
}
