//! Random graphs in a random world: work that fails, reports that are late, doubled or lost, stops
//! and repairs at any moment, a clock that jumps, an engine that dies after every step and goes on
//! from its rows. Every seed is a world of its own, the same everywhere and for ever.

use run::record::Changes;
use run::repair::Request;
use run::rule::{self, Before, Verdict};
use run::{
    Class, Dependency, Effect, End, Ended, Epoch, Graph, Input, Kind, Launch, LifeCycle, Limits, Retry, Run, RunIf,
    Step, Stop, Task,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// xorshift: the same numbers everywhere and for ever.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }

    fn percent(&mut self, of_hundred: usize) -> bool {
        self.below(100) < of_hundred
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const CONDITIONS: [RunIf; 6] = [
    RunIf::AllSuccess,
    RunIf::AtLeastOneSuccess,
    RunIf::NoneFailed,
    RunIf::AllDone,
    RunIf::AtLeastOneFailed,
    RunIf::AllFailed,
];

fn graph(random: &mut Random) -> Graph {
    let count = 1 + random.below(12);
    let mut tasks: Vec<Task> = Vec::new();
    for at in 0..count {
        let mut depends_on = Vec::new();
        for (up, parent) in tasks.iter().enumerate() {
            if random.percent(300 / (count + up)) {
                let outcome = (parent.kind == Kind::Condition && random.percent(70)).then(|| random.percent(50));
                depends_on.push(Dependency { task_key: parent.key.clone(), outcome });
            }
        }
        let reads = depends_on.first().filter(|_| random.percent(10)).map(|d| d.task_key.clone());
        tasks.push(Task {
            key: format!("t{at}"),
            depends_on,
            run_if: if random.percent(50) { RunIf::AllSuccess } else { random.of(&CONDITIONS) },
            disabled: random.percent(8),
            kind: match random.below(10) {
                0 | 1 => Kind::Condition,
                2 => Kind::ForEach { concurrency: 1 + random.below(3) as u32 },
                _ => Kind::Work,
            },
            reads: reads.into_iter().collect(),
            retry: Retry {
                max_retries: random.below(4) as i32 - i32::from(random.percent(5)),
                min_interval_ms: random.below(3) as i64 * 500,
                on_timeout: random.percent(50),
            },
            timeout_ms: random.percent(20).then(|| 200 + random.below(2_000) as i64),
        });
    }
    Graph::new(tasks).unwrap()
}

/// The moves that a task's life may take; all others are faults.
fn is_allowed(of_run: bool, from: LifeCycle, to: LifeCycle) -> bool {
    use LifeCycle::{
        Blocked, InternalError, Pending, Queued, Running, Skipped, Terminated, Terminating, WaitingForRetry,
    };
    match (from, to) {
        (Queued, Pending | Terminating | Terminated) | (Pending, Running | Terminating) => true,
        (Running, Terminating | Terminated | InternalError) | (Terminating, Terminated | InternalError) => true,
        // A run that has nothing to do is over at once; one that is repaired goes on.
        (Pending, Terminated | Skipped | InternalError) | (Terminating, Skipped) => true,
        (Terminated | Skipped | InternalError, Pending) => of_run,
        (Queued, Running | InternalError | WaitingForRetry) | (Blocked, Queued | Terminated) => !of_run,
        (Pending | Running | Terminating, WaitingForRetry) => !of_run,
        (WaitingForRetry, Pending | Terminating | Terminated) => !of_run,
        _ => false,
    }
}

fn text(row: &impl serde::Serialize) -> String {
    serde_json::to_string(row).unwrap()
}

enum Asked {
    Step(Input),
    Repair(u64, Request),
}

struct World {
    random: Random,
    run: Run,
    now_ms: i64,
    /// At work, by epoch.
    live: BTreeMap<Epoch, Launch>,
    asked_to_stop: BTreeSet<Epoch>,
    just_ended: Option<Epoch>,
    /// Reports that are told again.
    told: Vec<Input>,
    lists: Vec<usize>,
    wake_at_ms: Option<i64>,
    warnings: usize,
    rounds_ended: usize,
    /// All that was asked of the run, with its time, for playing it again.
    log: Vec<(Asked, i64)>,
    rows: Rows,
}

/// What a store would have of the run.
#[derive(Default)]
struct Rows {
    head: String,
    tasks: BTreeMap<usize, String>,
    live: BTreeMap<Epoch, String>,
}

impl Rows {
    fn write(&mut self, changes: Changes) {
        self.head = text(&changes.head);
        self.tasks.extend(changes.tasks.iter().map(|(at, task)| (*at, text(task))));
        for (epoch, live) in changes.live {
            match live {
                Some(live) => drop(self.live.insert(epoch, text(&live))),
                None => drop(self.live.remove(&epoch)),
            }
        }
    }

    fn read(&self, graph: Graph, limits: Limits) -> Run {
        let tasks = self.tasks.values().map(|task| serde_json::from_str(task).unwrap()).collect();
        let live = self.live.iter().map(|(epoch, live)| (*epoch, serde_json::from_str(live).unwrap()));
        Run::restore(graph, limits, serde_json::from_str(&self.head).unwrap(), tasks, live).unwrap()
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let graph = graph(&mut random);
        let limits = Limits {
            timeout_ms: random.percent(15).then(|| random.below(6_000) as i64),
            warning_ms: random.percent(30).then(|| random.below(3_000) as i64),
        };
        let run = Run::new(graph, limits, None);
        Self {
            random,
            run,
            now_ms: 1_000,
            live: BTreeMap::new(),
            asked_to_stop: BTreeSet::new(),
            just_ended: None,
            told: Vec::new(),
            lists: Vec::new(),
            wake_at_ms: None,
            warnings: 0,
            rounds_ended: 0,
            log: Vec::new(),
            rows: Rows::default(),
        }
    }

    /// The engine dies after a commit: the next one has the rows, and goes on as if nothing had been.
    fn restarts(&mut self) {
        let changes = self.run.changes();
        self.rows.write(changes);
        let restored = self.rows.read(self.run.graph().clone(), self.run.limits());
        assert_eq!(restored, self.run, "a restart changes nothing");
        self.run = restored;
    }

    fn give(&mut self, input: Input) {
        let finals = self.finals();
        let step = self.run.step(&input, self.now_ms);
        for (at, end) in finals {
            assert_eq!(self.run.tasks()[at].end, Some(end), "what is over stays so");
        }
        self.log.push((Asked::Step(input), self.now_ms));
        self.restarts();
        self.heed(step);
    }

    fn finals(&self) -> Vec<(usize, End)> {
        let is_over = |task: &run::TaskRun| task.end.filter(|_| task.life_cycle.is_final());
        self.run.tasks().iter().enumerate().filter_map(|(at, task)| Some((at, is_over(task)?))).collect()
    }

    fn heed(&mut self, step: Step) {
        self.wake_at_ms = step.wake_at_ms;
        for moved in &step.transitions {
            let allowed = is_allowed(moved.task.is_none(), moved.from, moved.to);
            assert!(allowed, "{:?} goes from {} to {}", moved.task, moved.from, moved.to);
        }
        for effect in step.effects {
            match effect {
                Effect::Launch(launch) => self.launched(launch),
                Effect::List(task) => self.lists.push(task),
                Effect::Stop(epoch) => {
                    // A time that is over may be noticed with the report of an end.
                    let is_known = self.live.contains_key(&epoch) || self.just_ended == Some(epoch);
                    assert!(is_known, "only what is at work is stopped");
                    assert!(self.asked_to_stop.insert(epoch), "it is asked once");
                }
                Effect::WorkEnded(epoch, _) => assert!(self.run.live().all(|live| live != epoch)),
                Effect::Warn => self.warnings += 1,
                Effect::TaskEnded(at, end) => assert_eq!(self.run.tasks()[at].end, Some(end)),
                Effect::RunEnded(end) => {
                    assert_eq!(self.run.end(), Some(end));
                    self.rounds_ended += 1;
                }
            }
        }
        assert!(self.warnings <= self.run.repairs().len() + 1, "a round warns once");
    }

    fn launched(&mut self, launch: Launch) {
        let parents = self.run.graph().parents(launch.task);
        let over = parents.iter().all(|parent| self.run.tasks()[parent.task].life_cycle.is_final());
        assert!(over, "a task starts when all before it is over");
        let doubled = self.live.values().any(|other| (other.task, other.item) == (launch.task, launch.item));
        assert!(!doubled, "one attempt of a piece of work at a time");
        assert!(self.live.insert(launch.epoch, launch).is_none(), "an epoch names one start");
    }

    /// One thing happens; false when nothing can any more.
    fn turn(&mut self) -> bool {
        self.now_ms += self.random.of(&[0, 0, 1, 10, 100, 1_000]) - i64::from(self.random.percent(3)) * 5_000;
        self.now_ms = self.now_ms.max(0);
        if self.random.percent(8) && !self.told.is_empty() {
            let at = self.random.below(self.told.len());
            let again = self.told[at].clone();
            self.give(again);
            return true;
        }
        if self.random.percent(1) {
            let stop = self.random.of(&[Stop::User, Stop::Engine]);
            self.give(Input::Stop(stop));
        } else if self.random.percent(2) {
            let task = self.random.below(self.run.tasks().len() + 1);
            self.give(Input::StopTask(task));
        } else if let Some(task) = self.lists.pop() {
            self.list(task);
        } else if let Some(epoch) = self.any_live() {
            self.work(epoch);
        } else if let Some(wake) = self.wake_at_ms {
            self.now_ms = self.now_ms.max(wake);
            self.give(Input::Tick);
        } else {
            return false;
        }
        true
    }

    fn list(&mut self, task: usize) {
        let listed = match self.random.percent(10) {
            true => Err(End::FAILED.into()),
            false => Ok(self.random.below(6) as u32),
        };
        self.give(Input::Listed(task, listed));
    }

    fn any_live(&mut self) -> Option<Epoch> {
        let epochs: Vec<Epoch> = self.live.keys().copied().collect();
        (!epochs.is_empty()).then(|| self.random.of(&epochs))
    }

    /// A piece of work goes on, or is over.
    fn work(&mut self, epoch: Epoch) {
        let input = match self.random.below(4) {
            0 => Input::Launched(epoch),
            1 => Input::Started(epoch),
            2 => Input::Tick,
            _ => {
                self.live.remove(&epoch);
                self.just_ended = Some(epoch);
                self.asked_to_stop.remove(&epoch);
                let lost = End::internal_error(run::Code::ClusterError);
                let ends = [End::SUCCESS, End::SUCCESS, End::SUCCESS, End::FAILED, End::FAILED, lost];
                let end = self.random.of(&ends);
                let answer = (end == End::SUCCESS).then(|| self.random.percent(50));
                Input::Ended(epoch, Ended { end, answer })
            }
        };
        self.told.push(input.clone());
        self.give(input);
    }

    fn play(&mut self) {
        self.give(Input::Admitted);
        loop {
            let mut turns = 0;
            while self.turn() {
                turns += 1;
                // One that retries without end is ended from outside, as people would.
                if turns > 5_000 {
                    self.give(Input::Stop(Stop::User));
                }
                assert!(turns < 20_000, "the run does not end");
            }
            self.ended();
            if !self.repaired() {
                return;
            }
        }
    }

    fn ended(&self) {
        assert!(self.run.life_cycle().is_final(), "nothing is left to do, yet the run is {}", self.run.life_cycle());
        assert_eq!(self.rounds_ended, self.run.repairs().len() + 1, "every round ends once");
        assert_eq!((self.live.len(), self.run.live().count()), (0, 0), "nothing is left at work");
        let ends: Vec<Option<End>> = self.run.tasks().iter().map(|task| task.end).collect();
        assert!(ends.iter().all(Option::is_some), "every task is over");
        if !was_stopped(&self.run) {
            assert_eq!(self.run.end(), Some(rule::result(self.run.graph(), &ends, None)));
        }
        if self.run.repairs().is_empty() && !was_stopped(&self.run) {
            self.agrees_with_the_rules();
        }
    }

    /// All ends once more, from nothing but the ends of what came before.
    fn agrees_with_the_rules(&self) {
        let (graph, tasks) = (self.run.graph(), self.run.tasks());
        let disabled = graph.disabled();
        for &at in graph.order() {
            let task = &tasks[at];
            let wants_value = graph.tasks()[at].reads.iter().any(|key| disabled[graph.position(key).unwrap()]);
            let before =
                graph.parents(at).iter().filter(|parent| !(wants_value && disabled[parent.task])).map(|parent| {
                    let (answer, wanted) = (tasks[parent.task].answer, parent.outcome);
                    let outcome_met = wanted.is_none() || answer.is_none() || answer == wanted;
                    Before { end: tasks[parent.task].end.unwrap(), outcome_met }
                });
            let before: Vec<Before> = before.collect();
            let verdict = match disabled[at] {
                true => Verdict::End(End::DISABLED),
                false => rule::verdict(graph.tasks()[at].run_if, &before),
            };
            match verdict {
                Verdict::End(end) if task.end != Some(End::CANCELED_BY_USER) => assert_eq!(task.end, Some(end)),
                Verdict::End(_) => {}
                Verdict::Start => {
                    let never = [End::UPSTREAM_FAILED, End::UPSTREAM_CANCELED, End::EXCLUDED, End::DISABLED];
                    assert!(!never.contains(&task.end.unwrap()), "a task that may start does");
                }
            }
        }
    }

    /// Sometimes a part runs again.
    fn repaired(&mut self) -> bool {
        if self.run.repairs().len() > 2 || self.random.percent(50) {
            return false;
        }
        let all_failed = self.random.percent(60);
        let any = self.random.below(self.run.tasks().len());
        let request = Request {
            all_failed,
            tasks: if all_failed { Vec::new() } else { vec![self.run.graph().tasks()[any].key.clone()] },
            dependents: self.random.percent(50),
            latest_repair_id: self.run.repairs().last().copied(),
        };
        let Ok(chosen) = self.run.chosen(&request) else { return false };
        let kept: Vec<(usize, Option<End>)> = (0..self.run.tasks().len())
            .filter(|at| !chosen.contains(at))
            .map(|at| (at, self.run.tasks()[at].end))
            .collect();
        if let Some(&latest) = self.run.repairs().last() {
            let stale = Request { latest_repair_id: None, ..request.clone() };
            assert_eq!(self.run.chosen(&stale), Err(run::repair::Refused::Stale { latest }));
        }
        let id = self.run.repairs().len() as u64 + 1;
        let step = self.run.repair(id, &request, self.now_ms).unwrap();
        self.log.push((Asked::Repair(id, request), self.now_ms));
        self.restarts();
        for (at, end) in kept {
            assert_eq!(self.run.tasks()[at].end, end, "what is not chosen keeps its end");
        }
        self.heed(step);
        true
    }

    /// The same inputs give the same run: what a restart relies on.
    fn plays_again(&self, graph: Graph, limits: Limits) {
        let mut run = Run::new(graph, limits, None);
        for (asked, at_ms) in &self.log {
            match asked {
                Asked::Step(input) => drop(run.step(input, *at_ms)),
                Asked::Repair(id, request) => drop(run.repair(*id, request, *at_ms).unwrap()),
            }
        }
        let ends = |run: &Run| run.tasks().iter().map(|task| (task.end, task.attempts)).collect::<Vec<_>>();
        assert_eq!((ends(&run), run.end()), (ends(&self.run), self.run.end()));
    }
}

fn was_stopped(run: &Run) -> bool {
    run.end().is_some_and(|end| [Stop::User, Stop::Engine, Stop::Timeout].iter().any(|stop| stop.of_run() == end))
}

/// What happened in a world; each of these has to happen in some.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Of what happened, in words, whether it did.
    pub happened: [(&'static str, bool); 9],
}

/// Plays the world of a seed to its end.
///
/// # Panics
/// When the run breaks one of the rules.
#[must_use]
pub fn play(seed: u64) -> Seen {
    let mut world = World::new(seed);
    let (graph, limits) = (world.run.graph().clone(), world.run.limits());
    world.play();
    world.plays_again(graph, limits);
    world.seen()
}

/// Plays all worlds of these seeds, as many at once as there are cores; gives the seeds that fail.
/// What is wrong is printed where it happens.
#[must_use]
pub fn play_all(seeds: Range<u64>) -> Vec<u64> {
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let of_one = |first: usize| {
        let mine = seeds.clone().skip(first).step_by(at_once);
        mine.filter(|seed| std::panic::catch_unwind(|| play(*seed)).is_err()).collect::<Vec<u64>>()
    };
    let of_one = &of_one;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once).map(|first| scope.spawn(move || of_one(first))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread only plays")).collect()
    })
}

impl World {
    fn seen(&self) -> Seen {
        let run = &self.run;
        let any = |class| run.tasks().iter().any(|task| task.end.is_some_and(|end| end.class() == class));
        let happened = [
            ("repaired", !run.repairs().is_empty()),
            ("stopped", was_stopped(run)),
            ("succeeded", run.end() == Some(End::SUCCESS)),
            ("failed", run.end() == Some(End::FAILED)),
            ("disabled", any(Class::Disabled)),
            ("retried", run.tasks().iter().any(|task| task.attempts > 1)),
            ("excluded", run.tasks().iter().any(|task| task.end == Some(End::EXCLUDED))),
            ("timed out", run.tasks().iter().any(|task| task.end == Some(End::TIMED_OUT))),
            ("warned", self.warnings > 0),
        ];
        Seen { happened }
    }
}
