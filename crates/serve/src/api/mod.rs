//! The API of the pages, under `/api/lakescope/v1`: what Spark's REST API does not tell. Times are
//! epoch ms, durations ms, sizes bytes; what is not known is null, never 0.

mod applications;
mod columns;
mod comparison;
mod events;
mod failure;
mod logs;
mod page;
mod reading;
mod settings;
mod shuffle;
mod sql;
mod stages;
mod streams;
mod timeline;
pub(crate) mod tools;

pub(crate) use events::Listeners;

use crate::guard::Asking;
use crate::params::Params;
use crate::{History, Opened};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Extension, Path, RawQuery, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use failure::Failure;
use serde::Serialize;
use std::sync::Arc;

type Shared = State<Arc<dyn History>>;
type Answer = Result<Response, Failure>;

/// Bytes of the longest text that is read.
const TEXT_BYTES: usize = 4 << 20;

pub(crate) fn router() -> Router<Arc<dyn History>> {
    Router::new()
        .route("/applications", get(list))
        .route("/applications/{*path}", get(application))
        .route("/compare", get(compare))
        .route("/shuffle", get(shuffle_answer))
        .route("/events", get(events::events))
        .route("/logs", post(logs::add))
        .route("/me", get(me))
        .route("/read", post(read).layer(DefaultBodyLimit::max(TEXT_BYTES)))
        .fallback(|| async { Failure::no_such_path() })
}

/// Who asks, and what they may do.
async fn me(Extension(asking): Extension<Asking>) -> Response {
    json(&serde_json::json!({ "name": asking.who, "role": asking.role.name() }))
}

async fn list(State(history): Shared) -> Answer {
    waiting(move || Ok(json(&applications::list(&*history)))).await
}

async fn compare(State(history): Shared, RawQuery(query): RawQuery) -> Answer {
    waiting(move || comparison::answer(&*history, &Params::of(query.as_deref()))).await
}

async fn shuffle_answer(RawQuery(query): RawQuery) -> Answer {
    waiting(move || shuffle::given(&Params::of(query.as_deref()))).await
}

async fn read(State(history): Shared, RawQuery(query): RawQuery, body: String) -> Answer {
    waiting(move || reading::answer(&history.config(), &Params::of(query.as_deref()), &body)).await
}

/// Everything below `/applications/{id}`: a second segment that is no resource is an attempt.
async fn application(State(history): Shared, Path(path): Path<String>, RawQuery(query): RawQuery) -> Answer {
    waiting(move || {
        let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
        let params = Params::of(query.as_deref());
        let (id, attempt, rest) = match segments[..] {
            [] => return Err(Failure::no_such_path()),
            [id, ref rest @ ..] if rest.first().is_some_and(|first| RESOURCES.contains(first)) => (id, None, rest),
            [id, attempt, ref rest @ ..] => (id, Some(attempt), rest),
            [_] => return Err(Failure::no_such_path()),
        };
        let opened = open(&*history, id, attempt)?;
        resource(&*history, &opened, rest, &params)
    })
    .await
}

const RESOURCES: [&str; 7] = ["diagnosis", "page", "timeline", "sql", "stages", "streams", "settings"];

fn resource(history: &dyn History, opened: &Opened, path: &[&str], params: &Params) -> Answer {
    let app = opened.app();
    Ok(match path {
        ["diagnosis"] => json(opened.report()),
        ["page"] => {
            let (usual, running) = applications::around(history, app);
            json(&page::of(opened, usual, running))
        }
        ["timeline"] => json(&timeline::of(opened, &timeline::Window::of(app, params)?)),
        ["timeline", "tasks"] => timeline::tasks(opened, &timeline::Window::of(app, params)?)?,
        ["sql"] => json(&sql::list(opened)),
        ["sql", id] => json(&sql::one(opened, number(id)?)?),
        ["streams"] => json(&streams::list(opened)),
        ["settings"] => json(&settings::differences(history, app, params)?),
        ["stages", id, attempt] => json(&stages::one(opened, number(id)?, number(attempt)?)?),
        ["stages", id, attempt, "tasks"] => json(&stages::tasks(app, number(id)?, number(attempt)?, params)?),
        ["stages", id, attempt, "tasks.columns"] => stages::columns(app, number(id)?, number(attempt)?)?,
        ["stages", id, attempt, "shuffle"] => shuffle::of_stage(app, number(id)?, number(attempt)?, params)?,
        _ => return Err(Failure::no_such_path()),
    })
}

fn open(history: &dyn History, id: &str, attempt: Option<&str>) -> Result<Arc<Opened>, Failure> {
    let opened = history.open(id, attempt).map_err(|why| Failure::internal(&why))?;
    opened.ok_or_else(|| Failure::no_such_application(id, attempt))
}

/// Runs what may read a log on a thread that may wait.
async fn waiting(answer: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    tokio::task::spawn_blocking(answer).await.map_err(|_| Failure::internal("answering failed"))?
}

fn number<T: std::str::FromStr>(segment: &str) -> Result<T, Failure> {
    segment.parse().map_err(|_| Failure::no_such_path())
}

fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => Failure::internal(&error.to_string()).into_response(),
    }
}
