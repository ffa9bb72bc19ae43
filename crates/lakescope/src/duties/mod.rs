//! What a running server does beside answering.

pub mod ingest;
