//! Output of an attempt, read from its files; neither engine nor shim is needed for it.
//!
//! A place in the output is its offset in the whole stream after redaction, whether or not all of
//! it is still there. The file `stdout` holds the first MiB, `stdout.<offset>` what begins at that
//! offset; between them lies what was left out. `cat stdout stdout.*` shows it all in order, with
//! the marker line in its place.

use super::files::about;
use super::output::{file_name, marker};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Which output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// Name of its first file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// A piece of output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Bytes that are not kept between the offset that was asked for and `bytes`.
    pub left_out_bytes: u64,
    /// What is there; empty: nothing more has come so far.
    pub bytes: Vec<u8>,
    /// Where to read on.
    pub next: u64,
}

impl Chunk {
    /// The line that tells people what is missing before `bytes`.
    #[must_use]
    pub fn marker(&self) -> Option<String> {
        let begin = self.next - self.bytes.len() as u64 - self.left_out_bytes;
        (self.left_out_bytes > 0).then(|| marker(self.left_out_bytes, begin))
    }
}

/// Reads up to so many bytes from an offset on. An attempt that has not started has no output. An
/// offset behind the end is taken for the end.
///
/// # Errors
/// The attempt folder cannot be read.
pub fn read(dir: &Path, stream: Stream, offset: u64, most_bytes: usize) -> io::Result<Chunk> {
    let read = || {
        // A file may be dropped between the look and the reading; then a later one is there.
        for _ in 0..8 {
            match read_once(dir, stream, offset, most_bytes) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                done => return done,
            }
        }
        Ok(Chunk { next: offset, ..Chunk::default() })
    };
    read().map_err(|e| {
        about(&e, format!("`{}` cannot be read", dir.join(stream.name()).display()), "check the rights of the folder")
    })
}

fn read_once(dir: &Path, stream: Stream, offset: u64, most_bytes: usize) -> io::Result<Chunk> {
    let begins = begins(dir, stream)?;
    let mut end = 0;
    for begin in begins {
        let file = File::open(dir.join(file_name(stream.name(), begin)))?;
        let file_end = begin + file.metadata()?.len();
        if offset < file_end {
            let from = offset.max(begin);
            let room = usize::try_from(file_end - from).unwrap_or(usize::MAX).min(most_bytes);
            let bytes = read_at(&file, from - begin, room)?;
            return Ok(Chunk { left_out_bytes: from - offset, next: from + bytes.len() as u64, bytes });
        }
        end = file_end;
    }
    Ok(Chunk { next: end.min(offset), ..Chunk::default() })
}

/// Where the files of a stream begin, in order.
fn begins(dir: &Path, stream: Stream) -> io::Result<Vec<u64>> {
    let mut begins = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(stream.name()));
        begins.extend(match rest {
            Some("") => Some(0),
            Some(rest) => rest.strip_prefix('.').and_then(|offset| offset.parse().ok()),
            None => None,
        });
    }
    begins.sort_unstable();
    Ok(begins)
}

fn read_at(file: &File, from: u64, most_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most_bytes];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], from + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
