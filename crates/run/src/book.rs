//! All runs that are not over, as one value: who runs, who waits, what is to be done outside.
//!
//! In: what clients and executors say, with the time and with ids that nobody has. Out:
//! [`Book::take`] gives the rows to write and then, once they are written, what to do. It touches
//! nothing outside, so that a whole engine can be played in a test.

mod act;
mod active;
mod known;
mod rows;

pub use act::{Act, Finished, Given, Program, TASK_RUN_ID, TASK_RUN_PROPERTY};
pub use rows::{About, Detail, Parent, Round};

use crate::admission::{self, Admission, Allowed};
use crate::repair::{Refused, Request};
use crate::rule::Stop;
use crate::settings::Settings;
use crate::states::{LifeCycle, QueueCode};
use crate::step::{Epoch, Input};
use active::Active;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use store::jobs::{Change, Run as RunRow, TaskRun as TaskRow};

/// Most runs of a job that wait.
pub const MOST_QUEUED: u32 = 10_000;

/// Ids that were reserved and have not been given out.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    next: i64,
    end: i64,
}

impl Ids {
    /// So many, from the first on.
    #[must_use]
    pub fn new(first: i64, many: i64) -> Self {
        Self { next: first, end: first + many }
    }

    /// How many are left.
    #[must_use]
    pub fn left(&self) -> i64 {
        self.end - self.next
    }

    /// The next one. Whoever calls has seen to it that some are left.
    pub fn take(&mut self) -> i64 {
        self.next += 1;
        self.next - 1
    }
}

/// When something happens, and the ids that it may use.
#[derive(Debug)]
pub struct Moment<'a> {
    /// Epoch ms.
    pub now_ms: i64,
    /// For what comes to be.
    pub ids: &'a mut Ids,
}

/// A run that is to be.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// Of which job.
    pub job_id: i64,
    /// `number_in_job`.
    pub number: i64,
    /// `run_type`.
    pub run_type: &'static str,
    /// Its name.
    pub name: String,
    /// Who starts it.
    pub creator: String,
    /// `trigger`.
    pub cause: &'static str,
    /// With what.
    pub about: About,
    /// The definition that `about` holds.
    pub settings: Settings,
    /// Whether it may wait; else as the definition says.
    pub queues: Option<bool>,
}

/// The runs of one job that are not over.
#[derive(Debug, Default)]
struct Line {
    running: BTreeSet<i64>,
    waiting: VecDeque<i64>,
    concurrent_runs: u32,
}

/// All runs that are not over.
#[derive(Debug, Default)]
pub struct Book {
    runs: BTreeMap<i64, Active>,
    lines: HashMap<i64, Line>,
    wakes: BTreeSet<(i64, i64)>,
    out: Out,
    changed: BTreeSet<i64>,
}

/// What handling an input leaves behind.
#[derive(Debug, Default)]
struct Out {
    /// To be handled at once: run, input, what is known of an end.
    todo: VecDeque<(i64, Input, Option<Finished>)>,
    acts: Vec<Act>,
    changes: Vec<Change>,
}

impl Book {
    /// A new run: begins, waits or is over at once. Gives its id.
    pub fn start(&mut self, new: NewRun, at: &mut Moment<'_>) -> i64 {
        let run_id = at.ids.take();
        let line = self.lines.entry(new.job_id).or_default();
        line.concurrent_runs = new.settings.concurrent_runs;
        let allowed = Allowed {
            concurrent_runs: line.concurrent_runs,
            queues: new.queues.unwrap_or(new.settings.queues),
            queued_runs: MOST_QUEUED,
        };
        let admission = admission::admit(allowed, line.running.len() as u32, line.waiting.len() as u32);
        let mut active = match admission {
            Admission::Skip(end) => {
                let is_empty = line.running.is_empty() && line.waiting.is_empty();
                is_empty.then(|| self.lines.remove(&new.job_id));
                self.out.changes.push(Change::Run(rows::skipped(run_id, &new, end, at.now_ms)));
                self.out.acts.push(Act::Skipped { job_id: new.job_id, run_id, end, ended_ms: at.now_ms });
                return run_id;
            }
            Admission::Begin | Admission::Wait(_) => Active::new(run_id, new, at),
        };
        if let Admission::Wait(code) = admission {
            active.queued(code, &queue_message(code, line));
            line.waiting.push_back(run_id);
        } else {
            line.running.insert(run_id);
            self.out.todo.push_back((run_id, Input::Admitted, None));
        }
        self.out.changes.push(Change::Run(active.row()));
        self.runs.insert(run_id, active);
        self.settled(run_id, at);
        self.work_off(at);
        run_id
    }

    /// Something happened to a run; one that is over takes no notice.
    pub fn input(&mut self, run_id: i64, input: Input, at: &mut Moment<'_>) {
        self.out.todo.push_back((run_id, input, None));
        self.work_off(at);
    }

    /// A piece of work is over.
    pub fn finished(&mut self, run_id: i64, epoch: Epoch, finished: Finished, at: &mut Moment<'_>) {
        let input = Input::Ended(epoch, finished.end.into());
        self.out.todo.push_back((run_id, input, Some(finished)));
        self.work_off(at);
    }

    /// Whether the work of a run-job task is wanted: its run is not over, and nobody has stopped it.
    #[must_use]
    pub fn wants(&self, parent: Parent) -> bool {
        self.runs.get(&parent.run_id).is_some_and(|active| active.wants(parent.epoch))
    }

    /// Whether a job stands above a run-job task: run by it, it would wait for itself.
    #[must_use]
    pub fn is_above(&self, job_id: i64, parent: Parent) -> bool {
        let above = |parent: &Parent| self.runs.get(&parent.run_id)?.parent();
        let mut parents = std::iter::successors(Some(parent), above);
        parents.any(|parent| self.runs.get(&parent.run_id).is_some_and(|active| active.job_id() == job_id))
    }

    /// The child of a run-job task is there.
    pub fn child(&mut self, parent: Parent, child: i64) {
        if let Some(active) = self.runs.get_mut(&parent.run_id) {
            active.child(parent.task_run_id, child);
            self.changed.insert(parent.run_id);
        }
    }

    /// What is due until now.
    pub fn tick(&mut self, at: &mut Moment<'_>) {
        let due: Vec<i64> = self.wakes.iter().take_while(|(when, _)| *when <= at.now_ms).map(|(_, run)| *run).collect();
        for run_id in due {
            let waited = self.runs.get(&run_id).filter(|active| active.life_cycle() == LifeCycle::Queued);
            let too_long = waited.and_then(|active| admission::expired(active.start_ms(), at.now_ms));
            self.input(run_id, too_long.map_or(Input::Tick, Input::GiveUp), at);
        }
    }

    /// When to come back with a tick, epoch ms.
    #[must_use]
    pub fn wake_ms(&self) -> Option<i64> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// Ends a run.
    pub fn stop(&mut self, run_id: i64, stop: Stop, at: &mut Moment<'_>) {
        self.input(run_id, Input::Stop(stop), at);
    }

    /// Ends one task run, unless it is over, and leaves the others to their conditions.
    pub fn stop_task(&mut self, run_id: i64, task_run_id: i64, at: &mut Moment<'_>) {
        let position = self.runs.get(&run_id).and_then(|active| active.position_of(task_run_id));
        if let Some(position) = position {
            self.input(run_id, Input::StopTask(position), at);
        }
    }

    /// Runs of a job, or of all, that are not over, those that wait first; only these where that is
    /// asked.
    #[must_use]
    pub fn open(&self, job_id: Option<i64>, only_queued: bool) -> Vec<i64> {
        let wanted = |active: &&Active| {
            job_id.is_none_or(|job_id| active.job_id() == job_id)
                && (!only_queued || active.life_cycle() == LifeCycle::Queued)
        };
        let (waiting, others): (Vec<&Active>, Vec<&Active>) =
            self.runs.values().filter(wanted).partition(|active| active.life_cycle() == LifeCycle::Queued);
        waiting.into_iter().chain(others).map(Active::run_id).collect()
    }

    /// Whether a run is not over.
    #[must_use]
    pub fn is_open(&self, run_id: i64) -> bool {
        self.runs.contains_key(&run_id)
    }

    /// Runs part of a run again that is over: from its rows, in the order of the store. Gives the
    /// id of the repair.
    ///
    /// # Errors
    /// When the request cannot be; nothing has changed then.
    pub fn repair(
        &mut self,
        kept: Kept,
        settings: Option<(Settings, serde_json::Value)>,
        request: &Request,
        given: Given,
        at: &mut Moment<'_>,
    ) -> Result<i64, NotRepaired> {
        let run_id = kept.run.run_id;
        if self.runs.contains_key(&run_id) {
            return Err(Refused::Active.into());
        }
        let mut active = Active::restored(kept)?;
        if let Some((settings, json)) = settings {
            active.renew(settings, json);
        }
        let repair_id = at.ids.take();
        let step = active.repair(repair_id, request, given, at)?;
        let line = self.lines.entry(active.job_id()).or_default();
        line.running.insert(run_id);
        active.take_step(step, None, &mut self.out, at);
        self.runs.insert(run_id, active);
        self.settled(run_id, at);
        self.work_off(at);
        Ok(repair_id)
    }

    /// Takes up a run that an engine before this one left behind.
    ///
    /// # Errors
    /// When its rows make no run.
    pub fn resume(&mut self, kept: Kept, at: &mut Moment<'_>) -> Result<(), NotRepaired> {
        let active = Active::restored(kept)?;
        let (run_id, is_queued) = (active.run_id(), active.life_cycle() == LifeCycle::Queued);
        let line = self.lines.entry(active.job_id()).or_default();
        line.concurrent_runs = active.concurrent_runs();
        match is_queued {
            true => line.waiting.push_back(run_id),
            false => drop(line.running.insert(run_id)),
        }
        let unfinished = active.unfinished();
        self.runs.insert(run_id, active);
        if let Some(active) = self.runs.get_mut(&run_id) {
            active.again(unfinished, &mut self.out, at);
        }
        self.settled(run_id, at);
        self.work_off(at);
        Ok(())
    }

    /// Jobs that have runs which are not over.
    #[must_use]
    pub fn jobs(&self) -> Vec<i64> {
        self.lines.keys().copied().collect()
    }

    /// What a job allows now; `None`: as before. Runs that may begin do.
    pub fn allow(&mut self, job_id: i64, concurrent_runs: Option<u32>, at: &mut Moment<'_>) {
        if let Some(line) = self.lines.get_mut(&job_id) {
            line.concurrent_runs = concurrent_runs.unwrap_or(line.concurrent_runs);
            self.admit(job_id);
            self.work_off(at);
        }
    }

    /// The rows to write, and what to do once they are on the disk.
    pub fn take(&mut self) -> (Vec<Change>, Vec<Act>) {
        for run_id in std::mem::take(&mut self.changed) {
            let Some(active) = self.runs.get_mut(&run_id) else { continue };
            active.flush(&mut self.out.changes);
            if active.is_over() {
                self.runs.remove(&run_id);
            }
        }
        (std::mem::take(&mut self.out.changes), std::mem::take(&mut self.out.acts))
    }

    fn work_off(&mut self, at: &mut Moment<'_>) {
        while let Some((run_id, input, finished)) = self.out.todo.pop_front() {
            let Some(active) = self.runs.get_mut(&run_id) else { continue };
            active.input(&input, finished, &mut self.out, at);
            self.settled(run_id, at);
        }
    }

    /// Follows up on a run that has changed.
    fn settled(&mut self, run_id: i64, at: &Moment<'_>) {
        self.changed.insert(run_id);
        let Some(active) = self.runs.get_mut(&run_id) else { return };
        let (was, is) = active.new_wake();
        if was != is {
            was.map(|was| self.wakes.remove(&(was, run_id)));
            self.wakes.extend(is.map(|is| (is, run_id)));
        }
        let Some(end) = active.ended_now(at.now_ms) else { return };
        let (job_id, parent) = (active.job_id(), active.parent());
        let (started_ms, ended_ms) = (active.start_ms(), at.now_ms);
        self.out.acts.push(Act::Over { job_id, run_id, end, started_ms, ended_ms });
        if let Some(Parent { run_id, epoch, .. }) = parent {
            let end = rows::as_task(end);
            let finished = Finished { error: active.trouble(), ..Finished::of(end) };
            self.out.todo.push_back((run_id, Input::Ended(epoch, end.into()), Some(finished)));
        }
        if let Some(line) = self.lines.get_mut(&job_id) {
            line.running.remove(&run_id);
            line.waiting.retain(|waiting| *waiting != run_id);
        }
        self.admit(job_id);
    }

    fn admit(&mut self, job_id: i64) {
        let Some(line) = self.lines.get_mut(&job_id) else { return };
        while (line.running.len() as u32) < line.concurrent_runs
            && let Some(next) = line.waiting.pop_front()
        {
            line.running.insert(next);
            self.out.todo.push_back((next, Input::Admitted, None));
        }
        if line.running.is_empty() && line.waiting.is_empty() {
            self.lines.remove(&job_id);
        }
    }
}

/// A run with everything that is kept of it.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its row.
    pub run: RunRow,
    /// States of its tasks, by position.
    pub cores: Vec<String>,
    /// Its task runs, by position, item and attempt.
    pub task_runs: Vec<TaskRow>,
}

/// Why a run is not taken up again.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
pub enum NotRepaired {
    /// The request cannot be.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// What is kept of it makes no run.
    #[error("what is kept of run {run_id} makes no run: {why}")]
    Broken {
        /// Which.
        run_id: i64,
        /// Why.
        why: String,
    },
    /// It never began.
    #[error("run {0} never began, so that there is nothing to repair; run the job again")]
    NeverBegan(i64),
}

fn queue_message(code: QueueCode, line: &Line) -> String {
    match code {
        QueueCode::MaxConcurrentRuns => format!(
            "queued: {} of {} runs of this job are active, position {}",
            line.running.len(),
            line.concurrent_runs,
            line.waiting.len() + 1
        ),
        other => format!("queued: {other}"),
    }
}
