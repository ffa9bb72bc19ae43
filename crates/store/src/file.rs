//! An application as one file: written whole or not at all, read whole or not at all.
//!
//! ```text
//! offset bytes what (integers little-endian)
//!      0     8 "lakeapp\n"
//!      8     4 version of this form
//!     12     4 0
//!     16    32 identity: SHA-256 of the log's key, its reader and the model's source
//!     48     8 length of the body in this file
//!     56     8 length of the body when decompressed
//!     64     8 XXH64 of the body in this file
//!     72     8 XXH64 of the bytes before this one
//!     80       body: an LZ4 block of postcard's form, first the list of texts, then the report,
//!             then the application
//! ```

use crate::Kept;
use crate::folder;
use model::{Application, Text, read_texts, write_texts};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use twox_hash::XxHash64;

const MAGIC: &[u8; 8] = b"lakeapp\n";
const VERSION: u32 = 2;
const HEADER: usize = 80;
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

struct Header {
    stored: u64,
    raw: u64,
    checksum: u64,
}

/// An application and its report as the bytes of their file.
pub fn encode(app: &Application, report: &str, identity: &Identity) -> Result<Vec<u8>, postcard::Error> {
    let (app, texts) = write_texts(|| postcard::to_allocvec(app));
    let mut body = postcard::to_allocvec(&(texts, report))?;
    body.append(&mut app?);
    let stored = lz4_flex::block::compress(&body);
    let mut bytes = Vec::with_capacity(HEADER + stored.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(identity);
    for number in [stored.len() as u64, body.len() as u64, checksum(&stored)] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
    bytes.extend_from_slice(&stored);
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
    let Some(header) = Header::of(&bytes, identity).filter(|header| header.stored == len - HEADER as u64) else {
        return Ok(None);
    };
    // The length is that of the file, so this memory is not asked for by what stands in it.
    let mut body = Vec::with_capacity(header.stored as usize);
    file.take(header.stored).read_to_end(&mut body)?;
    let whole = body.len() as u64 == header.stored && checksum(&body) == header.checksum;
    Ok(whole.then_some((header, body)))
}

impl Header {
    fn of(bytes: &[u8; HEADER], identity: &Identity) -> Option<Self> {
        let (checked, sum) = bytes.split_last_chunk::<8>()?;
        let wanted: [&[u8]; 4] = [MAGIC, &VERSION.to_le_bytes(), &[0; 4], identity];
        let (kind, numbers) = checked.split_at_checked(48)?;
        let is_meant = kind == wanted.concat() && checksum(checked) == u64::from_le_bytes(*sum);
        let &[stored, raw, checksum] = numbers.as_chunks::<8>().0 else { return None };
        let [stored, raw, checksum] = [stored, raw, checksum].map(u64::from_le_bytes);
        (is_meant && raw <= stored.saturating_mul(LARGEST_RATIO)).then_some(Self { stored, raw, checksum })
    }
}

fn decode(header: &Header, body: &[u8]) -> Option<Kept> {
    let raw = usize::try_from(header.raw).ok()?;
    let body = lz4_flex::block::decompress(body, raw).ok().filter(|body| body.len() == raw)?;
    let ((texts, report), app) = postcard::take_from_bytes::<(Vec<&str>, &str)>(&body).ok()?;
    let texts: Vec<Text> = texts.into_iter().map(Text::from).collect();
    let (app, rest) = read_texts(texts, || postcard::take_from_bytes::<Application>(app)).ok()?;
    rest.is_empty().then(|| Kept { app, report: report.to_owned() })
}
