//! The whole answer of the calculator: the number that is proposed, and others beside it.

use super::{MAX_PARTITIONS, Outcome, Proposal, Recorded, Shuffle, as_ran, play, proposal};
use serde::Serialize;

/// What a shuffle will do, as JSON writes it.
#[derive(Serialize)]
pub struct Answer<'a> {
    /// What it was computed from.
    pub given: &'a Shuffle,
    /// The number that is proposed.
    pub proposed_partitions: i64,
    /// And where it comes from.
    pub proposed_because: String,
    /// What becomes of the number that was asked for, else of the proposed one.
    pub outcome: Outcome,
    /// Other numbers beside it.
    pub others: Vec<Outcome>,
    /// The stage as it ran, where it comes from a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<&'a Recorded>,
}

impl<'a> Answer<'a> {
    /// Plays the number asked for and those around it. With `same_settings` the number that ran is
    /// given as it ran, not as it would be played.
    #[must_use]
    pub fn new(
        given: &'a Shuffle,
        recorded: Option<&'a Recorded>,
        partitions: Option<i64>,
        same_settings: bool,
    ) -> Self {
        let Proposal { partitions: proposed, because } = proposal(given, recorded);
        let chosen = partitions.unwrap_or(proposed);
        let ran = recorded.filter(|recorded| (1..=MAX_PARTITIONS).contains(&recorded.tasks));
        let play = |n: i64| match ran {
            Some(ran) if ran.tasks == n && same_settings => as_ran(given, ran),
            _ => play(given, n),
        };
        let others = choices(proposed, chosen, ran.map(|ran| ran.tasks)).into_iter().map(play).collect();
        let outcome = play(chosen);
        Self { given, proposed_partitions: proposed, proposed_because: because, outcome, others, recorded }
    }
}

/// Numbers of partitions to compare: around the proposal, Spark's default, what ran and what was
/// asked.
fn choices(proposed: i64, chosen: i64, ran: Option<i64>) -> Vec<i64> {
    const SPARKS_DEFAULT: i64 = 200;
    let mut all = vec![proposed / 4, proposed / 2, proposed, proposed * 2, proposed * 4, SPARKS_DEFAULT, chosen];
    all.extend(ran);
    all.retain(|n| (1..=MAX_PARTITIONS).contains(n));
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::choices;

    #[test]
    fn compares_around_the_proposal() {
        assert_eq!(choices(512, 300, None), [128, 200, 256, 300, 512, 1_024, 2_048]);
        assert_eq!(choices(1, 1, Some(16)), [1, 2, 4, 16, 200]);
    }
}
