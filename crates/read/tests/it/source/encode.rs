//! Writers of the framings, for round trips.

use read::source::Codec;
use std::io::Write;

pub(super) const ALL: [Codec; 6] = [Codec::Plain, Codec::Zstd, Codec::Lz4, Codec::Snappy, Codec::Lzf, Codec::Gzip];

/// Encodes each piece as a frame, stream or member of its own, in blocks of `block` bytes.
pub(super) fn encode(codec: Codec, pieces: &[&[u8]], block: usize) -> Vec<u8> {
    pieces.iter().flat_map(|piece| encode_one(codec, piece, block)).collect()
}

fn encode_one(codec: Codec, piece: &[u8], block: usize) -> Vec<u8> {
    let blocks = piece.chunks(block);
    match codec {
        Codec::Plain => piece.to_vec(),
        Codec::Zstd => zstd::encode_all(piece, 1).unwrap(),
        Codec::Gzip => gzip(piece),
        Codec::Lz4 => blocks.flat_map(lz4_block).chain(lz4_end()).collect(),
        Codec::Snappy => snappy_header().into_iter().chain(blocks.flat_map(snappy_block)).collect(),
        Codec::Lzf => blocks.flat_map(lzf_chunk).collect(),
    }
}

fn gzip(piece: &[u8]) -> Vec<u8> {
    // Every optional header field, as the tools that write logs may use any of them.
    let builder = flate2::GzBuilder::new().filename("eventlog").comment("a log").extra("xy");
    let mut encoder = builder.write(Vec::new(), flate2::Compression::fast());
    encoder.write_all(piece).unwrap();
    encoder.finish().unwrap()
}

fn lz4_frame(token: u8, packed: &[u8], raw: &[u8]) -> Vec<u8> {
    let checksum = twox_hash::XxHash32::oneshot(0x9747_b28c, raw) & 0x0fff_ffff;
    let mut out = b"LZ4Block".to_vec();
    out.push(token);
    out.extend((packed.len() as u32).to_le_bytes());
    out.extend((raw.len() as u32).to_le_bytes());
    out.extend(if raw.is_empty() { [0; 4] } else { checksum.to_le_bytes() });
    out.extend(packed);
    out
}

pub(super) fn lz4_block(raw: &[u8]) -> Vec<u8> {
    let packed = lz4_flex::block::compress(raw);
    // Level 15 - 0: the largest block size is 1 << (10 + level).
    if packed.len() < raw.len() { lz4_frame(0x20 | 15, &packed, raw) } else { lz4_frame(0x10 | 15, raw, raw) }
}

fn lz4_end() -> Vec<u8> {
    lz4_frame(0x10 | 15, &[], &[])
}

pub(super) fn snappy_header() -> Vec<u8> {
    let mut out = b"\x82SNAPPY\0".to_vec();
    out.extend([0, 0, 0, 1, 0, 0, 0, 1]);
    out
}

fn snappy_block(raw: &[u8]) -> Vec<u8> {
    let packed = snap::raw::Encoder::new().compress_vec(raw).unwrap();
    [&(packed.len() as u32).to_be_bytes()[..], &packed].concat()
}

fn lzf_chunk(raw: &[u8]) -> Vec<u8> {
    let size = |bytes: &[u8]| (u16::try_from(bytes.len()).expect("chunk of 64 KiB")).to_be_bytes();
    let packed = lzf(raw);
    if packed.len() < raw.len() {
        [b"ZV\x01", &size(&packed)[..], &size(raw)[..], &packed].concat()
    } else {
        [b"ZV\0", &size(raw)[..], raw].concat()
    }
}

/// A plain LZF compressor: the last place of every three bytes is remembered.
fn lzf(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut last = std::collections::HashMap::new();
    let (mut at, mut literals) = (0, 0);
    while at < raw.len() {
        let found = raw.get(at..at + 3).and_then(|key| last.insert(key, at));
        match found.filter(|&from| at - from <= 0x2000) {
            Some(from) => {
                lzf_literals(&mut out, &raw[literals..at]);
                let longest = (raw.len() - at).min(264);
                let len = (0..longest).take_while(|&i| raw[from + i] == raw[at + i]).count();
                lzf_reference(&mut out, at - from - 1, len);
                at += len;
                literals = at;
            }
            None => at += 1,
        }
    }
    lzf_literals(&mut out, &raw[literals..]);
    out
}

fn lzf_literals(out: &mut Vec<u8>, bytes: &[u8]) {
    for run in bytes.chunks(32) {
        out.push(run.len() as u8 - 1);
        out.extend(run);
    }
}

fn lzf_reference(out: &mut Vec<u8>, back: usize, len: usize) {
    let len = len - 2;
    let high = (back >> 8) as u8;
    if len < 7 {
        out.push((len as u8) << 5 | high);
    } else {
        out.extend([7 << 5 | high, (len - 7) as u8]);
    }
    out.push(back as u8);
}
