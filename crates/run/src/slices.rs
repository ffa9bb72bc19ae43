//! Rows of the run timelines of the system tables: cut at clock hours, the result in the last one.

use crate::states::{End, LifeCycle, Outcome};

const HOUR_MS: i64 = 3_600_000;

/// One row: from, to (epoch ms), and `result_state` in the words of the system tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// `period_start_time`.
    pub from_ms: i64,
    /// `period_end_time`.
    pub to_ms: i64,
    /// Only in the last slice of something that is over.
    pub result: Option<&'static str>,
}

/// The slices of a time that is over.
#[must_use]
pub fn slices(from_ms: i64, to_ms: i64, end: End) -> Vec<Slice> {
    let mut slices = Vec::new();
    let mut at = from_ms;
    loop {
        let hour = (at.div_euclid(HOUR_MS) + 1) * HOUR_MS;
        if hour >= to_ms {
            break;
        }
        slices.push(Slice { from_ms: at, to_ms: hour, result: None });
        at = hour;
    }
    slices.push(Slice { from_ms: at, to_ms: to_ms.max(at), result: Some(word(end)) });
    slices
}

/// `result_state` of the system tables, whose words are others than those of the API.
#[must_use]
pub const fn word(end: End) -> &'static str {
    if matches!(end.life_cycle, LifeCycle::InternalError) {
        return "ERROR";
    }
    match end.outcome {
        Some(Outcome::Success | Outcome::SuccessWithFailures) => "SUCCEEDED",
        Some(Outcome::Failed) => "FAILED",
        Some(Outcome::TimedOut) => "TIMED_OUT",
        Some(Outcome::Canceled) => "CANCELLED",
        _ => "SKIPPED",
    }
}
