//! The whole report on an application, as `lakescope diagnose --format json` writes it.

use super::asked::Asked;
use super::openapi::shapes::Report;
use super::{Answer, failure, json};

/// The diagnosis of an application.
///
/// What `lakescope diagnose --format json` prints: findings with evidence, cost and remedies, the
/// worst root first, and what was checked and found fine. Fields that are not known are left out.
#[utoipa::path(
    get, path = "/diagnosis", operation_id = "getDiagnosis", tag = "applications",
    responses(
        (status = 200, description = "The report", body = Report),
        (status = 404, description = "There is no such application or attempt", body = failure::Body),
    ),
)]
pub(super) async fn show(asked: Asked) -> Answer {
    asked.answer(|_, opened, _| Ok(json(opened.report()))).await
}
