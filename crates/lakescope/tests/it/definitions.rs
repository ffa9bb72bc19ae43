//! Definitions of jobs in files: what is wrong with them, what a server makes of them, what a run of
//! them shows. `UPDATE=1` writes the expected texts anew.

use crate::render::golden;
use crate::serve::{Server, binary, data_in};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions")
}

fn jobs(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.current_dir(folder).stdin(Stdio::null()).env_remove("DATABRICKS_HOST").env_remove("LAKESCOPE_TOKEN");
    command.arg("jobs").args(args).output().unwrap()
}

/// What was said on both sides, without the folder, and the exit code.
fn said(folder: &Path, output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(folder.to_str().unwrap(), "FOLDER");
    format!("{}{}exit code {}\n", text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
}

#[test]
fn all_that_is_wrong_is_told_at_its_place() {
    for name in ["wrong.yml", "wrong.json", "torn.yml", "twice.yml", "wrong-bundle.yml"] {
        let output = jobs(&files(), &["validate", name]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        golden(&format!("definitions/{name}.txt"), &said(&files(), &output));
    }
    let both = jobs(&files(), &["validate", "torn.yml", "wrong.json", "-o", "json"]);
    let faults: Value = serde_json::from_slice(&both.stdout).unwrap();
    assert_eq!((&faults[0]["file"], &faults[0]["line"]), (&"torn.yml".into(), &4.into()), "{faults}");
    assert!(faults.as_array().unwrap().iter().any(|fault| fault["file"] == "wrong.json"), "{faults}");
}

#[test]
fn what_is_right_is_named() {
    let right = jobs(&files(), &["validate", "bundle/databricks.yml", "-t", "prod"]);
    golden("definitions/right.txt", &said(&files(), &right));
    for (args, words) in [
        (&["validate", "bundle/databricks.yml", "-t", "prd"][..], "there is no target \"prd\""),
        (&["validate", "bundle/databricks.yml", "--var", "dya=1"], "did you mean day?"),
        (&["validate", "nowhere.yml"], "cannot read nowhere.yml"),
    ] {
        let output = jobs(&files(), args);
        let said = said(&files(), &output);
        assert!(output.status.code() == Some(2) && said.contains(words), "{args:?}: {said}");
    }
}

/// A server that runs jobs, and a client of it.
struct Running {
    server: Server,
    data: tempfile::TempDir,
}

impl Running {
    fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("logs");
        std::fs::create_dir(&folder).unwrap();
        Self { server: Server::over(&folder, &data_in(&data), &["--no-auth", "--jobs"]), data }
    }

    fn jobs(&self, args: &[&str]) -> Output {
        let args = [args, &["--host", &self.server.serving.address]].concat();
        jobs(&files(), &args)
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.jobs(&[args, &["-o", "json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&files(), &output)))
    }

    fn make(&self, json: &str) -> i64 {
        self.json(&["create", "--json", json])["job_id"].as_i64().unwrap()
    }
}

#[test]
fn a_server_comes_to_have_what_files_define() {
    let running = Running::start();
    let mut told = String::new();
    let mut apply = |args: &[&str]| {
        let output = running.jobs(&[&["apply", "bundle/databricks.yml"], args].concat());
        told.push_str(&format!("$ {}\n{}\n", args.join(" "), said(&files(), &output)));
    };
    apply(&["--dry-run"]);
    apply(&[]);
    apply(&[]);
    apply(&["-t", "prod", "--var", "runs=5"]);
    apply(&["-t", "prod", "--dry-run"]);
    apply(&["-t", "prod"]);
    apply(&["-t", "prod", "--dry-run"]);
    golden("definitions/applied.txt", &told);

    let of = |name: &str| {
        let listed = running.json(&["list", "--name", name]);
        running.json(&["get", &listed[0]["job_id"].to_string()])["settings"].clone()
    };
    let copy = of("[dev anybody] orders_load");
    assert_eq!((&copy["max_concurrent_runs"], &copy["tags"]["dev"]), (&4.into(), &"anybody".into()), "{copy}");
    assert_eq!((&copy["schedule"]["pause_status"], &copy["tags"]["owner"]), (&"PAUSED".into(), &"anybody".into()));
    let real = of("orders_load");
    assert!(real["schedule"]["pause_status"].is_null() && real["tags"]["dev"].is_null(), "{real}");
    assert_eq!(real["job_clusters"][0]["new_cluster"]["num_workers"], 8);
    let task = &real["tasks"][0];
    assert_eq!((&task["timeout_seconds"], &task["max_retries"]), (&600.into(), &1.into()), "{task}");
    let file = files().join("bundle/src/load.py").display().to_string();
    assert_eq!(task["spark_python_task"]["python_file"], file);
    assert_eq!(task["spark_python_task"]["parameters"][1], "prod");
    let all = of("[dev anybody] orders_all");
    let load = &running.json(&["list", "--name", "[dev anybody] orders_load"])[0]["job_id"];
    assert_eq!(&all["tasks"][0]["run_job_task"]["job_id"], load);
}

#[test]
fn a_name_that_two_jobs_have_changes_nothing() {
    let running = Running::start();
    let json = r#"{ "name": "orders_load", "tasks": [{ "task_key": "a", "condition_task":
        { "left": "1", "op": "EQUAL_TO", "right": "1" } }] }"#;
    let (first, second) = (running.make(json), running.make(json));
    let output = running.jobs(&["apply", "bundle/databricks.yml", "-t", "prod"]);
    let said = said(&files(), &output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("2 jobs of the name \"orders_load\"") && said.contains(&format!("{second}, {first}")),
        "{said}"
    );
    assert_eq!(running.json(&["list"]).as_array().unwrap().len(), 2);
}

#[test]
fn a_run_shows_its_tasks_and_what_they_write() {
    let running = Running::start();
    let file = files().join("bundle/src/load.py");
    let task = |key: &str, parameters: &[&str]| serde_json::json!({ "task_key": key, "spark_python_task": { "python_file": file, "parameters": parameters } });
    let mut report = task("report", &["0.5", "fail"]);
    report["depends_on"] = serde_json::json!([{ "task_key": "load" }]);
    let job = serde_json::json!({ "name": "night", "tasks": [task("load", &["x"]), report] });
    let job_id = running.make(&job.to_string()).to_string();

    let output = running.jobs(&["run-now", &job_id, "--follow"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = said.lines().collect();
    let at = |line: &str| lines.iter().position(|l| l.starts_with(line)).unwrap_or_else(|| panic!("{line}: {said}"));
    let order = [at("[load] loaded"), at("load: SUCCESS, took"), at("[report] loading 0.5 fail")];
    assert!(order.is_sorted() && at("[report] loaded") < at("report: FAILED, took"), "{said}");
    assert!(said.contains("[load] one row was odd\n") && said.contains("[report] one row was odd\n"), "{said}");
    assert!(lines.last().unwrap().contains("FAILED, took"), "{said}");

    let run_id = running.json(&["list-runs"])[0]["run_id"].to_string();
    let again = running.jobs(&["follow", &run_id]);
    let again = String::from_utf8(again.stdout).unwrap();
    assert!(again.contains("[load] loaded\n") && again.contains("report: FAILED"), "{again}");
    let repair = running.jobs(&["repair-run", &run_id, "--rerun-all-failed-tasks", "--follow"]);
    let repair = String::from_utf8(repair.stdout).unwrap();
    assert!(repair.contains("[report] loaded\n") && !repair.contains("[load]"), "{repair}");
    let json = running.json(&["follow", &run_id]);
    assert_eq!(json["state"]["result_state"], "FAILED", "{json}");
    drop(running.data);
}
