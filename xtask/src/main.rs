//! The project's automation: `cargo xtask <task>`.
//!
//! `test` runs every test (and sets up what they need), `accept NAME` one acceptance line on real
//! input, `tidy` what a reviewer would otherwise say, `docs` the generated reference pages,
//! `web` builds the pages that the binary embeds, `sample` makes the bundled sample again with real
//! Spark. `cargo start` is a crate of its own.

mod accept;
mod browser;
mod docs;
mod fuzz;
mod postgres;
mod spark;
mod test;
mod tidy;

use clap::{Parser, Subcommand};
use start::root;
use std::path::PathBuf;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Automation of the lakescope workspace")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run every check and test: format, lints, tidy, unit and integration tests, fast acceptance
    Test,
    /// Run one acceptance line on real input, or list their names
    Accept {
        /// Name of the line; without one the names are listed
        name: Option<String>,
        /// Arguments of the line, e.g. seconds for `fuzz`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Check the dependency table, crate pages, file sizes and left-over marks
    Tidy,
    /// Write the generated reference pages
    Docs {
        /// Fail when a page is not up to date instead of writing it
        #[arg(long)]
        check: bool,
    },
    /// Fuzz every parser
    Fuzz {
        /// Seconds for each parser
        #[arg(default_value_t = 600)]
        seconds: u64,
        /// Begin from inputs of this tree only, and merge what is found into fuzz/corpus
        #[arg(long)]
        keep: bool,
    },
    /// Build the web pages that the binary embeds
    Web,
    /// Make the bundled sample again with real Spark
    Sample,
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Test => test::run(),
        Task::Accept { name: None, .. } => {
            accept::list();
            Ok(())
        }
        Task::Accept { name: Some(name), arguments } => accept::run(&name, &arguments),
        Task::Tidy => tidy::run(),
        Task::Docs { check } => docs::run(check),
        Task::Fuzz { seconds, keep } => fuzz::run(seconds, keep),
        Task::Web => start::pages::build(),
        Task::Sample => spark::sample(),
    }
}

/// The binary under test: that of `LAKESCOPE_BIN`, else the workspace's, unoptimised.
fn lakescope_binary() -> anyhow::Result<PathBuf> {
    if let Some(binary) = std::env::var_os("LAKESCOPE_BIN") {
        return Ok(binary.into());
    }
    build_lakescope(&[])
}

/// Builds the binary with all features and gives its path. The unoptimised one is built as part of
/// the workspace, as the tests build it: the features of all members together, so that nothing is
/// compiled twice. What is measured is built as users build it.
fn build_lakescope(arguments: &[&str]) -> anyhow::Result<PathBuf> {
    let release = arguments.contains(&"--release");
    let mut build = start::cargo();
    build.args(["build", "--quiet", "--locked", "--bin", "lakescope"]).args(arguments).current_dir(root());
    build.args(if release { ["--package", "lakescope"].as_slice() } else { &["--workspace"] });
    start::run(&mut build)?;
    let profile = if release { "release" } else { "debug" };
    Ok(start::target_folder().join(profile).join("lakescope"))
}
