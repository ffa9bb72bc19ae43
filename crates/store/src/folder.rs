//! The data directory: made for one user, used by one process.

use crate::Error;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::path::Path;

/// Makes a folder that only its user may enter; one that is there stays as it is.
pub fn create(dir: &Path) -> Result<(), Error> {
    if dir.is_dir() {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(|error| Error::file("making the folder", dir, error))
}

/// Takes the directory for this process until the file is dropped.
pub fn lock(dir: &Path) -> Result<File, Error> {
    let path = dir.join("lock");
    let file = private().create(true).truncate(false).open(&path);
    let file = file.map_err(|error| Error::file("opening", &path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::InUse { dir: dir.to_owned() }),
        Err(TryLockError::Error(error)) => Err(Error::file("locking", &path, error)),
    }
}

/// Waits until no other process holds this file, and holds it until it is dropped.
pub fn wait_for(path: &Path) -> Result<File, Error> {
    let file = private().create(true).truncate(false).open(path);
    let file = file.map_err(|error| Error::file("opening", path, error))?;
    file.lock().map_err(|error| Error::file("locking", path, error))?;
    Ok(file)
}

/// Options for a file that only its user may read and write.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
