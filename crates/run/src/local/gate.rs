//! The task's process before it becomes the program: it waits until `started.json` is written.
//!
//! It is the shim's own binary once more, told so by an environment variable. Its standard input is
//! a socket to the shim: one byte from there lets it go on, the end of the stream makes it leave.
//! What it says on the socket is why the program could not be run; silence means that it runs.

use super::files::{self, about};
use super::records::Launch;
use rustix::process::{Signal, set_parent_process_death_signal};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Environment variable that makes a shim a gate. The program does not get to see it.
pub(super) const GATE: &str = "LAKESCOPE_GATE";

/// Exit code of a gate whose program could not be run, as shells have it.
const NOT_RUN: u8 = 127;

pub(super) fn is_meant() -> bool {
    std::env::var_os(GATE).as_deref() == Some(OsStr::new("1"))
}

pub(super) fn run(dir: &Path) -> ExitCode {
    let Ok(mut shim) = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else {
        return ExitCode::from(NOT_RUN);
    };
    if let Err(error) = pass(dir, &mut shim) {
        // A shim that is gone needs no answer.
        let _ = shim.write_all(error.to_string().as_bytes());
    }
    ExitCode::from(NOT_RUN)
}

/// Comes back only if the program could not be run.
fn pass(dir: &Path, shim: &mut UnixStream) -> io::Result<()> {
    // Before the shim is listened to: had it died by then, its end of the socket would be closed.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let launch: Launch = files::read(dir, files::LAUNCH)?.ok_or(io::ErrorKind::NotFound)?;
    if shim.read(&mut [0])? == 0 {
        return Ok(());
    }
    std::env::set_current_dir(&launch.folder).map_err(|e| {
        let what = format!("working folder `{}` cannot be entered", launch.folder.display());
        about(&e, what, "create it, or name another one in the settings of the task")
    })?;
    let error = Command::new(&launch.program).args(&launch.arguments).env_remove(GATE).exec();
    let what = format!("program `{}` cannot be run", launch.program);
    Err(about(&error, what, "check its path, its rights and the `PATH` of the task"))
}
