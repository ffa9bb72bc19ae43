//! The SQLite database: opened, and brought to this program's version.

use crate::{Error, folder};
use sqlx::SqlitePool;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Its name in the data directory.
pub const FILE: &str = "lakescope.db";

/// How long a statement waits for another one to finish writing.
const BUSY: Duration = Duration::from_secs(10);

/// Forward only: a migration that was released is never changed.
static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// The disk. What was told to be done is done, whatever happens to the machine: a token that was
    /// revoked stays so, and so does its note in the audit log.
    AtOnce,
    /// Nothing: a machine that loses power may lose the last commits, whole ones. For what can be
    /// made again.
    Soon,
}

/// Opens the database, made and migrated where it has to be.
pub async fn open(path: &Path) -> Result<SqlitePool, Error> {
    // Made here and not by SQLite, so that nobody else may read it; its journal takes over the mode.
    let made = folder::private().create(true).truncate(false).open(path);
    made.map_err(|error| Error::file("opening", path, error))?;
    // Two processes that open a new data directory at once: the second finds the tables made, and
    // the journal as it is to be, which SQLite changes for one alone.
    let _alone = alone(path.with_extension("migrating")).await?;
    let pool = connect(path, Durable::AtOnce).await?;
    MIGRATIONS.run(&pool).await.map_err(|error| not_migrated(&name(path), &MIGRATIONS, error))?;
    Ok(pool)
}

/// Connections to a database that has been opened.
pub async fn connect(path: &Path, durable: Durable) -> Result<SqlitePool, Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(match durable {
            Durable::AtOnce => SqliteSynchronous::Full,
            Durable::Soon => SqliteSynchronous::Normal,
        })
        .busy_timeout(BUSY)
        .foreign_keys(true);
    let pool = SqlitePoolOptions::new().max_connections(4).connect_with(options).await;
    pool.map_err(|error| Error::database("opening", "the tables", &name(path), error))
}

async fn alone(path: PathBuf) -> Result<File, Error> {
    let waiting = path.clone();
    let held = tokio::task::spawn_blocking(move || folder::wait_for(&waiting)).await;
    held.map_err(|error| Error::file("locking", &path, std::io::Error::other(error)))?
}

/// A database in messages.
pub fn name(path: &Path) -> String {
    path.display().to_string()
}

/// For `map_err`: why a database was not brought to this version.
pub fn not_migrated(name: &str, migrations: &Migrator, error: MigrateError) -> Error {
    let known = migrations.iter().map(|migration| migration.version).max().unwrap_or_default();
    match error {
        MigrateError::VersionMissing(found) if found > known => {
            Error::Newer { database: name.to_owned(), found, known }
        }
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
            Error::database("bringing to this version", "the tables", name, error)
        }
        error => Error::database("bringing to this version", "the tables", name, error.into()),
    }
}
