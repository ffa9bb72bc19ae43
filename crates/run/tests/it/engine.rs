//! An engine on a real store, with real processes.

use super::options::options;
use run::engine::{Engine, Refusal, Repair, RunNow};
use run::repair::Request;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Duration;
use store::jobs::{Jobs, Run, RunFilter};
use store::{Settings, Store};
use tokio::runtime::Runtime;

const PATIENCE: Duration = Duration::from_secs(60);

/// Writes its start and its end; works for so long, then ends with this code.
const SCRIPT: &str = "echo \"start $LAKESCOPE_TASK_RUN_ID\" >> \"$1\"; sleep \"$2\"; echo \"end $LAKESCOPE_TASK_RUN_ID\" >> \"$1\"; exit $3";

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("task.sh"), SCRIPT).unwrap();
        Self { folder }
    }

    async fn open(&self) -> (Store, Engine) {
        let store = Store::open(self.folder.path().join("data"), Settings::default()).await.unwrap();
        let options = options(store.dir());
        let engine = Engine::start(store.jobs(), options).await.unwrap();
        (store, engine)
    }

    fn task(&self, key: &str, seconds: &str, code: u8) -> Value {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        json!({ "task_key": key, "spark_python_task":
            { "python_file": path("task.sh"), "parameters": [path("journal"), seconds, code.to_string()] } })
    }

    fn journal(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("journal")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn job(tasks: Vec<Value>) -> Map<String, Value> {
    let Value::Object(job) = json!({ "name": "night", "max_concurrent_runs": 10, "tasks": tasks }) else { panic!() };
    job
}

async fn run_now(engine: &Engine, job_id: i64) -> i64 {
    engine.run_now(RunNow { job_id, who: "ada".to_owned(), ..RunNow::default() }).await.unwrap().id
}

async fn over(jobs: &Jobs, run_id: i64) -> Run {
    let begun = std::time::Instant::now();
    loop {
        let run = jobs.run(run_id).await.unwrap().unwrap();
        if run.state.end_ms.is_some() {
            return run;
        }
        assert!(begun.elapsed() < PATIENCE, "{run:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What the `unsafe` of the executor rests on: descriptors of hundreds of processes that end while
/// others begin.
#[test]
fn watched_processes_end() {
    let world = World::new();
    Runtime::new().unwrap().block_on(async {
        let (store, engine) = world.open().await;
        let tasks = (0..100).map(|n| world.task(&format!("t{n}"), "0", (n % 2) as u8)).collect();
        let job_id = engine.create_job(job(tasks), "ada").await.unwrap();
        let runs = [run_now(&engine, job_id).await, run_now(&engine, job_id).await, run_now(&engine, job_id).await];
        for run_id in runs {
            assert_eq!(over(&store.jobs(), run_id).await.state.result.as_deref(), Some("FAILED"));
            let tasks = store.jobs().task_runs(run_id).await.unwrap();
            let good = tasks.iter().filter(|task| task.result.as_deref() == Some("SUCCESS")).count();
            assert_eq!((tasks.len(), good), (100, 50));
        }
    });
    assert_eq!(world.journal().len(), 600);
}

#[test]
fn an_engine_takes_up_what_another_one_started() {
    let world = World::new();
    let runtime = Runtime::new().unwrap();
    let run_id = runtime.block_on(async {
        let (_store, engine) = world.open().await;
        let mut last = world.task("last", "0", 0);
        last["depends_on"] = json!([{ "task_key": "a" }, { "task_key": "b" }]);
        let tasks = vec![world.task("a", "1.5", 0), world.task("b", "0.1", 0), last];
        let job_id = engine.create_job(job(tasks), "ada").await.unwrap();
        let run_id = run_now(&engine, job_id).await;
        while world.journal().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        run_id
    });
    // The engine and all that waits in it are gone; the programs are not.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Runtime::new().unwrap().block_on(async {
        let (store, _engine) = world.open().await;
        let run = over(&store.jobs(), run_id).await;
        assert_eq!(run.state.result.as_deref(), Some("SUCCESS"), "{run:?}");
    });
    let mut journal = world.journal();
    journal.sort();
    assert_eq!(journal.len(), 6, "{journal:?}");
    journal.dedup();
    assert_eq!(journal.len(), 6, "a task ran twice: {journal:?}");
}

#[test]
fn a_repair_runs_what_failed_by_the_definition_of_now() {
    let world = World::new();
    Runtime::new().unwrap().block_on(async {
        let (store, engine) = world.open().await;
        let tasks = |code| vec![world.task("good", "0", 0), world.task("bad", "0", code)];
        let job_id = engine.create_job(job(tasks(1)), "ada").await.unwrap();
        let run_id = run_now(&engine, job_id).await;
        assert_eq!(over(&store.jobs(), run_id).await.state.result.as_deref(), Some("FAILED"));
        engine.change_job(job_id, run::engine::Change::Reset(job(tasks(0))), "bob").await.unwrap();
        let repair = |latest_repair_id| Repair {
            run_id,
            request: Request { all_failed: true, latest_repair_id, ..Request::default() },
            ..Repair::default()
        };
        let repair_id = engine.repair(repair(None)).await.unwrap();
        let run = over(&store.jobs(), run_id).await;
        assert_eq!(run.state.result.as_deref(), Some("SUCCESS"), "{run:?}");
        let tasks = store.jobs().task_runs(run_id).await.unwrap();
        let attempts: Vec<(&str, i64, i64)> =
            tasks.iter().map(|task| (task.task_key.as_str(), task.attempt, task.round)).collect();
        assert_eq!(attempts, [("good", 0, 0), ("bad", 0, 0), ("bad", 1, 1)]);
        let again = engine.repair(repair(None)).await.unwrap_err();
        assert!(matches!(&again, Refusal::Repair(_)) && again.to_string().contains(&repair_id.to_string()), "{again}");
    });
}

#[test]
fn a_continuous_job_runs_again_and_a_person_restarts_it() {
    let world = World::new();
    Runtime::new().unwrap().block_on(async {
        let (store, engine) = world.open().await;
        let mut job = job(vec![world.task("a", "0.1", 1)]);
        job.insert("max_concurrent_runs".to_owned(), 1.into());
        job.insert("continuous".to_owned(), json!({ "pause_status": "UNPAUSED" }));
        let job_id = engine.create_job(job, "ada").await.unwrap();
        let of_job = RunFilter { job_id: Some(job_id), ..RunFilter::default() };
        let begun = std::time::Instant::now();
        // After the first failure at once, after the second one later.
        while store.jobs().runs(&of_job, None, 10).await.unwrap().len() < 2 || engine_is_busy(&store, &of_job).await {
            assert!(begun.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let restarted = run_now(&engine, job_id).await;
        over(&store.jobs(), restarted).await;
        let runs = store.jobs().runs(&of_job, None, 10).await.unwrap();
        let causes: Vec<&str> = runs.iter().rev().map(|run| run.cause.as_str()).collect();
        assert_eq!(causes[..3], ["CONTINUOUS", "CONTINUOUS", "CONTINUOUS_RESTART"]);
        engine.delete_job(job_id).await.unwrap();
    });
}

async fn engine_is_busy(store: &Store, of_job: &RunFilter) -> bool {
    let open = RunFilter { is_over: Some(false), ..of_job.clone() };
    !store.jobs().runs(&open, None, 1).await.unwrap().is_empty()
}

#[test]
fn what_cannot_be_run_says_why() {
    let world = World::new();
    Runtime::new().unwrap().block_on(async {
        let (store, engine) = world.open().await;
        let missing = json!({ "task_key": "missing", "spark_python_task":
            { "python_file": world.path().join("none.py") } });
        let misspelt = json!({ "task_key": "misspelt", "condition_task":
            { "left": "{{job.parameters.dya}}", "op": "EQUAL_TO", "right": "1" } });
        let unknown = json!({ "task_key": "unknown", "max_retries": -1, "dashboard_task": { "dashboard_id": "1" } });
        let nobody = json!({ "task_key": "nobody", "run_job_task": { "job_id": 4_711 } });
        let mut job = job(vec![missing, misspelt, unknown, nobody]);
        job.insert("parameters".to_owned(), json!([{ "name": "day", "default": "1" }]));
        let job_id = engine.create_job(job, "ada").await.unwrap();
        let run_id = run_now(&engine, job_id).await;
        over(&store.jobs(), run_id).await;
        for (task, why) in store.jobs().task_runs(run_id).await.unwrap().iter().zip([
            "there is no file",
            "{{job.parameters.dya}} is no reference; did you mean day?",
            "lakescope cannot run a dashboard_task",
            "Job 4711 does not exist.",
        ]) {
            let told = (task.result.as_deref(), task.code.as_deref());
            assert_eq!(told, (Some("FAILED"), Some("INVALID_RUN_CONFIGURATION")), "{task:?}");
            assert!(task.message.contains(why), "{}", task.message);
        }
        let itself = json!({ "task_key": "itself", "run_job_task": { "job_id": job_id } });
        let change = run::engine::Change::Update { new: self::job(vec![itself]), remove: Vec::new() };
        engine.change_job(job_id, change, "ada").await.unwrap();
        let run_id = run_now(&engine, job_id).await;
        over(&store.jobs(), run_id).await;
        let tasks = store.jobs().task_runs(run_id).await.unwrap();
        assert!(tasks[4].message.contains("would wait for itself"), "{:?}", tasks[4]);
        assert!(matches!(engine.delete_job(4_711).await, Err(Refusal::NoJob(4_711))));
        engine.delete_job(job_id).await.unwrap();
        let gone = engine.run_now(RunNow { job_id, ..RunNow::default() }).await;
        assert_eq!(gone.unwrap_err().to_string(), format!("Job {job_id} does not exist."));
    });
}
