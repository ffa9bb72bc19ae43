//! Sizes that remedies propose: values that people set.

/// Partitions so that each handles about `target` bytes: at least one wave, rounded up to a
/// multiple of the slots.
#[must_use]
pub fn partitions(bytes: i64, target: i64, slots: i64) -> i64 {
    let slots = slots.max(1);
    round_up(ceil_div(bytes.max(0), target.max(1)).max(1), slots)
}

/// Smallest multiple of `step` that is not below `value`.
#[must_use]
pub fn round_up(value: i64, step: i64) -> i64 {
    ceil_div(value, step.max(1)) * step.max(1)
}

/// `a / b`, rounded up; both not negative.
#[must_use]
pub fn ceil_div(a: i64, b: i64) -> i64 {
    a / b + i64::from(a % b != 0)
}

/// Largest power of two mebibytes that is not above `bytes`; at least one.
#[must_use]
pub fn power_of_two_mib(bytes: i64) -> i64 {
    let mib = u64::try_from(bytes >> 20).unwrap_or(0).max(1);
    1 << mib.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposes_values_that_people_set() {
        assert_eq!(partitions(10_758_165_882, 128 << 20, 4), 84);
        assert_eq!(partitions(0, 128 << 20, 8), 8);
        assert_eq!(round_up(17, 16), 32);
        assert_eq!(power_of_two_mib(168_000_000 / 2), 64);
        assert_eq!(power_of_two_mib(5), 1);
    }
}
