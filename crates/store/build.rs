//! Gives the crate a digest of the model's source, so that a file written with other types is
//! never taken for one of today's: the binary form has no names that would tell them apart.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Asked for when it runs: the checkout may have moved since the script was compiled.
    let model = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../model/src");
    println!("cargo::rerun-if-changed={}", model.display());
    println!("cargo::rerun-if-changed=migrations");
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = fs::read_dir(&model)?.map(|e| Ok(e?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    files.sort();
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        for line in code(&fs::read_to_string(file)?) {
            digest = line.bytes().chain([b'\n']).fold(digest, fnv);
        }
    }
    println!("cargo::rustc-env=MODEL_DIGEST={digest:016x}");
    Ok(())
}

/// Lines without comments and tests: these change nothing of what is written.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("#[cfg(test)]"));
    lines.filter(|line| !line.is_empty() && !line.starts_with("//"))
}

fn fnv(digest: u64, byte: u8) -> u64 {
    (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
}
