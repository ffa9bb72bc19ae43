//! The stream of snappy-java: a header of magic and two versions, then blocks with a big-endian
//! length each. The header comes again where streams were joined.

use super::{Decode, Step, Trials, cut_or_corrupt, four, give_up};
use crate::source::buffer::Buf;
use crate::source::damage::DamageKind;
use crate::source::input::Input;
use crate::source::limits::MAX_BLOCK_BYTES;
use memchr::memmem;

pub(super) const MAGIC: &[u8] = &[0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const HEADER_BYTES: usize = 16;
const LENGTH_BYTES: usize = 4;

/// While looking for the next intact block, only blocks of Spark's usual sizes are believed.
const SEARCH_BLOCK_BYTES: usize = 256 << 10;
/// Smaller blocks are too easily found by chance.
const SEARCH_MIN_BYTES: usize = 32;

#[derive(Default)]
pub(super) struct Snappy {
    trials: Trials,
}

impl Snappy {
    fn fail(&self, input: &mut Input, what: DamageKind) -> Step {
        let look = LENGTH_BYTES + SEARCH_BLOCK_BYTES;
        let step = give_up(input, what, look, |data| find_intact(data, &self.trials));
        cut_or_corrupt(step)
    }
}

impl Decode for Snappy {
    fn step(&mut self, input: &mut Input, out: &mut Buf) -> Step {
        let have = input.fill(HEADER_BYTES);
        if have == 0 {
            return Step::End;
        }
        if input.data().starts_with(MAGIC) && have >= HEADER_BYTES {
            input.consume(HEADER_BYTES);
            return Step::More;
        }
        let packed = match length(input.data()) {
            Ok(packed) => packed,
            Err(what) => return self.fail(input, what),
        };
        let whole = LENGTH_BYTES + packed;
        if input.fill(whole) < whole {
            return self.fail(input, DamageKind::CutFrame);
        }
        match block(&input.data()[LENGTH_BYTES..whole], out) {
            Ok(()) => {
                input.consume(whole);
                Step::More
            }
            Err(what) => self.fail(input, what),
        }
    }
}

/// Length of the compressed block that begins here.
fn length(data: &[u8]) -> Result<usize, DamageKind> {
    if data.len() <= LENGTH_BYTES || data[0] == MAGIC[0] {
        let begins =
            data.len() < HEADER_BYTES && (data.len() <= LENGTH_BYTES || MAGIC.iter().zip(data).all(|(a, b)| a == b));
        return Err(if begins { DamageKind::CutFrame } else { DamageKind::NotAFrame });
    }
    let packed = u32::from_be_bytes(four(data, 0)) as usize;
    // Snappy adds a sixth at most to what it cannot compress.
    if packed > MAX_BLOCK_BYTES + MAX_BLOCK_BYTES / 6 + 32 {
        return Err(DamageKind::BlockTooLarge { claimed_bytes: packed as u64 });
    }
    if packed == 0 {
        return Err(DamageKind::BadBlock);
    }
    Ok(packed)
}

fn block(packed: &[u8], out: &mut Buf) -> Result<(), DamageKind> {
    let raw = raw_length(packed)?;
    let decoded = snap::raw::Decoder::new().decompress(packed, out.spare(raw));
    if decoded.ok() != Some(raw) {
        return Err(DamageKind::BadBlock);
    }
    out.commit(raw);
    Ok(())
}

fn raw_length(packed: &[u8]) -> Result<usize, DamageKind> {
    let raw = snap::raw::decompress_len(packed).map_err(|_| DamageKind::BadBlock)?;
    if raw > MAX_BLOCK_BYTES {
        return Err(DamageKind::BlockTooLarge { claimed_bytes: raw as u64 });
    }
    // Three bytes of Snappy stand for 64 bytes at most.
    if raw / 32 > packed.len() {
        return Err(DamageKind::BadBlock);
    }
    Ok(raw)
}

/// Blocks have no magic, so the next place is believed that decodes as a whole block, or a header.
fn find_intact(data: &[u8], trials: &Trials) -> Option<usize> {
    let header = memmem::find(data, MAGIC).unwrap_or(data.len());
    // The high byte of a believable length is zero, which makes the search a scan for zeros.
    memchr::memchr_iter(0, &data[..header])
        .find(|&at| is_intact(&data[at..], trials))
        .or((header < data.len()).then_some(header))
}

fn is_intact(data: &[u8], trials: &Trials) -> bool {
    if data.len() < LENGTH_BYTES {
        return false;
    }
    let packed = u32::from_be_bytes(four(data, 0)) as usize;
    if !(SEARCH_MIN_BYTES..=SEARCH_BLOCK_BYTES).contains(&packed) {
        return false;
    }
    let Some(block) = data[LENGTH_BYTES..].get(..packed) else {
        return false;
    };
    let Ok(raw) = raw_length(block) else {
        return false;
    };
    // snappy-java cuts blocks at 32 KiB unless told otherwise, and text always shrinks.
    raw >= packed && raw <= 4 * SEARCH_BLOCK_BYTES && trials.spend(raw) && decodes(block)
}

fn decodes(block: &[u8]) -> bool {
    snap::raw::Decoder::new().decompress_vec(block).is_ok()
}
