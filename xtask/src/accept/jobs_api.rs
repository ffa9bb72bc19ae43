//! The Jobs API of a server, asked as plainly as can be.

use anyhow::{Result, bail};
use reqwest::Client;
use serde_json::Value;

/// A server that runs jobs.
#[derive(Clone, Debug)]
pub struct JobsApi {
    client: Client,
    /// `http://127.0.0.1:PORT`.
    address: String,
}

impl JobsApi {
    pub fn at(address: &str) -> Self {
        Self { client: Client::new(), address: address.to_owned() }
    }

    pub async fn get(&self, path: &str) -> Result<Value> {
        self.ask(path, None).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask(path, Some(body)).await
    }

    async fn ask(&self, path: &str, body: Option<&Value>) -> Result<Value> {
        let address = format!("{}/api/2.2/jobs/{path}", self.address);
        let request = match body {
            Some(body) => self.client.post(address).body(body.to_string()),
            None => self.client.get(address),
        };
        let answer = request.send().await?;
        let (status, body) = (answer.status(), answer.bytes().await?);
        if !status.is_success() {
            bail!("{path} is answered with {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(serde_json::from_slice(&body)?)
    }
}
