//! Logs from files and folders.

use anyhow::{Context, Result};
use model::Application;
use read::source::{Entry, Part, group};
use std::path::Path;

/// Reads the log in a file or a folder.
///
/// # Errors
/// When it cannot be opened, or holds no event.
pub fn read_log(path: &Path) -> Result<Application> {
    let app = read::event_log(parts(path)?, &read::Options::default());
    app.with_context(|| format!("cannot read {}", path.display()))
}

/// The parts of the log in a file or a folder, in reading order.
///
/// # Errors
/// When the folder cannot be listed, or holds no log.
pub fn parts(path: &Path) -> Result<Vec<Part>> {
    let name = path.file_name().context("a path without a name")?.to_string_lossy().into_owned();
    let base = path.parent().unwrap_or(Path::new(".")).to_owned();
    let names = if path.is_dir() { parts_of_folder(path, &name)? } else { vec![name] };
    let part = |name: String| {
        let file = base.join(&name);
        Part::new(name, None, move || Ok(Box::new(std::fs::File::open(&file)?)))
    };
    Ok(names.into_iter().map(part).collect())
}

fn parts_of_folder(folder: &Path, name: &str) -> Result<Vec<String>> {
    let mut listing = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{name}/{}", entry.file_name().to_string_lossy());
        listing.push(Entry { path, size: entry.metadata().ok().map(|m| m.len()) });
    }
    let log = group(&listing).logs.into_iter().next();
    Ok(log.context("the folder holds no log")?.parts)
}

/// The decompressed bytes of the log in a file or a folder.
///
/// # Errors
/// When it cannot be opened.
pub fn plain(path: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let copy = |batch: &read::source::Batch| batch.bytes().to_vec();
    read::source::run(parts(path)?, &read::source::Options::default(), copy, |_, bytes| {
        text.extend(bytes);
        std::ops::ControlFlow::Continue(())
    });
    Ok(text)
}

/// Reads a log from memory.
///
/// # Errors
/// When it holds no event.
pub fn read_bytes(bytes: &[u8]) -> Result<Application> {
    Ok(read::event_log(vec![Part::bytes("log", bytes)], &read::Options::default())?)
}
