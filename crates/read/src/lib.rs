//! Bytes in, model out.

pub mod plan;
