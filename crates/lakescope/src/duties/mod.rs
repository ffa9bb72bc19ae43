//! What a running server does beside answering.

pub mod ingest;
#[cfg(target_os = "linux")]
pub mod jobs;
