//! `lakescope serve` over the bundled samples, asked over HTTP.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server on a port that the kernel chose; stopped when it is dropped.
struct Server {
    process: Child,
    address: String,
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let mut process = command(folder, &["--listen", "127.0.0.1:0", "--no-auth", "--interval", "1"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|l| Some(l.split_once("listening on ")?.1.trim().to_owned())).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let server = Self { process, address, runtime, client: reqwest::Client::new() };
        server.wait_for(|s| s.get("/ready").0 == 200);
        server
    }

    fn bytes(&self, path: &str) -> (u16, Vec<u8>) {
        self.runtime.block_on(async {
            let answer = self.client.get(format!("{}{path}", self.address)).send().await.unwrap();
            (answer.status().as_u16(), answer.bytes().await.unwrap().to_vec())
        })
    }

    fn get(&self, path: &str) -> (u16, String) {
        let (status, bytes) = self.bytes(path);
        (status, String::from_utf8(bytes).unwrap())
    }

    fn json(&self, path: &str) -> Value {
        let (status, body) = self.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    fn wait_for(&self, done: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < Duration::from_secs(60), "waited for a minute");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lakescope"));
    command.arg("serve").arg(folder).args(args).env_remove("LAKESCOPE_LISTEN").stdin(Stdio::null());
    command
}

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples")
}

#[test]
fn answers_as_spark_does() {
    let server = Server::start(&samples());
    assert_eq!(server.json("/api/v1/version")["spark"], "4.0.1");
    let apps = server.json("/api/v1/applications");
    assert_eq!(apps.as_array().unwrap().len(), 5);
    let shop = apps.as_array().unwrap().iter().find(|app| app["name"] == "shop_daily").unwrap();
    let base = format!("/api/v1/applications/{}", shop["id"].as_str().unwrap());
    let stages = server.json(&format!("{base}/stages"));
    let stage = &stages.as_array().unwrap()[0];
    let attempt = format!("{base}/stages/{}/{}", stage["stageId"], stage["attemptId"]);
    let whole = server.json(&attempt);
    assert_eq!(whole["executorRunTime"], stage["executorRunTime"]);
    assert_eq!(whole["tasks"].as_object().unwrap().len() as u64, whole["numTasks"].as_u64().unwrap());
    let page = server.json(&format!("{attempt}/taskList?length=1&sortBy=-runtime"));
    assert_eq!(page.as_array().unwrap().len(), 1);
    for resource in ["jobs", "executors", "allexecutors", "environment", "storage/rdd", "allmiscellaneousprocess"] {
        server.json(&format!("{base}/{resource}"));
    }
}

#[test]
fn the_first_page_says_who_needs_a_person() {
    let server = Server::start(&samples());
    let (status, page) = server.get("/");
    assert_eq!(status, 200);
    assert!(page.contains("applications need") && page.contains("shop_daily"), "{page}");
    assert!(page.contains("One task of 14 reads") && !page.contains("<script"), "{page}");
    // From the first page to the report of an application, and to the same as JSON.
    let start = page.find("/applications/").unwrap();
    let link = &page[start..start + page[start..].find('"').unwrap()];
    let (status, report) = server.get(link);
    assert_eq!(status, 200);
    assert!(report.contains("<h1>") && report.contains("Findings"));
    let diagnosis = server.json(&format!("/api/lakescope/v1{link}/diagnosis"));
    let id = link.rsplit('/').next().unwrap();
    assert_eq!(diagnosis["application"]["id"], id);
    assert!(report.contains(id));
    assert_eq!(server.get("/applications/nobody").0, 404);
}

#[test]
fn what_a_log_says_is_shown_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let name = "<img src=x onerror=alert(1)>";
    let log = format!(
        "{}\n{{\"Event\":\"SparkListenerApplicationStart\",\"App Name\":\"{name}\",\"App ID\":\"a/../b\",\"Timestamp\":1763085852000,\"User\":\"\\\"><i>\"}}\n",
        r#"{"Event":"SparkListenerLogStart","Spark Version":"3.5.3"}"#
    );
    std::fs::write(folder.path().join("app"), log).unwrap();
    std::fs::write(folder.path().join("other"), "no log at all").unwrap();
    let server = Server::start(folder.path());
    let (_, page) = server.get("/");
    assert!(page.contains("&lt;img src=x") && !page.contains("<img") && !page.contains("<i>"), "{page}");
    assert!(page.contains("/applications/a%2F..%2Fb") && page.contains("cannot read"), "{page}");
    let (status, report) = server.get("/applications/a%2F..%2Fb");
    assert_eq!(status, 200, "{report}");
    assert!(!report.contains("<img"));
}

#[test]
fn errors_name_what_is_wrong() {
    let server = Server::start(&samples());
    for (path, status, body) in [
        ("/api/v1/applications/nobody", 404, "unknown app: nobody"),
        ("/api/v1/applications/nobody/jobs", 404, "no such app: nobody"),
        ("/api/v1/applications?minDate=yesterday", 400, "Couldn't parse date: yesterday"),
        ("/api/v1/applications/../../etc/passwd", 404, ""),
        ("/api/v1/applications/nobody/executors/1/threads", 404, "no such app: nobody"),
        ("/api/v1/nothing", 404, ""),
    ] {
        let (got, text) = server.get(path);
        assert_eq!(got, status, "{path}: {text}");
        assert!(body.is_empty() || text == body, "{path}: {text}");
    }
}

#[test]
fn gives_the_logs_back_as_they_are() {
    let server = Server::start(&samples());
    let apps = server.json("/api/v1/applications");
    let shop = apps.as_array().unwrap().iter().find(|app| app["name"] == "shop_daily").unwrap();
    let (status, archive) = server.bytes(&format!("/api/v1/applications/{}/logs", shop["id"].as_str().unwrap()));
    assert_eq!(status, 200);
    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(archive)).unwrap();
    let mut log = Vec::new();
    zip.by_name("shop_daily.zstd").unwrap().read_to_end(&mut log).unwrap();
    assert_eq!(log, std::fs::read(samples().join("shop_daily.zstd")).unwrap());
}

#[test]
fn notices_logs_that_come_grow_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let names = |s: &Server| {
        let apps = s.json("/api/v1/applications");
        let apps = apps.as_array().unwrap().clone();
        apps.iter().map(|a| (a["name"].to_string(), a["attempts"][0]["completed"] == true)).collect::<Vec<_>>()
    };
    assert!(names(&server).is_empty());
    let log = folder.path().join("app-1.inprogress");
    let start = concat!(
        r#"{"Event":"SparkListenerLogStart","Spark Version":"3.5.3"}"#,
        "\n",
        r#"{"Event":"SparkListenerApplicationStart","App Name":"orders","App ID":"app-1","Timestamp":1763085852000,"User":"ada"}"#,
        "\n"
    );
    std::fs::write(&log, start).unwrap();
    server.wait_for(|s| names(s) == [("\"orders\"".to_owned(), false)]);
    let end = format!("{start}{}\n", r#"{"Event":"SparkListenerApplicationEnd","Timestamp":1763085912000}"#);
    std::fs::write(&log, end).unwrap();
    server.wait_for(|s| names(s) == [("\"orders\"".to_owned(), true)]);
    std::fs::remove_file(&log).unwrap();
    server.wait_for(|s| names(s).is_empty());
}

#[test]
fn answers_nobody_else_and_only_when_told_to() {
    let folder = tempfile::tempdir().unwrap();
    for (args, words) in [
        (vec!["--listen", "127.0.0.1:0"], "--no-auth"),
        (vec!["--listen", "0.0.0.0:0", "--no-auth"], "other machines could read every log"),
    ] {
        let output = command(folder.path(), &args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
    let output = command(&folder.path().join("none"), &["--no-auth"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot list"));
}
