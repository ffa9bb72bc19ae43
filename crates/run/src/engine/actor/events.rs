//! Triggers that wait for something to happen: to files and tables outside, to runs of other jobs.
//!
//! How a trigger stands is written together with the run that it starts: after a crash there are
//! both or neither.

use super::{AFTER_FAILURE, Actor, Origin, Refusal, RunNow};
use crate::book::Act;
use crate::engine::looks::{Look, Targets};
use crate::local::now_ms;
use crate::settings::Invalid;
use crate::trigger::Trigger;
use crate::trigger::completion::{Completed, Completions, Ways, monitored};
use crate::trigger::watch::Watch;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use store::jobs::Change;
use tokio::sync::watch;

/// What such triggers know, by job.
pub(super) struct Events {
    watches: HashMap<i64, Watch>,
    completions: HashMap<i64, Completions>,
    /// A job, and one that waits for its runs.
    followers: BTreeSet<(i64, i64)>,
    ways: Ways,
    /// What is to be looked at.
    targets: watch::Sender<Targets>,
}

impl Events {
    pub fn new(targets: watch::Sender<Targets>) -> Self {
        Self {
            watches: HashMap::new(),
            completions: HashMap::new(),
            followers: BTreeSet::new(),
            ways: Ways::default(),
            targets,
        }
    }

    pub fn forget(&mut self, job_id: i64) {
        if self.watches.remove(&job_id).is_some() {
            self.targets.send_modify(|targets| drop(targets.remove(&job_id)));
        }
        if self.completions.remove(&job_id).is_some() {
            self.followers.retain(|(_, follower)| *follower != job_id);
        }
    }

    /// Follows a trigger, from where it stood if that is known.
    pub fn follow(&mut self, job_id: i64, trigger: &Trigger, state: Option<&str>) {
        match trigger {
            Trigger::Change(rules) => {
                let watch = state.map_or_else(|| Watch::new(rules), |state| Watch::restored(state, rules));
                self.watches.insert(job_id, watch);
                self.publish(job_id, trigger);
            }
            Trigger::Completion(rules) => {
                let new = || Completions::new(rules);
                let completions = state.map_or_else(new, |state| Completions::restored(state, rules));
                self.completions.insert(job_id, completions);
                self.followers.extend(rules.jobs.iter().map(|upstream| (*upstream, job_id)));
            }
            Trigger::Cron(..) | Trigger::Every(_) | Trigger::Always => {}
        }
    }

    /// Tells what is to be looked at for a job, and since when.
    fn publish(&self, job_id: i64, trigger: &Trigger) {
        let (Some(watch), Trigger::Change(rules)) = (self.watches.get(&job_id), trigger) else { return };
        let places = rules.places.iter().cloned().zip(watch.since()).collect();
        self.targets.send_modify(|targets| drop(targets.insert(job_id, places)));
    }

    /// How the trigger of a job stands, as it is kept.
    pub fn state(&self, job_id: i64) -> Option<String> {
        let watch = self.watches.get(&job_id).map(kept);
        watch.or_else(|| self.completions.get(&job_id).map(kept))
    }

    /// Takes a definition up among those that lead to one another.
    ///
    /// # Errors
    /// When the end of the job would start it again; nothing has changed then.
    pub fn lead(&mut self, job_id: i64, new: &Value, old: &Value) -> Result<(), Refusal> {
        self.ways.set(job_id, new);
        let Some(circle) = self.ways.circle(job_id) else { return Ok(()) };
        self.ways.set(job_id, old);
        let circle: Vec<String> = circle.iter().map(i64::to_string).collect();
        let why = format!("with this trigger the job would start itself without end: {}", circle.join(" -> "));
        Err(Invalid::Value(why).into())
    }

    /// The same for a definition that has been taken before.
    pub fn known(&mut self, job_id: i64, settings: &Value) {
        self.ways.set(job_id, settings);
    }
}

/// These types have no value that JSON does not have.
fn kept(state: &impl Serialize) -> String {
    serde_json::to_string(state).unwrap_or_default()
}

impl Actor {
    /// Whether the jobs that a trigger is to wait for are there.
    ///
    /// # Errors
    /// When one is not.
    pub(super) async fn monitored_are_there(&self, job_id: i64, new: &Value, old: &Value) -> Result<(), Refusal> {
        let known = monitored(old);
        for upstream in monitored(new).into_iter().filter(|id| *id != job_id && !known.contains(id)) {
            self.job(upstream).await?;
        }
        Ok(())
    }

    /// Somebody looked at the places of a trigger.
    pub(super) async fn looked(&mut self, look: Look) {
        let Look { job_id, places, glances, began_ms } = look;
        let Some(trigger) = self.triggers.get(&job_id).cloned() else { return };
        let Trigger::Change(rules) = &trigger else { return };
        let Some(watch) = self.events.watches.get_mut(&job_id) else { return };
        if rules.places != places {
            // The trigger has changed meanwhile.
            return;
        }
        let now_ms = now_ms();
        let looked = watch.look(rules, glances, began_ms, now_ms);
        for why in &looked.troubles {
            tracing::warn!(job_id, why, "a trigger cannot look at what it waits for");
        }
        let fires = looked.is_due && self.run_changed(job_id, rules.cause(), now_ms).await;
        if looked.is_new || fires {
            self.changes.push(Change::TriggerState(job_id, self.events.state(job_id)));
            self.events.publish(job_id, &trigger);
        }
    }

    /// Starts the run for what has changed; false: that is to be tried again at the next look.
    async fn run_changed(&mut self, job_id: i64, cause: &'static str, now_ms: i64) -> bool {
        self.reserve_ids().await;
        let run_id = match self.run_now(RunNow { job_id, ..RunNow::default() }, Origin::Change(cause)).await {
            Ok(started) => Some(started.id),
            Err(error) => {
                tracing::warn!(job_id, %error, "a job cannot be run by its trigger");
                if let Refusal::Store(_) = error {
                    return false;
                }
                None
            }
        };
        if let Some(watch) = self.events.watches.get_mut(&job_id) {
            watch.fire(now_ms, run_id);
        }
        true
    }

    /// What the book has for the store and for outside, with the runs that follow from runs that are
    /// over: they are written together, so that no engine that dies leaves one without the other.
    pub(super) async fn settled(&mut self) -> (Vec<Change>, Vec<Act>) {
        let mut acts = std::mem::take(&mut self.acts);
        let (mut changes, new) = self.book.take();
        acts.extend(new);
        let mut at = 0;
        while let Some(act) = acts.get(at) {
            at += 1;
            let Some(completed) = completed(act) else { continue };
            if self.run_followers(&completed).await {
                let (more, then) = self.book.take();
                changes.extend(more);
                acts.extend(then);
            }
        }
        (changes, acts)
    }

    /// Whether any job waits for the runs of this one.
    async fn run_followers(&mut self, completed: &Completed) -> bool {
        let of_job = (completed.job_id, i64::MIN)..=(completed.job_id, i64::MAX);
        let followers: Vec<i64> = self.events.followers.range(of_job).map(|(_, follower)| *follower).collect();
        for job_id in &followers {
            let Some(Trigger::Completion(rules)) = self.triggers.get(job_id) else { continue };
            let Some(completions) = self.events.completions.get_mut(job_id) else { continue };
            if let Some(due) = completions.take(rules, completed) {
                let run_id = self.run_follower(*job_id, due).await;
                if let Some(completions) = self.events.completions.get_mut(job_id) {
                    completions.fire(completed.end_ms, run_id);
                }
            }
            self.changes.push(Change::TriggerState(*job_id, self.events.state(*job_id)));
        }
        !followers.is_empty()
    }

    /// Starts the run that follows; `None`: it cannot be. A database that cannot be read now decides
    /// nothing: nothing can be written before it is there again.
    async fn run_follower(&mut self, job_id: i64, due: Vec<Completed>) -> Option<i64> {
        loop {
            self.reserve_ids().await;
            let run = RunNow { job_id, ..RunNow::default() };
            match self.run_now(run, Origin::Jobs(due.clone())).await {
                Ok(started) => return Some(started.id),
                Err(Refusal::Store(error)) => {
                    tracing::error!(%error, job_id, "a job cannot be run after another; trying again");
                    tokio::time::sleep(AFTER_FAILURE).await;
                }
                Err(error) => {
                    tracing::warn!(job_id, %error, "a job cannot be run by its trigger");
                    return None;
                }
            }
        }
    }
}

fn completed(act: &Act) -> Option<Completed> {
    let (Act::Over { job_id, run_id, end, ended_ms, .. } | Act::Skipped { job_id, run_id, end, ended_ms }) = act else {
        return None;
    };
    Some(Completed { job_id: *job_id, run_id: *run_id, code: end.code.word().to_owned(), end_ms: *ended_ms })
}
