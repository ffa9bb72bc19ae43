//! The binary and what it shows, from the outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod command;
mod fixture;
mod render;
mod samples;
#[cfg(feature = "serve")]
mod serve;
