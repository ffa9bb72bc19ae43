//! `rest`: every answer and error that Spark's own suite expects of its History Server, asked of
//! `lakescope serve` over HTTP.
//!
//! With the address of a running History Server and the folder that it serves
//! (`rest http://127.0.0.1:PORT FOLDER`): whether both tell the same of all SQL executions.

use super::Outcome;
use crate::lakescope_binary;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::serving::Serving;

/// Where the values differ that follow from the modification time of a file.
const IGNORED: [&str; 2] = ["lastUpdated", "lastUpdatedEpoch"];

/// How long the first reading may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Differences that are printed of one answer.
const SHOWN: usize = 8;

pub fn run(arguments: &[String]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if let [address, folder] = arguments {
        tokio::runtime::Runtime::new()?.block_on(beside(&mut outcome, address, Path::new(folder)))?;
        return Ok(outcome);
    }
    let Some(shared) = testkit::shared() else {
        outcome.skip("rest: needs ../shared (LAKESCOPE_SHARED)");
        return Ok(outcome);
    };
    let folder = shared.join("data/spark-history");
    let server = Server::start(&folder.join("spark-events"))?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        server.ready().await?;
        let plan: Value = serde_json::from_slice(&std::fs::read(folder.join("endpoints.json"))?)?;
        answers(&mut outcome, &server, &folder, &plan).await?;
        errors(&mut outcome, &server, &plan).await
    })?;
    Ok(outcome)
}

/// Asks Spark's server and this one for the SQL executions of all applications of a folder.
async fn beside(outcome: &mut Outcome, address: &str, folder: &Path) -> Result<()> {
    let server = Server::start(folder)?;
    server.ready().await?;
    let apps: Value = serde_json::from_str(&get(&server.client, address, "/api/v1/applications").await?.1)?;
    for app in apps.as_array().context("no applications")? {
        for attempt in app["attempts"].as_array().context("no attempts")? {
            let ids = [app["id"].as_str(), attempt["attemptId"].as_str()];
            let ids: Vec<&str> = ids.into_iter().flatten().collect();
            let path = format!("/api/v1/applications/{}/sql?length=1000", ids.join("/"));
            let spark: Value = serde_json::from_str(&get(&server.client, address, &path).await?.1)?;
            same(outcome, &path, spark, &server.get(&path).await?);
        }
    }
    Ok(())
}

async fn answers(outcome: &mut Outcome, server: &Server, folder: &Path, plan: &Value) -> Result<()> {
    for endpoint in plan["endpoints"].as_array().context("no endpoints")? {
        let path = endpoint["path"].as_str().context("an endpoint without a path")?;
        let file = endpoint["file"].as_str().context("an endpoint without a file")?;
        let expected: Value = serde_json::from_slice(&std::fs::read(folder.join(file))?)?;
        same(outcome, path, expected, &server.get(path).await?);
    }
    Ok(())
}

/// Checks an answer, field by field.
fn same(outcome: &mut Outcome, path: &str, mut expected: Value, (status, body): &(u16, String)) {
    let mut differences = Vec::new();
    match serde_json::from_str::<Value>(body) {
        Ok(mut got) => {
            normalise(&mut expected);
            normalise(&mut got);
            compare(&expected, &got, "", &mut differences);
        }
        Err(_) => differences.push(format!("status {status}: {body}")),
    }
    for difference in differences.iter().take(SHOWN) {
        println!("  {path}: {difference}");
    }
    outcome.check(differences.is_empty(), format!("{path}: {} differences", differences.len()));
}

async fn errors(outcome: &mut Outcome, server: &Server, plan: &Value) -> Result<()> {
    for error in plan["errors"].as_array().context("no errors")? {
        let path = error["path"].as_str().context("an error without a path")?;
        let (status, body) = server.get(path).await?;
        let same = error["status"] == status && error["body"].as_str().is_none_or(|expected| expected == body);
        outcome.check(same, format!("{path}: status {status}, {body:?}; expected {error}"));
    }
    Ok(())
}

/// Takes out what depends on when one asks: times of a file, durations of executions without an end.
fn normalise(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("status").is_some_and(|status| status == "RUNNING") && fields.contains_key("edges") {
                fields.insert("duration".to_owned(), Value::Null);
            }
            for (key, value) in fields {
                if IGNORED.contains(&key.as_str()) {
                    *value = Value::Null;
                } else {
                    normalise(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        _ => {}
    }
}

/// Where two trees differ: numbers by value, lists in order, no key more or less.
fn compare(expected: &Value, got: &Value, at: &str, differences: &mut Vec<String>) {
    match (expected, got) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                match b.get(key) {
                    Some(other) => compare(value, other, &format!("{at}/{key}"), differences),
                    None => differences.push(format!("{at}/{key} is missing, expected {value}")),
                }
            }
            let more = b.keys().filter(|key| !a.contains_key(*key));
            differences.extend(more.map(|key| format!("{at}/{key} is too much: {}", b[key])));
        }
        (Value::Array(a), Value::Array(b)) => {
            if a.len() != b.len() {
                differences.push(format!("{at} has {} items, expected {}", b.len(), a.len()));
            }
            for (i, (x, y)) in a.iter().zip(b).enumerate() {
                compare(x, y, &format!("{at}/{i}"), differences);
            }
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => {}
        (a, b) if a == b => {}
        (a, b) => differences.push(format!("{at} is {b}, expected {a}")),
    }
}

/// A running `lakescope serve`, stopped when it is dropped.
pub struct Server {
    serving: Serving,
    client: reqwest::Client,
    _data: tempfile::TempDir,
}

impl Server {
    /// Serves a folder on a port that the kernel chooses.
    pub fn start(folder: &Path) -> Result<Self> {
        let data = tempfile::tempdir()?;
        let args = [folder.as_os_str(), "--no-auth".as_ref()];
        let serving = Serving::start(&lakescope_binary()?, data.path(), args)?;
        Ok(Self { serving, client: reqwest::Client::new(), _data: data })
    }

    /// Waits until the first reading is done.
    pub async fn ready(&self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if self.get("/ready").await.is_ok_and(|(status, _)| status == 200) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("lakescope serve is not ready after {PATIENCE:?}")
    }

    /// Status and body of an answer.
    pub async fn get(&self, path: &str) -> Result<(u16, String)> {
        get(&self.client, &self.serving.address, path).await
    }
}

async fn get(client: &reqwest::Client, address: &str, path: &str) -> Result<(u16, String)> {
    let answer = client.get(format!("{address}{path}")).send().await?;
    Ok((answer.status().as_u16(), answer.text().await?))
}
