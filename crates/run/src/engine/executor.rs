//! Programs of tasks: started, waited for and stopped, each by a task of its own.

use super::looks::{self, Targets};
use super::{Message, Options, attempt, program, trouble};
use crate::book::{Finished, Program};
use crate::local::{self, ForkServer, Handle, How, Observed, Process, logs};
use crate::states::{Code, End};
use crate::step::Epoch;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// How much of the end of its messages is looked through for what went wrong, bytes.
const LOOKED_THROUGH: u64 = 256 << 10;
/// How long a system that refuses a start for want of processes or memory is left alone.
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// How long a start may take to show.
const SLOWEST_START: Duration = Duration::from_secs(60);
/// How often a start is tried that the system refuses.
const STARTS: u32 = 5;

type Live = Arc<Mutex<HashMap<(i64, Epoch), CancellationToken>>>;

#[derive(Clone, Debug)]
pub(super) struct Executor {
    options: Arc<Options>,
    shims: Arc<ForkServer>,
    sender: mpsc::WeakSender<Message>,
    slots: Arc<Semaphore>,
    live: Live,
    abandoned: CancellationToken,
}

impl Executor {
    pub fn new(options: Options, sender: mpsc::WeakSender<Message>) -> Self {
        let slots = Arc::new(Semaphore::new(options.slots.max(1)));
        let abandoned = CancellationToken::new();
        let shims = Arc::new(ForkServer::new(options.shim.clone()));
        Self { options: Arc::new(options), shims, sender, slots, live: Live::default(), abandoned }
    }

    /// Lets go of all programs: they go on, and nothing is started any more.
    pub fn abandon(&self) {
        self.abandoned.cancel();
    }

    /// Starts a program, or takes it up where it runs.
    pub fn launch(&self, run_id: i64, task_run_id: i64, epoch: Epoch, program: Box<Program>) {
        let stop = CancellationToken::new();
        self.live.lock().unwrap_or_else(PoisonError::into_inner).insert((run_id, epoch), stop.clone());
        let dir = attempt(&self.options.attempts, task_run_id);
        let piece = Piece { run_id, handle: Handle { dir, epoch }, program, stop, executor: self.clone() };
        tokio::spawn(self.abandoned.clone().run_until_cancelled_owned(piece.see_through()));
    }

    /// Begins to look at what triggers wait for, as long as somebody says what that is.
    pub fn look_on(&self, targets: watch::Receiver<Targets>) {
        if let Some(watching) = self.options.watching.clone() {
            let looking = looks::look_on(watching, targets, self.sender.clone());
            tokio::spawn(self.abandoned.clone().run_until_cancelled_owned(looking));
        }
    }

    /// Asks a program to end; one that waits for its place does not start.
    pub fn stop(&self, run_id: i64, epoch: Epoch) {
        if let Some(stop) = self.live.lock().unwrap_or_else(PoisonError::into_inner).get(&(run_id, epoch)) {
            stop.cancel();
        }
    }

    /// Removes the folders of attempts that nobody asks for any more.
    pub fn forget(&self, task_run_ids: Vec<i64>) {
        let attempts = self.options.attempts.clone();
        tokio::task::spawn_blocking(move || {
            for id in task_run_ids {
                // What cannot be removed takes room, no more.
                let _ = std::fs::remove_dir_all(attempt(&attempts, id));
            }
        });
    }

    /// Whether the engine of this executor leads still.
    async fn leads(&self) -> bool {
        let (asker, answer) = oneshot::channel();
        self.tell(Message::Leads(asker)).await;
        answer.await.is_ok()
    }

    async fn tell(&self, message: Message) {
        if let Some(sender) = self.sender.upgrade() {
            // An engine that is gone finds all of it in the attempt folder.
            let _ = sender.send(message).await;
        }
    }
}

/// One program on its way.
struct Piece {
    run_id: i64,
    handle: Handle,
    program: Box<Program>,
    stop: CancellationToken,
    executor: Executor,
}

impl Piece {
    async fn see_through(self) {
        let finished = match self.end().await {
            Ok(finished) => finished,
            // Another engine may have taken the program up, which is its business then.
            Err(_) if !self.executor.leads().await => return,
            Err(error) => {
                // Whatever went wrong here: a program that is told of as over must not go on.
                let handle = self.handle.clone();
                let stopped = blocking(move || local::stop(&handle, Duration::ZERO)).await;
                if let Err(stop) = stopped {
                    tracing::error!(run_id = self.run_id, epoch = self.handle.epoch, %stop, "a program may still run");
                }
                lost(error.to_string())
            }
        };
        let (run_id, epoch) = (self.run_id, self.handle.epoch);
        self.executor.live.lock().unwrap_or_else(PoisonError::into_inner).remove(&(run_id, epoch));
        self.executor.tell(Message::Finished { run_id, epoch, finished }).await;
    }

    async fn end(&self) -> io::Result<Finished> {
        // Nothing can have been started that has no folder, so nobody has to look.
        let mut observed = match self.handle.dir.exists() {
            true => self.observe().await?,
            false => Observed::NotStarted,
        };
        let _slot = match observed {
            Observed::NotStarted => {
                let slot = tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return Ok(Finished::of(End::CANCELED)),
                    slot = self.executor.slots.acquire() => slot.ok(),
                };
                observed = match self.start().await? {
                    Ok(Observed::NotStarted) => self.started().await?,
                    Ok(observed) => observed,
                    Err(finished) => return Ok(finished),
                };
                slot
            }
            // It runs since an engine before this one started it.
            _ => {
                tracing::info!(run_id = self.run_id, epoch = self.handle.epoch, "a task is taken up where it ran");
                self.executor.slots.try_acquire().ok()
            }
        };
        loop {
            match observed {
                Observed::Alive(process) => self.wait(process).await?,
                Observed::Exited(exit) => return self.finished(exit.end(), exit.how).await,
                Observed::NotStarted => return Err(io::Error::other("the program was not started; run it again")),
                Observed::OtherBoot => return Ok(lost("the machine was restarted while the task ran".to_owned())),
                Observed::Lost { why } => {
                    let handle = self.handle.clone();
                    blocking(move || local::sweep(&handle)).await?;
                    return Ok(lost(why));
                }
            }
            observed = self.observe().await?;
        }
    }

    /// What became of a start, once there is anything: a slow disk may hold it up.
    async fn started(&self) -> io::Result<Observed> {
        let begun = tokio::time::Instant::now();
        loop {
            match self.observe().await? {
                Observed::NotStarted if begun.elapsed() < SLOWEST_START => tokio::time::sleep(AFTER_FAILURE).await,
                observed => return Ok(observed),
            }
        }
    }

    async fn observe(&self) -> io::Result<Observed> {
        let handle = self.handle.clone();
        blocking(move || local::observe(&handle)).await
    }

    /// Starts the program, and looks what became of it; the inner error says why it cannot be.
    async fn start(&self) -> io::Result<Result<Observed, Finished>> {
        let launch = match program::launch(&self.program, &self.executor.options, &self.handle) {
            Ok(launch) => launch,
            Err(why) => return Ok(Err(Finished::invalid(why))),
        };
        self.executor.tell(Message::Launched { run_id: self.run_id, epoch: self.handle.epoch }).await;
        for tried in 1.. {
            if self.stop.is_cancelled() {
                return Ok(Err(Finished::of(End::CANCELED)));
            }
            let (shims, dir, launch) = (self.executor.shims.clone(), self.handle.dir.clone(), launch.clone());
            match blocking(move || local::observe(&local::launch(&shims, &dir, &launch)?)).await {
                Ok(observed) => return Ok(Ok(observed)),
                Err(error) if tried < STARTS && is_short_of_room(&error) => tokio::time::sleep(AFTER_FAILURE).await,
                Err(error) => return Err(error),
            }
        }
        Ok(Ok(Observed::NotStarted))
    }

    async fn wait(&self, process: Process) -> io::Result<()> {
        self.executor.tell(Message::Started { run_id: self.run_id, epoch: self.handle.epoch }).await;
        let process = watched(process)?;
        tokio::select! {
            ended = process.readable() => return ended.map(drop),
            () = self.stop.cancelled() => {}
        }
        let (handle, grace) = (self.handle.clone(), self.executor.options.grace);
        blocking(move || local::stop(&handle, grace)).await.map(drop)
    }

    async fn finished(&self, end: End, how: How) -> io::Result<Finished> {
        let dir = self.handle.dir.clone();
        let left = blocking(move || Ok(program::left_behind(&dir))).await?;
        let finished = match (end == End::SUCCESS, how) {
            (true, _) => Finished::of(end),
            (_, How::Failed(why) | How::NoCheckout(why) | How::NoPackages(why)) => Finished::because(end, why),
            (_, How::Code(code)) => self.failed(end, format!("exit code {code}")).await,
            (_, How::Signal(signal)) => self.failed(end, format!("signal {signal}")).await,
        };
        Ok(match left {
            Ok((values, result)) => Finished { values, result, ..finished },
            // What it says of its values is wrong, so nobody may go on with them.
            Err(why) if end == End::SUCCESS => Finished::because(End::FAILED, why),
            Err(_) => finished,
        })
    }

    /// What went wrong, by the last that it wrote, or else how it ended.
    async fn failed(&self, end: End, how: String) -> Finished {
        let dir = self.handle.dir.clone();
        let streams = [logs::Stream::Stderr, logs::Stream::Stdout];
        let read = blocking(move || Ok(streams.map(|stream| last_of(&dir, stream).unwrap_or_default()))).await;
        let [stderr, stdout] = read.unwrap_or_default();
        let (error, trace) = trouble::find(&stderr, &stdout).unwrap_or((how, None));
        Finished { trace, ..Finished::because(end, error) }
    }
}

/// A process whose end the runtime waits for.
#[expect(unsafe_code, reason = "tokio has no safe way to wait for a descriptor of this kind")]
fn watched(process: Process) -> io::Result<AsyncFd<Process>> {
    // SAFETY: a `Process` owns one open descriptor from its making to its drop, gives it out by
    // reference only and tells the same number each time; `AsyncFd` drops it after it has
    // deregistered it. `watched_processes_end` in the tests of the engine holds this against
    // hundreds of them.
    Ok(unsafe { AsyncFd::register(process) }?)
}

pub(super) fn lost(why: String) -> Finished {
    Finished::because(End::internal_error(Code::InternalError), why)
}

fn is_short_of_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory)
}

/// The end of what a program wrote.
fn last_of(dir: &Path, stream: logs::Stream) -> io::Result<String> {
    let end = logs::read(dir, stream, u64::MAX, 0)?.next;
    let mut at = end.saturating_sub(LOOKED_THROUGH);
    let mut text = Vec::new();
    loop {
        let chunk = logs::read(dir, stream, at, LOOKED_THROUGH as usize)?;
        if chunk.bytes.is_empty() {
            return Ok(String::from_utf8_lossy(&text).into_owned());
        }
        text.extend(chunk.bytes);
        at = chunk.next;
    }
}

pub(super) async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> io::Result<R> + Send + 'static,
) -> io::Result<R> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
