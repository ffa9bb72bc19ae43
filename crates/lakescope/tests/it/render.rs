//! What people see, as golden files; `UPDATE=1` writes them anew.

use crate::fixture;
use lakescope::render::{self, Look, Money};
use std::path::Path;
use unicode_width::UnicodeWidthStr;

pub fn golden(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let differ = expected.lines().zip(actual.lines()).find(|(old, new)| old != new);
    let short = |line: &str| line.chars().take(300).collect::<String>();
    let differ = differ.map(|(old, new)| format!("- {}\n+ {}", short(old), short(new)));
    assert!(expected == actual, "{name} differs (UPDATE=1 writes it anew):\n{}", differ.unwrap_or_default());
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn look(width: usize, all: bool) -> Look {
    Look { width, all, money: None }
}

#[test]
fn first_screen_fits_at_every_width() {
    for width in [60, 80, 100, 160] {
        let text = plain(&render::text(&fixture::skewed(), &look(width, false)));
        golden(&format!("skewed-{width}.txt"), &text);
        let widest = text.lines().map(UnicodeWidthStr::width).max().unwrap();
        assert!(widest <= width, "{widest} columns at width {width}");
        assert!(text.lines().count() <= 40, "{} lines at width {width}", text.lines().count());
    }
}

#[test]
fn everything_when_asked_for() {
    let money = Some(Money { per_core_hour: 0.1, currency: "USD".into() });
    let text = render::text(&fixture::skewed(), &Look { money, ..look(100, true) });
    golden("skewed-all.txt", &plain(&text));
    golden("skewed-all.ansi", &text);
}

#[test]
fn markdown_for_a_ticket() {
    golden("skewed.md", &render::markdown(&fixture::skewed(), &Look::default()));
}

#[test]
fn one_html_file_without_a_request() {
    let html = render::html(&fixture::skewed(), Some(&fixture::application()), &Look::default());
    for request in ["src=", "href=", "url(", "@import", "<script", "http:", "https:"] {
        assert!(!html.contains(request), "{request}");
    }
    golden("skewed.html", &html);
}

#[test]
fn json_is_the_report() {
    let report = fixture::skewed();
    let json = render::json(&report).unwrap();
    assert!(json.ends_with("}\n"));
    assert_eq!(serde_json::from_str::<model::Report>(&json).unwrap(), report);
}

#[test]
fn hostile_names_stay_text() {
    let report = fixture::hostile();
    let text = plain(&render::text(&report, &look(100, true)));
    let obeyed = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{200b}');
    assert!(!text.contains(obeyed), "{text}");
    let app = fixture::application();
    let html = render::html(&report, Some(&app), &Look::default());
    assert!(!html.contains("<script") && !html.contains(obeyed));
    assert_eq!(html.matches("<details").count(), html.matches("</details>").count());
    assert_eq!(html.matches("<pre").count(), html.matches("</pre>").count());
    let markdown = render::markdown(&report, &look(100, true));
    let outside_code: String = markdown.split("````").step_by(2).collect();
    // In a line, code stands between two back-ticks, because the name holds one.
    let raw = outside_code.lines().filter(|line| line.contains("<script") && !line.contains("``"));
    assert_eq!(raw.collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(!markdown.contains(obeyed), "{markdown}");
}

#[test]
fn an_empty_report_says_so() {
    let report = model::Report::default();
    assert!(render::text(&report, &look(100, true)).lines().count() < 8);
    assert!(render::html(&report, None, &Look::default()).contains("Nothing to mend"));
    assert!(render::markdown(&report, &Look::default()).starts_with("## Diagnosis"));
}
