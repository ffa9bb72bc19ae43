//! Whole texts.

use super::encode::encode;
use read::source::{Codec, LooksLike, Part, probe, read_text};

#[test]
fn texts_of_every_encoding() {
    let utf16 = |units: &mut dyn Iterator<Item = [u8; 2]>| units.flatten().collect::<Vec<u8>>();
    let little = utf16(&mut "\u{feff}plán 🚕\r\n".encode_utf16().map(u16::to_le_bytes));
    let big = utf16(&mut "\u{feff}plán 🚕\r\n".encode_utf16().map(u16::to_be_bytes));
    for (bytes, looks, expected) in [
        ("plán 🚕".as_bytes(), LooksLike::Text, "plán 🚕"),
        (b"\xef\xbb\xbfplan", LooksLike::Text, "plan"),
        (b"pl\xffan", LooksLike::Binary, "pl\u{fffd}an"),
        (&little, LooksLike::Text, "plán 🚕\r\n"),
        (&big, LooksLike::Text, "plán 🚕\r\n"),
        (&encode(Codec::Gzip, &[b"plan"], 10), LooksLike::Text, "plan"),
        (b"", LooksLike::Empty, ""),
    ] {
        let mut part = Part::bytes("text", bytes);
        assert_eq!(probe(&mut part).unwrap().looks_like, looks, "{expected}");
        let text = read_text(part, 1000).unwrap();
        assert_eq!(text.text, expected);
        assert!(!text.more && text.damages.is_empty());
    }
}

#[test]
fn long_texts_are_cut_and_damage_is_named() {
    let text = read_text(Part::bytes("text", *b"0123456789"), 4).unwrap();
    assert_eq!((&*text.text, text.more), ("0123", true));
    let text = read_text(Part::bytes("text", *b"0123456789"), 10).unwrap();
    assert_eq!((&*text.text, text.more), ("0123456789", false));

    let stored = encode(Codec::Lz4, &[b"first block, second block"], 13);
    let text = read_text(Part::bytes("text", stored[..40].to_vec()), 100).unwrap();
    assert_eq!(text.text, "first block, ");
    assert_eq!(text.damages.len(), 1);
}
