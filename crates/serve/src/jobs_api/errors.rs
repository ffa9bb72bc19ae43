//! Errors as clients of the Jobs API read them: a status, a code and a message.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use run::book::NotRepaired;
use run::engine::Refusal;
use run::repair::Refused;
use run::settings::Invalid;
use serde_json::json;

/// Bytes of the longest text of the guard.
const LONGEST_REFUSAL: usize = 4 << 10;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    /// A wrong value; also an unknown id of a job or run.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_PARAMETER_VALUE", message)
    }

    /// Something that is no JSON object, or a field of another type.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "MALFORMED_REQUEST", message)
    }

    pub fn no_such_path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "ENDPOINT_NOT_FOUND", "there is no such call in this API")
    }

    pub fn no_jobs() -> Self {
        Self::new(StatusCode::NOT_FOUND, "FEATURE_DISABLED", "this server runs no jobs; start it with --jobs")
    }

    pub fn no_run(run_id: i64) -> Self {
        Refusal::NoRun(run_id).into()
    }

    fn state(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_STATE", message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", message)
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        match refusal {
            Refusal::Definition(Invalid::Malformed(_)) => Self::malformed(message),
            Refusal::NoJob(_) | Refusal::NoRun(_) | Refusal::Value(_) | Refusal::Definition(Invalid::Value(_)) => {
                Self::invalid(message)
            }
            Refusal::Repair(NotRepaired::Refused(Refused::Active) | NotRepaired::NeverBegan(_)) | Refusal::State(_) => {
                Self::state(message)
            }
            Refusal::Repair(NotRepaired::Refused(_)) => Self::invalid(message),
            Refusal::Busy => Self::new(StatusCode::TOO_MANY_REQUESTS, "RESOURCE_EXHAUSTED", message),
            Refusal::Down | Refusal::NoLeader => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "TEMPORARILY_UNAVAILABLE", message)
            }
            Refusal::Repair(NotRepaired::Broken { .. }) | Refusal::Store(_) | Refusal::Leader(_) => {
                Self::internal(message)
            }
        }
    }
}

impl From<store::Error> for ApiError {
    fn from(error: store::Error) -> Self {
        Self::internal(error.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = Json(json!({ "error_code": self.code, "message": self.message }));
        let mut response = (self.status, body).into_response();
        if matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// What the guard says, in the form of this API.
pub(crate) async fn refusal(refusal: Response) -> Response {
    let (head, body) = refusal.into_parts();
    let message = axum::body::to_bytes(body, LONGEST_REFUSAL).await.unwrap_or_default();
    let code = match head.status {
        StatusCode::UNAUTHORIZED => "UNAUTHENTICATED",
        StatusCode::FORBIDDEN => "PERMISSION_DENIED",
        StatusCode::TOO_MANY_REQUESTS => "RESOURCE_EXHAUSTED",
        _ => "INTERNAL_ERROR",
    };
    let mut response = ApiError::new(head.status, code, String::from_utf8_lossy(&message)).into_response();
    for name in [header::RETRY_AFTER, header::WWW_AUTHENTICATE] {
        if let Some(value) = head.headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}
