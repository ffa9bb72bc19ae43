//! Faults as people and programs read them.

use super::tree::Fault;
use serde_json::{Value, json};
use std::fmt::Write;

/// Most columns of a line that is shown.
const WIDEST: usize = 160;

/// Orders faults by file and place; one that is told twice stands once.
pub fn sort(faults: &mut Vec<Fault>) {
    let key = |fault: &Fault| (fault.place.source.name.clone(), fault.place.line, fault.place.column);
    faults.sort_by_key(key);
    faults.dedup_by(|a, b| key(a) == key(b) && a.why == b.why);
}

/// Each fault with its place, the line and a mark under what is meant.
pub fn text(faults: &[Fault]) -> String {
    let mut out = String::new();
    for Fault { place, why } in faults {
        let _ = writeln!(out, "{}:{}:{}: {why}", place.source.name, place.line, place.column);
        let line = place.source.text.lines().nth(place.line - 1).unwrap_or_default();
        // A long line is shown from a little before the place.
        let skipped = if place.column > WIDEST * 3 / 4 { place.column - WIDEST / 4 } else { 0 };
        let shown: String = line.chars().skip(skipped).take(WIDEST).map(printable).collect();
        let before = shown.chars().take(place.column - 1 - skipped);
        let room = shown.trim_end().chars().count().saturating_sub(place.column - 1 - skipped);
        let indent: usize = before.map(width).sum();
        let marked = shown.chars().skip(place.column - 1 - skipped).take(place.length.clamp(1, room.max(1)));
        let marked: usize = marked.map(width).sum();
        let _ =
            writeln!(out, "{:>5} | {shown}\n      | {}{}", place.line, " ".repeat(indent), "^".repeat(marked.max(1)));
    }
    out
}

fn printable(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

fn width(c: char) -> usize {
    unicode_width::UnicodeWidthChar::width(c).unwrap_or(1)
}

/// The same for programs.
pub fn json(faults: &[Fault]) -> Value {
    let one = |Fault { place, why }: &Fault| json!({ "file": place.source.name, "line": place.line, "column": place.column, "message": why });
    faults.iter().map(one).collect()
}
