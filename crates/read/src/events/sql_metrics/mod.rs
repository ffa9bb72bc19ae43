//! What Spark's SQL listener makes of a log beyond the model: for every execution the graph of its
//! plan as Spark numbers it, and of every metric total, smallest, median and largest update with
//! the task that made it.
//!
//! These figures need every task's updates at once, which the model does not keep, so they are
//! read from the log a second time, when somebody asks for them. [`parse`] takes from a batch only
//! the events that count, [`listener`] follows the rules of Spark 4.0.1's `SQLAppStatusListener`
//! in the order of the log, [`stage`] holds the updates while an execution lives, [`graph`] is
//! `SparkPlanGraph`.

mod graph;
mod listener;
mod parse;
mod stage;

pub use graph::{GraphMetric, GraphNode, SqlGraph};
pub use listener::in_set_order;
pub use stage::{MetricValue, TaskPlace};

pub(crate) use listener::Listener;
pub(crate) use parse::batch;

use foldhash::HashMap;
use std::collections::BTreeMap;

/// What a second reading of a log tells of its SQL executions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SqlMetrics {
    /// Executions by id.
    pub executions: BTreeMap<i64, SqlFigures>,
}

/// Plan graph and metrics of one execution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SqlFigures {
    /// Graph of its last plan; `None` when the log has no plan of it.
    pub graph: Option<SqlGraph>,
    /// Metrics by accumulator; those without an update are not there.
    pub values: HashMap<i64, MetricValue>,
    /// Whether its updates outgrew the memory for reading, so that `values` is empty.
    pub too_large: bool,
}

/// How a metric's updates are summed up: `metricType` of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// `sum`.
    Sum,
    /// `size`.
    Size,
    /// `timing`.
    Timing,
    /// `nsTiming`.
    NsTiming,
    /// `average`, stored times ten.
    Average,
    /// `v2Custom_<class>`: the connector's own code would sum it up.
    Connector,
    /// A type that Spark does not have (Databricks adds some).
    Unknown,
}

impl ValueKind {
    /// Reads a `metricType`.
    fn of(name: &str) -> Self {
        match name {
            "sum" => Self::Sum,
            "size" => Self::Size,
            "timing" => Self::Timing,
            "nsTiming" => Self::NsTiming,
            "average" => Self::Average,
            other if other.starts_with("v2Custom_") => Self::Connector,
            _ => Self::Unknown,
        }
    }
}
