//! What tests share: where the labelled data is, writers of Spark's codecs, runners over
//! labelled logs and cases, a PostgreSQL server. A development dependency only.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)] // A test that cannot be set up should stop.

pub mod cases;
pub mod corpus;
pub mod counts;
pub mod encode;
pub mod logs;
#[cfg(unix)]
pub mod postgres;
pub mod rename;
pub mod serving;
pub mod spark_history;
pub mod worlds;

use std::path::{Path, PathBuf};

/// The folder with the shared test data: `LAKESCOPE_SHARED`, else `../shared` beside the
/// checkout. `None` when it is not there: the caller then says what it skips.
#[must_use]
pub fn shared() -> Option<PathBuf> {
    let given = std::env::var_os("LAKESCOPE_SHARED").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|p| p.join("shared")).find(|p| p.is_dir());
    given.or_else(beside).filter(|p| p.join("data").is_dir())
}
