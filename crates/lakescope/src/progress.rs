//! A bar on standard error while a long reading runs; nothing when nobody looks.

use indicatif::{ProgressBar, ProgressStyle};
use read::source::Progress;
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Short readings show no bar at all.
const QUIET_FOR: Duration = Duration::from_millis(600);
const EVERY: Duration = Duration::from_millis(100);

/// A bar that follows a reading until it is dropped.
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Follows `progress` up to `total` stored bytes; 0 when the total is not known.
    pub fn start(what: &str, total: u64, progress: Progress, wanted: bool) -> Self {
        if !wanted || !std::io::stderr().is_terminal() {
            return Self { stop: None, thread: None };
        }
        let what = crate::render::one_line(what);
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            if stopped.recv_timeout(QUIET_FOR) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = bar(&what, total);
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                bar.set_position(progress.stored_bytes());
            }
            bar.finish_and_clear();
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A bar that panicked is no reason to lose the answer.
            let _ = thread.join();
        }
    }
}

fn bar(what: &str, total: u64) -> ProgressBar {
    let (bar, template) = match total {
        0 => (ProgressBar::new_spinner(), "{spinner} {msg}  {bytes}  {bytes_per_sec}"),
        _ => (ProgressBar::new(total), "{msg}  {bar:30} {bytes} of {total_bytes}  {bytes_per_sec}, {eta} left"),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("█▌░"));
    }
    bar.with_message(what.to_owned())
}
