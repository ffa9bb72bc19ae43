//! An application as one file: written whole or not at all, read whole or not at all.
//!
//! ```text
//! offset bytes what (integers little-endian)
//!      0     8 "lakeapp\n"
//!      8     4 version of this form
//!     12     4 0
//!     16    32 identity: SHA-256 of the log's key, its reader and the model's source
//!     48     8 length of the columns in this file
//!     56     8 length of the columns when decompressed
//!     64     8 length of the rest in this file
//!     72     8 length of the rest when decompressed
//!     80     8 XXH64 of all that follows the header
//!     88     8 XXH64 of the bytes before this one
//!     96       columns of tasks: an LZ4 block of their bytes, which stay in memory as they are
//!              the rest: an LZ4 block of postcard's form, first the list of texts, then the
//!              report, then the application
//! ```

use crate::Kept;
use crate::folder;
use model::{Apart, Application, Text, read_shared, write_shared};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use twox_hash::XxHash64;

const MAGIC: &[u8; 8] = b"lakeapp\n";
const VERSION: u32 = 3;
const HEADER: usize = 96;
/// No byte of an LZ4 block stands for more than this many.
const LARGEST_RATIO: u64 = 255;

/// Tells an application's file from that of any other log, state of a log, reader or model.
pub type Identity = [u8; 32];

/// What a file holds.
#[derive(Debug)]
pub enum Found {
    Application(Box<Kept>),
    Missing,
    /// Cut, changed, of another version or another log: good for nothing.
    Damaged,
}

/// The folder with the files of applications.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    /// So that no two writers share a temporary file.
    written: AtomicU64,
}

impl Files {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, written: AtomicU64::new(0) }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Puts `bytes` in place of what had this name. Whatever happens to the process, that is there
    /// or the old file is.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let temporary = self.folder.join(format!("{name}.{number}.tmp"));
        let written = write_new(&temporary, bytes).and_then(|()| fs::rename(&temporary, self.path(name)));
        if written.is_err() {
            // Nothing to add to the first error; what cannot be removed goes at the next opening.
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    pub fn read(&self, name: &str, identity: &Identity) -> io::Result<Found> {
        let mut file = match File::open(self.path(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Missing),
            Err(error) => return Err(error),
        };
        let Some((header, body)) = read_checked(&mut file, identity)? else { return Ok(Found::Damaged) };
        Ok(decode(&header, &body).map_or(Found::Damaged, |kept| Found::Application(Box::new(kept))))
    }

    /// Removes a file; one that is not there is no error.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Names and sizes of the files in the folder, other people's left out.
    pub fn list(&self) -> io::Result<Vec<(String, u64)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string()
                && is_ours(&name)
            {
                found.push((name, entry.metadata()?.len()));
            }
        }
        Ok(found)
    }
}

/// Name of the file of a log: 32 hexadecimal digits and an ending.
pub fn name(digest: &[u8]) -> String {
    let digits: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    digits + ENDING
}

const ENDING: &str = ".app";

fn is_ours(name: &str) -> bool {
    let (digits, ending) = name.split_at_checked(32).unwrap_or_default();
    let temporary = ending.ends_with(".tmp") && ending.starts_with(ENDING);
    digits.bytes().all(|b| b.is_ascii_hexdigit()) && (ending == ENDING || temporary)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Not forced to the disk: a file that a power cut leaves empty or cut is found by its sums, and
    // its log is read again.
    folder::private().create_new(true).open(path)?.write_all(bytes)
}

#[derive(Clone, Copy)]
struct Block {
    /// Bytes in the file.
    stored: u64,
    /// Bytes when decompressed.
    raw: u64,
}

struct Header {
    columns: Block,
    rest: Block,
    checksum: u64,
}

/// An application and its report as the bytes of their file.
pub fn encode(app: &Application, report: &str, identity: &Identity) -> Result<Vec<u8>, postcard::Error> {
    let (app, Apart { texts, columns }) = write_shared(|| postcard::to_allocvec(app));
    let mut rest = postcard::to_allocvec(&(texts, report))?;
    rest.append(&mut app?);
    let blocks = [columns, rest];
    let stored = blocks.each_ref().map(|block| lz4_flex::block::compress(block));
    let lengths = stored.iter().zip(&blocks).flat_map(|(stored, raw)| [stored.len() as u64, raw.len() as u64]);
    let lengths: Vec<u64> = lengths.collect();
    let body = stored.concat();
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(identity);
    for number in lengths.into_iter().chain([checksum(&body)]) {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

fn checksum(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}

/// Header and body of a file; `None` when they are not what was written for this identity.
fn read_checked(file: &mut File, identity: &Identity) -> io::Result<Option<(Header, Vec<u8>)>> {
    let len = file.metadata()?.len();
    let mut bytes = [0; HEADER];
    if len < HEADER as u64 {
        return Ok(None);
    }
    file.read_exact(&mut bytes)?;
    let Some(header) = Header::of(&bytes, identity) else { return Ok(None) };
    let stored = len - HEADER as u64;
    if header.columns.stored.checked_add(header.rest.stored) != Some(stored) {
        return Ok(None);
    }
    // The length is that of the file, so this memory is not asked for by what stands in it.
    let mut body = Vec::with_capacity(stored as usize);
    file.take(stored).read_to_end(&mut body)?;
    let whole = body.len() as u64 == stored && checksum(&body) == header.checksum;
    Ok(whole.then_some((header, body)))
}

impl Header {
    fn of(bytes: &[u8; HEADER], identity: &Identity) -> Option<Self> {
        let (checked, sum) = bytes.split_last_chunk::<8>()?;
        let wanted: [&[u8]; 4] = [MAGIC, &VERSION.to_le_bytes(), &[0; 4], identity];
        let (kind, numbers) = checked.split_at_checked(48)?;
        let is_meant = kind == wanted.concat() && checksum(checked) == u64::from_le_bytes(*sum);
        let numbers: Vec<u64> = numbers.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number)).collect();
        let &[columns_stored, columns_raw, stored, raw, checksum] = numbers.as_slice() else { return None };
        let columns = Block { stored: columns_stored, raw: columns_raw };
        let rest = Block { stored, raw };
        let may_be = [columns, rest].iter().all(|block| block.raw <= block.stored.saturating_mul(LARGEST_RATIO));
        (is_meant && may_be).then_some(Self { columns, rest, checksum })
    }
}

impl Block {
    fn decompress(self, stored: &[u8]) -> Option<Vec<u8>> {
        let raw = usize::try_from(self.raw).ok()?;
        lz4_flex::block::decompress(stored, raw).ok().filter(|bytes| bytes.len() == raw)
    }
}

fn decode(header: &Header, body: &[u8]) -> Option<Kept> {
    let (columns, rest) = body.split_at_checked(usize::try_from(header.columns.stored).ok()?)?;
    let (columns, rest) = (header.columns.decompress(columns)?, header.rest.decompress(rest)?);
    let ((texts, report), app) = postcard::take_from_bytes::<(Vec<&str>, &str)>(&rest).ok()?;
    let texts: Vec<Text> = texts.into_iter().map(Text::from).collect();
    let apart = Apart { texts, columns };
    let (app, rest) = read_shared(apart, || postcard::take_from_bytes::<Application>(app)).ok()?;
    rest.is_empty().then(|| Kept { app, report: report.to_owned() })
}
