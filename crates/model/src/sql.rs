//! SQL executions.

use crate::{Label, Plan, Text};
use serde::{Deserialize, Serialize};

/// One SQL execution: a query, or a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SqlExecution {
    /// Execution id.
    pub id: i64,
    /// Root of nested executions; itself when it is none of another.
    pub root_id: Option<i64>,
    /// Description: the action and call site, or the statement.
    pub description: Label,
    /// Call stack, one frame a line.
    pub details: Label,
    /// Start, epoch ms.
    pub started_ms: Option<i64>,
    /// End, epoch ms.
    pub ended_ms: Option<i64>,
    /// Message of the failure.
    #[serde(with = "crate::shared")]
    pub error: Option<Text>,
    /// Jobs that worked for it.
    pub jobs: Vec<u32>,
    /// Plan at the start; with adaptive execution the initial one.
    pub first_plan: Plan,
    /// Plan after the last adaptive update; `None` when there was none.
    pub last_plan: Option<Plan>,
    /// Adaptive updates seen.
    pub updates: u32,
    /// Settings changed for it (`modifiedConfigs`).
    #[serde(with = "crate::shared")]
    pub modified_configs: Vec<(Text, Text)>,
    /// `physicalPlanDescription` of the last plan.
    #[serde(with = "crate::shared")]
    pub plan_text: Option<Text>,
}

impl SqlExecution {
    /// The plan that ran.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        self.last_plan.as_ref().unwrap_or(&self.first_plan)
    }

    /// End minus start, ms.
    #[must_use]
    pub fn duration_ms(&self) -> Option<i64> {
        Some((self.ended_ms? - self.started_ms?).max(0))
    }
}

/// What became of one accumulator, over the successful tasks that updated it and the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accumulator {
    /// Sum of updates; updates of −1 ("not set") left out where the kind has that meaning.
    pub sum: i64,
    /// Largest update of one task.
    pub max: i64,
    /// Tasks (and driver updates) that updated it.
    pub updates: u32,
    /// A stage whose tasks updated it: position in [`crate::Application::stages`].
    pub stage: Option<u32>,
}
