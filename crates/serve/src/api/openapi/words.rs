//! Words that fields and parameters take, for their description; the code beside the fields chooses
//! them.

#![allow(dead_code)] // They are described, not made.

use utoipa::ToSchema;

/// What a token allows: looking, adding logs, everything.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(in super::super) enum RoleName {
    Viewer,
    Operator,
    Admin,
}

/// How an application ended; `incomplete` when its log has no end and it does not run.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(in super::super) enum RunState {
    Succeeded,
    Failed,
    Running,
    Incomplete,
}

/// How certain a finding is.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(in super::super) enum Certainty {
    Certain,
    Likely,
    Hint,
}

/// What a part of the wall time is: waiting for the cluster, too few tasks, computing, shuffling,
/// waiting in a task, collecting garbage, the driver alone, starting.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(in super::super) enum BudgetKind {
    Wait,
    Few,
    Cpu,
    Shuffle,
    Offcpu,
    Gc,
    Driver,
    Start,
}

/// What a remedy changes.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(in super::super) enum RemedyWord {
    Code,
    #[schema(rename = "SQL")]
    Sql,
    #[schema(rename = "table layout")]
    TableLayout,
    Setting,
    Compute,
    Operation,
}

/// How a query stands.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(in super::super) enum QueryStatus {
    Running,
    Completed,
    Failed,
}

/// Kind of an operator.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(in super::super) enum OperatorKind {
    Scan,
    Exchange,
    Broadcast,
    Join,
    Filter,
    Project,
    Aggregate,
    Sort,
    Window,
    Generate,
    Python,
    Write,
    Union,
    Limit,
    Cache,
    Other,
}

/// How a stage or job stands.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(in super::super) enum StageStatus {
    Pending,
    Active,
    Complete,
    Failed,
    Skipped,
}

/// How a task stands.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(in super::super) enum TaskState {
    Running,
    Success,
    Failed,
    Killed,
}

/// How near the data of a task was.
#[derive(ToSchema)]
#[schema(rename_all = "SCREAMING_SNAKE_CASE")]
pub(in super::super) enum Locality {
    ProcessLocal,
    NodeLocal,
    NoPref,
    RackLocal,
    Any,
}

/// Unit of a figure.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(in super::super) enum MetricUnit {
    Ms,
    Bytes,
    Count,
}

/// What happened to an executor.
#[derive(ToSchema)]
pub(in super::super) enum MarkKind {
    #[schema(rename = "executor_added")]
    Added,
    #[schema(rename = "executor_removed")]
    Removed,
    #[schema(rename = "executor_excluded")]
    Excluded,
}

/// Kind of a setting: Spark's, the JVM's, Hadoop's, or a system property.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(in super::super) enum SettingGroup {
    Spark,
    Jvm,
    Hadoop,
    System,
}

/// Where a program writes.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(in super::super) enum StreamName {
    Stdout,
    Stderr,
}

/// On or off.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(in super::super) enum Switch {
    On,
    Off,
}

/// What a stage does with the rows of a shuffle.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(in super::super) enum ShuffleOperation {
    Join,
    Aggregate,
    Window,
}

/// What a text is; `auto` finds out.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
pub(in super::super) enum TextKind {
    Auto,
    Plan,
    Stack,
    StageMetrics,
    Streaming,
    Question,
}
