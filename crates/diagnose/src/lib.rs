//! Says what is wrong with a Spark application: model in, findings out.
//!
//! [`diagnose`] takes an [`model::Application`], read from an event log or made from a pasted
//! plan, trace or table, and gives a [`model::Report`]: findings ranked by the time that they
//! cost, each with evidence, the lookalikes that were ruled out, an estimate from a model of the
//! run, remedies with computed numbers, and its place in a chain of causes.
//!
//! ```
//! use diagnose::{Config, diagnose};
//!
//! let report = diagnose(&model::Application::default(), &Config::default());
//! assert!(report.findings.is_empty());
//! assert_eq!(report.summary.sentence, "nothing stands out");
//! ```
//!
//! The types to know: [`Config`] (every threshold, by name), [`rules::RULES`] (one entry a
//! finding id), [`run_model::RunModel`] (what the run would have taken otherwise).
//!
//! A rule is one file in `rules/` with `check(&Context, &mut Findings)` and one line in the list.
//!
//! This crate never reads a file, a clock or the network, never knows where data came from, and
//! never concludes from a name: renaming an application, a table or an operator's alias changes
//! nothing.

pub mod blame;
pub mod budget;
pub mod cause;
mod cold;
pub mod compare;
mod config;
pub mod context;
pub mod draft;
pub mod failure;
pub mod figures;
pub mod gaps;
pub mod incidents;
pub mod memory;
pub mod plan_reading;
pub mod plan_text;
pub mod plans;
pub mod queries;
mod report;
pub mod rules;
pub mod run_model;
pub mod shuffle;
pub mod signature;
pub mod sizing;
mod sketch;
pub mod slots;
mod source_line;
mod stage_model;
pub mod streams;
pub mod telling;
#[cfg(test)]
mod testing;
pub mod uneven;
pub mod words;
pub mod work;

pub use config::Config;
pub use report::severity;

/// Diagnoses an application.
#[must_use]
pub fn diagnose(app: &model::Application, config: &Config) -> model::Report {
    let cx = context::Context::new(app, config);
    let mut found = draft::Findings::default();
    for check in rules::CHECKS {
        check(&cx, &mut found);
    }
    report::assemble(&cx, found)
}
