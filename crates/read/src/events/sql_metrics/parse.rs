//! From a batch of lines to the events that Spark's SQL listener heeds; runs on many threads.

use super::super::parse::{RawLine, short_name};
use super::super::task::{self, TaskSink};
use super::super::wire::{CowStr, JobEnd, JobStart, StageEvent};
use super::graph::SqlGraph;
use super::stage::Task;
use super::{GraphMetric, ValueKind};
use crate::plan::PlanInfo;
use model::TaskStatus;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::value::RawValue;
use std::ops::Range;

/// What one batch holds.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(super) events: Vec<Event>,
    /// Updates that ends of tasks refer to.
    pub(super) updates: Vec<(i64, i64)>,
}

#[derive(Debug)]
pub(super) enum Event {
    TaskEnd { stage: u32, attempt: u32, task: Task, updates: Range<usize> },
    JobStart { job: u32, execution: i64, stage_ids: Vec<u32>, stages: Vec<(u32, u32)> },
    JobEnd { job: u32 },
    StageSubmitted { stage: u32, attempt: u32 },
    Start(Planned),
    Update(Planned),
    Metrics { execution: i64, metrics: Vec<GraphMetric> },
    Driver { execution: i64, updates: Vec<(i64, i64)> },
    End { execution: i64 },
}

/// An execution and the graph of its plan.
#[derive(Debug)]
pub(super) struct Planned {
    pub execution: i64,
    pub graph: SqlGraph,
}

/// Reads the lines of one batch. A line equal to the one before is none of its own.
pub(crate) fn batch<'a>(lines: impl Iterator<Item = RawLine<'a>>) -> Parsed {
    let mut sink = TaskSink::default();
    let mut parsed = Parsed::default();
    let mut before: &[u8] = &[];
    for line in lines.filter(|line| !std::mem::replace(&mut before, line.bytes).eq(line.bytes)) {
        parsed.events.extend(event(line.bytes, &mut sink));
    }
    parsed.updates = sink.updates;
    parsed
}

/// The event of a line, if it is one that counts.
fn event(line: &[u8], sink: &mut TaskSink) -> Option<Event> {
    let name = super::super::parse::event_name(line)?;
    match short_name(&name) {
        "SparkListenerTaskEnd" => task_end(line, sink),
        "SparkListenerJobStart" => job_start(serde_json::from_slice(line).ok()?),
        "SparkListenerJobEnd" => serde_json::from_slice(line).ok().map(|end: JobEnd| Event::JobEnd { job: end.id }),
        "SparkListenerStageSubmitted" => {
            let info = serde_json::from_slice::<StageEvent>(line).ok()?.info;
            Some(Event::StageSubmitted { stage: info.id, attempt: info.attempt })
        }
        "SparkListenerSQLExecutionStart" => planned(line).map(Event::Start),
        "SparkListenerSQLAdaptiveExecutionUpdate" => planned(line).map(Event::Update),
        "SparkListenerSQLAdaptiveSQLMetricUpdates" => metrics(line),
        "SparkListenerDriverAccumUpdates" => {
            let form: DriverForm = serde_json::from_slice(line).ok()?;
            Some(Event::Driver { execution: form.id, updates: form.updates })
        }
        "SparkListenerSQLExecutionEnd" => {
            Some(Event::End { execution: serde_json::from_slice::<EndForm>(line).ok()?.id })
        }
        _ => None,
    }
}

fn task_end(line: &[u8], sink: &mut TaskSink) -> Option<Event> {
    let end = task::end(line, sink)?;
    let task = Task { id: end.row.id, index: end.row.index, succeeded: end.row.status == TaskStatus::Success };
    Some(Event::TaskEnd { stage: end.stage, attempt: end.stage_attempt, task, updates: end.updates })
}

fn job_start(start: JobStart) -> Option<Event> {
    let execution = start.properties.number("spark.sql.execution.id")?;
    let stages = start.stages.iter().map(|info| (info.id, info.num_tasks)).collect();
    Some(Event::JobStart { job: start.id, execution, stage_ids: start.stage_ids, stages })
}

#[derive(Deserialize)]
struct PlanForm<'a> {
    #[serde(rename = "executionId")]
    id: i64,
    #[serde(rename = "sparkPlanInfo", borrow)]
    plan: &'a RawValue,
}

fn planned(line: &[u8]) -> Option<Planned> {
    let form: PlanForm<'_> = serde_json::from_slice(line).ok()?;
    let info = PlanInfo::parse(form.plan.get()).ok()?;
    Some(Planned { execution: form.id, graph: SqlGraph::of_info(&info) })
}

#[derive(Deserialize)]
struct MetricsForm {
    #[serde(rename = "executionId")]
    id: i64,
    #[serde(rename = "sqlPlanMetrics", default)]
    metrics: Vec<MetricForm>,
}

#[derive(Deserialize)]
struct MetricForm {
    #[serde(rename = "accumulatorId")]
    accumulator: i64,
    #[serde(rename = "metricType", deserialize_with = "kind")]
    kind: ValueKind,
}

fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ValueKind, D::Error> {
    CowStr::deserialize(deserializer).map(|name| ValueKind::of(&name.0)).map_err(Error::custom)
}

fn metrics(line: &[u8]) -> Option<Event> {
    let form: MetricsForm = serde_json::from_slice(line).ok()?;
    let metric = |m: MetricForm| GraphMetric { name: "".into(), accumulator: m.accumulator, kind: m.kind };
    Some(Event::Metrics { execution: form.id, metrics: form.metrics.into_iter().map(metric).collect() })
}

#[derive(Deserialize)]
struct DriverForm {
    #[serde(rename = "executionId")]
    id: i64,
    #[serde(rename = "accumUpdates", default)]
    updates: Vec<(i64, i64)>,
}

#[derive(Deserialize)]
struct EndForm {
    #[serde(rename = "executionId")]
    id: i64,
}
