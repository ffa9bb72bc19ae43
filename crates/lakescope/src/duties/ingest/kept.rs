//! What outlives the process: rows and whole applications in the data directory.

use crate::inputs::watch::Seen;
use diagnose::Config;
use serve::{Listed, Opened};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use store::{Head, Known, LogKey, Store};
use tokio::runtime::Handle;

/// The store, for threads that may wait.
#[derive(Debug)]
pub struct Kept {
    store: Arc<Store>,
    runtime: Handle,
    /// What was known when the process started, by key; each is asked for once.
    known: Mutex<HashMap<String, Known>>,
}

impl Kept {
    /// Inside a runtime.
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, runtime: Handle::current(), known: Mutex::default() }
    }

    /// Loads what was known, before the first look at the sources.
    pub fn load(&self) {
        let heads = self.runtime.block_on(self.store.heads()).unwrap_or_else(|error| {
            tracing::warn!(%error, "what is known of the logs cannot be read; they are read again");
            Vec::new()
        });
        let known = heads.into_iter().map(|known| (known.key.path.clone(), known)).collect();
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// Rows of a log that has not changed since it was read.
    pub fn known(&self, seen: &Seen) -> Option<Vec<(String, Result<Listed, String>)>> {
        // Which applications an archive holds is known when it was opened.
        if seen.is_archive() {
            return None;
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&seen.path)?;
        if known.key.mark != seen.mark {
            return None;
        }
        let listed = match known.head {
            Ok(head) => Ok(serde_json::from_str(&head.json).ok()?),
            Err(why) => Err(why),
        };
        Some(vec![(seen.path.clone(), listed)])
    }

    /// The application of a log that has not changed since, diagnosed by `config`.
    pub fn opened(&self, key: &str, seen: &Seen, config: &Arc<Config>) -> Option<Opened> {
        let found = self.runtime.block_on(self.store.application(&log_key(key, seen)));
        let found = found.unwrap_or_else(|error| {
            tracing::warn!(%error, key, "what was kept of a log cannot be read; the log is read again");
            None
        });
        let store::Kept { app, report } = found?;
        let (app, config) = (Arc::new(app), Arc::clone(config));
        Some(match serde_json::from_str(&report) {
            Ok(report) => Opened::reported(app, config, report),
            // Numbers that JSON does not have: the rules are run again.
            Err(_) => Opened::new(app, config),
        })
    }

    /// Keeps what a log said. A store that cannot be written costs a second reading, no answer.
    pub fn put(&self, key: &str, seen: &Seen, listed: &Result<Listed, String>, opened: Option<&Arc<Opened>>) {
        let log = log_key(key, seen);
        let done = match (listed, opened) {
            (Ok(listed), Some(opened)) => {
                let json = serde_json::to_string(listed).and_then(|l| Ok((l, serde_json::to_string(opened.report())?)));
                let Ok((json, report)) = json else { return };
                let head = Head { application_id: listed.id.clone(), attempt_id: listed.attempt.clone(), json };
                self.runtime.block_on(self.store.put_application(&log, &head, opened.shared(), report)).map(drop)
            }
            (Err(why), _) => self.runtime.block_on(self.store.put_unreadable(&log, why)),
            (Ok(_), None) => return,
        };
        if let Err(error) = done {
            tracing::warn!(%error, key, "what a log said cannot be kept; it is read again after a restart");
        }
    }

    /// Forgets the logs below these addresses that were known when the process started and are not
    /// there any more. Those of sources that are not watched now may come back.
    pub fn forget_rest(&self, addresses: &[&str]) {
        let rest: Vec<Known> = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let is_gone = |key: &str| addresses.iter().any(|address| key.starts_with(address)) && !key.contains('!');
            known.extract_if(|key, _| is_gone(key)).map(|(_, known)| known).collect()
        };
        rest.iter().for_each(|known| self.forget(&known.key.path));
    }

    pub fn forget(&self, key: &str) {
        if let Err(error) = self.runtime.block_on(self.store.forget(key)) {
            tracing::warn!(%error, key, "a log that is gone cannot be forgotten");
        }
    }
}

/// What a row depends on besides the log: the program, and its thresholds.
pub fn reader(config: &Config) -> String {
    format!("{} {}", env!("READER_DIGEST"), serde_json::to_string(config).unwrap_or_default())
}

fn log_key(key: &str, seen: &Seen) -> LogKey {
    LogKey { path: key.to_owned(), mark: seen.mark }
}
