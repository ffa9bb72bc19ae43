//! Finding, and where needed installing, PostgreSQL for tests.

use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

/// Folder with the programs of PostgreSQL; on Debian its package is installed.
pub fn find() -> Result<Option<PathBuf>> {
    if let Some(bin) = testkit::postgres::bin() {
        return Ok(Some(bin));
    }
    if std::env::var_os("CI").is_some() {
        let install = "apt-get update -qq && apt-get install -y -qq postgresql";
        let _ = Command::new("sh").args(["-c", install]).status().context("cannot install postgresql")?;
    }
    Ok(testkit::postgres::bin())
}
