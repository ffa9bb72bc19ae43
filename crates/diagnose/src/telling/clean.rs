//! Names from a log are anybody's text: made harmless before anything is shown.

use model::Report;
use serde_json::Value;
use std::borrow::Cow;

/// Replaces what a terminal or a browser would obey instead of show: control characters, and the
/// invisible ones that turn the direction of text or hide a part of it. Line breaks and tabs stay.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match obeyed(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// As [`clean`], on one line: each run of white space becomes one space.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in clean(text).split([' ', '\n', '\t']).filter(|w| !w.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Cleans every text of a report, whatever field it stands in; sentences get their capital.
#[must_use]
pub fn clean_report(report: &Report) -> Report {
    let Ok(mut value) = serde_json::to_value(report) else { return Report::default() };
    clean_value(&mut value);
    let mut report: Report = serde_json::from_value(value).unwrap_or_default();
    report.summary.sentence = super::capital(&report.summary.sentence);
    for finding in &mut report.findings {
        finding.title = super::capital(&finding.title);
    }
    report
}

fn clean_value(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(cleaned) = clean(text) {
                *text = cleaned;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(clean_value),
        Value::Object(fields) => fields.values_mut().for_each(clean_value),
        _ => {}
    }
}

fn obeyed(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' => true,
        // Direction marks and overrides, isolates, zero width, line and paragraph separators.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        // Interlinear annotations and tags.
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelled_out() {
        for (given, shown) in [
            ("plain žluťoučký 表", "plain žluťoučký 表"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{9b}1m", "a\\u{9b}1m"),
            ("zero\u{200b}width", "zero\\u{200b}width"),
            ("two\nlines\tand tab", "two\nlines\tand tab"),
            ("8\u{202f}413", "8\u{202f}413"),
        ] {
            assert_eq!(clean(given), shown);
        }
        assert_eq!(one_line("two\n  lines\u{7}"), "two lines\\u{7}");
    }
}
