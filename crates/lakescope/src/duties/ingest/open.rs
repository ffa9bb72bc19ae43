//! Whole applications in memory, within a budget.

use serve::Opened;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that an application takes beside what it counts itself: its diagnosis, names, settings.
const BESIDE: usize = 256 << 10;

/// Applications by key; the one that was not asked for longest goes first.
#[derive(Debug)]
pub struct Open {
    most_bytes: usize,
    /// Key, application and its bytes; the one asked for last at the end.
    all: Mutex<Vec<(String, Arc<Opened>, usize)>>,
}

impl Open {
    pub fn new(most_bytes: usize) -> Self {
        Self { most_bytes, all: Mutex::default() }
    }

    pub fn get(&self, key: &str) -> Option<Arc<Opened>> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|(known, ..)| known == key)?;
        let found = all.remove(at);
        let opened = Arc::clone(&found.1);
        all.push(found);
        Some(opened)
    }

    /// Keeps an application; the last one stays however large it is.
    pub fn put(&self, key: String, opened: Arc<Opened>) {
        let bytes = opened.app().heap_bytes() + BESIDE;
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(known, ..)| *known != key);
        all.push((key, opened, bytes));
        let mut total: usize = all.iter().map(|(.., bytes)| bytes).sum();
        let mut surplus = 0;
        while total > self.most_bytes && surplus + 1 < all.len() {
            total -= all[surplus].2;
            surplus += 1;
        }
        all.drain(..surplus);
    }

    pub fn close(&self, key: &str) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).retain(|(known, ..)| known != key);
    }
}
