//! Huge and malformed requests: each is refused (4xx), some are served as they deserve; none takes
//! the server down, keeps it waiting or makes it say 5xx.

use super::server::Server;
use super::wire::{self, Answer, head};
use super::{Outcome, World};
use anyhow::Result;
use std::time::{Duration, Instant};

/// How long the oddest request may take.
const QUICK: Duration = Duration::from_secs(10);
/// `--client-timeout`: what is incomplete is given up then.
const TIMEOUT: &str = "2";
const MAX_UPLOAD: &str = "1MB";

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Becomes {
    /// One answer 4xx.
    Refused,
    /// One answer 200, or 4xx.
    Answered,
    /// One answer 4xx, or the connection is closed: it is not HTTP at all, or never ends.
    RefusedOrClosed,
}
use Becomes::{Answered, Refused, RefusedOrClosed};

pub fn run(world: &World, outcome: &mut Outcome) -> Result<()> {
    let data = tempfile::tempdir()?;
    let limits = ["--client-timeout", TIMEOUT, "--max-upload", MAX_UPLOAD];
    let mut server = Server::start(world, data.path(), &[world.logs()], &limits)?;
    server.ready()?;
    for (what, request, becomes) in requests() {
        let begun = Instant::now();
        let answers = wire::all(server.address(), &request);
        let took = begun.elapsed();
        let right = answers.as_ref().is_ok_and(|answers| is_right(answers, becomes)) && took < QUICK;
        outcome.check(right, format!("{what}: {becomes:?}? after {took:?}: {}", shown(&answers)));
    }
    server.lives(outcome, "after malformed requests")?;
    smuggled(&server, outcome)?;
    parameters(&server, outcome)?;
    too_large(&server, outcome)?;
    let metrics = server.get("/metrics")?.text();
    outcome.check(!metrics.contains("BREW"), "a method that nobody knows is a class of its own in /metrics");
    server.lives(outcome, "after odd parameters")
}

fn is_right(answers: &[Answer], becomes: Becomes) -> bool {
    match (answers, becomes) {
        ([answer], Answered) => answer.status == 200 || answer.is_refusal(),
        ([answer], Refused | RefusedOrClosed) => answer.is_refusal(),
        ([], RefusedOrClosed) => true,
        _ => false,
    }
}

fn shown(answers: &Result<Vec<Answer>>) -> String {
    let short = |answer: &Answer| format!("{} {:.200}", answer.status, answer.text());
    match answers {
        Ok(answers) => answers.iter().map(short).collect::<Vec<_>>().join(" | "),
        Err(error) => format!("{error:#}"),
    }
}

fn requests() -> Vec<(String, Vec<u8>, Becomes)> {
    let mut all = Vec::new();
    let mut add = |what: &str, request: &[u8], becomes| all.push((what.to_owned(), request.to_owned(), becomes));
    let text = |method: &str, path: &str| format!("{}\r\n", head(method, path)).into_bytes();
    add("a URL of 1 MB", &text("GET", &format!("/{}", "a".repeat(1 << 20))), Refused);
    add("a query of 1 MB", &text("GET", &format!("/api/v1/applications?limit={}", "1".repeat(1 << 20))), Refused);
    let many: String = (0..10_000).map(|n| format!("X-{n}: {n}\r\n")).collect();
    add("10,000 headers", format!("{}{many}\r\n", head("GET", "/")).as_bytes(), Refused);
    add("a header of 1 MB", format!("{}X: {}\r\n\r\n", head("GET", "/"), "a".repeat(1 << 20)).as_bytes(), Refused);
    for path in ["/%", "/%zz", "/api/v1/applications/%", "/applications/%2", "/assets/%%%"] {
        add(path, &text("GET", path), Answered);
    }
    for path in ["/api/v1/applications/%ff%fe", "/applications/%c3%28/jobs", "/api/lakescope/v1/applications/%80/page"]
    {
        add(path, &text("GET", path), Answered);
    }
    add(
        "bytes that are no UTF-8 in a path",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        Answered,
    );
    add(
        "bytes that are no UTF-8 in a query",
        b"GET /api/v1/applications?status=\xff HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        Answered,
    );
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW", "CONNECT"] {
        add(&format!("{method} of the list"), &text(method, "/api/v1/applications"), Refused);
        add(&format!("{method} of nothing"), &text(method, "/none"), Refused);
    }
    add("GET of what takes logs", &text("GET", "/api/lakescope/v1/logs"), Refused);
    add("a form as JSON", form("application/json").as_bytes(), Refused);
    add("a form as nothing", form("").as_bytes(), Refused);
    add("HTTP/1.0 without a host", b"GET /health HTTP/1.0\r\n\r\n", Answered);
    add("HTTP/0.9", b"GET /health\r\n\r\n", RefusedOrClosed);
    add("HTTP/9.9", b"GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n", RefusedOrClosed);
    add(
        "two hosts",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        Answered,
    );
    add(
        "a foreign host",
        b"GET /api/v1/applications HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        Refused,
    );
    add("a host that is no text", b"GET /health HTTP/1.1\r\nHost: \xff\xfe\r\nConnection: close\r\n\r\n", Answered);
    add(
        "an upgrade to a web socket",
        format!(
            "{}Upgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
            head("GET", "/health").replace("close", "Upgrade, close")
        )
        .as_bytes(),
        Answered,
    );
    add(
        "the preface of HTTP/2",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
        RefusedOrClosed,
    );
    add(
        "the hello of TLS",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and some bytes that are random\x00\x00",
        RefusedOrClosed,
    );
    add("zeros", &[0; 4_096], RefusedOrClosed);
    add("nothing but line ends", &b"\r\n".repeat(10_000), RefusedOrClosed);
    add("a header without a colon", b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n", Refused);
    add("a header that goes on", b"GET / HTTP/1.1\r\nHost: localhost\r\n folded: yes\r\n\r\n", Refused);
    add("half a head", b"GET / HTTP/1.1\r\nHost: local", RefusedOrClosed);
    bodies(&mut add);
    all
}

fn form(kind: &str) -> String {
    let kind = if kind.is_empty() { String::new() } else { format!("Content-Type: {kind}\r\n") };
    format!("{}{kind}Content-Length: 9\r\n\r\ntoken=abc", head("POST", "/login"))
}

/// Bodies that are not what their heads say.
fn bodies(add: &mut impl FnMut(&str, &[u8], Becomes)) {
    let head = head("POST", "/api/lakescope/v1/logs?name=x");
    let read = wire::head("POST", "/api/lakescope/v1/read");
    let mut with = |what: &str, head: &str, rest: &str, becomes| add(what, format!("{head}{rest}").as_bytes(), becomes);
    with("a length that is none", &head, "Content-Length: abc\r\n\r\nx", Refused);
    with("a negative length", &head, "Content-Length: -1\r\n\r\nx", Refused);
    with("a length beyond 64 bits", &head, "Content-Length: 99999999999999999999\r\n\r\nx", Refused);
    with("two lengths", &head, "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", Refused);
    with("more is promised than comes", &head, "Content-Length: 1000\r\n\r\nx", Refused);
    with("the same of a text", &read, "Content-Length: 1000\r\n\r\nx", Refused);
    with("a chunk without a length", &head, "Transfer-Encoding: chunked\r\n\r\nzz\r\n", Refused);
    with("a chunk beyond 64 bits", &head, "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n", Refused);
    with("chunks without an end", &head, "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", Refused);
    with("a coding that nobody knows", &head, "Transfer-Encoding: brotli-of-the-future\r\n\r\nx", Refused);
    with("nothing", &head, "Content-Length: 0\r\n\r\n", Refused);
    with("a text that is no UTF-8", &read, "Content-Length: 4\r\n\r\n\u{0}\u{1}ab", Answered);
    let large = "a".repeat(5 << 20);
    with("a text of 5 MB", &read, &format!("Content-Length: {}\r\n\r\n{large}", large.len()), Refused);
    with(
        "a text of 5 MB in chunks",
        &read,
        &format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n", large.len()),
        Refused,
    );
}

/// Two requests in one for those who count bytes differently: the second must not be answered.
fn smuggled(server: &Server, outcome: &mut Outcome) -> Result<()> {
    let begin = "POST /api/lakescope/v1/read HTTP/1.1\r\nHost: localhost\r\n";
    let inner = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let shapes = [
        ("both lengths", format!("{begin}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}")),
        (
            "chunked twice",
            format!("{begin}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{inner}"),
        ),
        ("chunked, with a blank in the name", format!("{begin}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{inner}")),
        ("a length with a sign", format!("{begin}Content-Length: +{}\r\n\r\n{inner}", inner.len())),
        ("a bare line end", format!("{begin}X: a\nContent-Length: {}\r\n\r\n{inner}", inner.len())),
    ];
    for (what, request) in shapes {
        let answers = wire::all(server.address(), request.as_bytes());
        // Figures would tell of the second request.
        let answered =
            answers.as_ref().is_ok_and(|all| all.iter().any(|answer| answer.text().contains("lakescope_http")));
        let none_fails = answers.as_ref().is_ok_and(|all| all.iter().all(|answer| answer.status < 500));
        outcome.check(!answered && none_fails, format!("smuggled by {what}: {}", shown(&answers)));
    }
    Ok(())
}

/// Numbers and words of every parameter.
fn parameters(server: &Server, outcome: &mut Outcome) -> Result<()> {
    let id = server.ids()?.into_iter().next().unwrap_or_default();
    let (spark, ours) = (format!("/api/v1/applications/{id}"), format!("/api/lakescope/v1/applications/{id}"));
    let stage = server.json(&format!("{spark}/stages"))?[0]["stageId"].to_string();
    let asked: [(String, &[&str]); 15] = [
        ("/api/v1/applications".to_owned(), &["limit", "status", "minDate", "maxDate", "minEndDate", "maxEndDate"]),
        (format!("{spark}/jobs"), &["status"]),
        (format!("{spark}/stages"), &["status", "details", "withSummaries", "quantiles", "taskStatus"]),
        (format!("{spark}/stages/{stage}"), &["details", "taskStatus", "withSummaries", "quantiles"]),
        (format!("{spark}/stages/{stage}/0"), &["details", "taskStatus", "withSummaries", "quantiles"]),
        (format!("{spark}/stages/{stage}/0/taskSummary"), &["quantiles"]),
        (format!("{spark}/stages/{stage}/0/taskList"), &["offset", "length", "sortBy", "status"]),
        (format!("{spark}/sql"), &["details", "planDescription", "offset", "length"]),
        (
            format!("{ours}/stages/{stage}/0/tasks"),
            &["offset", "length", "sort", "by", "status", "executor", "q", "task"],
        ),
        (format!("{ours}/stages/{stage}/0/shuffle"), &["partitions", "skew", "cores", "memory"]),
        (format!("{ours}/timeline"), &["from", "to", "pixels", "executor", "kind"]),
        (format!("{ours}/timeline/tasks"), &["from", "to", "pixels", "executor", "kind"]),
        (format!("{ours}/settings"), &["against", "defaults"]),
        ("/api/lakescope/v1/shuffle".to_owned(), &["bytes", "cores", "partitions", "memory", "target"]),
        ("/api/lakescope/v1/compare".to_owned(), &["base", "new"]),
    ];
    let many = vec!["0.5"; 10_000].join(",");
    let values = [
        "-1",
        "99999999999999999999",
        "abc",
        "1e308",
        "NaN",
        "-0",
        "",
        "%00",
        "%ff",
        "0x10",
        "9223372036854775807",
        "-9223372036854775808",
        many.as_str(),
    ];
    for (path, names) in &asked {
        for (name, value) in names.iter().flat_map(|name| values.iter().map(move |value| (name, value))) {
            let asked = format!("{path}?{name}={value}");
            let begun = Instant::now();
            let answer = server.get(&asked)?;
            let took = begun.elapsed();
            let right = (answer.status == 200 || answer.is_refusal()) && took < QUICK;
            outcome.check(right, format!("{asked:.200}: {} after {took:?}: {:.200}", answer.status, answer.text()));
        }
    }
    refused_numbers(server, outcome, &spark, &stage)
}

/// Numbers that Spark's server refuses, and those that it takes.
fn refused_numbers(server: &Server, outcome: &mut Outcome, spark: &str, stage: &str) -> Result<()> {
    let tasks = format!("{spark}/stages/{stage}/0/taskList");
    let summary = format!("{spark}/stages/{stage}/0/taskSummary");
    for (path, status) in [
        (format!("{tasks}?length=-1"), 404),
        (format!("{tasks}?offset=99999999999999999999"), 404),
        (format!("{tasks}?sortBy=unknown"), 404),
        (format!("{tasks}?length=0"), 200),
        (format!("{summary}?quantiles=abc"), 400),
        (format!("{summary}?quantiles=0.5,,1"), 400),
        (format!("{spark}/stages/-1"), 404),
        (format!("{spark}/stages/4294967296"), 404),
        (format!("{spark}/jobs/99999999999999999999"), 404),
        (format!("{spark}/storage/rdd/x"), 404),
    ] {
        let answer = server.get(&path)?;
        outcome.check(answer.status == status, format!("{path}: {} instead of {status}", answer.status));
    }
    Ok(())
}

/// A log above the limit, with its length told and without: the answer names the limit, and comes
/// although the log does not stop coming.
fn too_large(server: &Server, outcome: &mut Outcome) -> Result<()> {
    let log = vec![b'a'; 8 << 20];
    let head = head("POST", "/api/lakescope/v1/logs?name=large");
    let told = format!("{head}Content-Length: {}\r\n\r\n", log.len());
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", log.len());
    for (what, head) in [("with its length", told), ("in chunks", chunked)] {
        let request = [head.as_bytes(), &log, b"\r\n0\r\n\r\n"].concat();
        let answers = wire::all(server.address(), &request);
        let clear = answers.as_ref().is_ok_and(|all| is_right(all, Refused) && all[0].text().contains("--max-upload"));
        outcome.check(clear, format!("a log above the limit, {what}: {}", shown(&answers)));
    }
    Ok(())
}
