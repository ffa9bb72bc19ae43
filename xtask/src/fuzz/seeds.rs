//! Inputs to begin from, made of real ones.

use super::INPUT_BYTES;
use crate::root;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Names of events, in the order in which the target `events` gives them to lines.
const HEADS: &str = include_str!("../../../fuzz/heads.txt");

/// Lines of one kind of event in an excerpt, and bytes of the longest: short inputs are tried more
/// often.
const OF_A_KIND: usize = 2;
const LINE_BYTES: usize = 2 << 10;

/// Seeds of each target. `own` ones are made of files of this tree only.
pub fn all(own: bool) -> Result<BTreeMap<&'static str, Vec<Vec<u8>>>> {
    let data = testkit::shared().map(|s| s.join("data")).filter(|_| !own);
    let mut logs = files(&root().join("samples"), "zstd")?;
    let mut texts = files(&root().join("fuzz/seeds"), "txt")?;
    let mut plans = files(&root().join("tests/plans"), "txt")?;
    if let Some(data) = data {
        logs.extend(files(&data.join("eventlogs"), "zstd")?);
        logs.extend(files(&data.join("public-logs"), "zstd")?);
        plans.extend(files(&data.join("cases"), "txt")?);
        texts.extend(files(&data.join("cases"), "")?);
    }
    let mut seeds: BTreeMap<&'static str, Vec<Vec<u8>>> = BTreeMap::new();
    for log in &logs {
        let plain = testkit::logs::plain(log).with_context(|| log.display().to_string())?;
        let excerpt = excerpt(&plain);
        seeds.entry("events").or_default().push(bodies(&plain));
        seeds.entry("sql_metrics").or_default().push(bodies(&plain));
        seeds.entry("zip").or_default().push(testkit::encode::zip(&[("app-1", &excerpt)]));
        let event_log = seeds.entry("event_log").or_default();
        event_log.extend(coded(&excerpt));
        event_log.push(excerpt);
    }
    seeds.insert("plan", read_all(&plans)?);
    seeds.insert("paste", read_all(&texts)?);
    Ok(seeds)
}

/// The first lines of each kind of event, as many as fit.
fn excerpt(log: &[u8]) -> Vec<u8> {
    let mut seen: BTreeMap<&[u8], usize> = BTreeMap::new();
    let mut out = Vec::new();
    for line in log.split_inclusive(|&b| b == b'\n') {
        let count = seen.entry(head(line)).or_default();
        *count += 1;
        if *count <= OF_A_KIND && line.len() <= LINE_BYTES && out.len() + line.len() <= INPUT_BYTES {
            out.extend(line);
        }
    }
    out
}

/// `SparkListenerTaskEnd` of `{"Event":"SparkListenerTaskEnd",…`.
fn head(line: &[u8]) -> &[u8] {
    line.split(|&b| b == b'"').nth(3).unwrap_or_default()
}

/// One body for each name in `HEADS`: its first event without braces and name.
fn bodies(log: &[u8]) -> Vec<u8> {
    let body = |name: &str| {
        let line = log.split(|&b| b == b'\n').find(|l| head(l) == name.as_bytes() && l.len() <= LINE_BYTES)?;
        let start = br#"{"Event":"","#.len() + name.len();
        Some(line.get(start..line.len() - 1)?.to_vec())
    };
    HEADS.lines().map(|name| body(name).unwrap_or_default()).collect::<Vec<_>>().join(&b'\n')
}

/// An excerpt in each codec.
fn coded(excerpt: &[u8]) -> [Vec<u8>; 5] {
    use testkit::encode::{gzip, lz4, lzf, snappy, zstd_frames};
    [gzip(excerpt), lz4(excerpt), lzf(excerpt), snappy(excerpt), zstd_frames(excerpt)]
}

/// Files below a folder with this ending; all of them for none.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if ending.is_empty() || path.extension().is_some_and(|e| e == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read_all(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>> {
    paths.iter().map(|path| std::fs::read(path).with_context(|| path.display().to_string())).collect()
}
