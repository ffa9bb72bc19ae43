//! The rules that decide without time: may a task start, and how did a run end.

use crate::graph::{Graph, RunIf};
use crate::states::{Class, Code, End, Outcome};

/// What becomes of a task when all that it depends on is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It starts.
    Start,
    /// It is over without a start.
    End(End),
}

/// How a parent ended, and whether its answer was the one that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// How it ended.
    pub end: End,
    /// False when a condition gave the other answer.
    pub outcome_met: bool,
}

/// Whether a task that is not disabled starts. The first that matches wins: an answer that was not
/// given, parents that are all excluded, the table of `run_if`.
#[must_use]
pub fn verdict(run_if: RunIf, before: &[Before]) -> Verdict {
    let all = before.len();
    let is_excluded = |b: &Before| b.end.outcome == Some(Outcome::Excluded);
    if before.iter().any(|b| !b.outcome_met) || (all > 0 && before.iter().all(is_excluded)) {
        return Verdict::End(End::EXCLUDED);
    }
    let count = |class| before.iter().filter(|b| b.end.class() == class).count();
    let (good, bad) = (count(Class::Good), count(Class::Bad));
    let (starts, otherwise) = match run_if {
        RunIf::AllSuccess => (good == all, End::UPSTREAM_FAILED),
        RunIf::AtLeastOneSuccess => (good >= 1 || all == 0, End::UPSTREAM_FAILED),
        RunIf::NoneFailed => (bad == 0 && (good >= 1 || all == 0), End::UPSTREAM_FAILED),
        RunIf::AllDone => (true, End::UPSTREAM_FAILED),
        RunIf::AtLeastOneFailed => (bad >= 1 || all == 0, End::EXCLUDED),
        RunIf::AllFailed => (bad == all, End::EXCLUDED),
    };
    if starts {
        return Verdict::Start;
    }
    let mut bads = before.iter().filter(|b| b.end.class() == Class::Bad).peekable();
    let only_cancelled = bads.peek().is_some() && bads.all(|b| b.end.is_cancellation());
    match otherwise == End::UPSTREAM_FAILED && only_cancelled {
        true => Verdict::End(End::UPSTREAM_CANCELED),
        false => Verdict::End(otherwise),
    }
}

/// Why a run is stopped before its tasks are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Stop {
    /// Somebody asked for it.
    User,
    /// The engine did, e.g. for a restart of a continuous job.
    Engine,
    /// `timeout_seconds` of the run is over.
    Timeout,
}

impl Stop {
    /// How the run ends.
    #[must_use]
    pub const fn of_run(self) -> End {
        match self {
            Self::User => End::CANCELED_BY_USER,
            Self::Engine => End::CANCELED,
            Self::Timeout => End::TIMED_OUT,
        }
    }

    /// How a task ends that was at work, or had nothing before it that was stopped.
    #[must_use]
    pub const fn of_task(self) -> End {
        match self {
            Self::User => End::CANCELED_BY_USER,
            Self::Engine | Self::Timeout => End::CANCELED,
        }
    }
}

/// How a run ended, from the last ends of its tasks by position (`None`: not part of this run).
#[must_use]
pub fn result(graph: &Graph, ends: &[Option<End>], stopped: Option<Stop>) -> End {
    if let Some(stop) = stopped {
        return stop.of_run();
    }
    let there = || ends.iter().enumerate().filter_map(|(at, end)| Some((at, (*end)?)));
    if there().all(|(_, end)| end.class() == Class::Disabled) {
        return End::SKIPPED;
    }
    let is_leaf = |at: usize| graph.children(at).iter().all(|&child| ends[child].is_none());
    let bad = |(_, end): &(usize, End)| end.class() == Class::Bad;
    let (leaves, inner): (Vec<_>, Vec<_>) = there().filter(bad).partition(|(at, _)| is_leaf(*at));
    if leaves.iter().any(|(_, end)| !end.is_cancellation()) {
        return End::FAILED;
    }
    if leaves.is_empty() {
        return match inner.is_empty() {
            true => End::SUCCESS,
            false => End::of(Outcome::SuccessWithFailures, Code::SuccessWithFailures),
        };
    }
    let by_user = there().any(|(_, end)| end.code == Code::UserCanceled);
    if by_user { End::CANCELED_BY_USER } else { End::CANCELED }
}
