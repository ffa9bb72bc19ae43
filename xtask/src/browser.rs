//! The web pages: checked and built from `web/` by npm, into `web/dist`, which the binary embeds.

use crate::{root, spark};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// Oldest Node that runs the build.
const NODE: u32 = 20;

/// Installs the packages of the lock file, checks the types and builds.
pub fn build() -> Result<()> {
    if let Some(why) = missing() {
        bail!("{why}");
    }
    spark::run(npm().args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]))?;
    spark::run(npm().args(["run", "--silent", "check"]))?;
    spark::run(npm().args(["run", "--silent", "build"]))
}

/// What is needed and not there.
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

/// The browser of the system that the tests drive; on Debian its package is installed.
pub fn browser() -> Result<Option<PathBuf>> {
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

fn npm() -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(root().join("web"));
    npm
}

/// Runs the browser tests against a server; the output of the runner.
pub fn test(address: &str, browser: &std::path::Path, screenshots: Option<&str>) -> Result<std::process::Output> {
    let mut test = npm();
    test.args(["run", "--silent", "test"]).env("LAKESCOPE_URL", address).env("CHROMIUM", browser);
    if let Some(folder) = screenshots {
        test.env("LAKESCOPE_SCREENSHOTS", folder);
    }
    test.output().context("cannot run npm")
}
