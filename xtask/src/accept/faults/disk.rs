//! A full disk: a real one of a megabyte where the system lets us mount it, and everywhere a limit
//! on the size of files.

use super::server::{Answers, Server, check_leftovers, kept};
use super::{Outcome, World};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Holds the database, but not all applications.
const SMALL: &str = "1m";
const LARGE: &str = "64m";
/// Too small for a database.
const TINY: &str = "16k";
/// Largest file in blocks of 512 or 1,024 bytes, as the shell counts them.
const BLOCKS: u32 = 600;

pub fn run(world: &World, outcome: &mut Outcome) -> Result<()> {
    match Disk::mount(SMALL)? {
        Some(disk) => {
            full(world, outcome, &disk)?;
            no_room_at_all(world, outcome)?;
        }
        None => outcome.skip("faults-history: a full disk: this system lets us mount none"),
    }
    files_that_may_not_grow(world, outcome)
}

fn full(world: &World, outcome: &mut Outcome, disk: &Disk) -> Result<()> {
    let mut server = Server::start(world, disk.folder(), &[world.logs()], &["--memory", "1MB"])?;
    server.ready()?;
    let (after, all) = ("the disk is full", world.undisturbed()?);
    // Twice: the second time most applications have gone from memory, and are in no store.
    for _ in 0..2 {
        server.answers()?.check(all, outcome, after);
    }
    check_told(&server, outcome, disk.folder(), after);
    check_refused(&server, outcome, world, disk.folder())?;
    server.lives(outcome, after)?;
    disk.resize(LARGE)?;
    let log = std::fs::read(world.eventlogs.join("skew_join_hot_key.zstd"))?;
    let taken = server.upload("more.zstd", &log)?;
    outcome.check(taken.status == 201, format!("the disk has room again: a log is refused: {}", taken.text()));
    drop(server);
    std::fs::remove_file(disk.folder().join("uploads/more.zstd"))?;
    check_recovered(world, outcome, disk.folder(), all, "the disk was full")
}

/// What was not kept is told with its folder and what to do.
fn check_told(server: &Server, outcome: &mut Outcome, folder: &Path, after: &str) {
    let complaints = server.complaints();
    let names_it =
        |line: &String| line.contains(&folder.display().to_string()) && line.contains("free space on its disk");
    outcome.check(complaints.iter().any(names_it), format!("{after}: no warning names the folder: {complaints:?}"));
}

/// A log for which there is no room is refused, and nothing of it stays.
fn check_refused(server: &Server, outcome: &mut Outcome, world: &World, folder: &Path) -> Result<()> {
    let before = server.ids()?;
    let log = world.plain("delta_merge_optimize.zstd")?;
    let answer = server.upload("large", &log)?;
    let clear = answer.status >= 400 && answer.text().contains(&folder.join("uploads").display().to_string());
    outcome.check(clear, format!("no room for a log: status {}: {}", answer.status, answer.text()));
    outcome.check(server.ids()? == before, "no room for a log: the list has changed");
    check_leftovers(folder, outcome, "no room for a log")
}

/// With room again a start reads what could not be kept, and keeps it.
fn check_recovered(world: &World, outcome: &mut Outcome, data: &Path, all: &Answers, before: &str) -> Result<()> {
    let after = format!("{before} and is not any more");
    let mut server = Server::start(world, data, &[world.logs()], &[])?;
    server.ready()?;
    server.answers()?.check(all, outcome, &after);
    server.lives(outcome, &after)?;
    let complaints = server.complaints();
    outcome.check(complaints.is_empty(), format!("{after}: {complaints:?}"));
    check_leftovers(data, outcome, &after)?;
    let files = kept(data)?.len();
    outcome.check(
        files == all.applications(),
        format!("{after}: {files} of {} applications are kept", all.applications()),
    );
    Ok(())
}

/// A server that cannot keep anything does not start, and says why.
fn no_room_at_all(world: &World, outcome: &mut Outcome) -> Result<()> {
    let Some(disk) = Disk::mount(TINY)? else { return Ok(()) };
    let Err(error) = Server::start(world, disk.folder(), &[world.logs()], &[]) else {
        outcome.check(false, "it starts without room for its database");
        return Ok(());
    };
    let why = error.to_string();
    let clear = why.contains(&disk.folder().display().to_string()) && why.contains("free space");
    outcome.check(clear, format!("a start without room says {why}"));
    Ok(())
}

/// The system refuses every byte beyond a size, as a quota does.
fn files_that_may_not_grow(world: &World, outcome: &mut Outcome) -> Result<()> {
    let data = tempfile::tempdir()?;
    let plain = Server::command(world, data.path(), &[world.logs()], &["--memory", "1MB"]);
    let mut command = Command::new("sh");
    // Without the trap the system would end the process instead of refusing.
    command.args(["-c", &format!("trap '' XFSZ; ulimit -f {BLOCKS}; exec \"$0\" \"$@\"")]);
    command.arg(plain.get_program()).args(plain.get_args()).stdin(Stdio::null()).stdout(Stdio::null());
    let mut server = Server::start_as(&mut command)?;
    server.ready()?;
    let after = "files may not grow";
    server.answers()?.check(world.undisturbed()?, outcome, after);
    check_told(&server, outcome, data.path(), after);
    check_refused(&server, outcome, world, data.path())?;
    server.lives(outcome, after)?;
    drop(server);
    check_recovered(world, outcome, data.path(), world.undisturbed()?, "files could not grow")
}

/// A disk of its own in memory, gone when it is dropped.
struct Disk(tempfile::TempDir);

impl Disk {
    /// `None` where that is forbidden.
    fn mount(size: &str) -> Result<Option<Self>> {
        let folder = tempfile::tempdir()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "tmpfs"]).arg(folder.path());
        let mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        Ok(mounted.then_some(Self(folder)))
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn resize(&self, size: &str) -> Result<()> {
        let mut mount = Command::new("mount");
        let status = mount.args(["-o", &format!("remount,size={size}")]).arg(self.folder()).status()?;
        status.success().then_some(()).context("the disk cannot be made larger")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let folder: PathBuf = self.folder().to_owned();
        let _ = Command::new("umount").arg(folder).status();
    }
}
