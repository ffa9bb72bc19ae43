//! The web pages: checked and built from `web/` by npm, into `web/dist`, which the binary embeds.

use crate::{root, run};
use anyhow::{Result, bail};
use std::process::Command;

/// Oldest Node that runs the build.
const NODE: u32 = 20;

/// Installs the packages of the lock file, checks the types and builds.
///
/// # Errors
/// When Node is missing or a step fails.
pub fn build() -> Result<()> {
    if let Some(why) = missing() {
        bail!("{why}");
    }
    run(npm().args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]))?;
    run(npm().args(["run", "--silent", "check"]))?;
    run(npm().args(["run", "--silent", "build"]))
}

/// What is needed and not there.
#[must_use]
pub fn missing() -> Option<String> {
    let output = Command::new("node").arg("--version").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(major) if major >= NODE => None,
        Some(_) => Some(format!("Node {NODE} or later builds the web pages; this is {version}")),
        None => Some(format!("Node {NODE} or later builds the web pages; there is none (https://nodejs.org)")),
    }
}

/// npm in the folder of the pages.
#[must_use]
pub fn npm() -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(root().join("web"));
    npm
}
