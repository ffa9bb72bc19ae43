//! Reads what Spark and people leave behind.

pub mod paste;
