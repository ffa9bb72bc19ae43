//! The model of one stage alone, for pastes: its tasks on its slots, nothing around it.

use crate::context::StageFacts;
use model::{Estimate, Metric, Quantiles};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Time, ms, that tasks take on `slots`, each started as soon as a slot is free.
#[must_use]
pub fn play(tasks: &[i64], slots: usize) -> i64 {
    let mut free: BinaryHeap<Reverse<i64>> = (0..slots.max(1)).map(|_| Reverse(0)).collect();
    for &task in tasks {
        if let Some(Reverse(begin)) = free.pop() {
            free.push(Reverse(begin + task.max(1)));
        }
    }
    free.into_iter().map(|end| end.0).max().unwrap_or_default()
}

/// Durations, ms, of a stage's successful tasks; without tasks a row that has its quantiles, the
/// longest last.
#[must_use]
pub fn durations(facts: &StageFacts<'_>) -> Vec<i64> {
    let tasks = &facts.stage.tasks;
    match facts.has_tasks() {
        true => tasks.successful().map(|row| tasks.value(Metric::DurationMs, row)).collect(),
        false => from_quantiles(facts.q(Metric::DurationMs), facts.n),
    }
}

/// `n` values with these quantiles: straight lines between the five known ones, one maximum.
fn from_quantiles(q: Quantiles, n: usize) -> Vec<i64> {
    let known = [q.min, q.p25, q.median, q.p75];
    let Some(rest) = n.checked_sub(1) else { return Vec::new() };
    let below = (0..rest).map(|i| {
        let place = 3.0 * i as f64 / rest.saturating_sub(1).max(1) as f64;
        let left = (place.floor() as usize).min(2);
        let (a, b) = (known[left] as f64, known[left + 1] as f64);
        (a + (b - a) * (place - left as f64)) as i64
    });
    below.chain([q.max]).collect()
}

/// What other tasks save, in proportion to the recorded wall time of the stage.
pub fn estimate(facts: &StageFacts<'_>, changed: &[i64], method: &str) -> Option<Estimate> {
    let slots = facts.slots.round().max(1.0) as usize;
    let recorded = durations(facts);
    let simulated = play(&recorded, slots).max(1);
    let wall = if facts.wall_ms > 0 { facts.wall_ms } else { simulated };
    if recorded.is_empty() {
        return None;
    }
    let saved = |tasks: &[i64]| (wall.max(simulated) - play(tasks, slots)).clamp(0, wall);
    let full = saved(changed);
    let low = match recorded.len() == changed.len() {
        true => saved(&recorded.iter().zip(changed).map(|(a, b)| (a + b) / 2).collect::<Vec<_>>()).min(full),
        false => full / 2,
    };
    let busy = recorded.iter().sum::<i64>() - changed.iter().sum::<i64>();
    Some(Estimate {
        saved_ms_low: low,
        saved_ms: full,
        saved_ms_high: full,
        saved_core_ms: busy.max(full.saturating_mul(slots as i64)),
        method: format!("{method}; this stage alone on its {slots} slots"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plays_tasks_on_slots() {
        assert_eq!(play(&[5, 3, 3, 3], 2), 8);
        assert_eq!(play(&[6_310; 84], 4), 21 * 6_310);
        assert_eq!(play(&[], 4), 0);
    }

    #[test]
    fn a_row_of_tasks_has_the_quantiles_it_was_made_from() {
        let q = Quantiles { min: 24, p25: 28, median: 30, p75: 31, max: 480, ..Quantiles::default() };
        let mut row = from_quantiles(q, 20);
        assert_eq!(row.len(), 20);
        row.sort_unstable();
        assert_eq!((row[0], row[19]), (24, 480));
        assert!((29..=31).contains(&row[10]) && row[15] <= 31);
        assert_eq!(from_quantiles(q, 0), [] as [i64; 0]);
        assert_eq!(from_quantiles(q, 1), [480]);
    }
}
