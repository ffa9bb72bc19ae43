//! Triggers of jobs over HTTP: a folder, a Delta table by Spark, another job; and a restart.

use crate::serve::{Server, data_in, samples};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

struct Api(Server);

impl Api {
    fn start(data: &Path) -> Self {
        Self(Server::over(&samples(), data, &["--no-auth", "--jobs", "--trigger-interval", "1"]))
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let Server { serving, runtime, client, .. } = &self.0;
        runtime.block_on(async {
            let request = client.post(format!("{}/api/2.2/jobs/{path}", serving.address)).body(body.to_string());
            let answer = request.send().await.unwrap();
            (answer.status().as_u16(), serde_json::from_str(&answer.text().await.unwrap()).unwrap())
        })
    }

    fn create(&self, trigger: &Value) -> (u16, Value) {
        let task = json!({ "task_key": "a", "condition_task": { "left": "1", "op": "EQUAL_TO", "right": "1" } });
        self.post("create", &json!({ "name": "night", "tasks": [task], "trigger": trigger }))
    }

    fn made(&self, trigger: &Value) -> i64 {
        let (status, body) = self.create(trigger);
        assert_eq!(status, 200, "{body}");
        body["job_id"].as_i64().unwrap()
    }

    fn job(&self, job_id: i64) -> Value {
        let flags = "include_trigger_state=true&include_trigger_history=true";
        self.0.json(&format!("/api/2.2/jobs/get?job_id={job_id}&{flags}"))
    }

    /// Runs of a job, the first one first.
    fn runs(&self, job_id: i64) -> Vec<Value> {
        let mut runs = self.0.json(&format!("/api/2.2/jobs/runs/list?job_id={job_id}&completed_only=true"));
        let mut runs = runs["runs"].take().as_array().cloned().unwrap_or_default();
        runs.reverse();
        runs
    }

    fn until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < PATIENCE, "waited for {what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A table in a folder of its own, to be written to.
struct Table {
    folder: PathBuf,
    next: usize,
}

impl Table {
    fn copied(from: &Path, to: &Path) -> Self {
        let (from, to) = (from.join("_delta_log"), to.join("_delta_log"));
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
        Self { folder: to, next: 6 }
    }

    fn commit_path(&self, version: usize) -> PathBuf {
        self.folder.join(format!("{version:020}.json"))
    }

    /// Does once more what a commit of it did.
    fn commit_as(&mut self, version: usize) {
        let draft = self.folder.join("draft");
        fs::copy(self.commit_path(version), &draft).unwrap();
        fs::rename(draft, self.commit_path(self.next)).unwrap();
        self.next += 1;
    }
}

const WRITE: usize = 1;
const OPTIMIZE: usize = 4;

#[test]
fn files_tables_and_jobs_start_runs() {
    let Some(golden) = testkit::shared().map(|shared| shared.join("data/delta/cluster_none")).filter(|at| at.exists())
    else {
        eprintln!("skipped: delta/cluster_none is not there (LAKESCOPE_SHARED)");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (landing, orders) = (folder.path().join("landing"), folder.path().join("orders"));
    fs::create_dir(&landing).unwrap();
    fs::write(landing.join("old.csv"), "1").unwrap();
    let mut table = Table::copied(&golden, &orders);
    let api = Api::start(&data_in(&folder));
    let files = api.made(&json!({ "file_arrival": { "url": landing } }));
    let tables = api.made(&json!({ "table_update": { "table_names": [format!("delta.`{}`", orders.display())] } }));
    let follower = api.made(&json!({ "job_completion": { "jobs": [{ "job_id": files.to_string() }] } }));
    api.until("the first look", |api| [files, tables].iter().all(|id| api.job(*id)["trigger_state"].is_object()));
    assert_eq!(api.job(files)["trigger_state"], json!({ "file_arrival": { "using_file_events": false } }));
    assert_eq!(api.job(tables)["trigger_state"]["table"]["last_seen_table_states"][0]["has_seen_updates"], false);

    fs::write(landing.join("new.csv"), "1").unwrap();
    table.commit_as(WRITE);
    api.until("a run of each", |api| [files, tables, follower].iter().all(|id| !api.runs(*id).is_empty()));
    let run = |job_id: i64| api.runs(job_id)[0].clone();
    assert_eq!((&run(files)["trigger"], &run(tables)["trigger"]), (&json!("FILE_ARRIVAL"), &json!("TABLE")));
    let followed = run(follower);
    assert_eq!((&followed["trigger"], &followed["run_type"]), (&json!("JOB_COMPLETION"), &json!("JOB_RUN")));
    assert_eq!(followed["trigger_info"]["run_id"], run(files)["run_id"]);
    let completed = &followed["trigger_info"]["job_completion"]["completed_jobs"][0];
    let of_files = (json!(files.to_string()), json!(run(files)["run_id"].to_string()), json!("SUCCESS"));
    assert_eq!(
        (&completed["job_id"], &completed["run_id"], &completed["termination_code"]),
        (&of_files.0, &of_files.1, &of_files.2)
    );
    assert_eq!(api.job(tables)["trigger_history"]["last_triggered"]["run_id"], run(tables)["run_id"]);
    let monitored = api.job(follower)["trigger_state"]["job_completion"]["monitored_job_states"][0].clone();
    assert_eq!((&monitored["has_seen_completion"], &monitored["last_seen_result"]), (&json!(false), &json!("SUCCESS")));

    // What brings no new file and no data starts nothing; what comes while no server runs, one run.
    fs::write(landing.join("old.csv"), "12").unwrap();
    table.commit_as(OPTIMIZE);
    std::thread::sleep(Duration::from_millis(2_500));
    drop(api);
    for name in ["a.csv", "b.csv"] {
        fs::write(landing.join(name), "1").unwrap();
    }
    table.commit_as(WRITE);
    table.commit_as(WRITE);
    let api = Api::start(&data_in(&folder));
    api.until("the second runs", |api| [files, tables, follower].iter().all(|id| api.runs(*id).len() > 1));
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!([files, tables, follower].map(|id| api.runs(id).len()), [2, 2, 2]);

    // A place that goes is told, and its files are known when it comes back.
    fs::rename(&landing, folder.path().join("away")).unwrap();
    api.until("the trouble", |api| api.job(files)["trigger_history"]["last_failed"].is_object());
    let failed = api.job(files)["trigger_history"]["last_failed"]["description"].clone();
    assert!(failed.as_str().unwrap().ends_with("there is no such folder"), "{failed}");
    fs::rename(folder.path().join("away"), &landing).unwrap();
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(api.runs(files).len(), 2);
}

#[test]
fn triggers_that_nothing_can_come_of_are_refused() {
    let data = tempfile::tempdir().unwrap();
    let api = Api::start(&data_in(&data));
    for (trigger, message) in [
        (json!({ "table_update": { "table_names": ["main.shop.orders"] } }), "no catalog knows it"),
        (json!({ "file_arrival": { "url": "/in", "min_time_between_triggers_seconds": 30 } }), "60 or more"),
        (json!({ "job_completion": { "jobs": [{ "job_id": "4711" }] } }), "Job 4711 does not exist."),
        (json!({ "job_completion": { "jobs": [{ "job_id": "1", "workspace_id": "12" }] } }), "is in workspace 12"),
    ] {
        let (status, body) = api.create(&trigger);
        assert_eq!((status, &body["error_code"]), (400, &json!("INVALID_PARAMETER_VALUE")), "{body}");
        assert!(body["message"].as_str().unwrap().contains(message), "{body}");
    }
}
