//! What is told between engine and shim.

use super::checkout::Checkout;
use super::files::errno;
use super::packages::Packages;
use super::process::{Boot, Identity};
use crate::step::Epoch;
use crate::{Code, End};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Environment variable of the task and all that it starts: `<name of the attempt folder>:<epoch>`.
pub const ATTEMPT: &str = "LAKESCOPE_ATTEMPT";
/// Environment variable of the task and all that it starts: the attempt folder.
pub const ATTEMPT_DIR: &str = "LAKESCOPE_ATTEMPT_DIR";

/// One start of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Names the start.
    pub epoch: Epoch,
    /// A path, or a name that is looked up in `PATH` of `environment`.
    pub program: String,
    /// As they are; no shell reads them.
    pub arguments: Vec<String>,
    /// All that the program gets, besides [`ATTEMPT`], [`ATTEMPT_DIR`] and secrets.
    pub environment: BTreeMap<String, String>,
    /// Where it runs, absolute.
    pub folder: PathBuf,
    /// Small files that stand in the attempt folder when it starts, by name.
    #[serde(default, skip_serializing)]
    pub files: BTreeMap<String, String>,
    /// Files that it needs from a repository; its folder may be one of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<Checkout>,
    /// Python packages that it needs; its `PATH` begins with their environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages: Option<Packages>,
    /// Bounds of output and time.
    pub limits: Limits,
    /// Handed to the shim in memory, never written to the disk.
    #[serde(skip)]
    pub secrets: Vec<Secret>,
}

/// Bounds of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Size of one file of a stream, bytes.
    pub rotate_bytes: u64,
    /// What is kept of a stream, bytes: the first MiB and as much of the end as fits.
    pub total_bytes: u64,
    /// From the polite signal to the one that kills, ms, when a request to stop names no other.
    pub grace_ms: u64,
    /// How long output is waited for after the program has ended, ms, while something that it
    /// started holds the pipe.
    pub drain_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rotate_bytes: 64 << 20, total_bytes: 256 << 20, grace_ms: 30_000, drain_ms: 1_000 }
    }
}

/// A value that must not be seen in the output.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    /// Environment variable that hands it to the program; `None`: known for redaction only.
    pub env: Option<String>,
    /// The value itself.
    pub value: String,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("env", &self.env).finish_non_exhaustive()
    }
}

/// Finds an attempt again, from any process of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Handle {
    /// The attempt folder, absolute.
    pub dir: PathBuf,
    /// Names the start.
    pub epoch: Epoch,
}

/// `started.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Started {
    pub(super) epoch: Epoch,
    /// The program, and its process group.
    #[serde(flatten)]
    pub(super) task: Identity,
    pub(super) shim: Identity,
    #[serde(flatten)]
    pub(super) boot: Boot,
    pub(super) started_ms: i64,
}

/// `exit.json`: how an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Names the start.
    pub epoch: Epoch,
    /// How.
    pub how: How,
    /// Whether somebody asked it to end before it did.
    pub stopped: bool,
    /// When the program was started, epoch ms.
    pub started_ms: i64,
    /// When it had ended, epoch ms.
    pub ended_ms: i64,
    /// What it took, with all that it started and waited for.
    pub usage: Usage,
    /// Its output.
    pub stdout: Written,
    /// Its messages.
    pub stderr: Written,
    /// Whether something that it started, and that left its process group, still runs.
    pub left_running: bool,
    /// Why output is missing, if it is.
    pub log_error: Option<String>,
}

impl Exit {
    /// What it is to the core. A task that was stopped counts by its code here; whoever stopped it
    /// knows whether that was a time-out or a cancellation.
    #[must_use]
    pub fn end(&self) -> End {
        match self.how {
            How::Code(0) => End::SUCCESS,
            How::Code(_) | How::Signal(_) => End::FAILED,
            How::Failed(_) => End::of(crate::Outcome::Failed, Code::InvalidRunConfiguration),
            How::NoCheckout(_) => End::internal_error(Code::RepositoryCheckoutFailed),
            How::NoPackages(_) => End::internal_error(Code::LibraryInstallationError),
        }
    }
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// By itself, with this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It could not be run; the message says why.
    Failed(String),
    /// Its files could not be had from their repository; the message says why.
    NoCheckout(String),
    /// Packages that it needs could not be installed; the message says why.
    NoPackages(String),
}

/// What a program took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in the program, ms.
    pub user_ms: u64,
    /// CPU time in the kernel, ms.
    pub system_ms: u64,
    /// Largest resident set of any one of its processes, bytes.
    pub max_rss_bytes: u64,
}

/// What became of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Length after redaction, bytes.
    pub bytes: u64,
    /// Of these not kept, bytes.
    pub left_out_bytes: u64,
}

/// The shim's answer to whoever started it, one line on its standard output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// `started.json` is written, the program is released.
    Started,
    /// The attempt has been started by another shim.
    Busy,
    /// Nothing was started.
    Failed { errno: Option<i32>, message: String },
}

impl Reply {
    pub(super) fn failed(error: &io::Error) -> Self {
        Self::Failed { errno: errno(error), message: error.to_string() }
    }
}
