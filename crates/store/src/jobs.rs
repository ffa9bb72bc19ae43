//! Jobs, their runs and task runs as rows.
//!
//! What an engine decided comes as a list of [`Change`]s and is written whole or not at all; once
//! that returns it is on the disk. Lists go by key, never by offset, so that a page deep in the
//! past costs what the first one does. They are in the data directory, or in a PostgreSQL database
//! by [`Jobs::connect`], which several processes share: one of them leads, see [`Jobs::lead`], and
//! does what the others ask, see [`Jobs::ask`].

mod commands;
mod lease;

pub use commands::Bell;
pub use lease::{LEASE, Lease, RENEWED, Site};

use crate::rows::{Row, Rows, Statement};
use crate::{Error, postgres};
use sqlx::FromRow;
use std::sync::Arc;

/// A job as it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, FromRow)]
pub struct Job {
    /// Its id.
    pub job_id: i64,
    /// Its name.
    pub name: String,
    /// Who made it.
    pub creator: String,
    /// When, epoch ms.
    pub created_ms: i64,
    /// When it was changed last, epoch ms.
    pub changed_ms: i64,
    /// Who did.
    pub changed_by: String,
    /// Grows with each change of its settings.
    pub version: i64,
    /// Its definition, in whatever form the caller gives it.
    pub settings: String,
    /// Last time for which its trigger planned a run, epoch ms; before the first, when it was set.
    pub planned_ms: Option<i64>,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Eq, FromRow)]
pub struct Run {
    /// Its id.
    pub run_id: i64,
    /// Of which job; of a submitted run an id of its own.
    pub job_id: i64,
    /// `number_in_job`.
    pub number: i64,
    /// `run_type`.
    pub run_type: String,
    /// Its name.
    pub name: String,
    /// Who started it.
    pub creator: String,
    /// `trigger`.
    pub cause: String,
    /// What it was started with, in whatever form the caller gives it.
    pub about: String,
    /// How far it is.
    #[sqlx(flatten)]
    pub state: RunState,
}

/// What changes of a run while it goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, FromRow)]
pub struct RunState {
    /// `life_cycle_state`.
    pub life_cycle: String,
    /// `result_state`.
    pub result: Option<String>,
    /// `termination_details.code`, or the code of what it waits for.
    pub code: Option<String>,
    /// `state_message`.
    pub message: String,
    /// When it came to be, epoch ms.
    pub start_ms: i64,
    /// When it left the queue, epoch ms.
    pub admitted_ms: Option<i64>,
    /// When it was over, epoch ms.
    pub end_ms: Option<i64>,
    /// Its rounds, in whatever form the caller gives them.
    pub rounds: String,
    /// The engine's own state of it; `None`: it never began.
    pub core: Option<String>,
}

/// A task in a run: one attempt, of the task itself or of one item of its list.
#[derive(Clone, Debug, Default, PartialEq, Eq, FromRow)]
pub struct TaskRun {
    /// Its id, unlike that of any run.
    pub task_run_id: i64,
    /// In which run.
    pub run_id: i64,
    /// Position of the task in the run.
    pub position: i64,
    /// Item of a for-each.
    pub item: Option<i64>,
    /// Key of the task.
    pub task_key: String,
    /// `attempt_number`.
    pub attempt: i64,
    /// 0: the original run; n: its n-th repair.
    pub round: i64,
    /// `life_cycle_state`.
    pub life_cycle: String,
    /// `result_state`.
    pub result: Option<String>,
    /// `termination_details.code`.
    pub code: Option<String>,
    /// `state_message`.
    pub message: String,
    /// When it waited for no task any more, epoch ms.
    pub start_ms: Option<i64>,
    /// When its work began, epoch ms.
    pub running_ms: Option<i64>,
    /// When it was over, epoch ms.
    pub end_ms: Option<i64>,
    /// Names the start of its work in the run.
    pub epoch: Option<i64>,
    /// The engine's own state of the work; `None`: there is none now.
    pub work: Option<String>,
    /// What is known of it besides, in whatever form the caller gives it.
    pub detail: String,
}

/// One thing that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A job that is new or has changed.
    Job(Job),
    /// The trigger of a job has planned a run for a time in epoch ms.
    Planned(i64, i64),
    /// How the trigger of a job stands now, in whatever form the caller gives it; `None`: nothing is
    /// to be known of it any more.
    TriggerState(i64, Option<String>),
    /// A job is deleted, at a time in epoch ms; its runs stay.
    JobDeleted(i64, i64),
    /// A run that is new.
    Run(Run),
    /// What a run is now; with `about` where that changed too.
    RunState(i64, RunState, Option<String>),
    /// A run goes, with all that is kept of it.
    RunDeleted(i64),
    /// A task run that is new or has changed.
    TaskRun(TaskRun),
    /// The engine's state of a task: run, position, state.
    Core(i64, i64, String),
    /// A change of state: run, task run, the new state, epoch ms.
    Transition(i64, Option<i64>, String, i64),
    /// A token of a caller stands for a run: job (0: none), token, run.
    Token(i64, String, i64),
    /// The answer to a command that another process asked, by its number.
    Answer(i64, String),
}

/// Which runs are wanted, all conditions together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Of this job.
    pub job_id: Option<i64>,
    /// Those that are over, or those that are not.
    pub is_over: Option<bool>,
    /// Of this type.
    pub run_type: Option<String>,
    /// Started at this time or later, epoch ms.
    pub from_ms: Option<i64>,
    /// Started at this time or before, epoch ms.
    pub to_ms: Option<i64>,
    /// So many of the first are left out.
    pub skip: u32,
}

/// Which jobs are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Of this name, in any case.
    pub name: Option<String>,
    /// So many of the first are left out.
    pub skip: u32,
}

/// A place in a list, between its items: runs are ordered by start (epoch ms) and id, jobs by id, the
/// latest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<K> {
    /// Behind the item of this key: the older ones.
    After(K),
    /// Before it: the newer ones next to it.
    Before(K),
}

/// Jobs and runs of a data directory or of a PostgreSQL database. Clones share their connections.
#[derive(Clone, Debug)]
pub struct Jobs {
    rows: Rows,
    /// Of the leader that this writes for.
    fence: Option<Arc<lease::Fence>>,
}

const JOB: &str = "SELECT job_id, name, creator, created_ms, changed_ms, changed_by, version, settings, planned_ms FROM \
                   jobs";
const RUN: &str = "SELECT run_id, job_id, number, run_type, name, creator, cause, about, life_cycle, result, code, \
                   message, start_ms, admitted_ms, end_ms, rounds, core FROM runs";
const TASK_RUN: &str = "SELECT task_run_id, run_id, position, item, task_key, attempt, round, life_cycle, result, \
                        code, message, start_ms, running_ms, end_ms, epoch, work, detail FROM task_runs";

impl Jobs {
    /// Those of a PostgreSQL database, by its URL such as `postgresql://user:password@host/name`; its
    /// tables are made and brought to this version where they have to be. Several processes may
    /// share it.
    ///
    /// # Errors
    /// When the URL is none, or the database cannot be reached, is of a newer version or cannot be
    /// written. No message holds the password.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Ok(Self::of(postgres::open(url).await?))
    }

    /// Where they are, for people: a file, or an address without user and password.
    #[must_use]
    pub fn database(&self) -> &str {
        self.rows.name()
    }

    pub(crate) fn of(rows: Rows) -> Self {
        Self { rows, fence: None }
    }

    /// Writes all of it or nothing. It is on the disk when this returns.
    ///
    /// # Errors
    /// When the database cannot be written, or this writes for a leader that leads no more.
    pub async fn write(&self, changes: &[Change]) -> Result<(), Error> {
        let failed = || self.rows.failed("writing", "what became of the runs");
        let mut transaction = self.rows.begin().await.map_err(failed())?;
        if self.check(&mut transaction).await? {
            for change in changes {
                transaction.execute(&statement(change)).await.map_err(failed())?;
            }
            transaction.commit().await.map_err(failed())?;
        }
        self.count();
        Ok(())
    }

    /// Reserves ids: gives the first of so many that nobody has or will get.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn reserve_ids(&self, many: i64) -> Result<i64, Error> {
        let update = Statement::new("UPDATE ids SET given = given + $1 RETURNING given").bind(many);
        let (given,) = self.rows.one::<(i64,)>(&update).await.map_err(self.rows.failed("reserving", "ids"))?;
        Ok(given - many + 1)
    }

    /// A job that was not deleted.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn job(&self, job_id: i64) -> Result<Option<Job>, Error> {
        let mut query = Statement::new(JOB);
        query.push(" WHERE deleted_ms IS NULL AND job_id = ").push_bind(job_id);
        Ok(self.all(&query, "a job").await?.pop())
    }

    /// Jobs, the newest first, at most so many, from a place on.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn jobs(&self, filter: &JobFilter, from: Option<Place<i64>>, most: u32) -> Result<Vec<Job>, Error> {
        let mut query = Statement::new(JOB);
        query.push(" WHERE deleted_ms IS NULL");
        if let Some(name) = &filter.name {
            query.push(" AND name_folded = ").push_bind(name.to_lowercase());
        }
        let is_back = matches!(from, Some(Place::Before(_)));
        match from {
            Some(Place::After(id)) => _ = query.push(" AND job_id < ").push_bind(id),
            Some(Place::Before(id)) => _ = query.push(" AND job_id > ").push_bind(id),
            None => {}
        }
        query.push(if is_back { " ORDER BY job_id" } else { " ORDER BY job_id DESC" });
        query.push(" LIMIT ").push_bind(i64::from(most)).push(" OFFSET ").push_bind(i64::from(filter.skip));
        let mut jobs = self.all(&query, "the jobs").await?;
        if is_back {
            jobs.reverse();
        }
        Ok(jobs)
    }

    /// How the triggers of jobs stand, of all jobs or of one.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn trigger_states(&self, job_id: Option<i64>) -> Result<Vec<(i64, String)>, Error> {
        let mut query = Statement::new("SELECT job_id, state FROM trigger_states");
        if let Some(job_id) = job_id {
            query.push(" WHERE job_id = ").push_bind(job_id);
        }
        self.all(&query, "the states of triggers").await
    }

    /// A run.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn run(&self, run_id: i64) -> Result<Option<Run>, Error> {
        let mut query = Statement::new(RUN);
        query.push(" WHERE run_id = ").push_bind(run_id);
        Ok(self.all(&query, "a run").await?.pop())
    }

    /// Runs, the latest first, at most so many, from a place on.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn runs(
        &self,
        filter: &RunFilter,
        from: Option<Place<(i64, i64)>>,
        most: u32,
    ) -> Result<Vec<Run>, Error> {
        let mut query = Statement::new(RUN);
        // PostgreSQL knows how many runs there are of a kind.
        if !self.is_shared() {
            query.push(" INDEXED BY ").push(index(filter));
        }
        query.push(" WHERE TRUE");
        if let Some(job_id) = filter.job_id {
            query.push(" AND job_id = ").push_bind(job_id);
        }
        if let Some(run_type) = &filter.run_type {
            query.push(" AND run_type = ").push_bind(run_type);
        }
        match filter.is_over {
            Some(true) => _ = query.push(" AND end_ms IS NOT NULL"),
            Some(false) => _ = query.push(" AND end_ms IS NULL"),
            None => {}
        }
        let (from_ms, to_ms) = bounds(filter, from);
        if let Some(from_ms) = from_ms {
            query.push(" AND start_ms >= ").push_bind(from_ms);
        }
        if let Some(to_ms) = to_ms {
            query.push(" AND start_ms <= ").push_bind(to_ms);
        }
        let is_back = matches!(from, Some(Place::Before(_)));
        if let Some(Place::After((start_ms, run_id)) | Place::Before((start_ms, run_id))) = from {
            query.push(if is_back { " AND (start_ms, run_id) > (" } else { " AND (start_ms, run_id) < (" });
            query.push_bind(start_ms).push(", ").push_bind(run_id).push(")");
        }
        query.push(if is_back { " ORDER BY start_ms, run_id" } else { " ORDER BY start_ms DESC, run_id DESC" });
        query.push(" LIMIT ").push_bind(i64::from(most)).push(" OFFSET ").push_bind(i64::from(filter.skip));
        let mut runs = self.all(&query, "the runs").await?;
        if is_back {
            runs.reverse();
        }
        Ok(runs)
    }

    /// Runs that are not over, in the order in which they came to be.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn open_runs(&self) -> Result<Vec<Run>, Error> {
        let mut query = Statement::new(RUN);
        if !self.is_shared() {
            // Else the order by id makes SQLite read all runs there are.
            query.push(" INDEXED BY runs_open");
        }
        query.push(" WHERE end_ms IS NULL ORDER BY run_id");
        self.all(&query, "the open runs").await
    }

    /// The task runs of a run, by position, item and attempt.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn task_runs(&self, run_id: i64) -> Result<Vec<TaskRun>, Error> {
        let mut query = Statement::new(TASK_RUN);
        query.push(" WHERE run_id = ").push_bind(run_id).push(" ORDER BY position, item NULLS FIRST, attempt");
        self.all(&query, "task runs").await
    }

    /// A task run by its own id.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn task_run(&self, task_run_id: i64) -> Result<Option<TaskRun>, Error> {
        let mut query = Statement::new(TASK_RUN);
        query.push(" WHERE task_run_id = ").push_bind(task_run_id);
        Ok(self.all(&query, "a task run").await?.pop())
    }

    /// The engine's states of the tasks of a run, by position.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn cores(&self, run_id: i64) -> Result<Vec<String>, Error> {
        let query = Statement::new("SELECT core FROM run_tasks WHERE run_id = $1 ORDER BY position").bind(run_id);
        Ok(self.all::<(String,)>(&query, "tasks of a run").await?.into_iter().map(|(core,)| core).collect())
    }

    /// The run that a caller's token stands for.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn run_of_token(&self, job_id: i64, token: &str) -> Result<Option<i64>, Error> {
        let query = Statement::new("SELECT run_id FROM idempotency WHERE job_id = $1 AND token = $2");
        let found = self.all::<(i64,)>(&query.bind(job_id).bind(token), "an idempotency token").await?;
        Ok(found.first().map(|(run_id,)| *run_id))
    }

    /// The highest `number_in_job` of a job so far.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn last_number(&self, job_id: i64) -> Result<i64, Error> {
        let query =
            Statement::new("SELECT number FROM runs WHERE job_id = $1 ORDER BY start_ms DESC, run_id DESC LIMIT 1");
        let found = self.all::<(i64,)>(&query.bind(job_id), "the runs of a job").await?;
        Ok(found.first().map(|(number,)| *number).unwrap_or_default())
    }

    async fn all<T: Row>(&self, query: &Statement<'_>, what: &str) -> Result<Vec<T>, Error> {
        self.rows.all(query).await.map_err(self.rows.failed("reading", what))
    }
}

/// The index for a list. It is named, because SQLite knows nothing of how many runs there are of a
/// kind: that few are not over, that few of a job are of a type.
fn index(filter: &RunFilter) -> &'static str {
    match (filter.job_id, &filter.run_type, filter.is_over) {
        (Some(_), _, Some(false)) => "runs_open_by_job",
        (None, _, Some(false)) => "runs_open",
        (Some(_), Some(_), _) => "runs_by_job_and_type",
        (Some(_), None, _) => "runs_by_job",
        (None, Some(_), _) => "runs_by_type",
        (None, None, _) => "runs_by_start",
    }
}

/// From when and until when runs started, where the place does not say more: of two bounds on the
/// same side the index may be entered at the wrong one, and walked from there.
fn bounds(filter: &RunFilter, from: Option<Place<(i64, i64)>>) -> (Option<i64>, Option<i64>) {
    let RunFilter { from_ms, to_ms, .. } = *filter;
    match from {
        Some(Place::After((start_ms, _))) => (from_ms, to_ms.filter(|to_ms| *to_ms < start_ms)),
        Some(Place::Before((start_ms, _))) => (from_ms.filter(|from_ms| *from_ms > start_ms), to_ms),
        None => (from_ms, to_ms),
    }
}

const UPSERT_JOB: &str = "INSERT INTO jobs (job_id, name, name_folded, creator, created_ms, changed_ms, changed_by, version, \
     settings, planned_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (job_id) DO UPDATE SET name = excluded.name, \
     name_folded = excluded.name_folded, changed_ms = excluded.changed_ms, changed_by = excluded.changed_by, \
     version = excluded.version, settings = excluded.settings, planned_ms = excluded.planned_ms";
const INSERT_RUN: &str = "INSERT INTO runs (run_id, job_id, number, run_type, name, creator, cause, about, life_cycle, result, \
     code, message, start_ms, admitted_ms, end_ms, rounds, core) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
const UPDATE_RUN: &str = "UPDATE runs SET life_cycle = $2, result = $3, code = $4, message = $5, admitted_ms = $6, \
     end_ms = $7, rounds = $8, core = $9, about = coalesce($10, about) WHERE run_id = $1";
const UPSERT_TASK_RUN: &str = "INSERT INTO task_runs (task_run_id, run_id, position, item, task_key, attempt, round, life_cycle, \
     result, code, message, start_ms, running_ms, end_ms, epoch, work, detail) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) \
     ON CONFLICT (task_run_id) DO UPDATE SET life_cycle = excluded.life_cycle, result = excluded.result, \
     code = excluded.code, message = excluded.message, start_ms = excluded.start_ms, \
     running_ms = excluded.running_ms, end_ms = excluded.end_ms, epoch = excluded.epoch, work = excluded.work, \
     detail = excluded.detail";

fn statement(change: &Change) -> Statement<'_> {
    match change {
        Change::Job(job) => of_job(job),
        Change::Planned(job_id, at_ms) => {
            Statement::new("UPDATE jobs SET planned_ms = $2 WHERE job_id = $1").bind(*job_id).bind(*at_ms)
        }
        Change::TriggerState(job_id, Some(state)) => {
            let upsert = "INSERT INTO trigger_states (job_id, state) VALUES ($1, $2) \
                          ON CONFLICT (job_id) DO UPDATE SET state = excluded.state";
            Statement::new(upsert).bind(*job_id).bind(state)
        }
        Change::TriggerState(job_id, None) => {
            Statement::new("DELETE FROM trigger_states WHERE job_id = $1").bind(*job_id)
        }
        Change::JobDeleted(job_id, at_ms) => {
            Statement::new("UPDATE jobs SET deleted_ms = $2 WHERE job_id = $1").bind(*job_id).bind(*at_ms)
        }
        Change::Run(run) => of_run(run),
        Change::RunState(run_id, state, about) => of_run_state(*run_id, state, about.as_deref()),
        Change::RunDeleted(run_id) => Statement::new("DELETE FROM runs WHERE run_id = $1").bind(*run_id),
        Change::TaskRun(task_run) => of_task_run(task_run),
        Change::Core(run_id, position, core) => {
            let upsert = "INSERT INTO run_tasks (run_id, position, core) VALUES ($1, $2, $3) \
                          ON CONFLICT (run_id, position) DO UPDATE SET core = excluded.core";
            Statement::new(upsert).bind(*run_id).bind(*position).bind(core)
        }
        Change::Transition(run_id, task_run_id, life_cycle, at_ms) => {
            let insert = "INSERT INTO transitions (run_id, task_run_id, life_cycle, at_ms) VALUES ($1, $2, $3, $4)";
            Statement::new(insert).bind(*run_id).bind(*task_run_id).bind(life_cycle).bind(*at_ms)
        }
        Change::Token(job_id, token, run_id) => {
            let insert = "INSERT INTO idempotency (job_id, token, run_id) VALUES ($1, $2, $3)";
            Statement::new(insert).bind(*job_id).bind(token).bind(*run_id)
        }
        Change::Answer(id, answer) => {
            Statement::new("UPDATE commands SET answer = $2 WHERE id = $1").bind(*id).bind(answer)
        }
    }
}

fn of_job(job: &Job) -> Statement<'_> {
    let query = Statement::new(UPSERT_JOB).bind(job.job_id).bind(&job.name).bind(job.name.to_lowercase());
    let query = query.bind(&job.creator).bind(job.created_ms).bind(job.changed_ms).bind(&job.changed_by);
    query.bind(job.version).bind(&job.settings).bind(job.planned_ms)
}

fn of_run(run: &Run) -> Statement<'_> {
    let query = Statement::new(INSERT_RUN).bind(run.run_id).bind(run.job_id).bind(run.number).bind(&run.run_type);
    let query = query.bind(&run.name).bind(&run.creator).bind(&run.cause).bind(&run.about);
    let state = &run.state;
    let query = query.bind(&state.life_cycle).bind(&state.result).bind(&state.code).bind(&state.message);
    let query = query.bind(state.start_ms).bind(state.admitted_ms).bind(state.end_ms);
    query.bind(&state.rounds).bind(&state.core)
}

fn of_run_state<'q>(run_id: i64, state: &'q RunState, about: Option<&'q str>) -> Statement<'q> {
    let query = Statement::new(UPDATE_RUN).bind(run_id).bind(&state.life_cycle).bind(&state.result);
    let query = query.bind(&state.code).bind(&state.message).bind(state.admitted_ms).bind(state.end_ms);
    query.bind(&state.rounds).bind(&state.core).bind(about)
}

fn of_task_run(task: &TaskRun) -> Statement<'_> {
    let query = Statement::new(UPSERT_TASK_RUN).bind(task.task_run_id).bind(task.run_id).bind(task.position);
    let query = query.bind(task.item).bind(&task.task_key).bind(task.attempt).bind(task.round);
    let query = query.bind(&task.life_cycle).bind(&task.result).bind(&task.code).bind(&task.message);
    let query = query.bind(task.start_ms).bind(task.running_ms).bind(task.end_ms);
    query.bind(task.epoch).bind(&task.work).bind(&task.detail)
}
