//! The store through its public interface.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)] // A test that cannot be set up should stop.

mod applications;
mod audit;
mod damage;
mod jobs;
mod killed;
mod limit;
mod opening;
mod replicas;
mod round_trip;
mod tokens;
mod world;
