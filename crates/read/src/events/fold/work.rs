//! Jobs, stages and tasks.

use super::super::task::{TaskEnd, TaskStart, UserUpdate};
use super::super::texts::Interner;
use super::super::wire::{self, JobEnd, JobStart, Properties, RddInfo, StageEvent, StageInfo};
use super::executors::raise;
use super::ids::IdSet;
use super::{Clock, size, storage};
use foldhash::HashMap;
use model::{
    Accumulable, EndReason, Job, Label, Locality, Metric, Rdd, Stage, StageStatus, TaskAccumulable, TaskRow,
    TaskStatus, Tasks, Text,
};
use std::collections::{BTreeMap, HashSet};

/// Failures of one stage attempt that are kept with their whole stack; of the others class and
/// message stay. A stage that fails thousands of times fails the same way.
const MAX_STACKS_PER_STAGE: u32 = 20;

/// Bytes of the message of a failure whose stack is not kept.
const MAX_MESSAGE_BYTES: usize = 2_000;

/// Bytes that a task takes in the columns until its stage is complete and they can be counted.
const TASK_BYTES: usize = 130;

#[derive(Debug, Default)]
pub(super) struct Work {
    jobs: BTreeMap<u32, Job>,
    /// Ends of jobs that have not started (yet).
    early_ends: BTreeMap<u32, JobEnd>,
    stages: Vec<StageSoFar>,
    positions: HashMap<(u32, u32), u32>,
    /// The last job that lists a stage.
    job_of_stage: HashMap<u32, u32>,
    /// The stage of the last task event.
    last_stage: Option<((u32, u32), u32)>,
    started: IdSet,
    ended: IdSet,
    /// Tasks that have started and not ended.
    running: HashMap<i64, Running>,
    pub counts: TaskCounts,
    /// Bytes of all tasks, of what they added to accumulators and of their executors' peaks.
    task_bytes: usize,
    lean: bool,
}

/// What task events add up to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TaskCounts {
    pub ends: u64,
    pub ends_not_successful: u64,
    /// Ends that said again what was known.
    pub repeated_ends: u64,
    /// Finish before launch.
    pub backwards: u64,
}

/// Tasks that the log says nothing, or only half, about.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lost {
    /// Started and never ended although their stage completed, and no other attempt did their work.
    pub without_end: u64,
    pub without_start: u64,
    pub jobs_without_start: u64,
    /// Tasks that completed stages should have and that no event speaks of.
    pub without_event: u64,
}

#[derive(Debug, Default)]
struct StageSoFar {
    stage: Stage,
    stacks: u32,
    /// Bytes of its tasks in [`Work::task_bytes`].
    task_bytes: usize,
    /// Task ids whose finished work was lost.
    resubmitted: Vec<i64>,
}

/// A task that has started: a [`TaskRow`] without the figures.
#[derive(Debug)]
struct Running {
    stage: u32,
    index: u32,
    attempt: u32,
    executor: u32,
    partition: i64,
    launch_ms: i64,
    locality: Locality,
    speculative: bool,
}

impl Work {
    fn stage(&mut self, id: u32, attempt: u32) -> u32 {
        let key = (id, attempt);
        if let Some((last, at)) = self.last_stage
            && last == key
        {
            return at;
        }
        let stages = &mut self.stages;
        let at = *self.positions.entry(key).or_insert_with(|| {
            stages.push(StageSoFar { stage: Stage::new(id, attempt), ..StageSoFar::default() });
            stages.len() as u32 - 1
        });
        self.last_stage = Some((key, at));
        at
    }

    pub fn task_start(&mut self, start: &TaskStart, executor: u32) {
        let stage = self.stage(start.stage, start.stage_attempt);
        let info = &start.info;
        self.activate(stage);
        if !self.started.insert(info.id) || self.ended.contains(info.id) {
            return;
        }
        let running = Running {
            stage,
            index: info.index,
            attempt: info.attempt,
            executor,
            partition: info.partition,
            launch_ms: info.launch_ms,
            locality: info.locality,
            speculative: info.speculative,
        };
        self.running.insert(info.id, running);
    }

    /// Keeps a task's end; gives the position of its stage, or `None` when it said nothing new.
    pub fn task_end(&mut self, mut end: Box<TaskEnd>, texts: &mut Interner) -> Option<u32> {
        let at = self.stage(end.stage, end.stage_attempt);
        let id = end.row.id;
        if !end.resubmitted && !self.ended.insert(id) {
            self.counts.repeated_ends += 1;
            return None;
        }
        self.counts.ends += 1;
        self.counts.ends_not_successful += u64::from(end.row.status != TaskStatus::Success);
        self.activate(at);
        let stage = &mut self.stages[at as usize];
        if end.resubmitted {
            // The task stands already, as the success that it was.
            stage.stage.resubmitted = stage.stage.resubmitted.saturating_add(1);
            stage.resubmitted.push(id);
            return None;
        }
        if let Some(reason) = &mut end.row.failure {
            stage.stacks += 1;
            share(reason, stage.stacks <= MAX_STACKS_PER_STAGE && !self.lean, texts);
        }
        let finish_ms = end.row.get(Metric::FinishMs);
        self.counts.backwards += u64::from(finish_ms != 0 && finish_ms < end.row.get(Metric::LaunchMs));
        self.running.remove(&id);
        stage.stage.tasks.push(end.row);
        stage.task_bytes += TASK_BYTES;
        self.task_bytes += TASK_BYTES;
        Some(at)
    }

    /// Keeps what a task added to the user's accumulators, while there is memory for display.
    pub fn user_updates(&mut self, stage: u32, task: i64, updates: &[UserUpdate], texts: &mut Interner) {
        for update in updates.iter().filter(|_| !self.lean) {
            let mut label = |text: &Option<Box<str>>| texts.label(text.as_deref().unwrap_or_default());
            let accumulator = Accumulable { id: update.id, name: label(&update.name), value: label(&update.value) };
            let update = label(&update.update);
            self.stages[stage as usize].stage.task_accumulables.push(TaskAccumulable { task, accumulator, update });
            self.task_bytes += size_of::<TaskAccumulable>();
        }
    }

    /// Takes note of an executor's metrics while a stage ran, while there is memory for display.
    pub fn peaks<'n>(
        &mut self,
        (stage, attempt): (u32, u32),
        executor: u32,
        metrics: impl Iterator<Item = (&'n str, i64)>,
        texts: &mut Interner,
    ) {
        if self.lean {
            return;
        }
        let at = self.stage(stage, attempt) as usize;
        let peaks = &mut self.stages[at].stage.peaks;
        let place = peaks.iter().position(|(e, _)| *e == executor).unwrap_or_else(|| {
            peaks.push((executor, Vec::new()));
            peaks.len() - 1
        });
        let of_executor = &mut peaks[place].1;
        let before = of_executor.len();
        for (name, value) in metrics {
            raise(of_executor, name, value, texts);
        }
        self.task_bytes += (of_executor.len() - before) * size_of::<(Text, i64)>();
    }

    /// A stage that has tasks was submitted, whether or not an event says so.
    fn activate(&mut self, at: u32) {
        let status = &mut self.stages[at as usize].stage.status;
        if *status == StageStatus::Pending {
            *status = StageStatus::Active;
        }
    }

    pub fn job_start(&mut self, start: JobStart, texts: &mut Interner, clock: &mut Clock) {
        let mut ids = start.stage_ids;
        let described: Vec<u32> = start.stages.iter().map(|s| s.id).filter(|id| !ids.contains(id)).collect();
        ids.extend(described);
        let last = start.stages.iter().max_by_key(|s| s.id).map(|s| texts.label(&s.name));
        let job = self.jobs.entry(start.id).or_insert_with(|| new_job(start.id));
        job.submitted_ms = clock.see(start.time_ms);
        self.job_of_stage.extend(ids.iter().map(|&id| (id, start.id)));
        job.stages = ids;
        job.name = last.unwrap_or_default();
        tie(job, &start.properties, texts);
        for info in start.stages {
            let at = self.stage(info.id, info.attempt) as usize;
            // A stage that has run before comes again in the lists of later jobs.
            if self.stages[at].stage.status == StageStatus::Pending {
                self.describe(at, info, texts);
            }
        }
        if let Some(end) = self.early_ends.remove(&start.id) {
            self.job_end(end, texts, clock);
        }
    }

    pub fn job_end(&mut self, end: JobEnd, texts: &mut Interner, clock: &mut Clock) {
        let time_ms = clock.see(end.time_ms);
        let Some(job) = self.jobs.get_mut(&end.id) else {
            self.early_ends.insert(end.id, end);
            return;
        };
        job.completed_ms = time_ms;
        job.status = match &*end.result.result {
            "JobSucceeded" => StageStatus::Complete,
            _ => StageStatus::Failed,
        };
        job.error = end.result.exception.and_then(|e| e.message).map(|m| texts.text(&m));
    }

    pub fn stage_submitted(&mut self, event: StageEvent, texts: &mut Interner, clock: &mut Clock) {
        let StageEvent { info, properties } = event;
        let at = self.stage(info.id, info.attempt) as usize;
        let stage = &mut self.stages[at].stage;
        stage.submitted_ms = clock.see(info.submitted_ms).or(stage.submitted_ms);
        if matches!(stage.status, StageStatus::Pending | StageStatus::Active) {
            stage.status = StageStatus::Active;
        }
        match (properties, self.job_of_stage.get(&info.id).and_then(|job| self.jobs.get(job))) {
            (Some(properties), _) => situate(stage, &properties, texts),
            (None, Some(job)) => inherit(stage, job),
            (None, None) => {}
        }
        self.describe(at, info, texts);
    }

    pub fn stage_completed(&mut self, event: StageEvent, texts: &mut Interner, clock: &mut Clock) {
        let info = event.info;
        let at = self.stage(info.id, info.attempt) as usize;
        self.pack_tasks(at);
        let stage = &mut self.stages[at].stage;
        stage.submitted_ms = clock.see(info.submitted_ms).or(stage.submitted_ms);
        stage.completed_ms = clock.see(info.completed_ms);
        stage.status = if info.failure.is_some() { StageStatus::Failed } else { StageStatus::Complete };
        stage.failure = texts.option(info.failure.as_deref());
        let accumulable = |a: &wire::UserAccumulable| Accumulable {
            id: a.id,
            name: texts.label(&a.name),
            value: texts.label(&a.value),
        };
        if !self.lean {
            stage.accumulables = info.accumulables.iter().map(accumulable).collect();
            self.task_bytes += stage.accumulables.len() * size_of::<Accumulable>();
        }
        self.describe(at, info, texts);
    }

    /// Gives back what the tasks of a stage have allocated ahead, and counts what they really take.
    fn pack_tasks(&mut self, at: usize) {
        let stage = &mut self.stages[at];
        stage.stage.tasks.shrink_to_fit();
        let bytes = stage.stage.tasks.heap_bytes();
        self.task_bytes = self.task_bytes + bytes - stage.task_bytes;
        stage.task_bytes = bytes;
    }

    fn describe(&mut self, at: usize, info: StageInfo, texts: &mut Interner) {
        let stage = &mut self.stages[at].stage;
        stage.name = texts.label(&info.name);
        if !self.lean {
            stage.details = texts.label(&info.details);
        }
        stage.num_tasks = info.num_tasks;
        stage.parents = info.parents;
        stage.resource_profile = info.resource_profile;
        stage.pushed_to = info.pushes.then_some(info.mergers);
        stage.barrier = info.rdds.iter().any(|rdd| rdd.barrier);
        stage.rdds = info.rdds.into_iter().map(|info| rdd(info, texts)).collect();
    }

    /// Lets go of what is only for display.
    pub fn forget_texts(&mut self) {
        self.lean = true;
        for stage in &mut self.stages {
            stage.stage.details = Label::default();
        }
    }

    pub fn heap_bytes(&self) -> usize {
        let stages = self.stages.capacity() * size_of::<StageSoFar>();
        stages + self.task_bytes + self.running.capacity() * size_of::<(i64, Running)>()
    }

    /// TaskStart events with distinct ids.
    pub fn task_starts(&self) -> u64 {
        self.started.len()
    }

    /// Ends the reading: tasks that never ended, skipped stages, and what only all jobs together
    /// tell. Also gives the new position of each stage.
    pub fn finish(mut self) -> (Vec<Job>, Vec<Stage>, Lost, Vec<u32>) {
        let without_start = self.ended.missing_in(&self.started);
        self.add_listed_stages();
        let without_end = self.add_running_tasks();
        let jobs_of = jobs_of_stages(&self.jobs);
        let without_event = self.stages.iter().map(|s| self.tasks_missing(&s.stage)).sum();
        let jobs_without_start = self.early_ends.len() as u64;
        let lost = Lost { without_end, without_start, jobs_without_start, without_event };
        let (stages, moved) = in_order(self.stages);
        let mut stages: Vec<Stage> = stages.into_iter().map(StageSoFar::finish).collect();
        for stage in &mut stages {
            stage.jobs = jobs_of.get(&stage.id).cloned().unwrap_or_default();
            skip_if_over(stage, &self.jobs);
        }
        let mut jobs: Vec<Job> = self.jobs.into_values().collect();
        name_from_stages(&mut jobs, &stages);
        (jobs, stages, lost, moved)
    }

    /// Stages of which nothing but the id is known, from the lists of jobs (before Spark 1.2).
    fn add_listed_stages(&mut self) {
        let known: HashSet<u32> = self.positions.keys().map(|key| key.0).collect();
        let listed: Vec<u32> = self.jobs.values().flat_map(|job| job.stages.iter().copied()).collect();
        for id in listed.into_iter().filter(|id| !known.contains(id)) {
            self.stage(id, 0);
        }
    }

    /// Adds the tasks that never ended, in the order of their ids; counts those of completed
    /// stages whose work no other attempt did. (A copy that lost a race is often still being
    /// stopped at the end, and so are the tasks of a stage that failed or that the end cut off.)
    fn add_running_tasks(&mut self) -> u64 {
        let mut running: Vec<_> = std::mem::take(&mut self.running).into_iter().collect();
        running.sort_unstable_by_key(|(id, task)| (task.stage, *id));
        let mut lost = 0;
        let mut done: (Option<u32>, HashSet<u32>) = (None, HashSet::new());
        for (id, task) in running {
            let stage = &mut self.stages[task.stage as usize].stage;
            let complete = stage.status == StageStatus::Complete;
            let tasks = &mut stage.tasks;
            if done.0 != Some(task.stage) {
                done = (Some(task.stage), tasks.successful().map(|row| tasks.index(row)).collect());
            }
            lost += u64::from(complete && !done.1.contains(&task.index));
            tasks.push(task.row(id));
        }
        lost
    }

    /// Tasks of a completed stage that no event speaks of. Where a stage has several attempts one
    /// may do another's work, so nothing can be said.
    fn tasks_missing(&self, stage: &Stage) -> u64 {
        let alone = stage.attempt == 0 && !self.positions.contains_key(&(stage.id, 1));
        if stage.status != StageStatus::Complete || !alone {
            return 0;
        }
        u64::from(stage.num_tasks).saturating_sub(stage.tasks.len() as u64)
    }
}

impl Running {
    fn row(self, id: i64) -> TaskRow {
        let mut row = TaskRow::new(id);
        row.index = self.index;
        row.attempt = self.attempt;
        row.partition = self.partition;
        row.executor = self.executor;
        row.locality = self.locality;
        row.speculative = self.speculative;
        row.status = TaskStatus::Running;
        row.has_metrics = false;
        row.set(Metric::LaunchMs, self.launch_ms);
        row
    }
}

impl StageSoFar {
    fn finish(mut self) -> Stage {
        self.stage.resubmitted_run_ms = run_ms_of(&self.stage.tasks, self.resubmitted);
        self.stage.tasks.shrink_to_fit();
        self.stage
    }
}

/// Run time, ms, of tasks with the given ids; an id that stands twice counts once.
fn run_ms_of(tasks: &Tasks, ids: Vec<i64>) -> i64 {
    if ids.is_empty() {
        return 0;
    }
    let ids: HashSet<i64> = ids.into_iter().collect();
    let rows = (0..tasks.len()).filter(|&row| ids.contains(&tasks.id(row)));
    rows.fold(0, |sum: i64, row| sum.saturating_add(tasks.value(Metric::RunMs, row)))
}

fn jobs_of_stages(jobs: &BTreeMap<u32, Job>) -> HashMap<u32, Vec<u32>> {
    let mut found: HashMap<u32, Vec<u32>> = HashMap::default();
    for job in jobs.values() {
        for &stage in &job.stages {
            let list = found.entry(stage).or_default();
            if list.last() != Some(&job.id) {
                list.push(job.id);
            }
        }
    }
    found
}

/// Stages by id and attempt, and where each went.
fn in_order(stages: Vec<StageSoFar>) -> (Vec<StageSoFar>, Vec<u32>) {
    let mut order: Vec<(usize, StageSoFar)> = stages.into_iter().enumerate().collect();
    order.sort_by_key(|(_, s)| (s.stage.id, s.stage.attempt));
    let mut moved = vec![0; order.len()];
    for (new, (old, _)) in order.iter().enumerate() {
        moved[*old] = new as u32;
    }
    (order.into_iter().map(|(_, stage)| stage).collect(), moved)
}

/// A stage that never ran is skipped once a job that lists it has ended; it works for the SQL
/// execution of the first of its jobs.
fn skip_if_over(stage: &mut Stage, jobs: &BTreeMap<u32, Job>) {
    if stage.status != StageStatus::Pending {
        return;
    }
    let mut listed = stage.jobs.iter().filter_map(|id| jobs.get(id)).peekable();
    if let Some(first) = listed.peek() {
        stage.sql = first.sql;
        stage.description = first.description.clone();
        stage.call_site = first.call_site.clone();
    }
    if listed.any(|job| job.status != StageStatus::Active) {
        stage.status = StageStatus::Skipped;
    }
}

/// A job is called as its last stage is.
fn name_from_stages(jobs: &mut [Job], stages: &[Stage]) {
    for job in jobs.iter_mut().filter(|job| job.name.is_empty()) {
        let last = job.stages.iter().max();
        let stage = last.and_then(|&id| stages.binary_search_by_key(&(id, 0), |s| (s.id, s.attempt)).ok());
        job.name = stage.map(|at| stages[at].name.clone()).unwrap_or_default();
    }
}

fn new_job(id: u32) -> Job {
    Job { id, status: StageStatus::Active, ..Job::default() }
}

/// Puts a job in its place: the query, the stream, the run that it works for.
fn tie(job: &mut Job, properties: &Properties, texts: &mut Interner) {
    let mut text = |key: &str| properties.get(key).map(|value| texts.text(value));
    job.description = text("spark.job.description");
    job.group = text("spark.jobGroup.id");
    job.call_site = text("callSite.short");
    job.stream = text("sql.streaming.queryId");
    job.sql = properties.number("spark.sql.execution.id");
    let root = ["spark.sql.execution.root.id", "spark.databricks.execution.rootSqlExecutionId"];
    job.sql_root = root.into_iter().find_map(|key| properties.number(key));
    job.batch = properties.number("streaming.sql.batchId");
    let tags = properties.get("spark.job.tags").unwrap_or_default().split(',').map(str::trim);
    job.tags = tags.filter(|tag| !tag.is_empty()).map(|tag| texts.text(tag)).collect();
    let ties = properties.0.iter().filter(|(key, _)| wire::is_tie(key));
    job.ties = ties.map(|(key, value)| (texts.text(key), texts.text(value))).collect();
}

fn situate(stage: &mut Stage, properties: &Properties, texts: &mut Interner) {
    let mut text = |key: &str| properties.get(key).map(|value| texts.text(value));
    stage.description = text("spark.job.description");
    stage.call_site = text("callSite.short");
    stage.pool = text("spark.scheduler.pool");
    stage.sql = properties.number("spark.sql.execution.id");
}

fn inherit(stage: &mut Stage, job: &Job) {
    stage.description = job.description.clone();
    stage.call_site = job.call_site.clone();
    stage.sql = job.sql;
}

fn rdd(info: RddInfo, texts: &mut Interner) -> Rdd {
    let scope = info.scope.as_deref().and_then(|s| serde_json::from_str::<wire::Scope>(s).ok());
    let (scope, scope_id) = scope.map_or((None, None), |s| (s.name, s.id));
    Rdd {
        id: info.id,
        name: texts.label(&info.name),
        scope: texts.option(scope.as_deref()),
        scope_id: texts.option(scope_id.as_deref()),
        call_site: texts.label(&info.call_site),
        parents: info.parents,
        partitions: info.partitions,
        cached_partitions: info.cached_partitions,
        memory_bytes: size(info.memory_bytes),
        disk_bytes: size(info.disk_bytes),
        storage: storage::level(info.level),
    }
}

/// Lets equal texts of failures share one allocation; cuts those that are not kept whole.
fn share(reason: &mut EndReason, whole: bool, texts: &mut Interner) {
    let mut shared = |text: &mut Text| {
        *text = texts.text(if whole { text } else { beginning(text, MAX_MESSAGE_BYTES) });
    };
    match reason {
        EndReason::Exception { class, message, stack } => {
            shared(class);
            shared(message);
            if whole {
                shared(stack);
            } else {
                *stack = Text::default();
            }
        }
        EndReason::FetchFailed { executor, host, message, .. } => {
            executor.iter_mut().chain(host).for_each(&mut shared);
            shared(message);
        }
        EndReason::ExecutorLost { executor, reason, .. } => {
            shared(executor);
            shared(reason);
        }
        EndReason::Killed { reason: text }
        | EndReason::CommitDenied { message: text }
        | EndReason::Other { reason: text } => shared(text),
        EndReason::ResultLost | EndReason::Resubmitted => {}
    }
}

/// The first bytes of a text, cut between characters.
fn beginning(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}
