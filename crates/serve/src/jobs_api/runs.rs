//! Runs: started, shown, listed, repaired, cancelled, deleted.

use super::asked::{Body, By, Query};
use super::jobs::offset;
use super::paging::{self, Page};
use super::permissions::ACCESS;
use super::runs_json::{Shown, of_run, of_task_run};
use super::{Answer, ApiError, Shared, Version};
use crate::clock::now_ms;
use axum::extract::State;
use axum::{Extension, Json};
use run::book::Given;
use run::engine::{Repair, RunNow, Submit};
use run::repair::Request;
use run::settings::single_task;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use store::jobs::RunFilter;

/// Runs on a page: what is given where nothing is asked, what 0 means, and the most.
const LIMITS: (i64, i64, i64) = (20, 25, 26);
/// Bytes of the longest parameters of the older kinds, as JSON.
const PARAMETER_BYTES: usize = 10_000;
/// Bytes of the longest job parameters together.
const JOB_PARAMETER_BYTES: usize = 1 << 20;

/// Parameters of the older kinds.
const OLDER: [&str; 8] = [
    "jar_params",
    "notebook_params",
    "python_params",
    "python_named_params",
    "spark_submit_params",
    "sql_params",
    "dbt_commands",
    "pipeline_params",
];

fn overriding(body: &Body) -> Result<Map<String, Value>, ApiError> {
    let mut given = Map::new();
    for name in OLDER {
        // Some clients send all of them.
        let is_empty = |value: &&Value| value.is_null() || **value == json!([]) || **value == json!({});
        let Some(value) = body.0.get(name).filter(|value| !is_empty(value)) else { continue };
        if value.to_string().len() > PARAMETER_BYTES {
            return Err(ApiError::invalid(format!("{name} is larger than {PARAMETER_BYTES} bytes as JSON")));
        }
        if name.starts_with("python") && !value.to_string().is_ascii() {
            return Err(ApiError::invalid(format!("{name} must be made of ASCII characters only")));
        }
        given.insert(name.to_owned(), value.clone());
    }
    if given.contains_key("jar_params") && given.contains_key("notebook_params") {
        return Err(ApiError::invalid("jar_params and notebook_params exclude one another"));
    }
    Ok(given)
}

fn job_parameters(body: &Body) -> Result<BTreeMap<String, String>, ApiError> {
    let parameters = body.text_map("job_parameters")?;
    let bytes: usize = parameters.iter().map(|(name, value)| name.len() + value.len()).sum();
    match bytes > JOB_PARAMETER_BYTES {
        true => Err(ApiError::invalid(format!("job_parameters are larger than {JOB_PARAMETER_BYTES} bytes"))),
        false => Ok(parameters),
    }
}

pub(super) async fn run_now(State(workspace): Shared, by: By, body: Body) -> Answer {
    let queue = body.object("queue")?;
    let run = RunNow {
        job_id: body.id("job_id")?,
        who: by.who().to_owned(),
        parameters: job_parameters(&body)?,
        overriding: overriding(&body)?,
        only: body.texts("only")?.filter(|only| !only.is_empty()),
        token: body.text("idempotency_token")?,
        queues: queue.get("enabled").and_then(Value::as_bool),
    };
    by.audit("job.run", &run.job_id.to_string()).await?;
    let started = workspace.engine.run_now(run).await?;
    Ok(Json(json!({ "run_id": started.id, "number_in_job": started.number })))
}

pub(super) async fn submit(State(workspace): Shared, by: By, Body(mut settings): Body) -> Answer {
    let token = Body(settings.clone()).text("idempotency_token")?;
    settings.remove("idempotency_token");
    settings.remove(ACCESS);
    single_task(&mut settings);
    let name = settings.get("run_name").and_then(Value::as_str).unwrap_or_default().to_owned();
    by.audit("run.submit", &name).await?;
    let run_id = workspace.engine.submit(Submit { settings, who: by.who().to_owned(), token }).await?;
    Ok(Json(json!({ "run_id": run_id })))
}

pub(super) async fn show(
    State(workspace): Shared,
    Extension(Version(version)): Extension<Version>,
    query: Query,
) -> Answer {
    let run_id = query.id("run_id")?;
    let shown = Shown {
        base: query.base(),
        workspace: workspace.id,
        now_ms: now_ms(),
        history: query.flag("include_history")?,
        resolved: query.flag("include_resolved_values")?,
    };
    let mut answer = match workspace.jobs.run(run_id).await? {
        Some(run) => of_run(&run, Some(&workspace.jobs.task_runs(run_id).await?), &shown),
        None => {
            let task = workspace.jobs.task_run(run_id).await?.ok_or_else(|| ApiError::no_run(run_id))?;
            let run = workspace.jobs.run(task.run_id).await?.ok_or_else(|| ApiError::no_run(run_id))?;
            of_task_run(&run, &task, &workspace.jobs.task_runs(task.run_id).await?, &shown)
        }
    };
    let from = paging::item(query.text("page_token"))?;
    let arrays = ["tasks", "job_clusters", "job_parameters", "iterations", "repair_history"];
    if version >= 22 && paging::cut(&mut answer, &arrays, from) {
        answer.insert("next_page_token".to_owned(), paging::next(from));
        answer.insert("has_more".to_owned(), true.into());
    }
    Ok(Json(answer.into()))
}

pub(super) async fn list(State(workspace): Shared, query: Query) -> Answer {
    let limit = match query.number("limit")?.unwrap_or(LIMITS.0) {
        0 => LIMITS.1,
        limit if limit > LIMITS.2 => {
            return Err(ApiError::invalid(format!("Invalid limit {limit} - it has to be no more than {}.", LIMITS.2)));
        }
        limit if limit < 0 => return Err(ApiError::invalid(format!("limit must not be negative, as {limit} is"))),
        limit => limit,
    } as usize;
    let filter = filter(&query)?;
    let from = paging::place(query.text("page_token"))?;
    let runs = workspace.jobs.runs(&filter, from, limit as u32 + 1).await?;
    let page = Page::of(runs, limit, from, |run| (run.state.start_ms, run.run_id));
    let expand = query.flag("expand_tasks")?;
    let shown =
        Shown { base: query.base(), workspace: workspace.id, now_ms: now_ms(), history: false, resolved: false };
    let mut listed = Vec::with_capacity(page.items.len());
    for run in &page.items {
        let tasks = if expand { Some(workspace.jobs.task_runs(run.run_id).await?) } else { None };
        listed.push(Value::Object(of_run(run, tasks.as_deref(), &shown)));
    }
    Ok(Json(page.answer("runs", listed)))
}

fn filter(query: &Query) -> Result<RunFilter, ApiError> {
    let is_over = match (query.flag("active_only")?, query.flag("completed_only")?) {
        (true, true) => return Err(ApiError::invalid("active_only and completed_only exclude one another")),
        (true, false) => Some(false),
        (false, true) => Some(true),
        (false, false) => None,
    };
    let run_type = query.text("run_type").map(str::to_owned);
    if let Some(other) = run_type.as_deref().filter(|kind| !["JOB_RUN", "SUBMIT_RUN", "WORKFLOW_RUN"].contains(kind)) {
        return Err(ApiError::invalid(format!("run_type {other:?} is none of JOB_RUN, SUBMIT_RUN, WORKFLOW_RUN")));
    }
    Ok(RunFilter {
        job_id: query.number("job_id")?,
        is_over,
        run_type,
        from_ms: query.number("start_time_from")?,
        to_ms: query.number("start_time_to")?,
        skip: offset(query)?,
    })
}

pub(super) async fn repair(State(workspace): Shared, by: By, body: Body) -> Answer {
    let run_id = body.id("run_id")?;
    let request = Request {
        all_failed: body.flag("rerun_all_failed_tasks")?,
        tasks: body.texts("rerun_tasks")?.unwrap_or_default(),
        dependents: body.flag("rerun_dependent_tasks")?,
        latest_repair_id: body.number("latest_repair_id")?.map(i64::unsigned_abs),
    };
    let given = Given { parameters: job_parameters(&body)?, overriding: overriding(&body)? };
    let repair = Repair { run_id, request, given };
    by.audit("run.repair", &run_id.to_string()).await?;
    let repair_id = workspace.engine.repair(repair).await?;
    Ok(Json(json!({ "repair_id": repair_id })))
}

pub(super) async fn cancel(State(workspace): Shared, by: By, body: Body) -> Answer {
    let run_id = body.id("run_id")?;
    by.audit("run.cancel", &run_id.to_string()).await?;
    workspace.engine.cancel(run_id).await?;
    Ok(Json(json!({})))
}

pub(super) async fn cancel_all(State(workspace): Shared, by: By, body: Body) -> Answer {
    let (job_id, only_queued) = (body.number("job_id")?, body.flag("all_queued_runs")?);
    if job_id.is_none() && !only_queued {
        return Err(ApiError::invalid("job_id is missing; all_queued_runs cancels the queued runs of all jobs"));
    }
    let object = job_id.map_or_else(|| "all queued runs".to_owned(), |id| id.to_string());
    by.audit("run.cancel-all", &object).await?;
    workspace.engine.cancel_all(job_id, only_queued).await?;
    Ok(Json(json!({})))
}

pub(super) async fn delete(State(workspace): Shared, by: By, body: Body) -> Answer {
    let run_id = body.id("run_id")?;
    by.audit("run.delete", &run_id.to_string()).await?;
    workspace.engine.delete_run(run_id).await?;
    Ok(Json(json!({})))
}
