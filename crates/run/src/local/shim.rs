//! The process between engine and task. It starts the task, keeps its output and records its end.

use super::files::{self, CONTROL, EXIT, LAUNCH, MAKE_ROOM, NOT_RUN, Reserved, STARTED, STOPPED, about};
use super::fork::{Side, fork};
use super::gate;
use super::output::Output;
use super::process::{Boot, Identity};
use super::pump::{Pump, Pumped};
use super::records::{Exit, How, Launch, Reply, Secret, Started, Usage};
use super::redact::Patterns;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest message that is kept in `exit.json`, bytes; the room for it is limited.
const MESSAGE_BYTES: usize = 2 << 10;

/// Runs the task of an attempt folder and comes back when it is over; in the task's own process, it
/// does when that could not become the program. This process must have no other thread.
///
/// The answer to the engine goes to standard output, the secrets come from standard input.
#[must_use]
pub fn shim(dir: &Path) -> ExitCode {
    match supervise(dir) {
        Ok(code) => code,
        Err(Refusal::Busy) => {
            answer(&mut io::stdout(), &Reply::Busy);
            ExitCode::FAILURE
        }
        Err(Refusal::Failed(error)) => {
            answer(&mut io::stdout(), &Reply::failed(&error));
            ExitCode::FAILURE
        }
    }
}

/// Why nothing was started.
pub(super) enum Refusal {
    Busy,
    Failed(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

fn supervise(dir: &Path) -> Result<ExitCode, Refusal> {
    // Refused to the leader of a group, who needs no protection from the terminal of the engine.
    let _ = rustix::process::setsid();
    let attempt = Attempt::claim(dir)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(io::Error::from)?;
    let task = match attempt.fork()? {
        Ok(waiting) => attempt.start(waiting)?,
        Err(inside) => {
            let (dir, launch, secrets) = attempt.leave();
            return Ok(gate::run(inside, &dir, &launch, secrets));
        }
    };
    answer(&mut io::stdout(), &Reply::Started);
    // From here on nobody listens.
    let _ = leave_stdio();
    attempt.see_through(task)?;
    Ok(ExitCode::SUCCESS)
}

/// An attempt folder that is locked by this process.
struct Attempt {
    dir: PathBuf,
    launch: Launch,
    secrets: Vec<Secret>,
    control: File,
    result: Reserved,
    outputs: [Output; 2],
    _lock: File,
}

/// The task's process, at the gate.
struct Task {
    identity: Identity,
    fd: OwnedFd,
    pipes: [PipeReader; 2],
    gate: UnixStream,
    started_ms: i64,
}

/// The same, of which no more is known.
struct Waiting {
    pid: Pid,
    pipes: [PipeReader; 2],
    gate: UnixStream,
}

impl Attempt {
    fn claim(dir: &Path) -> Result<Self, Refusal> {
        let lock = lock(dir)?;
        if dir.join(STARTED).exists() {
            return Err(Refusal::Busy);
        }
        let launch: Launch = files::read(dir, LAUNCH)?.ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("`{}` is missing; launch anew", dir.join(LAUNCH).display()))
        })?;
        if dir.join(STOPPED).exists() {
            let message = format!("attempt `{}` was stopped before it started; start another", dir.display());
            return Err(Refusal::Failed(io::Error::new(io::ErrorKind::Interrupted, message)));
        }
        let secrets = read_secrets()?;
        let patterns = Patterns::of(secrets.iter().map(|secret| secret.value.as_str()))?;
        let output = |stream| Output::new(dir, stream, launch.limits, patterns.as_ref());
        let outputs = [output("stdout"), output("stderr")];
        let result = Reserved::new(dir, EXIT)?;
        let control = control(dir).map_err(|e| files::unwritten(&e, dir, CONTROL))?;
        Ok(Self { dir: dir.to_owned(), launch, secrets, control, result, outputs, _lock: lock })
    }

    /// Once this returns, `started.json` is on the disk and the task waits at the gate. If it
    /// fails, the gate closes and nothing runs.
    fn start(&self, waiting: Waiting) -> io::Result<Task> {
        let Waiting { pid, pipes, gate } = waiting;
        // A group of its own before the program can start anything.
        rustix::process::setpgid(Some(pid), Some(pid))?;
        for pipe in &pipes {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        let identity = Identity::of(pid.as_raw_nonzero().get())?;
        let task = Task { identity, fd: pidfd_open(pid, PidfdFlags::empty())?, pipes, gate, started_ms: now_ms() };
        let started = Started {
            epoch: self.launch.epoch,
            task: task.identity,
            shim: Identity::of(rustix::process::getpid().as_raw_nonzero().get())?,
            boot: Boot::current()?,
            started_ms: task.started_ms,
        };
        files::write(&self.dir, STARTED, &started)?;
        Ok(task)
    }

    /// What the task's process needs; it has no part in the lock and the files.
    fn leave(self) -> (PathBuf, Launch, Vec<Secret>) {
        (self.dir, self.launch, self.secrets)
    }

    /// The task's process as seen from here, or the side of it that is inside.
    fn fork(&self) -> io::Result<Result<Waiting, gate::Inside>> {
        let (gate, shim) = UnixStream::pair()?;
        let ((stdout, of_stdout), (stderr, of_stderr)) = (io::pipe()?, io::pipe()?);
        Ok(match fork()? {
            Side::Parent(pid) => Ok(Waiting { pid, pipes: [stdout, stderr], gate }),
            Side::Child => Err(gate::Inside { shim, stdout: of_stdout, stderr: of_stderr }),
        })
    }

    fn see_through(self, mut task: Task) -> io::Result<()> {
        let failure = release(&mut task.gate);
        let mut pump =
            Pump::new(task.fd, task.identity.pid, &self.control, self.launch.limits, self.outputs, task.pipes);
        let mut pumped = pump.run();
        if let Some(message) = failure {
            pumped.how = How::Failed(shortened(message));
        }
        // A stop is told as what it was.
        if let (How::Code(_), Some(how)) = (&pumped.how, files::read(&self.dir, NOT_RUN)?) {
            pumped.how = how;
        }
        // It goes before the result comes, so that a copy of a finished attempt holds no pipe.
        let _ = fs::remove_file(self.dir.join(CONTROL));
        self.result.fill(&exit(self.launch.epoch, task.started_ms, pumped)?)
    }
}

fn exit(epoch: u64, started_ms: i64, pumped: Pumped) -> io::Result<Exit> {
    let [stdout, stderr] = pumped.written;
    Ok(Exit {
        epoch,
        how: pumped.how,
        stopped: pumped.stopped,
        started_ms,
        ended_ms: now_ms(),
        usage: usage()?,
        stdout,
        stderr,
        left_running: pumped.left_running,
        log_error: pumped.log_error.map(shortened),
    })
}

/// What marks all processes of an attempt in their environment: the values of [`ATTEMPT`] and
/// [`ATTEMPT_DIR`].
pub(super) fn marks(dir: &Path, epoch: u64) -> [String; 2] {
    let name = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy();
    [format!("{name}:{epoch}"), dir.to_string_lossy().into_owned()]
}

/// Held until the process ends, however it ends.
pub(super) fn lock(dir: &Path) -> Result<File, Refusal> {
    let failed = |e: &io::Error| Refusal::Failed(about(e, format!("`{}` cannot be locked", dir.display()), MAKE_ROOM));
    let file = File::open(dir).map_err(|e| failed(&e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Refusal::Busy),
        Err(TryLockError::Error(error)) => Err(failed(&error)),
    }
}

/// The pipe over which the attempt is asked to stop. It is open for both directions, so that it
/// never ends.
fn control(dir: &Path) -> io::Result<File> {
    let path = dir.join(CONTROL);
    match rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::from_raw_mode(0o600)) {
        // From a shim that did not get as far as to start anything.
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    OpenOptions::new().read(true).write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

fn read_secrets() -> io::Result<Vec<Secret>> {
    let mut text = Vec::new();
    io::stdin().read_to_end(&mut text)?;
    match text.as_slice() {
        [] => Ok(Vec::new()),
        text => Ok(serde_json::from_slice(text)?),
    }
}

/// Lets the program run; gives the reason if it did not.
fn release(gate: &mut UnixStream) -> Option<String> {
    let mut answer = String::new();
    let read = gate.write_all(b"1").and_then(|()| gate.read_to_string(&mut answer));
    // A gate that has died tells by its exit code.
    read.ok().filter(|&bytes| bytes > 0).map(|_| answer)
}

/// A reader that is gone needs no answer.
pub(super) fn answer(to: &mut impl Write, reply: &Reply) {
    if let Ok(mut line) = serde_json::to_vec(reply) {
        line.push(b'\n');
        let _ = to.write_all(&line).and_then(|()| to.flush());
    }
}

fn leave_stdio() -> io::Result<()> {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(rustix::stdio::dup2_stderr(&null)?)
}

fn usage() -> io::Result<Usage> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let ms = |time: nix::sys::time::TimeVal| (time.tv_sec() * 1_000 + time.tv_usec() / 1_000).unsigned_abs();
    Ok(Usage {
        user_ms: ms(usage.user_time()),
        system_ms: ms(usage.system_time()),
        max_rss_bytes: usage.max_rss().unsigned_abs() * 1_024,
    })
}

/// A message that fits the room for it.
pub(super) fn shortened(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
    message
}

/// Epoch ms.
pub(crate) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX))
}
