//! The Databricks Jobs API, under `/api/2.0`, `/api/2.1` and `/api/2.2`: what clients of Jobs send
//! and read, word for word.
//!
//! A handler decodes a request, asks the engine or reads rows, and encodes the answer. The wire
//! form of runs stands in `runs_json`.

mod asked;
mod errors;
mod jobs;
mod output;
mod paging;
mod permissions;
mod runs;
mod runs_json;
mod trigger_json;
mod workspace;

pub(crate) use errors::{ApiError, refusal};

use crate::History;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Json, Router, middleware};
use run::engine::Engine;
use serde_json::Value;
use std::sync::Arc;
use store::jobs::Jobs;

/// Bytes of the longest body.
const BODY_BYTES: usize = 16 << 20;

/// What the Jobs API is about.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Runs the jobs.
    pub engine: Engine,
    /// What is kept of them.
    pub jobs: Jobs,
    /// A number that clients tell workspaces apart by.
    pub id: i64,
}

/// Version of the API that a client speaks: 20, 21 or 22.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version(u32);

type Shared = axum::extract::State<Arc<Workspace>>;
type Answer = Result<Json<Value>, ApiError>;

/// Paths that begin so are answered in the words of this API.
pub(crate) fn is_of(path: &str) -> bool {
    ["/api/2.0", "/api/2.1", "/api/2.2"].iter().any(|prefix| path.starts_with(prefix))
}

pub(crate) fn router(workspace: Workspace, history: Arc<dyn History>) -> Router {
    let id = HeaderValue::from(workspace.id);
    let workspace = Arc::new(workspace);
    let of_version = |version| of_version().layer(Extension(Version(version)));
    Router::new()
        .nest("/api/2.0", of_version(20))
        .nest("/api/2.1", of_version(21))
        .nest("/api/2.2", of_version(22))
        .route("/.well-known/databricks-config", get(workspace::discovery))
        .route("/oidc/{*path}", get(workspace::no_oidc))
        .with_state(workspace)
        .layer(Extension(history))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(middleware::map_response(move |mut response: Response| {
            response.headers_mut().insert(HeaderName::from_static("x-databricks-org-id"), id.clone());
            std::future::ready(response)
        }))
}

/// A server that runs no jobs says so.
pub(crate) fn none() -> Router {
    let off = Router::new().fallback(|| async { ApiError::no_jobs() });
    ["/api/2.0", "/api/2.1", "/api/2.2"].into_iter().fold(Router::new(), |all, path| all.nest(path, off.clone()))
}

fn of_version() -> Router<Arc<Workspace>> {
    Router::new()
        .route("/jobs/create", post(jobs::create))
        .route("/jobs/get", get(jobs::show))
        .route("/jobs/list", get(jobs::list))
        .route("/jobs/update", post(jobs::update))
        .route("/jobs/reset", post(jobs::reset))
        .route("/jobs/delete", post(jobs::delete))
        .route("/jobs/run-now", post(runs::run_now))
        .route("/jobs/runs/submit", post(runs::submit))
        .route("/jobs/runs/get", get(runs::show))
        .route("/jobs/runs/list", get(runs::list))
        .route("/jobs/runs/get-output", get(output::show))
        .route("/jobs/runs/export", get(output::export))
        .route("/jobs/runs/repair", post(runs::repair))
        .route("/jobs/runs/cancel", post(runs::cancel))
        .route("/jobs/runs/cancel-all", post(runs::cancel_all))
        .route("/jobs/runs/delete", post(runs::delete))
        .route("/permissions/jobs/{job_id}", get(permissions::show).put(permissions::refuse).patch(permissions::refuse))
        .route("/permissions/jobs/{job_id}/permissionLevels", get(permissions::levels))
        .route("/preview/scim/v2/Me", get(workspace::me))
        .route("/clusters/list", get(workspace::nothing))
        .route("/clusters/get", get(workspace::no_cluster))
        .route("/clusters/spark-versions", get(workspace::no_versions))
        .route("/sql/warehouses", get(workspace::nothing))
        .fallback(|| async { ApiError::no_such_path() })
        .method_not_allowed_fallback(|| async { ApiError::no_such_path() })
}
