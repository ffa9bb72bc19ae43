//! Engines that share a PostgreSQL database, with real processes.

use super::options::options;
use run::engine::{Engine, Options, Refusal, RunNow};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use store::jobs::{Jobs, Run};
use tokio::runtime::Runtime;

const PATIENCE: Duration = Duration::from_secs(60);

/// An engine with a runtime of its own, whose end is that of a process.
struct Replica {
    runtime: Runtime,
    engine: Engine,
    jobs: Jobs,
}

impl Replica {
    fn start(url: &str, attempts: &Path, give_up_after: Duration) -> Self {
        let runtime = Runtime::new().unwrap();
        let options = Options { attempts: attempts.to_owned(), give_up_after, ..options(Path::new("/no")) };
        let (engine, jobs) = runtime.block_on(async {
            let jobs = Jobs::connect(url).await.unwrap();
            (Engine::start(jobs.clone(), options).await.unwrap(), jobs)
        });
        Self { runtime, engine, jobs }
    }

    fn create(&self, folder: &Path, seconds: &str) -> i64 {
        let script = folder.join("task.sh");
        std::fs::write(&script, "echo start >> \"$1\"; sleep \"$2\"; echo end >> \"$1\"").unwrap();
        let task = json!({ "task_key": "a", "max_retries": 1, "spark_python_task":
            { "python_file": script, "parameters": [folder.join("journal"), seconds] } });
        let Value::Object(job) = json!({ "name": "night", "max_concurrent_runs": 10, "tasks": [task] }) else {
            panic!()
        };
        self.runtime.block_on(self.engine.create_job(job, "ada")).unwrap()
    }

    fn run_now(&self, job_id: i64, token: &str) -> Result<i64, Refusal> {
        let run = RunNow { job_id, token: Some(token.to_owned()), ..RunNow::default() };
        self.runtime.block_on(self.engine.run_now(run)).map(|started| started.id)
    }

    fn over(&self, run_id: i64) -> Run {
        let begun = Instant::now();
        loop {
            let run = self.runtime.block_on(self.jobs.run(run_id)).unwrap().unwrap();
            if run.state.end_ms.is_some() {
                return run;
            }
            assert!(begun.elapsed() < PATIENCE, "{run:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The runtime goes with all that waits in it; programs are not among that.
    fn kill(self) {
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

fn journal(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("journal")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn until_started(folder: &Path) {
    let begun = Instant::now();
    while journal(folder).is_empty() {
        assert!(begun.elapsed() < PATIENCE, "nothing starts");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn any_replica_takes_commands_and_the_next_one_goes_on() {
    let Some(url) = testkit::postgres::database() else { return };
    let folder = tempfile::tempdir().unwrap();
    let attempts = folder.path().join("attempts");
    let one = Replica::start(&url, &attempts, PATIENCE);
    let job_id = one.create(folder.path(), "2");
    let other = Replica::start(&url, &attempts, PATIENCE);
    // Both are asked with one token: there is one run.
    let run_id = other.run_now(job_id, "t").unwrap();
    assert_eq!(one.run_now(job_id, "t").unwrap(), run_id);
    assert!(matches!(other.run_now(job_id + 1, "u"), Err(Refusal::NoJob(id)) if id == job_id + 1));
    let broken = Map::from_iter([("tasks".to_owned(), json!(3))]);
    let refused = other.runtime.block_on(other.engine.create_job(broken, "ada"));
    assert!(matches!(refused, Err(Refusal::Definition(_))), "{refused:?}");
    until_started(folder.path());
    one.kill();
    assert_eq!(other.over(run_id).state.result.as_deref(), Some("SUCCESS"));
    assert_eq!(journal(folder.path()), ["start", "end"]);
    // It is the leader now, and takes commands itself.
    assert_eq!(other.run_now(job_id, "t").unwrap(), run_id);
    other.kill();
}

#[test]
fn what_ran_at_a_site_that_is_gone_is_given_up() {
    let Some(url) = testkit::postgres::database() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    let one = Replica::start(&url, &here, PATIENCE);
    let job_id = one.create(folder.path(), "30");
    let run_id = one.run_now(job_id, "t").unwrap();
    until_started(folder.path());
    one.kill();
    let other = Replica::start(&url, &there, Duration::ZERO);
    let begun = Instant::now();
    let attempts = loop {
        let attempts = other.runtime.block_on(other.jobs.task_runs(run_id)).unwrap();
        if attempts.len() == 2 {
            break attempts;
        }
        assert!(begun.elapsed() < PATIENCE, "{attempts:?}");
        std::thread::sleep(Duration::from_millis(50));
    };
    // By the rules for retries.
    assert_eq!(attempts[0].life_cycle, "INTERNAL_ERROR", "{attempts:?}");
    // Whoever comes back there stops the program that nobody waits for.
    let back = Replica::start(&url, &here, PATIENCE);
    let dir = back.engine.attempt(attempts[0].task_run_id);
    while !dir.join("exit.json").exists() {
        assert!(begun.elapsed() < PATIENCE, "the program goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
    other.runtime.block_on(other.engine.cancel(run_id)).unwrap();
    assert_eq!(back.over(run_id).state.result.as_deref(), Some("CANCELED"));
    assert!(!journal(folder.path()).contains(&"end".to_owned()));
    back.kill();
    other.kill();
}
