//! Who is to blame: the earliest failure that is no consequence of another (section 4.5).
//!
//! Incidents of one cause make a [`Trouble`]; a trouble may be the consequence of another. The
//! text of an aborted job only quotes the last failure of a task, so it counts for the trouble in
//! which that task failed first.

use crate::cause::{self, Cause};
use model::{Application, Incident, Origin, StageStatus, Text};
use std::collections::{BTreeMap, BTreeSet};

/// A loss explains what its peers see for this long.
const AFTERMATH_MS: i64 = 300_000;
/// The driver hears of a lost executor later than those that fetch from it.
const NEWS_DELAY_MS: i64 = 120_000;

/// Failures with one cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Trouble {
    /// What they are.
    pub cause: Cause,
    /// Positions in [`Blame::incidents`], first to last.
    pub members: Vec<usize>,
    /// Incidents that only quote or follow: texts of aborts, errors of retried tasks.
    pub folded: Vec<usize>,
    /// The trouble that it is a consequence of.
    pub caused_by: Option<usize>,
    /// Whether a job, a query or the application failed because of it.
    pub fatal: bool,
}

/// Everything that went wrong, sorted out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blame {
    /// All incidents in the order in which they happened.
    pub incidents: Vec<Incident>,
    /// Troubles in the order of their first incident.
    pub troubles: Vec<Trouble>,
}

impl Blame {
    /// Sorts out the incidents of an application.
    #[must_use]
    pub fn of(app: &Application) -> Self {
        let incidents = crate::incidents::of(app);
        let causes = causes(&incidents);
        let mut builder = Builder { app, incidents: &incidents, causes, troubles: Vec::new() };
        builder.group();
        builder.attach_quotes();
        builder.quotes_alone();
        builder.sort();
        builder.chain();
        builder.mark_fatal();
        let troubles = builder.troubles;
        Self { incidents, troubles }
    }

    /// Troubles of a cause, with their positions.
    pub fn of_cause(&self, cause: Cause) -> impl Iterator<Item = (usize, &Trouble)> {
        self.troubles.iter().enumerate().filter(move |(_, t)| t.cause == cause)
    }

    /// The incidents of a trouble.
    pub fn members<'a>(&'a self, trouble: &'a Trouble) -> impl Iterator<Item = &'a Incident> {
        trouble.members.iter().map(|&at| &self.incidents[at])
    }

    /// Incidents of a trouble and those folded into it.
    pub fn all<'a>(&'a self, trouble: &'a Trouble) -> impl Iterator<Item = &'a Incident> {
        trouble.members.iter().chain(&trouble.folded).map(|&at| &self.incidents[at])
    }

    /// The trouble at the beginning of a chain.
    #[must_use]
    pub fn root(&self, mut at: usize) -> usize {
        while let Some(cause) = self.troubles[at].caused_by {
            at = cause;
        }
        at
    }

    /// Executors that a trouble took away.
    #[must_use]
    pub fn lost_executors(&self, trouble: &Trouble) -> Vec<Text> {
        let lost = self.members(trouble).filter(|i| is_loss(i));
        let ids: BTreeSet<Text> = lost.filter_map(|i| i.executor.clone()).collect();
        let mut ids: Vec<Text> = ids.into_iter().collect();
        ids.sort_by_key(|id| (id.len(), id.clone()));
        ids
    }
}

fn is_loss(incident: &Incident) -> bool {
    matches!(incident.origin, Origin::Executor | Origin::TaskOfLostExecutor)
}

fn is_quote(incident: &Incident) -> bool {
    matches!(incident.origin, Origin::Stage | Origin::Job | Origin::Sql | Origin::Stream)
}

/// Time from `a` to `b`; `None` when one has no time.
fn elapsed(a: &Incident, b: &Incident) -> Option<i64> {
    Some(b.time_ms?.saturating_sub(a.time_ms?))
}

/// The cause of each incident. All reports of one executor's loss get the reason that tells most.
fn causes(incidents: &[Incident]) -> Vec<Option<Cause>> {
    let mut causes: Vec<Option<Cause>> = incidents.iter().map(cause::of).collect();
    let mut by_executor: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, incident) in incidents.iter().enumerate().filter(|(_, i)| is_loss(i)) {
        by_executor.entry(incident.executor.as_deref().unwrap_or_default()).or_default().push(at);
    }
    // A container's own record often has no executor id; it may tell why one was lost.
    let nameless = by_executor.remove("").unwrap_or_default();
    for reports in by_executor.into_values() {
        let near =
            |at: &&usize| elapsed(&incidents[reports[0]], &incidents[**at]).is_none_or(|ms| ms.abs() <= NEWS_DELAY_MS);
        let candidates = reports.iter().chain(nameless.iter().filter(near));
        let Some(best) = candidates.filter_map(|&at| causes[at]).rev_max() else { continue };
        for at in reports {
            causes[at] = Some(best);
        }
    }
    causes
}

/// The first of the causes that tell most.
trait MostTelling: Iterator<Item = Cause> + Sized {
    fn rev_max(self) -> Option<Cause> {
        self.fold(None, |best: Option<Cause>, cause| match best {
            Some(best) if best.tells() >= cause.tells() => Some(best),
            _ => Some(cause),
        })
    }
}

impl<I: Iterator<Item = Cause>> MostTelling for I {}

struct Builder<'a> {
    app: &'a Application,
    incidents: &'a [Incident],
    causes: Vec<Option<Cause>>,
    troubles: Vec<Trouble>,
}

/// What makes incidents one trouble: user errors differ by stage and class, the rest does not.
type Key = (Cause, Option<u32>, Option<Text>);

impl Builder<'_> {
    fn group(&mut self) {
        let mut by_key: BTreeMap<Key, usize> = BTreeMap::new();
        let mut first_of_task: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        let first_attempts = self.first_attempts();
        for at in 0..self.incidents.len() {
            let (incidents, Some(cause)) = (self.incidents, self.causes[at]) else { continue };
            let incident = &incidents[at];
            if is_quote(incident) || cause == Cause::Cancelled {
                continue;
            }
            let task = incident.stage.map(|s| s.0).zip(incident.task_index);
            let key = self.key(cause, incident);
            // An error that only retries show belongs to what made them retries.
            if let Some(&first) = task.and_then(|t| first_of_task.get(&t))
                && self.troubles[first].cause != cause
                && matches!(cause, Cause::Code | Cause::Auth | Cause::Schema | Cause::Timeout)
                && first_attempts.get(&key).is_some_and(|&attempt| attempt > 0)
            {
                self.troubles[first].folded.push(at);
                continue;
            }
            let trouble = match by_key.get(&key).copied().or_else(|| self.same_error(cause, incident)) {
                Some(trouble) => trouble,
                None => self.open(cause),
            };
            by_key.insert(key, trouble);
            self.troubles[trouble].members.push(at);
            if let Some(task) = task {
                first_of_task.entry(task).or_insert(trouble);
            }
        }
    }

    fn open(&mut self, cause: Cause) -> usize {
        self.troubles.push(Trouble { cause, members: Vec::new(), folded: Vec::new(), caused_by: None, fatal: false });
        self.troubles.len() - 1
    }

    fn key(&self, cause: Cause, incident: &Incident) -> Key {
        let stage = incident.stage.map(|s| s.0);
        match cause {
            Cause::Code => (cause, stage, incident.class.clone()),
            Cause::Fetch => (cause, stage, None),
            _ => (cause, None, None),
        }
    }

    /// The lowest attempt in which each kind of error was seen.
    fn first_attempts(&self) -> BTreeMap<Key, u32> {
        let mut first: BTreeMap<Key, u32> = BTreeMap::new();
        for (incident, cause) in self.incidents.iter().zip(&self.causes) {
            let (Some(cause), Some(attempt)) = (*cause, incident.task_attempt) else { continue };
            let entry = first.entry(self.key(cause, incident)).or_insert(attempt);
            *entry = (*entry).min(attempt);
        }
        first
    }

    /// A trace without a place is the error that a task was seen with.
    fn same_error(&self, cause: Cause, incident: &Incident) -> Option<usize> {
        if cause != Cause::Code || incident.stage.is_some() {
            return None;
        }
        self.troubles.iter().position(|t| t.cause == cause && self.has_class(t, incident.class.as_ref()))
    }

    fn has_class(&self, trouble: &Trouble, class: Option<&Text>) -> bool {
        class.is_some() && trouble.members.iter().any(|&at| self.incidents[at].class.as_ref() == class)
    }

    fn attach_quotes(&mut self) {
        for at in 0..self.incidents.len() {
            let incident = &self.incidents[at];
            if !is_quote(incident) {
                continue;
            }
            if self.app.pasted.is_none() && cause::is_shutdown(&incident.message) {
                self.add_shutdown(at);
                continue;
            }
            match (self.quoted(incident, self.causes[at]), self.causes[at]) {
                (Some(trouble), _) => self.troubles[trouble].folded.push(at),
                (None, Some(cause)) if cause != Cause::Cancelled => {
                    let trouble = self.open(cause);
                    self.troubles[trouble].members.push(at);
                }
                _ => continue,
            }
        }
    }

    /// A paste of nothing but work that was stopped, or of an abort that names no reason: there is
    /// no other trouble to tell.
    fn quotes_alone(&mut self) {
        if !self.troubles.is_empty() || self.app.pasted.is_none() {
            return;
        }
        // A copy that lost its race was stopped by design.
        let lost_race = |i: &Incident| i.message.contains("another attempt succeeded");
        let is_stopped = |at: &usize| self.causes[*at] == Some(Cause::Cancelled) && !lost_race(&self.incidents[*at]);
        let stopped = (0..self.incidents.len()).find(is_stopped);
        let aborted = || self.incidents.iter().position(|i| is_quote(i) && !i.message.is_empty());
        let alone = stopped.map(|at| (at, Cause::Cancelled)).or_else(|| Some((aborted()?, Cause::Code)));
        if let Some((at, cause)) = alone {
            let trouble = self.open(cause);
            self.troubles[trouble].members.push(at);
        }
    }

    /// Jobs that were stopped with their context make one trouble; other records only quote it.
    fn add_shutdown(&mut self, at: usize) {
        let known = self.troubles.iter().position(|t| t.cause == Cause::Cancelled);
        let is_job = self.incidents[at].origin == Origin::Job;
        match (known, is_job) {
            (Some(trouble), true) => self.troubles[trouble].members.push(at),
            (Some(trouble), false) => self.troubles[trouble].folded.push(at),
            (None, true) => {
                let trouble = self.open(Cause::Cancelled);
                self.troubles[trouble].members.push(at);
            }
            (None, false) => {}
        }
    }

    /// The trouble that an abort is about: by task, by stage, by job or query, by error.
    fn quoted(&self, quote: &Incident, cause: Option<Cause>) -> Option<usize> {
        let find = |fits: &dyn Fn(&Incident) -> bool| {
            self.troubles.iter().position(|t| t.members.iter().any(|&at| fits(&self.incidents[at])))
        };
        let stage = quote.stage.map(|s| s.0);
        let of_stage = |i: &Incident| stage.is_some() && i.stage.map(|s| s.0) == stage;
        let by_index = || find(&|i| of_stage(i) && quote.task_index.is_some() && i.task_index == quote.task_index);
        let by_task = || find(&|i| quote.task_id.is_some() && i.task_id == quote.task_id);
        let by_job = || find(&|i| quote.job.is_some() && i.job == quote.job);
        let by_sql = || find(&|i| quote.sql.is_some() && i.sql == quote.sql);
        let by_cause = || self.troubles.iter().position(|t| Some(t.cause) == cause && cause != Some(Cause::Code));
        let by_class =
            || self.troubles.iter().position(|t| Some(t.cause) == cause && self.has_class(t, quote.class.as_ref()));
        let by_time =
            || self.last_before(quote).filter(|_| matches!(cause, None | Some(Cause::Cancelled | Cause::ExecutorLost)));
        by_index()
            .or_else(by_task)
            .or_else(|| find(&of_stage))
            .or_else(by_job)
            .or_else(by_sql)
            .or_else(by_class)
            .or_else(by_cause)
            .or_else(by_time)
    }

    /// The last trouble within a minute before an abort that names no reason.
    fn last_before(&self, quote: &Incident) -> Option<usize> {
        self.troubles.iter().rposition(|t| {
            let last = t.members.last().map(|&at| &self.incidents[at]);
            last.is_some_and(|i| elapsed(i, quote).is_none_or(|ms| (0..=60_000).contains(&ms)))
        })
    }

    fn sort(&mut self) {
        self.troubles.sort_by_key(|t| t.members.first().copied());
    }

    fn chain(&mut self) {
        for at in 0..self.troubles.len() {
            let found = match self.troubles[at].cause {
                Cause::Fetch => self.loss_behind_fetch(at),
                Cause::ExecutorLost | Cause::Heartbeat => self.process_failure_before(at),
                Cause::Code | Cause::Timeout => self.loss_before_its_noise(at),
                // A program stops its context after a job has failed.
                Cause::Cancelled => {
                    self.before(at, &|t| t.folded.iter().any(|&i| self.ended_badly(&self.incidents[i])))
                }
                _ => self.driver_failure_before(at),
            };
            self.troubles[at].caused_by = found.filter(|&f| f != at && !self.leads_to(f, at));
        }
    }

    /// Whether following the causes of `from` comes to `to`: a circle must not close.
    fn leads_to(&self, mut from: usize, to: usize) -> bool {
        while let Some(next) = self.troubles[from].caused_by {
            if next == to {
                return true;
            }
            from = next;
        }
        false
    }

    fn first(&self, trouble: usize) -> Option<&Incident> {
        self.troubles[trouble].members.first().map(|&at| &self.incidents[at])
    }

    /// The loss of the executor that could not be read from; for map output that is just missing
    /// any loss before it.
    fn loss_behind_fetch(&self, at: usize) -> Option<usize> {
        let fetches: Vec<&Incident> = self.troubles[at].members.iter().map(|&m| &self.incidents[m]).collect();
        let lost = |t: &Trouble| {
            t.cause.kills()
                && t.members.iter().map(|&m| &self.incidents[m]).any(|loss| {
                    let same = |f: &&Incident| match (&f.from_executor, &f.from_host) {
                        (Some(id), _) if loss.executor.as_ref() == Some(id) => true,
                        (None, Some(host)) => loss.host.as_ref() == Some(host),
                        (None, None) => true,
                        _ => false,
                    };
                    let in_time = |f: &&Incident| elapsed(loss, f).is_none_or(|ms| ms >= -NEWS_DELAY_MS);
                    fetches.iter().any(|f| same(f) && in_time(f))
                })
        };
        (0..self.troubles.len()).find(|&t| t != at && lost(&self.troubles[t]))
    }

    /// A failure inside a process that took executors with it: memory, disk, a missing class.
    fn process_failure_before(&self, at: usize) -> Option<usize> {
        let inside = |cause| {
            matches!(
                cause,
                Cause::Dependency
                    | Cause::ExecutorHeap
                    | Cause::DriverHeap
                    | Cause::DiskFull
                    | Cause::Python
                    | Cause::Container
            )
        };
        self.before(at, &|t| inside(t.cause))
    }

    /// Broken connections and the like, after an executor or the driver went away.
    fn loss_before_its_noise(&self, at: usize) -> Option<usize> {
        const NOISE: [&str; 10] = [
            "Connection reset",
            "Connection refused",
            "Failed to connect",
            "Connection from",
            "Broken pipe",
            "RpcEnv",
            "ExecutorDeadException",
            "SparkContext was shut down",
            "stopped SparkContext",
            "RPC",
        ];
        let noise = self.first(at)?.heads().any(|line| NOISE.iter().any(|word| line.contains(word)));
        self.driver_failure_before(at).or_else(|| self.before(at, &|t| t.cause.kills()).filter(|_| noise))
    }

    fn driver_failure_before(&self, at: usize) -> Option<usize> {
        self.before(at, &|t| t.cause == Cause::DriverHeap)
    }

    /// The earliest trouble of a kind that began before this one and not too long ago.
    fn before(&self, at: usize, fits: &dyn Fn(&Trouble) -> bool) -> Option<usize> {
        let first = self.first(at)?;
        (0..at).find(|&t| {
            let trouble = &self.troubles[t];
            let near = |&m: &usize| elapsed(&self.incidents[m], first).is_none_or(|ms| ms.abs() <= AFTERMATH_MS);
            fits(trouble) && trouble.members.iter().any(near)
        })
    }

    /// A trouble is fatal when an abort quotes it or its job failed. A paste without an abort is
    /// there because something failed: the first root did it.
    fn mark_fatal(&mut self) {
        for at in 0..self.troubles.len() {
            let quoted = self.troubles[at].folded.iter().chain(&self.troubles[at].members);
            let fatal = quoted.map(|&i| &self.incidents[i]).any(|i| self.ended_badly(i));
            if fatal {
                self.mark_chain(at);
            }
        }
        let none = !self.troubles.iter().any(|t| t.fatal);
        if self.app.pasted.is_some() && none && !self.troubles.is_empty() {
            self.mark_chain(0);
        }
    }

    fn ended_badly(&self, incident: &Incident) -> bool {
        let job_failed = |id| self.app.job(id).is_some_and(|j| j.status == StageStatus::Failed);
        match incident.origin {
            Origin::Job | Origin::Sql | Origin::Stream => true,
            // A stage that fails and is tried again is no failure of the application.
            Origin::Stage => incident.job.is_none_or(job_failed),
            _ => false,
        }
    }

    /// The trouble and what caused it are fatal.
    fn mark_chain(&mut self, mut at: usize) {
        self.troubles[at].fatal = true;
        while let Some(cause) = self.troubles[at].caused_by {
            at = cause;
            self.troubles[at].fatal = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of the troubles in order, each with that of its cause.
    fn check(text: &str, wanted: &[(&str, Option<&str>)]) {
        let blame = Blame::of(&read::paste::read(text, None));
        let id = |at: usize| blame.troubles[at].cause.id();
        let found: Vec<_> = blame.troubles.iter().map(|t| (t.cause.id(), t.caused_by.map(id))).collect();
        assert_eq!(found, wanted, "{blame:#?}");
    }

    #[test]
    fn a_fetch_failure_follows_the_loss_even_when_it_is_heard_of_later() {
        check(
            "26/01/09 10:00:00 WARN TaskSetManager: Lost task 1.0 in stage 3.0 (TID 9) (n2 executor 2): FetchFailed(BlockManagerId(1, n1, 7337, None), shuffleId=0, mapIndex=1, mapId=1, reduceId=2, message=\n\
             26/01/09 10:00:20 ERROR TaskSchedulerImpl: Lost executor 1 on n1: Command exited with code 137",
            &[("FAIL_FETCH", Some("EXECUTOR_LOST")), ("EXECUTOR_LOST", None)],
        );
        check(
            "26/01/09 10:00:00 WARN TaskSetManager: Lost task 1.0 in stage 3.0 (TID 9) (n2 executor 2): FetchFailed(BlockManagerId(1, n1, 7337, None), shuffleId=0, mapIndex=1, mapId=1, reduceId=2, message=\n\
             org.apache.spark.shuffle.FetchFailedException: Connection reset by peer",
            &[("FAIL_FETCH", None)],
        );
    }

    #[test]
    fn the_reason_that_tells_most_counts() {
        check(
            "26/01/09 10:00:00 ERROR TaskSchedulerImpl: Lost executor 1 on n1: Remote RPC client disassociated. Likely due to containers exceeding thresholds, or network issues.\n\
             26/01/09 10:00:00 WARN TaskSetManager: Lost task 1.0 in stage 3.0 (TID 9) (n1 executor 1): ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Remote RPC client disassociated.\n\
             26/01/09 10:00:02 WARN YarnAllocator: Container killed by YARN for exceeding memory limits. 12.4 GB of 12 GB physical memory used.",
            &[("OOM_CONTAINER", None)],
        );
    }

    #[test]
    fn errors_of_retries_only_are_consequences() {
        check(
            "26/01/09 10:00:00 WARN TaskSetManager: Lost task 1.0 in stage 3.0 (TID 9) (n1 executor 1): java.lang.OutOfMemoryError: Java heap space\n\
             26/01/09 10:00:09 WARN TaskSetManager: Lost task 1.1 in stage 3.0 (TID 12) (n2 executor 2): java.io.IOException: file /out/part-1 already exists\n\
             26/01/09 10:00:12 ERROR TaskSetManager: Task 1 in stage 3.0 failed 4 times; aborting job",
            &[("OOM_EXECUTOR_HEAP", None)],
        );
    }

    #[test]
    fn two_errors_are_two_troubles() {
        check(
            "java.lang.ArithmeticException: / by zero\n\tat shop.A.f(A.scala:3)\n\njava.lang.IllegalStateException: closed\n\tat shop.B.g(B.scala:4)",
            &[("FAIL_CODE", None), ("FAIL_CODE", None)],
        );
    }
}
