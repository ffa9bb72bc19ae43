//! A finding on its way: built by a rule, placed and linked by the report.

use crate::context::StageFacts;
use model::{Confidence, Estimate, Evidence, Excluded, Finding, Remedy, RemedyKind, Severity, Value, WillNotHelp};

/// What the rules found so far.
#[derive(Debug, Default)]
pub struct Findings {
    /// In the order in which rules added them.
    pub drafts: Vec<Draft>,
    /// What was checked and found fine, and what could not be judged.
    pub checked: Vec<model::Checked>,
}

impl Findings {
    /// Adds a finding.
    pub fn push(&mut self, draft: Draft) {
        self.drafts.push(draft);
    }

    /// Notes that something was looked at and is fine.
    pub fn fine(&mut self, what: &str, result: impl Into<String>) {
        let (what, result) = (what.to_owned(), result.into());
        self.checked.push(model::Checked { what, result, state: model::CheckState::Fine });
    }

    /// Notes that something could not be judged, and what the input lacks for it.
    pub fn unknown(&mut self, what: &str, why: impl Into<String>) {
        let (what, result) = (what.to_owned(), why.into());
        self.checked.push(model::Checked { what, result, state: model::CheckState::Unknown });
    }

    /// Whether a finding of one of these ids exists at a stage.
    #[must_use]
    pub fn any_at(&self, ids: &[&str], stage: u32, attempt: u32) -> bool {
        self.drafts.iter().any(|d| {
            ids.contains(&d.finding.id.as_str())
                && d.finding.scope.stage == Some(stage)
                && d.finding.scope.attempt.unwrap_or(attempt) == attempt
        })
    }

    /// Whether a finding of one of these ids exists anywhere.
    #[must_use]
    pub fn any(&self, ids: &[&str]) -> bool {
        self.drafts.iter().any(|d| ids.contains(&d.finding.id.as_str()))
    }
}

/// A finding with what the report needs to place it.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The finding as it will be shown; `severity`, `caused_by`, `causes` are set by the report.
    pub finding: Finding,
    /// Short noun phrase of the first remedy for the title: `84 partitions`.
    pub fix: Option<String>,
    /// Whether `fix` is one thing ("a broadcast join saves") or many ("84 partitions save").
    pub fix_is_plural: bool,
    /// Severity is at least this, whatever the estimate says.
    pub at_least: Severity,
    /// Severity is at most this, whatever the estimate says.
    pub at_most: Option<Severity>,
    /// Ids that explain this one when they are found at the same stage, SQL execution or, for
    /// findings without a place, anywhere.
    pub explained_by: Vec<&'static str>,
    /// Ids that explain this one wherever they are found.
    pub explained_anywhere_by: Vec<&'static str>,
    /// When it happened, epoch ms: among failures the earlier one is the cause.
    pub time_ms: Option<i64>,
    /// Whether the application (or the pasted job) failed because of it.
    pub is_failure: bool,
}

impl Draft {
    /// A finding with its id and what it says; the title is a sentence without a full stop.
    #[must_use]
    pub fn new(id: &'static str, title: impl Into<String>) -> Self {
        let finding = Finding { id: id.to_owned(), title: title.into(), ..Finding::default() };
        Self { finding: Finding { confidence: Confidence::High, ..finding }, ..Self::default() }
    }

    /// Places it at a stage attempt, with the SQL execution, job and source line of that stage.
    #[must_use]
    pub fn at_stage(mut self, facts: &StageFacts<'_>) -> Self {
        let scope = &mut self.finding.scope;
        scope.stage = Some(facts.stage.id);
        scope.attempt = Some(facts.stage.attempt);
        scope.sql = facts.stage.sql;
        scope.job = facts.stage.jobs.first().copied();
        scope.source_line = facts.source_line.clone();
        self
    }

    /// Places it at an SQL execution.
    #[must_use]
    pub fn at_sql(mut self, sql: i64) -> Self {
        self.finding.scope.sql = Some(sql);
        self
    }

    /// Names the operator.
    #[must_use]
    pub fn at_node(mut self, node: impl Into<String>) -> Self {
        self.finding.scope.node = Some(node.into());
        self
    }

    /// Adds a number or text that shows it. `unit` is empty for texts.
    #[must_use]
    pub fn evidence(mut self, metric: &str, value: impl Into<Value>, unit: &str) -> Self {
        let evidence =
            Evidence { metric: metric.to_owned(), value: value.into(), unit: unit.to_owned(), ..Evidence::default() };
        self.finding.evidence.push(evidence);
        self
    }

    /// Says which line the last evidence crossed.
    #[must_use]
    pub fn over(mut self, threshold: f64) -> Self {
        if let Some(last) = self.finding.evidence.last_mut() {
            last.threshold = Some(threshold);
        }
        self
    }

    /// Says where the last evidence stands.
    #[must_use]
    pub fn seen_at(mut self, location: impl Into<String>) -> Self {
        if let Some(last) = self.finding.evidence.last_mut() {
            last.location = location.into();
        }
        self
    }

    /// Rules out a lookalike, with the numbers that do so.
    #[must_use]
    pub fn not(mut self, lookalike: &str, because: impl Into<String>) -> Self {
        self.finding.excluded.push(Excluded { lookalike: lookalike.to_owned(), because: because.into() });
        self
    }

    /// Adds something to do.
    #[must_use]
    pub fn remedy(mut self, kind: RemedyKind, text: impl Into<String>) -> Self {
        self.finding.remedies.push(Remedy { kind, text: text.into(), ..Remedy::default() });
        self
    }

    /// Lines to copy for the last remedy.
    #[must_use]
    pub fn snippet(mut self, lines: impl Into<String>) -> Self {
        if let Some(last) = self.finding.remedies.last_mut() {
            last.snippet = Some(lines.into());
        }
        self
    }

    /// How the last remedy's number was computed.
    #[must_use]
    pub fn computed(mut self, formula: impl Into<String>) -> Self {
        if let Some(last) = self.finding.remedies.last_mut() {
            last.computed_from = Some(formula.into());
        }
        self
    }

    /// Adds something that people try and that does not help here.
    #[must_use]
    pub fn useless(mut self, what: &str, because: impl Into<String>) -> Self {
        self.finding.will_not_help.push(WillNotHelp { what: what.to_owned(), because: because.into() });
        self
    }

    /// The metric that must move once it is mended.
    #[must_use]
    pub fn confirm(mut self, metric: impl Into<String>) -> Self {
        self.finding.confirm = Some(metric.into());
        self
    }

    /// What it costs.
    #[must_use]
    pub fn estimate(mut self, estimate: Option<Estimate>) -> Self {
        self.finding.estimate = estimate;
        self
    }

    /// Noun phrase of the first remedy, for the title: one thing.
    #[must_use]
    pub fn fix(mut self, phrase: impl Into<String>) -> Self {
        self.fix = Some(phrase.into());
        self
    }

    /// Noun phrase of the first remedy, for the title: several things.
    #[must_use]
    pub fn fixes(mut self, phrase: impl Into<String>) -> Self {
        self.fix_is_plural = true;
        self.fix(phrase)
    }

    /// `84 partitions`, for the title.
    #[must_use]
    pub fn fix_partitions(self, n: i64) -> Self {
        match n {
            1 => self.fix("one partition"),
            n => self.fixes(format!("{n} partitions")),
        }
    }

    /// Lowers the certainty, and says why.
    #[must_use]
    pub fn sure(mut self, confidence: Confidence, because: impl Into<String>) -> Self {
        if confidence < self.finding.confidence {
            self.finding.confidence = confidence;
            self.finding.confidence_because = Some(because.into());
        }
        self
    }

    /// Severity whatever the estimate says.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.at_least = severity;
        self.at_most = Some(severity);
        self
    }

    /// Severity at least this.
    #[must_use]
    pub fn at_least(mut self, severity: Severity) -> Self {
        self.at_least = severity;
        self
    }

    /// Severity at most this.
    #[must_use]
    pub fn at_most(mut self, severity: Severity) -> Self {
        self.at_most = Some(severity);
        self
    }

    /// Folds it under a finding of one of these ids at the same place.
    #[must_use]
    pub fn explained_by(mut self, ids: &[&'static str]) -> Self {
        self.explained_by.extend(ids);
        self
    }

    /// Folds it under a finding of one of these ids anywhere.
    #[must_use]
    pub fn explained_anywhere_by(mut self, ids: &[&'static str]) -> Self {
        self.explained_anywhere_by.extend(ids);
        self
    }
}
