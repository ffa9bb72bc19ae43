//! A first look at a part: what is it, and is it an event log?

use super::buffer::Buf;
use super::codec::{Codec, Decoder, Step};
use super::limits::{MAX_BLOCK_BYTES, MAX_ZSTD_WINDOW_LOG};
use super::part::Part;
use super::progress::Progress;
use super::text::{decode, is_utf16};
use memchr::memmem;
use std::io::{self, Cursor};

/// Stored bytes looked at; more only when the first block does not fit the lesser ones.
const HEAD_BYTES: [usize; 3] = [64 << 10, 2 << 20, 2 * MAX_BLOCK_BYTES];
/// Decoded bytes looked at.
const TEXT_BYTES: usize = 256 << 10;
/// Bytes kept of the first line.
const FIRST_LINE_BYTES: usize = 512;

/// What a part looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// How it is compressed.
    pub codec: Codec,
    /// What is in it.
    pub looks_like: LooksLike,
    /// The beginning of the first line that is not empty, for messages and for telling plans,
    /// stack traces and other text apart.
    pub first_line: String,
}

/// What is in a part, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LooksLike {
    /// A line of the beginning is a Spark event.
    EventLog,
    /// A zip archive; see [`zip_logs`](super::zip_logs).
    Zip,
    /// Text of another kind.
    Text,
    /// No text.
    Binary,
    /// A form that is known and not read; the name is for the message.
    Unsupported(&'static str),
    /// Compressed, but nothing of the beginning can be decoded.
    Damaged,
    /// No bytes, or only empty lines.
    Empty,
}

/// Looks at the beginning of `part`, which can still be read from its start afterwards.
pub fn probe(part: &mut Part) -> io::Result<Probe> {
    let mut wanted = HEAD_BYTES.into_iter();
    let mut head = part.head(wanted.next().unwrap_or_default())?;
    loop {
        let known = head.len();
        let looked = look(head);
        match wanted.next() {
            Some(more) if looked.looks_like == LooksLike::Damaged => {
                head = part.head(more)?;
                if head.len() > known {
                    continue;
                }
            }
            _ => {}
        }
        return Ok(looked);
    }
}

fn look(head: Vec<u8>) -> Probe {
    let outside = foreign(&head);
    let (codec, text, broken) = decode_head(head);
    let looks_like = if let Some(outside) = outside {
        outside
    } else if broken && text.iter().all(u8::is_ascii_whitespace) {
        LooksLike::Damaged
    } else if codec != Codec::Plain {
        nested(&text).unwrap_or_else(|| judge(&text))
    } else {
        judge(&text)
    };
    Probe { codec, looks_like, first_line: first_line(&text) }
}

/// Forms that are not read when they are inside a compressed stream.
fn nested(text: &[u8]) -> Option<LooksLike> {
    match foreign(text) {
        Some(LooksLike::Zip) => Some(LooksLike::Unsupported("zip inside a compressed file")),
        Some(other) => Some(other),
        None if Codec::sniff(text) != Codec::Plain => Some(LooksLike::Unsupported("compressed twice")),
        None => None,
    }
}

/// Whether a line is a Spark event: an object with the key `Event`, whose value is text.
pub fn is_event_line(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    line.starts_with(b"{")
        && memmem::find_iter(line, b"\"Event\"").any(|at| {
            let rest = line[at + b"\"Event\"".len()..].trim_ascii_start();
            rest.strip_prefix(b":").is_some_and(|v| v.trim_ascii_start().starts_with(b"\""))
        })
}

fn decode_head(head: Vec<u8>) -> (Codec, Vec<u8>, bool) {
    let source = Box::new(Cursor::new(head));
    let mut decoder = Decoder::new(source, Progress::default(), MAX_ZSTD_WINDOW_LOG);
    let mut out = Buf::default();
    let mut broken = false;
    while out.len() < TEXT_BYTES {
        // Bounded room, so that a bomb's beginning is not decoded for nothing.
        out.spare(TEXT_BYTES / 4);
        match decoder.step(&mut out) {
            Step::More => {}
            Step::Broken(_) => broken = true,
            Step::End => break,
        }
    }
    let text = out.filled();
    let text = match is_utf16(text) {
        true => decode(text).into_bytes(),
        false => text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).to_vec(),
    };
    (decoder.codec(), text, broken)
}

/// Forms that are told by their first bytes and are no codec of Spark's.
fn foreign(head: &[u8]) -> Option<LooksLike> {
    const KNOWN: &[(&[u8], LooksLike)] = &[
        (b"PK\x03\x04", LooksLike::Zip),
        (b"PK\x05\x06", LooksLike::Zip),
        (b"\x04\x22\x4d\x18", LooksLike::Unsupported("lz4 frame")),
        (b"\xff\x06\0\0sNaPpY", LooksLike::Unsupported("snappy frame")),
        (b"\xfd7zXZ\0", LooksLike::Unsupported("xz")),
        (b"7z\xbc\xaf\x27\x1c", LooksLike::Unsupported("7z")),
        (b"PAR1", LooksLike::Unsupported("parquet")),
        (b"Obj\x01", LooksLike::Unsupported("avro")),
    ];
    if head.get(257..262) == Some(b"ustar") {
        return Some(LooksLike::Unsupported("tar"));
    }
    if head.starts_with(b"BZh") && head.get(4..7) == Some(b"1AY") {
        return Some(LooksLike::Unsupported("bzip2"));
    }
    KNOWN.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, looks)| *looks)
}

fn judge(text: &[u8]) -> LooksLike {
    if text.iter().all(u8::is_ascii_whitespace) {
        LooksLike::Empty
    } else if text.split(|&b| b == b'\n').any(is_event_line) {
        LooksLike::EventLog
    } else if is_text(text) {
        LooksLike::Text
    } else {
        LooksLike::Binary
    }
}

/// UTF-8 without control characters that no text has; the end may be cut inside a character.
fn is_text(bytes: &[u8]) -> bool {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) if e.error_len().is_none() => std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default(),
        Err(_) => return false,
    };
    !valid.contains('\0')
}

fn first_line(text: &[u8]) -> String {
    let line = text.trim_ascii_start().split(|&b| b == b'\n').next().unwrap_or_default();
    let line = &line[..line.len().min(FIRST_LINE_BYTES)];
    String::from_utf8_lossy(line).trim_end().to_owned()
}
