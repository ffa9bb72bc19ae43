//! Logs that people hand over, on their way to the disk.

use serve::Added;
use std::io::{Error, ErrorKind, Read, Write};
use std::path::Path;

/// How the names of files begin that have not come whole.
pub const PART: &str = ".part-";
const PIECE: usize = 64 << 10;

/// Removes what a process left that ended while a log came.
pub fn sweep(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PART)) {
        // What cannot be removed is no log, and in nobody's way.
        let _ = std::fs::remove_file(entry.path());
    }
}

/// Writes what comes and gives its bytes. That it breaks off is told to who sends it, and is no
/// failure of the disk.
pub fn receive(
    name: &str,
    content: &mut impl Read,
    into: &mut impl Write,
    failed: impl Fn(Error) -> Added,
) -> Result<u64, Added> {
    let mut piece = vec![0; PIECE];
    let mut bytes = 0;
    loop {
        let n = match content.read(&mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(n) => n,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Added::Refused(format!("{name} did not come whole: {error}"))),
        };
        into.write_all(&piece[..n]).map_err(&failed)?;
        bytes += n as u64;
    }
}
