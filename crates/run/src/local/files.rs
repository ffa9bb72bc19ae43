//! Small files that are there as a whole or not at all.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub(super) const LAUNCH: &str = "launch.json";
pub(super) const STARTED: &str = "started.json";
pub(super) const EXIT: &str = "exit.json";
pub(super) const NOT_RUN: &str = "not-run.json";
pub(super) const STOPPED: &str = "stopped.json";
pub(super) const CONTROL: &str = "control";

/// Room for `exit.json`, bytes; its message is cut so that it fits.
pub(super) const RESERVED_BYTES: u64 = 8 << 10;

/// An error of the same kind that says what it was about and what to do.
pub(super) fn about(error: &io::Error, what: impl Display, next: &str) -> io::Error {
    io::Error::new(error.kind(), Told { message: format!("{what}: {error}; {next}"), errno: errno(error) })
}

/// The number of the system call's error below the explanations.
pub(super) fn errno(error: &io::Error) -> Option<i32> {
    error.raw_os_error().or_else(|| error.get_ref()?.downcast_ref::<Told>()?.errno)
}

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Told {
    message: String,
    errno: Option<i32>,
}

/// The advice for a file that cannot be written.
pub(super) const MAKE_ROOM: &str = "free space there, or make the folder writable, then start the task again";

/// Writes, syncs, renames and syncs the folder: once this returns, the file outlives a power cut.
pub(super) fn write(dir: &Path, name: &str, value: &impl Serialize) -> io::Result<()> {
    write_file(dir, name, value).and_then(|()| sync_dir(dir)).map_err(|e| unwritten(&e, dir, name))
}

/// As [`write`], but the folder is left to a later sync.
pub(super) fn write_file(dir: &Path, name: &str, value: &impl Serialize) -> io::Result<()> {
    replace(dir, name, &serde_json::to_vec(value)?, File::sync_data)
}

/// A text for the program, which comes to the disk when it may.
pub(super) fn write_text(dir: &Path, name: &str, text: &str) -> io::Result<()> {
    replace(dir, name, text.as_bytes(), |_| Ok(()))
}

/// By a draft that no other process has: an engine that has just lost the lead, and does not know it
/// yet, may write the same.
fn replace(dir: &Path, name: &str, bytes: &[u8], sync: impl Fn(&File) -> io::Result<()>) -> io::Result<()> {
    let draft = draft(dir, &format!("{name}.{}", std::process::id()));
    let mut file = create(&draft)?;
    file.write_all(bytes)?;
    sync(&file)?;
    fs::rename(&draft, dir.join(name))
}

pub(super) fn unwritten(error: &io::Error, dir: &Path, name: &str) -> io::Error {
    about(error, format!("`{}` cannot be written", dir.join(name).display()), MAKE_ROOM)
}

/// A file of this user alone.
pub(super) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn draft(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.tmp"))
}

pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// `None`: there is no such file.
///
/// # Errors
/// The file cannot be read, or is not what it should be.
pub(super) fn read<T: DeserializeOwned>(dir: &Path, name: &str) -> io::Result<Option<T>> {
    let path = dir.join(name);
    let unread = |error: &io::Error| {
        about(error, format!("`{}` cannot be read", path.display()), "check the disk and the rights of the folder")
    };
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| unread(&e.into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unread(&error)),
    }
}

/// A file whose room on the disk was taken beforehand, so that a disk that has run full since does
/// not lose the result.
pub(super) struct Reserved {
    file: File,
    dir: PathBuf,
    name: &'static str,
}

impl Reserved {
    pub(super) fn new(dir: &Path, name: &'static str) -> io::Result<Self> {
        let reserve = || {
            let file = create(&draft(dir, name))?;
            match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, RESERVED_BYTES) {
                // A file system that cannot reserve has to do without.
                Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(file),
                Err(error) => Err(error.into()),
            }
        };
        let file = reserve().map_err(|e: io::Error| unwritten(&e, dir, name))?;
        Ok(Self { file, dir: dir.to_owned(), name })
    }

    pub(super) fn fill(&self, value: &impl Serialize) -> io::Result<()> {
        let bytes = serde_json::to_vec(value)?;
        self.file.write_all_at(&bytes, 0)?;
        self.file.set_len(bytes.len() as u64)?;
        self.file.sync_data()?;
        fs::rename(draft(&self.dir, self.name), self.dir.join(self.name))?;
        sync_dir(&self.dir)
    }
}
