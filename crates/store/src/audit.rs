//! The audit log: who did what to which object. Entries are added, never changed.

use crate::{Accounts, Error};

/// One thing that was done, or refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// When, epoch ms.
    pub at_ms: i64,
    /// Who: a token's name, or the user of a command.
    pub who: String,
    /// What was done, e.g. `token.create`.
    pub what: String,
    /// To which object, e.g. a token's id.
    pub object: String,
    /// How it ended, e.g. `done`, `refused`.
    pub outcome: String,
    /// Address that it came from; empty for a command.
    pub address: String,
}

/// An entry with its place in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audited {
    /// Grows with each entry.
    pub id: i64,
    /// What was done.
    pub entry: Entry,
}

impl Accounts {
    /// Adds an entry to the audit log.
    ///
    /// # Errors
    /// When the database cannot be written: what is to be audited should then not be done.
    pub async fn audit(&self, entry: &Entry) -> Result<(), Error> {
        let insert = "INSERT INTO audit (at_ms, who, what, object, outcome, address) VALUES ($1, $2, $3, $4, $5, $6)";
        let query = sqlx::query(insert).bind(entry.at_ms).bind(&entry.who).bind(&entry.what);
        let query = query.bind(&entry.object).bind(&entry.outcome).bind(&entry.address);
        let done = query.execute(&self.database).await;
        done.map(drop).map_err(self.failed("auditing", &entry.what))
    }

    /// At most `limit` entries, the latest first; with `before` only those that were added before
    /// the one with that id.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn audits(&self, limit: u32, before: Option<i64>) -> Result<Vec<Audited>, Error> {
        let select = "SELECT id, at_ms, who, what, object, outcome, address FROM audit \
                      WHERE id < $1 ORDER BY id DESC LIMIT $2";
        let query = sqlx::query_as(select).bind(before.unwrap_or(i64::MAX)).bind(limit);
        let rows: Vec<(i64, i64, String, String, String, String, String)> =
            query.fetch_all(&self.database).await.map_err(self.failed("reading", "the audit log"))?;
        let audited = |(id, at_ms, who, what, object, outcome, address)| Audited {
            id,
            entry: Entry { at_ms, who, what, object, outcome, address },
        };
        Ok(rows.into_iter().map(audited).collect())
    }
}
