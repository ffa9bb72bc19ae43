//! Applications and their heads, by the key of the log that they were read from.

use crate::file::{self, Found, Identity};
use crate::{Error, Store};
use model::Application;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// Which log, and in which state it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LogKey {
    /// Path or URL of the log. Two logs of one path are one log.
    pub path: String,
    /// State of the log.
    pub mark: Mark,
}

/// Tells whether a log has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mark {
    /// Bytes of all its files.
    pub bytes: u64,
    /// Latest modification, epoch ms.
    pub modified_ms: i64,
    /// Number of its files.
    pub files: u32,
}

/// What lists show of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Application id.
    pub application_id: String,
    /// Attempt id, where the application has attempts (YARN).
    pub attempt_id: Option<String>,
    /// All else, in whatever form the caller gives it; kept as it is.
    pub json: String,
}

/// An application as it is kept, with what was made of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// The application.
    pub app: Application,
    /// What was made of it, in whatever form the caller gives it; kept as it is.
    pub report: String,
}

/// What is known of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The log as it was looked at.
    pub key: LogKey,
    /// Its head, or why it could not be read.
    pub head: Result<Head, String>,
}

/// What became of an application that was put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// Bytes of its file.
    pub file_bytes: u64,
    /// Whether the file was kept; not when it alone is larger than `store_max_bytes`.
    pub kept: bool,
    /// Applications whose files went to stay below `store_max_bytes`.
    pub removed: u32,
}

/// Bytes of all files of applications.
#[derive(Debug, Default)]
pub(crate) struct Total(u64);

impl Total {
    fn replace(&mut self, before: u64, now: u64) {
        self.0 = self.0.saturating_sub(before) + now;
    }
}

type KnownRow = (String, i64, i64, u32, Option<String>, Option<String>, Option<String>, Option<String>);

impl Store {
    /// Keeps an application, its report and its head in place of what was kept of that path.
    ///
    /// # Errors
    /// When its file or the database cannot be written; nothing half written stays.
    pub async fn put_application(
        &self,
        key: &LogKey,
        head: &Head,
        app: Arc<Application>,
        report: String,
    ) -> Result<Put, Error> {
        let identity = self.identity(key);
        let encoded = off_thread("encoding", &key.path, move || file::encode(&app, &report, &identity)).await?;
        let encoded = encoded.map_err(|e| Error::NotEncoded { path: key.path.clone(), message: e.to_string() })?;
        let mut put = Put { file_bytes: encoded.len() as u64, kept: false, removed: 0 };
        put.kept = put.file_bytes <= self.settings.max_bytes;
        let mut total = self.changing.lock().await;
        let before = self.file_bytes(&key.path).await?;
        let name = name(&key.path);
        match put.kept {
            true => self.with_file("writing", &name, move |files, name| files.write(name, &encoded)).await?,
            false => self.with_file("removing", &name, |files, name| files.remove(name)).await?,
        }
        let now = put.kept.then_some(put.file_bytes);
        self.put_row(key, Ok(head), now).await?;
        total.replace(before, now.unwrap_or_default());
        put.removed = self.make_room(&mut total, Some(&key.path)).await?;
        Ok(put)
    }

    /// Keeps that a log cannot be read, in place of what was kept of that path, so that it is not
    /// read again until it changes.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn put_unreadable(&self, key: &LogKey, error: &str) -> Result<(), Error> {
        let mut total = self.changing.lock().await;
        let before = self.file_bytes(&key.path).await?;
        self.put_row(key, Err(error), None).await?;
        total.replace(before, 0);
        self.with_file("removing", &name(&key.path), |files, name| files.remove(name)).await
    }

    /// All logs that are known, by path.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn heads(&self) -> Result<Vec<Known>, Error> {
        let select = "SELECT path, bytes, modified_ms, files, application_id, attempt_id, head, error \
                      FROM logs WHERE reader = $1 ORDER BY path";
        let rows = sqlx::query_as(select).bind(&self.settings.reader).fetch_all(&self.logs).await;
        Ok(rows.map_err(self.accounts.failed("listing", "the heads"))?.into_iter().map(known).collect())
    }

    /// The application of a log; `None` when there is none, when the log has changed since, or
    /// when its file is damaged (it is then removed).
    ///
    /// # Errors
    /// When the database or an undamaged file cannot be read.
    pub async fn application(&self, key: &LogKey) -> Result<Option<Kept>, Error> {
        if !self.has_file(key).await? {
            return Ok(None);
        }
        match self.read(key).await? {
            Found::Application(kept) => {
                self.note_log_use(&key.path).await;
                Ok(Some(*kept))
            }
            Found::Missing | Found::Damaged => self.read_or_remove(key).await,
        }
    }

    /// Forgets what is kept of a log; says whether there was anything.
    ///
    /// # Errors
    /// When the database cannot be written or the file not removed.
    pub async fn forget(&self, path: &str) -> Result<bool, Error> {
        let mut total = self.changing.lock().await;
        let before = self.file_bytes(path).await?;
        let done = sqlx::query("DELETE FROM logs WHERE path = $1").bind(path).execute(&self.logs).await;
        let done = done.map_err(self.accounts.failed("forgetting", path))?;
        total.replace(before, 0);
        self.with_file("removing", &name(path), |files, name| files.remove(name)).await?;
        Ok(done.rows_affected() > 0)
    }

    /// Brings folder and database together after a process that was killed, a reader that was
    /// replaced, a limit that was lowered, a person who deleted files.
    pub(crate) async fn tidy(&self) -> Result<(), Error> {
        let delete = sqlx::query("DELETE FROM logs WHERE reader <> $1").bind(&self.settings.reader);
        delete.execute(&self.logs).await.map_err(self.accounts.failed("forgetting", "logs of another reader"))?;
        let select = "SELECT path, file_bytes FROM logs WHERE file_bytes IS NOT NULL";
        let rows: Vec<(String, i64)> =
            sqlx::query_as(select).fetch_all(&self.logs).await.map_err(self.accounts.failed("listing", "the files"))?;
        let mut files: HashMap<String, u64> =
            self.with_file("listing", "", |files, _| files.list()).await?.into_iter().collect();
        let mut total = self.changing.lock().await;
        for (path, bytes) in rows {
            let there = files.remove(&name(&path)).map(|bytes| bytes as i64);
            total.replace(0, there.unwrap_or_default() as u64);
            if there != Some(bytes) {
                self.set_file_bytes(&path, there).await?;
            }
        }
        for left_over in files.into_keys() {
            self.with_file("removing", &left_over, |files, name| files.remove(name)).await?;
        }
        self.make_room(&mut total, None).await.map(drop)
    }

    async fn put_row(&self, key: &LogKey, head: Result<&Head, &str>, file_bytes: Option<u64>) -> Result<(), Error> {
        let upsert = "INSERT INTO logs (path, bytes, modified_ms, files, reader, application_id, attempt_id, head, \
                      error, file_bytes, used) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, \
                      (SELECT coalesce(max(used), 0) + 1 FROM logs)) ON CONFLICT (path) DO UPDATE SET \
                      bytes = excluded.bytes, modified_ms = excluded.modified_ms, files = excluded.files, \
                      reader = excluded.reader, application_id = excluded.application_id, \
                      attempt_id = excluded.attempt_id, head = excluded.head, error = excluded.error, \
                      file_bytes = excluded.file_bytes, used = excluded.used";
        let LogKey { path, mark } = key;
        let query = sqlx::query(upsert).bind(path).bind(mark.bytes as i64).bind(mark.modified_ms).bind(mark.files);
        let query = query.bind(&self.settings.reader);
        let query =
            query.bind(head.ok().map(|h| &h.application_id)).bind(head.ok().and_then(|h| h.attempt_id.as_ref()));
        let query = query.bind(head.ok().map(|h| &h.json)).bind(head.err()).bind(file_bytes.map(|bytes| bytes as i64));
        query.execute(&self.logs).await.map(drop).map_err(self.accounts.failed("keeping the head of", path))
    }

    /// Whether there should be a file of the log in this state.
    async fn has_file(&self, key: &LogKey) -> Result<bool, Error> {
        let select = "SELECT 1 FROM logs WHERE path = $1 AND bytes = $2 AND modified_ms = $3 AND files = $4 \
                      AND file_bytes IS NOT NULL";
        let LogKey { path, mark } = key;
        let query = sqlx::query(select).bind(path).bind(mark.bytes as i64).bind(mark.modified_ms).bind(mark.files);
        let found = query.fetch_optional(&self.logs).await;
        Ok(found.map_err(self.accounts.failed("looking up", path))?.is_some())
    }

    async fn read(&self, key: &LogKey) -> Result<Found, Error> {
        let identity = self.identity(key);
        self.with_file("reading", &name(&key.path), move |files, name| files.read(name, &identity)).await
    }

    /// Looks once more while nothing changes: what seemed damaged may have been replaced meanwhile,
    /// by the application of this or of a later state of the log.
    async fn read_or_remove(&self, key: &LogKey) -> Result<Option<Kept>, Error> {
        let mut total = self.changing.lock().await;
        if !self.has_file(key).await? {
            return Ok(None);
        }
        if let Found::Application(kept) = self.read(key).await? {
            return Ok(Some(*kept));
        }
        let bytes = self.file_bytes(&key.path).await?;
        self.drop_file(&mut total, &key.path, bytes).await?;
        Ok(None)
    }

    async fn note_log_use(&self, path: &str) {
        let update = "UPDATE logs SET used = (SELECT max(used) + 1 FROM logs) WHERE path = $1";
        // A note that cannot be written costs a little order among what is removed first.
        let _ = sqlx::query(update).bind(path).execute(&self.logs).await;
    }

    /// Removes the files that were not used longest until all fit below the limit; never the one
    /// of `newest`. Gives their number.
    async fn make_room(&self, total: &mut Total, newest: Option<&str>) -> Result<u32, Error> {
        if total.0 <= self.settings.max_bytes {
            return Ok(0);
        }
        let select = "SELECT path, file_bytes FROM logs WHERE file_bytes IS NOT NULL ORDER BY used";
        let rows: Vec<(String, i64)> =
            sqlx::query_as(select).fetch_all(&self.logs).await.map_err(self.accounts.failed("listing", "the files"))?;
        let mut removed = 0;
        for (path, bytes) in rows.iter().filter(|(path, _)| newest != Some(path)) {
            if total.0 <= self.settings.max_bytes {
                break;
            }
            self.drop_file(total, path, *bytes as u64).await?;
            removed += 1;
        }
        Ok(removed)
    }

    async fn drop_file(&self, total: &mut Total, path: &str, bytes: u64) -> Result<(), Error> {
        self.with_file("removing", &name(path), |files, name| files.remove(name)).await?;
        self.set_file_bytes(path, None).await?;
        total.replace(bytes, 0);
        Ok(())
    }

    /// Bytes of the file of a log; 0 when there is none.
    async fn file_bytes(&self, path: &str) -> Result<u64, Error> {
        let select = sqlx::query_scalar("SELECT file_bytes FROM logs WHERE path = $1").bind(path);
        let found: Option<Option<i64>> =
            select.fetch_optional(&self.logs).await.map_err(self.accounts.failed("looking up", path))?;
        Ok(found.flatten().unwrap_or_default() as u64)
    }

    async fn set_file_bytes(&self, path: &str, bytes: Option<i64>) -> Result<(), Error> {
        let update = sqlx::query("UPDATE logs SET file_bytes = $1 WHERE path = $2").bind(bytes).bind(path);
        update.execute(&self.logs).await.map(drop).map_err(self.accounts.failed("noting the file of", path))
    }

    /// Works on a file where waiting for the disk holds nobody up.
    async fn with_file<R: Send + 'static>(
        &self,
        doing: &'static str,
        name: &str,
        work: impl FnOnce(&file::Files, &str) -> io::Result<R> + Send + 'static,
    ) -> Result<R, Error> {
        let (files, owned) = (Arc::clone(&self.files), name.to_owned());
        let done = off_thread(doing, name, move || work(&files, &owned)).await?;
        done.map_err(|source| Error::file(doing, &self.files.path(name), source))
    }

    fn identity(&self, key: &LogKey) -> Identity {
        let LogKey { path, mark } = key;
        let mut digest = Sha256::new();
        // Lengths first, so that no two lists of parts run together to the same bytes.
        for part in [env!("MODEL_DIGEST"), &self.settings.reader, path] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        digest.update(mark.bytes.to_le_bytes());
        digest.update(mark.modified_ms.to_le_bytes());
        digest.update(mark.files.to_le_bytes());
        digest.finalize().into()
    }
}

fn name(path: &str) -> String {
    file::name(&Sha256::digest(path))
}

fn known((path, bytes, modified_ms, files, id, attempt_id, json, error): KnownRow) -> Known {
    let mark = Mark { bytes: bytes as u64, modified_ms, files };
    let head = id.zip(json).map(|(application_id, json)| Head { application_id, attempt_id, json });
    Known { key: LogKey { path, mark }, head: head.ok_or_else(|| error.unwrap_or_default()) }
}

async fn off_thread<R: Send + 'static>(
    doing: &'static str,
    object: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Error::Stopped { doing, object: object.to_owned() })
}
