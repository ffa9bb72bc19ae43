//! What things are: the vocabulary that every other crate speaks.
//!
//! Values only. A reader fills an [`Application`] (columns for what is counted in millions,
//! plain structs for the rest), the diagnosis turns it into a [`Report`], and whatever shows
//! something shows one of these two. Names are Spark's: application, job, stage, task,
//! executor, SQL execution, plan node.
//!
//! ```
//! use model::{Application, Metric, Stage, TaskRow};
//!
//! let mut app = Application::default();
//! let mut stage = Stage::new(0, 0);
//! for (task, bytes) in [100, 120, 4_000].into_iter().enumerate() {
//!     let mut row = TaskRow::new(task as i64);
//!     row.set(Metric::LaunchMs, 1_000).set(Metric::FinishMs, 1_500);
//!     row.set(Metric::LocalBytesRead, bytes);
//!     stage.tasks.push(row);
//! }
//! app.stages.push(stage);
//! let read = app.stages[0].quantiles(Metric::ShuffleReadBytes);
//! assert_eq!((read.median, read.max), (120, 4_000));
//! ```
//!
//! The types to know: [`Application`], [`Stage`] with its [`Tasks`], [`Plan`], [`Finding`].
//!
//! Units: times are epoch milliseconds, durations milliseconds unless a name says `_ns`, sizes
//! bytes. [`Millis`], [`Bytes`], [`Count`] and [`Factor`] print them the one way they are shown.
//!
//! Serde carries a whole [`Application`] in binary forms: columns go as byte strings, and
//! [`write_shared`] and [`read_shared`] keep texts shared and all columns in one buffer.
//!
//! This crate never reads a file or a clock, never knows another system's wire format, and holds
//! no rule about what is good or bad.

mod application;
mod column;
mod executor;
mod finding;
mod fingerprint;
mod incident;
mod job;
mod plan;
mod quantile;
mod shared;
mod sql;
mod stage;
mod storage;
mod stream;
mod task;
mod units;

pub use application::*;
pub use column::Column;
pub use executor::*;
pub use finding::*;
pub use incident::*;
pub use job::*;
pub use plan::*;
pub use quantile::*;
pub use shared::{Apart, read_shared, write_shared};
pub use sql::*;
pub use stage::*;
pub use storage::*;
pub use stream::*;
pub use task::*;
pub use units::*;

/// A string shared by many records; equal texts of one log share one allocation.
pub type Text = std::sync::Arc<str>;
