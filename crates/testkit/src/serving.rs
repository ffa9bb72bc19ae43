//! A running `lakescope serve` with a data directory of its own.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// What Linux counts times of processes in.
const TICKS_A_SECOND: f64 = 100.0;

/// The process; stopped when it is dropped.
#[derive(Debug)]
pub struct Serving {
    process: Child,
    /// `http://127.0.0.1:PORT`.
    pub address: String,
    said: Arc<Mutex<Vec<String>>>,
}

impl Serving {
    /// Starts it on a port that the kernel chooses; what it says on standard error afterwards is
    /// passed on. `data` is the data directory.
    ///
    /// # Errors
    /// When it does not start, or ends before it listens: with what it said.
    pub fn start<S: AsRef<OsStr>>(binary: &Path, data: &Path, args: impl IntoIterator<Item = S>) -> Result<Self> {
        Self::start_as(&mut command(binary, data, args), |line| eprintln!("{line}"))
    }

    /// Starts it by a command of its own, such as one with limits of the system; `hear` is told what
    /// it says on standard error afterwards.
    ///
    /// # Errors
    /// When it does not start, or ends before it listens: with what it said.
    pub fn start_as(command: &mut Command, hear: impl Fn(&str) + Send + 'static) -> Result<Self> {
        let mut process = command.stderr(Stdio::piped()).spawn()?;
        let stderr = process.stderr.take().ok_or_else(|| Error::other("no standard error"))?;
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let mut before = Vec::new();
        let address = lines.find_map(|line| {
            let address = line.split_once("listening on ").map(|(_, address)| address.trim().to_owned());
            before.push(line);
            address
        });
        let Some(address) = address else {
            process.wait()?;
            return Err(Error::other(format!("it did not start: {}", before.join("; "))));
        };
        let said = Arc::new(Mutex::new(before));
        let heard = Arc::clone(&said);
        // Nobody else reads it: a full pipe would stop the server.
        std::thread::spawn(move || {
            for line in lines {
                hear(&line);
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        Ok(Self { process, address, said })
    }

    /// What it has said on standard error.
    #[must_use]
    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn runs(&mut self) -> Result<bool> {
        self.process.try_wait().map(|ended| ended.is_none())
    }

    /// Most resident memory that it had, MB.
    ///
    /// # Errors
    /// When the system does not tell: it has ended, or this is no Linux.
    pub fn most_mb(&self) -> Result<f64> {
        most_mb(self.id())
    }

    /// Resident memory that it has now, MB.
    ///
    /// # Errors
    /// When the system does not tell: it has ended, or this is no Linux.
    pub fn resident_mb(&self) -> Result<f64> {
        memory_mb(self.id(), "VmRSS:")
    }

    /// CPU time of it and of all processes below it that have ended, seconds.
    ///
    /// # Errors
    /// When the system does not tell: it has ended, or this is no Linux.
    pub fn cpu_s(&self) -> Result<f64> {
        let id = self.id().to_string();
        let of_server = Stat::of(&id).map(|stat| stat.ticks);
        let of_server = of_server.ok_or_else(|| Error::other(format!("no CPU time is told of process {id}")))?;
        let names = std::fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let children = names.filter_map(|name| Stat::of(&name).filter(|stat| stat.parent == id));
        Ok((of_server + children.map(|stat| stat.ticks).sum::<f64>()) / TICKS_A_SECOND)
    }

    /// Process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Stops it as `kill -9` does.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait().map(drop)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// The command, on a port that the kernel chooses.
pub fn command<S: AsRef<OsStr>>(binary: &Path, data: &Path, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(PathBuf::from(binary));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data).args(args);
    command.env_remove("LAKESCOPE_LISTEN").stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Most resident memory that a process had, MB.
///
/// # Errors
/// When the system does not tell: it has ended, or this is no Linux.
pub fn most_mb(id: u32) -> Result<f64> {
    memory_mb(id, "VmHWM:")
}

fn memory_mb(id: u32, field: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kb = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kb.map(|kb| kb / 1_024.0).ok_or_else(|| Error::other(format!("no {field} is told of process {id}")))
}

/// What `/proc` tells of a process.
struct Stat {
    parent: String,
    /// CPU time of it and of all that it has waited for.
    ticks: f64,
}

impl Stat {
    fn of(id: &str) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name before it may hold anything.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let parent = fields.nth(1)?.to_owned();
        let ticks: Vec<f64> = fields.skip(9).take(4).map_while(|field| field.parse().ok()).collect();
        (ticks.len() == 4).then(|| Self { parent, ticks: ticks.iter().sum() })
    }
}
