//! The tasks of a stage as dots on an axis, the slow ones marked, and their quantiles.

use super::charts::{self, Scale};
use super::say;
use model::{Application, Bytes, Count, Factor, Metric, Millis, Quantiles, Stage, Tasks};

/// Dots drawn at most; more would be one blot.
const MOST_DOTS: usize = 1_500;
/// A task is slow above this multiple of the 75th percentile.
const SLOW: f64 = 1.5;
/// So few tasks are drawn as bars, each with its name.
const FEW: usize = 6;
/// Slow tasks drawn large.
const MOST_MARKED: usize = 12;

/// Duration strip, byte strip where bytes are uneven, and the table of quantiles.
pub fn strips(stage: &Stage, app: Option<&Application>) -> String {
    let mut html = strip(stage, app, Metric::DurationMs, "duration");
    for (metric, name) in [(Metric::ShuffleReadBytes, "shuffle read"), (Metric::InputBytes, "input")] {
        let q = stage.quantiles(metric);
        if q.max > 1 << 20 && q.max_over_peers() >= SLOW {
            html.push_str(&strip(stage, app, metric, name));
        }
    }
    html.push_str(&quantiles(stage));
    html
}

/// A value as people say it.
fn shown(metric: Metric, value: i64) -> String {
    let count = value.max(0) as u64;
    match metric {
        _ if value == 0 => "0".to_owned(),
        Metric::DurationMs | Metric::GcMs | Metric::FetchWaitMs => Millis(value).to_string(),
        Metric::ShuffleRecordsRead | Metric::InputRecords => Count(count).to_string(),
        _ => Bytes(count).to_string(),
    }
}

fn strip(stage: &Stage, app: Option<&Application>, metric: Metric, name: &str) -> String {
    let tasks = &stage.tasks;
    let mut rows: Vec<(i64, usize)> = tasks.successful().map(|row| (tasks.value(metric, row), row)).collect();
    rows.sort_unstable();
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return String::new() };
    if rows.len() <= FEW {
        return bars(stage.id, &rows, tasks, app, metric, name);
    }
    let scale = Scale::over(first.0, last.0);
    let q = stage.quantiles(metric);
    let limit = (q.peers() as f64 * SLOW) as i64;
    let slow: Vec<_> =
        rows.iter().rev().take(MOST_MARKED).filter(|(v, _)| *v > limit && q.peers() > 0).copied().collect();
    let usual = &rows[..rows.len() - slow.len()];
    let svg = format!(
        "{}{}{}{}",
        axis(&scale, metric),
        band(&scale, &q),
        dots(&scale, usual),
        marks(&scale, &slow, tasks, app, metric)
    );
    let log = if scale.log { ", log scale" } else { "" };
    let cut = match usual.len() > MOST_DOTS {
        true => format!(", {} of them drawn", Count(MOST_DOTS as u64)),
        false => String::new(),
    };
    let count = Count(rows.len() as u64);
    let stage = stage.id;
    let title = format!("{count} tasks of stage {stage} by {name}");
    format!(
        "<h4>{title}<span class=\"dim\">{cut}{log}</span></h4>\
         <svg class=\"strip\" role=\"img\" aria-label=\"{title}: median {}, largest {}\" width=\"100%\" height=\"78\">{svg}</svg>",
        shown(metric, q.median),
        shown(metric, q.max)
    )
}

/// A handful of tasks, one bar each.
fn bars(
    stage: u32,
    rows: &[(i64, usize)],
    tasks: &Tasks,
    app: Option<&Application>,
    metric: Metric,
    name: &str,
) -> String {
    let most = rows.last().map_or(1, |row| row.0).max(1);
    let title = format!("{} tasks of stage {stage} by {name}", rows.len());
    let mut html = format!("<h4>{title}</h4><div class=\"few\">");
    for (value, row) in rows.iter().rev() {
        let width = *value as f64 / most as f64 * 100.0;
        html.push_str(&format!(
            "<span>{}</span><span class=\"b\"><i class=\"cpu\" style=\"width:{width:.1}%\"></i></span><b>{}</b>",
            say(&who(tasks, *row, app)),
            say(&shown(metric, *value))
        ));
    }
    html.push_str("</div>");
    html
}

/// `task 117, executor 7`.
fn who(tasks: &Tasks, row: usize, app: Option<&Application>) -> String {
    let executor = app.and_then(|app| app.executors.get(tasks.executor(row))).map(|e| format!(", executor {}", &*e.id));
    format!("task {}{}", tasks.index(row), executor.unwrap_or_default())
}

fn axis(scale: &Scale, metric: Metric) -> String {
    let steps = match metric {
        Metric::DurationMs => charts::time_steps().to_vec(),
        _ => charts::byte_steps(),
    };
    let mut svg = String::new();
    for value in scale.ticks(&steps, 14.0) {
        let x = scale.at(value);
        let label = match metric {
            Metric::DurationMs => charts::tick(value),
            _ => shown(metric, value),
        };
        svg.push_str(&format!(
            "<line class=\"gl\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"4\" y2=\"60\"/>\
             <text x=\"{x:.2}%\" y=\"74\" class=\"ax\" text-anchor=\"middle\">{label}</text>"
        ));
    }
    svg
}

/// From the 25th to the 75th percentile, with the median.
fn band(scale: &Scale, q: &Quantiles) -> String {
    let (low, mid, high) = (scale.at(q.p25), scale.at(q.median), scale.at(q.p75));
    format!(
        "<rect class=\"iqr\" x=\"{low:.2}%\" width=\"{:.2}%\" y=\"8\" height=\"48\"/>\
         <line class=\"med\" x1=\"{mid:.2}%\" x2=\"{mid:.2}%\" y1=\"8\" y2=\"56\"/>",
        (high - low).max(0.2)
    )
}

/// Usual tasks; of too many an even choice, smallest to largest.
fn dots(scale: &Scale, usual: &[(i64, usize)]) -> String {
    let every = usual.len().div_ceil(MOST_DOTS).max(1);
    let mut svg = String::from("<g class=\"dots\">");
    for (value, row) in usual.iter().step_by(every) {
        let y = 32.0 + spread(*row) * 40.0;
        svg.push_str(&format!("<circle cx=\"{:.2}%\" cy=\"{y:.1}\" r=\"2.3\"/>", scale.at(*value)));
    }
    svg.push_str("</g>");
    svg
}

/// A height from −½ to ½ that is the same in every drawing of a row.
fn spread(row: usize) -> f64 {
    let hash = (row as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    hash as f64 / f64::from(1 << 24) - 0.5
}

fn marks(scale: &Scale, slow: &[(i64, usize)], tasks: &Tasks, app: Option<&Application>, metric: Metric) -> String {
    let mut svg = String::new();
    for (value, row) in slow {
        let y = if slow.len() == 1 { 32.0 } else { 32.0 + spread(*row) * 36.0 };
        svg.push_str(&format!("<circle class=\"slow\" cx=\"{:.2}%\" cy=\"{y:.1}\" r=\"4.5\"/>", scale.at(*value)));
    }
    let Some((value, row)) = slow.first() else { return svg };
    let who = who(tasks, *row, app);
    let beside = match metric {
        Metric::DurationMs => Some(tasks.value(Metric::ShuffleReadBytes, *row)).filter(|b| *b > 0),
        _ => None,
    };
    let mut figures = shown(metric, *value);
    if let Some(bytes) = beside {
        figures.push_str(&format!(", {}", Bytes(bytes as u64)));
    }
    let x = scale.at(*value);
    let (x, anchor, dx) = if x > 50.0 { (x, "end", -10) } else { (x, "start", 10) };
    svg.push_str(&format!(
        "<text class=\"who\" x=\"{x:.2}%\" dx=\"{dx}\" y=\"28\" text-anchor=\"{anchor}\">{}</text>\
         <text class=\"fig\" x=\"{x:.2}%\" dx=\"{dx}\" y=\"43\" text-anchor=\"{anchor}\">{}</text>",
        say(&who),
        say(&figures)
    ));
    svg
}

fn quantiles(stage: &Stage) -> String {
    const ROWS: [(Metric, &str); 7] = [
        (Metric::DurationMs, "Duration"),
        (Metric::ShuffleReadBytes, "Shuffle read"),
        (Metric::ShuffleRecordsRead, "Rows read"),
        (Metric::InputBytes, "Input"),
        (Metric::DiskSpillBytes, "Spill, disk"),
        (Metric::PeakExecutionBytes, "Peak memory"),
        (Metric::GcMs, "GC time"),
    ];
    let mut rows = String::new();
    for (metric, name) in ROWS {
        let q = stage.quantiles(metric);
        if q.max > 0 {
            rows.push_str(&quantile_row(metric, name, &q));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<div class=\"wide\"><table class=\"sum\"><tr><th></th><th class=\"num\">Min</th><th class=\"num\">P25</th>\
         <th class=\"num\">Median</th><th class=\"num\">P75</th><th class=\"num\">Max</th><th class=\"num\">Max ÷ P75</th></tr>\
         {rows}</table></div>"
    )
}

fn quantile_row(metric: Metric, name: &str, q: &Quantiles) -> String {
    let hit = q.max_over_p75().is_none_or(|ratio| ratio >= SLOW);
    let ratio = q.max_over_p75().map_or_else(|| "–".to_owned(), |r| Factor(r).to_string());
    let mut row = format!("<tr><td class=\"soft\">{name}</td>");
    for value in [q.min, q.p25, q.median, q.p75] {
        row.push_str(&format!("<td class=\"num\">{}</td>", say(&shown(metric, value))));
    }
    let (cell, factor) = if hit { ("num hit", "num x") } else { ("num", "num dim") };
    row.push_str(&format!(
        "<td class=\"{cell}\">{}</td><td class=\"{factor}\">{}</td></tr>",
        say(&shown(metric, q.max)),
        say(&ratio)
    ));
    row
}
