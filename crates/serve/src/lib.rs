//! HTTP over the applications that were read: pages that begin with the answer, and Spark's own
//! REST contract, so that whatever reads a Spark History Server reads this.
//!
//! In goes a [`History`]: which applications there are, and how to get one. Out comes a router.
//! Handlers decode a request, call one function over [`model::Application`], encode its answer.
//!
//! ```
//! # use std::sync::Arc;
//! # #[derive(Debug)] struct Nothing;
//! # impl serve::History for Nothing {
//! #     fn list(&self) -> Vec<serve::Listed> { Vec::new() }
//! #     fn unreadable(&self) -> Vec<serve::Unreadable> { Vec::new() }
//! #     fn open(&self, _: &str, _: Option<&str>) -> Result<Option<Arc<serve::Opened>>, String> { Ok(None) }
//! #     fn log_files(&self, _: &str, _: Option<&str>) -> Option<Vec<std::path::PathBuf>> { None }
//! #     fn page(&self, _: &serve::Page<'_>) -> Result<Option<String>, String> { Ok(None) }
//! #     fn config(&self) -> Arc<diagnose::Config> { Arc::default() }
//! #     fn is_ready(&self) -> bool { true }
//! #     fn revision(&self) -> u64 { 0 }
//! # }
//! let router = serve::router(Arc::new(Nothing));
//! # let _: axum::Router = router;
//! ```
//!
//! What it never does: read logs, keep state, know the command line or the environment.

mod api;
mod history;
mod pages;
mod params;
mod spark_rest;

pub use history::{History, Listed, Opened, Page, Unreadable, Usage, Verdict, Worst};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use std::sync::Arc;
use tower_http::compression::CompressionLayer;

/// Answers 200 once what was there at the start has been read.
async fn ready(State(history): State<Arc<dyn History>>) -> (StatusCode, &'static str) {
    match history.is_ready() {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "still reading the logs that were there at the start"),
    }
}

/// All routes.
pub fn router(history: Arc<dyn History>) -> Router {
    Router::new()
        .route("/health", get(|| async { "ok" }))
        .route("/ready", get(ready))
        .merge(pages::router())
        .nest("/api/v1", spark_rest::router())
        .nest("/api/lakescope/v1", api::router())
        .layer(CompressionLayer::new().gzip(true))
        .with_state(history)
}
