//! Whole small texts, such as a pasted plan or stack trace, compressed or not.

use super::buffer::Buf;
use super::codec::{Decoder, Step};
use super::damage::Damage;
use super::limits::Limits;
use super::part::Part;
use super::progress::Progress;
use std::io;

/// A text that was read as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// The text without byte order mark; bytes that are no UTF-8 are replaced.
    pub text: String,
    /// There was more than asked for.
    pub more: bool,
    /// What was wrong with the compressed form.
    pub damages: Vec<Damage>,
}

/// Reads up to `max_bytes` of text. UTF-16 with a byte order mark, as PowerShell writes it, is
/// understood.
pub fn read_text(mut part: Part, max_bytes: usize) -> io::Result<Text> {
    let window_log = Limits::default().zstd_window_log();
    let mut decoder = Decoder::new(part.open()?, Progress::default(), window_log);
    let mut out = Buf::default();
    let mut damages = Vec::new();
    while out.len() <= max_bytes {
        out.spare(max_bytes.min(64 << 10) + 1);
        match decoder.step(&mut out) {
            Step::More => {}
            Step::Broken(damage) => damages.push(damage),
            Step::End => break,
        }
    }
    let more = out.len() > max_bytes;
    out.truncate(max_bytes);
    Ok(Text { text: decode(out.filled()), more, damages })
}

/// Whether the bytes begin with the byte order mark of UTF-16.
pub(super) fn is_utf16(bytes: &[u8]) -> bool {
    matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..])
}

pub(super) fn decode(bytes: &[u8]) -> String {
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn utf16(bytes: &[u8], unit: impl Fn([u8; 2]) -> u16) -> String {
    let (pairs, _) = bytes.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|&pair| unit(pair)).collect();
    String::from_utf16_lossy(&units)
}
