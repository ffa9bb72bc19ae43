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
    let rows: Vec<[String; 4]> = finding
        .evidence
        .iter()
        .map(|e| {
            let limit = words::threshold(e).map(|t| format!("over {t}")).unwrap_or_default();
            [words::label(e), words::value(e), limit, e.location.clone()]
        })
        .collect();
    let width = |i: usize, most: usize| rows.iter().map(|r| r[i].width()).max().unwrap_or(0).min(most);
    let (label, value, limit) = (width(0, 34), width(1, 16), width(2, 16));
    for row in &rows {
        // A text that is wider than its column takes the line.
        let lead = format!("{indent}{}  ", padded(&row[0], label));
        let mut spans = vec![span(Role::Plain, nbsp(&padded(&row[1], value)))];
        if limit > 0 {
            spans.push(span(Role::Quiet, nbsp(&format!("  {}", padded(&row[2], limit)))));
        }
        if !row[3].is_empty() {
            spans.push(span(Role::Quiet, format!("\u{a0}\u{a0}{}", nbsp(&row[3]))));
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
    if text.width() <= LONG { text.replace(' ', "\u{a0}") } else { text.to_owned() }
}

fn core_time(page: &mut Paper, report: &Report, look: &Look) {
    let total: i64 = report.summary.core_time.iter().map(|part| part.ms).sum();
    if total <= 0 {
        return;
    }
    heading(page, "Where the core time went", &format!("slots × time, {}", words::core_time(total)));
    for part in words::parts(&report.summary.core_time) {
        let share = Share(part.ms as f64 / total as f64).to_string();
        let money = look.money.as_ref().map(|m| m.of(part.ms)).unwrap_or_default();
        row(page, &[(&part.name, 44), (&words::core_time(part.ms), -20), (&share, -8), (&money, -12)]);
    }
}

fn counterfactuals(page: &mut Paper, report: &Report, look: &Look) {
    let wall = report.application.wall_ms;
    if report.summary.counterfactuals.is_empty() {
        return;
    }
    let fit = report.summary.model.map(|m| format!("the model is {} off this run", Share(m.error)));
    heading(page, "What if", &fit.unwrap_or_default());
    for other in &report.summary.counterfactuals {
        let change = Share((other.wall_ms - wall) as f64 / wall.max(1) as f64).to_string();
        let change = if other.wall_ms >= wall { format!("+{change}") } else { change.replace('-', "−") };
        let money = look.money.as_ref().map(|m| m.of(other.core_ms)).unwrap_or_default();
        let slots = format!("{} slots", words::slots(other.slots));
        let cells = [
            (other.change.as_str(), 34),
            (slots.as_str(), -14),
            (&Millis(other.wall_ms).to_string(), -12),
            (&change, -9),
            (&words::core_time(other.core_ms), -20),
            (&money, -10),
        ];
        row(page, &cells);
    }
}

fn heading(page: &mut Paper, title: &str, beside: &str) {
    page.blank();
    let beside = if beside.is_empty() { String::new() } else { format!("  {beside}") };
    page.flow(&[], &[span(Role::Strong, title), span(Role::Quiet, words::glued(&beside))]);
}

/// A row of cells; a negative width sets the cell to the right.
fn row(page: &mut Paper, cells: &[(&str, i32)]) {
    let mut spans: Vec<Span> = vec![span(Role::Plain, "  ")];
    for (i, (text, width)) in cells.iter().enumerate() {
        let gap = " ".repeat(width.unsigned_abs() as usize - text.width().min(width.unsigned_abs() as usize));
        let role = if i == 0 { Role::Plain } else { Role::Quiet };
        let cell = if *width < 0 { format!("{gap}{text}") } else { format!("{text}{gap}") };
        spans.push(span(role, cell));
    }
    page.line(&spans);
}
