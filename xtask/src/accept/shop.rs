//! `shop`: `lakescope demo shop` from nothing to repaired, on a real Spark. What it prints stands in
//! the guide; numbers apart, it has to be the same. `UPDATE=1` writes it there.

use super::Outcome;
use crate::{lakescope_binary, root, spark};
use anyhow::{Context, Result, ensure};
use std::process::Command;

const GUIDE: &str = "docs/guide/shop.md";
const BEGIN: &str = "```text\n";
const END: &str = "```\n";

pub fn run(_: &[String]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Ok(spark) = spark::find() else {
        outcome.skip("shop: no Python with PySpark can be made here (Python 3 with pip, Java 17)");
        return Ok(outcome);
    };
    let folder = tempfile::tempdir()?;
    let mut demo = Command::new(lakescope_binary()?);
    demo.args(["demo", "shop", "--once", "--quiet", "--python"]).arg(&spark.python);
    let output = demo.arg("--folder").arg(folder.path().join("shop")).output()?;
    let printed = String::from_utf8(output.stdout)?;
    print!("{printed}");
    let said = String::from_utf8_lossy(&output.stderr);
    outcome.check(output.status.success(), format!("the demo ends with {}: {said}", output.status));
    let path = root().join(GUIDE);
    let guide = std::fs::read_to_string(&path)?;
    let (before, rest) = guide.split_once(BEGIN).with_context(|| format!("{GUIDE} has no such block"))?;
    let (block, after) = rest.split_once(END).with_context(|| format!("the block in {GUIDE} has no end"))?;
    if std::env::var_os("UPDATE").is_some() {
        ensure!(output.status.success(), "nothing is written of a demo that failed");
        std::fs::write(&path, format!("{before}{BEGIN}{printed}{END}{after}"))?;
        return Ok(outcome);
    }
    outcome.check(without_numbers(block) == without_numbers(&printed), format!("{GUIDE} shows something else"));
    Ok(outcome)
}

/// Each number as one letter, and the padding before it as one space: what differs from run to run.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' if out.ends_with('N') => {}
            '0'..='9' => out.push('N'),
            ' ' if out.ends_with(' ') => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_count() {
        assert_eq!(without_numbers("run 12   of 300: 4.5 s"), without_numbers("run 7 of 4: 10.25 s"));
        assert_ne!(without_numbers("run 12 failed"), without_numbers("run 12 ended"));
    }
}
