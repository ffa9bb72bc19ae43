//! `diagnose-cases`: pasted plans, traces and stage numbers with their right answer.

use super::Outcome;
use anyhow::Result;

/// Runs every folder of the shared cases.
pub fn run(_: &[String]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(shared) = testkit::shared() else {
        outcome.skip("diagnose-cases: needs ../shared (LAKESCOPE_SHARED)");
        return Ok(outcome);
    };
    for case in testkit::cases::run(&shared.join("data/cases"))? {
        for failure in &case.failures {
            println!("{}: {failure}", case.name);
        }
        outcome.check(case.failures.is_empty(), format!("{} ({} checks)", case.name, case.checks));
    }
    Ok(outcome)
}
