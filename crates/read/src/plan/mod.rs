//! Plans: the log's plan JSON and `explain()` text, as one operator graph.
//!
//! - [`PlanInfo`] and [`from_info`] for `sparkPlanInfo` of an event log.
//! - [`parse_text`] for what `explain` prints in any mode, however it was pasted.
//! - [`parse_sketch`] for a chain as people write it: `WriteFiles <- Exchange … <- Scan parquet`.
//!
//! Reading never fails: a text without a plan gives none, what is cut is marked as cut, and names
//! that nobody knows are listed in [`model::Plan::unknown`].

mod build;
mod clean;
mod complete;
mod details;
mod from_info;
mod info;
mod kind;
mod list;
mod operator;
mod scan;
#[cfg(test)]
mod tests;
mod text;
mod tree;

pub use from_info::from_info;
pub use info::{InfoMetric, InfoNode, NoPlanJson, PlanInfo};
pub use text::{parse_sketch, parse_text};
