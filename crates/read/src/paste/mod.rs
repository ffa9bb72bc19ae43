//! What people paste: stack traces, log excerpts, stage figures, streaming progress, plans, words.
//!
//! [`read`] looks for all of it in one text, because a question mixes them: a trace, then a part
//! of `explain()`, then settings, then "200 jobs". Nothing here fails: what is not understood is
//! left out. Time is linear in the text; the number and size of what is kept is bounded by the
//! constants below.

mod facts;
mod header;
mod incidents;
mod json;
mod python;
mod settings;
mod stage_json;
mod streaming;
mod summary;
mod trace;
mod units;
mod wrapped;

use model::{Application, PasteKind, Pasted};
use regex::Regex;

/// Incidents kept of one text; the rest is counted.
pub const MAX_INCIDENTS: usize = 2_000;
/// Bytes kept of the lines below one incident.
pub const MAX_STACK_BYTES: usize = 16 << 10;
/// Bytes of text that are kept for display and for words ("200 jobs").
pub const MAX_TEXT_BYTES: usize = 1 << 20;
/// Tasks, batches, settings or rows taken from one text.
pub const MAX_ROWS: usize = 100_000;

/// Reads a paste. `kind` says what it is where the text alone would be taken for another.
///
/// ```
/// let app = read::paste::read("25/11/04 02:14:43 ERROR YarnScheduler: Lost executor 1 on wrk-07: worker lost", None);
/// let incident = &app.pasted.as_ref().unwrap().incidents[0];
/// assert_eq!(incident.executor.as_deref(), Some("1"));
/// assert_eq!(incident.message, "worker lost");
/// ```
#[must_use]
pub fn read(text: &str, kind: Option<PasteKind>) -> Application {
    let mut app = Application::default();
    let mut pasted = Pasted { text: start_of(text, MAX_TEXT_BYTES).to_owned(), ..Pasted::default() };
    let values = json::values(text);
    for value in &values {
        stage_json::read(value, &mut app);
        streaming::read(value, &mut app);
    }
    if app.stages.is_empty() {
        summary::read(text, &mut app);
    }
    let whole_text_is_json = !values.is_empty() && (!app.stages.is_empty() || !app.streams.is_empty());
    if !whole_text_is_json {
        let text = wrapped::plain(text);
        let prose = incidents::read(&text, &mut pasted);
        settings::read(&prose, &mut app);
        facts::read(&prose, &text, &mut pasted);
        pasted.plans = plans(&text);
    }
    app.first_event_ms = pasted.incidents.iter().filter_map(|i| i.time_ms).min().or(app.first_event_ms);
    app.last_event_ms = pasted.incidents.iter().filter_map(|i| i.time_ms).max().or(app.last_event_ms);
    pasted.kind = kind.unwrap_or_else(|| kind_of(&app, &pasted));
    app.pasted = Some(pasted);
    app
}

/// What a text would be taken for.
#[must_use]
pub fn detect(text: &str) -> PasteKind {
    read(text, None).pasted.map_or(PasteKind::default(), |p| p.kind)
}

fn kind_of(app: &Application, pasted: &Pasted) -> PasteKind {
    if !app.streams.is_empty() {
        PasteKind::Streaming
    } else if !app.stages.is_empty() {
        PasteKind::StageMetrics
    } else if !pasted.incidents.is_empty() {
        PasteKind::Stack
    } else if !pasted.plans.is_empty() {
        PasteKind::Plan
    } else {
        PasteKind::Question
    }
}

/// Plans in the text. A driver log without one is not searched line by line for trees.
fn plans(text: &str) -> Vec<model::Plan> {
    let signs = ["== ", "+- ", ":- ", "Scan", "Exchange", "Join"];
    let may_hold = signs.iter().any(|sign| text.contains(sign));
    if may_hold { crate::plan::parse_text(start_of(text, MAX_TEXT_BYTES)) } else { Vec::new() }
}

/// The first `limit` bytes, cut at a character.
fn start_of(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let end = (0..=limit).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    &text[..end]
}

/// A pattern of this module. Each is a constant that a test compiles.
#[allow(clippy::expect_used)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern compiles")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kind(text: &str, kind: PasteKind) {
        assert_eq!(detect(text), kind, "{text}");
    }

    #[test]
    fn tells_pastes_apart() {
        kind("25/11/04 02:14:43 ERROR YarnScheduler: Lost executor 1 on w: worker lost", PasteKind::Stack);
        kind("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: x", PasteKind::Stack);
        kind("== Physical Plan ==\n*(1) Filter (a#1 > 2)\n+- FileScan parquet [a#1]", PasteKind::Plan);
        kind(
            "Metric\tMin\t25th percentile\tMedian\t75th percentile\tMax\nDuration\t1 s\t1 s\t1 s\t2 s\t9 s",
            PasteKind::StageMetrics,
        );
        kind("{\"stage\":{\"id\":1},\"summary\":{}}", PasteKind::StageMetrics);
        kind("{\"batchId\":1,\"durationMs\":{\"addBatch\":3}}", PasteKind::Streaming);
        kind("Why does VACUUM start 200 jobs?", PasteKind::Question);
        kind("", PasteKind::Question);
        assert_eq!(read("words", Some(PasteKind::Plan)).pasted.map(|p| p.kind), Some(PasteKind::Plan));
    }

    #[test]
    fn a_log_of_megabytes_is_bounded() {
        let line = "25/11/04 02:14:43 WARN TaskSetManager: Lost task 1.0 in stage 3.0 (TID 9) (h executor 1): java.io.IOException: no\n\tat a.B.c(B.scala:1)\n";
        let app = read(&line.repeat(20_000), None);
        let pasted = app.pasted.unwrap_or_default();
        assert_eq!(pasted.incidents.len(), MAX_INCIDENTS);
        assert_eq!(pasted.incidents_left_out, 20_000 - MAX_INCIDENTS as u64);
        assert!(pasted.text.len() <= MAX_TEXT_BYTES);
        // One endless trace stays one incident.
        let endless = format!("java.io.IOException: no\n{}", "\tat a.B.c(B.scala:1)\n".repeat(100_000));
        let pasted = read(&endless, None).pasted.unwrap_or_default();
        assert_eq!(pasted.incidents.len(), 1);
        assert!(pasted.incidents[0].stack.len() <= MAX_STACK_BYTES + 64);
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "\\PC{0,400}") {
            let _ = read(&text, None);
        }

        #[test]
        fn nor_one_made_of_what_it_looks_for(parts in proptest::collection::vec(0..PIECES.len(), 0..60)) {
            let text: String = parts.into_iter().map(|at| PIECES[at]).collect();
            let _ = read(&text, None);
        }
    }

    const PIECES: [&str; 24] = [
        "\n",
        " ",
        "\t",
        "{",
        "}",
        "[",
        "]",
        "'",
        "\"",
        ": ",
        "Lost task 1.0 in stage 2.0 (TID 3",
        ") (h executor 4): ",
        "java.lang.OutOfMemoryError",
        "Caused by: ",
        "Traceback (most recent call last):",
        "  File \"",
        "\tat ",
        "25/11/04 02:14:43 ERROR X: ",
        "durationMs",
        "Duration 1 s 2 s",
        "[DELTA_CONCURRENT_APPEND]",
        "FetchFailed(BlockManagerId(",
        "ü→🎉",
        "99999999999999999999",
    ];
}
