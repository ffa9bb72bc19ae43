//! Logs inside a zip archive, as Spark's REST call `logs` and many a support ticket send them.

use super::group::{Entry, Grouped, Ignored, LogFiles, group};
use super::part::{ByteStream, Part};
use flate2::{Crc, read::DeflateDecoder};
use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use thiserror::Error;
use zip::{CompressionMethod, ZipArchive};

/// Entries that are looked at; an archive with more is no set of logs.
const MAX_ENTRIES: usize = 100_000;

/// An opened archive.
pub trait SeekableStream: Read + Seek + Send {}

impl<T: Read + Seek + Send> SeekableStream for T {}

/// The logs of an archive, with the parts to read them from.
#[derive(Debug, Default)]
pub struct ZipLogs {
    /// Each log and its parts, in reading order.
    pub logs: Vec<(LogFiles, Vec<Part>)>,
    /// Entries that belong to no log.
    pub ignored: Vec<(String, Ignored)>,
    /// Entries that cannot be read, with the reason.
    pub unreadable: Vec<(String, &'static str)>,
}

/// Why an archive cannot be read at all.
#[derive(Debug, Error)]
pub enum ZipError {
    /// The archive cannot be opened or read.
    #[error("the archive cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The table of contents, which is at the archive's end, is damaged or cut off.
    #[error("the archive's table of contents cannot be read: {0}")]
    Damaged(String),
    /// More entries than a set of logs has.
    #[error("the archive has {0} entries, more than {MAX_ENTRIES}")]
    TooManyEntries(usize),
}

/// Lists an archive and groups its entries into logs. `open` is called for the listing and once
/// more for every part that is read, so a file, a cached object or bytes in memory serve.
pub fn zip_logs<R: SeekableStream + 'static>(
    open: impl Fn() -> io::Result<R> + Send + Sync + 'static,
) -> Result<ZipLogs, ZipError> {
    let mut archive = ZipArchive::new(open()?).map_err(ZipError::from_zip)?;
    if archive.len() > MAX_ENTRIES {
        return Err(ZipError::TooManyEntries(archive.len()));
    }
    let mut zip_logs = ZipLogs::default();
    let mut places = HashMap::new();
    let mut listing = Vec::new();
    for index in 0..archive.len() {
        match place(&mut archive, index) {
            Ok((path, place)) => {
                listing.push(Entry { path: path.clone(), size: Some(place.raw_bytes) });
                places.insert(path, place);
            }
            Err(NoPlace::Folder) => {}
            Err(NoPlace::Unreadable(path, why)) => zip_logs.unreadable.push((path, why)),
        }
    }
    let Grouped { logs, ignored } = group(&listing);
    zip_logs.ignored = ignored;
    let open = Arc::new(move || open().map(|r| Box::new(r) as Box<dyn SeekableStream>));
    for log in logs {
        let parts = log.parts.iter().filter_map(|path| {
            let place = *places.get(path)?;
            let open = open.clone();
            Some(Part::new(path.clone(), Some(place.stored_bytes), move || place.read(open()?)))
        });
        let parts = parts.collect();
        zip_logs.logs.push((log, parts));
    }
    Ok(zip_logs)
}

impl ZipError {
    fn from_zip(error: zip::result::ZipError) -> ZipError {
        match error {
            zip::result::ZipError::Io(e) if e.kind() != io::ErrorKind::UnexpectedEof => ZipError::Io(e),
            other => ZipError::Damaged(format!("{other}; it is cut off or no zip archive")),
        }
    }
}

/// Where an entry's bytes are.
#[derive(Debug, Clone, Copy)]
struct EntryPlace {
    at_byte: u64,
    stored_bytes: u64,
    raw_bytes: u64,
    deflated: bool,
    crc: u32,
}

/// Why an entry has no place.
enum NoPlace {
    Folder,
    Unreadable(String, &'static str),
}

fn place<R: SeekableStream>(archive: &mut ZipArchive<R>, index: usize) -> Result<(String, EntryPlace), NoPlace> {
    let name = archive.name_for_index(index).unwrap_or_default().replace('\\', "/");
    let Ok(file) = archive.by_index_raw(index) else {
        return Err(NoPlace::Unreadable(name, "its header is damaged"));
    };
    if file.is_dir() {
        return Err(NoPlace::Folder);
    }
    if file.encrypted() {
        return Err(NoPlace::Unreadable(name, "it is encrypted"));
    }
    let deflated = match file.compression() {
        CompressionMethod::Stored => false,
        CompressionMethod::Deflated => true,
        _ => {
            return Err(NoPlace::Unreadable(name, "its compression method is not supported"));
        }
    };
    let Some(at_byte) = file.data_start() else {
        return Err(NoPlace::Unreadable(name, "its header is damaged"));
    };
    let (stored_bytes, raw_bytes, crc) = (file.compressed_size(), file.size(), file.crc32());
    drop(file);
    Ok((name, EntryPlace { at_byte, stored_bytes, raw_bytes, deflated, crc }))
}

impl EntryPlace {
    fn read(&self, mut archive: Box<dyn SeekableStream>) -> io::Result<ByteStream> {
        archive.seek(SeekFrom::Start(self.at_byte))?;
        let stored = archive.take(self.stored_bytes);
        let raw: ByteStream = match self.deflated {
            true => Box::new(DeflateDecoder::new(stored)),
            false => Box::new(stored),
        };
        Ok(Box::new(Checked { raw, crc: Crc::new(), expected: self.crc }))
    }
}

/// Compares the checksum at the end.
struct Checked {
    raw: ByteStream,
    crc: Crc,
    expected: u32,
}

impl Read for Checked {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.raw.read(out)?;
        self.crc.update(&out[..n]);
        if n == 0 && !out.is_empty() && self.crc.sum() != self.expected {
            return Err(io::Error::other("the checksum of the archive's entry does not match"));
        }
        Ok(n)
    }
}
