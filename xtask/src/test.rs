//! Every check and test, in the order in which they fail fastest. `.ci/run` calls this.

use crate::{accept, docs, postgres, root, tidy};
use anyhow::{Context, Result, bail};
use std::time::Instant;

/// Runs all of it; ends with `N passed, N failed` over tests and acceptance lines.
pub fn run() -> Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    tidy::run()?;
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    cargo(&["clippy", "--package", "lakescope", "--no-default-features", "--locked", "--", "-D", "warnings"])?;
    docs::run(true)?;
    let mut total = tests()?;
    for line in accept::fast() {
        total.add(&accept::run_one(line, &[])?);
    }
    println!("{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    if total.failed > 0 {
        bail!("{} failed", total.failed)
    }
    Ok(())
}

fn cargo(arguments: &[&str]) -> Result<()> {
    println!("cargo {}", arguments.join(" "));
    let begun = Instant::now();
    start::run(start::cargo().args(arguments).current_dir(root()))?;
    println!("cargo {}: {:.0} s", arguments.join(" "), begun.elapsed().as_secs_f64());
    Ok(())
}

/// `cargo test` of the whole workspace, its result lines added up.
fn tests() -> Result<accept::Outcome> {
    // Tests of the store find it; where there is none, they say so.
    postgres::find()?;
    println!("cargo test --workspace --locked");
    let begun = Instant::now();
    let output = start::cargo()
        .args(["test", "--workspace", "--locked", "--no-fail-fast"])
        .current_dir(root())
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot run cargo test")?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    println!("cargo test --workspace --locked: {:.0} s", begun.elapsed().as_secs_f64());
    let mut total = accept::Outcome::default();
    for line in text.lines().filter(|l| l.starts_with("test result:")) {
        let number = |word: &str| {
            let before = line.split(word).next().and_then(|s| s.split_whitespace().last());
            before.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0)
        };
        total.passed += number(" passed");
        total.failed += number(" failed");
        total.skipped += number(" ignored");
    }
    if !output.status.success() && total.failed == 0 {
        bail!("cargo test ended with {}", output.status);
    }
    Ok(total)
}
