//! Why something could not be kept or given back: what was being done to which object, what was
//! wrong, what to do next.

use crate::postgres;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why a call of the store failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process has the directory open.
    #[error(
        "the data directory {} is in use by another process; stop that process or name another data directory", .dir.display()
    )]
    InUse {
        /// The data directory.
        dir: PathBuf,
    },
    /// A newer program has changed the database.
    #[error(
        "{database} is of version {found}, newer than this program's {known}; use the newer program, or name another data directory or database"
    )]
    Newer {
        /// The database.
        database: String,
        /// Version of the database.
        found: i64,
        /// Latest version that this program knows.
        known: i64,
    },
    /// A file or folder could not be read or written.
    #[error("{doing} {}: {source}; {}", .path.display(), file_advice(.source))]
    File {
        /// What was being done.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The database did not do as asked.
    #[error("{doing} {object} in {database}: {source}; {}", database_advice(.database, .source))]
    Database {
        /// What was being done.
        doing: &'static str,
        /// To which object.
        object: String,
        /// The database: a file, or an address without its password.
        database: String,
        /// What it said.
        source: sqlx::Error,
    },
    /// An address that is none of a database.
    #[error("the address of the database is none: {source}; give it as postgresql://user:password@host:5432/name")]
    NoAddress {
        /// What is wrong with it.
        source: sqlx::Error,
    },
    /// Whoever wrote does not lead any more, see [`Lease`](crate::jobs::Lease).
    #[error("another server leads the jobs of {database} now; this one goes on behind it")]
    Deposed {
        /// The database.
        database: String,
    },
    /// The application cannot be put into bytes.
    #[error("encoding the application of {path}: {message}; report this with the log")]
    NotEncoded {
        /// Path of the log.
        path: String,
        /// What was wrong.
        message: String,
    },
    /// The system gave no random bytes for a secret.
    #[error("making a secret for the token {name}: {message}; try again")]
    NoRandomness {
        /// Name of the token.
        name: String,
        /// What the system said.
        message: String,
    },
    /// The work was stopped: the runtime is shutting down.
    #[error("{doing} {object} was stopped; try again after a restart")]
    Stopped {
        /// What was being done.
        doing: &'static str,
        /// To which object.
        object: String,
    },
}

impl Error {
    pub(crate) fn file(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File { doing, path: path.to_owned(), source }
    }

    pub(crate) fn database(doing: &'static str, object: &str, database: &str, source: sqlx::Error) -> Self {
        Self::Database { doing, object: object.to_owned(), database: database.to_owned(), source }
    }
}

fn file_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "free space on its disk, or lower --max-store"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => "let the user of this process read and write it",
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => "name another data directory",
        _ => "check the disk and try again",
    }
}

fn database_advice(database: &str, error: &sqlx::Error) -> &'static str {
    if database.starts_with(postgres::SCHEME) { postgres_advice(error) } else { sqlite_advice(error) }
}

fn postgres_advice(error: &sqlx::Error) -> &'static str {
    let Some(error) = error.as_database_error() else { return "check its address, and that the server runs" };
    match error.code().as_deref() {
        Some("28000" | "28P01") => "check the user and the password of its address",
        Some("3D000") => "make that database, or name another one",
        Some("42501") => "let its user make and change tables there",
        Some("53100") => "free space on the server's disk and try again",
        Some("53300") => "let the server take more connections (max_connections)",
        Some("57P01" | "57P02" | "57P03") => "it is being stopped or started; try again in a moment",
        _ => "look at the log of the database server and try again",
    }
}

fn sqlite_advice(error: &sqlx::Error) -> &'static str {
    const WRITE: u32 = 778;
    const SHARED_MEMORY_SIZE: u32 = 4_874;
    let code = error.as_database_error().and_then(|e| e.code()?.parse::<u32>().ok());
    // A file that may not become larger, and one that finds no room, fail with codes of their own.
    if matches!(code, Some(WRITE | SHARED_MEMORY_SIZE)) {
        return "free space on its disk and try again";
    }
    // The low byte of SQLite's extended result codes is the plain one.
    match code.map(|code| code & 0xff) {
        Some(13) => "free space on its disk and try again",
        Some(8 | 14) => "let the user of this process read and write it",
        Some(11 | 26) => "restore it from a backup, or move it away to begin with an empty one",
        Some(5 | 6) => "close the program that holds it and try again",
        _ => "check the disk and try again",
    }
}
