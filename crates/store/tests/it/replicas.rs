//! Several processes on one PostgreSQL database: who leads, and what the others ask.

use std::time::Duration;
use store::Error;
use store::jobs::{Change, Jobs, Run, RunState, Site};

fn site(id: &str, patience_ms: u64) -> Site {
    Site { id: id.to_owned(), name: format!("the site {id}"), patience: Duration::from_millis(patience_ms) }
}

fn run(run_id: i64) -> Change {
    let state = RunState { life_cycle: "RUNNING".to_owned(), ..RunState::default() };
    Change::Run(Run { run_id, job_id: 1, state, ..Run::default() })
}

#[tokio::test]
async fn one_leads_and_is_followed_when_it_is_gone() {
    let Some(url) = testkit::postgres::database() else { return };
    let (one, other) = (Jobs::connect(&url).await.unwrap(), Jobs::connect(&url).await.unwrap());
    let here = site("here", 60_000);
    let mut lease = one.lead(&here).await.unwrap().unwrap();
    assert!(other.lead(&here).await.unwrap().is_none() && one.lead(&here).await.unwrap().is_none());
    lease.renew().await.unwrap();
    lease.jobs().write(&[run(1)]).await.unwrap();
    lease.jobs().write(&[run(2)]).await.unwrap();
    let writer = lease.jobs();
    drop(lease);
    let mut lease = followed(&other, &here).await;
    // Whoever led before writes nothing any more, and what it wrote stands.
    let late = writer.write(&[run(3)]).await.unwrap_err();
    assert!(matches!(late, Error::Deposed { .. }), "{late}");
    assert_eq!(other.open_runs().await.unwrap().len(), 2);
    lease.jobs().write(&[run(3)]).await.unwrap();
    lease.renew().await.unwrap();
}

#[tokio::test]
async fn a_leader_that_is_silent_is_followed() {
    let Some(url) = testkit::postgres::database() else { return };
    let (one, other) = (Jobs::connect(&url).await.unwrap(), Jobs::connect(&url).await.unwrap());
    let here = site("here", 60_000);
    let mut silent = one.lead(&here).await.unwrap().unwrap();
    silent.jobs().write(&[run(1)]).await.unwrap();
    let lease = followed(&other, &here).await;
    let late = [silent.renew().await.unwrap_err(), silent.jobs().write(&[run(2)]).await.unwrap_err()];
    assert!(late.iter().all(|error| matches!(error, Error::Deposed { .. })), "{late:?}");
    // The end of its session says nothing of the leader after it.
    drop(silent);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(one.lead(&here).await.unwrap().is_none());
    lease.jobs().write(&[run(2)]).await.unwrap();
}

/// The lead, once the leader before has ended or was silent for long enough.
async fn followed(jobs: &Jobs, site: &Site) -> store::jobs::Lease {
    let begun = std::time::Instant::now();
    while begun.elapsed() < 3 * store::jobs::LEASE {
        if let Some(lease) = jobs.lead(site).await.unwrap() {
            return lease;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nobody leads");
}

#[tokio::test]
async fn another_site_waits_while_runs_are_active() {
    let Some(url) = testkit::postgres::database() else { return };
    let jobs = Jobs::connect(&url).await.unwrap();
    let lease = jobs.lead(&site("here", 0)).await.unwrap().unwrap();
    assert_eq!(lease.given_up(), None);
    drop(lease);
    // Nothing runs: whoever comes may lead.
    let lease = followed(&jobs, &site("there", 60_000)).await;
    lease.jobs().write(&[run(1)]).await.unwrap();
    drop(lease);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(jobs.lead(&site("here", 60_000)).await.unwrap().is_none());
    let lease = followed(&jobs, &site("there", 60_000)).await;
    assert_eq!(lease.given_up(), None);
}

#[tokio::test]
async fn a_command_is_done_once() {
    let Some(url) = testkit::postgres::database() else { return };
    let (one, other) = (Jobs::connect(&url).await.unwrap(), Jobs::connect(&url).await.unwrap());
    let here = site("here", 60_000);
    let mut bell = one.bell().await.unwrap();
    let asked = [other.ask("a").await.unwrap(), other.ask("b").await.unwrap(), other.ask("c").await.unwrap()];
    bell.rung().await;
    assert!(other.withdraw(asked[2]).await.unwrap());
    let lease = one.lead(&here).await.unwrap().unwrap();
    let both = vec![(asked[0], "a".to_owned()), (asked[1], "b".to_owned())];
    assert_eq!(lease.jobs().asked().await.unwrap(), both);
    assert!(lease.jobs().asked().await.unwrap().is_empty());
    assert!(!other.withdraw(asked[0]).await.unwrap(), "a leader works on it");
    lease.jobs().write(&[run(1), Change::Answer(asked[0], "done".to_owned())]).await.unwrap();
    // The leader dies over the second one: the next one takes it, and not the first.
    drop(lease);
    let lease = followed(&other, &here).await;
    assert_eq!(lease.jobs().asked().await.unwrap(), both[1..]);
    assert_eq!(other.answer(asked[0]).await.unwrap().as_deref(), Some("done"));
    assert_eq!((other.answer(asked[0]).await.unwrap(), other.answer(asked[1]).await.unwrap()), (None, None));
    other.tidy_commands().await.unwrap();
}
