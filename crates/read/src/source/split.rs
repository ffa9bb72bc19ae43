//! From parts to batches of whole lines, one after another.

use super::batch::{Batch, Counted, Lent};
use super::buffer::{Buf, Pool};
use super::codec::{Decoder, Step};
use super::limits::{Limits, is_bomb};
use super::part::Part;
use super::progress::Progress;
use super::stats::{LongLine, PartStats, ReadStats, Stop};
use memchr::{memchr, memrchr};
use std::sync::Arc;

/// UTF-8 byte order mark, which editors put before the first line.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Reads parts and cuts them into batches. The reading of one part ends with its last byte, so a
/// line never reaches from one part into the next.
pub(super) struct Splitter {
    parts: std::vec::IntoIter<Part>,
    limits: Limits,
    pool: Arc<Pool>,
    progress: Progress,
    current: Option<Open>,
    stats: ReadStats,
    decoded_total: u64,
}

/// The part being read.
struct Open {
    decoder: Decoder,
    stats: PartStats,
    buf: Buf,
    /// Offset in the decompressed part of the buffer's first byte.
    at_byte: u64,
    /// Where the unfinished line begins in the buffer.
    line_start: usize,
    /// Bytes dropped so far of a line that is too long.
    dropped: Option<LongLine>,
    /// Lines dropped since the last batch.
    dropped_lines: u64,
    /// Where lines begin that may be cut: before a damage, behind it, and at an open end.
    maybe_cut: Vec<usize>,
}

/// Whether the part goes on.
enum Filled {
    Batch,
    Finished,
}

impl Splitter {
    pub fn new(parts: Vec<Part>, limits: &Limits, progress: &Progress) -> Splitter {
        Splitter {
            parts: parts.into_iter(),
            limits: Limits {
                // A line that fits a batch costs nothing extra.
                max_line_bytes: limits.max_line_bytes.max(limits.batch_bytes as u64),
                ..limits.clone()
            },
            pool: Arc::new(Pool::new(limits.max_memory_bytes, limits.batch_bytes)),
            progress: progress.clone(),
            current: None,
            stats: ReadStats::default(),
            decoded_total: 0,
        }
    }

    /// What was read; line counts are the caller's to add.
    pub fn finish(mut self, asked_to_stop: bool) -> ReadStats {
        if let Some(open) = self.current.take() {
            self.close(open);
        }
        if asked_to_stop && self.stats.stopped.is_none() {
            self.stats.stopped = Some(Stop::Asked);
        }
        self.stats
    }

    /// The next batch; `None` at the end or when a limit says so.
    pub fn next_batch(&mut self) -> Option<Batch> {
        loop {
            let mut open = match self.current.take() {
                Some(open) => open,
                None => self.open_next()?,
            };
            let batch = match self.fill(&mut open) {
                Filled::Batch => {
                    let batch = self.cut(&mut open);
                    self.current = Some(open);
                    Some(batch)
                }
                Filled::Finished => self.last(open),
            };
            if batch.is_some() {
                return batch;
            }
        }
    }

    fn open_next(&mut self) -> Option<Open> {
        while self.stats.stopped.is_none() {
            let mut part = self.parts.next()?;
            match part.open() {
                Ok(stream) => {
                    let decoder = Decoder::new(stream, self.progress.clone(), self.limits.zstd_window_log());
                    return Some(Open::new(part.name, decoder, self.pool.take()));
                }
                Err(error) => self.stats.parts.push(PartStats::not_opened(part.name, &error)),
            }
        }
        None
    }

    /// Decodes until the buffer holds a batch or the part is over.
    fn fill(&mut self, open: &mut Open) -> Filled {
        loop {
            if open.line_start > 0 && open.buf.len() >= self.limits.batch_bytes {
                return Filled::Batch;
            }
            // Less room is not worth a decoder call. A batch has more, so only a long line gets here.
            let worth = self.limits.batch_bytes / 8 + 1;
            if open.buf.spare_len() < worth {
                let fits = open.unfinished_bytes() < self.limits.max_line_bytes;
                if !fits || !self.pool.grow(&mut open.buf, worth) {
                    open.drop_rest();
                }
            }
            let (before, room) = (open.buf.len(), open.buf.capacity());
            let step = open.decoder.step(&mut open.buf);
            self.pool.settle(room, &open.buf);
            let made = open.buf.len() - before;
            self.count(open, made as u64);
            open.find_lines(before, self.limits.max_line_bytes);
            match step {
                Step::More => {}
                Step::Broken(damage) => {
                    open.stats.add_damage(damage);
                    open.join();
                }
                Step::End => return Filled::Finished,
            }
            if self.exceeded(open) {
                return Filled::Finished;
            }
        }
    }

    fn count(&mut self, open: &mut Open, made: u64) {
        open.stats.decoded_bytes += made;
        self.decoded_total += made;
        self.progress.add_decoded(made);
    }

    /// Whether a limit on the amount of data is passed; names it.
    fn exceeded(&mut self, open: &Open) -> bool {
        let (stored, decoded) = (open.decoder.position(), open.stats.decoded_bytes);
        let limit_bytes = self.limits.max_decompressed_bytes;
        if self.decoded_total > limit_bytes {
            self.stats.stopped = Some(Stop::TooManyBytes { limit_bytes });
        } else if is_bomb(stored, decoded) {
            self.stats.stopped = Some(Stop::Bomb { stored_bytes: stored, decoded_bytes: decoded });
        }
        self.stats.stopped.is_some()
    }

    /// Takes the whole lines out and keeps the unfinished one.
    fn cut(&mut self, open: &mut Open) -> Batch {
        let mut next = self.pool.take();
        let room = next.capacity();
        next.append(&open.buf.filled()[open.line_start..]);
        self.pool.settle(room, &next);
        let mut full = std::mem::replace(&mut open.buf, next);
        full.truncate(open.line_start);
        let mut maybe_cut = std::mem::take(&mut open.maybe_cut);
        if maybe_cut.pop_if(|start| *start == open.line_start).is_some() {
            open.maybe_cut.push(0);
        }
        let batch = Batch {
            part: self.stats.parts.len(),
            at_byte: open.at_byte,
            dropped_lines: std::mem::take(&mut open.dropped_lines),
            lent: Lent::new(full, &self.pool),
            maybe_cut,
            counted: Counted::default(),
        };
        open.line_start = 0;
        open.at_byte = open.unfinished_at();
        batch
    }

    /// Closes the part; what is left in the buffer is its last batch.
    fn last(&mut self, mut open: Open) -> Option<Batch> {
        open.end_dropping();
        if open.unfinished_bytes() > 0 {
            open.stats.open_last_line = true;
            open.mark_cut();
        }
        let batch = (open.buf.len() > 0).then(|| Batch {
            part: self.stats.parts.len(),
            at_byte: open.at_byte,
            dropped_lines: open.dropped_lines,
            maybe_cut: std::mem::take(&mut open.maybe_cut),
            counted: Counted::default(),
            lent: Lent::new(std::mem::take(&mut open.buf), &self.pool),
        });
        self.close(open);
        batch
    }

    fn close(&mut self, open: Open) {
        let Open { decoder, mut stats, buf, .. } = open;
        stats.stored_bytes = decoder.position();
        self.stats.parts.push(stats);
        if buf.capacity() > 0 {
            self.pool.recycle(buf);
        }
    }
}

impl Open {
    fn new(name: String, decoder: Decoder, buf: Buf) -> Open {
        Open {
            stats: PartStats { name, codec: decoder.codec(), ..PartStats::default() },
            decoder,
            buf,
            at_byte: 0,
            line_start: 0,
            dropped: None,
            dropped_lines: 0,
            maybe_cut: Vec::new(),
        }
    }

    fn unfinished_bytes(&self) -> u64 {
        (self.buf.len() - self.line_start) as u64
    }

    /// Offset in the decompressed part of the unfinished line.
    fn unfinished_at(&self) -> u64 {
        self.stats.decoded_bytes - self.unfinished_bytes()
    }

    /// Looks at what was appended from `before` on.
    fn find_lines(&mut self, before: usize, max_line_bytes: u64) {
        let mut from = before;
        if self.dropped.is_some() {
            self.go_on_dropping();
        } else if self.at_byte == 0 && self.buf.filled().starts_with(BOM) {
            self.buf.remove(0, BOM.len());
            self.at_byte = BOM.len() as u64;
            from = from.saturating_sub(BOM.len());
        }
        let Some(first) = memchr(b'\n', &self.buf.filled()[from..]) else {
            return;
        };
        let first_end = from + first;
        if (first_end - self.line_start) as u64 > max_line_bytes {
            self.begin_dropping();
            self.drop_to(first_end);
            from = self.line_start;
        }
        if let Some(last) = memrchr(b'\n', &self.buf.filled()[from..]) {
            self.line_start = from + last + 1;
        }
    }

    fn begin_dropping(&mut self) {
        let at_byte = self.unfinished_at();
        self.dropped.get_or_insert(LongLine { at_byte, bytes: 0 });
    }

    /// Drops the line being dropped up to `end` in the buffer, where its line end is.
    fn drop_to(&mut self, end: usize) {
        if let Some(line) = &mut self.dropped {
            line.bytes += (end - self.line_start) as u64;
        }
        self.buf.remove(self.line_start, end + 1);
        self.end_dropping();
    }

    /// Drops the unfinished line as far as it has come.
    fn drop_rest(&mut self) {
        self.begin_dropping();
        let bytes = self.unfinished_bytes();
        if let Some(line) = &mut self.dropped {
            line.bytes += bytes;
        }
        self.buf.truncate(self.line_start);
    }

    fn go_on_dropping(&mut self) {
        match memchr(b'\n', &self.buf.filled()[self.line_start..]) {
            None => self.drop_rest(),
            Some(len) => self.drop_to(self.line_start + len),
        }
    }

    fn end_dropping(&mut self) {
        if let Some(line) = self.dropped.take() {
            self.stats.add_long_line(line);
            self.dropped_lines += 1;
            if self.line_start == 0 {
                self.at_byte = self.unfinished_at();
            }
        }
    }

    /// Ends the unfinished line, because what comes next does not continue it.
    fn join(&mut self) {
        self.end_dropping();
        if self.unfinished_bytes() > 0 {
            self.mark_cut();
            self.buf.push(b'\n');
            self.line_start = self.buf.len();
        }
        self.mark_cut();
    }

    /// Marks the unfinished line; once, however many damages are at its beginning.
    fn mark_cut(&mut self) {
        if self.maybe_cut.last() != Some(&self.line_start) {
            self.maybe_cut.push(self.line_start);
        }
    }
}
