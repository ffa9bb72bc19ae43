//! The binary and what it shows, from the outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod command;
#[cfg(all(feature = "serve", target_os = "linux"))]
mod definitions;
mod fixture;
#[cfg(feature = "serve")]
mod openapi;
mod render;
mod samples;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod traces;
#[cfg(all(feature = "serve", target_os = "linux"))]
mod triggers;
