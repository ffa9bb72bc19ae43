//! What processes that do not lead ask of the one that does.
//!
//! A command is a row; its answer is written in the transaction that does it, as a
//! [`Change::Answer`](super::Change::Answer). So it is done once, also when the leader dies over it.

use super::Jobs;
use crate::Error;
use crate::rows::Statement;
use sqlx::postgres::PgListener;
use std::time::Duration;

/// How old a command may be, in seconds, that a leader begins with: nobody waits longer.
const FRESH_S: i64 = 60;
/// How long an answer is kept that nobody fetches, seconds.
const KEPT_S: i64 = 600;
/// Commands that are taken at once.
const MOST: i64 = 256;
/// Without a call of the bell, the database is looked at as often as this.
const UNRUNG: Duration = Duration::from_secs(1);

const TAKE: &str = "UPDATE commands SET taken_epoch = $1 WHERE id IN (SELECT id FROM commands \
                    WHERE answer IS NULL AND coalesce(taken_epoch, 0) < $1 \
                    AND asked_at > clock_timestamp() - $2 * interval '1 s' ORDER BY id LIMIT $3) RETURNING id, command";
const TIDY: &str = "DELETE FROM commands WHERE asked_at < clock_timestamp() - $1 * interval '1 s'";

impl Jobs {
    /// Puts a command before the leader; gives its number.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn ask(&self, command: &str) -> Result<i64, Error> {
        let insert = Statement::new("INSERT INTO commands (command) VALUES ($1) RETURNING id").bind(command);
        let (id,) = self.rows.one::<(i64,)>(&insert).await.map_err(self.rows.failed("writing", "a command"))?;
        Ok(id)
    }

    /// Fetches the answer, once it is there.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn answer(&self, id: i64) -> Result<Option<String>, Error> {
        let fetch = "DELETE FROM commands WHERE id = $1 AND answer IS NOT NULL RETURNING answer";
        let found = self.all::<(String,)>(&Statement::new(fetch).bind(id), "the answer to a command").await?;
        Ok(found.into_iter().next().map(|(answer,)| answer))
    }

    /// Takes a command back, unless a leader works on it or has done it: whether that could be.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn withdraw(&self, id: i64) -> Result<bool, Error> {
        let delete = Statement::new("DELETE FROM commands WHERE id = $1 AND taken_epoch IS NULL").bind(id);
        let gone = self.rows.execute(&delete).await.map_err(self.rows.failed("taking back", "a command"))?;
        Ok(gone == 1)
    }

    /// For a leader: commands that it has not taken yet, in their order, with their numbers. Those
    /// that a leader before it took and did not answer are among them.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn asked(&self) -> Result<Vec<(i64, String)>, Error> {
        let epoch = self.fence.as_ref().map_or(0, |fence| fence.epoch);
        let take = Statement::new(TAKE).bind(epoch).bind(FRESH_S).bind(MOST);
        let taken = self.rows.all::<(i64, String)>(&take).await;
        let mut taken = taken.map_err(self.rows.failed("reading", "commands"))?;
        taken.sort_unstable();
        Ok(taken)
    }

    /// Removes commands and answers that nobody waits for any more.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn tidy_commands(&self) -> Result<(), Error> {
        let delete = self.rows.execute(&Statement::new(TIDY).bind(KEPT_S)).await;
        delete.map(drop).map_err(self.rows.failed("removing", "old commands"))
    }

    /// What rings when there is a command or an answer.
    ///
    /// # Errors
    /// When the database cannot be reached, or is none that several processes share.
    pub async fn bell(&self) -> Result<Bell, Error> {
        let listen = async {
            let pool = self.rows.as_postgres().ok_or(sqlx::Error::PoolClosed)?;
            let mut listener = PgListener::connect_with(pool).await?;
            listener.listen("lakescope").await?;
            Ok(Bell { listener })
        };
        listen.await.map_err(self.rows.failed("listening to", "commands"))
    }
}

/// Rings when there is a command or an answer.
#[derive(Debug)]
pub struct Bell {
    listener: PgListener,
}

impl Bell {
    /// Waits until it rings, or for as long as nobody should wait without a look.
    pub async fn rung(&mut self) {
        if let Ok(Err(_)) = tokio::time::timeout(UNRUNG, self.listener.recv()).await {
            // It connects again by itself.
            tokio::time::sleep(UNRUNG).await;
        }
    }
}
