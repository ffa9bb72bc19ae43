//! A number of partitions that is worth setting.

use super::{MAX_PARTITIONS, Outcome, Recorded, Risk, Shuffle, TIGHT, as_ran, available, play};
use crate::sizing;
use model::{Bytes, Count};
use serde::Serialize;

/// A number of partitions with its reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proposal {
    /// The number.
    pub partitions: i64,
    /// Where it comes from: a formula with its numbers, or a comparison.
    pub because: String,
}

/// The number by the target size stays while it is within this share of the shortest run time.
const AS_FAST: f64 = 0.1;
/// Run times within this share are the same time.
const SAME_TIME: f64 = 0.01;

/// Partitions so that each task reads about the target, in whole waves, fits its memory and holds
/// nobody up more than it must.
#[must_use]
pub fn propose(shuffle: &Shuffle) -> i64 {
    proposal(shuffle, None).partitions
}

/// A proposal that spills only where nothing avoids it, and that is never slower by these rules
/// than the number of partitions that a run had.
#[must_use]
pub fn proposal(shuffle: &Shuffle, recorded: Option<&Recorded>) -> Proposal {
    let target = by_target(shuffle);
    let memory = by_memory(shuffle).filter(|n| *n > target.partitions);
    let ran = recorded.map(|recorded| as_ran(shuffle, recorded));
    let ran_tasks = ran.as_ref().map(|ran| ran.partitions);
    let numbers = around(target.partitions, memory, ran_tasks).into_iter().filter(|n| Some(*n) != ran_tasks);
    let mut tried: Vec<Outcome> = numbers.map(|n| play(shuffle, n)).chain(ran.clone()).collect();
    if let Some(ran) = &ran {
        tried.retain(|o| o.stage_ms as f64 <= ran.stage_ms as f64 * (1.0 + SAME_TIME));
    }
    let shortest_of_all = tried.iter().map(|o| o.stage_ms).min().unwrap_or_default();
    let spilling = tried.iter().map(|o| spills(o.memory.risk)).min();
    let slowest = ran.as_ref().map_or(i64::MAX, |ran| ran.stage_ms);
    if spilling > Some(0)
        && let Some(proposed) = merged_less(shuffle, memory.unwrap_or(target.partitions), slowest)
    {
        return proposed;
    }
    tried.retain(|o| Some(spills(o.memory.risk)) == spilling);
    let shortest = tried.iter().map(|o| o.stage_ms).min().unwrap_or_default() as f64;
    let within =
        |n: i64, share: f64| tried.iter().any(|o| o.partitions == n && o.stage_ms as f64 <= shortest * (1.0 + share));
    // What ran stays unless something is clearly better.
    if let Some(n) = ran_tasks.filter(|n| within(*n, AS_FAST)) {
        return if n == target.partitions { target } else { kept(n, shorter_yet(shortest_of_all, slowest)) };
    }
    if within(target.partitions, AS_FAST) {
        return target;
    }
    if let Some(n) = memory.filter(|n| spilling == Some(0) && within(*n, AS_FAST)) {
        return fitting(shuffle, n);
    }
    match tried.iter().map(|o| o.partitions).filter(|n| within(*n, SAME_TIME)).min() {
        Some(n) => shorter(n, &target),
        None => target,
    }
}

fn by_target(shuffle: &Shuffle) -> Proposal {
    let wanted = sizing::partitions(shuffle.bytes, shuffle.target, shuffle.cores);
    let (bytes, target) = (Bytes(shuffle.bytes.max(0) as u64), Bytes(shuffle.target.max(0) as u64));
    let slots = shuffle.cores.max(1);
    let slots = format!("{} slot{}", Count(slots as u64), if slots == 1 { "" } else { "s" });
    if wanted > MAX_PARTITIONS {
        let whole = Count(wanted as u64);
        let because = format!("the most that is played here; {bytes} ÷ {target} would be {whole}");
        return Proposal { partitions: MAX_PARTITIONS, because };
    }
    Proposal { partitions: wanted, because: format!("{bytes} ÷ {target}, rounded up to a multiple of {slots}") }
}

/// Partitions of which the usual one fits its execution memory with room to spare.
fn by_memory(shuffle: &Shuffle) -> Option<i64> {
    let even = shuffle.bytes as f64 * (1.0 - shuffle.skew.clamp(0.0, 1.0)) * shuffle.expansion;
    let room = TIGHT * available(shuffle) as f64;
    let wanted = (room > 0.0).then(|| (even / room).ceil())?;
    let wanted = sizing::round_up((wanted as i64).max(1), shuffle.cores);
    (wanted <= MAX_PARTITIONS).then_some(wanted)
}

fn fitting(shuffle: &Shuffle, partitions: i64) -> Proposal {
    let room = Bytes((TIGHT * available(shuffle) as f64) as u64);
    let bytes = Bytes(shuffle.bytes.max(0) as u64);
    let because = format!(
        "{bytes} × {:.1} in memory ÷ {room} ({:.0} % of a task's execution memory), in whole waves",
        shuffle.expansion,
        TIGHT * 100.0
    );
    Proposal { partitions, because }
}

/// The number that fits memory where adaptive execution would merge it away again: with the
/// advisory size below which it does not.
fn merged_less(shuffle: &Shuffle, partitions: i64, slowest_ms: i64) -> Option<Proposal> {
    if !shuffle.adaptive || !shuffle.merging {
        return None;
    }
    let room = TIGHT * available(shuffle) as f64 / shuffle.expansion.max(f64::MIN_POSITIVE);
    let advisory = sizing::power_of_two_mib(room as i64) << 20;
    let lower = Shuffle { advisory, ..shuffle.clone() };
    let fits = advisory < shuffle.advisory && spills(play(&lower, partitions).memory.risk) == 0;
    if !fits || play(shuffle, partitions).stage_ms > slowest_ms {
        return None;
    }
    let (now, then) = (Bytes(shuffle.advisory.unsigned_abs()), advisory >> 20);
    let because = format!(
        "{}; adaptive execution merges them up to {now} and they spill, unless spark.sql.adaptive.advisoryPartitionSizeInBytes is {then}MB",
        fitting(shuffle, partitions).because
    );
    Some(Proposal { partitions, because })
}

fn shorter(partitions: i64, target: &Proposal) -> Proposal {
    let other = Count(target.partitions as u64);
    let because = format!("the best of the numbers tried; {other} ({}) takes longer or spills", target.because);
    Proposal { partitions, because }
}

fn kept(partitions: i64, others_spill_more: bool) -> Proposal {
    let because = match others_spill_more {
        true => "as it ran: what takes less time here spills in more of its tasks",
        false => "as it ran: no number tried here is clearly better",
    };
    Proposal { partitions, because: because.to_owned() }
}

fn shorter_yet(shortest_ms: i64, ran_ms: i64) -> bool {
    (shortest_ms as f64) < ran_ms as f64 * (1.0 - AS_FAST)
}

/// Numbers worth trying.
fn around(target: i64, memory: Option<i64>, ran: Option<i64>) -> Vec<i64> {
    const SPARKS_DEFAULT: i64 = 200;
    const STEPS: [(i64, i64); 8] = [(1, 4), (1, 2), (1, 1), (2, 1), (4, 1), (8, 1), (16, 1), (64, 1)];
    let steps = |n: i64| STEPS.iter().map(move |(up, down)| n.saturating_mul(*up) / down);
    let mut all: Vec<i64> = steps(target).chain([SPARKS_DEFAULT]).collect();
    all.extend(memory.into_iter().flat_map(|n| [n, n.saturating_mul(2)]));
    all.extend(ran.into_iter().flat_map(|n| [n / 2, n, n.saturating_mul(2)]));
    all.retain(|n| (1..=MAX_PARTITIONS).contains(n));
    all.sort_unstable();
    all.dedup();
    all
}

fn spills(risk: Risk) -> u8 {
    match risk {
        Risk::AllSpill => 2,
        Risk::LargestSpills => 1,
        Risk::None | Risk::Tight => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: i64 = 1 << 20;

    fn recorded(shuffle: &Shuffle, sizes: Vec<i64>) -> Recorded {
        let tasks = sizes.len() as i64;
        Recorded { shuffle: shuffle.clone(), tasks, wall_ms: 0, played_ms: 0, sizes }
    }

    #[test]
    fn takes_more_partitions_where_the_target_would_spill() {
        let small = Shuffle { bytes: 8 << 30, cores: 8, memory_per_core: 200 * MIB, ..Shuffle::default() };
        let adaptive = proposal(&small, None);
        assert!(adaptive.because.contains("advisoryPartitionSizeInBytes is 16MB"), "{adaptive:?}");
        let small = Shuffle { adaptive: false, ..small };
        assert_eq!(play(&small, 64).memory.risk, Risk::AllSpill);
        let proposed = proposal(&small, None);
        assert!(play(&small, proposed.partitions).memory.risk == Risk::None, "{proposed:?}");
        assert!(proposed.because.contains("in memory"), "{proposed:?}");
    }

    #[test]
    fn is_never_slower_than_what_ran() {
        for (hot, n) in [(90 * MIB, 16), (0, 400), (5 * MIB, 3), (300 * MIB, 200)] {
            let sizes: Vec<i64> = (0..n).map(|i| if i == 0 { hot + MIB } else { MIB }).collect();
            let bytes = sizes.iter().sum();
            let skew = hot as f64 / bytes as f64;
            let shuffle = Shuffle { bytes, cores: 2, skew, adaptive: false, fixed_ms: 120.0, ..Shuffle::default() };
            let recorded = recorded(&shuffle, sizes);
            let proposed = proposal(&shuffle, Some(&recorded));
            let after = match proposed.partitions == n {
                true => as_ran(&shuffle, &recorded),
                false => play(&shuffle, proposed.partitions),
            };
            let ran_ms = as_ran(&shuffle, &recorded).stage_ms as f64;
            assert!(after.stage_ms as f64 <= ran_ms * (1.0 + SAME_TIME), "{hot} {n}: {proposed:?}");
        }
    }

    #[test]
    fn says_where_it_stops() {
        let huge = Shuffle { bytes: 1 << 50, cores: 1, ..Shuffle::default() };
        let proposed = proposal(&huge, None);
        assert_eq!(proposed.partitions, MAX_PARTITIONS);
        assert!(proposed.because.contains("8\u{202f}388\u{202f}608"), "{proposed:?}");
    }
}
