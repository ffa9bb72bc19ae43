//! `kill -9` while logs are read, while the store is written and while a log is handed over; then a
//! start on the same data directory.

use super::server::{Server, check_database, check_leftovers, eventually, kept, tree};
use super::{Outcome, Random, SEED, World, wire};
use anyhow::Result;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Data directories that servers are killed on; more when it may take long.
const ROUNDS: (usize, usize) = (3, 30);
/// Random kills on each.
const KILLS: usize = 3;
/// Files in the store when the server is killed.
const FILES: [usize; 3] = [0, 1, 6];

pub fn run(world: &World, outcome: &mut Outcome) -> Result<()> {
    let mut random = Random(SEED);
    let (takes, files) = undisturbed(world)?;
    let rounds = if world.long { ROUNDS.1 } else { ROUNDS.0 };
    let mut halfway = 0;
    let is_half = |data: &Path| (1..files.len()).contains(&kept(data).map_or(0, |kept| kept.len()));
    for round in 0..rounds {
        let data = tempfile::tempdir()?;
        for _ in 0..KILLS {
            let server = Server::start(world, data.path(), &[world.logs()], &[])?;
            std::thread::sleep(takes.mul_f64(random.share()));
            drop(server);
            halfway += usize::from(is_half(data.path()));
        }
        check_restart(world, outcome, data.path(), &files, &format!("killed at random, round {round}"))?;
    }
    for many in FILES {
        let data = tempfile::tempdir()?;
        let server = Server::start(world, data.path(), &[world.logs()], &[])?;
        eventually("an application is written", || Ok(kept(data.path())?.len() > many))?;
        drop(server);
        halfway += usize::from(is_half(data.path()));
        check_restart(world, outcome, data.path(), &files, &format!("killed with {many} files written"))?;
    }
    println!("killed {} times, {halfway} of them between the first and the last file", rounds * KILLS + FILES.len());
    outcome.check(halfway > 0, "every kill came before the first or after the last file");
    while_a_log_comes(world, outcome)
}

/// How long the first reading takes, and the files that it leaves.
fn undisturbed(world: &World) -> Result<(Duration, BTreeSet<String>)> {
    world.undisturbed()?;
    let data = tempfile::tempdir()?;
    let begun = Instant::now();
    let server = Server::start(world, data.path(), &[world.logs()], &[])?;
    server.ready()?;
    Ok((begun.elapsed(), kept(data.path())?))
}

/// Starts on a data directory that a killed server left: twice, since the second start reads only
/// what was kept.
fn check_restart(
    world: &World,
    outcome: &mut Outcome,
    data: &Path,
    files: &BTreeSet<String>,
    after: &str,
) -> Result<()> {
    for start in ["restarted", "restarted twice"] {
        let after = format!("{after}, {start}");
        let mut server = Server::start(world, data, &[world.logs()], &[])?;
        server.ready()?;
        server.answers()?.check(world.undisturbed()?, outcome, &after);
        server.lives(outcome, &after)?;
        let complaints = server.complaints();
        outcome.check(complaints.is_empty(), format!("{after}: {complaints:?}"));
        check_leftovers(data, outcome, &after)?;
        let now = kept(data)?;
        outcome.check(now == *files, format!("{after}: {} files are kept instead of {}", now.len(), files.len()));
    }
    check_database(world, data, outcome, after)
}

/// Killed when half of an uploaded log has come.
fn while_a_log_comes(world: &World, outcome: &mut Outcome) -> Result<()> {
    let data = tempfile::tempdir()?;
    let log = std::fs::read(world.logs().join("codec_none"))?;
    let server = Server::start(world, data.path(), &[world.logs()], &[])?;
    server.ready()?;
    let mut stream = wire::connect(server.address())?;
    let head = wire::head("POST", "/api/lakescope/v1/logs?name=half");
    write!(stream, "{head}Content-Length: {}\r\n\r\n", log.len())?;
    stream.write_all(&log[..log.len() / 2])?;
    let uploads = data.path().join("uploads");
    eventually("half of the log has come", || Ok(tree(&uploads)?.values().any(|bytes| *bytes > log.len() as u64 / 4)))?;
    drop(server);
    let after = "killed while a log came";
    let server = Server::start(world, data.path(), &[world.logs()], &[])?;
    server.ready()?;
    server.answers()?.check(world.undisturbed()?, outcome, after);
    let left = tree(&uploads)?;
    outcome.check(left.is_empty(), format!("{after}: half a log is left: {left:?}"));
    check_leftovers(data.path(), outcome, after)
}
