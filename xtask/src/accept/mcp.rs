//! `mcp-peer`: the MCP server that users of Spark run today works on our REST API, and the official
//! SDK's client on our own tools.

use super::{Outcome, python};
use crate::{lakescope_binary, root};
use anyhow::Result;
use std::process::Command;
use testkit::serving::Serving;

/// The peer, and a version of it that was tried.
const PEER: &str = "mcp-apache-spark-history-server==1.0.2";

pub fn run(_: &[String]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    // The peer names a later Python than Debian has; it runs on this one all the same.
    let pip = ["--ignore-requires-python", PEER];
    let Some(folder) = python::environment("mcp-peer", "spark-mcp", &pip)? else {
        outcome.skip("mcp-peer: Python 3.11 or later with pip cannot install the peer here");
        return Ok(outcome);
    };
    let (binary, samples) = (lakescope_binary()?, root().join("samples"));
    let data = tempfile::tempdir()?;
    let served = Serving::start(&binary, &data.path().join("served"), [samples.as_os_str(), "--no-auth".as_ref()])?;
    let mut check = Command::new(folder.join("bin/python"));
    check.arg(root().join("tests/clients/mcp_peer.py")).arg(folder.join("bin/spark-mcp")).arg(&binary);
    let output = check.arg(&served.address).arg(&samples).arg(data.path().join("stdio")).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines() {
        match line.strip_prefix("not ok ") {
            Some(why) => outcome.check(false, why),
            None => outcome.check(line.starts_with("ok "), line),
        }
    }
    let end = String::from_utf8_lossy(&output.stderr);
    let end: Vec<&str> = end.lines().rev().take(3).collect();
    outcome.check(output.status.success(), format!("the clients: {}", end.join("; ")));
    Ok(outcome)
}
