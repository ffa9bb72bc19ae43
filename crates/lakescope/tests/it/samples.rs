//! What compare and shuffle say of the samples, as golden files; `UPDATE=1` writes them anew.

use crate::render::golden;
use std::path::Path;
use std::process::{Command, Stdio};
use unicode_width::UnicodeWidthStr;

/// Runs the binary over the samples, whose folder the answer does not name.
fn said(args: &[&str]) -> String {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lakescope"));
    command.current_dir(samples).args(args).args(["--color", "never"]).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn fits(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.width() <= width, "{} columns at width {width}: {line}", line.width());
    }
}

#[test]
fn a_failed_run_of_another_application_is_said_first() {
    for width in ["80", "100"] {
        let text = said(&["compare", "shop_daily.zstd", "lab_oom.zstd", "--width", width]);
        assert!(text.starts_with("✖ The new run failed"), "{text}");
        fits(&text, width.parse().unwrap());
        golden(&format!("compare-failed-{width}.txt"), &text);
    }
}

#[test]
fn two_runs_side_by_side() {
    golden("compare.txt", &said(&["compare", "lab_spill.zstd", "lab_shuffle.zstd", "--all"]));
    golden("compare.md", &said(&["compare", "lab_spill.zstd", "lab_shuffle.zstd", "--format", "markdown"]));
    let html = said(&["compare", "lab_spill.zstd", "lab_shuffle.zstd", "--format", "html"]);
    for request in ["src=", "href=", "url(", "@import", "<script", "http:", "https:"] {
        assert!(!html.contains(request), "{request}");
    }
    assert_eq!(html.matches("<section").count(), html.matches("</section>").count());
}

#[test]
fn a_run_against_itself_is_the_same() {
    let text = said(&["compare", "lab_spill.zstd", "lab_spill.zstd"]);
    assert!(text.starts_with("● Both runs took about the same time"), "{text}");
    assert!(text.contains("0 ms  altogether"), "{text}");
}

#[test]
fn a_shuffle_of_a_log_and_one_of_numbers() {
    for width in ["80", "100"] {
        let text = said(&["shuffle", "--from", "shop_daily.zstd", "--stage", "8", "--width", width]);
        fits(&text, width.parse().unwrap());
        golden(&format!("shuffle-{width}.txt"), &text);
    }
    let given = ["--bytes", "412GB", "--cores", "64", "--memory-per-core", "4GB", "--skew", "0.4"];
    golden("shuffle-given.txt", &said(&[&["shuffle"], given.as_slice()].concat()));
}

#[test]
fn a_query_of_a_log_in_the_order_of_its_steps() {
    let text = said(&["plan", "--from", "shop_daily.zstd", "--sql", "2"]);
    fits(&text, 100);
    golden("plan.txt", &text);
}
