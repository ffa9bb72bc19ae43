//! `kill-jobs`: servers that are killed again and again while tasks run, one on SQLite, then two on
//! one PostgreSQL database. Each task is a process that writes down its start and its end.

use super::Outcome;
use super::jobs_api::JobsApi;
use super::random::Random;
use crate::{lakescope_binary, postgres};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use testkit::postgres::Postgres;
use testkit::serving::{Serving, command};

/// Kills, when no other number is asked for; `kill-jobs 200` is the whole line.
const KILLS: usize = 20;
/// Tasks of a run, all of them at once.
const TASKS: usize = 50;
/// How long all runs may take to end after the last kill, and a server to answer.
const PATIENCE: Duration = Duration::from_secs(120);
/// Id of no run.
const NOBODYS: i64 = 1 << 52;
const SEED: u64 = 0x6c61_6b65;

/// Writes its start and its end, a line each; works for so long.
const SCRIPT: &str = r#"
echo "start $LAKESCOPE_TASK_RUN_ID" >> "$1"
sleep "$2"
echo "end $LAKESCOPE_TASK_RUN_ID" >> "$1"
"#;

pub fn run(arguments: &[String]) -> Result<Outcome> {
    let named = |name: &str| arguments.iter().any(|argument| argument == name);
    let any_named = named("sqlite") || named("postgres");
    let kills = arguments.iter().find(|argument| !["sqlite", "postgres"].contains(&argument.as_str()));
    let kills = kills.map_or(Ok(KILLS), |many| many.parse()).context("not a number of kills")?;
    let binary = lakescope_binary()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let mut outcome = Outcome::default();
    if named("sqlite") || !any_named {
        outcome.add(&runtime.block_on(killed(kills, &binary, None))?);
    }
    if named("postgres") || !any_named {
        match postgres::find()? {
            Some(bin) => {
                let server = Postgres::start(&bin)?;
                outcome.add(&runtime.block_on(killed(kills, &binary, Some(server.database()?)))?);
            }
            None => outcome.skip("kill-jobs postgres: there is no PostgreSQL (apt-get install postgresql)"),
        }
    }
    Ok(outcome)
}

/// One server on a data directory, or two on one database; started over and over.
struct World<'a> {
    binary: &'a Path,
    folder: &'a Path,
    database: Option<String>,
    servers: Vec<Serving>,
    random: Random,
}

impl World<'_> {
    /// Starts a server; it says what it takes up and when it leads, too.
    fn start(&self, at: usize) -> Result<Serving> {
        let slots = (TASKS * 4).to_string();
        let args = ["--no-auth", "--jobs", "--python", "/bin/sh", "--task-slots", &slots];
        let mut command = command(self.binary, &self.folder.join(format!("data-{at}")), args);
        command.env("LAKESCOPE_LOG", "warn,run::engine=info").env_remove("LAKESCOPE_DATABASE");
        if let Some(database) = &self.database {
            command.env("LAKESCOPE_DATABASE", database).arg("--attempts").arg(self.folder.join("attempts"));
        }
        Ok(Serving::start_as(&mut command, |line| {
            if line.contains("WARN") || line.contains("ERROR") {
                eprintln!("{line}");
            }
        })?)
    }

    fn any(&mut self) -> usize {
        ((self.random.share() * self.servers.len() as f64) as usize).min(self.servers.len() - 1)
    }

    fn apis(&self) -> Vec<JobsApi> {
        self.servers.iter().map(|server| JobsApi::at(&server.address)).collect()
    }

    /// Which one took the lead last: alone, the one that there is.
    fn leader(&self) -> usize {
        let epoch = |server: &Serving| {
            let said = server.said();
            let leads = said.iter().filter(|line| line.contains("this server leads"));
            leads.filter_map(|line| line.rsplit_once("epoch=")?.1.trim().parse::<i64>().ok()).max()
        };
        (0..self.servers.len()).max_by_key(|at| epoch(&self.servers[*at])).unwrap_or_default()
    }
}

/// Asks one server after the other until one answers, as clients do.
async fn asked(apis: &[JobsApi], path: &str, body: Option<&Value>) -> Result<Value> {
    let begun = Instant::now();
    for api in apis.iter().cycle() {
        let answer = match body {
            Some(body) => api.post(path, body).await,
            None => api.get(path).await,
        };
        match answer {
            Err(_) if begun.elapsed() < PATIENCE => tokio::time::sleep(Duration::from_millis(20)).await,
            done => return done,
        }
    }
    anyhow::bail!("there is no server to ask")
}

async fn active(apis: &[JobsApi]) -> Result<Vec<Value>> {
    let runs = asked(apis, "runs/list?active_only=true", None).await?;
    Ok(runs["runs"].as_array().cloned().unwrap_or_default())
}

/// How long it takes until a command is worked on, by whoever leads then: one that changes nothing.
async fn commanded(apis: Vec<JobsApi>) -> Result<Duration> {
    let begun = Instant::now();
    let body = json!({ "run_id": NOBODYS });
    for api in apis.iter().cycle() {
        let answer = api.post("runs/cancel", &body).await;
        if answer.as_ref().is_err_and(|error| error.to_string().contains("does not exist")) {
            break;
        }
        anyhow::ensure!(begun.elapsed() < PATIENCE, "no command is worked on after {PATIENCE:?}: {answer:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(begun.elapsed())
}

/// Times that are to be short.
#[derive(Default)]
struct Slowest {
    /// From a kill to the first task that was taken up.
    adopted: Duration,
    /// From a kill to the first command that was worked on.
    commanded: Duration,
}

async fn killed(kills: usize, binary: &Path, database: Option<String>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let folder = tempfile::tempdir()?;
    let (script, journal) = (folder.path().join("task.sh"), folder.path().join("journal"));
    std::fs::write(&script, SCRIPT)?;
    let replicas = if database.is_some() { 2 } else { 1 };
    let mut world = World { binary, folder: folder.path(), database, servers: Vec::new(), random: Random(SEED) };
    for at in 0..replicas {
        world.servers.push(world.start(at)?);
    }
    let job_id = asked(&world.apis(), "create", Some(&job(&script, &journal))).await?["job_id"].clone();
    let (mut runs, mut slowest, mut adoptions) = (Vec::new(), Slowest::default(), 0);
    for kill in 0..kills {
        let apis = world.apis();
        let mut request = None;
        if active(&apis).await?.len() < 2 {
            let body = json!({ "job_id": job_id, "idempotency_token": format!("run-{kill}") });
            let (api, sent) = (apis[world.any()].clone(), body.clone());
            request = Some((tokio::spawn(async move { api.post("run-now", &sent).await }), body));
        }
        // A request is met by the kill before, while or after it is worked on.
        let pause = if request.is_some() { 0.4 * world.random.share() } else { 1.0 + 30.0 * world.random.share() };
        tokio::time::sleep(Duration::from_millis(20).mul_f64(pause)).await;
        adoptions += usize::from(kill_one(&mut world, &mut slowest).await?);
        if let Some((answer, body)) = request {
            // Asked again with the same token: there is one run, and what was told stands.
            let run_id = asked(&world.apis(), "run-now", Some(&body)).await?["run_id"].clone();
            let told = answer.await?.ok().map(|answer| answer["run_id"].clone());
            outcome
                .check(told.as_ref().is_none_or(|told| *told == run_id), format!("{told:?} was told, then {run_id}"));
            runs.push(run_id);
        }
    }
    if replicas > 1 {
        let body = json!({ "job_id": job_id, "idempotency_token": "silent" });
        let run_id = asked(&world.apis(), "run-now", Some(&body)).await?["run_id"].clone();
        let failover = silent(&world).await?;
        println!("a leader that stands still is followed after {:.1} s, goal under 15", failover.as_secs_f64());
        runs.push(run_id);
    }
    let begun = Instant::now();
    let apis = world.apis();
    while !active(&apis).await?.is_empty() {
        anyhow::ensure!(begun.elapsed() < PATIENCE, "runs are still active {PATIENCE:?} after the last kill");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let all = asked(&apis, "runs/list?limit=25", None).await?["runs"].as_array().map_or(0, Vec::len);
    outcome.check(all == runs.len().min(25), format!("{all} runs are there on the first page, of {}", runs.len()));
    let on = if replicas > 1 { "two servers on PostgreSQL" } else { "a server on SQLite" };
    println!(
        "{on}: {kills} kills, {} runs of {TASKS} tasks; after {adoptions} of them a task was taken up where it ran",
        runs.len()
    );
    println!(
        "from the kill of who leads to the first task that was taken up: {:.0} ms at most, goal under 1,000",
        slowest.adopted.as_secs_f64() * 1e3
    );
    println!(
        "from a kill to the first command that was worked on: {:.0} ms at most, goal under 15,000",
        slowest.commanded.as_secs_f64() * 1e3
    );
    outcome.check(kills == 0 || adoptions > 0, "no task was taken up where it ran");
    let journal = std::fs::read_to_string(&journal)?;
    for run_id in &runs {
        let run = asked(&apis, &format!("runs/get?run_id={run_id}"), None).await?;
        judge(&mut outcome, &run, &journal);
    }
    let starts = journal.lines().filter(|line| line.starts_with("start ")).count();
    outcome.check(starts == runs.len() * TASKS, format!("{starts} starts of {} tasks", runs.len() * TASKS));
    Ok(outcome)
}

/// Stops the leader as a machine does that hangs, until another server has worked on a command, and
/// lets it go on then.
async fn silent(world: &World<'_>) -> Result<Duration> {
    let leader = world.leader();
    let signal = |name: &str| {
        let id = world.servers[leader].id().to_string();
        start::run(Command::new("kill").args([name, &id]))
    };
    let others = world.apis().into_iter().enumerate().filter(|(at, _)| *at != leader).map(|(_, api)| api).collect();
    signal("-STOP")?;
    let failover = commanded(others).await;
    signal("-CONT")?;
    failover
}

/// Kills a server and starts it again. Whether a task was taken up, by it or by another one.
async fn kill_one(world: &mut World<'_>, slowest: &mut Slowest) -> Result<bool> {
    let victim = world.any();
    let led = world.leader() == victim;
    world.servers[victim].kill()?;
    let begun = Instant::now();
    let others = world.apis().into_iter().enumerate().filter(|(at, _)| *at != victim).map(|(_, api)| api).collect();
    let answered = (world.servers.len() > 1).then(|| tokio::spawn(commanded(others)));
    let before = taken_up(&world.servers) - taken_up(&world.servers[victim..=victim]);
    world.servers[victim] = world.start(victim)?;
    let mut is_taken_up = false;
    if led && !active(&world.apis()).await?.is_empty() && first_adopted(world, before).await {
        slowest.adopted = slowest.adopted.max(begun.elapsed());
        is_taken_up = true;
    }
    let commanded = match answered {
        Some(answered) => answered.await??,
        None => {
            commanded(world.apis()).await?;
            begun.elapsed()
        }
    };
    slowest.commanded = slowest.commanded.max(commanded);
    Ok(is_taken_up)
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

/// Programs that servers have taken up, so far as they said.
fn taken_up(servers: &[Serving]) -> usize {
    let said = servers.iter().flat_map(Serving::said);
    said.filter(|line| line.contains("taken up where it ran")).count()
}

/// Whether a server says soon that it has taken up a program.
async fn first_adopted(world: &World<'_>, before: usize) -> bool {
    for _ in 0..400 {
        if taken_up(&world.servers) > before {
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
