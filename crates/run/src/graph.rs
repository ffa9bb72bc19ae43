//! The graph of a job's tasks: who waits for whom, checked once, walked by position.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use thiserror::Error;

/// When a task may start, once all that it depends on is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RunIf {
    /// All of them ended well.
    #[default]
    AllSuccess,
    /// One of them did.
    AtLeastOneSuccess,
    /// None failed, and one ended well.
    NoneFailed,
    /// Whatever they did.
    AllDone,
    /// One of them failed.
    AtLeastOneFailed,
    /// All of them failed.
    AllFailed,
}

/// A task that has to be over first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// Key of that task.
    pub task_key: String,
    /// Which answer a condition must have given for this task to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<bool>,
}

/// How often and when a failed attempt is made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Attempts after the first; -1: without end.
    pub max_retries: i32,
    /// Least ms from the start of one attempt to the start of the next.
    pub min_interval_ms: i64,
    /// Whether one that took too long is made again too.
    pub on_timeout: bool,
}

impl Retry {
    /// Whether an attempt may follow the one with this number (from 0).
    #[must_use]
    pub const fn allows(&self, attempt_number: u32) -> bool {
        self.max_retries < 0 || (attempt_number as i64) < self.max_retries as i64
    }
}

/// What a task does, as far as states depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One piece of work.
    #[default]
    Work,
    /// Answers true or false.
    Condition,
    /// The same work for each of a list's items.
    ForEach {
        /// Items at once; at least 1.
        concurrency: u32,
    },
}

/// One task of a job, as far as states depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its name, unique in the job.
    pub key: String,
    /// What has to be over first.
    pub depends_on: Vec<Dependency>,
    /// When it may start then.
    pub run_if: RunIf,
    /// Switched off by hand.
    pub disabled: bool,
    /// What it does.
    pub kind: Kind,
    /// Tasks whose values the operands of a condition or the list of a for-each come from.
    pub reads: Vec<String>,
    /// Of each attempt; of a for-each those of each item.
    pub retry: Retry,
    /// Most ms of one attempt; `None`: no limit.
    pub timeout_ms: Option<i64>,
}

/// Why tasks make no graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GraphError {
    /// No task.
    #[error("a job needs at least one task")]
    Empty,
    /// Two tasks of one name.
    #[error("two tasks have the key {0:?}; keys are unique in a job")]
    Twice(String),
    /// A dependency on nothing.
    #[error("task {task:?} depends on {on:?}, which is no task of this job")]
    Unknown {
        /// Who depends.
        task: String,
        /// On what.
        on: String,
    },
    /// The same dependency stands twice.
    #[error("task {task:?} depends on {on:?} twice")]
    Repeated {
        /// Who depends.
        task: String,
        /// On what.
        on: String,
    },
    /// An answer is asked of something that gives none.
    #[error("task {task:?} asks for an outcome of {on:?}, which is no condition")]
    NoCondition {
        /// Who depends.
        task: String,
        /// On what.
        on: String,
    },
    /// Tasks that wait for each other.
    #[error("tasks wait for each other in a circle: {}", .0.join(" -> "))]
    Circle(Vec<String>),
}

/// A dependency by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Position of the task that has to be over.
    pub task: usize,
    /// Which answer it must have given.
    pub outcome: Option<bool>,
}

/// Tasks that wait for each other, without a circle. Positions are those of the given list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    tasks: Vec<Task>,
    parents: Vec<Vec<Parent>>,
    children: Vec<Vec<usize>>,
    order: Vec<usize>,
    positions: HashMap<String, usize>,
}

impl Graph {
    /// Checks the tasks and finds who waits for whom.
    ///
    /// # Errors
    /// When there is no task, a key stands twice, a dependency leads nowhere or in a circle.
    pub fn new(tasks: Vec<Task>) -> Result<Self, GraphError> {
        if tasks.is_empty() {
            return Err(GraphError::Empty);
        }
        let mut positions = HashMap::with_capacity(tasks.len());
        for (at, task) in tasks.iter().enumerate() {
            if positions.insert(task.key.clone(), at).is_some() {
                return Err(GraphError::Twice(task.key.clone()));
            }
        }
        let parents: Vec<Vec<Parent>> =
            tasks.iter().map(|task| parents(task, &tasks, &positions)).collect::<Result<_, _>>()?;
        let mut children = vec![Vec::new(); tasks.len()];
        for (at, parents) in parents.iter().enumerate() {
            parents.iter().for_each(|parent| children[parent.task].push(at));
        }
        let order = order(&parents, &children)
            .map_err(|circle| GraphError::Circle(circle.into_iter().map(|at| tasks[at].key.clone()).collect()))?;
        Ok(Self { tasks, parents, children, order, positions })
    }

    /// The tasks, as they were given.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Position of a key.
    #[must_use]
    pub fn position(&self, key: &str) -> Option<usize> {
        self.positions.get(key).copied()
    }

    /// What a task depends on.
    #[must_use]
    pub fn parents(&self, at: usize) -> &[Parent] {
        &self.parents[at]
    }

    /// What depends on a task.
    #[must_use]
    pub fn children(&self, at: usize) -> &[usize] {
        &self.children[at]
    }

    /// All positions, parents before children.
    #[must_use]
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Whether nothing depends on it: the result of a run comes from its leaves.
    #[must_use]
    pub fn is_leaf(&self, at: usize) -> bool {
        self.children[at].is_empty()
    }

    /// Whether a task is switched off: by hand, or since the ones before it are. Worked out when a
    /// run is created.
    #[must_use]
    pub fn disabled(&self) -> Vec<bool> {
        let mut disabled = vec![false; self.tasks.len()];
        for &at in &self.order {
            disabled[at] = self.tasks[at].disabled || self.inherits(at, &disabled);
        }
        disabled
    }

    fn inherits(&self, at: usize, disabled: &[bool]) -> bool {
        let task = &self.tasks[at];
        let parents = &self.parents[at];
        // It is to run, and to fail for want of the value.
        if parents.is_empty() || self.reads_disabled(at, disabled) {
            return false;
        }
        let mut are = parents.iter().map(|parent| disabled[parent.task]);
        match task.run_if {
            RunIf::AllDone => false,
            RunIf::AllSuccess | RunIf::AllFailed => are.any(|is| is),
            RunIf::AtLeastOneSuccess | RunIf::NoneFailed | RunIf::AtLeastOneFailed => are.all(|is| is),
        }
    }

    /// Whether a task reads a value that a disabled one would have given.
    pub(crate) fn reads_disabled(&self, at: usize, disabled: &[bool]) -> bool {
        self.tasks[at].reads.iter().filter_map(|key| self.position(key)).any(|at| disabled[at])
    }

    /// The given tasks and all that come after them.
    #[must_use]
    pub fn with_descendants(&self, given: &[bool]) -> Vec<bool> {
        let mut chosen = given.to_vec();
        for &at in &self.order {
            chosen[at] |= self.parents[at].iter().any(|parent| chosen[parent.task]);
        }
        chosen
    }
}

fn parents(task: &Task, tasks: &[Task], positions: &HashMap<String, usize>) -> Result<Vec<Parent>, GraphError> {
    let mut parents: Vec<Parent> = Vec::with_capacity(task.depends_on.len());
    for dependency in &task.depends_on {
        let names = || (task.key.clone(), dependency.task_key.clone());
        let Some(&at) = positions.get(&dependency.task_key) else {
            let (task, on) = names();
            return Err(GraphError::Unknown { task, on });
        };
        if dependency.outcome.is_some() && tasks[at].kind != Kind::Condition {
            let (task, on) = names();
            return Err(GraphError::NoCondition { task, on });
        }
        if parents.iter().any(|parent| parent.task == at) {
            let (task, on) = names();
            return Err(GraphError::Repeated { task, on });
        }
        parents.push(Parent { task: at, outcome: dependency.outcome });
    }
    Ok(parents)
}

/// Parents before children; else a circle.
fn order(parents: &[Vec<Parent>], children: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut open: Vec<usize> = parents.iter().map(Vec::len).collect();
    let mut order: Vec<usize> = (0..open.len()).filter(|&at| open[at] == 0).collect();
    let mut next = 0;
    while let Some(&at) = order.get(next) {
        next += 1;
        for &child in &children[at] {
            open[child] -= 1;
            if open[child] == 0 {
                order.push(child);
            }
        }
    }
    match order.len() == parents.len() {
        true => Ok(order),
        false => Err(circle(parents, &open)),
    }
}

/// Walks up from any task that is left: every one of those has a parent that is left.
fn circle(parents: &[Vec<Parent>], open: &[usize]) -> Vec<usize> {
    let mut path: Vec<usize> = open.iter().position(|&open| open > 0).into_iter().collect();
    while let Some(&at) = path.last() {
        let Some(up) = parents[at].iter().map(|parent| parent.task).find(|&up| open[up] > 0) else { break };
        if let Some(begin) = path.iter().position(|&seen| seen == up) {
            let mut circle = path.split_off(begin);
            circle.push(up);
            circle.reverse();
            return circle;
        }
        path.push(up);
    }
    path
}
