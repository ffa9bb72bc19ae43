//! Folders that are made once and shared by all tasks that ask for the same, such as environments of
//! Python packages.
//!
//! Whoever uses one holds a lock on a file beside it, which the program inherits, so that none goes
//! while a program runs in it.

use super::files;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::IntoRawFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// In a folder that is whole.
const READY: &str = "ready";

/// Makes the folder by `make` if there is none; until this process ends, and the program that it
/// becomes, it stays. A folder that was left half made is made anew.
///
/// # Errors
/// Those of `make`, or the folder around it cannot be written.
pub(super) fn enter(folder: &Path, make: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    if let Some(around) = folder.parent() {
        fs::create_dir_all(around).map_err(|e| files::unwritten(&e, around, "a folder"))?;
    }
    let lock = lock_of(folder)?;
    loop {
        lock.lock_shared()?;
        if is_whole(folder) {
            break;
        }
        lock.unlock()?;
        lock.lock()?;
        // Another task may have made it meanwhile.
        if !is_whole(folder) {
            if folder.exists() {
                // Left by a task that was stopped meanwhile.
                fs::remove_dir_all(folder)?;
            }
            make(folder)?;
            files::create(&mark(folder))?;
        }
        lock.unlock()?;
    }
    File::open(mark(folder))?.set_modified(SystemTime::now())?;
    rustix::io::fcntl_setfd(&lock, rustix::io::FdFlags::empty())?;
    let _for_the_program = lock.into_raw_fd();
    Ok(())
}

/// Removes folders of such a folder that no task has used for so long, and none uses now; gives
/// their number.
///
/// # Errors
/// A folder cannot be listed or removed.
pub fn remove_unused(folders: &Path, unused: Duration) -> io::Result<usize> {
    let entries = match fs::read_dir(folders) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut removed = 0;
    for entry in entries {
        let folder = entry?.path();
        if !folder.is_dir() {
            continue;
        }
        let used = fs::metadata(mark(&folder)).or_else(|_| fs::metadata(&folder))?.modified()?;
        let lock = lock_of(&folder)?;
        if used.elapsed().is_ok_and(|ago| ago > unused) && lock.try_lock().is_ok() {
            // First what says that it is whole.
            let _ = fs::remove_file(mark(&folder));
            fs::remove_dir_all(&folder)?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn is_whole(folder: &Path) -> bool {
    folder.exists() && mark(folder).exists()
}

/// Beside the folder, which may be somebody's repository.
fn mark(folder: &Path) -> std::path::PathBuf {
    folder.with_extension(READY)
}

/// The file stays when the folder goes: a lock on a file that was replaced would hold nobody up.
fn lock_of(folder: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).open(folder.with_extension("lock"))
}
