//! Reading the small grammar inside a plan line: bracketed lists, `Key: value` fields, ids.
//!
//! Spark prints literals without quotes and cuts long texts, so brackets need not balance.
//! Nothing here fails: what does not close reaches to the end.

/// Position after the bracket that closes the one at `open`; the end when none does.
pub(crate) fn closing(text: &str, open: usize) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 0_i32;
    let mut at = open;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth <= 0 {
            return at;
        }
    }
    text.len()
}

/// Items between top-level commas, trimmed; a quoted text and a bracket stay whole.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let (mut depth, mut begin, mut at) = (0_i32, 0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = (depth - 1).max(0),
            quote @ (b'\'' | b'"' | b'`') => at = end_of_quote(bytes, at, quote),
            b',' if depth == 0 => {
                items.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    let last = text[begin..].trim();
    if !last.is_empty() || !items.is_empty() {
        items.push(last);
    }
    items.retain(|item| !item.is_empty());
    items
}

/// Position of the closing quote, or of the opening one when it only is an apostrophe.
fn end_of_quote(bytes: &[u8], open: usize, quote: u8) -> usize {
    let word = |at: usize| bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    if open > 0 && word(open - 1) {
        return open;
    }
    let rest = &bytes[open + 1..];
    match memchr::memchr(quote, rest) {
        Some(length) if quote == b'`' || !word(open + 1 + length + 1) => open + 1 + length,
        _ => open,
    }
}

/// Items of a bracketed list `[a, b]`; the text itself when it has no bracket.
pub(crate) fn items(text: &str) -> Vec<&str> {
    let text = text.trim();
    let Some(inner) = text.strip_prefix('[') else { return split(text) };
    let end = closing(text, 0);
    split(if end == text.len() { inner.strip_suffix(']').unwrap_or(inner) } else { &text[1..end - 1] })
}

/// Removes the ids that Spark puts behind names: `order_id#7L` to `order_id`, `t#1-T10000ms` to `t`.
pub(crate) fn without_ids(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let (mut from, mut at) = (0, 0);
    while let Some(hash) = memchr::memchr(b'#', &bytes[at..]).map(|n| n + at) {
        let end = end_of_id(bytes, hash);
        if end > hash + 1 {
            out.push_str(&text[from..hash]);
            from = end;
        }
        at = end;
    }
    out.push_str(&text[from..]);
    out
}

/// End of the id whose `#` stands at `hash`; `hash + 1` when it is none (`[id=#27]`, `a # b`).
fn end_of_id(bytes: &[u8], hash: usize) -> usize {
    let named = hash > 0 && !matches!(bytes[hash - 1], b'=' | b' ' | b',' | b'(' | b'[');
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let count = digits(hash + 1);
    if !named || count == 0 {
        return hash + 1;
    }
    let mut end = hash + 1 + count;
    end += usize::from(bytes.get(end) == Some(&b'L'));
    if bytes[end..].starts_with(b"-T") {
        let delay = digits(end + 2);
        let ms = end + 2 + delay;
        end = if delay > 0 && bytes[ms..].starts_with(b"ms") { ms + 2 } else { end };
    }
    end
}

/// A list of names or expressions without ids; Spark's `... N more fields` left out.
pub(crate) fn names(text: &str) -> Vec<String> {
    items(text).into_iter().filter(|item| !item.starts_with("...")).map(without_ids).collect()
}

/// N of `... N more fields`.
pub(crate) fn more_fields(text: &str) -> u64 {
    let mut sum = 0;
    for (at, _) in text.match_indices("... ") {
        let rest = &text[at + 4..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if rest[digits..].starts_with(" more field") {
            sum += rest[..digits].parse::<u64>().unwrap_or(0);
        }
    }
    sum
}

/// Whether Spark cut the text: `...` where something is missing. A list of paths ends with
/// `... 8 entries]` and loses nothing that matters.
pub(crate) fn is_cut(text: &str) -> bool {
    text.match_indices("...").any(|(at, _)| {
        let rest = text[at + 3..].trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        !rest.starts_with(" entries")
    })
}

/// The first whole number in a text.
pub(crate) fn first_number(text: &str) -> Option<u64> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
    text[start..start + digits].parse().ok()
}

/// The part before the first of these characters, and the rest with it.
pub(crate) fn cut_at<'t>(text: &'t str, stops: &[char]) -> (&'t str, &'t str) {
    text.split_at(text.find(stops).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_keep_brackets_and_quotes_whole() {
        for (text, expected) in [
            ("a#1, b#2L", vec!["a#1", "b#2L"]),
            ("coalesce(a#1, b#2), 2", vec!["coalesce(a#1, b#2)", "2"]),
            ("(name = O'Hare), x", vec!["(name = O'Hare)", "x"]),
            ("'a, b', c", vec!["'a, b'", "c"]),
            ("`a,b`, c", vec!["`a,b`", "c"]),
            ("", vec![]),
            ("a)b, c", vec!["a)b", "c"]),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
        assert_eq!(items("[a, [b, c], d]"), ["a", "[b, c]", "d"]);
        assert_eq!(items("[a, b"), ["a", "b"]);
    }

    #[test]
    fn ids_go_and_other_hashes_stay() {
        for (text, expected) in [
            ("order_id#7L", "order_id"),
            ("window#7-T10000ms, v#1L", "window, v"),
            ("max(`Amount`)#200 AS m#1", "max(`Amount`) AS m"),
            ("[id=#27]", "[id=#27]"),
            ("x IN dynamicpruning#86", "x IN dynamicpruning"),
            ("color = #12", "color = #12"),
            ("a#", "a#"),
        ] {
            assert_eq!(without_ids(text), expected, "{text}");
        }
    }

    #[test]
    fn cut_lists_say_how_much_is_missing() {
        assert_eq!(more_fields("[a#1, ... 214 more fields]"), 214);
        assert_eq!(names("[a#1, ... 214 more fields]"), ["a"]);
    }
}
