//! All applications with what the first page says of each.

use super::{Answer, Shared, json, waiting};
use crate::clock::now_ms;
use crate::history::{Unreadable, Usage, Verdict};
use crate::{History, Listed};
use axum::extract::State;
use model::Application;
use serde::Serialize;
use std::collections::HashMap;
use utoipa::ToSchema;

/// Runs that say what is usual, at most.
const RUNS: usize = 30;

/// All applications.
#[derive(Serialize, ToSchema)]
#[schema(as = ApplicationList)]
pub(super) struct List {
    /// Whether the logs that were there at the start have been read.
    ready: bool,
    /// One row for each attempt, the newest first.
    applications: Vec<Row>,
    /// Logs that cannot be read, and sources that do not answer.
    unreadable: Vec<Unreadable>,
}

/// An attempt of an application.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ApplicationRow)]
pub(super) struct Row {
    /// Application id.
    id: String,
    /// Attempt id, where the application has attempts (YARN).
    attempt: Option<String>,
    /// Name.
    name: String,
    /// User.
    user: String,
    /// Version of Spark that wrote the log.
    spark_version: String,
    /// Start, epoch ms.
    started_ms: i64,
    /// End, epoch ms; null while it runs, or when the log has no end.
    ended_ms: Option<i64>,
    /// Latest time in the log, epoch ms.
    last_event_ms: i64,
    /// Whether it runs: its log says so and has grown in the last hour.
    in_progress: bool,
    /// Wall time, ms; so far, where it has not ended.
    wall_ms: i64,
    #[serde(flatten)]
    usual: Usual,
    #[serde(flatten)]
    verdict: Verdict,
    #[serde(flatten)]
    usage: Usage,
}

/// How long runs of the same name take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Usual {
    /// Median wall time of the earlier runs that ended well, ms.
    pub usual_ms: Option<i64>,
    /// How many these were.
    pub usual_runs: usize,
}

impl Row {
    pub fn of(listed: Listed, usual: Usual, now_ms: i64) -> Self {
        Self {
            in_progress: listed.is_running(now_ms),
            wall_ms: listed.wall_ms(),
            id: listed.id,
            attempt: listed.attempt,
            name: listed.name,
            user: listed.user,
            spark_version: listed.spark_version,
            started_ms: listed.started_ms,
            ended_ms: listed.ended_ms,
            last_event_ms: listed.last_event_ms,

            usual,
            verdict: listed.verdict,
            usage: listed.usage,
        }
    }
}

/// All applications, the newest first.
///
/// One row for each attempt, with what is wrong in a sentence and what mending it would save.
#[utoipa::path(
    get, path = "/applications", operation_id = "listApplications", tag = "applications",
    responses((status = 200, description = "All applications", body = List)),
)]
pub(super) async fn show(State(history): Shared) -> Answer {
    waiting(move || Ok(json(&list(&*history)))).await
}

/// All of them, the newest first.
fn list(history: &dyn History) -> List {
    let mut all = history.list();
    all.sort_by(|a, b| (b.started_ms, &a.id, &a.attempt).cmp(&(a.started_ms, &b.id, &b.attempt)));
    let (runs, now) = (Runs::of(&all), now_ms());
    let usual: Vec<Usual> = all.iter().map(|listed| runs.before(&listed.name, listed.started_ms)).collect();
    List {
        ready: history.is_ready(),
        applications: all.into_iter().zip(usual).map(|(listed, usual)| Row::of(listed, usual, now)).collect(),
        unreadable: history.unreadable(),
    }
}

/// How long the runs before this one took, and whether it runs now.
pub(super) fn around(history: &dyn History, app: &Application) -> (Usual, bool) {
    let all = history.list();
    let of_app = |l: &&Listed| l.id == *app.id && l.attempt.as_deref() == app.attempt_id.as_deref();
    let running = all.iter().find(of_app).is_some_and(|listed| listed.is_running(now_ms()));
    (Runs::of(&all).before(&app.name, app.start_ms().unwrap_or_default()), running)
}

/// Start and wall time of the runs of each name that ended well, the newest first.
struct Runs<'a>(HashMap<&'a str, Vec<(i64, i64)>>);

impl<'a> Runs<'a> {
    fn of(all: &'a [Listed]) -> Self {
        let mut by_name: HashMap<&str, Vec<(i64, i64)>> = HashMap::new();
        for listed in all.iter().filter(|l| l.ended_ms.is_some() && !l.verdict.failed && !l.name.is_empty()) {
            by_name.entry(&listed.name).or_default().push((listed.started_ms, listed.wall_ms()));
        }
        by_name.values_mut().for_each(|runs| runs.sort_unstable_by(|a, b| b.cmp(a)));
        Self(by_name)
    }

    fn before(&self, name: &str, started_ms: i64) -> Usual {
        let runs = self.0.get(name).map(Vec::as_slice).unwrap_or_default();
        let earlier = &runs[runs.partition_point(|run| run.0 >= started_ms)..];
        let mut walls: Vec<i64> = earlier.iter().take(RUNS).map(|run| run.1).collect();
        walls.sort_unstable();
        Usual { usual_ms: walls.get(walls.len() / 2).copied(), usual_runs: walls.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_is_the_median_of_the_earlier_good_runs() {
        let run = |name: &str, started_ms: i64, wall: Option<i64>, failed: bool| Listed {
            name: name.to_owned(),
            started_ms,
            ended_ms: wall.map(|wall| started_ms + wall),
            verdict: Verdict { failed, ..Verdict::default() },
            ..Listed::default()
        };
        let all = [
            run("daily", 100, Some(10), false),
            run("daily", 200, Some(30), false),
            run("daily", 300, Some(20), false),
            run("daily", 400, Some(900), true),
            run("daily", 500, None, false),
            run("other", 100, Some(7), false),
        ];
        let runs = Runs::of(&all);
        assert_eq!(runs.before("daily", 600), Usual { usual_ms: Some(20), usual_runs: 3 });
        assert_eq!(runs.before("daily", 200), Usual { usual_ms: Some(10), usual_runs: 1 });
        assert_eq!(runs.before("new", 600), Usual::default());
    }
}
