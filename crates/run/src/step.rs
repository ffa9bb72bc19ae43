//! One run as a value: `step` takes what happened and when, changes the state and says what is to be
//! done.

use crate::graph::{Graph, Kind};
use crate::rule::{self, Before, Stop, Verdict};
use crate::states::{Code, End, LifeCycle, Outcome};
use crate::task_run::{Place, TaskRun, Timer, Waiting, Why};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Names one start of one piece of work in a run. It grows with every start; a report that carries
/// another than the one at work is of the past.
pub type Epoch = u64;

/// Limits of a run as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// `timeout_seconds`, ms; `None`: none.
    pub timeout_ms: Option<i64>,
    /// `RUN_DURATION_SECONDS` of the health rules, ms: crossing it is told once, the run goes on.
    pub warning_ms: Option<i64>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// The run left the queue.
    Admitted,
    /// Time went by.
    Tick,
    /// The launcher has taken up a piece of work.
    Launched(Epoch),
    /// It is at work.
    Started(Epoch),
    /// It is over.
    Ended(Epoch, Ended),
    /// The list of a for-each is known: how many items, or that it cannot be.
    Listed(usize, Result<u32, Ended>),
    /// The run has waited in the queue for too long.
    GiveUp(End),
    /// The whole run is to end.
    Stop(Stop),
    /// One task is to end; those after it follow their conditions.
    StopTask(usize),
}

/// How a piece of work says it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// How.
    pub end: End,
    /// The answer of a condition.
    pub answer: Option<bool>,
}

impl From<End> for Ended {
    fn from(end: End) -> Self {
        Self { end, answer: None }
    }
}

/// What is to be done outside, after the changes are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Start a piece of work: an attempt of a task, or of one item of a for-each.
    Launch(Launch),
    /// Find out the items of a for-each; answered by `Listed`.
    List(usize),
    /// End a piece of work, gently first; answered by `Ended`.
    Stop(Epoch),
    /// The run takes longer than `warning_ms`: tell it once.
    Warn,
    /// A piece of work is over, and how it counts; it may be tried again.
    WorkEnded(Epoch, End),
    /// A task is over for this round.
    TaskEnded(usize, End),
    /// The run is over for this round.
    RunEnded(End),
}

/// One start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Names the start.
    pub epoch: Epoch,
    /// Position of the task.
    pub task: usize,
    /// Item of a for-each.
    pub item: Option<u32>,
    /// `attempt_number`, from 0; goes on over repairs.
    pub attempt: u32,
}

/// A change of state, for the log of transitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// Position of the task; `None`: the run itself.
    pub task: Option<usize>,
    /// Before.
    pub from: LifeCycle,
    /// After.
    pub to: LifeCycle,
    /// When, epoch ms.
    pub at_ms: i64,
}

/// What one step gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Changes of state, in their order.
    pub transitions: Vec<Transition>,
    /// What is to be done, in its order.
    pub effects: Vec<Effect>,
    /// When to come back with a `Tick`, unless something happens before, epoch ms.
    pub wake_at_ms: Option<i64>,
}

/// One run: what it is to do, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub(crate) graph: Graph,
    pub(crate) limits: Limits,
    pub(crate) disabled: Vec<bool>,
    pub(crate) life_cycle: LifeCycle,
    pub(crate) end: Option<End>,
    pub(crate) tasks: Vec<TaskRun>,
    /// Tasks of this round that are not over.
    pub(crate) open: usize,
    pub(crate) stopping: Option<Stop>,
    /// Ids of the repairs, the latest last.
    pub(crate) repairs: Vec<u64>,
    /// When this round left the queue.
    pub(crate) started_ms: i64,
    pub(crate) now_ms: i64,
    pub(crate) next_epoch: Epoch,
    pub(crate) live: BTreeMap<Epoch, Place>,
    pub(crate) timers: BTreeSet<(i64, Timer)>,
    /// Whether only named tasks run.
    pub(crate) is_partial: bool,
    pub(crate) changed: Changed,
}

/// What is not as it was before the last changes were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) tasks: BTreeSet<usize>,
    pub(crate) epochs: BTreeSet<Epoch>,
}

impl Run {
    /// A run of all tasks, or of the named ones only, that waits to be admitted.
    #[must_use]
    pub fn new(graph: Graph, limits: Limits, only: Option<&[usize]>) -> Self {
        let disabled = match only {
            None => graph.disabled(),
            // A task that is named runs, disabled or not.
            Some(_) => vec![false; graph.tasks().len()],
        };
        let included = |at| only.is_none_or(|only| only.contains(&at));
        let tasks = (0..graph.tasks().len()).map(|at| TaskRun::new(included(at))).collect();
        let mut run = Self {
            graph,
            limits,
            disabled,
            life_cycle: LifeCycle::Queued,
            end: None,
            tasks,
            open: 0,
            stopping: None,
            repairs: Vec::new(),
            started_ms: 0,
            now_ms: 0,
            next_epoch: 1,
            live: BTreeMap::new(),
            timers: BTreeSet::new(),
            is_partial: only.is_some(),
            changed: Changed::default(),
        };
        run.changed.tasks.extend(0..run.tasks.len());
        let all: Vec<bool> = run.tasks.iter().map(|task| task.included).collect();
        run.open_round(&all);
        run
    }

    /// What it is to do.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Its limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Where it is.
    #[must_use]
    pub fn life_cycle(&self) -> LifeCycle {
        self.life_cycle
    }

    /// How its last round ended.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Its tasks, by position.
    #[must_use]
    pub fn tasks(&self) -> &[TaskRun] {
        &self.tasks
    }

    /// Ids of its repairs, the latest last.
    #[must_use]
    pub fn repairs(&self) -> &[u64] {
        &self.repairs
    }

    /// Epochs at work.
    pub fn live(&self) -> impl Iterator<Item = Epoch> + '_ {
        self.live.keys().copied()
    }

    /// Whether a piece of work is wanted: it is at work, or about to be, and nobody has stopped it.
    #[must_use]
    pub fn wants(&self, epoch: Epoch) -> bool {
        self.live.get(&epoch).is_some_and(|place| place.stop.is_none())
    }

    /// Takes what happened at a time, epoch ms. Time that runs backwards is taken as standing
    /// still. What is due before that time happens first.
    pub fn step(&mut self, input: &Input, at_ms: i64) -> Step {
        let at_ms = at_ms.max(self.now_ms);
        let mut step = Step::default();
        self.run_timers(at_ms - 1, &mut step);
        self.now_ms = at_ms;
        self.take(input, &mut step);
        self.run_timers(at_ms, &mut step);
        step.wake_at_ms = self.wake_at_ms();
        step
    }

    /// The same tasks by another definition, for the next round of a run that is over.
    pub(crate) fn renew(&mut self, graph: Graph, limits: Limits) {
        if !self.is_partial {
            self.disabled = graph.disabled();
        }
        (self.graph, self.limits) = (graph, limits);
    }

    pub(crate) fn wake_at_ms(&self) -> Option<i64> {
        self.timers.first().map(|(at, _)| *at)
    }

    fn take(&mut self, input: &Input, step: &mut Step) {
        match *input {
            Input::Tick => {}
            Input::Admitted if self.life_cycle == LifeCycle::Queued => self.begin(step),
            Input::Admitted => {}
            Input::Launched(epoch) => self.advance(epoch, LifeCycle::Pending, step),
            Input::Started(epoch) => self.started(epoch, step),
            Input::Ended(epoch, ended) => self.ended(epoch, ended, step),
            Input::Listed(task, listed) => self.listed(task, listed, step),
            Input::GiveUp(end) => self.give_up(end, step),
            Input::Stop(stop) => self.stop(stop, step),
            Input::StopTask(task) => self.stop_task(task, step),
        }
    }

    /// Marks the chosen tasks as not over and counts what each waits for.
    pub(crate) fn open_round(&mut self, chosen: &[bool]) {
        self.open = chosen.iter().filter(|&&is| is).count();
        self.end = None;
        self.stopping = None;
        for at in 0..self.tasks.len() {
            if chosen[at] {
                let waits_for = self.graph.parents(at).iter().filter(|parent| chosen[parent.task]).count();
                self.task_mut(at).reopen(waits_for);
            }
        }
    }

    /// The first moment of a round.
    pub(crate) fn begin(&mut self, step: &mut Step) {
        self.started_ms = self.now_ms;
        self.move_run(LifeCycle::Pending, step);
        let timers = [(self.limits.warning_ms, Timer::Warning), (self.limits.timeout_ms, Timer::RunTimeout)];
        for (after, timer) in timers {
            self.timers.extend(after.map(|after| (self.now_ms + after, timer)));
        }
        let ready: Vec<usize> = self.graph.order().iter().copied().filter(|&at| self.is_ready(at)).collect();
        ready.into_iter().for_each(|at| self.settle(at, step));
        self.close_if_done(step);
    }

    fn is_ready(&self, at: usize) -> bool {
        let task = &self.tasks[at];
        task.included && task.life_cycle == LifeCycle::Blocked && task.waits_for == 0
    }

    /// Decides on a task, and on those after it as long as decisions follow at once.
    fn settle(&mut self, first: usize, step: &mut Step) {
        let mut todo = vec![first];
        while let Some(at) = todo.pop() {
            if !self.is_ready(at) {
                continue;
            }
            match self.verdict(at) {
                Verdict::Start => self.start(at, step),
                Verdict::End(end) => todo.extend(self.finish(at, end, step)),
            }
        }
    }

    fn verdict(&self, at: usize) -> Verdict {
        if self.disabled[at] {
            return Verdict::End(End::DISABLED);
        }
        let wants_value = self.graph.reads_disabled(at, &self.disabled);
        let before = self.graph.parents(at).iter().filter_map(|parent| {
            let task = self.tasks.get(parent.task).filter(|task| task.included)?;
            let end = task.end.filter(|_| !(wants_value && self.disabled[parent.task]))?;
            // A condition that gave no answer is judged by its end alone.
            let outcome_met = parent.outcome.is_none_or(|wanted| task.answer.is_none_or(|given| given == wanted));
            Some(Before { end, outcome_met })
        });
        let before: Vec<Before> = before.collect();
        match self.stopping {
            Some(_) if before.iter().any(|b| b.end.is_cancellation()) => Verdict::End(End::UPSTREAM_CANCELED),
            Some(stop) => Verdict::End(stop.of_task()),
            None if self.tasks[at].stopped => Verdict::End(End::CANCELED_BY_USER),
            None => rule::verdict(self.graph.tasks()[at].run_if, &before),
        }
    }

    fn start(&mut self, at: usize, step: &mut Step) {
        self.move_task(at, LifeCycle::Queued, step);
        match self.graph.tasks()[at].kind {
            Kind::ForEach { .. } => step.effects.push(Effect::List(at)),
            Kind::Work | Kind::Condition => self.launch(at, None, 0, step),
        }
    }

    fn launch(&mut self, task: usize, item: Option<u32>, tries: u32, step: &mut Step) {
        let epoch = self.next_epoch;
        self.next_epoch += 1;
        let run = self.task_mut(task);
        let attempt = if item.is_some() { tries } else { run.attempts };
        run.attempts += 1;
        run.items.active += 1;
        let is_waiting = run.life_cycle == LifeCycle::WaitingForRetry;
        let place = Place { task, item, attempt: tries, since_ms: self.now_ms, is_started: false, stop: None };
        self.live.insert(epoch, place);
        self.changed.epochs.insert(epoch);
        step.effects.push(Effect::Launch(Launch { epoch, task, item, attempt }));
        if is_waiting {
            self.move_task(task, LifeCycle::Pending, step);
        }
    }

    /// Moves the task of an epoch on; a for-each shows the furthest of its items.
    fn advance(&mut self, epoch: Epoch, to: LifeCycle, step: &mut Step) {
        let Some(place) = self.live.get(&epoch).copied() else { return };
        let now = self.tasks[place.task].life_cycle;
        let goes = match to {
            LifeCycle::Pending => now == LifeCycle::Queued,
            _ => matches!(now, LifeCycle::Queued | LifeCycle::Pending),
        };
        if goes {
            self.move_task(place.task, to, step);
        }
        if self.life_cycle == LifeCycle::Pending {
            self.move_run(LifeCycle::Running, step);
        }
    }

    fn started(&mut self, epoch: Epoch, step: &mut Step) {
        let now_ms = self.now_ms;
        let Some(place) = self.live.get_mut(&epoch).filter(|place| !place.is_started) else { return };
        (place.since_ms, place.is_started) = (now_ms, true);
        self.changed.epochs.insert(epoch);
        let place = *place;
        let timeout = self.graph.tasks()[place.task].timeout_ms.filter(|_| place.stop.is_none());
        self.timers.extend(timeout.map(|timeout| (now_ms + timeout, Timer::AttemptTimeout(epoch))));
        self.advance(epoch, LifeCycle::Running, step);
    }

    fn ended(&mut self, epoch: Epoch, ended: Ended, step: &mut Step) {
        // Of the past, or told twice.
        let Some(place) = self.live.remove(&epoch) else { return };
        self.changed.epochs.insert(epoch);
        self.forget_timeout(epoch, &place);
        self.task_mut(place.task).items.active -= 1;
        // What was stopped was stopped, whatever it says of itself.
        let end = match place.stop {
            None => ended.end,
            Some(Why::TimedOut) => End::TIMED_OUT,
            Some(Why::Stopped) => self.stopping.map_or(End::CANCELED_BY_USER, Stop::of_task),
        };
        step.effects.push(Effect::WorkEnded(epoch, end));
        if self.may_retry(&place, end) {
            self.wait_for_retry(&place, step);
            return;
        }
        if place.stop.is_none() {
            self.task_mut(place.task).answer = ended.answer;
        }
        match place.item {
            None => self.over(place.task, end, step),
            Some(_) => self.item_over(&place, end, step),
        }
    }

    fn may_retry(&self, place: &Place, end: End) -> bool {
        let retry = &self.graph.tasks()[place.task].retry;
        let kind = match end.outcome {
            Some(Outcome::Failed) => true,
            Some(Outcome::TimedOut) => retry.on_timeout,
            _ => false,
        };
        // The same settings fail the same way.
        let may_help = end.code != Code::InvalidRunConfiguration;
        kind && may_help && retry.allows(place.attempt) && self.stopping.is_none() && !self.tasks[place.task].stopped
    }

    fn wait_for_retry(&mut self, place: &Place, step: &mut Step) {
        let interval = self.graph.tasks()[place.task].retry.min_interval_ms;
        // Never in the step that it failed in: what fails at once for ever must leave room for others.
        let until_ms = (place.since_ms + interval).max(self.now_ms + 1);
        self.timers.insert((until_ms, Timer::Retry { task: place.task, item: place.item }));
        let task = self.task_mut(place.task);
        task.items.waiting.insert(place.item.unwrap_or_default(), Waiting { tries: place.attempt + 1, until_ms });
        if task.items.active == 0 {
            self.move_task(place.task, LifeCycle::WaitingForRetry, step);
        }
    }

    fn retry(&mut self, task: usize, item: Option<u32>, step: &mut Step) {
        let waited = self.task_mut(task).items.waiting.remove(&item.unwrap_or_default());
        self.launch(task, item, waited.map_or(0, |waited| waited.tries), step);
    }

    fn forget_timeout(&mut self, epoch: Epoch, place: &Place) {
        if let Some(timeout) = self.graph.tasks()[place.task].timeout_ms {
            self.timers.remove(&(place.since_ms + timeout, Timer::AttemptTimeout(epoch)));
        }
    }

    fn task_mut(&mut self, at: usize) -> &mut TaskRun {
        self.changed.tasks.insert(at);
        &mut self.tasks[at]
    }

    fn listed(&mut self, at: usize, listed: Result<u32, Ended>, step: &mut Step) {
        let waits = |task: &TaskRun| task.life_cycle == LifeCycle::Queued && task.items.listed.is_none();
        if !self.tasks.get(at).is_some_and(waits) || !matches!(self.graph.tasks()[at].kind, Kind::ForEach { .. }) {
            return;
        }
        match listed {
            _ if self.stopping.is_some() || self.tasks[at].stopped => self.items_done(at, step),
            Err(ended) => self.over(at, ended.end, step),
            Ok(count) => {
                self.task_mut(at).items.listed = Some(count);
                self.more_items(at, step);
            }
        }
    }

    /// Starts items up to the concurrency; the task is over when there is none left.
    fn more_items(&mut self, at: usize, step: &mut Step) {
        let Kind::ForEach { concurrency } = self.graph.tasks()[at].kind else { return };
        let is_stopped = self.stopping.is_some() || self.tasks[at].stopped;
        loop {
            let items = &self.tasks[at].items;
            let left = items.listed.unwrap_or_default() - items.next;
            if is_stopped || left == 0 || items.open() >= concurrency.max(1) {
                break;
            }
            let item = items.next;
            self.task_mut(at).items.next += 1;
            self.launch(at, Some(item), 0, step);
        }
        if self.tasks[at].items.open() == 0 {
            self.items_done(at, step);
        }
    }

    fn item_over(&mut self, place: &Place, end: End, step: &mut Step) {
        self.task_mut(place.task).items.bad += u32::from(end.outcome != Some(Outcome::Success));
        self.more_items(place.task, step);
    }

    fn items_done(&mut self, at: usize, step: &mut Step) {
        let task = &self.tasks[at];
        let end = match self.stopping {
            Some(stop) => stop.of_task(),
            None if task.stopped => End::CANCELED_BY_USER,
            None if task.items.bad > 0 => End::FAILED,
            None => End::SUCCESS,
        };
        self.over(at, end, step);
    }

    /// A task that was at work is over.
    fn over(&mut self, at: usize, end: End, step: &mut Step) {
        let ready = self.finish(at, end, step);
        ready.into_iter().for_each(|at| self.settle(at, step));
        self.close_if_done(step);
    }

    /// Writes a task's end; gives the ones that wait for nothing more.
    fn finish(&mut self, at: usize, end: End, step: &mut Step) -> Vec<usize> {
        self.move_task(at, end.life_cycle, step);
        self.task_mut(at).end = Some(end);
        self.open -= 1;
        step.effects.push(Effect::TaskEnded(at, end));
        let mut ready = Vec::new();
        for &child in self.graph.children(at) {
            let task = &mut self.tasks[child];
            if task.included && task.life_cycle == LifeCycle::Blocked && task.waits_for > 0 {
                task.waits_for -= 1;
                if task.waits_for == 0 {
                    ready.push(child);
                }
            }
        }
        ready
    }

    fn close_if_done(&mut self, step: &mut Step) {
        if self.open > 0 || self.life_cycle.is_final() {
            return;
        }
        let ends: Vec<Option<End>> = self.tasks.iter().map(|task| task.end.filter(|_| task.included)).collect();
        let end = rule::result(&self.graph, &ends, self.stopping);
        self.timers.clear();
        self.end = Some(end);
        self.move_run(end.life_cycle, step);
        step.effects.push(Effect::RunEnded(end));
    }

    /// Ends a run that never left the queue, and its tasks with it.
    fn give_up(&mut self, end: End, step: &mut Step) {
        if self.life_cycle != LifeCycle::Queued {
            return;
        }
        for at in 0..self.tasks.len() {
            if self.tasks[at].included {
                self.finish(at, end, step);
            }
        }
        self.end = Some(end);
        self.move_run(end.life_cycle, step);
        step.effects.push(Effect::RunEnded(end));
    }

    fn stop(&mut self, stop: Stop, step: &mut Step) {
        if self.life_cycle.is_final() || self.stopping.is_some() {
            return;
        }
        self.stopping = Some(stop);
        self.timers.clear();
        self.move_run(LifeCycle::Terminating, step);
        let epochs: Vec<Epoch> = self.live.keys().copied().collect();
        epochs.into_iter().for_each(|epoch| self.stop_epoch(epoch, Why::Stopped, step));
        for at in 0..self.tasks.len() {
            if !self.tasks[at].items.waiting.is_empty() {
                self.task_mut(at).items.waiting.clear();
            }
        }
        for at in self.graph.order().to_vec() {
            if self.is_ready(at) {
                self.settle(at, step);
            } else if self.tasks[at].is_idle() {
                let ready = self.finish(at, stop.of_task(), step);
                ready.into_iter().for_each(|at| self.settle(at, step));
            }
        }
        self.close_if_done(step);
    }

    fn stop_task(&mut self, at: usize, step: &mut Step) {
        let can = |task: &TaskRun| task.included && !task.life_cycle.is_final() && !task.stopped;
        if self.life_cycle.is_final() || self.stopping.is_some() || !self.tasks.get(at).is_some_and(can) {
            return;
        }
        self.task_mut(at).stopped = true;
        self.timers.retain(|(_, timer)| !matches!(timer, Timer::Retry { task, .. } if *task == at));
        self.task_mut(at).items.waiting.clear();
        let epochs: Vec<Epoch> = self.live.iter().filter(|(_, p)| p.task == at).map(|(epoch, _)| *epoch).collect();
        epochs.iter().for_each(|&epoch| self.stop_epoch(epoch, Why::Stopped, step));
        // One that waits for others ends when they do; nothing waits for its list or its retry.
        if epochs.is_empty() && self.tasks[at].life_cycle != LifeCycle::Blocked {
            self.over(at, End::CANCELED_BY_USER, step);
        }
    }

    fn stop_epoch(&mut self, epoch: Epoch, why: Why, step: &mut Step) {
        let Some(place) = self.live.get_mut(&epoch).filter(|place| place.stop.is_none()) else { return };
        place.stop = Some(why);
        let place = *place;
        let task = place.task;
        self.changed.epochs.insert(epoch);
        self.forget_timeout(epoch, &place);
        step.effects.push(Effect::Stop(epoch));
        if self.graph.tasks()[task].kind == Kind::Work || why == Why::Stopped {
            self.move_task(task, LifeCycle::Terminating, step);
        }
    }

    pub(crate) fn run_timers(&mut self, until_ms: i64, step: &mut Step) {
        while let Some(&(at, timer)) = self.timers.first().filter(|(at, _)| *at <= until_ms) {
            self.timers.pop_first();
            self.now_ms = self.now_ms.max(at);
            match timer {
                Timer::Warning => step.effects.push(Effect::Warn),
                Timer::RunTimeout => self.stop(Stop::Timeout, step),
                Timer::AttemptTimeout(epoch) => self.stop_epoch(epoch, Why::TimedOut, step),
                Timer::Retry { task, item } => self.retry(task, item, step),
            }
        }
    }

    fn move_task(&mut self, at: usize, to: LifeCycle, step: &mut Step) {
        let from = std::mem::replace(&mut self.task_mut(at).life_cycle, to);
        if from != to {
            step.transitions.push(Transition { task: Some(at), from, to, at_ms: self.now_ms });
        }
    }

    pub(crate) fn move_run(&mut self, to: LifeCycle, step: &mut Step) {
        let from = std::mem::replace(&mut self.life_cycle, to);
        if from != to {
            step.transitions.push(Transition { task: None, from, to, at_ms: self.now_ms });
        }
    }
}
