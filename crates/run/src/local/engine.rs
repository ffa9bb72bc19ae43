//! The engine's side: launch, observe, wait, stop. All of it blocks, none of it takes a lock in
//! this process.

use super::files::{self, CONTROL, EXIT, LAUNCH, MAKE_ROOM, STARTED, STOPPED, about};
use super::fork_server::ForkServer;
use super::process::{Boot, Process, kill_all, reap, wait_readable, with_environment};
use super::records::{ATTEMPT, ATTEMPT_DIR, Exit, Handle, Launch, Reply, Secret, Started};
use super::redact::SHORTEST_SECRET_BYTES;
use super::shim::{lock, marks, now_ms};
use crate::{Code, End};
use rustix::fs::{MemfdFlags, OFlags, memfd_create};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, PipeReader, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a shim may take to answer.
const ANSWER: Duration = Duration::from_secs(30);
/// How long a shim may take to end its attempt after it has killed the task.
const SLACK: Duration = Duration::from_secs(5);
/// How long processes that were killed may take to go.
const DYING: Duration = Duration::from_secs(2);

/// What became of an attempt.
#[derive(Debug)]
pub enum Observed {
    /// It is over, and this is how.
    Exited(Exit),
    /// It runs under its supervisor.
    Alive(Process),
    /// Its supervisor is gone without a result. Retry rules apply; [`sweep`] comes first.
    Lost {
        /// What was found, for people.
        why: String,
    },
    /// Nothing has run, and launching again is safe.
    NotStarted,
    /// The machine or its container has been restarted since. Retry rules apply.
    OtherBoot,
}

impl Observed {
    /// What it is to the core; `None`: it is not over.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        match self {
            Self::Exited(exit) => Some(exit.end()),
            Self::Lost { .. } | Self::OtherBoot => Some(End::internal_error(Code::InternalError)),
            Self::Alive(_) | Self::NotStarted => None,
        }
    }
}

/// Starts a task in an attempt folder, which is made if it is missing. Once this returns, the start
/// is on the disk and the program is about to run or has run.
///
/// Launching an epoch that has been launched, by whichever process, starts nothing and gives its
/// handle.
///
/// # Errors
/// Nothing was started: the folder cannot be written or belongs to another epoch, a secret is among
/// arguments or plain variables, the working folder is relative, or the shim failed. A program that does not exist is no error here, it is told by
/// [`Exit::how`].
pub fn launch(shims: &ForkServer, dir: &Path, launch: &Launch) -> io::Result<Handle> {
    check(launch)?;
    let dir = make_dir(dir).map_err(|e| about(&e, format!("folder `{}` cannot be made", dir.display()), MAKE_ROOM))?;
    let handle = Handle { dir, epoch: launch.epoch };
    if is_started(&handle)? {
        return Ok(handle);
    }
    for (name, text) in &launch.files {
        files::write_text(&handle.dir, name, text).map_err(|e| files::unwritten(&e, &handle.dir, name))?;
    }
    write_launch(&handle, launch)?;
    let until = Instant::now() + ANSWER;
    while !start_shim(shims, &handle, &launch.secrets)? && !await_other(&handle, until)? {}
    Ok(handle)
}

/// Another shim has the folder, of an engine that is gone perhaps: waits until it has started the
/// task. `false`: it has left without.
fn await_other(handle: &Handle, until: Instant) -> io::Result<bool> {
    while !is_started(handle)? {
        if lock(&handle.dir).is_ok() {
            // It may have started the task and have ended since.
            return is_started(handle);
        }
        if Instant::now() > until {
            let what = format!("attempt `{}` is held by a shim that does not start it", handle.dir.display());
            return Err(about(&ErrorKind::TimedOut.into(), what, "look at the disk, then launch again"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(true)
}

/// Secrets must not be where other users or the disk can see them; a folder must mean the same for
/// every process.
fn check(launch: &Launch) -> io::Result<()> {
    let secrets = || launch.secrets.iter().filter(|secret| secret.value.len() >= SHORTEST_SECRET_BYTES);
    let holds_secret = |text: &String| secrets().any(|secret| text.contains(&secret.value));
    let refuse = |what: String| {
        Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("{what} holds a secret; hand it over as a secret variable"),
        ))
    };
    if !launch.folder.is_absolute() {
        let message = format!("working folder `{}` is relative; name it from the root on", launch.folder.display());
        return Err(io::Error::new(ErrorKind::InvalidInput, message));
    }
    if let Some(at) = launch.arguments.iter().position(holds_secret) {
        return refuse(format!("argument {} of `{}`", at + 1, launch.program));
    }
    match launch.environment.iter().find(|(_, value)| holds_secret(value)) {
        Some((name, _)) => refuse(format!("environment variable `{name}`")),
        None => Ok(()),
    }
}

/// Gives the absolute path.
fn make_dir(dir: &Path) -> io::Result<PathBuf> {
    let dir = std::path::absolute(dir)?;
    let parent = dir.parent().unwrap_or(Path::new("/"));
    let make = || DirBuilder::new().mode(0o700).create(&dir);
    let made = match make() {
        Err(error) if error.kind() == ErrorKind::NotFound => fs::create_dir_all(parent).and_then(|()| make()),
        made => made,
    };
    match made {
        Ok(()) => files::sync_dir(parent)?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    Ok(dir)
}

fn write_launch(handle: &Handle, launch: &Launch) -> io::Result<()> {
    let known: Option<Launch> = files::read(&handle.dir, LAUNCH)?;
    match known {
        Some(known) if known.epoch == launch.epoch => Ok(()),
        Some(known) => {
            let dir = handle.dir.display();
            let message = format!("folder `{dir}` belongs to epoch {}; launch in a new one", known.epoch);
            Err(io::Error::new(ErrorKind::AlreadyExists, message))
        }
        // The folder is synced by the shim before anything runs.
        None => files::write_file(&handle.dir, LAUNCH, launch).map_err(|e| files::unwritten(&e, &handle.dir, LAUNCH)),
    }
}

/// `false`: another shim has the folder.
fn start_shim(shims: &ForkServer, handle: &Handle, secrets: &[Secret]) -> io::Result<bool> {
    for is_again in [false, true] {
        let from = shims.ask(&handle.dir, &secrets_file(secrets)?)?;
        match answer(from) {
            // Without an answer it is held up by a slow disk; what it comes to will be observed.
            Ok(Some(Reply::Started) | None) => return Ok(true),
            Ok(Some(Reply::Busy)) => return Ok(false),
            Ok(Some(Reply::Failed { errno, message })) => {
                let kind = errno.map_or(ErrorKind::Other, |errno| io::Error::from_raw_os_error(errno).kind());
                return Err(io::Error::new(kind, message));
            }
            // It was cut off behind the start: what became of it will be observed.
            Err(_) if is_started(handle)? => return Ok(true),
            Err(error) if is_again => {
                let what = format!("shim `{}` gave no answer", shims.program().display());
                return Err(about(&error, what, "check that it is the right program"));
            }
            // Somebody has killed it, or whoever was to start it.
            Err(_) => shims.restart(),
        }
    }
    Ok(false)
}

/// Memory that only the shim gets to see.
fn secrets_file(secrets: &[Secret]) -> io::Result<OwnedFd> {
    if secrets.is_empty() {
        return File::open("/dev/null").map(OwnedFd::from);
    }
    let mut file = File::from(memfd_create("secrets", MemfdFlags::CLOEXEC)?);
    file.write_all(&serde_json::to_vec(secrets)?)?;
    file.rewind()?;
    Ok(file.into())
}

/// `None`: none so far.
fn answer(mut from: PipeReader) -> io::Result<Option<Reply>> {
    if !wait_readable(from.as_fd(), ANSWER)? {
        return Ok(None);
    }
    // A line shorter than a pipe's unit comes as a whole.
    let mut line = vec![0; 4 << 10];
    let read = from.read(&mut line)?;
    Ok(Some(serde_json::from_slice(&line[..read])?))
}

/// What became of an attempt, from files and `/proc` alone.
///
/// # Errors
/// The attempt folder or `/proc` cannot be read, or a file is damaged.
pub fn observe(handle: &Handle) -> io::Result<Observed> {
    let started = started(handle)?;
    if let Some(exit) = exit(handle)? {
        if let Some(started) = started.filter(|started| Boot::current().is_ok_and(|boot| boot == started.boot)) {
            reap_shim(&started)?;
        }
        return Ok(Observed::Exited(exit));
    }
    let Some(started) = started else { return Ok(Observed::NotStarted) };
    if started.boot != Boot::current()? {
        return Ok(Observed::OtherBoot);
    }
    if let Some((fd, stat)) = started.shim.open()? {
        if !stat.is_zombie() {
            return Ok(Observed::Alive(Process::new(fd, started.task.pid, started.started_ms)));
        }
        reap(fd.as_fd());
    }
    // The result is there before the shim is gone: if it came just now, it is seen now.
    Ok(match exit(handle)? {
        Some(exit) => Observed::Exited(exit),
        None => Observed::Lost { why: lost(handle, &started) },
    })
}

fn lost(handle: &Handle, started: &Started) -> String {
    format!(
        "supervisor lost: process {} of attempt `{}` is gone and left no result; it was killed or ran out of memory, \
         so look at the system's log, then run the task again",
        started.shim.pid,
        handle.dir.display()
    )
}

/// Lets a shim whose result is there end, so that the result is on the disk, and frees its entry if
/// this process had started it.
fn reap_shim(started: &Started) -> io::Result<()> {
    if let Some((fd, _)) = started.shim.open()? {
        wait_readable(fd.as_fd(), DYING)?;
        reap(fd.as_fd());
    }
    Ok(())
}

fn started(handle: &Handle) -> io::Result<Option<Started>> {
    let started: Option<Started> = files::read(&handle.dir, STARTED)?;
    Ok(started.filter(|started| started.epoch == handle.epoch))
}

fn is_started(handle: &Handle) -> io::Result<bool> {
    started(handle).map(|started| started.is_some())
}

fn exit(handle: &Handle) -> io::Result<Option<Exit>> {
    let exit: Option<Exit> = files::read(&handle.dir, EXIT)?;
    Ok(exit.filter(|exit| exit.epoch == handle.epoch))
}

/// Attempts in a folder of attempt folders, named by a number, that have no result, with that number.
///
/// # Errors
/// The folder cannot be read, or a file is damaged.
pub fn unfinished(attempts: &Path) -> io::Result<Vec<(i64, Handle)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(attempts)? {
        let dir = entry?.path();
        let number = dir.file_name().and_then(|name| name.to_str()?.parse().ok());
        let Some(number) = number.filter(|_| !dir.join(EXIT).exists()) else { continue };
        if let Some(launch) = files::read::<Launch>(&dir, LAUNCH)? {
            found.push((number, Handle { dir, epoch: launch.epoch }));
        }
    }
    Ok(found)
}

/// Removes the attempt folders of such a folder, named by a number, in which nothing has happened for
/// so long and nothing runs; gives their number.
///
/// # Errors
/// A folder cannot be listed or removed.
pub fn remove_old(attempts: &Path, older: Duration) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(attempts)? {
        let dir = entry?.path();
        let is_attempt = dir.file_name().and_then(|name| name.to_str()?.parse::<i64>().ok()).is_some();
        // The result comes last.
        let last = fs::metadata(dir.join(EXIT)).or_else(|_| fs::metadata(&dir)).and_then(|about| about.modified());
        let is_old = last.is_ok_and(|at| at.elapsed().is_ok_and(|ago| ago > older));
        if is_attempt && is_old && lock(&dir).is_ok() {
            fs::remove_dir_all(&dir)?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Waits until an attempt is over, or until the time is, then observes. It sees the end at once,
/// whoever launched.
///
/// # Errors
/// As [`observe`].
pub fn wait(handle: &Handle, timeout: Duration) -> io::Result<Observed> {
    match observe(handle)? {
        Observed::Alive(process) if process.wait(timeout)? => observe(handle),
        other => Ok(other),
    }
}

/// Asks an attempt to stop and does not wait for it: SIGTERM to the process group of the task, then
/// SIGKILL to all that it has started after the grace time. The shim does both, so that neither
/// number can be that of another process and the end of the engine stops neither. An attempt that
/// is not alive is left alone.
///
/// # Errors
/// The attempt folder cannot be used.
pub fn request_stop(handle: &Handle, grace: Duration) -> io::Result<()> {
    let path = handle.dir.join(CONTROL);
    let ask = || {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut pipe = OpenOptions::new().write(true).custom_flags(flags).open(&path)?;
        pipe.write_all(format!("{}\n", grace.as_millis()).as_bytes())
    };
    match ask() {
        Err(error) if !is_deaf(&error) => {
            Err(about(&error, format!("`{}` cannot be written", path.display()), "check the rights of the folder"))
        }
        _ => Ok(()),
    }
}

/// Nobody listens, or nobody has read the requests before.
fn is_deaf(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WouldBlock | ErrorKind::BrokenPipe)
        || error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
}

/// Stops an attempt, see [`request_stop`], and waits for its end. One that has not started will not
/// start any more. One whose supervisor is lost or does not answer is swept.
///
/// # Errors
/// As [`observe`], or a process cannot be killed.
pub fn stop(handle: &Handle, grace: Duration) -> io::Result<Observed> {
    match observe(handle)? {
        Observed::Alive(process) => end(handle, &process, grace),
        Observed::NotStarted => match bar(handle)? {
            Observed::Alive(process) => end(handle, &process, grace),
            other => Ok(other),
        },
        Observed::Lost { why } => {
            sweep(handle)?;
            Ok(Observed::Lost { why })
        }
        over => Ok(over),
    }
}

fn end(handle: &Handle, process: &Process, grace: Duration) -> io::Result<Observed> {
    request_stop(handle, grace)?;
    if !process.wait(grace.saturating_add(SLACK))? {
        process.kill()?;
        process.wait(DYING)?;
        sweep(handle)?;
    }
    observe(handle)
}

/// Keeps an attempt that has not started from starting; a shim may be on its way.
fn bar(handle: &Handle) -> io::Result<Observed> {
    let until = Instant::now() + SLACK;
    loop {
        let lock = lock(&handle.dir);
        let observed = observe(handle)?;
        match (lock, observed) {
            (Ok(_lock), Observed::NotStarted) => {
                files::write(&handle.dir, STOPPED, &now_ms())?;
                return Ok(Observed::NotStarted);
            }
            (Err(_), Observed::NotStarted) if !handle.dir.exists() => return Ok(Observed::NotStarted),
            (Err(_), Observed::NotStarted) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            (_, observed) => return Ok(observed),
        }
    }
}

/// Kills all processes that carry the mark of an attempt in their environment, however they left
/// it, and gives their number. Before the retry of an attempt that is [`Observed::Lost`], so that no
/// two live.
///
/// # Errors
/// `/proc` cannot be read, or a process cannot be killed.
pub fn sweep(handle: &Handle) -> io::Result<usize> {
    let [attempt, attempt_dir] = marks(&handle.dir, handle.epoch);
    let wanted = [format!("{ATTEMPT}={attempt}"), format!("{ATTEMPT_DIR}={attempt_dir}")];
    kill_all(|| with_environment(&wanted), DYING).map_err(|e| {
        about(&e, format!("processes of `{}` cannot be killed", handle.dir.display()), "kill them by hand")
    })
}
