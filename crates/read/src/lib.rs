//! Bytes in: event logs become `model::Application`.

pub mod source;
