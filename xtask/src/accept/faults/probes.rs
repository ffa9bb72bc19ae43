//! Names that lead elsewhere: paths and addresses as ids, as file names, as names inside archives
//! and logs. Nothing outside the data directory is read or written, and nobody is called.

use super::server::{Server, tree};
use super::wire::{self, head};
use super::{Outcome, World};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What stands where nobody may read.
const SECRET: &str = "the-secret-beside-the-data-directory";
/// Between two looks at the server's sockets.
const HEAR_EVERY: Duration = Duration::from_millis(5);

pub fn run(world: &World, outcome: &mut Outcome) -> Result<()> {
    let around = tempfile::tempdir()?;
    let data = around.path().join("outer/inner/data");
    std::fs::create_dir_all(&data)?;
    for folder in ["", "outer", "outer/inner"] {
        std::fs::write(around.path().join(folder).join("secret"), SECRET)?;
    }
    let ear = Ear::open()?;
    let mut server = Server::start(world, &data, &[world.logs()], &["--max-upload", "64MB"])?;
    server.ready()?;
    let before = outside(around.path(), &data)?;
    let calls = ear.hear(&server, || {
        asked(&server, outcome, &ear.names())?;
        uploaded(&server, world, outcome, &ear.names())?;
        archives(&server, world, outcome)?;
        named_in_logs(&server, world, outcome)
    })?;
    outcome.check(calls.is_empty(), format!("the server has called {calls:?}"));
    server.lives(outcome, "after names that lead elsewhere")?;
    let after = outside(around.path(), &data)?;
    outcome.check(before == after, format!("outside the data directory something has changed: {:?}", after.keys()));
    inside(&data, outcome)
}

/// Names that lead elsewhere, if anybody follows them.
fn names() -> Vec<String> {
    let long = "a".repeat(10_000);
    let up = "../".repeat(20);
    let names = [
        "../secret",
        "../../secret",
        "../../../secret",
        "..",
        ".",
        "...",
        "~/.ssh/id_rsa",
        "/etc/passwd",
        "//etc/passwd",
        "%2e%2e%2fsecret",
        "%2e%2e/%2e%2e/secret",
        "..%2f..%2fsecret",
        "..%5c..%5csecret",
        "..\\..\\secret",
        "%252e%252e%252fsecret",
        "..%c0%af..%c0%afsecret",
        "secret%00.zstd",
        "%00",
        "%0a",
        "CON",
        "C:%5cWindows%5cwin.ini",
        "\\\\evil.example\\share",
        "file:///etc/passwd",
        "http://169.254.169.254/latest/meta-data/",
        "s3://bucket/key",
        "gs://bucket/key",
        "abfss://c@a.dfs.core.windows.net/k",
        "$(id)",
        "`id`",
        "|id",
        ";id",
        "%7b%7b7*7%7d%7d",
        "<script>",
        "lakescope.db",
        "uploads",
        "applications",
    ];
    let mut names: Vec<String> = names.map(str::to_owned).into();
    names.extend([long, format!("{up}etc/passwd"), "/proc/self/environ".to_owned(), format!("{up}proc/self/environ")]);
    names
}

/// Names as ids, attempts and files of pages; those of `more` would call somebody.
fn asked(server: &Server, outcome: &mut Outcome, more: &[String]) -> Result<()> {
    let id = server.ids()?.into_iter().next().context("no application")?;
    for name in names().iter().chain(more) {
        // As it stands where that is possible, and as one segment.
        let segment = escaped(name);
        let plain: String = name.chars().filter(|c| c.is_ascii_graphic()).collect();
        for name in [plain, segment] {
            for path in [
                format!("/api/v1/applications/{name}"),
                format!("/api/v1/applications/{name}/jobs"),
                format!("/api/v1/applications/{name}/logs"),
                format!("/api/v1/applications/{id}/{name}/stages"),
                format!("/api/v1/applications/{id}/{name}/logs"),
                format!("/api/lakescope/v1/applications/{name}/page"),
                format!("/api/lakescope/v1/applications/{id}/{name}/page"),
                format!("/api/lakescope/v1/compare?base={name}&new={id}"),
                format!("/api/lakescope/v1/compare?base={id}&new={name}"),
                format!("/api/lakescope/v1/applications/{id}/settings?against={name}"),
                format!("/plain/applications/{name}"),
                format!("/applications/{name}"),
                format!("/assets/{name}"),
                format!("/assets/../{name}"),
                format!("/{name}"),
            ] {
                check_asked(server, outcome, &path)?;
            }
        }
    }
    for target in ["http://169.254.169.254/latest/meta-data/", "file:///etc/passwd", "//evil.example/", "*"] {
        check_asked(server, outcome, target)?;
    }
    Ok(())
}

fn check_asked(server: &Server, outcome: &mut Outcome, path: &str) -> Result<()> {
    let answers = wire::all(server.address(), format!("{}\r\n", head("GET", path)).as_bytes())?;
    let fine = |answer: &wire::Answer| (answer.status == 200 || answer.is_refusal()) && tells_nothing(&answer.body);
    let right = matches!(&answers[..], [answer] if fine(answer));
    outcome.check(right, format!("GET {path:.200}: {:.500}", format!("{answers:?}")));
    Ok(())
}

/// Whether an answer holds nothing of what nobody may read.
fn tells_nothing(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body);
    ![SECRET, "root:x:", "PATH=", "SQLite format 3"].iter().any(|secret| text.contains(secret))
}

fn escaped(text: &str) -> String {
    text.bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

/// Names as those of files that are handed over: what is no log, and what is one.
fn uploaded(server: &Server, world: &World, outcome: &mut Outcome, more: &[String]) -> Result<()> {
    let log = std::fs::read(world.eventlogs.join("speculation.zstd"))?;
    for name in names().iter().chain(more).filter(|name| name.len() < 8_000) {
        let (taken, refused) = (server.upload(&escaped(name), &log)?, server.upload(&escaped(name), b"root:x:0:0\n")?);
        outcome.check(taken.status == 201, format!("a log named {name}: {} {}", taken.status, taken.text()));
        outcome.check(refused.is_refusal(), format!("no log, named {name}: {} {}", refused.status, refused.text()));
    }
    Ok(())
}

/// Archives whose entries lead out of any folder: read where they are, unpacked nowhere.
fn archives(server: &Server, world: &World, outcome: &mut Outcome) -> Result<()> {
    let log = world.plain("failed_task_exception.zstd")?;
    for entry in [
        "../../../slipped",
        "/tmp/slipped",
        "..\\..\\slipped",
        "eventlog_v2_../../../slipped/events_1_slipped",
        "C:\\slipped",
    ] {
        let answer = server.upload("slip.zip", &testkit::encode::zip(&[(entry, &log)]))?;
        let clear = answer.status == 201 || answer.is_refusal();
        outcome.check(
            clear && tells_nothing(&answer.body),
            format!("an entry {entry}: {} {}", answer.status, answer.text()),
        );
        outcome.check(!Path::new("/tmp/slipped").exists(), format!("an entry {entry} was unpacked"));
    }
    Ok(())
}

/// Ids and names inside a log.
fn named_in_logs(server: &Server, world: &World, outcome: &mut Outcome) -> Result<()> {
    let log = String::from_utf8(world.plain("failed_task_exception.zstd")?)?;
    let app = testkit::logs::read_bytes(log.as_bytes())?;
    let quoted = |text: &str| serde_json::to_string(text);
    for name in ["../../../../named", "/tmp/named", "..\\named", "named\u{0}", "http://169.254.169.254/", "a/../../b"] {
        let named = log.replace(&quoted(&app.id)?, &quoted(name)?).replace(&quoted(&app.name)?, &quoted(name)?);
        let answer = server.upload("named", named.as_bytes())?;
        outcome.check(
            answer.status == 201,
            format!("an application called {name:?}: {} {}", answer.status, answer.text()),
        );
        outcome.check(server.ids()?.contains(name), format!("an application called {name:?} is not listed"));
        let path = format!("/api/v1/applications/{}/logs", escaped(name));
        let archive = server.get(&path)?;
        let safe = archive
            .header("content-disposition")
            .is_none_or(|file| !file.contains("..%") && !file.contains('/') && !file.contains('\\'));
        outcome.check(safe && archive.status < 500, format!("{path}: {}", archive.head));
    }
    Ok(())
}

/// Files beside the data directory.
fn outside(around: &Path, data: &Path) -> Result<BTreeMap<PathBuf, u64>> {
    Ok(tree(around)?.into_iter().filter(|(path, _)| !path.starts_with(data)).collect())
}

/// That only known names stand in the data directory.
fn inside(data: &Path, outcome: &mut Outcome) -> Result<()> {
    let is_plain =
        |name: &str| !name.starts_with('.') && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    for path in tree(data)?.into_keys() {
        let below = path.strip_prefix(data)?.to_string_lossy().into_owned();
        let known = match below.split_once('/') {
            Some(("applications" | "uploads", name)) => is_plain(name),
            Some(_) => false,
            None => below == "lock" || below.starts_with("lakescope."),
        };
        outcome.check(known, format!("{below} stands in the data directory"));
    }
    Ok(())
}

/// Notices whether the server calls anybody: a listener that its names lead to, and the system's
/// list of connections.
struct Ear(TcpListener);

impl Ear {
    fn open() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        Ok(Self(listener))
    }

    /// Names that lead to the listener.
    fn names(&self) -> Vec<String> {
        let port = self.0.local_addr().map_or(0, |address| address.port());
        ["http", "s3", "gs", "ftp"].map(|scheme| format!("{scheme}://127.0.0.1:{port}/log")).into()
    }

    /// The calls that the server makes meanwhile.
    fn hear(&self, server: &Server, meanwhile: impl FnOnce() -> Result<()>) -> Result<BTreeSet<String>> {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sockets = scope.spawn(|| {
                let mut calls = BTreeSet::new();
                while !over.load(Ordering::Relaxed) {
                    calls.extend(calls_of(server)?);
                    std::thread::sleep(HEAR_EVERY);
                }
                anyhow::Ok(calls)
            });
            let done = meanwhile();
            over.store(true, Ordering::Relaxed);
            let mut calls = sockets.join().map_err(|_| anyhow::anyhow!("nobody listened"))??;
            calls.extend(self.0.accept().ok().map(|(_, from)| format!("the listener, from {from}")));
            done.map(|()| calls)
        })
    }
}

/// Sockets of the server that are not those of its clients: it opened them itself.
fn calls_of(server: &Server) -> Result<Vec<String>> {
    let process = format!("/proc/{}", server.serving.id());
    let files = std::fs::read_dir(format!("{process}/fd"))?.flatten();
    let links: BTreeSet<PathBuf> = files.filter_map(|file| std::fs::read_link(file.path()).ok()).collect();
    let port: u16 = server.address().rsplit(':').next().unwrap_or_default().parse()?;
    let own = format!(":{port:04X}");
    let mut calls = Vec::new();
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        // A system without IPv6 has no table of it.
        let listed = std::fs::read_to_string(format!("{process}/net/{table}")).unwrap_or_default();
        for line in listed.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, local, remote, .., _, _, _] = fields[..] else { continue };
            let Some(inode) = fields.get(9) else { continue };
            if links.contains(Path::new(&format!("socket:[{inode}]"))) && !local.ends_with(&own) {
                calls.push(format!("{table} {remote}"));
            }
        }
    }
    Ok(calls)
}
