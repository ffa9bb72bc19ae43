//! `browser-history`: what people come for, done in a real browser: find the failed and the skewed
//! application, see the evidence, copy the remedy, drop a log, sign in, watch a log grow, all by
//! keyboard, without faults of accessibility.

use super::Outcome;
use crate::{browser, lakescope_binary, root};
use anyhow::{Context, Result, ensure};
use start::pages;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use testkit::serving::Serving;

/// What the samples lack: a stream, and an application whose name is markup.
const MORE_LOGS: [&str; 2] = ["streaming_rate_memory.zstd", "names_html"];

/// Builds the pages, serves the samples, runs the tests; an argument is a folder for screenshots.
pub fn run(folder: &[String]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if let Some(why) = pages::missing() {
        outcome.skip(format!("browser-history: {why}"));
        return Ok(outcome);
    }
    pages::build()?;
    let Some(chromium) = browser::find()? else {
        outcome.skip("browser-history: no Chromium (apt-get install chromium, or set CHROMIUM)");
        return Ok(outcome);
    };
    let binary = lakescope_binary()?;
    let open = OpenServer::start(&binary, &mut outcome)?;
    let locked = LockedServer::start(&binary)?;
    let screenshots = folder.first().map(|folder| root().join(folder).display().to_string());
    let live = open.live.path().display().to_string();
    let mut settings = vec![
        ("LAKESCOPE_URL", open.serving.address.as_str()),
        ("LAKESCOPE_LIVE_FOLDER", &live),
        ("LAKESCOPE_SIGNIN_URL", &locked.serving.address),
        ("LAKESCOPE_SIGNIN_TOKEN", &locked.token),
    ];
    settings.extend(screenshots.iter().map(|folder| ("LAKESCOPE_SCREENSHOTS", folder.as_str())));
    let output = browser::run("test", &chromium, &settings)?;
    count(&output, &mut outcome);
    Ok(outcome)
}

/// Answers everybody; reads the samples, what they lack, and a folder that tests write to.
struct OpenServer {
    serving: Serving,
    live: TempDir,
    _folders: [TempDir; 2],
}

impl OpenServer {
    fn start(binary: &Path, outcome: &mut Outcome) -> Result<Self> {
        let (data, more, live) = (tempfile::tempdir()?, tempfile::tempdir()?, tempfile::tempdir()?);
        for log in MORE_LOGS {
            match testkit::shared() {
                Some(shared) => drop(fs::copy(shared.join("data/eventlogs").join(log), more.path().join(log))?),
                None => outcome.skip(format!("browser-history: {log} needs ../shared (LAKESCOPE_SHARED)")),
            }
        }
        let samples = root().join("samples");
        let sources = [&samples, more.path(), live.path()].map(Path::as_os_str);
        let options = ["--no-auth", "--interval", "1"].map(AsRef::as_ref);
        let serving = Serving::start(binary, data.path(), sources.into_iter().chain(options))?;
        Ok(Self { serving, live, _folders: [data, more] })
    }
}

/// Wants a token.
struct LockedServer {
    serving: Serving,
    token: String,
    _data: TempDir,
}

impl LockedServer {
    fn start(binary: &Path) -> Result<Self> {
        let data = tempfile::tempdir()?;
        let mut create = Command::new(binary);
        create.args(["token", "create", "--name", "browser-tests", "--role", "viewer", "-q", "--data-dir"]);
        let output = create.arg(data.path()).output()?;
        ensure!(output.status.success(), "no token: {}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout)?;
        let token = said.lines().last().context("no token was told")?.trim().to_owned();
        let serving = Serving::start(binary, data.path(), [root().join("samples")])?;
        Ok(Self { serving, token, _data: data })
    }
}

/// Counts what the runner says.
fn count(output: &std::process::Output, outcome: &mut Outcome) {
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines().filter(|line| !line.starts_with("# ") || line.contains("not ok")) {
        println!("{line}");
    }
    let count = |word: &str| {
        let line = text.lines().find_map(|line| line.trim_start_matches(['#', 'ℹ', ' ']).strip_prefix(word));
        line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or_default()
    };
    outcome.passed += count("pass ");
    outcome.skipped += count("skipped ");
    outcome.failed += count("fail ");
    // A runner that could not even start has counted nothing.
    outcome.check(output.status.success(), format!("the browser tests: {}", String::from_utf8_lossy(&output.stderr)));
}
