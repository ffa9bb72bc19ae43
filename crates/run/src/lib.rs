//! The job engine: what becomes of a run, from the settings of its job and what happens to it.
//!
//! In: a graph of tasks, then one input after the other with its time. Out: the state, what changed,
//! and what is to be done. Time and ids come in as arguments, so that a year can be played in a
//! second.
//!
//! ```
//! use run::{Effect, End, Graph, Input, LifeCycle, Limits, Run, Task};
//!
//! let load = Task { key: "load".into(), ..Task::default() };
//! let mut run = Run::new(Graph::new(vec![load])?, Limits::default(), None);
//! let step = run.step(&Input::Admitted, 1_795_990_000_000);
//! let Some(Effect::Launch(launch)) = step.effects.first() else { unreachable!() };
//! run.step(&Input::Started(launch.epoch), 1_795_990_000_100);
//! let step = run.step(&Input::Ended(launch.epoch, End::SUCCESS.into()), 1_795_990_060_000);
//! assert_eq!(run.life_cycle(), LifeCycle::Terminated);
//! assert!(step.effects.contains(&Effect::RunEnded(End::SUCCESS)));
//! # Ok::<(), run::GraphError>(())
//! ```
//!
//! The things to know: [`Run`] with [`Input`] and [`Step`]; [`Graph`]; [`rule`], which decides
//! without time. States are those of the Jobs API ([`LifeCycle`], [`Outcome`], [`Code`]).
//! [`book`] holds all runs that are not over. Two modules stand apart: [`local`], tasks as processes
//! of this machine that outlive the engine, and [`engine`], which writes what the book decides to a
//! store and carries it out.
//!
//! All but these two never starts anything, never reads a clock and never writes. A terminal state
//! changes by a repair only; a report of the past is dropped. Nothing here knows of HTTP or of
//! SQL.

#![deny(unsafe_code)]

pub mod admission;
pub mod book;
pub mod condition;
pub mod continuous;
#[cfg(target_os = "linux")]
pub mod engine;
mod graph;
pub mod local;
pub mod quartz;
pub mod record;
pub mod references;
pub mod repair;
pub mod rule;
pub mod settings;
pub mod slices;
mod states;
mod step;
mod task_run;
pub mod trigger;

pub use graph::{Dependency, Graph, GraphError, Kind, Parent, Retry, RunIf, Task};
pub use rule::Stop;
pub use states::{Class, Code, CodeType, End, LifeCycle, Outcome, QueueCode};
pub use step::{Effect, Ended, Epoch, Input, Launch, Limits, Run, Step, Transition};
pub use task_run::TaskRun;
