//! Places that are few: who finds none is told when to come back.

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Logs that may be handed over at once: each takes a thread until it has come.
const UPLOADS: usize = 32;
/// When to come back.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// Places for those that hand a log over.
#[derive(Clone, Debug)]
pub(crate) struct Uploads(Arc<Semaphore>);

impl Default for Uploads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(UPLOADS)))
    }
}

/// Lets a log in when there is a place, everything else always.
pub(crate) async fn uploads(State(places): State<Uploads>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST || request.uri().path() != "/logs" {
        return next.run(request).await;
    }
    match places.0.try_acquire() {
        Ok(_place) => next.run(request).await,
        Err(_) => {
            let text = format!("{UPLOADS} logs are being handed over already; try again later");
            (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
        }
    }
}

/// Adds when to come back to an answer that says so.
pub(crate) async fn retry_after(mut answer: Response) -> Response {
    if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
        answer.headers_mut().entry(header::RETRY_AFTER).or_insert(RETRY_AFTER);
    }
    answer
}
