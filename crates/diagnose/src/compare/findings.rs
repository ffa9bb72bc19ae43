//! What the difference means, as findings and as one sentence.

use super::{Cause, Comparison, history};
use crate::config::Config;
use crate::words;
use model::{Application, Confidence, Evidence, Finding, Metric, Millis, Severity, Share, StageStatus};

/// Differences below this share of the baseline are no change.
const NOTABLE: f64 = 0.05;
/// Runs from which a trend is told.
const TREND_RUNS: usize = 5;

/// The sentence to repeat on the phone.
pub fn sentence(c: &Comparison) -> String {
    let share = c.delta_ms as f64 / c.base.wall_ms.max(1) as f64;
    if share.abs() < NOTABLE {
        return format!("both runs took about the same time, {} and {}", Millis(c.base.wall_ms), Millis(c.new.wall_ms));
    }
    let word = if c.delta_ms > 0 { "slower" } else { "faster" };
    let head = format!(
        "{} {word} ({} instead of {})",
        Millis(c.delta_ms.abs()),
        Millis(c.new.wall_ms),
        Millis(c.base.wall_ms)
    );
    let same_way = |p: &&super::CausePart| p.ms.signum() == c.delta_ms.signum();
    let Some(most) = c.parts.iter().filter(same_way).max_by_key(|p| p.ms.abs()) else { return head };
    let of = Share((most.ms as f64 / c.delta_ms as f64).min(1.0));
    let place = most
        .places
        .iter()
        .find(|p| p.ms.signum() == c.delta_ms.signum())
        .map(|p| format!(": {}", p.text))
        .unwrap_or_default();
    format!("{head}, {of} of it {}{place}", most.cause.name())
}

/// `REG_*`, `FLAKY` and `IMPROVED`.
pub fn all(c: &Comparison, base: &[Application], new: &Application, config: &Config) -> Vec<Finding> {
    let slower = c.history.as_ref().map_or(c.delta_ms as f64 > NOTABLE * c.base.wall_ms as f64, |h| h.slower);
    let mut found = Vec::new();
    if slower {
        found.extend(c.parts.iter().filter_map(|part| regression(c, part, config)));
    }
    if (c.delta_ms as f64) < -NOTABLE * c.base.wall_ms as f64 {
        let title = format!("{} faster than the baseline", Millis(-c.delta_ms));
        found.push(finding("IMPROVED", title, Severity::Info).with("delta_ms", c.delta_ms, "ms"));
    }
    found.extend(skew_trend(base, new));
    found.extend(flaky(base, new));
    found.sort_by_key(|f| std::cmp::Reverse(f.severity));
    found
}

fn regression(c: &Comparison, part: &super::CausePart, config: &Config) -> Option<Finding> {
    let start_up: i64 = part.places.iter().filter(|p| p.text.starts_with("start-up")).map(|p| p.ms).sum();
    let id = match part.cause {
        Cause::DataGrowth => "REG_DATA_GROWTH",
        Cause::PlanChange => "REG_PLAN_CHANGE",
        Cause::Cluster if start_up * 2 > part.ms => "REG_SETUP",
        Cause::Cluster => "REG_CLUSTER",
        Cause::Configuration => "REG_CONFIG",
        Cause::NewFinding | Cause::Unexplained => return None,
    };
    let severity = crate::severity(config, part.ms, c.new.wall_ms);
    if severity == Severity::Info {
        return None;
    }
    let text = part.places.first().map(|p| p.text.clone()).unwrap_or_default();
    let mut finding =
        finding(id, format!("{} more by {}: {text}", words::duration(part.ms), part.cause.name()), severity)
            .with("added_ms", part.ms, "ms")
            .with("delta_ms", c.delta_ms, "ms");
    finding.scope.sql = part.places.first().and_then(|p| p.sql);
    finding.scope.stage = part.places.first().and_then(|p| p.stage);
    Some(finding)
}

/// REG_SKEW_TREND: the slowest task over the median grows from run to run.
fn skew_trend(base: &[Application], new: &Application) -> Option<Finding> {
    let mut runs: Vec<&Application> = base.iter().filter(|a| history::ended_well(a)).chain([new]).collect();
    runs.sort_by_key(|a| a.start_ms());
    if runs.len() < TREND_RUNS {
        return None;
    }
    let ratios: Vec<f64> = runs.iter().map(|a| worst_ratio(a)).collect();
    let (first, last) = (*ratios.first()?, *ratios.last()?);
    let rising = ratios.windows(2).filter(|w| w[1] >= w[0]).count() * 4 >= (ratios.len() - 1) * 3;
    if !rising || last < 1.5 * first || last < 4.0 {
        return None;
    }
    let title = format!("the slowest task grew from {first:.1} to {last:.1} times the median over {} runs", runs.len());
    Some(
        finding("REG_SKEW_TREND", title, Severity::Medium)
            .with("max_over_median_first", first, "ratio")
            .with("max_over_median_last", last, "ratio")
            .with("runs", runs.len(), "runs"),
    )
}

/// Slowest over median task of the stage that took longest.
fn worst_ratio(app: &Application) -> f64 {
    let longest = app.stages.iter().filter(|s| s.tasks.len() >= 4).max_by_key(|s| s.wall_ms());
    longest.and_then(|s| s.quantiles(Metric::DurationMs).max_over_median()).unwrap_or(1.0)
}

/// FLAKY: the same stage fails in some runs (code), or another one each time (platform).
fn flaky(base: &[Application], new: &Application) -> Option<Finding> {
    let runs: Vec<&Application> = base.iter().chain([new]).collect();
    let failed: Vec<&str> = runs.iter().filter_map(|a| first_failed_stage(a)).collect();
    if runs.len() < 3 || failed.len() < 2 || failed.len() == runs.len() {
        return None;
    }
    let same = failed.iter().all(|name| *name == failed[0]);
    let (what, confidence) = match same {
        true => ("at the same stage, which points to code or data", Confidence::Medium),
        false => ("at different stages, which points to the platform", Confidence::Low),
    };
    let title =
        format!("{} of {} runs failed, {what}", words::number(failed.len() as u64), words::number(runs.len() as u64));
    let mut finding = finding("FLAKY", title, Severity::Medium).with("failed_runs", failed.len(), "runs").with(
        "runs",
        runs.len(),
        "runs",
    );
    finding.confidence = confidence;
    Some(finding)
}

fn first_failed_stage(app: &Application) -> Option<&str> {
    let failed = app.stages.iter().filter(|s| s.status == StageStatus::Failed);
    failed.min_by_key(|s| s.completed_ms).map(|s| &*s.name)
}

fn finding(id: &str, title: String, severity: Severity) -> Finding {
    Finding { id: id.to_owned(), title, severity, confidence: Confidence::Medium, ..Finding::default() }
}

trait With {
    fn with(self, metric: &str, value: impl Into<model::Value>, unit: &str) -> Self;
}

impl With for Finding {
    fn with(mut self, metric: &str, value: impl Into<model::Value>, unit: &str) -> Self {
        self.evidence.push(Evidence {
            metric: metric.to_owned(),
            value: value.into(),
            unit: unit.to_owned(),
            ..Evidence::default()
        });
        self
    }
}
