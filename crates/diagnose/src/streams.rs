//! What the rules on streaming queries share: the batches that count, and the trigger interval,
//! which the event log does not hold.

use crate::config::Config;
use crate::context::Context;
use crate::draft::Draft;
use model::{Batch, StreamingQuery};

/// Intervals that people set, ms; an interval is only inferred when it is one of these.
const USUAL_MS: [i64; 16] = [
    500, 1_000, 2_000, 3_000, 5_000, 10_000, 15_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000,
    1_800_000, 3_600_000,
];
/// A batch that begins this soon after the one before did not wait for its trigger, ms.
const AT_ONCE_MS: i64 = 100;
/// How late after its boundary a batch may begin, ms.
const LATE_MS: i64 = 150;

/// Where a trigger interval is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Interval, ms.
    pub ms: i64,
    /// Read from the starts of batches rather than stated.
    pub inferred: bool,
}

/// A streaming query as the rules see it.
pub struct Stream<'a> {
    /// The query.
    pub query: &'a StreamingQuery,
    /// The last batches with data, in order; the first batch after a start is left out.
    pub recent: Vec<&'a Batch>,
    /// Its trigger interval.
    pub trigger: Option<Trigger>,
    /// Batches that began as soon as the one before had ended.
    pub at_once: usize,
    /// Pairs of batches that follow each other.
    pub pairs: usize,
}

/// All streaming queries.
#[must_use]
pub fn all<'a>(cx: &Context<'a>) -> Vec<Stream<'a>> {
    cx.app.streams.iter().map(|q| Stream::of(q, cx.config)).collect()
}

impl<'a> Stream<'a> {
    fn of(query: &'a StreamingQuery, config: &Config) -> Self {
        // The start event tells that the first batch is the first after a start; a paste does not.
        let fresh = usize::from(query.started_ms.is_some() || query.batches.first().is_some_and(|b| b.id == 0));
        let counted: Vec<&Batch> =
            query.batches.iter().skip(fresh).filter(|b| b.input_rows > 0 && trigger_ms(b) > 0).collect();
        let recent = counted[counted.len().saturating_sub(config.stream_batches)..].to_vec();
        let stated = query.trigger_ms.filter(|t| *t > 0).map(|ms| Trigger { ms, inferred: false });
        let waits = waits(query);
        let at_once = waits.iter().filter(|w| w.wait_ms <= AT_ONCE_MS).count();
        Self { query, recent, trigger: stated.or_else(|| infer(&waits)), at_once, pairs: waits.len() }
    }

    /// The name it has in findings: its own, else its id.
    #[must_use]
    pub fn name(&self) -> String {
        self.query.name.as_deref().map_or_else(|| self.query.id.to_string(), str::to_owned)
    }

    /// Median over the recent batches, by Spark's definition.
    #[must_use]
    pub fn median(&self, value: impl Fn(&Batch) -> Option<f64>) -> Option<f64> {
        let mut values: Vec<f64> = self.recent.iter().filter_map(|b| value(b)).filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// Places a finding at this query.
    #[must_use]
    pub fn place(&self, draft: Draft) -> Draft {
        let mut draft = draft;
        draft.finding.scope.query = Some(self.name());
        draft
    }
}

/// `triggerExecution` of a batch, ms; 0 when it has none.
#[must_use]
pub fn trigger_ms(batch: &Batch) -> i64 {
    batch.phase_ms("triggerExecution").unwrap_or(0)
}

struct Wait {
    start_ms: i64,
    wait_ms: i64,
}

/// How long each batch waited after the end of the one before.
fn waits(query: &StreamingQuery) -> Vec<Wait> {
    let pair = |w: &[Batch]| {
        let (before, after) = (&w[0], &w[1]);
        let end = before.started_ms? + trigger_ms(before);
        (after.id == before.id + 1).then_some(Wait { start_ms: after.started_ms?, wait_ms: after.started_ms? - end })
    };
    query.batches.windows(2).filter_map(pair).collect()
}

/// Batches that waited begin at a multiple of the interval: the largest usual interval at whose
/// multiples they all begin.
fn infer(waits: &[Wait]) -> Option<Trigger> {
    let waited: Vec<i64> = waits.iter().filter(|w| w.wait_ms > AT_ONCE_MS).map(|w| w.start_ms).collect();
    if waited.len() < 3 {
        return None;
    }
    let fits =
        |ms: i64| waited.iter().filter(|t| t.rem_euclid(ms) <= LATE_MS.min(ms / 4)).count() * 10 >= waited.len() * 9;
    USUAL_MS.into_iter().rev().find(|&ms| fits(ms)).map(|ms| Trigger { ms, inferred: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(starts: &[i64], durations: &[i64]) -> StreamingQuery {
        let batch = |(at, (start, ms)): (usize, (&i64, &i64))| Batch {
            id: at as i64,
            started_ms: Some(*start),
            phases: vec![("triggerExecution".into(), *ms)],
            input_rows: 10,
            ..Batch::default()
        };
        let batches = starts.iter().zip(durations).enumerate().map(batch).collect();
        StreamingQuery { batches, ..StreamingQuery::default() }
    }

    #[test]
    fn reads_the_interval_from_batches_that_waited() {
        let config = Config::default();
        let aligned = query(&[1_003, 10_004, 20_010, 30_002, 40_000], &[500, 600, 400, 500, 500]);
        assert_eq!(Stream::of(&aligned, &config).trigger, Some(Trigger { ms: 10_000, inferred: true }));
        let back_to_back = query(&[0, 3_010, 7_020, 12_030], &[3_000, 4_000, 5_000, 5_000]);
        let stream = Stream::of(&back_to_back, &config);
        assert_eq!((stream.trigger, stream.at_once, stream.pairs), (None, 3, 3));
        assert_eq!(stream.recent.len(), 3);
    }
}
