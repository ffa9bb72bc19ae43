//! What is wrong with the triggers of a definition.

use super::problem::Problems;
use super::raw::{FileArrival, JobCompletion, Pace, Periodic, Raw, RawTrigger, Schedule, TableUpdate, table_address};
use crate::quartz::Cron;
use crate::trigger::completion::MOST_JOBS;
use std::collections::BTreeSet;

/// Shortest time that a trigger may be told to wait, seconds; 0 is no wait.
const SHORTEST_SECONDS: i64 = 60;
/// Most tables that a trigger waits for.
const MOST_TABLES: usize = 100;
/// How URLs of places begin that can be looked at.
const SCHEMES: [&str; 10] = ["file", "s3", "s3a", "abfss", "abfs", "az", "adl", "azure", "gs", "https"];

pub(super) fn check(raw: &Raw, problems: &mut Problems) {
    let causes = [("schedule", raw.schedule.is_some()), ("continuous", raw.continuous.is_some())];
    let causes = causes.into_iter().chain([("trigger", raw.trigger.is_some())]);
    let given: Vec<&str> = causes.filter(|(_, is)| *is).map(|(name, _)| name).collect();
    if let [_, second, ..] = given.as_slice() {
        let why = format!("a job has one of schedule, continuous and trigger, not {}", given.join(" and "));
        problems.value(&format!("/{second}"), why);
    }
    if raw.triggers.as_ref().is_some_and(|triggers| !triggers.is_empty()) {
        let why = "triggers: lists of triggers are not followed yet; give one as schedule, continuous or trigger";
        problems.value("/triggers", why);
    }
    if let Some(schedule) = &raw.schedule {
        check_schedule(schedule, problems);
    }
    if let Some(trigger) = &raw.trigger {
        check_trigger(trigger, problems);
    }
}

fn check_schedule(schedule: &Schedule, problems: &mut Problems) {
    let Schedule { quartz_cron_expression, timezone_id } = schedule;
    if let Err(error) = Cron::parse(quartz_cron_expression) {
        let why = format!("quartz_cron_expression {quartz_cron_expression:?}: {error}");
        problems.value("/schedule/quartz_cron_expression", why);
    }
    if jiff::tz::TimeZone::get(timezone_id).is_err() {
        let why = format!("timezone_id {timezone_id:?} is no time zone, such as Europe/Prague");
        problems.value("/schedule/timezone_id", why);
    }
}

fn check_trigger(trigger: &RawTrigger, problems: &mut Problems) {
    let RawTrigger { file_arrival, job_completion, model, periodic, table_update } = trigger;
    let kinds = [
        ("file_arrival", file_arrival.is_some()),
        ("job_completion", job_completion.is_some()),
        ("model", model.is_some()),
        ("periodic", periodic.is_some()),
        ("table_update", table_update.is_some()),
    ];
    let given: Vec<&str> = kinds.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect();
    if let [_, second, ..] = given.as_slice() {
        let why = format!("a trigger waits for one thing, not for {}", given.join(" and "));
        problems.value(&format!("/trigger/{second}"), why);
    }
    if let Some(Periodic { interval, .. }) = periodic
        && *interval < 1
    {
        let why = format!("the interval of trigger.periodic must be 1 or more, not {interval}");
        problems.value("/trigger/periodic/interval", why);
    }
    if let Some(FileArrival { url, pace }) = file_arrival {
        check_url(url, problems);
        check_pace(*pace, "file_arrival", problems);
    }
    if let Some(tables) = table_update {
        check_tables(tables, problems);
    }
    if let Some(jobs) = job_completion {
        check_jobs(jobs, problems);
    }
}

fn check_pace(pace: Pace, of: &str, problems: &mut Problems) {
    let Pace { min_time_between_triggers_seconds, wait_after_last_change_seconds } = pace;
    for (name, seconds) in [
        ("min_time_between_triggers_seconds", min_time_between_triggers_seconds),
        ("wait_after_last_change_seconds", wait_after_last_change_seconds),
    ] {
        if let Some(seconds) = seconds.filter(|seconds| *seconds != 0 && *seconds < SHORTEST_SECONDS) {
            let why =
                format!("{name} of trigger.{of} must be {SHORTEST_SECONDS} or more, or 0 for none, not {seconds}");
            problems.value(&format!("/trigger/{of}/{name}"), why);
        }
    }
}

fn check_url(url: &str, problems: &mut Problems) {
    let mut wrong = |why: String| problems.value("/trigger/file_arrival/url", format!("url {url:?}: {why}"));
    if url.contains(['*', '?']) {
        wrong("a file arrival trigger takes no wildcards; name the folder that files arrive in".to_owned());
    } else if let Some(why) = not_looked_at(url) {
        wrong(why);
    }
}

/// Why nothing can be looked at there.
fn not_looked_at(address: &str) -> Option<String> {
    match address.split_once("://") {
        Some((scheme, _)) if SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()) => None,
        Some((scheme, _)) => {
            Some(format!("nothing can be looked at by {scheme}://; use s3://, abfss://, gs:// or file://"))
        }
        None if address.starts_with('/') => None,
        None => Some("it must be an absolute path, or an address that begins with s3://, abfss:// or gs://".to_owned()),
    }
}

fn check_tables(tables: &TableUpdate, problems: &mut Problems) {
    let names = &tables.table_names;
    if names.is_empty() || names.len() > MOST_TABLES {
        let why = format!("trigger.table_update waits for 1 to {MOST_TABLES} tables, not {}", names.len());
        problems.value("/trigger/table_update/table_names", why);
    }
    for (at, name) in names.iter().enumerate() {
        let why = match table_address(name) {
            Some(address) => not_looked_at(address),
            None => Some("no catalog knows it; name the table by its path or URL, such as /data/orders".to_owned()),
        };
        if let Some(why) = why {
            problems.value(&format!("/trigger/table_update/table_names/{at}"), format!("table {name:?}: {why}"));
        }
    }
    check_pace(tables.pace, "table_update", problems);
}

fn check_jobs(completion: &JobCompletion, problems: &mut Problems) {
    let jobs = &completion.jobs;
    if jobs.is_empty() || jobs.len() > MOST_JOBS {
        let why = format!("trigger.job_completion waits for 1 to {MOST_JOBS} jobs, not {}", jobs.len());
        problems.value("/trigger/job_completion/jobs", why);
    }
    let mut seen = BTreeSet::new();
    for (at, job) in jobs.iter().enumerate() {
        if !seen.insert(job.job_id) {
            let why = format!("trigger.job_completion names job {} twice", job.job_id);
            problems.value(&format!("/trigger/job_completion/jobs/{at}/job_id"), why);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::Settings;
    use serde_json::{Value, json};

    fn read(trigger: &Value) -> Result<(), String> {
        let task = json!({ "task_key": "a", "condition_task": { "left": "1", "op": "EQUAL_TO", "right": "1" } });
        let settings = json!({ "tasks": [task], "trigger": trigger });
        Settings::read(&settings).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn a_trigger_waits_for_what_can_be_looked_at() {
        for (trigger, message) in [
            (json!({ "file_arrival": { "url": "in/" } }), "url \"in/\": it must be an absolute path"),
            (json!({ "file_arrival": { "url": "ftp://host/in" } }), "nothing can be looked at by ftp://"),
            (json!({ "file_arrival": { "url": "/in/*.csv" } }), "takes no wildcards"),
            (json!({ "file_arrival": {} }), "missing field `url`"),
            (
                json!({ "file_arrival": { "url": "/in", "wait_after_last_change_seconds": "59" } }),
                "wait_after_last_change_seconds of trigger.file_arrival must be 60 or more, or 0 for none, not 59",
            ),
            (
                json!({ "table_update": { "table_names": ["/t"], "min_time_between_triggers_seconds": -1 } }),
                "min_time_between_triggers_seconds of trigger.table_update must be 60 or more",
            ),
            (json!({ "table_update": { "table_names": [] } }), "waits for 1 to 100 tables, not 0"),
            (
                json!({ "table_update": { "table_names": ["/t", "main.shop.orders"] } }),
                "table \"main.shop.orders\": no catalog knows it",
            ),
            (json!({ "table_update": { "table_names": ["/t"], "condition": "SOME" } }), "unknown variant `SOME`"),
            (json!({ "job_completion": { "jobs": [] } }), "waits for 1 to 10 jobs, not 0"),
            (json!({ "job_completion": { "jobs": [{ "job_id": 5 }, { "job_id": "5" }] } }), "names job 5 twice"),
            (json!({ "job_completion": { "jobs": [{ "job_id": 5 }], "if_status": "OK" } }), "unknown variant `OK`"),
            (
                json!({ "file_arrival": { "url": "/in" }, "periodic": { "interval": 1, "unit": "DAYS" } }),
                "a trigger waits for one thing, not for file_arrival and periodic",
            ),
        ] {
            let error = read(&trigger).unwrap_err();
            assert!(error.contains(message), "{trigger}: {error}");
        }
        for trigger in [
            json!({ "file_arrival": { "url": "s3://bucket/in/", "min_time_between_triggers_seconds": 60 } }),
            json!({ "file_arrival": { "url": "/Volumes/main/shop/in", "wait_after_last_change_seconds": 0 } }),
            json!({ "table_update": { "table_names": ["delta.`/data/orders`", "abfss://c@a.dfs.core.windows.net/t"],
                "condition": "ALL_UPDATED" } }),
            json!({ "job_completion": { "jobs": [{ "job_id": "5", "workspace_id": "1" }], "if_status": "DONE" } }),
            json!({}),
        ] {
            assert_eq!(read(&trigger), Ok(()), "{trigger}");
        }
    }
}
