//! The decision table of run states: each case a graph, what its attempts give, and what follows.

use crate::world::{Script, World, play};
use run::admission::{self, Admission, Allowed};
use run::repair::Request;
use run::{Dependency, End, Graph, Kind, Limits, Retry, Run, Stop, Task, slices};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Deserialize)]
struct Table {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    kind: String,
    title: String,
    #[serde(default)]
    tasks: Vec<CaseTask>,
    run_event: Option<RunEvent>,
    #[serde(default)]
    repairs: Vec<Repair>,
    #[serde(default)]
    given: Value,
    expect: Value,
}

#[derive(Deserialize)]
struct CaseTask {
    key: String,
    #[serde(default)]
    depends_on: Vec<CaseDependency>,
    #[serde(default)]
    run_if: run::RunIf,
    #[serde(default)]
    disabled: bool,
    attempts: Option<Vec<String>>,
    #[serde(default)]
    max_retries: i32,
    #[serde(default)]
    retry_on_timeout: bool,
    #[serde(rename = "type")]
    kind: Option<String>,
    evaluates_to: Option<String>,
    needs_value_from: Option<String>,
    iterations: Option<Vec<Vec<String>>>,
    nested: Option<Nested>,
    child_result: Option<String>,
}

#[derive(Deserialize)]
struct CaseDependency {
    task: String,
    outcome: Option<String>,
}

#[derive(Deserialize)]
struct Nested {
    #[serde(default)]
    max_retries: i32,
}

#[derive(Deserialize)]
struct RunEvent {
    #[serde(rename = "type")]
    kind: String,
    done: Vec<String>,
    active: Vec<String>,
}

#[derive(Deserialize)]
struct Repair {
    request: RepairRequest,
    #[serde(default)]
    attempts: BTreeMap<String, Vec<String>>,
    expect: Value,
}

#[derive(Deserialize)]
struct RepairRequest {
    #[serde(default)]
    rerun_all_failed_tasks: bool,
    #[serde(default)]
    rerun_tasks: Vec<String>,
    #[serde(default)]
    rerun_dependent_tasks: bool,
}

fn table() -> Option<Table> {
    let text = std::fs::read_to_string(testkit::shared()?.join("data/run-state-cases.json")).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn every_case_of_the_table_holds() {
    let Some(table) = table() else {
        eprintln!("skipped: run-state-cases.json is not there (LAKESCOPE_SHARED)");
        return;
    };
    let wrong: Vec<String> = table.cases.iter().filter_map(|case| check(case).err()).collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), table.cases.len(), wrong.join("\n"));
}

fn check(case: &Case) -> Result<(), String> {
    let (found, expected) = match case.kind.as_str() {
        "derive" | "repair" => return played(case).map_err(|why| format!("{} ({}): {why}", case.id, case.title)),
        "admission" => (admitted(&case.given), case.expect.clone()),
        "queue_expiry" => (expired(&case.given), case.expect.clone()),
        "timing" => (timed(&case.given), case.expect.clone()),
        "retry_time" => (retried(&case.given), case.expect.clone()),
        "slices" => (sliced(&case.given), case.expect.clone()),
        other => return Err(format!("{}: a kind that the test does not know: {other}", case.id)),
    };
    let found: Value = expected.as_object().map_or(found.clone(), |wanted| {
        wanted.keys().map(|key| (key.clone(), found[key].clone())).collect::<serde_json::Map<_, _>>().into()
    });
    match found == expected {
        true => Ok(()),
        false => Err(format!("{} ({}): {found}, not {expected}", case.id, case.title)),
    }
}

fn end(word: &str) -> End {
    match word {
        "SUCCESS" => End::SUCCESS,
        "FAILED" => End::FAILED,
        "TIMEDOUT" => End::TIMED_OUT,
        "CANCELED" => End::CANCELED_BY_USER,
        "INTERNAL_ERROR" => End::internal_error(run::Code::ClusterError),
        other => panic!("no attempt ends with {other}"),
    }
}

/// The word of the table for a task's end.
fn word(end: Option<End>) -> Value {
    match end {
        Some(end) if end.life_cycle == run::LifeCycle::InternalError => "INTERNAL_ERROR".into(),
        Some(end) => end.outcome.map_or(Value::Null, |outcome| outcome.word().into()),
        None => Value::Null,
    }
}

fn task(case: &CaseTask) -> Task {
    let kind = match case.kind.as_deref() {
        Some("condition") => Kind::Condition,
        Some("for_each") => Kind::ForEach { concurrency: 1 },
        _ => Kind::Work,
    };
    let outcome = |word: &String| word == "true";
    let dependency =
        |d: &CaseDependency| Dependency { task_key: d.task.clone(), outcome: d.outcome.as_ref().map(outcome) };
    Task {
        key: case.key.clone(),
        depends_on: case.depends_on.iter().map(dependency).collect(),
        run_if: case.run_if,
        disabled: case.disabled,
        kind,
        reads: case.needs_value_from.iter().cloned().collect(),
        retry: Retry {
            max_retries: case.nested.as_ref().map_or(case.max_retries, |nested| nested.max_retries),
            min_interval_ms: 0,
            on_timeout: case.retry_on_timeout,
        },
        timeout_ms: None,
    }
}

fn script(case: &CaseTask) -> Script {
    let ends = |words: &[String]| words.iter().map(|word| end(word)).collect::<Vec<_>>();
    let child = case.child_result.as_deref().map(|result| match result {
        "SUCCESS" | "SUCCESS_WITH_FAILURES" => vec![End::SUCCESS],
        _ => vec![End::FAILED],
    });
    let wants_value = case.needs_value_from.is_some();
    let attempts = case.attempts.as_deref().map(ends).or(child);
    Script {
        attempts: if wants_value { vec![End::FAILED] } else { attempts.unwrap_or(vec![End::SUCCESS]) },
        answer: case.evaluates_to.as_deref().map(|word| word == "true"),
        items: case.iterations.as_ref().map(|items| items.iter().map(|item| ends(item)).collect()),
    }
}

fn played(case: &Case) -> Result<(), String> {
    let graph = Graph::new(case.tasks.iter().map(task).collect()).map_err(|error| error.to_string())?;
    let mut world = World::new(Run::new(graph, Limits::default(), None), case.tasks.iter().map(script).collect());
    match &case.run_event {
        None => play(&mut world),
        Some(event) => stopped_when(&mut world, event),
    }
    compare(&world, &case.expect)?;
    for (n, repair) in case.repairs.iter().enumerate() {
        for (key, attempts) in &repair.attempts {
            let at = world.run.graph().position(key).ok_or("a repair's attempts are of no task")?;
            world.scripts[at].attempts = attempts.iter().map(|word| end(word)).collect();
        }
        world.fresh();
        let request = Request {
            all_failed: repair.request.rerun_all_failed_tasks,
            tasks: repair.request.rerun_tasks.clone(),
            dependents: repair.request.rerun_dependent_tasks,
            latest_repair_id: world.run.repairs().last().copied(),
        };
        let chosen = world.run.chosen(&request).map_err(|why| why.to_string())?;
        let keys: BTreeSet<&str> = chosen.iter().map(|&at| world.run.graph().tasks()[at].key.as_str()).collect();
        let wanted: BTreeSet<&str> =
            repair.expect["selected"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if keys != wanted {
            return Err(format!("repair {n} chooses {keys:?}, not {wanted:?}"));
        }
        world.repair(n as u64 + 1, &request);
        play(&mut world);
        compare(&world, &repair.expect).map_err(|why| format!("repair {n}: {why}"))?;
    }
    Ok(())
}

/// Plays until the named tasks are over and the others at work, then stops the run.
fn stopped_when(world: &mut World, event: &RunEvent) {
    let position = |world: &World, key: &String| world.run.graph().position(key).unwrap();
    let stop = if event.kind == "RUN_TIMEOUT" { Stop::Timeout } else { Stop::User };
    if event.done.is_empty() && event.active.is_empty() {
        world.stop(stop);
        return play(world);
    }
    world.admit();
    for key in &event.done {
        let at = position(world, key);
        world.finish_all_of(at);
    }
    let active: BTreeSet<usize> = world.active_tasks();
    assert_eq!(active, event.active.iter().map(|key| position(world, key)).collect::<BTreeSet<_>>());
    world.stop(stop);
    play(world);
}

fn compare(world: &World, expect: &Value) -> Result<(), String> {
    let tasks = world.run.graph().tasks();
    let ends: serde_json::Map<String, Value> =
        tasks.iter().zip(world.run.tasks()).map(|(task, run)| (task.key.clone(), word(run.end))).collect();
    if let Some(wanted) = expect["tasks"].as_object().filter(|wanted| **wanted != ends) {
        return Err(format!("tasks end as {}, not {}", Value::from(ends), Value::from(wanted.clone())));
    }
    let end = world.run.end().ok_or("the run is not over")?;
    let run = serde_json::json!({
        "status_state": end.life_cycle.status(),
        "life_cycle_state": end.life_cycle.word(),
        "result_state": end.outcome.map(run::Outcome::word),
        "termination_code": end.code.word(),
        "termination_type": end.code.kind().word(),
    });
    for (key, wanted) in expect["run"].as_object().into_iter().flatten() {
        if run[key] != *wanted {
            return Err(format!("{key} of the run is {}, not {wanted}", run[key]));
        }
    }
    for (key, wanted) in expect["attempts_used"].as_object().into_iter().flatten() {
        let at = world.run.graph().position(key).ok_or("attempts of no task")?;
        let used = world.run.tasks()[at].attempts;
        if wanted.as_u64() != Some(u64::from(used)) {
            return Err(format!("{key} took {used} attempts, not {wanted}"));
        }
    }
    let leaves: BTreeSet<&str> =
        (0..tasks.len()).filter(|&at| world.run.graph().is_leaf(at)).map(|at| tasks[at].key.as_str()).collect();
    let wanted: Option<BTreeSet<&str>> =
        expect["leaves"].as_array().map(|keys| keys.iter().filter_map(Value::as_str).collect());
    match wanted.is_none_or(|wanted| wanted == leaves) {
        true => Ok(()),
        false => Err(format!("the leaves are {leaves:?}")),
    }
}

fn int(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn end_words(end: End) -> Value {
    serde_json::json!({
        "life_cycle_state": end.life_cycle.word(),
        "status_state": end.life_cycle.status(),
        "result_state": end.outcome.map(run::Outcome::word),
        "termination_code": end.code.word(),
    })
}

fn admitted(given: &Value) -> Value {
    let number = |key: &str| int(&given[key]) as u32;
    let allowed = Allowed {
        concurrent_runs: number("max_concurrent_runs"),
        queues: given["queue_enabled"] == true,
        queued_runs: 100,
    };
    match admission::admit(allowed, number("active_runs"), number("queued_runs")) {
        Admission::Begin => serde_json::json!({ "life_cycle_state": "PENDING", "status_state": "PENDING" }),
        Admission::Wait(code) => serde_json::json!({
            "life_cycle_state": "QUEUED", "status_state": "QUEUED", "queue_code": code.word(),
        }),
        Admission::Skip(end) => end_words(end),
    }
}

fn expired(given: &Value) -> Value {
    let now_ms = 1_795_990_000_000;
    let queued_ms = now_ms - int(&given["queued_seconds"]) * 1_000;
    admission::expired(queued_ms, now_ms).map_or(Value::Null, end_words)
}

fn single(limits: Limits, retry: Retry) -> Run {
    let task = Task { key: "a".into(), retry, ..Task::default() };
    Run::new(Graph::new(vec![task]).unwrap(), limits, None)
}

/// A run of one task that works for a given time.
fn timed(given: &Value) -> Value {
    let after = |key: &str| Some(int(&given[key]) * 1_000).filter(|&ms| ms > 0);
    let limits = Limits { timeout_ms: after("timeout_s"), warning_ms: after("warning_s") };
    let mut world = World::new(single(limits, Retry::default()), vec![Script::of(vec![End::SUCCESS])]);
    world.work_ms = int(&given["work_s"]) * 1_000;
    play(&mut world);
    let end = world.run.end().unwrap();
    serde_json::json!({
        "warning_at_s": world.warned_ms.first().map(|ms| ms / 1_000),
        "warnings": world.warned_ms.len(),
        "ended_at_s": world.now_ms / 1_000,
        "result_state": end.outcome.map(run::Outcome::word),
        "warning_withdrawn": false,
    })
}

fn retried(given: &Value) -> Value {
    let retry = Retry { max_retries: 1, min_interval_ms: int(&given["min_retry_interval_ms"]), on_timeout: false };
    let script = Script::of(vec![End::FAILED, End::SUCCESS]);
    let mut world = World::new(single(Limits::default(), retry), vec![script]);
    world.now_ms = int(&given["attempt_started_s"]) * 1_000;
    world.work_ms = int(&given["attempt_failed_s"]) * 1_000 - world.now_ms;
    world.admit();
    world.finish_all_of(0);
    let meanwhile = world.run.tasks()[0].life_cycle.word();
    play(&mut world);
    serde_json::json!({ "state_meanwhile": meanwhile, "retry_starts_at_s": world.launched_ms[1] / 1_000 })
}

fn sliced(given: &Value) -> Value {
    let time = |key: &str| given[key].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let end = match given["result"].as_str().unwrap() {
        "MAXIMUM_CONCURRENT_RUNS_REACHED" => admission::skipped(run::Code::MaxConcurrentRunsExceeded),
        other => self::end(other),
    };
    let text = |ms| jiff::Timestamp::from_millisecond(ms).unwrap().to_string();
    let row = |slice: slices::Slice| serde_json::json!([text(slice.from_ms), text(slice.to_ms), slice.result]);
    let rows: Vec<Value> = slices::slices(time("start"), time("end"), end).into_iter().map(row).collect();
    serde_json::json!({ "rows": rows })
}
