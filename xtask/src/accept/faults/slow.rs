//! Clients that hardly move: they are let go after `--client-timeout`, others do not notice them,
//! and who is slow but moves is served.

use super::server::{Server, eventually};
use super::{Outcome, World, wire};
use anyhow::Result;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// `--client-timeout`.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How much later a connection may be closed, on a machine that is busy with tests.
const LATER: Duration = Duration::from_secs(8);
const DRIBBLE_EVERY: Duration = Duration::from_millis(100);
const QUICK: Duration = Duration::from_secs(2);
/// Files that a server may open for itself meanwhile.
const SOME_FILES: usize = 8;
/// Clients of each kind.
const CLIENTS: usize = 40;
/// Logs that may be handed over at once.
const UPLOADS: usize = 32;
/// A slow upload: this many bytes at once, at this distance: more than 1 KiB within the timeout.
const PIECE: usize = 1_500;
const PIECE_EVERY: Duration = Duration::from_millis(500);

pub fn run(world: &World, outcome: &mut Outcome) -> Result<()> {
    let data = tempfile::tempdir()?;
    let timeout = TIMEOUT.as_secs().to_string();
    let mut server = Server::start(world, data.path(), &[world.logs()], &["--client-timeout", &timeout])?;
    server.ready()?;
    let files = server.open_files()?;
    heads(&server, outcome)?;
    bodies(&server, outcome)?;
    readers(&server, outcome, files)?;
    uploads(&server, world, outcome)?;
    server.lives(outcome, "after slow clients")
}

/// Heads of requests that come byte by byte.
fn heads(server: &Server, outcome: &mut Outcome) -> Result<()> {
    let after = "a head byte by byte";
    let mut clients = opened(server, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")?;
    let closed = dribbled(server, &mut clients, outcome, after)?;
    outcome.check(closed.len() == CLIENTS, format!("{after}: {} of {CLIENTS} are closed", closed.len()));
    Ok(())
}

/// Logs that come byte by byte: those that find a place are told why they lose it.
fn bodies(server: &Server, outcome: &mut Outcome) -> Result<()> {
    let after = "a log byte by byte";
    let head = wire::head("POST", "/api/lakescope/v1/logs?name=slow");
    let mut clients = opened(server, &format!("{head}Content-Length: 1000000\r\n\r\n{{"))?;
    let closed = dribbled(server, &mut clients, outcome, after)?;
    let told =
        closed.iter().filter(|said| said.starts_with("HTTP/1.1 400") && said.contains("--client-timeout")).count();
    let no_place = closed
        .iter()
        .filter(|said| said.starts_with("HTTP/1.1 503") && said.to_lowercase().contains("retry-after"))
        .count();
    let expected = (UPLOADS, CLIENTS - UPLOADS);
    outcome.check(
        (told, no_place) == expected,
        format!("{after}: {told} are told why, {no_place} find no place: {closed:?}"),
    );
    Ok(())
}

/// Clients that ask and ask and never read.
fn readers(server: &Server, outcome: &mut Outcome, files: usize) -> Result<()> {
    let after = "answers that nobody reads";
    let path = largest(server)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").repeat(200);
    let clients = (0..CLIENTS).map(|_| {
        let mut stream = wire::connect(server.address())?;
        stream.write_all(request.as_bytes())?;
        Ok(stream)
    });
    let clients = clients.collect::<Result<Vec<TcpStream>>>()?;
    let begun = Instant::now();
    let taken = eventually("most are taken", || Ok(server.open_files()? >= files + CLIENTS / 2));
    outcome.check(taken.is_ok(), format!("{after}: {} files are open for {CLIENTS} connections", server.open_files()?));
    beside(server, outcome, after)?;
    let gone = eventually("they are let go", || Ok(server.open_files()? <= files + SOME_FILES));
    let took = begun.elapsed();
    let let_go = gone.is_ok() && took < TIMEOUT + LATER;
    outcome.check(let_go, format!("{after}: {} files are open after {took:?}, {files} before", server.open_files()?));
    drop(clients);
    Ok(())
}

/// The task list of the stage with most tasks.
fn largest(server: &Server) -> Result<String> {
    let mut largest = (0, String::new());
    for id in server.ids()? {
        let stages = server.json(&format!("/api/v1/applications/{id}/stages"))?;
        for stage in stages.as_array().into_iter().flatten() {
            let path = format!(
                "/api/v1/applications/{id}/stages/{}/{}/taskList?length=100000",
                stage["stageId"], stage["attemptId"]
            );
            largest = largest.max((stage["numTasks"].as_u64().unwrap_or_default(), path));
        }
    }
    Ok(largest.1)
}

/// A log over a link that takes several times the timeout in all.
fn uploads(server: &Server, world: &World, outcome: &mut Outcome) -> Result<()> {
    let log = std::fs::read(world.eventlogs.join("straggler_no_speculation.zstd"))?;
    let mut stream = wire::connect(server.address())?;
    let begun = Instant::now();
    write!(
        stream,
        "{}Content-Length: {}\r\n\r\n",
        wire::head("POST", "/api/lakescope/v1/logs?name=link.zstd"),
        log.len()
    )?;
    for piece in log.chunks(PIECE) {
        stream.write_all(piece)?;
        std::thread::sleep(PIECE_EVERY);
    }
    let answers = wire::answers(&mut stream)?;
    let took = begun.elapsed();
    let taken = answers.iter().any(|answer| answer.status == 201);
    outcome.check(taken && took > 3 * TIMEOUT, format!("a log over a slow link, in {took:?}: {answers:?}"));
    Ok(())
}

fn opened(server: &Server, begin: &str) -> Result<Vec<TcpStream>> {
    let open = |_| {
        let mut stream = wire::connect(server.address())?;
        stream.write_all(begin.as_bytes())?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    };
    (0..CLIENTS).map(open).collect()
}

/// Sends a byte now and then until the server has closed all or it takes too long; gives what was
/// said to those that were closed.
fn dribbled(server: &Server, clients: &mut Vec<TcpStream>, outcome: &mut Outcome, after: &str) -> Result<Vec<String>> {
    let begun = Instant::now();
    let mut closed = Vec::new();
    let mut said = vec![Vec::new(); clients.len()];
    beside(server, outcome, after)?;
    while !clients.is_empty() && begun.elapsed() < TIMEOUT + LATER {
        for at in (0..clients.len()).rev() {
            if is_closed(&mut clients[at], &mut said[at]) {
                clients.remove(at);
                closed.push(String::from_utf8_lossy(&said.remove(at)).into_owned());
            }
        }
        std::thread::sleep(DRIBBLE_EVERY);
    }
    let took = begun.elapsed();
    outcome.check(took >= TIMEOUT.mul_f64(0.5), format!("{after}: all were closed after {took:?} already"));
    beside(server, outcome, after)?;
    Ok(closed)
}

/// Sends one byte more and takes what was said.
fn is_closed(client: &mut TcpStream, said: &mut Vec<u8>) -> bool {
    let sent = client.write(b"x");
    let mut piece = [0; 4 << 10];
    loop {
        match client.read(&mut piece) {
            Ok(0) => return true,
            Ok(bytes) => said.extend(&piece[..bytes]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return sent.is_err(),
            Err(_) => return true,
        }
    }
}

/// Others are answered meanwhile.
fn beside(server: &Server, outcome: &mut Outcome, after: &str) -> Result<()> {
    for path in ["/health", "/api/v1/applications", "/plain"] {
        let begun = Instant::now();
        let answer = server.get(path)?;
        let took = begun.elapsed();
        outcome.check(
            answer.status == 200 && took < QUICK,
            format!("{after}: {path} says {} after {took:?}", answer.status),
        );
    }
    Ok(())
}
