//! The task's process before it becomes the program: it waits until `started.json` is written.
//!
//! It is a copy of the shim with a socket to it: one byte from there lets it go on, the end of the
//! stream makes it leave. What it says on the socket is why the program could not be run; silence
//! means that it runs, or fetches what it needs, which takes a while: what fails from then on stands
//! in a file.

use super::checkout;
use super::files::{self, about};
use super::packages::{self, Packages};
use super::records::{ATTEMPT, ATTEMPT_DIR, How, Launch, Secret};
use super::shim::{marks, shortened};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Exit code of a gate whose program could not be run, as shells have it.
const NOT_RUN: u8 = 127;

/// Names and values of variables: all that a program gets.
pub(super) type Environment = BTreeMap<String, String>;

/// What the task's process has of the shim.
pub(super) struct Inside {
    pub(super) shim: UnixStream,
    pub(super) stdout: PipeWriter,
    pub(super) stderr: PipeWriter,
}

/// Comes back only if the program could not be run.
pub(super) fn run(inside: Inside, dir: &Path, launch: &Launch, secrets: Vec<Secret>) -> ExitCode {
    let Inside { mut shim, stdout, stderr } = inside;
    let environment = environment(dir, launch, secrets);
    match pass(&mut shim, stdout, stderr) {
        Ok(true) if launch.checkout.is_some() || launch.packages.is_some() => {
            // The shim listens to what the program says from now on.
            drop(shim);
            let Err(how) = prepare(launch, environment);
            // What cannot be written is told by the exit code.
            let _ = files::write(dir, files::NOT_RUN, &how);
        }
        Ok(true) => {
            let Err(error) = enter(&launch.folder).and_then(|()| become_program(launch, &environment));
            tell(&mut shim, &error);
        }
        Ok(false) => {}
        Err(error) => tell(&mut shim, &error),
    }
    ExitCode::from(NOT_RUN)
}

/// A shim that is gone needs no answer.
fn tell(shim: &mut UnixStream, error: &io::Error) {
    let _ = shim.write_all(error.to_string().as_bytes());
}

fn environment(dir: &Path, launch: &Launch, secrets: Vec<Secret>) -> Environment {
    let [attempt, attempt_dir] = marks(dir, launch.epoch);
    let mut environment = launch.environment.clone();
    environment.extend(secrets.into_iter().filter_map(|secret| Some((secret.env?, secret.value))));
    environment.extend([(ATTEMPT.to_owned(), attempt), (ATTEMPT_DIR.to_owned(), attempt_dir)]);
    environment
}

/// Waits; `false`: the program is not to be run.
fn pass(shim: &mut UnixStream, stdout: PipeWriter, stderr: PipeWriter) -> io::Result<bool> {
    // Before the shim is listened to: had it died by then, its end of the socket would be closed.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(stdout)?;
    rustix::stdio::dup2_stderr(stderr)?;
    Ok(shim.read(&mut [0])? > 0)
}

/// Fetches what the program needs, and becomes it.
fn prepare(launch: &Launch, mut environment: Environment) -> Result<Infallible, How> {
    if let Some(checkout) = &launch.checkout {
        checkout::enter(checkout, &environment).map_err(told(How::NoCheckout))?;
    }
    enter(&launch.folder).map_err(told(How::Failed))?;
    if let Some(packages) = &launch.packages {
        with_packages(packages, &mut environment).map_err(told(How::NoPackages))?;
    }
    become_program(launch, &environment).map_err(told(How::Failed))
}

fn told(how: impl Fn(String) -> How) -> impl Fn(io::Error) -> How {
    move |error| how(shortened(error.to_string()))
}

fn enter(folder: &Path) -> io::Result<()> {
    std::env::set_current_dir(folder).map_err(|e| {
        let what = format!("working folder `{}` cannot be entered", folder.display());
        about(&e, what, "create it, or name another one in the settings of the task")
    })
}

fn with_packages(packages: &Packages, environment: &mut Environment) -> io::Result<()> {
    let made = packages::enter(packages, environment)?;
    let text = |path: PathBuf| {
        let text = path.into_os_string().into_string();
        text.map_err(|path| io::Error::other(format!("`{}` is no text; name another data directory", path.display())))
    };
    let path = environment.get("PATH").map_or("", String::as_str);
    let path = std::env::join_paths([made.join("bin")].into_iter().chain(std::env::split_paths(path)));
    let path = text(path.map_err(io::Error::other)?.into())?;
    environment.insert("PATH".to_owned(), path);
    environment.insert("PYSPARK_PYTHON".to_owned(), text(made.join("bin/python"))?);
    environment.insert("VIRTUAL_ENV".to_owned(), text(made)?);
    Ok(())
}

/// The name of the program is looked up in the `PATH` that it gets.
fn become_program(launch: &Launch, environment: &Environment) -> io::Result<Infallible> {
    let error = Command::new(&launch.program).args(&launch.arguments).env_clear().envs(environment).exec();
    let what = format!("program `{}` cannot be run", launch.program);
    Err(about(&error, what, "check its path, its rights and the `PATH` of the task"))
}
