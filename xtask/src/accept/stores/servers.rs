//! Servers that speak the three providers' protocols: installed under the target folder, run on
//! loopback on a port that the kernel chose, ended with their value.

use anyhow::{Context, Result, bail};
use start::target_folder;
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// S3: keeps objects as files and verifies signatures.
const VERSITYGW: GoTool =
    GoTool { package: "github.com/versity/versitygw/cmd/versitygw", name: "versitygw", version: "v1.8.0" };
/// Google: answers the XML protocol that the client reads with; knows no credentials, and calls a
/// missing bucket an error of its own.
const FAKE_GCS: GoTool =
    GoTool { package: "github.com/fsouza/fake-gcs-server", name: "fake-gcs-server", version: "v1.56.1" };
/// Azure: Microsoft's own, from npm; verifies signatures.
const AZURITE: &str = "3.37.0";
/// How long a server may take to listen.
const START_WITHIN: Duration = Duration::from_secs(30);
/// A port that other software of a machine may own.
const NOT_OURS: u16 = 18080;

/// A running server; it ends when this is dropped.
pub struct Server {
    child: Child,
    /// On 127.0.0.1.
    pub port: u16,
    /// Objects and the server's own words.
    folder: tempfile::TempDir,
}

impl Server {
    /// `http://127.0.0.1:port`
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What starting a server came to.
pub enum Started {
    Running(Server),
    /// Why it cannot run here.
    Absent(String),
}

/// A tool that `go install` builds.
struct GoTool {
    package: &'static str,
    name: &'static str,
    version: &'static str,
}

/// An S3 server with one account and two empty buckets.
pub fn s3(access: &str, secret: &str, region: &str, buckets: &[&str]) -> Result<Started> {
    let Some(binary) = VERSITYGW.installed()? else { return VERSITYGW.absent() };
    start(|port, folder| {
        let objects = folder.join("objects");
        for bucket in buckets {
            std::fs::create_dir_all(objects.join(bucket))?;
        }
        std::fs::create_dir_all(folder.join("about"))?;
        let mut command = Command::new(&binary);
        command.args(["--access", access, "--secret", secret, "--region", region, "--quiet", "--port"]);
        // Not every file system of a test machine has extended attributes.
        command.arg(format!("127.0.0.1:{port}")).args(["posix", "--sidecar"]).arg(folder.join("about")).arg(objects);
        Ok(command)
    })
}

/// An Azure blob server with its well-known account and no container.
pub fn azure() -> Result<Started> {
    let main = match azurite()? {
        Ok(main) => main,
        Err(why) => return Ok(Started::Absent(why)),
    };
    start(|port, folder| {
        let mut command = Command::new("node");
        command.arg(&main).args(["--silent", "--disableTelemetry", "--skipApiVersionCheck"]);
        command.args(["--blobHost", "127.0.0.1", "--blobPort"]).arg(port.to_string()).arg("--location").arg(folder);
        Ok(command)
    })
}

/// A Google Cloud Storage server without a bucket.
pub fn google() -> Result<Started> {
    let Some(binary) = FAKE_GCS.installed()? else { return FAKE_GCS.absent() };
    start(|port, _| {
        let mut command = Command::new(&binary);
        command.args(["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-log-level", "error", "-port"]);
        // Without a port it answers on whatever port a request came by.
        command.arg(port.to_string()).args(["-public-host", "127.0.0.1"]);
        Ok(command)
    })
}

/// A port that nobody listens on now.
pub fn free_port() -> Result<u16> {
    loop {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        if port != NOT_OURS {
            return Ok(port);
        }
    }
}

fn start(command: impl FnOnce(u16, &Path) -> Result<Command>) -> Result<Started> {
    let folder = tempfile::tempdir()?;
    let port = free_port()?;
    let mut command = command(port, folder.path())?;
    let words = File::create(folder.path().join("words"))?;
    let child = command
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(words.try_clone()?)
        .stderr(words)
        .spawn()
        .with_context(|| format!("cannot run {:?}", command.get_program()))?;
    let mut server = Server { child, port, folder };
    server.wait_until_it_listens()?;
    Ok(Started::Running(server))
}

impl Server {
    fn wait_until_it_listens(&mut self) -> Result<()> {
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if self.child.try_wait()?.is_some() || begun.elapsed() > START_WITHIN {
                let words = std::fs::read_to_string(self.folder.path().join("words")).unwrap_or_default();
                bail!("a server does not listen on port {}: {}", self.port, words.trim());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl GoTool {
    fn folder(&self) -> PathBuf {
        target_folder().join("tools").join(format!("{}-{}", self.name, self.version))
    }

    /// The binary, built on first use; `None` when it cannot be built here.
    fn installed(&self) -> Result<Option<PathBuf>> {
        let binary = self.folder().join(self.name);
        if !binary.exists() && is_there("go") {
            println!("building {} {} into {} (minutes, once)", self.name, self.version, self.folder().display());
            std::fs::create_dir_all(self.folder())?;
            let package = format!("{}@{}", self.package, self.version);
            let mut install = Command::new("go");
            // Go wants an absolute path and must not see the module files of a folder above.
            install.args(["install", &package]).env("GOBIN", std::path::absolute(self.folder())?);
            let _ = install.current_dir(std::env::temp_dir()).status()?;
        }
        Ok(binary.exists().then_some(binary))
    }

    fn absent(&self) -> Result<Started> {
        let why = if is_there("go") { "cannot be built here" } else { "needs go, which is not installed" };
        Ok(Started::Absent(format!("{} {} {why}", self.name, self.version)))
    }
}

/// Azurite's program, installed on first use; else why not.
fn azurite() -> Result<std::result::Result<PathBuf, String>> {
    let folder = target_folder().join("tools").join(format!("azurite-{AZURITE}"));
    let main = folder.join("node_modules/azurite/dist/src/blob/main.js");
    if main.exists() {
        return Ok(Ok(main));
    }
    if !is_there("node") || !is_there("npm") {
        return Ok(Err(format!("azurite {AZURITE} needs node and npm, which are not installed")));
    }
    println!("installing azurite {AZURITE} into {} (once)", folder.display());
    // Moved when it is whole: an install that was stopped is done again.
    let half = target_folder().join("tools/azurite.half");
    std::fs::create_dir_all(&half)?;
    let mut install = Command::new("npm");
    install.args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"]).arg(&half);
    if !install.arg(format!("azurite@{AZURITE}")).status()?.success() {
        return Ok(Err(format!("azurite {AZURITE} cannot be installed here")));
    }
    std::fs::rename(&half, &folder)?;
    Ok(Ok(main))
}

/// Whether a program can be run.
fn is_there(program: &str) -> bool {
    let version = if program == "go" { "version" } else { "--version" };
    let quiet = Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}
