//! A span for each request, with the names of OpenTelemetry's conventions. The binary decides
//! whether anybody listens to them; if not, they cost next to nothing.
//!
//! Of a request its method, route, path and status are told; never its query, headers or body, where
//! secrets may stand.

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use opentelemetry::global;
use opentelemetry_http::HeaderExtractor;
use tokio::task::JoinHandle;
use tracing::field::Empty;
use tracing::{Instrument, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Target of all spans, by which a listener picks them.
pub const TARGET: &str = "lakescope::spans";

/// Answers inside a span, whose parent is what the request's `traceparent` names.
pub(crate) async fn of_request(request: Request, next: Next) -> Response {
    let span = span(&request);
    let parent = global::get_text_map_propagator(|known| known.extract(&HeaderExtractor(request.headers())));
    // Fails when nobody listens.
    let _ = span.set_parent(parent);
    let answer = next.run(request).instrument(span.clone()).await;
    span.record("http.response.status_code", answer.status().as_u16());
    if answer.status().is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    answer
}

fn span(request: &Request) -> Span {
    let method = method(request.method());
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let name = route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}"));
    tracing::info_span!(
        target: TARGET,
        "request",
        otel.name = name,
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = route,
        url.path = request.uri().path(),
        http.response.status_code = Empty,
    )
}

/// A method that is none of HTTP's own is called `_OTHER`, as the conventions have it.
fn method(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("_OTHER")
}

/// Runs what may wait on a thread for that, inside the span of the request.
pub(crate) fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let span = Span::current();
    tokio::task::spawn_blocking(move || span.in_scope(work))
}
