//! The model of the run (section 2 of the rules): what the same application would have taken
//! with other tasks or other slots.
//!
//! Jobs that overlap in time form a group; groups follow each other as recorded. Inside a group
//! tasks are placed in launch order onto the slots that were there, a stage begins when the
//! stages it reads are done. Time in which no task ran is the driver's and is kept as it was.

use crate::slots::Slots;
use model::{Application, Estimate, Metric, ModelFit, Stage, TaskStatus};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The recorded run, ready to be played again with changes.
#[derive(Clone, Debug)]
pub struct RunModel {
    groups: Vec<Group>,
    /// Wall time outside the groups, ms: the driver alone.
    outside_ms: i64,
    /// Real wall time, ms.
    pub wall_ms: i64,
    /// Simulated wall time of the recorded tasks, ms.
    pub simulated_ms: i64,
    /// Slots, time average from the first of them to the end of the application.
    pub slots: f64,
}

#[derive(Clone, Debug)]
struct Group {
    stages: Vec<SimStage>,
    /// Time inside the group in which no task ran, ms.
    gap_ms: i64,
    /// Slots by busy time since the first task, ms.
    capacity: Vec<(i64, u32)>,
    /// Slot time over task time where there is less of it: a task's end is noted when its result
    /// is in, and its slot has the next one by then.
    scale: f64,
    recorded_ms: i64,
}

#[derive(Clone, Debug)]
struct SimStage {
    /// Position in [`Application::stages`].
    position: usize,
    /// Durations in launch order, ms.
    tasks: Vec<i64>,
    /// Stages of the group that must be done first.
    after: Vec<usize>,
}

/// What is different in a run that did not happen.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Stages by position in [`Application::stages`], with the durations, ms, of their tasks.
    pub stages: Vec<(usize, Vec<i64>)>,
    /// Driver time that goes away, ms.
    pub driver_ms: i64,
}

impl Change {
    /// One stage with other tasks.
    #[must_use]
    pub fn stage(position: usize, tasks: Vec<i64>) -> Self {
        Self { stages: vec![(position, tasks)], driver_ms: 0 }
    }

    fn tasks_of(&self, position: usize) -> Option<&Vec<i64>> {
        self.stages.iter().find(|(p, _)| *p == position).map(|(_, tasks)| tasks)
    }
}

impl RunModel {
    /// Builds the model; `None` when no task ran.
    #[must_use]
    pub fn new(app: &Application, slots: &Slots) -> Option<Self> {
        let (start, end) = (app.start_ms()?, app.end_ms()?);
        let mut groups = Vec::new();
        let mut inside = 0;
        for (members, from, to) in groups_of(app) {
            let group = Group::new(app, slots, &members, from, to);
            inside += to - from;
            groups.push(group);
        }
        if groups.is_empty() {
            return None;
        }
        let wall_ms = (end - start).max(0);
        let outside_ms = (wall_ms - inside).max(0);
        let simulated_ms = outside_ms + groups.iter().map(|g| g.gap_ms + g.recorded_ms).sum::<i64>();
        let there = slots.steps.iter().find(|s| s.1 > 0).map_or(start, |s| s.0.clamp(start, end.max(start)));
        Some(Self { groups, outside_ms, wall_ms, simulated_ms, slots: slots.average(there, end) })
    }

    /// How well the model reproduces the run, with its two bounds.
    #[must_use]
    pub fn fit(&self) -> ModelFit {
        let error = (self.simulated_ms - self.wall_ms).abs() as f64 / self.wall_ms.max(1) as f64;
        let kept = self.outside_ms + self.groups.iter().map(|g| g.gap_ms).sum::<i64>();
        let unlimited_ms = kept + self.groups.iter().map(Group::longest_path).sum::<i64>();
        let fair_ms = kept + self.groups.iter().map(Group::packed).sum::<i64>();
        ModelFit { simulated_ms: self.simulated_ms, error, unlimited_ms, fair_ms }
    }

    /// Simulated wall time, ms, with changed tasks.
    #[must_use]
    pub fn simulate(&self, change: &Change) -> i64 {
        let groups = self.groups.iter().map(|g| g.gap_ms + g.play(change, 1.0));
        (self.outside_ms + groups.sum::<i64>() - change.driver_ms).max(0)
    }

    /// Simulated wall time, ms, with `factor` times the slots.
    #[must_use]
    pub fn with_slots(&self, factor: f64) -> i64 {
        let none = Change::default();
        self.outside_ms + self.groups.iter().map(|g| g.gap_ms + g.place(&none, factor)).sum::<i64>()
    }

    /// What a change saves. The low end removes half of the excess; off the critical path the
    /// wall time saved is near 0 and only core time remains.
    #[must_use]
    pub fn estimate(&self, change: &Change, method: &str) -> Estimate {
        let saved = |c: &Change| (self.simulated_ms - self.simulate(c)).clamp(0, self.wall_ms);
        let full = saved(change);
        let half = self.halved(change).map_or(full / 2, |c| saved(&c).min(full));
        let busy: i64 = change.stages.iter().map(|(p, new)| self.busy_of(*p) - new.iter().sum::<i64>()).sum();
        Estimate {
            saved_ms_low: half,
            saved_ms: full,
            saved_ms_high: full,
            saved_core_ms: busy.max((full as f64 * self.slots) as i64),
            method: method.to_owned(),
        }
    }

    /// Durations of a stage's tasks in launch order, ms.
    #[must_use]
    pub fn tasks_of(&self, position: usize) -> &[i64] {
        let mut stages = self.groups.iter().flat_map(|g| &g.stages);
        stages.find(|s| s.position == position).map_or(&[], |s| &s.tasks)
    }

    fn busy_of(&self, position: usize) -> i64 {
        self.tasks_of(position).iter().sum()
    }

    /// The same change with half of its effect on every task; `None` when the number of tasks
    /// changes, so that no task has a counterpart.
    fn halved(&self, change: &Change) -> Option<Change> {
        let mut stages = Vec::with_capacity(change.stages.len());
        for (position, new) in &change.stages {
            let old = self.tasks_of(*position);
            if old.len() != new.len() {
                return None;
            }
            stages.push((*position, old.iter().zip(new).map(|(a, b)| (a + b) / 2).collect()));
        }
        Some(Change { stages, driver_ms: change.driver_ms / 2 })
    }
}

impl Group {
    fn new(app: &Application, slots: &Slots, members: &[usize], from: i64, to: i64) -> Self {
        let mut order: Vec<usize> = members.to_vec();
        order.sort_by_key(|&p| app.stages[p].span_ms().map_or(i64::MAX, |s| s.0));
        let stages: Vec<SimStage> = order.iter().map(|&p| sim_stage(app, &order, p)).collect();
        let busy = busy_intervals(app, &order);
        let busy_ms: i64 = busy.iter().map(|(a, b)| b - a).sum();
        let capacity = busy_capacity(slots, &busy);
        let scale = scale(&stages, &capacity, busy_ms);
        let mut group = Self { stages, gap_ms: (to - from - busy_ms).max(0), capacity, scale, recorded_ms: 0 };
        group.recorded_ms = group.place(&Change::default(), 1.0);
        group
    }

    /// Makespan, ms, with the changes that touch this group.
    fn play(&self, change: &Change, factor: f64) -> i64 {
        let touched = self.stages.iter().any(|s| change.tasks_of(s.position).is_some());
        if touched { self.place(change, factor) } else { self.recorded_ms }
    }

    /// List scheduling: the earliest stage that may run takes a free slot first.
    fn place(&self, change: &Change, factor: f64) -> i64 {
        let tasks: Vec<&[i64]> =
            self.stages.iter().map(|s| change.tasks_of(s.position).unwrap_or(&s.tasks).as_slice()).collect();
        let mut left: Vec<usize> = tasks.iter().map(|t| t.len()).collect();
        let mut next = vec![0; tasks.len()];
        let mut running: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
        let (mut now, mut end) = (0, 0);
        loop {
            let free = self.slots_at(now, factor).saturating_sub(running.len());
            self.launch(free, now, &tasks, &left, &mut next, &mut running);
            let Some(Reverse((time, stage))) = running.pop() else { break };
            left[stage] -= 1;
            now = time;
            end = end.max(time);
        }
        end
    }

    fn launch(
        &self,
        mut free: usize,
        now: i64,
        tasks: &[&[i64]],
        left: &[usize],
        next: &mut [usize],
        running: &mut BinaryHeap<Reverse<(i64, usize)>>,
    ) {
        for (at, stage) in self.stages.iter().enumerate() {
            if free == 0 {
                return;
            }
            if next[at] == tasks[at].len() || stage.after.iter().any(|&p| left[p] > 0) {
                continue;
            }
            let begin = next[at];
            next[at] = tasks[at].len().min(begin + free);
            free -= next[at] - begin;
            let scaled = |d: &i64| ((*d as f64 * self.scale) as i64).max(1);
            running.extend(tasks[at][begin..next[at]].iter().map(|d| Reverse((now + scaled(d), at))));
        }
    }

    fn slots_at(&self, busy_ms: i64, factor: f64) -> usize {
        let at = self.capacity.partition_point(|c| c.0 <= busy_ms).max(1) - 1;
        let slots = self.capacity.get(at).map_or(1, |c| c.1);
        ((f64::from(slots) * factor).round() as usize).max(1)
    }

    /// Longest chain of slowest tasks, ms.
    fn longest_path(&self) -> i64 {
        let mut ends = vec![0_i64; self.stages.len()];
        for (at, stage) in self.stages.iter().enumerate() {
            let begin = stage.after.iter().filter(|&&p| p < at).map(|&p| ends[p]).max().unwrap_or(0);
            ends[at] = begin + stage.tasks.iter().max().copied().unwrap_or(0);
        }
        ends.into_iter().max().unwrap_or(0)
    }

    /// All work over all slots, ms.
    fn packed(&self) -> i64 {
        let work: i64 = self.stages.iter().flat_map(|s| &s.tasks).sum();
        let most = self.capacity.iter().map(|c| c.1).max().unwrap_or(1).max(1);
        work / i64::from(most)
    }
}

fn sim_stage(app: &Application, order: &[usize], position: usize) -> SimStage {
    let stage = &app.stages[position];
    let until = last_moment(app, stage);
    let tasks = launch_order(stage).into_iter().map(|row| slot_ms(stage, row, until)).collect();
    let (begun, _) = stage.span_ms().unwrap_or((i64::MAX, i64::MAX));
    let before = |&p: &usize| app.stages[p].span_ms().is_some_and(|s| s.0 < begun);
    let after = order.iter().enumerate().filter(|(_, p)| before(p)).filter(|(_, p)| {
        let other = &app.stages[**p];
        // A repeated attempt was asked for by a failure: it waits for all that had ended then.
        let failed_before = stage.attempt > 0 && other.span_ms().is_some_and(|s| s.1 <= begun);
        failed_before || stage.parents.contains(&other.id) || (other.id == stage.id && other.attempt < stage.attempt)
    });
    SimStage { position, tasks, after: after.map(|(at, _)| at).collect() }
}

/// Rows of a stage's tasks in launch order.
#[must_use]
pub fn launch_order(stage: &Stage) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..stage.tasks.len()).collect();
    rows.sort_by_key(|&row| stage.tasks.value(Metric::LaunchMs, row));
    rows
}

/// Until when a task of a stage can have run, if the log has no end for it, epoch ms.
#[must_use]
pub fn last_moment(app: &Application, stage: &Stage) -> i64 {
    stage.completed_ms.or(app.end_ms()).unwrap_or_default()
}

/// Time, ms, for which a task held its slot; one without an end held it until `until`.
#[must_use]
pub fn slot_ms(stage: &Stage, row: usize, until: i64) -> i64 {
    let held = match stage.tasks.status(row) {
        TaskStatus::Running => until - stage.tasks.value(Metric::LaunchMs, row),
        _ => stage.tasks.value(Metric::DurationMs, row),
    };
    held.max(1)
}

/// Job groups: positions of the stages that ran, begin and end, in time order. A stage that ran
/// outside every known job makes a group of its own.
fn groups_of(app: &Application) -> Vec<(Vec<usize>, i64, i64)> {
    let mut spans: Vec<(i64, i64, Vec<usize>)> = Vec::new();
    for (at, stage) in app.stages.iter().enumerate() {
        let Some((first, ended)) = stage.span_ms() else { continue };
        let last = match stage.count(TaskStatus::Running) {
            0 => ended,
            _ => ended.max(last_moment(app, stage)),
        };
        let job = stage
            .jobs
            .iter()
            .filter_map(|&j| app.job(j))
            .find(|j| j.submitted_ms.is_some_and(|t| t <= first) && j.completed_ms.is_none_or(|t| t >= first));
        let from = job.and_then(|j| j.submitted_ms).unwrap_or(first).min(first);
        let to = job.and_then(|j| j.completed_ms).unwrap_or(last).max(last);
        spans.push((from, to, vec![at]));
    }
    spans.sort();
    let mut groups: Vec<(Vec<usize>, i64, i64)> = Vec::new();
    for (from, to, stages) in spans {
        match groups.last_mut() {
            Some(group) if from < group.2 => {
                group.0.extend(stages);
                group.2 = group.2.max(to);
            }
            _ => groups.push((stages, from, to)),
        }
    }
    groups
}

/// Times in which at least one task of these stages ran.
fn busy_intervals(app: &Application, stages: &[usize]) -> Vec<(i64, i64)> {
    let mut all: Vec<(i64, i64)> = Vec::new();
    for &position in stages {
        let stage = &app.stages[position];
        let until = last_moment(app, stage);
        all.extend((0..stage.tasks.len()).map(|row| {
            let begin = stage.tasks.value(Metric::LaunchMs, row);
            (begin, begin + slot_ms(stage, row, until))
        }));
    }
    union(all)
}

/// Union of intervals, ascending and apart.
#[must_use]
pub fn union(mut all: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    all.sort_unstable();
    let mut merged: Vec<(i64, i64)> = Vec::new();
    for (from, to) in all {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// Slot time over task time, at most 1.
fn scale(stages: &[SimStage], capacity: &[(i64, u32)], busy_ms: i64) -> f64 {
    let work: i64 = stages.iter().flat_map(|s| &s.tasks).sum();
    let ends = capacity.iter().skip(1).map(|c| c.0).chain([busy_ms]);
    let slots: i64 = capacity.iter().zip(ends).map(|(&(from, n), to)| i64::from(n) * (to - from)).sum();
    (slots as f64 / work.max(1) as f64).min(1.0)
}

/// Slots over busy time: the step function with the times cut out in which nothing ran.
fn busy_capacity(slots: &Slots, busy: &[(i64, i64)]) -> Vec<(i64, u32)> {
    let mut capacity = Vec::new();
    let mut offset = 0;
    for &(from, to) in busy {
        capacity.push((offset, slots.at(from).max(1)));
        let inside = slots.steps.iter().filter(|s| s.0 > from && s.0 < to);
        capacity.extend(inside.map(|s| (offset + s.0 - from, s.1.max(1))));
        offset += to - from;
    }
    capacity
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Executor, Job, Stage, TaskRow};

    /// Two stages on two slots: four tasks of 1 s, then one of 5 s and one of 1 s.
    fn app() -> Application {
        let mut app = Application { started_ms: Some(0), ended_ms: Some(10_000), ..Application::default() };
        app.executors.push(Executor { cores: 2, added: true, added_ms: Some(0), ..Executor::default() });
        app.jobs.push(Job {
            submitted_ms: Some(1_000),
            completed_ms: Some(9_000),
            stages: vec![0, 1],
            ..Job::default()
        });
        for (id, tasks) in [
            (0, vec![(1_000, 1_000), (1_000, 1_000), (2_000, 1_000), (2_000, 1_000)]),
            (1, vec![(4_000, 5_000), (4_000, 1_000)]),
        ] {
            let mut stage = Stage { parents: (0..id).collect(), jobs: vec![0], ..Stage::new(id, 0) };
            for (launch, duration) in tasks {
                let mut row = TaskRow::new(0);
                row.set(Metric::LaunchMs, launch).set(Metric::FinishMs, launch + duration).set(Metric::RunMs, duration);
                stage.tasks.push(row);
            }
            app.stages.push(stage);
        }
        app
    }

    /// An application as Spark would run it: stages one after the other on these slots.
    fn scheduled(slots: usize, stages: &[Vec<i64>]) -> Application {
        let mut app = Application { started_ms: Some(0), ..Application::default() };
        app.executors.push(Executor { cores: slots as u32, added: true, added_ms: Some(0), ..Executor::default() });
        let mut now = 500;
        for (id, durations) in stages.iter().enumerate() {
            let id = id as u32;
            let mut stage = Stage { jobs: vec![0], parents: (0..id).collect(), ..Stage::new(id, 0) };
            let mut free = vec![now; slots];
            for &duration in durations {
                let at = (0..slots).min_by_key(|&i| free[i]).unwrap_or(0);
                let mut row = TaskRow::new(0);
                row.set(Metric::LaunchMs, free[at])
                    .set(Metric::FinishMs, free[at] + duration)
                    .set(Metric::RunMs, duration);
                free[at] += duration;
                stage.tasks.push(row);
            }
            now = free.into_iter().max().unwrap_or(now);
            app.stages.push(stage);
        }
        let stages = (0..app.stages.len() as u32).collect();
        app.jobs.push(Job { submitted_ms: Some(400), completed_ms: Some(now + 50), stages, ..Job::default() });
        app.ended_ms = Some(now + 700);
        app
    }

    proptest::proptest! {
        #[test]
        fn reproduces_what_a_scheduler_did_and_stays_within_bounds(
            slots in 1..6_usize,
            stages in proptest::collection::vec(proptest::collection::vec(1..5_000_i64, 1..30), 1..5),
            split in 2..5_i64,
        ) {
            let app = scheduled(slots, &stages);
            let run = RunModel::new(&app, &Slots::of(&app)).expect("tasks ran");
            proptest::prop_assert_eq!(run.simulated_ms, app.wall_ms());
            proptest::prop_assert_eq!(run.simulate(&Change::default()), run.simulated_ms);
            let fit = run.fit();
            proptest::prop_assert!(fit.unlimited_ms <= run.simulated_ms && fit.fair_ms <= run.simulated_ms);
            let pieces = |d: &i64| vec![(d / split).max(1); split as usize];
            let change = Change::stage(0, stages[0].iter().flat_map(pieces).collect());
            let estimate = run.estimate(&change, "split");
            proptest::prop_assert!(0 <= estimate.saved_ms_low && estimate.saved_ms_low <= estimate.saved_ms);
            proptest::prop_assert!(estimate.saved_ms <= estimate.saved_ms_high && estimate.saved_ms_high <= app.wall_ms());
            proptest::prop_assert!(run.with_slots(4.0) <= run.simulated_ms);
        }
    }

    #[test]
    fn plays_what_was_recorded_and_what_was_not() {
        let app = app();
        let run = RunModel::new(&app, &Slots::of(&app)).expect("tasks ran");
        assert_eq!(run.simulated_ms, 10_000);
        assert_eq!(run.fit().error, 0.0);
        // The 5 s task in five pieces: six tasks of 1 s on two slots.
        let change = Change::stage(1, vec![1_000; 6]);
        assert_eq!(run.simulate(&change), 8_000);
        let estimate = run.estimate(&change, "split");
        assert_eq!((estimate.saved_ms, estimate.saved_ms_high), (2_000, 2_000));
        assert_eq!(estimate.saved_ms_low, 1_000);
        // Four slots: 1 s, then 5 s, and the 3 s in which nothing ran.
        assert_eq!(run.with_slots(2.0), 9_000);
        assert_eq!(run.fit().unlimited_ms, 9_000);
    }
}
