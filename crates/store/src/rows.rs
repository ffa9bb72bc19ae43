//! Statements on either database: SQLite in the data directory, or PostgreSQL.
//!
//! Both know `$1`, `ON CONFLICT` and `RETURNING`, so that a statement stands here once. Its values
//! are integers and texts, which either takes as they are.

use crate::Error;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, FromRow, PgPool, Postgres, Sqlite, SqlitePool};
use std::borrow::Cow;
use std::sync::Arc;

/// Connections to a database. Clones share them.
#[derive(Clone, Debug)]
pub struct Rows {
    pool: Pool,
    /// Where it is, for messages; without a password.
    name: Arc<str>,
}

#[derive(Clone, Debug)]
enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// A row of either database.
pub trait Row: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

impl<T> Row for T where T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

/// What stands for a `$n`.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    Integer(Option<i64>),
    Text(Option<Cow<'a, str>>),
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(Some(value))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(value: Option<i64>) -> Self {
        Self::Integer(value)
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Self::Text(Some(value.into()))
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Some(value.into()))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Self {
        Self::from(value.as_str())
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(value: Option<&'a str>) -> Self {
        Self::Text(value.map(Cow::from))
    }
}

impl<'a> From<&'a Option<String>> for Value<'a> {
    fn from(value: &'a Option<String>) -> Self {
        Self::from(value.as_deref())
    }
}

/// SQL with its values.
#[derive(Clone, Debug)]
pub struct Statement<'a> {
    sql: Cow<'static, str>,
    values: Vec<Value<'a>>,
}

impl<'a> Statement<'a> {
    pub fn new(sql: &'static str) -> Self {
        Self { sql: sql.into(), values: Vec::new() }
    }

    /// The value of the next `$n`.
    pub fn bind(mut self, value: impl Into<Value<'a>>) -> Self {
        self.values.push(value.into());
        self
    }

    /// More SQL.
    pub fn push(&mut self, sql: &'static str) -> &mut Self {
        self.sql.to_mut().push_str(sql);
        self
    }

    /// More SQL: the next `$n`, with its value.
    pub fn push_bind(&mut self, value: impl Into<Value<'a>>) -> &mut Self {
        self.values.push(value.into());
        let number = self.values.len();
        self.sql.to_mut().push_str(&format!("${number}"));
        self
    }
}

/// PostgreSQL has no text with this character.
fn without_nul<'a>(text: &'a Option<Cow<'_, str>>) -> Option<Cow<'a, str>> {
    text.as_deref().map(|text| match text.contains('\0') {
        true => text.replace('\0', "\u{fffd}").into(),
        false => text.into(),
    })
}

/// A query of sqlx, of whichever kind, with the values of a statement.
macro_rules! of_sqlite {
    ($make:path, $statement:expr) => {
        $statement.values.iter().fold($make(AssertSqlSafe($statement.sql.clone())), |query, value| match value {
            Value::Integer(value) => query.bind(*value),
            Value::Text(text) => query.bind(text.as_deref()),
        })
    };
}
macro_rules! of_postgres {
    ($make:path, $statement:expr) => {
        $statement.values.iter().fold($make(AssertSqlSafe($statement.sql.clone())), |query, value| match value {
            Value::Integer(value) => query.bind(*value),
            Value::Text(text) => query.bind(without_nul(text)),
        })
    };
}

impl Rows {
    pub fn sqlite(pool: SqlitePool, name: &str) -> Self {
        Self { pool: Pool::Sqlite(pool), name: name.into() }
    }

    pub fn postgres(pool: PgPool, name: &str) -> Self {
        Self { pool: Pool::Postgres(pool), name: name.into() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The connections, where it is PostgreSQL.
    pub fn as_postgres(&self) -> Option<&PgPool> {
        match &self.pool {
            Pool::Postgres(pool) => Some(pool),
            Pool::Sqlite(_) => None,
        }
    }

    pub async fn all<T: Row>(&self, statement: &Statement<'_>) -> Result<Vec<T>, sqlx::Error> {
        match &self.pool {
            Pool::Sqlite(pool) => of_sqlite!(sqlx::query_as::<Sqlite, T>, statement).fetch_all(pool).await,
            Pool::Postgres(pool) => of_postgres!(sqlx::query_as::<Postgres, T>, statement).fetch_all(pool).await,
        }
    }

    /// The one row that there must be.
    pub async fn one<T: Row>(&self, statement: &Statement<'_>) -> Result<T, sqlx::Error> {
        self.all(statement).await?.into_iter().next().ok_or(sqlx::Error::RowNotFound)
    }

    /// Runs one statement by itself; gives the number of rows that it changed.
    pub async fn execute(&self, statement: &Statement<'_>) -> Result<u64, sqlx::Error> {
        Ok(match &self.pool {
            Pool::Sqlite(pool) => of_sqlite!(sqlx::query::<Sqlite>, statement).execute(pool).await?.rows_affected(),
            Pool::Postgres(pool) => {
                of_postgres!(sqlx::query::<Postgres>, statement).execute(pool).await?.rows_affected()
            }
        })
    }

    pub async fn begin(&self) -> Result<Transaction, sqlx::Error> {
        Ok(match &self.pool {
            Pool::Sqlite(pool) => Transaction::Sqlite(pool.begin().await?),
            Pool::Postgres(pool) => Transaction::Postgres(pool.begin().await?),
        })
    }

    /// For `map_err`: what was being done to which object.
    pub fn failed<'a>(&'a self, doing: &'static str, object: &'a str) -> impl FnOnce(sqlx::Error) -> Error + 'a {
        move |source| Error::database(doing, object, &self.name, source)
    }
}

/// All of it or nothing; nothing when it is dropped.
#[derive(Debug)]
pub enum Transaction {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
}

impl Transaction {
    /// Gives the number of rows that it changed.
    pub async fn execute(&mut self, statement: &Statement<'_>) -> Result<u64, sqlx::Error> {
        Ok(match self {
            Self::Sqlite(on) => of_sqlite!(sqlx::query::<Sqlite>, statement).execute(&mut **on).await?.rows_affected(),
            Self::Postgres(on) => {
                of_postgres!(sqlx::query::<Postgres>, statement).execute(&mut **on).await?.rows_affected()
            }
        })
    }

    pub async fn commit(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(transaction) => transaction.commit().await,
            Self::Postgres(transaction) => transaction.commit().await,
        }
    }
}
