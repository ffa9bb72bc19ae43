//! The definition of a job, as the Jobs API writes it and the engine reads it.
//!
//! In: the `settings` object of a job or the body of a submitted run. Out: [`Settings`], or what is
//! wrong and where. What the engine does not read stays as it is in the object that the caller
//! keeps; the object itself is changed by [`fill_defaults`], [`merge`] and [`remove`] only.

mod edit;
mod libraries;
mod raw;

pub use edit::{fill_defaults, merge, remove};
pub use libraries::Libraries;
pub(crate) use raw::Periodic;

use crate::condition::Operator;
use crate::graph::{Dependency, Graph, GraphError, Kind, Retry, Task};
use crate::quartz::Cron;
use crate::references::references;
use crate::step::Limits;
use raw::{
    Parameter, Raw, RawCluster, RawCondition, RawDependency, RawForEach, RawJar, RawNotebook, RawPython, RawRunJob,
    RawSubmit, RawTask, RawWheel, Schedule, object,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// Most tasks of a job.
pub const MOST_TASKS: usize = 1_000;
/// Longest key of a task, characters.
const LONGEST_KEY: usize = 100;
/// Longest name of a job or run, bytes.
const LONGEST_NAME: usize = 4_096;
/// Longest description, characters.
const LONGEST_DESCRIPTION: usize = 27_700;
/// Most tags of a job.
const MOST_TAGS: usize = 25;
/// Most runs of one job at once.
const MOST_CONCURRENT_RUNS: i64 = 1_000;
/// Most items of a for-each at once.
const MOST_CONCURRENT_ITEMS: i64 = 100;
/// Any longer time is as good as this one, ms: a hundred years.
const LONGEST_MS: i64 = 100 * 365 * 24 * 3_600_000;
/// What a job is called that was given no name.
pub const UNTITLED: &str = "Untitled";

/// Why a definition is none.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum Invalid {
    /// A field has the wrong type.
    #[error("{0}")]
    Malformed(String),
    /// A value that may not be.
    #[error("{0}")]
    Value(String),
}

impl From<GraphError> for Invalid {
    fn from(error: GraphError) -> Self {
        Self::Value(error.to_string())
    }
}

fn invalid(message: impl Into<String>) -> Invalid {
    Invalid::Value(message.into())
}

/// A definition, as far as the engine needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Its name.
    pub name: String,
    /// What is to be done, by position.
    pub tasks: Vec<TaskSettings>,
    /// Of the run as a whole.
    pub limits: Limits,
    /// `max_concurrent_runs`.
    pub concurrent_runs: u32,
    /// `queue.enabled`.
    pub queues: bool,
    /// Names and defaults of its parameters, in their order.
    pub parameters: Vec<(String, String)>,
    graph: Graph,
}

/// One task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSettings {
    /// Its key.
    pub key: String,
    /// What it does.
    pub work: Work,
    /// Variables that its program gets.
    pub environment_variables: BTreeMap<String, String>,
    /// The cluster that is asked for: its program then gets a Spark session by spark-submit.
    pub cluster: Option<Cluster>,
    /// What its program needs.
    pub libraries: Libraries,
}

/// What a cluster gives to the programs that run on it. How large it is, `--spark-master` says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Cluster {
    /// Properties of Spark.
    pub spark_conf: BTreeMap<String, String>,
    /// Environment variables.
    pub spark_env_vars: BTreeMap<String, String>,
}

/// What a task does. Texts hold references that are resolved when it starts.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Compares two texts.
    Condition {
        /// How.
        op: Operator,
        /// One.
        left: String,
        /// The other.
        right: String,
    },
    /// Does the same for each item of a list.
    ForEach {
        /// A JSON array, or a reference to one.
        inputs: String,
        /// What is done for each item.
        task: Box<TaskSettings>,
    },
    /// Runs another job to its end.
    RunJob {
        /// Which.
        job_id: i64,
        /// With these parameters.
        parameters: BTreeMap<String, String>,
    },
    /// Runs a Python file.
    Python {
        /// Path or `file:` URL.
        file: String,
        /// Its arguments.
        parameters: Vec<String>,
    },
    /// Runs a function of a Python package.
    Wheel {
        /// Name of the package.
        package: String,
        /// An entry point in its metadata, or else a function in the module of its name.
        entry_point: String,
        /// Its arguments.
        parameters: Vec<String>,
        /// The same by name, instead of those.
        named: BTreeMap<String, String>,
    },
    /// Runs a notebook.
    Notebook {
        /// Path of a Python source file or a `.ipynb` file, with or without the ending.
        path: String,
        /// Values of its widgets.
        parameters: BTreeMap<String, String>,
    },
    /// Runs `spark-submit` with these arguments.
    SparkSubmit {
        /// As they are given to it.
        parameters: Vec<String>,
    },
    /// Runs a class of a JAR on Spark.
    SparkJar {
        /// Path or URL of the JAR.
        jar: String,
        /// The class.
        main_class: String,
        /// Its arguments.
        parameters: Vec<String>,
    },
    /// A kind that can be stored, but not run here.
    Other(String),
}

impl Settings {
    /// Reads a definition and checks it.
    ///
    /// # Errors
    /// At the first thing that may not be: it is named, with the task where there is one.
    pub fn read(settings: &Value) -> Result<Self, Invalid> {
        let raw: Raw = object(settings, "the settings")?;
        check_bounds(&raw)?;
        let around = Around {
            clusters: clusters(raw.job_clusters.as_deref().unwrap_or_default()),
            variables: variables(&raw.environment_variables.unwrap_or_default()),
            environments: libraries::environments(raw.environments.as_deref().unwrap_or_default()),
        };
        let tasks = raw.tasks.unwrap_or_default();
        if tasks.len() > MOST_TASKS {
            return Err(invalid(format!("a job has at most {MOST_TASKS} tasks, not {}", tasks.len())));
        }
        let mut read = Vec::with_capacity(tasks.len());
        let mut for_graph = Vec::with_capacity(tasks.len());
        for (at, task) in tasks.iter().enumerate() {
            let (task, of_graph) = read_task(task, at, &around)?;
            read.push(task);
            for_graph.push(of_graph);
        }
        let warning = raw.health.iter().flat_map(|health| &health.rules);
        let warning = warning
            .filter(|rule| rule.metric == "RUN_DURATION_SECONDS")
            .map(|rule| seconds(Some(rule.value)).unwrap_or_default())
            .min();
        Ok(Self {
            name: raw.name.unwrap_or_else(|| UNTITLED.to_owned()),
            tasks: read,
            limits: Limits { timeout_ms: seconds(raw.timeout_seconds), warning_ms: warning },
            concurrent_runs: u32::try_from(raw.max_concurrent_runs.unwrap_or(1)).unwrap_or(1),
            queues: raw.queue.is_some_and(|queue| queue.enabled),
            parameters: raw.parameters.unwrap_or_default().into_iter().map(|p| (p.name, p.default)).collect(),
            graph: Graph::new(for_graph)?,
        })
    }

    /// Who waits for whom.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Positions of the tasks that a partial run is of: each word of `only` is a key, with a `+`
    /// before it for all that is upstream, behind it for all that is downstream.
    ///
    /// # Errors
    /// When a key is no task.
    pub fn only(&self, only: &[String]) -> Result<Vec<usize>, Invalid> {
        let mut chosen = vec![false; self.tasks.len()];
        for word in only {
            let (key, upstream) = word.strip_prefix('+').map_or((word.as_str(), false), |key| (key, true));
            let (key, downstream) = key.strip_suffix('+').map_or((key, false), |key| (key, true));
            let at = self.graph.position(key);
            let at = at.ok_or_else(|| invalid(format!("{key:?} in `only` is no task of this job")))?;
            let mut these = vec![false; self.tasks.len()];
            these[at] = true;
            if downstream {
                these = self.graph.with_descendants(&these);
            }
            if upstream {
                self.add_upstream(at, &mut these);
            }
            chosen.iter_mut().zip(these).for_each(|(chosen, this)| *chosen |= this);
        }
        Ok((0..chosen.len()).filter(|&at| chosen[at]).collect())
    }

    fn add_upstream(&self, at: usize, chosen: &mut [bool]) {
        let mut todo = vec![at];
        while let Some(at) = todo.pop() {
            chosen[at] = true;
            todo.extend(self.graph.parents(at).iter().map(|parent| parent.task).filter(|&parent| !chosen[parent]));
        }
    }
}

fn check_bounds(raw: &Raw) -> Result<(), Invalid> {
    if raw.name.as_ref().is_some_and(|name| name.len() > LONGEST_NAME) {
        return Err(invalid(format!("the name is longer than {LONGEST_NAME} bytes")));
    }
    if raw.description.as_ref().is_some_and(|text| text.chars().count() > LONGEST_DESCRIPTION) {
        return Err(invalid(format!("the description is longer than {LONGEST_DESCRIPTION} characters")));
    }
    if raw.tags.as_ref().is_some_and(|tags| tags.len() > MOST_TAGS) {
        return Err(invalid(format!("a job has at most {MOST_TAGS} tags")));
    }
    if let Some(many) = raw.max_concurrent_runs.filter(|many| !(0..=MOST_CONCURRENT_RUNS).contains(many)) {
        return Err(invalid(format!("max_concurrent_runs must be between 0 and {MOST_CONCURRENT_RUNS}, not {many}")));
    }
    if raw.timeout_seconds.is_some_and(|seconds| seconds < 0) {
        return Err(invalid("timeout_seconds must not be negative"));
    }
    let causes = [("schedule", raw.schedule.is_some()), ("continuous", raw.continuous.is_some())];
    let causes = causes.into_iter().chain([("trigger", raw.trigger.is_some())]);
    let given: Vec<&str> = causes.filter(|(_, is)| *is).map(|(name, _)| name).collect();
    if given.len() > 1 {
        return Err(invalid(format!("a job has one of schedule, continuous and trigger, not {}", given.join(" and "))));
    }
    if let Some(Periodic { interval, .. }) = raw.trigger.as_ref().and_then(|trigger| trigger.periodic)
        && interval < 1
    {
        return Err(invalid(format!("the interval of trigger.periodic must be 1 or more, not {interval}")));
    }
    check_parameters(raw.parameters.as_deref().unwrap_or_default())?;
    check_schedule(raw.schedule.as_ref())
}

fn check_parameters(parameters: &[Parameter]) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    for Parameter { name, .. } in parameters {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || !name.chars().all(plain) {
            return Err(invalid(format!(
                "parameter {name:?}: a name is made of letters, digits, underscores, hyphens and dots"
            )));
        }
        if !seen.insert(name) {
            return Err(invalid(format!("two parameters have the name {name:?}")));
        }
    }
    Ok(())
}

fn check_schedule(schedule: Option<&Schedule>) -> Result<(), Invalid> {
    let Some(Schedule { quartz_cron_expression, timezone_id }) = schedule else { return Ok(()) };
    Cron::parse(quartz_cron_expression)
        .map_err(|error| invalid(format!("quartz_cron_expression {quartz_cron_expression:?}: {error}")))?;
    jiff::tz::TimeZone::get(timezone_id)
        .map(drop)
        .map_err(|_| invalid(format!("timezone_id {timezone_id:?} is no time zone, such as Europe/Prague")))
}

fn clusters(list: &[RawCluster]) -> BTreeMap<String, Cluster> {
    list.iter().map(|item| (item.job_cluster_key.clone(), item.new_cluster.clone().unwrap_or_default())).collect()
}

/// Name and value pairs, in either of the words that clients have for them.
fn variables(list: &[Value]) -> BTreeMap<String, String> {
    let text = |item: &Value, names: [&str; 2]| names.iter().find_map(|name| item[*name].as_str()).map(str::to_owned);
    list.iter().filter_map(|item| Some((text(item, ["name", "key"])?, text(item, ["value", "default"])?))).collect()
}

fn seconds(seconds: Option<i64>) -> Option<i64> {
    seconds.filter(|seconds| *seconds > 0).map(|seconds| seconds.saturating_mul(1_000).min(LONGEST_MS))
}

/// What tasks refer to by name, and share.
struct Around {
    /// Clusters by `job_cluster_key`.
    clusters: BTreeMap<String, Cluster>,
    variables: BTreeMap<String, String>,
    /// Packages by `environment_key`.
    environments: BTreeMap<String, Vec<String>>,
}

fn read_task(task: &Value, at: usize, around: &Around) -> Result<(TaskSettings, Task), Invalid> {
    let key = task["task_key"].as_str().unwrap_or_default();
    let what = if key.is_empty() { format!("tasks[{at}]") } else { format!("task {key:?}") };
    let raw: RawTask = object(task, &what)?;
    let key = check_key(raw.task_key.as_deref(), &what)?;
    let cluster = match (&raw.job_cluster_key, &raw.new_cluster, &raw.existing_cluster_id) {
        (Some(key), ..) => Some(
            around
                .clusters
                .get(key)
                .cloned()
                .ok_or_else(|| invalid(format!("{what}: job_cluster_key {key:?} is not among the job_clusters")))?,
        ),
        (None, Some(cluster), _) => Some(cluster.clone()),
        (None, None, Some(_)) => Some(Cluster::default()),
        (None, None, None) => None,
    };
    let environment = match &raw.environment_key {
        Some(key) => around
            .environments
            .get(key)
            .map(Vec::as_slice)
            .ok_or_else(|| invalid(format!("{what}: environment_key {key:?} is not among the environments")))?,
        None => &[],
    };
    let libraries = Libraries::read(environment, raw.libraries.as_deref().unwrap_or_default(), &what)?;
    let work = work(&raw.rest, &what, around)?;
    let of_graph = of_graph(&raw, &key, &work, &what)?;
    let environment_variables = around.variables.clone();
    Ok((TaskSettings { key, work, environment_variables, cluster, libraries }, of_graph))
}

fn check_key(key: Option<&str>, what: &str) -> Result<String, Invalid> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    match key {
        None | Some("") => Err(invalid(format!("{what} has no task_key"))),
        Some(key) if key.len() > LONGEST_KEY || !key.chars().all(plain) => Err(invalid(format!(
            "{what}: a task_key is made of up to {LONGEST_KEY} letters, digits, underscores and hyphens"
        ))),
        Some(key) => Ok(key.to_owned()),
    }
}

fn of_graph(raw: &RawTask, key: &str, work: &Work, what: &str) -> Result<Task, Invalid> {
    let dependency = |on: &RawDependency| {
        let outcome = match on.outcome.as_deref() {
            None => None,
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(other) => return Err(invalid(format!("{what}: outcome {other:?} is neither \"true\" nor \"false\""))),
        };
        Ok(Dependency { task_key: on.task_key.clone(), outcome })
    };
    let depends_on = raw.depends_on.iter().flatten().map(dependency).collect::<Result<_, _>>()?;
    let (kind, reads) = match work {
        Work::Condition { left, right, .. } => (Kind::Condition, read_from([left, right])),
        Work::ForEach { inputs, .. } => {
            let each: RawForEach = object(&raw.rest["for_each_task"], what)?;
            let concurrency = each.concurrency.unwrap_or(1).clamp(1, MOST_CONCURRENT_ITEMS) as u32;
            (Kind::ForEach { concurrency }, read_from([inputs]))
        }
        _ => (Kind::Work, Vec::new()),
    };
    // Attempts are those of the items, whose settings stand inside.
    let inner = raw.rest.get("for_each_task").and_then(|each| each.get("task")).filter(|_| kind != Kind::Work);
    let inner: Option<RawTask> = inner.map(|task| object(task, what)).transpose()?;
    let attempts = inner.as_ref().unwrap_or(raw);
    let max_retries = attempts.max_retries.unwrap_or_default();
    if max_retries < -1 {
        return Err(invalid(format!("{what}: max_retries must be -1 (without end) or more, not {max_retries}")));
    }
    Ok(Task {
        key: key.to_owned(),
        depends_on,
        run_if: raw.run_if.unwrap_or_default(),
        disabled: raw.disabled.unwrap_or_default(),
        kind,
        reads,
        retry: Retry {
            max_retries: i32::try_from(max_retries).unwrap_or(i32::MAX),
            min_interval_ms: attempts.min_retry_interval_millis.unwrap_or_default().clamp(0, LONGEST_MS),
            on_timeout: attempts.retry_on_timeout.unwrap_or_default(),
        },
        timeout_ms: seconds(attempts.timeout_seconds),
    })
}

/// Keys of the tasks whose values these texts refer to.
fn read_from<'a>(texts: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let mut keys = BTreeSet::new();
    for text in texts {
        keys.extend(
            references(text).filter(|path| path[0] == "tasks").filter_map(|path| path.get(1).map(|k| (*k).to_owned())),
        );
    }
    keys.into_iter().collect()
}

/// Kinds that can be stored. Those that run have a form of their own in [`Work`].
const KINDS: [&str; 21] = [
    "ai_function_task",
    "ai_runtime_task",
    "alert_task",
    "clean_rooms_notebook_task",
    "condition_task",
    "dashboard_task",
    "dbt_cloud_task",
    "dbt_platform_task",
    "dbt_task",
    "for_each_task",
    "gen_ai_compute_task",
    "notebook_task",
    "pipeline_task",
    "power_bi_task",
    "python_operator_task",
    "python_wheel_task",
    "run_job_task",
    "spark_jar_task",
    "spark_python_task",
    "spark_submit_task",
    "sql_task",
];

fn work(rest: &Map<String, Value>, what: &str, around: &Around) -> Result<Work, Invalid> {
    let given: Vec<&str> =
        KINDS.into_iter().filter(|kind| rest.get(*kind).is_some_and(|value| !value.is_null())).collect();
    let kind = match given.as_slice() {
        [kind] => *kind,
        [] => return Err(invalid(format!("{what} does nothing; give it one of {}", KINDS.join(", ")))),
        [first, second, ..] => return Err(invalid(format!("{what} has both {first} and {second}; it can have one"))),
    };
    let (value, what) = (&rest[kind], format!("{what}: {kind}"));
    Ok(match kind {
        "condition_task" => {
            let RawCondition { op, left, right } = object(value, &what)?;
            Work::Condition { op, left, right }
        }
        "for_each_task" => for_each(object(value, &what)?, &what, around)?,
        "run_job_task" => {
            let RawRunJob { job_id, job_parameters } = object(value, &what)?;
            Work::RunJob { job_id, parameters: job_parameters.unwrap_or_default() }
        }
        "spark_python_task" => {
            let RawPython { python_file, parameters } = object(value, &what)?;
            Work::Python { file: python_file, parameters: parameters.unwrap_or_default() }
        }
        "python_wheel_task" => {
            let RawWheel { package_name, entry_point, parameters, named_parameters } = object(value, &what)?;
            let (parameters, named) = (parameters.unwrap_or_default(), named_parameters.unwrap_or_default());
            if !parameters.is_empty() && !named.is_empty() {
                return Err(invalid(format!("{what} has both parameters and named_parameters; it can have one")));
            }
            Work::Wheel { package: package_name, entry_point, parameters, named }
        }
        "notebook_task" => {
            let RawNotebook { notebook_path, base_parameters } = object(value, &what)?;
            Work::Notebook { path: notebook_path, parameters: base_parameters.unwrap_or_default() }
        }
        "spark_submit_task" => {
            let RawSubmit { parameters } = object(value, &what)?;
            Work::SparkSubmit { parameters: parameters.unwrap_or_default() }
        }
        "spark_jar_task" => {
            let RawJar { jar_uri, main_class_name, parameters } = object(value, &what)?;
            let (jar, parameters) = (jar_uri.unwrap_or_default(), parameters.unwrap_or_default());
            Work::SparkJar { jar, main_class: main_class_name, parameters }
        }
        other => Work::Other(other.to_owned()),
    })
}

fn for_each(raw: RawForEach, what: &str, around: &Around) -> Result<Work, Invalid> {
    let RawForEach { inputs, task, concurrency } = raw;
    if let Some(wrong) = concurrency.filter(|many| !(1..=MOST_CONCURRENT_ITEMS).contains(many)) {
        return Err(invalid(format!("{what}: concurrency must be between 1 and {MOST_CONCURRENT_ITEMS}, not {wrong}")));
    }
    let (inner, _) = read_task(&task, 0, around)?;
    match inner.work {
        Work::ForEach { .. } => Err(invalid(format!("{what}: a for-each stands in a for-each, which cannot be"))),
        _ => Ok(Work::ForEach { inputs, task: Box::new(inner) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(tasks: Value) -> Value {
        json!({ "name": "night", "tasks": tasks })
    }

    fn condition(key: &str) -> Value {
        json!({ "task_key": key, "condition_task": { "left": "1", "op": "EQUAL_TO", "right": "1" } })
    }

    #[test]
    fn what_may_not_be_is_named() {
        let python = json!({ "task_key": "a", "spark_python_task": { "python_file": "/a.py" } });
        let with = |name: &str, value: Value| {
            let mut settings = job(json!([condition("a")]));
            settings[name] = value;
            settings
        };
        for (settings, message) in [
            (job(json!([])), "a job needs at least one task"),
            (job(json!([{ "task_key": "a" }])), "task \"a\" does nothing; give it one of"),
            (job(json!([{ "condition_task": {} }])), "tasks[0] has no task_key"),
            (job(json!([condition("a b")])), "task \"a b\": a task_key is made of"),
            (job(json!([condition("a"), condition("a")])), "two tasks have the key \"a\""),
            (job(json!([{ "task_key": "a", "condition_task": { "left": 1 } }])), "task \"a\": condition_task: "),
            (
                job(
                    json!([{ "task_key": "a", "environment_key": "x", "spark_python_task": { "python_file": "/a.py" } }]),
                ),
                "environment_key \"x\" is not among the environments",
            ),
            (
                job(json!([{ "task_key": "a", "python_wheel_task":
                    { "package_name": "p", "entry_point": "e", "parameters": ["1"], "named_parameters": { "a": "1" } } }])),
                "has both parameters and named_parameters",
            ),
            (with("timeout_seconds", json!("soon")), "the settings: \"soon\" is no whole number"),
            (with("max_concurrent_runs", json!(1001)), "max_concurrent_runs must be between 0 and 1000, not 1001"),
            (with("trigger", json!({ "periodic": { "interval": 1, "unit": "MONTHS" } })), "unknown variant `MONTHS`"),
            (with("trigger", json!({ "periodic": { "interval": 0, "unit": "DAYS" } })), "must be 1 or more, not 0"),
            (with("parameters", json!([{ "name": "a b" }])), "parameter \"a b\": a name is made of"),
            (
                with("schedule", json!({ "quartz_cron_expression": "* *", "timezone_id": "UTC" })),
                "quartz_cron_expression",
            ),
            (
                with("schedule", json!({ "quartz_cron_expression": "0 0 6 * * ?", "timezone_id": "Mars/Base" })),
                "timezone_id \"Mars/Base\" is no time zone",
            ),
            (
                job(json!([{ "task_key": "a", "for_each_task": { "inputs": "[]", "task":
                    { "task_key": "b", "for_each_task": { "inputs": "[]", "task": python } } } }])),
                "a for-each stands in a for-each",
            ),
        ] {
            let error = Settings::read(&settings).unwrap_err().to_string();
            assert!(error.contains(message), "{settings}: {error}");
        }
    }

    #[test]
    fn ids_may_be_texts_and_unknown_fields_are_left_alone() {
        let mut settings = job(json!([{ "task_key": "a", "max_retries": "2", "brand_new": 1,
            "run_job_task": { "job_id": "123", "job_parameters": { "day": "mon" } } }]));
        settings["brand_new"] = json!({ "x": 1 });
        let read = Settings::read(&settings).unwrap();
        let Work::RunJob { job_id, parameters } = &read.tasks[0].work else { panic!() };
        assert_eq!((*job_id, parameters["day"].as_str()), (123, "mon"));
        assert_eq!(read.graph().tasks()[0].retry.max_retries, 2);
    }

    #[test]
    fn partial_runs_are_of_the_named_tasks_and_what_their_signs_add() {
        let after = |key: &str, on: &str| {
            let mut task = condition(key);
            task["depends_on"] = json!([{ "task_key": on }]);
            task
        };
        let settings = job(json!([condition("a"), after("b", "a"), after("c", "b"), after("d", "c")]));
        let settings = Settings::read(&settings).unwrap();
        let only = |words: &[&str]| settings.only(&words.iter().map(|&w| w.to_owned()).collect::<Vec<_>>());
        assert_eq!(only(&["b"]), Ok(vec![1]));
        assert_eq!(only(&["+b"]), Ok(vec![0, 1]));
        assert_eq!(only(&["c+"]), Ok(vec![2, 3]));
        assert_eq!(only(&["a", "+c+"]), Ok(vec![0, 1, 2, 3]));
        assert!(only(&["x"]).unwrap_err().to_string().contains("\"x\" in `only` is no task"));
    }
}
