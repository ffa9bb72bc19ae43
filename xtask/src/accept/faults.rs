//! `faults-history`: `lakescope serve` while everything around it goes wrong. Served or refused
//! clearly, never a wrong or half answer, clean after a restart.
//!
//! Arguments name the cases that run; `long` makes those with random moments and large inputs longer.

mod bombs;
mod disk;
mod killed;
mod listeners;
mod malformed;
mod probes;
mod replaced;
mod server;
mod slow;
mod wire;

use super::Outcome;
use super::random::Random;
use crate::lakescope_binary;
use anyhow::{Context, Result, ensure};
use server::{Answers, Server};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

/// A case: its name and what runs it.
type Case = (&'static str, fn(&World, &mut Outcome) -> Result<()>);

const CASES: [Case; 8] = [
    ("killed", killed::run),
    ("disk", disk::run),
    ("replaced", replaced::run),
    ("listeners", listeners::run),
    ("slow", slow::run),
    ("malformed", malformed::run),
    ("probes", probes::run),
    ("bombs", bombs::run),
];

/// Logs that are served: of every codec, a rolling one, one without an end, failures, many tasks.
const LOGS: [&str; 14] = [
    "aqe_off_tiny_partitions.zstd",
    "codec_none",
    "codec_lz4.lz4",
    "codec_lzf.lzf",
    "codec_snappy.snappy",
    "delta_merge_optimize.zstd",
    "executor_lost_fetch_failed.zstd",
    "failed_task_exception.zstd",
    "incomplete_killed_driver.inprogress",
    "names_html",
    "notskew_tiny_tasks.zstd",
    "rolling",
    "speculation.zstd",
    "streaming_rate_memory.zstd",
];

/// Seed of all random moments.
const SEED: u64 = 20_261_130;

pub fn run(arguments: &[String]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(shared) = testkit::shared() else {
        outcome.skip("faults-history: needs ../shared (LAKESCOPE_SHARED)");
        return Ok(outcome);
    };
    let (long, named): (Vec<&String>, Vec<&String>) = arguments.iter().partition(|argument| *argument == "long");
    let unknown = named.iter().find(|name| CASES.iter().all(|(known, _)| *known != **name));
    ensure!(unknown.is_none(), "there is no case {unknown:?}");
    let world = World::new(&shared.join("data/eventlogs"), !long.is_empty())?;
    for (name, case) in CASES.iter().filter(|(known, _)| named.is_empty() || named.iter().any(|name| name == known)) {
        let (begun, before) = (Instant::now(), outcome);
        case(&world, &mut outcome).with_context(|| format!("case {name}"))?;
        let (passed, failed) = (outcome.passed - before.passed, outcome.failed - before.failed);
        println!("{name}: {passed} passed, {failed} failed in {:.1} s", begun.elapsed().as_secs_f64());
    }
    Ok(outcome)
}

/// What all cases share.
struct World {
    binary: PathBuf,
    /// The labelled logs, which nobody may change.
    eventlogs: PathBuf,
    /// Copies of some of them.
    folder: tempfile::TempDir,
    long: bool,
    undisturbed: OnceLock<Answers>,
}

impl World {
    fn new(eventlogs: &Path, long: bool) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for log in LOGS {
            copy(&eventlogs.join(log), &folder.path().join(log))?;
        }
        let eventlogs = eventlogs.to_owned();
        Ok(Self { binary: lakescope_binary()?, eventlogs, folder, long, undisturbed: OnceLock::new() })
    }

    /// The folder of logs that is served.
    fn logs(&self) -> &Path {
        self.folder.path()
    }

    /// What a server answers that nobody disturbs.
    fn undisturbed(&self) -> Result<&Answers> {
        if let Some(known) = self.undisturbed.get() {
            return Ok(known);
        }
        let data = tempfile::tempdir()?;
        let server = Server::start(self, data.path(), &[self.logs()], &[])?;
        server.ready()?;
        let answers = server.answers()?;
        ensure!(answers.applications() == LOGS.len(), "{} applications of {} logs", answers.applications(), LOGS.len());
        Ok(self.undisturbed.get_or_init(|| answers))
    }

    /// A labelled log as plain text.
    fn plain(&self, log: &str) -> Result<Vec<u8>> {
        testkit::logs::plain(&self.eventlogs.join(log))
    }
}

/// Copies a file or a folder. Times stay: the list tells them.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        std::fs::create_dir(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    std::fs::write(to, std::fs::read(from)?)?;
    let modified = std::fs::metadata(from)?.modified()?;
    std::fs::File::options().write(true).open(to)?.set_modified(modified)?;
    Ok(())
}
