//! Gives every name in a log another one, to show that no finding comes from a name.

use model::{Application, Operator};
use std::collections::BTreeSet;

/// Replaces the application's name, the columns and the tables of its plans.
#[must_use]
pub fn rename(log: &[u8], app: &Application) -> Vec<u8> {
    let text = String::from_utf8_lossy(log);
    let mut names: BTreeSet<String> = columns(&text);
    names.extend(tables(app));
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        // A damaged line must stay as damaged as it was.
        out.push_str(&rename_words(line, &names));
        out.push('\n');
    }
    let name = serde_json::to_string(&*app.name).unwrap_or_default();
    let inner = name.trim_matches('"');
    let renamed =
        if inner.is_empty() { out } else { out.replace(&format!("\"App Name\":{name}"), "\"App Name\":\"another\"") };
    match text.ends_with('\n') {
        true => renamed.into_bytes(),
        false => renamed.trim_end_matches('\n').as_bytes().to_vec(),
    }
}

/// Names before `#12`: attributes of plans. Names that are words of Spark's own are left alone.
fn columns(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut keys = BTreeSet::new();
    for (at, _) in text.match_indices('#') {
        let digits = text[at + 1..].starts_with(|c: char| c.is_ascii_digit());
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let begin = text[..at].char_indices().rev().find(|(_, c)| !word(*c)).map_or(0, |(i, c)| i + c.len_utf8());
        let name = &text[begin..at];
        let own = name.len() > 3 && !name.starts_with("_") && !name.starts_with("pythonUDF");
        let known = found.contains(name) || keys.contains(name);
        if digits && own && !SPARKS_OWN.contains(&name) && !known {
            let set = if is_key(text, name) { &mut keys } else { &mut found };
            set.insert(name.to_owned());
        }
    }
    found
}

/// Whether events have a field of this name, as those of Delta's own snapshot queries do.
fn is_key(text: &str, name: &str) -> bool {
    text.contains(&format!("\"{name}\":"))
}

/// Attribute names that Spark makes, and words that stand elsewhere in a log.
const SPARKS_OWN: [&str; 24] = [
    "count",
    "first",
    "last",
    "value",
    "sum",
    "max",
    "min",
    "avg",
    "name",
    "path",
    "files",
    "bytes",
    "rows",
    "stage",
    "window",
    "date",
    "time",
    "timestamp",
    "batch",
    "partition",
    "description",
    "type",
    "version",
    "size",
];

fn tables(app: &Application) -> impl Iterator<Item = String> + '_ {
    let scans = app.sql.iter().flat_map(|s| &s.plan().nodes).filter_map(|n| match &n.op {
        Operator::Scan(scan) => scan.table.clone(),
        _ => None,
    });
    scans.filter_map(|t| t.rsplit('.').next().map(str::to_owned)).filter(|t| t.len() > 3)
}

/// Replaces whole words; `order_id` becomes `x_order_id`'s mirror, so that no length changes.
fn rename_words(line: &str, names: &BTreeSet<String>) -> String {
    let mut out = String::with_capacity(line.len());
    let mut word = String::new();
    for c in line.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        push_word(&mut out, &mut word, names);
        out.push(c);
    }
    push_word(&mut out, &mut word, names);
    out
}

fn push_word(out: &mut String, word: &mut String, names: &BTreeSet<String>) {
    match names.contains(word.as_str()) {
        // The same length in other letters: byte counts of a log stay what they were.
        true => out.extend(word.chars().map(|c| if c.is_ascii_alphabetic() { shifted(c) } else { c })),
        false => out.push_str(word),
    }
    word.clear();
}

fn shifted(c: char) -> char {
    match c {
        'z' => 'a',
        'Z' => 'A',
        c => char::from(c as u8 + 1),
    }
}
