//! `simulate`: runs in random worlds, each of its own seed (`testkit::worlds`).

use super::Outcome;
use anyhow::{Context, Result};

/// Worlds, unless an argument says otherwise.
const SEEDS: u64 = 100_000;

pub fn run(arguments: &[String]) -> Result<Outcome> {
    let seeds =
        arguments.first().map_or(Ok(SEEDS), |seeds| seeds.parse()).context("the argument is a number of seeds")?;
    let failed = testkit::worlds::play_all(0..seeds);
    if let Some(seed) = failed.first() {
        println!("FAILED seeds {failed:?}; one alone: LAKESCOPE_SEED={seed} cargo test -p run simulate");
    }
    let failed = failed.len() as u64;
    Ok(Outcome { passed: seeds - failed, failed, skipped: 0 })
}
