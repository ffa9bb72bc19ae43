//! From named byte streams to batches of whole lines.
//!
//! In: [`Part`]s, which the caller opens (files, objects, standard input, entries of an archive).
//! Out: [`Batch`]es of whole lines, parsed in parallel and folded in order by [`run`], and
//! [`ReadStats`], which name every damage. The steps before it:
//!
//! 1. [`group`] tells from a listing which names form one application's log;
//! 2. [`probe`] looks at the first bytes, to leave out what is no event log;
//! 3. [`zip_logs`] lists and groups a zip archive.
//!
//! [`read_text`] reads what turned out to be no log: a plan, a stack trace.
//!
//! Nothing here fails because of what is in a log, allocates by what a log claims, or knows JSON.

mod batch;
mod buffer;
mod codec;
mod damage;
mod group;
mod input;
pub mod limits;
mod part;
mod pipeline;
mod probe;
mod progress;
mod split;
mod stats;
mod text;
mod zip;

pub use batch::{Batch, Line, Lines, Place};
pub use codec::Codec;
pub use damage::{Damage, DamageKind};
pub use group::{Entry, Grouped, Ignored, LogFiles, LogKind, Note, group};
pub use limits::Limits;
pub use part::{ByteStream, Part};
pub use pipeline::{Options, run};
pub use probe::{LooksLike, Probe, is_event_line, probe};
pub use progress::Progress;
pub use stats::{LongLine, PartStats, ReadStats, Stop};
pub use text::{Text, read_text};
pub use zip::{SeekableStream, ZipError, ZipLogs, zip_logs};
