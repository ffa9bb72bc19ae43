//! A run against many: the usual time and its spread.

use model::{Application, StageStatus};
use serde::Serialize;

/// Runs that the baseline is made of, at most.
const LAST_RUNS: usize = 10;
/// Runs from which a spread is told.
const ENOUGH_RUNS: usize = 5;

/// The usual time of earlier runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct History {
    /// Runs that ended well and were used.
    pub runs: usize,
    /// Median wall time, ms.
    pub median_ms: i64,
    /// Median absolute deviation, ms.
    pub mad_ms: i64,
    /// Wall time from which a run counts as slower: median + max(3 × 1.48 MAD, 10 %), ms.
    pub limit_ms: i64,
    /// Whether the new run is slower.
    pub slower: bool,
}

impl History {
    /// The spread of the runs; `None` with fewer than five.
    #[must_use]
    pub fn of(base: &[&Application], new: &Application) -> Option<Self> {
        let used = usable(base);
        if used.len() < ENOUGH_RUNS {
            return None;
        }
        let median_ms = median(used.iter().map(|&at| base[at].wall_ms()).collect());
        let mad_ms = median(used.iter().map(|&at| (base[at].wall_ms() - median_ms).abs()).collect());
        let slack = (3.0 * 1.48 * mad_ms as f64).max(0.1 * median_ms as f64);
        let limit_ms = median_ms + slack as i64;
        Some(Self { runs: used.len(), median_ms, mad_ms, limit_ms, slower: new.wall_ms() > limit_ms })
    }
}

/// Whether an application ended well: it has an end and no failed job.
#[must_use]
pub fn ended_well(app: &Application) -> bool {
    app.ended_ms.is_some() && app.jobs.iter().all(|j| j.status != StageStatus::Failed)
}

/// The last ten runs that ended well, or all of them when none did.
fn usable(base: &[&Application]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..base.len()).filter(|&at| ended_well(base[at])).collect();
    if order.is_empty() {
        order = (0..base.len()).collect();
    }
    order.sort_by_key(|&at| base[at].start_ms());
    order.split_off(order.len().saturating_sub(LAST_RUNS))
}

/// Position of the run of median wall time.
#[must_use]
pub fn median_run(base: &[&Application]) -> Option<usize> {
    let mut used = usable(base);
    used.sort_by_key(|&at| base[at].wall_ms());
    used.get(used.len() / 2).copied()
}

fn median(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
