//! Pages for people that load nothing and run nothing, and the headers say so.

use crate::{History, Page};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;

type Shared = State<Arc<dyn History>>;

/// Style stands in the page; nothing else may come in, and no other page may frame it.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
];

pub(crate) fn router() -> Router<Arc<dyn History>> {
    Router::new()
        .route("/", get(applications))
        .route("/applications/{id}", get(application))
        .route("/applications/{id}/{attempt}", get(attempt))
}

async fn applications(State(history): Shared) -> Response {
    answered(history, "text/html; charset=utf-8", |h| h.page(&Page::Applications)).await
}

async fn application(State(history): Shared, Path(id): Path<String>) -> Response {
    answered(history, "text/html; charset=utf-8", move |h| h.page(&Page::Application { id: &id, attempt: None })).await
}

async fn attempt(State(history): Shared, Path((id, attempt)): Path<(String, String)>) -> Response {
    let page = move |h: &dyn History| h.page(&Page::Application { id: &id, attempt: Some(&attempt) });
    answered(history, "text/html; charset=utf-8", page).await
}

/// Runs what may read a log on a thread that may wait.
async fn answered(
    history: Arc<dyn History>,
    kind: &'static str,
    answer: impl FnOnce(&dyn History) -> Result<Option<String>, String> + Send + 'static,
) -> Response {
    let plain = "text/plain; charset=utf-8";
    let (status, kind, body) = match tokio::task::spawn_blocking(move || answer(&*history)).await {
        Ok(Ok(Some(body))) => (StatusCode::OK, kind, body),
        Ok(Ok(None)) => (StatusCode::NOT_FOUND, plain, "there is no such application; / lists all".to_owned()),
        Ok(Err(why)) => (StatusCode::INTERNAL_SERVER_ERROR, plain, why),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, plain, "answering failed".to_owned()),
    };
    (status, HEADERS, [(header::CONTENT_TYPE, kind)], body).into_response()
}
