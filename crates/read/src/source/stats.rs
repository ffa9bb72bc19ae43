//! What a reading did, part by part.

use super::codec::Codec;
use super::damage::{Damage, DamageKind};
use super::limits::MAX_DAMAGES_KEPT;
use thiserror::Error;

/// What was read and what could not be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadStats {
    /// One entry a part that was begun, in reading order.
    pub parts: Vec<PartStats>,
    /// Why the reading ended before the last byte, if it did.
    pub stopped: Option<Stop>,
}

/// What was read of one part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartStats {
    /// The part's name.
    pub name: String,
    /// Found by content.
    pub codec: Codec,
    /// Bytes as stored.
    pub stored_bytes: u64,
    /// Bytes after decompression.
    pub decoded_bytes: u64,
    /// Lines handed to the parser, empty ones included.
    pub lines: u64,
    /// The first damages, in order.
    pub damages: Vec<Damage>,
    /// All damages, also those not kept in `damages`.
    pub damage_count: u64,
    /// Lines left out because they were longer than the limits allow; the first ones.
    pub long_lines: Vec<LongLine>,
    /// All lines left out for their length.
    pub long_line_count: u64,
    /// Whether the last line lacks its line end. Whether it is cut shows when it is parsed.
    pub open_last_line: bool,
}

/// A line that was skipped for its length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongLine {
    /// Where it begins in the decompressed part, in bytes.
    pub at_byte: u64,
    /// Its length, in bytes.
    pub bytes: u64,
}

/// Why a reading ended early. What was read until then is kept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Stop {
    /// The fold asked for it.
    #[error("stopped by the reader of the events")]
    Asked,
    /// `--max-decompressed-bytes` was reached.
    #[error("more than {limit_bytes} bytes after decompression")]
    TooManyBytes {
        /// The limit, in bytes.
        limit_bytes: u64,
    },
    /// The data expands beyond anything a log does.
    #[error("a decompression bomb: {decoded_bytes} bytes came out of {stored_bytes}")]
    Bomb {
        /// Bytes as stored.
        stored_bytes: u64,
        /// Bytes after decompression.
        decoded_bytes: u64,
    },
}

impl ReadStats {
    /// Bytes as stored, of all parts.
    pub fn stored_bytes(&self) -> u64 {
        self.parts.iter().map(|p| p.stored_bytes).sum()
    }

    /// Bytes after decompression, of all parts.
    pub fn decoded_bytes(&self) -> u64 {
        self.parts.iter().map(|p| p.decoded_bytes).sum()
    }

    /// Lines handed to the parser, of all parts.
    pub fn lines(&self) -> u64 {
        self.parts.iter().map(|p| p.lines).sum()
    }

    /// Whether every byte of every part was read and intact.
    pub fn is_complete(&self) -> bool {
        let whole = |p: &PartStats| p.damage_count == 0 && p.long_line_count == 0;
        self.stopped.is_none() && self.parts.iter().all(whole)
    }
}

impl PartStats {
    pub(super) fn add_damage(&mut self, damage: Damage) {
        self.damage_count += 1;
        if self.damages.len() < MAX_DAMAGES_KEPT {
            self.damages.push(damage);
        }
    }

    pub(super) fn add_long_line(&mut self, line: LongLine) {
        self.long_line_count += 1;
        if self.long_lines.len() < MAX_DAMAGES_KEPT {
            self.long_lines.push(line);
        }
    }

    /// A part that could not be opened.
    pub(super) fn not_opened(name: String, error: &std::io::Error) -> PartStats {
        let mut stats = PartStats { name, ..PartStats::default() };
        stats.add_damage(Damage {
            at_byte: 0,
            what: DamageKind::NotOpened { message: error.to_string() },
            skipped_bytes: 0,
            resumed: false,
        });
        stats
    }
}
