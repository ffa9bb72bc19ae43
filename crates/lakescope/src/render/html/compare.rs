//! A comparison of two runs as one HTML file, with the look of a diagnosis.

use super::{charts, escaped, first_clause, say, titled};
use crate::render::compare::{Verdict, facts, shown, signed};
use crate::render::{one_line, words};
use diagnose::compare::{CausePart, Comparison, PieceDelta};
use model::Millis;
use std::fmt::Write;

const STYLE: &str = include_str!("compare.css");
/// Queries and jobs in the table; what differs most comes first.
const MOST_PIECES: usize = 100;
/// Places under a part.
const MOST_PLACES: usize = 12;

/// One HTML file without requests.
#[must_use]
pub fn compare_html(c: &Comparison) -> String {
    let mut body = top(c);
    body.push_str("<main>");
    body.push_str(&head(c));
    body.push_str(&verdict(c));
    body.push_str(&parts(c));
    let _ = write!(body, "<div class=\"pair\">{}{}</div>", runs(c), settings(c));
    body.push_str(&found(c));
    body.push_str(&pieces(c));
    body.push_str("</main>");
    titled(&format!("{} · comparison", one_line(&c.new.name)), STYLE, &body)
}

fn top(c: &Comparison) -> String {
    format!(
        "<header class=\"top\"><span class=\"brand\">{}lakescope</span>\
         <span class=\"crumb\">Comparison <span aria-hidden=\"true\">›</span> <b>{}</b> <code>{}</code></span></header>",
        charts::icon(charts::MARK),
        say(&c.new.name),
        say(&c.new.id)
    )
}

fn head(c: &Comparison) -> String {
    let (class, icon, word) = match Verdict::of(c) {
        Verdict::Failed => ("fail", charts::CROSS, "New run failed"),
        Verdict::Slower => ("warn", charts::TRIANGLE, "Slower"),
        Verdict::Faster => ("ok", charts::CHECK, "Faster"),
        Verdict::Same => ("ok", charts::CHECK, "About the same"),
    };
    let mut facts =
        format!("<span>New <b>{}</b></span><span>Baseline <b>{}</b></span>", say(&c.new.id), say(&c.base.id));
    if c.new.name != c.base.name {
        let _ = write!(facts, "<span>Baseline is <b>{}</b></span>", say(&c.base.name));
    }
    let versions = match c.new.spark_version == c.base.spark_version {
        true => say(&c.new.spark_version),
        false => format!("{}, was {}", say(&c.new.spark_version), say(&c.base.spark_version)),
    };
    let _ = write!(facts, "<span>Spark <b>{versions}</b></span>");
    if let Some((time, day)) = c.new.started_ms.and_then(charts::clock) {
        let _ = write!(facts, "<span>Started <b>{time}</b> {day} UTC</span>");
    }
    if let Some(h) = &c.history {
        let (usual, limit) = (Millis(h.median_ms), Millis(h.limit_ms));
        let _ = write!(facts, "<span>Usually <b>{usual}</b> over {} runs, slower from <b>{limit}</b></span>", h.runs);
    }
    format!(
        "<div class=\"head\"><h1>{}<span class=\"pill {class}\">{}{word}</span></h1><div class=\"facts\">{facts}</div></div>",
        say(&c.new.name),
        charts::icon(icon)
    )
}

fn verdict(c: &Comparison) -> String {
    let sentence = words::capital(&one_line(&c.sentence));
    let (first, rest) = sentence.split_at(first_clause(&sentence));
    format!(
        "<section class=\"card verdict\"><div class=\"vrow\"><p class=\"say\"><b>{}</b>{}{}</p>{}</div></section>",
        say(first),
        if rest.is_empty() { "" } else { " " },
        say(rest.trim_start()),
        saving(c)
    )
}

/// The one number; the time of a failed run is none.
fn saving(c: &Comparison) -> String {
    if c.new.failed.is_some() {
        return String::new();
    }
    let word = if c.delta_ms > 0 { "more" } else { "less" };
    format!(
        "<div class=\"save\"><div class=\"big\">{}</div><div class=\"lab\">{word} than the baseline, {} against {}</div></div>",
        say(&signed(c.delta_ms)),
        say(&Millis(c.new.wall_ms).to_string()),
        say(&Millis(c.base.wall_ms).to_string()),
    )
}

/// Bars from a common zero: what was added to the right of it, what was saved to the left.
struct Scale {
    least: i64,
    most: i64,
}

impl Scale {
    fn of(parts: &[&CausePart]) -> Self {
        let ms = || parts.iter().map(|p| p.ms);
        Self { least: ms().min().unwrap_or(0).min(0), most: ms().max().unwrap_or(0).max(0) }
    }

    fn bar(&self, ms: i64) -> String {
        let whole = (self.most - self.least).max(1) as f64;
        let share = |ms: i64| ms as f64 / whole * 100.0;
        let from = share(ms.min(0) - self.least);
        let class = if ms > 0 { "wait" } else { "less" };
        match ms {
            0 => String::new(),
            _ => format!("<i class=\"{class}\" style=\"margin-left:{from:.1}%;width:{:.1}%\"></i>", share(ms.abs())),
        }
    }
}

fn parts(c: &Comparison) -> String {
    let all = shown(c);
    let scale = Scale::of(&all);
    let mut rows = String::new();
    for part in &all {
        let _ = write!(
            rows,
            "<tr><td>{}</td><td class=\"diff\">{}</td><td class=\"num {}\">{}</td></tr>",
            part.cause.name(),
            scale.bar(part.ms),
            tone(part.ms),
            say(&signed(part.ms))
        );
        for place in part.places.iter().take(MOST_PLACES) {
            let _ = write!(
                rows,
                "<tr class=\"where\"><td colspan=\"2\">{}</td><td class=\"num\">{}</td></tr>",
                say(&words::capital(&place.text)),
                say(&signed(place.ms))
            );
        }
        if let Some(more) = part.places.len().checked_sub(MOST_PLACES).filter(|more| *more > 0) {
            let _ = write!(rows, "<tr class=\"where\"><td colspan=\"3\">and {more} smaller ones</td></tr>");
        }
    }
    let _ = write!(
        rows,
        "<tr class=\"total\"><td>Altogether</td><td></td><td class=\"num {}\">{}</td></tr>",
        tone(c.delta_ms),
        say(&signed(c.delta_ms))
    );
    format!(
        "<section class=\"card\"><div class=\"hd\"><h2>Where the difference comes from</h2>\
         <span class=\"dim\">adds up to the difference of the run times</span></div>\
         <div class=\"wide\"><table class=\"parts\">{rows}</table></div></section>"
    )
}

fn tone(ms: i64) -> &'static str {
    match ms {
        1.. => "up",
        0 => "",
        _ => "down",
    }
}

fn runs(c: &Comparison) -> String {
    let mut rows = String::new();
    for [what, base, new, change] in facts(c) {
        let _ = write!(
            rows,
            "<tr><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num dim\">{}</td></tr>",
            words::capital(&what),
            say(&base),
            say(&new),
            say(&change)
        );
    }
    format!(
        "<section class=\"card\"><div class=\"hd\"><h2>The two runs</h2></div><div class=\"wide\"><table class=\"runs\">\
         <tr><th></th><th class=\"num\">Baseline</th><th class=\"num\">New</th><th class=\"num\">Change</th></tr>{rows}</table></div></section>"
    )
}

fn settings(c: &Comparison) -> String {
    if c.settings.is_empty() {
        return String::new();
    }
    let value =
        |v: &Option<String>| v.as_ref().map_or_else(|| "<span class=\"dim\">unset</span>".to_owned(), |v| say(v));
    let mut rows = String::new();
    for setting in &c.settings {
        let _ = write!(
            rows,
            "<tr><td><code>{}</code></td><td class=\"num\">{}</td><td class=\"num\">{}</td></tr>",
            escaped(&one_line(&setting.key)),
            value(&setting.base),
            value(&setting.new)
        );
    }
    format!(
        "<section class=\"card\"><div class=\"hd\"><h2>Settings that differ</h2></div><div class=\"wide\"><table>\
         <tr><th>Setting</th><th class=\"num\">Baseline</th><th class=\"num\">New</th></tr>{rows}</table></div></section>"
    )
}

fn found(c: &Comparison) -> String {
    let card = |head: &str, list: &[(String, String)]| {
        if list.is_empty() {
            return String::new();
        }
        let rows: String = list
            .iter()
            .map(|(id, title)| {
                format!("<p class=\"found\">{}<code>{}</code></p>", say(&words::capital(title)), escaped(&one_line(id)))
            })
            .collect();
        format!("<section class=\"card\"><div class=\"hd\"><h2>{head}</h2></div>{rows}</section>")
    };
    let cards =
        [card("Found only in the new run", &c.appeared), card("Found only in the baseline", &c.disappeared)].concat();
    if cards.is_empty() { cards } else { format!("<div class=\"pair\">{cards}</div>") }
}

fn pieces(c: &Comparison) -> String {
    if c.pieces.is_empty() {
        return String::new();
    }
    let rows: String = c.pieces.iter().take(MOST_PIECES).map(piece).collect();
    let more = match c.pieces.len().saturating_sub(MOST_PIECES) {
        0 => String::new(),
        more => format!("<p class=\"rest\">And {more} with smaller differences.</p>"),
    };
    format!(
        "<section class=\"card\"><div class=\"hd\"><h2>Queries and jobs</h2><span class=\"dim\">largest difference first</span></div>\
         <div class=\"wide\"><table><tr><th>What</th><th>Baseline</th><th>New</th><th class=\"num\">Before</th>\
         <th class=\"num\">After</th><th class=\"num\">Difference</th></tr>{rows}</table></div>{more}</section>"
    )
}

fn piece(p: &PieceDelta) -> String {
    let key = |k: &Option<String>| k.as_ref().map_or_else(|| "–".to_owned(), |k| say(k));
    let plan = match (p.same_plan, &p.base, &p.new) {
        (false, Some(_), Some(_)) => " <span class=\"dim\">other plan</span>",
        _ => "",
    };
    format!(
        "<tr><td class=\"what\">{}{plan}</td><td>{}</td><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td>\
         <td class=\"num {}\">{}</td></tr>",
        say(&p.name),
        key(&p.base),
        key(&p.new),
        say(&Millis(p.base_ms).to_string()),
        say(&Millis(p.new_ms).to_string()),
        tone(p.new_ms - p.base_ms),
        say(&signed(p.new_ms - p.base_ms))
    )
}
