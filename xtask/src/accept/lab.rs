//! `lab`: each laboratory on real Spark: the bad variant is found, the repaired one is better.

use super::Outcome;
use crate::{lakescope_binary, spark};
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;

/// Laboratories with the ids of which one must be found in the bad variant.
const LABS: &[(&str, &[&str])] = &[
    ("skew", &["SKEW_KEY", "SKEW_NULL_KEY"]),
    ("spill", &["SPILL_EVEN", "SPILL_SKEW"]),
    ("shuffle", &["SHUFFLE_HEAVY", "JOIN_SHOULD_BROADCAST"]),
    ("oom", &["OOM_EXECUTOR_HEAP", "FAIL_RESULT_SIZE", "OOM_DRIVER", "OOM_CONTAINER"]),
    ("small-files", &["FILE_SMALL_READ", "FILE_SMALL_WRITE"]),
];

/// Runs all laboratories, or the named ones; `--scale X` makes them smaller or larger.
pub fn run(arguments: &[String]) -> Result<Outcome> {
    let binary = lakescope_binary()?;
    let spark = spark::find()?;
    let scale = arguments.iter().position(|a| a == "--scale").and_then(|at| arguments.get(at + 1));
    let scale = scale.map_or("1", String::as_str);
    let named = |lab: &str| arguments.iter().any(|a| a == lab);
    let any_named = LABS.iter().any(|(lab, _)| named(lab));
    let mut outcome = Outcome::default();
    for (lab, ids) in LABS.iter().filter(|(lab, _)| !any_named || named(lab)) {
        let output = Command::new(&binary)
            .args(["lab", lab, "--scale", scale, "--format", "json", "--python"])
            .arg(&spark.python)
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let Ok(result) = serde_json::from_str::<Value>(&text).context("no JSON") else {
            outcome.check(false, format!("lab {lab}: {}", String::from_utf8_lossy(&output.stderr)));
            continue;
        };
        let found = |variant: &str| -> Vec<String> {
            let findings = result[variant]["findings"].as_array().cloned().unwrap_or_default();
            findings.iter().filter_map(|f| f["id"].as_str().map(str::to_owned)).collect()
        };
        let (bad, good) = (found("bad"), found("good"));
        println!("lab {lab}: bad {bad:?}, repaired {good:?}");
        outcome.check(ids.iter().any(|id| bad.iter().any(|b| b == id)), format!("lab {lab}: none of {ids:?} found"));
        let severe = |v: &str| result[v]["summary"]["severity"].as_str().unwrap_or("none").to_owned();
        outcome.check(
            !good.iter().any(|g| ids.contains(&g.as_str())),
            format!("lab {lab}: still found when repaired ({})", severe("good")),
        );
    }
    Ok(outcome)
}
