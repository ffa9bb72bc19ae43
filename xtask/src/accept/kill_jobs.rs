//! `kill-jobs`: a server that is killed again and again while tasks run. Each task is a process that
//! writes down its start and its end.

use super::Outcome;
use super::jobs_api::JobsApi;
use super::random::Random;
use crate::lakescope_binary;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::serving::{Serving, command};

/// Kills, when no other number is asked for; `kill-jobs 200` is the whole line.
const KILLS: usize = 20;
/// Tasks of a run, all of them at once.
const TASKS: usize = 50;
/// How long all runs may take to end after the last kill.
const PATIENCE: Duration = Duration::from_secs(120);
const SEED: u64 = 0x6c61_6b65;

/// Writes its start and its end, a line each; works for so long.
const SCRIPT: &str = r#"
echo "start $LAKESCOPE_TASK_RUN_ID" >> "$1"
sleep "$2"
echo "end $LAKESCOPE_TASK_RUN_ID" >> "$1"
"#;

pub fn run(arguments: &[String]) -> Result<Outcome> {
    let kills = arguments.first().map_or(Ok(KILLS), |many| many.parse()).context("not a number of kills")?;
    tokio::runtime::Runtime::new()?.block_on(killed(kills))
}

/// A server on one data directory, started over and over.
struct Killed<'a> {
    binary: &'a Path,
    data: &'a Path,
}

impl Killed<'_> {
    /// Gives what it says of programs that it takes up, too.
    async fn start(&self) -> Result<(Serving, Duration)> {
        let slots = (TASKS * 4).to_string();
        let args = ["--no-auth", "--jobs", "--python", "/bin/sh", "--task-slots", &slots];
        let mut command = command(self.binary, self.data, args);
        command.env("LAKESCOPE_LOG", "warn,run::engine=info");
        let begun = Instant::now();
        let serving = Serving::start_as(&mut command, |_| {})?;
        let listened = begun.elapsed();
        Ok((serving, listened))
    }
}

async fn active(api: &JobsApi) -> Result<Vec<Value>> {
    let runs = api.get("runs/list?active_only=true").await?;
    Ok(runs["runs"].as_array().cloned().unwrap_or_default())
}

async fn killed(kills: usize) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let folder = tempfile::tempdir()?;
    let (script, journal) = (folder.path().join("task.sh"), folder.path().join("journal"));
    std::fs::write(&script, SCRIPT)?;
    let (binary, data) = (lakescope_binary()?, folder.path().join("data"));
    let world = Killed { binary: &binary, data: &data };
    let (mut serving, _) = world.start().await?;
    let mut api = JobsApi::at(&serving.address);
    let job_id = api.post("create", &job(&script, &journal)).await?["job_id"].clone();
    let mut random = Random(SEED);
    let (mut runs, mut slowest, mut taken_up) = (Vec::new(), Duration::ZERO, 0);
    for kill in 0..kills {
        let mut asked = None;
        if active(&api).await?.len() < 2 {
            let body = json!({ "job_id": job_id, "idempotency_token": format!("run-{kill}") });
            let (api, sent) = (api.clone(), body.clone());
            asked = Some((tokio::spawn(async move { api.post("run-now", &sent).await }), body));
        }
        // A request is met by the kill before, while or after it is worked on.
        let pause = if asked.is_some() { 0.4 * random.share() } else { 1.0 + 30.0 * random.share() };
        tokio::time::sleep(Duration::from_millis(20).mul_f64(pause)).await;
        serving.kill()?;
        let (next, listened) = world.start().await?;
        serving = next;
        api = JobsApi::at(&serving.address);
        let begun = Instant::now();
        if !active(&api).await?.is_empty() {
            taken_up += usize::from(first_adopted(&serving).await);
            slowest = slowest.max(listened + begun.elapsed());
        }
        if let Some((answer, body)) = asked {
            // Asked again with the same token: there is one run, and what was told stands.
            let run_id = api.post("run-now", &body).await?["run_id"].clone();
            let told = answer.await?.ok().map(|answer| answer["run_id"].clone());
            outcome
                .check(told.as_ref().is_none_or(|told| *told == run_id), format!("{told:?} was told, then {run_id}"));
            runs.push(run_id);
        }
    }
    let begun = Instant::now();
    while !active(&api).await?.is_empty() {
        anyhow::ensure!(begun.elapsed() < PATIENCE, "runs are still active {PATIENCE:?} after the last kill");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let all = api.get("runs/list?limit=25").await?["runs"].as_array().map_or(0, Vec::len);
    outcome.check(all == runs.len().min(25), format!("{all} runs are there on the first page, of {}", runs.len()));
    println!(
        "{kills} kills, {} runs of {TASKS} tasks; after {taken_up} of them a task was taken up where it ran",
        runs.len()
    );
    println!(
        "from start to the first task that was taken up: {:.0} ms at most, goal under 1,000",
        slowest.as_secs_f64() * 1e3
    );
    outcome.check(kills == 0 || taken_up > 0, "no task was taken up where it ran");
    let journal = std::fs::read_to_string(&journal)?;
    for run_id in &runs {
        let run = api.get(&format!("runs/get?run_id={run_id}")).await?;
        judge(&mut outcome, &run, &journal);
    }
    let starts = journal.lines().filter(|line| line.starts_with("start ")).count();
    outcome.check(starts == runs.len() * TASKS, format!("{starts} starts of {} tasks", runs.len() * TASKS));
    Ok(outcome)
}

/// Tasks that take from a tenth of a second to two.
fn job(script: &Path, journal: &Path) -> Value {
    let task = |n: usize| {
        let seconds = format!("{:.1}", 0.1 + 1.9 * n as f64 / TASKS as f64);
        json!({ "task_key": format!("t{n}"), "spark_python_task":
            { "python_file": script, "parameters": [journal, seconds] } })
    };
    json!({ "name": "killed", "max_concurrent_runs": 10, "tasks": (0..TASKS).map(task).collect::<Vec<_>>() })
}

/// Whether the server says soon that it has taken up a program.
async fn first_adopted(serving: &Serving) -> bool {
    for _ in 0..100 {
        if serving.said().iter().any(|line| line.contains("taken up where it ran")) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    false
}

/// Each task of a run ended well, and its process ran once.
fn judge(outcome: &mut Outcome, run: &Value, journal: &str) {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    journal.lines().for_each(|line| *lines.entry(line).or_default() += 1);
    let tasks = run["tasks"].as_array().map_or(&[][..], Vec::as_slice);
    let wrong: Vec<String> = tasks
        .iter()
        .filter_map(|task| {
            let id = &task["run_id"];
            let count = |word: &str| lines.get(format!("{word} {id}").as_str()).copied().unwrap_or_default();
            let (starts, ends, result) = (count("start"), count("end"), &task["state"]["result_state"]);
            let is_right = (starts, ends) == (1, 1) && result == "SUCCESS";
            (!is_right).then(|| format!("{} {result}: {starts} starts, {ends} ends", task["task_key"]))
        })
        .collect();
    let all = tasks.len() == TASKS && run["state"]["result_state"] == "SUCCESS";
    outcome.check(all && wrong.is_empty(), format!("run {}: {} {}", run["run_id"], run["state"], wrong.join("; ")));
}
