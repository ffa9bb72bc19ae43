//! Errors of the API: what was wrong with what was asked, and what to do next.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    status: StatusCode,
    message: String,
    next: Option<&'static str>,
}

impl Failure {
    /// What was wrong, in words.
    pub fn message(self) -> String {
        self.message
    }

    pub fn no_such_path() -> Self {
        Self::not_found("there is no such path in this API".to_owned())
    }

    pub fn not_found(message: String) -> Self {
        Self { status: StatusCode::NOT_FOUND, message, next: None }
    }

    pub fn no_such_application(id: &str, attempt: Option<&str>) -> Self {
        let attempt = attempt.map(|attempt| format!(", attempt {attempt}")).unwrap_or_default();
        Self {
            next: Some("the first page lists all"),
            ..Self::not_found(format!("there is no application {id}{attempt}"))
        }
    }

    pub fn no_such_stage(id: u32, attempt: u32) -> Self {
        Self::not_found(format!("the application has no stage {id} with attempt {attempt}"))
    }

    pub fn bad_request(message: String, next: &'static str) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message, next: Some(next) }
    }

    pub fn busy(message: &str) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, message: message.to_owned(), next: Some("try again later") }
    }

    pub fn internal(message: &str) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, message: message.to_owned(), next: None }
    }
}

/// What an answer that is none says.
#[derive(Serialize, ToSchema)]
#[schema(as = Failure)]
pub(super) struct Body {
    /// The failure.
    error: Error,
}

/// What went wrong, and what to do.
#[derive(Serialize, ToSchema)]
struct Error {
    /// What was wrong with what was asked: one sentence that names the value.
    message: String,
    /// What to do next.
    next: Option<&'static str>,
}

impl From<crate::params::Bad> for Failure {
    fn from(bad: crate::params::Bad) -> Self {
        let message = format!("{} must be {}, not {:?}", bad.name, bad.expected, bad.got);
        Self { status: StatusCode::BAD_REQUEST, message, next: None }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, Json(Body { error: Error { message: self.message, next: self.next } })).into_response()
    }
}
