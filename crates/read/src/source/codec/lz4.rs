//! The block stream of lz4-java: `LZ4Block`, a token, two lengths, a checksum, the block. A block
//! of no bytes ends a stream, and another may follow.

use super::{Decode, Step, cut_or_corrupt, four, give_up};
use crate::source::buffer::Buf;
use crate::source::damage::DamageKind;
use crate::source::input::Input;
use crate::source::limits::MAX_BLOCK_BYTES;
use memchr::memmem;
use twox_hash::XxHash32;

pub(super) const MAGIC: &[u8] = b"LZ4Block";
const HEADER_BYTES: usize = 21;
/// Seed of the checksum, from lz4-java.
const SEED: u32 = 0x9747_b28c;
/// lz4-java keeps 28 bits of the checksum.
const CHECKSUM_MASK: u32 = 0x0fff_ffff;

pub(super) struct Lz4;

struct Header {
    stored: bool,
    packed: usize,
    raw: usize,
    checksum: u32,
}

impl Decode for Lz4 {
    fn step(&mut self, input: &mut Input, out: &mut Buf) -> Step {
        let have = input.fill(HEADER_BYTES);
        if have == 0 {
            return Step::End;
        }
        let header = match header(input.data()) {
            Ok(header) => header,
            Err(what) => return fail(input, what),
        };
        let whole = HEADER_BYTES + header.packed;
        if input.fill(whole) < whole {
            return fail(input, DamageKind::CutFrame);
        }
        match block(&header, &input.data()[HEADER_BYTES..whole], out) {
            Ok(()) => {
                input.consume(whole);
                Step::More
            }
            Err(what) => fail(input, what),
        }
    }
}

fn fail(input: &mut Input, what: DamageKind) -> Step {
    let step = give_up(input, what, MAGIC.len(), |data| memmem::find(data, MAGIC));
    cut_or_corrupt(step)
}

fn header(data: &[u8]) -> Result<Header, DamageKind> {
    if data.len() < HEADER_BYTES {
        let begins = MAGIC.iter().zip(data).all(|(a, b)| a == b);
        return Err(if begins { DamageKind::CutFrame } else { DamageKind::NotAFrame });
    }
    if !data.starts_with(MAGIC) {
        return Err(DamageKind::NotAFrame);
    }
    let token = data[8];
    let packed = u32::from_le_bytes(four(data, 9)) as usize;
    let raw = u32::from_le_bytes(four(data, 13)) as usize;
    let checksum = u32::from_le_bytes(four(data, 17));
    let stored = match token & 0xf0 {
        0x10 => true,
        0x20 => false,
        _ => return Err(DamageKind::BadBlock),
    };
    let largest = 1 << (10 + (token & 0x0f));
    if raw.max(packed) > MAX_BLOCK_BYTES {
        return Err(DamageKind::BlockTooLarge { claimed_bytes: raw.max(packed) as u64 });
    }
    // A byte of LZ4 stands for 255 bytes at most, and lz4-java stores what would grow.
    let possible = if stored { packed == raw } else { packed <= raw && raw / 255 <= packed };
    if raw > largest || !possible {
        return Err(DamageKind::BadBlock);
    }
    Ok(Header { stored, packed, raw, checksum })
}

fn block(header: &Header, packed: &[u8], out: &mut Buf) -> Result<(), DamageKind> {
    if header.raw == 0 {
        return Ok(());
    }
    let target = &mut out.spare(header.raw)[..header.raw];
    if header.stored {
        target.copy_from_slice(packed);
    } else if lz4_flex::block::decompress_into(packed, target).ok() != Some(header.raw) {
        return Err(DamageKind::BadBlock);
    }
    if XxHash32::oneshot(SEED, target) & CHECKSUM_MASK != header.checksum {
        return Err(DamageKind::BadChecksum);
    }
    out.commit(header.raw);
    Ok(())
}
