//! `guide`: every console block in `docs/guide` and the README is what the binary prints.

use super::Outcome;
use crate::{lakescope_binary, root};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the commands of the pages; `UPDATE=1` rewrites the pages instead.
pub fn run(_: &[String]) -> Result<Outcome> {
    let binary = lakescope_binary()?;
    let mut outcome = Outcome::default();
    for page in pages()? {
        let old = std::fs::read_to_string(&page)?;
        let new = replay(&binary, &old)?;
        let shown = page.strip_prefix(root()).unwrap_or(&page).display().to_string();
        if std::env::var_os("UPDATE").is_some() && old != new {
            std::fs::write(&page, &new)?;
            println!("wrote {shown}");
        }
        let same = old == new || std::env::var_os("UPDATE").is_some();
        outcome.check(same, format!("{shown} is not what the binary prints (UPDATE=1 rewrites it)"));
    }
    Ok(outcome)
}

fn pages() -> Result<Vec<PathBuf>> {
    let mut pages = vec![root().join("README.md")];
    for entry in std::fs::read_dir(root().join("docs/guide"))? {
        pages.push(entry?.path());
    }
    pages.retain(|p| p.extension().is_some_and(|e| e == "md"));
    pages.sort();
    Ok(pages)
}

/// The page with the output of each `$ lakescope …` line put anew.
fn replay(binary: &Path, page: &str) -> Result<String> {
    let mut new = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        new.push_str(line);
        new.push('\n');
        let Some(command) = line.strip_prefix("$ lakescope ") else { continue };
        new.push_str(&output(binary, command)?);
        // What stood there is dropped up to the end of the block.
        let end = lines.by_ref().find(|l| l.starts_with("```")).context("a console block has no end")?;
        new.push_str(end);
        new.push('\n');
    }
    Ok(new)
}

fn output(binary: &Path, command: &str) -> Result<String> {
    let arguments = command.split_whitespace();
    let output = Command::new(binary)
        .args(arguments)
        .args(["--width", "100", "--color", "never"])
        .current_dir(root())
        .output()
        .with_context(|| format!("cannot run lakescope {command}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(str::trim_end).fold(String::new(), |page, line| page + line + "\n"))
}
