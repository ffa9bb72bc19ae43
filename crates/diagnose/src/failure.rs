//! What the rules about failures share: where it happened first, how often, what followed.

use crate::blame::Trouble;
use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use model::{Bytes, Confidence, EndReason, Incident, Origin, Severity};
use regex::Regex;
use std::collections::{BTreeSet, HashMap};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Longest piece of a message that a title or a piece of evidence quotes.
const QUOTED: usize = 240;

/// One trouble with what a rule asks of it.
pub struct Failure<'a> {
    /// Everything else.
    pub cx: &'a Context<'a>,
    /// Position in the blame.
    pub at: usize,
    /// The trouble.
    pub trouble: &'a Trouble,
    /// Its first incident.
    pub first: &'a Incident,
}

/// Makes a finding of each trouble of a cause.
pub fn each(cx: &Context<'_>, out: &mut Findings, cause: Cause, rule: fn(&Failure<'_>) -> Draft) {
    for (at, trouble) in cx.blame.of_cause(cause) {
        let Some(first) = trouble.members.first().and_then(|&i| cx.blame.incidents.get(i)) else { continue };
        let failure = Failure { cx, at, trouble, first };
        let draft = rule(&failure);
        out.push(failure.finish(draft));
    }
}

impl<'a> Failure<'a> {
    /// A finding at the place of the first incident.
    #[must_use]
    pub fn draft(&self, title: impl Into<String>) -> Draft {
        let mut draft = Draft::new(self.trouble.cause.id(), title);
        let placed = self.cx.blame.all(self.trouble).find(|i| i.stage.is_some()).unwrap_or(self.first);
        if let Some((stage, attempt)) = placed.stage {
            match self.cx.stage(stage, attempt) {
                Some(facts) => draft = draft.at_stage(facts),
                None => {
                    draft.finding.scope.stage = Some(stage);
                    draft.finding.scope.attempt = Some(attempt);
                }
            }
        }
        let scope = &mut draft.finding.scope;
        scope.job = scope.job.or(placed.job).or_else(|| self.quotes().find_map(|i| i.job));
        scope.sql = scope.sql.or(placed.sql).or_else(|| self.quotes().find_map(|i| i.sql));
        scope.task = placed.task_id;
        scope.executor = self.first.executor.as_deref().or(placed.executor.as_deref()).map(str::to_owned);
        let from = self.place();
        // The first attempt at a task that is seen to fail in a later one is not in the paste.
        let later = self.cx.app.pasted.is_some() && self.first.task_attempt.is_some_and(|n| n > 0);
        let what = if later { "failure_quoted" } else { "first_failure" };
        let draft = draft.evidence(what, from.clone(), "").seen_at(from);
        draft.evidence("message", shortened(&self.first.message), "")
    }

    fn quotes(&self) -> impl Iterator<Item = &Incident> {
        self.trouble.folded.iter().map(|&i| &self.cx.blame.incidents[i])
    }

    /// Counts, rank and certainty, the same for every failure.
    fn finish(&self, draft: Draft) -> Draft {
        let attempts = self.attempts();
        let draft = if attempts > 0 { draft.evidence("failed_attempts", attempts, "tasks") } else { draft };
        let mut draft = if self.trouble.caused_by.is_none() { self.name_followers(draft) } else { draft };
        draft.time_ms = Some(self.at as i64);
        if let Some(cause) = self.trouble.caused_by {
            draft = draft.explained_anywhere_by(&[self.cx.blame.troubles[self.cx.blame.root(cause)].cause.id()]);
            return draft.at_least(Severity::Low).at_most(Severity::Medium);
        }
        draft.is_failure = self.trouble.fatal && draft.at_most.is_none();
        if !draft.is_failure && draft.at_most.is_none() {
            draft = draft.at_least(Severity::Medium);
        }
        match &self.cx.app.pasted {
            Some(_) => draft.sure(Confidence::Medium, "an excerpt does not show what came before it"),
            None => draft,
        }
    }

    /// Errors that only followed: of retries, and of the text of the abort.
    fn name_followers(&self, draft: Draft) -> Draft {
        let retried = self.quotes().filter(|i| matches!(i.origin, Origin::Task)).filter_map(|i| i.class.as_deref());
        let classes: BTreeSet<&str> = retried.collect();
        let followers = self.followers();
        let what = match followers.iter().any(|i| i.executor.is_some() && i.origin == Origin::TaskOfLostExecutor) {
            true => "consequences of the lost executor",
            false => "consequences of the first failure",
        };
        let draft = match followers.is_empty() && classes.is_empty() {
            true => draft,
            false => {
                draft.evidence("later_failures_are", what, "").evidence("later_failures", followers.len(), "failures")
            }
        };
        classes.into_iter().fold(draft, |draft, class| {
            draft.not(
                class,
                "it is seen on retried tasks only, after the first failure, and the abort quotes the last failure",
            )
        })
    }

    /// Failures of this trouble past the first, of what it explains, and of retried tasks. That
    /// their stage, job or query ended with them is no failure of its own, and executors that are
    /// removed on purpose do not follow from each other.
    fn followers(&self) -> Vec<&Incident> {
        let blame = &self.cx.blame;
        let explained = blame.troubles.iter().filter(|t| t.caused_by == Some(self.at));
        let later = explained.flat_map(|t| blame.all(t));
        let on_purpose = self.trouble.cause == Cause::Autoscale;
        let own = blame.all(self.trouble).skip(1).filter(|i| !on_purpose || i.origin != Origin::Executor);
        let quotes = |i: &&Incident| matches!(i.origin, Origin::Stage | Origin::Job | Origin::Sql | Origin::Stream);
        own.chain(later).filter(|i| !quotes(i)).collect()
    }

    /// Task attempts that ended in this trouble or in what it explains; each task once.
    #[must_use]
    pub fn attempts(&self) -> usize {
        let blame = &self.cx.blame;
        let explained = blame.troubles.iter().filter(|t| t.caused_by == Some(self.at));
        let tasks = std::iter::once(self.trouble).chain(explained).flat_map(|t| blame.all(t));
        let of_tasks = tasks.filter(|i| matches!(i.origin, Origin::Task | Origin::Fetch | Origin::TaskOfLostExecutor));
        of_tasks.filter_map(|i| i.task_id).collect::<BTreeSet<_>>().len()
    }

    /// Where the first failure was: `TID 0 on executor 1`, `executor 8`, `line 12`.
    #[must_use]
    pub fn place(&self) -> String {
        let blame = &self.cx.blame;
        // A lost executor's own record names no task; the first task lost with it does.
        let with_task = blame.members(self.trouble).find(|i| i.task_id.is_some());
        let of = match self.first.task_id {
            None => {
                with_task.filter(|i| i.executor == self.first.executor && i.executor.is_some()).unwrap_or(self.first)
            }
            Some(_) => self.first,
        };
        let task = of.task_id.map(|id| format!("TID {id}"));
        let executor = of.executor.as_ref().map(|id| format!("executor {id}"));
        match (task, executor, of.line) {
            (Some(task), Some(executor), _) => format!("{task} on {executor}"),
            (Some(one), None, _) | (None, Some(one), _) => one,
            (None, None, Some(line)) => format!("line {line}"),
            (None, None, None) => "the driver".to_owned(),
        }
    }

    /// All that the incidents of this trouble say, and their frames.
    #[must_use]
    pub fn text(&self) -> String {
        let parts = self.cx.blame.all(self.trouble).take(50).flat_map(|i| [i.message.as_str(), i.stack.as_str()]);
        parts.collect::<Vec<_>>().join("\n")
    }

    /// The pasted text; empty for a log.
    #[must_use]
    pub fn pasted_text(&self) -> &'a str {
        self.cx.app.pasted.as_ref().map_or("", |p| p.text.as_str())
    }

    /// The class without its package: `NoSuchMethodError`.
    #[must_use]
    pub fn class(&self) -> &str {
        let class = self.first.class.as_deref().unwrap_or_default();
        class.rsplit(['.', '$']).next().unwrap_or(class)
    }

    /// The error class of the first incident that has one.
    #[must_use]
    pub fn error_class(&self) -> Option<&str> {
        self.cx.blame.all(self.trouble).find_map(|i| i.error_class.as_deref())
    }

    /// Executors of the incidents.
    #[must_use]
    pub fn executors(&self) -> Vec<String> {
        let ids: BTreeSet<&str> = self.cx.blame.all(self.trouble).filter_map(|i| i.executor.as_deref()).collect();
        let mut ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
        ids.sort_by_key(|id| (id.len(), id.clone()));
        ids
    }

    /// Distinct task indexes of a stage that failed.
    #[must_use]
    pub fn indexes(&self) -> usize {
        let tasks = self.cx.blame.all(self.trouble).filter_map(|i| Some((i.stage?.0, i.task_index?)));
        tasks.collect::<BTreeSet<_>>().len()
    }

    /// Finished tasks that had to run again because their output went away, and their run time.
    #[must_use]
    pub fn repeated_work(&self) -> (u64, i64) {
        let stages = self.cx.app.stages.iter();
        stages.fold((0, 0), |(n, ms), s| (n + u64::from(s.resubmitted), ms + s.resubmitted_run_ms))
    }

    /// Run time of tasks that were running when their executor went away.
    #[must_use]
    pub fn running_lost_ms(&self) -> i64 {
        let of_stage = |s: &model::Stage| {
            let lost = s.tasks.failures().filter(|(_, why)| matches!(why, EndReason::ExecutorLost { .. }));
            lost.map(|(row, _)| s.tasks.value(model::Metric::DurationMs, row)).sum::<i64>()
        };
        self.cx.app.stages.iter().map(of_stage).sum()
    }
}

/// The beginning of a message, on one line.
#[must_use]
pub fn shortened(text: &str) -> String {
    crate::words::clipped(text.lines().next().unwrap_or_default().trim(), QUOTED)
}

/// The first match of a constant pattern. Each is compiled once: that takes longer than looking.
#[must_use]
pub fn find<'t>(pattern: &'static str, text: &'t str) -> Option<regex::Captures<'t>> {
    static COMPILED: LazyLock<Mutex<HashMap<&'static str, Option<Regex>>>> = LazyLock::new(Mutex::default);
    let compiled = {
        let mut all = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(pattern).or_insert_with(|| Regex::new(pattern).ok()).clone()
    };
    compiled?.captures(text)
}

/// Bytes of `5.0 GB`, `1024.0 MiB`, `2147483648`.
#[must_use]
pub fn bytes(text: &str) -> Option<i64> {
    model::parse_bytes(text, 1).filter(|&b| b > 0)
}

/// A size for a sentence.
#[must_use]
pub fn size(bytes: i64) -> String {
    Bytes(u64::try_from(bytes).unwrap_or(0)).to_string()
}

/// Whether any of the words stands in a text.
#[must_use]
pub fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}
