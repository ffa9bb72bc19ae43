//! Fuzzing every parser with libFuzzer, on the stable toolchain.

use crate::accept::Outcome;
use crate::{root, spark};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Coverage that libFuzzer is guided by; the sanitizers themselves would need a nightly compiler.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
                     --cfg fuzzing";

/// Memory that a parser may take on any input, MiB.
const MEMORY_MIB: u32 = 1_024;

/// Fuzzes each target for so many seconds; an error when one fails.
pub fn run(seconds: u64) -> Result<()> {
    match fuzz(seconds)?.failed {
        0 => Ok(()),
        n => bail!("{n} parsers failed"),
    }
}

/// The acceptance line: one minute a parser unless told otherwise.
pub fn accept(arguments: &[String]) -> Result<Outcome> {
    fuzz(arguments.first().map_or(Ok(60), |s| s.parse())?)
}

fn fuzz(seconds: u64) -> Result<Outcome> {
    let triple = host()?;
    let folder = root().join("fuzz");
    let target = spark::target_folder().join("fuzz");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--release", "--target", &triple, "--target-dir"]).arg(&target).current_dir(&folder);
    spark::run(build.env("RUSTFLAGS", FLAGS))?;
    let mut outcome = Outcome::default();
    for name in targets(&folder)? {
        let binary = target.join(&triple).join("release").join(&name);
        let ok = one(&folder, &target, &name, &binary, seconds);
        outcome.check(ok.is_ok(), format!("{name}: {}", ok.err().map(|e| e.to_string()).unwrap_or_default()));
        println!("fuzz {name}: {seconds} s");
    }
    Ok(outcome)
}

/// Runs one target on its kept corpus; new inputs go under the target folder, crashes beside them.
fn one(folder: &Path, target: &Path, name: &str, binary: &Path, seconds: u64) -> Result<()> {
    let grown = target.join("corpus").join(name);
    let crashes = target.join("crashes").join(name);
    std::fs::create_dir_all(&grown)?;
    std::fs::create_dir_all(&crashes)?;
    spark::run(
        Command::new(binary)
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
            .args(["-timeout=20", "-max_len=65536", "-verbosity=0", "-print_final_stats=1"])
            .arg(format!("-artifact_prefix={}/", crashes.display()))
            .arg(grown)
            .arg(folder.join("corpus").join(name)),
    )
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
