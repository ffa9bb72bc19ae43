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
//! #     fn log_files(&self, _: &str, _: Option<&str>) -> Option<Result<Vec<serve::LogFile>, String>> { None }
//! #     fn add(&self, _: &str, _: &mut dyn std::io::Read) -> Result<(String, Option<String>), serve::Added> {
//! #         Err(serve::Added::Refused("no logs are taken".to_owned()))
//! #     }
//! #     fn page(&self, _: &serve::Page<'_>) -> Result<Option<String>, String> { Ok(None) }
//! #     fn config(&self) -> Arc<diagnose::Config> { Arc::default() }
//! #     fn is_ready(&self) -> bool { true }
//! #     fn revision(&self) -> u64 { 0 }
//! # }
//! let limits = serve::Limits::default();
//! let history = Arc::new(Nothing);
//! let router = serve::router(serve::App { history, door: serve::Door::Open, limits, workspace: None });
//! # let _ = async {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! serve::serve(listener, router, limits, std::future::pending()).await;
//! # Ok::<(), std::io::Error>(()) };
//! ```
//!
//! What it never does: read logs, keep state, know the command line or the environment.

mod answers;
mod api;
mod busy;
mod clock;
mod connections;
mod figures;
mod guard;
mod history;
#[cfg(target_os = "linux")]
mod jobs_api;
mod mcp;
mod pages;
mod params;
mod spans;
mod spark_rest;
mod web;

pub use connections::serve;
pub use guard::Door;
pub use history::{Added, History, Listed, LogFile, Opened, Page, Unreadable, Usage, Verdict, Worst};
#[cfg(target_os = "linux")]
pub use jobs_api::Workspace;
pub use mcp::over_stdio as mcp_over_stdio;
pub use spans::TARGET as SPANS;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Extension, Router, middleware};
use guard::Guard;
use std::sync::Arc;
use std::time::Duration;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate};

/// What is served, and to whom.
#[derive(Clone, Debug)]
pub struct App {
    /// Where applications come from.
    pub history: Arc<dyn History>,
    /// Who is let in.
    pub door: Door,
    /// Bounds.
    pub limits: Limits,
    /// Jobs, where they are run.
    #[cfg(target_os = "linux")]
    pub workspace: Option<Workspace>,
}

/// Bounds of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `--max-event-listeners`: who may listen to live updates at once.
    pub event_listeners: usize,
    /// `--client-timeout`: how long a client may stand still.
    pub client_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { event_listeners: 1_000, client_timeout: Duration::from_secs(30) }
    }
}

/// Answers 200 once what was there at the start has been read.
async fn ready(State(history): State<Arc<dyn History>>) -> (StatusCode, &'static str) {
    match history.is_ready() {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "still reading the logs that were there at the start"),
    }
}

/// All but what is as small as it gets: columns of numbers, each as narrow as they allow.
fn compression() -> CompressionLayer<impl Predicate> {
    let is_worth_it = DefaultPredicate::new().and(NotForContentType::const_new(api::COLUMNS));
    CompressionLayer::new().gzip(true).quality(CompressionLevel::Fastest).compress_when(is_worth_it)
}

/// Bytes of a form.
const FORM_BYTES: usize = 16 << 10;

/// All routes.
pub fn router(app: App) -> Router {
    let guard = Arc::new(Guard::new(app.door));
    let login = Router::new()
        .route("/login", get(pages::ask).post(guard::login).layer(DefaultBodyLimit::max(FORM_BYTES)))
        .route("/logout", post(guard::logout))
        .with_state(Arc::clone(&guard));
    let mcp = mcp::over_http(Arc::clone(&app.history));
    let few_uploads = middleware::from_fn_with_state(busy::Uploads::default(), busy::uploads);
    let kept = middleware::from_fn_with_state(answers::Answers::new(Arc::clone(&app.history)), answers::of);
    let pages_api = api::router().layer(few_uploads).layer(middleware::map_response(busy::retry_after));
    #[cfg(target_os = "linux")]
    let pages_api = pages_api.layer(Extension(app.workspace.clone()));
    #[cfg(target_os = "linux")]
    let jobs =
        app.workspace.map_or_else(jobs_api::none, |workspace| jobs_api::router(workspace, Arc::clone(&app.history)));
    #[cfg(not(target_os = "linux"))]
    let jobs = Router::new();
    Router::new()
        .nest_service("/mcp", mcp)
        .route("/health", get(|| async { "ok" }))
        .route("/ready", get(ready))
        .route("/metrics", get(figures::show))
        .merge(pages::router())
        .nest("/api/v1", spark_rest::router().layer(kept))
        .nest("/api/lakescope/v1", pages_api)
        .with_state(app.history)
        .merge(login)
        .merge(jobs)
        .layer(Extension(figures::collector()))
        .layer(Extension(api::Listeners::new(&app.limits)))
        .layer(Extension(Arc::clone(&guard)))
        .layer(middleware::from_fn_with_state(guard, guard::check))
        .layer(middleware::from_fn(figures::measure))
        .layer(middleware::from_fn(spans::of_request))
        .layer(compression())
}
