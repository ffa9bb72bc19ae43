//! Logs that somebody hands over.

use super::failure::Failure;
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

/// What became of it.
#[derive(Serialize)]
struct Taken {
    id: String,
    attempt: Option<String>,
    link: String,
}

/// Takes in a log: `name` is that of its file, the body its bytes in any codec Spark writes.
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
    let added = tokio::task::spawn_blocking(move || history.add(&owned, &mut content)).await;
    let added = added.unwrap_or_else(|_| Err(Added::Failed("reading the log failed".to_owned())));
    let outcome = if added.is_ok() { "done" } else { "refused" };
    audited(outcome).await.map_err(|why| Failure::internal(&why))?;
    match added {
        Ok((id, attempt)) => {
            let segment = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let attempt_path = attempt.as_deref().map(|a| format!("/{}", segment(a))).unwrap_or_default();
            let link = format!("/applications/{}{attempt_path}", segment(&id).replace('+', "%20"));
            Ok((StatusCode::CREATED, Json(Taken { id, attempt, link })).into_response())
        }
        Err(Added::Refused(why)) => Err(Failure::bad_request(why, "hand over an event log as Spark wrote it")),
        Err(Added::Failed(why)) => Err(Failure::internal(&why)),
    }
}
