//! Triggers that wait for something to happen, on a real store, over engines that come and go.

use super::options::options;
use run::book::About;
use run::engine::{Change, Engine, Options, Refusal, RunNow, Watcher, Watching};
use run::trigger::watch::{Files, Glance, Place};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::jobs::{Jobs, Run, RunFilter};
use store::{Settings, Store};
use tokio::runtime::Runtime;

const PATIENCE: Duration = Duration::from_secs(60);

/// A folder that is none.
#[derive(Debug, Default)]
struct Folder {
    names: Mutex<Vec<String>>,
    looks: AtomicUsize,
}

impl Folder {
    fn add(&self, name: &str) {
        self.names.lock().unwrap().push(name.to_owned());
    }

    /// Until a look that began after this is over.
    fn looked_at(&self) {
        let (begun, looks) = (Instant::now(), self.looks.load(Ordering::SeqCst));
        while self.looks.load(Ordering::SeqCst) < looks + 3 {
            assert!(begun.elapsed() < PATIENCE, "nobody looks");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Watcher for Folder {
    fn look(&self, _: &Place, _: Option<i64>) -> Glance {
        let names = self.names.lock().unwrap().clone();
        self.looks.fetch_add(1, Ordering::SeqCst);
        Glance::Files(Files::of(names.iter().map(|name| (name.as_str(), 1, 0))))
    }
}

/// An engine with a runtime of its own, whose end is that of a process.
struct Life {
    runtime: Runtime,
    engine: Engine,
    jobs: Jobs,
}

impl Life {
    fn begin(folder: &Path, watcher: &Arc<Folder>) -> Self {
        let runtime = Runtime::new().unwrap();
        let (engine, jobs) = runtime.block_on(async {
            let store = Store::open(folder.join("data"), Settings::default()).await.unwrap();
            let watching = Watching { watcher: watcher.clone(), every: Duration::from_millis(20) };
            let options = Options { watching: Some(watching), ..options(store.dir()) };
            (Engine::start(store.jobs(), options).await.unwrap(), store.jobs())
        });
        Self { runtime, engine, jobs }
    }

    fn create(&self, task: &Value, trigger: &Value) -> Result<i64, Refusal> {
        let job = json!({ "name": "night", "max_concurrent_runs": 1000, "tasks": [task], "trigger": trigger });
        self.runtime.block_on(self.engine.create_job(object(job), "ada"))
    }

    fn update(&self, job_id: i64, new: Value) -> Result<(), Refusal> {
        let change = Change::Update { new: object(new), remove: Vec::new() };
        self.runtime.block_on(self.engine.change_job(job_id, change, "ada"))
    }

    fn run_now(&self, job_id: i64) -> i64 {
        self.runtime.block_on(self.engine.run_now(RunNow { job_id, ..RunNow::default() })).unwrap().id
    }

    /// Runs of a job, the first one first.
    fn runs(&self, job_id: i64) -> Vec<Run> {
        let filter = RunFilter { job_id: Some(job_id), ..RunFilter::default() };
        let mut runs = self.runtime.block_on(self.jobs.runs(&filter, None, 1_000)).unwrap();
        runs.reverse();
        runs
    }

    fn until_there_are(&self, many: usize, job_id: i64) {
        let begun = Instant::now();
        while self.runs(job_id).iter().filter(|run| run.state.end_ms.is_some()).count() < many {
            assert!(begun.elapsed() < PATIENCE, "{:?}", self.runs(job_id));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn kill(self) {
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else { panic!() };
    object
}

fn condition() -> Value {
    json!({ "task_key": "a", "condition_task": { "left": "1", "op": "EQUAL_TO", "right": "1" } })
}

fn after(jobs: &[i64]) -> Value {
    let jobs: Vec<Value> = jobs.iter().map(|id| json!({ "job_id": id })).collect();
    json!({ "job_completion": { "jobs": jobs } })
}

#[test]
fn files_start_one_run_each_time_over_lives_of_the_engine() {
    let (folder, files) = (tempfile::tempdir().unwrap(), Arc::new(Folder::default()));
    files.add("old");
    let life = Life::begin(folder.path(), &files);
    let job_id = life.create(&condition(), &json!({ "file_arrival": { "url": "/in" } })).unwrap();
    files.looked_at();
    files.add("a");
    life.until_there_are(1, job_id);
    // What is not the trigger may change.
    life.update(job_id, json!({ "tags": { "x": "1" } })).unwrap();
    files.looked_at();
    life.kill();
    files.add("b");
    files.add("c");
    let life = Life::begin(folder.path(), &files);
    life.until_there_are(2, job_id);
    files.looked_at();
    let causes: Vec<String> = life.runs(job_id).into_iter().map(|run| run.cause).collect();
    assert_eq!(causes, ["FILE_ARRIVAL", "FILE_ARRIVAL"]);
    // Of another place nothing is known; nor of what came while the trigger was paused.
    life.update(job_id, json!({ "trigger": { "file_arrival": { "url": "/other" } } })).unwrap();
    files.looked_at();
    let paused = json!({ "trigger": { "file_arrival": { "url": "/other" }, "pause_status": "PAUSED" } });
    life.update(job_id, paused).unwrap();
    files.add("d");
    life.update(job_id, json!({ "trigger": { "file_arrival": { "url": "/other" } } })).unwrap();
    files.looked_at();
    assert_eq!(life.runs(job_id).len(), 2);
    files.add("e");
    life.until_there_are(3, job_id);
    life.runtime.block_on(life.engine.delete_job(job_id)).unwrap();
    assert_eq!(life.runtime.block_on(life.jobs.trigger_states(None)).unwrap(), []);
    life.kill();
}

#[test]
fn a_run_follows_each_run_once_over_lives_of_the_engine() {
    const LIVES: usize = 4;
    let (folder, files) = (tempfile::tempdir().unwrap(), Arc::new(Folder::default()));
    let script = folder.path().join("task.sh");
    std::fs::write(&script, "exit 0").unwrap();
    let task = json!({ "task_key": "a", "spark_python_task": { "python_file": script } });
    let life = Life::begin(folder.path(), &files);
    let first = life.create(&task, &json!({})).unwrap();
    let second = life.create(&condition(), &after(&[first])).unwrap();
    let third = life.create(&task, &after(&[second])).unwrap();
    life.kill();
    for _ in 0..LIVES {
        let life = Life::begin(folder.path(), &files);
        for _ in 0..8 {
            life.run_now(first);
        }
        std::thread::sleep(Duration::from_millis(30));
        life.kill();
    }
    let life = Life::begin(folder.path(), &files);
    for job_id in [first, second, third] {
        life.until_there_are(LIVES * 8, job_id);
    }
    std::thread::sleep(Duration::from_millis(100));
    for (upstream, job_id) in [(first, second), (second, third)] {
        let runs: Vec<i64> = life.runs(upstream).iter().map(|run| run.run_id).collect();
        let mut followed = Vec::new();
        for run in life.runs(job_id) {
            let about: About = serde_json::from_str(&run.about).unwrap();
            assert_eq!((run.cause.as_str(), about.completed.len()), ("JOB_COMPLETION", 1));
            followed.push(about.completed[0].run_id);
        }
        followed.sort_unstable();
        assert_eq!(followed, runs);
    }
    life.kill();
}

#[test]
fn jobs_that_would_start_themselves_are_refused() {
    let (folder, files) = (tempfile::tempdir().unwrap(), Arc::new(Folder::default()));
    let life = Life::begin(folder.path(), &files);
    let first = life.create(&condition(), &json!({})).unwrap();
    let second = life.create(&condition(), &after(&[first])).unwrap();
    let refused = life.update(first, json!({ "trigger": after(&[second]) })).unwrap_err();
    let circle = format!("would start itself without end: {first} -> {second} -> {first}");
    assert!(refused.to_string().contains(&circle), "{refused}");
    assert!(life.update(first, json!({ "trigger": after(&[first]) })).is_err());
    assert!(matches!(life.create(&condition(), &after(&[4_711])), Err(Refusal::NoJob(4_711))));
    // What was refused has changed nothing; over a restart as well.
    life.kill();
    let life = Life::begin(folder.path(), &files);
    life.run_now(first);
    life.until_there_are(1, second);
    assert!(life.update(first, json!({ "trigger": after(&[second]) })).is_err());
    // A deleted job starts nothing, and stands in nobody's way.
    life.runtime.block_on(life.engine.delete_job(second)).unwrap();
    life.run_now(first);
    life.until_there_are(2, first);
    assert_eq!(life.runs(second).len(), 1);
    life.kill();
}
