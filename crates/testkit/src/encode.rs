//! Writes bytes the way Spark's codecs do, to test what reads them.

use flate2::{Compression, write::GzEncoder};
use std::io::{Cursor, Write};

/// Cuts text into `parts` pieces of about equal length at line ends.
#[must_use]
pub fn cut_lines(text: &[u8], parts: usize) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut rest = text;
    for left in (1..=parts).rev() {
        let aim = rest.len() / left;
        let end = match rest[aim.min(rest.len())..].iter().position(|&b| b == b'\n') {
            Some(at) if left > 1 => aim + at + 1,
            _ => rest.len(),
        };
        pieces.push(&rest[..end]);
        rest = &rest[end..];
    }
    pieces
}

/// Many zstd frames one after another, as Spark closes one at each flush.
///
/// # Panics
/// When zstd fails on memory, which it does not.
#[must_use]
pub fn zstd_frames(text: &[u8]) -> Vec<u8> {
    let frames = cut_lines(text, 50).into_iter().map(|part| zstd::encode_all(part, 1).expect("zstd in memory"));
    frames.collect::<Vec<_>>().concat()
}

/// lz4-java's block stream: magic, token, lengths, checksum; an empty block at its end.
#[must_use]
pub fn lz4(text: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 32 << 10;
    let mut out = Vec::new();
    for (at, block) in text.chunks(BLOCK).enumerate() {
        let compressed = lz4_flex::block::compress(block);
        // A raw block now and then: a writer falls back to one when compression gains nothing.
        let (method, bytes) = if at % 7 == 6 { (0x10, block) } else { (0x20, &compressed[..]) };
        lz4_block(&mut out, method, bytes, block);
    }
    lz4_block(&mut out, 0x10, &[], &[]);
    out
}

fn lz4_block(out: &mut Vec<u8>, method: u8, bytes: &[u8], raw: &[u8]) {
    const LEVEL: u8 = 5;
    let checksum = if raw.is_empty() { 0 } else { twox_hash::XxHash32::oneshot(0x9747_b28c, raw) & 0x0fff_ffff };
    out.extend(b"LZ4Block");
    out.push(method | LEVEL);
    for number in [bytes.len() as u32, raw.len() as u32, checksum] {
        out.extend(number.to_le_bytes());
    }
    out.extend(bytes);
}

/// snappy-java's stream, its header once more in the middle as after a concatenation.
///
/// # Panics
/// When snappy fails on memory, which it does not.
#[must_use]
pub fn snappy(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let chunks: Vec<&[u8]> = text.chunks(32 << 10).collect();
    for (at, chunk) in chunks.iter().enumerate() {
        if at == 0 || at == chunks.len() / 2 {
            out.extend(b"\x82SNAPPY\x00");
            out.extend([0, 0, 0, 1, 0, 0, 0, 1]);
        }
        let compressed = snap::raw::Encoder::new().compress_vec(chunk).expect("snappy in memory");
        out.extend((compressed.len() as u32).to_be_bytes());
        out.extend(compressed);
    }
    out
}

/// ning's LZF chunks, raw and compressed ones in turn. The compressor knows literal runs and
/// repeats of one byte only: small output is not what it is for.
#[must_use]
pub fn lzf(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, chunk) in text.chunks(0xffff).enumerate() {
        let compressed = lzf_block(chunk);
        if at % 2 == 0 || compressed.len() > 0xffff {
            out.extend([b'Z', b'V', 0]);
            out.extend((chunk.len() as u16).to_be_bytes());
            out.extend(chunk);
        } else {
            out.extend([b'Z', b'V', 1]);
            out.extend((compressed.len() as u16).to_be_bytes());
            out.extend((chunk.len() as u16).to_be_bytes());
            out.extend(compressed);
        }
    }
    out
}

fn lzf_block(chunk: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < chunk.len() {
        let same = chunk[at..].iter().take_while(|b| at > 0 && **b == chunk[at - 1]).count().min(8);
        if same >= 3 {
            // Back reference of length `same` at distance 1: length - 2 in the upper three bits.
            out.extend([((same - 2) as u8) << 5, 0]);
            at += same;
            continue;
        }
        let run = chunk[at..].len().min(32);
        out.push((run - 1) as u8);
        out.extend(&chunk[at..at + run]);
        at += run;
    }
    out
}

/// Two gzip members.
///
/// # Panics
/// When writing to memory fails, which it does not.
#[must_use]
pub fn gzip(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in cut_lines(text, 2) {
        let mut encoder = GzEncoder::new(&mut out, Compression::fast());
        encoder.write_all(part).expect("gzip in memory");
        encoder.finish().expect("gzip in memory");
    }
    out
}

/// A zip archive, deflated, as the `logs` answer of Spark's REST is.
///
/// # Panics
/// When writing to memory fails, which it does not.
#[must_use]
pub fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).expect("zip in memory");
        archive.write_all(bytes).expect("zip in memory");
    }
    archive.finish().expect("zip in memory").into_inner()
}
