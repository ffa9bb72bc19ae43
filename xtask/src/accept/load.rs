//! `load-history`: two thousand applications after a warm start, a large log opened again, and
//! requests a second beside Spark's History Server on the same log.

mod wide;

use super::{Outcome, speed};
use crate::{browser, build_lakescope, root, spark};
use anyhow::{Context, Result};
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::serving::{Serving, most_mb};
use tokio::net::TcpStream;

/// Applications of the list.
const APPLICATIONS: usize = 2_000;
/// Requests at once, and for how long.
const CLIENTS: usize = 4;
const LASTS: Duration = Duration::from_secs(8);
const PATIENCE: Duration = Duration::from_secs(600);

/// What is measured; arguments name some of them.
const PARTS: [&str; 4] = ["list", "pages", "again", "requests"];

pub fn run(arguments: &[String]) -> Result<Outcome> {
    let unknown = arguments.iter().find(|argument| !PARTS.contains(&argument.as_str()));
    anyhow::ensure!(unknown.is_none(), "there is no part {unknown:?}; parts: {}", PARTS.join(", "));
    let wanted = |part: &str| arguments.is_empty() || arguments.iter().any(|argument| argument == part);
    let mut outcome = Outcome::default();
    // The binary embeds them.
    start::pages::build()?;
    let binary = build_lakescope(&["--release", "--no-default-features", "--features", "serve"])?;
    let runtime = tokio::runtime::Runtime::new()?;
    if wanted("list") {
        runtime.block_on(list(&binary, &mut outcome))?;
    }
    if wanted("pages") {
        pages(&binary, &runtime, &mut outcome)?;
    }
    if wanted("again") || wanted("requests") {
        let Some(shared) = testkit::shared() else {
            outcome.skip("load-history: the large log needs ../shared (LAKESCOPE_SHARED)");
            return Ok(outcome);
        };
        let (log, _) = speed::logs(&shared)?;
        let folder = only(&log)?;
        if wanted("again") {
            runtime.block_on(opened_again(&binary, folder.path(), &mut outcome))?;
        }
        if wanted("requests") {
            runtime.block_on(throughput(&binary, &log, folder.path(), &mut outcome))?;
        }
    }
    Ok(outcome)
}

/// A folder with nothing but the log in it.
fn only(log: &Path) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    std::os::unix::fs::symlink(log, folder.path().join("application"))?;
    Ok(folder)
}

/// Restarts after each of which the application is opened by one request.
const RESTARTS: usize = 9;

/// How long the first request for an application takes that was read by an earlier process.
async fn opened_again(binary: &Path, logs: &Path, outcome: &mut Outcome) -> Result<()> {
    let data = tempfile::tempdir()?;
    for (what, below) in [("page", "/api/lakescope/v1/applications/ID/page"), ("job", "/api/v1/applications/ID/jobs/0")]
    {
        let mut times = Vec::new();
        for _ in 0..RESTARTS {
            let serving = Serving::start(binary, data.path(), [logs.as_os_str(), "--no-auth".as_ref()])?;
            until_ready(&reqwest::Client::new(), &serving.address).await?;
            let listed = json(&format!("{}/api/v1/applications", serving.address)).await?;
            let id = listed[0]["id"].as_str().context("no application is listed")?;
            let begun = Instant::now();
            json(&format!("{}{}", serving.address, below.replace("ID", id))).await?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let (median, slowest) = (times[RESTARTS / 2], times[RESTARTS - 1]);
        println!("opened again after a restart, {what}: {median:.0} ms, {slowest:.0} at most; goal under 50");
        outcome.check(median < 1_000.0, format!("opening takes {median:.0} ms: the log was read again"));
    }
    Ok(())
}

/// The list after a start that reads no log again.
async fn list(binary: &Path, outcome: &mut Outcome) -> Result<()> {
    let folder = many()?;
    let data = tempfile::tempdir()?;
    let args = [folder.as_os_str(), "--no-auth".as_ref()];
    let begun = Instant::now();
    let serving = Serving::start(binary, data.path(), args)?;
    let client = reqwest::Client::new();
    until_ready(&client, &serving.address).await?;
    println!("{APPLICATIONS} logs read for the first time: {:.2} s", begun.elapsed().as_secs_f64());
    drop(serving);
    let begun = Instant::now();
    let serving = Serving::start(binary, data.path(), args)?;
    until_ready(&client, &serving.address).await?;
    let answer = client.get(format!("{}/api/lakescope/v1/applications", serving.address)).send().await?;
    let body: Value = serde_json::from_slice(&answer.bytes().await?)?;
    let wall_s = begun.elapsed().as_secs_f64();
    let rows = body["applications"].as_array().map_or(0, Vec::len);
    println!("listed after a warm start: {wall_s:.2} s from its start, goal under 1; {:.0} MB", serving.most_mb()?);
    outcome.check(rows == APPLICATIONS, format!("{rows} applications are listed, not {APPLICATIONS}"));
    Ok(())
}

/// How the pages feel with a stage of very many tasks; their script prints its figures.
fn pages(binary: &Path, runtime: &tokio::runtime::Runtime, outcome: &mut Outcome) -> Result<()> {
    let Some(chromium) = browser::find()? else {
        outcome.skip("load-history: the pages need Chromium (apt-get install chromium, or set CHROMIUM)");
        return Ok(());
    };
    let folder = start::target_folder().join("bench/wide");
    std::fs::create_dir_all(&folder)?;
    let log = folder.join("wide.zstd");
    if !log.exists() {
        wide::write(&log)?;
    }
    let data = tempfile::tempdir()?;
    let serving = Serving::start(binary, data.path(), [folder.as_os_str(), "--no-auth".as_ref()])?;
    runtime.block_on(until_ready(&reqwest::Client::new(), &serving.address))?;
    println!("a stage of {} tasks in the browser; goals: usable within 1,000 ms, no task over 50 ms", wide::TASKS);
    let output = browser::run("load", &chromium, &[("LAKESCOPE_URL", &serving.address)])?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    outcome.check(output.status.success(), format!("the pages: {}", String::from_utf8_lossy(&output.stderr)));
    Ok(())
}

/// Logs that differ in their application id only.
fn many() -> Result<PathBuf> {
    const ID: &str = "local-1795990931505";
    let folder = start::target_folder().join("bench/many");
    if folder.join(format!("{APPLICATIONS}")).exists() {
        return Ok(folder);
    }
    std::fs::create_dir_all(&folder)?;
    let log = zstd::decode_all(&std::fs::read(root().join("samples/lab_shuffle.zstd"))?[..])?;
    let log = String::from_utf8(log)?;
    for n in 1..=APPLICATIONS {
        let other = log.replace(ID, &format!("local-{:013}", 1_795_000_000_000 + n));
        std::fs::write(folder.join(format!("{n}")), zstd::encode_all(other.as_bytes(), 3)?)?;
    }
    Ok(folder)
}

async fn until_ready(client: &reqwest::Client, address: &str) -> Result<()> {
    let begun = Instant::now();
    loop {
        let answer = client.get(format!("{address}/ready")).send().await;
        if answer.is_ok_and(|answer| answer.status().is_success()) {
            return Ok(());
        }
        anyhow::ensure!(begun.elapsed() < PATIENCE, "{address} is not ready after {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What is asked of the application; `JOB` and `STAGE` stand for ids.
const ASKED: [(&str, &str); 5] = [
    ("list", ""),
    ("job", "/jobs/JOB"),
    ("stage", "/stages/STAGE"),
    ("task list", "/stages/STAGE/0/taskList?length=100&sortBy=-runtime"),
    ("task summary", "/stages/STAGE/0/taskSummary"),
];

async fn throughput(binary: &Path, log: &Path, logs: &Path, outcome: &mut Outcome) -> Result<()> {
    let data = tempfile::tempdir()?;
    let serving = Serving::start(binary, data.path(), [logs.as_os_str(), "--no-auth".as_ref()])?;
    until_ready(&reqwest::Client::new(), &serving.address).await?;
    let asked = asked(&serving.address).await?;
    let ours = measured(&serving.address, "lakescope serve", &asked).await?;
    let our_mb = serving.most_mb()?;
    let most = hammer(server(&serving.address), "/health").await?.len() as f64 / LASTS.as_secs_f64();
    drop(serving);
    println!("lakescope serve: {our_mb:.0} MB");
    let peer = Peer::start(log)?;
    let theirs = measured(&peer.address, "Spark History Server", &asked).await?;
    let their_mb = most_mb(peer.id)?;
    println!("Spark History Server: {their_mb:.0} MB");
    for ((name, _), (a, b)) in ASKED.iter().zip(ours.iter().zip(&theirs)) {
        println!("{name}: {:.1} times the requests a second", a / b.max(1e-9));
    }
    let of_each = |rates: &[f64]| 1.0 / rates.iter().map(|rate| 1.0 / rate.max(1e-9)).sum::<f64>();
    println!("one of each in turn: {:.1} times the requests a second, goal 20", of_each(&ours) / of_each(&theirs));
    println!("the most that server and client can do here, asked for nothing: {most:.0} requests a second");
    println!("memory: a {:.1}th of the peer's, goal a tenth", their_mb / our_mb.max(1.0));
    outcome.check(ours.iter().zip(&theirs).all(|(a, b)| a > b), "an endpoint is slower than the peer's");
    Ok(())
}

/// Ids of jobs and stages that Spark's server keeps, too: it drops all but the last thousand.
const KEPT: usize = 900;

/// The paths: of the newest job, and of the stage with the most tasks among the newest.
async fn asked(address: &str) -> Result<Vec<String>> {
    let applications = format!("{address}/api/v1/applications");
    let id = json(&applications).await?[0]["id"].as_str().context("no application is listed")?.to_owned();
    let jobs = json(&format!("{applications}/{id}/jobs")).await?;
    let stages = json(&format!("{applications}/{id}/stages?status=complete")).await?;
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let job = jobs.as_array().and_then(|jobs| jobs.iter().map(|job| number(&job["jobId"])).max());
    let newest = stages.as_array().into_iter().flatten().take(KEPT);
    let stage = newest.max_by_key(|stage| number(&stage["numTasks"])).context("no stage is listed")?;
    println!("asked: a stage of {} tasks", stage["numTasks"]);
    let ids = [("JOB", job.context("no job is listed")?), ("STAGE", number(&stage["stageId"]))];
    let path = |template: &str| match template {
        "" => "/api/v1/applications".to_owned(),
        below => ids
            .iter()
            .fold(format!("/api/v1/applications/{id}{below}"), |path, (name, id)| path.replace(name, &id.to_string())),
    };
    Ok(ASKED.iter().map(|(_, template)| path(template)).collect())
}

async fn json(address: &str) -> Result<Value> {
    Ok(serde_json::from_slice(&reqwest::get(address).await?.error_for_status()?.bytes().await?)?)
}

/// Requests a second of each path; prints them with the 99th percentile of the times.
async fn measured(address: &str, who: &str, asked: &[String]) -> Result<Vec<f64>> {
    println!("| {who} | requests a second | p50 ms | p99 ms |\n| --- | --- | --- | --- |");
    let mut rates = Vec::new();
    for ((name, _), path) in ASKED.iter().zip(asked) {
        let mut times = hammer(server(address), path).await?;
        let rate = times.len() as f64 / LASTS.as_secs_f64();
        times.sort_unstable();
        let at = |q: f64| times.get((times.len() as f64 * q) as usize).map_or(f64::NAN, |t| t.as_secs_f64() * 1e3);
        println!("| {name} | {rate:.0} | {:.1} | {:.1} |", at(0.5), at(0.99));
        rates.push(rate);
    }
    Ok(rates)
}

/// Host and port of an address.
fn server(address: &str) -> &str {
    address.trim_start_matches("http://")
}

/// Times of the requests that ended, some clients asking one after the other, each on a connection
/// of its own: a client that did more would be what is measured.
async fn hammer(server: &str, path: &str) -> Result<Vec<Duration>> {
    let until = Instant::now() + LASTS;
    let clients: Vec<_> =
        (0..CLIENTS).map(|_| tokio::spawn(one_client(server.to_owned(), path.to_owned(), until))).collect();
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await?.with_context(|| format!("asking {server} for {path}"))?);
    }
    Ok(times)
}

async fn one_client(server: String, path: String, until: Instant) -> Result<Vec<Duration>> {
    let stream = TcpStream::connect(&server).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut times = Vec::new();
    while Instant::now() < until {
        let begun = Instant::now();
        let request = Request::get(&path).header("host", &server).body(Empty::<&[u8]>::new())?;
        let answer = sender.send_request(request).await?;
        anyhow::ensure!(answer.status().is_success(), "the answer is {}", answer.status());
        let mut body = answer.into_body();
        while let Some(frame) = body.frame().await {
            frame?;
        }
        times.push(begun.elapsed());
    }
    Ok(times)
}

/// Spark's History Server with the log read; stopped when it is dropped.
struct Peer {
    process: Child,
    input: Option<ChildStdin>,
    address: String,
    id: u32,
}

impl Peer {
    fn start(log: &Path) -> Result<Self> {
        let spark = spark::find()?;
        let mut command = Command::new(&spark.python);
        command.arg(root().join("bench/history_load.py")).arg(log).env("SPARK_HOME", &spark.home);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("no output")?).read_line(&mut line)?;
        let about: Value = serde_json::from_str(&line).context("bench/history_load.py did not start a server")?;
        let address = about["address"].as_str().context("no address")?.to_owned();
        let id = about["pid"].as_u64().and_then(|id| u32::try_from(id).ok()).context("no process id")?;
        Ok(Self { input: process.stdin.take(), process, address, id })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The script stops the server when its input ends.
        drop(self.input.take());
        let _ = self.process.wait();
    }
}
