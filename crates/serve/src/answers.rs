//! Answers about applications that are over are the same each time: they are kept until the list of
//! applications changes, so that many who ask for the same do not cost its making each.

use crate::history::History;
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of all answers that are kept; those that were made first go first.
const ALL_BYTES: usize = 16 << 20;
/// Bytes of one that is kept.
const ONE_BYTES: usize = 1 << 20;

/// In an answer's extensions: it stays as it is as long as the list of applications does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lasting;

/// The answers that are kept.
#[derive(Debug)]
pub(crate) struct Answers {
    history: Arc<dyn History>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// State of the list that the answers are of.
    revision: u64,
    by_address: HashMap<String, (HeaderMap, Bytes)>,
    in_order: VecDeque<String>,
    bytes: usize,
}

impl Answers {
    pub(crate) fn new(history: Arc<dyn History>) -> Arc<Self> {
        Arc::new(Self { history, kept: Mutex::default() })
    }

    fn find(&self, address: &str, revision: u64) -> Option<Response> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.revision != revision {
            *kept = Kept { revision, ..Kept::default() };
        }
        let (headers, body) = kept.by_address.get(address)?;
        Some((headers.clone(), body.clone()).into_response())
    }

    fn keep(&self, address: String, revision: u64, headers: &HeaderMap, body: &Bytes) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.revision == revision && !kept.by_address.contains_key(&address) {
            kept.put(address, headers.clone(), body.clone());
        }
    }
}

impl Kept {
    fn put(&mut self, address: String, headers: HeaderMap, body: Bytes) {
        self.bytes += address.len() + body.len();
        self.in_order.push_back(address.clone());
        self.by_address.insert(address, (headers, body));
        while self.bytes > ALL_BYTES {
            let Some(oldest) = self.in_order.pop_front() else { return };
            let body = self.by_address.remove(&oldest).map_or(0, |(_, body)| body.len());
            self.bytes -= oldest.len() + body;
        }
    }
}

/// Gives an answer that is kept, else makes it and keeps it when it lasts.
pub(crate) async fn of(State(answers): State<Arc<Answers>>, request: Request, next: Next) -> Response {
    if request.method() != Method::GET {
        return next.run(request).await;
    }
    // Before the answer is made: one that is made while the list changes is of the list before.
    let revision = answers.history.revision();
    let address = request.uri().to_string();
    if let Some(answer) = answers.find(&address, revision) {
        return answer;
    }
    let (parts, body) = next.run(request).await.into_parts();
    let is_small = body.size_hint().upper().is_some_and(|bytes| bytes <= ONE_BYTES as u64);
    if parts.status != StatusCode::OK || parts.extensions.get::<Lasting>().is_none() || !is_small {
        return Response::from_parts(parts, body);
    }
    match to_bytes(body, ONE_BYTES).await {
        Ok(body) => {
            answers.keep(address, revision, &parts.headers, &body);
            Response::from_parts(parts, Body::from(body))
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let mut kept = Kept::default();
        for n in 0..40 {
            kept.put(format!("/{n:02}"), HeaderMap::new(), Bytes::from(vec![0; ONE_BYTES]));
        }
        assert_eq!((kept.by_address.len(), kept.in_order.len()), (15, 15));
        assert!(kept.by_address.contains_key("/39") && !kept.by_address.contains_key("/24"));
        assert_eq!(kept.bytes, 15 * (3 + ONE_BYTES));
    }
}
