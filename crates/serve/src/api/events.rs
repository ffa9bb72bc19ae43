//! Live updates as server-sent events.

use super::Shared;
use super::failure::{self, Failure};
use crate::{History, Limits};
use axum::extract::{Extension, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::Serialize;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use utoipa::ToSchema;

/// How soon a change is told.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Places for listeners.
#[derive(Clone, Debug)]
pub(crate) struct Listeners(Arc<Semaphore>);

impl Listeners {
    pub fn new(limits: &Limits) -> Self {
        Self(Arc::new(Semaphore::new(limits.event_listeners)))
    }
}

/// Data of an `applications` event: the list of applications has changed, ask for it again.
#[derive(Serialize, ToSchema)]
#[schema(as = ApplicationsEvent)]
struct Applications {
    /// Whether the logs that were there at the start have been read.
    ready: bool,
    /// Number that changes with every change of the list; it starts anew with the server.
    revision: u64,
}

struct Told {
    history: Arc<dyn History>,
    last: Option<(u64, bool)>,
    _place: OwnedSemaphorePermit,
}

/// Live updates as server-sent events.
///
/// An event named `applications` comes at once, and then within half a second of every change of
/// the list of applications; its data is the JSON object of this schema. A comment comes every 15 s
/// while nothing changes. The stream ends when the client or the server does.
#[utoipa::path(
    get, path = "/events", operation_id = "listenToEvents", tag = "server",
    responses(
        (status = 200, description = "Events, without an end", body = Applications, content_type = "text/event-stream"),
        (
            status = 503, description = "Too many listen already (`--max-event-listeners`)", body = failure::Body,
            headers(("Retry-After" = u32, description = "Seconds to wait")),
        ),
    ),
)]
pub(super) async fn listen(
    State(history): Shared,
    Extension(listeners): Extension<Listeners>,
) -> Result<Response, Failure> {
    let Ok(place) = listeners.0.try_acquire_owned() else {
        return Err(Failure::busy("too many listen to events already (--max-event-listeners)"));
    };
    let told = Told { history, last: None, _place: place };
    let events = stream::unfold(told, |mut told| async move {
        loop {
            let now = (told.history.revision(), told.history.is_ready());
            if told.last != Some(now) {
                told.last = Some(now);
                let data = Applications { revision: now.0, ready: now.1 };
                let event = Event::default().event("applications").json_data(data).unwrap_or_default();
                return Some((Ok::<_, Infallible>(event), told));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}
