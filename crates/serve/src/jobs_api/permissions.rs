//! Who may do what to a job, as far as roles of tokens tell it.

use super::{Answer, ApiError, Shared};
use axum::Json;
use axum::extract::{Path, State};
use run::engine::Refusal;
use serde_json::{Value, json};

/// A field of definitions that is not kept: the roles of tokens tell who may what.
pub(super) const ACCESS: &str = "access_control_list";

pub(super) async fn show(State(workspace): Shared, Path(job_id): Path<String>) -> Answer {
    let job_id = job_id.parse().map_err(|_| ApiError::invalid(format!("job_id {job_id:?} is no number")))?;
    let job = workspace.jobs.job(job_id).await?.ok_or(Refusal::NoJob(job_id))?;
    let level = |level: &str| json!([{ "permission_level": level, "inherited": false }]);
    let of_role = |role: &str, level: &str| {
        json!({ "group_name": role, "all_permissions":
            [{ "permission_level": level, "inherited": true, "inherited_from_object": ["/jobs/"] }] })
    };
    let list = [
        json!({ "user_name": job.creator, "display_name": job.creator, "all_permissions": level("IS_OWNER") }),
        of_role("admin", "CAN_MANAGE"),
        of_role("operator", "CAN_MANAGE"),
        of_role("viewer", "CAN_VIEW"),
    ];
    Ok(Json(json!({ "object_id": format!("/jobs/{job_id}"), "object_type": "job", ACCESS: list })))
}

pub(super) async fn levels() -> Json<Value> {
    let level = |level: &str, description: &str| json!({ "permission_level": level, "description": description });
    Json(json!({ "permission_levels": [
        level("CAN_VIEW", "see the job and its runs"),
        level("CAN_MANAGE_RUN", "run, cancel and repair it"),
        level("CAN_MANAGE", "change and delete it"),
        level("IS_OWNER", "made it"),
    ] }))
}

pub(super) async fn refuse() -> ApiError {
    ApiError::invalid(
        "permissions of a single job cannot be set: the role of a token decides (viewer, operator, admin); \
         `lakescope token create --role` makes one",
    )
}
