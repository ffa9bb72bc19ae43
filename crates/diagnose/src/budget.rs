//! Where the time went: wall time in parts that add up to it, and slot time likewise.

use crate::run_model;
use crate::slots::Slots;
use model::{Application, EndReason, Metric, Part, Stage, TaskStatus};
use std::collections::{BTreeMap, BTreeSet};

/// Both splits.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// Parts of the wall time, ms; they add up to it.
    pub wall: Vec<Part>,
    /// Parts of slots × time, core ms; they add up to it.
    pub core: Vec<Part>,
}

/// Part names, in the order in which they are shown.
pub mod part {
    #![allow(missing_docs)]
    pub const WAITING: &str = "waiting for the last tasks";
    pub const COMPUTING: &str = "computing";
    pub const SHUFFLE: &str = "shuffle fetch and write";
    pub const OFF_CPU: &str = "waiting off the CPU";
    pub const GC: &str = "garbage collection";
    pub const DRIVER: &str = "driver, idle";
    pub const START: &str = "start-up";

    pub const RUN: &str = "useful run time";
    pub const OVERHEAD: &str = "task overhead";
    pub const BETWEEN: &str = "between tasks";
    pub const DRIVER_ONLY: &str = "driver only";
    pub const START_UP: &str = "start-up";
    pub const TAIL: &str = "tail of a stage";
    pub const TOO_FEW: &str = "too few tasks";
    pub const FAILED: &str = "failed, killed and repeated work";
    pub const SPECULATION: &str = "speculation losers";
    pub const AFTER: &str = "after the last task";
}

#[derive(Clone, Copy)]
struct Step {
    time: i64,
    stage: usize,
    begins: bool,
}

/// Splits the time of an application. Times outside of it are clamped.
#[must_use]
pub fn split(app: &Application, slots: &Slots) -> Budget {
    let (Some(start), Some(end)) = (app.start_ms(), app.end_ms()) else { return Budget::default() };
    let end = end.max(start);
    let steps = steps(app, start, end);
    let mut sweep = Sweep::new(app, slots, &steps, start, end);
    for step in &steps {
        sweep.advance(step.time);
        sweep.take(*step);
    }
    sweep.advance(end);
    sweep.finish(app, start, end)
}

/// Slots × time that [`split`] divides, core ms; counted apart from it, so that one checks the
/// other. More than the slots of the executors where more tasks ran at once than those tell.
#[must_use]
pub fn slot_time(app: &Application, slots: &Slots) -> i64 {
    let (Some(start), Some(end)) = (app.start_ms(), app.end_ms()) else { return 0 };
    let end = end.max(start);
    let mut changes: Vec<(i64, i64)> = vec![(start, 0), (end, 0)];
    for step in steps(app, start, end) {
        changes.push((step.time, if step.begins { 1 } else { -1 }));
    }
    changes.extend(slots.steps.iter().filter(|s| s.0 > start && s.0 < end).map(|s| (s.0, 0)));
    changes.sort_by_key(|c| c.0);
    let mut running = 0;
    let pieces = changes.iter().zip(changes.iter().skip(1)).map(|(now, next)| {
        running += now.1;
        i64::from(slots.at(now.0)).max(running) * (next.0 - now.0)
    });
    pieces.sum()
}

fn steps(app: &Application, start: i64, end: i64) -> Vec<Step> {
    let mut steps = Vec::new();
    for (at, stage) in app.stages.iter().enumerate() {
        for row in 0..stage.tasks.len() {
            let (from, to) = inside(app, stage, row, start, end);
            steps.push(Step { time: from, stage: at, begins: true });
            steps.push(Step { time: to, stage: at, begins: false });
        }
    }
    // Ends before begins at the same time: a slot is free before it is taken again. A task of
    // no length would end before it begins, so the sort is stable and by time alone.
    steps.sort_by_key(|s| s.time);
    steps
}

/// Begin and end of a task, as far as they lie in the application's time. A task without an end
/// held its slot until its stage, or the application, ended.
fn inside(app: &Application, stage: &Stage, row: usize, start: i64, end: i64) -> (i64, i64) {
    let launch = stage.tasks.value(Metric::LaunchMs, row);
    let held = match stage.tasks.status(row) {
        TaskStatus::Running => run_model::last_moment(app, stage) - launch,
        _ => stage.tasks.value(Metric::DurationMs, row),
    };
    let from = launch.clamp(start, end);
    (from, from + held.clamp(0, end - from))
}

/// Why a slot had nothing to do, in the order in which it is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Idle {
    DriverOnly,
    StartUp,
    Tail,
    TooFew,
    Between,
    After,
}

/// Names of [`Idle`], in its order.
const IDLE: [&str; 6] = [part::DRIVER_ONLY, part::START_UP, part::TAIL, part::TOO_FEW, part::BETWEEN, part::AFTER];

/// What a moment of the run was, in the order in which it is shown.
#[derive(Clone, Copy)]
enum Moment {
    Waiting,
    TooFew,
    Computing,
    Shuffle,
    OffCpu,
    Gc,
    Driver,
    Start,
}

/// Names of [`Moment`], in its order.
const WALL: [&str; 8] =
    [part::WAITING, part::TOO_FEW, part::COMPUTING, part::SHUFFLE, part::OFF_CPU, part::GC, part::DRIVER, part::START];

struct Sweep<'a> {
    slots: &'a Slots,
    /// Running and not yet begun tasks by stage.
    stages: BTreeMap<usize, (usize, usize)>,
    pending: Vec<usize>,
    sizes: Vec<usize>,
    shares: Vec<[f64; 4]>,
    running: usize,
    now: i64,
    first: i64,
    last: i64,
    /// Wall time by [`Moment`], core time by [`Idle`].
    wall: [f64; WALL.len()],
    idle: [i64; IDLE.len()],
    total: i64,
    span: i64,
}

impl<'a> Sweep<'a> {
    fn new(app: &Application, slots: &'a Slots, steps: &[Step], start: i64, end: i64) -> Self {
        let sizes: Vec<usize> = app.stages.iter().map(|s| s.tasks.len()).collect();
        Self {
            slots,
            stages: BTreeMap::new(),
            pending: sizes.clone(),
            sizes,
            shares: app.stages.iter().map(shares).collect(),
            running: 0,
            now: start,
            first: steps.first().map_or(end, |s| s.time),
            last: steps.last().map_or(start, |s| s.time),
            wall: [0.0; WALL.len()],
            idle: [0; IDLE.len()],
            total: 0,
            span: end - start,
        }
    }

    fn take(&mut self, step: Step) {
        let entry = self.stages.entry(step.stage).or_default();
        if step.begins {
            entry.0 += 1;
            self.pending[step.stage] -= 1;
            self.running += 1;
        } else {
            entry.0 = entry.0.saturating_sub(1);
            self.running = self.running.saturating_sub(1);
            if entry.0 == 0 && self.pending[step.stage] == 0 {
                self.stages.remove(&step.stage);
            }
        }
    }

    /// Accounts for the time up to `time`, in pieces of constant slots.
    fn advance(&mut self, time: i64) {
        while self.now < time {
            let next = self.slots.steps.partition_point(|s| s.0 <= self.now);
            let until = self.slots.steps.get(next).map_or(time, |s| s.0.min(time));
            self.piece(until - self.now);
            self.now = until;
        }
    }

    fn piece(&mut self, ms: i64) {
        // More tasks than slots: the log knows the cores badly. Nothing is idle then.
        let slots = (self.slots.at(self.now) as usize).max(self.running);
        self.total += slots as i64 * ms;
        let idle = slots - self.running;
        let why = self.why_idle(slots);
        self.idle[why as usize] += idle as i64 * ms;
        self.wall_piece(ms as f64, slots, idle, why);
    }

    fn why_idle(&self, slots: usize) -> Idle {
        if self.running == 0 {
            return match self.now {
                now if now < self.first => Idle::StartUp,
                now if now >= self.last => Idle::After,
                _ => Idle::DriverOnly,
            };
        }
        let active = || self.stages.iter().filter(|(_, s)| s.0 > 0).map(|(at, _)| *at);
        if active().any(|at| self.pending[at] > 0) {
            return Idle::Between;
        }
        match active().map(|at| self.sizes[at]).sum::<usize>() < slots {
            true => Idle::TooFew,
            false => Idle::Tail,
        }
    }

    fn wall_piece(&mut self, ms: f64, slots: usize, idle: usize, why: Idle) {
        let mut add = |moment: Moment, ms| self.wall[moment as usize] += ms;
        match why {
            Idle::StartUp => add(Moment::Start, ms),
            Idle::DriverOnly | Idle::After => add(Moment::Driver, ms),
            Idle::Tail if idle * 2 >= slots => add(Moment::Waiting, ms),
            // No task is waited for: the stage never had more.
            Idle::TooFew if idle * 2 >= slots => add(Moment::TooFew, ms),
            _ => {
                let running = self.running as f64;
                for (at, (tasks, _)) in &self.stages {
                    let weight = ms * *tasks as f64 / running;
                    let [shuffle, off_cpu, gc, computing] = self.shares[*at];
                    add(Moment::Shuffle, weight * shuffle);
                    add(Moment::OffCpu, weight * off_cpu);
                    add(Moment::Gc, weight * gc);
                    add(Moment::Computing, weight * computing);
                }
            }
        }
    }

    fn finish(self, app: &Application, start: i64, end: i64) -> Budget {
        let wall = whole(WALL.into_iter().zip(self.wall), self.span);
        let mut core = busy_parts(app, start, end, self.total - self.idle.iter().sum::<i64>());
        core.extend(IDLE.into_iter().zip(self.idle).map(|(name, ms)| Part { name: name.to_owned(), ms }));
        Budget { wall, core }
    }
}

/// How a stage's task time divides: waiting for and writing shuffle blocks as measured, any other
/// time off the CPU (a source, another process, a lock, a sleep), collection, the rest.
fn shares(stage: &Stage) -> [f64; 4] {
    let sum = |m| stage.sum(m) as f64;
    let total = sum(Metric::DurationMs).max(1.0);
    let shuffle = sum(Metric::FetchWaitMs) + sum(Metric::ShuffleWriteMs);
    let (off_cpu, gc) = (sum(Metric::IoWaitMs), sum(Metric::GcMs));
    let scale = (total / (shuffle + off_cpu + gc).max(1.0)).min(1.0) / total;
    let [shuffle, off_cpu, gc] = [shuffle, off_cpu, gc].map(|ms| ms * scale);
    [shuffle, off_cpu, gc, (1.0 - shuffle - off_cpu - gc).max(0.0)]
}

/// What tasks without an end were.
struct Open {
    /// Still at work for a job that the log does not see end.
    at_work: bool,
    /// Indexes whose work another attempt did.
    done: BTreeSet<u32>,
}

impl Open {
    fn of(app: &Application, stage: &Stage) -> Self {
        let any = stage.count(TaskStatus::Running) > 0;
        let done = match any {
            true => stage.tasks.successful().map(|r| stage.tasks.index(r)).collect(),
            false => BTreeSet::new(),
        };
        let over = stage.completed_ms.is_some() || app.ended_ms.is_some();
        Self { at_work: any && !over, done }
    }

    /// Whether it lost a race: another attempt had its result first.
    fn is_loser(&self, stage: &Stage, row: usize) -> bool {
        self.done.contains(&stage.tasks.index(row))
    }
}

/// Rounds parts so that they add up to `total`; the largest takes the difference.
fn whole<'a>(parts: impl Iterator<Item = (&'a str, f64)>, total: i64) -> Vec<Part> {
    let mut parts: Vec<Part> = parts.map(|(name, ms)| Part { name: name.to_owned(), ms: ms.round() as i64 }).collect();
    let rest = total - parts.iter().map(|p| p.ms).sum::<i64>();
    if let Some(largest) = parts.iter_mut().max_by_key(|p| p.ms) {
        largest.ms += rest;
    }
    parts
}

/// Task time by use; the parts add up to `busy`.
fn busy_parts(app: &Application, start: i64, end: i64, busy: i64) -> Vec<Part> {
    let (mut run, mut failed, mut speculation, mut repeated) = (0, 0, 0, 0);
    for stage in &app.stages {
        let tasks = &stage.tasks;
        let open = Open::of(app, stage);
        for row in 0..tasks.len() {
            let (from, to) = inside(app, stage, row, start, end);
            let duration = to - from;
            match (tasks.status(row), tasks.failure(row)) {
                (TaskStatus::Success, _) => run += tasks.value(Metric::RunMs, row).min(duration),
                (TaskStatus::Running, _) if open.is_loser(stage, row) => speculation += duration,
                (TaskStatus::Running, _) if open.at_work => run += duration,
                (_, Some(EndReason::Killed { reason })) if reason.contains("another attempt succeeded") => {
                    speculation += duration;
                }
                _ => failed += duration,
            }
        }
        repeated += stage.resubmitted_run_ms;
    }
    let repeated = repeated.min(run);
    let (useful, failed) = (run - repeated, failed + repeated);
    let overhead = busy - useful - failed - speculation;
    [(part::RUN, useful), (part::OVERHEAD, overhead), (part::FAILED, failed), (part::SPECULATION, speculation)]
        .map(|(name, ms)| Part { name: name.to_owned(), ms })
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Executor, TaskRow};
    use proptest::prelude::*;

    /// Any application: executors that come and go, tasks at any time, in any state.
    fn application() -> impl Strategy<Value = Application> {
        let executor = (1..4_u32, 0..5_000_i64, proptest::option::of(1..9_000_i64));
        let task = (0..3_usize, -500..12_000_i64, 0..4_000_i64, 0..4_000_i64, 0..4_u8);
        (
            proptest::collection::vec(executor, 0..4),
            proptest::collection::vec(task, 0..60),
            0..3_000_i64,
            -10..10_000_i64,
        )
            .prop_map(|(executors, tasks, start, length)| {
                let mut app =
                    Application { started_ms: Some(start), ended_ms: Some(start + length), ..Application::default() };
                for (cores, added, stays) in executors {
                    let removed_ms = stays.map(|s| added + s);
                    app.executors.push(Executor {
                        cores,
                        added: true,
                        added_ms: Some(added),
                        removed_ms,
                        ..Executor::default()
                    });
                }
                app.stages = (0..3).map(|id| Stage::new(id, 0)).collect();
                for (id, (stage, launch, duration, run, status)) in tasks.into_iter().enumerate() {
                    let mut row = TaskRow::new(id as i64);
                    row.status = match status {
                        0 => TaskStatus::Running,
                        1 => TaskStatus::Failed,
                        2 => TaskStatus::Killed,
                        _ => TaskStatus::Success,
                    };
                    if row.status == TaskStatus::Killed {
                        row.failure = Some(Box::new(EndReason::Killed { reason: "another attempt succeeded".into() }));
                    }
                    let finish = if row.status == TaskStatus::Running { 0 } else { launch + duration };
                    row.set(Metric::LaunchMs, launch).set(Metric::FinishMs, finish).set(Metric::RunMs, run);
                    app.stages[stage].tasks.push(row);
                }
                app
            })
    }

    proptest! {
        #[test]
        fn parts_add_up_exactly(app in application()) {
            let slots = Slots::of(&app);
            let budget = split(&app, &slots);
            let sum = |parts: &[Part]| parts.iter().map(|p| p.ms).sum::<i64>();
            prop_assert_eq!(sum(&budget.wall), app.wall_ms());
            prop_assert_eq!(sum(&budget.core), slot_time(&app, &slots));
            prop_assert!(budget.wall.iter().chain(&budget.core).all(|p| p.ms >= 0), "{:?}", budget);
        }
    }

    #[test]
    fn tasks_cut_off_by_the_end_held_their_slots() {
        let mut app = Application { started_ms: Some(0), ended_ms: Some(40_000), ..Application::default() };
        app.executors.push(Executor { cores: 2, added: true, added_ms: Some(0), ..Executor::default() });
        let mut stage = Stage::new(0, 0);
        for index in 0..2 {
            let mut row = TaskRow::new(index.into());
            (row.index, row.status) = (index, TaskStatus::Running);
            row.set(Metric::LaunchMs, 10_000);
            stage.tasks.push(row);
        }
        app.stages.push(stage);
        let parts = |app: &Application| split(app, &Slots::of(app)).core;
        let part = |parts: &[Part], name| parts.iter().find(|p| p.name == name).map_or(0, |p| p.ms);
        assert_eq!((part(&parts(&app), part::FAILED), part(&parts(&app), part::BETWEEN)), (60_000, 0));
        // A log that goes on says nothing of lost work.
        (app.ended_ms, app.last_event_ms) = (None, Some(40_000));
        assert_eq!((part(&parts(&app), part::FAILED), part(&parts(&app), part::RUN)), (0, 60_000));
    }

    #[test]
    fn a_slow_last_task_is_waited_for() {
        // 20 slots, 19 tasks of 30 s and one of 20 min: 19.5 min nearly idle.
        let mut app = Application { started_ms: Some(0), ended_ms: Some(1_200_000), ..Application::default() };
        app.executors.push(Executor { cores: 20, added: true, added_ms: Some(0), ..Executor::default() });
        let mut stage = Stage::new(0, 0);
        for id in 0..20 {
            let ms = if id == 19 { 1_200_000 } else { 30_000 };
            let mut row = TaskRow::new(id);
            row.set(Metric::LaunchMs, 1).set(Metric::FinishMs, 1 + ms).set(Metric::RunMs, ms);
            stage.tasks.push(row);
        }
        app.stages.push(stage);
        let budget = split(&app, &Slots::of(&app));
        let part = |parts: &[Part], name| parts.iter().find(|p| p.name == name).map_or(0, |p| p.ms);
        assert_eq!(part(&budget.wall, part::WAITING), 1_200_000 - 30_001);
        assert_eq!(part(&budget.core, part::TAIL), 19 * (1_200_000 - 30_001));
    }
}
