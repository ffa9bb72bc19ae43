//! One process leads: it alone writes what becomes of runs.
//!
//! The right to do so is a row with an epoch. Every transaction of a leader begins with it, so
//! that one who has lost the lead writes nothing, however late it learns that. The lead is free
//! when it was not renewed for [`LEASE`], or when the session is gone that the leader holds a lock
//! with: a process that dies is followed at once, a machine that is silent after that time. All of it
//! goes by the clock of the database.

use super::Jobs;
use crate::Error;
use crate::rows::{Statement, Transaction};
use sqlx::PgConnection;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// How long the lead lasts that is not renewed.
pub const LEASE: Duration = Duration::from_secs(10);
/// How often it is renewed.
pub const RENEWED: Duration = Duration::from_secs(3);

/// Where a process runs its programs. Those that share a site can take up one another's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// What no other site has.
    pub id: String,
    /// For people.
    pub name: String,
    /// How long a leader of another site may be gone before its programs are given up.
    pub patience: Duration,
}

/// The epoch of a leader, and the number of its transactions.
#[derive(Debug)]
pub(super) struct Fence {
    pub epoch: i64,
    written: AtomicI64,
}

/// The lead. It is free for others once this is dropped.
#[derive(Debug)]
pub struct Lease {
    /// Of the leader; holds the lock that tells that it lives.
    session: PgConnection,
    epoch: i64,
    jobs: Jobs,
    given_up: Option<String>,
}

/// Whether the lead can be had. One lock for each epoch: a lock of a leader before must not be taken
/// for that of this one.
macro_rules! is_free {
    () => {
        "(expires_at < clock_timestamp() OR pg_try_advisory_xact_lock(\
         hashtext('lakescope.' || current_schema()), (epoch % 2147483647)::int))"
    };
}
const LOOK: &str = concat!(
    "SELECT epoch, (",
    is_free!(),
    " AND (site IS NULL OR site = $1 OR expires_at < clock_timestamp() - $2 * interval '1 ms' \
     OR NOT EXISTS (SELECT FROM runs WHERE end_ms IS NULL)))::int::bigint, \
     CASE WHEN site <> $1 THEN site_name END FROM lease"
);
const LOCK: &str = "SELECT pg_try_advisory_lock(hashtext('lakescope.' || current_schema()), ($1 % 2147483647)::int)";
// Looked at once more: a transaction of the leader that this waits for renews the lead.
const TAKE: &str = concat!(
    "UPDATE lease SET epoch = $1, written = 0, site = $3, site_name = $4, \
     expires_at = clock_timestamp() + $2 * interval '1 ms' WHERE epoch = $1 - 1 AND ",
    is_free!()
);
const RENEW: &str = "UPDATE lease SET expires_at = clock_timestamp() + $2 * interval '1 ms' WHERE epoch = $1";
const WRITE: &str = "UPDATE lease SET written = $2, expires_at = clock_timestamp() + $3 * interval '1 ms' \
                     WHERE epoch = $1 AND written = $2 - 1";

impl Jobs {
    /// Whether several processes may share the database: one of them leads, see [`Jobs::lead`].
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.rows.as_postgres().is_some()
    }

    /// Takes the lead where nobody has it. While runs are open it waits for whoever shares the site
    /// of the leader before, as long as it has patience. What [`Lease::jobs`] gives writes for this
    /// leader.
    ///
    /// # Errors
    /// When the database cannot be read or written.
    pub async fn lead(&self, site: &Site) -> Result<Option<Lease>, Error> {
        let look = Statement::new(LOOK).bind(&site.id).bind(millis(site.patience));
        let found = self.rows.one::<(i64, i64, Option<String>)>(&look).await;
        let (epoch, is_free, before) = found.map_err(self.rows.failed("reading", "who leads"))?;
        match is_free {
            1 => self.take(epoch + 1, site, before).await.map_err(self.rows.failed("taking", "the lead")),
            _ => Ok(None),
        }
    }

    async fn take(&self, epoch: i64, site: &Site, given_up: Option<String>) -> Result<Option<Lease>, sqlx::Error> {
        let Some(pool) = self.rows.as_postgres() else { return Ok(None) };
        let mut session = pool.acquire().await?.detach();
        // Held before the row says so, so that no other one finds the new leader dead.
        let is_first: bool = sqlx::query_scalar(LOCK).bind(epoch).fetch_one(&mut session).await?;
        if !is_first {
            return Ok(None);
        }
        let take = sqlx::query(TAKE).bind(epoch).bind(millis(LEASE)).bind(&site.id).bind(&site.name);
        let taken = take.execute(&mut session).await?.rows_affected() == 1;
        let fence = Some(Arc::new(Fence { epoch, written: AtomicI64::new(0) }));
        let jobs = Self { fence, ..self.clone() };
        Ok(taken.then_some(Lease { session, epoch, jobs, given_up }))
    }

    /// For a leader: the first statement of a transaction, which nobody takes the lead beside. `false`:
    /// this very transaction was committed before, though whoever wrote it did not learn that.
    pub(super) async fn check(&self, on: &mut Transaction) -> Result<bool, Error> {
        let Some(fence) = &self.fence else { return Ok(true) };
        let number = fence.written.load(Ordering::Relaxed) + 1;
        let failed = || self.rows.failed("looking up", "who leads");
        let write = Statement::new(WRITE).bind(fence.epoch).bind(number).bind(millis(LEASE));
        if on.execute(&write).await.map_err(failed())? == 1 {
            return Ok(true);
        }
        let select = Statement::new("SELECT epoch, written FROM lease");
        match self.rows.one::<(i64, i64)>(&select).await.map_err(failed())? == (fence.epoch, number) {
            true => Ok(false),
            false => Err(Error::Deposed { database: self.rows.name().to_owned() }),
        }
    }

    /// A transaction of this leader is on the disk.
    pub(super) fn count(&self) {
        if let Some(fence) = &self.fence {
            fence.written.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Lease {
    /// Writes for this leader, one call after the other: [`Jobs::write`] fails with
    /// [`Error::Deposed`] once somebody else leads. A call that failed otherwise is to be made again
    /// with the same changes.
    #[must_use]
    pub fn jobs(&self) -> Jobs {
        self.jobs.clone()
    }

    /// Grows with each leader.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// The site of the leader before, where that is another one: what ran there is given up.
    #[must_use]
    pub fn given_up(&self) -> Option<&str> {
        self.given_up.as_deref()
    }

    /// Keeps the lead; to be called each [`RENEWED`].
    ///
    /// # Errors
    /// When somebody else leads, or the database does not answer: the lead is to be given up.
    pub async fn renew(&mut self) -> Result<(), Error> {
        let renew = sqlx::query(RENEW).bind(self.epoch).bind(millis(LEASE)).execute(&mut self.session);
        // It waits for a transaction of this leader.
        let done = tokio::time::timeout(LEASE - RENEWED, renew).await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        match done.map_err(self.jobs.rows.failed("renewing", "the lead"))?.rows_affected() {
            1 => Ok(()),
            _ => Err(Error::Deposed { database: self.jobs.rows.name().to_owned() }),
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
