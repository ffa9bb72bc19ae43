//! A cursor over one JSON line, for the events that make up nine tenths of a log.
//!
//! It looks at every byte once and copies none. It is lenient where nothing is lost by it (raw
//! control characters in strings, the kinds of brackets inside values that are skipped) and never
//! recurses, so no nesting is too deep for it. `None` always means: this is not the JSON that was
//! expected, and the line is a bad one.

use crate::MAX_FIGURE;
use memchr::memchr2;
use std::borrow::Cow;

/// Words of eight bytes looked at before a vectorised search pays off: most strings are names.
const SHORT_STRING_WORDS: usize = 8;

/// The latest time, epoch ms.
pub(super) const MAX_TIME_MS: u64 = 1 << 48;

/// What is left of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

/// The bytes between the quotes of a string, escapes as they stand.
pub(super) type Raw<'a> = &'a [u8];

impl<'a> Cursor<'a> {
    pub fn new(line: &'a [u8]) -> Self {
        Self { rest: line }
    }

    /// Walks an object; `field` gets each key and must consume its value.
    pub fn object(&mut self, mut field: impl FnMut(&mut Self, Raw<'a>) -> Option<()>) -> Option<()> {
        self.token(b'{')?;
        if self.token(b'}').is_some() {
            return Some(());
        }
        loop {
            let key = self.string()?;
            self.token(b':')?;
            field(self, key)?;
            if self.token(b',').is_none() {
                return self.token(b'}');
            }
        }
    }

    /// Walks an array; `item` must consume each value. `null` is an empty array.
    pub fn array(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        if self.null() {
            return Some(());
        }
        self.token(b'[')?;
        if self.token(b']').is_some() {
            return Some(());
        }
        loop {
            item(self)?;
            if self.token(b',').is_none() {
                return self.token(b']');
            }
        }
    }

    /// Takes a literal if it comes next, byte for byte.
    #[inline]
    pub fn eat(&mut self, literal: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(literal)?;
        Some(())
    }

    /// Takes `null` if it comes next.
    pub fn null(&mut self) -> bool {
        self.skip_space();
        self.eat(b"null").is_some()
    }

    /// An integer of 64 bits; a fraction or an exponent is refused.
    #[inline]
    pub fn int(&mut self) -> Option<i64> {
        self.skip_space();
        let negative = self.eat(b"-").is_some();
        let mut value: u64 = 0;
        let mut digits = 0;
        while let Some(digit) = self.rest.get(digits).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
            // 19 digits fit 64 bits without a sign; a 20th is refused below.
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            digits += 1;
        }
        if !(1..=19).contains(&digits) || matches!(self.rest.get(digits), Some(b'.' | b'e' | b'E')) {
            return None;
        }
        self.rest = &self.rest[digits..];
        match negative {
            false => i64::try_from(value).ok(),
            true => 0_i64.checked_sub_unsigned(value),
        }
    }

    /// An id that fits 32 bits.
    pub fn id(&mut self) -> Option<u32> {
        u32::try_from(self.int()?).ok()
    }

    /// A figure of a task, or 0 for `null`; one beyond 2^53 is no figure, and sums of such ones
    /// would overflow.
    pub fn figure(&mut self) -> Option<i64> {
        if self.null() {
            return Some(0);
        }
        self.int().filter(|n| n.unsigned_abs() <= MAX_FIGURE)
    }

    /// A time, epoch ms, or 0 for `null`; one beyond the year 10889 is no time.
    pub fn time(&mut self) -> Option<i64> {
        self.figure().filter(|ms| ms.unsigned_abs() <= MAX_TIME_MS)
    }

    pub fn bool(&mut self) -> Option<bool> {
        self.skip_space();
        if self.eat(b"true").is_some() {
            return Some(true);
        }
        self.eat(b"false").map(|()| false)
    }

    /// The text of a string.
    pub fn text(&mut self) -> Option<Cow<'a, str>> {
        let raw = self.string()?;
        match raw.contains(&b'\\') {
            false => Some(String::from_utf8_lossy(raw)),
            true => unescape(raw).map(Cow::Owned),
        }
    }

    /// The text of a string, or `None` inside for `null`.
    pub fn text_or_null(&mut self) -> Option<Option<Cow<'a, str>>> {
        if self.null() { Some(None) } else { self.text().map(Some) }
    }

    /// The bytes of a string between its quotes.
    #[inline]
    pub fn string(&mut self) -> Option<Raw<'a>> {
        self.token(b'"')?;
        self.string_end()
    }

    /// The bytes up to the closing quote, of a string whose opening quote is behind.
    #[inline]
    pub fn string_end(&mut self) -> Option<Raw<'a>> {
        let all = self.rest;
        for (n, word) in all.chunks_exact(8).take(SHORT_STRING_WORDS).enumerate() {
            if let Some(at) = quote_or_backslash(word) {
                return self.string_ends_at(8 * n + at);
            }
        }
        let seen = (all.len() / 8).min(SHORT_STRING_WORDS) * 8;
        let at = seen + memchr2(b'"', b'\\', &all[seen..])?;
        self.string_ends_at(at)
    }

    /// Ends a string at a quote, or looks on behind a backslash.
    #[inline]
    fn string_ends_at(&mut self, mut at: usize) -> Option<Raw<'a>> {
        let all = self.rest;
        while all[at] != b'"' {
            let next = at + 2;
            at = next + memchr2(b'"', b'\\', all.get(next..)?)?;
        }
        self.rest = &all[at + 1..];
        Some(&all[..at])
    }

    /// Passes over one value of any kind.
    pub fn skip(&mut self) -> Option<()> {
        self.skip_space();
        match *self.rest.first()? {
            b'"' => self.string().map(drop),
            b'{' | b'[' => self.skip_nested(),
            _ => self.skip_scalar(),
        }
    }

    /// Passes over one value and gives it as text: a string without its quotes, `null` as none,
    /// anything else as written.
    pub fn any_text(&mut self) -> Option<Option<Cow<'a, str>>> {
        self.skip_space();
        if self.null() {
            return Some(None);
        }
        if self.rest.first() == Some(&b'"') {
            return self.text().map(Some);
        }
        let before = self.rest;
        self.skip()?;
        Some(Some(String::from_utf8_lossy(&before[..before.len() - self.rest.len()])))
    }

    fn skip_scalar(&mut self) -> Option<()> {
        let len = self.rest.iter().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')));
        let len = len.unwrap_or(self.rest.len());
        self.rest = &self.rest[len..];
        (len > 0).then_some(())
    }

    fn skip_nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(());
                    }
                }
                b'"' => drop(self.string_end()?),
                _ => {}
            }
        }
    }

    /// Succeeds when nothing but space is left.
    pub fn end(&mut self) -> Option<()> {
        self.skip_space();
        self.rest.is_empty().then_some(())
    }

    #[inline]
    fn token(&mut self, byte: u8) -> Option<()> {
        self.skip_space();
        let (&first, rest) = self.rest.split_first()?;
        if first != byte {
            return None;
        }
        self.rest = rest;
        Some(())
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some((b' ' | b'\t' | b'\r' | b'\n', rest)) = self.rest.split_first() {
            self.rest = rest;
        }
    }
}

/// Place of the first quote or backslash among eight bytes.
#[inline]
fn quote_or_backslash(word: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    // A byte that is zero borrows from its high bit; the lowest such byte is always a true one.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let word = u64::from_le_bytes(word.try_into().ok()?);
    let found = zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
    (found != 0).then(|| (found.trailing_zeros() / 8) as usize)
}

/// Resolves the escapes of a string; surrogates without a partner become U+FFFD.
fn unescape(raw: Raw<'_>) -> Option<String> {
    let quoted = format!("\"{}\"", String::from_utf8_lossy(raw));
    serde_json::from_str(&quoted).ok().or_else(|| unescape_leniently(&quoted[1..quoted.len() - 1]))
}

/// As JSON has it, but broken escapes and raw control characters are kept as they are.
fn unescape_leniently(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next()? {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'u' => {
                let digits: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok();
                out.push(code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            other => out.push(other),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn int(text: &str) -> Option<i64> {
        let mut cursor = Cursor::new(text.as_bytes());
        let value = cursor.int()?;
        cursor.end().map(|()| value)
    }

    #[test]
    fn integers_are_integers_or_nothing() {
        for (text, value) in [
            ("0", Some(0)),
            (" -17", Some(-17)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("99999999999999999999", None),
            ("1.5", None),
            ("1e3", None),
            ("", None),
            ("-", None),
            ("x", None),
        ] {
            assert_eq!(int(text), value, "{text}");
        }
    }

    #[test]
    fn strings_with_escapes_and_damage() {
        for (raw, text) in [
            (r#""plain""#, "plain"),
            (r#""a\"b\\""#, "a\"b\\"),
            (r#""\u00e9\n\ud83d\ude00""#, "é\n😀"),
            (r#""lone \ud83d end""#, "lone \u{fffd} end"),
            ("\"raw\u{1}control\"", "raw\u{1}control"),
        ] {
            assert_eq!(Cursor::new(raw.as_bytes()).text().as_deref(), Some(text), "{raw}");
        }
        assert_eq!(Cursor::new(b"\"bad \xff utf8\"").text().as_deref(), Some("bad \u{fffd} utf8"));
        for cut in [&b"\"open"[..], b"\"open\\", b"\"a string that is rather long and open\\\""] {
            assert_eq!(Cursor::new(cut).string(), None);
        }
    }

    #[test]
    fn deep_nesting_needs_no_stack() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let mut cursor = Cursor::new(deep.as_bytes());
        assert!(cursor.skip().is_some() && cursor.end().is_some());
        assert!(Cursor::new(&deep.as_bytes()[..150_000]).skip().is_none());
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Cursor::new(&bytes).skip();
            let _ = Cursor::new(&bytes).text();
            let _ = Cursor::new(&bytes).int();
            let _ = Cursor::new(&bytes).object(|c, _| c.skip());
        }

        #[test]
        fn reads_any_text_back(text in ".*") {
            let json = serde_json::to_string(&text).unwrap_or_default();
            let read = Cursor::new(json.as_bytes()).text();
            prop_assert_eq!(read.as_deref(), Some(&*text));
        }
    }
}
