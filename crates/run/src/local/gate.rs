//! The task's process before it becomes the program: it waits until `started.json` is written.
//!
//! It is the shim's own binary once more, told so by an environment variable. Its standard input is
//! a socket to the shim: one byte from there lets it go on, the end of the stream makes it leave.
//! What it says on the socket is why the program could not be run; silence means that it runs, or
//! makes an environment for it, which takes a while: what fails from then on stands in a file.

use super::files::{self, about};
use super::packages;
use super::records::{How, Launch};
use super::shim::shortened;
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
    match pass(dir, &mut shim) {
        Ok(Some(launch)) => {
            // The shim listens to what the program says from now on.
            drop(shim);
            let how = with_packages(&launch).unwrap_or_else(|error| How::NoPackages(shortened(error.to_string())));
            // What cannot be written is told by the exit code.
            let _ = files::write(dir, files::NOT_RUN, &how);
        }
        Ok(None) => {}
        // A shim that is gone needs no answer.
        Err(error) => drop(shim.write_all(error.to_string().as_bytes())),
    }
    ExitCode::from(NOT_RUN)
}

/// Comes back if the program could not be run, or with what needs packages first.
fn pass(dir: &Path, shim: &mut UnixStream) -> io::Result<Option<Launch>> {
    // Before the shim is listened to: had it died by then, its end of the socket would be closed.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let launch: Launch = files::read(dir, files::LAUNCH)?.ok_or(io::ErrorKind::NotFound)?;
    if shim.read(&mut [0])? == 0 {
        return Ok(None);
    }
    std::env::set_current_dir(&launch.folder).map_err(|e| {
        let what = format!("working folder `{}` cannot be entered", launch.folder.display());
        about(&e, what, "create it, or name another one in the settings of the task")
    })?;
    match launch.packages {
        Some(_) => Ok(Some(launch)),
        None => Err(become_program(&launch, &mut Command::new(&launch.program))),
    }
}

/// Comes back only if the program could not be run; an error is one of its packages.
fn with_packages(launch: &Launch) -> io::Result<How> {
    let Some(packages) = &launch.packages else { return Ok(How::Code(NOT_RUN.into())) };
    let environment = packages::enter(packages)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = [environment.join("bin")].into_iter().chain(std::env::split_paths(&path));
    let path = std::env::join_paths(path).map_err(io::Error::other)?;
    let mut command = Command::new(&launch.program);
    command.env("PATH", path).env("VIRTUAL_ENV", &environment).env("PYSPARK_PYTHON", environment.join("bin/python"));
    Ok(How::Failed(shortened(become_program(launch, &mut command).to_string())))
}

/// Comes back only if it cannot.
fn become_program(launch: &Launch, command: &mut Command) -> io::Error {
    let error = command.args(&launch.arguments).env_remove(GATE).exec();
    let what = format!("program `{}` cannot be run", launch.program);
    about(&error, what, "check its path, its rights and the `PATH` of the task")
}
