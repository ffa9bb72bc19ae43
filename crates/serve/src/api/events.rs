//! Live updates as server-sent events.

use super::Shared;
use super::failure::Failure;
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

/// That the list of applications has changed: a client asks for it again.
#[derive(Serialize)]
struct Applications {
    ready: bool,
    revision: u64,
}

struct Told {
    history: Arc<dyn History>,
    last: Option<(u64, bool)>,
    _place: OwnedSemaphorePermit,
}

/// An `applications` event at once, and then with every change of the list.
pub(super) async fn events(
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
