//! Logs that are made to hurt: a few bytes that become many, sizes that lie, counts that no cluster
//! has. Each is refused by name, or read as far as it goes with a warning; memory stays bounded.

use super::server::Server;
use super::{Outcome, World};
use anyhow::Result;
use serde_json::Value;
use std::io::Read;
use std::time::{Duration, Instant};

/// `--memory`, `--max-upload`.
const LIMITS: [&str; 4] = ["--memory", "64MB", "--max-upload", "256MB"];
/// Most memory that the server may have had: `--memory`, the bound of 768 MiB on reading one log,
/// and what a server needs beside.
const MOST_MB: f64 = 64.0 + 768.0 + 256.0;
/// How long one may take, and when it may take long.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(600));
/// What most are made of; it is not among the logs that are served.
const LOG: &str = "spill_even.zstd";
/// Bytes of one line.
const LINE: u64 = 1 << 30;
const DEEP: usize = 100_000;
/// Accumulators of one stage, and stages; more when it may take long.
const ACCUMULATORS: (usize, usize) = (50_000, 20);
const STAGES_LONG: usize = 200;

/// What becomes of a bomb.
enum Becomes {
    /// Refused, with a word that says why.
    Refused(&'static str),
    /// Read with a warning.
    Warned,
    /// Read as it stands, or refused.
    Either,
}
use Becomes::{Either, Refused, Warned};

pub fn run(world: &World, outcome: &mut Outcome) -> Result<()> {
    let data = tempfile::tempdir()?;
    let mut server = Server::start(world, data.path(), &[world.logs()], &LIMITS)?;
    server.ready()?;
    let log = String::from_utf8(world.plain(LOG)?)?;
    let patience = if world.long { PATIENCE.1 } else { PATIENCE.0 };
    for (name, make, becomes) in BOMBS {
        let bomb = make(&Material { log: &log, long: world.long })?;
        thrown(&mut server, outcome, name, &bomb, &becomes, patience)?;
    }
    let most_mb = server.serving.most_mb()?;
    println!("bombs: {most_mb:.0} MB at most");
    outcome.check(most_mb < MOST_MB, format!("bombs: the server had {most_mb:.0} MB, more than {MOST_MB:.0}"));
    drop(server);
    let mut server = Server::start(world, data.path(), &[world.logs()], &LIMITS)?;
    server.ready()?;
    let expected = world.undisturbed()?;
    for id in world_ids(expected) {
        let path = format!("/api/v1/applications/{id}/stages");
        outcome.check(Some(&server.json(&path)?) == expected.0.get(&path), format!("after bombs: {path}"));
    }
    server.lives(outcome, "restarted after bombs")
}

fn world_ids(answers: &super::Answers) -> Vec<String> {
    let paths = answers.0.keys().filter_map(|path| path.strip_prefix("/api/v1/applications/"));
    paths.filter_map(|path| path.strip_suffix("/stages")).map(str::to_owned).collect()
}

fn thrown(
    server: &mut Server,
    outcome: &mut Outcome,
    name: &str,
    bomb: &[u8],
    becomes: &Becomes,
    patience: Duration,
) -> Result<()> {
    let begun = Instant::now();
    let answer = server.upload(&name.replace(' ', "-"), bomb)?;
    let took = begun.elapsed();
    let said = format!("{name} ({} bytes): {} {:.300} after {took:.1?}", bomb.len(), answer.status, answer.text());
    println!("{said}");
    let right = match becomes {
        Refused(why) => answer.is_refusal() && answer.text().contains(why),
        Warned => answer.status == 201,
        Either => answer.status == 201 || answer.is_refusal(),
    };
    outcome.check(right && took < patience, &said);
    if answer.status == 201 {
        let warnings = asked(server, outcome, name, &answer.body)?;
        outcome.check(!matches!(becomes, Warned) || warnings > 0, format!("{name}: read without a warning"));
    }
    server.lives(outcome, name)
}

/// That all of an application that was taken can be asked for; gives the number of its warnings.
fn asked(server: &Server, outcome: &mut Outcome, name: &str, taken: &[u8]) -> Result<usize> {
    let taken: Value = serde_json::from_slice(taken)?;
    let id = taken["id"].as_str().unwrap_or_default();
    for path in ["jobs", "stages", "stages?details=true", "allexecutors", "environment", "sql", "storage/rdd"] {
        let answer = server.get(&format!("/api/v1/applications/{id}/{path}"))?;
        outcome.check(answer.status == 200, format!("{name}: {path}: {} {:.200}", answer.status, answer.text()));
    }
    for path in ["page", "diagnosis", "timeline", "sql"] {
        let answer = server.get(&format!("/api/lakescope/v1/applications/{id}/{path}"))?;
        outcome.check(answer.status == 200, format!("{name}: {path}: {} {:.200}", answer.status, answer.text()));
    }
    let diagnosis = server.json(&format!("/api/lakescope/v1/applications/{id}/diagnosis"))?;
    Ok(warnings(&diagnosis))
}

/// Warnings of a report, wherever they stand.
fn warnings(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| match value.as_array() {
                Some(list) if key == "warnings" => list.len(),
                _ => warnings(value),
            })
            .sum(),
        Value::Array(items) => items.iter().map(warnings).sum(),
        _ => 0,
    }
}

/// What bombs are made of.
struct Material<'a> {
    log: &'a str,
    long: bool,
}

type Bomb = (&'static str, fn(&Material) -> Result<Vec<u8>>, Becomes);

const BOMBS: [Bomb; 20] = [
    ("zeros in zstd", |_| Ok(zstd::encode_all(std::io::repeat(0).take(LINE), 1)?), Refused("no event log")),
    ("a line of 1 GB in zstd", line_in_zstd, Warned),
    ("half the lines too deep", deep, Warned),
    ("a log of brackets", |_| Ok(vec![b'['; DEEP]), Refused("no event log")),
    ("zeros in gzip", |_| Ok(testkit::encode::gzip(&vec![0; 64 << 20])), Refused("no event log")),
    ("gzip that ends early", |m| Ok(cut(testkit::encode::gzip(m.log.as_bytes()), 0.9)), Warned),
    ("gzip that ends at once", |m| Ok(cut(testkit::encode::gzip(m.log.as_bytes()), 0.2)), Refused("which application")),
    (
        "zeros in zip",
        |_| Ok(testkit::encode::zip(&[("app-1", &vec![0; 256 << 20])])),
        Refused("neither a Spark event log nor text"),
    ),
    ("a zip in a zip", zip_in_zip, Refused("archive inside an archive")),
    ("a zip of many entries", many_entries, Refused("entries")),
    ("a zip without its end", |m| Ok(cut(testkit::encode::zip(&[("app-1", m.log.as_bytes())]), 0.5)), Refused("zip")),
    ("lz4 of lying sizes", lying_lz4, Refused("damaged from its first byte")),
    ("lz4 that lies later", |m| Ok([testkit::encode::lz4(m.log.as_bytes()), lying_lz4(m)?].concat()), Warned),
    ("snappy of lying sizes", lying_snappy, Refused("damaged from its first byte")),
    ("snappy that lies later", |m| Ok([testkit::encode::snappy(m.log.as_bytes()), lying_snappy(m)?].concat()), Warned),
    ("a window of 2 GB in zstd", wide_window, Refused("damaged from its first byte")),
    ("billions of tasks", |m| Ok(counts(m.log, "4294967295")), Either),
    ("tasks beyond 64 bits", |m| Ok(counts(m.log, "99999999999999999999")), Either),
    ("times before and after all time", times, Either),
    ("millions of accumulators", accumulators, Either),
];

fn line_in_zstd(m: &Material) -> Result<Vec<u8>> {
    let (begin, end) = (br#"{"Event":"SparkListenerX","Text":""#, b"\"}\n");
    let line = begin.chain(std::io::repeat(b'a').take(LINE)).chain(&end[..]);
    Ok(zstd::encode_all(m.log.as_bytes().chain(line), 1)?)
}

fn deep(m: &Material) -> Result<Vec<u8>> {
    let deep = format!("{{\"Event\":\"SparkListenerJobStart\",\"Job ID\":{}\n", "[".repeat(DEEP));
    let closed = format!(
        "{{\"Event\":\"SparkListenerStageSubmitted\",\"Stage Info\":{}{}}}\n",
        "{\"a\":".repeat(DEEP),
        "}".repeat(DEEP)
    );
    Ok([m.log, &deep, &closed].concat().into_bytes())
}

fn zip_in_zip(m: &Material) -> Result<Vec<u8>> {
    let mut zip = m.log.as_bytes().to_vec();
    for _ in 0..10 {
        zip = testkit::encode::zip(&[("app-1.zip", &zip)]);
    }
    Ok(zip)
}

fn many_entries(_: &Material) -> Result<Vec<u8>> {
    let names: Vec<String> = (0..100_001).map(|n| format!("app-{n}")).collect();
    let entries: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
    Ok(testkit::encode::zip(&entries))
}

fn cut(mut bytes: Vec<u8>, share: f64) -> Vec<u8> {
    bytes.truncate((bytes.len() as f64 * share) as usize);
    bytes
}

/// A block of a few bytes that claims to become 4 GB.
fn lying_lz4(_: &Material) -> Result<Vec<u8>> {
    let sizes = [16_u32.to_le_bytes(), u32::MAX.to_le_bytes(), [0; 4]].concat();
    Ok([&b"LZ4Block\x25"[..], &sizes, &[0xff; 16]].concat())
}

/// A block whose own head claims 4 GB.
fn lying_snappy(_: &Material) -> Result<Vec<u8>> {
    let claims = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 0x61];
    let mut bytes = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01".to_vec();
    bytes.extend((claims.len() as u32).to_be_bytes());
    bytes.extend(claims);
    bytes.extend(u32::MAX.to_be_bytes());
    bytes.extend([0x61; 64]);
    Ok(bytes)
}

/// A frame that wants 2 GB to look back into: magic, no single segment, a window of 2^31 bytes.
fn wide_window(_: &Material) -> Result<Vec<u8>> {
    let raw_block = [(8 << 3) | 1, 0, 0];
    Ok([&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3][..], &raw_block, b"{\"Event\""].concat())
}

/// Replaces the counts of stages.
fn counts(log: &str, by: &str) -> Vec<u8> {
    let mut parts = log.split("\"Number of Tasks\":");
    let mut counted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        counted += &format!("\"Number of Tasks\":{by}{}", part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    counted.into_bytes()
}

/// Times at both ends of what a number holds.
fn times(m: &Material) -> Result<Vec<u8>> {
    let early = m.log.replace("\"Launch Time\":1", "\"Launch Time\":-9223372036854775808,\"Was\":1");
    Ok(early.replace("\"Finish Time\":1", "\"Finish Time\":9223372036854775807,\"Was\":1").into_bytes())
}

/// Stages that end with many accumulators each.
fn accumulators(m: &Material) -> Result<Vec<u8>> {
    let ends = m.log.lines().find(|line| line.contains("SparkListenerStageCompleted")).unwrap_or_default();
    let (before, after) = ends.split_once("\"Accumulables\":[").unwrap_or_default();
    anyhow::ensure!(!after.is_empty(), "no stage of the log has accumulators");
    let mut log = m.log.to_owned();
    let stages = if m.long { STAGES_LONG } else { ACCUMULATORS.1 };
    for stage in 0..stages {
        let ids = (0..ACCUMULATORS.0).map(|n| stage * ACCUMULATORS.0 + n);
        let many: String = ids
            .map(|id| format!("{{\"ID\":{id},\"Name\":\"a{id}\",\"Value\":\"{id}\",\"Internal\":false}},"))
            .collect();
        let id = before.replacen("\"Stage ID\":", &format!("\"Stage ID\":1000{stage}"), 1);
        log += &format!("{id}\"Accumulables\":[{many}{after}\n");
    }
    Ok(zstd::encode_all(log.as_bytes(), 1)?)
}
