//! Wrong tokens by address: who shows too many is not listened to for a while.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// Wrong tokens that an address may show within [`WINDOW_MS`].
const MOST: u32 = 10;
const WINDOW_MS: i64 = 60_000;
/// Addresses that are remembered; beyond them those whose time is over are forgotten.
const ADDRESSES: usize = 10_000;

/// When the first wrong token of an address came, and how many did.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<HashMap<IpAddr, (i64, u32)>>);

impl Failures {
    /// Seconds until an address is listened to again; `None` when it is now.
    pub fn barred_for_s(&self, from: IpAddr, now_ms: i64) -> Option<i64> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, count) = *all.get(&from)?;
        let left = since + WINDOW_MS - now_ms;
        (count >= MOST && left > 0).then_some((left + 999) / 1_000)
    }

    pub fn note(&self, from: IpAddr, now_ms: i64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= ADDRESSES {
            all.retain(|_, (since, _)| now_ms < *since + WINDOW_MS);
        }
        // With all places taken by others, a new address is not counted: its tokens are as wrong.
        if all.len() >= ADDRESSES && !all.contains_key(&from) {
            return;
        }
        let entry = all.entry(from).or_insert((now_ms, 0));
        if now_ms >= entry.0 + WINDOW_MS {
            *entry = (now_ms, 0);
        }
        entry.1 += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_wrong_tokens_bar_an_address_for_the_rest_of_a_minute() {
        let (failures, from) = (Failures::default(), IpAddr::from([192, 0, 2, 7]));
        for at in 0..9 {
            failures.note(from, at * 1_000);
            assert_eq!(failures.barred_for_s(from, at * 1_000), None);
        }
        failures.note(from, 9_000);
        assert_eq!(failures.barred_for_s(from, 9_000), Some(51));
        assert_eq!(failures.barred_for_s(IpAddr::from([192, 0, 2, 8]), 9_000), None);
        assert_eq!(failures.barred_for_s(from, 60_000), None);
        failures.note(from, 61_000);
        assert_eq!(failures.barred_for_s(from, 61_000), None);
    }
}
