//! A comparison of two runs: text and Markdown; HTML is a file of its own.

use super::one_line;
use super::text::paper::{Paper, Role, span};
use super::words::{capital, glued};
use diagnose::compare::{Cause, CausePart, Comparison, PieceDelta, Place, Run};
use model::{Bytes, Factor, Millis, Share};
use std::fmt::Write;

/// Places shown of each part, and queries, unless all are asked for.
const FEW: usize = 3;

/// A change with its sign: `+2 m 10 s`, `−4.1 s`.
pub(super) fn signed(ms: i64) -> String {
    if ms > 0 { format!("+{}", Millis(ms)) } else { Millis(ms).to_string() }
}

/// A change as a share, or as a factor where a share would be a large number.
fn change(base: f64, new: f64) -> String {
    let ratio = new / base;
    match () {
        () if base <= 0.0 && new <= 0.0 => "–".to_owned(),
        () if base <= 0.0 => "new".to_owned(),
        () if new <= 0.0 => "gone".to_owned(),
        () if ratio >= 2.0 => Factor(ratio).to_string(),
        () if ratio <= 0.1 => format!("1 / {:.0}", 1.0 / ratio),
        () if (ratio - 1.0).abs() < 0.000_05 => "same".to_owned(),
        () if ratio > 1.0 => format!("+{}", Share(ratio - 1.0)),
        () => format!("−{}", Share(1.0 - ratio)),
    }
}

/// Bytes of input; not compared where the rows show that the same was read: some versions of Spark
/// do not count all the bytes that they read.
fn input_change(base: &Run, new: &Run) -> String {
    let rows = new.input_rows as f64 / base.input_rows.max(1) as f64;
    let same_rows = base.input_rows > 0 && (rows - 1.0).abs() < 0.01;
    let same_bytes = (new.input_bytes - base.input_bytes).abs() * 20 <= base.input_bytes;
    match same_rows && !same_bytes {
        true => "same rows".to_owned(),
        false => change(base.input_bytes as f64, new.input_bytes as f64),
    }
}

/// Parts that are not zero, largest first.
pub(super) fn shown(c: &Comparison) -> Vec<&CausePart> {
    let mut parts: Vec<&CausePart> = c.parts.iter().filter(|p| p.ms != 0 || p.cause == Cause::Unexplained).collect();
    parts.sort_by_key(|p| (p.cause == Cause::Unexplained, std::cmp::Reverse(p.ms.abs())));
    parts
}

/// Places of a part that are worth a line: with everything asked for, all.
fn places<'p>(c: &Comparison, part: &'p CausePart, all: bool) -> Vec<&'p Place> {
    let least = if all { 0 } else { c.base.wall_ms.max(c.new.wall_ms) / 200 };
    part.places.iter().filter(|place| place.ms.abs() >= least).collect()
}

/// Figures of both runs: what, baseline, new, change.
pub(super) fn facts(c: &Comparison) -> Vec<[String; 4]> {
    let bytes = |n: i64| Bytes(n.unsigned_abs()).to_string();
    let (b, n) = (&c.base, &c.new);
    let row = |what: &str, base: String, new: String, change: String| [what.to_owned(), base, new, change];
    let (wall, shuffle) = ((b.wall_ms, n.wall_ms), (b.shuffle_read_bytes, n.shuffle_read_bytes));
    vec![
        row("run time", Millis(wall.0).to_string(), Millis(wall.1).to_string(), change(wall.0 as f64, wall.1 as f64)),
        row("input", bytes(b.input_bytes), bytes(n.input_bytes), input_change(b, n)),
        row("shuffle read", bytes(shuffle.0), bytes(shuffle.1), change(shuffle.0 as f64, shuffle.1 as f64)),
        row("slots", format!("{:.1}", b.slots), format!("{:.1}", n.slots), change(tenths(b.slots), tenths(n.slots))),
    ]
}

/// As shown, so that what looks the same is the same.
fn tenths(slots: f64) -> f64 {
    (slots * 10.0).round() / 10.0
}

/// `nightly · app-2 against app-1`, both names where they differ.
fn pair(c: &Comparison) -> String {
    let (base, new) = (&c.base, &c.new);
    match base.name == new.name {
        true => format!("{} · {} against {}", new.name, new.id, base.id),
        false => format!("{} · {} against {} · {}", new.name, new.id, base.name, base.id),
    }
}

/// What the difference means: worse, better, about the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Failed,
    Slower,
    Faster,
    Same,
}

impl Verdict {
    pub(super) fn of(c: &Comparison) -> Self {
        let share = c.delta_ms as f64 / c.base.wall_ms.max(1) as f64;
        match () {
            () if c.new.failed.is_some() => Self::Failed,
            () if share > 0.05 => Self::Slower,
            () if share < -0.05 => Self::Faster,
            () => Self::Same,
        }
    }

    fn mark(self) -> (Role, &'static str) {
        match self {
            Self::Failed => (Role::Critical, "✖ "),
            Self::Slower => (Role::High, "▲ "),
            Self::Faster => (Role::Good, "▼ "),
            Self::Same => (Role::Strong, "● "),
        }
    }
}

/// For a terminal.
#[must_use]
pub fn compare_text(c: &Comparison, width: usize, all: bool) -> String {
    let mut paper = Paper::new(width);
    let (role, mark) = Verdict::of(c).mark();
    let sentence = glued(&capital(&one_line(&c.sentence)));
    paper.flow(&[span(role, mark)], &[span(Role::Strong, sentence)]);
    paper.blank();
    paper.flow(&[span(Role::Plain, "  ")], &[span(Role::Quiet, one_line(&pair(c)))]);
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
        let places = places(c, part, all);
        for place in places.iter().take(few) {
            let lead = span(Role::Quiet, format!("{:>24}  ", signed(place.ms)));
            paper.flow(&[lead], &[span(Role::Plain, glued(&one_line(&place.text)))]);
        }
        if places.len() > few {
            paper.line(&[span(Role::Quiet, format!("{:>24}  … {} more: --all", "", places.len() - few))]);
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
            paper.flow(&[span(Role::Plain, "  ")], &[span(Role::Plain, glued(&capital(&one_line(title))))]);
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
        if p.same_plan || p.base.is_none() || p.new.is_none() { "" } else { "other plan: " },
        one_line(&p.name)
    )
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
            places(c, part, all).iter().take(few).map(|p| format!("{} {}", signed(p.ms), cell(&p.text))).collect();
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
