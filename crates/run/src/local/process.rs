//! Processes by number and start time, from `/proc`.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A process that cannot be taken for a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) pid: i32,
    /// Field 22 of `/proc/PID/stat`: clock ticks since boot.
    pub(super) start_ticks: u64,
}

impl Identity {
    pub(super) fn of(pid: i32) -> io::Result<Self> {
        let stat =
            Stat::of(pid)?.ok_or_else(|| io::Error::other(format!("process {pid} is gone; start the task again")))?;
        Ok(Self { pid, start_ticks: stat.start_ticks })
    }

    /// The process while it lives or is a zombie. The start time is read after the descriptor is
    /// open, so both are of one process.
    pub(super) fn open(self) -> io::Result<Option<(OwnedFd, Stat)>> {
        let Some(fd) = open_pid(self.pid)? else { return Ok(None) };
        let stat = Stat::of(self.pid)?.filter(|stat| stat.start_ticks == self.start_ticks);
        Ok(stat.map(|stat| (fd, stat)))
    }
}

fn open_pid(pid: i32) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = Pid::from_raw(pid) else { return Ok(None) };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => Ok(Some(fd)),
        // EINVAL: the number is that of a thread now.
        Err(rustix::io::Errno::SRCH | rustix::io::Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What is needed of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    state: u8,
    parent: i32,
    start_ticks: u64,
}

impl Stat {
    /// `None`: no such process.
    pub(super) fn of(pid: i32) -> io::Result<Option<Self>> {
        match fs::read(format!("/proc/{pid}/stat")) {
            Ok(text) => Self::parse(&text).map(Some).ok_or_else(|| {
                io::Error::new(ErrorKind::InvalidData, format!("`/proc/{pid}/stat` has another format"))
            }),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The second field is the name in parentheses and may hold anything.
    fn parse(text: &[u8]) -> Option<Self> {
        let rest = &text[text.iter().rposition(|&b| b == b')')? + 1..];
        let mut fields = std::str::from_utf8(rest).ok()?.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        Some(Self { state, parent: fields.next()?.parse().ok()?, start_ticks: fields.nth(17)?.parse().ok()? })
    }

    pub(super) fn is_zombie(self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// Since when and in which container process numbers mean what they mean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Boot {
    pub(super) boot_id: String,
    /// Inode of the pid namespace.
    pub(super) pid_namespace: u64,
}

impl Boot {
    /// Neither changes while a process lives.
    pub(super) fn current() -> io::Result<Self> {
        static CURRENT: OnceLock<Boot> = OnceLock::new();
        if let Some(current) = CURRENT.get() {
            return Ok(current.clone());
        }
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        let read = Self { boot_id, pid_namespace: fs::metadata("/proc/self/ns/pid")?.ino() };
        Ok(CURRENT.get_or_init(|| read).clone())
    }
}

/// A supervised attempt that is alive. The descriptor becomes readable when it is over and
/// `exit.json` is written.
#[derive(Debug)]
pub struct Process {
    fd: OwnedFd,
    task_pid: i32,
    started_ms: i64,
}

impl Process {
    pub(super) fn new(fd: OwnedFd, task_pid: i32, started_ms: i64) -> Self {
        Self { fd, task_pid, started_ms }
    }

    /// Number of the program's process, and of its group.
    #[must_use]
    pub fn task_pid(&self) -> i32 {
        self.task_pid
    }

    /// When the program was started, epoch ms.
    #[must_use]
    pub fn started_ms(&self) -> i64 {
        self.started_ms
    }

    /// Waits for the end of the attempt; `false`: the time ran out.
    ///
    /// # Errors
    /// The system has no room for the wait.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let is_over = wait_readable(self.fd.as_fd(), timeout)?;
        if is_over {
            reap(self.fd.as_fd());
        }
        Ok(is_over)
    }

    /// Kills the supervisor, and with it the program.
    pub(super) fn kill(&self) -> io::Result<()> {
        kill(self.fd.as_fd())
    }
}

/// For a runtime that waits for many.
impl AsRawFd for Process {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Frees the entry of an ended process, if it is a child of this one.
pub(super) fn reap(pidfd: BorrowedFd<'_>) {
    // Any other process is not ours to wait for, which is no failure.
    let _ = waitid(WaitId::PidFd(pidfd), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
}

fn kill(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    match pidfd_send_signal(pidfd, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// `false`: the time ran out.
pub(super) fn wait_readable(fd: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    let until = Instant::now() + timeout;
    loop {
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        match poll(&mut fds, Some(&timespec(until.saturating_duration_since(Instant::now())))) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

pub(super) fn timespec(time: Duration) -> Timespec {
    // Three years are as good as longer.
    let time = time.min(Duration::from_secs(100_000_000));
    Timespec { tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() }
}

/// Numbers of all processes that can be seen.
fn all() -> io::Result<impl Iterator<Item = i32>> {
    Ok(fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
}

/// Living processes below one, that itself left out.
pub(super) fn descendants(root: i32) -> io::Result<Vec<Identity>> {
    let mut children: BTreeMap<i32, Vec<(i32, Stat)>> = BTreeMap::new();
    for pid in all()? {
        if let Some(stat) = Stat::of(pid)? {
            children.entry(stat.parent).or_default().push((pid, stat));
        }
    }
    let (mut found, mut todo) = (Vec::new(), vec![root]);
    while let Some(parent) = todo.pop() {
        for (pid, stat) in children.remove(&parent).unwrap_or_default() {
            todo.push(pid);
            if !stat.is_zombie() {
                found.push(Identity { pid, start_ticks: stat.start_ticks });
            }
        }
    }
    Ok(found)
}

/// Living processes whose environment holds all of these `NAME=value`, this one left out. Those of
/// other users cannot be looked into and are left out as well.
pub(super) fn with_environment(wanted: &[String]) -> io::Result<Vec<Identity>> {
    let this = i32::try_from(std::process::id()).unwrap_or_default();
    let has_all = |pid: i32| {
        fs::read(Path::new("/proc").join(pid.to_string()).join("environ")).is_ok_and(|environment| {
            let set: BTreeSet<&[u8]> = environment.split(|&b| b == 0).collect();
            wanted.iter().all(|entry| set.contains(entry.as_bytes()))
        })
    };
    let mut found = Vec::new();
    for pid in all()?.filter(|&pid| pid != this && has_all(pid)) {
        if let Some(stat) = Stat::of(pid)?.filter(|stat| !stat.is_zombie()) {
            found.push(Identity { pid, start_ticks: stat.start_ticks });
        }
    }
    Ok(found)
}

/// Kills all that `find` finds until it finds nothing or the time is over, since processes may
/// start others meanwhile. Gives the number of those killed.
pub(super) fn kill_all(mut find: impl FnMut() -> io::Result<Vec<Identity>>, timeout: Duration) -> io::Result<usize> {
    let until = Instant::now() + timeout;
    let mut killed = BTreeSet::new();
    loop {
        let found = find()?;
        if found.is_empty() || Instant::now() > until {
            return Ok(killed.len());
        }
        for identity in found {
            if let Some((fd, _)) = identity.open()? {
                kill(fd.as_fd())?;
                killed.insert((identity.pid, identity.start_ticks));
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_is_skipped() {
        let text = b"42 (a) Z 1 (b)) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 998877 1 2 3";
        assert_eq!(Stat::parse(text), Some(Stat { state: b'S', parent: 7, start_ticks: 998_877 }));
        assert_eq!(Stat::parse(b"42 (a) S 7"), None);
    }

    #[test]
    fn another_start_time_is_another_process() {
        let this = Identity::of(std::process::id().try_into().unwrap()).unwrap();
        assert!(this.open().unwrap().is_some());
        assert!(Identity { start_ticks: this.start_ticks + 1, ..this }.open().unwrap().is_none());
    }
}
