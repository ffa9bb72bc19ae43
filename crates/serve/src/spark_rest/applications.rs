//! `/applications`: what there is, newest end first.

use super::errors::Failure;
use super::times::{self, Time};
use crate::Listed;
use crate::params::Params;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct ApplicationInfo {
    id: String,
    name: String,
    attempts: Vec<AttemptInfo>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AttemptInfo {
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_id: Option<String>,
    start_time: Time,
    end_time: Time,
    last_updated: Time,
    duration: i64,
    spark_user: String,
    completed: bool,
    app_spark_version: String,
    start_time_epoch: i64,
    end_time_epoch: i64,
    last_updated_epoch: i64,
}

impl AttemptInfo {
    fn of(listed: &Listed) -> Self {
        let end = listed.ended_ms.unwrap_or(-1);
        let until = listed.ended_ms.unwrap_or(listed.last_event_ms);
        Self {
            attempt_id: listed.attempt.clone(),
            start_time: Time(listed.started_ms),
            end_time: Time(end),
            last_updated: Time(listed.updated_ms),
            duration: (until - listed.started_ms).max(0),
            spark_user: listed.user.clone(),
            completed: listed.ended_ms.is_some(),
            app_spark_version: listed.spark_version.clone(),
            start_time_epoch: listed.started_ms,
            end_time_epoch: end,
            last_updated_epoch: listed.updated_ms,
        }
    }
}

/// Attempts of one application together, the newest first; applications by the end of their
/// newest attempt, the latest first.
fn grouped(mut listed: Vec<Listed>) -> Vec<ApplicationInfo> {
    listed.sort_by(|a, b| (&a.id, b.started_ms).cmp(&(&b.id, a.started_ms)));
    let mut apps: Vec<ApplicationInfo> = Vec::new();
    for attempt in &listed {
        match apps.last_mut().filter(|app| app.id == attempt.id) {
            Some(app) => app.attempts.push(AttemptInfo::of(attempt)),
            None => apps.push(ApplicationInfo {
                id: attempt.id.clone(),
                name: attempt.name.clone(),
                attempts: vec![AttemptInfo::of(attempt)],
            }),
        }
    }
    apps.sort_by_key(|app| std::cmp::Reverse(app.attempts[0].end_time_epoch));
    apps
}

/// The list, filtered as Spark filters it.
pub(super) fn list(listed: Vec<Listed>, params: &Params, now_ms: i64) -> Result<Vec<ApplicationInfo>, Failure> {
    let date = |name: &str, default: &str| times::parse(params.get(name).unwrap_or(default));
    let starts = date("minDate", "2010-01-01")?..=date("maxDate", "3000-01-01")?;
    let ends = date("minEndDate", "2010-01-01")?..=date("maxEndDate", "3000-01-01")?;
    let wanted = params.choices("status", &[("completed", true), ("running", false)])?;
    let limit = params.number("limit", usize::MAX)?;
    let keeps = |app: &ApplicationInfo| {
        let completed = app.attempts.first().is_some_and(|a| a.completed);
        let in_range = |a: &AttemptInfo| {
            let ended = match completed {
                true => ends.contains(&a.end_time_epoch),
                // A running application ends after any time that has passed.
                false => *ends.end() > now_ms,
            };
            starts.contains(&a.start_time_epoch) && ended
        };
        (wanted.is_empty() || wanted.contains(&completed)) && app.attempts.iter().any(in_range)
    };
    Ok(grouped(listed).into_iter().filter(keeps).take(limit).collect())
}

/// One application with its attempts.
pub(super) fn one(listed: Vec<Listed>, id: &str) -> Result<ApplicationInfo, Failure> {
    let of_id = listed.into_iter().filter(|l| l.id == id).collect();
    grouped(of_id).pop().ok_or_else(|| Failure::not_found(format!("unknown app: {id}")))
}

/// One attempt.
pub(super) fn attempt(listed: Vec<Listed>, id: &str, attempt: &str) -> Result<AttemptInfo, Failure> {
    let found = listed.iter().find(|l| l.id == id && l.attempt.as_deref() == Some(attempt));
    found.map(AttemptInfo::of).ok_or_else(|| Failure::not_found(format!("unknown app {id}, attempt {attempt}")))
}
