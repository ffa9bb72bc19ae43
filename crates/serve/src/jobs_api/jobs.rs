//! Jobs: made, shown, listed, changed, deleted.

use super::asked::{Body, By, Query};
use super::paging::{self, Page};
use super::permissions::ACCESS;
use super::{Answer, ApiError, Shared, Version, Workspace, trigger_json};
use axum::extract::State;
use axum::{Extension, Json};
use run::engine::{Change, Refusal};
use run::settings::fill_defaults;
use serde_json::{Map, Value, json};
use store::jobs::{Job, JobFilter};

/// Jobs on a page: what is given where nothing is asked, and the most.
const LIMITS: (i64, i64) = (20, 100);
/// Largest `offset`.
const FURTHEST: i64 = 10_000;

pub(super) async fn create(
    State(workspace): Shared,
    Extension(Version(version)): Extension<Version>,
    by: By,
    Body(mut settings): Body,
) -> Answer {
    settings.remove(ACCESS);
    trigger_json::is_of(&settings, workspace.id)?;
    fill_defaults(&mut settings, version >= 22);
    let name = settings.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    by.audit("job.create", &name).await?;
    let job_id = workspace.engine.create_job(settings, by.who()).await?;
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
    answer.insert("run_as_user_name".to_owned(), job.creator.clone().into());
    put_trigger(&workspace, &job, &query, &mut answer).await?;
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

/// How the trigger of a job stands, as far as that is asked for.
async fn put_trigger(
    workspace: &Workspace,
    job: &Job,
    query: &Query,
    answer: &mut Map<String, Value>,
) -> Result<(), ApiError> {
    let (state, history) = (query.flag("include_trigger_state")?, query.flag("include_trigger_history")?);
    if !state && !history {
        return Ok(());
    }
    let kept = workspace.jobs.trigger_states(Some(job.job_id)).await?.pop();
    let known = kept.and_then(|(_, kept)| trigger_json::State::of(&answer["settings"], &kept));
    let Some(known) = known else { return Ok(()) };
    if state {
        answer.insert("trigger_state".to_owned(), known.shown(workspace.id));
    }
    if history {
        answer.insert("trigger_history".to_owned(), known.history());
    }
    Ok(())
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
    let from = paging::place(query.text("page_token"))?;
    let filter = JobFilter { name: query.text("name").map(str::to_owned), skip: offset(&query)? };
    let jobs = workspace.jobs.jobs(&filter, from, limit as u32 + 1).await?;
    let page = Page::of(jobs, limit as usize, from, |job| job.job_id);
    let expand = query.flag("expand_tasks")?;
    let listed = page.items.iter().map(|job| in_list(job, expand)).collect();
    Ok(Json(page.answer("jobs", listed)))
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

pub(super) async fn update(State(workspace): Shared, by: By, body: Body) -> Answer {
    let job_id = body.id("job_id")?;
    let (mut new, remove) = (body.object("new_settings")?, body.texts("fields_to_remove")?.unwrap_or_default());
    new.remove(ACCESS);
    trigger_json::is_of(&new, workspace.id)?;
    by.audit("job.update", &job_id.to_string()).await?;
    workspace.engine.change_job(job_id, Change::Update { new, remove }, by.who()).await?;
    Ok(Json(json!({})))
}

pub(super) async fn reset(State(workspace): Shared, by: By, body: Body) -> Answer {
    let job_id = body.id("job_id")?;
    let mut settings = body.object("new_settings")?;
    settings.remove(ACCESS);
    trigger_json::is_of(&settings, workspace.id)?;
    fill_defaults(&mut settings, false);
    by.audit("job.reset", &job_id.to_string()).await?;
    workspace.engine.change_job(job_id, Change::Reset(settings), by.who()).await?;
    Ok(Json(json!({})))
}

pub(super) async fn delete(State(workspace): Shared, by: By, body: Body) -> Answer {
    let job_id = body.id("job_id")?;
    by.audit("job.delete", &job_id.to_string()).await?;
    workspace.engine.delete_job(job_id).await?;
    Ok(Json(json!({})))
}
