//! A piece of a log that holds whole lines.

use super::buffer::{Buf, Pool};
use memchr::{memchr, memchr_iter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Whole lines of one part, about a megabyte of them.
#[derive(Debug)]
pub struct Batch {
    pub(super) part: usize,
    /// Offset of the first byte in the decompressed part.
    pub(super) at_byte: u64,
    /// Lines left out before this batch, since the one before.
    pub(super) dropped_lines: u64,
    pub(super) lent: Lent,
    /// Offsets where lines begin that may be cut, in order.
    pub(super) maybe_cut: Vec<usize>,
    /// Lines, empty ones included, once somebody has gone through all of them.
    pub(super) counted: Counted,
}

/// A number of lines that is not known at first.
#[derive(Debug)]
pub(super) struct Counted(AtomicU64);

impl Default for Counted {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl Counted {
    fn get(&self) -> Option<u64> {
        Some(self.0.load(Relaxed)).filter(|&n| n != u64::MAX)
    }
}

/// A line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its bytes without the line end; never empty.
    pub bytes: &'a [u8],
    /// Its number in the batch, from 0; empty lines count.
    pub index: usize,
    /// The line touches a damage or the open end of the part, so it may be cut at either end. If
    /// it does not parse, the damage is the cause, which [`ReadStats`](super::ReadStats) names.
    pub maybe_cut: bool,
}

/// Where a batch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index of the part in the list that was given.
    pub part: usize,
    /// Number in the part of the batch's first line, from 0.
    pub first_line: u64,
    /// Offset in the decompressed part of the batch's first byte.
    pub at_byte: u64,
}

impl Batch {
    /// All bytes, line ends included.
    pub fn bytes(&self) -> &[u8] {
        self.lent.buf.filled()
    }

    /// Index of the part in the list that was given.
    pub fn part(&self) -> usize {
        self.part
    }

    /// The lines that are not empty. `\r\n` is taken as a line end, too.
    pub fn lines(&self) -> Lines<'_> {
        Lines { bytes: self.bytes(), at: 0, index: 0, maybe_cut: &self.maybe_cut, counted: &self.counted }
    }

    /// Lines, empty ones included. Costs nothing after all of them were gone through.
    pub(super) fn line_count(&self) -> u64 {
        let count = || {
            let bytes = self.bytes();
            let open = bytes.last().is_some_and(|&b| b != b'\n');
            memchr_iter(b'\n', bytes).count() as u64 + u64::from(open)
        };
        self.counted.get().unwrap_or_else(count)
    }
}

/// Iterator over the lines of a [`Batch`].
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    index: usize,
    maybe_cut: &'a [usize],
    counted: &'a Counted,
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        while self.at < self.bytes.len() {
            let rest = &self.bytes[self.at..];
            let (line, used) = match memchr(b'\n', rest) {
                Some(len) => (&rest[..len], len + 1),
                None => (rest, rest.len()),
            };
            let (start, index) = (self.at, self.index);
            self.at += used;
            self.index += 1;
            let bytes = line.strip_suffix(b"\r").unwrap_or(line);
            if !bytes.is_empty() {
                return Some(Line { bytes, index, maybe_cut: self.begins_cut(start) });
            }
        }
        self.counted.0.store(self.index as u64, Relaxed);
        None
    }
}

impl Lines<'_> {
    /// Whether `start` is among the marked places, which come in order.
    fn begins_cut(&mut self, start: usize) -> bool {
        while let [first, rest @ ..] = self.maybe_cut {
            if *first >= start {
                return *first == start;
            }
            self.maybe_cut = rest;
        }
        false
    }
}

/// A buffer that goes back to its pool.
#[derive(Debug)]
pub(super) struct Lent {
    buf: Buf,
    pool: Arc<Pool>,
}

impl Lent {
    pub fn new(buf: Buf, pool: &Arc<Pool>) -> Lent {
        pool.lend();
        Lent { buf, pool: pool.clone() }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.buf));
    }
}
