//! Tests of crate `read` through its public interface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod events;
mod source;
