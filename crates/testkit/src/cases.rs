//! Runs pasted cases against their expected diagnosis (`expected.json`, described in the README
//! beside them): primary, expected and forbidden ids, facts, remedies.
//!
//! Wording is free, so phrases are compared by their telling words: a phrase is covered when
//! enough of its words stand in one remedy, or in what a finding says.

use anyhow::{Context as _, Result};
use diagnose::{Config, diagnose};
use model::{Finding, Report, Value};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What a case expects.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Expected {
    /// What was pasted, in the README's words.
    pub kind: String,
    /// The finding to show first.
    pub primary: String,
    /// Ids that must be there.
    pub expected: Vec<String>,
    /// Ids, or claims in words, that must not.
    pub must_not: Vec<String>,
    /// Numbers and names that the answer has to contain.
    pub facts: serde_json::Map<String, serde_json::Value>,
    /// What a remedy has to cover.
    pub remedy_mentions: Vec<String>,
}

/// How a case went.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Folder name.
    pub name: String,
    /// What was pasted, in the README's words.
    pub kind: String,
    /// Number of things that were checked.
    pub checks: usize,
    /// What is wrong; empty when it passed.
    pub failures: Vec<String>,
    /// Ids in the order of the report.
    pub found: Vec<String>,
}

impl Outcome {
    /// Whether everything that a machine can check holds.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Runs every case of a folder, by name.
///
/// # Errors
/// When the folder or a case cannot be read.
pub fn run(dir: &Path) -> Result<Vec<Outcome>> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("no cases at {}", dir.display()))?;
    let mut folders: Vec<PathBuf> =
        entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.join("expected.json").is_file()).collect();
    folders.sort();
    folders.iter().map(|folder| run_one(folder)).collect()
}

/// Runs one case.
///
/// # Errors
/// When its files cannot be read.
pub fn run_one(folder: &Path) -> Result<Outcome> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let expected = std::fs::read_to_string(folder.join("expected.json"))?;
    let expected: Expected = serde_json::from_str(&expected).with_context(|| format!("{name}: expected.json"))?;
    let input = ["input.txt", "input.json"].iter().map(|f| folder.join(f)).find(|p| p.is_file());
    let input = input.with_context(|| format!("{name}: no input"))?;
    let text = std::fs::read_to_string(&input)?;
    let report = diagnose(&read::paste::read(&text, None), &Config::default());
    Ok(Outcome { name, kind: expected.kind.clone(), ..judge(&expected, &report) })
}

/// Compares a report with what was expected of it.
#[must_use]
pub fn judge(expected: &Expected, report: &Report) -> Outcome {
    let checks =
        1 + expected.expected.len() + expected.must_not.len() + expected.facts.len() + expected.remedy_mentions.len();
    let mut outcome =
        Outcome { checks, found: report.findings.iter().map(|f| f.id.clone()).collect(), ..Outcome::default() };
    let primary = report.findings.iter().find(|f| f.caused_by.is_none()).map_or("none", |f| f.id.as_str());
    // A root that is refined by a finding it explains may be shown under either id.
    if primary != expected.primary && !same_root(report, &expected.primary) {
        outcome.failures.push(format!("primary is {primary}, expected {}", expected.primary));
    }
    for id in expected.expected.iter().filter(|id| !outcome.found.contains(id)) {
        outcome.failures.push(format!("{id} is missing"));
    }
    for rule in &expected.must_not {
        outcome.failures.extend(forbidden(rule, report, primary));
    }
    for (key, value) in &expected.facts {
        if !has_fact(key, value, report) {
            outcome.failures.push(format!("fact {key} = {value} is not told"));
        }
    }
    for phrase in &expected.remedy_mentions {
        if !covered_by_remedy(phrase, report) {
            outcome.failures.push(format!("no remedy covers: {phrase}"));
        }
    }
    outcome
}

/// The expected primary heads the first chain: nothing stands before it but what it causes.
fn same_root(report: &Report, id: &str) -> bool {
    report.findings.first().is_some_and(|f| f.id == id)
}

/// Breaks of one `must_not` entry: an id, `ID as primary`, advice, or a claim.
fn forbidden(rule: &str, report: &Report, primary: &str) -> Option<String> {
    let (first, rest) = rule.split_once([' ', ',']).unwrap_or((rule, ""));
    if is_id(first) {
        let as_primary = rest.contains("primary");
        let found = report.findings.iter().any(|f| f.id == first && f.severity > model::Severity::Info);
        let broken = if as_primary { primary == first } else { found };
        return broken.then(|| format!("must not: {rule}"));
    }
    let lower = rule.to_lowercase();
    let broken = if let Some(advice) = lower.strip_prefix("first advice:") {
        first_remedies(report).any(|text| covers(&text, advice, 0.6))
    } else if let Some(advice) = lower.strip_prefix("advice:").or_else(|| lower.strip_prefix("advice to ")) {
        all_remedies(report).any(|text| advises(&text, without_aside(advice)))
    } else if let Some(claim) = lower.strip_prefix("claim that ").or_else(|| lower.strip_prefix("claim: ")) {
        report.findings.iter().any(|f| sentences(f).any(|s| claims(&s, without_aside(claim))))
    } else if let Some(cause) = lower.strip_prefix("cause:") {
        report.findings.iter().any(|f| names_cause(f, cause))
    } else {
        // A bare phrase: neither advised nor said.
        all_remedies(report).any(|text| advises(&text, without_aside(&lower)))
            || report.findings.iter().any(|f| claims(&f.title.to_lowercase(), &lower))
    };
    broken.then(|| format!("must not: {rule}"))
}

fn is_id(word: &str) -> bool {
    word.contains('_') && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

/// `(it is broadcast)` explains; it is no part of the claim.
fn without_aside(text: &str) -> &str {
    text.split('(').next().unwrap_or(text).trim()
}

fn all_remedies(report: &Report) -> impl Iterator<Item = String> + '_ {
    report.findings.iter().flat_map(|f| f.remedies.iter().map(remedy_text))
}

fn first_remedies(report: &Report) -> impl Iterator<Item = String> + '_ {
    report.findings.iter().filter_map(|f| f.remedies.first()).map(remedy_text)
}

fn remedy_text(remedy: &model::Remedy) -> String {
    [Some(remedy.text.as_str()), remedy.snippet.as_deref(), remedy.computed_from.as_deref()]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase()
}

/// What a finding claims: title and evidence, not what it rules out.
fn sentences(finding: &Finding) -> impl Iterator<Item = String> + '_ {
    let evidence = finding.evidence.iter().map(|e| format!("{} {}", e.metric, value_text(&e.value)));
    std::iter::once(finding.title.clone()).chain(evidence).map(|s| s.to_lowercase())
}

/// Everything that a finding tells, for facts.
fn told(finding: &Finding) -> String {
    let mut text: Vec<String> = vec![finding.title.clone()];
    text.extend(finding.evidence.iter().map(|e| format!("{} {} {}", e.metric, value_text(&e.value), e.unit)));
    text.extend(finding.excluded.iter().map(|x| format!("{} {}", x.lookalike, x.because)));
    text.extend(finding.remedies.iter().map(|r| format!("{} {}", r.text, r.computed_from.as_deref().unwrap_or(""))));
    text.extend(finding.will_not_help.iter().map(|w| format!("{} {}", w.what, w.because)));
    text.extend(finding.scope.node.clone());
    text.extend(finding.scope.source_line.clone());
    text.extend(finding.estimate.as_ref().map(|e| e.method.clone()));
    text.push(finding.id.clone());
    text.join("\n").to_lowercase()
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Int(v) => v.to_string(),
        Value::Float(v) => v.to_string(),
        Value::Text(v) => v.clone(),
        Value::Texts(v) => v.join(" "),
    }
}

/// Words that carry no meaning of their own.
const EMPTY: [&str; 58] = [
    "a", "an", "the", "to", "of", "and", "or", "in", "on", "for", "with", "that", "this", "is", "it", "its", "by",
    "be", "at", "as", "from", "than", "so", "not", "no", "but", "if", "do", "does", "only", "just", "about", "into",
    "one", "each", "side", "cluster", "example", "below", "above", "such", "own", "same", "are", "was", "has", "have",
    "them", "their", "which", "then", "more", "rather", "needed", "gives", "could", "would", "really",
];

/// Words and settings of a text, in lower case, plural endings off.
fn tokens(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '<' | '=' | '>')));
    words.map(|w| w.trim_matches(['.', '-', '='])).filter(|w| !w.is_empty() && !EMPTY.contains(w)).map(stem).collect()
}

fn stem(word: &str) -> String {
    let word = word.strip_suffix("ing").filter(|w| w.len() > 3).unwrap_or(word);
    let word = word.strip_suffix("es").filter(|w| w.len() > 3).unwrap_or(word);
    let word = word.strip_suffix('s').filter(|w| w.len() > 2).unwrap_or(word);
    word.strip_suffix("ed").filter(|w| w.len() > 3).unwrap_or(word).trim_end_matches('e').to_owned()
}

/// Share of a phrase's words that a text has.
fn share(text: &str, phrase: &str) -> f64 {
    let have: BTreeSet<String> = tokens(text).into_iter().collect();
    let want = tokens(phrase);
    if want.is_empty() {
        return 0.0;
    }
    let found = want.iter().filter(|w| have.contains(*w) || have.iter().any(|h| is_same(h, w))).count();
    found as f64 / want.len() as f64
}

/// The same word up to its ending, a setting with its value, or a setting by its last name.
fn is_same(have: &str, want: &str) -> bool {
    let setting = |s: &str| s.split('=').next().unwrap_or(s).to_owned();
    let (have, want) = (setting(have), setting(want));
    let tail = |a: &str, b: &str| a.ends_with(&format!(".{b}"));
    have == want
        || tail(&have, &want)
        || tail(&want, &have)
        || want.len() >= 5 && have.len() >= 5 && (have.starts_with(&want) || want.starts_with(&have))
}

fn covers(text: &str, phrase: &str, least: f64) -> bool {
    share(text, phrase) >= least
}

/// Remedies advise a forbidden thing when all of its telling words stand in one of them.
fn advises(text: &str, advice: &str) -> bool {
    covers(text, advice, 1.0) && !text.contains("do not") && !text.contains("instead of")
}

fn claims(sentence: &str, claim: &str) -> bool {
    covers(sentence, claim, 1.0)
}

/// A finding names a cause in its evidence or title.
fn names_cause(finding: &Finding, cause: &str) -> bool {
    let words: Vec<&str> = cause.split(" or ").map(str::trim).filter(|w| !w.is_empty()).collect();
    let causes = finding.evidence.iter().filter(|e| e.metric == "cause").map(|e| value_text(&e.value).to_lowercase());
    causes
        .chain(std::iter::once(finding.title.to_lowercase()))
        .any(|text| words.iter().any(|word| tokens(&text).iter().any(|t| Some(t) == tokens(word).first())))
}

/// A phrase of `remedy_mentions` is covered by one remedy, or by the remedies of one finding
/// together; alternatives stand behind `or`.
fn covered_by_remedy(phrase: &str, report: &Report) -> bool {
    const LEAST: f64 = 0.6;
    let phrase = phrase.to_lowercase();
    let ways: Vec<&str> = std::iter::once(phrase.as_str()).chain(phrase.split(" or ")).collect();
    let per_finding = report.findings.iter().map(|f| {
        let remedies = f.remedies.iter().map(remedy_text);
        let words = f.will_not_help.iter().map(|w| format!("{} {}", w.what, w.because).to_lowercase());
        remedies.chain(words).chain(f.confirm.clone()).collect::<Vec<_>>().join("\n")
    });
    let texts: Vec<String> = all_remedies(report).chain(per_finding).collect();
    texts.iter().any(|text| ways.iter().any(|way| covers(text, way, LEAST)))
}

/// A number within 5 % or a text, in evidence or in what a finding says.
fn has_fact(key: &str, value: &serde_json::Value, report: &Report) -> bool {
    use serde_json::Value as Json;
    match value {
        Json::Number(n) => n.as_f64().is_some_and(|n| has_number(key, n, report)),
        Json::Bool(b) => report
            .findings
            .iter()
            .any(|f| f.evidence.iter().any(|e| e.metric == *key && value_text(&e.value) == b.to_string())),
        Json::String(text) => report.findings.iter().any(|f| says(f, key, text)) || said_together(report, text),
        Json::Array(items) => items.iter().all(|item| has_fact(key, item, report)),
        _ => true,
    }
}

fn has_number(key: &str, wanted: f64, report: &Report) -> bool {
    let near = |v: f64| (v - wanted).abs() <= 0.05 * wanted.abs();
    let of = |f: &Finding, named: bool| {
        f.evidence.iter().any(|e| {
            (!named || e.metric == *key)
                && match e.value {
                    Value::Int(v) => near(v as f64),
                    Value::Float(v) => near(v),
                    _ => false,
                }
        })
    };
    report.findings.iter().any(|f| of(f, true)) || report.findings.iter().any(|f| of(f, false))
}

/// A text fact: its numbers and most of its words stand in what the finding tells.
fn says(finding: &Finding, key: &str, text: &str) -> bool {
    let told = told(finding);
    let exact = finding.evidence.iter().any(|e| e.metric == key && covers(&value_text(&e.value), text, 0.6));
    exact || told.contains(&text.to_lowercase()) || has_words_and_numbers(&told, text)
}

fn said_together(report: &Report, text: &str) -> bool {
    let all: Vec<String> = report.findings.iter().map(told).collect();
    has_words_and_numbers(&all.join("\n"), text)
}

fn has_words_and_numbers(told: &str, text: &str) -> bool {
    let have: Vec<f64> = numbers(told).into_iter().flatten().collect();
    let near = |n: &f64| have.iter().any(|h| (h - n).abs() <= 0.05 * n.abs());
    let wanted = numbers(text);
    let found = wanted.iter().filter(|ways| ways.iter().any(near)).count();
    let words: Vec<String> =
        tokens(text).into_iter().filter(|t| !t.starts_with(|c: char| c.is_ascii_digit())).collect();
    found * 5 >= wanted.len() * 4 && (words.is_empty() || covers(told, &words.join(" "), 0.5))
}

/// Numbers of a text, each as written and in base units: `94 KiB`, `487 s`, `99 %`. Small ones
/// stand as words in sentences.
fn numbers(text: &str) -> Vec<Vec<f64>> {
    let text = text.replace(['\u{202f}', ','], "");
    let mut found = Vec::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[at..];
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        if let Ok(number) = rest[..end].trim_end_matches('.').parse::<f64>() {
            let unit: String =
                rest[end..].trim_start().chars().take_while(|c| c.is_alphabetic() || *c == '%').collect();
            found.push(std::iter::once(number).chain(scale(&unit).map(|s| number * s)).collect());
        }
        rest = &rest[end..];
    }
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphabetic());
    found.extend(words.filter_map(|w| WORDS.iter().position(|n| *n == w)).map(|n| vec![(n + 1) as f64]));
    found
}

/// Numbers that sentences write out.
const WORDS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// To bytes, milliseconds and plain shares, so that `487 s` and `487000` meet.
fn scale(unit: &str) -> Option<f64> {
    Some(match unit.to_lowercase().as_str() {
        "kib" | "kb" => 1_024.0,
        "mib" | "mb" => 1_048_576.0,
        "gib" | "gb" => 1_073_741_824.0,
        "s" => 1_000.0,
        "min" | "m" => 60_000.0,
        "%" => 0.01,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Evidence, Remedy};

    fn report() -> Report {
        let finding = Finding {
            id: "SKEW_KEY".into(),
            title: "one task reads 168 MB".into(),
            severity: model::Severity::High,
            evidence: vec![Evidence { metric: "bytes".into(), value: 168_000_000_i64.into(), ..Evidence::default() }],
            remedies: vec![Remedy { text: "Split the hot key by salting".into(), ..Remedy::default() }],
            ..Finding::default()
        };
        Report { findings: vec![finding], ..Report::default() }
    }

    fn failures(expected: serde_json::Value) -> usize {
        judge(&serde_json::from_value(expected).unwrap(), &report()).failures.len()
    }

    /// Pasted traces and log excerpts; other kinds are judged by `cargo xtask accept`.
    #[test]
    fn shared_stack_cases() {
        let Some(shared) = crate::shared() else {
            eprintln!("skipped: shared_stack_cases needs the shared data");
            return;
        };
        let outcomes = run(&shared.join("data/cases")).unwrap();
        let failed: Vec<&Outcome> = outcomes.iter().filter(|o| !o.passed() && o.kind == "stack").collect();
        assert!(failed.is_empty(), "{failed:#?}");
    }

    #[test]
    fn judges_ids_facts_and_words() {
        use serde_json::json;
        assert_eq!(
            failures(json!({"primary": "SKEW_KEY", "expected": ["SKEW_KEY"], "facts": {"bytes": 170_000_000}})),
            0
        );
        assert_eq!(failures(json!({"primary": "GC_PRESSURE"})), 1);
        assert_eq!(failures(json!({"primary": "SKEW_KEY", "facts": {"bytes": 190_000_000}})), 1);
        assert_eq!(failures(json!({"primary": "SKEW_KEY", "must_not": ["SKEW_KEY as primary"]})), 1);
        assert_eq!(failures(json!({"primary": "SKEW_KEY", "must_not": ["advice: salting the hot key"]})), 1);
        assert_eq!(failures(json!({"primary": "SKEW_KEY", "must_not": ["advice: more shuffle partitions"]})), 0);
        assert_eq!(failures(json!({"primary": "SKEW_KEY", "remedy_mentions": ["salt the hot key"]})), 0);
        assert_eq!(failures(json!({"primary": "SKEW_KEY", "remedy_mentions": ["use AQE"]})), 1);
    }
}
