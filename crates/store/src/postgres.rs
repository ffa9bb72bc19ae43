//! A PostgreSQL database: opened, and brought to this program's version.

use crate::Error;
use crate::database::not_migrated;
use crate::rows::Rows;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, Executor};
use std::str::FromStr;
use std::time::Duration;

/// How its name in messages begins.
pub const SCHEME: &str = "postgresql://";

/// How long a statement waits for a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections of a process.
const CONNECTIONS: u32 = 8;

/// A process that died, or whose machine did, holds what it has locked no longer than this.
const LET_GO: &str = "SET idle_in_transaction_session_timeout = '3s'; SET tcp_keepalives_idle = 3; \
                      SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 3";

/// Forward only: a migration that was released is never changed.
static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/postgres");

/// Opens the database of a URL, migrated where it has to be. Processes that open it at once wait for
/// one another.
pub async fn open(url: &str) -> Result<Rows, Error> {
    let options = options(url)?;
    let name = name(&options);
    // Asked for first: a pool would try again, and tell in the end that time is up.
    let reached = async { sqlx::PgConnection::connect_with(&options).await?.close().await };
    reached.await.map_err(|error| Error::database("opening", "the tables", &name, error))?;
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(PATIENCE)
        .after_connect(|connection, _| Box::pin(async move { connection.execute(LET_GO).await.map(drop) }))
        .connect_lazy_with(options);
    MIGRATIONS.run(&pool).await.map_err(|error| not_migrated(&name, &MIGRATIONS, error))?;
    Ok(Rows::postgres(pool, &name))
}

fn options(url: &str) -> Result<PgConnectOptions, Error> {
    if !url.starts_with(SCHEME) && !url.starts_with("postgres://") {
        let source = sqlx::Error::Configuration(format!("it does not begin with {SCHEME}").into());
        return Err(Error::NoAddress { source });
    }
    let options = PgConnectOptions::from_str(url).map_err(|source| Error::NoAddress { source })?;
    Ok(options.application_name("lakescope"))
}

/// Where it is, for messages: without user and password.
fn name(options: &PgConnectOptions) -> String {
    let host = match options.get_socket() {
        Some(folder) => folder.display().to_string(),
        None => options.get_host().to_owned(),
    };
    let database = options.get_database().unwrap_or(options.get_username());
    format!("{SCHEME}{host}:{}/{database}", options.get_port())
}
