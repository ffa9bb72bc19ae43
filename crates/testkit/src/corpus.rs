//! Labelled event logs: what must be found in each, what must not, and how well that went.
//!
//! Precision of a finding id: right findings over right ones and false alarms. Recall: right
//! findings over all that the labels ask for. A finding that no label speaks about is not judged.
//! A label is met by any one of the ids of its kind; one that is missed counts for the first of
//! them.

use anyhow::{Context, Result};
use diagnose::{Config, diagnose};
use model::{Finding, Report, Severity, Value};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// How far a number may be from the labelled one.
const TOLERANCE: f64 = 0.05;

/// A labelled log.
#[derive(Clone, Debug, Deserialize)]
pub struct Log {
    /// File or folder, relative to the manifest.
    pub file: String,
    /// What it shows.
    pub scenario: String,
    /// Counts of a line-by-line reading.
    pub counts: BTreeMap<String, serde_json::Value>,
    /// What a right diagnosis names.
    pub must_find: Vec<Label>,
    /// What would be a false alarm.
    pub must_not_find: Vec<Ban>,
}

/// Something to be found.
#[derive(Clone, Debug, Deserialize)]
pub struct Label {
    /// Kind; `finding-ids.json` ties it to finding ids.
    pub kind: String,
    /// Where: stage, attempt, job, sql, executor, query, rdds, sqls.
    #[serde(rename = "where", default)]
    pub place: BTreeMap<String, serde_json::Value>,
    /// Exact numbers.
    #[serde(default)]
    pub evidence: serde_json::Value,
}

/// Something not to be found.
#[derive(Clone, Debug, Deserialize)]
pub struct Ban {
    /// Kinds.
    pub kinds: Vec<String>,
    /// Where; empty: anywhere.
    #[serde(rename = "where", default)]
    pub place: BTreeMap<String, serde_json::Value>,
    /// Why not.
    #[serde(default)]
    pub why: String,
}

/// How the labels of all logs were met.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Log by log.
    pub logs: Vec<LogOutcome>,
    /// By finding id.
    pub scores: BTreeMap<String, Score>,
}

/// How the labels of one log were met.
#[derive(Clone, Debug, Default)]
pub struct LogOutcome {
    /// File.
    pub file: String,
    /// Checks that were made.
    pub checks: u64,
    /// What is wrong, in a sentence each, with the kind it is about (empty: counts).
    pub failures: Vec<(String, String)>,
    /// Labelled numbers that no finding carries.
    pub not_compared: Vec<String>,
    /// Numbers that were compared.
    pub compared: u64,
}

/// Right, missed and wrong findings of one id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Labels met by it.
    pub right: u32,
    /// Labels that it should have met.
    pub missed: u32,
    /// False alarms.
    pub wrong: u32,
}

impl Score {
    /// Right over right and wrong.
    #[must_use]
    pub fn precision(&self) -> Option<f64> {
        let all = self.right + self.wrong;
        (all > 0).then(|| f64::from(self.right) / f64::from(all))
    }

    /// Right over right and missed.
    #[must_use]
    pub fn recall(&self) -> Option<f64> {
        let all = self.right + self.missed;
        (all > 0).then(|| f64::from(self.right) / f64::from(all))
    }
}

/// The labelled logs of a folder.
///
/// # Errors
/// When there is no manifest, or it is not of this form.
pub fn manifest(folder: &Path) -> Result<Vec<Log>> {
    #[derive(Deserialize)]
    struct Manifest {
        logs: Vec<Log>,
    }
    let text = std::fs::read_to_string(folder.join("manifest.json")).context("no manifest.json")?;
    Ok(serde_json::from_str::<Manifest>(&text)?.logs)
}

/// Finding ids by kind.
///
/// # Errors
/// When there is no such file, or it is not of this form.
pub fn ids_by_kind(folder: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let text = std::fs::read_to_string(folder.join("finding-ids.json")).context("no finding-ids.json")?;
    let all: BTreeMap<String, serde_json::Value> = serde_json::from_str(&text)?;
    let kinds = all.into_iter().filter(|(_, v)| v.is_array());
    kinds.map(|(kind, ids)| Ok((kind, serde_json::from_value(ids)?))).collect()
}

/// Reads and diagnoses every log of a folder and holds the findings against its labels.
///
/// # Errors
/// When the manifest or a log cannot be read.
pub fn run(folder: &Path) -> Result<Outcome> {
    let ids = ids_by_kind(folder)?;
    let mut outcome = Outcome::default();
    for log in manifest(folder)? {
        let app = crate::logs::read_log(&folder.join(&log.file))?;
        let report = diagnose(&app, &Config::default());
        outcome.logs.push(judge(&log, &report, &ids, &mut outcome.scores));
    }
    Ok(outcome)
}

/// Holds a report against the labels of its log.
#[must_use]
pub fn judge(
    log: &Log,
    report: &Report,
    ids: &BTreeMap<String, Vec<String>>,
    scores: &mut BTreeMap<String, Score>,
) -> LogOutcome {
    let mut out = LogOutcome { file: log.file.clone(), ..LogOutcome::default() };
    counts(log, report, &mut out);
    for label in &log.must_find {
        expected(label, report, ids, scores, &mut out);
    }
    for ban in &log.must_not_find {
        forbidden(log, ban, report, ids, scores, &mut out);
    }
    out
}

fn expected(
    label: &Label,
    report: &Report,
    ids: &BTreeMap<String, Vec<String>>,
    scores: &mut BTreeMap<String, Score>,
    out: &mut LogOutcome,
) {
    let wanted = ids.get(&label.kind).map(Vec::as_slice).unwrap_or_default();
    let Some(first) = wanted.first() else { return };
    out.checks += 1;
    let hits: Vec<&Finding> =
        report.findings.iter().filter(|f| wanted.contains(&f.id) && is_at(f, &label.place)).collect();
    // The one that the reader sees: the worst.
    let Some(hit) = hits.iter().max_by_key(|f| f.severity) else {
        scores.entry(first.clone()).or_default().missed += 1;
        out.failures.push((label.kind.clone(), format!("no {} at {:?}", label.kind, label.place)));
        return;
    };
    scores.entry(hit.id.clone()).or_default().right += 1;
    // What adaptive execution did is worth knowing, not a fault: its findings are info by rule.
    let information = hit.id == "AQE_CHANGED";
    if hit.severity == Severity::Info && !information {
        out.failures.push((label.kind.clone(), format!("{} at {:?} is only info", hit.id, label.place)));
    }
    let mut numbers = Vec::new();
    flatten(&label.evidence, label, "", &mut numbers);
    for (name, value) in numbers {
        let seen: Vec<&Value> = hits
            .iter()
            .flat_map(|f| &f.evidence)
            .filter(|e| e.metric == name || e.metric == format!("{name}_sum"))
            .map(|e| &e.value)
            .collect();
        match seen.as_slice() {
            [] => out.not_compared.push(format!("{}: {name}", label.kind)),
            seen => {
                out.compared += 1;
                if !seen.iter().any(|v| agrees(v, &value)) {
                    let kind = label.kind.clone();
                    out.failures.push((kind, format!("{} {name} is {seen:?}, labelled {value}", hit.id)));
                }
            }
        }
    }
}

/// Labelled numbers by the names that evidence gives them. Objects keyed by stage or executor are
/// followed for the place of the label.
fn flatten(value: &serde_json::Value, label: &Label, prefix: &str, into: &mut Vec<(String, serde_json::Value)>) {
    let Some(object) = value.as_object() else { return };
    let own = |key: &str| label.place.get(key).map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned));
    for (key, value) in object {
        let stage = own("stage").is_some_and(|s| *key == s || *key == format!("{s}.0"));
        let executor = own("executor").is_some_and(|e| *key == e) && prefix == "executors";
        match value {
            serde_json::Value::Object(_) if stage => flatten(value, label, "", into),
            serde_json::Value::Object(_) if executor => flatten(value, label, "executor", into),
            serde_json::Value::Object(_) if matches!(key.as_str(), "stages" | "executors") => {
                flatten(value, label, key, into)
            }
            serde_json::Value::Object(inner) if inner.contains_key("median") => {
                into.extend(inner.iter().map(|(q, v)| (format!("{key}_{q}"), v.clone())));
            }
            serde_json::Value::Number(_) | serde_json::Value::String(_) if prefix == "executor" => {
                into.push((format!("executor_{key}"), value.clone()));
            }
            serde_json::Value::Number(_) | serde_json::Value::String(_) => into.push((key.clone(), value.clone())),
            _ => {}
        }
    }
}

fn agrees(seen: &Value, labelled: &serde_json::Value) -> bool {
    let near = |a: f64| labelled.as_f64().is_some_and(|b| (a - b).abs() <= TOLERANCE * b.abs() + f64::EPSILON);
    match seen {
        Value::Int(n) => near(*n as f64),
        Value::Float(n) => near(*n),
        Value::Text(text) => labelled.as_str().is_some_and(|l| l == text),
        Value::Texts(texts) => labelled.as_str().is_some_and(|l| texts.iter().any(|t| t == l)),
    }
}

fn forbidden(
    log: &Log,
    ban: &Ban,
    report: &Report,
    ids: &BTreeMap<String, Vec<String>>,
    scores: &mut BTreeMap<String, Score>,
    out: &mut LogOutcome,
) {
    let none = Vec::new();
    for kind in &ban.kinds {
        if ban.place.is_empty() && log.must_find.iter().any(|l| l.kind == *kind) {
            continue;
        }
        out.checks += 1;
        let banned: BTreeSet<&String> = ids.get(kind).unwrap_or(&none).iter().collect();
        for finding in &report.findings {
            let alarm = finding.severity > Severity::Info && banned.contains(&finding.id) && is_at(finding, &ban.place);
            // One id can serve two kinds: what one label asks for is no alarm for another.
            let asked = log
                .must_find
                .iter()
                .any(|l| ids.get(&l.kind).unwrap_or(&none).contains(&finding.id) && is_at(finding, &l.place));
            if alarm && !asked {
                scores.entry(finding.id.clone()).or_default().wrong += 1;
                let place = (finding.scope.stage, finding.scope.sql);
                out.failures.push((
                    kind.clone(),
                    format!("false alarm {} {place:?}: {} ({})", finding.id, finding.title, ban.why),
                ));
            }
        }
    }
}

/// Whether a finding is at a place. A part of the place that the finding does not speak about is
/// passed over as long as another part agrees.
#[must_use]
pub fn is_at(finding: &Finding, place: &BTreeMap<String, serde_json::Value>) -> bool {
    let scope = &finding.scope;
    let mut agreed = place.is_empty();
    for (key, value) in place {
        let number = value.as_i64();
        let list: Vec<i64> = value.as_array().into_iter().flatten().filter_map(serde_json::Value::as_i64).collect();
        let same = match key.as_str() {
            "stage" => {
                let stages = || scope.stage.into_iter().chain(scope.stages.iter().copied());
                (stages().next().is_some()).then(|| stages().any(|s| Some(i64::from(s)) == number))
            }
            "attempt" => scope.attempt.map(|a| Some(i64::from(a)) == number),
            "job" => scope.job.map(|j| Some(i64::from(j)) == number),
            "sql" => {
                let sqls = || scope.sql.into_iter().chain(scope.sqls.iter().copied());
                (sqls().next().is_some()).then(|| sqls().any(|s| Some(s) == number))
            }
            "sqls" => {
                let sqls = || scope.sql.into_iter().chain(scope.sqls.iter().copied());
                (sqls().next().is_some()).then(|| sqls().any(|s| list.contains(&s)))
            }
            "executor" => scope.executor.as_ref().map(|e| value.as_str() == Some(e)),
            "query" => scope.query.as_ref().map(|q| value.as_str().is_some_and(|name| q.contains(name))),
            "rdds" => (!scope.rdds.is_empty()).then(|| scope.rdds.iter().any(|r| list.contains(&i64::from(*r)))),
            _ => None,
        };
        match same {
            Some(false) => return false,
            Some(true) => agreed = true,
            None => {}
        }
    }
    agreed
}

/// Counts as they stand in the report against those of a line-by-line reading.
fn counts(log: &Log, report: &Report, out: &mut LogOutcome) {
    let (app, c) = (&report.application, &report.application.counts);
    let numbers = [
        ("events", c.events),
        ("jobs", c.jobs),
        ("failed_jobs", c.failed_jobs),
        ("unfinished_jobs", c.unfinished_jobs),
        ("stage_attempts_completed", c.stage_attempts_completed),
        ("tasks_started", c.tasks_started),
        ("task_ends", c.task_ends),
        ("task_ends_not_successful", c.task_ends_not_successful),
        ("sql_executions", c.sql_executions),
        ("executors_removed", c.executors_removed),
    ];
    for (name, seen) in numbers {
        let Some(labelled) = log.counts.get(name).and_then(serde_json::Value::as_u64) else { continue };
        out.checks += 1;
        if labelled != seen {
            out.failures.push((String::new(), format!("{name} is {seen}, labelled {labelled}")));
        }
    }
    for (name, seen) in [("app_id", &app.id), ("app_name", &app.name)] {
        let Some(labelled) = log.counts.get(name).and_then(|v| v.as_str()) else { continue };
        out.checks += 1;
        if labelled != seen {
            out.failures.push((String::new(), format!("{name} is {seen:?}, labelled {labelled:?}")));
        }
    }
    if let Some(labelled) = log.counts.get("duration_ms").and_then(serde_json::Value::as_i64) {
        out.checks += 1;
        if labelled != app.wall_ms {
            out.failures.push((String::new(), format!("wall time is {} ms, labelled {labelled}", app.wall_ms)));
        }
    }
}

impl Outcome {
    /// Whether every label was met.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.logs.iter().all(|l| l.failures.is_empty())
    }

    /// Checks made, over all logs.
    #[must_use]
    pub fn checks(&self) -> u64 {
        self.logs.iter().map(|l| l.checks + l.compared).sum()
    }

    /// The table to publish: one line a finding id.
    #[must_use]
    pub fn table(&self) -> String {
        let share = |s: Option<f64>| s.map_or_else(|| "-".to_owned(), |s| format!("{s:.2}"));
        let mut out =
            format!("{:26} {:>5} {:>6} {:>5} {:>9} {:>6}\n", "id", "right", "missed", "wrong", "precision", "recall");
        for (id, s) in &self.scores {
            let (precision, recall) = (share(s.precision()), share(s.recall()));
            out.push_str(&format!(
                "{id:26} {:>5} {:>6} {:>5} {precision:>9} {recall:>6}\n",
                s.right, s.missed, s.wrong
            ));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(stage: Option<u32>, sql: Option<i64>) -> Finding {
        let mut finding = Finding::default();
        finding.scope.stage = stage;
        finding.scope.sql = sql;
        finding
    }

    fn place(text: &str) -> BTreeMap<String, serde_json::Value> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_place_agrees_part_by_part() {
        assert!(is_at(&finding(Some(3), None), &place(r#"{"stage":3}"#)));
        assert!(!is_at(&finding(Some(4), None), &place(r#"{"stage":3}"#)));
        assert!(!is_at(&finding(None, None), &place(r#"{"stage":3}"#)));
        assert!(is_at(&finding(None, Some(0)), &place(r#"{"sql":0,"stage":6}"#)));
        assert!(is_at(&finding(None, None), &place("{}")));
    }

    #[test]
    fn numbers_agree_within_five_per_cent() {
        assert!(agrees(&Value::Int(105), &100.into()));
        assert!(!agrees(&Value::Int(106), &100.into()));
        assert!(agrees(&Value::Int(0), &0.into()));
        assert!(!agrees(&Value::Int(1), &0.into()));
    }
}
