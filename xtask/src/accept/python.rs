//! Clients from Python's package index, each set in an environment of its own.

use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;

/// The folder of an environment in which `program` is there: made once, with these words for pip.
/// `None`: there is no Python with pip here, or it cannot install them.
pub fn environment(name: &str, program: &str, pip: &[&str]) -> Result<Option<PathBuf>> {
    let tools = start::target_folder().join("tools");
    let folder = tools.join(name);
    if folder.join("bin").join(program).exists() {
        return Ok(Some(folder));
    }
    std::fs::create_dir_all(&tools)?;
    let made = Command::new("python3").args(["-m", "venv"]).arg(&folder).status();
    if !made.is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let done = Command::new(folder.join("bin/pip")).args(["install", "--quiet"]).args(pip).status()?;
    Ok(done.success().then_some(folder))
}
