//! A run as rows, so that a store can keep it and give it back.
//!
//! One row of the run itself, one a task, one a piece of work that is not over. [`Run::changes`]
//! gives those that a step changed, which are written in one transaction with its transitions and
//! effects; [`Run::restore`] makes the run of them again, in another process as well. What follows
//! from the rest (who waits for whom, timers) is not kept.

use crate::graph::{Graph, Kind};
use crate::rule::Stop;
use crate::states::{End, LifeCycle};
use crate::step::{Changed, Effect, Epoch, Launch, Limits, Run};
use crate::task_run::{Place, TaskRun, Timer};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// The row of the run itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    life_cycle: LifeCycle,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<End>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stopping: Option<Stop>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    repairs: Vec<u64>,
    started_ms: i64,
    now_ms: i64,
    next_epoch: Epoch,
    is_partial: bool,
}

/// The row of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Live(Place);

/// What is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The row of the run.
    pub head: Head,
    /// Rows of tasks, by position.
    pub tasks: Vec<(usize, TaskRun)>,
    /// Rows of work; `None`: it is over and its row goes.
    pub live: Vec<(Epoch, Option<Live>)>,
}

/// Rows that make no run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Broken {
    /// Not one row a task.
    #[error("the run has {tasks} tasks, but {rows} of them are kept")]
    Tasks {
        /// Tasks of its graph.
        tasks: usize,
        /// Rows.
        rows: usize,
    },
    /// Work of a task that is none.
    #[error("the work of epoch {0} is of no task of the run")]
    Work(Epoch),
}

impl Run {
    /// All that changed since the changes were last taken; of a new run everything.
    pub fn changes(&mut self) -> Changes {
        let Changed { tasks, epochs } = std::mem::take(&mut self.changed);
        Changes {
            head: self.head(),
            tasks: tasks.into_iter().map(|at| (at, self.tasks[at].clone())).collect(),
            live: epochs.into_iter().map(|epoch| (epoch, self.live.get(&epoch).copied().map(Live))).collect(),
        }
    }

    fn head(&self) -> Head {
        Head {
            life_cycle: self.life_cycle,
            end: self.end,
            stopping: self.stopping,
            repairs: self.repairs.clone(),
            started_ms: self.started_ms,
            now_ms: self.now_ms,
            next_epoch: self.next_epoch,
            is_partial: self.is_partial,
        }
    }

    /// The run of its rows. `tasks` are all of them, by position.
    ///
    /// # Errors
    /// When rows and graph do not belong together.
    pub fn restore(
        graph: Graph,
        limits: Limits,
        head: Head,
        tasks: Vec<TaskRun>,
        live: impl IntoIterator<Item = (Epoch, Live)>,
    ) -> Result<Self, Broken> {
        if tasks.len() != graph.tasks().len() {
            return Err(Broken::Tasks { tasks: graph.tasks().len(), rows: tasks.len() });
        }
        let disabled = if head.is_partial { vec![false; tasks.len()] } else { graph.disabled() };
        let Head { life_cycle, end, stopping, repairs, started_ms, now_ms, next_epoch, is_partial } = head;
        let live: BTreeMap<Epoch, Place> = live.into_iter().map(|(epoch, Live(place))| (epoch, place)).collect();
        if let Some((epoch, _)) = live.iter().find(|(_, place)| place.task >= tasks.len()) {
            return Err(Broken::Work(*epoch));
        }
        let mut run = Self {
            open: tasks.iter().filter(|task| is_open(task)).count(),
            graph,
            limits,
            disabled,
            life_cycle,
            end,
            tasks,
            stopping,
            repairs,
            started_ms,
            now_ms,
            next_epoch,
            live,
            timers: BTreeSet::new(),
            is_partial,
            changed: Changed::default(),
        };
        run.count();
        run.timers = run.due();
        Ok(run)
    }

    /// What an engine that is gone may not have come to do, to be done once more by the one that
    /// restored the run: each epoch starts once, whoever launches it.
    #[must_use]
    pub fn unfinished(&self) -> Vec<Effect> {
        let waits_for_list = |task: &TaskRun| task.life_cycle == LifeCycle::Queued && task.items.listed.is_none();
        let is_list = |at: usize| matches!(self.graph.tasks()[at].kind, Kind::ForEach { .. });
        let lists = self.tasks.iter().enumerate().filter(|(at, task)| is_list(*at) && waits_for_list(task));
        let mut effects: Vec<Effect> = lists.map(|(at, _)| Effect::List(at)).collect();
        for (&epoch, place) in &self.live {
            let &Place { task, item, attempt, .. } = place;
            effects.push(Effect::Launch(Launch { epoch, task, item, attempt }));
            effects.extend(place.stop.map(|_| Effect::Stop(epoch)));
        }
        effects
    }

    /// What follows from the states of the tasks.
    fn count(&mut self) {
        for at in 0..self.tasks.len() {
            let parents = self.graph.parents(at);
            let waits_for = parents.iter().filter(|parent| is_open(&self.tasks[parent.task])).count();
            let is_blocked = self.tasks[at].included && self.tasks[at].life_cycle == LifeCycle::Blocked;
            self.tasks[at].waits_for = if is_blocked { waits_for } else { 0 };
        }
        for place in self.live.values() {
            self.tasks[place.task].items.active += 1;
        }
    }

    /// All that has not come yet. What was due until `now_ms` has come.
    fn due(&self) -> BTreeSet<(i64, Timer)> {
        if self.stopping.is_some() || !is_running(self.life_cycle) {
            return BTreeSet::new();
        }
        let of_run = [(self.limits.warning_ms, Timer::Warning), (self.limits.timeout_ms, Timer::RunTimeout)];
        let of_run = of_run.into_iter().filter_map(|(after, timer)| Some((self.started_ms + after?, timer)));
        let mut due: BTreeSet<(i64, Timer)> = of_run.filter(|(at, _)| *at > self.now_ms).collect();
        for (&epoch, place) in self.live.iter().filter(|(_, place)| place.is_started && place.stop.is_none()) {
            let timeout = self.graph.tasks()[place.task].timeout_ms;
            due.extend(timeout.map(|timeout| (place.since_ms + timeout, Timer::AttemptTimeout(epoch))));
        }
        for (task, run) in self.tasks.iter().enumerate() {
            let is_list = run.items.listed.is_some();
            due.extend(run.items.waiting.iter().map(|(&item, waiting)| {
                (waiting.until_ms, Timer::Retry { task, item: Some(item).filter(|_| is_list) })
            }));
        }
        due
    }
}

fn is_open(task: &TaskRun) -> bool {
    task.included && !task.life_cycle.is_final()
}

fn is_running(life_cycle: LifeCycle) -> bool {
    !life_cycle.is_final() && life_cycle != LifeCycle::Queued
}
