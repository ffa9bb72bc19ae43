//! Jobs that run by themselves: at their times, or one run after the other.

use super::{Actor, Origin, RunNow};
use crate::continuous::Continuous;
use crate::local::now_ms;
use crate::rule::Stop;
use crate::states::End;
use crate::trigger::Trigger;
use serde_json::Value;
use store::jobs::Change;

/// Least time from one start of a continuous job to the next, ms.
const SHORTEST_MS: i64 = 1_000;
/// Wait after a continuous job could not be started, ms.
const AFTER_REFUSAL_MS: i64 = 60_000;

impl Actor {
    /// Starts to follow the trigger of a job, from the last time that it planned, or from where it
    /// stood.
    pub(super) fn plan(&mut self, job_id: i64, settings: &Value, planned_ms: i64, state: Option<&str>) {
        self.planned.retain(|(_, planned)| *planned != job_id);
        self.triggers.remove(&job_id);
        self.continuous.remove(&job_id);
        self.events.forget(job_id);
        let Some(trigger) = Trigger::of(settings) else { return };
        self.events.follow(job_id, &trigger, state);
        self.planned.extend(trigger.first_after(planned_ms).map(|next| (next, job_id)));
        if let Trigger::Always = trigger {
            // Whatever runs now goes on; when it is over, or nothing runs, the next one starts.
            self.continuous.insert(job_id, Continuous::default());
            self.planned.insert((planned_ms, job_id));
        }
        self.triggers.insert(job_id, trigger);
    }

    /// The same after a change of the definition: a trigger that waits for what it waited for before
    /// forgets nothing.
    pub(super) fn plan_anew(&mut self, job_id: i64, settings: &Value, before: &Value, planned_ms: i64) {
        let state = self.events.state(job_id);
        let goes_on = Trigger::of(settings).zip(Trigger::of(before)).is_some_and(|(now, old)| now.goes_on_from(&old));
        self.plan(job_id, settings, planned_ms, state.as_deref().filter(|_| goes_on));
        if state.is_some() && !goes_on {
            self.changes.push(Change::TriggerState(job_id, None));
        }
    }

    /// One run, also for all the times that were missed.
    pub(super) async fn run_planned(&mut self, job_id: i64, now_ms: i64) {
        self.reserve_ids().await;
        let is_continuous = self.continuous.contains_key(&job_id);
        if is_continuous && !self.book.open(Some(job_id), false).is_empty() {
            return;
        }
        let origin = if is_continuous { Origin::Continuous } else { Origin::Trigger };
        let started = self.run_now(RunNow { job_id, ..RunNow::default() }, origin).await;
        if let Err(error) = started {
            tracing::warn!(job_id, %error, "a job cannot be run at its time");
            if is_continuous {
                self.planned.insert((now_ms + AFTER_REFUSAL_MS, job_id));
            }
        }
        if is_continuous {
            return;
        }
        let Some(trigger) = self.triggers.get(&job_id) else { return };
        let planned_ms = match self.jobs.job(job_id).await {
            Ok(Some(job)) => job.planned_ms.unwrap_or(job.changed_ms),
            _ => now_ms,
        };
        let (planned_ms, next_ms) = trigger.caught_up(planned_ms, now_ms);
        self.changes.push(Change::Planned(job_id, planned_ms));
        self.planned.extend(next_ms.map(|next_ms| (next_ms, job_id)));
    }

    /// The run of a continuous job is followed by the next, later and later while they fail.
    pub(super) fn go_on(&mut self, job_id: i64, run_id: i64, end: End, started_ms: i64) {
        let Some(before) = self.continuous.get(&job_id) else { return };
        let now = before.after(end, started_ms, now_ms(), run_id.unsigned_abs());
        self.continuous.insert(job_id, now);
        let next_ms = now.next_attempt_ms.map(|next| next.max(started_ms + SHORTEST_MS));
        self.planned.extend(next_ms.map(|next| (next, job_id)));
    }

    /// A person runs a continuous job: what runs is stopped, what waits for its time need not.
    pub(super) fn restart(&mut self, job_id: i64) {
        self.planned.retain(|(_, planned)| *planned != job_id);
        self.continuous.insert(job_id, Continuous::default());
        for run_id in self.book.open(Some(job_id), false) {
            let (book, mut at) = self.now();
            book.stop(run_id, Stop::Engine, &mut at);
        }
    }
}
