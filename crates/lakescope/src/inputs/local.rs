//! Files, folders and standard input.

use super::{Findings, Place, archive, in_place, named, single};
use anyhow::{Context, Result, bail};
use read::source::{Entry, LooksLike, Part, probe};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folders in folders that are looked into.
const MAX_DEPTH: usize = 8;
/// First bytes of a zip archive.
const MAGIC: &[u8] = b"PK\x03\x04";
/// Files of a folder that are looked at.
const MAX_FILES: usize = 200_000;

pub struct Folder(pub PathBuf);

impl Place for Folder {
    fn name(&self, path: &str) -> String {
        self.0.join(path).display().to_string()
    }

    fn part(&self, path: &str, size: Option<u64>) -> Part {
        let file = self.0.join(path);
        Part::new(self.name(path), size, move || Ok(Box::new(File::open(&file)?)))
    }

    fn seekable(&self, path: &str, _size: Option<u64>) -> Result<File> {
        let file = self.0.join(path);
        File::open(&file).with_context(|| format!("cannot read {}", file.display()))
    }
}

pub fn find(path: &Path, as_text: bool) -> Result<Findings> {
    if path.as_os_str().is_empty() {
        bail!("cannot read an input without a name: give a file, a folder, an address, or - for standard input");
    }
    let about = match std::fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("cannot read {}: there is no such file or folder{}", path.display(), nearest(path))
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    if about.is_dir() {
        return folder(path);
    }
    let (parent, file) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
    let Some(file) = file.to_str() else { return odd_name(path, about.len(), as_text) };
    single(&Folder(parent.to_owned()), file, Some(about.len()), as_text)
}

/// The first folder above that is there, which tells where a path goes wrong.
fn nearest(path: &Path) -> String {
    let above = path.ancestors().skip(1).find(|p| !p.as_os_str().is_empty() && p.is_dir());
    above.map_or(String::new(), |folder| format!("; {} is there", folder.display()))
}

/// A file whose name is no Unicode: it has no text form, so it is opened by its bytes.
fn odd_name(path: &Path, size: u64, as_text: bool) -> Result<Findings> {
    let file = path.to_owned();
    let name = path.display().to_string();
    let mut part = Part::new(&name, Some(size), move || Ok(Box::new(File::open(&file)?)));
    let looked = probe(&mut part).with_context(|| format!("cannot read {name}"))?;
    named(name, part, &looked, as_text)
}

fn folder(path: &Path) -> Result<Findings> {
    let name = path.display();
    let mut listing = Vec::new();
    list(path, "", 0, &mut listing).with_context(|| format!("cannot list {name}"))?;
    listing.sort_by(|a, b| a.path.cmp(&b.path));
    let mut all = in_place(&Folder(path.to_owned()), &listing);
    if listing.len() >= MAX_FILES {
        let most = model::Count(MAX_FILES as u64);
        all.warnings.push(format!("only {most} files in {name} are looked at; name a folder further down"));
    }
    if all.found.is_empty() {
        match (listing.len(), all.skipped.first()) {
            (0, _) | (_, None) => bail!("no event log in {name}: the folder is empty"),
            (1, Some((first, why))) => bail!("no event log in {name}: its one file, {first}, {why}"),
            (n, Some((first, why))) => bail!("no event log in {name}: none of {n} files is one; {first} {why}"),
        }
    }
    Ok(all)
}

/// The files below a folder, by path; what cannot be entered is left out.
///
/// # Errors
/// When the folder itself cannot be listed.
#[cfg(feature = "serve")]
pub fn listing(folder: &Path) -> Result<Vec<Entry>> {
    let mut listing = Vec::new();
    list(folder, "", 0, &mut listing).with_context(|| format!("cannot list {}", folder.display()))?;
    listing.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(listing)
}

/// Lists files with their path below the folder. Links to folders are not followed: they may lead
/// in a circle.
fn list(folder: &Path, below: &str, depth: usize, listing: &mut Vec<Entry>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < MAX_DEPTH {
            // One folder that may not be entered does not spoil the others.
            let _ = list(&entry.path(), &path, depth + 1, listing);
        } else if let Ok(about) = std::fs::metadata(entry.path())
            && about.is_file()
        {
            listing.push(Entry { path, size: Some(about.len()) });
        }
        if listing.len() >= MAX_FILES {
            break;
        }
    }
    Ok(())
}

pub fn standard_input(as_text: bool) -> Result<Findings> {
    use std::io::IsTerminal;
    if io::stdin().is_terminal() {
        crate::output::remark("reading from the terminal; paste, then press Ctrl-D");
    }
    let mut head = Vec::new();
    io::stdin().take(MAGIC.len() as u64).read_to_end(&mut head).context("cannot read standard input")?;
    let mut stream = io::Cursor::new(head.clone()).chain(io::stdin());
    if head == MAGIC {
        // The table of contents of an archive is at its end.
        let mut file = tempfile::tempfile().context("cannot keep the archive from standard input")?;
        io::copy(&mut stream, &mut file).context("cannot keep the archive from standard input")?;
        return archive("standard input", file);
    }
    let mut part = Part::once("standard input", None, || Ok(Box::new(stream)));
    let looked = probe(&mut part).context("cannot read standard input")?;
    if looked.looks_like == LooksLike::Empty {
        bail!("standard input is empty; pipe a log into it or name a file");
    }
    named("standard input".to_owned(), part, &looked, as_text)
}

/// The path of a `file:` URL.
pub fn path_of_url(url: &str) -> Result<PathBuf> {
    let rest = url.strip_prefix("file://").unwrap_or(url);
    let path = match rest.find('/') {
        Some(0) => rest,
        Some(at) if &rest[..at] == "localhost" => &rest[at..],
        _ => bail!("cannot read {url}: write file:///absolute/path"),
    };
    Ok(PathBuf::from(decoded(path)))
}

/// Undoes `%20` and the like.
fn decoded(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%').then(|| path.get(at + 1..at + 3)).flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// One open file, read at several positions at once.
pub struct Shared {
    file: Arc<File>,
    at: u64,
}

impl Shared {
    pub fn new(file: Arc<File>) -> Self {
        Self { file, at: 0 }
    }
}

impl Read for Shared {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = read_at(&self.file, out, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

#[cfg(unix)]
fn read_at(file: &File, out: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, out, at)
}

#[cfg(windows)]
fn read_at(file: &File, out: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, out, at)
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.at = target.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_urls_become_paths() {
        assert_eq!(path_of_url("file:///a%20b/c").unwrap(), PathBuf::from("/a b/c"));
        assert_eq!(path_of_url("file://localhost/a").unwrap(), PathBuf::from("/a"));
        assert!(path_of_url("file://host/a").is_err());
    }
}
