//! Programs of tasks: started, waited for and stopped, each by a task of its own.

use super::{Message, Options, attempt, trouble};
use crate::book::{Finished, Program};
use crate::local::{self, Handle, How, Observed, Process, logs};
use crate::settings::Work;
use crate::states::{Code, End, Outcome};
use crate::step::Epoch;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Semaphore, mpsc};
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
    sender: mpsc::WeakSender<Message>,
    slots: Arc<Semaphore>,
    live: Live,
    abandoned: CancellationToken,
}

impl Executor {
    pub fn new(options: Options, sender: mpsc::WeakSender<Message>) -> Self {
        let slots = Arc::new(Semaphore::new(options.slots.max(1)));
        let abandoned = CancellationToken::new();
        Self { options: Arc::new(options), sender, slots, live: Live::default(), abandoned }
    }

    /// Lets go of all programs: they go on, and nothing is started any more.
    pub fn abandon(&self) {
        self.abandoned.cancel();
    }

    /// Starts a program, or takes it up where it runs.
    pub fn launch(&self, run_id: i64, task_run_id: i64, epoch: Epoch, program: Program) {
        let stop = CancellationToken::new();
        self.live.lock().unwrap_or_else(PoisonError::into_inner).insert((run_id, epoch), stop.clone());
        let dir = attempt(&self.options.attempts, task_run_id);
        let piece = Piece { run_id, handle: Handle { dir, epoch }, program, stop, executor: self.clone() };
        tokio::spawn(self.abandoned.clone().run_until_cancelled_owned(piece.see_through()));
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
    program: Program,
    stop: CancellationToken,
    executor: Executor,
}

impl Piece {
    async fn see_through(self) {
        let finished = match self.end().await {
            Ok(finished) => finished,
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
        let mut observed = self.observe().await?;
        let _slot = match observed {
            Observed::NotStarted => {
                let slot = tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return Ok(Finished::of(End::CANCELED)),
                    slot = self.executor.slots.acquire() => slot.ok(),
                };
                if let Err(finished) = self.start().await? {
                    return Ok(finished);
                }
                observed = self.started().await?;
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

    /// Starts the program; the inner error says why it cannot be.
    async fn start(&self) -> io::Result<Result<(), Finished>> {
        let launch = match launch(&self.program, &self.executor.options, self.handle.epoch) {
            Ok(launch) => launch,
            Err(why) => {
                let end = End::of(Outcome::Failed, Code::InvalidRunConfiguration);
                return Ok(Err(Finished { end, error: Some(why), trace: None }));
            }
        };
        self.executor.tell(Message::Launched { run_id: self.run_id, epoch: self.handle.epoch }).await;
        for tried in 1.. {
            if self.stop.is_cancelled() {
                return Ok(Err(Finished::of(End::CANCELED)));
            }
            let (shim, dir, launch) = (self.executor.options.shim.clone(), self.handle.dir.clone(), launch.clone());
            match blocking(move || local::launch(&shim, &dir, &launch)).await {
                Ok(_) => break,
                Err(error) if tried < STARTS && is_short_of_room(&error) => tokio::time::sleep(AFTER_FAILURE).await,
                Err(error) => return Err(error),
            }
        }
        Ok(Ok(()))
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
        if end == End::SUCCESS {
            return Ok(Finished::of(end));
        }
        let code = match how {
            How::Failed(why) => return Ok(Finished { end, error: Some(why), trace: None }),
            How::Code(code) => format!("exit code {code}"),
            How::Signal(signal) => format!("signal {signal}"),
        };
        let dir = self.handle.dir.clone();
        let stderr = blocking(move || last_of(&dir)).await.unwrap_or_default();
        let (error, trace) = trouble::find(&stderr).unwrap_or((code, None));
        Ok(Finished { end, error: Some(error), trace })
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
    Finished { end: End::internal_error(Code::InternalError), error: Some(why), trace: None }
}

fn is_short_of_room(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory)
}

/// The end of what a program wrote to its standard error.
fn last_of(dir: &Path) -> io::Result<String> {
    let end = logs::read(dir, logs::Stream::Stderr, u64::MAX, 0)?.next;
    let mut at = end.saturating_sub(LOOKED_THROUGH);
    let mut text = Vec::new();
    loop {
        let chunk = logs::read(dir, logs::Stream::Stderr, at, LOOKED_THROUGH as usize)?;
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

/// What is started for a task.
fn launch(program: &Program, options: &Options, epoch: Epoch) -> Result<local::Launch, String> {
    let (command, arguments, folder) = match &program.work {
        Work::Python { file, parameters } => {
            let file = local_file(file)?;
            let folder = file.parent().map(Path::to_owned);
            let arguments = [file.display().to_string()].into_iter().chain(parameters.iter().cloned());
            match program.wants_cluster {
                true => (spark_submit(options), with_master(options, arguments.collect()), folder),
                false => (options.python.clone(), arguments.collect(), folder),
            }
        }
        Work::SparkSubmit { parameters } => (spark_submit(options), with_master(options, parameters.clone()), None),
        Work::SparkJar { jar, main_class, parameters } => {
            let words = ["--class".to_owned(), main_class.clone(), jar.clone()];
            let arguments = words.into_iter().chain(parameters.iter().cloned()).collect();
            (spark_submit(options), with_master(options, arguments), None)
        }
        other => return Err(format!("{other:?} is no program")),
    };
    let mut environment = options.environment.clone();
    // Lines come as they are written, not when a buffer is full.
    environment.insert("PYTHONUNBUFFERED".to_owned(), "1".to_owned());
    environment.extend(program.environment.clone());
    let folder = folder.unwrap_or_else(|| options.attempts.clone());
    let folder = std::path::absolute(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(local::Launch { epoch, program: command, arguments, environment, folder, ..local::Launch::default() })
}

fn spark_submit(options: &Options) -> String {
    match &options.spark_home {
        Some(home) => home.join("bin/spark-submit").display().to_string(),
        None => "spark-submit".to_owned(),
    }
}

/// A master that the task itself names wins.
fn with_master(options: &Options, arguments: Vec<String>) -> Vec<String> {
    let names_one = arguments.iter().any(|argument| argument == "--master" || argument.starts_with("--master="));
    match &options.spark_master {
        Some(master) if !names_one => ["--master".to_owned(), master.clone()].into_iter().chain(arguments).collect(),
        _ => arguments,
    }
}

/// A file of this machine, by its path or `file:` URL.
fn local_file(file: &str) -> Result<PathBuf, String> {
    let path = file.strip_prefix("file:").map_or(file, |path| path.strip_prefix("//").unwrap_or(path));
    let path = Path::new(path);
    if path.is_relative() || file.contains("://") && !file.starts_with("file:") {
        return Err(format!("{file:?} is no file of this machine; give its whole path, such as /jobs/load.py"));
    }
    match path.is_file() {
        true => Ok(path.to_owned()),
        false => Err(format!("there is no file {}; is it on the machine that runs the server?", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_their_whole_path() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        for name in [path.clone(), format!("file:{path}"), format!("file://{path}")] {
            assert_eq!(local_file(&name).as_deref(), Ok(file.path()), "{name}");
        }
        for (name, why) in
            [("load.py", "is no file of"), ("s3://b/load.py", "is no file of"), ("/no/such.py", "there is no")]
        {
            assert!(local_file(name).unwrap_err().contains(why), "{name}");
        }
    }

    #[test]
    fn a_master_is_added_unless_one_is_named() {
        let options = Options { spark_master: Some("local[2]".to_owned()), ..options() };
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        assert_eq!(with_master(&options, words(&["a.py"])), ["--master", "local[2]", "a.py"]);
        assert_eq!(with_master(&options, words(&["--master", "yarn", "a.py"])), ["--master", "yarn", "a.py"]);
        assert_eq!(with_master(&super::tests::options(), words(&["a.py"])), ["a.py"]);
    }

    fn options() -> Options {
        Options {
            attempts: PathBuf::from("/attempts"),
            shim: PathBuf::from("/proc/self/exe"),
            slots: 1,
            python: "python3".to_owned(),
            spark_home: None,
            spark_master: None,
            grace: Duration::from_secs(1),
            environment: std::collections::BTreeMap::new(),
            give_up_after: Duration::from_secs(1),
        }
    }
}
