//! Zip archives as Spark's REST call `logs` sends them.

use super::encode::encode;
use super::{joined, options, read, sample, small};
use ::zip::write::SimpleFileOptions;
use ::zip::{CompressionMethod, ZipWriter};
use read::source::{Codec, LogKind, LooksLike, Part, ZipError, probe, zip_logs};
use std::io::{Cursor, Write};
use std::sync::Arc;

fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (i, (name, bytes)) in entries.iter().enumerate() {
        let methods = [CompressionMethod::Deflated, CompressionMethod::Stored];
        let options = SimpleFileOptions::default().compression_method(methods[i % 2]);
        if name.ends_with('/') {
            zip.add_directory(*name, options).unwrap();
        } else {
            zip.start_file(*name, options).unwrap();
            zip.write_all(bytes).unwrap();
        }
    }
    zip.finish().unwrap().into_inner()
}

fn open(bytes: Vec<u8>) -> impl Fn() -> std::io::Result<Cursor<Arc<[u8]>>> + Send + Sync {
    let bytes: Arc<[u8]> = bytes.into();
    move || Ok(Cursor::new(bytes.clone()))
}

#[test]
fn logs_of_every_kind_in_one_archive() {
    let lines = sample(60);
    let text: Vec<Vec<u8>> = lines.chunks(20).map(joined).collect();
    let zstd = encode(Codec::Zstd, &[&text[1]], 100);
    let bytes = archive(&[
        ("logs/", b""),
        ("logs/eventlog_v2_app-1/", b""),
        ("logs/eventlog_v2_app-1/appstatus_app-1", b""),
        ("logs/eventlog_v2_app-1/events_10_app-1", &text[2]),
        ("logs/eventlog_v2_app-1/events_9_app-1.zstd", &zstd),
        ("logs/eventlog_v2_app-1/events_8_app-1", &text[0]),
        ("logs/app-2_1", &text[0]),
        ("__MACOSX/logs/._app-2_1", b"x"),
        ("empty", b""),
    ]);
    assert_eq!(probe(&mut Part::bytes("z", bytes.clone())).unwrap().looks_like, LooksLike::Zip);
    let found = zip_logs(open(bytes)).unwrap();
    let names: Vec<_> = found.logs.iter().map(|(log, _)| (log.kind, &*log.name)).collect();
    assert_eq!(names, [(LogKind::Single, "app-2_1"), (LogKind::Rolling, "app-1")]);
    assert_eq!(found.ignored.len(), 2);
    for (log, mut parts) in found.logs {
        assert!(parts.iter_mut().all(|p| probe(p).unwrap().looks_like == LooksLike::EventLog));
        let (got, stats) = read(parts, &options(2, small()));
        let expected = if log.kind == LogKind::Single { &lines[..20] } else { &lines[..] };
        assert!(got.iter().map(|l| &l.bytes).eq(expected));
        assert!(stats.is_complete(), "{stats:?}");
    }
}

#[test]
fn a_cut_archive_and_a_damaged_entry_are_named() {
    let bytes = archive(&[("app-1", &joined(&sample(500)))]);
    let cut = bytes[..bytes.len() - 30].to_vec();
    assert!(matches!(zip_logs(open(cut)), Err(ZipError::Damaged(_))));

    let mut harmed = bytes;
    harmed[3000] ^= 0x55;
    let found = zip_logs(open(harmed)).unwrap();
    let (_, parts) = found.logs.into_iter().next().unwrap();
    let (_, stats) = read(parts, &options(1, small()));
    assert_eq!(stats.parts[0].damage_count, 1);
}
