//! Values of other crates, described here so that these need to know nothing of OpenAPI. The tests
//! ask a server and hold its answers against the descriptions.
//!
//! The report and what it is made of are taken from its own schema, a generated reference page.

#![allow(dead_code)] // They are described, not made.

use super::words;
use serde_json::Value;
use std::borrow::Cow;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

const REPORT: &str = include_str!("../../../../../docs/reference/report.schema.json");

/// The schemas of the report and its parts by name.
pub(super) fn report() -> Vec<(String, Value)> {
    let mut report: Value = serde_json::from_str(REPORT).unwrap_or_default();
    refer(&mut report);
    let parts = report["$defs"].take();
    for key in ["$defs", "$schema", "title"] {
        report.as_object_mut().map(|fields| fields.remove(key));
    }
    let parts = parts.as_object().cloned().unwrap_or_default();
    parts.into_iter().chain([("Report".to_owned(), report)]).collect()
}

/// Lets references lead to the components of the document.
fn refer(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(to)) = fields.get_mut("$ref") {
                *to = to.replace("#/$defs/", "#/components/schemas/");
            }
            fields.values_mut().for_each(refer);
        }
        Value::Array(items) => items.iter_mut().for_each(refer),
        _ => {}
    }
}

/// Names that stand for a part of the report; the document takes their schema from it.
macro_rules! of_report {
    ($($name:ident),+) => {$(
        #[doc = concat!("`", stringify!($name), "` of the report.")]
        #[derive(Debug)]
        pub(crate) struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                RefOr::default()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($name))
            }
        }
    )+};
}

of_report!(Excluded, Finding, PasteKind, Report, Severity, Warning, WillNotHelp);

/// Bytes.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
pub(in super::super) struct Bytes(Vec<u8>);

/// Kinds of notes on a plan, the worst first.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(in super::super) enum NoteKind {
    Cartesian,
    NestedLoop,
    SinglePartition,
    NotPushed,
    Udf,
    Repartition,
    SmallSide,
    NoPartitionFilter,
    Join,
    Broadcast,
    Shuffle,
    Unfiltered,
    Pruned,
    Pushed,
    Reused,
    Cache,
    Adaptive,
    Unknown,
    Cut,
}

/// A task attempt. Figures are null while it runs, or when the log has none of it.
#[derive(ToSchema)]
pub(in super::super) struct TaskRow {
    /// Id, unique in the application.
    task: i64,
    /// Number in the stage.
    index: u32,
    /// Attempt of the task.
    attempt: u32,
    /// Partition that it computed, where the log tells it.
    partition: Option<i64>,
    /// Id of its executor.
    executor: Option<String>,
    /// Host of its executor.
    host: Option<String>,
    /// How it stands.
    status: words::TaskState,
    /// How near its data was.
    locality: words::Locality,
    /// Whether it is a copy of a slow one.
    speculative: bool,
    /// Why it failed, as Spark words it.
    error: Option<String>,
    /// Start, epoch ms.
    launch_ms: Option<i64>,
    /// End, epoch ms.
    finish_ms: Option<i64>,
    /// Duration, ms.
    duration_ms: Option<i64>,
    /// Time between the driver and the executor, ms.
    scheduler_delay_ms: Option<i64>,
    /// Time to unpack the task, ms.
    deserialize_ms: Option<i64>,
    /// Time of garbage collection, ms.
    gc_ms: Option<i64>,
    /// CPU time, ms.
    cpu_ms: Option<i64>,
    /// Run time on the executor, ms.
    run_ms: Option<i64>,
    /// Time to pack the result, ms.
    result_serialization_ms: Option<i64>,
    /// Time to fetch the result, ms.
    getting_result_ms: Option<i64>,
    /// Most memory that joins, aggregations and sorts held, bytes.
    peak_memory_bytes: Option<i64>,
    /// Bytes read from sources.
    input_bytes: Option<i64>,
    /// Rows read from sources.
    input_records: Option<i64>,
    /// Bytes read from shuffles.
    shuffle_read_bytes: Option<i64>,
    /// Rows read from shuffles.
    shuffle_read_records: Option<i64>,
    /// Time that reading a shuffle waited for its blocks, ms.
    fetch_wait_ms: Option<i64>,
    /// Bytes written to shuffles.
    shuffle_write_bytes: Option<i64>,
    /// Rows written to shuffles.
    shuffle_write_records: Option<i64>,
    /// Time of writing to shuffles, ms.
    shuffle_write_ms: Option<i64>,
    /// Bytes that were spilled, as they were in memory.
    spill_memory_bytes: Option<i64>,
    /// Bytes that were spilled, as they were on disk.
    spill_disk_bytes: Option<i64>,
    /// Bytes written to sinks.
    output_bytes: Option<i64>,
    /// Rows written to sinks.
    output_records: Option<i64>,
    /// Bytes of the result.
    result_bytes: Option<i64>,
}

/// Two runs side by side.
#[derive(ToSchema)]
pub(in super::super) struct Comparison {
    /// Version of this form.
    version: u32,
    /// The baseline: the given run, or the median one of many.
    base: ComparedRun,
    /// The run in question.
    new: ComparedRun,
    /// The answer in one sentence.
    sentence: String,
    /// Wall time of the new run minus that of the baseline, ms.
    delta_ms: i64,
    /// Whether no query of the two has the same plan or description; of runs without queries, no job.
    nothing_in_common: bool,
    /// Where the difference went; the parts add up to `delta_ms`.
    parts: Vec<CausePart>,
    /// Findings about the difference (`REG_*`, `FLAKY`, `IMPROVED`).
    findings: Vec<Finding>,
    /// Findings of the new run that the baseline lacks: id and title.
    appeared: Vec<(String, String)>,
    /// Findings of the baseline that the new run lacks: id and title.
    disappeared: Vec<(String, String)>,
    /// Settings that differ and matter.
    settings: Vec<ConfigChange>,
    /// Queries and jobs side by side, the largest difference first.
    pieces: Vec<PieceDelta>,
    /// The usual time of the runs of the baseline; left out with fewer than five.
    #[schema(nullable = false)]
    history: Option<UsualTime>,
}

/// A run in a comparison.
#[derive(ToSchema)]
struct ComparedRun {
    /// Application id.
    id: String,
    /// Name.
    name: String,
    /// Version of Spark.
    spark_version: String,
    /// Start, epoch ms.
    started_ms: Option<i64>,
    /// Wall time, ms.
    wall_ms: i64,
    /// Tasks that could run at once, the average from the first task on.
    slots: f64,
    /// Bytes read from sources.
    input_bytes: i64,
    /// Rows read from sources.
    input_rows: i64,
    /// Bytes read from shuffles.
    shuffle_read_bytes: i64,
    /// Why it did not end well: its worst finding; left out when it did.
    #[schema(nullable = false)]
    failed: Option<String>,
}

/// Time that went to one cause.
#[derive(ToSchema)]
struct CausePart {
    /// The cause.
    cause: DifferenceCause,
    /// Time added, ms; below 0 saved.
    ms: i64,
    /// Where, the largest first.
    places: Vec<DifferencePlace>,
}

/// Kinds of causes of a difference.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
enum DifferenceCause {
    StartUp,
    DataGrowth,
    PlanChange,
    Cluster,
    Configuration,
    NewFinding,
    Contention,
    Unexplained,
}

/// A place that added time.
#[derive(ToSchema)]
struct DifferencePlace {
    /// Time added, ms.
    ms: i64,
    /// What happened there, a sentence with its numbers.
    text: String,
    /// Id of the SQL execution in the new run; left out elsewhere.
    #[schema(nullable = false)]
    sql: Option<i64>,
    /// Id of the stage in the new run; left out elsewhere.
    #[schema(nullable = false)]
    stage: Option<u32>,
}

/// A setting with its two values.
#[derive(ToSchema)]
struct ConfigChange {
    /// Key, or `Spark version`, `Java Version`.
    key: String,
    /// Value in the baseline; left out when it was not set.
    #[schema(nullable = false)]
    base: Option<String>,
    /// Value in the new run; left out when it was not set.
    #[schema(nullable = false)]
    new: Option<String>,
    /// Whether it can change plans or the number of partitions.
    changes_plans: bool,
}

/// A query or job of both runs, side by side.
#[derive(ToSchema)]
struct PieceDelta {
    /// What it is: description or call site.
    name: String,
    /// Place in the baseline, e.g. `SQL 3`, `job 7`; left out when it is new.
    #[schema(nullable = false)]
    base: Option<String>,
    /// Place in the new run; left out when it is gone.
    #[schema(nullable = false)]
    new: Option<String>,
    /// Wall time of its own in the baseline, ms.
    base_ms: i64,
    /// Wall time of its own in the new run, ms.
    new_ms: i64,
    /// Bytes read in the baseline.
    base_bytes: i64,
    /// Bytes read in the new run.
    new_bytes: i64,
    /// Whether the plans are the same but for literals and ids.
    same_plan: bool,
}

/// The usual time of earlier runs.
#[derive(ToSchema)]
struct UsualTime {
    /// Runs that ended well and were used.
    runs: usize,
    /// Median wall time, ms.
    median_ms: i64,
    /// Median absolute deviation, ms.
    mad_ms: i64,
    /// Wall time from which a run counts as slower, ms.
    limit_ms: i64,
    /// Whether the new run is slower.
    slower: bool,
}

/// What a shuffle will do.
#[derive(ToSchema)]
pub(in super::super) struct ShuffleAnswer {
    /// What it was computed from.
    given: Shuffle,
    /// The number of partitions that is proposed.
    proposed_partitions: i64,
    /// Where that comes from: a formula with its numbers, or a comparison.
    proposed_because: String,
    /// What becomes of the number that was asked for, else of the proposed one.
    outcome: ShuffleOutcome,
    /// Other numbers beside it.
    others: Vec<ShuffleOutcome>,
    /// The stage as it ran; left out without a stage.
    #[schema(nullable = false)]
    recorded: Option<RecordedShuffle>,
}

/// A shuffle and the cluster that reads it.
#[derive(ToSchema)]
struct Shuffle {
    /// Bytes that the stage reads.
    bytes: i64,
    /// Tasks that run at once.
    cores: i64,
    /// Heap of an executor divided by its cores, bytes.
    memory_per_core: i64,
    /// Cores of an executor.
    cores_per_executor: i64,
    /// `spark.memory.fraction`, 0 to 1.
    memory_fraction: f64,
    /// Bytes that a task should read.
    target: i64,
    /// Share of the rows that have the most frequent key, 0 to 1.
    skew: f64,
    /// Whether adaptive execution is on.
    adaptive: bool,
    /// Whether adaptive execution merges small partitions.
    merging: bool,
    /// Whether the stage joins; adaptive execution splits nothing else.
    join: bool,
    /// Whether adaptive execution splits large partitions.
    splitting: bool,
    /// Tasks that wrote the shuffle; left out when they are not known.
    #[schema(nullable = false)]
    map_tasks: Option<i64>,
    /// `spark.sql.adaptive.skewJoin.skewedPartitionFactor`.
    skew_factor: f64,
    /// `spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes`.
    skew_threshold: i64,
    /// `spark.sql.adaptive.advisoryPartitionSizeInBytes`.
    advisory: i64,
    /// Bytes that one core gets through in a second.
    bytes_per_second: f64,
    /// What a task takes besides its bytes, ms.
    fixed_ms: f64,
    /// Bytes in memory for each byte of shuffle.
    expansion: f64,
}

/// What becomes of a shuffle with a number of partitions.
#[derive(ToSchema)]
struct ShuffleOutcome {
    /// Partitions as set.
    partitions: i64,
    /// Tasks that run, after adaptive execution.
    tasks: i64,
    /// Partitions that adaptive execution split.
    split_partitions: i64,
    /// Pieces of the split partitions.
    split_pieces: i64,
    /// Partitions that it merged away.
    merged_away: i64,
    /// Why the largest partition is not split; left out when it is, or when none is large.
    #[schema(nullable = false)]
    not_split_because: Option<String>,
    /// Bytes of the usual task.
    task_bytes: i64,
    /// Bytes of the largest task.
    largest_bytes: i64,
    /// Rounds in which the cores are filled.
    waves: i64,
    /// Run time of the usual task, ms.
    task_ms: i64,
    /// Run time of the largest task, ms.
    largest_ms: i64,
    /// Run time of the stage, ms.
    stage_ms: i64,
    /// Time in which only the slowest task runs, ms.
    waiting_ms: i64,
    /// Core time that is idle while the stage runs, ms.
    idle_core_ms: i64,
    /// Memory that tasks need and have.
    memory: ShuffleMemory,
}

/// Whether tasks fit their memory.
#[derive(ToSchema)]
struct ShuffleMemory {
    /// Bytes that each of the tasks of an executor may use for certain.
    available: i64,
    /// Bytes that the usual task needs.
    needed: i64,
    /// Bytes that the largest task needs.
    needed_by_largest: i64,
    /// Tasks that need more than they have for certain.
    spilling_tasks: i64,
    /// How likely tasks spill.
    risk: SpillRisk,
}

/// How likely tasks spill.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
enum SpillRisk {
    None,
    Tight,
    LargestSpills,
    AllSpill,
}

/// A stage as it ran.
#[derive(ToSchema)]
struct RecordedShuffle {
    /// What it read, on what.
    shuffle: Shuffle,
    /// Tasks that ran.
    tasks: i64,
    /// How long it took, ms.
    wall_ms: i64,
    /// What playing the tasks that ran gives, ms.
    played_ms: i64,
}
