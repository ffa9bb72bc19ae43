//! How far a reading is, for a progress bar on another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters that can be read while a reading runs. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    stored: AtomicU64,
    decoded: AtomicU64,
}

impl Progress {
    /// Bytes taken from the parts as stored; compare with the sum of [`Part`](super::Part) sizes.
    pub fn stored_bytes(&self) -> u64 {
        self.0.stored.load(Relaxed)
    }

    /// Bytes after decompression.
    pub fn decoded_bytes(&self) -> u64 {
        self.0.decoded.load(Relaxed)
    }

    pub(super) fn add_stored(&self, n: u64) {
        self.0.stored.fetch_add(n, Relaxed);
    }

    pub(super) fn add_decoded(&self, n: u64) {
        self.0.decoded.fetch_add(n, Relaxed);
    }
}
