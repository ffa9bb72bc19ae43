//! One run that is not over: its state, its rows, and what its effects mean.

mod work;

use super::act::{Act, Finished, Given};
use super::rows::{self, About, Parent, Round, Row, kept};
use super::{Kept, Moment, NewRun, NotRepaired, Out};
use crate::admission;
use crate::record::{Head, Live};
use crate::repair::Request;
use crate::settings::Settings;
use crate::states::{Code, End, LifeCycle, Outcome, QueueCode};
use crate::step::{Effect, Ended, Epoch, Input, Launch, Run, Step, Transition};
use crate::task_run::TaskRun;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use store::jobs::{Change, Run as RunRow, RunState, TaskRun as TaskRow};
use work::Begun;

#[derive(Debug)]
pub(super) struct Active {
    run_id: i64,
    job_id: i64,
    name: String,
    creator: String,
    cause: String,
    number: i64,
    run_type: String,
    about: About,
    settings: Settings,
    core: Run,
    state: RunState,
    rounds: Vec<Round>,
    rows: HashMap<i64, Row>,
    /// The latest task run of each task; `None`: not part of this run.
    current: Vec<Option<i64>>,
    by_epoch: HashMap<Epoch, i64>,
    lists: HashMap<usize, Vec<Value>>,
    changed: BTreeSet<i64>,
    about_changed: bool,
    wake_ms: Option<i64>,
    step_wake_ms: Option<i64>,
    ended: Option<End>,
    transitions: Vec<Change>,
}

impl Active {
    pub fn new(run_id: i64, new: NewRun, at: &mut Moment<'_>) -> Self {
        let only = new.about.only.as_ref().and_then(|only| new.settings.only(only).ok());
        let core = Run::new(new.settings.graph().clone(), new.settings.limits, only.as_deref());
        let state = RunState {
            life_cycle: LifeCycle::Queued.word().to_owned(),
            start_ms: at.now_ms,
            core: Some(String::new()),
            ..RunState::default()
        };
        let tasks = new.settings.tasks.len();
        let mut active = Self {
            run_id,
            job_id: new.job_id,
            name: new.name,
            creator: new.creator,
            cause: new.cause.to_owned(),
            number: new.number,
            run_type: new.run_type.to_owned(),
            about: new.about,
            settings: new.settings,
            core,
            state,
            rounds: vec![Round { start_ms: at.now_ms, ..Round::default() }],
            rows: HashMap::new(),
            current: vec![None; tasks],
            by_epoch: HashMap::new(),
            lists: HashMap::new(),
            changed: BTreeSet::new(),
            about_changed: false,
            wake_ms: None,
            step_wake_ms: None,
            ended: None,
            transitions: Vec::new(),
        };
        for task in 0..tasks {
            if active.core.tasks()[task].included {
                active.new_row(task, None, 0, at);
            }
        }
        active
    }

    /// The run of its rows.
    pub fn restored(kept: Kept) -> Result<Self, NotRepaired> {
        let Kept { run, cores, task_runs } = kept;
        let run_id = run.run_id;
        let broken = |why: String| NotRepaired::Broken { run_id, why };
        let Some(head) = run.state.core.as_deref().filter(|core| !core.is_empty()) else {
            return Err(NotRepaired::NeverBegan(run_id));
        };
        let head: Head = serde_json::from_str(head).map_err(|e| broken(e.to_string()))?;
        let about: About = serde_json::from_str(&run.about).map_err(|e| broken(e.to_string()))?;
        let settings = Settings::read(&about.settings).map_err(|e| broken(e.to_string()))?;
        let rounds: Vec<Round> = serde_json::from_str(&run.state.rounds).map_err(|e| broken(e.to_string()))?;
        let cores: Result<Vec<TaskRun>, _> = cores.iter().map(|core| serde_json::from_str(core)).collect();
        let cores = cores.map_err(|e| broken(e.to_string()))?;
        let lives = lives(&task_runs).map_err(|e| broken(e.to_string()))?;
        let core = Run::restore(settings.graph().clone(), settings.limits, head, cores, lives)
            .map_err(|e| broken(e.to_string()))?;
        let (run_id, state) = (run.run_id, run.state.clone());
        let mut active = Self {
            run_id,
            job_id: run.job_id,
            name: run.name,
            creator: run.creator,
            cause: run.cause,
            number: run.number,
            run_type: run.run_type,
            about,
            current: vec![None; settings.tasks.len()],
            settings,
            step_wake_ms: core.wake_at_ms(),
            core,
            state,
            rounds,
            rows: HashMap::new(),
            by_epoch: HashMap::new(),
            lists: HashMap::new(),
            changed: BTreeSet::new(),
            about_changed: false,
            wake_ms: None,
            ended: None,
            transitions: Vec::new(),
        };
        active.take_rows(task_runs);
        Ok(active)
    }

    /// Rows come in the order of position and attempt: the last one of a task is its latest.
    fn take_rows(&mut self, task_runs: Vec<TaskRow>) {
        for row in task_runs {
            let (id, position) = (row.task_run_id, row.position as usize);
            if row.work.is_some()
                && let Some(epoch) = row.epoch
            {
                self.by_epoch.insert(epoch as Epoch, id);
            }
            if row.item.is_none()
                && let Some(current) = self.current.get_mut(position)
            {
                if let Some(before) = current.replace(id) {
                    self.rows.remove(&before);
                }
                self.rows.insert(id, Row::of(row));
            } else if row.work.is_some() {
                self.rows.insert(id, Row::of(row));
            }
        }
        for at in 0..self.current.len() {
            let inputs = self.current(at).and_then(|row| row.detail.resolved.get("inputs").cloned());
            if let Some(Value::Array(items)) = inputs {
                self.lists.insert(at, items);
            }
        }
    }

    /// Uses the definition as it is now, for a repair: when its tasks are the same ones.
    pub fn renew(&mut self, settings: Settings, json: Value) {
        let keys = |settings: &Settings| settings.tasks.iter().map(|task| task.key.clone()).collect::<Vec<_>>();
        if keys(&settings) != keys(&self.settings) || self.about.settings == json {
            return;
        }
        self.core.renew(settings.graph().clone(), settings.limits);
        self.settings = settings;
        self.about.settings = json;
        self.about_changed = true;
    }

    pub fn repair(
        &mut self,
        repair_id: i64,
        request: &Request,
        given: Given,
        at: &mut Moment<'_>,
    ) -> Result<Step, NotRepaired> {
        let chosen = self.core.chosen(request)?;
        let step = self.core.repair(repair_id.unsigned_abs(), request, at.now_ms)?;
        let Given { parameters, overriding } = given;
        let round = Round { id: Some(repair_id), start_ms: at.now_ms, parameters, overriding, ..Round::default() };
        self.rounds.push(round);
        self.state.end_ms = None;
        self.state.result = None;
        self.state.code = None;
        self.state.message.clear();
        self.lists.clear();
        for task in chosen {
            let attempt = self.current(task).map_or(0, |row| row.row.attempt + 1);
            self.new_row(task, None, attempt, at);
        }
        Ok(step)
    }

    fn new_row(&mut self, task: usize, item: Option<u32>, attempt: i64, at: &mut Moment<'_>) -> i64 {
        let id = at.ids.take();
        let row = TaskRow {
            task_run_id: id,
            run_id: self.run_id,
            position: task as i64,
            item: item.map(i64::from),
            task_key: self.key(task).to_owned(),
            attempt,
            round: self.rounds.len() as i64 - 1,
            life_cycle: LifeCycle::Blocked.word().to_owned(),
            ..TaskRow::default()
        };
        if item.is_none() {
            let before = self.current[task].replace(id);
            if let Some(round) = self.rounds.last_mut() {
                round.task_run_ids.push(id);
            }
            // It is written once more where it has changed, then goes.
            if let Some(before) = before.filter(|before| !self.changed.contains(before)) {
                self.rows.remove(&before);
            }
        }
        self.rows.insert(id, Row::new(row));
        self.changed.insert(id);
        id
    }

    pub fn row(&self) -> RunRow {
        RunRow {
            run_id: self.run_id,
            job_id: self.job_id,
            number: self.number,
            run_type: self.run_type.clone(),
            name: self.name.clone(),
            creator: self.creator.clone(),
            cause: self.cause.clone(),
            about: kept(&self.about),
            state: RunState { rounds: kept(&self.rounds), ..self.state.clone() },
        }
    }

    pub fn queued(&mut self, code: QueueCode, message: &str) {
        self.state.code = Some(code.word().to_owned());
        self.state.message = message.to_owned();
    }

    pub fn run_id(&self) -> i64 {
        self.run_id
    }

    pub fn job_id(&self) -> i64 {
        self.job_id
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn cause(&self) -> &str {
        &self.cause
    }

    pub fn start_ms(&self) -> i64 {
        self.state.start_ms
    }

    pub fn repair_count(&self) -> usize {
        self.rounds.len() - 1
    }

    pub fn concurrent_runs(&self) -> u32 {
        self.settings.concurrent_runs
    }

    pub fn life_cycle(&self) -> LifeCycle {
        self.core.life_cycle()
    }

    pub fn is_over(&self) -> bool {
        self.core.life_cycle().is_final()
    }

    pub fn parent(&self) -> Option<Parent> {
        self.about.parent
    }

    pub fn key(&self, task: usize) -> &str {
        &self.settings.tasks[task].key
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.settings.tasks.iter().map(|task| task.key.as_str())
    }

    pub fn position(&self, key: &str) -> Option<usize> {
        self.settings.graph().position(key)
    }

    pub fn current(&self, task: usize) -> Option<&Row> {
        self.rows.get(&(*self.current.get(task)?)?)
    }

    pub fn position_of(&self, task_run_id: i64) -> Option<usize> {
        let row = self.rows.get(&task_run_id).filter(|row| !row.is_over() && row.row.item.is_none());
        row.map(|row| row.row.position as usize)
    }

    pub fn parameter(&self, name: &str) -> Option<String> {
        let default = || self.settings.parameters.iter().find(|(known, _)| known == name).map(|(_, v)| v.clone());
        let of_repair = self.rounds.last().and_then(|round| round.parameters.get(name));
        of_repair.or_else(|| self.about.parameters.get(name)).cloned().or_else(default)
    }

    pub fn parameter_names(&self) -> impl Iterator<Item = &str> {
        let of_repair = self.rounds.last().into_iter().flat_map(|round| round.parameters.keys());
        let given = of_repair.chain(self.about.parameters.keys()).map(String::as_str);
        given.chain(self.settings.parameters.iter().map(|(name, _)| name.as_str()))
    }

    /// When it was to be woken, and when it is now.
    pub fn new_wake(&mut self) -> (Option<i64>, Option<i64>) {
        let is = match self.life_cycle() {
            life_cycle if life_cycle.is_final() => None,
            // A moment after the longest wait.
            LifeCycle::Queued => Some(self.state.start_ms + admission::LONGEST_WAIT_MS + 1),
            _ => self.step_wake_ms,
        };
        (std::mem::replace(&mut self.wake_ms, is), is)
    }

    /// The end of a run that has just come to it.
    pub fn ended_now(&mut self, now_ms: i64) -> Option<End> {
        let end = self.ended.take()?;
        let message = self.end_message(end);
        rows::end_state(&mut self.state, end, message.clone(), now_ms);
        if let Some(round) = self.rounds.last_mut() {
            (round.end_ms, round.end, round.message) = (Some(now_ms), Some(end), message);
        }
        Some(end)
    }

    /// What people read first: which task failed, and with what.
    fn end_message(&self, end: End) -> String {
        let rows = || (0..self.current.len()).filter_map(|at| self.current(at));
        let with_result = |result: Outcome| rows().find(|row| row.row.result.as_deref() == Some(result.word()));
        match end.outcome {
            Some(Outcome::Failed | Outcome::SuccessWithFailures) => {
                let failed = with_result(Outcome::Failed).or_else(|| with_result(Outcome::TimedOut));
                let after = with_result(Outcome::UpstreamFailed).is_some();
                let after = if after { " Tasks after it were not started." } else { "" };
                failed.map_or_else(String::new, |row| {
                    format!("Task {} failed with message: {}.{after}", row.row.task_key, row.row.message)
                })
            }
            Some(Outcome::TimedOut) => {
                let seconds = self.settings.limits.timeout_ms.unwrap_or_default() / 1_000;
                format!("the run took longer than its timeout_seconds of {seconds} s")
            }
            Some(Outcome::Canceled) if end.code == Code::UserCanceled => "the run was cancelled by a user".to_owned(),
            Some(Outcome::Canceled) => "the run was cancelled".to_owned(),
            Some(Outcome::MaximumConcurrentRunsReached) => {
                "the run waited in the queue for more than 48 hours".to_owned()
            }
            _ => String::new(),
        }
    }

    pub fn wants(&self, epoch: Epoch) -> bool {
        self.core.wants(epoch)
    }

    pub fn child(&mut self, task_run_id: i64, child: i64) {
        if let Some(row) = self.rows.get_mut(&task_run_id) {
            row.detail.child_run_id = Some(child);
            self.changed.insert(task_run_id);
        }
    }

    /// What went wrong in a run that is over.
    pub fn trouble(&self) -> Option<String> {
        Some(self.state.message.clone()).filter(|message| !message.is_empty())
    }

    pub fn input(&mut self, input: &Input, finished: Option<Finished>, out: &mut Out, at: &mut Moment<'_>) {
        let step = self.core.step(input, at.now_ms);
        if let Input::Started(epoch) = input {
            self.item_started(*epoch, at.now_ms);
        }
        self.take_step(step, finished, out, at);
    }

    /// The core tells of the task only, not of the items of its list.
    fn item_started(&mut self, epoch: Epoch, now_ms: i64) {
        let Some(id) = self.by_epoch.get(&epoch).copied() else { return };
        if self.rows.get(&id).is_some_and(|row| row.row.item.is_some())
            && let Some(row) = self.shift(id, LifeCycle::Running, now_ms)
        {
            row.row.running_ms.get_or_insert(now_ms);
        }
    }

    /// Moves a task run on, and notes that it did.
    fn shift(&mut self, id: i64, to: LifeCycle, at_ms: i64) -> Option<&mut Row> {
        let row = self.rows.get_mut(&id)?;
        self.changed.insert(id);
        if row.row.life_cycle != to.word() {
            row.row.life_cycle = to.word().to_owned();
            self.transitions.push(Change::Transition(self.run_id, Some(id), row.row.life_cycle.clone(), at_ms));
        }
        Some(row)
    }

    pub fn take_step(&mut self, step: Step, finished: Option<Finished>, out: &mut Out, at: &mut Moment<'_>) {
        self.step_wake_ms = step.wake_at_ms;
        // What ended comes first: a transition may open the next attempt.
        for effect in &step.effects {
            if let Effect::WorkEnded(epoch, end) = effect {
                self.work_ended(*epoch, *end, finished.as_ref(), at.now_ms);
            }
        }
        for transition in &step.transitions {
            self.moved(transition, at);
        }
        for effect in step.effects {
            self.carry_out(effect, false, out, at);
        }
    }

    /// What an engine before this one may not have come to do.
    pub fn unfinished(&self) -> Vec<Effect> {
        self.core.unfinished()
    }

    pub fn again(&mut self, effects: Vec<Effect>, out: &mut Out, at: &mut Moment<'_>) {
        effects.into_iter().for_each(|effect| self.carry_out(effect, true, out, at));
    }

    fn work_ended(&mut self, epoch: Epoch, end: End, finished: Option<&Finished>, now_ms: i64) {
        let Some(id) = self.by_epoch.remove(&epoch) else { return };
        let Some(row) = self.shift(id, end.life_cycle, now_ms) else { return };
        row.end(end, now_ms);
        row.row.work = None;
        if let Some(Finished { result, values, .. }) = finished {
            (row.detail.result, row.detail.values) = (result.clone(), values.clone());
        }
        // What a program says when it is stopped is not why it ended; nor is there a why when all is well.
        let is_told = !matches!(end.outcome, Some(Outcome::Success | Outcome::TimedOut | Outcome::Canceled));
        if let Some(Finished { error, trace, .. }) = finished.filter(|_| is_told) {
            (row.detail.error, row.detail.error_trace) = (error.clone(), trace.clone());
        }
        row.row.message = end_of_task(end, row.detail.error.as_deref());
        let of_item = row.row.item.map(|item| (row.row.position as usize, format!("item {item}: {}", row.row.message)));
        if let Some((task, message)) = of_item.filter(|_| end != End::SUCCESS)
            && let Some(outer) = self.current[task].and_then(|id| self.rows.get_mut(&id))
        {
            outer.detail.error.get_or_insert(message);
        }
    }

    fn moved(&mut self, transition: &Transition, at: &mut Moment<'_>) {
        let &Transition { task, from, to, at_ms } = transition;
        let Some(task) = task else { return self.run_moved(from, to, at_ms) };
        if self.current(task).is_some_and(Row::is_over) {
            // Its attempt is over; what opens the next one is the wait for it, nothing else.
            if to != LifeCycle::WaitingForRetry {
                return;
            }
            let attempt = self.current(task).map_or(0, |row| row.row.attempt + 1);
            self.new_row(task, None, attempt, at);
        }
        let Some(row) = self.current[task].and_then(|id| self.shift(id, to, at_ms)) else { return };
        if to == LifeCycle::Running {
            row.row.running_ms.get_or_insert(at_ms);
        }
        if !matches!(to, LifeCycle::Blocked | LifeCycle::WaitingForRetry) {
            row.row.start_ms.get_or_insert(at_ms);
        }
    }

    fn run_moved(&mut self, from: LifeCycle, to: LifeCycle, at_ms: i64) {
        self.state.life_cycle = to.word().to_owned();
        if from == LifeCycle::Queued {
            self.state.admitted_ms = Some(at_ms);
            (self.state.code, self.state.message) = (None, String::new());
        }
        self.transitions.push(Change::Transition(self.run_id, None, self.state.life_cycle.clone(), at_ms));
    }

    fn carry_out(&mut self, effect: Effect, again: bool, out: &mut Out, at: &mut Moment<'_>) {
        match effect {
            Effect::Launch(launch) => self.launch(launch, again, out, at),
            Effect::List(task) => self.list(task, out),
            Effect::Stop(epoch) => self.stop(epoch, out),
            Effect::Warn => out.acts.push(Act::Warn(self.run_id)),
            Effect::TaskEnded(task, end) => self.task_ended(task, end, at.now_ms),
            Effect::RunEnded(end) => self.ended = Some(end),
            Effect::WorkEnded(..) => {}
        }
    }

    fn launch(&mut self, launch: Launch, again: bool, out: &mut Out, at: &mut Moment<'_>) {
        let Launch { epoch, task, item, attempt } = launch;
        let id = match (again, item) {
            (true, _) => self.by_epoch.get(&epoch).copied(),
            (false, None) => self.current[task],
            (false, Some(_)) => Some(self.new_row(task, item, i64::from(attempt), at)),
        };
        let Some(id) = id else { return };
        self.by_epoch.insert(epoch, id);
        self.changed.insert(id);
        let input = item.and_then(|item| self.lists.get(&task)?.get(item as usize).cloned());
        if item.is_some() && !again {
            self.shift(id, LifeCycle::Pending, at.now_ms);
        }
        if let Some(row) = self.rows.get_mut(&id) {
            row.row.epoch = Some(epoch as i64);
            if item.is_some() {
                row.row.start_ms.get_or_insert(at.now_ms);
                row.detail.input.clone_from(&input);
            }
        }
        match self.begin(task, item.is_some(), id, epoch, input.as_ref()) {
            Ok(Begun::Answer(answer)) => {
                let ended = Ended { end: End::SUCCESS, answer: Some(answer) };
                if let Some(row) = self.rows.get_mut(&id) {
                    row.detail.outcome = Some(answer);
                }
                out.todo.push_back((self.run_id, Input::Ended(epoch, ended), None));
            }
            Ok(Begun::Act(act)) => out.acts.push(act),
            Err(finished) => {
                let input = Input::Ended(epoch, finished.end.into());
                out.todo.push_back((self.run_id, input, Some(finished)));
            }
        }
    }

    fn list(&mut self, task: usize, out: &mut Out) {
        let listed = self.items(task);
        let row = self.current[task].and_then(|id| self.rows.get_mut(&id));
        let input = match listed {
            Ok(items) => {
                let many = items.len() as u32;
                if let Some(row) = row {
                    // The lists of one that is taken up again come from here.
                    row.detail.resolved.insert("inputs".to_owned(), Value::Array(items.clone()));
                    self.changed.insert(row.row.task_run_id);
                }
                self.lists.insert(task, items);
                Ok(many)
            }
            Err(why) => {
                let finished = Finished::invalid(why);
                if let Some(row) = row {
                    row.detail.error = finished.error;
                }
                Err(finished.end.into())
            }
        };
        out.todo.push_back((self.run_id, Input::Listed(task, input), None));
    }

    fn stop(&mut self, epoch: Epoch, out: &mut Out) {
        let Some(&id) = self.by_epoch.get(&epoch) else { return };
        let child = self.rows.get(&id).and_then(|row| row.detail.child_run_id);
        out.acts.push(match child {
            Some(child) => Act::StopRun(child),
            None => Act::Stop { run_id: self.run_id, epoch },
        });
    }

    fn task_ended(&mut self, task: usize, end: End, now_ms: i64) {
        let Some(row) = self.current[task].and_then(|id| self.shift(id, end.life_cycle, now_ms)) else { return };
        row.end(end, now_ms);
        if end == End::SUCCESS {
            // An item that failed and then did not.
            row.detail.error = None;
        }
        row.row.message = end_of_task(end, row.detail.error.as_deref());
    }

    /// The rows that changed since the last time.
    pub fn flush(&mut self, to: &mut Vec<Change>) {
        let changes = self.core.changes();
        for (task, core) in &changes.tasks {
            to.push(Change::Core(self.run_id, *task as i64, kept(core)));
        }
        for (epoch, live) in &changes.live {
            let id = self.by_epoch.get(epoch).copied();
            if let Some(row) = id.and_then(|id| self.rows.get_mut(&id)) {
                row.row.work = live.as_ref().map(kept::<Live>);
                self.changed.insert(row.row.task_run_id);
            }
        }
        for id in std::mem::take(&mut self.changed) {
            if let Some(row) = self.rows.get(&id) {
                to.push(Change::TaskRun(row.to_store()));
            }
        }
        self.rows.retain(|id, row| !row.is_over() || self.current[row.row.position as usize] == Some(*id));
        self.state.core = Some(kept(&changes.head));
        self.state.rounds = kept(&self.rounds);
        let about = std::mem::take(&mut self.about_changed).then(|| kept(&self.about));
        to.push(Change::RunState(self.run_id, self.state.clone(), about));
        to.append(&mut self.transitions);
    }
}

fn lives(task_runs: &[TaskRow]) -> Result<Vec<(Epoch, Live)>, serde_json::Error> {
    let works = task_runs.iter().filter_map(|row| Some((row.epoch? as Epoch, row.work.as_deref()?)));
    works.map(|(epoch, work)| Ok((epoch, serde_json::from_str(work)?))).collect()
}

/// `state_message` of a task that is over.
fn end_of_task(end: End, error: Option<&str>) -> String {
    match (end.outcome, error) {
        (Some(Outcome::Success), _) | (None, _) => String::new(),
        (_, Some(error)) => error.to_owned(),
        (Some(Outcome::Failed), None) => "it failed without a message; look at its output".to_owned(),
        (Some(Outcome::TimedOut), None) => "it took longer than its timeout_seconds".to_owned(),
        (Some(Outcome::Canceled), None) => "it was cancelled".to_owned(),
        (Some(Outcome::UpstreamFailed), None) => "a task that it depends on failed".to_owned(),
        (Some(Outcome::UpstreamCanceled), None) => "a task that it depends on was cancelled".to_owned(),
        (Some(Outcome::Excluded), None) => "its conditions were not met".to_owned(),
        (Some(Outcome::Disabled), None) => "it is disabled, or stands behind a task that is".to_owned(),
        _ => String::new(),
    }
}
