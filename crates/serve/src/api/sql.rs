//! Queries: the list, and one with its plan as a graph.

use super::asked::{Asked, At, QueryOf};
use super::failure::{self, Failure};
use super::openapi::shapes;
use super::openapi::words::{OperatorKind, QueryStatus};
use super::stages::FindingRef;
use super::{Answer, json};
use crate::Opened;
use diagnose::plan_reading::{self, PlanReading, Step, read_change, read_plan};
use diagnose::plans;
use diagnose::telling::{self, capital, clean, one_line};
use model::{
    Application, Bytes, Count, Finding, Metric, MetricKind, Millis, Operator, Plan, PlanMetric, SqlExecution, Stage,
};
use serde::Serialize;
use utoipa::ToSchema;

/// Operators that are named as the slowest.
const TOP: usize = 8;

/// A query in the list.
#[derive(Serialize, ToSchema)]
#[schema(as = QueryRow)]
pub(super) struct Row {
    /// Id of the SQL execution.
    id: i64,
    /// Description, or the call site.
    description: String,
    /// Start, epoch ms.
    submitted_ms: Option<i64>,
    /// Duration, ms; null while it runs.
    duration_ms: Option<i64>,
    /// How it stands.
    #[schema(value_type = QueryStatus)]
    status: &'static str,
    /// Ids of its jobs.
    jobs: Vec<u32>,
    /// Stage attempts that ran tasks for it.
    stages: usize,
    /// Run time of its tasks, ms.
    task_ms: i64,
    /// Bytes read from sources.
    input_bytes: i64,
    /// Bytes written to shuffles.
    shuffle_bytes: i64,
    /// Bytes spilled to disk.
    spill_bytes: i64,
    /// Findings about it.
    findings: Vec<FindingRef>,
    /// Why it failed.
    failure: Option<String>,
}

impl Row {
    /// Duration, ms.
    pub fn duration_ms(&self) -> Option<i64> {
        self.duration_ms
    }
}

/// Queries of an application.
#[utoipa::path(
    get, path = "/sql", operation_id = "listQueries", tag = "queries",
    responses(
        (status = 200, description = "All queries by id", body = Vec<Row>),
        (status = 404, description = "There is no such application or attempt", body = failure::Body),
    ),
)]
pub(super) async fn show_all(asked: Asked) -> Answer {
    asked.answer(|_, opened, _| Ok(json(&list(opened)))).await
}

/// A query with its plans as graphs.
///
/// The last plan comes first; of an adaptive one the plan that the query began with comes after it.
#[utoipa::path(
    get, path = "/sql/{execution}", operation_id = "getQuery", tag = "queries", params(QueryOf),
    responses(
        (status = 200, description = "The query", body = Query),
        (status = 404, description = "There is no such application or query", body = failure::Body),
    ),
)]
pub(super) async fn show(asked: Asked, At(of): At<QueryOf>) -> Answer {
    asked.answer(move |_, opened, _| Ok(json(&one(opened, of.execution)?))).await
}

/// All queries by id.
pub(super) fn list(opened: &Opened) -> Vec<Row> {
    opened.app().sql.iter().map(|sql| row(opened, sql)).collect()
}

fn row(opened: &Opened, sql: &SqlExecution) -> Row {
    let stages = stages_of(opened.app(), sql);
    let sum = |metric| stages.iter().map(|stage| stage.sum(metric)).fold(0, i64::saturating_add);
    Row {
        id: sql.id,
        description: one_line(&sql.description),
        submitted_ms: sql.started_ms,
        duration_ms: sql.duration_ms(),
        status: status(opened.app(), sql),
        jobs: sql.jobs.clone(),
        stages: stages.len(),
        task_ms: sum(Metric::RunMs),
        input_bytes: sum(Metric::InputBytes),
        shuffle_bytes: sum(Metric::ShuffleBytesWritten),
        spill_bytes: sum(Metric::DiskSpillBytes),
        findings: FindingRef::all(opened, |finding| is_about(finding, sql.id)),
        failure: failure(opened.app(), sql),
    }
}

fn is_about(finding: &Finding, id: i64) -> bool {
    finding.scope.sql == Some(id) || finding.scope.sqls.contains(&id)
}

fn stages_of<'a>(app: &'a Application, sql: &SqlExecution) -> Vec<&'a Stage> {
    app.stages.iter().filter(|stage| stage.sql == Some(sql.id) && !stage.tasks.is_empty()).collect()
}

/// A query that ended may have failed in one of its jobs: only Spark 3.4 and later say so.
fn failure(app: &Application, sql: &SqlExecution) -> Option<String> {
    let of_job = || sql.jobs.iter().find_map(|&job| app.job(job)?.error.as_deref());
    sql.error.as_deref().filter(|error| !error.is_empty()).or_else(of_job).map(|error| clean(error).into_owned())
}

fn status(app: &Application, sql: &SqlExecution) -> &'static str {
    match (failure(app, sql), sql.ended_ms) {
        (Some(_), _) => "failed",
        (None, Some(_)) => "completed",
        (None, None) => "running",
    }
}

/// A query.
#[derive(Serialize, ToSchema)]
pub(super) struct Query {
    #[serde(flatten)]
    row: Row,
    /// Call stack of the action that ran it.
    details: String,
    /// Stage attempts that ran tasks for it.
    stages_run: Vec<StageRef>,
    /// Its plans, the last one first.
    plans: Vec<PlanGraph>,
    /// Operators of the last plan that took the most time, at most eight.
    top: Vec<Top>,
    /// What adaptive execution changed, one sentence each.
    changes: Vec<String>,
}

/// A stage attempt.
#[derive(Serialize, ToSchema)]
struct StageRef {
    /// Id of the stage.
    stage: u32,
    /// Attempt of the stage.
    attempt: u32,
}

/// A plan to draw: operators, and where their rows go.
#[derive(Serialize, ToSchema)]
pub(super) struct PlanGraph {
    /// `Final plan`, `Initial plan`, `Plan`, or the heading of a pasted one.
    title: String,
    /// What it does, in a sentence.
    summary: String,
    /// Operators in the order of the data.
    nodes: Vec<Node>,
    /// Where rows go.
    edges: Vec<Edge>,
    /// What a reader must notice.
    notes: Vec<Note>,
    /// Spark's text of the plan; empty where there is none.
    text: String,
}

/// An operator of a plan.
#[derive(Serialize, ToSchema)]
#[schema(as = PlanNode)]
struct Node {
    /// Number of its step, from 1.
    id: usize,
    /// Spark's name.
    name: String,
    /// What it does, as people say it.
    human: String,
    /// What Spark's text says of it.
    detail: String,
    /// What is worth knowing about it, one sentence each.
    notes: Vec<String>,
    /// Kind.
    #[schema(value_type = OperatorKind)]
    kind: &'static str,
    /// Time over all tasks, ms.
    time_ms: Option<i64>,
    /// Whether the time is estimated from that of the stage.
    time_estimated: bool,
    /// Share of the time of all operators, 0 to 1.
    share: Option<f64>,
    /// Rows that came out.
    rows: Option<i64>,
    /// Bytes that came out, or were read.
    bytes: Option<i64>,
    /// Rows that came out for each row that went in.
    growth: Option<f64>,
    /// Files that a scan left out.
    pruned: Option<Pruned>,
    /// Spark's metrics; of a pasted plan none.
    metrics: Vec<MetricValue>,
    /// Id of the stage that it ran in.
    stage: Option<u32>,
    /// Number of the generated code that it is part of.
    codegen: Option<u32>,
    /// Numbers of the findings about it on the page of the application.
    findings: Vec<usize>,
}

/// Files of a scan.
#[derive(Serialize, ToSchema)]
#[schema(as = PrunedFiles)]
struct Pruned {
    /// Files that were read.
    files_read: i64,
    /// Files of the table.
    files: i64,
}

/// A metric in its own unit.
#[derive(Serialize, ToSchema)]
struct MetricValue {
    /// Spark's name.
    name: String,
    /// Value with its unit, for people.
    value: String,
}

/// Rows from one operator to another.
#[derive(Serialize, ToSchema)]
#[schema(as = PlanEdge)]
struct Edge {
    /// Operator that gives them.
    from: usize,
    /// Operator that takes them.
    to: usize,
    /// How many.
    rows: Option<i64>,
    /// Their bytes.
    bytes: Option<i64>,
}

/// Something that a reader must notice in a plan.
#[derive(Serialize, ToSchema)]
#[schema(as = PlanNote)]
struct Note {
    /// What it is about.
    #[schema(value_type = shapes::NoteKind)]
    kind: plan_reading::NoteKind,
    /// One or two sentences.
    text: String,
    /// The operator it is about.
    node: Option<usize>,
}

/// An operator that took much time.
#[derive(Serialize, ToSchema)]
#[schema(as = SlowOperator)]
struct Top {
    /// The operator.
    node: usize,
    /// What it does, as people say it.
    human: String,
    /// Time over all tasks, ms.
    time_ms: i64,
    /// Share of the time of all operators, 0 to 1.
    share: f64,
}

/// One query with its plans, the last first.
pub(super) fn one(opened: &Opened, id: i64) -> Result<Query, Failure> {
    let app = opened.app();
    let Some(sql) = app.sql(id) else {
        return Err(Failure::not_found(format!("the application has no SQL execution {id}")));
    };
    let pins = pins(opened, id);
    let last = graph(sql.plan(), Some(app), &pins, if sql.last_plan.is_some() { "Final plan" } else { "Plan" });
    let top = top(&last);
    let text = sql.plan_text.as_deref().map(|text| clean(text).into_owned()).unwrap_or_default();
    let mut plans = vec![PlanGraph { text, ..last }];
    if sql.last_plan.is_some() {
        plans.push(graph(&sql.first_plan, None, &[], "Initial plan"));
    }
    let change = |last| read_change(&sql.first_plan, last, Some(app)).into_iter().map(|c| one_line(&c.text));
    Ok(Query {
        row: row(opened, sql),
        details: clean(&sql.details).into_owned(),
        stages_run: stages_of(app, sql).iter().map(|s| StageRef { stage: s.id, attempt: s.attempt }).collect(),
        plans,
        top,
        changes: sql.last_plan.iter().flat_map(change).collect(),
    })
}

/// Chapter number and operator of each finding on a query.
fn pins(opened: &Opened, id: i64) -> Vec<(usize, String)> {
    let chapters = telling::chapters(opened.report(), true);
    let mut pins = Vec::new();
    for chapter in &chapters {
        let all = std::iter::once(chapter.root).chain(chapter.follows.iter().copied());
        for finding in all.filter(|finding| is_about(finding, id)) {
            pins.extend(finding.scope.node.clone().map(|node| (chapter.number, node)));
        }
    }
    pins
}

/// A plan as a graph; with an application what it measured, too.
pub(super) fn graph(plan: &Plan, app: Option<&Application>, pins: &[(usize, String)], title: &str) -> PlanGraph {
    let reading = read_plan(plan, app);
    let total: i64 = reading.steps.iter().filter_map(|step| step.time_ms).sum();
    let node = |step: &Step| node(plan, app, &reading, step, total, pins);
    let nodes = reading.steps.iter().map(node).collect();
    let edges = reading.steps.iter().flat_map(|step| {
        step.inputs.iter().filter_map(|input| {
            let from = reading.steps.iter().find(|s| s.number == *input)?;
            Some(Edge { from: *input, to: step.number, rows: from.rows, bytes: from.bytes })
        })
    });
    PlanGraph {
        title: title.to_owned(),
        summary: capital(&one_line(&reading.summary)),
        edges: edges.collect(),
        nodes,
        notes: reading.notes.iter().map(note).collect(),
        text: String::new(),
    }
}

fn note(note: &plan_reading::Note) -> Note {
    Note { kind: note.kind, text: capital(&one_line(&note.text)), node: note.step }
}

fn node(
    plan: &Plan,
    app: Option<&Application>,
    reading: &PlanReading,
    step: &Step,
    total_ms: i64,
    pins: &[(usize, String)],
) -> Node {
    let node = &plan.nodes[step.node];
    let rows_in: Option<i64> = step
        .inputs
        .iter()
        .map(|input| reading.steps.iter().find(|s| s.number == *input).and_then(|s| s.rows))
        .sum::<Option<i64>>()
        .filter(|rows| *rows > 0);
    let growth = step.rows.zip(rows_in).map(|(out, rows_in)| out as f64 / rows_in as f64);
    let metrics = node.metrics.iter().filter_map(|metric| metric_value(app?, metric)).collect();
    Node {
        id: step.number,
        name: one_line(&step.operator),
        human: one_line(&step.name),
        detail: clean(&node.detail).into_owned(),
        notes: step.details.iter().map(|text| one_line(text)).collect(),
        kind: kind(&node.op),
        time_ms: step.time_ms,
        time_estimated: step.time_estimated,
        share: step.time_ms.filter(|_| total_ms > 0).map(|ms| ms as f64 / total_ms as f64),
        rows: step.rows,
        bytes: step.bytes,
        growth,
        pruned: app.and_then(|app| plans::pruned(app, node)).map(|(files_read, files)| Pruned { files_read, files }),
        metrics,
        stage: reading.stages.iter().find(|s| s.steps.contains(&step.number)).and_then(|s| s.spark_stage),
        codegen: node.codegen,
        findings: pins.iter().filter(|(_, pin)| is_at(pin, step)).map(|(number, _)| *number).collect(),
    }
}

/// Whether a finding's operator is this one: named as people say it, or as Spark does with its keys
/// (`SortMergeJoin on customer_id`).
fn is_at(pin: &str, step: &Step) -> bool {
    let keys = pin.strip_prefix(step.operator.as_str()).map(|rest| rest.strip_prefix(" on ").unwrap_or(rest));
    pin == step.name || keys.is_some_and(|keys| keys.split(", ").all(|key| step.name.contains(key)))
}

/// A metric in its own unit; `None` where nothing updated it.
fn metric_value(app: &Application, metric: &PlanMetric) -> Option<MetricValue> {
    let value = app.accumulators.get(&metric.accumulator)?;
    let shown = |number: i64| match metric.kind {
        MetricKind::Sum => Count(number.unsigned_abs()).to_string(),
        MetricKind::Size => Bytes(number.unsigned_abs()).to_string(),
        MetricKind::Timing => Millis(number).to_string(),
        MetricKind::NsTiming => Millis(number / 1_000_000).to_string(),
        MetricKind::Average => format!("{:.1}", number as f64 / 10.0 / f64::from(value.updates.max(1))),
        MetricKind::Max | MetricKind::Min => Count(number.unsigned_abs()).to_string(),
    };
    let largest = matches!(metric.kind, MetricKind::Size | MetricKind::Timing | MetricKind::NsTiming);
    let value = match metric.kind {
        MetricKind::Max => shown(value.max),
        _ if largest && value.updates > 1 => format!("{}, at most {} a task", shown(value.sum), shown(value.max)),
        _ => shown(value.sum),
    };
    Some(MetricValue { name: one_line(&metric.name), value })
}

fn kind(op: &Operator) -> &'static str {
    match op {
        Operator::Scan(_) => "scan",
        Operator::Exchange(_) => "exchange",
        Operator::BroadcastExchange { .. } => "broadcast",
        Operator::Join(_) => "join",
        Operator::Filter { .. } => "filter",
        Operator::Project { .. } => "project",
        Operator::Aggregate(_) => "aggregate",
        Operator::Sort { .. } | Operator::TopK { .. } => "sort",
        Operator::Window { .. } => "window",
        Operator::Generate { .. } | Operator::Expand => "generate",
        Operator::Python { .. } | Operator::Objects => "python",
        Operator::Write { .. } => "write",
        Operator::Union => "union",
        Operator::Limit { .. } => "limit",
        Operator::CacheScan | Operator::CacheBuild => "cache",
        _ => "other",
    }
}

/// The operators that took the most time.
fn top(graph: &PlanGraph) -> Vec<Top> {
    let timed = graph.nodes.iter().filter_map(|node| {
        let (time_ms, share) = (node.time_ms.filter(|ms| *ms > 0)?, node.share?);
        Some(Top { node: node.id, human: node.human.clone(), time_ms, share })
    });
    let mut top: Vec<Top> = timed.collect();
    top.sort_by_key(|top| std::cmp::Reverse(top.time_ms));
    top.truncate(TOP);
    top
}
