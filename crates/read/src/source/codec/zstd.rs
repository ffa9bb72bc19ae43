//! Zstandard: Spark closes a frame at every flush, so a log is hundreds of frames, and the last
//! one is open when the driver was killed.

use super::{Decode, Step, give_up};
use crate::source::buffer::Buf;
use crate::source::damage::DamageKind;
use crate::source::input::Input;
use memchr::memmem;
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, get_error_name};

const MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Length of a block's header, which the library adds to what it asks for.
const BLOCK_HEADER_BYTES: usize = 3;

/// Bytes the library wants to see first: magic and the first header byte.
const START_BYTES: usize = 5;

/// Whether a frame begins here: one with data or one to be skipped.
pub(super) fn is_magic(head: &[u8]) -> bool {
    head.starts_with(MAGIC) || matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

pub(super) struct Zstd {
    context: Option<DCtx<'static>>,
    in_frame: bool,
    /// Stored bytes wanted next: exactly one header or one block. A call that fails loses what it
    /// decoded, so feeding more would lose intact blocks before a damaged one.
    wanted: usize,
    /// The last call filled the target, so decoded bytes may still be inside.
    pending: bool,
}

/// What the library made of one call.
struct Fed {
    taken: usize,
    hint: Result<usize, DamageKind>,
}

impl Zstd {
    pub fn new(window_log: u32) -> Zstd {
        Zstd { context: new_context(window_log), in_frame: false, wanted: START_BYTES, pending: false }
    }

    fn feed(&mut self, data: &[u8], out: &mut Buf) -> Fed {
        let Some(context) = &mut self.context else {
            return Fed { taken: 0, hint: Err(DamageKind::BadBlock) };
        };
        let mut input = InBuffer::around(data);
        let mut output = OutBuffer::around(out.spare(1));
        let result = context.decompress_stream(&mut output, &mut input);
        let (taken, made) = (input.pos(), output.pos());
        self.pending = made == output.capacity();
        out.commit(made);
        Fed { taken, hint: result.map_err(|code| kind(get_error_name(code))) }
    }

    fn restart(&mut self) {
        self.in_frame = false;
        self.wanted = START_BYTES;
        self.pending = false;
    }

    fn fail(&mut self, input: &mut Input, what: DamageKind) -> Step {
        self.restart();
        if let Some(context) = &mut self.context {
            // The parameters stay; only the broken frame is forgotten. A session reset cannot fail.
            let _ = context.reset(ResetDirective::SessionOnly);
        }
        give_up(input, what, MAGIC.len(), |data| memmem::find(data, MAGIC))
    }
}

impl Decode for Zstd {
    fn step(&mut self, input: &mut Input, out: &mut Buf) -> Step {
        let wanted = if self.pending { 0 } else { self.wanted };
        let have = input.fill(wanted);
        if have == 0 && !self.in_frame {
            return Step::End;
        }
        if !self.in_frame && !is_magic(input.data()) {
            let cut = have < MAGIC.len() && MAGIC.starts_with(input.data());
            let what = if cut { DamageKind::CutFrame } else { DamageKind::NotAFrame };
            return self.fail(input, what);
        }
        self.in_frame = true;
        let before = out.len();
        let fed = self.feed(&input.data()[..have.min(wanted)], out);
        input.consume(fed.taken);
        match fed.hint {
            Err(what) => self.fail(input, what),
            Ok(0) => {
                self.restart();
                Step::More
            }
            // Nothing in, nothing out: the stream ended inside the frame.
            Ok(_) if fed.taken == 0 && out.len() == before && have < wanted.max(1) => {
                self.fail(input, DamageKind::CutFrame)
            }
            Ok(hint) => {
                self.wanted = match hint.saturating_sub(BLOCK_HEADER_BYTES) {
                    0 => hint,
                    block => block,
                };
                Step::More
            }
        }
    }
}

fn new_context(window_log: u32) -> Option<DCtx<'static>> {
    let mut context = DCtx::try_create()?;
    context.set_parameter(DParameter::WindowLogMax(window_log)).ok()?;
    Some(context)
}

/// The library tells its errors apart by text only.
fn kind(message: &str) -> DamageKind {
    if message.contains("checksum") {
        DamageKind::BadChecksum
    } else if message.contains("too much memory") {
        DamageKind::WindowTooLarge
    } else {
        DamageKind::BadBlock
    }
}
