//! Tables that `--all` adds: evidence, where core time went, other slot counts.

use super::paper::{Paper, Role, Span, span};
use crate::render::{Look, words};
use model::{Finding, Millis, Report, Share};
use unicode_width::UnicodeWidthStr;

/// What stands behind the findings.
pub fn tables(report: &Report, look: &Look) -> Paper {
    let mut page = Paper::new(look.width);
    core_time(&mut page, report, look);
    counterfactuals(&mut page, report, look);
    page
}

/// Evidence of a finding: what, value, the line it crossed, where it stands.
pub fn evidence(page: &mut Paper, finding: &Finding, indent: &str) {
    let rows = words::shown(finding);
    let limited = |row: &words::Shown| row.limit.clone().unwrap_or_default();
    let widest = |cell: &dyn Fn(&words::Shown) -> usize| rows.iter().filter(|r| !r.series).map(cell).max().unwrap_or(0);
    let label = rows.iter().map(|r| r.label.width()).max().unwrap_or(0).min(40);
    let (value, limit) = (widest(&|r| r.value.width()).min(16), widest(&|r| limited(r).width()).min(16));
    for row in &rows {
        let lead = format!("{indent}{}  ", padded(&row.label, label));
        // A text that is wider than its column takes the line.
        let limited = limited(row);
        let goes_on = !row.location.is_empty();
        let pad = |text: &str, width| if goes_on { padded(text, width) } else { text.to_owned() };
        let cell = if limited.is_empty() { pad(&row.value, value) } else { padded(&row.value, value) };
        // A series breaks between its quantiles only.
        let unbroken: Vec<String> = cell.split(" · ").map(|part| part.replace(' ', "\u{a0}")).collect();
        let cell = if row.series { unbroken.join(" · ") } else { nbsp(&cell) };
        let mut spans = vec![span(Role::Plain, cell)];
        if limit > 0 && !row.series && (goes_on || !limited.is_empty()) {
            spans.push(span(Role::Quiet, nbsp(&format!("  {}", pad(&limited, limit)))));
        }
        if !row.location.is_empty() {
            spans.push(span(Role::Quiet, format!("\u{a0}\u{a0}{}", nbsp(&row.location))));
        }
        page.flow(&[span(Role::Quiet, lead)], &spans);
    }
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Keeps short cells on their line; a long text may flow.
fn nbsp(text: &str) -> String {
    const LONG: usize = 48;
    if text.width() <= LONG { text.replace(' ', "\u{a0}") } else { words::glued(text) }
}

fn core_time(page: &mut Paper, report: &Report, look: &Look) {
    let total: i64 = report.summary.core_time.iter().map(|part| part.ms).sum();
    if total <= 0 {
        return;
    }
    heading(page, "Where the core time went", &format!("slots × time, {}", words::core_time(total)));
    let rows = words::parts(&report.summary.core_time).map(|part| {
        let mut cells = vec![part.name.clone(), words::core_time(part.ms)];
        cells.push(Share(part.ms as f64 / total as f64).to_string());
        cells.extend(look.money.as_ref().map(|m| m.of(part.ms)));
        cells
    });
    table(page, &rows.collect::<Vec<_>>());
}

fn counterfactuals(page: &mut Paper, report: &Report, look: &Look) {
    let wall = report.application.wall_ms;
    if report.summary.counterfactuals.is_empty() {
        return;
    }
    let fit = report.summary.model.map(|m| format!("the model is {} off this run", Share(m.error)));
    heading(page, "What if", &fit.unwrap_or_default());
    let rows = report.summary.counterfactuals.iter().map(|other| {
        let change = (other.wall_ms - wall) as f64 / wall.max(1) as f64;
        let sign = if change < 0.0 { '−' } else { '+' };
        let mut cells = vec![other.change.clone(), format!("{} slots", words::slots(other.slots))];
        cells.push(Millis(other.wall_ms).to_string());
        cells.push(format!("{sign}{}", Share(change.abs())));
        cells.push(words::core_time(other.core_ms));
        cells.extend(look.money.as_ref().map(|m| m.of(other.core_ms)));
        cells
    });
    table(page, &rows.collect::<Vec<_>>());
}

fn heading(page: &mut Paper, title: &str, beside: &str) {
    page.blank();
    let beside = if beside.is_empty() { String::new() } else { format!("  {beside}") };
    page.line(&[span(Role::Strong, title), span(Role::Quiet, words::glued(&beside))]);
}

/// Rows of cells in columns as wide as they need to be: the first to the left, the others, which
/// are numbers, to the right.
fn table(page: &mut Paper, rows: &[Vec<String>]) {
    const GAP: usize = 3;
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut spans: Vec<Span> = vec![span(Role::Plain, "  ")];
        for (i, cell) in row.iter().enumerate() {
            let fill = " ".repeat(widths[i] - cell.width());
            spans.push(match i {
                0 => span(Role::Plain, format!("{}{fill}", super::super::one_line(cell))),
                _ => span(Role::Quiet, format!("{}{fill}{cell}", " ".repeat(GAP))),
            });
        }
        page.line(&spans);
    }
}
