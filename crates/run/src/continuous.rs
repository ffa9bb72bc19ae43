//! Continuous jobs: one run after the other, later and later while they fail.

use crate::states::{Class, End};
use serde::{Deserialize, Serialize};

/// A run that has worked so long without failing has proved that the job is well, ms.
pub const HEALTHY_AFTER_MS: i64 = 10 * 60_000;

const FIRST_WAIT_MS: i64 = 10_000;
const LONGEST_WAIT_MS: i64 = 15 * 60_000;

/// How a continuous job stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continuous {
    /// Runs that failed since the last one that did not.
    pub consecutive_failures: u32,
    /// When the next run starts, epoch ms; `None`: one is active.
    pub next_attempt_ms: Option<i64>,
}

impl Continuous {
    /// Whether the next start is held back.
    #[must_use]
    pub const fn is_backing_off(&self) -> bool {
        self.consecutive_failures >= 2 && self.next_attempt_ms.is_some()
    }

    /// After a run: when the next one starts. `seed` is the run's own number, so that jobs that fail
    /// together do not start together.
    #[must_use]
    pub fn after(self, end: End, started_ms: i64, ended_ms: i64, seed: u64) -> Self {
        let was_well = end.class() != Class::Bad || ended_ms - started_ms >= HEALTHY_AFTER_MS;
        let consecutive_failures = if was_well { 0 } else { self.consecutive_failures.saturating_add(1) };
        Self { consecutive_failures, next_attempt_ms: Some(ended_ms + wait_ms(consecutive_failures, seed)) }
    }

    /// Somebody restarts it: at once, as if it had never failed.
    #[must_use]
    pub const fn restarted(now_ms: i64) -> Self {
        Self { consecutive_failures: 0, next_attempt_ms: Some(now_ms) }
    }

    /// A run has started.
    #[must_use]
    pub const fn started(self) -> Self {
        Self { next_attempt_ms: None, ..self }
    }
}

/// The wait before the next start: none after the first failure, then doubling from ten seconds to a
/// quarter of an hour, and up to a tenth more.
#[must_use]
pub fn wait_ms(consecutive_failures: u32, seed: u64) -> i64 {
    if consecutive_failures < 2 {
        return 0;
    }
    let doubled = FIRST_WAIT_MS.saturating_mul(1 << (consecutive_failures - 1).min(30));
    let wait = doubled.min(LONGEST_WAIT_MS);
    let spread = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    wait + i64::try_from(spread % 1_000).unwrap_or_default() * wait / 10_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_double_up_to_a_cap_and_a_good_run_ends_them() {
        let mut job = Continuous::default();
        let mut waits = Vec::new();
        for run in 0..10 {
            job = job.started().after(End::FAILED, 0, 1_000, run);
            waits.push(job.next_attempt_ms.unwrap() - 1_000);
            assert_eq!(job.is_backing_off(), run > 0);
        }
        let least = [0, 20, 40, 80, 160, 320, 640, 900, 900, 900].map(|s| s * 1_000);
        assert!(waits.iter().zip(least).all(|(&wait, least)| wait >= least && wait <= least + least / 10), "{waits:?}");
        let long = job.after(End::FAILED, 0, HEALTHY_AFTER_MS, 1);
        assert_eq!((long.consecutive_failures, long.next_attempt_ms), (0, Some(HEALTHY_AFTER_MS)));
        let good = job.after(End::SUCCESS, 0, 1_000, 1);
        assert_eq!((good.consecutive_failures, good.next_attempt_ms), (0, Some(1_000)));
        assert_eq!(Continuous::restarted(5), Continuous { consecutive_failures: 0, next_attempt_ms: Some(5) });
    }
}
