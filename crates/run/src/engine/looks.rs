//! Looks at what triggers wait for outside, again and again, by the replica that leads.

use super::Message;
use super::executor::blocking;
use crate::local::now_ms;
use crate::trigger::watch::{Glance, Place};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

/// Triggers whose places are looked at side by side. One that does not answer holds up no other.
const MOST_AT_ONCE: usize = 16;

/// Looks at a place outside.
pub trait Watcher: Debug + Send + Sync {
    /// What is there now; of a table, whether data changed since this version. It may take as long as
    /// it needs, on a thread of its own, but not for ever.
    fn look(&self, place: &Place, since: Option<i64>) -> Glance;
}

/// Who looks, and how often.
#[derive(Clone, Debug)]
pub struct Watching {
    /// Who.
    pub watcher: Arc<dyn Watcher>,
    /// `--trigger-interval`: from one look to the next.
    pub every: Duration,
}

/// What is to be looked at, by job: places, and of tables the version that is known.
pub(super) type Targets = BTreeMap<i64, Vec<(Place, Option<i64>)>>;

/// What was seen for a job.
#[derive(Debug)]
pub(super) struct Look {
    pub job_id: i64,
    pub places: Vec<Place>,
    /// In the order of the places.
    pub glances: Vec<Glance>,
    /// When the look began, epoch ms.
    pub began_ms: i64,
}

struct Looker {
    watcher: Arc<dyn Watcher>,
    actor: mpsc::WeakSender<Message>,
    free: Arc<Semaphore>,
    /// Jobs that are being looked for.
    under_way: Arc<Mutex<HashSet<i64>>>,
}

/// Looks until whoever says what is to be looked at is gone. What is new is looked at at once: all
/// that is there by then was there before the trigger.
pub(super) async fn look_on(
    watching: Watching,
    mut targets: watch::Receiver<Targets>,
    actor: mpsc::WeakSender<Message>,
) {
    let looker = Looker {
        watcher: watching.watcher,
        actor,
        free: Arc::new(Semaphore::new(MOST_AT_ONCE)),
        under_way: Arc::default(),
    };
    let mut ticks = interval(watching.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut known: HashMap<i64, Vec<Place>> = HashMap::new();
    loop {
        let only_new = tokio::select! {
            _ = ticks.tick() => false,
            changed = targets.changed() => match changed {
                Ok(()) => true,
                Err(_) => return,
            },
        };
        let now = targets.borrow_and_update().clone();
        known.retain(|job_id, _| now.contains_key(job_id));
        for (job_id, target) in now {
            let places: Vec<Place> = target.iter().map(|(place, _)| place.clone()).collect();
            let is_known = known.get(&job_id) == Some(&places);
            if !(only_new && is_known) && looker.begin(job_id, target) {
                known.insert(job_id, places);
            }
        }
    }
}

impl Looker {
    /// Begins a look, unless one for the same job is under way.
    fn begin(&self, job_id: i64, target: Vec<(Place, Option<i64>)>) -> bool {
        if !self.under_way.lock().unwrap_or_else(PoisonError::into_inner).insert(job_id) {
            return false;
        }
        let (watcher, actor) = (Arc::clone(&self.watcher), self.actor.clone());
        let (free, under_way) = (Arc::clone(&self.free), Arc::clone(&self.under_way));
        tokio::spawn(async move {
            let look = async {
                let _place = free.acquire().await;
                look(job_id, target, watcher).await
            };
            if let (Some(look), Some(actor)) = (look.await, actor.upgrade()) {
                let _ = actor.send(Message::Looked(look)).await;
            }
            // Not before: looks for a job are told of in their order.
            under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(&job_id);
        });
        true
    }
}

async fn look(job_id: i64, target: Vec<(Place, Option<i64>)>, watcher: Arc<dyn Watcher>) -> Option<Look> {
    let began_ms = now_ms();
    let looked = blocking(move || {
        let glances = target.iter().map(|(place, since)| watcher.look(place, *since)).collect();
        let places = target.into_iter().map(|(place, _)| place).collect();
        Ok(Look { job_id, places, glances, began_ms })
    });
    looked.await.inspect_err(|error| tracing::error!(job_id, %error, "a look at what a trigger waits for failed")).ok()
}
