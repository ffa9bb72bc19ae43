//! `browser-history`: what people come for, done in a real browser: find the failed and the skewed
//! application, see the evidence, copy the remedy, drop a log, all by keyboard, without faults of
//! accessibility.

use super::Outcome;
use crate::{lakescope_binary, root, web};
use anyhow::Result;
use testkit::serving::Serving;

/// Builds the pages, serves the samples, runs the tests; an argument is a folder for screenshots.
pub fn run(arguments: &[String]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if let Some(why) = web::missing() {
        outcome.skip(format!("browser-history: {why}"));
        return Ok(outcome);
    }
    web::build()?;
    let Some(browser) = web::browser()? else {
        outcome.skip("browser-history: no Chromium (apt-get install chromium, or set CHROMIUM)");
        return Ok(outcome);
    };
    let data = tempfile::tempdir()?;
    let samples = root().join("samples");
    let serving = Serving::start(&lakescope_binary()?, data.path(), [samples.as_os_str(), "--no-auth".as_ref()])?;
    let screenshots = arguments.first().map(|folder| root().join(folder).display().to_string());
    let output = web::test(&serving.address, &browser, screenshots.as_deref())?;
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines().filter(|line| !line.starts_with("# ") || line.contains("not ok")) {
        println!("{line}");
    }
    let count = |word: &str| {
        let line = text.lines().find_map(|line| line.trim_start_matches(['#', 'ℹ', ' ']).strip_prefix(word));
        line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or_default()
    };
    outcome.passed += count("pass ");
    outcome.skipped += count("skipped ");
    outcome.failed += count("fail ");
    // A runner that could not even start has counted nothing.
    outcome.check(output.status.success(), format!("the browser tests: {}", String::from_utf8_lossy(&output.stderr)));
    Ok(outcome)
}
