//! Takes secrets out of a stream of bytes.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// Stands where a secret was.
pub const REDACTED: &str = "[REDACTED]";

/// Shorter values are left in the output, bytes: they would be found everywhere.
pub const SHORTEST_SECRET_BYTES: usize = 4;

/// Lines of a value of several lines that are shorter than this are too common to stand alone.
const SHORTEST_LINE_BYTES: usize = 8;

/// Bytes that `base64` puts on one line of 76 characters.
const BASE64_LINE_BYTES: usize = 57;

/// All forms of all secrets.
#[derive(Debug)]
pub(super) struct Patterns {
    finder: AhoCorasick,
    /// In order.
    forms: Vec<Vec<u8>>,
    /// Which bytes a form may begin with.
    first: [bool; 256],
    longest: usize,
}

impl Patterns {
    /// `None`: there is nothing to look for.
    pub(super) fn of<'a>(values: impl Iterator<Item = &'a str>) -> io::Result<Option<Arc<Self>>> {
        let mut forms = BTreeSet::new();
        values.for_each(|value| add_forms(value, &mut forms));
        if forms.is_empty() {
            return Ok(None);
        }
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            // The faster kind takes tens of MB for a key of some KB, in each shim.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&forms)
            .map_err(|e| io::Error::new(ErrorKind::InvalidInput, format!("secrets are too long: {e}; shorten them")))?;
        let mut first = [false; 256];
        forms.iter().for_each(|form| first[usize::from(form[0])] = true);
        let longest = forms.iter().map(Vec::len).max().unwrap_or_default();
        Ok(Some(Arc::new(Self { finder, forms: forms.into_iter().collect(), first, longest })))
    }

    /// First position from `from` on where a form may have begun that goes on after the end.
    fn open_from(&self, bytes: &[u8], from: usize) -> usize {
        let from = from.max(bytes.len().saturating_sub(self.longest - 1));
        (from..bytes.len()).find(|&at| self.may_go_on(&bytes[at..])).unwrap_or(bytes.len())
    }

    /// First position from `from` on where a form begins that the end of the stream cuts off.
    fn cut_off_from(&self, bytes: &[u8], from: usize) -> usize {
        let last = (bytes.len() + 1).saturating_sub(SHORTEST_SECRET_BYTES);
        let is_cut_off = |rest: &[u8]| self.may_go_on(rest) || self.is_form(rest);
        (from..last).find(|&at| is_cut_off(&bytes[at..])).unwrap_or(bytes.len())
    }

    /// Whether a form begins with these bytes and is longer; such a one comes next in the order.
    fn may_go_on(&self, rest: &[u8]) -> bool {
        let next = || self.forms.get(self.forms.partition_point(|form| form.as_slice() <= rest));
        self.first[usize::from(rest[0])] && next().is_some_and(|form| form.starts_with(rest))
    }

    fn is_form(&self, rest: &[u8]) -> bool {
        self.forms.binary_search_by(|form| form.as_slice().cmp(rest)).is_ok()
    }
}

/// One stream. What may be the beginning of a secret is held back until it is known.
#[derive(Debug)]
pub(super) struct Redactor {
    patterns: Arc<Patterns>,
    held: Vec<u8>,
}

impl Redactor {
    pub(super) fn new(patterns: Arc<Patterns>) -> Self {
        Self { patterns, held: Vec::new() }
    }

    /// What may be written after these bytes have come.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let mut out = Vec::with_capacity(all.len());
        let (mut done, mut open) = (0, self.patterns.open_from(&all, 0));
        for found in self.patterns.finder.find_iter(&all) {
            if found.start() >= open {
                break;
            }
            out.extend_from_slice(&all[done..found.start()]);
            out.extend_from_slice(REDACTED.as_bytes());
            done = found.end();
            if done > open {
                open = self.patterns.open_from(&all, done);
            }
        }
        out.extend_from_slice(&all[done..open]);
        self.held = all.split_off(open);
        out
    }

    /// What is left at the end of the stream. A secret that was cut off counts as one.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        let (mut out, mut done) = (Vec::new(), 0);
        for found in self.patterns.finder.find_iter(&held) {
            if self.patterns.cut_off_from(&held, done) <= found.start() {
                break;
            }
            out.extend_from_slice(&held[done..found.start()]);
            out.extend_from_slice(REDACTED.as_bytes());
            done = found.end();
        }
        let cut_off = self.patterns.cut_off_from(&held, done);
        out.extend_from_slice(&held[done..cut_off]);
        if cut_off < held.len() {
            out.extend_from_slice(REDACTED.as_bytes());
        }
        out
    }
}

/// The value, its lines, and both as other programs write them.
fn add_forms(value: &str, forms: &mut BTreeSet<Vec<u8>>) {
    let trimmed = value.trim();
    let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE_BYTES);
    for text in [value, trimmed].into_iter().chain(lines) {
        if text.trim().len() >= SHORTEST_SECRET_BYTES {
            forms.insert(text.as_bytes().to_vec());
            add_base64(text.as_bytes(), forms);
            add_url_encoded(text.as_bytes(), forms);
            add_json(text, forms);
        }
    }
}

/// Base64 in both alphabets, whether the value stands alone, wrapped in lines, or in the middle of
/// a longer text: then those characters that the value alone decides.
fn add_base64(value: &[u8], forms: &mut BTreeSet<Vec<u8>>) {
    forms.insert(STANDARD.encode(value).into_bytes());
    let lines = value.chunks(BASE64_LINE_BYTES).filter(|line| line.len() >= SHORTEST_SECRET_BYTES);
    forms.extend(lines.map(|line| STANDARD_NO_PAD.encode(line).into_bytes()));
    for (before, first) in [(0, 0), (1, 2), (2, 3)] {
        let mut text = vec![0; before];
        text.extend_from_slice(value);
        let decided = text.len() * 8 / 6;
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            forms.insert(engine.encode(&text).as_bytes()[first..decided].to_vec());
        }
    }
}

/// Percent encoding as RFC 3986, browsers and forms do it, in both cases of digits.
fn add_url_encoded(value: &[u8], forms: &mut BTreeSet<Vec<u8>>) {
    for (kept, space) in [("-_.~", "%20"), ("-_.~!*'()", "%20"), ("-_.*", "+"), ("-_.~/", "%20"), ("-_.~", "+")] {
        for digits in [b"0123456789ABCDEF", b"0123456789abcdef"] {
            forms.insert(url_encoded(value, kept.as_bytes(), space.as_bytes(), digits));
        }
    }
}

fn url_encoded(value: &[u8], kept: &[u8], space: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() * 3);
    for &byte in value {
        match byte {
            b' ' => out.extend_from_slice(space),
            _ if byte.is_ascii_alphanumeric() || kept.contains(&byte) => out.push(byte),
            _ => out.extend([b'%', digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]),
        }
    }
    out
}

fn add_json(value: &str, forms: &mut BTreeSet<Vec<u8>>) {
    // A string can always be written as JSON.
    if let Ok(quoted) = serde_json::to_string(value) {
        forms.insert(quoted.as_bytes()[1..quoted.len() - 1].to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn redacted(secrets: &[&str], parts: &[&[u8]]) -> String {
        let Some(patterns) = Patterns::of(secrets.iter().copied()).unwrap() else {
            return String::from_utf8_lossy(&parts.concat()).into_owned();
        };
        let mut redactor = Redactor::new(patterns);
        let mut out: Vec<u8> = parts.iter().flat_map(|part| redactor.push(part)).collect();
        out.extend(redactor.finish());
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn known_forms_are_found() {
        let secret = "s3cr et/+\"ü?";
        let inner = |before: &str| STANDARD.encode(format!("{before}{secret} and more"));
        for (text, left) in [
            (format!("a {secret} b"), "a [REDACTED] b".to_owned()),
            (STANDARD.encode(secret), "[REDACTED]".to_owned()),
            ("s3cr%20et%2F%2B%22%C3%BC%3F".to_owned(), "[REDACTED]".to_owned()),
            ("s3cr+et%2f%2b%22%c3%bc%3f".to_owned(), "[REDACTED]".to_owned()),
            (r#"{"k":"s3cr et/+\"ü?"}"#.to_owned(), r#"{"k":"[REDACTED]"}"#.to_owned()),
            ("s3cr".to_owned(), "[REDACTED]".to_owned()),
            ("s3c".to_owned(), "s3c".to_owned()),
            ("harmless".to_owned(), "harmless".to_owned()),
        ] {
            assert_eq!(redacted(&[secret], &[text.as_bytes()]), left, "{text}");
        }
        for before in ["", "a", "ab", "abc", "user:"] {
            let text = inner(before);
            let out = redacted(&[secret], &[text.as_bytes()]);
            assert!(out.contains(REDACTED) && out.len() < text.len(), "{before}: {text} became {out}");
        }
    }

    #[test]
    fn the_longer_secret_wins_and_lines_count_alone() {
        assert_eq!(redacted(&["abcd", "abcdefgh"], &[b"abcdef abc", b"defgh."]), "[REDACTED]ef [REDACTED].");
        assert_eq!(redacted(&["abcd", "abcdefgh"], &[b"abcdef"]), "[REDACTED]");
        let key = "-----BEGIN\nMIIEvQIBADANBg\nx\n";
        assert_eq!(redacted(&[key], &[b"log: MIIEvQIBADANBg\nlog: x"]), "log: [REDACTED]\nlog: x");
        assert_eq!(redacted(&["abc", ""], &[b"abc"]), "abc");
    }

    #[test]
    fn nothing_is_held_back_that_cannot_be_a_secret() {
        let mut redactor = Redactor::new(Patterns::of(["hunter22"].into_iter()).unwrap().unwrap());
        assert_eq!(redactor.push(b"progress 10 %\n"), b"progress 10 %\n");
        assert_eq!(redactor.push(b"h"), b"");
        assert_eq!(redactor.push(b"i\n"), b"hi\n");
    }

    proptest! {
        #[test]
        fn splits_change_nothing(text in "[ab]{0,40}", cuts in proptest::collection::vec(0_usize..40, 0..6)) {
            let secrets = ["abab", "ababba", "bbbbb"];
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|w| &text.as_bytes()[w[0]..w[1]]).collect();
            let split = redacted(&secrets, &parts);
            prop_assert_eq!(&split, &redacted(&secrets, &[text.as_bytes()]));
            prop_assert!(secrets.iter().all(|secret| !split.contains(secret)));
        }
    }
}
