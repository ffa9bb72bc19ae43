//! Logs that change while they are served: every answer is of one whole version, and in the end of
//! the last one.

use super::server::{Answers, Server, eventually};
use super::{Outcome, World};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The two logs that take each other's place: A is the larger one.
const A: &str = "codec_none";
const B: &str = "names_html";
/// The one that is written over A, and A over it: longer, so that the file holds some of both most
/// of the time.
const LONGER: &str = "partition_pruning.zstd";
/// Name of the log that is served.
const NAME: &str = "app-served";
/// How long a log is rewritten without a pause, and how long when it may take long.
const REWRITING: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(60));
/// Each line of a log that is rewritten is followed by so many bytes that say nothing: reading must
/// take several pieces.
const PADDING: usize = 200 << 10;
/// The pieces in which it is rewritten, and the time between them.
const PIECE: usize = 512 << 10;
const PIECE_EVERY: Duration = Duration::from_millis(5);
/// Pieces in which a log grows.
const PIECES: usize = 5;

pub fn run(world: &World, outcome: &mut Outcome) -> Result<()> {
    let logs = [std::fs::read(world.logs().join(A))?, std::fs::read(world.logs().join(B))?];
    Scene::new(world, [padded(&logs[0]), padded(&world.plain(LONGER)?)])?.rewritten(outcome)?;
    let scene = Scene::new(world, logs)?;
    scene.renamed_over(outcome)?;
    scene.truncated(outcome)?;
    scene.grows(outcome)?;
    for (how, replace) in GONE {
        scene.gone(outcome, how, replace)?;
    }
    scene.links(outcome)?;
    scene.not_kept(outcome)?;
    scene.unreadable(outcome)
}

/// What a log may be replaced by that is none.
type Replace = fn(&Path) -> std::io::Result<()>;
const GONE: [(&str, Replace); 4] = [
    ("deleted", |_| Ok(())),
    ("replaced by a folder", |path| std::fs::create_dir(path)),
    ("replaced by a link that leads nowhere", |path| symlink("nowhere", path)),
    ("replaced by an endless device", |path| symlink("/dev/zero", path)),
];

/// Both logs and what is answered of each.
struct Scene<'a> {
    world: &'a World,
    logs: [Vec<u8>; 2],
    ids: [String; 2],
    whole: [Answers; 2],
}

impl<'a> Scene<'a> {
    fn new(world: &'a World, logs: [Vec<u8>; 2]) -> Result<Self> {
        let (a, b) = (Self::alone(world, &logs[0])?, Self::alone(world, &logs[1])?);
        ensure!(a.1.0.len() > 4 && b.1.0.len() > 4, "too few answers to tell versions by");
        Ok(Self { world, logs, ids: [a.0, b.0], whole: [a.1, b.1] })
    }

    /// Id and answers of a log that is served alone and stays as it is.
    fn alone(world: &World, log: &[u8]) -> Result<(String, Answers)> {
        let (data, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
        std::fs::write(folder.path().join(NAME), log)?;
        let server = Server::start(world, data.path(), &[folder.path()], &[])?;
        server.ready()?;
        let id = server.ids()?.into_iter().next().context("no application")?;
        let answers = server.answers_of(&id)?;
        Ok((id, answers))
    }

    /// A server over a folder with A in it.
    fn serve(&self, args: &[&str]) -> Result<Served> {
        let (data, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let log = folder.path().join(NAME);
        std::fs::write(&log, &self.logs[0])?;
        let server = Server::start(self.world, data.path(), &[folder.path()], args)?;
        server.ready()?;
        Ok(Served { server, log, folder, data })
    }

    /// Asks for everything of both logs once. Each answer is that of the whole log, or there is none.
    fn look(&self, server: &Server, seen: &mut Seen) -> Result<()> {
        for (path, whole) in self.whole.iter().flat_map(|answers| &answers.0) {
            let answer = server.get(path)?;
            match answer.status {
                404 => {}
                200 if serde_json::from_slice::<Value>(&answer.body)? == *whole => seen.whole += 1,
                200 => seen.part(path, serde_json::from_slice(&answer.body)?),
                status => seen.wrong.push(format!("{path}: {status} {}", answer.text())),
            }
        }
        Ok(())
    }

    /// Waits until the list holds these and nothing else, looking at everything all the time.
    fn until(&self, served: &Served, ids: &[&str], seen: &mut Seen) -> Result<()> {
        let ids: BTreeSet<String> = ids.iter().map(|&id| id.to_owned()).collect();
        let seen = std::cell::RefCell::new(seen);
        eventually(&format!("{ids:?} are listed"), || {
            self.look(&served.server, &mut seen.borrow_mut())?;
            Ok(served.server.ids()? == ids)
        })
    }

    /// That the last version is served whole, and nothing was ever of another.
    fn check(&self, served: &mut Served, last: usize, seen: &Seen, outcome: &mut Outcome, after: &str) -> Result<()> {
        served.server.answers_of(&self.ids[last])?.check(&self.whole[last], outcome, after);
        outcome.check(seen.wrong.is_empty(), format!("{after}: {:?}", seen.wrong));
        outcome.check(
            seen.parts.is_empty(),
            format!("{after}: these answers are of no whole log: {:?}", seen.parts.keys()),
        );
        outcome.check(seen.whole > 0, format!("{after}: nothing was answered"));
        served.server.lives(outcome, after)
    }

    fn renamed_over(&self, outcome: &mut Outcome) -> Result<()> {
        let mut served = self.serve(&[])?;
        let mut seen = Seen::default();
        self.until(&served, &[&self.ids[0]], &mut seen)?;
        served.rename_over(&self.logs[1])?;
        self.until(&served, &[&self.ids[1]], &mut seen)?;
        self.check(&mut served, 1, &seen, outcome, "another log was renamed over it")
    }

    /// The same when no application stays in memory or in the store: what is asked for is read from
    /// the log, which holds another one by then.
    fn not_kept(&self, outcome: &mut Outcome) -> Result<()> {
        let mut served = self.serve(&["--memory", "1", "--max-store", "1"])?;
        std::fs::copy(self.world.logs().join("speculation.zstd"), served.folder.path().join("other.zstd"))?;
        eventually("the other log is listed", || Ok(served.server.ids()?.len() == 2))?;
        let other = served.server.ids()?.into_iter().find(|id| *id != self.ids[0]).context("no other")?;
        // Now the other one is in memory.
        served.server.answers_of(&other)?;
        let mut seen = Seen::default();
        served.rename_over(&self.logs[1])?;
        self.until(&served, &[&self.ids[1], &other], &mut seen)?;
        self.check(&mut served, 1, &seen, outcome, "another log was renamed over one that is not kept")
    }

    /// Cut in place: what is left is an application without an end.
    fn truncated(&self, outcome: &mut Outcome) -> Result<()> {
        let mut served = self.serve(&[])?;
        let after = "it was cut in place";
        std::fs::File::options().write(true).open(&served.log)?.set_len(self.logs[0].len() as u64 / 2)?;
        eventually("the application has no end", || Ok(!served.is_complete(&self.ids[0])?))?;
        let mut seen = Seen::default();
        self.look(&served.server, &mut seen)?;
        self.check_parts(&seen, outcome, after);
        outcome.check(!seen.parts.is_empty(), format!("{after}: the whole log is still served"));
        std::fs::write(&served.log, &self.logs[0])?;
        eventually("the application has an end", || served.is_complete(&self.ids[0]))?;
        self.check(
            &mut served,
            0,
            &Seen { whole: 1, ..Seen::default() },
            outcome,
            "it was cut in place and is whole again",
        )
    }

    /// That parts are the beginnings of the whole log: no stage that it lacks, no completed one that
    /// differs.
    fn check_parts(&self, seen: &Seen, outcome: &mut Outcome, after: &str) {
        outcome.check(seen.wrong.is_empty(), format!("{after}: {:?}", seen.wrong));
        for (id, whole) in self.ids.iter().zip(&self.whole) {
            let path = format!("/api/v1/applications/{id}/stages");
            let of_whole = by_stage(&whole.0[&path]);
            let is_of_whole = |stage: &Value| {
                of_whole.get(&key(stage)).is_some_and(|whole| stage["status"] != "COMPLETE" || whole == stage)
            };
            let stages = seen.parts.get(&path).into_iter().flatten().filter_map(Value::as_array).flatten();
            let mixed: BTreeSet<(u64, u64)> = stages.filter(|stage| !is_of_whole(stage)).map(key).collect();
            outcome.check(mixed.is_empty(), format!("{after}: stages {mixed:?} of {id} are of no whole log"));
        }
    }

    /// A log of an application that runs: it grows, also in the middle of a line, and gets its name
    /// when the application ends.
    fn grows(&self, outcome: &mut Outcome) -> Result<()> {
        let mut served = self.serve(&[])?;
        let after = "it grew slowly";
        std::fs::remove_file(&served.log)?;
        self.until(&served, &[], &mut Seen::default())?;
        let running = served.folder.path().join(format!("{NAME}.inprogress"));
        let mut file = std::fs::File::create(&running)?;
        let mut seen = Seen::default();
        let mut written = Vec::new();
        for piece in self.logs[0].chunks(self.logs[0].len().div_ceil(PIECES)) {
            file.write_all(piece)?;
            written.extend(piece);
            let stages = testkit::logs::read_bytes(&written)?.stages.len();
            eventually(&format!("{stages} stages are listed"), || Ok(served.stages(&self.ids[0])? == stages))?;
            self.look(&served.server, &mut seen)?;
        }
        std::fs::rename(&running, &served.log)?;
        eventually("the application has an end", || served.is_complete(&self.ids[0]))?;
        self.check_parts(&seen, outcome, after);
        self.check(&mut served, 0, &Seen { whole: 1, ..Seen::default() }, outcome, after)
    }

    fn gone(&self, outcome: &mut Outcome, how: &str, replace: Replace) -> Result<()> {
        let mut served = self.serve(&[])?;
        let mut seen = Seen::default();
        self.look(&served.server, &mut seen)?;
        std::fs::remove_file(&served.log)?;
        replace(&served.log)?;
        self.until(&served, &[], &mut seen)?;
        let answer = served.server.get(&format!("/api/v1/applications/{}/stages", self.ids[0]))?;
        outcome.check(answer.status == 404, format!("{how}: still answered: {}", answer.status));
        if served.log.symlink_metadata().is_ok_and(|about| about.is_dir()) {
            std::fs::remove_dir(&served.log)?;
        } else if served.log.symlink_metadata().is_ok() {
            std::fs::remove_file(&served.log)?;
        }
        std::fs::write(&served.log, &self.logs[1])?;
        self.until(&served, &[&self.ids[1]], &mut seen)?;
        self.check(&mut served, 1, &seen, outcome, how)
    }

    /// Links that leave the folder: one to a log is that log, as in Spark; of anything else nothing
    /// is told but that it is no log.
    fn links(&self, outcome: &mut Outcome) -> Result<()> {
        let mut served = self.serve(&[])?;
        let (after, outside) = ("a link leaves the folder", tempfile::tempdir()?);
        std::fs::write(outside.path().join("log"), &self.logs[1])?;
        std::fs::remove_file(&served.log)?;
        symlink(outside.path().join("log"), &served.log)?;
        symlink("/etc/passwd", served.folder.path().join("app-passwd"))?;
        symlink("/proc/self/environ", served.folder.path().join("app-environ"))?;
        symlink(served.data.path().join("lakescope.db"), served.folder.path().join("app-database"))?;
        let mut seen = Seen::default();
        self.until(&served, &[&self.ids[1]], &mut seen)?;
        for path in ["/", "/plain", "/api/lakescope/v1/applications", "/api/v1/applications", "/metrics"] {
            let text = served.server.get(path)?.text();
            let told = ["root:", "PATH=", "SQLite format"].iter().find(|secret| text.contains(**secret));
            outcome.check(told.is_none(), format!("{after}: {path} tells {told:?}"));
        }
        self.check(&mut served, 1, &seen, outcome, after)
    }

    /// A and B are written into the same file, again and again, while everything is asked for.
    fn rewritten(&self, outcome: &mut Outcome) -> Result<()> {
        let mut served = self.serve(&[])?;
        let (after, stop) = ("it was rewritten all the time", AtomicBool::new(false));
        let mut seen = Seen::default();
        let lasts = if self.world.long { REWRITING.1 } else { REWRITING.0 };
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| self.rewrite(&served.log, &stop));
            let begun = Instant::now();
            let mut looked = Ok(());
            while begun.elapsed() < lasts && looked.is_ok() {
                looked = self.look(&served.server, &mut seen);
            }
            stop.store(true, Ordering::Relaxed);
            writer.join().map_err(|_| anyhow::anyhow!("the writer stopped")).and_then(|written| written)?;
            looked
        })?;
        let parts: usize = seen.parts.values().map(Vec::len).sum();
        println!("{after}: {} whole answers, {parts} of an application without an end", seen.whole);
        self.check_parts(&seen, outcome, after);
        self.until(&served, &[&self.ids[1]], &mut Seen::default())?;
        // The last state may be read a moment after an earlier one of the same log.
        eventually("the last version is whole", || Ok(served.server.answers_of(&self.ids[1])? == self.whole[1]))?;
        let whole = Seen { whole: seen.whole, wrong: seen.wrong, ..Seen::default() };
        self.check(&mut served, 1, &whole, outcome, after)
    }

    /// Ends with B.
    fn rewrite(&self, log: &Path, stop: &AtomicBool) -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            for bytes in &self.logs {
                // Over the other one, so that for a while the file begins with one and ends with the other.
                let mut file = std::fs::File::options().write(true).open(log)?;
                for piece in bytes.chunks(PIECE) {
                    file.write_all(piece)?;
                    std::thread::sleep(PIECE_EVERY);
                }
                file.set_len(bytes.len() as u64)?;
            }
        }
        Ok(())
    }

    /// A log that may not be read is named with the reason, and read when it may be.
    fn unreadable(&self, outcome: &mut Outcome) -> Result<()> {
        let (after, Some(nobody)) = ("it may not be read", Nobody::find(self.world)?) else {
            outcome.skip("faults-history: a log that may not be read: needs root, and a binary that anybody may run");
            return Ok(());
        };
        let (data, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let log = folder.path().join(NAME);
        std::fs::write(&log, &self.logs[0])?;
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755))?;
        std::fs::set_permissions(&log, PermissionsExt::from_mode(0o000))?;
        let mut server = nobody.serve(self.world, data.path(), folder.path())?;
        server.ready()?;
        outcome.check(server.ids()?.is_empty(), format!("{after}: it is listed"));
        let page = server.get("/plain")?.text();
        outcome.check(page.contains(NAME) && page.contains("ermission"), format!("{after}: the page does not say so"));
        std::fs::set_permissions(&log, PermissionsExt::from_mode(0o644))?;
        let id = &self.ids[0];
        let read = eventually("it is read", || Ok(server.ids()?.contains(id)));
        outcome.check(read.is_ok(), format!("{after}, then it may: it is not read"));
        if read.is_ok() {
            server.answers_of(id)?.check(&self.whole[0], outcome, "it may be read again");
        }
        server.lives(outcome, after)
    }
}

fn padded(log: &[u8]) -> Vec<u8> {
    let padding = format!("{{\"Event\":\"SparkListenerNothing\",\"Text\":\"{}\"}}\n", "a".repeat(PADDING));
    log.split_inclusive(|&b| b == b'\n').flat_map(|line| [line, padding.as_bytes()]).flatten().copied().collect()
}

/// Stages of a list by number and attempt.
fn by_stage(list: &Value) -> BTreeMap<(u64, u64), Value> {
    list.as_array().into_iter().flatten().map(|stage| (key(stage), stage.clone())).collect()
}

fn key(stage: &Value) -> (u64, u64) {
    (stage["stageId"].as_u64().unwrap_or(u64::MAX), stage["attemptId"].as_u64().unwrap_or(u64::MAX))
}

/// A server with its folders.
struct Served {
    server: Server,
    log: PathBuf,
    folder: tempfile::TempDir,
    data: tempfile::TempDir,
}

impl Served {
    fn rename_over(&self, bytes: &[u8]) -> Result<()> {
        let beside = self.data.path().join("beside");
        std::fs::write(&beside, bytes)?;
        std::fs::rename(beside, &self.log)?;
        Ok(())
    }

    fn is_complete(&self, id: &str) -> Result<bool> {
        let about = self.server.json(&format!("/api/v1/applications/{id}"))?;
        Ok(about["attempts"][0]["completed"] == true)
    }

    fn stages(&self, id: &str) -> Result<usize> {
        let answer = self.server.get(&format!("/api/v1/applications/{id}/stages"))?;
        Ok(if answer.status == 404 { 0 } else { answer.json()?.as_array().map_or(0, Vec::len) })
    }
}

/// What was seen of two logs that take each other's place.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Answers that were those of a whole log.
    whole: usize,
    /// Answers of no whole log, by path.
    parts: BTreeMap<String, Vec<Value>>,
    /// Answers that are none.
    wrong: Vec<String>,
}

impl Seen {
    fn part(&mut self, path: &str, value: Value) {
        self.parts.entry(path.to_owned()).or_default().push(value);
    }
}

/// A user who may do little, to run a server as.
struct Nobody;

impl Nobody {
    const ID: u32 = 65_534;

    /// `None` when we may not become that user, or that user may not run the binary.
    fn find(world: &World) -> Result<Option<Self>> {
        use std::os::unix::process::CommandExt;
        let mut version = std::process::Command::new(&world.binary);
        let ran = version.arg("--version").uid(Self::ID).gid(Self::ID).output();
        Ok(ran.is_ok_and(|output| output.status.success()).then_some(Self))
    }

    fn serve(&self, world: &World, data: &Path, folder: &Path) -> Result<Server> {
        use std::os::unix::process::CommandExt;
        std::os::unix::fs::chown(data, Some(Self::ID), Some(Self::ID))?;
        Server::start_as(Server::command(world, data, &[folder], &[]).uid(Self::ID).gid(Self::ID))
    }
}
