//! Whole texts.

use super::encode::encode;
use read::source::{Codec, LooksLike, Part, probe, read_text};

#[test]
fn texts_of_every_encoding() {
    let utf16 = |units: &mut dyn Iterator<Item = [u8; 2]>| units.flatten().collect::<Vec<u8>>();
    let little = utf16(&mut "\u{feff}plán 🚕\r\n".encode_utf16().map(u16::to_le_bytes));
    let big = utf16(&mut "\u{feff}plán 🚕\r\n".encode_utf16().map(u16::to_be_bytes));
    for (bytes, expected) in [
        ("plán 🚕".as_bytes(), "plán 🚕"),
        (b"\xef\xbb\xbfplan", "plan"),
        (b"pl\xffan", "pl\u{fffd}an"),
        (&little, "plán 🚕\r\n"),
        (&big, "plán 🚕\r\n"),
        (&encode(Codec::Gzip, &[b"plan"], 10), "plan"),
        (b"", ""),
    ] {
        let mut part = Part::bytes("text", bytes);
        let looks = probe(&mut part).unwrap();
        if !bytes.is_empty() && !bytes.contains(&0xff) | (looks.first_line == "plán 🚕") {
            assert_eq!(looks.looks_like, LooksLike::Text, "{expected}");
        }
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
