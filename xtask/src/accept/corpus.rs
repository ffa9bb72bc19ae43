//! `diagnose-corpus`: labelled logs, public logs, Spark's own logs.

use super::Outcome;
use anyhow::Result;
use std::path::Path;

/// The sentence that the public taxi sample must be told.
const TAXI: (&str, &str) = (
    "eventlog_v2_spark-cc4d115f011443d787f03a71a476a745",
    "two tasks for four slots because of repartition(2); 84 partitions save about two and a half minutes of eight and a half",
);

/// Runs all three.
pub fn run(_: &[String]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(shared) = testkit::shared() else {
        outcome.skip("diagnose-corpus: needs ../shared (LAKESCOPE_SHARED)");
        return Ok(outcome);
    };
    labelled(&mut outcome, &shared.join("data/eventlogs"))?;
    compared(&mut outcome, "labelled logs", &testkit::counts::labelled(&shared.join("data"))?);
    public(&mut outcome, &shared.join("data"))?;
    spark_history(&mut outcome, &shared.join("data"))?;
    Ok(outcome)
}

fn labelled(outcome: &mut Outcome, folder: &Path) -> Result<()> {
    let corpus = testkit::corpus::run(folder)?;
    for log in &corpus.logs {
        for (what, why) in &log.failures {
            println!("{}: {what}: {why}", log.file);
        }
        outcome.passed += log.checks.saturating_sub(log.failures.len() as u64);
        outcome.failed += log.failures.len() as u64;
    }
    println!("{}", corpus.table());
    Ok(())
}

fn public(outcome: &mut Outcome, data: &Path) -> Result<()> {
    compared(outcome, "public logs", &testkit::counts::public(data)?);
    let folder = data.join("public-logs");
    let taxi = diagnose::diagnose(&testkit::logs::read_log(&folder.join(TAXI.0))?, &diagnose::Config::default());
    let first = taxi.findings.first().map(|f| f.title.clone()).unwrap_or_default();
    outcome.check(first.eq_ignore_ascii_case(TAXI.1), format!("the taxi sample is told {first:?}"));
    let lost = diagnose::diagnose(
        &testkit::logs::read_log(&folder.join("executors_fail.zstd"))?,
        &diagnose::Config::default(),
    );
    let failed = lost.application.counts.task_attempts_failed;
    outcome.check(failed == 3, format!("the lost-executor log has {failed} failed attempts, not 3"));
    let causes = lost
        .findings
        .iter()
        .filter(|f| f.caused_by.is_none() && is_failure(&f.id) && f.severity > model::Severity::Info);
    let causes: Vec<&str> = causes.map(|f| f.id.as_str()).collect();
    outcome.check(causes.len() == 1, format!("the lost-executor log has the causes {causes:?}, not one"));
    Ok(())
}

fn is_failure(id: &str) -> bool {
    id.starts_with("FAIL_") || id.starts_with("OOM_") || ["EXECUTOR_LOST", "JOB_CANCELLED"].contains(&id)
}

fn spark_history(outcome: &mut Outcome, data: &Path) -> Result<()> {
    let result = testkit::spark_history::compare(data)?;
    compared(outcome, "Spark's own logs", &result.compared);
    println!("{} of Spark's answers walked, left out: {:?}", result.answers, result.skipped);
    Ok(())
}

fn compared(outcome: &mut Outcome, what: &str, result: &testkit::counts::Compared) {
    for mismatch in &result.mismatches {
        println!("FAILED {what}: {mismatch}");
    }
    println!("{what}: {} values compared, {} differ", result.checked, result.mismatches.len());
    outcome.passed += (result.checked - result.mismatches.len()) as u64;
    outcome.failed += result.mismatches.len() as u64;
}
