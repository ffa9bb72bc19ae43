//! A process as a copy of this one.

use super::files::about;
use rustix::process::Pid;
use std::io;

/// Which of the two processes this is.
#[derive(Debug)]
pub(super) enum Side {
    Parent(Pid),
    Child,
}

/// Makes a copy of this process, which must have no other thread. The copy has all of its
/// descriptors, and none of its children.
///
/// # Errors
/// There is another thread, or no room for one more process.
#[expect(unsafe_code, reason = "a copy is made three times as fast as a new process of this program")]
pub(super) fn fork() -> io::Result<Side> {
    use nix::unistd::{ForkResult, fork};
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("a process with several threads is not copied; report this"));
    }
    // SAFETY: what makes fork unsound is another thread, which the copy lacks while it has the locks
    // that the thread held and the values that it was changing. This is the only thread: the kernel
    // has just listed it, and none but this one could start another. So the copy is as whole as
    // its original, and any code may run in it. `copies_are_made_by_one_thread_only` holds the
    // check against the many threads of a test.
    match unsafe { fork() } {
        Ok(ForkResult::Child) => Ok(Side::Child),
        Ok(ForkResult::Parent { child }) => {
            Pid::from_raw(child.as_raw()).map(Side::Parent).ok_or_else(|| io::ErrorKind::InvalidData.into())
        }
        Err(error) => Err(about(
            &error.into(),
            "a process for the task cannot be started",
            "check the limits on processes and memory",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_made_by_one_thread_only() {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || stopped.recv());
        assert!(fork().is_err());
        drop(stop);
        assert!(other.join().is_ok());
    }
}
