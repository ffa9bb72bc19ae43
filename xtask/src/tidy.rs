//! What a reviewer would otherwise say (design rule 13): who may use whom, a page at the head of
//! each crate, no left-over marks, no large files, versions in one place.

use crate::root;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who may use whom among our crates. Development dependencies may also use `testkit`.
const MAY_USE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("read", &["model"]),
    ("diagnose", &["model"]),
    ("run", &["store"]),
    ("store", &["model"]),
    ("serve", &["model", "read", "diagnose", "run", "store"]),
    ("lakescope", &["model", "read", "diagnose", "run", "store", "serve"]),
    ("testkit", &["model", "read", "diagnose", "run"]),
    ("start", &[]),
    ("xtask", &["model", "read", "diagnose", "run", "store", "testkit", "start"]),
];

/// Crates that must never come into the small build, whatever is added to the big one.
const NEVER_SMALL: &[&str] = &[
    "tokio",
    "hyper",
    "reqwest",
    "axum",
    "datafusion",
    "arrow",
    "parquet",
    "deltalake",
    "delta_kernel",
    "sqlx",
    "object_store",
    "rusqlite",
];

/// Largest file that may be committed, bytes.
const LARGEST_FILE: u64 = 1 << 20;

pub fn run() -> Result<()> {
    let mut faults = Vec::new();
    dependency_table(&mut faults)?;
    small_build(&mut faults)?;
    for file in tracked_files()? {
        check_file(&file, &mut faults)?;
    }
    if faults.is_empty() {
        println!("tidy: nothing to say");
        return Ok(());
    }
    for fault in &faults {
        eprintln!("tidy: {fault}");
    }
    bail!("{} faults", faults.len())
}

fn dependency_table(faults: &mut Vec<String>) -> Result<()> {
    let metadata: Value = serde_json::from_slice(&cargo(&["metadata", "--no-deps", "--format-version", "1"])?)?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = MAY_USE.iter().find(|(n, _)| *n == name) else {
            faults.push(format!("crate {name} is missing in the dependency table of xtask/src/tidy.rs"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            let ours = MAY_USE.iter().any(|(n, _)| *n == used);
            let only_tests = dependency["kind"].as_str() == Some("dev");
            if ours && !only_tests && !allowed.contains(&used) {
                faults.push(format!("crate {name} may not use {used}"));
            }
            if !ours && dependency["req"].as_str() == Some("*") {
                faults.push(format!("crate {name} takes any version of {used}"));
            }
        }
        member_manifest(name, package, faults)?;
    }
    Ok(())
}

/// Members take versions from the workspace: each is written once.
fn member_manifest(name: &str, package: &Value, faults: &mut Vec<String>) -> Result<()> {
    let manifest = package["manifest_path"].as_str().unwrap_or_default();
    let text = std::fs::read_to_string(manifest)?;
    for line in text.lines().filter(|l| l.contains("version = \"") && !l.contains("workspace")) {
        faults.push(format!("crate {name} writes a version of its own: {line}"));
    }
    let lib = Path::new(manifest).with_file_name("src").join("lib.rs");
    if let Ok(lib) = std::fs::read_to_string(lib) {
        let page = lib.lines().take_while(|l| l.starts_with("//!")).count();
        if page < 8 && name != "testkit" {
            faults.push(format!("crate {name} opens without a page: what goes in, what comes out, an example"));
        }
    }
    Ok(())
}

fn small_build(faults: &mut Vec<String>) -> Result<()> {
    let arguments =
        ["tree", "-p", "lakescope", "--no-default-features", "-e", "normal", "--prefix", "none", "-f", "{p}"];
    let tree = String::from_utf8(cargo(&arguments)?)?;
    for line in tree.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        if NEVER_SMALL.contains(&name) {
            faults.push(format!("{name} came into the small build (--no-default-features)"));
        }
    }
    Ok(())
}

fn check_file(path: &Path, faults: &mut Vec<String>) -> Result<()> {
    let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let Ok(meta) = std::fs::metadata(path) else { return Ok(()) };
    if meta.len() > LARGEST_FILE {
        faults.push(format!("{shown} is larger than 1 MiB"));
    }
    if path.extension().is_none_or(|e| e != "rs") || shown.ends_with("tidy.rs") {
        return Ok(());
    }
    let text = std::fs::read_to_string(path)?;
    for (at, line) in text.lines().enumerate() {
        for mark in ["todo!(", "unimplemented!(", "FIXME", "XXX", "dbg!("] {
            if line.contains(mark) {
                faults.push(format!("{shown}:{}: {mark}", at + 1));
            }
        }
    }
    if !text.starts_with("//!") {
        faults.push(format!("{shown} does not say what it is for (//! at its head)"));
    }
    Ok(())
}

fn tracked_files() -> Result<Vec<PathBuf>> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().context("cannot run git")?;
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(names.split('\0').filter(|n| !n.is_empty()).map(|n| root().join(n)).collect())
}

fn cargo(arguments: &[&str]) -> Result<Vec<u8>> {
    let output = start::cargo().args(arguments).current_dir(root()).output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("cargo {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}
