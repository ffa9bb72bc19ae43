//! The process that makes shims as copies of itself, and how the engine asks it to.
//!
//! Starting this binary anew for each task would cost more than most of what small tasks do; a
//! copy of a process that is small and already there costs little. The server is started with the
//! first task. It holds nothing: when it is gone, shims go on, and the next task starts another.
//!
//! A request is one message over a socket: the attempt folder, and two descriptors that become the
//! standard input (the secrets) and the standard output (for the answer) of the shim.

use super::files::about;
use super::fork::{Side, fork};
use super::process::{Boot, wait_readable};
use super::records::Reply;
use super::shim::{answer, shim};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{WaitOptions, wait};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, PipeReader};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The longest path of an attempt folder, bytes; the kernel takes no longer one.
const PATH_BYTES: usize = 4 << 10;
/// How often shims that have ended are waited for while there are any.
const REAP: Duration = Duration::from_millis(500);
/// How long it is slept where there are none.
const IDLE: Duration = Duration::from_secs(3_600);

/// Starts shims. One for each engine; it may be asked by many threads at once.
#[derive(Debug)]
pub struct ForkServer {
    program: PathBuf,
    running: Mutex<Option<Arc<Running>>>,
}

#[derive(Debug)]
struct Running {
    socket: OwnedFd,
    process: Child,
}

impl Drop for Running {
    fn drop(&mut self) {
        // What it has started does not need it. Either fails only if it is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl ForkServer {
    /// `program` is one that calls [`serve_forks`] for the argument `shim`; `/proc/self/exe` is
    /// this program, also after its file was replaced. Nothing is started yet.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        Self { program, running: Mutex::new(None) }
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Asks for a shim, and gives where its answer comes from; nothing comes from there if the
    /// server has died. `input` becomes the standard input of the shim.
    pub(super) fn ask(&self, dir: &Path, input: &OwnedFd) -> io::Result<PipeReader> {
        let (answer, output) = io::pipe()?;
        match self.running()?.ask(dir, input.as_fd(), output.as_fd()) {
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(answer),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives up the server of now, so that the next request starts another.
    pub(super) fn restart(&self) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn running(&self) -> io::Result<Arc<Running>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = &*running {
            return Ok(running.clone());
        }
        let started = Arc::new(Running::start(&self.program)?);
        *running = Some(started.clone());
        Ok(started)
    }
}

impl Running {
    fn start(program: &Path) -> io::Result<Self> {
        let (socket, of_server) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let process =
            Command::new(program).arg("shim").env_clear().stdin(of_server).stdout(Stdio::null()).spawn().map_err(
                |e| about(&e, format!("shim `{}` cannot be started", program.display()), "check its path and rights"),
            )?;
        Ok(Self { socket, process })
    }

    fn ask(&self, dir: &Path, input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> Result<(), Errno> {
        let fds = [input, output];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        let path = [IoSlice::new(dir.as_os_str().as_bytes())];
        rustix::io::retry_on_intr(|| sendmsg(&self.socket, &path, &mut control, SendFlags::NOSIGNAL)).map(drop)
    }
}

/// What an engine asks for.
struct Request {
    dir: PathBuf,
    input: OwnedFd,
    output: OwnedFd,
}

/// Makes shims for the engine at the other end of standard input until that is gone: the hidden
/// command of the binary. The binary should call it before anything else: it must have no other
/// thread, and each shim begins with all that was done before.
#[must_use]
pub fn serve_forks() -> ExitCode {
    // An interrupt at the terminal is for the engine, which ends this process by its own end.
    let _ = rustix::process::setsid();
    // Shims begin with it; one that has to read it says what is wrong.
    let _ = Boot::current();
    let mut has_children = false;
    loop {
        has_children = has_children && reap();
        let is_asked = wait_readable(io::stdin().as_fd(), if has_children { REAP } else { IDLE });
        let request = match is_asked {
            Ok(false) => continue,
            Ok(true) => receive(io::stdin().as_fd()),
            Err(error) => Err(error),
        };
        match request {
            Ok(Some(request)) => match fork() {
                Ok(Side::Child) => return become_shim(request),
                Ok(Side::Parent(_)) => has_children = true,
                Err(error) => answer(&mut File::from(request.output), &Reply::failed(&error)),
            },
            Ok(None) => return ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: `shim` is for the engine of jobs and cannot be used by itself: {error}");
                return ExitCode::from(2);
            }
        }
    }
}

/// Takes the end of all that have ended; `true`: some still live.
fn reap() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// `None`: the engine is gone.
fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Request>> {
    let mut path = [0; PATH_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(socket, &mut [IoSliceMut::new(&mut path)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut fds = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    match (fds.next(), fds.next()) {
        (Some(input), Some(output)) if !received.flags.contains(ReturnFlags::TRUNC) => {
            Ok(Some(Request { dir: OsStr::from_bytes(&path[..received.bytes]).into(), input, output }))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// In the copy: standard input was the socket, which this replaces.
fn become_shim(request: Request) -> ExitCode {
    let Request { dir, input, output } = request;
    let stdio = rustix::stdio::dup2_stdin(&input).and_then(|()| rustix::stdio::dup2_stdout(&output));
    match stdio {
        Ok(()) => {
            drop((input, output));
            shim(&dir)
        }
        Err(error) => {
            answer(&mut File::from(output), &Reply::failed(&error.into()));
            ExitCode::FAILURE
        }
    }
}
