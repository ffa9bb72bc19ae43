//! The states of runs and tasks, in both shapes in which the Jobs API tells them.
//!
//! Names and values are those of the API: `state` (`life_cycle_state`, `result_state`) and `status`
//! (`state`, `termination_details`).

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$note:meta])* $value:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$note])* #[serde(rename = $word)] $value),+ }

        impl $name {
            /// All values, in the order of the contract.
            pub const ALL: &[Self] = &[$(Self::$value),+];

            /// The word of the API.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$value => $word),+ }
            }

            /// The value of a word; `None` for any other text.
            #[must_use]
            pub fn of_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.word() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words! {
    /// `life_cycle_state`: where a run or task is in its life.
    LifeCycle {
        /// A limit holds it.
        Queued = "QUEUED",
        /// Its compute is being prepared.
        Pending = "PENDING",
        /// At work.
        Running = "RUNNING",
        /// Being stopped, or cleaning up.
        Terminating = "TERMINATING",
        /// Over.
        Terminated = "TERMINATED",
        /// Over without a start.
        Skipped = "SKIPPED",
        /// Over: the service or the compute failed, not the user's code.
        InternalError = "INTERNAL_ERROR",
        /// A task that it depends on is not over.
        Blocked = "BLOCKED",
        /// Failed, and about to be tried again.
        WaitingForRetry = "WAITING_FOR_RETRY",
    }
}

impl LifeCycle {
    /// Whether nothing can change it but a repair.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Terminated | Self::Skipped | Self::InternalError)
    }

    /// `active_only` of the API.
    #[must_use]
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Queued | Self::Pending | Self::Running | Self::Terminating)
    }

    /// `status.state`, the newer shape, which has a word less.
    #[must_use]
    pub const fn status(self) -> &'static str {
        match self {
            Self::Skipped | Self::InternalError => Self::Terminated.word(),
            Self::WaitingForRetry => "WAITING",
            other => other.word(),
        }
    }
}

words! {
    /// `result_state`: how it ended.
    Outcome {
        /// Did what it should.
        Success = "SUCCESS",
        /// Failed.
        Failed = "FAILED",
        /// Took longer than its `timeout_seconds`.
        TimedOut = "TIMEDOUT",
        /// Stopped by somebody.
        Canceled = "CANCELED",
        /// Never started: the job had as many runs as it may have.
        MaximumConcurrentRunsReached = "MAXIMUM_CONCURRENT_RUNS_REACHED",
        /// Not meant to run this time: its condition asked for another course.
        Excluded = "EXCLUDED",
        /// A run whose leaves did what they should, after another task had failed.
        SuccessWithFailures = "SUCCESS_WITH_FAILURES",
        /// Not started, since a task that it depends on failed.
        UpstreamFailed = "UPSTREAM_FAILED",
        /// Not started, since a task that it depends on was cancelled.
        UpstreamCanceled = "UPSTREAM_CANCELED",
        /// Switched off, or behind a task that is.
        Disabled = "DISABLED",
    }
}

words! {
    /// `termination_details.code`.
    Code {
        /// Ended well.
        Success = "SUCCESS",
        /// Ended well, after a task had failed.
        SuccessWithFailures = "SUCCESS_WITH_FAILURES",
        /// A user cancelled it.
        UserCanceled = "USER_CANCELED",
        /// Cancelled by the engine, e.g. at a time-out.
        Canceled = "CANCELED",
        /// Not started.
        Skipped = "SKIPPED",
        /// Switched off.
        Disabled = "DISABLED",
        /// The engine failed.
        InternalError = "INTERNAL_ERROR",
        /// The user's code failed.
        RunExecutionError = "RUN_EXECUTION_ERROR",
        /// The driver failed.
        DriverError = "DRIVER_ERROR",
        /// The compute did not start or went away.
        ClusterError = "CLUSTER_ERROR",
        /// Somebody ended the compute.
        ClusterTerminatedByUser = "CLUSTER_TERMINATED_BY_USER",
        /// Too many requests for compute.
        ClusterRequestLimitExceeded = "CLUSTER_REQUEST_LIMIT_EXCEEDED",
        /// The compute that was asked for cannot be.
        InvalidClusterRequest = "INVALID_CLUSTER_REQUEST",
        /// The settings of the run cannot be.
        InvalidRunConfiguration = "INVALID_RUN_CONFIGURATION",
        /// A library could not be installed.
        LibraryInstallationError = "LIBRARY_INSTALLATION_ERROR",
        /// The git source could not be read.
        RepositoryCheckoutFailed = "REPOSITORY_CHECKOUT_FAILED",
        /// Something that the run needs does not exist.
        ResourceNotFound = "RESOURCE_NOT_FOUND",
        /// Storage refused.
        StorageAccessError = "STORAGE_ACCESS_ERROR",
        /// The identity of the run may not do this.
        UnauthorizedError = "UNAUTHORIZED_ERROR",
        /// Needs something that is switched off.
        FeatureDisabled = "FEATURE_DISABLED",
        /// The cloud failed.
        CloudFailure = "CLOUD_FAILURE",
        /// Needs something that has changed.
        BreakingChange = "BREAKING_CHANGE",
        /// Beyond its budget.
        BudgetPolicyLimitExceeded = "BUDGET_POLICY_LIMIT_EXCEEDED",
        /// As many runs of the job as may be.
        MaxConcurrentRunsExceeded = "MAX_CONCURRENT_RUNS_EXCEEDED",
        /// As many queued runs as may be.
        MaxJobQueueSizeExceeded = "MAX_JOB_QUEUE_SIZE_EXCEEDED",
        /// As many Spark contexts as may be.
        MaxSparkContextsExceeded = "MAX_SPARK_CONTEXTS_EXCEEDED",
        /// As many runs as may be.
        WorkspaceRunLimitExceeded = "WORKSPACE_RUN_LIMIT_EXCEEDED",
    }
}

words! {
    /// `termination_details.type`: who can do something about it.
    CodeType {
        /// Nobody needs to.
        Success = "SUCCESS",
        /// Whoever wrote or started it.
        ClientError = "CLIENT_ERROR",
        /// Whoever runs the machines below.
        CloudFailure = "CLOUD_FAILURE",
        /// Whoever runs this service.
        InternalError = "INTERNAL_ERROR",
    }
}

impl Code {
    /// Who can do something about it.
    #[must_use]
    pub const fn kind(self) -> CodeType {
        match self {
            Self::Success | Self::SuccessWithFailures => CodeType::Success,
            Self::CloudFailure => CodeType::CloudFailure,
            Self::InternalError | Self::ClusterError | Self::DriverError => CodeType::InternalError,
            _ => CodeType::ClientError,
        }
    }
}

words! {
    /// `queue_details.code`: which limit holds a run or task.
    QueueCode {
        /// `max_concurrent_runs` of its job.
        MaxConcurrentRuns = "MAX_CONCURRENT_RUNS_REACHED",
        /// Active runs of the whole server.
        ActiveRuns = "ACTIVE_RUNS_LIMIT_REACHED",
        /// Tasks of run-job that may be active.
        ActiveRunJobTasks = "ACTIVE_RUN_JOB_TASKS_LIMIT_REACHED",
    }
}

/// How something ended: all that both shapes of state tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct End {
    /// `TERMINATED`, `SKIPPED` or `INTERNAL_ERROR`.
    pub life_cycle: LifeCycle,
    /// `None`: it never got as far as to have a result.
    pub outcome: Option<Outcome>,
    /// Why.
    pub code: Code,
}

impl End {
    /// Ended by itself, or was stopped.
    #[must_use]
    pub const fn of(outcome: Outcome, code: Code) -> Self {
        Self { life_cycle: LifeCycle::Terminated, outcome: Some(outcome), code }
    }

    /// Did what it should.
    pub const SUCCESS: Self = Self::of(Outcome::Success, Code::Success);
    /// The user's code failed.
    pub const FAILED: Self = Self::of(Outcome::Failed, Code::RunExecutionError);
    /// Its own time-out was reached.
    pub const TIMED_OUT: Self = Self::of(Outcome::TimedOut, Code::Canceled);
    /// A user stopped it.
    pub const CANCELED_BY_USER: Self = Self::of(Outcome::Canceled, Code::UserCanceled);
    /// The engine stopped it.
    pub const CANCELED: Self = Self::of(Outcome::Canceled, Code::Canceled);
    /// Not started, for its conditions.
    pub const EXCLUDED: Self = Self::of(Outcome::Excluded, Code::Skipped);
    /// Not started, for a failure before it.
    pub const UPSTREAM_FAILED: Self = Self::of(Outcome::UpstreamFailed, Code::Skipped);
    /// Not started, for a cancellation before it.
    pub const UPSTREAM_CANCELED: Self = Self::of(Outcome::UpstreamCanceled, Code::Skipped);
    /// Switched off.
    pub const DISABLED: Self = Self::of(Outcome::Disabled, Code::Disabled);
    /// A run without a task that may run.
    pub const SKIPPED: Self = Self { life_cycle: LifeCycle::Skipped, outcome: None, code: Code::Skipped };

    /// The engine or the compute failed, not the user's code.
    #[must_use]
    pub const fn internal_error(code: Code) -> Self {
        Self { life_cycle: LifeCycle::InternalError, outcome: Some(Outcome::Failed), code }
    }

    /// What it is to the tasks that depend on it.
    #[must_use]
    pub const fn class(self) -> Class {
        match self.outcome {
            Some(Outcome::Success | Outcome::Excluded | Outcome::SuccessWithFailures) => Class::Good,
            Some(Outcome::Disabled) => Class::Disabled,
            _ => Class::Bad,
        }
    }

    /// Whether it was stopped on purpose, or stands behind something that was.
    #[must_use]
    pub const fn is_cancellation(self) -> bool {
        matches!(self.outcome, Some(Outcome::Canceled | Outcome::UpstreamCanceled))
    }
}

/// What a parent's end is to its dependants. Excluded counts as good; the two upstream results
/// count as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// As if it had succeeded.
    Good,
    /// As if it had failed.
    Bad,
    /// Neither, but over.
    Disabled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_back_to_their_values() {
        for &value in Code::ALL {
            assert_eq!(Code::of_word(value.word()), Some(value));
            assert_eq!(serde_json::to_value(value).unwrap(), value.word());
        }
        assert_eq!((Code::ALL.len(), Outcome::ALL.len(), LifeCycle::ALL.len()), (27, 10, 9));
        assert_eq!(Outcome::of_word("success"), None);
    }

    #[test]
    fn active_and_final_leave_out_what_waits_inside_a_run() {
        let neither: Vec<_> = LifeCycle::ALL.iter().filter(|s| !s.is_active() && !s.is_final()).collect();
        assert_eq!(neither, [&LifeCycle::Blocked, &LifeCycle::WaitingForRetry]);
    }
}
