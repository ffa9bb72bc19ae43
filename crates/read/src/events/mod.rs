//! Event logs: one JSON line to a typed event, events to a [`model::Application`].
//!
//! [`parse::batch`] runs on many threads and keeps of a batch only what the application needs;
//! [`fold::Fold`] takes the results in the order of the log. Nothing here fails: a line that is no
//! event is counted and named.

pub(crate) mod fold;
pub(crate) mod parse;
mod scan;
pub(crate) mod sql_metrics;
mod task;
mod texts;
mod wire;
mod wire_sql;
