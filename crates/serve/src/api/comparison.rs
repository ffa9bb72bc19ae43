//! Two runs side by side, as `lakescope compare` writes them.

use super::failure::Failure;
use super::{Answer, json, open};
use crate::params::Params;
use crate::{History, Opened};
use std::sync::Arc;

/// The comparison of `new` with `base`, each an id or `ID/ATTEMPT`; several `base` make a history.
pub(super) fn answer(history: &dyn History, params: &Params) -> Answer {
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
