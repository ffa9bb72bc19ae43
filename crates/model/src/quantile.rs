//! Spark's quantiles: a value that occurred, never an interpolated one.

use serde::{Deserialize, Serialize};

/// The five values and the sum that Spark's Summary Metrics show for one metric of a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Smallest value.
    pub min: i64,
    /// 25th percentile.
    pub p25: i64,
    /// Median.
    pub median: i64,
    /// 75th percentile.
    pub p75: i64,
    /// Largest value.
    pub max: i64,
    /// Sum over the tasks; an estimate when only the five values were given.
    pub sum: i64,
    /// Number of values.
    pub count: u64,
}

impl Quantiles {
    /// Computes them as Spark does: sorted, the value at index `min(floor(q * n), n - 1)`.
    #[must_use]
    pub fn of(mut values: Vec<i64>) -> Self {
        let [min, p25, median, p75, max] = quantiles(&mut values, [0.0, 0.25, 0.5, 0.75, 1.0]).unwrap_or_default();
        let sum = values.iter().fold(0, |sum: i64, value| sum.saturating_add(*value));
        Self { min, p25, median, p75, max, sum, count: values.len() as u64 }
    }

    /// Largest value over the 75th percentile; `None` when that percentile is 0.
    #[must_use]
    pub fn max_over_p75(&self) -> Option<f64> {
        (self.p75 > 0).then(|| self.max as f64 / self.p75 as f64)
    }

    /// What the tasks beside the heaviest have: the 75th percentile. Of at most eight tasks one or
    /// two heavy ones are that percentile themselves; where it is close to a largest value of twice
    /// the median, the median stands for the others.
    #[must_use]
    pub fn peers(&self) -> i64 {
        if self.peers_by_median() { self.median } else { self.p75 }
    }

    /// Whether [`Quantiles::peers`] is the median.
    #[must_use]
    pub fn peers_by_median(&self) -> bool {
        self.count <= 8 && self.p75 > self.max / 2 && self.median <= self.max / 2
    }

    /// Largest value over that of its peers; very large where they have nothing.
    #[must_use]
    pub fn max_over_peers(&self) -> f64 {
        self.max as f64 / self.peers().max(1) as f64
    }

    /// Largest value over the median; `None` when the median is 0.
    #[must_use]
    pub fn max_over_median(&self) -> Option<f64> {
        (self.median > 0).then(|| self.max as f64 / self.median as f64)
    }
}

/// Spark's quantile `q` (0 to 1) of values in ascending order; `None` when there is none.
#[must_use]
pub fn quantile(sorted: &[i64], q: f64) -> Option<i64> {
    let last = sorted.len().checked_sub(1)?;
    let index = (q * sorted.len() as f64).floor().max(0.0) as usize;
    Some(sorted[index.min(last)])
}

/// Spark's quantiles, each from 0 to 1 and none below the one before, of values in any order, which
/// are put into another; `None` when there is none. Quicker than sorting when values are many.
#[must_use]
pub fn quantiles<const N: usize>(values: &mut [i64], at: [f64; N]) -> Option<[i64; N]> {
    let last = values.len().checked_sub(1)?;
    let mut done = 0;
    Some(at.map(|q| {
        let index = ((q * (last + 1) as f64).floor().max(0.0) as usize).clamp(done, last);
        let (_, value, _) = values[done..].select_nth_unstable(index - done);
        done = index;
        *value
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_values_that_occurred() {
        let q = Quantiles::of(vec![4, 1, 3, 2]);
        assert_eq!((q.min, q.p25, q.median, q.p75, q.max, q.sum), (1, 2, 3, 4, 4, 10));
        assert_eq!(Quantiles::of(vec![]), Quantiles::default());
        assert_eq!(quantile(&[7], 0.5), Some(7));
    }

    #[test]
    fn selects_what_sorting_gives() {
        let mut seed = 1_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as i64
        };
        for length in 1..200 {
            let width = 1 + next() % 500;
            let values: Vec<i64> = (0..length).map(|_| next() % width - width / 2).collect();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let at = [0.0, 0.1, 0.5, 0.5, 0.95, 1.0];
            let expected = at.map(|q| quantile(&sorted, q).unwrap());
            assert_eq!(quantiles(&mut values.clone(), at), Some(expected), "{values:?}");
        }
        assert_eq!(quantiles(&mut [], [0.5]), None);
    }
}
