//! Airflow, Prefect and Dagster on this machine, as their scripts in the shared folder measure them.

use super::tasks::Took;
use crate::accept::{Outcome, python};
use anyhow::{Context, Result};
use serde_json::Value;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How a peer is installed and measured.
struct Script {
    name: &'static str,
    file: &'static str,
    /// A program of it, and what it is made of: versions that were tried.
    program: &'static str,
    pip: &'static [&'static str],
}

const SCRIPTS: [Script; 3] = [
    Script {
        name: "Airflow",
        file: "peer_airflow.sh",
        program: "airflow",
        pip: &["apache-airflow==3.3.2", "psutil==7.2.2"],
    },
    Script { name: "Prefect", file: "peer_prefect.py", program: "prefect", pip: &["prefect==3.9.1", "psutil==7.2.2"] },
    Script {
        name: "Dagster",
        file: "peer_dagster.py",
        program: "dagster-webserver",
        pip: &["dagster==1.13.27", "dagster-webserver==1.13.27", "psutil==7.2.2"],
    },
];

/// What a peer took.
pub struct Peer {
    pub name: &'static str,
    /// With its version.
    pub title: String,
    pub sequence: Took,
    pub parallel: Took,
    pub idle_mb: f64,
    pub idle_cpu_percent: f64,
    pub ready_s: f64,
    /// Runs of its history, and the medians of its lists of fifty of them, ms.
    pub history: f64,
    pub lists: Lists,
}

/// Medians of lists of fifty runs, ms: the quickest of each kind.
#[derive(Clone, Copy, Debug)]
pub struct Lists {
    pub newest_ms: f64,
    pub filtered_ms: f64,
    pub deep_ms: f64,
}

/// Measures those that can be installed; the others are skipped by name.
pub fn run(shared: &Path, outcome: &mut Outcome) -> Result<Vec<Peer>> {
    let mut peers = Vec::new();
    for script in &SCRIPTS {
        let Some(environment) = python::environment(&format!("peer-{}", script.program), script.program, script.pip)?
        else {
            outcome.skip(format!("speed-jobs: Python with pip cannot install {} here", script.name));
            continue;
        };
        println!("{} is measured; that takes minutes", script.name);
        let told = measured(script, &shared.join("bench").join(script.file), &environment)?;
        println!("{told}");
        peers.push(peer(script.name, &told).with_context(|| format!("{} told something else", script.file))?);
    }
    Ok(peers)
}

fn measured(script: &Script, file: &Path, environment: &Path) -> Result<Value> {
    let mut command = match script.file.ends_with(".sh") {
        true => Command::new("bash"),
        false => Command::new(environment.join("bin/python")),
    };
    command.arg(file).env("PORT", free_port()?.to_string()).stderr(Stdio::inherit());
    if script.file.ends_with(".sh") {
        command.arg(environment);
    }
    let output = command.current_dir(temporary()).output()?;
    anyhow::ensure!(output.status.success(), "{} ended with {}", script.file, output.status);
    serde_json::from_slice(&output.stdout).with_context(|| format!("{} printed no JSON", script.file))
}

fn temporary() -> PathBuf {
    std::env::temp_dir()
}

/// A port of loopback that nobody has at the moment.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn peer(name: &'static str, told: &Value) -> Result<Peer> {
    let took = |key: &str| -> Result<Took> {
        let took = &told[key];
        Ok(Took {
            tasks: number(took, &["tasks"])?,
            wall_s: number(took, &["wall_s"])?,
            cpu_s: number(took, &["cpu_s"])?,
            tasks_a_second: number(took, &["tasks_per_s"])?,
        })
    };
    Ok(Peer {
        name,
        title: format!("{name} {}", told["version"].as_str().unwrap_or_default()),
        sequence: took("sequential")?,
        parallel: took("parallel")?,
        idle_mb: number(&told["idle"], &["rss_mb"])?,
        idle_cpu_percent: number(&told["idle"], &["cpu_percent_of_one_core"])?,
        ready_s: number(told, &["start_s", "start_to_dags_visible_s"])?,
        history: number(&told["list"], &["history_runs"])?,
        lists: lists(&told["list"])?,
    })
}

fn lists(told: &Value) -> Result<Lists> {
    let quickest = |keys: &[&str]| -> Result<f64> {
        let medians = keys.iter().filter_map(|key| told[*key]["p50_ms"].as_f64());
        medians.min_by(f64::total_cmp).with_context(|| format!("none of {keys:?} is told"))
    };
    Ok(Lists {
        newest_ms: quickest(&["all_runs_newest_50"])?,
        filtered_ms: quickest(&["one_dag_failed_newest_50", "failed_newest_50", "job_runs_newest_50"])?,
        deep_ms: quickest(&["all_runs_offset_90000", "all_runs_cursor_90000"])?,
    })
}

/// The first of these that is there.
fn number(told: &Value, keys: &[&str]) -> Result<f64> {
    keys.iter().find_map(|key| told[*key].as_f64()).with_context(|| format!("none of {keys:?} is told"))
}
