//! The definition of a job, as the Jobs API writes it and the engine reads it.
//!
//! In: the `settings` object of a job or the body of a submitted run. Out: [`Settings`], or what is
//! wrong and where: the first of it to a client, all of it to whoever writes a definition
//! ([`problems`]). What the engine does not read stays as it is in the object that the caller keeps;
//! the object itself is changed by [`fill_defaults`], [`merge`] and [`remove`] only.

mod check;
mod edit;
mod libraries;
mod problem;
mod raw;
mod shape;
mod source;
mod triggers;

pub use check::problems;
pub use edit::{fill_defaults, merge, remove, single_task};
pub use libraries::Libraries;
pub(crate) use libraries::local;
pub use problem::Problem;
pub(crate) use raw::{FileArrival, JobCompletion, Periodic, TableUpdate, whole};
pub use shape::numbers;
pub(crate) use source::is_inside;
pub use source::{GitReference, GitSource};

use crate::condition::Operator;
use crate::graph::{Dependency, Graph, GraphError, Kind, Retry, Task};
use crate::references::references;
use crate::step::Limits;
use problem::Problems;
use raw::{
    Parameter, Raw, RawCluster, RawCondition, RawDependency, RawForEach, RawJar, RawNotebook, RawPython, RawRunJob,
    RawSubmit, RawTask, RawWheel, object,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
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
    /// The repository that its files stand in; their paths are those in it.
    pub git: Option<GitSource>,
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
    /// Runs commands of dbt.
    Dbt {
        /// Folder of the project; in a repository empty for its root.
        project: String,
        /// Folder of `profiles.yml` below that of the project, or absolute; empty: dbt looks for it.
        profiles: String,
        /// Each begins with `dbt`.
        commands: Vec<String>,
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
        let mut problems = Problems::at_most(1);
        let read = Self::read_all(settings, &mut problems);
        match (problems.into_first(), read) {
            (Some(first), _) => Err(first.why),
            (None, Some(read)) => Ok(read),
            (None, None) => Err(Invalid::Malformed("the settings cannot be read".to_owned())),
        }
    }

    /// As [`Settings::read`], past what is wrong. Without a problem there are settings.
    fn read_all(settings: &Value, problems: &mut Problems) -> Option<Self> {
        let raw: Raw = object(settings, "", "the settings", problems)?;
        check_bounds(&raw, problems);
        let around = Around {
            clusters: clusters(raw.job_clusters.as_deref().unwrap_or_default()),
            variables: variables(&raw.environment_variables.unwrap_or_default()),
            environments: libraries::environments(raw.environments.as_deref().unwrap_or_default()),
            git: raw.git_source.and_then(|git| source::read(git, problems)),
        };
        let tasks = raw.tasks.unwrap_or_default();
        if tasks.len() > MOST_TASKS {
            problems.value("/tasks", format!("a job has at most {MOST_TASKS} tasks, not {}", tasks.len()));
            return None;
        }
        let mut read = Vec::with_capacity(tasks.len());
        let mut for_graph = Vec::with_capacity(tasks.len());
        for (at, task) in tasks.iter().enumerate() {
            let place = Place { at: &format!("/tasks/{at}"), what: &name_of(task, at) };
            let Some((task, of_graph)) = read_task(task, place, &around, problems) else { continue };
            read.push(task);
            for_graph.push(of_graph);
        }
        let warning = raw.health.iter().flat_map(|health| &health.rules);
        let warning = warning
            .filter(|rule| rule.metric == "RUN_DURATION_SECONDS")
            .map(|rule| seconds(Some(rule.value)).unwrap_or_default())
            .min();
        Some(Self {
            name: raw.name.unwrap_or_else(|| UNTITLED.to_owned()),
            tasks: read,
            limits: Limits { timeout_ms: seconds(raw.timeout_seconds), warning_ms: warning },
            concurrent_runs: u32::try_from(raw.max_concurrent_runs.unwrap_or(1)).unwrap_or(1),
            queues: raw.queue.is_some_and(|queue| queue.enabled),
            parameters: raw.parameters.unwrap_or_default().into_iter().map(|p| (p.name, p.default)).collect(),
            graph: graph(for_graph, &tasks, problems)?,
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

/// The graph of the tasks. Of what makes none, each thing is told and left out.
fn graph(mut for_graph: Vec<Task>, tasks: &[Value], problems: &mut Problems) -> Option<Graph> {
    loop {
        let goes_on = problems.go_on();
        let these = if goes_on { for_graph.clone() } else { std::mem::take(&mut for_graph) };
        let error = match Graph::new(these) {
            Ok(graph) => return Some(graph),
            Err(error) => error,
        };
        // Tasks without a key are missing here, and have been told.
        let told_already = error == GraphError::Empty && !tasks.is_empty();
        if !told_already {
            problems.value(&problem::of_graph(&error, tasks), error.to_string());
        }
        if !goes_on {
            return None;
        }
        leave_out(&error, &mut for_graph)?;
    }
}

/// Takes away what the error is about; `None`: there is nothing more to take away.
fn leave_out(error: &GraphError, for_graph: &mut Vec<Task>) -> Option<()> {
    let (task, on) = match error {
        GraphError::Empty => return None,
        GraphError::Twice(key) => {
            let second = for_graph.iter().rposition(|task| task.key == *key)?;
            for_graph.remove(second);
            return Some(());
        }
        GraphError::Unknown { task, on } | GraphError::Repeated { task, on } | GraphError::NoCondition { task, on } => {
            (task, on)
        }
        GraphError::Circle(keys) => (keys.get(1)?, keys.first()?),
    };
    let depends_on = &mut for_graph.iter_mut().find(|known| known.key == *task)?.depends_on;
    let wrong = depends_on.iter().rposition(|dependency| dependency.task_key == *on)?;
    depends_on.remove(wrong);
    Some(())
}

fn check_bounds(raw: &Raw, problems: &mut Problems) {
    if raw.name.as_ref().is_some_and(|name| name.len() > LONGEST_NAME) {
        problems.value("/name", format!("the name is longer than {LONGEST_NAME} bytes"));
    }
    if raw.description.as_ref().is_some_and(|text| text.chars().count() > LONGEST_DESCRIPTION) {
        problems.value("/description", format!("the description is longer than {LONGEST_DESCRIPTION} characters"));
    }
    if raw.tags.as_ref().is_some_and(|tags| tags.len() > MOST_TAGS) {
        problems.value("/tags", format!("a job has at most {MOST_TAGS} tags"));
    }
    if let Some(many) = raw.max_concurrent_runs.filter(|many| !(0..=MOST_CONCURRENT_RUNS).contains(many)) {
        let why = format!("max_concurrent_runs must be between 0 and {MOST_CONCURRENT_RUNS}, not {many}");
        problems.value("/max_concurrent_runs", why);
    }
    if raw.timeout_seconds.is_some_and(|seconds| seconds < 0) {
        problems.value("/timeout_seconds", "timeout_seconds must not be negative");
    }
    check_parameters(raw.parameters.as_deref().unwrap_or_default(), problems);
    triggers::check(raw, problems);
}

fn check_parameters(parameters: &[Parameter], problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for (at, Parameter { name, .. }) in parameters.iter().enumerate() {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let at = format!("/parameters/{at}/name");
        if name.is_empty() || !name.chars().all(plain) {
            let allowed = "a name is made of letters, digits, underscores, hyphens and dots";
            problems.value(&at, format!("parameter {name:?}: {allowed}"));
        }
        if !seen.insert(name) {
            problems.value(&at, format!("two parameters have the name {name:?}"));
        }
    }
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

/// Where something stands: as JSON Pointer, and as people call it.
#[derive(Clone, Copy)]
struct Place<'a> {
    at: &'a str,
    what: &'a str,
}

/// What people call a task.
fn name_of(task: &Value, at: usize) -> String {
    match task["task_key"].as_str().unwrap_or_default() {
        "" => format!("tasks[{at}]"),
        key => format!("task {key:?}"),
    }
}

/// What tasks refer to by name, and share.
struct Around {
    /// Clusters by `job_cluster_key`.
    clusters: BTreeMap<String, Cluster>,
    variables: BTreeMap<String, String>,
    /// Packages by `environment_key`.
    environments: BTreeMap<String, Vec<String>>,
    git: Option<GitSource>,
}

/// A task, past what is wrong in it; `None`: it has no key.
fn read_task(task: &Value, place: Place<'_>, around: &Around, problems: &mut Problems) -> Option<(TaskSettings, Task)> {
    let Place { at, what } = place;
    let raw: RawTask = object(task, at, what, problems)?;
    let key = check_key(raw.task_key.as_deref(), place, problems);
    let cluster = cluster(&raw, place, around, problems);
    let libraries = libraries(&raw, place, around, problems);
    let work = work(task, place, around, problems);
    let git = source::of_task(task, &work, place, around.git.as_ref(), problems);
    let of_graph = of_graph(&raw, task, &key, &work, place, problems);
    let environment_variables = around.variables.clone();
    let read = TaskSettings { key, work, environment_variables, cluster, libraries, git };
    (!read.key.is_empty()).then_some((read, of_graph))
}

fn cluster(raw: &RawTask, Place { at, what }: Place<'_>, around: &Around, problems: &mut Problems) -> Option<Cluster> {
    let of_job = raw.job_cluster_key.as_ref().map(|key| (key, around.clusters.get(key)));
    if let Some((missing, None)) = of_job {
        let why = format!("{what}: job_cluster_key {missing:?} is not among the job_clusters");
        problems.value(&format!("{at}/job_cluster_key"), why);
    }
    let of_job = of_job.and_then(|(_, cluster)| cluster.cloned());
    of_job.or_else(|| raw.new_cluster.clone()).or_else(|| raw.existing_cluster_id.as_ref().map(|_| Cluster::default()))
}

fn libraries(raw: &RawTask, Place { at, what }: Place<'_>, around: &Around, problems: &mut Problems) -> Libraries {
    let of_job = raw.environment_key.as_ref().map(|key| (key, around.environments.get(key)));
    if let Some((missing, None)) = of_job {
        let why = format!("{what}: environment_key {missing:?} is not among the environments");
        problems.value(&format!("{at}/environment_key"), why);
    }
    let environment = of_job.and_then(|(_, lines)| lines).map(Vec::as_slice).unwrap_or_default();
    let mut libraries = Libraries { python: environment.to_vec(), ..Libraries::default() };
    for (nth, library) in raw.libraries.iter().flatten().enumerate() {
        if let Err(why) = libraries.add(library) {
            problems.value(&format!("{at}/libraries/{nth}"), format!("{what}: libraries[{nth}] {why}"));
        }
    }
    libraries
}

fn is_key(text: &str) -> bool {
    let is_plain = text.chars().all(|c: char| c.is_ascii_alphanumeric() || "_-".contains(c));
    is_plain && (1..=LONGEST_KEY).contains(&text.len())
}

fn check_key(key: Option<&str>, Place { at, what }: Place<'_>, problems: &mut Problems) -> String {
    let key = key.unwrap_or_default();
    if key.is_empty() {
        problems.value(at, format!("{what} has no task_key"));
    } else if !is_key(key) {
        let allowed = format!("a task_key is made of up to {LONGEST_KEY} letters, digits, underscores and hyphens");
        problems.value(&format!("{at}/task_key"), format!("{what}: {allowed}"));
    }
    key.to_owned()
}

fn of_graph(raw: &RawTask, task: &Value, key: &str, work: &Work, place: Place<'_>, problems: &mut Problems) -> Task {
    let Place { at, what } = place;
    let dependencies = raw.depends_on.iter().flatten().enumerate();
    let depends_on = dependencies.map(|(nth, on)| dependency(on, &format!("{at}/depends_on/{nth}"), what, problems));
    let depends_on = depends_on.collect();
    let (kind, reads) = match work {
        Work::Condition { left, right, .. } => (Kind::Condition, read_from([left, right])),
        Work::ForEach { inputs, .. } => {
            let many = whole(&task["for_each_task"]["concurrency"]).unwrap_or(1);
            (Kind::ForEach { concurrency: many.clamp(1, MOST_CONCURRENT_ITEMS) as u32 }, read_from([inputs]))
        }
        _ => (Kind::Work, Vec::new()),
    };
    // Attempts are those of the items, whose settings stand inside, where they have been read.
    let inner = Some(&task["for_each_task"]["task"]).filter(|_| matches!(kind, Kind::ForEach { .. }));
    let inner: Option<RawTask> = inner.and_then(|task| object(task, at, what, &mut Problems::at_most(1)));
    let attempts = inner.as_ref().unwrap_or(raw);
    let max_retries = attempts.max_retries.unwrap_or_default();
    if max_retries < -1 {
        let within = if inner.is_some() { "/for_each_task/task" } else { "" };
        let why = format!("{what}: max_retries must be -1 (without end) or more, not {max_retries}");
        problems.value(&format!("{at}{within}/max_retries"), why);
    }
    Task {
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
    }
}

fn dependency(on: &RawDependency, at: &str, what: &str, problems: &mut Problems) -> Dependency {
    let outcome = match on.outcome.as_deref() {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(other) => {
            let why = format!("{what}: outcome {other:?} is neither \"true\" nor \"false\"");
            problems.value(&format!("{at}/outcome"), why);
            None
        }
    };
    Dependency { task_key: on.task_key.clone(), outcome }
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

/// The kinds of work that a task is given.
fn kinds(task: &Value) -> impl Iterator<Item = &'static str> {
    KINDS.into_iter().filter(|kind| !task[*kind].is_null())
}

/// What a task does. What cannot be read is told, and something of its kind stands for it.
fn work(task: &Value, Place { at, what }: Place<'_>, around: &Around, problems: &mut Problems) -> Work {
    let mut given = kinds(task);
    let (Some(kind), second) = (given.next(), given.next()) else {
        problems.value(at, format!("{what} does nothing; give it one of {}", KINDS.join(", ")));
        return Work::Other(String::new());
    };
    if let Some(second) = second {
        problems.value(&format!("{at}/{second}"), format!("{what} has both {kind} and {second}; it can have one"));
    }
    let (value, at, what) = (&task[kind], format!("{at}/{kind}"), format!("{what}: {kind}"));
    let place = Place { at: &at, what: &what };
    let work = match kind {
        "condition_task" => Some(condition(value, place, problems)),
        "for_each_task" => for_each(value, place, around, problems),
        "run_job_task" => object(value, &at, &what, problems).map(|RawRunJob { job_id, job_parameters }| {
            Work::RunJob { job_id, parameters: job_parameters.unwrap_or_default() }
        }),
        "spark_python_task" => object(value, &at, &what, problems).map(|RawPython { python_file, parameters }| {
            Work::Python { file: python_file, parameters: parameters.unwrap_or_default() }
        }),
        "python_wheel_task" => object(value, &at, &what, problems).map(|raw| wheel(raw, place, problems)),
        "notebook_task" => object(value, &at, &what, problems).map(|RawNotebook { notebook_path, base_parameters }| {
            Work::Notebook { path: notebook_path, parameters: base_parameters.unwrap_or_default() }
        }),
        "dbt_task" => object(value, &at, &what, problems).map(|raw| source::dbt(raw, place, problems)),
        "spark_submit_task" => object(value, &at, &what, problems)
            .map(|RawSubmit { parameters }| Work::SparkSubmit { parameters: parameters.unwrap_or_default() }),
        "spark_jar_task" => {
            object(value, &at, &what, problems).map(|RawJar { jar_uri, main_class_name, parameters }| {
                let (jar, parameters) = (jar_uri.unwrap_or_default(), parameters.unwrap_or_default());
                Work::SparkJar { jar, main_class: main_class_name, parameters }
            })
        }
        _ => None,
    };
    work.unwrap_or_else(|| Work::Other(kind.to_owned()))
}

fn wheel(raw: RawWheel, Place { at, what }: Place<'_>, problems: &mut Problems) -> Work {
    let RawWheel { package_name, entry_point, parameters, named_parameters } = raw;
    let (parameters, named) = (parameters.unwrap_or_default(), named_parameters.unwrap_or_default());
    if !parameters.is_empty() && !named.is_empty() {
        let why = format!("{what} has both parameters and named_parameters; it can have one");
        problems.value(&format!("{at}/named_parameters"), why);
    }
    Work::Wheel { package: package_name, entry_point, parameters, named }
}

/// A condition that cannot be read stays one: what depends on its outcome is not wrong.
fn condition(value: &Value, Place { at, what }: Place<'_>, problems: &mut Problems) -> Work {
    match object(value, at, what, problems) {
        Some(RawCondition { op, left, right }) => Work::Condition { op, left, right },
        None => Work::Condition { op: Operator::EqualTo, left: String::new(), right: String::new() },
    }
}

fn for_each(value: &Value, Place { at, what }: Place<'_>, around: &Around, problems: &mut Problems) -> Option<Work> {
    let RawForEach { inputs, task, concurrency } = object(value, at, what, problems)?;
    if let Some(wrong) = concurrency.filter(|many| !(1..=MOST_CONCURRENT_ITEMS).contains(many)) {
        let why = format!("{what}: concurrency must be between 1 and {MOST_CONCURRENT_ITEMS}, not {wrong}");
        problems.value(&format!("{at}/concurrency"), why);
    }
    let inside = format!("{at}/task");
    let place = Place { at: &inside, what: &name_of(&task, 0) };
    let (inner, _) = read_task(&task, place, around, problems)?;
    if matches!(inner.work, Work::ForEach { .. }) {
        let why = format!("{what}: a for-each stands in a for-each, which cannot be");
        problems.value(&format!("{inside}/for_each_task"), why);
    }
    Some(Work::ForEach { inputs, task: Box::new(inner) })
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
                job(json!([{ "task_key": "a", "libraries": ["x"], "spark_python_task": { "python_file": "/a.py" } }])),
                "task \"a\": libraries[0] must be one of pypi",
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
            (with("git_source", json!({ "git_url": "/repo" })), "git_source needs one of git_branch, git_tag"),
            (
                with("git_source", json!({ "git_url": "ext::sh -c id", "git_branch": "main" })),
                "git_url \"ext::sh -c id\" is neither a URL",
            ),
            (with("git_source", json!({ "git_url": "/repo", "git_commit": "abc" })), "\"abc\" is no whole hash"),
            (with("git_source", json!({ "git_url": "/repo", "git_branch": "-x" })), "\"-x\" is no name of a branch"),
            (
                job(json!([{ "task_key": "a", "spark_python_task": { "python_file": "a.py", "source": "GIT" } }])),
                "source is GIT, and the job has no git_source",
            ),
            (
                job(json!([{ "task_key": "a", "dbt_task": { "commands": ["dbt run", "rm -r /"] } }])),
                "commands[1] is \"rm -r /\", which does not begin with dbt",
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
        numbers(&mut settings);
        assert_eq!(settings["tasks"][0]["max_retries"], 2);
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
