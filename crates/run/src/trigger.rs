//! When a job is to run by itself: by a Quartz schedule, every so often, always, or when something
//! has happened: outside ([`watch`]) or to another job ([`completion`]).
//!
//! The next time follows from the last planned one alone, so that a restart, a slow start and a
//! jump of the clock move nothing.

pub mod completion;
pub mod watch;

use crate::quartz::Cron;
use crate::settings::{FileArrival, JobCompletion, Periodic, TableUpdate};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Least time between two planned runs, ms.
const SHORTEST_MS: i64 = 10_000;

/// What starts a job, unless it is paused.
#[derive(Clone, Debug)]
pub enum Trigger {
    /// `schedule`: at these times of a zone.
    Cron(Box<Cron>, TimeZone),
    /// `trigger.periodic`: every so many ms.
    Every(i64),
    /// `continuous`: the next run when the last one is over, see [`crate::continuous`].
    Always,
    /// `trigger.file_arrival` and `trigger.table_update`: when something has changed outside.
    Change(watch::Rules),
    /// `trigger.job_completion`: when runs of other jobs are over.
    Completion(completion::Rules),
}

/// The last time that a trigger started a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fired {
    /// When, epoch ms.
    pub at_ms: i64,
    /// The run; `None`: it could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<i64>,
}

/// The last time that a trigger could not find out whether to start one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// When, epoch ms.
    pub at_ms: i64,
    /// Why.
    pub why: String,
}

impl Trigger {
    /// The trigger of a definition; `None`: it has none, or it is paused.
    #[must_use]
    pub fn of(settings: &Value) -> Option<Self> {
        let is_on = |part: &Value| part["pause_status"] != "PAUSED";
        if let Some(schedule) = settings.get("schedule").filter(|schedule| schedule.is_object() && is_on(schedule)) {
            let cron = Cron::parse(schedule["quartz_cron_expression"].as_str()?).ok()?;
            let zone = TimeZone::get(schedule["timezone_id"].as_str()?).ok()?;
            return Some(Self::Cron(Box::new(cron), zone));
        }
        if settings.get("continuous").is_some_and(|continuous| continuous.is_object() && is_on(continuous)) {
            return Some(Self::Always);
        }
        Self::of_trigger(settings.get("trigger").filter(|trigger| is_on(trigger))?)
    }

    fn of_trigger(trigger: &Value) -> Option<Self> {
        let part = |name: &str| trigger.get(name).filter(|part| part.is_object());
        if let Some(files) = part("file_arrival") {
            return Some(Self::Change(FileArrival::deserialize(files).ok()?.rules()));
        }
        if let Some(tables) = part("table_update") {
            return Some(Self::Change(TableUpdate::deserialize(tables).ok()?.rules()));
        }
        if let Some(jobs) = part("job_completion") {
            return Some(Self::Completion(JobCompletion::deserialize(jobs).ok()?.rules()));
        }
        Some(Self::Every(Periodic::deserialize(part("periodic")?).ok()?.every_ms()))
    }

    /// Whether this waits for the same as another trigger, so that it goes on from where that was.
    #[must_use]
    pub fn goes_on_from(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Change(this), Self::Change(other)) => this.places == other.places,
            (Self::Completion(this), Self::Completion(other)) => this == other,
            _ => false,
        }
    }

    /// The first planned time after a moment, epoch ms; `None`: there is none any more, or it follows
    /// from what happens.
    #[must_use]
    pub fn first_after(&self, after_ms: i64) -> Option<i64> {
        match self {
            Self::Always | Self::Change(_) | Self::Completion(_) => None,
            Self::Every(ms) => Some(after_ms.saturating_add(*ms)),
            Self::Cron(cron, zone) => {
                let after = Timestamp::from_millisecond(after_ms).ok()?;
                Some(cron.next_after(after, zone)?.as_millisecond())
            }
        }
    }

    /// The planned time that follows another one, no sooner than two runs may follow each other.
    #[must_use]
    pub fn next_after(&self, planned_ms: i64) -> Option<i64> {
        match self.first_after(planned_ms)? {
            too_soon if too_soon - planned_ms < SHORTEST_MS => self.first_after(planned_ms + SHORTEST_MS - 1),
            next => Some(next),
        }
    }

    /// The last planned time that has come by now, and the next one if there is any: of times that
    /// were missed one run makes up for all.
    #[must_use]
    pub fn caught_up(&self, mut planned_ms: i64, now_ms: i64) -> (i64, Option<i64>) {
        if let Self::Every(ms) = self {
            planned_ms += (now_ms - planned_ms).max(0) / ms * ms;
        }
        loop {
            match self.next_after(planned_ms) {
                Some(next) if next <= now_ms => planned_ms = next,
                next => return (planned_ms, next),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    #[test]
    fn a_paused_trigger_is_none() {
        let cron = |status: &str| {
            json!({ "schedule": { "quartz_cron_expression": "0 0 6 * * ?",
            "timezone_id": "Europe/Prague", "pause_status": status } })
        };
        assert!(Trigger::of(&cron("PAUSED")).is_none());
        let trigger = Trigger::of(&cron("UNPAUSED")).unwrap();
        assert_eq!(trigger.next_after(ms("2026-11-30T05:00:00Z")), Some(ms("2026-12-01T05:00:00Z")));
        assert!(Trigger::of(&json!({ "name": "by hand" })).is_none());
        assert!(matches!(Trigger::of(&json!({ "continuous": {} })), Some(Trigger::Always)));
        assert!(Trigger::of(&json!({ "continuous": { "pause_status": "PAUSED" } })).is_none());
        let every = json!({ "trigger": { "periodic": { "interval": "4", "unit": "HOURS" } } });
        assert_eq!(Trigger::of(&every).unwrap().next_after(0), Some(4 * 3_600_000));
        let arrival = |status: &str| json!({ "trigger": { "file_arrival": { "url": "/in" }, "pause_status": status } });
        assert!(matches!(Trigger::of(&arrival("UNPAUSED")), Some(Trigger::Change(_))));
        assert!(Trigger::of(&arrival("PAUSED")).is_none());
    }

    #[test]
    fn what_is_waited_for_tells_whether_a_trigger_goes_on() {
        let files =
            |url: &str, wait: i64| json!({ "file_arrival": { "url": url, "wait_after_last_change_seconds": wait } });
        let jobs = |ids: &[i64], status: &str| {
            let jobs: Vec<Value> = ids.iter().map(|id| json!({ "job_id": id.to_string() })).collect();
            json!({ "job_completion": { "jobs": jobs, "if_status": status } })
        };
        for (new, old, goes_on) in [
            (files("/in", 60), files("/in", 0), true),
            (files("/in", 0), files("/out", 0), false),
            (json!({ "table_update": { "table_names": ["/in"] } }), files("/in", 0), false),
            (jobs(&[1, 2], "DONE"), jobs(&[1, 2], "DONE"), true),
            (jobs(&[1, 2], "DONE"), jobs(&[1, 2], "FAILED"), false),
            (jobs(&[1, 2], "DONE"), jobs(&[2, 1], "DONE"), false),
        ] {
            let of = |trigger: &Value| Trigger::of(&json!({ "trigger": trigger })).unwrap();
            assert_eq!(of(&new).goes_on_from(&of(&old)), goes_on, "{new} {old}");
        }
    }

    #[test]
    fn times_that_were_missed_are_made_up_for_once() {
        let hourly = json!({ "schedule": { "quartz_cron_expression": "0 0 * * * ?", "timezone_id": "UTC" } });
        let (missed, now) = (ms("2026-11-30T01:00:00Z"), ms("2026-11-30T05:20:00Z"));
        let wanted = (ms("2026-11-30T05:00:00Z"), Some(ms("2026-11-30T06:00:00Z")));
        assert_eq!(Trigger::of(&hourly).unwrap().caught_up(missed, now), wanted);
        assert_eq!(Trigger::Every(3_600_000).caught_up(missed, now), wanted);
        assert_eq!(Trigger::Every(3_600_000).caught_up(now, missed), (now, Some(now + 3_600_000)));
        let once = json!({ "schedule": { "quartz_cron_expression": "0 0 3 30 11 ? 2026", "timezone_id": "UTC" } });
        assert_eq!(Trigger::of(&once).unwrap().caught_up(missed, now), (ms("2026-11-30T03:00:00Z"), None));
    }

    #[test]
    fn two_planned_runs_are_ten_seconds_apart() {
        let each_second = json!({ "schedule": { "quartz_cron_expression": "* * * * * ?", "timezone_id": "UTC" } });
        let from = ms("2026-11-30T00:00:00Z");
        let each_second = Trigger::of(&each_second).unwrap();
        assert_eq!(each_second.next_after(from), Some(from + SHORTEST_MS));
        assert_eq!(each_second.first_after(from), Some(from + 1_000));
    }
}
