//! A PostgreSQL server with a folder of its own, which ends with the process that started it.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long the server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of its one user.
const USER: &str = "lakescope";
/// Its password.
pub const PASSWORD: &str = "open-sesame";
/// Runs the server until the standard input ends, with whoever holds its other end, then removes its
/// folder: what a process shares among its tests is never dropped. The disk is not
/// waited for: no test takes the machine's power away.
const KEEP: &str = "\"$1/postgres\" -D \"$2/data\" -k \"$2\" -c listen_addresses= -c max_connections=200 -F & \
                    cat > /dev/null; kill -INT $!; wait $!; rm -rf \"$2\"";

/// A server that listens in its folder.
#[derive(Debug)]
pub struct Postgres {
    keeper: Child,
    bin: PathBuf,
    folder: TempDir,
    databases: AtomicU32,
}

/// Folder with the programs of PostgreSQL: `LAKESCOPE_POSTGRES`, else Debian's newest.
#[must_use]
pub fn bin() -> Option<PathBuf> {
    let given = std::env::var_os("LAKESCOPE_POSTGRES").map(PathBuf::from);
    let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let known = || std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|entry| entry.path());
    let newest = || known().max_by_key(version).map(|path| path.join("bin"));
    given.or_else(newest).filter(|bin| bin.join("initdb").is_file())
}

/// A new, empty database on a server that all tests of this process share; `None`: there is no
/// PostgreSQL here, and the test says that it is skipped.
#[must_use]
pub fn database() -> Option<String> {
    static SERVER: OnceLock<Option<Postgres>> = OnceLock::new();
    let server = SERVER.get_or_init(|| bin().map(|bin| Postgres::start(&bin).unwrap()));
    if server.is_none() {
        println!("skipped: there is no PostgreSQL (apt-get install postgresql, or set LAKESCOPE_POSTGRES)");
    }
    server.as_ref().map(|server| server.database().unwrap())
}

impl Postgres {
    /// Starts a server by the programs of a folder.
    ///
    /// # Errors
    /// When a program fails, or the server does not come up.
    pub fn start(bin: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let secret = folder.path().join("password");
        std::fs::write(&secret, PASSWORD)?;
        hand_over(&[folder.path(), &secret])?;
        let mut init = as_user(bin.join("initdb"));
        init.args(["--no-sync", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256", "--username", USER]);
        init.arg("--pwfile").arg(&secret).arg("--pgdata").arg(folder.path().join("data"));
        done(&mut init)?;
        let mut keep = as_user("sh");
        keep.args(["-c", KEEP, "keep"]).arg(bin).arg(folder.path());
        let keeper = keep.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let server = Self { keeper, bin: bin.to_owned(), folder, databases: AtomicU32::new(0) };
        let begun = Instant::now();
        while let Err(error) = server.sql("SELECT 1") {
            if begun.elapsed() > PATIENCE {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    /// Makes a database; gives its URL.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn database(&self) -> Result<String> {
        let name = format!("database_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql(&format!("CREATE DATABASE {name}"))?;
        Ok(format!("postgresql://{USER}:{PASSWORD}@localhost/{name}?host={}", self.folder.path().display()))
    }

    fn sql(&self, sql: &str) -> Result<()> {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args(["--no-psqlrc", "--username", USER, "--dbname", "postgres", "--command", sql, "--host"]);
        done(psql.arg(self.folder.path()).env("PGPASSWORD", PASSWORD))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// PostgreSQL does not run as root: its own user does it then.
fn as_user(program: impl AsRef<std::ffi::OsStr>) -> Command {
    match user() {
        Some((name, _)) => {
            let mut command = Command::new("runuser");
            command.args(["-u", name, "--"]).arg(program).current_dir("/");
            command
        }
        None => Command::new(program),
    }
}

/// Who runs the server where this process is root.
fn user() -> Option<(&'static str, u32)> {
    let id = |of: &[&str]| {
        let output = Command::new("id").arg("-u").args(of).stderr(Stdio::null()).output().ok()?;
        String::from_utf8_lossy(&output.stdout).trim().parse::<u32>().ok()
    };
    let known = || ["postgres", "nobody"].into_iter().find_map(|name| Some((name, id(&[name])?)));
    id(&[]).filter(|own| *own == 0).and_then(|_| known())
}

fn hand_over(paths: &[&Path]) -> Result<()> {
    let Some((_, id)) = user() else { return Ok(()) };
    paths.iter().try_for_each(|path| std::os::unix::fs::chown(path, Some(id), None))
}

fn done(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::other(format!(
            "{:?} ended with {}: {}",
            command.get_program(),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}
