//! A log with one stage of very many tasks, made of the events of a bundled sample.

use crate::root;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Tasks of the stage.
pub const TASKS: i64 = 200_000;
const EXECUTORS: i64 = 32;
const CORES: i64 = 4;
const BEGUN_MS: i64 = 1_795_990_930_684;

/// Writes the log, zstd-compressed.
pub fn write(path: &Path) -> Result<()> {
    let sample = zstd::decode_all(&std::fs::read(root().join("samples/lab_shuffle.zstd"))?[..])?;
    let first = first_events(&sample)?;
    let event = |name: &str| first.get(name).cloned().with_context(|| format!("the sample has no {name}"));
    let mut out = zstd::Encoder::new(std::fs::File::create(path)?, 3)?;
    let mut put = |event: &Value| writeln!(out, "{event}");
    for name in ["LogStart", "ResourceProfileAdded", "EnvironmentUpdate"] {
        put(&event(name)?)?;
    }
    let mut begun = event("ApplicationStart")?;
    begun["App ID"] = "app-wide".into();
    begun["App Name"] = "wide".into();
    put(&begun)?;
    (0..EXECUTORS).try_for_each(|n| put(&executor(n)))?;
    let mut job = event("JobStart")?;
    let mut stage = job["Stage Infos"][0].take();
    stage["Number of Tasks"] = TASKS.into();
    stage["Submission Time"] = (BEGUN_MS + 1_000).into();
    job["Stage IDs"] = json!([stage["Stage ID"]]);
    job["Stage Infos"] = json!([stage]);
    job["Properties"] = json!({});
    put(&job)?;
    put(&json!({ "Event": "SparkListenerStageSubmitted", "Stage Info": stage, "Properties": {} }))?;
    let mut task = event("TaskEnd")?;
    task["Task Info"]["Accumulables"] = json!([]);
    let mut slots = vec![BEGUN_MS + 1_100; (EXECUTORS * CORES) as usize];
    for index in 0..TASKS {
        put(&next_task(&mut task, &stage, index, &mut slots))?;
    }
    let ended = slots.iter().max().copied().unwrap_or_default();
    stage["Completion Time"] = ended.into();
    put(&json!({ "Event": "SparkListenerStageCompleted", "Stage Info": stage }))?;
    let result = json!({ "Result": "JobSucceeded" });
    put(
        &json!({ "Event": "SparkListenerJobEnd", "Job ID": job["Job ID"], "Completion Time": ended, "Job Result": result }),
    )?;
    put(&json!({ "Event": "SparkListenerApplicationEnd", "Timestamp": ended + 100 }))?;
    out.finish()?;
    Ok(())
}

/// The first event of each kind, by its name without `SparkListener`.
fn first_events(log: &[u8]) -> Result<BTreeMap<String, Value>> {
    let mut first = BTreeMap::new();
    for line in log.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
        let event: Value = serde_json::from_slice(line)?;
        let name = event["Event"].as_str().unwrap_or_default().trim_start_matches("SparkListener").to_owned();
        first.entry(name).or_insert(event);
    }
    Ok(first)
}

fn executor(n: i64) -> Value {
    json!({
        "Event": "SparkListenerExecutorAdded", "Timestamp": BEGUN_MS + 500, "Executor ID": format!("{}", n + 1),
        "Executor Info": {
            "Host": format!("node-{}", n / 4), "Total Cores": CORES, "Log Urls": {}, "Attributes": {},
            "Resources": {}, "Resource Profile Id": 0,
        },
    })
}

/// The task with this index, on the slot that is free first; most take about a second, a few far
/// longer, some fail.
fn next_task(task: &mut Value, stage: &Value, index: i64, slots: &mut [i64]) -> Value {
    let slot = (0..slots.len()).min_by_key(|&slot| slots[slot]).unwrap_or_default();
    // The same numbers every time, spread well enough.
    let dice = (index.wrapping_mul(2_654_435_761) >> 7) & 0xffff;
    let takes = if dice == 77 { 60_000 } else { 200 + dice % 900 + (dice % 97) * (dice % 31) };
    let (launch, finish) = (slots[slot], slots[slot] + takes);
    slots[slot] = finish + 3 + dice % 20;
    let has_failed = dice % 1_009 == 5;
    let executor = slot as i64 / CORES;
    task["Stage ID"] = stage["Stage ID"].clone();
    task["Task End Reason"] = match has_failed {
        false => json!({ "Reason": "Success" }),
        true => {
            json!({ "Reason": "TaskKilled", "Kill Reason": "another attempt succeeded", "Accumulator Updates": [] })
        }
    };
    let info = &mut task["Task Info"];
    for (key, value) in [("Task ID", index), ("Index", index), ("Partition ID", index)] {
        info[key] = value.into();
    }
    info["Launch Time"] = launch.into();
    info["Finish Time"] = finish.into();
    info["Executor ID"] = format!("{}", executor + 1).into();
    info["Host"] = format!("node-{}", executor / 4).into();
    info["Killed"] = has_failed.into();
    let metrics = &mut task["Task Metrics"];
    metrics["Executor Run Time"] = (takes - 10).into();
    metrics["JVM GC Time"] = (takes * (dice % 20) / 100).into();
    task.clone()
}
