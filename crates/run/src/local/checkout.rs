//! Files of a task that stand in a Git repository.
//!
//! All tasks of a run share one folder, which the first of them makes, so that they run the same
//! commit. It is the task's own process that makes it, as with its packages.

use super::gate::Environment;
use super::shared;
use crate::settings::{GitReference, GitSource};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Ways to a repository that are allowed: none that runs a program of its choice.
const PROTOCOLS: &str = "file:git:http:https:ssh";

/// What of a repository is wanted, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkout {
    /// The repository.
    pub source: GitSource,
    /// The folder that holds its files, absolute; its parent is made where it is missing.
    pub folder: PathBuf,
}

/// Makes the folder if no other task of the run has. This process, and the program that it becomes,
/// keep it.
///
/// # Errors
/// The repository, or that state of it, cannot be had: the message is Git's.
pub(super) fn enter(checkout: &Checkout, environment: &Environment) -> io::Result<()> {
    shared::enter(&checkout.folder, |folder| make(&checkout.source, folder, environment))
}

fn make(source: &GitSource, folder: &Path, environment: &Environment) -> io::Result<()> {
    let at = folder.display().to_string();
    let git = |arguments: &[&str]| git(arguments, environment);
    let inside = |arguments: &[&str]| git(&[&["-C", at.as_str()], arguments].concat());
    git(&["init", "--quiet", &at])?;
    let name = match &source.reference {
        GitReference::Branch(name) => format!("refs/heads/{name}"),
        GitReference::Tag(name) => format!("refs/tags/{name}"),
        GitReference::Commit(hash) => hash.clone(),
    };
    let fetched = inside(&["fetch", "--quiet", "--depth", "1", "--", &source.url, &name]);
    let state = match (&source.reference, fetched) {
        (_, Ok(_)) => "FETCH_HEAD",
        // Not every server gives out a commit by its hash alone.
        (GitReference::Commit(hash), Err(_)) => {
            inside(&["fetch", "--quiet", "--tags", "--", &source.url, "+refs/heads/*:refs/remotes/origin/*"])?;
            hash
        }
        (_, Err(error)) => return Err(error),
    };
    if !source.patterns.is_empty() {
        let patterns: Vec<&str> = source.patterns.iter().map(String::as_str).collect();
        inside(&[&["sparse-checkout", "set", "--no-cone", "--"], patterns.as_slice()].concat())?;
    }
    inside(&["-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", state])?;
    let commit = inside(&["rev-parse", "HEAD"])?;
    eprintln!("{} at commit {}", without_password(&source.url), commit.trim());
    Ok(())
}

/// What names another repository than the one that is being made.
const OF_ANOTHER: [&str; 3] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"];

/// What it says on standard output; what it says else goes to the messages of the task.
fn git(arguments: &[&str], environment: &Environment) -> io::Result<String> {
    let mut command = Command::new("git");
    command.args(arguments).env_clear().envs(environment);
    for name in OF_ANOTHER {
        command.env_remove(name);
    }
    // Nobody is there to be asked for a password.
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ALLOW_PROTOCOL", PROTOCOLS).stdin(Stdio::null());
    let output = command.output().map_err(|e| super::files::about(&e, "`git` cannot be run", "install it"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    eprint!("{said}");
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let last = said.lines().rev().find(|line| !line.trim().is_empty());
            Err(io::Error::other(last.map_or_else(|| format!("git failed ({})", output.status), str::to_owned)))
        }
    }
}

/// A URL for people: what stands before the host may be a secret.
fn without_password(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1))) {
        Some((scheme, host)) => format!("{scheme}://{host}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (url, shown) in [
            ("https://user:token@host/repo.git", "https://host/repo.git"),
            ("https://host/repo.git", "https://host/repo.git"),
            ("git@host:team/repo.git", "git@host:team/repo.git"),
            ("/repos/shop", "/repos/shop"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
