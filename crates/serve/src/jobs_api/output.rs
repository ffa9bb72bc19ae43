//! What a task run left behind: its output, and what went wrong.

use super::asked::Query;
use super::runs_json::{Shown, detail, of_task_run};
use super::{Answer, ApiError, Shared, Workspace};
use crate::clock::now_ms;
use crate::history::{History, Listed};
use axum::extract::State;
use axum::{Extension, Json};
use run::Outcome;
use run::book::About;
use run::local::logs::{self, Stream};
use run::settings::{Settings, Work};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use store::jobs::{Run, TaskRun};

/// Bytes of the longest `logs`: the last ones.
const LOG_BYTES: u64 = 5 << 20;
/// Bytes that are read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// How far the clocks of two machines may be apart, ms.
const CLOCKS_DIFFER_MS: i64 = 10 * 60_000;
/// Bytes of the largest notebook that is given out as a page.
const PAGE_BYTES: u64 = 32 << 20;

pub(super) async fn show(
    State(workspace): Shared,
    Extension(history): Extension<Arc<dyn History>>,
    query: Query,
) -> Answer {
    let run_id = query.id("run_id")?;
    let (run, task, all) = asked(&workspace, run_id).await?;
    let shown =
        Shown { base: query.base(), workspace: workspace.id, now_ms: now_ms(), history: false, resolved: false };
    let detail = detail(&task);
    let mut answer = Map::new();
    answer.insert("metadata".to_owned(), of_task_run(&run, &task, &all, &shown).into());
    // Fields without content are absent: clients ask whether they are there.
    answer.extend(detail.error.map(|error| ("error".to_owned(), error.into())));
    answer.extend(detail.error_trace.map(|trace| ("error_trace".to_owned(), trace.into())));
    answer.extend(detail.child_run_id.map(|child| ("run_job_output".to_owned(), json!({ "run_id": child }))));
    answer.extend(detail.result.map(|result| {
        // The engine keeps so many bytes of it.
        let truncated = result.len() >= LOG_BYTES as usize;
        ("notebook_output".to_owned(), json!({ "result": result, "truncated": truncated }))
    }));
    let applications = applications(history.as_ref(), &task, query.base());
    if !applications.is_empty() {
        answer.insert("spark_applications".to_owned(), applications.into());
    }
    let dir = workspace.engine.attempt(task.task_run_id);
    let read = tokio::task::spawn_blocking(move || last_output(&dir)).await;
    let read = read.map_err(|_| ApiError::internal("reading the output failed"))?;
    let (text, truncated) = read.map_err(|error| ApiError::internal(error.to_string()))?;
    if !text.is_empty() {
        answer.insert("logs".to_owned(), text.into());
        answer.insert("logs_truncated".to_owned(), truncated.into());
    }
    Ok(Json(Value::Object(answer)))
}

/// The Spark applications that a task run started, as far as their logs have been read: what the
/// diagnosis says of each in a sentence, and the finding to begin with. Numbers of task runs of
/// another server may be in the logs, too: an application of this one began while it ran.
fn applications(history: &dyn History, task: &TaskRun, base: &str) -> Vec<Value> {
    let mut applications = history.list();
    let (from, to) = (task.start_ms.unwrap_or(i64::MAX), task.end_ms.unwrap_or(i64::MAX));
    let while_it_ran = (from.saturating_sub(CLOCKS_DIFFER_MS))..=(to.saturating_add(CLOCKS_DIFFER_MS));
    applications
        .retain(|listed| listed.task_run_id == Some(task.task_run_id) && while_it_ran.contains(&listed.started_ms));
    applications.sort_by_key(|listed| listed.started_ms);
    let of_one = |listed: &Listed| {
        let mut object = json!({
            "application_id": listed.id,
            "application_name": listed.name,
            "page_url": format!("{base}{}", listed.page()),
            "diagnosis": listed.verdict.sentence,
        });
        if let Some(attempt) = &listed.attempt {
            object["attempt_id"] = attempt.as_str().into();
        }
        if let Some(worst) = &listed.verdict.worst {
            object["finding"] = json!({ "id": worst.id, "title": worst.title, "severity": listed.verdict.severity });
        }
        object
    };
    applications.iter().map(of_one).collect()
}

/// A notebook with the output of its cells, as a page.
pub(super) async fn export(State(workspace): Shared, query: Query) -> Answer {
    let run_id = query.id("run_id")?;
    let (run, task, _) = asked(&workspace, run_id).await?;
    let page = workspace.engine.attempt(task.task_run_id).join("notebook.html");
    let read = tokio::task::spawn_blocking(move || match std::fs::metadata(&page) {
        Ok(file) if file.len() > PAGE_BYTES => Err(io::Error::other(format!("it is larger than {PAGE_BYTES} bytes"))),
        _ => std::fs::read_to_string(&page),
    });
    let content = match read.await.map_err(|_| ApiError::internal("reading the notebook failed"))? {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let why = format!("run {run_id} left no notebook to export; only notebook tasks do, once they are over");
            return Err(ApiError::invalid(why));
        }
        Err(error) => return Err(ApiError::internal(format!("the notebook of run {run_id}: {error}"))),
    };
    let name = notebook(&run, &task.task_key).unwrap_or_else(|| task.task_key.clone());
    Ok(Json(json!({ "views": [{ "content": content, "name": name, "type": "NOTEBOOK" }] })))
}

/// The file name of the notebook that a task runs.
fn notebook(run: &Run, task_key: &str) -> Option<String> {
    let about: About = serde_json::from_str(&run.about).ok()?;
    let tasks = Settings::read(&about.settings).ok()?.tasks;
    let task = tasks.iter().find(|task| task.key == task_key)?;
    let path = match &task.work {
        Work::Notebook { path, .. } => path,
        Work::ForEach { task, .. } => match &task.work {
            Work::Notebook { path, .. } => path,
            _ => return None,
        },
        _ => return None,
    };
    Some(Path::new(path).file_name()?.to_string_lossy().into_owned())
}

/// The task run of this id; of a whole run its first failed task as it stands, else the last of its
/// leaves.
async fn asked(workspace: &Workspace, run_id: i64) -> Result<(Run, TaskRun, Vec<TaskRun>), ApiError> {
    let missing = || ApiError::no_run(run_id);
    if let Some(task) = workspace.jobs.task_run(run_id).await? {
        let run = workspace.jobs.run(task.run_id).await?.ok_or_else(missing)?;
        let all = workspace.jobs.task_runs(task.run_id).await?;
        return Ok((run, task, all));
    }
    let run = workspace.jobs.run(run_id).await?.ok_or_else(missing)?;
    let all = workspace.jobs.task_runs(run_id).await?;
    let bad = [Outcome::Failed.word(), Outcome::TimedOut.word()];
    let latest = latest(&all);
    let failed = latest.iter().find(|task| task.result.as_deref().is_some_and(|result| bad.contains(&result)));
    let leaves = leaves(&run);
    let last_leaf = || latest.iter().filter(|task| leaves.contains(&task.task_key)).max_by_key(|task| task.end_ms);
    let task = failed.or_else(last_leaf).copied();
    let task = task.ok_or_else(|| ApiError::invalid(format!("run {run_id} started no task, so it has no output")))?;
    Ok((run, task.clone(), all))
}

/// The newest attempt of each task.
fn latest(all: &[TaskRun]) -> Vec<&TaskRun> {
    let mut latest: BTreeMap<i64, &TaskRun> = BTreeMap::new();
    // They come in the order of their attempts.
    latest.extend(all.iter().filter(|task| task.item.is_none()).map(|task| (task.position, task)));
    latest.into_values().collect()
}

/// Keys of the tasks that no other one depends on.
fn leaves(run: &Run) -> BTreeSet<String> {
    let about: About = serde_json::from_str(&run.about).unwrap_or_default();
    let Ok(settings) = Settings::read(&about.settings) else { return BTreeSet::new() };
    let graph = settings.graph();
    (0..settings.tasks.len()).filter(|&at| graph.is_leaf(at)).map(|at| settings.tasks[at].key.clone()).collect()
}

/// The end of what a program wrote, standard output first; whether there was more. Messages have at
/// least half of the room.
fn last_output(dir: &Path) -> io::Result<(String, bool)> {
    let (stderr, cut_err) = last(dir, Stream::Stderr, LOG_BYTES / 2)?;
    let (stdout, cut_out) = last(dir, Stream::Stdout, LOG_BYTES.saturating_sub(stderr.len() as u64))?;
    let mut text = String::from_utf8_lossy(&stdout).into_owned();
    if !text.is_empty() && !stderr.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&String::from_utf8_lossy(&stderr));
    Ok((text, cut_out || cut_err))
}

fn last(dir: &Path, stream: Stream, most: u64) -> io::Result<(Vec<u8>, bool)> {
    let end = logs::read(dir, stream, u64::MAX, 0)?.next;
    let mut at = end.saturating_sub(most);
    let mut cut = at > 0;
    let mut bytes = Vec::new();
    while at < end {
        let chunk = logs::read(dir, stream, at, CHUNK_BYTES)?;
        if chunk.bytes.is_empty() {
            break;
        }
        cut |= chunk.left_out_bytes > 0;
        bytes.extend(chunk.marker().into_iter().flat_map(String::into_bytes));
        bytes.extend(chunk.bytes);
        at = chunk.next;
    }
    Ok((bytes, cut))
}
