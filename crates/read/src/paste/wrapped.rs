//! Text inside something else: strings of a JSON answer (`runs/get-output`, a job server's error),
//! escapes of a log collector, the prefixes of a build tool.

use serde_json::Value;
use std::borrow::Cow;

/// The text that a person would read: strings of JSON joined by line, escaped line ends as line
/// ends, `[info] ` and its kind gone. Text that is none of this comes back as it is.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    let text = strings_of_json(text).map_or(Cow::Borrowed(text), Cow::Owned);
    let text = match text.contains("\\n\\tat ") || text.contains("\\n\\u0009at ") {
        true => Cow::Owned(text.replace("\\n", "\n").replace("\\t", "\t").replace("\\u0009", "\t")),
        false => text,
    };
    match text.lines().filter(|line| without_tool(line).is_some()).count() {
        0 | 1 => text,
        _ => Cow::Owned(text.lines().map(|line| without_tool(line).unwrap_or(line)).collect::<Vec<_>>().join("\n")),
    }
}

/// What sbt writes before each line of a program.
fn without_tool(line: &str) -> Option<&str> {
    ["[info] ", "[warn] ", "[error] "].iter().find_map(|prefix| line.strip_prefix(prefix))
}

fn strings_of_json(text: &str) -> Option<String> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    let mut lines = Vec::new();
    collect(&value, &mut lines);
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn collect(value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::String(text) if is_frame(text) => lines.push(format!("\tat {text}")),
        Value::String(text) => lines.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, lines)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, lines)),
        _ => {}
    }
}

/// `org.apache.spark.scheduler.Task.run(Task.scala:141)`, one string of an array.
fn is_frame(text: &str) -> bool {
    let place = text.strip_suffix(')').and_then(|t| t.rsplit_once('('));
    place.is_some_and(|(method, _)| method.contains('.') && !method.contains(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_wrapping_off() {
        for (text, plain_text) in [
            (
                r#"{"result": {"message": "Job aborted\nDriver stacktrace:", "n": 4, "stack": ["a.B.c(B.scala:1)"]}}"#,
                "Job aborted\nDriver stacktrace:\n\tat a.B.c(B.scala:1)",
            ),
            (
                r"ERROR x: java.io.IOException: no\n\tat a.B.c(B.scala:1)",
                "ERROR x: java.io.IOException: no\n\tat a.B.c(B.scala:1)",
            ),
            ("[info] one\n[info]   at a.B\n[error] two", "one\n  at a.B\ntwo"),
            ("[info] a single line stays", "[info] a single line stays"),
            ("{not json", "{not json"),
            (r"C:\new\table", r"C:\new\table"),
        ] {
            assert_eq!(plain(text), plain_text, "{text}");
        }
    }
}
