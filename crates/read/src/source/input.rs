//! A window over the stored bytes of one part.

use super::progress::Progress;
use std::io::{self, ErrorKind, Read};

/// Bytes asked from the source at once.
const READ_BYTES: usize = 256 << 10;

/// Stored bytes with look-ahead, search and absolute positions.
pub(super) struct Input {
    source: Box<dyn Read + Send>,
    buf: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset in the part of `buf[0]`.
    base: u64,
    ended: bool,
    failure: Option<io::Error>,
    progress: Progress,
}

impl Input {
    pub fn new(source: Box<dyn Read + Send>, progress: Progress) -> Input {
        Input { source, buf: Vec::new(), start: 0, end: 0, base: 0, ended: false, failure: None, progress }
    }

    /// Offset in the part of the next byte.
    pub fn position(&self) -> u64 {
        self.base + self.start as u64
    }

    /// The bytes that are here now.
    pub fn data(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    /// Makes `want` bytes available unless the stream ends before; returns how many are here.
    /// Memory grows with the bytes that really come, not with what was asked.
    pub fn fill(&mut self, want: usize) -> usize {
        while self.data().len() < want && !self.ended {
            self.make_room();
            let n = self.read_to(self.end);
            self.end += n;
        }
        self.data().len()
    }

    pub fn consume(&mut self, n: usize) {
        self.start += n;
        debug_assert!(self.start <= self.end);
    }

    /// Reads straight into `out`, past the window once that is empty; 0 at the end.
    pub fn read_through(&mut self, out: &mut [u8]) -> usize {
        let held = self.data().len().min(out.len());
        if held > 0 {
            out[..held].copy_from_slice(&self.buf[self.start..self.start + held]);
            self.consume(held);
            return held;
        }
        if self.ended {
            return 0;
        }
        let n = self.note_read(|source| source.read(out));
        self.base += n as u64;
        n
    }

    /// Moves to the next place where `find` sees something in the bytes at hand. `find` gets a
    /// window of at least `look` bytes, the stream's end aside, and answers with an offset.
    pub fn seek(&mut self, look: usize, find: impl Fn(&[u8]) -> Option<usize>) -> bool {
        loop {
            // Twice as much, so that each round gets forward even if bytes come in small pieces.
            let have = self.fill(2 * look);
            if let Some(at) = find(self.data()) {
                self.consume(at);
                return true;
            }
            if self.ended {
                self.consume(have);
                return false;
            }
            // A match may begin in the last `look - 1` bytes.
            self.consume(have + 1 - look);
        }
    }

    /// The error that ended the stream, once.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    fn make_room(&mut self) {
        if self.start > 0 && self.buf.len() - self.end < READ_BYTES {
            self.buf.copy_within(self.start..self.end, 0);
            self.base += self.start as u64;
            self.end -= self.start;
            self.start = 0;
        }
        if self.buf.len() - self.end < READ_BYTES {
            let len = (self.buf.len() * 2).max(2 * READ_BYTES);
            self.buf.resize(len, 0);
        }
    }

    fn read_to(&mut self, at: usize) -> usize {
        let mut buf = std::mem::take(&mut self.buf);
        let n = self.note_read(|source| source.read(&mut buf[at..]));
        self.buf = buf;
        n
    }

    fn note_read(&mut self, mut read: impl FnMut(&mut dyn Read) -> io::Result<usize>) -> usize {
        loop {
            match read(&mut *self.source) {
                Ok(0) => self.ended = true,
                Ok(n) => {
                    self.progress.add_stored(n as u64);
                    return n;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => {
                    self.ended = true;
                    self.failure = Some(e);
                }
            }
            return 0;
        }
    }
}
