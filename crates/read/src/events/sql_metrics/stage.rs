//! The updates of a stage's tasks, and what they come to: `LiveStageMetrics` and the summing up of
//! `MetricUtils.stringValue` in Spark 4.0.1.

use super::ValueKind;
use foldhash::{HashMap, HashSet};

/// What the updates of one metric come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricValue {
    /// How they are summed up.
    pub kind: ValueKind,
    /// Updates that count. A task of a stage that others updated the metric in counts with 0.
    pub count: u64,
    /// Sum of those that count.
    pub sum: i64,
    /// The smallest.
    pub min: i64,
    /// The median: of an even number the upper one.
    pub median: i64,
    /// The largest.
    pub max: i64,
    /// The task of the largest; `None` when the driver made it.
    pub task: Option<TaskPlace>,
}

/// Which task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskPlace {
    /// Stage.
    pub stage: u32,
    /// Its attempt.
    pub attempt: u32,
    /// Task.
    pub task: i64,
}

/// Bytes of one update.
pub(super) const UPDATE_BYTES: u64 = 12;

/// The latest attempt of a stage.
#[derive(Debug)]
pub(super) struct StageMetrics {
    pub attempt: u32,
    pub tasks: u32,
    /// Number of the set of metrics that its execution has.
    pub metrics: usize,
    /// Indices whose task succeeded: what comes later of them does not count.
    done: HashSet<u32>,
    pub updates: HashMap<i64, Updates>,
    /// Whether updates were let go for want of memory.
    pub too_large: bool,
}

/// Updates of one accumulator in one stage, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Updates {
    indices: Vec<u32>,
    values: Vec<i64>,
    /// Value and task of the largest; an update that a later attempt replaced stays in it.
    pub largest: Option<(i64, i64)>,
}

/// A task's end, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub id: i64,
    pub index: u32,
    pub succeeded: bool,
}

impl StageMetrics {
    pub fn new(attempt: u32, tasks: u32, metrics: usize) -> Self {
        let (done, updates) = (HashSet::default(), HashMap::default());
        Self { attempt, tasks, metrics, done, updates, too_large: false }
    }

    /// Takes what a task reports, by the index it works on; gives the number of updates kept.
    pub fn task(&mut self, task: Task, updates: &[(i64, i64)], kinds: &HashMap<i64, ValueKind>) -> u64 {
        if task.index >= self.tasks || self.done.contains(&task.index) {
            return 0;
        }
        let mut kept = 0;
        for (accumulator, value) in updates {
            let Some(kind) = kinds.get(accumulator) else { continue };
            if !self.too_large {
                self.updates.entry(*accumulator).or_default().add(task, *value, *kind);
                kept += 1;
            }
        }
        if task.succeeded {
            self.done.insert(task.index);
        }
        kept
    }

    /// Lets all updates go.
    pub fn give_up(&mut self) {
        self.updates = HashMap::default();
        self.too_large = true;
    }

    pub fn bytes(&self) -> u64 {
        self.updates.values().map(|updates| updates.values.len() as u64 * UPDATE_BYTES).sum()
    }
}

impl Updates {
    fn add(&mut self, task: Task, value: i64, kind: ValueKind) {
        self.indices.push(task.index);
        self.values.push(value);
        let larger = self.largest.is_none_or(|(largest, _)| value > largest);
        if kind != ValueKind::Sum && larger {
            self.largest = Some((value, task.id));
        }
    }

    /// The last value of each index.
    pub fn last_values(&self) -> Vec<i64> {
        let mut by_index: Vec<(u32, usize)> = self.indices.iter().copied().zip(0..).collect();
        by_index.sort_unstable();
        let last = |at: usize| by_index.get(at + 1).is_none_or(|next| next.0 != by_index[at].0);
        (0..by_index.len()).filter(|&at| last(at)).map(|at| self.values[by_index[at].1]).collect()
    }
}

/// All updates of one metric.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub values: Vec<i64>,
    /// Tasks that did not update it in stages where others did.
    pub zeros: u64,
    /// The largest by tasks and where it was made.
    pub largest: Option<(i64, TaskPlace)>,
}

impl Gathered {
    /// Adds the updates of a stage.
    pub fn stage(&mut self, updates: &Updates, stage: u32, of: &StageMetrics) {
        let values = updates.last_values();
        self.zeros += u64::from(of.tasks) - values.len() as u64;
        self.values.extend(values);
        let Some((value, task)) = updates.largest else { return };
        if self.largest.is_none_or(|(largest, _)| value > largest) {
            self.largest = Some((value, TaskPlace { stage, attempt: of.attempt, task }));
        }
    }

    /// Adds an update of the driver, which a larger value of its own makes the largest's owner.
    pub fn driver(&mut self, value: i64) {
        if self.largest.is_some_and(|(largest, _)| value > largest) {
            self.largest = None;
        }
        self.values.push(value);
    }

    /// −1 means "not set" in sizes and times, and 0 in averages too.
    pub fn value(self, kind: ValueKind) -> MetricValue {
        let (least, zeros) = match kind {
            ValueKind::Average => (1, 0),
            ValueKind::Sum => (i64::MIN, self.zeros),
            _ => (0, self.zeros),
        };
        let mut values = self.values;
        values.retain(|value| *value >= least);
        values.sort_unstable();
        let count = zeros + values.len() as u64;
        // What was not updated counts as 0 and stands before what was; only sums have less.
        let at = |place: u64| match place.checked_sub(zeros) {
            Some(place) => values.get(place as usize).copied().unwrap_or_default(),
            None => 0,
        };
        MetricValue {
            kind,
            count,
            sum: values.iter().fold(0_i64, |sum, value| sum.wrapping_add(*value)),
            min: at(0),
            median: at(count / 2),
            max: at(count.saturating_sub(1)),
            task: self.largest.map(|(_, task)| task),
        }
    }
}
