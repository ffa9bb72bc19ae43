//! The task that holds the book.

mod children;
mod events;
mod triggers;

use super::executor::{Executor, lost};
use super::looks::Targets;
use super::{Asker, Change as Definition, Command, Message, Refusal, Repair, RunNow, Started, Submit, replica};
use crate::book::{About, Act, Book, Ids, Kept, Moment, NewRun, Parent};
use crate::continuous::Continuous;
use crate::local::now_ms;
use crate::rule::Stop;
use crate::settings::{self, Settings};
use crate::states::{Code, End};
use crate::step::Input;
use crate::trigger::Trigger;
use crate::trigger::completion::Completed;
use events::Events;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};
use store::jobs::{Change, Job, JobFilter, Jobs, Run as RunRow, RunState, TaskRun};
use tokio::sync::{mpsc, oneshot, watch};

/// Ids that are reserved at once.
const MANY_IDS: i64 = 1 << 20;
/// Ids that handling one message may take: tasks of a run, items that start at once.
const IDS_A_MESSAGE: i64 = 1 << 17;
/// Messages whose changes are written together.
const MOST_TOGETHER: usize = 256;
/// Longest token of a caller, characters.
const LONGEST_TOKEN: usize = 64;
/// Longest wait between two looks at the clock.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// How long it may take until the rows tell that a program is about to start, or runs: nobody waits
/// for that, and a short one is over by then, so that all of it is written at once.
const PROGRESS_WAITS: Duration = Duration::from_millis(20);
/// Wait after the database could not be written.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

pub(super) struct Actor {
    jobs: Jobs,
    receiver: mpsc::Receiver<Message>,
    executor: Executor,
    book: Book,
    ids: Ids,
    /// Of the book and of definitions, to be written.
    changes: Vec<Change>,
    replies: Vec<(Asker, Result<Started, Refusal>)>,
    /// What acts of the last batch lead to.
    later: VecDeque<Act>,
    /// By when what has changed is to be written.
    due: Option<Instant>,
    /// What must not be handled together with what was before.
    held: Option<Message>,
    /// Attempts whose folders go once their runs are gone.
    forgotten: Vec<i64>,
    /// Those who ask whether this engine leads.
    confirmed: Vec<oneshot::Sender<()>>,
    /// Tokens of this batch.
    tokens: HashMap<(i64, String), Started>,
    /// Last `number_in_job` of jobs.
    numbers: HashMap<i64, i64>,
    /// Triggers that are on, by job.
    triggers: HashMap<i64, Trigger>,
    /// How continuous jobs stand.
    continuous: HashMap<i64, Continuous>,
    /// When they start a run next, and the job.
    planned: BTreeSet<(i64, i64)>,
    /// Triggers that wait for something to happen.
    events: Events,
    /// To be done besides those of the book.
    acts: Vec<Act>,
}

impl Actor {
    /// An actor with all runs that are not over. `given_up`: their programs were started at this
    /// site, which is gone.
    pub async fn restored(
        jobs: Jobs,
        receiver: mpsc::Receiver<Message>,
        executor: Executor,
        given_up: Option<&str>,
    ) -> Result<Self, Refusal> {
        let (targets, to_look_at) = watch::channel(Targets::default());
        let mut actor = Self {
            jobs,
            receiver,
            executor,
            book: Book::default(),
            ids: Ids::default(),
            changes: Vec::new(),
            replies: Vec::new(),
            later: VecDeque::new(),
            due: None,
            held: None,
            forgotten: Vec::new(),
            confirmed: Vec::new(),
            tokens: HashMap::new(),
            numbers: HashMap::new(),
            triggers: HashMap::new(),
            continuous: HashMap::new(),
            planned: BTreeSet::new(),
            events: Events::new(targets),
            acts: Vec::new(),
        };
        let states: HashMap<i64, String> = actor.jobs.trigger_states(None).await?.into_iter().collect();
        for job in actor.jobs.jobs(&JobFilter::default(), None, u32::MAX).await? {
            let settings = serde_json::from_str(&job.settings).unwrap_or_default();
            actor.events.known(job.job_id, &settings);
            let state = states.get(&job.job_id).map(String::as_str);
            actor.plan(job.job_id, &settings, job.planned_ms.unwrap_or(job.changed_ms), state);
        }
        for run in actor.jobs.open_runs().await? {
            actor.reserve_ids().await;
            actor.resume(run).await?;
        }
        if let Some(site) = given_up {
            actor.give_up(site);
        }
        for job_id in actor.book.jobs() {
            // What the job allows now; its runs know what it allowed when they came to be.
            let now = actor.job(job_id).await.ok().and_then(|(_, json)| Settings::read(&json).ok());
            let (book, mut at) = actor.now();
            book.allow(job_id, now.map(|settings| settings.concurrent_runs), &mut at);
        }
        actor.executor.look_on(to_look_at);
        Ok(actor)
    }

    async fn resume(&mut self, run: RunRow) -> Result<(), Refusal> {
        let run_id = run.run_id;
        let state = run.state.clone();
        let kept = self.kept(run).await?;
        let open: Vec<TaskRun> = kept.task_runs.iter().filter(|task| task.end_ms.is_none()).cloned().collect();
        let (book, mut at) = self.now();
        if let Err(error) = book.resume(kept, &mut at) {
            tracing::error!(run_id, %error, "a run cannot be taken up again; it ends with an internal error");
            self.changes.push(Change::RunState(run_id, broken(state, &error.to_string()), None));
            self.changes.extend(open.into_iter().map(|task| Change::TaskRun(broken_task(task))));
        }
        Ok(())
    }

    /// The book, and the moment that something happens at.
    fn now(&mut self) -> (&mut Book, Moment<'_>) {
        (&mut self.book, Moment { now_ms: now_ms(), ids: &mut self.ids })
    }

    async fn kept(&self, run: RunRow) -> Result<Kept, Refusal> {
        let cores = self.jobs.cores(run.run_id).await?;
        let task_runs = self.jobs.task_runs(run.run_id).await?;
        Ok(Kept { run, cores, task_runs })
    }

    /// What was taken up again cannot be: it was started at this site.
    fn give_up(&mut self, site: &str) {
        let why = format!("{site}, where the task ran, is gone; look there whether its program still runs");
        let (changes, acts) = self.book.take();
        self.changes.extend(changes);
        for act in acts {
            match act {
                Act::Launch { run_id, epoch, .. } => {
                    let (book, mut at) = self.now();
                    book.finished(run_id, epoch, lost(why.clone()), &mut at);
                }
                other => self.acts.push(other),
            }
        }
    }

    /// Until nobody has a way to it any more, or another replica leads.
    pub async fn run(mut self) {
        if let Err(error) = self.work().await {
            tracing::warn!(%error, "this server leads the jobs no more");
        }
    }

    async fn work(&mut self) -> Result<(), store::Error> {
        self.commit().await?;
        loop {
            let message = match self.later.is_empty() {
                true => self.next().await,
                false => self.held.take().or_else(|| self.receiver.try_recv().ok()),
            };
            if message.is_none() && self.later.is_empty() && self.receiver.is_closed() && self.receiver.is_empty() {
                return self.commit().await;
            }
            // What is due by what is written.
            self.tick().await;
            for act in std::mem::take(&mut self.later) {
                self.follow(act).await;
            }
            let mut may_wait = false;
            if let Some(message) = message {
                if needs_what_is_written(&message) {
                    self.commit().await?;
                }
                may_wait = self.batch(message).await;
            }
            let due = *self.due.get_or_insert_with(|| Instant::now() + PROGRESS_WAITS);
            if !may_wait || Instant::now() >= due {
                self.commit().await?;
            }
        }
    }

    /// The next message; `None`: time has come, or nobody is left.
    async fn next(&mut self) -> Option<Message> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        let planned = self.planned.first().map(|(at, _)| *at);
        let wake_ms = self.book.wake_ms().into_iter().chain(planned).min();
        let wait = wake_ms.map(|at| u64::try_from(at - now_ms()).unwrap_or_default());
        let wait = wait.map_or(LONGEST_SLEEP, Duration::from_millis).min(LONGEST_SLEEP);
        let wait = self.due.map_or(wait, |due| wait.min(due.saturating_duration_since(Instant::now())));
        tokio::time::timeout(wait, self.receiver.recv()).await.ok().flatten()
    }

    async fn tick(&mut self) {
        self.reserve_ids().await;
        let now_ms = now_ms();
        let (book, mut at) = self.now();
        book.tick(&mut at);
        while let Some(&(at_ms, job_id)) = self.planned.first().filter(|(at_ms, _)| *at_ms <= now_ms) {
            self.planned.remove(&(at_ms, job_id));
            self.run_planned(job_id, now_ms).await;
        }
    }

    /// Handles a message, and those behind it that may be written together with it. Whether all of
    /// them may be written a little later.
    async fn batch(&mut self, first: Message) -> bool {
        let mut next = Some(first);
        let mut may_wait = true;
        for handled in 0..MOST_TOGETHER {
            let Some(message) = next.take() else { break };
            let alone = needs_what_is_written(&message);
            if alone && handled > 0 {
                self.held = Some(message);
                break;
            }
            may_wait &= matches!(message, Message::Launched { .. } | Message::Started { .. });
            self.handle(message).await;
            if alone {
                return false;
            }
            next = self.receiver.try_recv().ok();
        }
        // The last one of a full batch.
        if let Some(message) = next {
            self.held = Some(message);
        }
        may_wait
    }

    async fn handle(&mut self, message: Message) {
        self.reserve_ids().await;
        let (run_id, input) = match message {
            Message::Command(command, reply) => {
                let done = self.command(command).await;
                return self.replies.push((reply, done));
            }
            Message::Finished { run_id, epoch, finished } => {
                let (book, mut at) = self.now();
                return book.finished(run_id, epoch, finished, &mut at);
            }
            Message::Leads(asker) => return self.confirmed.push(asker),
            Message::Looked(look) => return self.looked(look).await,
            Message::Launched { run_id, epoch } => (run_id, Input::Launched(epoch)),
            Message::Started { run_id, epoch } => (run_id, Input::Started(epoch)),
        };
        let (book, mut at) = self.now();
        book.input(run_id, input, &mut at);
    }

    async fn command(&mut self, command: Command) -> Result<Started, Refusal> {
        match command {
            Command::Create { settings, who } => self.create(settings, who).await,
            Command::Change { job_id, who, change } => self.change(job_id, who, change).await,
            Command::Delete { job_id } => {
                self.job(job_id).await?;
                self.events.known(job_id, &Value::Null);
                self.plan(job_id, &Value::Null, 0, None);
                self.changes.push(Change::TriggerState(job_id, None));
                self.changes.push(Change::JobDeleted(job_id, now_ms()));
                Ok(Started::default())
            }
            Command::RunNow(run) if self.continuous.contains_key(&run.job_id) => {
                self.run_now(run, Origin::Restart).await
            }
            Command::RunNow(run) => self.run_now(run, Origin::Person).await,
            Command::Submit(submit) => self.submit(submit).await,
            Command::Repair(repair) => self.repair(repair).await,
            Command::Cancel { run_id } => self.cancel(run_id).await,
            Command::CancelAll { job_id, only_queued } => self.cancel_all(job_id, only_queued).await,
            Command::DeleteRun { run_id } => self.delete_run(run_id).await,
        }
    }

    async fn create(&mut self, settings: Map<String, Value>, who: String) -> Result<Started, Refusal> {
        let mut settings = Value::Object(settings);
        settings::numbers(&mut settings);
        let read = Settings::read(&settings)?;
        let job_id = self.ids.take();
        self.monitored_are_there(job_id, &settings, &Value::Null).await?;
        self.events.lead(job_id, &settings, &Value::Null)?;
        let now_ms = now_ms();
        self.changes.push(Change::Job(Job {
            job_id,
            name: read.name,
            creator: who.clone(),
            created_ms: now_ms,
            changed_ms: now_ms,
            changed_by: who,
            version: 1,
            settings: settings.to_string(),
            planned_ms: Some(now_ms),
        }));
        self.plan(job_id, &settings, now_ms, None);
        Ok(Started { id: job_id, number: 0 })
    }

    async fn change(&mut self, job_id: i64, who: String, change: Definition) -> Result<Started, Refusal> {
        let (job, old) = self.job(job_id).await?;
        let before = old.clone();
        let settings = match change {
            Definition::Reset(new) => new,
            Definition::Update { new, remove } => {
                let Value::Object(mut settings) = old else { return Err(Refusal::NoJob(job_id)) };
                settings::remove(&mut settings, &remove)?;
                settings::merge(&mut settings, new);
                settings
            }
        };
        let mut settings = Value::Object(settings);
        settings::numbers(&mut settings);
        let read = Settings::read(&settings)?;
        self.monitored_are_there(job_id, &settings, &before).await?;
        self.events.lead(job_id, &settings, &before)?;
        let now_ms = now_ms();
        // A trigger that stays as it is goes on from where it was.
        let parts = |settings: &Value| ["schedule", "trigger", "continuous"].map(|part| settings.get(part).cloned());
        let is_same = parts(&settings) == parts(&before);
        let planned_ms = job.planned_ms.filter(|_| is_same).unwrap_or(now_ms);
        self.plan_anew(job_id, &settings, &before, planned_ms);
        let (name, version, settings) = (read.name, job.version + 1, settings.to_string());
        let planned_ms = Some(planned_ms);
        let job = Job { name, version, settings, changed_ms: now_ms, changed_by: who, planned_ms, ..job };
        self.changes.push(Change::Job(job));
        let (book, mut at) = self.now();
        book.allow(job_id, Some(read.concurrent_runs), &mut at);
        Ok(Started { id: job_id, number: 0 })
    }

    async fn job(&self, job_id: i64) -> Result<(Job, Value), Refusal> {
        let job = self.jobs.job(job_id).await?.ok_or(Refusal::NoJob(job_id))?;
        let settings = serde_json::from_str(&job.settings).unwrap_or_default();
        Ok((job, settings))
    }

    async fn run_now(&mut self, run: RunNow, origin: Origin) -> Result<Started, Refusal> {
        if let Some(known) = self.known_token(run.job_id, run.token.as_deref()).await? {
            return Ok(known);
        }
        let (job, json) = self.job(run.job_id).await?;
        let settings = Settings::read(&json)?;
        if let Some(only) = &run.only {
            settings.only(only)?;
        }
        let number = self.next_number(run.job_id).await?;
        if let Origin::Restart = origin {
            self.restart(run.job_id);
        }
        let about = About {
            settings: json,
            parameters: run.parameters,
            overriding: run.overriding,
            only: run.only,
            parent: origin.parent(),
            completed: origin.completed().to_vec(),
        };
        let new = NewRun {
            job_id: run.job_id,
            number,
            run_type: if origin.parent().is_some() { "WORKFLOW_RUN" } else { "JOB_RUN" },
            name: job.name,
            // What nobody asks for runs for whoever made the job.
            creator: if run.who.is_empty() { job.creator } else { run.who },
            cause: origin.cause(),
            about,
            settings,
            // A restart waits for the end of what it stops.
            queues: if let Origin::Restart = origin { Some(true) } else { run.queues },
        };
        let (book, mut at) = self.now();
        let started = Started { id: book.start(new, &mut at), number };
        self.note_token(run.job_id, run.token, started);
        Ok(started)
    }

    async fn submit(&mut self, submit: Submit) -> Result<Started, Refusal> {
        if let Some(known) = self.known_token(0, submit.token.as_deref()).await? {
            return Ok(known);
        }
        let mut json = submit.settings;
        if let Some(name) = json.remove("run_name") {
            json.insert("name".to_owned(), name);
        }
        let mut json = Value::Object(json);
        settings::numbers(&mut json);
        let settings = Settings::read(&json)?;
        let new = NewRun {
            job_id: self.ids.take(),
            number: 1,
            run_type: "SUBMIT_RUN",
            name: settings.name.clone(),
            creator: submit.who,
            cause: "ONE_TIME",
            about: About { settings: json, ..About::default() },
            settings,
            queues: None,
        };
        let (book, mut at) = self.now();
        let started = Started { id: book.start(new, &mut at), number: 1 };
        self.note_token(0, submit.token, started);
        Ok(started)
    }

    async fn known_token(&self, job_id: i64, token: Option<&str>) -> Result<Option<Started>, Refusal> {
        let Some(token) = token else { return Ok(None) };
        if token.chars().count() > LONGEST_TOKEN {
            return Err(Refusal::Value(format!("idempotency_token has more than {LONGEST_TOKEN} characters")));
        }
        if let Some(known) = self.tokens.get(&(job_id, token.to_owned())) {
            return Ok(Some(*known));
        }
        let Some(run_id) = self.jobs.run_of_token(job_id, token).await? else { return Ok(None) };
        let number = self.jobs.run(run_id).await?.map_or(0, |run| run.number);
        Ok(Some(Started { id: run_id, number }))
    }

    fn note_token(&mut self, job_id: i64, token: Option<String>, started: Started) {
        if let Some(token) = token {
            self.changes.push(Change::Token(job_id, token.clone(), started.id));
            self.tokens.insert((job_id, token), started);
        }
    }

    async fn next_number(&mut self, job_id: i64) -> Result<i64, Refusal> {
        let last = match self.numbers.get(&job_id) {
            Some(last) => *last,
            None => self.jobs.last_number(job_id).await?,
        };
        self.numbers.insert(job_id, last + 1);
        Ok(last + 1)
    }

    async fn repair(&mut self, repair: Repair) -> Result<Started, Refusal> {
        let run = self.jobs.run(repair.run_id).await?.ok_or(Refusal::NoRun(repair.run_id))?;
        let job_id = run.job_id;
        let kept = self.kept(run).await?;
        let current = match self.job(job_id).await {
            Ok((_, json)) => Some((Settings::read(&json)?, json)),
            // Deleted, or submitted without one.
            Err(Refusal::NoJob(_)) => None,
            Err(refusal) => return Err(refusal),
        };
        let (book, mut at) = self.now();
        let id = book.repair(kept, current, &repair.request, repair.given, &mut at)?;
        Ok(Started { id, number: 0 })
    }

    async fn cancel(&mut self, run_id: i64) -> Result<Started, Refusal> {
        if self.book.is_open(run_id) {
            let (book, mut at) = self.now();
            book.stop(run_id, Stop::User, &mut at);
            return Ok(Started::default());
        }
        if self.jobs.run(run_id).await?.is_some() {
            return Ok(Started::default());
        }
        let task = self.jobs.task_run(run_id).await?.ok_or(Refusal::NoRun(run_id))?;
        if task.item.is_some() && task.end_ms.is_none() {
            let why = "an item of a for-each cannot be cancelled alone; cancel its task or its run";
            return Err(Refusal::State(why.to_owned()));
        }
        let (book, mut at) = self.now();
        book.stop_task(task.run_id, run_id, &mut at);
        Ok(Started::default())
    }

    async fn cancel_all(&mut self, job_id: Option<i64>, only_queued: bool) -> Result<Started, Refusal> {
        if let Some(job_id) = job_id {
            self.job(job_id).await?;
        }
        for run_id in self.book.open(job_id, only_queued) {
            self.reserve_ids().await;
            let (book, mut at) = self.now();
            book.stop(run_id, Stop::User, &mut at);
        }
        Ok(Started::default())
    }

    async fn delete_run(&mut self, run_id: i64) -> Result<Started, Refusal> {
        if self.book.is_open(run_id) {
            return Err(Refusal::State(format!("run {run_id} is still active; cancel it, then delete it")));
        }
        self.jobs.run(run_id).await?.ok_or(Refusal::NoRun(run_id))?;
        let attempts: Vec<i64> = self.jobs.task_runs(run_id).await?.iter().map(|task| task.task_run_id).collect();
        self.changes.push(Change::RunDeleted(run_id));
        self.forgotten.extend(attempts);
        Ok(Started::default())
    }

    /// What an act leads to that concerns the book itself.
    async fn follow(&mut self, act: Act) {
        self.reserve_ids().await;
        match act {
            Act::RunJob { parent, job_id, parameters } => self.run_child(parent, job_id, parameters).await,
            Act::Over { job_id, run_id, end, started_ms, .. } => self.go_on(job_id, run_id, end, started_ms),
            Act::StopRun(run_id) => {
                let (book, mut at) = self.now();
                book.stop(run_id, Stop::Engine, &mut at);
            }
            _ => {}
        }
    }

    async fn reserve_ids(&mut self) {
        while self.ids.left() < IDS_A_MESSAGE {
            match self.jobs.reserve_ids(MANY_IDS).await {
                Ok(first) => self.ids = Ids::new(first, MANY_IDS),
                Err(error) => {
                    tracing::error!(%error, "no ids can be reserved; trying again");
                    tokio::time::sleep(AFTER_FAILURE).await;
                }
            }
        }
    }

    /// Writes what has changed, then answers and acts. What cannot be written now is written later:
    /// nobody is told before, and nothing starts. An error: somebody else writes now.
    async fn commit(&mut self) -> Result<(), store::Error> {
        self.due = None;
        let (changes, acts) = self.settled().await;
        let mut all = std::mem::take(&mut self.changes);
        // The run before the token that names it.
        let tokens = all.extract_if(.., |change| matches!(change, Change::Token(..))).collect::<Vec<_>>();
        all.extend(changes);
        all.extend(tokens);
        all.extend(self.replies.iter().filter_map(|(asker, done)| match asker {
            Asker::Elsewhere(id) => Some(Change::Answer(*id, replica::told(done))),
            Asker::Here(_) => None,
        }));
        // That nothing could be written would not be known otherwise.
        if !all.is_empty() || !self.confirmed.is_empty() {
            while let Err(error) = self.jobs.write(&all).await {
                if matches!(error, store::Error::Deposed { .. }) {
                    return Err(error);
                }
                tracing::error!(%error, "what became of the runs cannot be written; trying again");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
        self.tokens.clear();
        for asker in self.confirmed.drain(..) {
            // Who is gone does not need to know.
            let _ = asker.send(());
        }
        if !self.forgotten.is_empty() {
            self.executor.forget(std::mem::take(&mut self.forgotten));
        }
        for (asker, done) in self.replies.drain(..) {
            if let Asker::Here(reply) = asker {
                // A client that is gone needs no answer.
                let _ = reply.send(done);
            }
        }
        for act in acts {
            match act {
                Act::Launch { run_id, task_run_id, epoch, program } => {
                    self.executor.launch(run_id, task_run_id, epoch, program);
                }
                Act::Stop { run_id, epoch } => self.executor.stop(run_id, epoch),
                Act::Warn(run_id) => tracing::warn!(run_id, "a run takes longer than its job expects"),
                Act::Skipped { .. } => {}
                Act::Over { job_id, .. } if !self.continuous.contains_key(&job_id) => {}
                Act::RunJob { .. } | Act::StopRun(_) | Act::Over { .. } => self.later.push_back(act),
            }
        }
        Ok(())
    }
}

/// Who starts a run of a job.
#[derive(Clone)]
enum Origin {
    Person,
    Trigger,
    /// Something has changed outside: with its `trigger`.
    Change(&'static str),
    /// Runs of other jobs are over.
    Jobs(Vec<Completed>),
    Continuous,
    Restart,
    Task(Parent),
}

impl Origin {
    /// `trigger` of the run.
    fn cause(&self) -> &'static str {
        match self {
            Self::Person => "ONE_TIME",
            Self::Trigger => "PERIODIC",
            Self::Change(cause) => cause,
            Self::Jobs(_) => "JOB_COMPLETION",
            Self::Continuous => "CONTINUOUS",
            Self::Restart => "CONTINUOUS_RESTART",
            Self::Task(_) => "RUN_JOB_TASK",
        }
    }

    fn parent(&self) -> Option<Parent> {
        match self {
            Self::Task(parent) => Some(*parent),
            _ => None,
        }
    }

    fn completed(&self) -> &[Completed] {
        match self {
            Self::Jobs(completed) => completed,
            _ => &[],
        }
    }
}

/// Whether a message is about rows that what came before it may change.
fn needs_what_is_written(message: &Message) -> bool {
    let Message::Command(command, _) = message else { return false };
    !matches!(command, Command::RunNow(_) | Command::Submit(_) | Command::Cancel { .. } | Command::CancelAll { .. })
}

/// A task of a run whose rows make none.
fn broken_task(task: TaskRun) -> TaskRun {
    let end = End::internal_error(Code::InternalError);
    TaskRun {
        life_cycle: end.life_cycle.word().to_owned(),
        result: end.outcome.map(|outcome| outcome.word().to_owned()),
        code: Some(end.code.word().to_owned()),
        end_ms: Some(now_ms()),
        work: None,
        ..task
    }
}

/// A run whose rows make none.
fn broken(state: RunState, why: &str) -> RunState {
    let end = End::internal_error(Code::InternalError);
    RunState {
        life_cycle: end.life_cycle.word().to_owned(),
        result: end.outcome.map(|outcome| outcome.word().to_owned()),
        code: Some(end.code.word().to_owned()),
        message: why.to_owned(),
        end_ms: Some(now_ms()),
        ..state
    }
}
