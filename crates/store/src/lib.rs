//! What outlives the process: applications that were read, jobs and their runs, access tokens and
//! the audit log, in one data directory. Jobs and their runs may be in a PostgreSQL database instead,
//! which several processes share.
//!
//! In: applications with the key of the log that they were read from, what was made of them, and
//! what lists show of them.
//! Out: the same, until the log changes; reading a large log takes seconds, loading what was kept
//! of it milliseconds. Rows (jobs and runs, tokens, the audit log) are in a database beside it.
//!
//! ```
//! use model::Application;
//! use std::sync::Arc;
//! use store::{Head, LogKey, Mark, Settings, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let dir = folder.path().join("data");
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let store = Store::open(&dir, Settings::default()).await?;
//! let mark = Mark { bytes: 4_096, modified_ms: 1_795_975_612_432, files: 1 };
//! let key = LogKey { path: "/logs/app-1".to_owned(), mark };
//! let head = Head { application_id: "app-1".to_owned(), attempt_id: None, json: "{}".to_owned() };
//! let app = Application { id: "app-1".into(), ..Application::default() };
//! store.put_application(&key, &head, Arc::new(app), "{}".to_owned()).await?;
//! assert_eq!(&*store.application(&key).await?.unwrap_or_default().app.id, "app-1");
//!
//! // The log has grown: what was kept of it is not given back.
//! let grown = LogKey { mark: Mark { bytes: 8_192, ..mark }, ..key };
//! assert!(store.application(&grown).await?.is_none());
//! # Ok::<(), store::Error>(())
//! # })?;
//! # Ok(())
//! # }
//! ```
//!
//! The things to know: [`Store`] with its settings, [`LogKey`], [`Head`], [`Kept`]; [`jobs::Jobs`];
//! [`Accounts`] with [`Principal`] and [`Entry`].
//!
//! | in the data directory | what it is |
//! | --- | --- |
//! | `lock` | held while a process has a [`Store`] open: two never share a directory |
//! | `lakescope.db` | SQLite: heads, jobs and runs, tokens, the audit log; all but heads are on the disk when a call returns |
//! | `lakescope.migrating` | held while the database is opened, so that its tables are made once |
//! | `applications/` | one file an application; may be deleted at any time |
//! | other folders | those of the program around it: logs that were dropped, attempts of tasks |
//!
//! An application's file that is cut, changed or of another version is as good as none: it is
//! removed and the log is read again. A process may be killed at any moment; the next one opens
//! what is there. The crate never gives back a part of an application, never reads a log, never
//! reads a clock (times come in as arguments, epoch milliseconds), never keeps a secret in clear,
//! and knows nothing of HTTP or of what is good or bad about an application. It is asynchronous:
//! call it inside a tokio runtime that keeps time, from one of its blocking threads by
//! `Handle::block_on`.

#![forbid(unsafe_code)]

mod applications;
mod audit;
mod database;
mod error;
mod file;
mod folder;
pub mod jobs;
mod postgres;
mod rows;
mod tokens;

pub use applications::{Head, Kept, Known, LogKey, Mark, Put};
pub use audit::{Audited, Entry};
pub use error::Error;
pub use tokens::{NewToken, Principal, Role, Token};

use sqlx::SqlitePool;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bounds, and who fills the store.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `store_max_bytes`: most that the files of applications may take together. The ones that
    /// were not used longest go first; heads stay.
    pub max_bytes: u64,
    /// Name and version of what reads logs. What another reader put in is not given back, so that
    /// a better one reads every log once more.
    pub reader: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_bytes: 10 << 30, reader: String::new() }
    }
}

/// An open data directory.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    settings: Settings,
    accounts: Accounts,
    /// Rows of logs can be made again from the logs: they do not wait for the disk.
    logs: SqlitePool,
    files: Arc<file::Files>,
    /// Held while files of applications come and go, so that what is removed is what was looked at.
    changing: tokio::sync::Mutex<applications::Total>,
    /// Let go last: fields are dropped in this order.
    _lock: File,
}

impl Store {
    /// Opens a data directory; makes it, for its user only, where there is none.
    ///
    /// # Errors
    /// When another process has it open, when its database is of a newer version, when it cannot
    /// be read or written.
    pub async fn open(dir: impl AsRef<Path>, settings: Settings) -> Result<Self, Error> {
        let dir = dir.as_ref().to_owned();
        folder::create(&dir)?;
        let lock = lock(&dir).await?;
        let applications = dir.join("applications");
        folder::create(&applications)?;
        let accounts = Accounts::open(&dir).await?;
        let logs = database::connect(&accounts.path, database::Durable::Soon).await?;
        let files = Arc::new(file::Files::new(applications));
        let changing = tokio::sync::Mutex::default();
        let store = Self { dir, settings, accounts, logs, files, changing, _lock: lock };
        store.tidy().await?;
        Ok(store)
    }

    /// Closes the database and lets other processes have the directory. A store that is dropped
    /// loses nothing, but may let go a little later.
    pub async fn close(self) {
        self.logs.close().await;
        self.accounts.database.close().await;
    }

    /// The data directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Jobs and runs of this directory.
    #[must_use]
    pub fn jobs(&self) -> jobs::Jobs {
        let accounts = &self.accounts;
        jobs::Jobs::of(rows::Rows::sqlite(accounts.database.clone(), &database::name(&accounts.path)))
    }

    /// Tokens and the audit log of this directory.
    #[must_use]
    pub fn accounts(&self) -> Accounts {
        self.accounts.clone()
    }
}

/// How long a lock may outlive its process, and how often it is looked at.
const LINGERING: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(20));

/// Takes the directory for this process. A process that was killed while it started a program has
/// left a copy of its lock there, which goes in a moment.
async fn lock(dir: &Path) -> Result<File, Error> {
    let begun = Instant::now();
    loop {
        match folder::lock(dir) {
            Err(Error::InUse { .. }) if begun.elapsed() < LINGERING.0 => tokio::time::sleep(LINGERING.1).await,
            done => return done,
        }
    }
}

/// Tokens and the audit log of a data directory. Several processes may have these open at once,
/// beside the one that has the whole [`Store`].
#[derive(Clone, Debug)]
pub struct Accounts {
    database: SqlitePool,
    /// Where the database is.
    path: PathBuf,
}

impl Accounts {
    /// Opens the tokens of a data directory; makes it, for its user only, where there is none.
    ///
    /// # Errors
    /// When its database is of a newer version, or cannot be read or written.
    pub async fn open(dir: impl AsRef<Path>) -> Result<Self, Error> {
        folder::create(dir.as_ref())?;
        let path = dir.as_ref().join(database::FILE);
        Ok(Self { database: database::open(&path).await?, path })
    }

    /// For `map_err`: what was being done to which object.
    fn failed<'a>(&'a self, doing: &'static str, object: &'a str) -> impl FnOnce(sqlx::Error) -> Error + 'a {
        move |source| Error::database(doing, object, &database::name(&self.path), source)
    }
}
