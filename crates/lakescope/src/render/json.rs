//! The report as JSON: the model's own form, for programs.

use model::Report;

/// The report as one JSON object on readable lines, with a line break at its end.
///
/// # Errors
/// When a number has no JSON form (never for a report of the diagnosis).
pub fn json(report: &Report) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    Ok(text)
}
