//! Undamaged streams in every codec.

use super::encode::{ALL, encode, lz4_block, snappy_header};
use super::{joined, options, read, read_bytes, sample, small, texts};
use read::source::{Codec, Limits, Part};

#[test]
fn every_codec_gives_the_lines_back() {
    let lines = sample(2000);
    let plain = joined(&lines);
    for codec in ALL {
        for (limits, block) in [(Limits::default(), 32 << 10), (small(), 777)] {
            let (got, stats) = read_bytes(&encode(codec, &[&plain], block), limits);
            assert_eq!(texts(&got).len(), lines.len(), "{codec}");
            assert!(got.iter().map(|l| &l.bytes).eq(&lines), "{codec}");
            assert!(stats.is_complete(), "{codec}: {stats:?}");
            assert_eq!(stats.parts[0].codec, codec);
            assert_eq!(stats.decoded_bytes(), plain.len() as u64, "{codec}");
            assert_eq!(stats.lines(), lines.len() as u64, "{codec}");
            assert!(!stats.parts[0].open_last_line);
        }
    }
}

#[test]
fn frames_and_streams_follow_each_other() {
    let lines = sample(300);
    let plain = joined(&lines);
    // Pieces end inside lines, as those of a writer that flushes by size do.
    let pieces: Vec<&[u8]> = plain.chunks(501).collect();
    for codec in ALL {
        let stored = encode(codec, &pieces, 200);
        let (got, stats) = read_bytes(&stored, small());
        assert!(got.iter().map(|l| &l.bytes).eq(&lines), "{codec}");
        assert!(stats.is_complete(), "{codec}: {stats:?}");
        assert_eq!(stats.stored_bytes(), stored.len() as u64, "{codec}");
    }
}

#[test]
fn skippable_zstd_frames_are_skipped() {
    let mut stored = vec![0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    stored.extend(encode(Codec::Zstd, &[b"{\"Event\":\"a\"}\n"], 1));
    stored.extend([0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]);
    stored.extend(encode(Codec::Zstd, &[b"{\"Event\":\"b\"}\n"], 1));
    let (got, stats) = read_bytes(&stored, Limits::default());
    assert_eq!(texts(&got), ["{\"Event\":\"a\"}", "{\"Event\":\"b\"}"]);
    assert!(stats.is_complete(), "{stats:?}");
}

#[test]
fn stored_blocks_and_empty_streams_are_read() {
    let noise: Vec<u8> = (0..200_u8).filter(|b| !b"\r\n".contains(b)).collect();
    let mut lz4 = lz4_block(&noise);
    assert_eq!(lz4[8] & 0xf0, 0x10, "stored");
    lz4.extend(encode(Codec::Lz4, &[b""], 1));
    lz4.extend(encode(Codec::Lz4, &[b"\nlast\n"], 1));
    let (got, stats) = read_bytes(&lz4, Limits::default());
    assert_eq!(got[0].bytes, noise);
    assert_eq!(got[1].bytes, b"last");
    assert!(stats.is_complete());

    let mut snappy = snappy_header();
    snappy.extend(encode(Codec::Snappy, &[b"", b"one\n", b""], 10));
    let (got, stats) = read_bytes(&snappy, Limits::default());
    assert_eq!(texts(&got), ["one"]);
    assert!(stats.is_complete(), "{stats:?}");

    let lzf = encode(Codec::Lzf, &[&noise, b"\nlast\n"], 1000);
    let (got, _) = read_bytes(&lzf, Limits::default());
    assert_eq!(texts(&got)[1], "last");
}

#[test]
fn parts_of_different_codecs_are_one_log() {
    let lines = sample(120);
    for threads in [1, 3] {
        let part =
            |(lines, codec): (&[Vec<u8>], Codec)| Part::bytes(codec.to_string(), encode(codec, &[&joined(lines)], 300));
        let parts = lines.chunks(20).zip(ALL).map(part).collect();
        let (got, stats) = read(parts, &options(threads, small()));
        assert!(got.iter().map(|l| &l.bytes).eq(&lines));
        assert!(stats.parts.iter().all(|p| p.lines == 20 && p.name == p.codec.to_string()));
    }
}
