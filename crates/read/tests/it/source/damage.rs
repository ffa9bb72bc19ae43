//! Cut, overwritten and forged streams: what can be read is read, what cannot is named.

use super::encode::{ALL, encode, snappy_header};
use super::{Got, joined, options, read, read_bytes, sample, small, texts};
use proptest::prelude::*;
use read::source::{Codec, DamageKind, Limits, Part};
use std::io::{self, Cursor, Read};

/// Lines that are surely whole.
fn whole(got: &[Got]) -> Vec<&[u8]> {
    got.iter().filter(|l| !l.maybe_cut).map(|l| &l.bytes[..]).collect()
}

#[test]
fn a_cut_at_any_byte_leaves_a_prefix() {
    let lines = sample(40);
    let plain = joined(&lines);
    let pieces: Vec<&[u8]> = plain.chunks(900).collect();
    for codec in ALL {
        let stored = encode(codec, &pieces, 250);
        for len in 0..stored.len() {
            let (got, stats) = read_bytes(&stored[..len], small());
            let text: Vec<u8> = got.iter().flat_map(|l| [&l.bytes[..], b"\n"].concat()).collect();
            let text = text.strip_suffix(b"\n").unwrap_or(&text);
            // The first bytes of a stream's magic look like text.
            if len >= 8 {
                assert!(plain.starts_with(text), "{codec} cut at {len}");
            }
            assert!(stats.parts[0].damage_count <= 1, "{codec} cut at {len}: {stats:?}");
        }
    }
}

#[test]
fn a_cut_inside_a_frame_is_named() {
    let plain = joined(&sample(300));
    for codec in ALL.into_iter().filter(|&c| c != Codec::Plain) {
        let stored = encode(codec, &[&plain[..9000], &plain[9000..]], 3000);
        let (got, stats) = read_bytes(&stored[..stored.len() - 700], Limits::default());
        let damage = &stats.parts[0].damages[0];
        assert_eq!(damage.what, DamageKind::CutFrame, "{codec}");
        assert!(!damage.resumed);
        assert!(got.len() > 50, "{codec}: {}", got.len());
    }
}

#[test]
fn an_overwritten_place_costs_its_block_only() {
    let lines = sample(600);
    let plain = joined(&lines);
    let pieces: Vec<&[u8]> = plain.chunks(4000).collect();
    for codec in ALL.into_iter().filter(|&c| c != Codec::Plain) {
        let mut stored = encode(codec, &pieces, 2000);
        let mut middle = stored.len() / 2;
        if codec == Codec::Zstd {
            // Without a checksum, harm inside a block may decode to other text.
            let is_magic = |w: &[u8]| w == [0x28, 0xb5, 0x2f, 0xfd];
            middle += stored[middle..].windows(4).position(is_magic).unwrap();
        }
        stored[middle..middle + 40].fill(0xee);
        let (got, stats) = read_bytes(&stored, Limits::default());
        let part = &stats.parts[0];
        assert!(part.damage_count >= 1, "{codec}");
        assert!(part.damages[0].resumed, "{codec}: {:?}", part.damages);
        let known = got.iter().filter(|l| lines.contains(&l.bytes)).count();
        assert!(known + 80 > lines.len(), "{codec}: {known} of {}", lines.len());
        assert_eq!(got.last().unwrap().bytes, *lines.last().unwrap(), "{codec}");
    }
}

#[test]
fn lengths_that_lie_allocate_nothing_and_are_passed() {
    let huge = 0x7fff_ffff_u32;
    let mut lz4 = b"LZ4Block\x2f".to_vec();
    lz4.extend([huge.to_le_bytes(), huge.to_le_bytes(), [0; 4]].concat());
    let mut snappy = snappy_header();
    snappy.extend(huge.to_be_bytes());
    snappy.extend([0xff; 40]);
    let mut snappy_raw = snappy_header();
    snappy_raw.extend([0, 0, 0, 6, 0xff, 0xff, 0xff, 0xff, 7, 0]);
    let cases = [(Codec::Lz4, lz4), (Codec::Snappy, snappy), (Codec::Snappy, snappy_raw)];
    for (codec, mut stored) in cases {
        let good = b"{\"Event\":\"after the damage, long enough to be found again\"}\n".repeat(2);
        stored.extend(encode(codec, &[&good], 1000));
        let (got, stats) = read_bytes(&stored, Limits::default());
        let kind = &stats.parts[0].damages[0].what;
        assert!(matches!(kind, DamageKind::BlockTooLarge { .. }), "{codec}: {kind}");
        assert_eq!(got.len(), 2, "{codec}");
    }
}

#[test]
fn a_window_above_the_limit_is_refused() {
    // Magic, descriptor without flags, window exponent 31 of 41.
    let mut stored = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3, 1, 0, 0];
    stored.extend(encode(Codec::Zstd, &[b"good\n"], 1));
    let (got, stats) = read_bytes(&stored, Limits::default());
    assert_eq!(stats.parts[0].damages[0].what, DamageKind::WindowTooLarge);
    assert_eq!(texts(&got), ["good"]);
}

#[test]
fn a_search_among_forged_chunks_ends() {
    // Every seven bytes look like a chunk of 64 KiB that must be decoded to be refused.
    let mut lzf = encode(Codec::Lzf, &[b"first\n"], 100);
    lzf.extend(b"ZV\x01\xff\x00\xff\xff".repeat(200_000));
    let mut snappy = snappy_header();
    snappy.extend([0, 0, 0xff, 0, 0x80, 0x80, 4, 0xf0, 0xff].repeat(200_000));
    for stored in [lzf, snappy] {
        let (_, stats) = read_bytes(&stored, Limits::default());
        assert!(stats.parts[0].damage_count > 0);
        assert_eq!(stats.stored_bytes(), stored.len() as u64);
    }
}

#[test]
fn a_stream_of_nothing_but_damages_stays_small() {
    let stored = [0x28, 0xb5, 0x2f, 0xfd].repeat(500_000);
    let (got, stats) = read_bytes(&stored, Limits::default());
    assert!(got.is_empty());
    assert!(stats.parts[0].damage_count > 100_000);
    assert!(stats.parts[0].damages.len() <= 100);
}

#[test]
fn checksums_are_checked() {
    let plain = joined(&sample(30));
    let at_end = |codec, from_end: usize| {
        let mut stored: Vec<u8> = encode(codec, &[&plain], 60_000);
        let at = stored.len() - from_end;
        stored[at] ^= 1;
        stored
    };
    // The end mark of LZ4 is 21 bytes; its block's checksum is in the header before the block.
    let mut lz4 = encode(Codec::Lz4, &[&plain], 60_000);
    lz4[17] ^= 1;
    let zstd = {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.include_checksum(true).unwrap();
        io::copy(&mut &plain[..], &mut encoder).unwrap();
        let mut stored = encoder.finish().unwrap();
        *stored.last_mut().unwrap() ^= 1;
        stored
    };
    for stored in [lz4, zstd, at_end(Codec::Gzip, 8), at_end(Codec::Gzip, 1)] {
        let (_, stats) = read_bytes(&stored, Limits::default());
        assert_eq!(stats.parts[0].damages[0].what, DamageKind::BadChecksum);
    }
}

#[test]
fn rubbish_between_frames_is_passed() {
    for codec in ALL.into_iter().filter(|&c| c != Codec::Plain) {
        let lines = sample(100);
        let (a, b) = lines.split_at(50);
        let rubbish = [0xee; 5000];
        let stored =
            [&encode(codec, &[&joined(a)], 2000)[..], &rubbish, &encode(codec, &[&joined(b)], 2000), &[0; 300]]
                .concat();
        let (got, stats) = read_bytes(&stored, small());
        assert!(got.iter().map(|l| &l.bytes).eq(&lines), "{codec}");
        assert_eq!(stats.parts[0].damage_count, 2, "{codec} {:?}", stats.parts[0].damages);
        assert!(stats.parts[0].damages[0].skipped_bytes >= 4990, "{codec}");
    }
}

#[test]
fn a_failing_stream_keeps_what_came_before() {
    struct Fails;
    impl Read for Fails {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("disk on fire"))
        }
    }
    let plain = joined(&sample(100));
    for codec in ALL {
        let stored = encode(codec, &[&plain], 1000);
        let half = stored[..stored.len() / 2].to_vec();
        let part = Part::once("bad disk", None, || Ok(Box::new(Cursor::new(half).chain(Fails))));
        let (got, stats) = read(vec![part, Part::bytes("ok", *b"ok\n")], &options(1, small()));
        let what = &stats.parts[0].damages[0].what;
        assert_eq!(*what, DamageKind::ReadFailed { message: "disk on fire".into() }, "{codec}");
        assert_eq!(stats.parts[0].damage_count, 1, "{codec}");
        assert_eq!(got.last().unwrap().bytes, b"ok");
        // One block of gzip and zstd holds everything.
        assert!(got.len() > 10 || matches!(codec, Codec::Gzip | Codec::Zstd), "{codec}");
    }
}

#[test]
fn a_part_that_does_not_open_is_named_and_passed() {
    let denied = || Err(io::Error::from(io::ErrorKind::PermissionDenied));
    let parts = vec![Part::new("secret", None, denied), Part::bytes("ok", *b"ok\n")];
    let (got, stats) = read(parts, &options(2, small()));
    assert_eq!(texts(&got), ["ok"]);
    let not_opened = &stats.parts[0];
    assert_eq!(not_opened.name, "secret");
    assert!(matches!(not_opened.damages[0].what, DamageKind::NotOpened { .. }));
    assert_eq!(stats.parts[1].lines, 1);
}

/// What happens to a file.
#[derive(Debug, Clone)]
enum Harm {
    Flip(usize, u8),
    Cut(usize),
    Remove(usize, usize),
    Insert(usize, Vec<u8>),
}

fn harm() -> impl Strategy<Value = Harm> {
    let at = 0..1_000_000_usize;
    prop_oneof![
        4 => (at.clone(), 1..=255_u8).prop_map(|(at, x)| Harm::Flip(at, x)),
        1 => at.clone().prop_map(Harm::Cut),
        1 => (at.clone(), 1..500_usize).prop_map(|(at, n)| Harm::Remove(at, n)),
        1 => (at, prop::collection::vec(any::<u8>(), 1..50)).prop_map(|(at, b)| Harm::Insert(at, b)),
    ]
}

fn apply(stored: &mut Vec<u8>, harm: &Harm) {
    let within = |at: usize, len: usize| if len == 0 { 0 } else { at % len };
    let len = stored.len();
    match harm {
        Harm::Flip(at, x) if len > 0 => stored[within(*at, len)] ^= x,
        Harm::Flip(..) => {}
        Harm::Cut(at) => stored.truncate(within(*at, len)),
        Harm::Remove(at, n) => {
            let at = within(*at, len);
            stored.drain(at..(at + n).min(len));
        }
        Harm::Insert(at, bytes) => {
            let at = within(*at, len);
            stored.splice(at..at, bytes.iter().copied());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn harm_never_panics_and_checked_lines_are_true(
        codec in prop::sample::select(ALL.to_vec()),
        harms in prop::collection::vec(harm(), 1..4),
        piece in 300..5000_usize,
    ) {
        let lines = sample(150);
        let plain = joined(&lines);
        let pieces: Vec<&[u8]> = plain.chunks(piece).collect();
        let mut stored = encode(codec, &pieces, piece / 2 + 1);
        harms.iter().for_each(|h| apply(&mut stored, h));
        let (got, stats) = read_bytes(&stored, small());
        // The other codecs carry no checksum of a block, so a flipped byte may go unseen.
        if codec == Codec::Lz4 && stats.parts[0].codec == Codec::Lz4 {
            for line in whole(&got) {
                prop_assert!(lines.iter().any(|l| l == line));
            }
            prop_assert!(got.len() >= lines.len() || stats.parts[0].damage_count > 0
                || stats.parts[0].open_last_line || harms.iter().any(|h| !matches!(h, Harm::Flip(..))));
        }
        // Nothing may depend on how buffers happen to be filled.
        for limits in [small(), Limits::default()] {
            let (again, stats_again) = read(vec![Part::bytes("log", stored.clone())], &options(3, limits));
            prop_assert!(again == got);
            prop_assert_eq!(stats_again, stats.clone());
        }
    }

    #[test]
    fn noise_with_any_magic_never_panics(
        codec in prop::sample::select(ALL.to_vec()),
        noise in prop::collection::vec(any::<u8>(), 0..3000),
    ) {
        let mut stored = encode(codec, &[b"line\n"], 100);
        stored.extend(&noise);
        stored.extend(encode(codec, &[b"line\n"], 100));
        let (got, _) = read_bytes(&stored, small());
        prop_assert!(!got.is_empty());
    }
}
