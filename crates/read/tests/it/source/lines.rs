//! Line ends, long lines and bombs.

use super::encode::encode;
use super::{joined, options, read, read_bytes, sample, small, texts};
use read::source::{Codec, Limits, LongLine, Part, Stop};
use std::io::{self, Cursor, Read};

#[test]
fn line_ends_of_every_kind() {
    let cases: [(&[u8], &[&str], bool); 8] = [
        (b"", &[], false),
        (b"\n\n\r\n", &[], false),
        (b"a\nb\n", &["a", "b"], false),
        (b"a\r\nb\r\n", &["a", "b"], false),
        (b"a\nb", &["a", "b"], true),
        (b"\xef\xbb\xbfa\n\nb\n", &["a", "b"], false),
        (b"\xef\xbb\xbf", &[], false),
        (b"a\n\xef\xbb\xbfb\n", &["a", "\u{feff}b"], false),
    ];
    for (bytes, expected, open) in cases {
        let (got, stats) = read_bytes(bytes, Limits::default());
        assert_eq!(texts(&got), expected, "{bytes:?}");
        assert!(stats.parts.iter().all(|p| p.open_last_line == open), "{bytes:?}");
        assert_eq!(got.last().is_some_and(|l| l.maybe_cut), open, "{bytes:?}");
    }
}

/// Gives one byte a call.
struct Slow(Cursor<Vec<u8>>);

impl Read for Slow {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = out.len().min(1);
        self.0.read(&mut out[..len])
    }
}

#[test]
fn a_stream_that_comes_byte_by_byte() {
    let lines = sample(50);
    for codec in super::encode::ALL {
        let mut plain = b"\xef\xbb\xbf".to_vec();
        plain.extend(joined(&lines));
        let stored = encode(codec, &[&plain], 100);
        let part = Part::once("slow", None, || Ok(Box::new(Slow(Cursor::new(stored)))));
        let (got, stats) = read(vec![part], &options(1, small()));
        assert!(got.iter().map(|l| &l.bytes).eq(&lines), "{codec}");
        assert!(stats.is_complete());
    }
}

/// `{"Event":"aaaa…"}` of `bytes` bytes, between two short lines.
fn with_long_line(bytes: u64) -> Part {
    Part::new("long", None, move || {
        let fill = bytes - "{\"Event\":\"\"}".len() as u64;
        let long =
            Cursor::new("first\n{\"Event\":\"").chain(io::repeat(b'a').take(fill)).chain(Cursor::new("\"}\nlast\n"));
        Ok(Box::new(long))
    })
}

#[test]
fn a_line_of_200_mb_is_read() {
    let bytes = 200_000_000;
    let (got, stats) = read(vec![with_long_line(bytes)], &options(2, Limits::default()));
    let lengths: Vec<usize> = got.iter().map(|l| l.bytes.len()).collect();
    assert_eq!(lengths, [5, bytes as usize, 4]);
    assert!(stats.is_complete());
}

#[test]
fn a_line_above_the_limit_is_left_out_and_counted() {
    let mib = 1 << 20;
    let memory = Limits { max_memory_bytes: 16 * mib, ..Limits::default() };
    let length = Limits { max_line_bytes: 4 * mib, ..Limits::default() };
    for (limits, line, read_it) in [
        (length.clone(), 4 * mib, true),
        (length.clone(), 4 * mib + 1, false),
        (length, 40 * mib, false),
        (memory.clone(), 40 * mib, false),
        (memory, 3 * mib, true),
    ] {
        let (got, stats) = read(vec![with_long_line(line)], &options(2, limits));
        let part = &stats.parts[0];
        if read_it {
            assert_eq!(got.len(), 3, "{line}");
            assert_eq!(part.long_line_count, 0);
        } else {
            assert_eq!(texts(&got), ["first", "last"], "{line}");
            assert_eq!(part.long_lines, [LongLine { at_byte: 6, bytes: line }]);
            assert!(!stats.is_complete());
        }
    }
}

#[test]
fn a_long_line_without_an_end_is_left_out() {
    let part = Part::new("endless", None, || Ok(Box::new(io::repeat(b'z').take(50 << 20))));
    let limits = Limits { max_line_bytes: 2 << 20, ..Limits::default() };
    let (got, stats) = read(vec![part], &options(1, limits));
    assert!(got.is_empty());
    assert_eq!(stats.parts[0].long_lines, [LongLine { at_byte: 0, bytes: 50 << 20 }]);
}

#[test]
fn places_count_left_out_lines() {
    let mut places = Vec::new();
    let limits = Limits { max_line_bytes: 2 << 20, ..Limits::default() };
    let parts = vec![with_long_line(10 << 20), Part::bytes("next", *b"one\n")];
    let stats = read::source::run(
        parts,
        &options(1, limits),
        |_| (),
        |place, ()| {
            places.push((place.part, place.first_line, place.at_byte));
            std::ops::ControlFlow::Continue(())
        },
    );
    assert_eq!(places, [(0, 0, 0), (0, 2, 6 + (10 << 20) + 1), (1, 0, 0)]);
    assert_eq!(stats.lines(), 3);
}

#[test]
fn a_bomb_stops_at_the_limit_and_keeps_what_came_before() {
    let first = encode(Codec::Zstd, &[b"{\"Event\":\"a\"}\n"], 1);
    let bomb = zstd::encode_all(io::repeat(b'\n').take(300 << 20), 1).unwrap();
    let stored = [first, bomb].concat();
    let limit_bytes = 64 << 20;
    let limits = Limits { max_decompressed_bytes: limit_bytes, ..Limits::default() };
    let parts = vec![Part::bytes("bomb", stored), Part::bytes("never", *b"x\n")];
    let (got, stats) = read(parts, &options(2, limits));
    assert_eq!(texts(&got), ["{\"Event\":\"a\"}"]);
    assert_eq!(stats.stopped, Some(Stop::TooManyBytes { limit_bytes }));
    assert!(stats.decoded_bytes() < limit_bytes + (2 << 20));
    assert_eq!(stats.parts.len(), 1);
}

#[test]
fn empty_lines_have_numbers() {
    let part = Part::bytes("log", *b"a\n\n\nb\n");
    let mut numbers = Vec::new();
    let parse = |batch: &read::source::Batch| batch.lines().map(|l| l.index).collect::<Vec<_>>();
    read::source::run(vec![part], &options(1, Limits::default()), parse, |_, n| {
        numbers.extend(n);
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(numbers, [0, 3]);
}
