//! Markdown for a ticket or a pull request.

use super::words::Chapter;
use super::{Look, one_line, words};
use model::{Finding, Millis, Report, Share};
use std::fmt::Write;

/// The report as Markdown.
#[must_use]
pub fn markdown(report: &Report, look: &Look) -> String {
    let report = &words::clean_report(report);
    let mut out = String::new();
    head(&mut out, report, look);
    let chapters = words::chapters(report, look.all);
    for chapter in &chapters {
        finding(&mut out, chapter, report, look);
    }
    if let Some(more) = words::more(&report.summary.more) {
        put(&mut out, format_args!("\nAlso {}.\n", escaped(&more)));
    }
    if look.all {
        counterfactuals(&mut out, report);
    }
    foot(&mut out, report);
    out
}

/// Writing to a string cannot fail.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

fn head(out: &mut String, report: &Report, look: &Look) {
    let name = one_line(&report.application.name);
    put(out, format_args!("## {}\n\n", escaped(if name.is_empty() { "Diagnosis" } else { &name })));
    put(out, format_args!("**{}**\n\n", escaped(&one_line(&report.summary.sentence))));
    let facts: Vec<String> = words::facts(report, look.money.as_ref())
        .into_iter()
        .map(|(label, value)| match label {
            "" => code(&value),
            "Spark" | "ran" | "cost" | "read as" => format!("{label} {}", escaped(&value)),
            _ => format!("{} {label}", escaped(&value)),
        })
        .collect();
    put(out, format_args!("{}\n", facts.join(" · ")));
    time(out, report);
}

fn time(out: &mut String, report: &Report) {
    let total: i64 = report.summary.time.iter().map(|part| part.ms).sum();
    if total <= 0 {
        return;
    }
    put(out, format_args!("\n| Time | Share | Where it went |\n| ---: | ---: | --- |\n"));
    for part in words::parts(&report.summary.time) {
        let share = Share(part.ms as f64 / total as f64);
        put(out, format_args!("| {} | {share} | {} |\n", Millis(part.ms), cell(&part.name)));
    }
}

fn finding(out: &mut String, chapter: &Chapter<'_>, report: &Report, look: &Look) {
    let root = chapter.root;
    put(out, format_args!("\n### {}. {}\n\n", chapter.number, escaped(&one_line(&root.title))));
    let mut facts = vec![format!("{}, {}", words::severity(root.severity), words::certainty(root.confidence))];
    facts.extend(words::place(&root.scope).iter().map(|part| escaped(part)));
    if let Some(saved) = words::saved(root, report.application.wall_ms, look.money.as_ref()) {
        facts.push(format!(
            "{}{}{}",
            if saved.time.is_some() { "saves " } else { "" },
            escaped(&saved.range),
            escaped(&saved.beside)
        ));
    }
    facts.push(code(&root.id));
    put(out, format_args!("{}\n", facts.join(" · ")));
    evidence(out, root);
    remedies(out, root);
    bullets(out, "Would not help", root.will_not_help.iter().map(|w| (&w.what, &w.because)));
    bullets(out, "Looks like, but is not", root.excluded.iter().map(|e| (&e.lookalike, &e.because)));
    if !chapter.follows.is_empty() {
        put(out, format_args!("\nExplains:\n\n"));
        for finding in &chapter.follows {
            put(out, format_args!("- {} ({})\n", escaped(&one_line(&finding.title)), code(&finding.id)));
        }
    }
    if let Some(confirm) = &root.confirm {
        put(out, format_args!("\nTo confirm: {}\n", escaped(&one_line(confirm))));
    }
}

fn evidence(out: &mut String, finding: &Finding) {
    if words::evidence(finding).next().is_none() {
        return;
    }
    put(out, format_args!("\n| Evidence | Value | Limit | Where |\n| --- | ---: | ---: | --- |\n"));
    for item in words::shown(finding) {
        let limit = cell(&item.limit.unwrap_or_default());
        let (label, value) = (cell(&item.label), cell(&item.value));
        put(out, format_args!("| {label} | {value} | {limit} | {} |\n", cell(&item.location)));
    }
}

fn remedies(out: &mut String, finding: &Finding) {
    for (i, remedy) in finding.remedies.iter().enumerate() {
        let lead = if i == 0 { "Fix" } else { "Or" };
        let kind = words::remedy(remedy.kind);
        put(out, format_args!("\n**{lead}** ({kind}): {}\n", escaped(&words::alternative(&one_line(&remedy.text)))));
        if let Some(snippet) = &remedy.snippet {
            let fence = fence(snippet);
            put(out, format_args!("\n{fence}\n{}\n{fence}\n", snippet.trim_end()));
        }
        if let Some(from) = &remedy.computed_from {
            put(out, format_args!("\nComputed from: {}\n", escaped(&one_line(from))));
        }
    }
}

fn bullets<'a>(out: &mut String, title: &str, items: impl Iterator<Item = (&'a String, &'a String)>) {
    for (i, (what, because)) in items.enumerate() {
        if i == 0 {
            put(out, format_args!("\n{title}:\n\n"));
        }
        put(out, format_args!("- {}: {}\n", escaped(&one_line(what)), escaped(&one_line(because))));
    }
}

fn counterfactuals(out: &mut String, report: &Report) {
    if report.summary.counterfactuals.is_empty() {
        return;
    }
    put(
        out,
        format_args!("\n### What if\n\n| Change | Slots | Run time | Core time |\n| --- | ---: | ---: | ---: |\n"),
    );
    for other in &report.summary.counterfactuals {
        let (slots, wall, core) = (words::slots(other.slots), Millis(other.wall_ms), words::core_time(other.core_ms));
        put(out, format_args!("| {} | {slots} | {wall} | {core} |\n", cell(&other.change)));
    }
}

fn foot(out: &mut String, report: &Report) {
    for (title, fine) in [("Checked and fine", true), ("Not judged", false)] {
        let items = report.checked.iter().filter(|c| c.state.is_fine() == fine);
        let what: Vec<String> = items.map(|item| escaped(&one_line(&item.what))).collect();
        if !what.is_empty() {
            put(out, format_args!("\n{title}: {}.\n", what.join(", ")));
        }
    }
    if !report.warnings.is_empty() {
        put(out, format_args!("\nAbout the input:\n\n"));
    }
    for warning in &report.warnings {
        put(out, format_args!("- {}\n", escaped(&one_line(&warning.text))));
    }
}

/// Text in which nothing is read as Markdown or HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let starts_block = text.starts_with(['#', '+', '-', '=', '>', '~'])
        || text.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(['.', ')']);
    if starts_block && !text.starts_with(|c: char| c.is_ascii_digit()) {
        out.push('\\');
    }
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // `@` would call people and `!` begin a picture where the ticket system allows it.
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            '@' => out.push_str("&#64;"),
            _ => out.push(c),
        }
    }
    out
}

pub(super) fn cell(text: &str) -> String {
    escaped(&one_line(text))
}

/// Code in a line, whatever back-ticks it holds.
fn code(text: &str) -> String {
    let text = one_line(text);
    if text.is_empty() {
        return text;
    }
    let ticks = "`".repeat(longest_run(&text, '`') + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

fn fence(text: &str) -> String {
    "`".repeat(longest_run(text, '`').max(2) + 1)
}

fn longest_run(text: &str, of: char) -> usize {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == of { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_names() {
        assert_eq!(escaped("<b>*x* [a](b) @me|"), "&lt;b&gt;\\*x\\* \\[a\\](b) &#64;me\\|");
        assert_eq!(escaped("# head"), "\\# head");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(fence("```\nx\n```"), "````");
    }
}
