//! Small parts of drawings: icons, axis steps, times.

use model::Millis;

pub const MARK: &str =
    "<circle cx=\"8\" cy=\"8\" r=\"6.2\"/><path d=\"M2.4 9.5c1.9-1.5 3.7-1.5 5.6 0s3.7 1.5 5.6 0M5 5.7h6\"/>";
pub const CHECK: &str = "<circle cx=\"8\" cy=\"8\" r=\"6\"/><path d=\"m5.3 8.2 1.9 1.9 3.6-4\"/>";
pub const CROSS: &str = "<path d=\"M5.5 2h5L14 5.5v5L10.5 14h-5L2 10.5v-5zM6 6l4 4M10 6l-4 4\"/>";
pub const TRIANGLE: &str = "<path d=\"M8 2.2 14.3 13.5H1.7zM8 6.5v3.2M8 11.7v.1\"/>";
pub const CHEVRON: &str = "<path d=\"m6 4 4 4-4 4\"/>";
pub const FOLLOWS: &str = "<path d=\"M4 2.5v6a2 2 0 0 0 2 2h6M9.5 8l2.5 2.5L9.5 13\"/>";
pub const WRENCH: &str = "<path d=\"M13.7 4.6a3.6 3.6 0 0 1-4.9 4.2L4.6 13a1.5 1.5 0 0 1-2.1-2.1l4.2-4.2a3.6 3.6 0 0 1 4.2-4.9L8.7 4l.6 2.1 2.1.6z\"/>";

/// An icon of 16 by 16 in the colour of the text around it.
pub fn icon(paths: &str) -> String {
    format!("<svg class=\"i\" viewBox=\"0 0 16 16\" aria-hidden=\"true\">{paths}</svg>")
}

/// `02:04` and `14 Nov 2025` of a time in UTC.
pub fn clock(epoch_ms: i64) -> Option<(String, String)> {
    let time = jiff::Timestamp::from_millisecond(epoch_ms).ok()?;
    Some((time.strftime("%H:%M").to_string(), time.strftime("%-d %b %Y").to_string()))
}

/// Round durations that people name on an axis, ms.
const STEPS_MS: [i64; 30] = [
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    1_200_000,
    1_800_000,
    3_600_000,
    7_200_000,
    10_800_000,
    21_600_000,
    43_200_000,
    86_400_000,
    172_800_000,
    604_800_000,
    2_592_000_000,
];

/// The finest round step that cuts a length into at most `most` pieces.
pub fn step_ms(length_ms: i64, most: i64) -> i64 {
    let fits = STEPS_MS.into_iter().find(|step| length_ms / step <= most);
    fits.unwrap_or(length_ms.max(1))
}

/// A duration on an axis, without parts that are zero: `6 m`, `1 h`, `30 s`.
pub fn tick(ms: i64) -> String {
    match ms {
        0 => "0".to_owned(),
        1..1_000 => format!("{ms} ms"),
        _ if ms % 86_400_000 == 0 => format!("{} d", ms / 86_400_000),
        _ if ms % 3_600_000 == 0 => format!("{} h", ms / 3_600_000),
        _ if ms < 3_600_000 && ms % 60_000 == 0 => format!("{} m", ms / 60_000),
        _ if ms < 60_000 && ms % 1_000 == 0 => format!("{} s", ms / 1_000),
        _ => Millis(ms).to_string(),
    }
}

/// Where values stand on an axis, in per cent of its width.
#[derive(Clone, Copy)]
pub struct Scale {
    low: f64,
    high: f64,
    /// Logarithmic: for values that differ by more than a factor.
    pub log: bool,
}

impl Scale {
    /// An axis from the smallest to the largest value; from 0 unless logarithmic.
    pub fn over(min: i64, max: i64) -> Self {
        const SPREAD: i64 = 20;
        let (min, max) = (min.max(1), max.max(1));
        match max / min >= SPREAD {
            true => Self { low: (min as f64).ln(), high: (max as f64).ln(), log: true },
            false => Self { low: 0.0, high: max as f64, log: false },
        }
    }

    /// Position of a value, 2 to 97 per cent.
    pub fn at(&self, value: i64) -> f64 {
        let value = if self.log { (value.max(1) as f64).ln() } else { value as f64 };
        let share = (value - self.low) / (self.high - self.low).max(f64::MIN_POSITIVE);
        2.0 + share.clamp(0.0, 1.0) * 95.0
    }

    /// Round values on the axis that stand at least `apart` per cent from each other.
    pub fn ticks(&self, steps: &[i64], apart: f64) -> Vec<i64> {
        if !self.log {
            let most = (95.0 / apart) as i64;
            let step = steps.iter().copied().find(|step| self.high as i64 / step <= most).unwrap_or(i64::MAX);
            return (0..=most).map(|i| i.saturating_mul(step)).filter(|v| *v as f64 <= self.high).collect();
        }
        let mut chosen: Vec<i64> = Vec::new();
        for &step in steps {
            let value = step as f64;
            let inside = value.ln() >= self.low && value.ln() <= self.high;
            let clear = chosen.last().is_none_or(|last| self.at(step) - self.at(*last) >= apart);
            if inside && clear {
                chosen.push(step);
            }
        }
        chosen
    }
}

/// Steps of an axis of durations.
pub fn time_steps() -> &'static [i64] {
    &STEPS_MS
}

/// Steps of an axis of sizes: powers of four.
pub fn byte_steps() -> Vec<i64> {
    (0..26).map(|power| 1_i64 << (2 * power)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_ticks() {
        assert_eq!(step_ms(2_538_000, 8), 300_000);
        assert_eq!((tick(360_000), tick(3_600_000), tick(30_000)), ("6 m".into(), "1 h".into(), "30 s".into()));
        let scale = Scale::over(22_000, 1_622_000);
        assert!(scale.log);
        assert_eq!(scale.ticks(time_steps(), 20.0), [30_000, 120_000, 300_000, 1_200_000]);
    }

    #[test]
    fn a_time_is_shown_in_utc() {
        assert_eq!(clock(1_763_085_852_000), Some(("02:04".into(), "14 Nov 2025".into())));
    }
}
