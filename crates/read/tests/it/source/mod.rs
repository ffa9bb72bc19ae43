//! Bytes to lines: every form, every codec, damaged or not.

mod corpus;
mod damage;
mod encode;
mod forms;
mod group;
mod lines;
mod pipeline;
mod probe;
mod text;
mod zip;

use read::source::{Batch, Limits, Options, Part, ReadStats, run};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

/// A line as it came out.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Got {
    bytes: Vec<u8>,
    maybe_cut: bool,
}

fn options(threads: usize, limits: Limits) -> Options {
    Options { threads: NonZeroUsize::new(threads).unwrap(), limits, ..Options::default() }
}

/// Small batches, so that short inputs meet batch boundaries, too.
fn small() -> Limits {
    Limits { batch_bytes: 100, ..Limits::default() }
}

fn take_lines(batch: &Batch) -> Vec<Got> {
    batch.lines().map(|l| Got { bytes: l.bytes.to_vec(), maybe_cut: l.maybe_cut }).collect()
}

fn read(parts: Vec<Part>, options: &Options) -> (Vec<Got>, ReadStats) {
    let mut lines = Vec::new();
    let stats = run(parts, options, take_lines, |_, mut more| {
        lines.append(&mut more);
        ControlFlow::Continue(())
    });
    (lines, stats)
}

fn read_bytes(bytes: &[u8], limits: Limits) -> (Vec<Got>, ReadStats) {
    read(vec![Part::bytes("log", bytes.to_vec())], &options(1, limits))
}

fn texts(lines: &[Got]) -> Vec<String> {
    lines.iter().map(|l| String::from_utf8_lossy(&l.bytes).into_owned()).collect()
}

/// A log of `n` lines that compresses like a real one.
fn sample(n: usize) -> Vec<Vec<u8>> {
    let mut state = 12345_u64;
    (0..n)
        .map(|i| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let noise = state >> 33;
            let tail = "x".repeat(noise as usize % 70);
            format!(r#"{{"Event":"SparkListenerTaskEnd","Task ID":{i},"Run":{noise},"Tail":"{tail}"}}"#).into_bytes()
        })
        .collect()
}

fn joined(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.iter().flat_map(|l| l.iter().copied().chain([b'\n'])).collect()
}
