//! Gzip members, one after another, as Databricks stores the older parts of a log.

use super::{Decode, Step, four, give_up};
use crate::source::buffer::Buf;
use crate::source::damage::DamageKind;
use crate::source::input::Input;
use flate2::{Crc, Decompress, FlushDecompress, Status};
use memchr::memmem;

/// Magic and the only method there is.
const MAGIC: &[u8] = &[0x1f, 0x8b, 8];
const FIXED_HEADER_BYTES: usize = 10;
const TRAILER_BYTES: usize = 8;
/// Longest header that is read: file name and comment have no limit of their own.
const MAX_HEADER_BYTES: usize = 64 << 10;

const HAS_CRC: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;
const RESERVED: u8 = 0xe0;

pub(super) struct Gzip {
    inflate: Decompress,
    crc: Crc,
    place: Place,
}

/// Where in a member the stream is.
enum Place {
    Header,
    Body,
    Trailer,
}

impl Gzip {
    pub fn new() -> Gzip {
        Gzip { inflate: Decompress::new(false), crc: Crc::new(), place: Place::Header }
    }

    fn header(&mut self, input: &mut Input) -> Step {
        let have = input.fill(FIXED_HEADER_BYTES);
        if have == 0 {
            return Step::End;
        }
        let mut wanted = FIXED_HEADER_BYTES;
        loop {
            match header_len(input.data()) {
                Ok(Some(len)) => {
                    input.consume(len);
                    self.inflate.reset(false);
                    self.crc.reset();
                    self.place = Place::Body;
                    return Step::More;
                }
                Ok(None) if wanted < MAX_HEADER_BYTES => {
                    wanted *= 2;
                    if input.fill(wanted) < wanted && header_len(input.data()) == Ok(None) {
                        return self.fail(input, DamageKind::CutFrame);
                    }
                }
                Ok(None) => return self.fail(input, DamageKind::BadBlock),
                Err(what) => return self.fail(input, what),
            }
        }
    }

    fn body(&mut self, input: &mut Input, out: &mut Buf) -> Step {
        let have = input.fill(1);
        let (in_before, out_before) = (self.inflate.total_in(), self.inflate.total_out());
        let target = out.spare(1);
        let result = self.inflate.decompress(input.data(), target, FlushDecompress::None);
        let taken = (self.inflate.total_in() - in_before) as usize;
        let made = (self.inflate.total_out() - out_before) as usize;
        self.crc.update(&target[..made]);
        out.commit(made);
        input.consume(taken);
        match result {
            Ok(Status::StreamEnd) => {
                self.place = Place::Trailer;
                Step::More
            }
            Ok(_) if taken == 0 && made == 0 && have == 0 => self.fail(input, DamageKind::CutFrame),
            Ok(_) if taken == 0 && made == 0 => self.fail(input, DamageKind::BadBlock),
            Ok(_) => Step::More,
            Err(_) => self.fail(input, DamageKind::BadBlock),
        }
    }

    fn trailer(&mut self, input: &mut Input) -> Step {
        if input.fill(TRAILER_BYTES) < TRAILER_BYTES {
            return self.fail(input, DamageKind::CutFrame);
        }
        let sum = u32::from_le_bytes(four(input.data(), 0));
        let len = u32::from_le_bytes(four(input.data(), 4));
        if sum != self.crc.sum() || len != self.crc.amount() {
            return self.fail(input, DamageKind::BadChecksum);
        }
        input.consume(TRAILER_BYTES);
        self.place = Place::Header;
        Step::More
    }

    fn fail(&mut self, input: &mut Input, what: DamageKind) -> Step {
        self.place = Place::Header;
        give_up(input, what, FIXED_HEADER_BYTES, find_header)
    }
}

impl Decode for Gzip {
    fn step(&mut self, input: &mut Input, out: &mut Buf) -> Step {
        match self.place {
            Place::Header => self.header(input),
            Place::Body => self.body(input, out),
            Place::Trailer => self.trailer(input),
        }
    }
}

fn find_header(data: &[u8]) -> Option<usize> {
    memmem::find_iter(data, MAGIC).find(|&at| data.get(at + 3).is_some_and(|flags| flags & RESERVED == 0))
}

/// Length of the member's header; `None` when more bytes are needed to tell.
fn header_len(data: &[u8]) -> Result<Option<usize>, DamageKind> {
    if !MAGIC.iter().zip(data).all(|(a, b)| a == b) {
        return Err(DamageKind::NotAFrame);
    }
    if data.len() < FIXED_HEADER_BYTES {
        return Ok(None);
    }
    let flags = data[3];
    if flags & RESERVED != 0 {
        return Err(DamageKind::BadBlock);
    }
    Ok(optional_fields_end(data, flags).filter(|&end| end <= data.len()))
}

fn optional_fields_end(data: &[u8], flags: u8) -> Option<usize> {
    let mut at = FIXED_HEADER_BYTES;
    if flags & HAS_EXTRA != 0 {
        let len = data.get(at..at + 2)?;
        at += 2 + usize::from(u16::from_le_bytes([len[0], len[1]]));
    }
    for text in [HAS_NAME, HAS_COMMENT] {
        if flags & text != 0 {
            at += 1 + memchr::memchr(0, data.get(at..)?)?;
        }
    }
    if flags & HAS_CRC != 0 {
        at += 2;
    }
    Some(at)
}
