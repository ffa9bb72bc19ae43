//! What a book has done outside, and what it is told of.

use super::rows::Parent;
use crate::settings::Work;
use crate::states::{Code, End, Outcome};
use crate::step::Epoch;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

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
        program: Program,
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
    },
}

/// A program with all references resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// What it does.
    pub work: Work,
    /// Whether a Spark session is wanted.
    pub wants_cluster: bool,
    /// Variables that it gets.
    pub environment: BTreeMap<String, String>,
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
}

impl Finished {
    /// Ended like this, and nothing else is known.
    #[must_use]
    pub fn of(end: End) -> Self {
        Self { end, error: None, trace: None }
    }

    pub(super) fn invalid(error: impl ToString) -> Self {
        let end = End::of(Outcome::Failed, Code::InvalidRunConfiguration);
        Self { end, error: Some(error.to_string()), trace: None }
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
