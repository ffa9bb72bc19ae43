//! Lines of styled words on a page of a given width.

use anstyle::{AnsiColor, Color, Effects, Style};
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What a piece of text is, from which its look follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Plain,
    Strong,
    Quiet,
    Critical,
    High,
    Medium,
    Good,
    Code,
    Wait,
    Compute,
    Shuffle,
    Collect,
    Driver,
}

impl Role {
    fn style(self) -> Style {
        let bright = |c: AnsiColor| Style::new().fg_color(Some(Color::Ansi(c)));
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().effects(Effects::BOLD),
            Self::Quiet | Self::Driver => Style::new().effects(Effects::DIMMED),
            Self::Critical => bright(AnsiColor::Red).effects(Effects::BOLD),
            Self::High | Self::Wait => bright(AnsiColor::Red),
            Self::Medium | Self::Collect => bright(AnsiColor::Yellow),
            Self::Good => bright(AnsiColor::Green),
            Self::Code => bright(AnsiColor::Cyan),
            Self::Compute => bright(AnsiColor::Blue),
            Self::Shuffle => bright(AnsiColor::Magenta),
        }
    }
}

/// A piece of text in one look.
#[derive(Clone, Debug)]
pub struct Span {
    role: Role,
    text: String,
}

/// Makes a span.
pub fn span(role: Role, text: impl Into<String>) -> Span {
    Span { role, text: text.into() }
}

/// Lines of a page. They carry ANSI styles; whoever prints them takes these away where they are
/// not wanted.
#[derive(Debug)]
pub struct Paper {
    width: usize,
    lines: Vec<String>,
}

/// A word: pieces in one or more looks with no place to break between them.
#[derive(Default)]
struct Word {
    pieces: Vec<Span>,
    width: usize,
}

impl Paper {
    pub fn new(width: usize) -> Self {
        Self { width: width.max(20), lines: Vec::new() }
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn len(&self) -> usize {
        self.lines.len()
    }

    pub fn blank(&mut self) {
        self.lines.push(String::new());
    }

    /// Appends the lines of another page.
    pub fn append(&mut self, other: Self) {
        self.lines.extend(other.lines);
    }

    /// Flows spans over as many lines as they need: the first begins with `lead`, the rest stand
    /// under what follows it.
    pub fn flow(&mut self, lead: &[Span], spans: &[Span]) {
        let indent: usize = lead.iter().map(|s| s.text.width()).sum();
        let indent = indent.min(self.width / 2);
        let room = self.width - indent;
        let mut line = lead.to_vec();
        let mut used = 0;
        for mut word in words(spans) {
            if used > 0 && used + 1 + word.width <= room {
                line.push(span(Role::Plain, " "));
                used += 1;
            } else if used > 0 {
                self.lines.push(styled(&line));
                line = vec![span(Role::Plain, " ".repeat(indent))];
                used = 0;
            }
            while word.width > room {
                let head = word.split(room);
                line.extend(head.pieces);
                self.lines.push(styled(&line));
                line = vec![span(Role::Plain, " ".repeat(indent))];
            }
            used += word.width;
            line.extend(word.pieces);
        }
        self.lines.push(styled(&line));
    }

    /// Puts one line as it is, however wide.
    pub fn verbatim(&mut self, spans: &[Span]) {
        self.lines.push(styled(spans));
    }

    /// Puts one line as it is, cut to the width.
    pub fn line(&mut self, spans: &[Span]) {
        let mut room = self.width;
        let mut line = Vec::new();
        for piece in spans {
            let (text, width) = fitting(&piece.text, room);
            line.push(span(piece.role, text));
            room -= width;
            if width < piece.text.width() {
                break;
            }
        }
        self.lines.push(styled(&line));
    }

    /// The text with ANSI styles.
    pub fn finish(self) -> String {
        let mut text = String::new();
        for line in self.lines {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

impl Word {
    fn push(&mut self, role: Role, text: &str) {
        self.width += text.width();
        self.pieces.push(span(role, text));
    }

    /// Takes off as much as fits; at least one character.
    fn split(&mut self, room: usize) -> Self {
        let mut head = Self::default();
        while let Some(piece) = self.pieces.first_mut() {
            let (taken, width) = fitting(&piece.text, room - head.width);
            let (taken, width) = match (taken.is_empty(), head.width, piece.text.chars().next()) {
                (true, 0, Some(c)) => (c.to_string(), c.width().unwrap_or(0)),
                _ => (taken, width),
            };
            if taken.is_empty() {
                break;
            }
            piece.text.drain(..taken.len());
            self.width -= width;
            head.width += width;
            head.pieces.push(span(piece.role, taken));
            match piece.text.is_empty() {
                true => drop(self.pieces.remove(0)),
                false => break,
            }
        }
        head
    }
}

/// The longest beginning of a text that fits, and its width.
fn fitting(text: &str, room: usize) -> (String, usize) {
    let mut width = 0;
    let mut taken = String::new();
    for c in text.chars() {
        let next = width + c.width().unwrap_or(0);
        if next > room {
            break;
        }
        width = next;
        taken.push(c);
    }
    (taken, width)
}

fn words(spans: &[Span]) -> Vec<Word> {
    let mut words = vec![Word::default()];
    for piece in spans {
        for (i, part) in piece.text.split([' ', '\n', '\t']).enumerate() {
            if i > 0 {
                words.push(Word::default());
            }
            if let (false, Some(word)) = (part.is_empty(), words.last_mut()) {
                word.push(piece.role, part);
            }
        }
    }
    words.retain(|word| word.width > 0);
    words
}

/// Writes spans with their styles. No-break spaces have done their work and become plain ones,
/// so that what is copied can be searched for.
fn styled(line: &[Span]) -> String {
    let mut text = String::new();
    for piece in line {
        let style = piece.role.style();
        let shown = piece.text.replace('\u{a0}', " ");
        let _ = match style.is_plain() {
            true => write!(text, "{shown}"),
            false => write!(text, "{style}{shown}{style:#}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flowed(width: usize, lead: &str, text: &str) -> String {
        let mut paper = Paper::new(width);
        paper.flow(&[span(Role::Plain, lead)], &[span(Role::Plain, text)]);
        paper.finish()
    }

    #[test]
    fn words_flow_under_their_lead() {
        assert_eq!(flowed(20, "1 ", "one two three four five six"), "1 one two three four\n  five six\n");
        assert_eq!(flowed(20, "", "a\u{a0}b cccccccccccccccccc"), "a b\ncccccccccccccccccc\n");
    }

    #[test]
    fn a_long_word_is_broken_and_wide_ones_are_measured() {
        assert_eq!(flowed(20, "", &"x".repeat(45)).lines().map(str::len).collect::<Vec<_>>(), [20, 20, 5]);
        assert_eq!(
            flowed(20, "", &"表".repeat(25)).lines().map(|l| l.chars().count()).collect::<Vec<_>>(),
            [10, 10, 5]
        );
    }

    #[test]
    fn looks_change_inside_a_word() {
        let mut paper = Paper::new(30);
        paper.flow(&[], &[span(Role::Strong, "stage"), span(Role::Plain, ","), span(Role::Quiet, " then")]);
        assert_eq!(anstream::adapter::strip_str(&paper.finish()).to_string(), "stage, then\n");
    }
}
