//! How unevenly time and data are spread over the tasks of a stage.

use crate::context::StageFacts;
use crate::draft::Draft;
use model::{Metric, Quantiles};

/// Time and data of a stage's successful tasks, with the tasks that stand out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uneven {
    /// Durations of all successful tasks, ms.
    pub duration: Quantiles,
    /// Durations without cold starts, ms.
    pub warm: Quantiles,
    /// Shuffle bytes read.
    pub read: Quantiles,
    /// Shuffle records read.
    pub records: Quantiles,
    /// Row of the slowest task that is no cold start; `None` for a paste.
    pub slowest: Option<usize>,
    /// Whether the slowest task of all was a cold start.
    pub slowest_was_cold: bool,
    /// Row of the task that read most shuffle bytes; `None` for a paste.
    pub largest: Option<usize>,
    /// Row of the task that read most shuffle records; `None` for a paste.
    pub fullest: Option<usize>,
}

impl Uneven {
    pub(crate) fn of(facts: &StageFacts<'_>) -> Self {
        let tasks = &facts.stage.tasks;
        let duration = facts.q(Metric::DurationMs);
        let warm = match facts.cold.is_empty() {
            true => duration,
            false => Quantiles::of(facts.warm_rows().map(|r| tasks.value(Metric::DurationMs, r)).collect()),
        };
        let most = |metric| tasks.successful().max_by_key(|&row| tasks.value(metric, row));
        Self {
            duration,
            warm,
            read: facts.q(Metric::ShuffleReadBytes),
            records: facts.q(Metric::ShuffleRecordsRead),
            slowest: facts.warm_rows().max_by_key(|&row| tasks.value(Metric::DurationMs, row)),
            slowest_was_cold: warm.max < duration.max,
            largest: most(Metric::ShuffleReadBytes),
            fullest: most(Metric::ShuffleRecordsRead),
        }
    }
}

/// Evidence that `value` stands out: its ratio to the median and, unless that stands for the peers
/// itself, to the 75th percentile, with the line it crossed.
pub(crate) fn beside_peers(draft: Draft, name: &str, value: i64, q: &Quantiles, line: f64) -> Draft {
    let over = |part: i64| value as f64 / part.max(1) as f64;
    let draft = draft.evidence(&format!("{name}_over_median"), over(q.median), "ratio");
    match q.peers_by_median() {
        true => draft.over(line),
        false => draft.evidence(&format!("{name}_over_p75"), over(q.p75), "ratio").over(line),
    }
}

/// What the value of [`Quantiles::peers`] is, in words.
#[must_use]
pub fn peers_words(q: &Quantiles) -> &'static str {
    if q.peers_by_median() { "the median" } else { "the 75th percentile" }
}

/// Share of a stage's bytes (or other figure) in its `top` largest tasks; from quantiles alone
/// only the largest is known.
#[must_use]
pub fn top_share(facts: &StageFacts<'_>, metric: Metric, top: usize) -> Option<f64> {
    let q = facts.q(metric);
    let total = q.sum.max(1) as f64;
    if !facts.has_tasks() {
        return (top == 1).then_some(q.max as f64 / total);
    }
    let tasks = &facts.stage.tasks;
    let mut values: Vec<i64> = tasks.successful().map(|row| tasks.value(metric, row)).collect();
    let at = values.len().saturating_sub(top);
    if at > 0 {
        values.select_nth_unstable(at);
    }
    Some(values[at..].iter().sum::<i64>() as f64 / total)
}
