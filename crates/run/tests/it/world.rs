//! A world around one run: a clock that is set, and work that ends as a script says.

use run::repair::Request;
use run::{Effect, End, Ended, Epoch, Input, Launch, LifeCycle, Run, Step, Stop};
use std::collections::{BTreeMap, BTreeSet};

/// What the attempts of a task give; the last entry repeats.
#[derive(Clone, Debug)]
pub struct Script {
    pub attempts: Vec<End>,
    pub answer: Option<bool>,
    pub items: Option<Vec<Vec<End>>>,
}

impl Script {
    pub fn of(attempts: Vec<End>) -> Self {
        Self { attempts, answer: None, items: None }
    }
}

pub struct World {
    pub run: Run,
    pub scripts: Vec<Script>,
    pub now_ms: i64,
    /// How long each attempt works.
    pub work_ms: i64,
    pub warned_ms: Vec<i64>,
    pub launched_ms: Vec<i64>,
    /// At work, with the time at which each ends by itself.
    live: BTreeMap<Epoch, (i64, Launch)>,
    stopped: BTreeSet<Epoch>,
    /// Attempts by task and item since the scripts were last given.
    made: BTreeMap<(usize, Option<u32>), usize>,
    wake_at_ms: Option<i64>,
}

impl World {
    pub fn new(run: Run, scripts: Vec<Script>) -> Self {
        Self {
            run,
            scripts,
            now_ms: 0,
            work_ms: 10,
            warned_ms: Vec::new(),
            launched_ms: Vec::new(),
            live: BTreeMap::new(),
            stopped: BTreeSet::new(),
            made: BTreeMap::new(),
            wake_at_ms: None,
        }
    }

    /// Attempts are counted anew.
    pub fn fresh(&mut self) {
        self.made.clear();
    }

    pub fn give(&mut self, input: &Input) {
        let step = self.run.step(input, self.now_ms);
        self.carry_out(step);
    }

    fn carry_out(&mut self, step: Step) {
        self.wake_at_ms = step.wake_at_ms;
        for effect in step.effects {
            match effect {
                Effect::Launch(launch) => self.launch(launch),
                Effect::List(task) => {
                    let count = self.scripts[task].items.as_ref().map_or(0, Vec::len) as u32;
                    self.give(&Input::Listed(task, Ok(count)));
                }
                Effect::Stop(epoch) => drop(self.stopped.insert(epoch)),
                Effect::Warn => self.warned_ms.push(self.now_ms),
                Effect::WorkEnded(..) | Effect::TaskEnded(..) | Effect::RunEnded(_) => {}
            }
        }
    }

    fn launch(&mut self, launch: Launch) {
        self.launched_ms.push(self.now_ms);
        self.live.insert(launch.epoch, (self.now_ms + self.work_ms, launch));
        self.give(&Input::Launched(launch.epoch));
        self.give(&Input::Started(launch.epoch));
    }

    pub fn admit(&mut self) {
        self.give(&Input::Admitted);
    }

    pub fn stop(&mut self, stop: Stop) {
        self.give(&Input::Stop(stop));
    }

    pub fn repair(&mut self, id: u64, request: &Request) {
        let step = self.run.repair(id, request, self.now_ms).unwrap();
        self.carry_out(step);
    }

    pub fn active_tasks(&self) -> BTreeSet<usize> {
        self.live.values().map(|(_, launch)| launch.task).collect()
    }

    /// Lets what is at work of a task end.
    pub fn finish_all_of(&mut self, task: usize) {
        let epochs: Vec<Epoch> = self.live.iter().filter(|(_, (_, l))| l.task == task).map(|(e, _)| *e).collect();
        epochs.into_iter().for_each(|epoch| self.finish(epoch));
    }

    fn finish(&mut self, epoch: Epoch) {
        let Some((at, launch)) = self.live.remove(&epoch) else { return };
        if !self.stopped.remove(&epoch) {
            self.now_ms = self.now_ms.max(at);
        }
        let made = self.made.entry((launch.task, launch.item)).or_default();
        let script = &self.scripts[launch.task];
        let ends = match (launch.item, &script.items) {
            (Some(item), Some(items)) => &items[item as usize],
            _ => &script.attempts,
        };
        let end = ends[(*made).min(ends.len() - 1)];
        *made += 1;
        let answer = script.answer.filter(|_| end == End::SUCCESS);
        self.give(&Input::Ended(epoch, Ended { end, answer }));
    }

    /// The next thing that happens; false when nothing will.
    fn advance(&mut self) -> bool {
        if let Some(&epoch) = self.stopped.iter().find(|epoch| self.live.contains_key(epoch)) {
            self.finish(epoch);
            return true;
        }
        let work = self.live.iter().map(|(epoch, (at, _))| (*at, *epoch)).min();
        match (work, self.wake_at_ms) {
            (Some((at, epoch)), wake) if wake.is_none_or(|wake| at <= wake) => self.finish(epoch),
            (_, Some(wake)) => {
                self.now_ms = self.now_ms.max(wake);
                self.give(&Input::Tick);
            }
            (None, None) => return false,
            (Some(_), None) => unreachable!("work without an alarm is taken above"),
        }
        true
    }
}

/// Plays a run to its end.
pub fn play(world: &mut World) {
    if world.run.life_cycle() == LifeCycle::Queued {
        world.admit();
    }
    for _ in 0..1_000_000 {
        if !world.advance() {
            return;
        }
    }
    panic!("the run does not end");
}
