//! Whole applications in memory, within a budget.

use serve::Opened;
use std::sync::{Arc, Mutex, PoisonError};
use store::Mark;

/// Bytes that an application takes beside what it counts itself: its diagnosis, names, settings.
const BESIDE: usize = 256 << 10;

/// Applications by key; the one that was not asked for longest goes first.
#[derive(Debug)]
pub struct Open {
    most_bytes: usize,
    /// The one asked for last at the end.
    all: Mutex<Vec<One>>,
}

#[derive(Debug)]
struct One {
    key: String,
    /// State of the log that it was read from.
    mark: Mark,
    opened: Arc<Opened>,
    bytes: usize,
}

impl Open {
    pub fn new(most_bytes: usize) -> Self {
        Self { most_bytes, all: Mutex::default() }
    }

    /// The application of a log in this state.
    pub fn get(&self, key: &str, mark: Mark) -> Option<Arc<Opened>> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|one| one.key == key && one.mark == mark)?;
        let found = all.remove(at);
        let opened = Arc::clone(&found.opened);
        all.push(found);
        Some(opened)
    }

    /// Keeps an application; the last one stays however large it is.
    pub fn put(&self, key: String, mark: Mark, opened: Arc<Opened>) {
        let bytes = opened.app().heap_bytes() + BESIDE;
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.key != key);
        all.push(One { key, mark, opened, bytes });
        let mut total: usize = all.iter().map(|one| one.bytes).sum();
        let mut surplus = 0;
        while total > self.most_bytes && surplus + 1 < all.len() {
            total -= all[surplus].bytes;
            surplus += 1;
        }
        all.drain(..surplus);
    }

    pub fn close(&self, key: &str) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).retain(|one| one.key != key);
    }
}
