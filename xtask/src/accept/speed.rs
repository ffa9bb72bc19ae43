//! `speed-eventlog`: the large log, beside Spark's History Server and a plain parse.

use super::{Goal, Outcome};
use crate::{build_lakescope, root, spark};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Turns that each program gets.
const ROUNDS: u32 = 3;
/// Runs of ours in one turn: a run is short, and the shorter one is, the more disturbs it.
const RUNS_A_ROUND: u32 = 5;

/// Wall time, CPU time and peak memory of one run.
struct Figures {
    wall_s: f64,
    cpu_s: f64,
    peak_mb: f64,
}

/// Makes the log if it is not there, measures, prints the table and compares it with the goals.
pub fn run(arguments: &[String]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(shared) = testkit::shared() else {
        outcome.skip("speed-eventlog: needs ../shared (LAKESCOPE_SHARED)");
        return Ok(outcome);
    };
    let (plain, compressed) = logs(&shared)?;
    let binary = build_lakescope(&["--release", "--no-default-features"])?;
    let parse = build_plain_parse()?;
    let spark_wanted = !arguments.iter().any(|a| a == "--no-spark");
    let diagnose = |log: &Path| command(Command::new(&binary).args(["diagnose", "--format", "json"]).arg(log));
    let plain_parse = |how: &str| command(Command::new(&parse).arg(how).arg(&plain));
    let [mut ours, mut ours_zstd, mut sonic, mut serde, mut server] = [const { Best(None) }; 5];
    // All take turns, so that an hour in which the machine is slow is slow for each of them.
    for _ in 0..ROUNDS {
        for _ in 0..RUNS_A_ROUND {
            ours.take(diagnose(&plain)?);
            ours_zstd.take(diagnose(&compressed)?);
        }
        sonic.take(plain_parse("sonic")?);
        serde.take(plain_parse("serde")?);
        if spark_wanted {
            server.take(history_server(&plain)?);
        }
    }
    let [ours, ours_zstd, sonic, serde] = [ours, ours_zstd, sonic, serde].map(|best| best.0);
    let (ours, ours_zstd) = (ours.context("no run")?, ours_zstd.context("no run")?);
    let (sonic, serde, server) = (sonic.context("no run")?, serde.context("no run")?, server.0);
    println!("| what | wall s | CPU s | peak MB |\n| --- | --- | --- | --- |");
    row("lakescope diagnose, plain", &ours);
    row("lakescope diagnose, zstd", &ours_zstd);
    row("plain typed parse with sonic-rs, one core", &sonic);
    row("plain typed parse with serde_json, one core", &serde);
    if let Some(server) = &server {
        row("Spark History Server, first full answer", server);
    }
    outcome.goal("plain parse / ours, wall", sonic.wall_s.min(serde.wall_s) / ours.wall_s, Goal::AtLeast(1.0));
    outcome.goal("zstd / plain, wall", ours_zstd.wall_s / ours.wall_s, Goal::AtMost(1.25));
    outcome.goal("peak memory of ours, MB", ours.peak_mb.max(ours_zstd.peak_mb), Goal::AtMost(150.0));
    match &server {
        Some(server) => {
            println!("history server / ours, CPU: {:.2}", server.cpu_s / ours.cpu_s);
            outcome.goal("history server / ours, wall", server.wall_s / ours.wall_s, Goal::AtLeast(20.0));
        }
        None => outcome.skip("speed-eventlog: the History Server (--no-spark)"),
    }
    Ok(outcome)
}

fn row(what: &str, f: &Figures) {
    println!("| {what} | {:.2} | {:.2} | {:.0} |", f.wall_s, f.cpu_s, f.peak_mb);
}

/// The large log, plain and compressed in many frames as Spark writes it.
pub fn logs(shared: &Path) -> Result<(PathBuf, PathBuf)> {
    let folder = start::target_folder().join("bench");
    std::fs::create_dir_all(&folder)?;
    let (plain, compressed) = (folder.join("scaled"), folder.join("scaled.zstd"));
    if !plain.exists() {
        let made = folder.join("scaled.part");
        let scripts = shared.join("data/eventlogs/generate");
        let base = shared.join("data/eventlogs/scale/scale_base.zstd");
        let mut make = Command::new("python3");
        make.current_dir(&scripts).args(["scale_up.py"]).arg(base).arg(&made).arg("16");
        start::run(&mut make)?;
        std::fs::rename(made, &plain)?;
    }
    if !compressed.exists() {
        let made = folder.join("scaled.zstd.part");
        start::run(Command::new("python3").arg(root().join("bench/spark_zstd.py")).arg(&plain).arg(&made))?;
        std::fs::rename(made, &compressed)?;
    }
    Ok((plain, compressed))
}

fn build_plain_parse() -> Result<PathBuf> {
    let mut build = start::cargo();
    build.args(["build", "--quiet", "--release", "--locked", "-p", "read", "--example", "plain_parse"]);
    start::run(build.current_dir(root()))?;
    Ok(start::target_folder().join("release/examples/plain_parse"))
}

/// The run with the least wall time: what the machine can do when nothing disturbs it.
struct Best(Option<Figures>);

impl Best {
    fn take(&mut self, run: Figures) {
        if self.0.as_ref().is_none_or(|best| run.wall_s < best.wall_s) {
            self.0 = Some(run);
        }
    }
}

/// Runs a command under GNU time, which reports the figures of exactly that process.
fn command(command: &mut Command) -> Result<Figures> {
    let report = tempfile::NamedTempFile::new()?;
    let mut timed = Command::new("/usr/bin/time");
    timed.args(["-f", "%U %S %M", "-o"]).arg(report.path()).arg(command.get_program()).args(command.get_args());
    let start = Instant::now();
    let output = timed.output().context("cannot run GNU time (Debian package time)")?;
    let wall_s = start.elapsed().as_secs_f64();
    if !output.status.success() {
        bail!("{:?}: {}", command.get_program(), String::from_utf8_lossy(&output.stderr));
    }
    let text = std::fs::read_to_string(report.path())?;
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let [user, system, kb] = numbers[..] else { bail!("GNU time printed {text:?}") };
    Ok(Figures { wall_s, cpu_s: user + system, peak_mb: kb / 1024.0 })
}

fn history_server(log: &Path) -> Result<Figures> {
    let spark = spark::find()?;
    let script = root().join("bench/history_server.py");
    let output = Command::new(&spark.python).arg(script).arg(log).env("SPARK_HOME", &spark.home).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let result: Value = serde_json::from_str(text.trim())
        .with_context(|| format!("bench/history_server.py: {}", String::from_utf8_lossy(&output.stderr)))?;
    let number = |key: &str| result[key].as_f64().unwrap_or(f64::NAN);
    Ok(Figures { wall_s: number("load_s"), cpu_s: number("load_cpu_s"), peak_mb: number("peak_rss_mb") })
}
