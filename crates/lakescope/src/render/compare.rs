//! A comparison of two runs: text, Markdown, HTML.

use super::clean::one_line;
use super::html::{page, say};
use super::text::paper::{Paper, Role, span};
use diagnose::compare::{Cause, CausePart, Comparison, PieceDelta};
use model::{Bytes, Millis, Share};
use std::fmt::Write;

/// Places shown of each part, and queries, unless all are asked for.
const FEW: usize = 3;

/// A change with its sign: `+2 m 10 s`, `−4.1 s`.
fn signed(ms: i64) -> String {
    if ms > 0 { format!("+{}", Millis(ms)) } else { Millis(ms).to_string() }
}

fn change(base: i64, new: i64) -> String {
    match (base, new) {
        (0, 0) => return "–".to_owned(),
        (..=0, _) => return "new".to_owned(),
        _ => {}
    }
    let share = (new - base) as f64 / base as f64;
    if share >= 0.0 { format!("+{}", Share(share)) } else { format!("−{}", Share(-share)) }
}

/// Parts that are not zero, largest first.
fn shown(c: &Comparison) -> Vec<&CausePart> {
    let mut parts: Vec<&CausePart> = c.parts.iter().filter(|p| p.ms != 0 || p.cause == Cause::Unexplained).collect();
    parts.sort_by_key(|p| (p.cause == Cause::Unexplained, std::cmp::Reverse(p.ms.abs())));
    parts
}

fn facts(c: &Comparison) -> Vec<[String; 4]> {
    let bytes = |n: i64| Bytes(n.unsigned_abs()).to_string();
    let (b, n) = (&c.base, &c.new);
    vec![
        ["run time".into(), Millis(b.wall_ms).to_string(), Millis(n.wall_ms).to_string(), change(b.wall_ms, n.wall_ms)],
        ["input".into(), bytes(b.input_bytes), bytes(n.input_bytes), change(b.input_bytes, n.input_bytes)],
        [
            "shuffle read".into(),
            bytes(b.shuffle_read_bytes),
            bytes(n.shuffle_read_bytes),
            change(b.shuffle_read_bytes, n.shuffle_read_bytes),
        ],
        [
            "slots".into(),
            format!("{:.1}", b.slots),
            format!("{:.1}", n.slots),
            change((b.slots * 10.0) as i64, (n.slots * 10.0) as i64),
        ],
    ]
}

/// For a terminal.
#[must_use]
pub fn compare_text(c: &Comparison, width: usize, all: bool) -> String {
    let mut paper = Paper::new(width);
    let role = match c.delta_ms {
        d if d as f64 > 0.05 * c.base.wall_ms as f64 => Role::High,
        d if (d as f64) < -0.05 * c.base.wall_ms as f64 => Role::Good,
        _ => Role::Strong,
    };
    paper.flow(&[span(role, "▲▼ ")], &[span(Role::Strong, capital(&one_line(&c.sentence)))]);
    paper.blank();
    paper.flow(
        &[span(Role::Plain, "  ")],
        &[span(Role::Quiet, format!("{} · {} against {}", one_line(&c.new.name), c.new.id, c.base.id))],
    );
    for [what, base, new, change] in facts(c) {
        paper.line(&[span(Role::Plain, format!("  {what:<14}{base:>12} → {new:<12}{change:>9}"))]);
    }
    if let Some(h) = &c.history {
        let text = format!("usually {} over {} runs, slower from {}", Millis(h.median_ms), h.runs, Millis(h.limit_ms));
        paper.flow(&[span(Role::Plain, "  ")], &[span(Role::Quiet, text)]);
    }
    paper.blank();
    parts_text(&mut paper, c, all);
    lists_text(&mut paper, c, all);
    paper.finish()
}

fn parts_text(paper: &mut Paper, c: &Comparison, all: bool) {
    for part in shown(c) {
        let role = if part.ms > 0 && part.cause != Cause::Unexplained { Role::High } else { Role::Quiet };
        paper.line(&[span(role, format!("{:>11}  ", signed(part.ms))), span(Role::Strong, part.cause.name())]);
        let few = if all { usize::MAX } else { FEW };
        for place in part.places.iter().take(few) {
            let lead = span(Role::Quiet, format!("{:>24}  ", signed(place.ms)));
            paper.flow(&[lead], &[span(Role::Plain, one_line(&place.text))]);
        }
        if part.places.len() > few {
            paper.line(&[span(Role::Quiet, format!("{:>24}  … {} more: --all", "", part.places.len() - few))]);
        }
    }
    paper.line(&[span(Role::Strong, format!("{:>11}  altogether", signed(c.delta_ms)))]);
}

fn lists_text(paper: &mut Paper, c: &Comparison, all: bool) {
    for (head, list) in [("only in the new run", &c.appeared), ("only in the baseline", &c.disappeared)] {
        if !list.is_empty() {
            paper.blank();
            paper.line(&[span(Role::Strong, head)]);
        }
        for (_, title) in list.iter().take(if all { usize::MAX } else { FEW }) {
            paper.flow(&[span(Role::Plain, "  ")], &[span(Role::Plain, capital(&one_line(title)))]);
        }
    }
    if !c.settings.is_empty() {
        paper.blank();
        paper.line(&[span(Role::Strong, "settings that differ")]);
    }
    for setting in c.settings.iter().take(if all { usize::MAX } else { 2 * FEW }) {
        paper.flow(&[span(Role::Plain, "  ")], &[span(Role::Plain, one_line(&setting.to_string()))]);
    }
    if all && !c.pieces.is_empty() {
        paper.blank();
        paper.line(&[span(Role::Strong, "queries and jobs, largest difference first")]);
        for piece in &c.pieces {
            paper.line(&[span(Role::Plain, format!("  {}", piece_line(piece)))]);
        }
    }
}

fn piece_line(p: &PieceDelta) -> String {
    let key = |k: &Option<String>| k.clone().unwrap_or_else(|| "–".to_owned());
    format!(
        "{:>9} → {:<9} {:>10} → {:<10} {:>10}  {}{}",
        key(&p.base),
        key(&p.new),
        Millis(p.base_ms).to_string(),
        Millis(p.new_ms).to_string(),
        signed(p.new_ms - p.base_ms),
        if p.same_plan { "" } else { "other plan: " },
        one_line(&p.name)
    )
}

/// First letter large, as a sentence begins.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |c| c.to_uppercase().chain(letters).collect())
}

/// For a ticket.
#[must_use]
pub fn compare_markdown(c: &Comparison, all: bool) -> String {
    let mut out =
        format!("## {}\n\n| | baseline | new | change |\n| --- | ---: | ---: | ---: |\n", cell(&capital(&c.sentence)));
    for row in facts(c) {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    out.push_str("\n| time | cause | where |\n| ---: | --- | --- |\n");
    for part in shown(c) {
        let few = if all { usize::MAX } else { FEW };
        let places: Vec<String> =
            part.places.iter().take(few).map(|p| format!("{} {}", signed(p.ms), cell(&p.text))).collect();
        let _ = writeln!(out, "| {} | {} | {} |", signed(part.ms), part.cause.name(), places.join("<br>"));
    }
    let _ = writeln!(out, "| **{}** | **altogether** | |", signed(c.delta_ms));
    for setting in &c.settings {
        let _ = writeln!(out, "\n- {}", cell(&setting.to_string()));
    }
    out
}

/// Text of one line in which nothing is read as Markdown or HTML.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// One HTML file without requests.
#[must_use]
pub fn compare_html(c: &Comparison) -> String {
    let mut body = format!(
        "<main><div class=\"head\"><h1>{}</h1><div class=\"facts\"><span>{} against {}</span></div></div>\
         <section class=\"card verdict\"><div class=\"vrow\"><p class=\"say\">{}</p></div></section>",
        say(&c.new.name),
        say(&c.new.id),
        say(&c.base.id),
        say(&capital(&c.sentence)),
    );
    body.push_str("<section class=\"card\"><h2>The two runs</h2><table><thead><tr><th></th><th>Baseline</th><th>New</th><th>Change</th></tr></thead><tbody>");
    for [what, base, new, change] in facts(c) {
        let _ = write!(
            body,
            "<tr><td>{what}</td><td class=\"num\">{base}</td><td class=\"num\">{new}</td><td class=\"num\">{change}</td></tr>"
        );
    }
    body.push_str("</tbody></table></section><section class=\"card\"><h2>Where the difference comes from</h2><table><thead><tr><th>Time</th><th>Cause</th><th>Where</th></tr></thead><tbody>");
    for part in shown(c) {
        let places: String =
            part.places.iter().map(|p| format!("<div>{} {}</div>", say(&signed(p.ms)), say(&p.text))).collect();
        let _ = write!(
            body,
            "<tr><td class=\"num\">{}</td><td>{}</td><td>{places}</td></tr>",
            say(&signed(part.ms)),
            part.cause.name()
        );
    }
    let _ = write!(
        body,
        "<tr><td class=\"num\"><b>{}</b></td><td><b>altogether</b></td><td></td></tr></tbody></table></section>",
        say(&signed(c.delta_ms))
    );
    body.push_str("<section class=\"card\"><h2>Queries and jobs</h2><table><thead><tr><th>Baseline</th><th>New</th><th>Before</th><th>After</th><th>Difference</th><th>What</th></tr></thead><tbody>");
    for p in &c.pieces {
        let key = |k: &Option<String>| k.clone().unwrap_or_else(|| "–".to_owned());
        let _ = write!(
            body,
            "<tr><td>{}</td><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td>{}</td></tr>",
            key(&p.base),
            key(&p.new),
            Millis(p.base_ms),
            Millis(p.new_ms),
            say(&signed(p.new_ms - p.base_ms)),
            say(&p.name)
        );
    }
    body.push_str("</tbody></table></section>");
    if !c.settings.is_empty() {
        let list: String = c.settings.iter().map(|s| format!("<li>{}</li>", say(&s.to_string()))).collect();
        let _ = write!(body, "<section class=\"card\"><h2>Settings that differ</h2><ul>{list}</ul></section>");
    }
    body.push_str("</main>");
    page(&one_line(&c.new.name), &body)
}
