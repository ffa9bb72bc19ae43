//! Spark's REST API as its History Server 4.0.1 answers it: the same paths, parameters, JSON and
//! errors, without its caps (1,000 jobs, stages and SQL executions, 100,000 tasks).

mod applications;
mod environment;
mod errors;
mod executors;
mod figures;
mod jobs;
mod logs;
mod params;
mod sql;
mod sql_text;
mod stages;
mod storage;
mod tasks;
mod times;

pub(crate) use tasks::{error_message, locality};

use crate::answers::Lasting;
use crate::params::Params;
use crate::{History, Opened};
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use errors::Failure;
use model::Application;
use serde::Serialize;
use std::sync::Arc;

/// The version whose contract this is.
const VERSION: &str = "4.0.1";

type Shared = State<Arc<dyn History>>;

pub(crate) fn router() -> Router<Arc<dyn History>> {
    Router::new()
        .route("/version", get(version))
        .route("/applications", get(list))
        .route("/applications/", get(list))
        .route("/applications/{*path}", get(application))
        .fallback(|| async { Failure::no_such_path() })
}

async fn version() -> Response {
    #[derive(Serialize)]
    struct Version {
        spark: &'static str,
    }
    json(&Version { spark: VERSION })
}

async fn list(State(history): Shared, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    let params = Params::of(query.as_deref());
    Ok(json(&applications::list(history.list(), &params, crate::clock::now_ms())?))
}

/// Everything below `/applications/{id}`: a second segment that is no resource is an attempt.
async fn application(
    State(history): Shared,
    Path(path): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let answer = crate::spans::spawn_blocking(move || {
        let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
        answer(&*history, &segments, &Params::of(query.as_deref()))
    });
    answer.await.map_err(|_| Failure::internal("answering failed"))?
}

const RESOURCES: [&str; 9] = [
    "jobs",
    "stages",
    "executors",
    "allexecutors",
    "allmiscellaneousprocess",
    "storage",
    "environment",
    "sql",
    "streaming",
];

fn answer(history: &dyn History, segments: &[&str], params: &Params) -> Result<Response, Failure> {
    let (id, rest) = segments.split_first().ok_or_else(Failure::no_such_path)?;
    match rest {
        [] => Ok(json(&applications::one(history.list(), id)?)),
        ["logs"] => logs::archive(history, id, None),
        [attempt, "logs"] => logs::archive(history, id, Some(attempt)),
        [first, ..] if RESOURCES.contains(first) => resource(history, id, None, rest, params),
        [attempt] => Ok(json(&applications::attempt(history.list(), id, attempt)?)),
        [attempt, rest @ ..] => resource(history, id, Some(attempt), rest, params),
    }
}

fn resource(
    history: &dyn History,
    id: &str,
    attempt: Option<&str>,
    rest: &[&str],
    params: &Params,
) -> Result<Response, Failure> {
    let opened = history.open(id, attempt).map_err(|why| Failure::internal(&why))?;
    let opened = opened.ok_or_else(|| Failure::no_such_app(id, attempt))?;
    // Plans come from the log once more, which may not be readable just now.
    if let ["sql", path @ ..] = rest {
        return of_sql(history, (id, attempt), &opened, path, params);
    }
    let mut answer = of_application(opened.app(), rest, params)?;
    // What still runs has times that grow while nobody writes to its log.
    if opened.app().ended_ms.is_some() {
        answer.extensions_mut().insert(Lasting);
    }
    Ok(answer)
}

fn of_sql(
    history: &dyn History,
    (id, attempt): (&str, Option<&str>),
    opened: &Opened,
    path: &[&str],
    params: &Params,
) -> Result<Response, Failure> {
    let figures = match sql::wants_details(params) {
        true => opened.sql_metrics(|| history.sql_metrics(id, attempt)),
        false => None,
    };
    let wanted = sql::Wanted::of(opened.app(), figures.as_deref(), params);
    Ok(match path {
        [] => json(&wanted.list(params)?),
        [execution] => json(&wanted.one(execution)?),
        _ => return Err(Failure::no_such_path()),
    })
}

fn of_application(app: &Application, path: &[&str], params: &Params) -> Result<Response, Failure> {
    Ok(match path {
        ["jobs"] => json(&jobs::list(app, params)?),
        ["jobs", id] => json(&jobs::one(app, number(id)?)?),
        ["stages"] => json(&stages::list(app, params)?),
        ["stages", id] => json(&stages::attempts(app, number(id)?, params)?),
        ["stages", id, attempt] => json(&stages::one(app, number(id)?, number(attempt)?, params)?),
        ["stages", id, attempt, "taskSummary"] => {
            json(&tasks::summary(stages::find(app, number(id)?, number(attempt)?)?, params)?)
        }
        ["stages", id, attempt, "taskList"] => {
            json(&tasks::list(app, stages::find(app, number(id)?, number(attempt)?)?, params)?)
        }
        ["executors"] => json(&executors::active(app)),
        ["allexecutors"] => json(&executors::all(app)),
        ["executors", _, "threads"] => return Err(Failure::no_threads()),
        ["allmiscellaneousprocess"] => json(&executors::processes(app)),
        ["storage", "rdd"] => json(&storage::list(app)),
        ["storage", "rdd", id] => json(&storage::one(app, number(id)?)?),
        ["environment"] => json(&environment::of(app)),
        // Only a running application has statistics of its DStreams.
        ["streaming", ..] => return Err(Failure::not_found(format!("no streaming listener attached to {}", app.name))),
        _ => return Err(Failure::no_such_path()),
    })
}

/// A number in a path; anything else is a path that does not exist, as in Spark.
fn number(segment: &str) -> Result<u32, Failure> {
    segment.parse().map_err(|_| Failure::no_such_path())
}

/// JSON without a copy of the tree.
fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => Failure::internal(&error.to_string()).into_response(),
    }
}
