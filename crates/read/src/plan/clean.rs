//! What a paste puts around a plan: log prefixes, quotes, colours, table bars, quote marks.

use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Time, level and logger in front of a line, with one space of separation: what follows keeps
/// its indentation. Log4j and Logback patterns of Spark, YARN, Databricks and Kubernetes.
static LOG_PREFIX: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^\s*\[?\d{2,4}[-/]\d{1,2}[-/]\d{1,2}[T ]\d{2}:\d{2}:\d{2}[.,\d]*Z?\]?",
        r"(?:\s+(?:\[[^\]]*\]|TRACE|DEBUG|INFO|WARN|ERROR|\([^)]*\)))*",
        r"(?:\s+[\w.$-]+(?:\s*\[[^\]]*\])?\s*(?::| -))? ?",
    ))
    .ok()
});

static COLOUR: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("\u{1b}\\[[0-9;]*[A-Za-z]").ok());

/// The text as `explain` printed it, as far as that can be known.
pub(crate) fn clean(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = unescaped(text);
    let text = match &*COLOUR {
        Some(colour) if text.contains('\u{1b}') => colour.replace_all(&text, "").into_owned(),
        _ => text.into_owned(),
    };
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        out.push_str(&clean_line(line));
        out.push('\n');
    }
    out
}

/// A plan pasted out of JSON or a `repr` has `\n` where its lines end.
fn unescaped(text: &str) -> Cow<'_, str> {
    let escaped = text.matches("\\n").count();
    if escaped < 2 || escaped <= text.matches('\n').count() {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\\r", "").replace("\\n", "\n").replace("\\t", "    ").replace("\\\"", "\"");
    Cow::Owned(text.replace("\\u003d", "=").replace("\\u003e", ">").replace("\\u003c", "<"))
}

fn clean_line(line: &str) -> Cow<'_, str> {
    let line = line.trim_end_matches(['\r', ' ', '\t']);
    let line = unquoted(without_log_prefix(line));
    match line.contains(['\u{a0}', '\t']) {
        true => Cow::Owned(line.replace('\u{a0}', " ").replace('\t', "    ")),
        false => Cow::Borrowed(line),
    }
}

fn without_log_prefix(line: &str) -> &str {
    if !line.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '[') {
        return line;
    }
    LOG_PREFIX.as_ref().and_then(|p| p.find(line)).map_or(line, |found| &line[found.end()..])
}

/// Without `> ` of mail and Markdown, code fences, table bars and the quotes around the whole.
fn unquoted(mut line: &str) -> &str {
    while let Some(rest) = line.trim_start().strip_prefix('>') {
        line = rest.strip_prefix(' ').unwrap_or(rest);
    }
    if line.trim_start().starts_with("```") {
        return "";
    }
    let line = line.strip_prefix('|').unwrap_or(line);
    let heading = line.trim_start().trim_start_matches(['"', '\'', '`']);
    if heading.starts_with("== ") {
        return heading.trim_end_matches(['|', '"', '\'', '`', ' ']);
    }
    line.trim_end_matches(['|', ' '])
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn noise_goes_and_indentation_stays() {
        for (pasted, expected) in [
            (
                "25/11/06 17:29:58 INFO Q: == Physical Plan ==\r\n25/11/06 17:29:58 INFO Q:    +- Scan parquet",
                "== Physical Plan ==\n   +- Scan parquet\n",
            ),
            ("2025-11-06T17:29:58.123Z [main] INFO o.a.s.Q - +- Sort", "+- Sort\n"),
            ("> == Physical Plan ==\n> +- Sort", "== Physical Plan ==\n+- Sort\n"),
            ("\u{1b}[32m+- Sort\u{1b}[0m", "+- Sort\n"),
            ("\"== Physical Plan ==\\n+- Sort\\n   +- Range\"", "== Physical Plan ==\n+- Sort\n   +- Range\"\n"),
            ("|== Physical Plan ==\n+- Sort|", "== Physical Plan ==\n+- Sort\n"),
            ("(1) Scan parquet", "(1) Scan parquet\n"),
        ] {
            assert_eq!(clean(pasted), expected, "{pasted:?}");
        }
    }
}
