//! The job engine on this machine: where its programs run, and what they get of the server.

use crate::commands::serve::Tasks;
use crate::inputs::arrivals;
use anyhow::{Context, Result};
use run::engine::{Engine, Options, Watching};
use serve::Workspace;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use store::jobs::Jobs;

/// Variables of the server that tasks get, by name or, with a `*`, by how it begins. Others may hold
/// secrets that are none of theirs.
const PASSED_ON: [&str; 24] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "JAVA_HOME",
    "SPARK_*",
    "PYSPARK_*",
    "PYTHON*",
    "HADOOP_*",
    "PIP_*",
    "UV_*",
    "GIT_*",
    "SSH_AUTH_SOCK",
    "DBT_*",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Starts the engine; runs that were active go on.
pub async fn workspace(store: &Store, tasks: &Tasks, event_logs: Option<PathBuf>) -> Result<Workspace> {
    let jobs = match &tasks.database {
        Some(url) => Jobs::connect(url).await.context("cannot open the database of jobs")?,
        None => store.jobs(),
    };
    let options = Options {
        attempts: tasks.attempts.clone().unwrap_or_else(|| store.dir().join("attempts")),
        // This program, also after its file was replaced.
        shim: PathBuf::from("/proc/self/exe"),
        slots: usize::from(tasks.task_slots),
        python: tasks.python.clone(),
        environments: store.dir().join("environments"),
        sources: store.dir().join("sources"),
        spark_home: tasks.spark_home.clone(),
        spark_master: tasks.spark_master.clone(),
        event_logs: event_logs.filter(|_| !says_where(tasks.spark_home.as_deref())),
        grace: Duration::from_secs(tasks.stop_grace),
        output_stays: Duration::from_secs(u64::from(tasks.keep_output) * 24 * 3_600),
        give_up_after: Duration::from_secs(tasks.give_up_after),
        watching: Some(Watching {
            watcher: Arc::new(arrivals::Watcher::default()),
            every: Duration::from_secs(tasks.trigger_interval),
        }),
        environment: environment(std::env::vars_os().filter_map(|(name, value)| {
            // What is no text cannot be written down for the task.
            Some((name.into_string().ok()?, value.into_string().ok()?))
        })),
    };
    let engine = Engine::start(jobs.clone(), options).await.context("cannot start the job engine")?;
    let id = workspace_id(jobs.database());
    Ok(Workspace { engine, jobs, id })
}

/// Whether Spark's own settings say where event logs go, or put drivers on other machines: they stay
/// in force.
fn says_where(spark_home: Option<&Path>) -> bool {
    let set = std::env::var_os("SPARK_CONF_DIR").map(PathBuf::from);
    let Some(folder) = set.or_else(|| Some(spark_home?.join("conf"))) else { return false };
    let defaults = std::fs::read_to_string(folder.join("spark-defaults.conf")).unwrap_or_default();
    let is_about_it = |line: &str| {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("spark.eventLog.dir") => true,
            Some("spark.submit.deployMode") => words.next() == Some("cluster"),
            _ => false,
        }
    };
    defaults.lines().any(is_about_it)
}

fn environment(all: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let is_passed_on = |name: &str| {
        PASSED_ON.iter().any(|known| match known.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => name == *known,
        })
    };
    all.filter(|(name, _)| is_passed_on(name)).collect()
}

/// A number that stays the same as long as the database is where it is: FNV-1a of its name, below
/// what JavaScript can count.
fn workspace_id(database: &str) -> i64 {
    let bytes = database.bytes();
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    (hash >> 12) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_get_no_variable_that_may_hold_a_secret() {
        let all = ["PATH", "LC_ALL", "SPARK_HOME", "AWS_SECRET_ACCESS_KEY", "LAKESCOPE_TOKEN", "HOMEX"];
        let all = all.map(|name| (name.to_owned(), "x".to_owned()));
        let passed: Vec<String> = environment(all.into_iter()).into_keys().collect();
        assert_eq!(passed, ["LC_ALL", "PATH", "SPARK_HOME"]);
    }
}
