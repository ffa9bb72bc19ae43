//! The engine that runs: a [`Book`](crate::book::Book) whose decisions are written to a store and
//! carried out on this machine.
//!
//! One task holds the book. It takes what clients and programs say, many at a time, writes all that
//! follows in one transaction, and only then answers and acts: what a client was told is on the
//! disk, and no program starts that no row tells of. An engine that is started on the rows of one
//! that was killed takes up its programs where they run.
//!
//! Engines on a database that they share are *replicas*: one leads and holds the book, the others
//! hand it what they are asked and take its place when it is gone.

mod actor;
mod executor;
mod looks;
mod program;
mod replica;
mod tidy;
mod trouble;

pub use looks::{Watcher, Watching};

use crate::book::{Given, NotRepaired};
use crate::repair::Request;
use crate::settings::Invalid;
use replica::Replica;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::jobs::Jobs;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::DropGuard;

/// Commands that may wait for the engine; more are refused.
const MOST_COMMANDS: usize = 10_000;

/// Where and how programs run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder with one folder an attempt; made where it is missing.
    pub attempts: PathBuf,
    /// A program that calls [`local::serve_forks`](crate::local::serve_forks) for the argument `shim`.
    pub shim: PathBuf,
    /// `--task-slots`: programs that run at once; more of them wait.
    pub slots: usize,
    /// `--python`: the interpreter of tasks that ask for no other.
    pub python: String,
    /// The folder of Python environments, one for each list of packages; made where it is missing.
    pub environments: PathBuf,
    /// The folder of what runs need from Git repositories, one for each run; made where it is missing.
    pub sources: PathBuf,
    /// `--spark-home`: where Spark is; else `spark-submit` of the `PATH` is used.
    pub spark_home: Option<PathBuf>,
    /// `--spark-master`: of tasks that ask for a cluster; else Spark's own default.
    pub spark_master: Option<String>,
    /// Where Spark applications of tasks write their event logs, unless their settings say where;
    /// `None`: wherever Spark is told to.
    pub event_logs: Option<PathBuf>,
    /// `--stop-grace`: from the polite signal to the one that kills.
    pub grace: Duration,
    /// Variables of this process that programs get too.
    pub environment: BTreeMap<String, String>,
    /// `--keep-output`: how long what a task wrote stays after its end.
    pub output_stays: Duration,
    /// `--give-up-after`: how long replicas wait for one whose folder of attempts is another, once
    /// it is gone with runs that are not over.
    pub give_up_after: Duration,
    /// Who looks at what triggers wait for outside; `None`: nobody does.
    pub watching: Option<Watching>,
}

/// Who does it, for rows and messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunNow {
    /// Which job.
    pub job_id: i64,
    /// Who asks.
    pub who: String,
    /// `job_parameters`.
    pub parameters: BTreeMap<String, String>,
    /// Parameters of the older kinds.
    pub overriding: Map<String, Value>,
    /// `only`.
    pub only: Option<Vec<String>>,
    /// `idempotency_token`.
    pub token: Option<String>,
    /// `queue.enabled`; else as the job says.
    pub queues: Option<bool>,
}

/// A run without a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submit {
    /// `run_name`, `tasks` and so on, as they were given.
    pub settings: Map<String, Value>,
    /// Who asks.
    pub who: String,
    /// `idempotency_token`.
    pub token: Option<String>,
}

/// A repair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Repair {
    /// Which run.
    pub run_id: i64,
    /// What is to run again.
    pub request: Request,
    /// Parameters that replace those of the run, for this repair alone.
    pub given: Given,
}

/// What the engine is asked to do.
#[derive(Debug, Serialize, Deserialize)]
enum Command {
    Create { settings: Map<String, Value>, who: String },
    Change { job_id: i64, who: String, change: Change },
    Delete { job_id: i64 },
    RunNow(RunNow),
    Submit(Submit),
    Repair(Repair),
    Cancel { run_id: i64 },
    CancelAll { job_id: Option<i64>, only_queued: bool },
    DeleteRun { run_id: i64 },
}

/// How a definition changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// All of it.
    Reset(Map<String, Value>),
    /// The fields that are given, after those to be removed are gone.
    Update {
        /// Fields with new values.
        new: Map<String, Value>,
        /// Fields that go.
        remove: Vec<String>,
    },
}

/// What a run-now gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The id that was made or found: of a job, a run or a repair.
    pub id: i64,
    /// `number_in_job`.
    pub number: i64,
}

/// Why something is not done.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
pub enum Refusal {
    /// There is no such job.
    #[error("Job {0} does not exist.")]
    NoJob(i64),
    /// There is no such run.
    #[error("Run {0} does not exist.")]
    NoRun(i64),
    /// The definition is none.
    #[error(transparent)]
    Definition(#[from] Invalid),
    /// The repair cannot be.
    #[error(transparent)]
    Repair(#[from] NotRepaired),
    /// A right id at the wrong moment.
    #[error("{0}")]
    State(String),
    /// A value that may not be.
    #[error("{0}")]
    Value(String),
    /// More is asked than the engine can take in.
    #[error("{MOST_COMMANDS} requests wait for the job engine; try again in a moment")]
    Busy,
    /// The database cannot be read or written.
    #[error(transparent)]
    #[serde(skip)]
    Store(#[from] store::Error),
    /// The same, told by the replica that leads.
    #[error("{0}")]
    Leader(String),
    /// No replica leads, or it did not answer in time.
    #[error("no server leads the jobs at the moment; try again in some seconds")]
    NoLeader,
    /// The engine is being stopped.
    #[error("the job engine is being stopped; try again after a restart")]
    Down,
}

/// Who waits for what becomes of a command.
enum Asker {
    /// A client of this engine.
    Here(oneshot::Sender<Result<Started, Refusal>>),
    /// One of another replica, by the number of the command.
    Elsewhere(i64),
}

enum Message {
    Command(Command, Asker),
    /// A program's place is taken, it is about to start.
    Launched {
        run_id: i64,
        epoch: u64,
    },
    /// A program runs.
    Started {
        run_id: i64,
        epoch: u64,
    },
    /// A program is over.
    Finished {
        run_id: i64,
        epoch: u64,
        finished: crate::book::Finished,
    },
    /// Whether this engine leads: answered once something is written, dropped if it leads no more.
    Leads(oneshot::Sender<()>),
    /// Somebody looked at what a trigger waits for.
    Looked(looks::Look),
}

/// The way to a running engine. Clones lead to the same one; it ends some time after the last is
/// dropped, its programs go on.
#[derive(Clone, Debug)]
pub struct Engine {
    way: Way,
    attempts: PathBuf,
    _tidied: Arc<DropGuard>,
}

#[derive(Clone, Debug)]
enum Way {
    /// There is no other engine.
    Alone(mpsc::Sender<Message>),
    Shared(Replica),
}

impl Engine {
    /// Starts an engine on what is kept, inside a tokio runtime. Runs that are not over go on: at
    /// once, or, on a database that several share, when this engine leads.
    ///
    /// # Errors
    /// When the rows cannot be read, or the folder for attempts not be made.
    pub async fn start(jobs: Jobs, mut options: Options) -> Result<Self, Refusal> {
        // Programs are marked with their folder, which has to mean the same for every process.
        options.attempts = std::path::absolute(&options.attempts).unwrap_or(options.attempts);
        let attempts = options.attempts.clone();
        for folder in [Some(&attempts), options.event_logs.as_ref()].into_iter().flatten() {
            let made = std::fs::create_dir_all(folder);
            made.map_err(|error| Refusal::State(format!("cannot make {}: {error}", folder.display())))?;
        }
        let tidied = Arc::new(tidy::tidy(&options));
        let way = match jobs.is_shared() {
            true => Way::Shared(Replica::start(jobs, options).await?),
            false => {
                let (sender, receiver) = mpsc::channel(MOST_COMMANDS);
                // The actor itself must not keep the engine alive: it holds a weak way to itself.
                let executor = executor::Executor::new(options, sender.downgrade());
                let actor = actor::Actor::restored(jobs, receiver, executor, None).await?;
                tokio::spawn(actor.run());
                Way::Alone(sender)
            }
        };
        Ok(Self { way, attempts, _tidied: tidied })
    }

    /// The folder of an attempt, with its output.
    #[must_use]
    pub fn attempt(&self, task_run_id: i64) -> PathBuf {
        attempt(&self.attempts, task_run_id)
    }

    /// Makes a job; gives its id.
    ///
    /// # Errors
    /// When the definition is none, or cannot be kept.
    pub async fn create_job(&self, settings: Map<String, Value>, who: &str) -> Result<i64, Refusal> {
        self.ask(Command::Create { settings, who: who.to_owned() }).await.map(|started| started.id)
    }

    /// Changes a job.
    ///
    /// # Errors
    /// When there is none, or what it would become is no definition.
    pub async fn change_job(&self, job_id: i64, change: Change, who: &str) -> Result<(), Refusal> {
        self.ask(Command::Change { job_id, who: who.to_owned(), change }).await.map(drop)
    }

    /// Deletes a job. Its runs stay, those that are active go on.
    ///
    /// # Errors
    /// When there is none.
    pub async fn delete_job(&self, job_id: i64) -> Result<(), Refusal> {
        self.ask(Command::Delete { job_id }).await.map(drop)
    }

    /// Runs a job.
    ///
    /// # Errors
    /// When there is none, or it cannot be run like this.
    pub async fn run_now(&self, run: RunNow) -> Result<Started, Refusal> {
        self.ask(Command::RunNow(run)).await
    }

    /// Runs something once; gives the id of the run.
    ///
    /// # Errors
    /// When it is no definition.
    pub async fn submit(&self, submit: Submit) -> Result<i64, Refusal> {
        self.ask(Command::Submit(submit)).await.map(|started| started.id)
    }

    /// Runs part of a run again; gives the id of the repair.
    ///
    /// # Errors
    /// When there is no such run, or the repair cannot be.
    pub async fn repair(&self, repair: Repair) -> Result<i64, Refusal> {
        self.ask(Command::Repair(repair)).await.map(|started| started.id)
    }

    /// Cancels a run, or one task run. One that is over is left alone.
    ///
    /// # Errors
    /// When there is none.
    pub async fn cancel(&self, run_id: i64) -> Result<(), Refusal> {
        self.ask(Command::Cancel { run_id }).await.map(drop)
    }

    /// Cancels the runs of a job or of all, or those of them that wait.
    ///
    /// # Errors
    /// When there is no such job.
    pub async fn cancel_all(&self, job_id: Option<i64>, only_queued: bool) -> Result<(), Refusal> {
        self.ask(Command::CancelAll { job_id, only_queued }).await.map(drop)
    }

    /// Deletes a run that is over.
    ///
    /// # Errors
    /// When there is none, or it is active.
    pub async fn delete_run(&self, run_id: i64) -> Result<(), Refusal> {
        self.ask(Command::DeleteRun { run_id }).await.map(drop)
    }

    async fn ask(&self, command: Command) -> Result<Started, Refusal> {
        match &self.way {
            Way::Alone(actor) => ask(actor, command).await,
            Way::Shared(replica) => replica.ask(command).await,
        }
    }
}

async fn ask(actor: &mpsc::Sender<Message>, command: Command) -> Result<Started, Refusal> {
    let (reply, answer) = oneshot::channel();
    let sent = actor.try_send(Message::Command(command, Asker::Here(reply)));
    sent.map_err(|error| match error {
        mpsc::error::TrySendError::Full(_) => Refusal::Busy,
        mpsc::error::TrySendError::Closed(_) => Refusal::Down,
    })?;
    answer.await.unwrap_or(Err(Refusal::Down))
}

fn attempt(attempts: &Path, task_run_id: i64) -> PathBuf {
    attempts.join(task_run_id.to_string())
}
