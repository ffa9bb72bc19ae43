//! `/sql`: executions by id, with their plans as graphs and the metrics of every node.
//!
//! Metrics other than sums need the updates of all tasks, for which the log is read once more. Of
//! a log that is gone, sums stay known; other metrics are left out.

use super::errors::Failure;
use super::sql_text;
use super::times::Time;
use crate::params::Params;
use model::{Application, SqlExecution, StageStatus};
use read::{GraphMetric, SqlGraph, SqlMetrics, ValueKind};
use serde::Serialize;

/// Executions in an answer, as in Spark.
const PAGE: usize = 20;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExecutionData<'a> {
    id: i64,
    status: &'static str,
    description: &'a str,
    plan_description: &'a str,
    submission_time: Time,
    duration: i64,
    running_job_ids: Vec<u32>,
    success_job_ids: Vec<u32>,
    failed_job_ids: Vec<u32>,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    node_id: u32,
    node_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    whole_stage_codegen_id: Option<i64>,
    metrics: Vec<Metric>,
}

#[derive(Serialize)]
struct Metric {
    name: String,
    value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Edge {
    from_id: u32,
    to_id: u32,
}

/// What a request wants to know of executions.
pub(super) struct Wanted<'a> {
    app: &'a Application,
    /// What a second reading of the log told, where it could be read.
    figures: Option<&'a SqlMetrics>,
    details: bool,
    plan_description: bool,
    now_ms: i64,
}

/// Whether a request asks for graphs and metrics.
pub(super) fn wants_details(params: &Params) -> bool {
    params.flag("details", true)
}

impl<'a> Wanted<'a> {
    pub fn of(app: &'a Application, figures: Option<&'a SqlMetrics>, params: &Params) -> Self {
        Self {
            app,
            figures,
            details: wants_details(params),
            plan_description: params.flag("planDescription", true),
            now_ms: crate::clock::now_ms(),
        }
    }

    /// A page of executions, the first first.
    pub fn list(&self, params: &Params) -> Result<Vec<ExecutionData<'a>>, Failure> {
        // An offset below 0 begins at the first.
        let offset = match params.get("offset").and_then(|text| text.parse::<i64>().ok()) {
            Some(..0) => 0,
            _ => params.number("offset", 0)?,
        };
        let length = params.number("length", PAGE)?;
        Ok(self.app.sql.iter().skip(offset).take(length).map(|sql| self.execution(sql)).collect())
    }

    /// One execution.
    pub fn one(&self, id: &str) -> Result<ExecutionData<'a>, Failure> {
        // Anything but digits is a path that does not exist.
        let number = id.parse::<i64>().ok().filter(|_| id.bytes().all(|b| b.is_ascii_digit()));
        let number = number.ok_or_else(Failure::no_such_path)?;
        let unknown = || Failure::not_found(format!("unknown query execution id: {number}"));
        self.app.sql(number).map(|sql| self.execution(sql)).ok_or_else(unknown)
    }

    fn execution(&self, sql: &'a SqlExecution) -> ExecutionData<'a> {
        let ordered = read::in_set_order(&sql.jobs);
        let jobs = |wanted: &[StageStatus]| {
            let is_wanted = |id: &u32| self.app.job(*id).is_some_and(|job| wanted.contains(&job.status));
            ordered.iter().copied().filter(is_wanted).collect()
        };
        let failed_job_ids: Vec<u32> = jobs(&[StageStatus::Failed]);
        let started_ms = sql.started_ms.unwrap_or(-1);
        let (nodes, edges) = if self.details { self.graph(sql) } else { Default::default() };
        ExecutionData {
            id: sql.id,
            status: self.status(sql, !failed_job_ids.is_empty()),
            description: &sql.description,
            plan_description: sql.plan_text.as_deref().filter(|_| self.plan_description).unwrap_or_default(),
            submission_time: Time(started_ms),
            duration: sql.ended_ms.unwrap_or(self.now_ms).saturating_sub(started_ms),
            running_job_ids: jobs(&[StageStatus::Pending, StageStatus::Active, StageStatus::Skipped]),
            success_job_ids: jobs(&[StageStatus::Complete]),
            failed_job_ids,
            nodes,
            edges,
        }
    }

    /// From 3.4 on every end says whether it was a failure; before, a failed job tells.
    fn status(&self, sql: &SqlExecution, a_job_failed: bool) -> &'static str {
        let end_tells = self.app.version().is_some_and(|version| version >= (3, 4));
        match (sql.error.is_some(), sql.ended_ms) {
            (true, _) => "FAILED",
            (false, None) => "RUNNING",
            (false, Some(_)) if a_job_failed && !end_tells => "FAILED",
            (false, Some(_)) => "COMPLETED",
        }
    }

    /// As the log tells it when read again, else as far as the application knows it.
    fn graph(&self, sql: &SqlExecution) -> (Vec<Node>, Vec<Edge>) {
        let told = self.figures.and_then(|figures| figures.executions.get(&sql.id));
        let values = told.filter(|told| !told.too_large).map(|told| &told.values);
        let value = |metric: &GraphMetric| match values {
            Some(values) => sql_text::value(values.get(&metric.accumulator)?),
            None => self.known_sum(metric),
        };
        match told.and_then(|told| told.graph.as_ref()) {
            Some(graph) => drawn(graph, value),
            None => drawn(&SqlGraph::of_plan(sql.plan()), value),
        }
    }

    /// What the application itself knows of a metric.
    fn known_sum(&self, metric: &GraphMetric) -> Option<String> {
        let known = self.app.accumulators.get(&metric.accumulator)?;
        (metric.kind == ValueKind::Sum).then(|| sql_text::grouped(known.sum))
    }
}

/// Nodes, the last first, and edges as Spark writes them.
fn drawn(graph: &SqlGraph, value: impl Fn(&GraphMetric) -> Option<String>) -> (Vec<Node>, Vec<Edge>) {
    let metric = |metric: &GraphMetric| Some(Metric { name: metric.name.to_string(), value: value(metric)? });
    let node = |(node_id, node): (u32, &read::GraphNode)| Node {
        node_id,
        node_name: node.name.to_string(),
        whole_stage_codegen_id: node.codegen,
        metrics: node.metrics.iter().filter_map(metric).collect(),
    };
    let mut nodes: Vec<Node> = (0..).zip(&graph.nodes).map(node).collect();
    nodes.reverse();
    let edges = graph.edges.iter().map(|&(from_id, to_id)| Edge { from_id, to_id }).collect();
    (nodes, edges)
}
