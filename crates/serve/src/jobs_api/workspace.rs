//! What clients ask of a workspace before they come to jobs.

use super::asked::{Query, base};
use super::{ApiError, Shared};
use crate::guard::Asking;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::{Extension, Json};
use serde_json::{Value, json};

/// The first request of every client, without a token.
pub(super) async fn discovery(State(workspace): Shared, headers: HeaderMap) -> Json<Value> {
    let id = workspace.id;
    Json(json!({
        "oidc_endpoint": format!("{}/oidc", base(&headers)),
        "workspace_id": id.to_string(),
        "account_id": format!("00000000-0000-4000-8000-{:012x}", id & 0xffff_ffff_ffff),
        "cloud": "AWS",
        "host_type": "WORKSPACE_HOST",
    }))
}

/// Tokens are made by `lakescope token`; nobody signs in here.
pub(super) async fn no_oidc() -> ApiError {
    ApiError::no_such_path()
}

pub(super) async fn me(Extension(asking): Extension<Asking>) -> Json<Value> {
    Json(json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
        "id": asking.who,
        "userName": asking.who,
        "displayName": asking.who,
        "active": true,
        "groups": [{ "display": asking.role.name() }],
    }))
}

/// See [`nothing`].
pub(super) async fn no_cluster(query: Query) -> ApiError {
    let id = query.text("cluster_id").unwrap_or_default();
    ApiError::invalid(format!("Cluster {id} does not exist"))
}

/// See [`nothing`]. Clients ask for it to see whether they are let in.
pub(super) async fn no_versions() -> Json<Value> {
    Json(json!({ "versions": [] }))
}

/// There is compute of neither kind here: programs run beside the server.
pub(super) async fn nothing() -> Json<Value> {
    Json(json!({}))
}
