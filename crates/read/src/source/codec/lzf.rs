//! The chunks of ning-compress: `ZV`, a type, a length or two, at most 64 KiB of data.

use super::{Decode, Step, Trials, be_u16, cut_or_corrupt, give_up};
use crate::source::buffer::Buf;
use crate::source::damage::DamageKind;
use crate::source::input::Input;
use memchr::memmem;

const MAGIC: &[u8] = b"ZV";
/// Magic, type, stored length.
const STORED_HEADER_BYTES: usize = 5;
/// Magic, type, compressed length, raw length.
const PACKED_HEADER_BYTES: usize = 7;
const MAX_RAW_BYTES: usize = 0xffff;
const LARGEST_CHUNK_BYTES: usize = PACKED_HEADER_BYTES + MAX_RAW_BYTES;

#[derive(Default)]
pub(super) struct Lzf {
    trials: Trials,
}

/// Where a chunk's data is, relative to the chunk's first byte.
struct Chunk {
    data_at: usize,
    data_len: usize,
    /// Length once decoded; absent when the data is stored as it is.
    raw: Option<usize>,
}

impl Lzf {
    fn fail(&self, input: &mut Input, what: DamageKind) -> Step {
        let step = give_up(input, what, LARGEST_CHUNK_BYTES, |data| find_intact(data, &self.trials));
        cut_or_corrupt(step)
    }
}

impl Decode for Lzf {
    fn step(&mut self, input: &mut Input, out: &mut Buf) -> Step {
        let have = input.fill(PACKED_HEADER_BYTES);
        if have == 0 {
            return Step::End;
        }
        let chunk = match chunk(input.data()) {
            Ok(chunk) => chunk,
            Err(what) => return self.fail(input, what),
        };
        let whole = chunk.data_at + chunk.data_len;
        if input.fill(whole) < whole {
            return self.fail(input, DamageKind::CutFrame);
        }
        let data = &input.data()[chunk.data_at..whole];
        let written = match chunk.raw {
            None => {
                out.append(data);
                Some(())
            }
            Some(raw) => {
                let done = decode(data, &mut out.spare(raw)[..raw]);
                out.commit(if done.is_some() { raw } else { 0 });
                done
            }
        };
        match written {
            Some(()) => {
                input.consume(whole);
                Step::More
            }
            None => self.fail(input, DamageKind::BadBlock),
        }
    }
}

fn chunk(data: &[u8]) -> Result<Chunk, DamageKind> {
    if !MAGIC.iter().zip(data).all(|(a, b)| a == b) {
        return Err(DamageKind::NotAFrame);
    }
    match data.get(2) {
        Some(0) if data.len() >= STORED_HEADER_BYTES => {
            Ok(Chunk { data_at: STORED_HEADER_BYTES, data_len: be_u16(data, 3), raw: None })
        }
        Some(1) if data.len() >= PACKED_HEADER_BYTES => {
            Ok(Chunk { data_at: PACKED_HEADER_BYTES, data_len: be_u16(data, 3), raw: Some(be_u16(data, 5)) })
        }
        None | Some(0 | 1) => Err(DamageKind::CutFrame),
        Some(_) => Err(DamageKind::BadBlock),
    }
}

/// Two letters are too little to believe, so the next place is one that decodes as a whole chunk.
fn find_intact(data: &[u8], trials: &Trials) -> Option<usize> {
    memmem::find_iter(data, MAGIC).find(|&at| is_intact(&data[at..], trials))
}

fn is_intact(data: &[u8], trials: &Trials) -> bool {
    let Ok(chunk) = chunk(data) else {
        return false;
    };
    let Some(packed) = data[chunk.data_at.min(data.len())..].get(..chunk.data_len) else {
        return false;
    };
    match chunk.raw {
        // Nothing in a stored chunk can be checked but that another follows or the stream ends.
        None => {
            let next = &data[chunk.data_at + chunk.data_len..];
            next.is_empty() || next.starts_with(MAGIC)
        }
        Some(raw) => trials.spend(raw) && decode(packed, &mut vec![0; raw]).is_some(),
    }
}

/// Decodes one chunk; `None` unless `data` gives exactly `out.len()` bytes.
fn decode(data: &[u8], out: &mut [u8]) -> Option<()> {
    let (mut at, mut done) = (0, 0);
    while at < data.len() {
        let control = usize::from(data[at]);
        at += 1;
        if control < 32 {
            let len = control + 1;
            out.get_mut(done..done + len)?.copy_from_slice(data.get(at..at + len)?);
            at += len;
            done += len;
            continue;
        }
        let mut len = (control >> 5) + 2;
        if len == 9 {
            len += usize::from(*data.get(at)?);
            at += 1;
        }
        let back = ((control & 31) << 8) + usize::from(*data.get(at)?) + 1;
        at += 1;
        copy_back(out, done, back, len)?;
        done += len;
    }
    (done == out.len()).then_some(())
}

/// Repeats `len` bytes from `back` bytes before `at`; the two ranges may overlap.
fn copy_back(out: &mut [u8], at: usize, back: usize, len: usize) -> Option<()> {
    let from = at.checked_sub(back)?;
    if at + len > out.len() {
        return None;
    }
    if back >= len {
        out.copy_within(from..from + len, at);
    } else {
        for i in 0..len {
            out[at + i] = out[from + i];
        }
    }
    Some(())
}
