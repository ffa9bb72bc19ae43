//! Decompression of every form Spark and its users store logs in, chosen by content.
//!
//! Each decoder appends to a buffer, says where the stream is damaged and, where the framing
//! allows, goes on at the next intact frame. None of them allocates by what the stream claims.

mod gzip;
mod lz4;
mod lzf;
mod snappy;
mod zstd;

use super::buffer::Buf;
use super::damage::{Damage, DamageKind};
use super::input::Input;
use super::limits::MAX_TRIAL_BYTES;
use super::part::ByteStream;
use super::progress::Progress;
use std::cell::Cell;
use std::fmt;

/// Bytes that are enough to tell the codecs apart.
const SNIFF_BYTES: usize = 8;

/// How a part is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Codec {
    /// Not compressed.
    #[default]
    Plain,
    /// Zstandard frames, one after another.
    Zstd,
    /// The block stream of lz4-java (`LZ4Block`), not the LZ4 frame format.
    Lz4,
    /// The stream of snappy-java, not the Snappy framing format.
    Snappy,
    /// The chunks of ning-compress (`ZV`).
    Lzf,
    /// Gzip members, one after another.
    Gzip,
}

impl Codec {
    /// Tells the codec from the first bytes of a part.
    pub fn sniff(head: &[u8]) -> Codec {
        match head {
            _ if zstd::is_magic(head) => Codec::Zstd,
            _ if head.starts_with(lz4::MAGIC) => Codec::Lz4,
            _ if head.starts_with(snappy::MAGIC) => Codec::Snappy,
            [b'Z', b'V', 0 | 1, ..] => Codec::Lzf,
            [0x1f, 0x8b, 8, ..] => Codec::Gzip,
            _ => Codec::Plain,
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Codec::Plain => "none",
            Codec::Zstd => "zstd",
            Codec::Lz4 => "lz4",
            Codec::Snappy => "snappy",
            Codec::Lzf => "lzf",
            Codec::Gzip => "gzip",
        })
    }
}

/// What one call of a decoder did.
#[derive(Debug)]
pub(super) enum Step {
    /// Bytes were appended, or bookkeeping was done; call again.
    More,
    /// What follows is not a continuation of what came before.
    Broken(Damage),
    /// The stream is over.
    End,
}

trait Decode: Send {
    fn step(&mut self, input: &mut Input, out: &mut Buf) -> Step;
}

/// Decodes one part.
pub(super) struct Decoder {
    codec: Codec,
    input: Input,
    inner: Box<dyn Decode>,
}

impl Decoder {
    /// `zstd_window_log` bounds the window of a zstd frame, as a power of two.
    pub fn new(source: ByteStream, progress: Progress, zstd_window_log: u32) -> Decoder {
        let mut input = Input::new(source, progress);
        input.fill(SNIFF_BYTES);
        let codec = Codec::sniff(input.data());
        let inner: Box<dyn Decode> = match codec {
            Codec::Plain => Box::new(Plain),
            Codec::Zstd => Box::new(zstd::Zstd::new(zstd_window_log)),
            Codec::Lz4 => Box::new(lz4::Lz4),
            Codec::Snappy => Box::new(snappy::Snappy::default()),
            Codec::Lzf => Box::new(lzf::Lzf::default()),
            Codec::Gzip => Box::new(gzip::Gzip::new()),
        };
        Decoder { codec, input, inner }
    }

    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Stored bytes used so far.
    pub fn position(&self) -> u64 {
        self.input.position()
    }

    /// Appends some bytes to `out`: as many as fit, or one block.
    pub fn step(&mut self, out: &mut Buf) -> Step {
        let step = self.inner.step(&mut self.input, out);
        let over = matches!(&step, Step::End | Step::Broken(Damage { resumed: false, .. }));
        if !over {
            return step;
        }
        match self.input.take_failure() {
            Some(error) => Step::Broken(Damage {
                at_byte: self.input.position(),
                what: DamageKind::ReadFailed { message: error.to_string() },
                skipped_bytes: 0,
                resumed: false,
            }),
            None => step,
        }
    }
}

struct Plain;

impl Decode for Plain {
    fn step(&mut self, input: &mut Input, out: &mut Buf) -> Step {
        match input.read_through(out.spare(1)) {
            0 => Step::End,
            n => {
                out.commit(n);
                Step::More
            }
        }
    }
}

/// Gives up what begins at the present position and moves to the next place that `find` accepts
/// in a window of `look` bytes.
fn give_up(input: &mut Input, what: DamageKind, look: usize, find: impl Fn(&[u8]) -> Option<usize>) -> Step {
    let at_byte = input.position();
    // What fails here would fail again.
    if input.fill(1) > 0 {
        input.consume(1);
    }
    let resumed = input.seek(look, find);
    let skipped_bytes = input.position() - at_byte;
    Step::Broken(Damage { at_byte, what, skipped_bytes, resumed })
}

/// Names the cut of a chunked stream rightly: if anything intact comes behind a chunk that seems to
/// reach past the end, not the stream is cut but the chunk's length is wrong.
fn cut_or_corrupt(step: Step) -> Step {
    match step {
        Step::Broken(mut d) if d.what == DamageKind::CutFrame && d.resumed => {
            d.what = DamageKind::BadBlock;
            Step::Broken(d)
        }
        step => step,
    }
}

/// How much may still be decoded in vain, see [`MAX_TRIAL_BYTES`].
struct Trials(Cell<usize>);

impl Default for Trials {
    fn default() -> Self {
        Trials(Cell::new(MAX_TRIAL_BYTES))
    }
}

impl Trials {
    /// Takes `bytes` from what is left; `false` when that is not enough.
    fn spend(&self, bytes: usize) -> bool {
        let left = self.0.get().checked_sub(bytes);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }
}

/// Big-endian 16-bit number at `at`; the caller has checked the length.
fn be_u16(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

/// The four bytes at `at`; the caller has checked the length.
fn four(bytes: &[u8], at: usize) -> [u8; 4] {
    [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]
}
