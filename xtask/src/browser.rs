//! The browser tests of the pages.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The browser of the system that the tests drive; on Debian its package is installed.
pub fn find() -> Result<Option<PathBuf>> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Ok(Some(named.into()));
    }
    let known = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let found = || known.iter().map(PathBuf::from).find(|path| path.exists());
    if let Some(path) = found() {
        return Ok(Some(path));
    }
    if std::env::var_os("CI").is_some() {
        let install = "apt-get update -qq && apt-get install -y -qq chromium";
        let _ = Command::new("sh").args(["-c", install]).status().context("cannot install chromium")?;
    }
    Ok(found())
}

/// Runs a script of the pages' package against a server; the output of the runner.
pub fn run(script: &str, browser: &Path, settings: &[(&str, &str)]) -> Result<Output> {
    let mut npm = start::pages::npm();
    npm.args(["run", "--silent", script]).env("CHROMIUM", browser).envs(settings.iter().copied());
    npm.output().context("cannot run npm")
}
