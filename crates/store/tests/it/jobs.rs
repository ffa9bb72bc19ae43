//! Jobs and runs as rows: each test on SQLite, then on PostgreSQL.

use crate::world::World;
use std::future::Future;
use store::jobs::{Change, Job, JobFilter, Jobs, Place, Run, RunFilter, RunState, TaskRun};

/// Runs a test on either database.
async fn on_both<F: Future<Output = ()>>(test: impl Fn(Jobs) -> F) {
    let world = World::new().await;
    test(world.store.jobs()).await;
    if let Some(url) = testkit::postgres::database() {
        test(Jobs::connect(&url).await.unwrap()).await;
    }
}

fn job(job_id: i64, name: &str) -> Job {
    Job { job_id, name: name.to_owned(), settings: format!(r#"{{"name":"{name}"}}"#), version: 1, ..Job::default() }
}

/// Three runs share each start.
fn run(run_id: i64, job_id: i64) -> Run {
    let end_ms = (run_id % 2 == 0).then_some(run_id);
    let state = RunState { life_cycle: "RUNNING".to_owned(), start_ms: run_id / 3, end_ms, ..RunState::default() };
    Run { run_id, job_id, number: run_id, run_type: "JOB_RUN".to_owned(), state, ..Run::default() }
}

fn task(task_run_id: i64, run_id: i64) -> TaskRun {
    TaskRun { task_run_id, run_id, task_key: "a".to_owned(), life_cycle: "BLOCKED".to_owned(), ..TaskRun::default() }
}

async fn ids(jobs: &Jobs, filter: &RunFilter, from: Option<Place<(i64, i64)>>, most: u32) -> Vec<i64> {
    jobs.runs(filter, from, most).await.unwrap().iter().map(|run| run.run_id).collect()
}

#[tokio::test]
async fn rows_come_back_as_they_were_written() {
    on_both(|jobs| async move {
        let (job, run, mut task) = (job(1, "Night"), run(7, 1), task(8, 7));
        let all = [Change::Job(job.clone()), Change::Run(run.clone()), Change::TaskRun(task.clone())];
        jobs.write(&all).await.unwrap();
        assert_eq!(jobs.job(1).await.unwrap(), Some(job.clone()));
        assert_eq!(jobs.run(7).await.unwrap(), Some(run.clone()));
        assert_eq!(jobs.task_run(8).await.unwrap(), Some(task.clone()));
        task.result = Some("SUCCESS".to_owned());
        let state = RunState { result: Some("SUCCESS".to_owned()), ..run.state.clone() };
        let changed = Job { name: "Day".to_owned(), version: 2, ..job };
        let all = [
            Change::Job(changed.clone()),
            Change::RunState(7, state.clone(), None),
            Change::TaskRun(task.clone()),
            Change::Core(7, 1, "b".to_owned()),
            Change::Core(7, 0, "a".to_owned()),
            Change::Transition(7, Some(8), "TERMINATED".to_owned(), 9),
            Change::Token(1, "t".to_owned(), 7),
            Change::Planned(1, 11),
            Change::TriggerState(1, Some("early".to_owned())),
            Change::TriggerState(1, Some("late".to_owned())),
            Change::TriggerState(2, Some("other".to_owned())),
        ];
        jobs.write(&all).await.unwrap();
        assert_eq!(jobs.job(1).await.unwrap(), Some(Job { planned_ms: Some(11), ..changed }));
        assert_eq!(jobs.trigger_states(Some(1)).await.unwrap(), [(1, "late".to_owned())]);
        jobs.write(&[Change::TriggerState(1, None)]).await.unwrap();
        assert_eq!(jobs.trigger_states(None).await.unwrap(), [(2, "other".to_owned())]);
        assert_eq!(jobs.run(7).await.unwrap(), Some(Run { state, ..run }));
        assert_eq!(jobs.task_runs(7).await.unwrap(), [task]);
        assert_eq!(jobs.cores(7).await.unwrap(), ["a", "b"]);
        assert_eq!(
            (jobs.run_of_token(1, "t").await.unwrap(), jobs.run_of_token(1, "u").await.unwrap()),
            (Some(7), None)
        );
        assert_eq!((jobs.last_number(1).await.unwrap(), jobs.last_number(2).await.unwrap()), (7, 0));
        jobs.write(&[Change::RunDeleted(7), Change::JobDeleted(1, 12)]).await.unwrap();
        assert_eq!((jobs.run(7).await.unwrap(), jobs.task_run(8).await.unwrap()), (None, None));
        assert_eq!(jobs.run_of_token(1, "t").await.unwrap(), None);
        assert!(jobs.cores(7).await.unwrap().is_empty() && jobs.job(1).await.unwrap().is_none());
    })
    .await;
}

#[tokio::test]
async fn changes_are_written_together_or_not_at_all() {
    on_both(|jobs| async move {
        let twice = [Change::Run(run(1, 1)), Change::TaskRun(task(2, 1)), Change::Run(run(1, 1))];
        let error = jobs.write(&twice).await.unwrap_err().to_string();
        assert!(error.contains("writing what became of the runs in"), "{error}");
        assert_eq!((jobs.run(1).await.unwrap(), jobs.task_run(2).await.unwrap()), (None, None));
        // A task run needs its run.
        assert!(jobs.write(&[Change::TaskRun(task(2, 1))]).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn pages_of_runs_lead_on_and_back() {
    on_both(|jobs| async move {
        let all: Vec<Change> = (1..=50).map(|id| Change::Run(run(id, id % 2))).collect();
        jobs.write(&all).await.unwrap();
        let any = RunFilter::default();
        let mut walked = Vec::new();
        let mut place = None;
        loop {
            let page = jobs.runs(&any, place, 7).await.unwrap();
            let Some(last) = page.last() else { break };
            place = Some(Place::After((last.state.start_ms, last.run_id)));
            walked.extend(page.iter().map(|run| run.run_id));
        }
        assert_eq!(walked, (1..=50).rev().collect::<Vec<_>>());
        assert_eq!(ids(&jobs, &any, Some(Place::Before((10, 30))), 3).await, [33, 32, 31]);
        let open = RunFilter { job_id: Some(1), is_over: Some(false), ..RunFilter::default() };
        assert_eq!(ids(&jobs, &open, None, 2).await, [49, 47]);
        assert!(ids(&jobs, &RunFilter { is_over: Some(true), ..open.clone() }, None, 2).await.is_empty());
        let between = RunFilter { from_ms: Some(2), to_ms: Some(3), ..RunFilter::default() };
        assert_eq!(ids(&jobs, &between, None, 10).await, [11, 10, 9, 8, 7, 6]);
        assert!(ids(&jobs, &RunFilter { run_type: Some("SUBMIT_RUN".to_owned()), ..any }, None, 5).await.is_empty());
        let skipped = RunFilter { skip: 48, ..RunFilter::default() };
        assert_eq!(ids(&jobs, &skipped, None, 10).await, [2, 1]);
        assert_eq!(jobs.open_runs().await.unwrap().len(), 25);
    })
    .await;
}

/// Whether a filter wants a run, and whether it stands behind the place, said as plainly as can be.
fn wants(filter: &RunFilter, from: Option<Place<(i64, i64)>>, run: &Run) -> bool {
    let key = (run.state.start_ms, run.run_id);
    filter.job_id.is_none_or(|job_id| run.job_id == job_id)
        && filter.is_over.is_none_or(|is_over| run.state.end_ms.is_some() == is_over)
        && filter.run_type.as_ref().is_none_or(|run_type| run.run_type == *run_type)
        && filter.from_ms.is_none_or(|from_ms| key.0 >= from_ms)
        && filter.to_ms.is_none_or(|to_ms| key.0 <= to_ms)
        && match from {
            Some(Place::After(place)) => key < place,
            Some(Place::Before(place)) => key > place,
            None => true,
        }
}

#[tokio::test]
async fn every_filter_at_every_place_gives_what_it_says() {
    on_both(every_filter_at_every_place).await;
}

async fn every_filter_at_every_place(jobs: Jobs) {
    let run_type = |id: i64| if id % 5 == 0 { "SUBMIT_RUN" } else { "JOB_RUN" }.to_owned();
    let all: Vec<Run> = (1..=40).rev().map(|id| Run { run_type: run_type(id), ..run(id, id % 3) }).collect();
    jobs.write(&all.iter().cloned().map(Change::Run).collect::<Vec<_>>()).await.unwrap();
    let places = [None, Some(Place::After((7, 22))), Some(Place::Before((4, 13)))];
    let mut filters = vec![RunFilter::default()];
    // Each condition beside each combination of those before it.
    let mut also = |condition: &dyn Fn(&RunFilter) -> Vec<RunFilter>| {
        filters.extend(filters.iter().flat_map(condition).collect::<Vec<_>>());
    };
    also(&|filter| vec![RunFilter { job_id: Some(2), ..filter.clone() }]);
    also(&|filter| [true, false].map(|over| RunFilter { is_over: Some(over), ..filter.clone() }).to_vec());
    also(&|filter| vec![RunFilter { run_type: Some("SUBMIT_RUN".to_owned()), ..filter.clone() }]);
    also(&|filter| [2, 6].map(|from| RunFilter { from_ms: Some(from), ..filter.clone() }).to_vec());
    also(&|filter| [4, 9].map(|to| RunFilter { to_ms: Some(to), ..filter.clone() }).to_vec());
    also(&|filter| vec![RunFilter { skip: 2, ..filter.clone() }]);
    for filter in &filters {
        for from in places {
            let mut wanted: Vec<i64> =
                all.iter().filter(|run| wants(filter, from, run)).map(|run| run.run_id).collect();
            let most = 3;
            if let Some(Place::Before(_)) = from {
                wanted.truncate(wanted.len().saturating_sub(filter.skip as usize));
                wanted.drain(..wanted.len().saturating_sub(most));
            } else {
                wanted.drain(..wanted.len().min(filter.skip as usize));
                wanted.truncate(most);
            }
            assert_eq!(ids(&jobs, filter, from, most as u32).await, wanted, "{filter:?} {from:?}");
        }
    }
}

#[tokio::test]
async fn pages_of_jobs_lead_on_and_back() {
    on_both(|jobs| async move {
        let all: Vec<Change> =
            (1..=9).map(|id| Change::Job(job(id, if id == 4 { "Straße" } else { "other" }))).collect();
        jobs.write(&all).await.unwrap();
        let ids = |page: Vec<Job>| page.iter().map(|job| job.job_id).collect::<Vec<_>>();
        assert_eq!(ids(jobs.jobs(&JobFilter::default(), None, 3).await.unwrap()), [9, 8, 7]);
        assert_eq!(ids(jobs.jobs(&JobFilter::default(), Some(Place::After(7)), 3).await.unwrap()), [6, 5, 4]);
        assert_eq!(ids(jobs.jobs(&JobFilter::default(), Some(Place::Before(4)), 3).await.unwrap()), [7, 6, 5]);
        assert_eq!(
            ids(jobs.jobs(&JobFilter { name: Some("STRAßE".to_owned()), skip: 0 }, None, 3).await.unwrap()),
            [4]
        );
    })
    .await;
}

#[tokio::test]
async fn ids_are_given_out_once() {
    let world = World::new().await;
    assert_eq!(world.store.jobs().reserve_ids(10).await.unwrap(), 1);
    assert_eq!(world.store.jobs().reserve_ids(1).await.unwrap(), 11);
    let world = world.reopened(store::Settings::default()).await;
    assert_eq!(world.store.jobs().reserve_ids(1).await.unwrap(), 12);
}

#[tokio::test]
async fn processes_share_a_database() {
    let Some(url) = testkit::postgres::database() else { return };
    // Opened at once: one of them makes the tables.
    let (one, other) = tokio::join!(Jobs::connect(&url), Jobs::connect(&url));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.reserve_ids(10).await.unwrap(), 1);
    assert_eq!(other.reserve_ids(1).await.unwrap(), 11);
    // PostgreSQL has no text with this character.
    one.write(&[Change::Job(job(1, "nul \0"))]).await.unwrap();
    assert_eq!(other.job(1).await.unwrap().unwrap().name, "nul \u{fffd}");
}

#[tokio::test]
async fn messages_say_what_is_wrong_and_hold_no_password() {
    let Some(url) = testkit::postgres::database() else { return };
    let secret = testkit::postgres::PASSWORD;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let cases = [
        (url.replace(secret, "wrong"), "check the user and the password"),
        (url.replace("/database_", "/none_"), "make that database"),
        (format!("postgresql://lakescope:{secret}@127.0.0.1:{port}/jobs"), "that the server runs"),
        (format!("mysql://lakescope:{secret}@localhost/jobs"), "it does not begin with postgresql://"),
        (format!("postgresql://lakescope:{secret}@localhost:port/jobs"), "invalid port number"),
    ];
    for (url, wanted) in cases {
        let error = Jobs::connect(&url).await.unwrap_err();
        let message = format!("{error} {error:?}");
        assert!(message.contains(wanted) && !message.contains(secret), "{message}");
    }
}
