//! The rules: one file each. A check may look at what earlier ones found.

mod low_parallelism;

use crate::context::Context;
use crate::draft::Findings;

/// One pass over the application.
pub type Check = fn(&Context<'_>, &mut Findings);

/// All checks, in the order in which they run: what explains others comes first.
pub const CHECKS: &[Check] = &[low_parallelism::check];

/// A finding id and what it means, in one line.
pub struct Rule {
    /// Id, e.g. `SKEW_KEY`.
    pub id: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// Every finding id that a check can give.
pub const RULES: &[Rule] = &[
    Rule { id: "LOW_PARALLELISM", meaning: "a stage has fewer tasks than the application has slots" },
    Rule { id: "BIG_PARTITION", meaning: "a task handles far more bytes than it should" },
];
