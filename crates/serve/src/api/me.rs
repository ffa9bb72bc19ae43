//! Who asks.

use super::json;
use super::openapi::words::RoleName;
use crate::guard::Asking;
use axum::extract::Extension;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

/// Who asks, and what they may do.
#[derive(Serialize, ToSchema)]
struct Me {
    /// Name of the token; `anybody` of a server that asks for none.
    name: String,
    /// What the token allows.
    #[schema(value_type = RoleName)]
    role: &'static str,
}

/// Who asks, and what they may do.
#[utoipa::path(
    get, path = "/me", operation_id = "whoAmI", tag = "server",
    responses((status = 200, description = "Name and role", body = Me)),
)]
pub(super) async fn show(Extension(asking): Extension<Asking>) -> Response {
    json(&Me { name: asking.who, role: asking.role.name() })
}
