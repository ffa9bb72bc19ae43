//! The report as one HTML file: style and charts inside, no script, no request.

#[cfg(feature = "serve")]
mod applications;
mod charts;
mod compare;
mod finding;
mod strip;
mod tables;
mod timeline;

#[cfg(feature = "serve")]
pub use applications::{Row, applications_html};
pub use compare::compare_html;

use super::{Look, one_line, words};
use model::{Application, Checked, Millis, Report, Severity};
use words::Budget;

const STYLE: &str = include_str!("style.css");

/// The page. The application gives the charts of tasks; without it they are left out.
#[must_use]
pub fn html(report: &Report, app: Option<&Application>, look: &Look) -> String {
    let report = &words::clean_report(report);
    let mut body = String::new();
    body.push_str(&top(report));
    body.push_str("<main>");
    body.push_str(&head(report, app, look));
    body.push_str(&verdict(report, look));
    body.push_str(&findings(report, app, look));
    body.push_str(&app.map(|app| timeline::timeline(report, app)).unwrap_or_default());
    body.push_str(&tables::tables(report, look));
    body.push_str(&tables::warnings(report));
    body.push_str("</main>");
    page(&title(report), &body)
}

/// A whole page around a body.
pub(super) fn page(title: &str, body: &str) -> String {
    titled(&format!("{title} · diagnosis"), "", body)
}

/// A whole page with its full title, and with style of its own beside the common one.
fn titled(title: &str, style: &str, body: &str) -> String {
    let title = escaped(title);
    // The policy keeps the promise: nothing is fetched, nothing runs.
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>{title}</title>\n<style>\n{STYLE}{style}</style></head>\n<body>{body}</body></html>\n"
    )
}

/// Text in which nothing is read as HTML, in content and in attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// Escaped text of one line whose numbers stay with their units.
pub(super) fn say(text: &str) -> String {
    escaped(&words::glued(&one_line(text)))
}

fn title(report: &Report) -> String {
    let name = one_line(&report.application.name);
    match report.application.pasted {
        Some(kind) if name.is_empty() => format!("Pasted: {}", words::paste(kind)),
        _ if name.is_empty() => "Application".to_owned(),
        _ => name,
    }
}

fn top(report: &Report) -> String {
    let id = one_line(&report.application.id);
    let id = if id.is_empty() { id } else { format!("<code>{}</code>", escaped(&id)) };
    format!(
        "<header class=\"top\"><span class=\"brand\">{}lakescope</span>\
         <span class=\"crumb\">Diagnosis <span aria-hidden=\"true\">›</span> <b>{}</b> {id}</span></header>",
        charts::icon(charts::MARK),
        escaped(&title(report)),
    )
}

fn head(report: &Report, app: Option<&Application>, look: &Look) -> String {
    let mut facts = String::new();
    for (label, value) in words::facts(report, look.money.as_ref()).iter().filter(|f| !f.0.is_empty()) {
        let value = format!("<b>{}</b>", say(value));
        let fact = match *label {
            "Spark" => format!("Spark {value}"),
            "ran" => format!("Ran {value}"),
            "cost" => format!("Cost {value}"),
            "read as" => format!("Read as {value}"),
            _ => format!("{value} {label}"),
        };
        facts.push_str(&format!("<span>{fact}</span>"));
    }
    if let Some(started) = report.application.started_ms.and_then(charts::clock) {
        facts.push_str(&format!("<span>Started <b>{}</b> {} UTC</span>", started.0, started.1));
    }
    format!(
        "<div class=\"head\"><h1>{}{}</h1><div class=\"facts\">{facts}</div></div>",
        escaped(&title(report)),
        pill(report, app)
    )
}

/// How the application ended, by shape, word and colour.
fn pill(report: &Report, app: Option<&Application>) -> String {
    let facts = &report.application;
    if facts.pasted.is_some() {
        return String::new();
    }
    let failed_exit = app.and_then(|app| app.exit_code).filter(|code| *code != 0);
    let (class, icon, word) = match (facts.counts.failed_jobs, failed_exit, facts.complete) {
        (_, Some(code), _) => ("fail", charts::CROSS, format!("Exit code {code}")),
        (1, ..) => ("fail", charts::CROSS, "1 job failed".to_owned()),
        (2.., ..) => ("fail", charts::CROSS, format!("{} jobs failed", facts.counts.failed_jobs)),
        (.., false) => ("warn", charts::TRIANGLE, "No end in the log".to_owned()),
        _ => ("ok", charts::CHECK, "Succeeded".to_owned()),
    };
    format!("<span class=\"pill {class}\">{}{word}</span>", charts::icon(icon))
}

fn verdict(report: &Report, look: &Look) -> String {
    let sentence = one_line(&report.summary.sentence);
    let (first, rest) = sentence.split_at(first_clause(&sentence));
    let first = if first.is_empty() { String::new() } else { format!("<b>{}</b>", say(first)) };
    let glue = if rest.starts_with(' ') { " " } else { "" };
    let bar = budget(report);
    let save = saving(report, look);
    format!(
        "<section class=\"card verdict\"><div class=\"vrow\"><p class=\"say\">{first}{glue}{}</p>{save}</div>{bar}</section>",
        say(rest)
    )
}

/// End of the clause that is printed bold: the first sentence, or what stands before a colon or
/// semicolon.
fn first_clause(sentence: &str) -> usize {
    let ends = [". ", ": ", "; "].into_iter().filter_map(|end| sentence.find(end).map(|at| at + 1));
    ends.min().unwrap_or(sentence.len())
}

/// The one number worth acting on: what the first finding costs.
fn saving(report: &Report, look: &Look) -> String {
    let chapters = words::chapters(report, false);
    let Some(first) = chapters.first() else { return String::new() };
    let Some(saved) = words::saved(first.root, report.application.wall_ms, None) else { return String::new() };
    let Some(time) = saved.time else { return String::new() };
    let core = first.root.estimate.as_ref().map_or(0, |estimate| estimate.saved_core_ms);
    let money = look.money.as_ref().filter(|_| core > 0).map(|money| format!(", about {}", money.of(core)));
    format!(
        "<div class=\"save\"><div class=\"big\">{}</div><div class=\"lab\">per run if finding 1 is fixed{}</div></div>",
        say(&time),
        money.map(|m| escaped(&m)).unwrap_or_default()
    )
}

fn budget(report: &Report) -> String {
    let total: i64 = report.summary.time.iter().map(|part| part.ms).sum();
    if total <= 0 {
        return String::new();
    }
    let (mut bar, mut legend) = (String::new(), String::new());
    for part in words::parts(&report.summary.time) {
        let (class, name, time) =
            (budget_class(Budget::of(part)), escaped(&part.name), say(&Millis(part.ms).to_string()));
        let share = part.ms as f64 / total as f64 * 100.0;
        bar.push_str(&format!("<i class=\"{class}\" style=\"flex:{share:.3}\" title=\"{name}: {time}\"></i>"));
        legend.push_str(&format!("<span><i class=\"{class}\"></i><b>{time}</b> {name}</span>"));
    }
    format!(
        "<div class=\"budget\" role=\"img\" aria-label=\"Where {} went\">{bar}</div><div class=\"legend\">{legend}</div>",
        Millis(total)
    )
}

fn budget_class(budget: Budget) -> &'static str {
    match budget {
        Budget::Wait => "wait",
        Budget::Few => "few",
        Budget::Compute => "cpu",
        Budget::Shuffle => "shuffle",
        Budget::OffCpu => "offcpu",
        Budget::Collect => "gc",
        Budget::Driver => "driver",
        Budget::Start => "start",
    }
}

fn findings(report: &Report, app: Option<&Application>, look: &Look) -> String {
    // A page has room: what is worth knowing stands below what is wrong.
    let chapters = words::chapters(report, true);
    let mut rows = String::new();
    for chapter in &chapters {
        rows.push_str(&finding::chapter(chapter, report, app, look));
    }
    if let Some(more) = words::more(&report.summary.more) {
        rows.push_str(&format!("<p class=\"rest\">And {}.</p>", say(&more)));
    }
    if chapters.is_empty() {
        rows.push_str("<p class=\"rest\">Nothing to mend was found.</p>");
    }
    let order = if chapters.len() > 1 { "<span class=\"dim\">ordered by time saved</span>" } else { "" };
    format!(
        "<section class=\"card\"><div class=\"hd\"><h2>Findings</h2>{order}</div>{rows}{}</section>",
        passed(report)
    )
}

fn passed(report: &Report) -> String {
    let (fine, unknown): (Vec<&Checked>, Vec<&Checked>) = report.checked.iter().partition(|c| c.state.is_fine());
    let mark = charts::icon(charts::CHECK);
    check_list(&fine, &format!("{mark}{} checked and fine", fine.len())) + &check_list(&unknown, "Not judged")
}

fn check_list(items: &[&Checked], title: &str) -> String {
    if items.is_empty() {
        return String::new();
    }
    let item = |item: &&Checked| format!("<span title=\"{}\">{}</span>", say(&item.result), say(&item.what));
    let items: String = items.iter().map(item).collect();
    format!("<div class=\"passed\"><span>{title}</span>{items}</div>")
}

pub(super) fn severity_class(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::High => "hot",
        Severity::Medium => "mid",
        _ => "",
    }
}
