//! Tasks as processes of this machine that outlive the engine.
//!
//! In: a [`Launch`] and an empty folder, the *attempt folder*. Out: what became of it, as
//! [`Observed`], told from files and `/proc` alone, so that an engine that was started later knows
//! as much as the one that launched.
//!
//! ```no_run
//! # use run::local::{self, ForkServer, Launch, Observed};
//! # use std::{path::Path, time::Duration};
//! let shims = ForkServer::new("/proc/self/exe".into());
//! let launch = Launch { epoch: 1, program: "/usr/bin/env".into(), folder: "/tmp".into(), ..Launch::default() };
//! let handle = local::launch(&shims, Path::new("/var/lib/attempts/17-1"), &launch)?;
//! match local::wait(&handle, Duration::from_secs(60))? {
//!     Observed::Exited(exit) => println!("{:?}", exit.how),
//!     other => println!("{other:?}"),
//! }
//! # std::io::Result::Ok(())
//! ```
//!
//! Between the engine and the task stands the *shim*, a copy of a process that the [`ForkServer`]
//! keeps: the same binary under a hidden command that calls [`serve_forks`]. The task's own process
//! is a copy of the shim until it becomes the program. The things to know: [`launch`], [`observe`],
//! [`wait`], [`stop`]; [`Launch`] and [`Exit`]; [`logs::read`].
//!
//! | file | written by | holds |
//! |---|---|---|
//! | `launch.json` | engine | [`Launch`] without its secrets |
//! | `started.json` | shim, before the program runs | processes with their start times, boot, namespace |
//! | `stdout`, `stderr`, and these with `.<offset>` behind | shim | the output, see [`logs`] |
//! | `control` | shim, while the task lives | a pipe; a line with a grace time in ms stops the task |
//! | `exit.json` | shim | [`Exit`] |
//! | `not-run.json` | the task's process, before it is the program | why it could not become it |
//! | those of [`Launch::files`] | engine | what the program reads |
//! | `stopped.json` | engine | the attempt was stopped before it started and must not start any more |
//!
//! What holds: a program runs at most once in an attempt folder, since the shim takes a lock on it
//! and runs nothing where `started.json` is. `started.json` is on the disk before the program runs,
//! `exit.json` before the shim ends. When the shim is killed, the task is killed with it; what the
//! task had started is found by its environment, see [`sweep`].
//!
//! It never uses a shell, never writes a secret to the disk and never decides on retries. Messages
//! of errors name the file or process and what to do next; their kind is that of the system call.
#![cfg(target_os = "linux")]

mod checkout;
mod engine;
mod files;
mod fork;
mod fork_server;
mod gate;
pub mod logs;
mod output;
mod packages;
mod process;
mod pump;
mod records;
mod redact;
mod shared;
mod shim;

pub use checkout::Checkout;
pub use engine::{Observed, launch, observe, remove_old, request_stop, stop, sweep, unfinished, wait};
pub use fork_server::{ForkServer, serve_forks};
pub use packages::Packages;
pub use process::Process;
pub use records::{ATTEMPT, ATTEMPT_DIR, Exit, Handle, How, Launch, Limits, Secret, Usage, Written};
pub use redact::{REDACTED, SHORTEST_SECRET_BYTES};
pub use shared::remove_unused;
pub(crate) use shim::now_ms;
pub use shim::shim;
