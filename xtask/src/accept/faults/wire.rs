//! HTTP by hand: requests that no decent client sends, answers as they came.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long an answer may take to go on.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// An answer as it came.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON, of an answer that says 200.
    pub fn json(&self) -> Result<Value> {
        ensure!(self.status == 200, "status {}: {}", self.status, self.text());
        serde_json::from_slice(&self.body).context("it is no JSON")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub fn is_refusal(&self) -> bool {
        (400..500).contains(&self.status)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let pairs = head.lines().filter_map(|line| line.split_once(':'));
    pairs.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
}

/// A connection to `http://HOST:PORT`.
pub fn connect(address: &str) -> Result<TcpStream> {
    let stream = TcpStream::connect(address.trim_start_matches("http://"))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// The head of a request, its blank line left out.
pub fn head(method: &str, path: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n")
}

pub fn get(address: &str, path: &str) -> Result<Answer> {
    one(address, format!("{}\r\n", head("GET", path)).as_bytes()).with_context(|| format!("GET {path}"))
}

pub fn post(address: &str, path: &str, body: &[u8]) -> Result<Answer> {
    let mut request = format!("{}Content-Length: {}\r\n\r\n", head("POST", path), body.len()).into_bytes();
    request.extend(body);
    one(address, &request).with_context(|| format!("POST {path}"))
}

/// Sends bytes and gives the one answer to them.
pub fn one(address: &str, request: &[u8]) -> Result<Answer> {
    let answers = all(address, request)?;
    ensure!(answers.len() == 1, "{} answers instead of one: {answers:?}", answers.len());
    answers.into_iter().next().context("no answer")
}

/// Sends bytes and gives all answers until the server closes.
pub fn all(address: &str, request: &[u8]) -> Result<Vec<Answer>> {
    let mut stream = connect(address)?;
    // A server may refuse before it has taken all.
    let _ = stream.write_all(request);
    answers(&mut stream)
}

/// All answers until the server closes.
pub fn answers(stream: &mut TcpStream) -> Result<Vec<Answer>> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => {
            Err(error).context("the server neither answers nor closes")
        }
        _ => split(&bytes),
    }
}

fn split(mut rest: &[u8]) -> Result<Vec<Answer>> {
    let mut answers = Vec::new();
    while !rest.is_empty() {
        let end = rest.windows(4).position(|four| four == b"\r\n\r\n").context("half a head came")?;
        let head = String::from_utf8_lossy(&rest[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no status")?;
        let (body, after) = body(&head, &rest[end + 4..])?;
        // `100 Continue` comes before the answer.
        if status >= 200 {
            answers.push(Answer { status, head, body });
        }
        rest = after;
    }
    Ok(answers)
}

/// The body that a head tells of, and what follows it.
fn body<'a>(head: &str, bytes: &'a [u8]) -> Result<(Vec<u8>, &'a [u8])> {
    if header(head, "transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        return chunks(bytes);
    }
    let length: usize = header(head, "content-length").map_or(Ok(0), str::parse)?;
    let (body, after) = bytes.split_at_checked(length).context("half a body came")?;
    Ok((body.to_vec(), after))
}

fn chunks(mut rest: &[u8]) -> Result<(Vec<u8>, &[u8])> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").context("half a chunk came")?;
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end])?, 16)?;
        let (chunk, after) = rest[end + 2..].split_at_checked(length + 2).context("half a chunk came")?;
        body.extend(&chunk[..length]);
        rest = after;
        if length == 0 {
            return Ok((body, rest));
        }
    }
}
