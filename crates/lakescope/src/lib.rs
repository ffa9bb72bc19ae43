//! placeholder
pub mod render;
