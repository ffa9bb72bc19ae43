//! Text for a terminal: the answer, where the time went, the findings worst first.
//!
//! Unless everything is asked for, the page is one screen: each finding is told as fully as the
//! room allows, the worst first.

mod bar;
mod finding;
pub(super) mod paper;
mod tables;

use super::{Look, words};
use model::{Checked, Report, Severity};
use paper::{Paper, Role, Span, span};

/// Lines of one screen.
const SCREEN_LINES: usize = 40;

/// The report as text with ANSI styles.
#[must_use]
pub fn text(report: &Report, look: &Look) -> String {
    let report = &words::clean_report(report);
    let mut page = head(report, look);
    let foot = foot(report, look);
    let room = SCREEN_LINES.saturating_sub(page.len() + foot.len());
    page.append(finding::findings(report, look, room));
    if look.all {
        page.append(tables::tables(report, look));
    }
    page.append(foot);
    page.finish()
}

fn head(report: &Report, look: &Look) -> Paper {
    let mut page = Paper::new(look.width);
    let (mark, role) = mark(report.summary.severity);
    let sentence = words::glued(&report.summary.sentence);
    page.flow(&[span(role, format!("{mark} "))], &[span(Role::Strong, sentence)]);
    page.blank();
    page.flow(&[span(Role::Plain, "  ")], &facts(report, look));
    if report.summary.time.iter().any(|part| part.ms > 0) {
        bar::bar(&mut page, &report.summary.time, report.application.complete);
    }
    page
}

fn facts(report: &Report, look: &Look) -> Vec<Span> {
    let name = super::one_line(&report.application.name);
    let mut spans = Vec::new();
    if !name.is_empty() {
        spans.push(span(Role::Strong, name));
    }
    for (label, value) in words::facts(report, look.money.as_ref()) {
        if !spans.is_empty() {
            spans.push(span(Role::Quiet, " · "));
        }
        let value = words::glued(&value).replace(' ', "\u{a0}");
        let label = label.replace(' ', "\u{a0}");
        spans.push(span(Role::Quiet, fact(&label, value)));
    }
    spans
}

/// `4 slots`, but `Spark 3.5.1` and `ran 8 m 31 s`.
fn fact(label: &str, value: String) -> String {
    match label {
        "" => value,
        "Spark" | "ran" | "cost" => format!("{label}\u{a0}{value}"),
        "read\u{a0}as" => format!("read as {value}"),
        _ => format!("{value}\u{a0}{label}"),
    }
}

fn foot(report: &Report, look: &Look) -> Paper {
    let mut page = Paper::new(look.width);
    checked(&mut page, report, look);
    warnings(&mut page, report, look);
    page
}

fn checked(page: &mut Paper, report: &Report, look: &Look) {
    let (fine, unknown): (Vec<&Checked>, Vec<&Checked>) = report.checked.iter().partition(|c| c.state.is_fine());
    if !report.checked.is_empty() {
        page.blank();
    }
    check_list(page, look, &fine, span(Role::Good, "✓ "), "Checked and fine");
    check_list(page, look, &unknown, span(Role::Quiet, "– "), "Not judged");
}

/// One list of checks: a line of names, or, with everything shown, a line each.
fn check_list(page: &mut Paper, look: &Look, items: &[&Checked], mark: Span, title: &str) {
    if items.is_empty() {
        return;
    }
    if look.all {
        page.line(&[mark, span(Role::Strong, title)]);
        for item in items {
            let result = format!(": {}", words::glued(&item.result));
            page.flow(&[span(Role::Plain, "    ")], &[span(Role::Plain, &item.what), span(Role::Quiet, result)]);
        }
        return;
    }
    let what: Vec<&str> = items.iter().map(|item| item.what.as_str()).collect();
    let title = format!("{}: ", title.to_lowercase());
    page.flow(&[mark], &[span(Role::Quiet, title), span(Role::Quiet, words::glued(&what.join(", ")))]);
}

fn warnings(page: &mut Paper, report: &Report, look: &Look) {
    const SHOWN: usize = 3;
    let shown = if look.all { report.warnings.len() } else { SHOWN };
    if !report.warnings.is_empty() && report.checked.is_empty() {
        page.blank();
    }
    for warning in report.warnings.iter().take(shown) {
        page.flow(&[span(Role::Medium, "! ")], &[span(Role::Plain, words::glued(&warning.text))]);
    }
    if report.warnings.len() > shown {
        let rest = report.warnings.len() - shown;
        page.flow(&[span(Role::Quiet, "! ")], &[span(Role::Quiet, format!("{rest} more about the input: --all"))]);
    }
}

/// Shape and look of a worst severity; a check when there is none.
pub(super) fn mark(worst: Option<Severity>) -> (char, Role) {
    (severity_mark(worst), worst.map_or(Role::Good, severity_role))
}

/// A shape for each severity, so that colour never stands alone.
fn severity_mark(severity: Option<Severity>) -> char {
    match severity {
        Some(Severity::Critical) => '✖',
        Some(Severity::High) => '▲',
        Some(Severity::Medium) => '◆',
        Some(Severity::Low) => '●',
        Some(Severity::Info) => '·',
        None => '✓',
    }
}

fn severity_role(severity: Severity) -> Role {
    match severity {
        Severity::Critical => Role::Critical,
        Severity::High => Role::High,
        Severity::Medium => Role::Medium,
        Severity::Low => Role::Plain,
        Severity::Info => Role::Quiet,
    }
}
