//! Findings as text, each told as fully as there is room.

use super::paper::{Paper, Role, Span, span};
use super::{severity_mark, severity_role};
use crate::render::words::Chapter;
use crate::render::{Look, words};
use model::{Finding, Remedy, Report};
use unicode_width::UnicodeWidthStr;

/// How much of a finding is told; each level contains the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// Title and what it saves.
    Title,
    /// Place and the first remedy.
    Brief,
    /// Evidence, consequences, what would not help.
    Full,
    /// Lines to copy.
    Copy,
    /// Everything.
    All,
}

const INDENT: &str = "    ";
const LABEL_WIDTH: usize = 10;

/// All findings; within `room` lines unless everything is asked for.
pub fn findings(report: &Report, look: &Look, room: usize) -> Paper {
    let chapters = words::chapters(report, look.all);
    let mut page = Paper::new(look.width);
    if chapters.is_empty() {
        return page;
    }
    let details = match look.all {
        true => vec![Detail::All; chapters.len()],
        false => fitting(&chapters, report, look, room),
    };
    let mut before = Detail::Title;
    for (chapter, detail) in chapters.iter().zip(&details) {
        // A list of titles is set apart from a finding that is told above it.
        if *detail == Detail::Title && before > Detail::Title {
            page.blank();
        }
        before = *detail;
        page.append(told(chapter, report, look, *detail));
    }
    remainder(&mut page, &chapters[details.len()..], report, look);
    page
}

/// The fullest telling that fits: every finding by title first, then more and more of each, the
/// worst first. Titles that do not fit are counted only.
fn fitting(chapters: &[Chapter<'_>], report: &Report, look: &Look, room: usize) -> Vec<Detail> {
    let lines = |chapter: &Chapter<'_>, detail| told(chapter, report, look, detail).len();
    let mut details = Vec::new();
    // Three lines are kept: what is left out, and a blank one on either side of the list.
    let mut free = room.saturating_sub(3);
    for chapter in chapters {
        let needed = lines(chapter, Detail::Title);
        if needed > free && !details.is_empty() {
            break;
        }
        free = free.saturating_sub(needed);
        details.push(Detail::Title);
    }
    // The worst finding is told in full before the next is told briefly.
    let order = [(0, Detail::Brief), (0, Detail::Full), (0, Detail::Copy), (1, Detail::Brief)];
    let rest = [Detail::Brief, Detail::Full, Detail::Copy];
    let rest = rest.into_iter().flat_map(|detail| (1..details.len()).map(move |at| (at, detail)));
    for (at, detail) in order.into_iter().chain(rest.collect::<Vec<_>>()) {
        let (Some(chapter), Some(now)) = (chapters.get(at), details.get(at).copied()) else { continue };
        if now >= detail {
            continue;
        }
        let more = lines(chapter, detail).saturating_sub(lines(chapter, now));
        if more <= free {
            free -= more;
            details[at] = detail;
        }
    }
    details
}

fn told(chapter: &Chapter<'_>, report: &Report, look: &Look, detail: Detail) -> Paper {
    let mut page = Paper::new(look.width);
    if detail > Detail::Title || chapter.number == 1 {
        page.blank();
    }
    title(&mut page, chapter, report, look, detail);
    if detail >= Detail::Full {
        evidence(&mut page, chapter.root, detail);
        consequences(&mut page, chapter, detail);
    }
    if detail >= Detail::Brief {
        remedies(&mut page, chapter.root, detail);
    }
    if detail >= Detail::Full {
        no_help(&mut page, chapter.root);
    }
    if detail == Detail::All {
        reasons(&mut page, chapter.root);
    }
    page
}

fn title(page: &mut Paper, chapter: &Chapter<'_>, report: &Report, look: &Look, detail: Detail) {
    let root = chapter.root;
    let role = severity_role(root.severity);
    let lead = [
        span(Role::Strong, format!("{} ", chapter.number)),
        span(role, format!("{} ", severity_mark(Some(root.severity)))),
    ];
    let saved = words::saved(root, report.application.wall_ms, look.money.as_ref());
    // What the verdict says word for word is not said twice.
    let repeated = chapter.number == 1 && detail > Detail::Title && root.title == report.summary.sentence;
    let mut head = vec![span(Role::Strong, words::glued(&root.title))];
    if detail == Detail::Title {
        // A title that ends in its saving is enough.
        let said = root.evidence.iter().any(|e| e.metric == "wall_ms");
        if let Some(time) = saved.filter(|_| !said).and_then(|s| s.time) {
            head.push(span(Role::Quiet, format!("  {}", words::glued(&time))));
        }
        page.flow(&lead, &head);
        return;
    }
    if !repeated {
        page.flow(&lead, &head);
    }
    let mut spans = vec![
        span(role, words::severity(root.severity)),
        span(Role::Quiet, format!(", {}", words::certainty(root.confidence))),
    ];
    for part in words::place(&root.scope) {
        spans.push(span(Role::Quiet, format!(" · {}", unbroken(&part))));
    }
    if let Some(saved) = saved {
        let what = if saved.time.is_some() { "saves " } else { "" };
        spans.push(span(Role::Quiet, " · "));
        spans.push(span(Role::Plain, format!("{what}{}", words::glued(&format!("{}{}", saved.range, saved.beside)))));
    }
    match repeated {
        true => page.flow(&lead, &spans),
        false => page.flow(&[span(Role::Plain, INDENT)], &spans),
    }
}

/// Short parts of a place stay on one line.
fn unbroken(part: &str) -> String {
    const SHORT: usize = 28;
    if part.chars().count() <= SHORT { part.replace(' ', "\u{a0}") } else { part.to_owned() }
}

/// A label in its column, with the text beside it.
fn labelled(page: &mut Paper, label: &str, spans: &[Span]) {
    let lead = format!("{INDENT}{label:<LABEL_WIDTH$}");
    page.flow(&[span(Role::Quiet, lead)], spans);
}

fn evidence(page: &mut Paper, finding: &Finding, detail: Detail) {
    if detail == Detail::All {
        return super::tables::evidence(page, finding, INDENT);
    }
    const SHOWN: usize = 4;
    let numbers = words::telling(finding, SHOWN);
    if !numbers.is_empty() {
        labelled(page, "shown by", &[span(Role::Plain, numbers.join(" · "))]);
    }
}

fn consequences(page: &mut Paper, chapter: &Chapter<'_>, detail: Detail) {
    const SHOWN: usize = 3;
    let shown = if detail == Detail::All { chapter.follows.len() } else { SHOWN };
    for (i, finding) in chapter.follows.iter().take(shown).enumerate() {
        let label = if i == 0 { "explains" } else { "" };
        labelled(page, label, &[span(Role::Plain, words::glued(&finding.title))]);
    }
    if chapter.follows.len() > shown {
        let rest = format!("and {} more", chapter.follows.len() - shown);
        labelled(page, "", &[span(Role::Quiet, rest)]);
    }
}

fn remedies(page: &mut Paper, finding: &Finding, detail: Detail) {
    let shown = match detail {
        Detail::All => finding.remedies.len(),
        Detail::Full | Detail::Copy => 2,
        _ => 1,
    };
    for (i, remedy) in finding.remedies.iter().take(shown).enumerate() {
        let label = if i == 0 { "fix" } else { "or" };
        labelled(page, label, &[span(Role::Plain, words::glued(&words::alternative(&remedy.text)))]);
        let lines = match (detail, i) {
            (Detail::All, _) => usize::MAX,
            (Detail::Copy, 0) => 6,
            _ => 0,
        };
        snippet(page, remedy, lines);
        if let (Detail::All, Some(from)) = (detail, &remedy.computed_from) {
            labelled(page, "", &[span(Role::Quiet, words::glued(from))]);
        }
    }
}

/// Lines to copy, as they are. More than `max` lines, or too wide ones, are left to `--all`, which
/// lets them run past the edge: cut code is worse than a long line.
fn snippet(page: &mut Paper, remedy: &Remedy, max: usize) {
    let Some(text) = &remedy.snippet else { return };
    let lead = " ".repeat(INDENT.len() + LABEL_WIDTH);
    let text = text.replace('\t', "    ");
    let wide = text.lines().any(|line| lead.len() + line.width() > page.width());
    if text.lines().count() > max || (wide && max < usize::MAX) {
        return;
    }
    for line in text.lines() {
        page.verbatim(&[span(Role::Plain, lead.clone()), span(Role::Code, line)]);
    }
}

fn no_help(page: &mut Paper, finding: &Finding) {
    for (i, item) in finding.will_not_help.iter().enumerate() {
        let label = if i == 0 { "no help" } else { "" };
        let text = format!("{}: {}", item.what, item.because);
        labelled(page, label, &[span(Role::Plain, words::glued(&text))]);
    }
}

fn reasons(page: &mut Paper, finding: &Finding) {
    for (i, item) in finding.excluded.iter().enumerate() {
        let label = if i == 0 { "not" } else { "" };
        let text = format!("{}: {}", item.lookalike, item.because);
        labelled(page, label, &[span(Role::Plain, words::glued(&text))]);
    }
    let estimate = finding.estimate.as_ref().map(|estimate| &estimate.method).filter(|method| !method.is_empty());
    let links = (!finding.links.is_empty()).then(|| finding.links.join("  "));
    let id = Some(&finding.id);
    for (label, text) in [
        ("sure", finding.confidence_because.as_ref()),
        ("saving", estimate),
        ("confirm", finding.confirm.as_ref()),
        ("see", links.as_ref()),
        ("rule", id),
    ] {
        if let Some(text) = text {
            labelled(page, label, &[span(Role::Quiet, words::glued(text))]);
        }
    }
}

/// What is not told, so that nothing is left out in silence.
fn remainder(page: &mut Paper, untold: &[Chapter<'_>], report: &Report, look: &Look) {
    let mut left = Vec::new();
    if !untold.is_empty() {
        left.push(format!("{} more findings", untold.len()));
    }
    let quiet = if look.all { 0 } else { words::quiet_roots(report) };
    if quiet > 0 {
        left.push(format!("{quiet} worth knowing"));
    }
    left.extend(words::more(&report.summary.more));
    if left.is_empty() {
        return;
    }
    let how = if look.all { "" } else { ": --all" };
    page.blank();
    page.flow(&[span(Role::Quiet, "… ")], &[span(Role::Quiet, format!("{}{how}", left.join(", ")))]);
}
