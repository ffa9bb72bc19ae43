//! Logs that somebody hands over.

use super::failure::{self, Failure};
use super::openapi::shapes::Bytes;
use super::{Answer, Shared};
use crate::Added;
use crate::guard::{Asking, Guard};
use crate::params::Params;
use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, RawQuery, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use futures::TryStreamExt;
use serde::Serialize;
use std::sync::Arc;
use tokio_util::io::{StreamReader, SyncIoBridge};
use utoipa::{IntoParams, ToSchema};

/// What became of a log.
#[derive(Serialize, ToSchema)]
#[schema(as = TakenLog)]
struct Taken {
    /// Application id.
    id: String,
    /// Attempt id, where the application has attempts.
    attempt: Option<String>,
    /// Path of its page on this server.
    link: String,
}

/// A log that somebody hands over.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)] // Says what `Params` are asked for.
struct Handed {
    /// Name of the log's file; its ending says nothing, the codec is found by content.
    #[param(required = false, default = "log")]
    name: String,
}

/// Takes in a log.
///
/// The body is the log's bytes as Spark wrote them, plain or in any codec of Spark, or a zip archive
/// of them. It is kept in the data directory; the answer comes when it has been read. Needs the role
/// `operator`.
#[utoipa::path(
    post, path = "/logs", operation_id = "addLog", tag = "applications", params(Handed),
    request_body(content = inline(Bytes), content_type = "application/octet-stream", description = "Bytes of the log"),
    responses(
        (status = 201, description = "It was read", body = Taken),
        (status = 400, description = "It is no event log, empty, or larger than `--max-upload`", body = failure::Body),
        (
            status = 503, description = "Too many logs are being handed over", body = String, content_type = "text/plain",
            headers(("Retry-After" = u32, description = "Seconds to wait")),
        ),
    ),
)]
pub(super) async fn add(
    State(history): Shared,
    Extension(guard): Extension<Arc<Guard>>,
    Extension(asking): Extension<Asking>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Answer {
    let name = Params::of(query.as_deref()).get("name").unwrap_or("log").to_owned();
    let audited = |outcome: &'static str| guard.audit(&asking, "log.add", &name, outcome);
    audited("asked").await.map_err(|why| Failure::internal(&why))?;
    let stream = StreamReader::new(body.into_data_stream().map_err(std::io::Error::other));
    let (owned, mut content) = (name.clone(), SyncIoBridge::new(stream));
    let added = crate::spans::spawn_blocking(move || history.add(&owned, &mut content)).await;
    let added = added.unwrap_or_else(|_| Err(Added::Failed("reading the log failed".to_owned())));
    let outcome = if added.is_ok() { "done" } else { "refused" };
    audited(outcome).await.map_err(|why| Failure::internal(&why))?;
    match added {
        Ok((id, attempt)) => {
            let link = crate::history::page(&id, attempt.as_deref());
            Ok((StatusCode::CREATED, Json(Taken { id, attempt, link })).into_response())
        }
        Err(Added::Refused(why)) => Err(Failure::bad_request(why, "hand over an event log as Spark wrote it")),
        Err(Added::Failed(why)) => Err(Failure::internal(&why)),
    }
}
