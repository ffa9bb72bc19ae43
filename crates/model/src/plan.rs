//! One operator graph for plans from every source: the log's plan JSON and `explain()` text.

use crate::Text;
use serde::{Deserialize, Serialize};

/// A physical plan. Nodes stand in pre-order: the result first, its inputs after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The nodes; node 0 is the result.
    pub nodes: Vec<PlanNode>,
    /// `isFinalPlan` of adaptive execution; `None` when the plan is not adaptive.
    pub is_final: Option<bool>,
    /// Roots of subqueries in `nodes`.
    pub subqueries: Vec<usize>,
    /// Logical plans and other sections that stood beside it, as text: title and body.
    pub sections: Vec<(String, String)>,
    /// Whether Spark cut its text (`... N more fields`).
    pub cut: bool,
    /// Node names that no operator is known for.
    pub unknown: Vec<String>,
    /// Heading it stood under: `Physical Plan`, `Final Plan`, `Initial Plan`; empty without one.
    pub title: String,
    /// The optimized logical plan that stood beside it.
    pub logical: Option<Box<Plan>>,
}

/// A node of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanNode {
    /// Parent in [`Plan::nodes`]: where its rows go. For the root of a subquery the node that
    /// asks for it, which does not list it among its children.
    pub parent: Option<usize>,
    /// Inputs in [`Plan::nodes`].
    pub children: Vec<usize>,
    /// For [`Operator::Reused`]: the node of this plan whose rows it takes, where the text tells.
    pub reuses: Option<usize>,
    /// Name as written, e.g. `PhotonGroupingAgg`, `Scan parquet lake.orders`.
    #[serde(with = "crate::shared")]
    pub name: Text,
    /// The full one-line text, e.g. `Exchange hashpartitioning(id#7, 200), ENSURE_REQUIREMENTS`.
    #[serde(with = "crate::shared")]
    pub detail: Text,
    /// What it is, read from name and detail.
    pub op: Operator,
    /// Whole-stage codegen id it is in.
    pub codegen: Option<u32>,
    /// Whether Photon runs it.
    pub photon: bool,
    /// SQL metrics with their accumulator ids.
    pub metrics: Vec<PlanMetric>,
    /// Statistics of `explain cost`: size in bytes and rows.
    pub statistics: Option<Statistics>,
    /// Operator number in a formatted plan.
    pub number: Option<u32>,
    /// Output columns, where the text lists them.
    pub output: Vec<String>,
}

/// An SQL metric of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanMetric {
    /// Name, e.g. `number of output rows`.
    #[serde(with = "crate::shared")]
    pub name: Text,
    /// Key in [`crate::Application::accumulators`].
    pub accumulator: i64,
    /// How its value is meant.
    pub kind: MetricKind,
}

/// Kinds of SQL metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MetricKind {
    /// A plain sum.
    #[default]
    Sum,
    /// Bytes.
    Size,
    /// Milliseconds.
    Timing,
    /// Nanoseconds.
    NsTiming,
    /// An average, stored times ten.
    Average,
    /// The largest of the updates (Databricks); a sum means nothing.
    Max,
    /// The smallest of the updates (Databricks); a sum means nothing.
    Min,
}

/// Estimates of the optimizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Bytes.
    pub size_bytes: f64,
    /// Rows, where known.
    pub rows: Option<f64>,
}

/// What a node does. Photon and vendor names map to the same operators.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Operator {
    /// Reads a table or files.
    Scan(Scan),
    /// Moves rows between executors: a shuffle.
    Exchange(Exchange),
    /// Sends all rows to every executor.
    BroadcastExchange {
        /// E.g. `HashedRelationBroadcastMode`, `IdentityBroadcastMode`.
        mode: String,
    },
    /// Joins two inputs.
    Join(Join),
    /// Keeps the rows for which the condition holds.
    Filter {
        /// The condition as written.
        condition: String,
    },
    /// Chooses and computes columns.
    Project {
        /// The expressions as written.
        expressions: String,
    },
    /// Aggregates by keys.
    Aggregate(Aggregate),
    /// Sorts.
    Sort {
        /// Sort order as written, e.g. `k#2L ASC NULLS FIRST`.
        order: Vec<String>,
        /// Over all partitions (true) or within each.
        global: bool,
    },
    /// Sorts and keeps the first rows (`TakeOrderedAndProject`).
    TopK {
        /// Number of rows.
        limit: Option<u64>,
    },
    /// Window functions.
    Window {
        /// PARTITION BY columns; empty means one partition for all rows.
        partition_by: Vec<String>,
        /// ORDER BY.
        order_by: Vec<String>,
    },
    /// explode and other generators: one row becomes many.
    Generate {
        /// E.g. `explode(items#3)`.
        generator: String,
    },
    /// One row becomes several (grouping sets, count distinct).
    Expand,
    /// Python code on rows or batches.
    Python {
        /// Row at a time rather than Arrow batches.
        row_at_a_time: bool,
        /// The functions as written.
        functions: String,
    },
    /// Other code that Spark cannot look into (`MapElements`, `DeserializeToObject`, …).
    Objects,
    /// Writes to a table or files.
    Write {
        /// Command as written, e.g. `InsertIntoHadoopFsRelationCommand`.
        command: String,
        /// Path or table.
        target: Option<String>,
    },
    /// Rows of all inputs.
    Union,
    /// Keeps the first rows.
    Limit {
        /// Number of rows.
        limit: Option<u64>,
    },
    /// `coalesce(n)`: fewer partitions without a shuffle.
    Coalesce {
        /// Number of partitions.
        partitions: Option<u64>,
    },
    /// Adaptive reading of a shuffle: `coalesced`, `skewed`, `local`.
    ShuffleRead {
        /// Small partitions were merged.
        coalesced: bool,
        /// Large ones were split.
        skewed: bool,
        /// Read without a network hop after a change to a broadcast join.
        local: bool,
    },
    /// Reads cached data.
    CacheScan,
    /// The plan of cached data (`InMemoryRelation`).
    CacheBuild,
    /// An exchange computed elsewhere in the query.
    Reused,
    /// Marks code generation.
    Codegen {
        /// Id of the whole-stage codegen.
        id: Option<u32>,
    },
    /// Root of an adaptive plan.
    Adaptive,
    /// A stage of adaptive execution (`ShuffleQueryStage`, `BroadcastQueryStage`).
    QueryStage,
    /// Converts rows and batches, passes rows on, plans a subquery: nothing to notice.
    Plumbing,
    /// A subquery.
    Subquery,
    /// Literal rows, ranges and empty relations.
    Local,
    /// Anything else.
    #[default]
    Other,
}

/// Reading a table or files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scan {
    /// Format in lower case: `parquet`, `delta`, `csv`, `jdbc`, …
    pub format: String,
    /// Table, where named.
    pub table: Option<String>,
    /// Paths as written.
    pub location: Option<String>,
    /// `PushedFilters`, one an item; `None` when the text has no such field.
    pub pushed: Option<Vec<String>>,
    /// `PartitionFilters`, one an item.
    pub partition_filters: Option<Vec<String>>,
    /// `DataFilters`, one an item.
    pub data_filters: Option<Vec<String>>,
    /// Columns of its output, without ids.
    pub columns: Vec<String>,
    /// Columns that Spark left out of the text (`... 214 more fields`).
    pub more_columns: u64,
    /// `ReadSchema`: columns read from the files, with their types.
    pub schema: Vec<(String, String)>,
    /// Partition columns, where the text tells them.
    pub partition_columns: Vec<String>,
    /// Partitions that the source itself was told to read in (`numPartitions` of JDBC).
    pub partitions: Option<u64>,
    /// Whether a field was cut by Spark, so that its absence proves nothing.
    pub cut: bool,
}

/// A shuffle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// How rows find their partition.
    pub partitioning: Partitioning,
    /// Keys without ids.
    pub keys: Vec<String>,
    /// Number of partitions as planned.
    pub partitions: Option<u64>,
    /// Why it is there.
    pub origin: ExchangeOrigin,
    /// `plan_id`.
    pub plan_id: Option<u64>,
}

/// How rows find their partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Partitioning {
    Hash,
    Range,
    RoundRobin,
    Single,
    #[default]
    Other,
}

/// Who asked for a shuffle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ExchangeOrigin {
    /// The planner, for a join, aggregate, window or sort.
    #[default]
    Requirements,
    /// `repartition(n)`: the number is kept whatever the data.
    RepartitionByNumber,
    /// `repartition(columns)` without a number.
    RepartitionByColumns,
    /// The REBALANCE hint.
    Rebalance,
    /// A stateful streaming operator: the number is fixed when the query first starts.
    Stateful,
}

/// A join.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// Algorithm.
    pub algorithm: JoinAlgorithm,
    /// Type as Spark writes it: `Inner`, `LeftOuter`, `LeftAnti`, …
    pub kind: String,
    /// Keys of the left side without ids.
    pub left_keys: Vec<String>,
    /// Keys of the right side without ids.
    pub right_keys: Vec<String>,
    /// Side that is built or broadcast.
    pub build: Option<Side>,
    /// Condition beside the keys, as written.
    pub condition: Option<String>,
    /// `skew=true`: adaptive execution split it.
    pub skew: bool,
    /// NOT IN over a nullable column: a null-aware anti join.
    pub null_aware: bool,
}

/// A side of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Side {
    Left,
    Right,
}

/// Join algorithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum JoinAlgorithm {
    #[default]
    SortMerge,
    ShuffledHash,
    BroadcastHash,
    NestedLoop,
    Cartesian,
}

/// An aggregate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Aggregate {
    /// Grouping keys without ids.
    pub keys: Vec<String>,
    /// Functions as written.
    pub functions: Vec<String>,
    /// Whether it is the first, partial step before a shuffle.
    pub partial: bool,
    /// Sort-based (`SortAggregate`).
    pub sort_based: bool,
}

impl Plan {
    /// The result node.
    #[must_use]
    pub fn root(&self) -> Option<&PlanNode> {
        self.nodes.first()
    }

    /// Inputs of a node with wrappers (codegen, adaptive stages, row conversion) looked through.
    #[must_use]
    pub fn inputs(&self, node: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut open: Vec<usize> = self.nodes[node].children.iter().rev().copied().collect();
        while let Some(child) = open.pop() {
            match self.nodes[child].op.is_wrapper() {
                true => open.extend(self.nodes[child].children.iter().rev()),
                false => found.push(child),
            }
        }
        found
    }

    /// The node that takes a node's rows, wrappers looked through.
    #[must_use]
    pub fn consumer(&self, node: usize) -> Option<usize> {
        let mut at = self.nodes[node].parent?;
        while self.nodes[at].op.is_wrapper() {
            at = self.nodes[at].parent?;
        }
        Some(at)
    }

    /// All nodes below a node, itself first, in pre-order.
    #[must_use]
    pub fn below(&self, node: usize) -> Vec<usize> {
        let mut found = vec![node];
        let mut next = 0;
        while next < found.len() {
            found.extend(self.nodes[found[next]].children.iter().copied());
            next += 1;
        }
        found.sort_unstable();
        found
    }
}

impl Operator {
    /// Whether the node only wraps others.
    #[must_use]
    pub fn is_wrapper(&self) -> bool {
        matches!(
            self,
            Self::Codegen { .. } | Self::Adaptive | Self::QueryStage | Self::Plumbing | Self::ShuffleRead { .. }
        )
    }
}
