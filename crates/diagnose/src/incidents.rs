//! One list of everything that went wrong, in the order in which it happened: from an event log
//! (task ends, removed executors, failed stages, jobs, SQL executions, streams) or from a paste.

use crate::cause;
use model::{
    Application, EndReason, Executor, Incident, Job, Metric, Origin, Stage, StageStatus, Text, error_class_of,
};

/// Failures of tasks taken from one log; a log with more repeats the same ones.
const MAX_TASK_FAILURES: usize = 20_000;

/// The incidents of an application by time. Incidents without a time stay where they stood.
#[must_use]
pub fn of(app: &Application) -> Vec<Incident> {
    match &app.pasted {
        Some(pasted) => in_order_of_lines(&pasted.incidents),
        None => of_log(app),
    }
}

/// A line without a time happened when the timed line above it did.
fn in_order_of_lines(incidents: &[Incident]) -> Vec<Incident> {
    let mut last = i64::MIN;
    let mut timed: Vec<(i64, &Incident)> = Vec::with_capacity(incidents.len());
    for incident in incidents {
        last = incident.time_ms.unwrap_or(last);
        timed.push((last, incident));
    }
    timed.sort_by_key(|(time, _)| *time);
    timed.into_iter().map(|(_, incident)| incident.clone()).collect()
}

fn of_log(app: &Application) -> Vec<Incident> {
    let mut found: Vec<Incident> = Vec::new();
    let over = Over::of(app);
    let of_loss = |i: &Incident| matches!(i.origin, Origin::TaskOfLostExecutor | Origin::Fetch | Origin::Stage);
    let kept = |i: &Incident| !(of_loss(i) && over.shutdown_took(i.time_ms));
    for stage in &app.stages {
        let room = MAX_TASK_FAILURES.saturating_sub(found.len());
        let of_tasks = stage.tasks.failures().filter_map(|(row, why)| of_task(app, stage, row, why));
        found.extend(of_tasks.filter(kept).take(room));
        found.extend(stage.failure.as_ref().map(|why| of_stage(stage, why)).filter(kept));
    }
    found.extend(app.executors.iter().filter_map(|e| of_executor(&over, e)));
    found.extend(app.jobs.iter().filter_map(|j| {
        let error = j.error.as_deref()?;
        Some(Incident { time_ms: j.completed_ms, job: Some(j.id), sql: j.sql, ..quote(Origin::Job, error) })
    }));
    found.extend(app.sql.iter().filter_map(|s| {
        let error = s.error.as_deref().filter(|e| !e.is_empty())?;
        Some(Incident { time_ms: s.ended_ms, sql: Some(s.id), ..quote(Origin::Sql, error) })
    }));
    found.extend(app.streams.iter().filter_map(|q| {
        let error = q.error.as_deref().filter(|e| !e.is_empty())?;
        Some(Incident { time_ms: q.ended_ms, ..quote(Origin::Stream, error) })
    }));
    found.sort_by_key(|i| i.time_ms.unwrap_or(i64::MAX));
    found
}

fn of_task(app: &Application, stage: &Stage, row: usize, why: &EndReason) -> Option<Incident> {
    let executor = app.executors.get(stage.tasks.executor(row));
    let mut incident = Incident {
        time_ms: Some(stage.tasks.value(Metric::FinishMs, row)).filter(|&t| t > 0),
        origin: Origin::Task,
        executor: executor.and_then(|e| e.id.0.clone()),
        host: executor.and_then(|e| e.host.0.clone()),
        stage: Some((stage.id, stage.attempt)),
        job: stage.jobs.first().copied(),
        sql: stage.sql,
        task_id: Some(stage.tasks.id(row)),
        task_index: Some(stage.tasks.index(row)),
        task_attempt: Some(stage.tasks.attempt(row)),
        ..Incident::default()
    };
    fill_reason(&mut incident, why)?;
    Some(incident)
}

/// Class and message of a task's end; `None` for ends that are no failure of their own.
fn fill_reason(incident: &mut Incident, why: &EndReason) -> Option<()> {
    match why {
        EndReason::Exception { class, message, stack } => {
            set_exception(incident, class, message, stack);
        }
        EndReason::FetchFailed { executor, host, message, .. } => {
            incident.origin = Origin::Fetch;
            incident.from_executor = executor.clone();
            incident.from_host = host.clone();
            set_exception(incident, "", message, "");
        }
        EndReason::ExecutorLost { executor, reason, .. } => {
            incident.origin = Origin::TaskOfLostExecutor;
            incident.executor = Some(executor.clone());
            incident.message = reason.to_string();
        }
        EndReason::ResultLost => incident.message = "the task's result was lost on its way to the driver".to_owned(),
        EndReason::Other { reason } => incident.message = reason.to_string(),
        // Killed copies, refused commits of copies, and repeats of a success: no failures.
        EndReason::Killed { .. } | EndReason::CommitDenied { .. } | EndReason::Resubmitted => return None,
    }
    Some(())
}

/// A Python error brings its traceback in the description; its last line is the error.
fn set_exception(incident: &mut Incident, class: &str, message: &str, stack: &str) {
    let (first, below) = message.split_once('\n').unwrap_or((message, ""));
    incident.class = (!class.is_empty()).then(|| Text::from(class));
    incident.message = first.to_owned();
    incident.stack = [below, stack].join("\n");
    if let Some((class, text)) = python_error(message) {
        incident.stack.insert_str(0, &format!("{first}\n"));
        incident.class = Some(class.into());
        incident.message = text.to_owned();
    }
    incident.error_class = error_class_of(incident.class.as_deref(), message).map(Text::from);
}

/// The error below a Python traceback: `ValueError: bad`.
#[must_use]
pub fn python_error(text: &str) -> Option<(&str, &str)> {
    let (_, traceback) = text.split_once("Traceback (most recent call last)")?;
    let line = traceback.lines().skip(1).find(|l| !l.starts_with([' ', '\t']) && !l.trim().is_empty())?;
    let (class, message) = line.split_once(": ").unwrap_or((line, ""));
    let named = class.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'));
    named.then_some((class, message))
}

fn of_stage(stage: &Stage, why: &str) -> Incident {
    Incident {
        time_ms: stage.completed_ms,
        stage: Some((stage.id, stage.attempt)),
        job: stage.jobs.first().copied(),
        sql: stage.sql,
        ..quote(Origin::Stage, why)
    }
}

/// A failure that repeats another one's words.
fn quote(origin: Origin, text: &str) -> Incident {
    let mut incident = Incident { origin, ..Incident::default() };
    set_exception(&mut incident, "", text, "");
    if incident.class.is_none() {
        incident.class = jvm_class(&incident.message).map(Text::from);
    }
    incident
}

/// The last class name of an exception in a line: that of the failure that the line quotes.
fn jvm_class(line: &str) -> Option<&str> {
    line.split([' ', ':'])
        .rfind(|word| word.contains('.') && ["Exception", "Error", "Throwable"].iter().any(|end| word.ends_with(end)))
}

/// From when on executors go away because the application is over, epoch ms.
#[derive(Debug, Default)]
struct Over {
    /// The context was stopped under a job.
    shutdown: Option<i64>,
    /// Nothing was left to run.
    done: Option<i64>,
}

/// Executors go before the jobs are told that the context is shut down, ms.
const SHUTDOWN_MS: i64 = 5_000;
/// A job that failed may have failed because of a removal that is noted a little later, ms.
const FAILED_JOB_MS: i64 = 60_000;

impl Over {
    fn of(app: &Application) -> Self {
        let stopped = app.jobs.iter().filter(|j| j.error.as_deref().is_some_and(cause::is_shutdown));
        let shutdown = stopped.filter_map(|j| j.completed_ms).min().map(|t| t - SHUTDOWN_MS);
        let ended = |job: &Job| match job.status {
            StageStatus::Failed => job.completed_ms.map(|t| t + FAILED_JOB_MS),
            _ => job.completed_ms,
        };
        // An open job may still need what went away.
        let ends: Option<Vec<i64>> = app.jobs.iter().map(ended).collect();
        let done = ends.and_then(|ends| ends.into_iter().max());
        Self { shutdown, done: done.into_iter().chain(app.ended_ms).min() }
    }

    fn shutdown_took(&self, time_ms: Option<i64>) -> bool {
        time_ms.zip(self.shutdown).is_some_and(|(time, from)| time >= from)
    }
}

/// A removal; what goes away once the application is over is no loss.
fn of_executor(over: &Over, executor: &Executor) -> Option<Incident> {
    let time = executor.removed_ms?;
    let reason = executor.removed_reason.as_deref().unwrap_or_default();
    if executor.is_driver() || over.done.is_some_and(|end| time >= end) || over.shutdown_took(Some(time)) {
        return None;
    }
    Some(Incident {
        time_ms: Some(time),
        origin: Origin::Executor,
        executor: executor.id.0.clone(),
        host: executor.host.0.clone(),
        message: reason.to_owned(),
        ..Incident::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executors_that_go_at_the_end_are_no_loss() {
        let check = |status, error: Option<&str>, removed_ms, lost: bool| {
            let mut app = Application { ended_ms: Some(200_000), ..Application::default() };
            let error = error.map(Text::from);
            app.jobs.push(Job { completed_ms: Some(100_000), status, error, ..Job::default() });
            let id = Text::from("1").into();
            app.executors.push(Executor { id, removed_ms: Some(removed_ms), ..Executor::default() });
            let found = of(&app).iter().any(|i| i.origin == Origin::Executor);
            assert_eq!(found, lost, "{status:?} {error:?} {removed_ms}", error = app.jobs[0].error);
        };
        check(StageStatus::Complete, None, 99_000, true);
        check(StageStatus::Complete, None, 101_000, false);
        check(StageStatus::Failed, Some("Task 3 failed 4 times"), 101_000, true);
        check(StageStatus::Failed, Some("Job 0 cancelled because SparkContext was shut down"), 99_700, false);
        check(StageStatus::Failed, Some("Job 0 cancelled because SparkContext was shut down"), 60_000, true);
        check(StageStatus::Active, None, 201_000, false);
    }

    #[test]
    fn lines_without_a_time_follow_the_line_above() {
        let at = |line, time_ms| Incident { line: Some(line), time_ms, ..Incident::default() };
        let ordered = in_order_of_lines(&[at(1, None), at(2, Some(50)), at(3, None), at(4, Some(40))]);
        assert_eq!(ordered.iter().filter_map(|i| i.line).collect::<Vec<_>>(), [1, 4, 2, 3]);
    }

    #[test]
    fn python_errors_stand_below_their_traceback() {
        let text =
            "x: Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nshop.BadRow: row 7\n\n\tat";
        assert_eq!(python_error(text), Some(("shop.BadRow", "row 7")));
        assert_eq!(python_error("no traceback"), None);
    }
}
