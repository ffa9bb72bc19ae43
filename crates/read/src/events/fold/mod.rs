//! From events, in the order of the log, to the application.
//!
//! One thread folds. Each file holds what belongs together and knows nothing of the others; this
//! one hands the events round. Events may come in any order and more than once: a task's end
//! before its start, after its stage or its job, a job started twice, an executor never added.

mod executors;
mod facts;
mod ids;
mod sql;
mod storage;
mod streams;
mod work;

use super::parse::{Event, Parsed};
use super::scan::MAX_TIME_MS;
use super::task::{TaskEnd, TaskStart};
use super::texts::Interner;
use super::wire;
use executors::Executors;
use facts::{DAY_MS, Facts};
use model::{Application, Environment, TaskStatus, Text};
use sql::Sql;
use std::collections::BTreeMap;
use storage::Storage;
use streams::Streams;
use work::Work;

/// The application so far.
#[derive(Debug)]
pub(crate) struct Fold {
    app: Application,
    texts: Interner,
    clock: Clock,
    /// Times of executor events, which another machine's clock may have given.
    executor_clock: Clock,
    /// The latest other time when executor events last went ahead by a day.
    before_jump_ms: Option<i64>,
    executors: Executors,
    work: Work,
    sql: Sql,
    storage: Storage,
    streams: Streams,
    facts: Facts,
    /// Fingerprint of the last line.
    last_line: Option<u64>,
    budget: Budget,
}

/// Where a batch stands in the log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct At {
    /// Position of the part.
    pub part: usize,
    /// Line in the part of the batch's first, from 0.
    pub first_line: u64,
}

/// How much memory the application may take, and what was given up for it.
#[derive(Debug)]
struct Budget {
    max_bytes: u64,
    keep: Keep,
}

/// What is still kept of what could be done without.
#[derive(Clone, Copy, Debug)]
struct Keep {
    /// Plan texts and call stacks.
    texts: bool,
    /// Plans of further SQL executions.
    plans: bool,
}

/// The earliest and the latest time of all events.
#[derive(Debug, Default)]
struct Clock {
    first_ms: Option<i64>,
    last_ms: Option<i64>,
}

impl Clock {
    /// Takes note of a time and gives it back; what is no time is `None`.
    fn see(&mut self, ms: impl Into<Option<i64>>) -> Option<i64> {
        let ms = ms.into().filter(|ms| (1..=MAX_TIME_MS as i64).contains(ms))?;
        self.first_ms = Some(self.first_ms.map_or(ms, |first| first.min(ms)));
        self.last_ms = Some(self.last_ms.map_or(ms, |last| last.max(ms)));
        Some(ms)
    }

    /// The earliest and the latest of both.
    fn and(&self, other: &Self) -> Self {
        let first_ms = self.first_ms.into_iter().chain(other.first_ms).min();
        Self { first_ms, last_ms: self.last_ms.into_iter().chain(other.last_ms).max() }
    }
}

/// A size in bytes; negative ones are 0, and none is so large that sums of many overflow.
fn size(bytes: i64) -> u64 {
    bytes.clamp(0, 1 << 53) as u64
}

impl Fold {
    pub fn new(max_bytes: u64) -> Self {
        Self {
            app: Application::default(),
            texts: Interner::default(),
            clock: Clock::default(),
            executor_clock: Clock::default(),
            before_jump_ms: None,
            executors: Executors::default(),
            work: Work::default(),
            sql: Sql::default(),
            storage: Storage::default(),
            streams: Streams::default(),
            facts: Facts::default(),
            last_line: None,
            budget: Budget { max_bytes, keep: Keep { texts: true, plans: true } },
        }
    }

    /// Takes the next batch of the log.
    pub fn batch(&mut self, at: At, mut parsed: Parsed) {
        if self.first_line_repeats(&parsed) {
            parsed.take_back_first();
        }
        self.facts.batch(at, &parsed);
        if parsed.lines > 0 {
            self.last_line = Some(parsed.last);
        }
        let mut executors = vec![None; parsed.texts.len()];
        for event in std::mem::take(&mut parsed.events) {
            match event {
                Event::TaskStart(start) => self.task_start(start, &parsed, &mut executors),
                Event::TaskEnd(end) => self.task_end(end, &parsed, &mut executors),
                rare => self.rare(rare),
            }
        }
        self.task_peaks(&parsed);
        self.keep_budget();
    }

    /// Whether the batch begins with the line that the one before ended with.
    fn first_line_repeats(&self, parsed: &Parsed) -> bool {
        parsed.first.as_ref().zip(self.last_line).is_some_and(|(first, last)| first.fingerprint == last)
    }

    /// The highest executor metrics that a batch's tasks reported: of the executor and of the stage.
    fn task_peaks(&mut self, parsed: &Parsed) {
        for ((executor, stage, attempt), values) in &parsed.peaks.executors {
            let (names, texts) = (&parsed.peaks.names, &mut self.texts);
            let at = self.executors.task_peaks(&parsed.texts[*executor as usize], names, values, texts);
            let named = names.iter().map(|n| &**n).zip(values.iter().copied());
            self.work.peaks((*stage, *attempt), at, named, texts);
        }
    }

    fn task_start(&mut self, start: TaskStart, parsed: &Parsed, executors: &mut [Option<u32>]) {
        self.clock.see(start.info.launch_ms);
        let executor = self.executor(start.info.executor, start.info.host, parsed, executors);
        self.work.task_start(&start, executor);
    }

    fn task_end(&mut self, mut end: Box<TaskEnd>, parsed: &Parsed, executors: &mut [Option<u32>]) {
        end.row.executor = self.executor(end.executor, end.host, parsed, executors);
        self.clock.see(end.row.get(model::Metric::LaunchMs));
        self.clock.see(end.row.get(model::Metric::FinishMs));
        let succeeded = end.row.status == TaskStatus::Success;
        let (updates, user_updates, task) = (end.updates.clone(), end.user_updates.clone(), end.row.id);
        let Some(stage) = self.work.task_end(end, &mut self.texts) else { return };
        self.work.user_updates(stage, task, &parsed.user_updates[user_updates], &mut self.texts);
        if succeeded {
            self.sql.task_updates(stage, &parsed.updates[updates]);
        }
    }

    /// Position of the executor that a batch's text names.
    fn executor(&mut self, id: u32, host: u32, parsed: &Parsed, known: &mut [Option<u32>]) -> u32 {
        let id = id as usize;
        *known[id].get_or_insert_with(|| {
            self.executors.of_task(&parsed.texts[id], &parsed.texts[host as usize], &mut self.texts)
        })
    }

    fn rare(&mut self, event: Event) {
        let (texts, clock, executor_clock) = (&mut self.texts, &mut self.clock, &mut self.executor_clock);
        let executors_until = executor_clock.last_ms;
        match event {
            Event::LogStart(start) => self.app.spark_version = texts.label(&start.spark_version),
            Event::DatabricksStart(start) => {
                clock.see(start.time_ms);
                self.app.spark_version = texts.label(&start.spark_version);
            }
            Event::ApplicationStart(start) => self.application_start(&start),
            Event::ApplicationEnd(end) => {
                self.app.ended_ms = clock.see(end.time_ms);
                self.app.exit_code = end.exit_code;
            }
            Event::Environment(update) => environment(&mut self.app.environment, *update, texts),
            Event::BlockManagerAdded(added) => self.executors.block_manager(&added, texts, executor_clock),
            Event::ExecutorAdded(added) => self.executors.added(&added, texts, executor_clock),
            Event::ExecutorRemoved(removed) => self.executors.removed(&removed, texts, executor_clock, clock.last_ms),
            Event::Excluded(exclusion) => self.executors.excluded(&exclusion, clock),
            Event::Unexcluded(exclusion) => self.executors.unexcluded(&exclusion, clock),
            Event::ResourceProfile(profile) => self.executors.profile(profile, texts),
            Event::ExecutorMetrics(metrics) => {
                let executor = self.executors.peaks(&metrics, texts);
                if let Some(stage) = metrics.stage {
                    let named = metrics.metrics.iter().map(|(name, value)| (&**name, *value));
                    self.work.peaks((stage, metrics.stage_attempt), executor, named, texts);
                }
            }
            Event::Process(process) => self.executors.process(&process, texts, clock),
            Event::JobStart(job) => self.work.job_start(*job, texts, clock),
            Event::JobEnd(job) => self.work.job_end(*job, texts, clock),
            Event::StageSubmitted(stage) => {
                self.storage.stage(&stage.info, texts);
                self.work.stage_submitted(*stage, texts, clock);
            }
            Event::StageCompleted(stage) => {
                self.storage.stage(&stage.info, texts);
                self.work.stage_completed(*stage, texts, clock);
            }
            Event::BlockUpdated(block) => self.storage.block(&block, texts),
            Event::Unpersist(rdd) => self.storage.unpersist(rdd.id, clock.last_ms),
            Event::SqlStart(start) => self.sql.start(*start, self.budget.keep, texts, clock),
            Event::SqlUpdate(update) => self.sql.update(*update, self.budget.keep),
            Event::SqlMetrics(metrics) => self.sql.metrics(&metrics),
            Event::DriverUpdates(updates) => self.sql.driver_updates(&updates),
            Event::SqlEnd(end) => self.sql.end(&end, texts, clock),
            Event::QueryStarted(query) => self.streams.started(&query, texts, clock),
            Event::QueryProgress(progress) => self.streams.progress(*progress, texts, clock),
            Event::QueryIdle(query) => self.streams.idle(&query, texts, clock),
            Event::QueryTerminated(query) => self.streams.terminated(&query, texts, clock.last_ms),
            Event::TaskStart(_) | Event::TaskEnd(_) | Event::Nothing => {}
        }
        if self.executor_clock.last_ms > executors_until.map(|ms| ms.saturating_add(DAY_MS)) {
            self.before_jump_ms = self.clock.last_ms;
        }
    }

    fn application_start(&mut self, start: &wire::ApplicationStart) {
        let texts = &mut self.texts;
        self.app.name = texts.label(&start.name);
        self.app.id = texts.label(start.id.as_deref().unwrap_or_default());
        self.app.user = texts.label(start.user.as_deref().unwrap_or_default());
        self.app.attempt_id = texts.option(start.attempt_id.as_deref());
        self.app.started_ms = self.clock.see(start.time_ms);
        self.facts.log.starts_at_beginning = true;
    }

    /// Gives up what can be done without once the application outgrows its memory: first texts
    /// that are only for display, then plans to come. Tasks and failures always stay.
    fn keep_budget(&mut self) {
        if !self.budget.keep.plans || self.heap_bytes() <= self.budget.max_bytes {
            return;
        }
        let keep = &mut self.budget.keep;
        if keep.texts {
            keep.texts = false;
            self.sql.forget_texts();
            self.work.forget_texts();
            self.texts = Interner::default();
        } else {
            keep.plans = false;
        }
    }

    /// Bytes on the heap, roughly.
    fn heap_bytes(&self) -> u64 {
        (self.texts.bytes() + self.work.heap_bytes() + self.sql.heap_bytes() + self.storage.heap_bytes()) as u64
    }
}

fn environment(into: &mut Environment, update: wire::EnvironmentUpdate, texts: &mut Interner) {
    let mut merge = |map: &mut BTreeMap<Text, Text>, entries: wire::Map| {
        map.extend(entries.0.iter().map(|(key, value)| (texts.text(key), texts.text(value))));
    };
    merge(&mut into.spark, update.spark);
    merge(&mut into.system, update.system);
    merge(&mut into.hadoop, update.hadoop);
    merge(&mut into.metrics, update.metrics);
    merge(&mut into.jvm, update.jvm);
    let class_path = update.class_path.0;
    if !class_path.is_empty() {
        into.class_path = class_path.iter().map(|(path, source)| (texts.text(path), texts.text(source))).collect();
    }
}
