//! When a job is to run by itself: by a Quartz schedule, every so often, or always.
//!
//! The next time follows from the last planned one alone, so that a restart, a slow start and a
//! jump of the clock move nothing.

use crate::quartz::Cron;
use crate::settings::Periodic;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
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
        let trigger = settings.get("trigger").filter(|trigger| is_on(trigger))?;
        let periodic: Periodic = Deserialize::deserialize(trigger.get("periodic")?).ok()?;
        Some(Self::Every(periodic.every_ms()))
    }

    /// The first planned time after a moment, epoch ms; `None`: there is none any more, or it follows
    /// from the end of a run.
    #[must_use]
    pub fn first_after(&self, after_ms: i64) -> Option<i64> {
        match self {
            Self::Always => None,
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
        assert!(Trigger::of(&json!({ "trigger": { "file_arrival": { "url": "/in" } } })).is_none());
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
