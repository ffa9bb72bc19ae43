//! Bytes in, model out: Spark event logs become a [`model::Application`].
//!
//! In: named byte streams ([`source::Part`]), which the caller opens, because this crate knows no
//! disk and no network. Out: the application, with everything that could not be read counted and
//! named in its [`model::LogFacts`].
//!
//! ```
//! use read::{Options, event_log, source::Part};
//!
//! let log = br#"{"Event":"SparkListenerLogStart","Spark Version":"4.0.1"}
//! {"Event":"SparkListenerApplicationStart","App Name":"orders","App ID":"app-1","Timestamp":1000,"User":"ada"}
//! {"Event":"SparkListenerApplicationEnd","Timestamp":61000}
//! "#;
//! let app = event_log(vec![Part::bytes("orders", *log)], &Options::default())?;
//! assert_eq!((&*app.name, app.wall_ms(), app.log.bad_lines), ("orders", 60_000, 0));
//! # Ok::<(), read::Error>(())
//! ```
//!
//! The things to know: [`event_log`], [`Options`], [`source`] (codecs, forms of logs, the
//! pipeline), [`plan`] (plans as text and as JSON).
//!
//! Reading does not fail because of what is in a log: a damaged frame, a cut or mad line, an event
//! of an unknown kind are passed over and reported. Memory grows with tasks and plans, not with
//! bytes. The crate never opens a file, never prints, never reads a clock, and never judges
//! whether what it read is good.

mod events;
pub mod paste;
pub mod plan;
pub mod source;

pub use events::sql_metrics::{
    GraphMetric, GraphNode, MetricValue, SqlFigures, SqlGraph, SqlMetrics, TaskPlace, ValueKind, in_set_order,
};

use events::fold::{At, Fold};
use events::parse;
use events::sql_metrics::{self, Listener};
use model::{Application, Warning};
use source::{Batch, DamageKind, Limits, Part, Progress, ReadStats};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

/// The largest figure of a task or stage, in logs and in pastes: 8 PiB, or 104 days in nanoseconds.
const MAX_FIGURE: u64 = 1 << 53;

/// How to read a log.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bounds on memory and work. A quarter of `max_memory_bytes` is for the application:
    /// beyond it plan texts, call stacks and later plans are left out, and a warning says so.
    pub limits: Limits,
    /// Parser threads.
    pub threads: NonZeroUsize,
    /// Refuse a log of which anything could not be read.
    pub strict: bool,
    /// Counters to watch from another thread.
    pub progress: Progress,
}

impl Default for Options {
    fn default() -> Self {
        let source::Options { limits, threads, progress } = source::Options::default();
        Self { limits, threads, strict: false, progress }
    }
}

/// Why there is no application.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// None of the parts could be opened.
    #[error("{name} cannot be opened: {message}")]
    NotOpened {
        /// The first part's name.
        name: String,
        /// What the system said.
        message: String,
    },
    /// Nothing in the input is a Spark event.
    #[error("{name} is no Spark event log: none of its {lines} lines is an event")]
    NoEvents {
        /// The first part's name.
        name: String,
        /// Lines that were looked at.
        lines: u64,
    },
    /// Something could not be read, and [`Options::strict`] was set.
    #[error("the log is damaged: {}", .0.first().map_or("", |w| w.text.as_str()))]
    Damaged(Vec<Warning>),
}

/// Reads the parts of one application's log, in order, into an application.
///
/// # Errors
/// When no part can be opened, when there is no event in any, and, if strict, when anything could
/// not be read.
pub fn event_log(parts: Vec<Part>, options: &Options) -> Result<Application, Error> {
    let first_name = parts.first().map(|part| part.name.clone()).unwrap_or_default();
    let for_model = options.limits.max_memory_bytes / 4;
    let mut limits = options.limits.clone();
    limits.max_memory_bytes -= for_model;
    let source_options = source::Options { limits, threads: options.threads, progress: options.progress.clone() };
    let mut fold = Fold::new(for_model);
    let stats = source::run(parts, &source_options, parse_batch, |place, parsed| {
        fold.batch(At { part: place.part, first_line: place.first_line }, parsed);
        ControlFlow::Continue(())
    });
    refuse_unopened(&stats)?;
    let app = fold.finish(&stats);
    if app.log.events.is_empty() {
        return Err(Error::NoEvents { name: first_name, lines: app.log.lines });
    }
    let damaged = app.log.bad_lines > 0 || !stats.is_complete();
    match options.strict && damaged {
        true => Err(Error::Damaged(app.log.warnings)),
        false => Ok(app),
    }
}

/// Reads a log once more for what Spark's REST API tells of SQL executions and the application does
/// not hold: plan graphs, and metrics with their smallest, median and largest update.
///
/// # Errors
/// When no part can be opened.
pub fn sql_metrics(parts: Vec<Part>, options: &Options) -> Result<SqlMetrics, Error> {
    let for_updates = options.limits.max_memory_bytes / 4;
    let mut limits = options.limits.clone();
    limits.max_memory_bytes -= for_updates;
    let source_options = source::Options { limits, threads: options.threads, progress: options.progress.clone() };
    let mut listener = Listener::new(for_updates);
    let stats = source::run(
        parts,
        &source_options,
        |batch| sql_metrics::batch(lines(batch)),
        |_, parsed| {
            listener.batch(parsed);
            ControlFlow::Continue(())
        },
    );
    refuse_unopened(&stats)?;
    Ok(listener.finish())
}

fn parse_batch(batch: &Batch) -> parse::Parsed {
    parse::batch(lines(batch))
}

fn lines(batch: &Batch) -> impl Iterator<Item = parse::RawLine<'_>> {
    batch.lines().map(|line| parse::RawLine { bytes: line.bytes, index: line.index, maybe_cut: line.maybe_cut })
}

fn refuse_unopened(stats: &ReadStats) -> Result<(), Error> {
    let unopened = |part: &source::PartStats| match part.damages.first().map(|d| &d.what) {
        Some(DamageKind::NotOpened { message }) => {
            Some(Error::NotOpened { name: part.name.clone(), message: message.clone() })
        }
        _ => None,
    };
    let mut errors = stats.parts.iter().map(unopened);
    match errors.next() {
        Some(Some(first)) if errors.all(|e| e.is_some()) => Err(first),
        _ => Ok(()),
    }
}
