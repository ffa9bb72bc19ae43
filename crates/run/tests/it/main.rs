//! The engine's core, and processes of this machine, through their public interfaces.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // A test that cannot go on should stop.
mod book;
mod cases;
mod engine;
mod events;
mod local;
mod options;
mod quartz;
mod replicas;
mod simulate;
mod world;
