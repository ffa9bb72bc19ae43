//! What can be wrong with a compressed stream, and where.

use std::fmt;
use thiserror::Error;

/// A place where a compressed stream could not be read on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Offset in the part as stored (compressed), in bytes.
    pub at_byte: u64,
    /// What is wrong there.
    pub what: DamageKind,
    /// Compressed bytes that were given up, from `at_byte` on.
    pub skipped_bytes: u64,
    /// Whether reading went on behind the skipped bytes.
    pub resumed: bool,
}

/// What is wrong with a stream.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DamageKind {
    /// The stream ends inside a frame or block: the writer was killed or the copy is incomplete.
    #[error("the last compressed frame is cut")]
    CutFrame,
    /// The stored checksum is not the checksum of the data.
    #[error("a checksum does not match")]
    BadChecksum,
    /// The block cannot be decoded.
    #[error("a compressed block is corrupt")]
    BadBlock,
    /// The block claims to be larger than [`MAX_BLOCK_BYTES`](super::limits::MAX_BLOCK_BYTES).
    #[error("a compressed block claims {claimed_bytes} bytes")]
    BlockTooLarge {
        /// The size it claims, in bytes.
        claimed_bytes: u64,
    },
    /// The zstd frame needs a larger window than [`Limits`](super::Limits) allow.
    #[error("a zstd frame needs more memory than allowed")]
    WindowTooLarge,
    /// Bytes where a frame, block or member should begin.
    #[error("bytes between compressed frames that are none")]
    NotAFrame,
    /// The byte stream itself failed (disk, network, archive); nothing can be read behind it.
    #[error("reading failed: {message}")]
    ReadFailed {
        /// The error's text.
        message: String,
    },
    /// The part could not be opened at all.
    #[error("cannot be opened: {message}")]
    NotOpened {
        /// The error's text.
        message: String,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at_byte)?;
        match (self.skipped_bytes, self.resumed) {
            (0, _) => Ok(()),
            (n, true) => write!(f, ", {n} bytes skipped"),
            (n, false) => write!(f, ", the last {n} bytes are lost"),
        }
    }
}
