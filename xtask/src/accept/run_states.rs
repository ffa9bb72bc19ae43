//! `run-states`: the decision table of run states, each case a job that really runs. (That the core
//! alone gives the same is a test of crate `run`.)
//!
//! A task is a process that does what its words say, one a start. Cases that speak of hours, or of
//! a moment in which nothing may move, have no form here.

use super::Outcome;
use super::jobs_api::JobsApi;
use crate::lakescope_binary;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::serving::Serving;

/// Cases at once.
const SIDE_BY_SIDE: usize = 6;
/// How long one state may take to come.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(40);

/// What a task does: its n-th start the n-th line of its words, the last one for all after it.
const SCRIPT: &str = r#"
printf x >> "$1/$2.starts"
word=$(sed -n "$(wc -c < "$1/$2.starts")p" "$1/$2.words")
[ -n "$word" ] || word=$(tail -n 1 "$1/$2.words")
case $word in
    SUCCESS) exit 0 ;;
    FAILED) exit 1 ;;
    INTERNAL_ERROR) kill -9 $PPID; sleep 60 ;;
    *) exec sleep 60 ;;
esac
"#;

pub fn run(arguments: &[String]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(shared) = testkit::shared() else {
        outcome.skip("run-states: needs ../shared (LAKESCOPE_SHARED)");
        return Ok(outcome);
    };
    let table: Value = serde_json::from_slice(&std::fs::read(shared.join("data/run-state-cases.json"))?)?;
    let cases = table["cases"].as_array().context("no cases")?.clone();
    let wanted = |case: &Value| arguments.is_empty() || arguments.iter().any(|id| case["id"] == id.as_str());
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("task.sh");
    std::fs::write(&script, SCRIPT)?;
    let data = folder.path().join("data");
    let slots = (SIDE_BY_SIDE * 10).to_string();
    let args = ["--no-auth", "--jobs", "--python", "/bin/sh", "--stop-grace", "1", "--task-slots", &slots];
    let serving = Serving::start(&lakescope_binary()?, &data, args)?;
    let world = World { api: JobsApi::at(&serving.address), script };
    let runtime = tokio::runtime::Runtime::new()?;
    let told = runtime.block_on(all(cases.into_iter().filter(wanted).collect(), world, folder.path()));
    for (name, told) in told {
        match told {
            Ok(true) => outcome.check(true, name),
            Ok(false) => println!("{name}: has no form over HTTP"),
            Err(error) => outcome.check(false, format!("{name}: {error:#}")),
        }
    }
    Ok(outcome)
}

type Told = Vec<(String, Result<bool>)>;

async fn all(cases: Vec<Value>, world: World, folder: &Path) -> Told {
    let places = Arc::new(tokio::sync::Semaphore::new(SIDE_BY_SIDE));
    let world = Arc::new(world);
    let mut playing = Vec::new();
    for case in cases {
        let (places, world) = (Arc::clone(&places), Arc::clone(&world));
        let folder = folder.join(text(&case["id"]));
        playing.push(tokio::spawn(async move {
            let _place = places.acquire().await;
            let name = format!("{} ({})", text(&case["id"]), text(&case["title"]));
            (name, play(&case, &world, &folder).await)
        }));
    }
    let mut told = Vec::new();
    for one in playing {
        match one.await {
            Ok(one) => told.push(one),
            Err(error) => told.push(("a case".to_owned(), Err(error.into()))),
        }
    }
    told
}

/// A server, and the script of its tasks.
struct World {
    api: JobsApi,
    script: PathBuf,
}

impl World {
    async fn create(&self, job: Value) -> Result<Value> {
        Ok(self.api.post("create", &job).await?["job_id"].clone())
    }

    async fn run_now(&self, job_id: &Value) -> Result<Value> {
        Ok(self.api.post("run-now", &json!({ "job_id": job_id })).await?["run_id"].clone())
    }

    async fn cancel(&self, run_id: &Value) -> Result<()> {
        self.api.post("runs/cancel", &json!({ "run_id": run_id })).await.map(drop)
    }

    async fn run(&self, run_id: &Value) -> Result<Value> {
        self.api.get(&format!("runs/get?run_id={run_id}&include_history=true")).await
    }

    /// The run as soon as it is as wanted.
    async fn until(&self, run_id: &Value, what: &str, is: impl Fn(&Value) -> bool) -> Result<Value> {
        let begun = Instant::now();
        loop {
            let run = self.run(run_id).await?;
            if is(&run) {
                return Ok(run);
            }
            if begun.elapsed() > PATIENCE {
                bail!("run {run_id} does not come to be {what}: {}", run["state"]);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_over(run: &Value) -> bool {
    ["TERMINATED", "SKIPPED", "INTERNAL_ERROR"].contains(&text(&run["state"]["life_cycle_state"]))
}

/// Plays a case; `false`: it has no form here.
async fn play(case: &Value, world: &World, folder: &Path) -> Result<bool> {
    std::fs::create_dir_all(folder)?;
    match text(&case["kind"]) {
        "derive" | "repair" => played(case, world, folder).await.map(|()| true),
        "admission" => admitted(case, world, folder).await,
        _ => Ok(false),
    }
}

/// Writes what a task does from now on.
fn words(folder: &Path, key: &str, words: &[&str]) -> Result<()> {
    std::fs::write(folder.join(format!("{key}.starts")), "")?;
    Ok(std::fs::write(folder.join(format!("{key}.words")), words.join("\n") + "\n")?)
}

fn process(world: &World, folder: &Path, key: &str) -> Value {
    json!({ "python_file": world.script, "parameters": [folder, key] })
}

fn list(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// A task of a case in the words of the API.
async fn task(case: &Value, world: &World, folder: &Path, active: &[&str]) -> Result<Value> {
    let key = text(&case["key"]);
    let mut attempts = list(&case["attempts"]);
    if active.contains(&key) {
        attempts = vec!["WAIT"];
    } else if attempts.is_empty() {
        attempts = vec!["SUCCESS"];
    }
    words(folder, key, &attempts)?;
    let mut task = json!({ "task_key": key, "max_retries": case["max_retries"].as_i64().unwrap_or_default() });
    for name in ["run_if", "disabled", "retry_on_timeout"] {
        if let Some(value) = case.get(name) {
            task[name] = value.clone();
        }
    }
    let on = |dependency: &Value| {
        let mut on = json!({ "task_key": dependency["task"] });
        if let Some(outcome) = dependency.get("outcome") {
            on["outcome"] = outcome.clone();
        }
        on
    };
    task["depends_on"] = case["depends_on"].as_array().into_iter().flatten().map(on).collect();
    if attempts.contains(&"TIMEDOUT") {
        task["timeout_seconds"] = 1.into();
    }
    match text(&case["type"]) {
        "condition" => task["condition_task"] = condition(case, &attempts),
        "for_each" => task["for_each_task"] = for_each(case, world, folder)?,
        "run_job" => task["run_job_task"] = json!({ "job_id": child(case, world, folder).await? }),
        _ => task["spark_python_task"] = process(world, folder, key),
    }
    Ok(task)
}

fn condition(case: &Value, attempts: &[&str]) -> Value {
    let left = match case["needs_value_from"].as_str() {
        Some(other) => format!("{{{{tasks.{other}.values.x}}}}"),
        // No number is greater than a word.
        None if attempts.contains(&"FAILED") => return json!({ "left": "x", "op": "GREATER_THAN", "right": "1" }),
        None => text(&case["evaluates_to"]).to_owned(),
    };
    json!({ "left": left, "op": "EQUAL_TO", "right": "true" })
}

fn for_each(case: &Value, world: &World, folder: &Path) -> Result<Value> {
    let key = text(&case["key"]);
    let items = case["iterations"].as_array().context("no iterations")?;
    for (n, item) in items.iter().enumerate() {
        words(folder, &format!("{key}-{n}"), &list(item))?;
    }
    let inputs: Vec<usize> = (0..items.len()).collect();
    let inner = json!({
        "task_key": "item",
        "max_retries": case["nested"]["max_retries"].as_i64().unwrap_or_default(),
        "spark_python_task": process(world, folder, &format!("{key}-{{{{input}}}}")),
    });
    Ok(json!({ "inputs": json!(inputs).to_string(), "task": inner }))
}

/// A job whose runs end as a case says of its child.
async fn child(case: &Value, world: &World, folder: &Path) -> Result<Value> {
    let key = format!("{}-child", text(&case["key"]));
    let one = |key: &str| json!({ "task_key": key, "spark_python_task": process(world, folder, key) });
    let job = match text(&case["child_result"]) {
        "TIMEDOUT" => {
            words(folder, &key, &["WAIT"])?;
            json!({ "name": key, "timeout_seconds": 1, "tasks": [one(&key)] })
        }
        "SUCCESS_WITH_FAILURES" => {
            let leaf = format!("{key}-leaf");
            words(folder, &key, &["FAILED"])?;
            words(folder, &leaf, &["SUCCESS"])?;
            let mut last = one(&leaf);
            last["depends_on"] = json!([{ "task_key": key }]);
            last["run_if"] = "ALL_DONE".into();
            json!({ "name": key, "tasks": [one(&key), last] })
        }
        other => bail!("no child is known that ends with {other:?}"),
    };
    world.create(job).await
}

async fn played(case: &Value, world: &World, folder: &Path) -> Result<()> {
    let event = &case["run_event"];
    let (done, active) = (list(&event["done"]), list(&event["active"]));
    let mut tasks = Vec::new();
    for of_case in case["tasks"].as_array().context("no tasks")? {
        tasks.push(task(of_case, world, folder, &active).await?);
    }
    let mut job = json!({ "name": case["id"], "tasks": tasks, "queue": { "enabled": true } });
    if event["type"] == "RUN_TIMEOUT" {
        job["timeout_seconds"] = 3.into();
    }
    let job_id = world.create(job).await?;
    let run_id = match text(&event["type"]) {
        "CANCEL_RUN" if active.is_empty() => cancelled_in_the_queue(case, world, folder, &job_id).await?,
        kind => {
            let run_id = world.run_now(&job_id).await?;
            if !active.is_empty() {
                world.until(&run_id, "where it is to be stopped", |run| stands(run, &done, &active)).await?;
            }
            if kind == "CANCEL_RUN" {
                world.cancel(&run_id).await?;
            }
            run_id
        }
    };
    let run = over(case, world, &run_id).await?;
    compare(&run, &case["expect"], folder)?;
    let mut latest = None;
    for repair in case["repairs"].as_array().into_iter().flatten() {
        latest = Some(repaired(case, repair, world, folder, &run_id, latest).await?);
    }
    Ok(())
}

/// Whether these tasks are over and those are at work.
fn stands(run: &Value, done: &[&str], active: &[&str]) -> bool {
    let are = |keys: &[&str], life_cycle: &str| {
        let latest = latest(run);
        keys.iter().all(|key| latest.get(*key).is_some_and(|task| task["state"]["life_cycle_state"] == life_cycle))
    };
    are(done, "TERMINATED") && are(active, "RUNNING")
}

/// A run that is cancelled while another one keeps it in the queue.
async fn cancelled_in_the_queue(case: &Value, world: &World, folder: &Path, job_id: &Value) -> Result<Value> {
    let keys: Vec<&str> = case["tasks"].as_array().into_iter().flatten().map(|task| text(&task["key"])).collect();
    keys.iter().try_for_each(|key| words(folder, key, &["WAIT"]))?;
    let first = world.run_now(job_id).await?;
    let second = world.run_now(job_id).await?;
    world.until(&second, "queued", |run| run["state"]["life_cycle_state"] == "QUEUED").await?;
    world.cancel(&second).await?;
    world.until(&second, "over", is_over).await?;
    world.cancel(&first).await?;
    world.until(&first, "over", is_over).await?;
    Ok(second)
}

/// The run when it is over; tasks whose words say so are cancelled on the way.
async fn over(case: &Value, world: &World, run_id: &Value) -> Result<Value> {
    let cancels = |task: &&Value| list(&task["attempts"]).contains(&"CANCELED");
    let cancelled: Vec<&str> =
        case["tasks"].as_array().into_iter().flatten().filter(cancels).map(|task| text(&task["key"])).collect();
    for key in cancelled {
        let reached = |run: &Value| is_over(run) || stands(run, &[], &[key]);
        let run = world.until(run_id, "where a task is to be cancelled", reached).await?;
        if let Some(task) = latest(&run).get(key).filter(|_| !is_over(&run)) {
            world.cancel(&task["run_id"]).await?;
        }
    }
    world.until(run_id, "over", is_over).await
}

/// The newest attempt of each task.
fn latest(run: &Value) -> BTreeMap<String, Value> {
    let mut latest: BTreeMap<String, Value> = BTreeMap::new();
    for task in run["tasks"].as_array().into_iter().flatten() {
        let key = text(&task["task_key"]).to_owned();
        let is_newer =
            latest.get(&key).is_none_or(|known| known["attempt_number"].as_i64() < task["attempt_number"].as_i64());
        if is_newer {
            latest.insert(key, task.clone());
        }
    }
    latest
}

fn compare(run: &Value, expect: &Value, folder: &Path) -> Result<()> {
    let word = |state: &Value| match text(&state["life_cycle_state"]) {
        "INTERNAL_ERROR" => "INTERNAL_ERROR".into(),
        _ => state["result_state"].clone(),
    };
    let tasks: Map<String, Value> = latest(run).into_iter().map(|(key, task)| (key, word(&task["state"]))).collect();
    if expect["tasks"] != Value::Object(tasks.clone()) {
        bail!("tasks end as {}, not {}", Value::Object(tasks), expect["tasks"]);
    }
    let details = &run["status"]["termination_details"];
    let found = json!({
        "status_state": run["status"]["state"],
        "life_cycle_state": run["state"]["life_cycle_state"],
        "result_state": run["state"]["result_state"],
        "termination_code": details["code"],
        "termination_type": details["type"],
    });
    for (name, wanted) in expect["run"].as_object().into_iter().flatten() {
        if found[name] != *wanted {
            bail!("{name} of the run is {}, not {wanted}", found[name]);
        }
    }
    for (key, wanted) in expect["attempts_used"].as_object().into_iter().flatten() {
        let starts = std::fs::metadata(folder.join(format!("{key}.starts")))?.len();
        if wanted.as_u64() != Some(starts) {
            bail!("{key} was started {starts} times, not {wanted}");
        }
    }
    Ok(())
}

/// Repairs the run; gives the id of the repair.
async fn repaired(
    case: &Value,
    repair: &Value,
    world: &World,
    folder: &Path,
    run_id: &Value,
    latest_id: Option<Value>,
) -> Result<Value> {
    // Without words of its own a task now does what it should.
    for task in case["tasks"].as_array().into_iter().flatten() {
        let key = text(&task["key"]);
        match repair["attempts"][key].as_array() {
            Some(_) => words(folder, key, &list(&repair["attempts"][key]))?,
            None if task["attempts"].is_null() => words(folder, key, &["SUCCESS"])?,
            None => words(folder, key, &list(&task["attempts"]))?,
        }
    }
    let before: BTreeSet<String> =
        latest(&world.run(run_id).await?).values().map(|task| task["run_id"].to_string()).collect();
    let mut request = repair["request"].clone();
    request["run_id"] = run_id.clone();
    if let Some(latest_id) = latest_id {
        request["latest_repair_id"] = latest_id;
    }
    let repair_id = world.api.post("runs/repair", &request).await?["repair_id"].clone();
    let run = world.until(run_id, "over again", is_over).await?;
    let chosen: BTreeSet<String> = latest(&run)
        .into_iter()
        .filter(|(_, task)| !before.contains(&task["run_id"].to_string()))
        .map(|(key, _)| key)
        .collect();
    let wanted: BTreeSet<String> = list(&repair["expect"]["selected"]).into_iter().map(str::to_owned).collect();
    if chosen != wanted {
        bail!("the repair chooses {chosen:?}, not {wanted:?}");
    }
    compare(&run, &repair["expect"], folder).context("after a repair")?;
    Ok(repair_id)
}

/// One more run beside those that are there.
async fn admitted(case: &Value, world: &World, folder: &Path) -> Result<bool> {
    let given = &case["given"];
    let number = |name: &str| given[name].as_u64().unwrap_or_default();
    // A place that is free and a run that waits for it: that never stands still.
    if number("queued_runs") > 0 && number("active_runs") < number("max_concurrent_runs") {
        return Ok(false);
    }
    words(folder, "a", &["WAIT"])?;
    let job = json!({
        "name": case["id"],
        "max_concurrent_runs": given["max_concurrent_runs"],
        "queue": { "enabled": given["queue_enabled"] },
        "tasks": [{ "task_key": "a", "spark_python_task": process(world, folder, "a") }],
    });
    let job_id = world.create(job).await?;
    let mut before = Vec::new();
    for _ in 0..number("active_runs") + number("queued_runs") {
        before.push(world.run_now(&job_id).await?);
    }
    let run_id = world.run_now(&job_id).await?;
    let run = world.run(&run_id).await?;
    world.cancel(&run_id).await?;
    for run_id in &before {
        world.cancel(run_id).await?;
    }
    let found = json!({
        "life_cycle_state": run["state"]["life_cycle_state"],
        "result_state": run["state"]["result_state"],
        "status_state": run["status"]["state"],
        "termination_code": run["status"]["termination_details"]["code"],
        "queue_code": run["status"]["queue_details"]["code"],
    });
    for (name, wanted) in case["expect"].as_object().into_iter().flatten() {
        // It may be at work already when it is looked at.
        let has_begun = wanted == "PENDING" && found[name] == "RUNNING";
        if found[name] != *wanted && !has_begun {
            bail!("{name} is {}, not {wanted}", found[name]);
        }
    }
    Ok(true)
}
