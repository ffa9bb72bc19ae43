//! Two runs side by side, as `lakescope compare` writes them.

use super::failure::{self, Failure};
use super::openapi::shapes::Comparison;
use super::{Answer, Shared, json, open, waiting};
use crate::params::Params;
use crate::{History, Opened};
use axum::extract::{RawQuery, State};
use std::sync::Arc;
use utoipa::IntoParams;

/// Two runs, each an application id or `ID/ATTEMPT`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)] // Says what `Params` are asked for.
struct TwoRuns {
    /// The run that the other is compared with; several make a history, of which the median run of
    /// the last ten that ended well is taken.
    base: Vec<String>,
    /// The run in question.
    new: String,
}

/// Two runs side by side.
///
/// Takes the difference of the wall times apart: data, plan, cluster, configuration, findings, a
/// slower machine, start-up and rest, which add up. What `lakescope compare` prints.
#[utoipa::path(
    get, path = "/compare", operation_id = "compareRuns", tag = "tools", params(TwoRuns),
    responses(
        (status = 200, description = "The comparison", body = Comparison),
        (status = 400, description = "A run is missing", body = failure::Body),
        (status = 404, description = "There is no such application or attempt", body = failure::Body),
    ),
)]
pub(super) async fn show(State(history): Shared, RawQuery(query): RawQuery) -> Answer {
    waiting(move || answer(&*history, &Params::of(query.as_deref()))).await
}

/// The comparison of `new` with `base`, each an id or `ID/ATTEMPT`; several `base` make a history.
fn answer(history: &dyn History, params: &Params) -> Answer {
    let opened = |name: &str| {
        let (id, attempt) = name.split_once('/').map_or((name, None), |(id, attempt)| (id, Some(attempt)));
        open(history, id, attempt)
    };
    let missing = || Failure::bad_request("two runs are needed".to_owned(), "use ?base=ID&new=ID");
    let new = opened(params.get("new").ok_or_else(missing)?)?;
    let base: Vec<Arc<Opened>> = params.all("base").map(opened).collect::<Result<_, _>>()?;
    let apps: Vec<&model::Application> = base.iter().map(|opened| opened.app()).collect();
    match diagnose::compare::compare(&apps, new.app(), &history.config()) {
        Some(comparison) => Ok(json(&comparison)),
        None => Err(missing()),
    }
}
