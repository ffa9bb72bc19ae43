//! What stands in the rows of runs and task runs besides their columns.

use super::NewRun;
use crate::states::{Code, End, LifeCycle, Outcome};
use crate::step::Epoch;
use crate::trigger::completion::Completed;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use store::jobs::{Run as RunRow, RunState, TaskRun as TaskRow};

/// What a run was started with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The definition, as it was then or, after a repair, at that repair.
    pub settings: Value,
    /// `job_parameters` that were given; a repair may give others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Parameters of the older kinds, as they were given.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub overriding: Map<String, Value>,
    /// `only`: the words of a partial run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<String>>,
    /// The task that this run is the work of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The runs of other jobs after which this one follows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub completed: Vec<Completed>,
}

/// The run-job task that a run is the work of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The run of that task.
    pub run_id: i64,
    /// Its task run.
    pub task_run_id: i64,
    /// Names its work.
    pub epoch: Epoch,
    /// How many run-job tasks stand above, this one counted.
    pub depth: u32,
}

/// The original run, or one of its repairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Id of the repair; `None`: the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
    /// Start, epoch ms.
    pub start_ms: i64,
    /// End, epoch ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<i64>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// `state_message` at its end.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Task runs of its own.
    pub task_run_ids: Vec<i64>,
    /// `job_parameters` of this repair, instead of those of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Parameters of the older kinds of this repair, instead of those of the run.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub overriding: Map<String, Value>,
}

/// What is known of a task run besides its state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Detail {
    /// The answer of a condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<bool>,
    /// Operands of a condition, texts of a program: what the references in it stood for, by the
    /// name of the field.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub resolved: Map<String, Value>,
    /// The item of a for-each that this is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The run of a run-job task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<i64>,
    /// First line of what went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_trace: Option<String>,
    /// What a notebook exited with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The values that it set for other tasks.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
}

/// A task run in memory.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub row: TaskRow,
    pub detail: Detail,
}

impl Row {
    pub fn new(row: TaskRow) -> Self {
        Self { row, detail: Detail::default() }
    }

    pub fn of(row: TaskRow) -> Self {
        let detail = serde_json::from_str(&row.detail).unwrap_or_default();
        Self { row, detail }
    }

    pub fn to_store(&self) -> TaskRow {
        TaskRow { detail: kept(&self.detail), ..self.row.clone() }
    }

    pub fn is_over(&self) -> bool {
        self.row.end_ms.is_some()
    }

    pub fn end(&mut self, end: End, now_ms: i64) {
        self.row.result = end.outcome.map(|outcome| outcome.word().to_owned());
        self.row.code = Some(end.code.word().to_owned());
        self.row.end_ms = Some(now_ms);
        self.row.start_ms.get_or_insert(now_ms);
    }
}

/// What is kept of something. These types have no value that JSON does not have.
pub(super) fn kept<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Puts the end of a run, or of a round, into its state.
pub(super) fn end_state(state: &mut RunState, end: End, message: String, now_ms: i64) {
    state.life_cycle = end.life_cycle.word().to_owned();
    state.result = end.outcome.map(|outcome| outcome.word().to_owned());
    state.code = Some(end.code.word().to_owned());
    state.message = message;
    state.end_ms = Some(now_ms);
}

/// The row of a run that is over before it began.
pub(super) fn skipped(run_id: i64, new: &NewRun, end: End, now_ms: i64) -> RunRow {
    let message = match end.code {
        Code::MaxJobQueueSizeExceeded => "skipped: as many runs of this job wait as may be",
        _ => "skipped: as many runs of this job are active as may be (max_concurrent_runs)",
    };
    let mut state = RunState { start_ms: now_ms, ..RunState::default() };
    end_state(&mut state, end, message.to_owned(), now_ms);
    let round = Round { start_ms: now_ms, end_ms: Some(now_ms), end: Some(end), ..Round::default() };
    state.rounds = kept(&[round]);
    row(run_id, new, state)
}

pub(super) fn row(run_id: i64, new: &NewRun, state: RunState) -> RunRow {
    RunRow {
        run_id,
        job_id: new.job_id,
        number: new.number,
        run_type: new.run_type.to_owned(),
        name: new.name.clone(),
        creator: new.creator.clone(),
        cause: new.cause.to_owned(),
        about: kept(&new.about),
        state,
    }
}

/// What the end of a child is to the run-job task that waits for it.
pub(super) fn as_task(end: End) -> End {
    match end.outcome {
        Some(Outcome::Success | Outcome::SuccessWithFailures) => End::SUCCESS,
        Some(Outcome::Canceled) => End::CANCELED,
        _ if end.life_cycle == LifeCycle::InternalError => End::internal_error(end.code),
        _ => End::FAILED,
    }
}
