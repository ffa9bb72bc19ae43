//! One list of everything that went wrong, in the order in which it happened: from an event log
//! (task ends, removed executors, failed stages, jobs, SQL executions, streams) or from a paste.

use model::{Application, EndReason, Executor, Incident, Metric, Origin, Stage, Text, error_class_of};

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
    for stage in &app.stages {
        let room = MAX_TASK_FAILURES.saturating_sub(found.len());
        found.extend(stage.tasks.failures().filter_map(|(row, why)| of_task(app, stage, row, why)).take(room));
        found.extend(stage.failure.as_ref().map(|why| of_stage(stage, why)));
    }
    found.extend(app.executors.iter().filter_map(|e| of_executor(app, e)));
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

/// A removal; the end of the application removes everything and is no incident.
fn of_executor(app: &Application, executor: &Executor) -> Option<Incident> {
    let time = executor.removed_ms?;
    let reason = executor.removed_reason.as_deref().unwrap_or_default();
    if executor.is_driver() || app.ended_ms.is_some_and(|end| time >= end) {
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
