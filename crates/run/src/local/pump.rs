//! The shim at work: copies output, listens for a request to stop, notices the end.

use super::output::Output;
use super::process::{descendants, kill_all, timespec};
use super::records::{How, Limits, Written};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group};
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// How often orphans that have ended are looked for when nothing else happens.
const IDLE: Duration = Duration::from_secs(60);
/// How often a task that was asked to stop is looked at, once its first process has ended.
const STOPPING: Duration = Duration::from_millis(50);
/// How long killed processes are waited for.
const DYING: Duration = Duration::from_millis(500);
/// Read at once, bytes: what a pipe holds.
const BUFFER_BYTES: usize = 64 << 10;
/// Reads of one stream after the end: more may come from a process that has left the group.
const LAST_READS: usize = 16;

/// What became of the task.
pub(super) struct Pumped {
    pub(super) how: How,
    pub(super) stopped: bool,
    pub(super) written: [Written; 2],
    pub(super) left_running: bool,
    pub(super) log_error: Option<String>,
}

/// A pipe from the task and where its bytes go.
struct Stream {
    pipe: Option<PipeReader>,
    output: Output,
}

/// A request to stop, being carried out.
struct Stop {
    kill_at: Instant,
    is_killed: bool,
}

pub(super) struct Pump<'a> {
    task: OwnedFd,
    pid: i32,
    control: &'a File,
    limits: Limits,
    streams: [Stream; 2],
    stop: Option<Stop>,
    /// When the program's process had ended. It stays a zombie until the group is killed, so that
    /// the number of the group cannot be that of another.
    ended: Option<Instant>,
    status: Option<WaitStatus>,
    buffer: Vec<u8>,
}

impl<'a> Pump<'a> {
    pub(super) fn new(
        task: OwnedFd,
        pid: i32,
        control: &'a File,
        limits: Limits,
        outputs: [Output; 2],
        pipes: [PipeReader; 2],
    ) -> Self {
        let mut pipes = pipes.into_iter();
        let streams = outputs.map(|output| Stream { pipe: pipes.next(), output });
        let buffer = vec![0; BUFFER_BYTES];
        Self { task, pid, control, limits, streams, stop: None, ended: None, status: None, buffer }
    }

    /// Until the task is over and all of its output is kept.
    pub(super) fn run(&mut self) -> Pumped {
        let run = self.until_over();
        self.kill_group();
        if self.stop.is_some() || run.is_err() {
            kill_below();
        }
        for stream in &mut self.streams {
            (0..LAST_READS).for_each(|_| stream.take(&mut self.buffer));
            stream.output.finish();
        }
        let left_running = self.reap_all();
        Pumped {
            how: self.how(),
            stopped: self.stop.is_some(),
            written: [0, 1].map(|at| self.streams[at].output.written()),
            left_running,
            log_error: self.streams.iter().find_map(|s| s.output.error()).or(run.err().map(|e| e.to_string())),
        }
    }

    fn until_over(&mut self) -> io::Result<()> {
        while !self.is_over()? {
            self.kill_if_due();
            self.take_what_comes()?;
        }
        Ok(())
    }

    fn is_over(&self) -> io::Result<bool> {
        let Some(ended) = self.ended else { return Ok(false) };
        let is_silent = self.streams.iter().all(|stream| stream.pipe.is_none());
        Ok(match &self.stop {
            None => is_silent || ended.elapsed() >= Duration::from_millis(self.limits.drain_ms),
            Some(stop) => stop.is_killed || Instant::now() >= stop.kill_at || is_alone()?,
        })
    }

    fn kill_if_due(&mut self) {
        if let Some(stop) = self.stop.as_mut().filter(|stop| !stop.is_killed && Instant::now() >= stop.kill_at) {
            stop.is_killed = true;
            self.kill_group();
            kill_below();
        }
    }

    /// Waits for one thing to happen and deals with it.
    fn take_what_comes(&mut self) -> io::Result<()> {
        let [control, task, stdout, stderr] = self.ready()?;
        if control {
            self.take_request();
        }
        if stdout {
            self.streams[0].take(&mut self.buffer);
        }
        if stderr {
            self.streams[1].take(&mut self.buffer);
        }
        if task {
            self.ended = Some(Instant::now());
        }
        if ![control, task, stdout, stderr].contains(&true) && self.ended.is_none() {
            self.reap();
        }
        Ok(())
    }

    /// Which of control, task, stdout and stderr have something to tell.
    fn ready(&self) -> io::Result<[bool; 4]> {
        let pipe = |at: usize| self.streams[at].pipe.as_ref().map(AsFd::as_fd);
        let task = self.ended.is_none().then(|| self.task.as_fd());
        let sources: [Option<BorrowedFd<'_>>; 4] = [Some(self.control.as_fd()), task, pipe(0), pipe(1)];
        let mut fds: Vec<PollFd<'_>> =
            sources.iter().flatten().map(|&fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match poll(&mut fds, Some(&timespec(self.patience()))) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok([false; 4]),
            Err(error) => return Err(error.into()),
        }
        let mut told = fds.iter().map(|fd| !fd.revents().is_empty());
        Ok(sources.map(|source| source.is_some() && told.next().unwrap_or_default()))
    }

    /// How long nothing has to be done unless something happens.
    fn patience(&self) -> Duration {
        let until_kill = self.stop.as_ref().filter(|stop| !stop.is_killed).map(|stop| {
            let left = stop.kill_at.saturating_duration_since(Instant::now());
            if self.ended.is_some() { left.min(STOPPING) } else { left }
        });
        let until_drained =
            self.ended.map(|ended| Duration::from_millis(self.limits.drain_ms).saturating_sub(ended.elapsed()));
        until_kill.or(until_drained).unwrap_or(IDLE)
    }

    /// A line with the grace time in ms; without one, that of the launch counts. The shortest of
    /// several requests holds.
    fn take_request(&mut self) {
        let mut text = [0; 256];
        let Ok(read) = (&mut &*self.control).read(&mut text) else { return };
        let text = String::from_utf8_lossy(&text[..read]);
        for line in text.lines() {
            let grace_ms = line.trim().parse().unwrap_or(self.limits.grace_ms);
            self.request(Instant::now() + Duration::from_millis(grace_ms.min(u64::from(u32::MAX))));
        }
    }

    fn request(&mut self, kill_at: Instant) {
        match &mut self.stop {
            Some(stop) => stop.kill_at = stop.kill_at.min(kill_at),
            None => {
                self.stop = Some(Stop { kill_at, is_killed: false });
                self.signal_group(Signal::TERM);
                // One that is stopped could not follow.
                self.signal_group(Signal::CONT);
            }
        }
    }

    fn kill_group(&self) {
        self.signal_group(Signal::KILL);
    }

    fn signal_group(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            // A group that is gone is what was wanted.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Takes the end of processes until none is ready; `true`: some still live.
    fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if pid.as_raw_nonzero().get() == self.pid {
                        self.status = Some(status);
                    }
                }
                Ok(None) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Gives those that were just killed the time to end.
    fn reap_all(&mut self) -> bool {
        let until = Instant::now() + DYING / 5;
        while self.reap() {
            if Instant::now() > until {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    fn how(&self) -> How {
        let status = self.status;
        let signal = status.and_then(WaitStatus::terminating_signal).map(How::Signal);
        let code = status.and_then(WaitStatus::exit_status).map(How::Code);
        signal
            .or(code)
            .unwrap_or_else(|| How::Failed("the end of the program was not seen; start the task again".into()))
    }
}

impl Stream {
    /// One read.
    fn take(&mut self, buffer: &mut [u8]) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.read(buffer) {
            Ok(0) => self.pipe = None,
            Ok(read) => self.output.take(&buffer[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.pipe = None,
        }
    }
}

/// Whether nothing of the task lives any more.
fn is_alone() -> io::Result<bool> {
    Ok(descendants(this())?.is_empty())
}

/// Kills what has left the group as well. This process is the one that orphans come to.
fn kill_below() {
    // What cannot be found is told as left running.
    let _ = kill_all(|| descendants(this()), DYING);
}

fn this() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}
