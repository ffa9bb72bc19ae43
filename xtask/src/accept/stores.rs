//! `stores`: logs in buckets of real servers give byte for byte what the same files give, and what
//! can go wrong ends soon, with the address and a next step.

mod buckets;
mod servers;

use super::Outcome;
use crate::lakescope_binary;
use anyhow::{Context, Result, bail};
use buckets::Store;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use testkit::encode;

/// A failure ends within this. What is silent is waited for longer than what refuses.
const ENDS_WITHIN: Duration = Duration::from_secs(15);
const SILENCE_ENDS_WITHIN: Duration = Duration::from_secs(40);
/// Least size of the large object: several pieces of 4 MiB.
const LARGE_BYTES: usize = 17_000_000;
/// Connections that break, and the bytes that come before.
const BROKEN: usize = 4;
const BREAKS_AFTER: u64 = 1_500_000;

/// A name that is spelt in every way that an address may spoil.
const ODD: &str = "odd/dt=2026-11-29 00%3A00/größe+ü #1?.zstd";

/// One application.
const SMALL: &str = "apps/shop_daily.zstd";
/// A log of several pieces.
const LARGE: &str = "large/log";
/// The shared logs, of which some are damaged.
const SHARED: &str = "shared";

/// What is read of the files and of the buckets, with `--strict`. A folder gives a list of its
/// applications.
const ADDRESSES: [&str; 11] = [
    SMALL,
    "apps/",
    "apps",
    "rolling/eventlog_v2_app-1",
    "rolling/eventlog_v2_app-1/",
    "rolling",
    "zips/eventLogs-app-1.zip",
    "zips",
    ODD,
    "odd/dt=2026-11-29 00%3A00",
    LARGE,
];

/// Runs every server that can be had here.
pub fn run(_: &[String]) -> Result<Outcome> {
    let binary = lakescope_binary()?;
    let files = Files::write()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut outcome = Outcome::default();
    let expected = files.reports(&binary)?;
    for (name, prepare) in buckets::ALL {
        let begun = Instant::now();
        match prepare(&runtime, &files)? {
            Err(why) => outcome.skip(format!("{name}: {why}")),
            Ok(store) => {
                let checks = Checks { binary: &binary, store: &store };
                checks.reports(&expected, &mut outcome)?;
                checks.failures(&mut outcome)?;
                if name == buckets::ALL[0].0 {
                    // The wait is the same for all, and long.
                    checks.silence(&mut outcome)?;
                }
                println!("{name}: {:.1} s", begun.elapsed().as_secs_f64());
            }
        }
    }
    Ok(outcome)
}

/// The files that are put into each bucket, in a folder.
struct Files {
    folder: tempfile::TempDir,
    names: Vec<String>,
}

impl Files {
    fn write() -> Result<Self> {
        let mut files = Self { folder: tempfile::tempdir()?, names: Vec::new() };
        let mut plain = Vec::new();
        for entry in std::fs::read_dir(crate::root().join("samples"))? {
            let path = entry?.path();
            let Some(name) = path.file_name().and_then(|n| n.to_str()).filter(|n| n.ends_with(".zstd")) else {
                continue;
            };
            let bytes = std::fs::read(&path)?;
            if name == "shop_daily.zstd" {
                plain = zstd::decode_all(&bytes[..])?;
                files.add(ODD, &bytes)?;
            }
            files.add(&format!("apps/{name}"), &bytes)?;
        }
        files.rolling(&plain)?;
        files.add("zips/eventLogs-app-1.zip", &encode::zip(&[("eventlog", &plain)]))?;
        files.add("text/notes.txt", b"no log\n")?;
        let mut large = plain.repeat(LARGE_BYTES / plain.len().max(1) + 1);
        large.extend(encode::cut_lines(&plain, 2).first().copied().unwrap_or_default());
        files.add(LARGE, &large)?;
        files.shared()?;
        Ok(files)
    }

    /// The shared logs of every kind, damaged ones too, where they are.
    fn shared(&mut self) -> Result<()> {
        let Some(shared) = testkit::shared() else { return Ok(()) };
        for entry in std::fs::read_dir(shared.join("data/eventlogs"))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if entry.file_type()?.is_file() {
                self.add(&format!("{SHARED}/{name}"), &std::fs::read(entry.path())?)?;
            }
        }
        Ok(())
    }

    /// What can be read of them.
    fn addresses(&self) -> Vec<&'static str> {
        let shared = self.names.iter().any(|name| name.starts_with(SHARED)).then_some(SHARED);
        ADDRESSES.into_iter().chain(shared).collect()
    }

    /// A rolling log; its status file is empty, as Spark writes it.
    fn rolling(&mut self, plain: &[u8]) -> Result<()> {
        let log = "rolling/eventlog_v2_app-1";
        self.add(&format!("{log}/appstatus_app-1"), b"")?;
        for (at, part) in encode::cut_lines(plain, 12).into_iter().enumerate() {
            self.add(&format!("{log}/events_{}_app-1.zstd", at + 1), &encode::zstd_frames(part))?;
        }
        Ok(())
    }

    fn add(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().context("a file without a folder")?)?;
        std::fs::write(path, bytes)?;
        self.names.push(name.to_owned());
        Ok(())
    }

    /// Name and content of each.
    fn all(&self) -> impl Iterator<Item = (&str, std::io::Result<Vec<u8>>)> {
        self.names.iter().map(|name| (name.as_str(), std::fs::read(self.folder.path().join(name))))
    }

    /// The addresses and what the binary says of the files themselves.
    fn reports(&self, binary: &Path) -> Result<Vec<(&'static str, String)>> {
        let root = self.folder.path().display().to_string();
        let report = |path| {
            let output = diagnose(binary, &root, path, &[])?;
            if !output.status.success() {
                bail!("the file {path} itself: {}", said(&output));
            }
            Ok((path, without(&root, &output)))
        };
        self.addresses().into_iter().map(report).collect()
    }
}

/// The report without the name of the place, which warnings repeat.
fn without(root: &str, output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).replace(&format!("{root}/"), "")
}

/// Runs `diagnose --format json` with these variables and no others of a provider's; `--strict`
/// but for the damaged logs.
fn diagnose(binary: &Path, root: &str, path: &str, variables: &[(&str, String)]) -> Result<Output> {
    let mut command = Command::new(binary);
    command.args(["diagnose", "--format", "json", "--no-progress"]).arg(format!("{root}/{path}"));
    if path != SHARED {
        command.arg("--strict");
    }
    // No profile of whoever runs this may help.
    command.env_clear().env("HOME", "/nonexistent");
    command.envs(variables.iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| (k, v)));
    command.output().with_context(|| format!("cannot run {}", binary.display()))
}

/// Something that must fail.
struct Failure {
    what: &'static str,
    root: String,
    path: &'static str,
    /// Variables that differ; an empty value unsets one.
    variables: Vec<(&'static str, String)>,
    /// Parts of the message.
    says: &'static [&'static str],
}

struct Checks<'a> {
    binary: &'a Path,
    store: &'a Store,
}

impl Checks<'_> {
    fn reports(&self, expected: &[(&str, String)], outcome: &mut Outcome) -> Result<()> {
        let Store { name, root, also, .. } = self.store;
        for (path, expected) in expected {
            self.same(name, root, &[], path, expected, outcome)?;
        }
        let of = |wanted| expected.iter().find(|(path, _)| *path == wanted).context("a report that was not made");
        let (small, expected_small) = of(SMALL)?;
        for (what, root, variables) in also {
            self.same(&format!("{name}, {what}"), root, variables, small, expected_small, outcome)?;
        }
        let (large, expected_large) = of(LARGE)?;
        let (port, broken) = breaking_proxy(self.store.server.port)?;
        let breaking = self.store.at_port(port);
        self.same(&format!("{name}, connections that break"), root, &breaking, large, expected_large, outcome)?;
        outcome.check(broken.load(Ordering::Relaxed) > 1, format!("{name}: no connection broke"));
        Ok(())
    }

    /// Checks that an object or folder gives what the file gave.
    fn same(
        &self,
        what: &str,
        root: &str,
        variables: &[(&'static str, String)],
        path: &str,
        expected: &str,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let output = self.read(root, path, variables)?;
        let same = output.status.success() && without(root, &output) == expected;
        outcome.check(same, format!("{what}: {path} is not what the file gives: {}", said(&output)));
        Ok(())
    }

    fn failures(&self, outcome: &mut Outcome) -> Result<()> {
        for failure in self.store.failures.iter().chain(&self.common_failures()?) {
            self.fails(failure, ENDS_WITHIN, outcome)?;
        }
        Ok(())
    }

    /// What fails alike on every provider's server.
    fn common_failures(&self) -> Result<Vec<Failure>> {
        let refused = self.store.at_port(servers::free_port()?);
        Ok(vec![
            self.failure("no object", "apps/none", &["no object or folder", "shows what is there"]),
            self.failure("no log", "text", &["no event log at", "none of 1 objects", "notes.txt"]),
            self.failure("empty name", "apps//x", &["an empty part (//)"]),
            Failure {
                variables: refused,
                ..self.failure("no server", "apps", &["no answer from", "refused", "check "])
            },
        ])
    }

    /// A server that takes a connection and says nothing.
    fn silence(&self, outcome: &mut Outcome) -> Result<()> {
        let silent = TcpListener::bind("127.0.0.1:0")?;
        let variables = self.store.at_port(silent.local_addr()?.port());
        let silence = Failure { variables, ..self.failure("silent server", "apps", &["no answer", "check "]) };
        self.fails(&silence, SILENCE_ENDS_WITHIN, outcome)
    }

    fn failure(&self, what: &'static str, path: &'static str, says: &'static [&'static str]) -> Failure {
        Failure { what, root: self.store.root.clone(), path, variables: Vec::new(), says }
    }

    /// Exit code 2, soon, with one line that names the address and what it should.
    fn fails(&self, failure: &Failure, within: Duration, outcome: &mut Outcome) -> Result<()> {
        let begun = Instant::now();
        let output = self.read(&failure.root, failure.path, &failure.variables)?;
        let address = format!("{}/{}", failure.root, failure.path);
        let (took, said) = (begun.elapsed(), said(&output));
        let named = said.contains(&address) && failure.says.iter().all(|part| said.contains(part));
        let ok = output.status.code() == Some(2) && took < within && named && said.trim().lines().count() == 1;
        let what = format!("{}: {} ({:.1} s, {})", self.store.name, failure.what, took.as_secs_f64(), output.status);
        if std::env::var_os("VERBOSE").is_some() {
            println!("{what}: {said}");
        }
        outcome.check(ok, format!("{what}: {said}"));
        Ok(())
    }

    fn read(&self, root: &str, path: &str, variables: &[(&'static str, String)]) -> Result<Output> {
        let mut all = self.store.variables.clone();
        all.extend(variables.iter().cloned());
        let unset: Vec<_> = variables.iter().filter(|(_, value)| value.is_empty()).map(|(name, _)| *name).collect();
        all.retain(|(name, _)| !unset.contains(name));
        diagnose(self.binary, root, path, &all)
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

/// A way to the server on which the first connections break in the middle of an answer, and how
/// many did.
fn breaking_proxy(to: u16) -> Result<(u16, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let broken = Arc::new(AtomicUsize::new(0));
    let count = broken.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(std::result::Result::ok) {
            let broken = count.clone();
            std::thread::spawn(move || pass_on(client, to, &broken));
        }
    });
    Ok((port, broken))
}

fn pass_on(client: TcpStream, to: u16, broken: &AtomicUsize) -> std::io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", to))?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
    let (mut client, mut server) = (client, server);
    let came = std::io::copy(&mut (&mut server).take(BREAKS_AFTER), &mut client)?;
    if came == BREAKS_AFTER && broken.fetch_add(1, Ordering::Relaxed) >= BROKEN {
        std::io::copy(&mut server, &mut client)?;
    }
    client.flush()?;
    client.shutdown(Shutdown::Both)?;
    server.shutdown(Shutdown::Both)
}
