//! How triggers stand and why they fired, in the form of the API.

use super::ApiError;
use run::trigger::completion::{Completed, Completions, Monitored};
use run::trigger::watch::Watch;
use run::trigger::{Failed, Fired, Trigger};
use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// How the trigger of a job stands, by what is kept of it.
pub(super) enum State {
    /// It waits for files.
    Files(Watch),
    /// It waits for tables, of these names.
    Tables(Vec<String>, Watch),
    /// It waits for runs of these jobs.
    Jobs(Vec<i64>, Completions),
}

impl State {
    /// `None`: the trigger is of another kind, is paused, or nobody has looked for it so far.
    pub fn of(settings: &Value, kept: &str) -> Option<Self> {
        match Trigger::of(settings)? {
            Trigger::Change(rules) => {
                let watch = Watch::restored(kept, &rules);
                let names = settings["trigger"]["table_update"]["table_names"].as_array();
                Some(match names {
                    Some(names) => {
                        Self::Tables(names.iter().filter_map(Value::as_str).map(str::to_owned).collect(), watch)
                    }
                    None => Self::Files(watch),
                })
            }
            Trigger::Completion(rules) => {
                let completions = Completions::restored(kept, &rules);
                Some(Self::Jobs(rules.jobs, completions))
            }
            Trigger::Cron(..) | Trigger::Every(_) | Trigger::Always => None,
        }
    }

    /// `trigger_state`.
    pub fn shown(&self, workspace: i64) -> Value {
        match self {
            // Places are listed; no store tells this server of its files.
            Self::Files(_) => json!({ "file_arrival": { "using_file_events": false } }),
            Self::Tables(names, watch) => {
                let tables = names.iter().zip(watch.updated());
                let tables: Vec<Value> = tables
                    .filter_map(|(name, updated)| Some(json!({ "table_name": name, "has_seen_updates": updated? })))
                    .collect();
                json!({ "table": { "last_seen_table_states": tables, "using_scalable_monitoring": false } })
            }
            Self::Jobs(jobs, completions) => {
                let states = jobs.iter().zip(&completions.jobs).map(|(id, job)| monitored(*id, job, workspace));
                json!({ "job_completion": { "monitored_job_states": states.collect::<Vec<_>>() } })
            }
        }
    }

    /// `trigger_history`: when it fired last, and when it could not look last.
    pub fn history(&self) -> Value {
        let (fired, failed) = match self {
            Self::Files(watch) | Self::Tables(_, watch) => (watch.fired, watch.failed.as_ref()),
            Self::Jobs(_, completions) => (completions.fired, None),
        };
        let mut history = Object::new();
        if let Some(Fired { at_ms, run_id }) = fired {
            let mut last = json!({ "timestamp": at_ms, "description": "what it waits for has happened" });
            match run_id {
                Some(run_id) => last["run_id"] = run_id.into(),
                None => last["description"] = "it has happened, and the job could not be run".into(),
            }
            history.insert("last_triggered".to_owned(), last);
        }
        if let Some(Failed { at_ms, why }) = failed {
            history.insert("last_failed".to_owned(), json!({ "timestamp": at_ms, "description": why }));
        }
        history.into()
    }
}

/// Whether a trigger waits for jobs of this workspace only.
///
/// # Errors
/// When it names another one: nothing is known of its runs.
pub(super) fn is_of(settings: &Object, workspace: i64) -> Result<(), ApiError> {
    let jobs = settings.get("trigger").and_then(|trigger| trigger["job_completion"]["jobs"].as_array());
    for job in jobs.into_iter().flatten() {
        let named = job["workspace_id"].as_str().map(str::to_owned);
        let named = named.or_else(|| job["workspace_id"].as_i64().map(|id| id.to_string()));
        if let Some(other) = named.filter(|named| *named != workspace.to_string()) {
            return Err(ApiError::invalid(format!(
                "trigger.job_completion: job {} is in workspace {other}, and only jobs of this one ({workspace}) can be \
                 waited for",
                job["job_id"]
            )));
        }
    }
    Ok(())
}

fn monitored(job_id: i64, job: &Monitored, workspace: i64) -> Value {
    let mut state = Object::new();
    state.insert("job_id".to_owned(), job_id.to_string().into());
    state.insert("workspace_id".to_owned(), workspace.to_string().into());
    state.insert("has_seen_completion".to_owned(), job.is_new.into());
    if let Some(Completed { run_id, code, end_ms, .. }) = &job.last {
        state.insert("last_seen_run_id".to_owned(), run_id.to_string().into());
        state.insert("last_seen_result".to_owned(), code.clone().into());
        state.insert("last_seen_completion_time".to_owned(), time(*end_ms));
    }
    if let Some(code) = &job.other {
        state.insert("latest_non_matching_result".to_owned(), code.clone().into());
    }
    state.into()
}

/// `trigger_info` of a run that follows runs of other jobs: those, and the one that was over last.
pub(super) fn info(completed: &[Completed], workspace: i64) -> Option<Value> {
    let last = completed.iter().max_by_key(|completed| completed.end_ms)?;
    let jobs = completed.iter().map(|Completed { job_id, run_id, code, end_ms }| {
        json!({ "workspace_id": workspace.to_string(), "job_id": job_id.to_string(), "run_id": run_id.to_string(),
            "termination_code": code, "completion_time": time(*end_ms) })
    });
    Some(json!({ "run_id": last.run_id, "job_completion": { "completed_jobs": jobs.collect::<Vec<_>>() } }))
}

/// A moment as text, in UTC.
fn time(ms: i64) -> Value {
    jiff::Timestamp::from_millisecond(ms).map(|at| at.to_string()).unwrap_or_default().into()
}
