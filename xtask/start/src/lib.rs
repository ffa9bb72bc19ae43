//! What it takes to have lakescope running on a fresh clone: the web pages, then the binary that
//! embeds them.
//!
//! A crate of its own, with next to no dependencies, so that `cargo start` does not wait for what
//! the tests need.
//!
//! ```no_run
//! start::pages::build()?;
//! # Ok::<(), anyhow::Error>(())
//! ```
//!
//! It never installs a tool: what is missing is named.

pub mod pages;

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// The workspace's folder.
#[must_use]
pub fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root.pop();
    root
}

/// Cargo's target folder.
#[must_use]
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo, for a build of its own. What the cargo that runs this program has told it about its
/// package is taken back: build scripts that look at it would run again, and half of the
/// dependencies with them, each time that cargo is called now by a person and now from here.
#[must_use]
pub fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        let about_package =
            name.to_str().is_some_and(|n| n.starts_with("CARGO_PKG_") || n.starts_with("CARGO_MANIFEST_"));
        if about_package {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Runs a command to its end.
///
/// # Errors
/// When it cannot be run, or ends with a code that is not 0.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    if !status.success() {
        bail!("{:?} ended with {status}", command.get_program());
    }
    Ok(())
}
