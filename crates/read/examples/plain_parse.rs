//! The yardstick of `accept speed-eventlog`: every line of a log parsed into plain typed structs
//! by a JSON crate, on one core, and thrown away. `plain_parse sonic|serde FILE`.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::borrow::Cow;
use std::io::BufRead;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "Event", borrow)]
    _event: Cow<'a, str>,
    #[serde(rename = "Stage ID", default)]
    stage: u64,
    #[serde(rename = "Task Info", borrow, default)]
    _info: Option<Info<'a>>,
    #[serde(rename = "Task Metrics", default)]
    _metrics: Option<Metrics>,
}

#[derive(Deserialize)]
struct Info<'a> {
    #[serde(rename = "Task ID")]
    _id: i64,
    #[serde(rename = "Launch Time")]
    _launch: i64,
    #[serde(rename = "Finish Time")]
    _finish: i64,
    #[serde(rename = "Executor ID", borrow)]
    _executor: Cow<'a, str>,
    #[serde(rename = "Host", borrow)]
    _host: Cow<'a, str>,
    #[serde(rename = "Accumulables", borrow, default)]
    _accumulables: Vec<Accumulable<'a>>,
}

#[derive(Deserialize)]
struct Accumulable<'a> {
    #[serde(rename = "ID")]
    _id: i64,
    #[serde(rename = "Name", borrow, default)]
    _name: Option<Cow<'a, str>>,
    #[serde(rename = "Metadata", borrow, default)]
    _metadata: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Metrics {
    #[serde(rename = "Executor Run Time", default)]
    _run: i64,
    #[serde(rename = "Executor CPU Time", default)]
    _cpu: i64,
    #[serde(rename = "JVM GC Time", default)]
    _gc: i64,
    #[serde(rename = "Memory Bytes Spilled", default)]
    _memory: i64,
    #[serde(rename = "Disk Bytes Spilled", default)]
    _disk: i64,
    #[serde(rename = "Shuffle Read Metrics", default)]
    _read: Option<ShuffleRead>,
    #[serde(rename = "Input Metrics", default)]
    _input: Option<Input>,
}

#[derive(Deserialize)]
struct ShuffleRead {
    #[serde(rename = "Remote Bytes Read", default)]
    _remote: i64,
    #[serde(rename = "Local Bytes Read", default)]
    _local: i64,
    #[serde(rename = "Total Records Read", default)]
    _records: i64,
}

#[derive(Deserialize)]
struct Input {
    #[serde(rename = "Bytes Read", default)]
    _bytes: i64,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (kind, file) = arguments.next().zip(arguments.next()).context("usage: plain_parse sonic|serde FILE")?;
    let mut input = std::io::BufReader::with_capacity(1 << 20, std::fs::File::open(file)?);
    let (mut line, mut sum) = (Vec::new(), 0);
    while input.read_until(b'\n', &mut line)? > 0 {
        let event: Event<'_> = match kind.as_str() {
            "sonic" => sonic_rs::from_slice(&line)?,
            "serde" => serde_json::from_slice(&line)?,
            _ => bail!("no such crate: {kind}"),
        };
        sum += event.stage;
        line.clear();
    }
    println!("{sum}");
    Ok(())
}
