//! What ran when: busy slots, lanes with their tasks, gaps, and what happened to executors.

use super::asked::Asked;
use super::columns::{Columns, KIND};
use super::failure::{self, Failure};
use super::openapi::{shapes, words};
use super::{Answer, json};
use crate::Opened;
use crate::params::Params;
use axum::response::Response;
use diagnose::context::Context;
use diagnose::gaps;
use diagnose::telling::one_line;
use model::{Application, Metric, Stage, StageStatus, TaskStatus};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// Pixels of a drawing unless told otherwise, and at most.
const PIXELS: i64 = 1_600;
const MOST_PIXELS: i64 = 8_192;
/// Up to so many tasks each one is a bar of its own; of more, those shorter than a pixel merge.
const MOST_BARS: usize = 50_000;
/// Share of the wall time from which a stage's slowest task is worth a mark.
const MARKED: i64 = 50;

/// What a drawing shows of an application.
#[derive(Clone, Copy, Debug)]
struct Window {
    lanes_by: By,
    /// Start of the application, epoch ms.
    start_ms: i64,
    end_ms: i64,
    from_ms: i64,
    to_ms: i64,
    pixels: i64,
}

/// What a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "lowercase")]
enum By {
    Executor,
    Stage,
    Host,
}

/// What to draw.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)] // Says what `Params` are asked for.
struct Drawn {
    /// What a lane is.
    #[param(inline, required = false, default = "executor")]
    by: By,
    /// Start of the window, epoch ms. Default the start of the application; earlier counts as that.
    #[param(required = false)]
    from: i64,
    /// End of the window, epoch ms. Default the end of the application; later counts as that.
    #[param(required = false)]
    to: i64,
    /// Width of the drawing: nothing finer than a pixel is told.
    #[param(required = false, default = 1_600, minimum = 1, maximum = 8_192)]
    pixels: i64,
}

/// What ran when, but for the tasks.
///
/// Tasks that ran at once, lanes, and the spans of stages, jobs and gaps between them.
#[utoipa::path(
    get, path = "/timeline", operation_id = "getTimeline", tag = "applications", params(Drawn),
    responses(
        (status = 200, description = "The timeline", body = Timeline),
        (status = 400, description = "A value is none of its kind", body = failure::Body),
        (status = 404, description = "There is no such application or attempt", body = failure::Body),
    ),
)]
pub(super) async fn show(asked: Asked) -> Answer {
    asked.answer(|_, opened, params| Ok(json(&of(opened, &Window::of(opened.app(), params)?)))).await
}

/// Tasks of the timeline as binary columns.
///
/// Laid out as the columns of `getTaskColumns`. The header has, besides `rows` and `columns`,
/// `tasks` (in the window), `start_ms` (start of the application, epoch ms) and `stages`, pairs of
/// stage id and attempt by number. The columns: `lane` (number in the timeline by the same `by`),
/// `row` (in the lane), `start` (ms after `start_ms`), `length` (ms), `gc` (share of the length in
/// 1/255), `state` (0 running, 1 success, 2 failed, 3 killed, 4 several short tasks in one bar),
/// `stage` (number), `task` (id; of several, how many) and `slowest` (1 when it is the slowest of its
/// stage by far). Of more than 50 000 tasks those shorter than a pixel are drawn together.
#[utoipa::path(
    get, path = "/timeline/tasks", operation_id = "getTimelineTasks", tag = "applications", params(Drawn),
    responses(
        (status = 200, description = "The columns", body = inline(shapes::Bytes), content_type = KIND),
        (status = 400, description = "A value is none of its kind", body = failure::Body),
        (status = 404, description = "There is no such application or attempt", body = failure::Body),
    ),
)]
pub(super) async fn show_tasks(asked: Asked) -> Answer {
    asked.answer(|_, opened, params| tasks(opened, &Window::of(opened.app(), params)?)).await
}

impl Window {
    fn of(app: &Application, params: &Params) -> Result<Self, Failure> {
        let words = [("executor", By::Executor), ("stage", By::Stage), ("host", By::Host)];
        let lanes_by = params.word("by", &words, "executor, stage or host")?;
        let time = |name| params.parsed::<i64>(name, "a time in epoch ms");
        let pixels = params.parsed::<i64>("pixels", "a number of pixels")?;
        let (start_ms, end_ms) = span(app);
        let from_ms = time("from")?.unwrap_or(start_ms).clamp(start_ms, end_ms);
        let to_ms = time("to")?.unwrap_or(end_ms).clamp(from_ms, end_ms);
        let pixels = pixels.unwrap_or(PIXELS).clamp(1, MOST_PIXELS);
        Ok(Self { lanes_by, start_ms, end_ms, from_ms, to_ms, pixels })
    }

    /// Time that one pixel stands for, ms.
    fn pixel_ms(&self) -> i64 {
        ((self.to_ms - self.from_ms) / self.pixels).max(1)
    }
}

/// First and last time of anything in the log, epoch ms.
fn span(app: &Application) -> (i64, i64) {
    let spans = || app.stages.iter().filter_map(Stage::span_ms);
    let start = spans().map(|s| s.0).chain(app.start_ms()).min().unwrap_or_default();
    let end = spans().map(|s| s.1).chain(app.end_ms()).max().unwrap_or_default();
    (start, end.max(start))
}

/// What ran when, but for the tasks.
#[derive(Serialize, ToSchema)]
pub(super) struct Timeline {
    /// Start of the application, epoch ms.
    start_ms: i64,
    /// End of the application, or the latest time in the log, epoch ms.
    end_ms: i64,
    /// Tasks that could run at once, the average over time.
    slots: f64,
    /// Tasks that ran at once.
    busy: Busy,
    /// Lanes in order.
    lanes: Vec<Lane>,
    /// Stage attempts.
    stages: Vec<StageSpan>,
    /// Jobs.
    jobs: Vec<JobSpan>,
    /// Times in which no task ran.
    gaps: Vec<GapSpan>,
    /// What happened to executors, by time.
    marks: Vec<Mark>,
    /// Task attempts of the application.
    tasks: usize,
}

/// Tasks that ran at once: from each time on, so many on average.
#[derive(Serialize, ToSchema)]
struct Busy {
    /// Times, epoch ms.
    t: Vec<i64>,
    /// Tasks from each of these times on.
    cores: Vec<f64>,
}

/// A lane.
#[derive(Serialize, ToSchema)]
struct Lane {
    /// Id of the executor or stage (`ID.ATTEMPT` after the first attempt), or name of the host.
    name: String,
    /// Host of an executor.
    host: Option<String>,
    /// When the executor came, epoch ms.
    added_ms: Option<i64>,
    /// When the executor went, epoch ms.
    removed_ms: Option<i64>,
    /// Why the executor went.
    reason: Option<String>,
    /// Rows in which none of its tasks covers another.
    rows: u32,
    /// Task attempts in it.
    tasks: usize,
}

/// A stage attempt in time.
#[derive(Serialize, ToSchema)]
struct StageSpan {
    /// Id of the stage.
    stage: u32,
    /// Attempt of the stage.
    attempt: u32,
    /// Name.
    name: String,
    /// Start of its first task, else when it was submitted, epoch ms.
    start_ms: i64,
    /// End of its last task, epoch ms.
    end_ms: i64,
    /// How it stands.
    #[schema(value_type = words::StageStatus)]
    status: &'static str,
    /// Id of the SQL execution that it ran for.
    sql: Option<i64>,
}

/// A job in time.
#[derive(Serialize, ToSchema)]
struct JobSpan {
    /// Id of the job.
    job: u32,
    /// Description, or the call site.
    name: String,
    /// Start, epoch ms.
    start_ms: i64,
    /// End, or the end of the log, epoch ms.
    end_ms: i64,
    /// How it stands.
    #[schema(value_type = words::StageStatus)]
    status: &'static str,
    /// Id of the SQL execution that it ran for.
    sql: Option<i64>,
}

/// A time in which no task ran.
#[derive(Serialize, ToSchema)]
struct GapSpan {
    /// Start, epoch ms.
    from_ms: i64,
    /// End, epoch ms.
    to_ms: i64,
    /// What was done instead, as far as the log tells.
    text: String,
}

/// Something that happened to an executor.
#[derive(Serialize, ToSchema)]
#[schema(as = ExecutorMark)]
struct Mark {
    /// When, epoch ms.
    t: i64,
    /// What.
    #[schema(value_type = words::MarkKind)]
    kind: &'static str,
    /// The same for people, with the reason.
    text: String,
}

/// Everything but the tasks.
fn of(opened: &Opened, window: &Window) -> Timeline {
    let app = opened.app();
    let laid = Laid::out(app, window);
    Timeline {
        start_ms: window.start_ms,
        end_ms: window.end_ms,
        slots: opened.report().summary.slots,
        busy: busy(&laid.bars, window),
        lanes: laid.lanes,
        stages: stage_spans(app, window.end_ms),
        jobs: job_spans(app, window.end_ms),
        gaps: gap_spans(opened),
        marks: marks(app, window.end_ms),
        tasks: laid.bars.len(),
    }
}

/// A task in its place.
#[derive(Clone, Copy)]
struct Bar {
    lane: u32,
    row: u32,
    from: i64,
    to: i64,
    gc: u8,
    state: u8,
    stage: u32,
    task: i64,
    slowest: bool,
}

/// A bar that stands for several tasks.
const MERGED: u8 = 4;

/// Tasks put into lanes, and in each lane into rows in which none covers another.
struct Laid {
    lanes: Vec<Lane>,
    bars: Vec<Bar>,
}

impl Laid {
    fn out(app: &Application, window: &Window) -> Self {
        let mut by_lane: BTreeMap<(u64, String), Vec<Bar>> = BTreeMap::new();
        for (position, stage) in app.stages.iter().enumerate() {
            let mut by_executor: BTreeMap<usize, Vec<Bar>> = BTreeMap::new();
            for (executor, bar) in bars_of(stage, position as u32, window.end_ms) {
                by_executor.entry(executor).or_default().push(bar);
            }
            for (executor, mut bars) in by_executor {
                by_lane.entry(lane_key(app, stage, executor, window.lanes_by)).or_default().append(&mut bars);
            }
        }
        let mut laid = Self { lanes: Vec::new(), bars: Vec::new() };
        for ((_, name), mut bars) in by_lane {
            bars.sort_unstable_by_key(|bar| (bar.from, bar.to, bar.task));
            let rows = pack(&mut bars, laid.lanes.len() as u32);
            laid.lanes.push(lane(app, name, window.lanes_by, rows, bars.len()));
            laid.bars.append(&mut bars);
        }
        laid
    }
}

/// Executor and bar of each task that began.
fn bars_of(stage: &Stage, position: u32, end_ms: i64) -> Vec<(usize, Bar)> {
    let tasks = &stage.tasks;
    let launched = tasks.values(Metric::LaunchMs);
    let finished = tasks.values(Metric::FinishMs);
    let (gc, durations) = (tasks.values(Metric::GcMs), tasks.values(Metric::DurationMs));
    let open_end = stage.completed_ms.unwrap_or(end_ms);
    let slowest = durations.iter().enumerate().max_by_key(|(_, ms)| **ms).map(|(row, _)| row);
    let stands_out = slowest.is_some_and(|row| {
        let usual = stage.quantiles(Metric::DurationMs).peers();
        tasks.len() > 1 && 2 * durations[row] >= 3 * usual
    });
    let bar = |row: usize| {
        let from = launched[row];
        let to = if finished[row] == 0 { open_end } else { finished[row] }.max(from);
        let share = (gc[row].max(0) * 255 / durations[row].max(1)).min(255);
        let bar = Bar {
            lane: 0,
            row: 0,
            from,
            to,
            gc: u8::try_from(share).unwrap_or(u8::MAX),
            state: state(tasks.status(row)),
            stage: position,
            task: tasks.id(row),
            slowest: stands_out && slowest == Some(row),
        };
        (tasks.executor(row), bar)
    };
    (0..tasks.len()).filter(|&row| launched[row] > 0).map(bar).collect()
}

pub(super) fn state(status: TaskStatus) -> u8 {
    match status {
        TaskStatus::Running => 0,
        TaskStatus::Success => 1,
        TaskStatus::Failed => 2,
        TaskStatus::Killed => 3,
    }
}

/// Order and name of a lane; numbers by number.
fn lane_key(app: &Application, stage: &Stage, executor: usize, by: By) -> (u64, String) {
    let executor = app.executors.get(executor);
    match (by, stage.attempt) {
        (By::Executor, _) => {
            let id = executor.map_or("", |e| &e.id);
            (id.parse().unwrap_or(u64::MAX), id.to_owned())
        }
        (By::Host, _) => (0, executor.map_or("", |e| &e.host).to_owned()),
        (By::Stage, 0) => (u64::from(stage.id), stage.id.to_string()),
        (By::Stage, attempt) => (u64::from(stage.id), format!("{}.{attempt}", stage.id)),
    }
}

/// Puts bars in order of time into the first free row; gives the number of rows.
fn pack(bars: &mut [Bar], lane: u32) -> u32 {
    let mut free_from: Vec<i64> = Vec::new();
    for bar in bars {
        let row = free_from.iter().position(|free| *free <= bar.from).unwrap_or(free_from.len());
        if row == free_from.len() {
            free_from.push(bar.to);
        }
        free_from[row] = bar.to;
        (bar.lane, bar.row) = (lane, row as u32);
    }
    free_from.len() as u32
}

fn lane(app: &Application, name: String, by: By, rows: u32, tasks: usize) -> Lane {
    let executor = app.executors.iter().find(|e| by == By::Executor && *e.id == *name);
    Lane {
        host: executor.map(|e| one_line(&e.host)).filter(|host| !host.is_empty()),
        added_ms: executor.and_then(|e| e.added_ms),
        removed_ms: executor.and_then(|e| e.removed_ms),
        reason: executor.and_then(|e| e.removed_reason.as_deref()).map(one_line),
        name: one_line(&name),
        rows,
        tasks,
    }
}

/// Mean number of running tasks in each pixel of the window; equal neighbours are one step.
fn busy(bars: &[Bar], window: &Window) -> Busy {
    let width = (window.to_ms - window.from_ms).max(1);
    let bins = window.pixels.min(width);
    let edge = |bin: i64| window.from_ms + bin * width / bins;
    // Change of the running time at each bin: whole bins by a difference, parts at both ends.
    let mut whole = vec![0i64; bins as usize + 1];
    let mut part = vec![0i64; bins as usize + 1];
    for bar in bars {
        let (from, to) = (bar.from.max(window.from_ms), bar.to.min(window.to_ms));
        if to <= from {
            continue;
        }
        let (first, last) = ((from - window.from_ms) * bins / width, (to - 1 - window.from_ms) * bins / width);
        if first == last {
            part[first as usize] += to - from;
            continue;
        }
        part[first as usize] += edge(first + 1) - from;
        part[last as usize] += to - edge(last);
        whole[first as usize + 1] += 1;
        whole[last as usize] -= 1;
    }
    let mut busy = Busy { t: Vec::new(), cores: Vec::new() };
    let mut running = 0;
    for bin in 0..bins {
        running += whole[bin as usize];
        let length = (edge(bin + 1) - edge(bin)).max(1);
        let cores = running as f64 + part[bin as usize] as f64 / length as f64;
        let cores = (cores * 100.0).round() / 100.0;
        if busy.cores.last() != Some(&cores) {
            busy.t.push(edge(bin));
            busy.cores.push(cores);
        }
    }
    busy
}

/// The tasks of the window as columns.
fn tasks(opened: &Opened, window: &Window) -> Result<Response, Failure> {
    let laid = Laid::out(opened.app(), window);
    let inside = |bar: &Bar| bar.to >= window.from_ms && bar.from <= window.to_ms;
    let mut bars: Vec<Bar> = laid.bars.into_iter().filter(inside).collect();
    let long = (window.end_ms - window.start_ms) / MARKED;
    bars.iter_mut().for_each(|bar| bar.slowest &= bar.to - bar.from >= long);
    let total = bars.len();
    if total > MOST_BARS {
        bars = merged(&bars, window.pixel_ms());
    }
    let mut columns = Columns::new(bars.len());
    columns.whole("lane", bars.iter().map(|b| i64::from(b.lane)));
    columns.whole("row", bars.iter().map(|b| i64::from(b.row)));
    columns.whole("start", bars.iter().map(|b| b.from - window.start_ms));
    columns.whole("length", bars.iter().map(|b| b.to - b.from));
    columns.whole("gc", bars.iter().map(|b| b.gc.into()));
    columns.whole("state", bars.iter().map(|b| b.state.into()));
    columns.whole("stage", bars.iter().map(|b| i64::from(b.stage)));
    columns.whole("task", bars.iter().map(|b| b.task));
    columns.whole("slowest", bars.iter().map(|b| b.slowest.into()));
    let keys = opened.app().stages.iter().map(|stage| serde_json::json!([stage.id, stage.attempt]));
    let more = [
        ("tasks".to_owned(), total.into()),
        ("start_ms".to_owned(), window.start_ms.into()),
        ("stages".to_owned(), keys.collect()),
    ];
    Ok(columns.answer(more.into_iter().collect()))
}

/// Neighbours in a row that are shorter than a pixel, and less than one apart, become one bar; its
/// `task` is the number of tasks in it.
fn merged(bars: &[Bar], pixel_ms: i64) -> Vec<Bar> {
    let mut rows: BTreeMap<(u32, u32), Vec<Bar>> = BTreeMap::new();
    for bar in bars {
        let row = rows.entry((bar.lane, bar.row)).or_default();
        let short = |bar: &Bar| bar.to - bar.from < pixel_ms && !bar.slowest && bar.state == 1;
        match row.last_mut() {
            Some(last) if short(bar) && bar.from - last.to < pixel_ms && (last.state == MERGED || short(last)) => {
                let count = if last.state == MERGED { last.task } else { 1 };
                (last.state, last.task, last.to) = (MERGED, count + 1, bar.to.max(last.to));
                last.gc = last.gc.max(bar.gc);
            }
            _ => row.push(*bar),
        }
    }
    rows.into_values().flatten().collect()
}

pub(super) fn status(status: StageStatus) -> &'static str {
    match status {
        StageStatus::Pending => "pending",
        StageStatus::Active => "active",
        StageStatus::Complete => "complete",
        StageStatus::Failed => "failed",
        StageStatus::Skipped => "skipped",
    }
}

fn stage_spans(app: &Application, end_ms: i64) -> Vec<StageSpan> {
    let span = |stage: &Stage| {
        let ran = stage.span_ms();
        let start_ms = ran.map(|span| span.0).or(stage.submitted_ms)?;
        let end = ran.map(|span| span.1).or(stage.completed_ms).unwrap_or(end_ms);
        Some(StageSpan {
            stage: stage.id,
            attempt: stage.attempt,
            name: one_line(&stage.name),
            start_ms,
            end_ms: end.max(start_ms),
            status: status(stage.status),
            sql: stage.sql,
        })
    };
    // By position: the tasks name a stage by it.
    app.stages.iter().filter_map(span).collect()
}

fn job_spans(app: &Application, end_ms: i64) -> Vec<JobSpan> {
    let span = |job: &model::Job| {
        let start_ms = job.submitted_ms?;
        Some(JobSpan {
            job: job.id,
            name: one_line(job.description.as_deref().unwrap_or(&job.name)),
            start_ms,
            end_ms: job.completed_ms.unwrap_or(end_ms).max(start_ms),
            status: status(job.status),
            sql: job.sql,
        })
    };
    app.jobs.iter().filter_map(span).collect()
}

fn gap_spans(opened: &Opened) -> Vec<GapSpan> {
    let cx = Context::new(opened.app(), opened.config());
    let told = gaps::told(&cx).into_iter();
    told.map(|(gap, text)| GapSpan { from_ms: gap.from_ms, to_ms: gap.to_ms, text: one_line(&text) }).collect()
}

/// What happened to executors.
fn marks(app: &Application, end_ms: i64) -> Vec<Mark> {
    let mut marks = Vec::new();
    for executor in app.executors.iter().filter(|e| !e.is_driver()) {
        let id = one_line(&executor.id);
        if let Some(t) = executor.added_ms {
            marks.push(Mark { t, kind: "executor_added", text: format!("executor {id} added") });
        }
        // One that leaves in the last second left with the application.
        if let Some(t) = executor.removed_ms.filter(|t| *t < end_ms - 1_000) {
            let reason = executor.removed_reason.as_deref().map_or("no reason in the log".to_owned(), one_line);
            marks.push(Mark { t, kind: "executor_removed", text: format!("executor {id} removed: {reason}") });
        }
        for exclusion in &executor.exclusions {
            let text = format!("executor {id} excluded after {} task failures", exclusion.task_failures);
            marks.push(Mark { t: exclusion.from_ms, kind: "executor_excluded", text });
        }
    }
    marks.sort_by_key(|mark| mark.t);
    marks
}
