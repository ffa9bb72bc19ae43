//! How much reading may cost.

/// One mebibyte, in bytes.
const MIB: u64 = 1 << 20;

/// Largest decoded block of the framings that name their block size (LZ4, Snappy), in bytes.
/// It is the LZ4 stream's own maximum; Spark's default is 32 KiB. A block that claims more is
/// damage, so that a few forged bytes cannot ask for gigabytes.
pub const MAX_BLOCK_BYTES: usize = 32 << 20;

/// Largest zstd window that is accepted, as a power of two (128 MiB, as the `zstd` command does).
/// Spark's own logs need 8 MiB at most.
pub const MAX_ZSTD_WINDOW_LOG: u32 = 27;

/// More decoded bytes per compressed byte than this, kept up for
/// [`RATIO_CHECKED_FROM_BYTES`], is a decompression bomb. Real logs reach 15 to 60; a single log
/// line that repeats one character reaches thousands, but not for gigabytes.
pub const MAX_RATIO: u64 = 1000;

/// The ratio is judged only after so many decoded bytes.
pub const RATIO_CHECKED_FROM_BYTES: u64 = 8 << 30;

/// Bytes that may be decoded in vain, in one part, to find where an intact block begins when the
/// framing has no magic to look for. Real damage needs a few megabytes; without a bound, a forged
/// log could keep a search busy for hours.
pub const MAX_TRIAL_BYTES: usize = 1 << 30;

/// How many damages are kept with their places in one part; more are only counted.
pub const MAX_DAMAGES_KEPT: usize = 100;

/// Bounds on memory and work. Exceeding one never fails the reading: what does not fit is left
/// out, counted and named in [`ReadStats`](super::ReadStats).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all line buffers together (`--max-memory`, as far as it is given to reading).
    /// A line that does not fit is left out like one above `max_line_bytes`. Decoder state comes
    /// on top: one zstd window of at most a third of this (and 2^[`MAX_ZSTD_WINDOW_LOG`] bytes),
    /// or a block of [`MAX_BLOCK_BYTES`] in both forms.
    pub max_memory_bytes: u64,
    /// Bytes of the longest line that is read (`--max-line-bytes`). Lines above it are skipped
    /// without being held. A longer line that fits the buffers anyway may be let through.
    pub max_line_bytes: u64,
    /// Decoded bytes after which reading stops (`--max-decompressed-bytes`). A bomb costs time,
    /// not memory, so the default of 1 TiB is far above any real log and still ends.
    pub max_decompressed_bytes: u64,
    /// Bytes of whole lines handed to one parser call; larger batches cost memory, smaller ones
    /// cost hand-overs. No setting.
    pub batch_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_memory_bytes: 768 * MIB,
            max_line_bytes: 256 * MIB,
            max_decompressed_bytes: 1 << 40,
            batch_bytes: MIB as usize,
        }
    }
}

impl Limits {
    /// Largest zstd window within the memory limit, as a power of two.
    pub(super) fn zstd_window_log(&self) -> u32 {
        let fits = (self.max_memory_bytes / 3).max(MIB).ilog2();
        fits.min(MAX_ZSTD_WINDOW_LOG)
    }
}

/// Whether a part expands beyond anything a log does.
pub(super) fn is_bomb(stored_bytes: u64, decoded_bytes: u64) -> bool {
    decoded_bytes > RATIO_CHECKED_FROM_BYTES && decoded_bytes / MAX_RATIO > stored_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bomb_is_large_and_expands_a_lot() {
        let gib = 1 << 30;
        for (stored, decoded, expected) in [
            (1, gib, false),
            (gib, 40 * gib, false),
            (9 << 20, 8 * gib + 1, false),
            (8 << 20, 9 * gib, true),
            (0, 9 * gib, true),
        ] {
            assert_eq!(is_bomb(stored, decoded), expected, "{stored} {decoded}");
        }
    }

    #[test]
    fn windows_follow_the_memory_limit() {
        for (mib, expected) in [(0, 20), (64, 24), (380, 26), (384, 27), (100_000, 27)] {
            let limits = Limits { max_memory_bytes: mib * MIB, ..Limits::default() };
            assert_eq!(limits.zstd_window_log(), expected, "{mib}");
        }
    }
}
