//! A server under test: what it answers, what it says, what it takes.

use super::wire::{self, Answer};
use super::{Outcome, World};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use testkit::serving::{Serving, command};

/// How long something that must come may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// `lakescope serve`, stopped when it is dropped.
pub struct Server {
    pub serving: Serving,
}

impl Server {
    pub fn start(world: &World, data: &Path, sources: &[&Path], args: &[&str]) -> Result<Self> {
        Self::start_as(&mut Self::command(world, data, sources, args))
    }

    pub fn command(world: &World, data: &Path, sources: &[&Path], args: &[&str]) -> Command {
        let mut command = command(&world.binary, data, sources);
        command.args(["--no-auth", "--interval", "1"]).args(args);
        command
    }

    /// What it says is not passed on: it is asked for.
    pub fn start_as(command: &mut Command) -> Result<Self> {
        Ok(Self { serving: Serving::start_as(command, |_| {})? })
    }

    pub fn address(&self) -> &str {
        &self.serving.address
    }

    /// Waits until the first reading is done.
    pub fn ready(&self) -> Result<()> {
        eventually("the server is ready", || Ok(self.get("/ready")?.status == 200))
    }

    pub fn get(&self, path: &str) -> Result<Answer> {
        wire::get(self.address(), path)
    }

    pub fn json(&self, path: &str) -> Result<Value> {
        self.get(path)?.json().with_context(|| path.to_owned())
    }

    pub fn upload(&self, name: &str, body: &[u8]) -> Result<Answer> {
        wire::post(self.address(), &format!("/api/lakescope/v1/logs?name={name}"), body)
    }

    /// Ids of all applications.
    pub fn ids(&self) -> Result<BTreeSet<String>> {
        let listed = self.json("/api/v1/applications")?;
        Ok(ids(&listed).map(str::to_owned).collect())
    }

    /// Answers of all applications.
    pub fn answers(&self) -> Result<Answers> {
        let listed = self.json("/api/v1/applications")?;
        let mut answers = Answers::default();
        for id in ids(&listed) {
            answers.0.extend(self.answers_of(id)?.0);
        }
        answers.0.insert(LIST.to_owned(), listed);
        Ok(answers)
    }

    /// Answers of one application: its lists, tasks of its first and last stage, its page.
    pub fn answers_of(&self, id: &str) -> Result<Answers> {
        let base = format!("/api/v1/applications/{id}");
        let stages = format!("{base}/stages");
        let listed = self.json(&stages)?;
        let numbers: BTreeSet<u64> =
            listed.as_array().into_iter().flatten().filter_map(|stage| stage["stageId"].as_u64()).collect();
        let mut paths = vec![format!("{base}/jobs"), format!("{base}/allexecutors")];
        paths.extend(
            [numbers.first(), numbers.last()]
                .into_iter()
                .flatten()
                .map(|stage| format!("{stages}/{stage}/0/taskList?length=10000")),
        );
        paths.push(format!("/api/lakescope/v1/applications/{id}/page"));
        let mut answers = Answers::default();
        for path in paths {
            let answer = self.get(&path)?;
            // A stage may have begun with its second attempt.
            let value = if answer.status == 404 { Value::Null } else { answer.json().context(path.clone())? };
            answers.0.insert(path, value);
        }
        answers.0.insert(stages, listed);
        Ok(answers)
    }

    /// What it said of faults: everything but where it listens.
    pub fn complaints(&self) -> Vec<String> {
        self.serving.said().into_iter().filter(|line| !line.contains("listening on ")).collect()
    }

    /// That it still runs, answers, and that nothing in it has panicked.
    pub fn lives(&mut self, outcome: &mut Outcome, after: &str) -> Result<()> {
        let runs = self.serving.runs()? && self.get("/health").is_ok_and(|answer| answer.status == 200);
        outcome.check(runs, format!("{after}: the server no longer answers: {:?}", self.complaints()));
        let panics: Vec<String> = self.complaints().into_iter().filter(|line| line.contains("panicked")).collect();
        outcome.check(panics.is_empty(), format!("{after}: {panics:?}"));
        Ok(())
    }

    /// Files and connections that it has open.
    pub fn open_files(&self) -> Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.serving.id()))?.count())
    }
}

const LIST: &str = "/api/v1/applications";

fn ids(listed: &Value) -> impl Iterator<Item = &str> {
    listed.as_array().into_iter().flatten().filter_map(|app| app["id"].as_str())
}

/// Answers by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers(pub BTreeMap<String, Value>);

impl Answers {
    pub fn applications(&self) -> usize {
        self.0.get(LIST).map_or(0, |listed| ids(listed).count())
    }

    /// Checks that these are the `expected` ones, path by path.
    pub fn check(&self, expected: &Self, outcome: &mut Outcome, after: &str) {
        let paths: BTreeSet<&String> = self.0.keys().chain(expected.0.keys()).collect();
        let differ: Vec<&&String> = paths.iter().filter(|path| self.0.get(**path) != expected.0.get(**path)).collect();
        outcome.check(
            differ.is_empty(),
            format!("{after}: these answers are not those of an undisturbed server: {differ:?}"),
        );
    }
}

/// Waits for something that must come.
pub fn eventually(what: &str, is_so: impl Fn() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    loop {
        match is_so() {
            Ok(true) => return Ok(()),
            Err(error) if begun.elapsed() >= PATIENCE => return Err(error).context(what.to_owned()),
            Ok(false) if begun.elapsed() >= PATIENCE => bail!("{what}: not after {PATIENCE:?}"),
            _ => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// All files below a folder with their sizes.
pub fn tree(folder: &Path) -> Result<BTreeMap<PathBuf, u64>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => folders.push(entry.path()),
                false => drop(found.insert(entry.path(), entry.metadata()?.len())),
            }
        }
    }
    Ok(found)
}

/// Names of the files of applications in a data directory.
pub fn kept(data: &Path) -> Result<BTreeSet<String>> {
    let files = tree(&data.join("applications"))?;
    let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(files.into_keys().filter_map(name).collect())
}

/// That nothing is left of what was being written.
pub fn check_leftovers(data: &Path, outcome: &mut Outcome, after: &str) -> Result<()> {
    let is_part = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".tmp") || name.starts_with(".part-")
    };
    let parts: Vec<PathBuf> = tree(data)?.into_keys().filter(is_part).collect();
    outcome.check(parts.is_empty(), format!("{after}: temporary files are left: {parts:?}"));
    Ok(())
}

/// That the database of a data directory opens for another program.
pub fn check_database(world: &World, data: &Path, outcome: &mut Outcome, after: &str) -> Result<()> {
    let output = Command::new(&world.binary).args(["token", "list", "--data-dir"]).arg(data).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    outcome.check(output.status.success(), format!("{after}: the database does not open: {said}"));
    ensure!(data.join("lakescope.db").is_file(), "there is no database to open");
    Ok(())
}
