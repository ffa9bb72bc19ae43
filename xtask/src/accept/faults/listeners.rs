//! Five hundred pages that listen to live updates at once.

use super::server::{Server, eventually};
use super::{Outcome, World, copy, wire};
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const LISTENERS: usize = 500;
/// Those above `--max-event-listeners`.
const TOO_MANY: usize = 20;
/// A request beside them, on a machine that is busy with tests.
const QUICK: Duration = Duration::from_secs(2);
/// Memory of all of them together.
const MOST_MB: f64 = 64.0;
/// Files that a server may open for itself meanwhile.
const SOME_FILES: usize = 8;

pub fn run(world: &World, outcome: &mut Outcome) -> Result<()> {
    let (data, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
    copy(&world.logs().join("codec_none"), &folder.path().join("codec_none"))?;
    let limit = LISTENERS.to_string();
    let mut server = Server::start(world, data.path(), &[folder.path()], &["--max-event-listeners", &limit])?;
    server.ready()?;
    let (files, memory_mb) = (server.open_files()?, server.serving.most_mb()?);
    let mut listeners = (0..LISTENERS).map(|_| Listener::open(&server)).collect::<Result<Vec<_>>>()?;
    let greeted = count(&mut listeners)?;
    outcome.check(greeted == LISTENERS, format!("{greeted} of {LISTENERS} listeners are greeted"));
    refused(&server, outcome)?;
    beside(&server, outcome)?;
    copy(&world.logs().join("names_html"), &folder.path().join("names_html"))?;
    let told = count(&mut listeners)?;
    outcome.check(told == LISTENERS, format!("{told} of {LISTENERS} listeners are told of a new log"));
    outcome.check(server.ids()?.len() == 2, "the listeners are told of a new log that is not listed");
    let grown_mb = server.serving.most_mb()? - memory_mb;
    println!("{LISTENERS} listeners: {grown_mb:.0} MB more");
    outcome.check(grown_mb < MOST_MB, format!("{LISTENERS} listeners take {grown_mb:.0} MB"));
    drop(listeners);
    let gone = eventually("listeners that left are gone", || Ok(server.open_files()? <= files + SOME_FILES));
    outcome.check(gone.is_ok(), format!("{} files are open after all have left, {files} before", server.open_files()?));
    let place = Listener::open(&server)?.event();
    outcome.check(place.is_ok(), "a listener finds no place after all have left");
    server.lives(outcome, "after listeners")
}

/// One too many is told so, and when to come back.
fn refused(server: &Server, outcome: &mut Outcome) -> Result<()> {
    for _ in 0..TOO_MANY {
        let answer = server.get("/api/lakescope/v1/events")?;
        let clear = answer.status == 503
            && answer.header("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok())
            && answer.text().contains("--max-event-listeners");
        outcome.check(clear, format!("a listener too many: {} {}", answer.head, answer.text()));
    }
    Ok(())
}

fn beside(server: &Server, outcome: &mut Outcome) -> Result<()> {
    for _ in 0..TOO_MANY {
        let begun = Instant::now();
        let listed = server.ids()?.len();
        let took = begun.elapsed();
        outcome
            .check(listed == 1 && took < QUICK, format!("beside {LISTENERS} listeners: {listed} listed in {took:?}"));
    }
    Ok(())
}

/// How many are told something.
fn count(listeners: &mut [Listener]) -> Result<usize> {
    let mut told = 0;
    for listener in listeners {
        told += usize::from(listener.event().is_ok());
    }
    Ok(told)
}

/// A page that listens.
struct Listener {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Listener {
    fn open(server: &Server) -> Result<Self> {
        let mut stream = wire::connect(server.address())?;
        stream.write_all(
            b"GET /api/lakescope/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n",
        )?;
        Ok(Self { stream, read: Vec::new() })
    }

    /// Waits for the next `applications` event.
    fn event(&mut self) -> Result<()> {
        let mut piece = [0; 4 << 10];
        loop {
            let text = String::from_utf8_lossy(&self.read);
            if let Some(at) = text.find("event: applications") {
                self.read = text.as_bytes()[at + 1..].to_vec();
                return Ok(());
            }
            let bytes = self.stream.read(&mut piece)?;
            (bytes > 0).then_some(()).context("the server closed")?;
            self.read.extend(&piece[..bytes]);
        }
    }
}
