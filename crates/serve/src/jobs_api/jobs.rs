//! Jobs: made, shown, listed, changed, deleted.

use super::asked::{Body, Query};
use super::paging;
use super::{Answer, ApiError, Shared, Version};
use crate::guard::{Asking, Guard};
use axum::extract::State;
use axum::{Extension, Json};
use run::engine::{Change, Refusal};
use run::settings::fill_defaults;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use store::jobs::{Job, JobFilter, JobPlace};

/// Jobs on a page: what is given where nothing is asked, and the most.
const LIMITS: (i64, i64) = (20, 100);
/// Characters of the longest name in the audit log.
const LONGEST_OBJECT: usize = 200;
/// Largest `offset`.
const FURTHEST: i64 = 10_000;

type By = (Extension<Asking>, Extension<Arc<Guard>>);

pub(super) async fn create(
    State(workspace): Shared,
    Extension(Version(version)): Extension<Version>,
    (Extension(asking), Extension(guard)): By,
    Body(mut settings): Body,
) -> Answer {
    // Who may what is told by `permissions`.
    settings.remove("access_control_list");
    fill_defaults(&mut settings, version >= 22);
    let name = settings.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    audit(&guard, &asking, "job.create", &name).await?;
    let job_id = workspace.engine.create_job(settings, &asking.who).await?;
    Ok(Json(json!({ "job_id": job_id })))
}

pub(super) async fn show(
    State(workspace): Shared,
    Extension(Version(version)): Extension<Version>,
    query: Query,
) -> Answer {
    let job_id = query.id("job_id")?;
    let job = workspace.jobs.job(job_id).await?.ok_or(Refusal::NoJob(job_id))?;
    let mut answer = of_job(&job);
    answer.insert("run_as_user_name".to_owned(), job.creator.into());
    let from = paging::item(query.text("page_token"))?;
    if let Some(Value::Object(settings)) = answer.get_mut("settings").filter(|_| version >= 22) {
        let arrays = ["tasks", "job_clusters", "parameters", "environments"];
        if paging::cut(settings, &arrays, from) {
            answer.insert("next_page_token".to_owned(), paging::next(from));
            answer.insert("has_more".to_owned(), true.into());
        }
    }
    Ok(Json(answer.into()))
}

fn of_job(job: &Job) -> Map<String, Value> {
    let settings: Value = serde_json::from_str(&job.settings).unwrap_or_default();
    let mut object = Map::new();
    object.insert("job_id".to_owned(), job.job_id.into());
    object.insert("creator_user_name".to_owned(), job.creator.clone().into());
    object.insert("created_time".to_owned(), job.created_ms.into());
    object.insert("settings".to_owned(), settings);
    object
}

pub(super) async fn list(State(workspace): Shared, query: Query) -> Answer {
    let limit = query.number("limit")?.unwrap_or(LIMITS.0);
    if !(1..=LIMITS.1).contains(&limit) {
        return Err(ApiError::invalid(format!("limit must be between 1 and {}, not {limit}", LIMITS.1)));
    }
    let place = query.text("page_token").map(|token| place(token).ok_or_else(|| paging::wrong(token))).transpose()?;
    let filter = JobFilter { name: query.text("name").map(str::to_owned), skip: offset(&query)? };
    let mut jobs = workspace.jobs.jobs(&filter, place, limit as u32 + 1).await?;
    let is_back = matches!(place, Some(JobPlace::Above(_)));
    let more = jobs.len() > limit as usize;
    if more {
        // One more than fits was read, at the end that is walked to.
        jobs.remove(if is_back { 0 } else { jobs.len() - 1 });
    }
    let (has_next, has_prev) = if is_back { (true, more) } else { (more, place.is_some()) };
    let expand = query.flag("expand_tasks")?;
    let mut answer = Map::new();
    answer.insert("has_more".to_owned(), has_next.into());
    if let Some(last) = jobs.last().filter(|_| has_next) {
        answer.insert("next_page_token".to_owned(), format!("n.{}", last.job_id).into());
    }
    if let Some(first) = jobs.first().filter(|_| has_prev) {
        answer.insert("prev_page_token".to_owned(), format!("p.{}", first.job_id).into());
    }
    if !jobs.is_empty() {
        answer.insert("jobs".to_owned(), jobs.iter().map(|job| in_list(job, expand)).collect());
    }
    Ok(Json(answer.into()))
}

fn place(token: &str) -> Option<JobPlace> {
    match token.split_once('.')? {
        ("n", id) => id.parse().ok().map(JobPlace::Below),
        ("p", id) => id.parse().ok().map(JobPlace::Above),
        _ => None,
    }
}

/// `offset` of older clients; a page token has it in it.
pub(super) fn offset(query: &Query) -> Result<u32, ApiError> {
    if query.text("page_token").is_some() {
        return Ok(0);
    }
    match query.number("offset")?.unwrap_or_default() {
        offset if offset > FURTHEST => Err(ApiError::invalid(format!(
            "The supplied offset {offset} has exceeded the value of {FURTHEST} allowed for this parameter"
        ))),
        offset if offset < 0 => Err(ApiError::invalid(format!("offset must not be negative, as {offset} is"))),
        offset => Ok(u32::try_from(offset).unwrap_or(u32::MAX)),
    }
}

fn in_list(job: &Job, expand_tasks: bool) -> Value {
    let mut object = of_job(job);
    if let Some(Value::Object(settings)) = object.get_mut("settings").filter(|_| !expand_tasks) {
        settings.remove("tasks");
        settings.remove("job_clusters");
    }
    object.into()
}

pub(super) async fn update(State(workspace): Shared, (Extension(asking), Extension(guard)): By, body: Body) -> Answer {
    let job_id = body.id("job_id")?;
    let (new, remove) = (body.object("new_settings")?, body.texts("fields_to_remove")?.unwrap_or_default());
    audit(&guard, &asking, "job.update", &job_id.to_string()).await?;
    workspace.engine.change_job(job_id, Change::Update { new, remove }, &asking.who).await?;
    Ok(Json(json!({})))
}

pub(super) async fn reset(State(workspace): Shared, (Extension(asking), Extension(guard)): By, body: Body) -> Answer {
    let job_id = body.id("job_id")?;
    let mut settings = body.object("new_settings")?;
    fill_defaults(&mut settings, false);
    audit(&guard, &asking, "job.reset", &job_id.to_string()).await?;
    workspace.engine.change_job(job_id, Change::Reset(settings), &asking.who).await?;
    Ok(Json(json!({})))
}

pub(super) async fn delete(State(workspace): Shared, (Extension(asking), Extension(guard)): By, body: Body) -> Answer {
    let job_id = body.id("job_id")?;
    audit(&guard, &asking, "job.delete", &job_id.to_string()).await?;
    workspace.engine.delete_job(job_id).await?;
    Ok(Json(json!({})))
}

/// Notes what is about to be done; what cannot be noted is not done.
pub(super) async fn audit(guard: &Guard, asking: &Asking, what: &str, object: &str) -> Result<(), ApiError> {
    let object: String = object.chars().take(LONGEST_OBJECT).collect();
    guard.audit(asking, what, &object, "asked").await.map_err(ApiError::internal)
}
