//! Fuzzing every parser with libFuzzer, on the stable toolchain.
//!
//! A run begins from the kept corpus (`fuzz/corpus/NAME.tar.zst`, grown from inputs of this tree;
//! one archive a target, as the inputs are thousands of small files) and from seeds that are made anew each time out of real input: excerpts of logs in every codec, plans,
//! pasted text. What it finds new stays in the target folder until `cargo xtask fuzz --keep`
//! merges what adds coverage into the kept corpus.

mod seeds;

use crate::accept::Outcome;
use crate::root;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Coverage that libFuzzer is guided by; the sanitizers themselves would need a nightly compiler.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
                     --cfg fuzzing";

/// Memory that a parser may take on any input, MiB.
const MEMORY_MIB: u32 = 1_024;

/// Bytes of the longest input.
const INPUT_BYTES: usize = 16 << 10;

/// Bytes of the longest input that is kept in the tree.
const KEPT_BYTES: usize = 4 << 10;

/// The built targets and where their inputs are.
struct Lab {
    /// Archives of the kept inputs.
    corpus: PathBuf,
    /// Kept inputs unpacked, seeds, new inputs and crashes.
    scratch: PathBuf,
    binaries: PathBuf,
    names: Vec<String>,
    /// Whether what is found may go into the tree.
    keep: bool,
}

/// Fuzzes each target for so many seconds; an error when one fails.
pub fn run(seconds: u64, keep: bool) -> Result<()> {
    let lab = Lab::build(keep)?;
    let outcome = lab.fuzz(seconds)?;
    if outcome.failed > 0 {
        bail!("{} parsers failed", outcome.failed);
    }
    if keep {
        lab.names.iter().try_for_each(|name| lab.keep(name))?;
    }
    Ok(())
}

/// The acceptance line: one minute a parser unless told otherwise; all of them, or those named.
pub fn accept(arguments: &[String]) -> Result<Outcome> {
    let seconds = arguments.first().map_or(Ok(60), |s| s.parse()).context("the argument is a number of seconds")?;
    let mut lab = Lab::build(false)?;
    if let Some(wanted) = arguments.get(1..).filter(|wanted| !wanted.is_empty()) {
        lab.names.retain(|name| wanted.contains(name));
        if lab.names.len() < wanted.len() {
            bail!("not all of {} are targets", wanted.join(", "));
        }
    }
    lab.fuzz(seconds)
}

impl Lab {
    fn build(keep: bool) -> Result<Self> {
        let triple = host()?;
        let folder = root().join("fuzz");
        let target = start::target_folder().join("fuzz");
        let mut build = start::cargo();
        build.args(["build", "--release", "--target", &triple, "--target-dir"]);
        start::run(build.arg(&target).current_dir(&folder).env("RUSTFLAGS", FLAGS))?;
        let names = targets(&folder)?;
        let binaries = target.join(&triple).join("release");
        let scratch = target.join(if keep { "own" } else { "all" });
        Ok(Self { corpus: folder.join("corpus"), scratch, binaries, names, keep })
    }

    /// Every target, as many at once as there are cores.
    fn fuzz(&self, seconds: u64) -> Result<Outcome> {
        for (name, inputs) in seeds::all(self.keep)? {
            write_inputs(&self.scratch.join("seeds").join(name), &inputs)?;
        }
        let todo = Mutex::new(self.names.iter());
        let next = || todo.lock().ok().and_then(|mut names| names.next());
        let outcome = Mutex::new(Outcome::default());
        let worker = || {
            while let Some(name) = next() {
                let ran = self.one(name, seconds);
                let Ok(mut outcome) = outcome.lock() else { return };
                match &ran {
                    Ok(figures) => println!("fuzz {name}: {seconds} s, {figures}"),
                    Err(error) => println!("fuzz {name}: {error:#}"),
                }
                outcome.check(ran.is_ok(), name);
            }
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(worker))));
        outcome.into_inner().map_err(|_| anyhow::anyhow!("a fuzzing thread panicked"))
    }

    /// Runs one target from all its inputs; new ones and crashes go to the scratch folder.
    fn one(&self, name: &str, seconds: u64) -> Result<String> {
        let folder = |kind: &str| -> Result<PathBuf> {
            let folder = self.scratch.join(kind).join(name);
            std::fs::create_dir_all(&folder)?;
            Ok(folder)
        };
        let (grown, seeds, crashes) = (folder("grown")?, folder("seeds")?, folder("crashes")?);
        let kept = self.unpacked(name)?;
        let log = self.scratch.join(format!("{name}.log"));
        let status = Command::new(self.binaries.join(name))
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
            .arg(format!("-max_len={INPUT_BYTES}"))
            .args(["-timeout=20", "-print_final_stats=1", "-reload=0"])
            .arg(format!("-artifact_prefix={}/", crashes.display()))
            .args([grown, kept, seeds])
            .stderr(std::fs::File::create(&log)?)
            .stdout(Stdio::null())
            .status()?;
        let text = String::from_utf8_lossy(&std::fs::read(&log)?).into_owned();
        if !status.success() {
            let why = text.lines().filter(|l| l.contains("panicked") || l.contains("ERROR") || l.contains("Test unit"));
            let why: Vec<&str> = why.take(3).collect();
            bail!("{}; the whole log is {}", why.join("; "), log.display());
        }
        Ok(figures(&text))
    }

    /// Merges into the kept corpus what adds coverage and is short. Seeds stay out of it: part of
    /// them is made of files that are not this tree's.
    fn keep(&self, name: &str) -> Result<()> {
        let kept = self.scratch.join("kept").join(name);
        let mut merge = Command::new(self.binaries.join(name));
        merge
            .args(["-merge=1", &format!("-max_len={KEPT_BYTES}")])
            .arg(&kept)
            .arg(self.scratch.join("grown").join(name));
        start::run(merge.stderr(Stdio::null()))?;
        pack(&kept, &self.archive(name)).with_context(|| format!("packing the corpus of {name}"))
    }

    fn archive(&self, name: &str) -> PathBuf {
        self.corpus.join(format!("{name}.tar.zst"))
    }

    /// The kept inputs of a target as files.
    fn unpacked(&self, name: &str) -> Result<PathBuf> {
        let folder = self.scratch.join("kept").join(name);
        std::fs::create_dir_all(&folder)?;
        let archive = self.archive(name);
        if archive.exists() {
            let file = std::fs::File::open(&archive)?;
            let unpacked = tar::Archive::new(zstd::Decoder::new(file)?).unpack(&folder);
            unpacked.with_context(|| format!("unpacking {}", archive.display()))?;
        }
        Ok(folder)
    }
}

/// Writes a folder's files as an archive that depends on nothing but their names and contents.
fn pack(folder: &Path, archive: &Path) -> Result<()> {
    let files: Result<Vec<PathBuf>, _> = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
    let mut files: Vec<PathBuf> = files.map_err(|e: std::io::Error| e)?;
    files.sort();
    if let Some(folder) = archive.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut tar = tar::Builder::new(zstd::Encoder::new(std::fs::File::create(archive)?, 19)?);
    for path in files {
        let (content, name) = (std::fs::read(&path)?, path.file_name().unwrap_or_default());
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, content.as_slice())?;
    }
    tar.into_inner()?.finish()?;
    Ok(())
}

/// Runs, coverage and peak memory from libFuzzer's log.
fn figures(log: &str) -> String {
    let stat = |name: &str| log.lines().find_map(|l| l.strip_prefix(name)).map_or("?", str::trim);
    let covered = log.lines().rev().find_map(|l| l.split(" cov: ").nth(1)?.split_whitespace().next()).unwrap_or("?");
    format!(
        "{} runs, {covered} edges covered, at most {} MiB",
        stat("stat::number_of_executed_units:"),
        stat("stat::peak_rss_mb:")
    )
}

fn write_inputs(folder: &Path, inputs: &[Vec<u8>]) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    for (at, input) in inputs.iter().filter(|i| i.len() <= INPUT_BYTES).enumerate() {
        std::fs::write(folder.join(format!("{at:04}")), input)?;
    }
    Ok(())
}

fn targets(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder.join("targets"))? {
        let path: PathBuf = entry?.path();
        names.extend(path.file_stem().map(|s| s.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output()?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|l| l.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| anyhow::anyhow!("rustc -vV names no host"))
}
