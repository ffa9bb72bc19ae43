//! Running part of a finished run again, under the same id.

use crate::states::{Class, End};
use crate::step::{Run, Step};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Which tasks are to run again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Every task whose last end is a failure, those that were never started included.
    pub all_failed: bool,
    /// These, whatever their last end.
    pub tasks: Vec<String>,
    /// And everything that depends on them.
    pub dependents: bool,
    /// Id of the latest repair that the caller knows of.
    pub latest_repair_id: Option<u64>,
}

/// Why a run is not repaired.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum Refused {
    /// It is not over.
    #[error("the run is still active; it can be repaired when it is over")]
    Active,
    /// Two ways to choose at once.
    #[error("give either rerun_all_failed_tasks or rerun_tasks, not both")]
    Both,
    /// No task is chosen.
    #[error("no task of the run would run again")]
    Nothing,
    /// A key that is no task.
    #[error("{0:?} is no task of this run")]
    Unknown(String),
    /// Somebody else was quicker, or the id is missing.
    #[error("the latest repair of this run is {latest}; give it as latest_repair_id")]
    Stale {
        /// Id of the latest repair.
        latest: u64,
    },
}

impl Run {
    /// The tasks that a repair would run again, by position: what a dialog shows before.
    ///
    /// # Errors
    /// When the run is not over, or the request chooses nothing, twice, or what is not there.
    pub fn chosen(&self, request: &Request) -> Result<Vec<usize>, Refused> {
        if !self.life_cycle.is_final() {
            return Err(Refused::Active);
        }
        if let Some(&latest) = self.repairs.last().filter(|latest| request.latest_repair_id != Some(**latest)) {
            return Err(Refused::Stale { latest });
        }
        let chosen = self.chosen_flags(request)?;
        let chosen: Vec<usize> = (0..chosen.len()).filter(|&at| chosen[at]).collect();
        if chosen.is_empty() { Err(Refused::Nothing) } else { Ok(chosen) }
    }

    fn chosen_flags(&self, request: &Request) -> Result<Vec<bool>, Refused> {
        let mut chosen = match (request.all_failed, request.tasks.is_empty()) {
            (true, false) => return Err(Refused::Both),
            (true, true) => {
                let is_bad = |end: Option<End>| end.is_some_and(|end| end.class() == Class::Bad);
                self.tasks.iter().map(|task| task.included && is_bad(task.end)).collect()
            }
            (false, _) => self.named(&request.tasks)?,
        };
        if request.dependents {
            chosen = self.graph.with_descendants(&chosen);
            chosen.iter_mut().zip(&self.tasks).for_each(|(chosen, task)| *chosen &= task.included);
        }
        Ok(chosen)
    }

    fn named(&self, keys: &[String]) -> Result<Vec<bool>, Refused> {
        let mut named = vec![false; self.tasks.len()];
        for key in keys {
            let at = self.graph.position(key).filter(|&at| self.tasks[at].included);
            named[at.ok_or_else(|| Refused::Unknown(key.clone()))?] = true;
        }
        Ok(named)
    }

    /// Runs the chosen tasks again; the others keep their ends. The repair gets this id.
    ///
    /// # Errors
    /// As [`Run::chosen`]; the run is then as it was.
    pub fn repair(&mut self, id: u64, request: &Request, at_ms: i64) -> Result<Step, Refused> {
        let chosen = self.chosen(request)?;
        let flags: Vec<bool> = (0..self.tasks.len()).map(|at| chosen.binary_search(&at).is_ok()).collect();
        self.now_ms = self.now_ms.max(at_ms);
        self.repairs.push(id);
        self.open_round(&flags);
        let mut step = Step::default();
        self.begin(&mut step);
        self.run_timers(self.now_ms, &mut step);
        step.wake_at_ms = self.wake_at_ms();
        Ok(step)
    }
}
