//! Engines that share a database. One leads; what the others are asked goes through the database to
//! it, so that they need no way to one another.

use super::actor::Actor;
use super::executor::{Executor, blocking};
use super::{Asker, Command, MOST_COMMANDS, Message, Options, Refusal, Started};
use crate::local::{self, Handle, Observed};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;
use store::jobs::{Jobs, Lease, RENEWED, Site};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, interval, sleep, timeout};

/// How often a replica looks whether the lead is free.
const LOOKED: Duration = Duration::from_millis(500);
/// How long a client waits for a leader's answer: longer than it takes to have another leader.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest wait between two looks for commands and answers.
const UNRUNG: Duration = Duration::from_secs(1);
/// How often old commands are removed.
const TIDIED: Duration = Duration::from_secs(60);

/// The way to whoever leads.
#[derive(Clone, Debug)]
pub(super) struct Replica {
    jobs: Jobs,
    /// The actor, while this replica leads.
    leading: watch::Receiver<Option<mpsc::Sender<Message>>>,
    /// Changes when there is a command or an answer.
    bell: watch::Receiver<()>,
}

impl Replica {
    /// Starts a replica, which leads once nobody else does.
    pub async fn start(jobs: Jobs, options: Options) -> Result<Self, Refusal> {
        let attempts = options.attempts.display();
        let id = site_id(&options.attempts);
        let id = id.map_err(|error| Refusal::State(format!("cannot keep a file in {attempts}: {error}")))?;
        let site = Site { id, name: format!("{} of {}", attempts, host()), patience: options.give_up_after };
        let (ringer, bell) = watch::channel(());
        let (leader, leading) = watch::channel(None);
        let heard = jobs.bell().await?;
        tokio::spawn(ring(heard, ringer));
        let standing = Standing { jobs: jobs.clone(), options, site, bell: bell.clone() };
        tokio::spawn(standing.by(leader));
        Ok(Self { jobs, leading, bell })
    }

    /// Has a command done, once.
    pub async fn ask(&self, command: Command) -> Result<Started, Refusal> {
        let here = self.leading.borrow().clone();
        match here {
            Some(actor) => super::ask(&actor, command).await.map_err(|refusal| match refusal {
                Refusal::Down => Refusal::NoLeader,
                other => other,
            }),
            None => self.ask_leader(&command).await,
        }
    }

    async fn ask_leader(&self, command: &Command) -> Result<Started, Refusal> {
        let text = serde_json::to_string(command).map_err(|error| Refusal::Leader(error.to_string()))?;
        let id = self.jobs.ask(&text).await?;
        let mut bell = self.bell.clone();
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            bell.mark_unchanged();
            // A database that does not answer may do so in a moment: the command stands there.
            if let Ok(Some(answer)) = self.jobs.answer(id).await {
                return heard(&answer);
            }
            let _ = timeout(UNRUNG, bell.changed()).await;
        }
        if self.jobs.withdraw(id).await? {
            return Err(Refusal::NoLeader);
        }
        match self.jobs.answer(id).await? {
            Some(answer) => heard(&answer),
            None => Err(Refusal::NoLeader),
        }
    }
}

/// An answer as it stands in the database.
pub(super) fn told(done: &Result<Started, Refusal>) -> String {
    let told = serde_json::to_string(done);
    // What went wrong with the database has a form for this process only.
    told.or_else(|_| match done {
        Err(refusal) => serde_json::to_string(&Err::<Started, _>(Refusal::Leader(refusal.to_string()))),
        Ok(_) => Ok(String::new()),
    })
    .unwrap_or_default()
}

fn heard(answer: &str) -> Result<Started, Refusal> {
    let heard = serde_json::from_str(answer);
    heard.unwrap_or_else(|error| Err(Refusal::Leader(format!("the leader's answer cannot be read: {error}"))))
}

async fn ring(mut bell: store::jobs::Bell, ringer: watch::Sender<()>) {
    loop {
        tokio::select! {
            () = ringer.closed() => return,
            () = bell.rung() => { ringer.send_replace(()); }
        }
    }
}

/// A replica that waits for the lead.
struct Standing {
    jobs: Jobs,
    options: Options,
    site: Site,
    bell: watch::Receiver<()>,
}

impl Standing {
    /// Until nobody has a way to the replica any more.
    async fn by(self, leader: watch::Sender<Option<mpsc::Sender<Message>>>) {
        self.stop_strays().await;
        while !leader.is_closed() {
            match self.jobs.lead(&self.site).await {
                Ok(Some(lease)) => {
                    self.lead(lease, &leader).await;
                    self.stop_strays().await;
                }
                Ok(None) => {}
                Err(error) => tracing::error!(%error, "nobody knows who leads the jobs; looking again"),
            }
            tokio::select! {
                () = leader.closed() => return,
                () = sleep(LOOKED) => {}
            }
        }
    }

    /// Leads until the lead is lost, or nobody has a way to the replica any more.
    async fn lead(&self, mut lease: Lease, leader: &watch::Sender<Option<mpsc::Sender<Message>>>) {
        tracing::info!(epoch = lease.epoch(), "this server leads the jobs");
        let (sender, receiver) = mpsc::channel(MOST_COMMANDS);
        let executor = Executor::new(self.options.clone(), sender.downgrade());
        let (jobs, given_up) = (lease.jobs(), lease.given_up().map(str::to_owned));
        let taking = tokio::spawn(take(lease.jobs(), self.bell.clone(), sender.clone()));
        leader.send_replace(Some(sender));
        let with = executor.clone();
        let mut acting = tokio::spawn(async move {
            match Actor::restored(jobs, receiver, with, given_up.as_deref()).await {
                Ok(actor) => actor.run().await,
                Err(error) => tracing::error!(%error, "the runs cannot be taken up; another try follows"),
            }
        });
        let mut renewals = interval(RENEWED);
        loop {
            tokio::select! {
                _ = &mut acting => break,
                () = leader.closed() => break,
                _ = renewals.tick() => if let Err(error) = lease.renew().await {
                    tracing::warn!(%error, "this server gives up the lead");
                    break;
                },
            }
        }
        leader.send_replace(None);
        taking.abort();
        acting.abort();
        executor.abandon();
    }

    /// Stops programs of this site whose task runs are over: another site gave them up meanwhile.
    async fn stop_strays(&self) {
        let attempts = self.options.attempts.clone();
        let found = blocking(move || local::unfinished(&attempts)).await.unwrap_or_else(|error| {
            tracing::error!(%error, "attempts that other replicas gave up are not looked for");
            Vec::new()
        });
        for (task_run_id, handle) in found {
            let Ok(row) = self.jobs.task_run(task_run_id).await else { continue };
            if row.is_some_and(|row| row.end_ms.is_none()) {
                continue;
            }
            let grace = self.options.grace;
            match blocking(move || stop_stray(&handle, grace)).await {
                Ok(true) => tracing::warn!(task_run_id, "a program was stopped that another replica had given up"),
                Ok(false) => {}
                Err(error) => tracing::error!(task_run_id, %error, "a program that was given up may still run"),
            }
        }
    }
}

/// Whether there was anything to stop.
fn stop_stray(handle: &Handle, grace: Duration) -> io::Result<bool> {
    match local::observe(handle)? {
        Observed::Alive(_) => local::stop(handle, grace).map(|_| true),
        _ => Ok(false),
    }
}

/// Hands the commands of other replicas to the actor of this one.
async fn take(jobs: Jobs, mut bell: watch::Receiver<()>, actor: mpsc::Sender<Message>) {
    let mut tidied = None::<Instant>;
    loop {
        bell.mark_unchanged();
        match jobs.asked().await {
            Ok(commands) => {
                for (id, text) in commands {
                    match serde_json::from_str(&text) {
                        Ok(command) => {
                            if actor.send(Message::Command(command, Asker::Elsewhere(id))).await.is_err() {
                                return;
                            }
                        }
                        Err(error) => tracing::error!(%error, "a command of another replica cannot be read"),
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "commands of other replicas cannot be read; trying again"),
        }
        if tidied.is_none_or(|at| at.elapsed() > TIDIED) {
            tidied = Some(Instant::now());
            if let Err(error) = jobs.tidy_commands().await {
                tracing::warn!(%error, "old commands stay");
            }
        }
        let _ = timeout(UNRUNG, bell.changed()).await;
    }
}

/// Names the folder of attempts, for as long as it is there.
fn site_id(attempts: &Path) -> io::Result<String> {
    let path = attempts.join("site");
    match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        read => return read,
    }
    let id = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    let draft = attempts.join(format!("site.{}", std::process::id()));
    std::fs::write(&draft, id.trim())?;
    // Whoever is first names it.
    let linked = std::fs::hard_link(&draft, &path);
    std::fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => std::fs::read_to_string(&path),
    }
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "an unknown machine".to_owned(), |name| name.trim().to_owned())
}
