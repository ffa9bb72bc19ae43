//! `clients-jobs`: the official Python SDK, the archived command line, our own in the words of today's
//! and Airflow with its provider against a fresh server.

use super::{Outcome, python};
use crate::{lakescope_binary, root};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;
use testkit::serving::Serving;

/// The clients, at versions that were tried.
const CLIENTS: [&str; 2] = ["databricks-sdk==0.162.0", "databricks-cli==0.18.0"];
/// In an environment of its own: it brings some 150 packages.
const AIRFLOW: [&str; 2] = ["apache-airflow==3.3.2", "apache-airflow-providers-databricks==7.23.0"];

pub fn run(arguments: &[String]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let Some(shared) = testkit::shared() else {
        outcome.skip("clients-jobs: needs ../shared (LAKESCOPE_SHARED)");
        return Ok(outcome);
    };
    let Some(python) = python::environment("jobs-clients", "databricks", &CLIENTS)? else {
        outcome.skip("clients-jobs: Python with pip cannot install the clients here");
        return Ok(outcome);
    };
    let wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|argument| argument == name);
    let (binary, data) = (lakescope_binary()?, tempfile::tempdir()?);
    let token = token(&binary, data.path())?;
    let serving = Serving::start(&binary, data.path(), ["--jobs"])?;
    let clients = shared.join("clients");
    let client = |mut command: Command| {
        command.env("LAKESCOPE_URL", &serving.address).env("LAKESCOPE_TOKEN", &token);
        command
    };
    if wanted("sdk") {
        let mut check = Command::new(python.join("bin/python"));
        check.arg(clients.join("sdk_jobs_check.py"));
        told(&mut outcome, "the SDK", client(check))?;
    }
    if wanted("current") {
        let mut check = Command::new("bash");
        check.arg(clients.join("cli_jobs_check.sh")).arg("current").env("CLI", &binary);
        told(&mut outcome, "our command line", client(check))?;
    }
    if wanted("legacy") {
        let mut check = Command::new("bash");
        check.arg(clients.join("cli_jobs_check.sh")).arg("legacy").env("LEGACY", python.join("bin/databricks"));
        told(&mut outcome, "the archived command line", client(check))?;
    }
    if wanted("airflow") {
        match python::environment("airflow-provider", "airflow", &AIRFLOW)? {
            Some(python) => {
                let mut check = Command::new(python.join("bin/python"));
                check.arg(root().join("tests/clients/airflow_check.py"));
                told(&mut outcome, "Airflow", client(check))?;
            }
            None => outcome.skip("clients-jobs: Python with pip cannot install Airflow here"),
        }
    }
    Ok(outcome)
}

/// An access token of an administrator.
fn token(binary: &Path, data: &Path) -> Result<String> {
    let mut make = Command::new(binary);
    let made =
        make.args(["token", "create", "--name", "checker", "--role", "admin", "--quiet", "--data-dir"]).arg(data);
    let made = String::from_utf8(made.output()?.stdout)?;
    let token = made.split_whitespace().last().context("no token was made")?;
    Ok(token.to_owned())
}

/// Counts the lines of a check that begin with `ok` and `FAIL`.
fn told(outcome: &mut Outcome, who: &str, mut check: Command) -> Result<()> {
    let output = check.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut checked = 0;
    for line in text.lines() {
        if let Some(why) = line.strip_prefix("FAIL ") {
            outcome.check(false, format!("{who}: {}", why.trim()));
        } else if line.starts_with("ok ") {
            outcome.check(true, line);
            checked += 1;
        }
    }
    let end = String::from_utf8_lossy(&output.stderr);
    let end: Vec<&str> = end.lines().rev().take(3).collect();
    outcome.check(checked > 0 && output.status.success(), format!("{who} ends well: {}", end.join("; ")));
    Ok(())
}
