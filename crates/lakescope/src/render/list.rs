//! Several applications, one line each.

use super::text::paper::{Paper, Role, span};
use super::{Look, one_line, words};
use model::{Millis, Report, Severity};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// What a row says of an application.
struct Row {
    name: String,
    ran: String,
    saves: String,
    sentence: String,
}

fn row(report: &Report) -> Row {
    let report = words::clean_report(report);
    let app = &report.application;
    let name = match (app.id.as_str(), app.name.as_str()) {
        ("", name) => name.to_owned(),
        (id, name) if name.is_empty() || id == name => id.to_owned(),
        (id, name) => format!("{id} · {name}"),
    };
    // A saving beside "nothing stands out" would contradict it.
    let first = report.findings.first().filter(|_| report.summary.severity.is_some_and(|s| s > Severity::Info));
    let saves = first.and_then(|f| words::saved(f, app.wall_ms, None)).and_then(|s| s.time);
    let ran = if app.wall_ms > 0 { Millis(app.wall_ms).to_string() } else { "–".to_owned() };
    Row {
        name: one_line(&name),
        ran: if app.complete { ran } else { format!("≥ {ran}") },
        saves: saves.unwrap_or_default(),
        sentence: one_line(&report.summary.sentence),
    }
}

/// Applications for a terminal: how long, what the worst finding costs, what it is, and whose.
#[must_use]
pub fn list_text(reports: &[Report], look: &Look) -> String {
    let rows: Vec<Row> = reports.iter().map(row).collect();
    let widest = |cell: fn(&Row) -> &String| rows.iter().map(|r| cell(r).width()).max().unwrap_or(0);
    let (ran, saves) = (widest(|r| &r.ran), widest(|r| &r.saves));
    let mut page = Paper::new(look.width);
    for (report, row) in reports.iter().zip(&rows) {
        let (mark, role) = super::text::mark(report.summary.severity);
        let pad = |text: &str, width: usize| format!("{}{text}  ", " ".repeat(width.saturating_sub(text.width())));
        let lead = [
            span(role, format!("{mark} ")),
            span(Role::Quiet, pad(&row.ran, ran)),
            span(Role::Strong, pad(&row.saves, saves)),
        ];
        page.flow(&lead, &[span(Role::Plain, words::glued(&row.sentence))]);
        let indent = " ".repeat(2 + ran + 2 + saves + 2);
        page.flow(&[span(Role::Plain, indent)], &[span(Role::Quiet, row.name.clone())]);
    }
    page.blank();
    let count = format!("{} applications, the worst first; --app ID shows one", rows.len());
    page.flow(&[], &[span(Role::Quiet, count)]);
    page.finish()
}

/// A table of applications for a ticket.
#[must_use]
pub fn list_markdown(reports: &[Report]) -> String {
    let mut out =
        String::from("| Severity | Application | Ran | Saves | Finding |\n| --- | --- | ---: | ---: | --- |\n");
    for report in reports {
        let row = row(report);
        let severity = report.summary.severity.map_or("fine", words::severity);
        let cell = super::markdown::cell;
        let (name, ran, saves, sentence) = (cell(&row.name), cell(&row.ran), cell(&row.saves), cell(&row.sentence));
        let _ = writeln!(out, "| {severity} | {name} | {ran} | {saves} | {sentence} |");
    }
    out
}

/// A page with a table of applications.
#[must_use]
pub fn list_html(reports: &[Report]) -> String {
    let mut rows = String::new();
    for report in reports {
        let row = row(report);
        let severity = report.summary.severity.map_or("fine", words::severity);
        let class = report.summary.severity.map_or("", super::html::severity_class);
        let [name, ran, saves, sentence] = [row.name, row.ran, row.saves, row.sentence].map(|t| super::html::say(&t));
        let _ = write!(
            rows,
            "<tr><td><b class=\"sev {class}\">{severity}</b></td><td>{name}</td><td class=\"num\">{ran}</td>\
             <td class=\"num\">{saves}</td><td>{sentence}</td></tr>"
        );
    }
    let body = format!(
        "<header class=\"top\"><span class=\"brand\">lakescope</span></header><main><section class=\"card\">\
         <div class=\"hd\"><h2>{} applications</h2><span class=\"dim\">the worst first</span></div><div class=\"wide\">\
         <table><tr><th>Severity</th><th>Application</th><th class=\"num\">Ran</th><th class=\"num\">Saves</th>\
         <th>Finding</th></tr>{rows}</table></div></section></main>",
        reports.len()
    );
    super::html::page("Applications", &body)
}
