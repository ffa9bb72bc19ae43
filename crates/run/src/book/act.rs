//! What a book has done outside, and what it is told of.

use super::rows::Parent;
use crate::settings::{Cluster, GitSource, Libraries, Work};
use crate::states::{Code, End, Outcome};
use crate::step::Epoch;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Environment variable of a program: its task run.
pub const TASK_RUN_ID: &str = "LAKESCOPE_TASK_RUN_ID";
/// Property of the Spark applications that it starts: the same.
pub const TASK_RUN_PROPERTY: &str = "spark.lakescope.taskRunId";

/// Something to do outside, once the rows are on the disk.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Start a program, or take it up again where it runs.
    Launch {
        /// Of which run.
        run_id: i64,
        /// Of which task run.
        task_run_id: i64,
        /// Names the start in the run.
        epoch: Epoch,
        /// What to run.
        program: Box<Program>,
    },
    /// End a program, gently first.
    Stop {
        /// Of which run.
        run_id: i64,
        /// Names the start in the run.
        epoch: Epoch,
    },
    /// Start a run of another job.
    RunJob {
        /// The task that waits for it.
        parent: Parent,
        /// Which job.
        job_id: i64,
        /// With these parameters.
        parameters: BTreeMap<String, String>,
    },
    /// End a run.
    StopRun(i64),
    /// A run has taken longer than its job expects.
    Warn(i64),
    /// A run is over.
    Over {
        /// Of which job.
        job_id: i64,
        /// Which.
        run_id: i64,
        /// How.
        end: End,
        /// When it came to be, epoch ms.
        started_ms: i64,
        /// When it was over, epoch ms.
        ended_ms: i64,
    },
    /// A run was over before it began.
    Skipped {
        /// Of which job.
        job_id: i64,
        /// Which.
        run_id: i64,
        /// How.
        end: End,
        /// When, epoch ms.
        ended_ms: i64,
    },
}

/// A program with all references resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The run that it is of.
    pub run_id: i64,
    /// What it does.
    pub work: Work,
    /// The repository that its files stand in.
    pub git: Option<GitSource>,
    /// The cluster that it is to run on.
    pub cluster: Option<Cluster>,
    /// Variables that it gets.
    pub environment: BTreeMap<String, String>,
    /// What it needs.
    pub libraries: Libraries,
    /// Values that tasks of its run have set so far, by their keys.
    pub values: BTreeMap<String, Map<String, Value>>,
}

/// How a piece of work ended, with what people want to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How.
    pub end: End,
    /// What went wrong, in a line.
    pub error: Option<String>,
    /// The stack.
    pub trace: Option<String>,
    /// What a notebook exits with.
    pub result: Option<String>,
    /// The values that it has set for other tasks.
    pub values: Map<String, Value>,
}

impl Finished {
    /// Ended like this, and nothing else is known.
    #[must_use]
    pub fn of(end: End) -> Self {
        Self { end, error: None, trace: None, result: None, values: Map::new() }
    }

    /// Ended like this, because of that.
    #[must_use]
    pub fn because(end: End, error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::of(end) }
    }

    /// It could not be begun: its definition asks for what cannot be.
    pub(crate) fn invalid(error: impl ToString) -> Self {
        Self::because(End::of(Outcome::Failed, Code::InvalidRunConfiguration), error.to_string())
    }
}

/// What a repair is given for itself alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Given {
    /// `job_parameters`.
    pub parameters: BTreeMap<String, String>,
    /// Parameters of the older kinds.
    pub overriding: Map<String, Value>,
}
