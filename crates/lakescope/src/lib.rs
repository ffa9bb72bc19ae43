//! The command line: finds inputs, reads, diagnoses, shows.
//!
//! In: arguments, files, standard input, objects in a bucket. Out: text, Markdown, HTML or JSON,
//! and an exit code: 0 when nothing is at or above the severity asked for, 1 when something is,
//! 2 when the input could not be read or the command was wrong.
//!
//! ```
//! use lakescope::render::{self, Look};
//!
//! let report = model::Report { version: model::REPORT_VERSION, ..model::Report::default() };
//! assert!(render::markdown(&report, &Look::default()).starts_with("## Diagnosis"));
//! ```
//!
//! The things to know: [`cli::Cli`] (every command and option), [`inputs`] (what an input may
//! be), [`render`] (one report, four forms), `commands/` (one file a command).
//!
//! This crate holds no rule and no format of Spark's: it wires `read` to `diagnose`.

pub mod cli;
mod commands;
#[cfg(feature = "serve")]
mod data;
#[cfg(feature = "serve")]
mod definitions;
#[cfg(feature = "serve")]
mod duties;
pub mod inputs;
mod output;
mod progress;
pub mod render;
mod settings;
#[cfg(feature = "serve")]
mod traces;

use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the program with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    // Before anything else: each task of a job begins as a copy of this process.
    #[cfg(all(feature = "serve", target_os = "linux"))]
    if std::env::args_os().skip(1).eq(["shim"]) {
        return ::run::local::serve_forks();
    }
    run(std::env::args_os())
}

/// Runs the program.
pub fn run<I, T>(args: I) -> ExitCode
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let cli = cli::Cli::parse_from(args);
    let color = cli.global.color;
    match commands::run(cli) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(color, "error", &format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Whoever read our output had enough: no error of ours.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
    error.chain().filter_map(|e| e.downcast_ref::<std::io::Error>()).any(broken)
}
