//! One finding on the page: evidence left, fix right, consequences below.

use super::{charts, escaped, say, severity_class, strip};
use crate::render::words::Chapter;
use crate::render::{Look, words};
use model::{Application, Confidence, Finding, Report, Severity};

/// A root with all that follows from it. The first stands open.
pub fn chapter(chapter: &Chapter<'_>, report: &Report, app: Option<&Application>, look: &Look) -> String {
    let root = chapter.root;
    let rank = format!("<span class=\"rank {}\">{}</span>", severity_class(root.severity), chapter.number);
    let gain = match words::saved(root, report.application.wall_ms, look.money.as_ref()) {
        Some(saved) => match saved.time {
            Some(time) => format!("<b>{}</b><span>{}</span>", say(&time), say(&saved.range)),
            None => format!("<span>{}{}</span>", say(&saved.range), say(&saved.beside)),
        },
        None => String::new(),
    };
    let open = chapter.number == 1 && root.severity > Severity::Info;
    let mut html = article(root, &rank, &gain, open, app);
    for finding in &chapter.follows {
        let rank = format!("<span class=\"rank sub\">{}</span>", charts::icon(charts::FOLLOWS));
        let gain = format!("<span>counted in {}</span>", chapter.number);
        html.push_str(&article(finding, &rank, &gain, false, app));
    }
    html
}

fn article(finding: &Finding, rank: &str, gain: &str, open: bool, app: Option<&Application>) -> String {
    let open = if open { " open" } else { "" };
    let place = words::place(&finding.scope).iter().map(|part| say(part)).collect::<Vec<_>>().join(" · ");
    format!(
        "<details class=\"find\"{open}><summary>{rank}<div class=\"ti\"><h3>{}</h3><div class=\"fs\">{}{place}</div></div>\
         {}<div class=\"gain\">{gain}</div><span class=\"chev\">{}</span></summary>\
         <div class=\"open\"><div>{}</div><div>{}</div></div></details>\n",
        say(&finding.title),
        severity_word(finding.severity, !place.is_empty()),
        certainty(finding),
        charts::icon(charts::CHEVRON),
        evidence(finding, app),
        remedies(finding),
    )
}

fn severity_word(severity: Severity, goes_on: bool) -> String {
    let class = match severity {
        Severity::Critical | Severity::High => "hot",
        Severity::Medium => "mid",
        _ => "low",
    };
    let dot = if goes_on { " · " } else { "" };
    format!("<b class=\"sev {class}\">{}</b>{dot}", words::severity(severity))
}

/// How sure, as a meter of three and a word.
fn certainty(finding: &Finding) -> String {
    let lit = match finding.confidence {
        Confidence::High => 3,
        Confidence::Medium => 2,
        Confidence::Low => 1,
    };
    let bars: String = (0..3).map(|i| if i < lit { "<i class=\"on\"></i>" } else { "<i></i>" }).collect();
    let because = finding.confidence_because.as_deref().map(|b| format!(" title=\"{}\"", say(b))).unwrap_or_default();
    format!("<div class=\"conf\"{because}>{bars}<span>{}</span></div>", words::certainty(finding.confidence))
}

fn evidence(finding: &Finding, app: Option<&Application>) -> String {
    let mut html = String::new();
    for item in &finding.excluded {
        html.push_str(&format!("<p class=\"why\"><b>Not {}:</b> {}</p>", say(&item.lookalike), say(&item.because)));
    }
    let charts = app.and_then(|app| words::drawn_stage(finding, app)).map(|stage| strip::strips(stage, app));
    html.push_str(charts.as_deref().unwrap_or_default());
    html.push_str(&evidence_table(finding, charts.is_some()));
    if let Some(because) = &finding.confidence_because {
        html.push_str(&format!("<p class=\"note\">{}: {}</p>", words::certainty(finding.confidence), say(because)));
    }
    html
}

/// Evidence as a table; series of quantiles are left to the charts where these are drawn.
fn evidence_table(finding: &Finding, charts: bool) -> String {
    let mut lines = words::shown(finding);
    lines.retain(|line| !(charts && line.series));
    if lines.is_empty() {
        return String::new();
    }
    let limits = lines.iter().any(|line| line.limit.is_some());
    let mut rows = String::new();
    for line in &lines {
        let long = if line.value.chars().count() > 28 { "text" } else { "num" };
        let over = if line.limit.is_some() { " x" } else { "" };
        let limit = line.limit.as_deref().map(say).unwrap_or_default();
        let limit = if limits { format!("<td class=\"num dim\">{limit}</td>") } else { String::new() };
        rows.push_str(&format!(
            "<tr><td class=\"soft\">{}</td><td class=\"{long}{over}\">{}</td>{limit}<td class=\"dim\">{}</td></tr>",
            say(&line.label),
            say(&line.value),
            say(&line.location)
        ));
    }
    let limit = if limits { "<th class=\"num\">Limit</th>" } else { "" };
    format!(
        "<h4>Evidence</h4><div class=\"wide\"><table class=\"ev\"><tr><th>Measured</th><th class=\"num\">Value</th>\
         {limit}<th>Where</th></tr>{rows}</table></div>"
    )
}

fn remedies(finding: &Finding) -> String {
    let mut html = String::new();
    for (i, remedy) in finding.remedies.iter().enumerate() {
        if i == 0 {
            html.push_str("<h4>What to do</h4>");
        }
        let snippet = remedy.snippet.as_deref().map(|s| format!("<pre tabindex=\"0\">{}</pre>", escaped(s.trim_end())));
        let from = remedy.computed_from.as_deref().map(|from| format!("<p class=\"from\">{}</p>", say(from)));
        html.push_str(&format!(
            "<div class=\"fix\"><p class=\"h\">{}<span>{}</span><span class=\"kind\">{}</span></p>{}{}</div>",
            charts::icon(charts::WRENCH),
            say(&remedy.text),
            words::remedy(remedy.kind),
            from.unwrap_or_default(),
            snippet.unwrap_or_default()
        ));
    }
    html.push_str(&no_help(finding));
    if let Some(confirm) = &finding.confirm {
        html.push_str(&format!("<p class=\"alt\"><b>To confirm:</b> {}</p>", say(confirm)));
    }
    if let Some(estimate) = finding.estimate.as_ref().filter(|e| !e.method.is_empty()) {
        html.push_str(&format!("<p class=\"alt\"><b>The saving:</b> {}</p>", say(&estimate.method)));
    }
    html.push_str(&format!("<p class=\"alt\">Rule <code>{}</code></p>", escaped(&finding.id)));
    html
}

fn no_help(finding: &Finding) -> String {
    if finding.will_not_help.is_empty() {
        return String::new();
    }
    let mut items = String::new();
    for item in &finding.will_not_help {
        items.push_str(&format!("<li><b>{}:</b> {}</li>", say(&item.what), say(&item.because)));
    }
    format!("<h4>Would not help</h4><ul class=\"nohelp\">{items}</ul>")
}
