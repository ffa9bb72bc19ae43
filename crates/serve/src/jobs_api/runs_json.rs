//! Runs and task runs in their wire form, with both shapes of state.

use super::trigger_json;
use run::book::{About, Detail, Parent, Round};
use run::trigger::completion::Completed;
use run::{Code, LifeCycle, Outcome};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use store::jobs::{Run, TaskRun};

type Object = Map<String, Value>;

/// How runs are shown.
pub(super) struct Shown<'a> {
    /// `http://HOST`, as the client reaches this server.
    pub base: &'a str,
    /// Number of the workspace.
    pub workspace: i64,
    /// Epoch ms, for what is not over.
    pub now_ms: i64,
    /// `include_history`.
    pub history: bool,
    /// `include_resolved_values`.
    pub resolved: bool,
}

/// What both shapes tell of a state.
struct State<'a> {
    life_cycle: &'a str,
    result: Option<&'a str>,
    code: Option<&'a str>,
    message: &'a str,
}

impl State<'_> {
    fn put(&self, into: &mut Object) {
        let life_cycle = LifeCycle::of_word(self.life_cycle).unwrap_or(LifeCycle::Pending);
        let stopped = [Outcome::Canceled.word(), Outcome::TimedOut.word()];
        let mut state = json!({
            "life_cycle_state": self.life_cycle,
            "state_message": self.message,
            "user_cancelled_or_timedout": self.result.is_some_and(|result| stopped.contains(&result)),
        });
        let mut status = json!({ "state": life_cycle.status() });
        if let Some(result) = self.result {
            state["result_state"] = result.into();
        }
        match self.code {
            Some(code) if life_cycle.is_final() => {
                let kind = Code::of_word(code).map_or("INTERNAL_ERROR", |code| code.kind().word());
                status["termination_details"] = json!({ "code": code, "type": kind, "message": self.message });
            }
            Some(code) if life_cycle == LifeCycle::Queued => {
                status["queue_details"] = json!({ "code": code, "message": self.message });
                state["queue_reason"] = self.message.into();
            }
            _ => {}
        }
        into.insert("state".to_owned(), state);
        into.insert("status".to_owned(), status);
    }
}

fn about(run: &Run) -> About {
    serde_json::from_str(&run.about).unwrap_or_default()
}

/// What a list shows of it: most of a definition is its tasks, which are not looked at.
fn about_without_tasks(run: &Run) -> About {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Brief {
        settings: WithoutTasks,
        parameters: BTreeMap<String, String>,
        overriding: Object,
        parent: Option<Parent>,
        completed: Vec<Completed>,
    }
    let brief: Brief = serde_json::from_str(&run.about).unwrap_or_default();
    let Brief { settings: WithoutTasks(settings), parameters, overriding, parent, completed } = brief;
    About { settings: settings.into(), parameters, overriding, parent, completed, ..About::default() }
}

/// A definition, all but its tasks.
#[derive(Default)]
struct WithoutTasks(Object);

impl<'de> Deserialize<'de> for WithoutTasks {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = WithoutTasks;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a definition")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<WithoutTasks, A::Error> {
                let mut fields = Object::new();
                while let Some(name) = from.next_key::<String>()? {
                    match name.as_str() {
                        "tasks" => drop(from.next_value::<IgnoredAny>()?),
                        _ => drop(fields.insert(name, from.next_value()?)),
                    }
                }
                Ok(WithoutTasks(fields))
            }
        }
        from.deserialize_map(Fields)
    }
}

fn rounds(run: &Run) -> Vec<Round> {
    serde_json::from_str(&run.state.rounds).unwrap_or_default()
}

pub(super) fn detail(task: &TaskRun) -> Detail {
    serde_json::from_str(&task.detail).unwrap_or_default()
}

/// A run; with its tasks where they are given.
pub(super) fn of_run(run: &Run, tasks: Option<&[TaskRun]>, shown: &Shown<'_>) -> Object {
    let about = if tasks.is_some() { about(run) } else { about_without_tasks(run) };
    let rounds = rounds(run);
    let mut object = head(run, &about, &rounds, shown);
    object.insert("run_id".to_owned(), run.run_id.into());
    object.insert("original_attempt_run_id".to_owned(), run.run_id.into());
    let state = &run.state;
    put_times(&mut object, Some(state.start_ms), state.end_ms);
    let queued = state.admitted_ms.or(state.end_ms).unwrap_or(shown.now_ms) - state.start_ms;
    object.insert("queue_duration".to_owned(), queued.into());
    object.insert("run_duration".to_owned(), (worked_ms(&rounds, shown.now_ms) - queued).max(0).into());
    for part in ["setup_duration", "execution_duration", "cleanup_duration"] {
        object.insert(part.to_owned(), 0.into());
    }
    let (result, code) = (state.result.as_deref(), state.code.as_deref());
    State { life_cycle: &state.life_cycle, result, code, message: &state.message }.put(&mut object);
    object.insert("run_page_url".to_owned(), page(run, None, shown));
    if let Some(tasks) = tasks {
        let of_tasks = tasks.iter().filter(|task| task.item.is_none());
        let tasks: Vec<Value> = of_tasks.map(|task| of_task(run, task, tasks, &about, shown).into()).collect();
        object.insert("tasks".to_owned(), tasks.into());
    }
    if shown.history {
        object.insert("repair_history".to_owned(), history(run, &rounds));
    }
    object
}

/// What a run and its task runs have in common.
fn head(run: &Run, about: &About, rounds: &[Round], shown: &Shown<'_>) -> Object {
    let mut object = Object::new();
    let mut put = |name: &str, value: Value| drop(object.insert(name.to_owned(), value));
    put("job_id", run.job_id.into());
    put("number_in_job", run.number.into());
    put("creator_user_name", run.creator.clone().into());
    put("run_name", run.name.clone().into());
    put("run_type", run.run_type.clone().into());
    put("trigger", run.cause.clone().into());
    put("format", "MULTI_TASK".into());
    for name in ["job_clusters", "git_source", "schedule", "description"] {
        if let Some(value) = about.settings.get(name) {
            put(name, value.clone());
        }
    }
    let parameters = parameters(about, rounds);
    if !parameters.is_empty() {
        put("job_parameters", parameters.into());
    }
    let of_repair = rounds.last().map(|round| &round.overriding).filter(|given| !given.is_empty());
    let overriding = of_repair.unwrap_or(&about.overriding);
    if !overriding.is_empty() {
        put("overriding_parameters", overriding.clone().into());
    }
    if let Some(parent) = about.parent {
        put("trigger_info", json!({ "run_id": parent.run_id }));
    }
    if let Some(info) = trigger_json::info(&about.completed, shown.workspace) {
        put("trigger_info", info);
    }
    object
}

/// `job_parameters`: those of the job with their defaults, then those that only this run, or its last
/// repair, has.
fn parameters(about: &About, rounds: &[Round]) -> Vec<Value> {
    let defined = about.settings["parameters"].as_array().cloned().unwrap_or_default();
    let mut given: BTreeMap<String, String> = about.parameters.clone();
    given.extend(rounds.last().into_iter().flat_map(|round| round.parameters.clone()));
    let mut all = Vec::with_capacity(defined.len());
    for parameter in defined {
        let (name, default) = (parameter["name"].as_str().unwrap_or_default(), &parameter["default"]);
        let value = given.remove(name).map_or_else(|| default.clone(), Value::from);
        all.push(json!({ "name": name, "default": default, "value": value }));
    }
    all.extend(given.into_iter().map(|(name, value)| json!({ "name": name, "value": value })));
    all
}

fn put_times(object: &mut Object, start_ms: Option<i64>, end_ms: Option<i64>) {
    object.insert("start_time".to_owned(), start_ms.unwrap_or_default().into());
    object.insert("end_time".to_owned(), end_ms.unwrap_or_default().into());
}

/// Time in all rounds together.
fn worked_ms(rounds: &[Round], now_ms: i64) -> i64 {
    rounds.iter().map(|round| round.end_ms.unwrap_or(now_ms) - round.start_ms).sum()
}

fn page(run: &Run, task: Option<&TaskRun>, shown: &Shown<'_>) -> Value {
    let below = task.map(|task| format!("/tasks/{}", task.task_run_id)).unwrap_or_default();
    format!("{}/jobs/{}/runs/{}{below}", shown.base, run.job_id, run.run_id).into()
}

/// A task run as an item of `tasks`: its settings, and what became of it.
fn of_task(run: &Run, task: &TaskRun, all: &[TaskRun], about: &About, shown: &Shown<'_>) -> Object {
    let settings = &about.settings["tasks"][usize::try_from(task.position).unwrap_or_default()];
    let settings = match task.item {
        Some(_) => &settings["for_each_task"]["task"],
        None => settings,
    };
    let mut object = settings.as_object().cloned().unwrap_or_default();
    let detail = detail(task);
    object.insert("run_id".to_owned(), task.task_run_id.into());
    object.insert("attempt_number".to_owned(), task.attempt.into());
    put_times(&mut object, task.start_ms, task.end_ms);
    put_durations(&mut object, task, shown.now_ms);
    let (result, code) = (task.result.as_deref(), task.code.as_deref());
    State { life_cycle: &task.life_cycle, result, code, message: &task.message }.put(&mut object);
    object.insert("run_page_url".to_owned(), page(run, Some(task), shown));
    if let Some(Value::Object(condition)) = object.get_mut("condition_task") {
        condition.extend(detail.resolved.iter().map(|(name, value)| (name.clone(), value.clone())));
        condition.extend(detail.outcome.map(|outcome| ("outcome".to_owned(), outcome.to_string().into())));
    }
    if let Some(Value::Object(each)) = object.get_mut("for_each_task") {
        each.insert("stats".to_owned(), stats(task, &detail, all));
    }
    let kind = object.keys().find(|name| name.ends_with("_task") && *name != "for_each_task").cloned();
    if let Some(kind) = kind.filter(|_| shown.resolved && !detail.resolved.is_empty()) {
        object.insert("resolved_values".to_owned(), json!({ kind: detail.resolved }));
    }
    object
}

fn put_durations(object: &mut Object, task: &TaskRun, now_ms: i64) {
    let until = task.end_ms.unwrap_or(now_ms);
    let (setup, execution) = match (task.start_ms, task.running_ms) {
        (Some(start), Some(running)) => (running - start, until - running),
        (Some(start), None) => (0, until - start),
        (None, _) => (0, 0),
    };
    for (name, ms) in [
        ("setup_duration", setup),
        ("execution_duration", execution),
        ("cleanup_duration", 0),
        ("run_duration", setup + execution),
        ("queue_duration", 0),
    ] {
        object.insert(name.to_owned(), ms.max(0).into());
    }
}

/// The latest attempt of each item of a for-each in the same round.
fn items<'a>(task: &TaskRun, all: &'a [TaskRun]) -> Vec<&'a TaskRun> {
    let mut latest: BTreeMap<i64, &TaskRun> = BTreeMap::new();
    for row in all.iter().filter(|row| row.position == task.position && row.round == task.round) {
        let Some(item) = row.item else { continue };
        let known = latest.entry(item).or_insert(row);
        if row.attempt > known.attempt {
            *known = row;
        }
    }
    latest.into_values().collect()
}

fn stats(task: &TaskRun, detail: &Detail, all: &[TaskRun]) -> Value {
    let items = items(task, all);
    let completed = items.iter().filter(|item| item.end_ms.is_some()).count();
    let is_good = |item: &&&TaskRun| item.result.as_deref() == Some(Outcome::Success.word());
    let succeeded = items.iter().filter(is_good).count();
    let total = detail.resolved.get("inputs").and_then(Value::as_array).map_or(0, Vec::len);
    let mut errors: BTreeMap<(String, String), u64> = BTreeMap::new();
    for item in items.iter().filter(|item| item.end_ms.is_some() && !is_good(item)) {
        let category = item.code.clone().unwrap_or_default();
        *errors.entry((item.message.clone(), category)).or_default() += 1;
    }
    let errors: Vec<Value> = errors
        .into_iter()
        .map(|((message, category), count)| json!({ "error_message": message, "termination_category": category, "count": count }))
        .collect();
    json!({
        "task_run_stats": {
            "total_iterations": total,
            "scheduled_iterations": items.len(),
            "active_iterations": items.len() - completed,
            "completed_iterations": completed,
            "succeeded_iterations": succeeded,
            "failed_iterations": completed - succeeded,
        },
        "error_message_stats": errors,
    })
}

/// A task run as a run of its own, which it is to clients that ask for it by its id.
pub(super) fn of_task_run(run: &Run, task: &TaskRun, all: &[TaskRun], shown: &Shown<'_>) -> Object {
    let about = about(run);
    let mut object = head(run, &about, &rounds(run), shown);
    let of_task = of_task(run, task, all, &about, shown);
    let same = |row: &&TaskRun| (row.position, row.item) == (task.position, task.item);
    let first = all.iter().filter(same).map(|row| row.task_run_id).min();
    object.insert("job_run_id".to_owned(), run.run_id.into());
    object.insert("original_attempt_run_id".to_owned(), first.unwrap_or(task.task_run_id).into());
    for name in [
        "run_id",
        "attempt_number",
        "start_time",
        "end_time",
        "setup_duration",
        "execution_duration",
        "cleanup_duration",
        "run_duration",
        "queue_duration",
        "state",
        "status",
        "run_page_url",
    ] {
        object.insert(name.to_owned(), of_task.get(name).cloned().unwrap_or_default());
    }
    if of_task.contains_key("for_each_task") {
        let items = items(task, all).into_iter();
        let iterations = items.map(|item| Value::Object(self::of_task(run, item, all, &about, shown)));
        object.insert("iterations".to_owned(), iterations.collect());
    }
    object.insert("tasks".to_owned(), json!([of_task]));
    object
}

fn history(run: &Run, rounds: &[Round]) -> Value {
    let of_round = |round: &Round| {
        let mut object = Object::new();
        object.insert("type".to_owned(), if round.id.is_some() { "REPAIR" } else { "ORIGINAL" }.into());
        object.extend(round.id.map(|id| ("id".to_owned(), id.into())));
        put_times(&mut object, Some(round.start_ms), round.end_ms);
        match round.end {
            Some(end) => State {
                life_cycle: end.life_cycle.word(),
                result: end.outcome.map(Outcome::word),
                code: Some(end.code.word()),
                message: &round.message,
            }
            .put(&mut object),
            None => State { life_cycle: &run.state.life_cycle, result: None, code: None, message: "" }.put(&mut object),
        }
        object.insert("task_run_ids".to_owned(), round.task_run_ids.clone().into());
        Value::Object(object)
    };
    rounds.iter().map(of_round).collect()
}
