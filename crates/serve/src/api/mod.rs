//! The API of the pages, under `/api/lakescope/v1`: what Spark's REST API does not tell. Times are
//! epoch ms, durations ms, sizes bytes; what is not known is null, never 0.
//!
//! Each operation is one function with its description, beside the values that it answers with;
//! `operations` lists them. The OpenAPI document is made from the same list.

mod applications;
mod asked;
mod columns;
mod comparison;
mod diagnosis;
mod events;
mod failure;
mod logs;
mod me;
mod openapi;
mod page;
mod reading;
mod settings;
mod shuffle;
mod sql;
mod stages;
mod streams;
#[cfg(target_os = "linux")]
mod task_log;
mod timeline;
pub(crate) mod tools;

pub(crate) use columns::KIND as COLUMNS;
pub(crate) use events::Listeners;
pub(crate) use openapi::shapes;

use crate::{History, Opened};
use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use failure::Failure;
use serde::Serialize;
use std::sync::Arc;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

type Shared = State<Arc<dyn History>>;
type Answer = Result<Response, Failure>;
type Operations = OpenApiRouter<Arc<dyn History>>;

/// Bytes of the longest text that is read.
const TEXT_BYTES: usize = 4 << 20;

pub(crate) fn router() -> Router<Arc<dyn History>> {
    Router::from(operations()).fallback(|| async { Failure::no_such_path() })
}

/// Everything that can be asked.
fn operations() -> Operations {
    let operations = OpenApiRouter::new()
        .routes(routes!(applications::show))
        .nest("/applications/{id}", of_application())
        .nest("/applications/{id}/{attempt}", of_application())
        .routes(routes!(comparison::show))
        .routes(routes!(shuffle::show))
        .routes(routes!(events::listen))
        .routes(routes!(logs::add))
        .routes(routes!(me::show))
        .routes(routes!(openapi::show))
        .routes(routes!(reading::read).layer(DefaultBodyLimit::max(TEXT_BYTES)));
    #[cfg(target_os = "linux")]
    let operations = operations.routes(routes!(task_log::show));
    operations
}

/// What can be asked of an application, or of one of its attempts.
fn of_application() -> Operations {
    OpenApiRouter::new()
        .routes(routes!(diagnosis::show))
        .routes(routes!(page::show))
        .routes(routes!(timeline::show))
        .routes(routes!(timeline::show_tasks))
        .routes(routes!(sql::show_all))
        .routes(routes!(sql::show))
        .routes(routes!(streams::show))
        .routes(routes!(settings::show))
        .routes(routes!(stages::show))
        .routes(routes!(stages::show_tasks))
        .routes(routes!(stages::show_columns))
        .routes(routes!(shuffle::show_stage))
}

fn open(history: &dyn History, id: &str, attempt: Option<&str>) -> Result<Arc<Opened>, Failure> {
    let opened = history.open(id, attempt).map_err(|why| Failure::internal(&why))?;
    opened.ok_or_else(|| Failure::no_such_application(id, attempt))
}

/// Runs what may read a log on a thread that may wait.
async fn waiting(answer: impl FnOnce() -> Answer + Send + 'static) -> Answer {
    crate::spans::spawn_blocking(answer).await.map_err(|_| Failure::internal("answering failed"))?
}

fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => Failure::internal(&error.to_string()).into_response(),
    }
}
