//! What the difference means, as findings and as one sentence.

use super::{Cause, CausePart, Comparison, history};
use crate::config::Config;
use crate::words;
use model::{Application, Confidence, Evidence, Finding, Metric, Millis, Severity, Share, StageStatus};

/// Differences below this share of the baseline are no change.
const NOTABLE: f64 = 0.05;
/// Runs from which a trend is told.
const TREND_RUNS: usize = 5;

/// Parts below this share of the largest are left out of the sentence.
const WORTH_SAYING: f64 = 0.25;

/// The sentence to repeat on the phone: what failed, then the time, then where it went.
pub fn sentence(c: &Comparison) -> String {
    let mut said = Vec::new();
    match (&c.new.failed, &c.base.failed) {
        (Some(new), None) => said.push(format!("the new run failed: {}", new.trim_end_matches('.'))),
        (Some(new), Some(_)) => said.push(format!("both runs failed, the new one by: {}", new.trim_end_matches('.'))),
        (None, Some(_)) => said.push("the baseline failed, so that the times say little".to_owned()),
        (None, None) => {}
    }
    if different(c) {
        said.push(format!("these are two different applications, {} and {}", c.base.name, c.new.name));
    }
    said.push(match c.new.failed {
        Some(_) => format!("it ran {}, the baseline {}", Millis(c.new.wall_ms), Millis(c.base.wall_ms)),
        None => time(c),
    });
    said.join("; ")
}

/// Whether the two have another name and no plan in common.
fn different(c: &Comparison) -> bool {
    c.nothing_in_common && c.base.name != c.new.name
}

/// The difference and its largest parts. Shares are told only when all parts go one way: else one
/// of them would be more than the whole.
fn time(c: &Comparison) -> String {
    let share = c.delta_ms as f64 / c.base.wall_ms.max(1) as f64;
    let (new, base) = (Millis(c.new.wall_ms), Millis(c.base.wall_ms));
    let head = match c.delta_ms {
        _ if share.abs() < NOTABLE => format!("both runs took about the same time, {base} and {new}"),
        1.. => format!("{} slower ({new} instead of {base})", Millis(c.delta_ms)),
        _ => format!("{} faster ({new} instead of {base})", Millis(-c.delta_ms)),
    };
    let parts = worth_saying(c);
    // Where nothing is in common there is nothing to take apart.
    let Some(first) = parts.first().filter(|_| !different(c)) else { return head };
    let one_way = c.parts.iter().all(|p| p.ms == 0 || p.ms.signum() == c.delta_ms.signum());
    if one_way && share.abs() >= NOTABLE {
        let share = |part: &CausePart| Share(part.ms as f64 / c.delta_ms as f64);
        let told = parts.iter().enumerate().map(|(i, part)| match i {
            0 => format!("{} of it {}{}", share(part), part.cause.name(), place(part)),
            _ => format!("{} {}", share(part), part.cause.name()),
        });
        return format!("{head}, {}", told.collect::<Vec<_>>().join(", "));
    }
    // Near-equal runs are worth a second sentence only where large parts cancel out.
    if share.abs() < NOTABLE && (first.ms.abs() as f64) < NOTABLE * c.base.wall_ms as f64 {
        return head;
    }
    let told = parts.iter().enumerate().map(|(i, part)| {
        let at = if i == 0 { place(part) } else { String::new() };
        format!("{} {}{at}", signed(part.ms), part.cause.name())
    });
    format!("{head}: {}", told.collect::<Vec<_>>().join(", "))
}

/// The largest parts, those of the work before start-up, at most three.
fn worth_saying(c: &Comparison) -> Vec<&CausePart> {
    let largest = c.parts.iter().map(|p| p.ms.abs()).max().unwrap_or(0);
    let mut parts: Vec<&CausePart> =
        c.parts.iter().filter(|p| p.ms != 0 && p.ms.abs() as f64 >= WORTH_SAYING * largest as f64).collect();
    parts.sort_by_key(|p| (p.cause == Cause::StartUp, std::cmp::Reverse(p.ms.abs())));
    parts.truncate(3);
    parts
}

/// Where most of a part is, without the details that a finding's title ends with.
fn place(part: &CausePart) -> String {
    if part.cause == Cause::StartUp {
        return String::new();
    }
    let most = part.places.iter().find(|p| p.ms.signum() == part.ms.signum());
    let Some(most) = most else { return String::new() };
    let text = match part.cause {
        Cause::NewFinding => short(&most.text),
        _ => most.text.clone(),
    };
    format!(" ({text})")
}

/// `stage 3: One task of 12 reads 60 MiB`, up to the next colon or semicolon.
fn short(text: &str) -> String {
    let from = text.find(": ").map_or(0, |at| at + 2);
    let to = text[from..].find([':', ';']).map_or(text.len(), |at| from + at);
    text[..to].to_owned()
}

fn signed(ms: i64) -> String {
    if ms > 0 { format!("+{}", Millis(ms)) } else { Millis(ms).to_string() }
}

/// `REG_*`, `FLAKY` and `IMPROVED`; `rules::RULES` lists them.
pub fn all(c: &Comparison, base: &[&Application], new: &Application, config: &Config) -> Vec<Finding> {
    let slower = c.history.as_ref().map_or(c.delta_ms as f64 > NOTABLE * c.base.wall_ms as f64, |h| h.slower);
    let mut found = Vec::new();
    if let (Some(why), None) = (&c.new.failed, &c.base.failed) {
        found.push(finding("REG_FAILED", format!("the new run failed: {why}"), Severity::Critical));
    }
    if slower {
        found.extend(c.parts.iter().filter_map(|part| regression(c, part, config)));
    }
    if c.new.failed.is_none() && (c.delta_ms as f64) < -NOTABLE * c.base.wall_ms as f64 {
        let title = format!("{} faster than the baseline", Millis(-c.delta_ms));
        found.push(finding("IMPROVED", title, Severity::Info).with("delta_ms", c.delta_ms, "ms"));
    }
    found.extend(skew_trend(base, new));
    found.extend(flaky(base, new));
    found.sort_by_key(|f| std::cmp::Reverse(f.severity));
    found
}

fn regression(c: &Comparison, part: &CausePart, config: &Config) -> Option<Finding> {
    let id = match part.cause {
        Cause::DataGrowth => "REG_DATA_GROWTH",
        Cause::PlanChange => "REG_PLAN_CHANGE",
        Cause::StartUp => "REG_SETUP",
        Cause::Cluster => "REG_CLUSTER",
        Cause::Configuration => "REG_CONFIG",
        Cause::Contention => "REG_CONTENTION",
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
fn skew_trend(base: &[&Application], new: &Application) -> Option<Finding> {
    let mut runs: Vec<&Application> = base.iter().copied().filter(|a| history::ended_well(a)).chain([new]).collect();
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
fn flaky(base: &[&Application], new: &Application) -> Option<Finding> {
    let runs: Vec<&Application> = base.iter().copied().chain([new]).collect();
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
