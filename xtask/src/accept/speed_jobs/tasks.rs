//! What our own server takes for tasks that do nothing, and for doing nothing itself.

use crate::accept::jobs_api::JobsApi;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::serving::Serving;

/// Tasks one after the other, tasks beside one another, and how many of these at once.
const IN_SEQUENCE: usize = 100;
const IN_PARALLEL: usize = 1_000;
const SLOTS: &str = "8";
/// How often a run is asked whether it is over.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(300);
/// By then the time of the last programs is known.
const REAPED: Duration = Duration::from_secs(2);
/// Wait before idling is measured, and how long it is.
const BEFORE_IDLE: Duration = Duration::from_secs(5);
const IDLE: Duration = Duration::from_secs(10);
/// Starts of which the median counts.
const STARTS: usize = 9;

/// What some tasks took.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    pub tasks: f64,
    pub wall_s: f64,
    /// Of the engine and all processes of the tasks.
    pub cpu_s: f64,
    pub tasks_a_second: f64,
}

impl Took {
    pub fn cpu_ms_a_task(&self) -> f64 {
        self.cpu_s / self.tasks * 1e3
    }
}

/// The tasks of ours.
#[derive(Clone, Copy, Debug)]
pub struct Tasks {
    pub sequence: Took,
    pub parallel: Took,
}

/// Runs both jobs on a fresh server, each task a process of this program, which is given one file.
pub async fn run(binary: &Path, program: &str) -> Result<Tasks> {
    let data = tempfile::tempdir()?;
    let file = data.path().join("task");
    std::fs::write(&file, "")?;
    let args = ["--no-auth", "--jobs", "--python", program, "--task-slots", SLOTS];
    let serving = Serving::start(binary, &data.path().join("data"), args)?;
    let api = JobsApi::at(&serving.address);
    let task = |n: usize| json!({ "task_key": format!("t{n:04}"), "spark_python_task": { "python_file": file } });
    let parallel: Vec<Value> = (0..IN_PARALLEL).map(task).collect();
    let mut sequence = parallel[..IN_SEQUENCE].to_vec();
    for n in 1..IN_SEQUENCE {
        sequence[n]["depends_on"] = json!([{ "task_key": sequence[n - 1]["task_key"] }]);
    }
    // What is only paid once is no task's.
    took(&serving, &api, &parallel[..1]).await?;
    let sequence = took(&serving, &api, &sequence).await?;
    let parallel = took(&serving, &api, &parallel).await?;
    let started = std::fs::read_dir(data.path().join("data/attempts"))?.count();
    let all = 1 + IN_SEQUENCE + IN_PARALLEL;
    ensure!(started == all, "{started} programs were started for {all} tasks");
    Ok(Tasks { sequence, parallel })
}

async fn took(serving: &Serving, api: &JobsApi, tasks: &[Value]) -> Result<Took> {
    let job = api.post("create", &json!({ "name": "nothing", "tasks": tasks })).await?;
    let job_id = &job["job_id"];
    let (cpu_s, begun) = (serving.cpu_s()?, Instant::now());
    api.post("run-now", &json!({ "job_id": job_id })).await?;
    loop {
        tokio::time::sleep(BETWEEN_LOOKS).await;
        let runs = api.get(&format!("runs/list?job_id={job_id}")).await?;
        let state = &runs["runs"][0]["state"];
        if state["life_cycle_state"] == "TERMINATED" {
            ensure!(state["result_state"] == "SUCCESS", "a run that does nothing fails: {state}");
            break;
        }
        ensure!(begun.elapsed() < PATIENCE, "{} tasks are not over after {PATIENCE:?}: {state}", tasks.len());
    }
    let wall_s = begun.elapsed().as_secs_f64();
    tokio::time::sleep(REAPED).await;
    let cpu_s = serving.cpu_s()? - cpu_s;
    let tasks = tasks.len() as f64;
    Ok(Took { tasks, wall_s, cpu_s, tasks_a_second: tasks / wall_s })
}

/// A server that has nothing to do.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    pub mb: f64,
    pub cpu_percent: f64,
}

pub async fn idle(binary: &Path) -> Result<Idle> {
    let data = tempfile::tempdir()?;
    let serving = Serving::start(binary, data.path(), ["--no-auth", "--jobs"])?;
    JobsApi::at(&serving.address).get("list").await?;
    tokio::time::sleep(BEFORE_IDLE).await;
    let (cpu_s, begun) = (serving.cpu_s()?, Instant::now());
    tokio::time::sleep(IDLE).await;
    let cpu_percent = (serving.cpu_s()? - cpu_s) / begun.elapsed().as_secs_f64() * 100.0;
    Ok(Idle { mb: serving.resident_mb()?, cpu_percent })
}

/// Seconds from a start to the first request that is answered, the median.
pub async fn ready_s(binary: &Path, data: &Path) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let begun = Instant::now();
        let serving = Serving::start(binary, data, ["--no-auth", "--jobs"])?;
        JobsApi::at(&serving.address).get("runs/list").await?;
        times.push(begun.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[STARTS / 2])
}
