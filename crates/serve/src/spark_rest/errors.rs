//! Errors in Spark's own words: a status and a line of text.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    status: StatusCode,
    message: String,
}

impl Failure {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub fn no_such_path() -> Self {
        Self::not_found("there is no such path in Spark's REST API")
    }

    pub fn no_such_app(id: &str, attempt: Option<&str>) -> Self {
        match attempt {
            None => Self::not_found(format!("no such app: {id}")),
            Some(attempt) => Self::not_found(format!("no such app: {id}/{attempt}")),
        }
    }

    pub fn no_threads() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "Thread dumps not available through the history server.")
    }

    /// A parameter of the wrong kind; the two spaces are Spark's.
    pub fn bad_parameter(name: &str, expected: &str, got: &str) -> Self {
        let message = format!("Bad value for parameter \"{name}\".  Expected a {expected}, got \"{got}\"");
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub fn internal(message: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], self.message).into_response()
    }
}
