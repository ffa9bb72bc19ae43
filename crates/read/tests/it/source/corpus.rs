//! Every real log gives exactly the lines that its manifest counts.

use super::{options, read};
use read::source::{Codec, Entry, Limits, LogKind, LooksLike, Part, group, probe};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The folder of shared test data, which a plain clone does not have.
fn shared(test: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = std::env::var_os("LAKESCOPE_SHARED").map(PathBuf::from);
    let found = named.or_else(|| ["../shared", "../../shared"].iter().map(|p| root.join(p)).find(|p| p.is_dir()));
    if found.is_none() {
        eprintln!("skipped {test}: no shared data (set LAKESCOPE_SHARED)");
    }
    found
}

fn file(path: &Path) -> Part {
    let path = path.to_owned();
    let size = fs::metadata(&path).ok().map(|m| m.len());
    Part::new(path.display().to_string(), size, move || Ok(Box::new(File::open(&path)?)))
}

fn listing(folder: &Path) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                todo.push(entry.path());
                continue;
            }
            let path = entry.path().strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            entries.push(Entry { path, size: Some(entry.metadata().unwrap().len()) });
        }
    }
    entries
}

fn lines_of(parts: Vec<Part>) -> (u64, u64) {
    let (_, stats) = read(parts, &options(2, Limits::default()));
    let damages = stats.parts.iter().map(|p| p.damage_count).sum();
    (stats.lines(), damages)
}

#[test]
fn manifest_logs() {
    let Some(shared) = shared("manifest_logs") else {
        return;
    };
    let folder = shared.join("data/eventlogs");
    let manifest = fs::read(folder.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let found = group(&listing(&folder));
    for log in manifest["logs"].as_array().unwrap() {
        let name = log["file"].as_str().unwrap();
        let files = found.logs.iter().find(|l| l.parts[0].starts_with(name)).expect(name);
        let mut parts: Vec<Part> = files.parts.iter().map(|p| file(&folder.join(p))).collect();
        assert!(parts.iter_mut().all(|p| probe(p).unwrap().looks_like == LooksLike::EventLog));
        let expected = log["counts"]["events"].as_u64().unwrap();
        assert_eq!(lines_of(parts), (expected, 0), "{name}");
        assert_eq!(files.in_progress, name.contains(".inprogress"), "{name}");
    }
}

#[test]
fn public_logs() {
    let Some(shared) = shared("public_logs") else {
        return;
    };
    let folder = shared.join("data/public-logs");
    let counts: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("counts.json")).unwrap()).unwrap();
    let found = group(&listing(&folder));
    let databricks = found.logs.iter().find(|l| l.kind == LogKind::Databricks).unwrap();
    assert_eq!(databricks.parts.len(), 2);
    let counts = counts.get("logs").unwrap_or(&counts).as_object().unwrap();
    let mut checked = 0;
    for (name, count) in counts {
        let Some(expected) = count.get("lines").and_then(|n| n.as_u64()) else {
            continue;
        };
        let log = found.logs.iter().find(|l| l.parts[0].starts_with(name)).expect(name);
        let parts = log.parts.iter().map(|p| file(&folder.join(p))).collect();
        assert_eq!(lines_of(parts), (expected, 0), "{name}");
        checked += 1;
    }
    assert!(checked > 10);
}

#[test]
fn the_five_codecs_of_spark() {
    let Some(shared) = shared("the_five_codecs_of_spark") else {
        return;
    };
    let folder = shared.join("data/eventlogs");
    for (name, codec) in [
        ("codec_none", Codec::Plain),
        ("codec_zstd.zstd", Codec::Zstd),
        ("codec_lz4.lz4", Codec::Lz4),
        ("codec_snappy.snappy", Codec::Snappy),
        ("codec_lzf.lzf", Codec::Lzf),
    ] {
        assert_eq!(probe(&mut file(&folder.join(name))).unwrap().codec, codec);
        // What the project's own encoder writes reads the same.
        let (lines, _) = read(vec![file(&folder.join(name))], &options(1, Limits::default()));
        let plain: Vec<Vec<u8>> = lines.into_iter().map(|l| l.bytes).collect();
        let stored = super::encode::encode(codec, &[&super::joined(&plain)], 32 << 10);
        let (again, _) = super::read_bytes(&stored, Limits::default());
        assert!(again.into_iter().map(|l| l.bytes).eq(plain));
    }
}
