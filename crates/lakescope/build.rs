//! A digest of what reads and judges logs: what an earlier build made of a log is not taken for
//! what this one would.

use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    // Asked for when it runs: the checkout may have moved since the script was compiled.
    let crates = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("..");
    let mut files = Vec::new();
    for name in ["model", "read", "diagnose"] {
        let folder = crates.join(name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        list(&folder, &mut files)?;
    }
    files.sort();
    let mut digest = DefaultHasher::new();
    for file in files {
        std::fs::read(file)?.hash(&mut digest);
    }
    println!("cargo::rustc-env=READER_DIGEST={:016x}", digest.finish());
    Ok(())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => list(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}
