//! Counts of a log as they were taken without any parser of ours, against what was read.

use crate::logs::read_log;
use anyhow::{Context, Result};
use model::{Application, StageStatus};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;

/// What came of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Values compared.
    pub checked: usize,
    /// Where they differ: what, expected, got.
    pub mismatches: Vec<String>,
}

impl Compared {
    /// Compares one value; numbers by value, so that 1 equals 1.0.
    pub fn value(&mut self, what: impl FnOnce() -> String, expected: &Value, got: &Value) {
        self.checked += 1;
        let equal = match (expected.as_f64(), got.as_f64()) {
            (Some(a), Some(b)) => a == b,
            _ => expected == got,
        };
        if !equal {
            self.mismatches.push(format!("{}: expected {expected}, got {got}", what()));
        }
    }

    /// Adds another comparison to this one.
    pub fn add(&mut self, other: Self) {
        self.checked += other.checked;
        self.mismatches.extend(other.mismatches);
    }
}

/// Holds every log of `eventlogs/manifest.json` against its `counts`.
///
/// # Errors
/// When the manifest or a log cannot be read.
pub fn labelled(data: &Path) -> Result<Compared> {
    let folder = data.join("eventlogs");
    let manifest: Value = serde_json::from_slice(&std::fs::read(folder.join("manifest.json"))?)?;
    let logs = manifest["logs"].as_array().context("no list of logs")?;
    let mut compared = Compared::default();
    for log in logs {
        let file = log["file"].as_str().context("a log without a file")?;
        let app = read_log(&folder.join(file))?;
        compared.add(counts(file, &log["counts"], &app));
    }
    Ok(compared)
}

/// Holds every log of `public-logs/` against `counts.json`.
///
/// # Errors
/// When the counts or a log cannot be read.
pub fn public(data: &Path) -> Result<Compared> {
    let folder = data.join("public-logs");
    let logs: Value = serde_json::from_slice(&std::fs::read(folder.join("counts.json"))?)?;
    let mut compared = Compared::default();
    for (file, expected) in logs.as_object().context("no counts by file")? {
        let app = read_log(&folder.join(file))?;
        compared.add(counts(file, expected, &app));
    }
    Ok(compared)
}

/// Every count that either list names; one that is not known here is a mismatch.
fn counts(file: &str, expected: &Value, app: &Application) -> Compared {
    let mut compared = Compared::default();
    for (name, value) in expected.as_object().into_iter().flatten() {
        let got = count(app, name);
        compared.value(|| format!("{file}: {name}"), value, &got);
    }
    compared
}

fn count(app: &Application, name: &str) -> Value {
    let jobs = |status| app.jobs.iter().filter(|j| j.status == status).count();
    let log = &app.log;
    match name {
        "app_id" => json!(&*app.id),
        "app_name" => json!(&*app.name),
        "spark_version" => json!(&*app.spark_version),
        "application_end" => json!(app.ended_ms.is_some()),
        "duration_ms" => app.ended_ms.zip(app.started_ms).map_or(Value::Null, |(end, start)| json!(end - start)),
        "events" | "lines" => json!(log.lines),
        "bad_lines" => json!(log.bad_lines),
        "jobs" => json!(app.jobs.len()),
        "failed_jobs" => json!(jobs(StageStatus::Failed)),
        "unfinished_jobs" => json!(jobs(StageStatus::Active)),
        "stage_attempts_completed" => {
            let ended = |s: &&model::Stage| matches!(s.status, StageStatus::Complete | StageStatus::Failed);
            json!(app.stages.iter().filter(ended).count())
        }
        "tasks_started" => json!(log.task_starts),
        "task_ends" => json!(log.task_ends),
        "distinct_tasks" => json!(distinct_ended_tasks(app)),
        "task_ends_not_successful" => json!(log.task_ends_not_successful),
        "sql_executions" => json!(app.sql.len()),
        "executors_removed" => json!(app.executors.iter().filter(|e| e.removed_ms.is_some()).count()),
        other => json!(format!("no count is called {other}")),
    }
}

fn distinct_ended_tasks(app: &Application) -> usize {
    let ended = |s: &model::Stage| {
        let rows = (0..s.tasks.len()).filter(|&row| s.tasks.status(row) != model::TaskStatus::Running);
        rows.map(|row| s.tasks.id(row)).collect::<Vec<_>>()
    };
    app.stages.iter().flat_map(ended).collect::<HashSet<_>>().len()
}
