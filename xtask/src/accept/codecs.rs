//! `codecs`: one log in every codec and form gives the same JSON, byte for byte.

use super::Outcome;
use crate::lakescope_binary;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;
use testkit::encode;

/// Encodes the bundled sample in every way and compares the reports.
pub fn run(_: &[String]) -> Result<Outcome> {
    let binary = lakescope_binary()?;
    let sample = crate::root().join("samples/shop_daily.zstd");
    let plain = zstd::decode_all(std::fs::File::open(&sample).context("cannot open the bundled sample")?)?;
    let folder = tempfile::tempdir()?;
    let mut outcome = Outcome::default();
    let expected = report(&binary, &write(folder.path(), "plain", &plain)?)?;
    for (name, bytes) in [
        ("zstd", encode::zstd_frames(&plain)),
        ("lz4", encode::lz4(&plain)),
        ("snappy", encode::snappy(&plain)),
        ("lzf", encode::lzf(&plain)),
        ("gzip", encode::gzip(&plain)),
        ("zip", encode::zip(&[("eventlog", &plain)])),
    ] {
        // The name says nothing: the codec is found by content.
        let file = write(folder.path(), &format!("log-{name}"), &bytes)?;
        outcome.check(report(&binary, &file)? == expected, format!("{name} gives another report"));
    }
    for (name, rolled) in rolled_forms(folder.path(), &plain)? {
        let got = report(&binary, &rolled)?;
        // Compaction throws events away, and a finding says so; what was read must be the same.
        let same = if name == "compacted" { application(&got)? == application(&expected)? } else { got == expected };
        outcome.check(same, format!("{name} gives another report"));
    }
    let piped = from_stdin(&binary, &encode::zstd_frames(&plain))?;
    outcome.check(piped == expected, "standard input gives another report");
    println!("{} bytes of JSON in every form", expected.len());
    Ok(outcome)
}

/// Rolling folders, plain and compressed, with and without a compacted file, and zipped.
fn rolled_forms(folder: &Path, plain: &[u8]) -> Result<Vec<(&'static str, std::path::PathBuf)>> {
    let parts = encode::cut_lines(plain, 12);
    let mut forms = Vec::new();
    for (name, suffix, compact) in [("rolled", "", None), ("rolled zstd", ".zstd", None), ("compacted", "", Some(3))] {
        let log = folder.join(name.replace(' ', "-")).join("eventlog_v2_app-1");
        std::fs::create_dir_all(&log)?;
        std::fs::write(log.join("appstatus_app-1"), b"")?;
        for (at, part) in parts.iter().enumerate() {
            let bytes = if suffix.is_empty() { part.to_vec() } else { encode::zstd_frames(part) };
            std::fs::write(log.join(format!("events_{}_app-1{suffix}", at + 1)), bytes)?;
        }
        if let Some(upto) = compact {
            let head: Vec<u8> = parts[..upto].concat();
            std::fs::write(log.join(format!("events_{upto}_app-1.compact")), head)?;
        }
        forms.push((name, log));
    }
    let names: Vec<String> = (1..=parts.len()).map(|n| format!("eventlog_v2_app-1/events_{n}_app-1")).collect();
    let mut entries: Vec<(&str, &[u8])> = names.iter().map(String::as_str).zip(parts.iter().copied()).rev().collect();
    entries.push(("eventlog_v2_app-1/appstatus_app-1", b""));
    let zipped = folder.join("eventLogs-app-1.zip");
    std::fs::write(&zipped, encode::zip(&entries))?;
    forms.push(("zipped rolled", zipped));
    Ok(forms)
}

fn application(report: &[u8]) -> Result<serde_json::Value> {
    let mut report: serde_json::Value = serde_json::from_slice(report)?;
    Ok(report["application"].take())
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<std::path::PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, bytes)?;
    Ok(path)
}

fn report(binary: &Path, input: &Path) -> Result<Vec<u8>> {
    let output = Command::new(binary).args(["diagnose", "--format", "json"]).arg(input).output()?;
    if !output.status.success() {
        bail!("{}: {}", input.display(), String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

fn from_stdin(binary: &Path, bytes: &[u8]) -> Result<Vec<u8>> {
    use std::io::Write;
    use std::process::Stdio;
    let mut child = Command::new(binary)
        .args(["diagnose", "--format", "json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output()?;
    writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))??;
    Ok(output.stdout)
}
