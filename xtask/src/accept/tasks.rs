//! `tasks`: programs of every kind, run by a server as jobs, with the packages they ask for.
//!
//! The table and its programs stand in `tests/tasks`; `FOLDER` in them is where they are copied to.
//! The runtime of the server has version 0.9 of the package `shop`, and PySpark.

use super::Outcome;
use super::jobs_api::JobsApi;
use crate::{lakescope_binary, root, spark};
use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use testkit::serving::{Serving, command};

/// Installing what runs notebooks takes longest.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long after its end an application may be read.
const READING: Duration = Duration::from_secs(60);

pub fn run(arguments: &[String]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Ok(spark) = spark::find() else {
        outcome.skip("tasks: no Python with PySpark can be made here (Python 3 with pip, Java 17)");
        return Ok(outcome);
    };
    let folder = tempfile::tempdir()?;
    let cases = copied(&root().join("tests/tasks"), folder.path())?;
    let python = runtime(folder.path(), &spark)?;
    let binary = lakescope_binary()?;
    let mut command = command(&binary, &folder.path().join("data"), ["--no-auth", "--jobs", "--interval", "1"]);
    command.arg("--python").arg(&python).arg("--spark-home").arg(&spark.home).args(["--spark-master", "local[2]"]);
    let serving = Serving::start_as(&mut command, |_| {})?;
    let api = JobsApi::at(&serving.address);
    let runtime = tokio::runtime::Runtime::new()?;
    let unknown = arguments.iter().find(|name| !cases.iter().any(|case| case["name"] == name.as_str()));
    ensure!(unknown.is_none(), "there is no case {unknown:?}; they stand in tests/tasks/cases.json");
    let wanted = |case: &&Value| arguments.is_empty() || arguments.iter().any(|name| *name == case["name"]);
    for case in cases.iter().filter(wanted) {
        let name = case["name"].as_str().context("a case without a name")?;
        match runtime.block_on(played(&api, case)) {
            Ok(wrong) => outcome.check(wrong.is_empty(), format!("{name}: {}", wrong.join("; "))),
            Err(error) => outcome.check(false, format!("{name}: {error:#}")),
        }
    }
    Ok(outcome)
}

/// Copies all files with the folder put in; gives the table.
fn copied(from: &Path, to: &Path) -> Result<Vec<Value>> {
    copy(from, to)?;
    let made = Command::new("python3").arg(to.join("wheel.py")).arg(to).args(["0.9", "1.0", "2.0"]).status()?;
    ensure!(made.success(), "the wheels cannot be made");
    repository(&to.join("repo"))?;
    Ok(serde_json::from_slice(&std::fs::read(to.join("cases.json"))?)?)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let file = entry?.path();
        let name = file.file_name().context("a file without a name")?;
        if file.is_dir() {
            copy(&file, &to.join(name))?;
            continue;
        }
        let text = std::fs::read_to_string(&file)?.replace("FOLDER", &to.display().to_string());
        std::fs::write(to.join(name), text)?;
    }
    Ok(())
}

/// Makes a repository of a folder: one commit, a branch and a tag.
fn repository(folder: &Path) -> Result<()> {
    let git = |arguments: &[&str]| {
        let who = ["-c", "user.name=tests", "-c", "user.email=tests@localhost"];
        start::run(Command::new("git").arg("-C").arg(folder).args(who).args(arguments))
    };
    git(&["init", "--quiet", "--initial-branch", "main"])?;
    git(&["add", "."])?;
    git(&["commit", "--quiet", "--message", "All of it"])?;
    git(&["tag", "v1"])
}

/// An interpreter with a package of its own, and Spark's.
fn runtime(folder: &Path, spark: &spark::Spark) -> Result<PathBuf> {
    let runtime = folder.join("runtime");
    start::run(Command::new(&spark.python).args(["-m", "venv"]).arg(&runtime))?;
    let python = runtime.join("bin/python");
    let wheel = folder.join("shop-0.9-py3-none-any.whl");
    start::run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--no-index"]).arg(wheel))?;
    let code = "import sysconfig; print(sysconfig.get_paths()['purelib'])";
    let site = Command::new(&python).args(["-c", code]).output()?;
    let site = PathBuf::from(String::from_utf8(site.stdout)?.trim());
    let packages = spark.home.parent().context("Spark has no folder around it")?;
    std::fs::write(site.join("spark.pth"), packages.display().to_string())?;
    Ok(python)
}

/// Runs a case to its end and gives what is not as it should be.
async fn played(api: &JobsApi, case: &Value) -> Result<Vec<String>> {
    let mut job = Map::from_iter([("name".to_owned(), case["name"].clone())]);
    for field in ["tasks", "parameters", "environments", "git_source"] {
        job.extend(case.get(field).map(|value| (field.to_owned(), value.clone())));
    }
    let job_id = api.post("create", &job.into()).await?["job_id"].clone();
    let run_id = api.post("run-now", &json!({ "job_id": job_id })).await?["run_id"].clone();
    let begun = Instant::now();
    let run = loop {
        let run = api.get(&format!("runs/get?run_id={run_id}")).await?;
        if run["end_time"].as_i64().is_some_and(|end| end > 0) {
            break run;
        }
        ensure!(begun.elapsed() < PATIENCE, "the run is not over after {PATIENCE:?}: {}", run["state"]);
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let mut wrong = Vec::new();
    for (key, expected) in case["expect"].as_object().context("nothing is expected")? {
        let tasks = run["tasks"].as_array().context("no tasks")?;
        let task = tasks.iter().find(|task| task["task_key"] == key.as_str());
        let task = task.with_context(|| format!("there is no task {key}"))?;
        let told = judged(api, task, expected).await?;
        wrong.extend(told.into_iter().map(|told| format!("task {key}: {told}")));
    }
    Ok(wrong)
}

/// What of a task is not as expected.
async fn judged(api: &JobsApi, task: &Value, expected: &Value) -> Result<Vec<String>> {
    let run_id = &task["run_id"];
    let mut output = api.get(&format!("runs/get-output?run_id={run_id}")).await?;
    let logs = output["logs"].as_str().unwrap_or_default().to_owned();
    let mut wrong = Vec::new();
    let mut check = |is: bool, what: String| {
        if !is {
            wrong.push(what);
        }
    };
    let (state, code) = (&task["state"], &task["status"]["termination_details"]["code"]);
    let equal = [
        ("result", &state["result_state"]),
        ("life_cycle", &state["life_cycle_state"]),
        ("code", code),
        ("notebook", &output["notebook_output"]["result"]),
    ];
    for (field, found) in equal {
        let is = expected.get(field).is_none_or(|wanted| wanted == found);
        check(is, format!("{field} is {found}, not {}: {} {logs}", expected[field], output["error"]));
    }
    for (field, found) in [("error", &output["error"]), ("trace", &output["error_trace"])] {
        let found = found.as_str().unwrap_or_default();
        let is = expected[field].as_str().is_none_or(|wanted| found.contains(wanted));
        check(is, format!("{field} is {found:?}, without {}", expected[field]));
    }
    for (field, wanted) in [("logs", true), ("not_logs", false)] {
        for text in expected[field].as_array().into_iter().flatten().filter_map(Value::as_str) {
            check(logs.contains(text) == wanted, format!("{field} {text:?}: {logs}"));
        }
    }
    if let Some(text) = expected["exported"].as_str() {
        let page = api.get(&format!("runs/export?run_id={run_id}")).await?;
        let is = page["views"][0]["content"].as_str().is_some_and(|html| html.contains(text));
        check(is, format!("the page of the notebook is without {text:?}"));
    }
    if let Some(many) = expected["applications"].as_u64() {
        let begun = Instant::now();
        let found = loop {
            let found = output["spark_applications"].as_array().map_or(0, Vec::len) as u64;
            if found == many || begun.elapsed() > READING {
                break found;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
            output = api.get(&format!("runs/get-output?run_id={run_id}")).await?;
        };
        check(found == many, format!("{found} Spark applications, not {many}"));
        let said = output["spark_applications"][0]["diagnosis"].as_str().unwrap_or_default();
        check(!said.is_empty(), "the diagnosis says nothing".to_owned());
    }
    Ok(wrong)
}
