//! The first page of a server: which applications need a person, and why.

use super::{charts, escaped, say, titled};
use crate::render::{one_line, words};
use model::{Millis, Severity};

/// Rows that one page shows.
const MOST: usize = 500;

/// An application on the first page.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Where its report is.
    pub link: String,
    /// Name, else id.
    pub name: String,
    /// Application id.
    pub id: String,
    /// User.
    pub user: String,
    /// Start, epoch ms.
    pub started_ms: i64,
    /// Wall time, ms.
    pub wall_ms: i64,
    /// Whether it has ended.
    pub ended: bool,
    /// Severity of its worst finding.
    pub severity: Option<Severity>,
    /// The sentence of its diagnosis.
    pub sentence: String,
}

const STYLE: &str = "
.apps td { vertical-align: top; padding-top: 9px; padding-bottom: 9px; } .apps .name { font-weight: 600; overflow-wrap: anywhere; }
.apps a { color: inherit; text-decoration: none; } .apps a:hover { color: var(--link); text-decoration: underline; }
.apps .id { font-size: 12px; color: var(--ink-3); overflow-wrap: anywhere; } .apps .what { max-width: 76ch; overflow-wrap: anywhere; color: var(--ink-2); }
.apps tr.hot .what, .apps tr.mid .what { color: var(--ink); } .apps .when { white-space: nowrap; color: var(--ink-2); }
.apps .mark { width: 84px; white-space: nowrap; } .apps .dot { display: inline-block; width: 8px; height: 8px; margin-right: 7px; border-radius: 50%; background: var(--line-2); }
.apps .hot .dot { background: var(--fail); } .apps .mid .dot { background: var(--warn); } .apps .low .dot { background: var(--ink-3); } .apps .ok .dot { background: var(--ok); }
@media (max-width: 700px) { .apps thead { display: none; } .apps tr { display: grid; padding: 8px 0; border-top: 1px solid var(--line); } .apps td { border: 0; padding: 1px 16px; } .apps .num { text-align: left; } }
";

/// The page: the worst first, among equals the newest.
#[must_use]
pub fn applications_html(mut rows: Vec<Row>, unreadable: &[String], ready: bool) -> String {
    rows.sort_by(|a, b| (b.severity, b.started_ms, &a.id).cmp(&(a.severity, a.started_ms, &b.id)));
    let need = rows.iter().filter(|row| row.severity >= Some(Severity::High)).count();
    let summary = match (rows.len(), need) {
        (0, _) => "No application yet".to_owned(),
        (1, 0) => "The one application is fine, or nearly so".to_owned(),
        (n, 0) => format!("None of {n} applications needs a person"),
        (n, 1) => format!("One of {n} applications needs a person"),
        (n, need) => format!("{need} of {n} applications need a person"),
    };
    let mut body = format!(
        "<header class=\"top\"><span class=\"brand\">{}lakescope</span><span class=\"crumb\"><b>Applications</b></span></header>\
         <main><div class=\"head\"><h1>{}</h1></div><section class=\"card\">",
        charts::icon(charts::MARK),
        say(&summary)
    );
    match (rows.is_empty(), ready) {
        (true, true) => body.push_str("<p class=\"rest\">The folders hold no event log. Set spark.eventLog.enabled=true and spark.eventLog.dir to one of them; new logs appear here by themselves.</p>"),
        (true, false) => body.push_str("<p class=\"rest\">The logs are being read; load the page again in a moment.</p>"),
        _ => body.push_str(&table(&rows)),
    }
    for why in unreadable {
        body.push_str(&format!("<p class=\"rest\">{}</p>", say(why)));
    }
    body.push_str("</section></main>");
    titled("Applications · lakescope", STYLE, &body)
}

fn table(rows: &[Row]) -> String {
    let mut html = "<div class=\"wide\"><table class=\"apps\"><thead><tr><th>Severity</th><th>Application</th><th>What is wrong</th><th>Started (UTC)</th><th class=\"num\">Ran</th></tr></thead><tbody>".to_owned();
    rows.iter().take(MOST).for_each(|one| html.push_str(&row(one)));
    html.push_str("</tbody></table></div>");
    if rows.len() > MOST {
        let more = format!("{} more are not shown; the API at /api/v1/applications lists all", rows.len() - MOST);
        html.push_str(&format!("<p class=\"rest\">{}</p>", say(&more)));
    }
    html
}

fn row(row: &Row) -> String {
    let (class, severity) = match row.severity {
        Some(severity @ (Severity::Critical | Severity::High)) => ("hot", words::severity(severity)),
        Some(severity @ Severity::Medium) => ("mid", words::severity(severity)),
        Some(severity) => ("low", words::severity(severity)),
        None => ("ok", "fine"),
    };
    let started = charts::clock(row.started_ms).map(|(time, day)| format!("{time} {day}")).unwrap_or_default();
    let ran = match row.ended {
        true => Millis(row.wall_ms).to_string(),
        false => format!("{} so far", Millis(row.wall_ms)),
    };
    let user = if row.user.is_empty() { String::new() } else { format!(" · {}", say(&row.user)) };
    format!(
        "<tr class=\"{class}\"><td class=\"mark\"><span class=\"dot\"></span>{severity}</td>\
         <td><a class=\"name\" href=\"{}\">{}</a><div class=\"id\">{}{user}</div></td>\
         <td class=\"what\">{}</td><td class=\"when\">{}</td><td class=\"num\">{}</td></tr>",
        escaped(&row.link),
        escaped(&one_line(&row.name)),
        escaped(&one_line(&row.id)),
        say(&words::capital(&row.sentence)),
        say(&started),
        say(&ran)
    )
}
