//! May a new run begin, must it wait, or is it not to be.

use crate::states::{Code, End, LifeCycle, Outcome, QueueCode};

/// Longest wait of a queued run, ms: 48 hours.
pub const LONGEST_WAIT_MS: i64 = 48 * 3_600_000;

/// What a job allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// `max_concurrent_runs`.
    pub concurrent_runs: u32,
    /// `queue.enabled`.
    pub queues: bool,
    /// Most runs that wait.
    pub queued_runs: u32,
}

/// What becomes of a new run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It begins.
    Begin,
    /// It waits, held by this limit.
    Wait(QueueCode),
    /// It is over before it began.
    Skip(End),
}

/// A run that is not begun for want of a place.
#[must_use]
pub const fn skipped(code: Code) -> End {
    End { life_cycle: LifeCycle::Skipped, outcome: Some(Outcome::MaximumConcurrentRunsReached), code }
}

/// Decides on a new run from the runs of its job that are active and that wait. It never overtakes
/// one that waits.
#[must_use]
pub fn admit(allowed: Allowed, active: u32, queued: u32) -> Admission {
    if active < allowed.concurrent_runs && queued == 0 {
        return Admission::Begin;
    }
    // A job that may have no run at all would have them wait for ever.
    if !allowed.queues || allowed.concurrent_runs == 0 {
        return Admission::Skip(skipped(Code::MaxConcurrentRunsExceeded));
    }
    match queued < allowed.queued_runs {
        true => Admission::Wait(QueueCode::MaxConcurrentRuns),
        false => Admission::Skip(skipped(Code::MaxJobQueueSizeExceeded)),
    }
}

/// The end of a run that has waited since then, once that is too long.
#[must_use]
pub fn expired(queued_ms: i64, now_ms: i64) -> Option<End> {
    (now_ms - queued_ms > LONGEST_WAIT_MS).then(|| skipped(Code::MaxConcurrentRunsExceeded))
}
