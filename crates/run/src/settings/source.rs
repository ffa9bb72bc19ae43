//! `git_source`, and the tasks whose files stand in it.

use super::problem::Problems;
use super::raw::{RawDbt, RawGit};
use super::{Place, Work, local};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A state of a Git repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitSource {
    /// URL, or a path of the machine that runs the server.
    pub url: String,
    /// Which state.
    pub reference: GitReference,
    /// Folders and files that are wanted; all of them if there are none.
    pub patterns: Vec<String>,
}

/// Names a state of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitReference {
    /// The newest commit of a branch.
    Branch(String),
    /// The commit of a tag.
    Tag(String),
    /// A commit, by its whole hash.
    Commit(String),
}

pub(super) fn read(raw: RawGit, problems: &mut Problems) -> Option<GitSource> {
    let RawGit { git_url: url, git_branch, git_tag, git_commit, sparse_checkout } = raw;
    let given =
        [git_branch.map(GitReference::Branch), git_tag.map(GitReference::Tag), git_commit.map(GitReference::Commit)];
    let mut given = given.into_iter().flatten();
    let (Some(reference), None) = (given.next(), given.next()) else {
        problems.value("/git_source", "git_source needs one of git_branch, git_tag and git_commit".to_owned());
        return None;
    };
    if !is_url(&url) {
        let why = format!("git_source: git_url {url:?} is neither a URL of https, ssh, git or file nor a whole path");
        problems.value("/git_source/git_url", why);
    }
    let (GitReference::Branch(name) | GitReference::Tag(name) | GitReference::Commit(name)) = &reference;
    let is_hash = name.len() >= 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    match reference {
        GitReference::Commit(_) if !is_hash => {
            problems.value("/git_source/git_commit", format!("git_source: git_commit {name:?} is no whole hash"));
        }
        _ if name.is_empty() || name.starts_with('-') || name.contains([' ', ':', '*', '^', '~']) => {
            problems.value("/git_source", format!("git_source: {name:?} is no name of a branch or tag"));
        }
        _ => {}
    }
    Some(GitSource { url, reference, patterns: sparse_checkout.map(|sparse| sparse.patterns).unwrap_or_default() })
}

/// Also the short form of ssh, `git@host:path`.
fn is_url(url: &str) -> bool {
    let short = url.split_once(':').is_some_and(|(host, path)| host.contains('@') && !path.starts_with("//"));
    let known = ["https://", "http://", "ssh://", "git://", "file://", "/"];
    !url.starts_with('-') && (short || known.iter().any(|scheme| url.starts_with(scheme)))
}

/// The repository of a task. Notebooks and dbt projects are in it unless they say otherwise, Python
/// files where they say so, as in the public API.
pub(super) fn of_task(
    task: &Value,
    work: &Work,
    Place { at, what }: Place<'_>,
    git: Option<&GitSource>,
    problems: &mut Problems,
) -> Option<GitSource> {
    let (kind, by_default, path) = match work {
        Work::Python { file, .. } => ("spark_python_task", false, file),
        Work::Notebook { path, .. } => ("notebook_task", true, path),
        Work::Dbt { project, .. } => ("dbt_task", true, project),
        _ => return None,
    };
    let is_wanted = match task[kind]["source"].as_str() {
        Some(source) => source == "GIT",
        None => by_default && git.is_some(),
    };
    if !is_wanted {
        return None;
    }
    if git.is_none() {
        problems.value(&format!("{at}/{kind}/source"), format!("{what}: source is GIT, and the job has no git_source"));
    }
    if !is_inside(path) {
        let why =
            format!("{what}: {path:?} is no path in the repository; give one from its root on, such as jobs/load.py");
        problems.value(&format!("{at}/{kind}"), why);
    }
    git.cloned()
}

/// Whether a path leads nowhere else than into the folder that it is joined to.
pub(crate) fn is_inside(path: &str) -> bool {
    !local(path).starts_with('/') && path.split('/').all(|part| part != "..")
}

pub(super) fn dbt(raw: RawDbt, Place { at, what }: Place<'_>, problems: &mut Problems) -> Work {
    let RawDbt { commands, project_directory, profiles_directory } = raw;
    if commands.is_empty() {
        problems.value(&format!("{at}/commands"), format!("{what}: commands are missing, such as dbt run"));
    }
    if let Some((nth, wrong)) = commands.iter().enumerate().find(|(_, c)| c.split_whitespace().next() != Some("dbt")) {
        let why = format!("{what}: commands[{nth}] is {wrong:?}, which does not begin with dbt");
        problems.value(&format!("{at}/commands/{nth}"), why);
    }
    let (project, profiles) = (project_directory.unwrap_or_default(), profiles_directory.unwrap_or_default());
    Work::Dbt { project, profiles, commands }
}
