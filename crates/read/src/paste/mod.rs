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
        let prose = incidents::read(text, &mut pasted);
        settings::read(&prose, &mut app);
        facts::read(&prose, text, &mut pasted);
        pasted.plans = plans(text);
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

/// Plans in the text; the seam to the reader of `explain()` output.
fn plans(_text: &str) -> Vec<model::Plan> {
    Vec::new()
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
