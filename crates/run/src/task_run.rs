//! One task in a run: how far it is, and its pieces of work.

use crate::states::{End, LifeCycle};
use crate::step::Epoch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One task in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRun {
    /// Where it is.
    pub life_cycle: LifeCycle,
    /// Its last end.
    pub end: Option<End>,
    /// The last answer of a condition.
    pub answer: Option<bool>,
    /// Attempts so far; of a for-each those of all items.
    pub attempts: u32,
    /// Whether it is part of this run; a partial run leaves tasks out.
    pub included: bool,
    /// Parents of this round that are not over.
    #[serde(skip)]
    pub(crate) waits_for: usize,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) stopped: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) items: Items,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The pieces of work of a task: one, or the items of a for-each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Items {
    /// How many; `None`: one piece of work, no list.
    pub(crate) listed: Option<u32>,
    pub(crate) next: u32,
    #[serde(skip)]
    pub(crate) active: u32,
    pub(crate) bad: u32,
    /// Those that wait to be tried again, by item.
    pub(crate) waiting: BTreeMap<u32, Waiting>,
}

/// One that failed and is to be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Waiting {
    /// Attempts that were made.
    pub(crate) tries: u32,
    pub(crate) until_ms: i64,
}

impl Items {
    pub(crate) fn open(&self) -> u32 {
        self.active + self.waiting.len() as u32
    }
}

/// A piece of work that was started and is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) task: usize,
    pub(crate) item: Option<u32>,
    pub(crate) attempt: u32,
    /// Start of the attempt; until it is known, when it was asked for.
    pub(crate) since_ms: i64,
    pub(crate) is_started: bool,
    pub(crate) stop: Option<Why>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Why {
    Stopped,
    TimedOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    Warning,
    RunTimeout,
    AttemptTimeout(Epoch),
    Retry { task: usize, item: Option<u32> },
}

impl TaskRun {
    pub(crate) fn new(included: bool) -> Self {
        Self {
            life_cycle: LifeCycle::Blocked,
            end: None,
            answer: None,
            attempts: 0,
            included,
            waits_for: 0,
            stopped: false,
            items: Items::default(),
        }
    }

    pub(crate) fn reopen(&mut self, waits_for: usize) {
        *self = Self { attempts: self.attempts, waits_for, ..Self::new(true) };
    }

    /// Nothing of it is at work, though it has begun: it waits for its list or a retry.
    pub(crate) fn is_idle(&self) -> bool {
        !self.life_cycle.is_final() && self.life_cycle != LifeCycle::Blocked && self.items.active == 0
    }
}
