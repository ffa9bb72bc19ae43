//! `model`: the model of the run is near the real one, parts add up exactly, names do not matter.

use super::Outcome;
use anyhow::Result;
use diagnose::{Config, compare::compare, diagnose};
use model::{Application, Finding, Value};
use std::collections::BTreeMap;

/// Largest error of the simulated wall time.
const ERROR: f64 = 0.15;

/// Runs over the labelled batch logs.
pub fn run(_: &[String]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(shared) = testkit::shared() else {
        outcome.skip("model: needs ../shared (LAKESCOPE_SHARED)");
        return Ok(outcome);
    };
    let folder = shared.join("data/eventlogs");
    let mut apps: BTreeMap<String, Application> = BTreeMap::new();
    for log in testkit::corpus::manifest(&folder)? {
        let bytes = testkit::logs::plain(&folder.join(&log.file))?;
        let app = testkit::logs::read_bytes(&bytes)?;
        check_model(&mut outcome, &log.file, &app);
        check_renamed(&mut outcome, &log.file, &app, &bytes)?;
        apps.insert(log.file.clone(), app);
    }
    check_regressions(&mut outcome, &apps);
    Ok(outcome)
}

fn check_model(outcome: &mut Outcome, name: &str, app: &Application) {
    let report = diagnose(app, &Config::default());
    let wall: i64 = report.summary.time.iter().map(|p| p.ms).sum();
    outcome.check(wall == app.wall_ms(), format!("{name}: parts of the wall time give {wall} of {}", app.wall_ms()));
    let core: i64 = report.summary.core_time.iter().map(|p| p.ms).sum();
    let slots = diagnose::slots::Slots::of(app);
    let (from, to) = (app.start_ms().unwrap_or(0), app.end_ms().unwrap_or(0));
    let whole = diagnose::budget::slot_time(app, &slots);
    outcome.check(core == whole, format!("{name}: parts of the slot time give {core} of {whole}"));
    outcome.check(whole >= slots.integral(from, to), format!("{name}: less slot time than slots × time"));
    let batch = app.streams.is_empty() && app.ended_ms.is_some();
    if let Some(fit) = report.summary.model.filter(|_| batch) {
        println!(
            "{name:45} real {:>8} ms, simulated {:>8} ms, error {:.1} %",
            app.wall_ms(),
            fit.simulated_ms,
            fit.error * 100.0
        );
        outcome.check(fit.error <= ERROR, format!("{name}: the model is off by {:.1} %", fit.error * 100.0));
    }
}

/// Every column, table and application name of the log becomes another; findings stay.
fn check_renamed(outcome: &mut Outcome, name: &str, app: &Application, bytes: &[u8]) -> Result<()> {
    let other = testkit::logs::read_bytes(&testkit::rename::rename(bytes, app))?;
    let (before, after) = (diagnose(app, &Config::default()), diagnose(&other, &Config::default()));
    let (before, after) = (shapes(&before.findings), shapes(&after.findings));
    let same = before == after;
    if !same {
        let differing = before.iter().zip(&after).find(|(a, b)| a != b);
        println!("{name}: {differing:?}, {} and {} findings", before.len(), after.len());
    }
    outcome.check(same, format!("{name}: findings change with the names"));
    Ok(())
}

/// What must not change: id, severity, place and numbers.
fn shapes(findings: &[Finding]) -> Vec<String> {
    let numbers = |f: &Finding| -> Vec<String> {
        let shown = f.evidence.iter().filter_map(|e| match &e.value {
            Value::Int(n) => Some(format!("{}={n}", e.metric)),
            Value::Float(n) => Some(format!("{}={n:.6}", e.metric)),
            Value::Text(_) | Value::Texts(_) => None,
        });
        shown.collect()
    };
    let shape = |f: &Finding| {
        let s = &f.scope;
        format!("{} {:?} {:?} {:?} {:?} {:?}", f.id, f.severity, s.stage, s.sql, s.job, numbers(f))
    };
    findings.iter().map(shape).collect()
}

/// Parts of a comparison add up to the difference, for every pair of logs.
fn check_regressions(outcome: &mut Outcome, apps: &BTreeMap<String, Application>) {
    let mut pairs = 0;
    for (a, base) in apps {
        for (b, new) in apps.iter().filter(|(b, _)| *b != a) {
            let Some(comparison) = compare(&[base], new, &Config::default()) else { continue };
            let sum: i64 = comparison.parts.iter().map(|p| p.ms).sum();
            pairs += 1;
            if sum != comparison.delta_ms {
                outcome.check(false, format!("{a} against {b}: parts give {sum} of {}", comparison.delta_ms));
            }
        }
    }
    outcome.check(pairs > 0, "no pair of logs was compared");
    println!("{pairs} comparisons add up");
}
