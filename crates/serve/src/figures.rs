//! The server's own figures for Prometheus, at `/metrics`.

use crate::History;
use axum::extract::{Extension, MatchedPath, Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

const REQUESTS: &str = "lakescope_http_request_duration_seconds";
/// Upper bounds of the time classes, seconds.
const BOUNDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5, 10.0];

/// One recorder a process, however many routers there are.
static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Where figures are collected; `None` when another part of the process collects them already.
pub(crate) fn collector() -> Option<PrometheusHandle> {
    let build = || {
        let builder = PrometheusBuilder::new().set_buckets_for_metric(Matcher::Full(REQUESTS.to_owned()), &BOUNDS);
        let handle = builder.ok()?.install_recorder().ok()?;
        metrics::describe_histogram!(REQUESTS, metrics::Unit::Seconds, "Time to answer, by route and status");
        metrics::describe_gauge!("lakescope_applications", "Attempts of applications that can be opened");
        metrics::describe_gauge!("lakescope_unreadable_logs", "Logs and sources that cannot be read");
        Some(handle)
    };
    RECORDER.get_or_init(build).clone()
}

/// Notes how long an answer took. A path that is no route is one class, so that nobody can make
/// the figures grow.
pub(crate) async fn measure(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let method = method(request.method());
    let begun = Instant::now();
    let response = next.run(request).await;
    let status = response.status().as_u16().to_string();
    metrics::histogram!(REQUESTS, "method" => method, "route" => route, "status" => status)
        .record(begun.elapsed().as_secs_f64());
    response
}

/// A method that is none of HTTP's own is one class too.
fn method(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

/// All figures, in Prometheus' text form.
pub(crate) async fn show(
    State(history): State<Arc<dyn History>>,
    Extension(collector): Extension<Option<PrometheusHandle>>,
) -> Response {
    let counted = crate::spans::spawn_blocking(move || (history.list().len(), history.unreadable().len())).await;
    let (applications, unreadable) = counted.unwrap_or_default();
    metrics::gauge!("lakescope_applications").set(applications as f64);
    metrics::gauge!("lakescope_unreadable_logs").set(unreadable as f64);
    let text = collector.map(|collector| collector.render()).unwrap_or_default();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
