//! One stream of a task on the disk: a first file that is never dropped, then files of a bounded
//! size of which the last ones are kept.

use super::files::{self, about};
use super::records::{Limits, Written};
use super::redact::{Patterns, Redactor};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Size of the first file, which is never dropped, bytes.
pub(super) const HEAD_BYTES: u64 = 1 << 20;

/// Smallest size of the files that follow, bytes.
const SMALLEST_BYTES: u64 = 4 << 10;

/// How long a disk is left alone after it has refused a write.
const PAUSE: Duration = Duration::from_secs(1);

/// Name of the file that holds a stream from an offset on. Names sort as their contents do.
pub(super) fn file_name(stream: &str, offset: u64) -> String {
    match offset {
        0 => stream.to_owned(),
        _ => format!("{stream}.{offset:020}"),
    }
}

/// The file with the marker line, which sorts between what is before and behind the gap.
fn marker_name(stream: &str) -> String {
    format!("{}.left-out", file_name(stream, HEAD_BYTES))
}

/// Says what was left out.
pub(super) fn marker(bytes: u64, at: u64) -> String {
    format!("\n[{bytes} bytes left out from offset {at} on: the output is larger than what is kept of it]\n")
}

/// A file of the stream that is complete.
#[derive(Debug)]
struct Part {
    offset: u64,
    bytes: u64,
}

/// Takes what the task writes, redacts it and keeps it. It never fails: what the disk refuses is
/// counted as left out, and the reason is kept.
#[derive(Debug)]
pub(super) struct Output {
    dir: PathBuf,
    stream: &'static str,
    redactor: Option<Redactor>,
    /// `None`: the next byte begins a file.
    file: Option<File>,
    /// Whether the first file was made.
    has_head: bool,
    /// Where the current file begins.
    begin: u64,
    /// Where the next byte belongs.
    at: u64,
    /// Where the current file ends.
    end: u64,
    /// Largest size of a file behind the first, bytes.
    part_bytes: u64,
    /// Bytes that all files behind the first may have together.
    tail_bytes: u64,
    /// Complete files behind the first, the oldest first.
    parts: VecDeque<Part>,
    left_out_bytes: u64,
    refused: Option<io::Error>,
    paused_until: Option<Instant>,
}

impl Output {
    /// Nothing is made before there is output.
    pub(super) fn new(dir: &Path, stream: &'static str, limits: Limits, secrets: Option<&Arc<Patterns>>) -> Self {
        let tail_bytes = limits.total_bytes.saturating_sub(HEAD_BYTES).max(2 * SMALLEST_BYTES);
        Self {
            dir: dir.to_owned(),
            stream,
            redactor: secrets.map(|patterns| Redactor::new(Arc::clone(patterns))),
            file: None,
            has_head: false,
            begin: 0,
            at: 0,
            end: 0,
            part_bytes: limits.rotate_bytes.clamp(SMALLEST_BYTES, tail_bytes / 2),
            tail_bytes,
            parts: VecDeque::new(),
            left_out_bytes: 0,
            refused: None,
            paused_until: None,
        }
    }

    pub(super) fn take(&mut self, bytes: &[u8]) {
        match &mut self.redactor {
            None => self.put(bytes),
            Some(redactor) => {
                let bytes = redactor.push(bytes);
                self.put(&bytes);
            }
        }
    }

    /// Writes what was held back and brings all of it to the disk.
    pub(super) fn finish(&mut self) {
        if let Some(rest) = self.redactor.as_mut().map(Redactor::finish) {
            self.put(&rest);
        }
        if let Err(error) = self.sync() {
            self.refused.get_or_insert(error);
        }
    }

    pub(super) fn written(&self) -> Written {
        Written { bytes: self.at, left_out_bytes: self.left_out_bytes }
    }

    /// Why output is missing that should be there.
    pub(super) fn error(&self) -> Option<String> {
        let path = self.dir.join(self.stream);
        let what = format!("output of `{}` is missing", path.display());
        self.refused.as_ref().map(|error| about(error, what, "free space there").to_string())
    }

    fn put(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.put_some(rest) {
                Ok(taken) => rest = &rest[taken..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.refuse(error, rest.len() as u64),
            }
        }
    }

    fn put_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.paused_until.is_some_and(|until| Instant::now() < until) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if self.at >= self.end {
            self.close_file();
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.next_file()?,
        };
        let room = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let taken = file.write(&bytes[..bytes.len().min(room)]);
        self.file = Some(file);
        self.at += taken.as_ref().map_or(0, |&taken| taken as u64);
        taken
    }

    /// Leaves bytes out; the next ones begin a file of their own, whose name tells of the gap.
    fn refuse(&mut self, error: io::Error, bytes: u64) {
        if self.paused_until.is_none_or(|until| Instant::now() >= until) {
            self.paused_until = Some(Instant::now() + PAUSE);
        }
        self.refused.get_or_insert(error);
        self.close_file();
        self.left_out_bytes += bytes;
        self.at += bytes;
    }

    fn close_file(&mut self) {
        if self.file.take().is_none() || self.begin == 0 {
            return;
        }
        if self.at > self.begin {
            self.parts.push_back(Part { offset: self.begin, bytes: self.at - self.begin });
        } else {
            // An empty file that stays is read as nothing.
            let _ = fs::remove_file(self.dir.join(file_name(self.stream, self.begin)));
        }
    }

    fn next_file(&mut self) -> io::Result<File> {
        let is_head = self.at == 0;
        if !is_head {
            self.make_room();
        }
        let file = files::create(&self.dir.join(file_name(self.stream, self.at)))?;
        self.has_head |= is_head;
        self.begin = self.at;
        self.end = self.at + if is_head { HEAD_BYTES } else { self.part_bytes };
        Ok(file)
    }

    /// Drops the oldest files until one more has room.
    fn make_room(&mut self) {
        let mut kept: u64 = self.parts.iter().map(|part| part.bytes).sum();
        while kept + self.part_bytes > self.tail_bytes
            && let Some(oldest) = self.parts.pop_front()
        {
            kept -= oldest.bytes;
            self.left_out_bytes += oldest.bytes;
            self.mark();
            // A file that cannot be removed takes room, no more.
            let _ = fs::remove_file(self.dir.join(file_name(self.stream, oldest.offset)));
        }
    }

    fn mark(&self) {
        let path = self.dir.join(marker_name(self.stream));
        // The marker is for people; readers see the gap in the names.
        let _ = files::create(&path)
            .and_then(|mut file| file.write_all(marker(self.left_out_bytes, HEAD_BYTES).as_bytes()));
    }

    fn sync(&self) -> io::Result<()> {
        for offset in self.parts.iter().map(|part| part.offset).chain(self.has_head.then_some(0)) {
            File::open(self.dir.join(file_name(self.stream, offset)))?.sync_data()?;
        }
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }
}
