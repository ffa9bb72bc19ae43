//! Line buffers, recycled and counted, so that memory stays constant whatever the log's size.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that decoders append to. The memory behind `len` stays initialised when the buffer is
/// recycled, so nothing is zeroed twice.
#[derive(Debug, Default)]
pub(super) struct Buf {
    bytes: Vec<u8>,
    len: usize,
}

impl Buf {
    /// The bytes written so far.
    pub fn filled(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    pub fn spare_len(&self) -> usize {
        self.bytes.len() - self.len
    }

    /// Room to write to, at least `min` bytes long.
    pub fn spare(&mut self, min: usize) -> &mut [u8] {
        if self.spare_len() < min {
            self.grow_to(self.len + min);
        }
        &mut self.bytes[self.len..]
    }

    /// Declares the first `n` spare bytes written.
    pub fn commit(&mut self, n: usize) {
        debug_assert!(n <= self.spare_len());
        self.len += n;
    }

    pub fn push(&mut self, byte: u8) {
        self.spare(1)[0] = byte;
        self.len += 1;
    }

    pub fn append(&mut self, bytes: &[u8]) {
        self.spare(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Removes `range` and closes the hole.
    pub fn remove(&mut self, start: usize, end: usize) {
        self.bytes.copy_within(end..self.len, start);
        self.len -= end - start;
    }

    fn grow_to(&mut self, capacity: usize) {
        let more = capacity.saturating_sub(self.bytes.len());
        // `reserve_exact`: the pool counts bytes, a silent doubling would escape it.
        self.bytes.reserve_exact(more);
        self.bytes.resize(capacity, 0);
    }
}

/// Hands out buffers and keeps the sum of their sizes within a limit.
///
/// One reader takes and grows; batches in the hands of parsers give back. The reader waits only
/// while batches are out, so it always goes on: alone it gets what it needs for small buffers and
/// a refusal for a line that can never fit.
#[derive(Debug)]
pub(super) struct Pool {
    state: Mutex<State>,
    returned: Condvar,
    limit_bytes: u64,
    buf_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    free: Vec<Buf>,
    /// Bytes of all buffers that exist, free ones included.
    held_bytes: u64,
    /// Buffers in batches, out with parsers.
    lent: usize,
}

impl Pool {
    pub fn new(limit_bytes: u64, batch_bytes: usize) -> Pool {
        Pool {
            state: Mutex::default(),
            returned: Condvar::new(),
            limit_bytes,
            // Room behind the wanted bytes, so that a decoder always has a useful target.
            buf_bytes: batch_bytes + batch_bytes / 4 + 1,
        }
    }

    /// An empty buffer with the room of one batch.
    pub fn take(&self) -> Buf {
        let mut state = self.lock();
        loop {
            if let Some(buf) = state.free.pop() {
                return buf;
            }
            let fits = state.held_bytes + self.buf_bytes as u64 <= self.limit_bytes;
            if fits || state.lent == 0 {
                state.held_bytes += self.buf_bytes as u64;
                let mut buf = Buf::default();
                buf.grow_to(self.buf_bytes);
                return buf;
            }
            state = self.wait(state);
        }
    }

    /// Grows `buf` by half, or by what is left, but by `min` bytes at least; waits for other
    /// buffers to come back. `false` when it can never fit.
    pub fn grow(&self, buf: &mut Buf, min: usize) -> bool {
        let old = buf.capacity() as u64;
        let mut state = self.lock();
        let add = loop {
            let free: u64 = state.free.drain(..).map(|b| b.capacity() as u64).sum();
            state.held_bytes -= free;
            // While the bytes move, the old and the new memory exist side by side.
            let room = self.limit_bytes.saturating_sub(state.held_bytes + old);
            if room >= min as u64 {
                break room.min(old / 2).max(min as u64);
            }
            if state.lent == 0 {
                return false;
            }
            state = self.wait(state);
        };
        state.held_bytes += add;
        drop(state);
        buf.grow_to((old + add) as usize);
        true
    }

    /// Counts what a decoder added on its own for a large block.
    pub fn settle(&self, before: usize, buf: &Buf) {
        if buf.capacity() > before {
            self.lock().held_bytes += (buf.capacity() - before) as u64;
        }
    }

    /// Counts a buffer as out with a parser.
    pub fn lend(&self) {
        self.lock().lent += 1;
    }

    /// Takes back a buffer that [`Pool::lend`] counted.
    pub fn give_back(&self, buf: Buf) {
        self.lock().lent -= 1;
        self.recycle(buf);
        self.returned.notify_one();
    }

    /// Takes back a buffer that was never lent.
    pub fn recycle(&self, mut buf: Buf) {
        buf.len = 0;
        let mut state = self.lock();
        // A buffer grown for a long line goes, so that one such line does not cost for ever.
        if buf.capacity() > 2 * self.buf_bytes {
            state.held_bytes -= buf.capacity() as u64;
        } else {
            state.free.push(buf);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.returned.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}
