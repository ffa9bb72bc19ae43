//! A million runs of the past, put straight into a data directory: copies of runs that the engine
//! has really run, with other jobs, times and ids.

use crate::accept::jobs_api::JobsApi;
use crate::accept::random::Random;
use anyhow::{Context, Result, ensure};
use run::book::Round;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use store::jobs::{Change, Jobs, Run, TaskRun};
use store::{Settings, Store};
use testkit::serving::Serving;

pub const RUNS: i64 = 1_000_000;
const JOBS: usize = 200;
/// They end an hour ago.
const LAST_MS: i64 = 3_600_000;
const SPAN_MS: i64 = 60 * 86_400_000;
/// One run in so many has rows of its tasks, too.
const WITH_TASKS: i64 = 4;
/// Runs that are written together.
const TOGETHER: i64 = 5_000;
const PATIENCE: Duration = Duration::from_secs(60);
const SEED: u64 = 0x7061_7374;

/// What a page of runs can be asked for.
pub struct Past {
    /// From the one with the most runs to the one with the fewest.
    pub jobs: Vec<i64>,
    /// Runs of each, submitted ones not counted.
    pub counts: Vec<i64>,
    /// Starts of all of them, epoch ms.
    pub from_ms: i64,
    pub to_ms: i64,
    /// Some runs with their task runs.
    pub samples: Vec<(i64, i64)>,
}

/// The kinds of runs, and how many of a thousand are of each.
const KINDS: [(Kind, u32); 5] =
    [(Kind::Good, 868), (Kind::Failed, 60), (Kind::Canceled, 10), (Kind::Submitted, 60), (Kind::Child, 2)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Good,
    Failed,
    Canceled,
    Submitted,
    /// Of a run-job task.
    Child,
}

/// A run that the engine has run.
struct Model {
    kind: Kind,
    of_thousand: u32,
    run: Run,
    rounds: Vec<Round>,
    tasks: Vec<TaskRun>,
}

/// Fills a data directory that is not there yet.
pub async fn fill(binary: &Path, data: &Path) -> Result<Past> {
    let folder = tempfile::tempdir()?;
    let (jobs, models) = real(binary, data, folder.path()).await?;
    let store = Store::open(data, Settings::default()).await?;
    let rows = store.jobs();
    let models = read(&rows, models).await?;
    let past = write(&rows, &models, jobs).await;
    store.close().await;
    past
}

/// Makes the jobs, and a run of each kind.
async fn real(binary: &Path, data: &Path, folder: &Path) -> Result<(Vec<i64>, Vec<(Kind, i64)>)> {
    let script = |name: &str, text: &str| -> Result<String> {
        let path = folder.join(name);
        std::fs::write(&path, text)?;
        Ok(path.display().to_string())
    };
    let (good, bad) = (script("good", "exit 0")?, script("bad", "echo 'no such table' >&2; exit 1")?);
    let long = script("long", "exec sleep 60")?;
    let serving = Serving::start(binary, data, ["--no-auth", "--jobs", "--python", "/bin/sh", "--stop-grace", "0"])?;
    let api = JobsApi::at(&serving.address);
    let mut jobs = Vec::with_capacity(JOBS);
    for n in 0..JOBS {
        jobs.push(id(&api.post("create", &job(&format!("job_{n:03}"), &good)).await?, "job_id")?);
    }
    let mut models = Vec::new();
    models.push((Kind::Good, over(&api, start(&api, jobs[0]).await?).await?));
    for (kind, file) in [(Kind::Failed, &bad), (Kind::Canceled, &long)] {
        let job_id = id(&api.post("create", &job("other", file)).await?, "job_id")?;
        let run_id = start(&api, job_id).await?;
        if kind == Kind::Canceled {
            api.post("runs/cancel", &json!({ "run_id": run_id })).await?;
        }
        models.push((kind, over(&api, run_id).await?));
    }
    let one = json!({ "run_name": "once", "tasks": [task("only", None, &good)] });
    models.push((Kind::Submitted, over(&api, id(&api.post("runs/submit", &one).await?, "run_id")?).await?));
    let call = json!({ "name": "calls", "tasks": [{ "task_key": "call", "run_job_task": { "job_id": jobs[0] } }] });
    let caller = id(&api.post("create", &call).await?, "job_id")?;
    over(&api, start(&api, caller).await?).await?;
    let children = api.get("runs/list?run_type=WORKFLOW_RUN").await?;
    models.push((Kind::Child, id(&children["runs"][0], "run_id")?));
    Ok((jobs, models))
}

fn task(key: &str, after: Option<&str>, file: &str) -> Value {
    let depends_on: Vec<Value> = after.into_iter().map(|after| json!({ "task_key": after })).collect();
    json!({ "task_key": key, "depends_on": depends_on, "timeout_seconds": 3_600, "spark_python_task":
        { "python_file": file, "parameters": ["--day", "{{job.parameters.day}}"] } })
}

fn job(name: &str, file: &str) -> Value {
    let tasks =
        [task("extract", None, file), task("transform", Some("extract"), file), task("load", Some("transform"), file)];
    json!({
        "name": name,
        "tags": { "team": "sales", "stage": "production" },
        "max_concurrent_runs": 4,
        "parameters": [{ "name": "day", "default": "2026-11-30" }],
        "tasks": tasks,
    })
}

pub fn id(answer: &Value, name: &str) -> Result<i64> {
    answer[name].as_i64().with_context(|| format!("no {name} in {answer}"))
}

async fn start(api: &JobsApi, job_id: i64) -> Result<i64> {
    id(&api.post("run-now", &json!({ "job_id": job_id })).await?, "run_id")
}

/// Waits for the end of a run.
async fn over(api: &JobsApi, run_id: i64) -> Result<i64> {
    let begun = Instant::now();
    while api.get(&format!("runs/get?run_id={run_id}")).await?["state"].get("result_state").is_none() {
        ensure!(begun.elapsed() < PATIENCE, "run {run_id} is not over after {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(run_id)
}

async fn read(rows: &Jobs, models: Vec<(Kind, i64)>) -> Result<Vec<Model>> {
    let mut read = Vec::new();
    for (kind, run_id) in models {
        let run = rows.run(run_id).await?.with_context(|| format!("run {run_id} has no row"))?;
        let rounds = serde_json::from_str(&run.state.rounds)?;
        let tasks = rows.task_runs(run_id).await?;
        let of_thousand = KINDS.iter().find(|(known, _)| *known == kind).map_or(0, |(_, share)| *share);
        read.push(Model { kind, of_thousand, run, rounds, tasks });
    }
    Ok(read)
}

async fn write(rows: &Jobs, models: &[Model], jobs: Vec<i64>) -> Result<Past> {
    let now_ms = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    let (from_ms, to_ms) = (now_ms - LAST_MS - SPAN_MS, now_ms - LAST_MS);
    let mut random = Random(SEED);
    let mut past = Past { counts: vec![0; jobs.len()], jobs, from_ms, to_ms, samples: Vec::new() };
    // Each run may have three tasks and, submitted, a job of its own.
    let mut next_id = rows.reserve_ids(RUNS * 5).await?;
    let mut changes = Vec::new();
    for n in 0..RUNS {
        let model = drawn(models, random.share());
        let start_ms = from_ms + n * (SPAN_MS / RUNS) + (random.share() * 1_000.0) as i64;
        let lasts_ms = 20_000 + (random.share() * 600_000.0) as i64;
        let run_id = next_id;
        next_id += 1;
        let (job_id, number) = match model.kind {
            Kind::Submitted => (next_id + 3, 1),
            _ => past.next_of_a_job(random.share()),
        };
        let mut run = model.moved(run_id, start_ms, lasts_ms);
        (run.job_id, run.number) = (job_id, number);
        changes.push(Change::Run(run));
        if n % WITH_TASKS == 0 {
            changes.extend(model.tasks_of(run_id, next_id, start_ms, lasts_ms).map(Change::TaskRun));
            if n % (RUNS / 100) == 0 {
                past.samples.push((run_id, next_id));
            }
        }
        next_id += 4;
        if n % TOGETHER == TOGETHER - 1 {
            rows.write(&std::mem::take(&mut changes)).await?;
        }
    }
    rows.write(&changes).await?;
    Ok(past)
}

/// The model for a number between 0 and 1.
fn drawn(models: &[Model], share: f64) -> &Model {
    let mut left = share * 1_000.0;
    let found = models.iter().find(|model| {
        left -= f64::from(model.of_thousand);
        left < 0.0
    });
    found.unwrap_or(&models[0])
}

impl Past {
    /// A job, the first of them far more often than the last, and the number of its next run.
    fn next_of_a_job(&mut self, share: f64) -> (i64, i64) {
        let jobs = self.jobs.len();
        let at = (((jobs as f64 + 1.0).powf(share) - 1.0) as usize).min(jobs - 1);
        self.counts[at] += 1;
        (self.jobs[at], self.counts[at])
    }
}

impl Model {
    /// The run, as if it had begun then.
    fn moved(&self, run_id: i64, start_ms: i64, lasts_ms: i64) -> Run {
        let mut run = Run { run_id, ..self.run.clone() };
        let tasks = self.tasks.len() as i64;
        let mut rounds = self.rounds.clone();
        for round in &mut rounds {
            (round.start_ms, round.end_ms) = (start_ms, Some(start_ms + lasts_ms));
            round.task_run_ids = (run_id + 1..=run_id + tasks).collect();
        }
        run.state.rounds = serde_json::to_string(&rounds).unwrap_or_default();
        run.state.start_ms = start_ms;
        run.state.admitted_ms = Some(start_ms + 5);
        run.state.end_ms = Some(start_ms + lasts_ms);
        run
    }

    /// Its task runs, one after the other.
    fn tasks_of(&self, run_id: i64, first_id: i64, start_ms: i64, lasts_ms: i64) -> impl Iterator<Item = TaskRun> {
        let each_ms = lasts_ms / self.tasks.len().max(1) as i64;
        self.tasks.iter().zip(0..).map(move |(task, n)| {
            let begins = start_ms + n * each_ms;
            let moved = |is: Option<i64>, to: i64| is.map(|_| to);
            TaskRun {
                task_run_id: first_id + n,
                run_id,
                start_ms: moved(task.start_ms, begins),
                running_ms: moved(task.running_ms, begins + 20),
                end_ms: moved(task.end_ms, begins + each_ms),
                ..task.clone()
            }
        })
    }
}
