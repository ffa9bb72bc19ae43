//! What a part looks like.

use super::encode::{ALL, encode};
use super::{joined, options, read, sample, small};
use read::source::{Codec, LooksLike, Part, is_event_line, probe};
use std::io::Cursor;

#[test]
fn looks() {
    let cases: [(&[u8], LooksLike); 14] = [
        (b"", LooksLike::Empty),
        (b"\n \n", LooksLike::Empty),
        (b"{\"Event\":\"SparkListenerLogStart\"}\n", LooksLike::EventLog),
        (b"\n\n{ \"Event\" : \"SparkListenerLogStart\"}", LooksLike::EventLog),
        (b"\xef\xbb\xbf{\"Event\":\"A\"}\n", LooksLike::EventLog),
        (b"rubbish\n{\"Timestamp\":1,\"Event\":\"A\"}\n", LooksLike::EventLog),
        (b"{\"events\":[]}\n", LooksLike::Text),
        (b"== Physical Plan ==\n*(1) Project\n", LooksLike::Text),
        ("žluťoučký".as_bytes(), LooksLike::Text),
        (b"\x00\x01\x02", LooksLike::Binary),
        (b"PAR1\x15\x00", LooksLike::Unsupported("parquet")),
        (b"PK\x03\x04....", LooksLike::Zip),
        (b"\x28\xb5\x2f\xfd\xff\xff", LooksLike::Damaged),
        (b"LZ4Block", LooksLike::Damaged),
    ];
    for (bytes, expected) in cases {
        let found = probe(&mut Part::bytes("x", bytes)).unwrap();
        assert_eq!(found.looks_like, expected, "{bytes:?}");
    }
}

#[test]
fn what_is_packed_twice_is_named() {
    let inner = encode(Codec::Zstd, &[b"{\"Event\":\"A\"}\n"], 100);
    let mut tar = vec![b'x'; 257];
    tar.extend(b"ustar\0\0\0");
    for (content, expected) in [
        (&inner[..], "compressed twice"),
        (b"PK\x03\x04", "zip inside a compressed file"),
        (&tar, "tar"),
        (b"BZh91AY&SY", "bzip2"),
    ] {
        let found = probe(&mut Part::bytes("x", encode(Codec::Gzip, &[content], 100))).unwrap();
        assert_eq!(found.looks_like, LooksLike::Unsupported(expected));
    }
}

#[test]
fn event_lines() {
    for (line, expected) in [
        ("{\"Event\":\"A\"}", true),
        ("  {\t\"Event\"\t:\t\"A\"}", true),
        ("{\"a\":{\"Event\":1},\"Event\":\"A\"}", true),
        ("{\"Event\":{}}", false),
        ("[\"Event\":\"A\"]", false),
        ("\"Event\":\"A\"", false),
    ] {
        assert_eq!(is_event_line(line.as_bytes()), expected, "{line}");
    }
}

#[test]
fn a_probed_part_is_read_from_its_start() {
    let lines = sample(3000);
    for codec in ALL {
        let stored = encode(codec, &[&joined(&lines)], 30_000);
        let again = stored.clone();
        let once = Part::once("-", None, || Ok(Box::new(Cursor::new(stored))));
        for mut part in [once, Part::bytes("file", again)] {
            for _ in 0..2 {
                let found = probe(&mut part).unwrap();
                assert_eq!((found.codec, found.looks_like), (codec, LooksLike::EventLog));
                assert!(found.first_line.starts_with("{\"Event\":\"SparkListenerTaskEnd\""));
            }
            let (got, stats) = read(vec![part], &options(1, small()));
            assert!(got.iter().map(|l| &l.bytes).eq(&lines), "{codec}");
            assert!(stats.is_complete());
        }
    }
}

#[test]
fn a_block_larger_than_the_first_look() {
    // Digits halve at best, so the block is larger than the first bytes looked at.
    let mut state = 1_u64;
    let mut noise = String::from("{\"Event\":\"A\",\"x\":\"");
    while noise.len() < 400_000 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        noise += &state.to_string();
    }
    noise += "\"}\n";
    let stored = encode(Codec::Lz4, &[noise.as_bytes()], 1 << 20);
    assert!(stored.len() > 100_000);
    let found = probe(&mut Part::bytes("big block", stored)).unwrap();
    assert_eq!(found.looks_like, LooksLike::EventLog);
}
