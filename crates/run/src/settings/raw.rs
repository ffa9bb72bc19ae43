//! The forms in which a definition comes, read as leniently as clients need it.

use super::problem::{Problems, pointer, take_out};
use super::{Cluster, LONGEST_MS};
use crate::condition::Operator;
use crate::graph::RunIf;
use crate::trigger::completion::{self, IfStatus};
use crate::trigger::watch::{self, Place};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Deserialize)]
pub(super) struct Raw {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) tasks: Option<Vec<Value>>,
    #[serde(default, deserialize_with = "number")]
    pub(super) timeout_seconds: Option<i64>,
    #[serde(default, deserialize_with = "number")]
    pub(super) max_concurrent_runs: Option<i64>,
    pub(super) queue: Option<Queue>,
    pub(super) parameters: Option<Vec<Parameter>>,
    pub(super) health: Option<Health>,
    pub(super) tags: Option<BTreeMap<String, String>>,
    pub(super) schedule: Option<Schedule>,
    pub(super) continuous: Option<Value>,
    pub(super) trigger: Option<RawTrigger>,
    pub(super) triggers: Option<Vec<Value>>,
    pub(super) environment_variables: Option<Vec<Value>>,
    pub(super) git_source: Option<RawGit>,
    pub(super) environments: Option<Vec<Value>>,
    pub(super) job_clusters: Option<Vec<RawCluster>>,
}

#[derive(Deserialize)]
pub(super) struct Queue {
    #[serde(default)]
    pub(super) enabled: bool,
}

#[derive(Deserialize)]
pub(super) struct Parameter {
    pub(super) name: String,
    #[serde(default)]
    pub(super) default: String,
}

#[derive(Deserialize)]
pub(super) struct Health {
    #[serde(default)]
    pub(super) rules: Vec<HealthRule>,
}

#[derive(Deserialize)]
pub(super) struct HealthRule {
    pub(super) metric: String,
    #[serde(deserialize_with = "must_be_number")]
    pub(super) value: i64,
}

#[derive(Deserialize)]
pub(super) struct Schedule {
    pub(super) quartz_cron_expression: String,
    pub(super) timezone_id: String,
}

#[derive(Deserialize)]
pub(super) struct RawTrigger {
    pub(super) file_arrival: Option<FileArrival>,
    pub(super) job_completion: Option<JobCompletion>,
    pub(super) model: Option<Value>,
    pub(super) periodic: Option<Periodic>,
    pub(super) table_update: Option<TableUpdate>,
}

/// `trigger.file_arrival`.
#[derive(Deserialize)]
pub(crate) struct FileArrival {
    pub(super) url: String,
    #[serde(flatten)]
    pub(super) pace: Pace,
}

impl FileArrival {
    pub(crate) fn rules(self) -> watch::Rules {
        self.pace.rules(vec![Place::Files(self.url)], false)
    }
}

/// `trigger.table_update`.
#[derive(Deserialize)]
pub(crate) struct TableUpdate {
    pub(super) table_names: Vec<String>,
    pub(super) condition: Option<Condition>,
    #[serde(flatten)]
    pub(super) pace: Pace,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Condition {
    AnyUpdated,
    AllUpdated,
}

impl TableUpdate {
    pub(crate) fn rules(self) -> watch::Rules {
        let place = |name: &String| Place::Table(table_address(name).unwrap_or(name).to_owned());
        let places = self.table_names.iter().map(place).collect();
        self.pace.rules(places, self.condition == Some(Condition::AllUpdated))
    }
}

/// Where a table lies that is named by its path or URL, plainly or as SQL names it; `None`: it is a
/// name that only a catalog knows.
pub(super) fn table_address(name: &str) -> Option<&str> {
    let quoted = name.strip_prefix("delta.`").and_then(|rest| rest.strip_suffix('`'));
    let address = quoted.unwrap_or(name);
    (address.starts_with('/') || address.contains("://")).then_some(address)
}

/// How soon a trigger fires that waits for changes.
#[derive(Clone, Copy, Default, Deserialize)]
pub(super) struct Pace {
    #[serde(default, deserialize_with = "number")]
    pub(super) min_time_between_triggers_seconds: Option<i64>,
    #[serde(default, deserialize_with = "number")]
    pub(super) wait_after_last_change_seconds: Option<i64>,
}

impl Pace {
    fn rules(self, places: Vec<Place>, needs_all: bool) -> watch::Rules {
        let ms = |seconds: Option<i64>| seconds.unwrap_or_default().max(0).saturating_mul(1_000).min(LONGEST_MS);
        let between_ms = ms(self.min_time_between_triggers_seconds);
        watch::Rules { places, between_ms, wait_ms: ms(self.wait_after_last_change_seconds), needs_all }
    }
}

/// `trigger.job_completion`.
#[derive(Deserialize)]
pub(crate) struct JobCompletion {
    pub(super) jobs: Vec<MonitoredJob>,
    pub(super) if_status: Option<IfStatus>,
}

#[derive(Deserialize)]
pub(super) struct MonitoredJob {
    #[serde(deserialize_with = "must_be_number")]
    pub(super) job_id: i64,
}

impl JobCompletion {
    pub(crate) fn rules(self) -> completion::Rules {
        let jobs = self.jobs.iter().map(|job| job.job_id).collect();
        completion::Rules { jobs, if_status: self.if_status.unwrap_or_default() }
    }
}

/// `trigger.periodic`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Periodic {
    #[serde(deserialize_with = "must_be_number")]
    pub(super) interval: i64,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Unit {
    Minutes,
    Hours,
    Days,
    Weeks,
}

impl Periodic {
    /// How often, ms.
    pub(crate) fn every_ms(self) -> i64 {
        let minutes = match self.unit {
            Unit::Minutes => 1,
            Unit::Hours => 60,
            Unit::Days => 24 * 60,
            Unit::Weeks => 7 * 24 * 60,
        };
        self.interval.max(1).saturating_mul(minutes * 60_000).min(LONGEST_MS)
    }
}

#[derive(Deserialize)]
pub(super) struct RawCluster {
    pub(super) job_cluster_key: String,
    pub(super) new_cluster: Option<Cluster>,
}

#[derive(Deserialize)]
pub(super) struct RawTask {
    pub(super) task_key: Option<String>,
    pub(super) depends_on: Option<Vec<RawDependency>>,
    pub(super) run_if: Option<RunIf>,
    pub(super) disabled: Option<bool>,
    #[serde(default, deserialize_with = "number")]
    pub(super) max_retries: Option<i64>,
    #[serde(default, deserialize_with = "number")]
    pub(super) min_retry_interval_millis: Option<i64>,
    pub(super) retry_on_timeout: Option<bool>,
    #[serde(default, deserialize_with = "number")]
    pub(super) timeout_seconds: Option<i64>,
    pub(super) job_cluster_key: Option<String>,
    pub(super) new_cluster: Option<Cluster>,
    pub(super) existing_cluster_id: Option<String>,
    pub(super) environment_key: Option<String>,
    pub(super) libraries: Option<Vec<Value>>,
}

#[derive(Deserialize)]
pub(super) struct RawDependency {
    pub(super) task_key: String,
    pub(super) outcome: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct RawCondition {
    pub(super) op: Operator,
    pub(super) left: String,
    pub(super) right: String,
}

#[derive(Deserialize)]
pub(super) struct RawForEach {
    pub(super) inputs: String,
    pub(super) task: Value,
    #[serde(default, deserialize_with = "number")]
    pub(super) concurrency: Option<i64>,
}

#[derive(Deserialize)]
pub(super) struct RawRunJob {
    #[serde(deserialize_with = "must_be_number")]
    pub(super) job_id: i64,
    pub(super) job_parameters: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
pub(super) struct RawGit {
    pub(super) git_url: String,
    pub(super) git_branch: Option<String>,
    pub(super) git_tag: Option<String>,
    pub(super) git_commit: Option<String>,
    pub(super) sparse_checkout: Option<RawSparse>,
}

#[derive(Deserialize)]
pub(super) struct RawSparse {
    #[serde(default)]
    pub(super) patterns: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct RawDbt {
    pub(super) commands: Vec<String>,
    pub(super) project_directory: Option<String>,
    pub(super) profiles_directory: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct RawPython {
    pub(super) python_file: String,
    pub(super) parameters: Option<Vec<String>>,
}

#[derive(Deserialize)]
pub(super) struct RawWheel {
    pub(super) package_name: String,
    pub(super) entry_point: String,
    pub(super) parameters: Option<Vec<String>>,
    pub(super) named_parameters: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
pub(super) struct RawNotebook {
    pub(super) notebook_path: String,
    pub(super) base_parameters: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
pub(super) struct RawSubmit {
    pub(super) parameters: Option<Vec<String>>,
}

#[derive(Deserialize)]
pub(super) struct RawJar {
    pub(super) jar_uri: Option<String>,
    pub(super) main_class_name: String,
    pub(super) parameters: Option<Vec<String>>,
}

/// Ids come as numbers, or as the decimal texts that the archived command line sends.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(i64),
        Text(String),
    }
    match Option::<Either>::deserialize(from)? {
        None => Ok(None),
        Some(Either::Number(number)) => Ok(Some(number)),
        Some(Either::Text(text)) => {
            text.parse().map(Some).map_err(|_| D::Error::custom(format!("{text:?} is no whole number")))
        }
    }
}

fn must_be_number<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    number(from)?.ok_or_else(|| D::Error::custom("a number is missing"))
}

/// A whole number, or the decimal text of one.
pub(crate) fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// Reads an object that stands `at` a place and is called `what`. What is wrong in it is told and
/// taken out, so that the rest is read; `None`: something is missing, or nothing is left.
pub(super) fn object<T: DeserializeOwned>(value: &Value, at: &str, what: &str, problems: &mut Problems) -> Option<T> {
    if !value.is_object() {
        problems.malformed(at, format!("{what} must be an object"));
        return None;
    }
    match T::deserialize(value) {
        Ok(read) => return Some(read),
        Err(error) if !problems.go_on() => {
            problems.malformed(at, format!("{what}: {error}"));
            return None;
        }
        Err(_) => {}
    }
    let (mut rest, mut taken) = (value.clone(), Vec::new());
    loop {
        let error = match serde_path_to_error::deserialize(&rest) {
            Ok(read) => return Some(read),
            Err(error) => error,
        };
        let path = pointer(error.path());
        // What is missing now may be what was taken out.
        if !taken.contains(&path) {
            problems.malformed(&format!("{at}{path}"), format!("{what}: {}", error.inner()));
        }
        if !problems.go_on() {
            return None;
        }
        take_out(&mut rest, &path)?;
        taken.extend(path.rsplit_once('/').map(|(parent, _)| parent.to_owned()));
    }
}
