//! `speed-jobs`: tasks a second, CPU time of a task, idling and lists of runs, beside Airflow, Prefect
//! and Dagster on the same machine.
//!
//! Each task of ours is a process of its own with a shim above it; what it runs does nothing
//! (`/bin/true`), so that the figures are those of the engine and not of an interpreter, as those of
//! the peers are. Airflow gives each task a process as well, forked from one that has Python loaded;
//! Prefect and Dagster run theirs as threads, or one after the other, in one process.

mod pages;
mod past;
mod peers;
mod tasks;

use super::{Goal, Outcome};
use crate::build_lakescope;
use anyhow::Result;
use pages::Pages;
use peers::Peer;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tasks::{Idle, Tasks, Took};

/// What is measured; arguments name some of them.
const PARTS: [&str; 4] = ["tasks", "idle", "history", "peers"];
/// Does nothing, whatever it is given.
const NOTHING: &str = "/bin/true";

/// What was measured of ours; `None`: it was not asked for.
#[derive(Default)]
struct Ours {
    tasks: Option<Tasks>,
    idle: Option<Idle>,
    pages: Option<Pages>,
}

pub fn run(arguments: &[String]) -> Result<Outcome> {
    let unknown = arguments.iter().find(|argument| !PARTS.contains(&argument.as_str()));
    anyhow::ensure!(unknown.is_none(), "there is no part {unknown:?}; parts: {}", PARTS.join(", "));
    let wanted = |part: &str| arguments.is_empty() || arguments.iter().any(|argument| argument == part);
    let mut outcome = Outcome::default();
    let binary = binary()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let mut ours = Ours::default();
    if wanted("tasks") {
        ours.tasks = Some(runtime.block_on(of_tasks(&binary, &mut outcome))?);
    }
    if wanted("idle") {
        ours.idle = Some(runtime.block_on(idle(&binary, &mut outcome))?);
    }
    if wanted("history") {
        ours.pages = Some(runtime.block_on(history(&binary, &mut outcome))?);
    }
    if wanted("peers") {
        let Some(shared) = testkit::shared() else {
            outcome.skip("speed-jobs: the peers need ../shared (LAKESCOPE_SHARED)");
            return Ok(outcome);
        };
        let peers = peers::run(&shared, &mut outcome)?;
        compare(&ours, &peers, &mut outcome);
    }
    Ok(outcome)
}

/// That of `LAKESCOPE_BIN`, else one that is built as users build it.
fn binary() -> Result<PathBuf> {
    if let Some(binary) = std::env::var_os("LAKESCOPE_BIN") {
        return Ok(binary.into());
    }
    // The binary embeds them.
    start::pages::build()?;
    build_lakescope(&["--release", "--no-default-features", "--features", "serve"])
}

async fn of_tasks(binary: &Path, outcome: &mut Outcome) -> Result<Tasks> {
    let tasks = tasks::run(binary, NOTHING).await?;
    head();
    row("lakescope, in sequence", &tasks.sequence);
    row("lakescope, 8 at once", &tasks.parallel);
    for (what, took) in [("in sequence", &tasks.sequence), ("8 at once", &tasks.parallel)] {
        outcome.goal(&format!("CPU of a task {what}, ms"), took.cpu_ms_a_task(), Goal::AtMost(4.0));
    }
    Ok(tasks)
}

async fn idle(binary: &Path, outcome: &mut Outcome) -> Result<Idle> {
    let data = tempfile::tempdir()?;
    let idle = tasks::idle(binary).await?;
    println!("idle: {:.1} % of a core", idle.cpu_percent);
    outcome.goal("memory while idle, MB", idle.mb, Goal::AtMost(60.0));
    outcome.goal("from start to the first answer, s", tasks::ready_s(binary, data.path()).await?, Goal::AtMost(0.3));
    Ok(idle)
}

async fn history(binary: &Path, outcome: &mut Outcome) -> Result<Pages> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let begun = Instant::now();
    let past = past::fill(binary, &data).await?;
    println!("{} runs of history, written in {:.0} s", past::RUNS, begun.elapsed().as_secs_f64());
    let ready_s = tasks::ready_s(binary, &data).await?;
    outcome.goal("from start to the first answer with that history, s", ready_s, Goal::AtMost(0.3));
    let pages = pages::run(binary, &data, &past, outcome).await?;
    outcome.goal("the slowest page at p50, ms", pages.slowest_p50_ms, Goal::AtMost(10.0));
    outcome.goal("the slowest page at p99, ms", pages.slowest_p99_ms, Goal::AtMost(50.0));
    Ok(pages)
}

fn head() {
    println!("| tasks that do nothing | tasks | wall s | CPU s | tasks a second | CPU ms a task |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
}

fn row(what: &str, took: &Took) {
    let Took { tasks, wall_s, cpu_s, tasks_a_second } = took;
    let cpu_ms = took.cpu_ms_a_task();
    println!("| {what} | {tasks} | {wall_s:.2} | {cpu_s:.2} | {tasks_a_second:.1} | {cpu_ms:.1} |");
}

/// The tables of all, then how far ours is ahead.
fn compare(ours: &Ours, peers: &[Peer], outcome: &mut Outcome) {
    head();
    if let Some(tasks) = &ours.tasks {
        row("lakescope, in sequence", &tasks.sequence);
        row("lakescope, 8 at once", &tasks.parallel);
    }
    for peer in peers {
        row(&format!("{}, in sequence", peer.title), &peer.sequence);
        row(&format!("{}, 8 at once", peer.title), &peer.parallel);
    }
    println!("| idle | MB | % of a core | s to the first answer |\n| --- | ---: | ---: | ---: |");
    for peer in peers {
        println!("| {} | {:.0} | {:.1} | {:.1} |", peer.title, peer.idle_mb, peer.idle_cpu_percent, peer.ready_s);
    }
    println!("| 50 runs of a history, p50 ms | runs | newest | filtered | deep |\n| --- | ---: | ---: | ---: | ---: |");
    for Peer { title, history, lists, .. } in peers {
        println!("| {title} | {history} | {:.1} | {:.1} | {:.1} |", lists.newest_ms, lists.filtered_ms, lists.deep_ms);
    }
    if let Some(tasks) = &ours.tasks {
        ahead_with_tasks(tasks, peers, outcome);
    }
    if let Some(pages) = &ours.pages {
        ahead_with_pages(pages, peers, outcome);
    }
}

fn ahead_with_tasks(ours: &Tasks, peers: &[Peer], outcome: &mut Outcome) {
    if let Some(airflow) = peers.iter().find(|peer| peer.name == "Airflow") {
        let (theirs, sequence) = (&airflow.sequence, &ours.sequence);
        outcome.goal("Airflow / ours in sequence, CPU", theirs.cpu_s / sequence.cpu_s, Goal::AtLeast(100.0));
        outcome.goal("Airflow / ours in sequence, wall", theirs.wall_s / sequence.wall_s, Goal::AtLeast(25.0));
        let ahead = ours.parallel.tasks_a_second / airflow.parallel.tasks_a_second;
        outcome.goal("ours / Airflow, tasks a second", ahead, Goal::AtLeast(100.0));
    }
    if let Some(best) = peers.iter().map(|peer| peer.parallel.tasks_a_second).max_by(f64::total_cmp) {
        outcome.goal("ours / best peer, tasks a second", ours.parallel.tasks_a_second / best, Goal::AtLeast(4.0));
    }
}

/// The peers list fifty runs at once and ours 25 at the most that its API knows: two pages count.
fn ahead_with_pages(ours: &Pages, peers: &[Peer], outcome: &mut Outcome) {
    let mut ahead = |what: &str, theirs: fn(&Peer) -> f64, page_ms: f64| {
        if let Some(quickest) = peers.iter().map(theirs).min_by(f64::total_cmp) {
            outcome.goal(&format!("fastest peer / ours, {what} runs"), quickest / (2.0 * page_ms), Goal::AtLeast(10.0));
        }
    };
    ahead("newest", |peer| peer.lists.newest_ms, ours.newest_ms);
    ahead("filtered", |peer| peer.lists.filtered_ms, ours.filtered_ms);
    ahead("deep", |peer| peer.lists.deep_ms, ours.deep_ms);
}
