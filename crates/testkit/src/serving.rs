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
        let id = self.id();
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        // The name before it may hold anything.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
        let ticks: Option<Vec<f64>> = fields.skip(11).take(4).map(|field| field.parse().ok()).collect();
        let ticks = ticks.filter(|ticks| ticks.len() == 4);
        ticks
            .map(|ticks| ticks.iter().sum::<f64>() / TICKS_A_SECOND)
            .ok_or_else(|| Error::other(format!("no CPU time is told of process {id}")))
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
