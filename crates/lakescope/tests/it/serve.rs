//! `lakescope serve` over the bundled samples, asked over HTTP.

use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use testkit::serving::{Serving, command};

/// A server over a folder, with a client.
pub struct Server {
    pub serving: Serving,
    pub runtime: tokio::runtime::Runtime,
    pub client: reqwest::Client,
    _data: Option<tempfile::TempDir>,
}

impl Server {
    pub fn start(folder: &Path) -> Self {
        let data = tempfile::tempdir().unwrap();
        let server = Self::over(folder, &data_in(&data), &["--no-auth"]);
        Self { _data: Some(data), ..server }
    }

    /// Over a data directory that outlives it.
    pub fn over(folder: &Path, data: &Path, args: &[&str]) -> Self {
        let args = [&[folder.to_str().unwrap(), "--interval", "1"], args].concat();
        let serving = Serving::start(binary(), data, args).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let server = Self { serving, runtime, client: reqwest::Client::new(), _data: None };
        server.wait_for(|s| s.get("/ready").0 == 200);
        server
    }

    fn bytes(&self, path: &str) -> (u16, Vec<u8>) {
        self.runtime.block_on(async {
            let answer = self.client.get(format!("{}{path}", self.serving.address)).send().await.unwrap();
            (answer.status().as_u16(), answer.bytes().await.unwrap().to_vec())
        })
    }

    pub fn get(&self, path: &str) -> (u16, String) {
        let (status, bytes) = self.bytes(path);
        (status, String::from_utf8(bytes).unwrap())
    }

    pub fn json(&self, path: &str) -> Value {
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

pub fn data_in(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("data")
}

pub fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_lakescope"))
}

pub fn samples() -> PathBuf {
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
    let (status, page) = server.get("/plain");
    assert_eq!(status, 200);
    assert!(page.contains("applications need") && page.contains("shop_daily"), "{page}");
    assert!(page.contains("One task of 14 reads") && !page.contains("<script"), "{page}");
    // From the first page to the report of an application, and to the same as JSON.
    let start = page.find("/plain/applications/").unwrap();
    let link = &page[start..start + page[start..].find('"').unwrap()];
    let (status, report) = server.get(link);
    assert_eq!(status, 200);
    assert!(report.contains("<h1>") && report.contains("Findings"));
    let link = link.strip_prefix("/plain").unwrap();
    let diagnosis = server.json(&format!("/api/lakescope/v1{link}/diagnosis"));
    let id = link.rsplit('/').next().unwrap();
    assert_eq!(diagnosis["application"]["id"], id);
    assert!(report.contains(id));
    assert_eq!(server.get("/plain/applications/nobody").0, 404);
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
    std::fs::write(folder.path().join("app-other"), "no log at all").unwrap();
    std::fs::write(folder.path().join("README.md"), "what stands beside logs").unwrap();
    let server = Server::start(folder.path());
    let (_, page) = server.get("/plain");
    assert!(page.contains("&lt;img src=x") && !page.contains("<img") && !page.contains("<i>"), "{page}");
    assert!(page.contains("/applications/a%2F..%2Fb") && page.contains("cannot read"), "{page}");
    let (status, report) = server.get("/plain/applications/a%2F..%2Fb");
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
    let data = tempfile::tempdir().unwrap();
    let there = folder.path().to_str().unwrap();
    let missing = folder.path().join("none");
    for (args, words) in [
        (vec![there], "there is no token yet"),
        (vec![there, "--listen", "0.0.0.0:0", "--no-auth"], "other machines could read every log"),
        (vec![missing.to_str().unwrap(), "--no-auth"], "cannot list"),
    ] {
        // A later --listen would win over that of the helper, which clap refuses.
        let mut command = std::process::Command::new(binary());
        let output = command.arg("serve").args(args).env("LAKESCOPE_DATA_DIR", data_in(&data)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
    // Two processes never share a data directory.
    let _first = Serving::start(binary(), &data_in(&data), [there, "--no-auth"]).unwrap();
    let output = command(binary(), &data_in(&data), [there, "--no-auth"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("in use by another process"));
}

#[test]
fn a_restart_reads_no_log_again() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let log = folder.path().join("app.zstd");
    std::fs::copy(samples().join("shop_daily.zstd"), &log).unwrap();
    let before = Server::over(folder.path(), &data_in(&data), &["--no-auth"]);
    let rows = before.json("/api/lakescope/v1/applications");
    let id = rows["applications"][0]["id"].as_str().unwrap().to_owned();
    let page = before.get(&format!("/api/lakescope/v1/applications/{id}/page")).1;
    drop(before);
    // The same size and time, another content: a log that was read again would be unreadable.
    let about = std::fs::metadata(&log).unwrap();
    std::fs::write(&log, vec![b'x'; about.len() as usize]).unwrap();
    std::fs::File::options().write(true).open(&log).unwrap().set_modified(about.modified().unwrap()).unwrap();
    let after = Server::over(folder.path(), &data_in(&data), &["--no-auth"]);
    assert_eq!(after.json("/api/lakescope/v1/applications"), rows);
    assert_eq!(after.get(&format!("/api/lakescope/v1/applications/{id}/page")).1, page);
    // Now it has changed, and says so.
    std::fs::write(&log, "rubbish").unwrap();
    after.wait_for(|s| s.json("/api/lakescope/v1/applications")["applications"].as_array().unwrap().is_empty());
}

#[test]
fn tokens_say_who_may_do_what() {
    let data = tempfile::tempdir().unwrap();
    let dir = data_in(&data);
    let token = |args: &[&str]| {
        let mut command = std::process::Command::new(binary());
        let output = command.arg("token").args(args).arg("--data-dir").arg(&dir).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let viewer = token(&["create", "--name", "ada"]);
    let server = Server::over(&samples(), &dir, &["--jobs"]);
    // Made while the server runs.
    let operator = token(&["create", "--name", "ci", "--role", "operator"]);
    let ask = |method: reqwest::Method, path: &str, token: &str, body: &'static str| {
        let request = server.client.request(method, format!("{}{path}", server.serving.address)).body(body);
        let request = if token.is_empty() { request } else { request.bearer_auth(token) };
        server.runtime.block_on(async { request.send().await.unwrap().status().as_u16() })
    };
    let list = "/api/lakescope/v1/applications";
    let (get, post) = (reqwest::Method::GET, reqwest::Method::POST);
    assert_eq!(ask(get.clone(), list, "", ""), 401);
    assert_eq!(ask(get.clone(), "/api/v1/applications", "lks_wrong", ""), 401);
    assert_eq!(ask(get.clone(), "/health", "", ""), 200);
    assert_eq!(ask(get.clone(), list, &viewer, ""), 200);
    assert_eq!(ask(post.clone(), "/api/lakescope/v1/logs?name=x", &viewer, "no log"), 403);
    assert_eq!(ask(post.clone(), "/api/lakescope/v1/logs?name=x", &operator, "no log"), 400);
    let job = r#"{"tasks":[{"task_key":"a","condition_task":{"left":"1","op":"EQUAL_TO","right":"1"}}]}"#;
    assert_eq!(ask(post.clone(), "/api/2.2/jobs/create", "", job), 401);
    assert_eq!(ask(post.clone(), "/api/2.2/jobs/create", &viewer, job), 403);
    assert_eq!(ask(get.clone(), "/api/2.2/jobs/list", &viewer, ""), 200);
    assert_eq!(ask(post, "/api/2.2/jobs/create", &operator, job), 200);
    let listed = token(&["list"]);
    assert!(listed.contains("ada") && listed.contains("operator") && !listed.contains(&viewer), "{listed}");
    let id = listed.lines().find(|line| line.contains("ada")).unwrap().split(' ').next().unwrap();
    token(&["revoke", id]);
    assert_eq!(ask(get.clone(), list, &viewer, ""), 401);
    // Ten wrong ones, and the address is not listened to for a while, whatever it shows.
    for _ in 0..12 {
        ask(get.clone(), list, "lks_wrong", "");
    }
    assert_eq!(ask(get, list, &operator, ""), 429);
}

/// Who may add logs may not run programs by that alone.
#[test]
fn jobs_are_run_when_that_is_asked_for() {
    let data = tempfile::tempdir().unwrap();
    let list = |server: &Server| {
        let (status, body) = server.get("/api/2.1/jobs/list");
        let body: Value = serde_json::from_str(&body).unwrap();
        (status, body["error_code"].as_str().unwrap_or_default().to_owned())
    };
    let off = Server::over(&samples(), &data_in(&data), &["--no-auth"]);
    assert_eq!(list(&off), (404, "FEATURE_DISABLED".to_owned()));
    drop(off);
    let on = Server::over(&samples(), &data_in(&data), &["--no-auth", "--jobs"]);
    assert_eq!(list(&on), (200, String::new()));
    let (status, body) = on.get("/api/2.2/jobs/nothing");
    assert!(status == 404 && body.contains("ENDPOINT_NOT_FOUND"), "{status} {body}");
}

#[test]
fn another_site_can_make_a_browser_do_nothing() {
    let server = Server::start(&samples());
    let ask = |path: &str, header: (&'static str, &str), post: bool| {
        let address = format!("{}{path}", server.serving.address);
        let request = if post { server.client.post(address) } else { server.client.get(address) };
        server.runtime.block_on(async { request.header(header.0, header.1).send().await.unwrap().status().as_u16() })
    };
    let list = "/api/lakescope/v1/applications";
    assert_eq!(ask(list, ("host", "evil.example"), false), 403);
    assert_eq!(ask(list, ("host", "localhost"), false), 200);
    assert_eq!(ask("/api/lakescope/v1/logs?name=x", ("origin", "https://evil.example"), true), 403);
}

#[test]
fn tells_prometheus_how_it_does() {
    let server = Server::start(&samples());
    server.json("/api/lakescope/v1/applications");
    let (status, figures) = server.get("/metrics");
    assert_eq!(status, 200);
    assert!(figures.contains("lakescope_applications 5"), "{figures}");
    let counted =
        "lakescope_http_request_duration_seconds_count{method=\"GET\",route=\"/api/lakescope/v1/applications\"";
    assert!(figures.contains(counted), "{figures}");
}

#[test]
fn takes_logs_that_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let drop_log = |name: &str, body: Vec<u8>| {
        let request = server.client.post(format!("{}/api/lakescope/v1/logs?name={name}", server.serving.address));
        let answer = server.runtime.block_on(async {
            let answer = request.body(body).send().await.unwrap();
            (answer.status().as_u16(), answer.text().await.unwrap())
        });
        (answer.0, serde_json::from_str::<Value>(&answer.1).unwrap())
    };
    let log = std::fs::read(samples().join("shop_daily.zstd")).unwrap();
    let (status, taken) = drop_log("../../shop.zstd", log);
    assert_eq!(status, 201, "{taken}");
    let link = taken["link"].as_str().unwrap();
    assert_eq!(server.json(&format!("/api/lakescope/v1{link}/page"))["application"]["name"], "shop_daily");
    assert_eq!(server.json("/api/lakescope/v1/applications")["applications"].as_array().unwrap().len(), 1);
    let (status, refused) = drop_log("app-1", b"no log at all".to_vec());
    assert_eq!(status, 400);
    assert!(refused["error"]["message"].as_str().unwrap().contains("app-1"), "{refused}");
    assert_eq!(server.json("/api/lakescope/v1/applications")["unreadable"].as_array().unwrap().len(), 0);
}

#[test]
fn tells_what_the_pages_show() {
    let server = Server::start(&samples());
    let rows = server.json("/api/lakescope/v1/applications");
    let shop = rows["applications"].as_array().unwrap().iter().find(|row| row["name"] == "shop_daily").unwrap();
    assert_eq!(shop["severity"], "high");
    let base = format!("/api/lakescope/v1/applications/{}", shop["id"].as_str().unwrap());
    let page = server.json(&format!("{base}/page"));
    let parts: i64 = page["budget"].as_array().unwrap().iter().map(|part| part["ms"].as_i64().unwrap()).sum();
    assert_eq!(parts, page["application"]["wall_ms"].as_i64().unwrap());
    let root = &page["chapters"][0]["root"];
    assert_eq!((root["id"].as_str(), root["stage"].as_i64()), (Some("SKEW_KEY"), Some(8)));
    let stage = server.json(&format!("{base}/stages/8/0"));
    let duration = stage["summary"].as_array().unwrap().iter().find(|row| row["label"] == "Duration").unwrap();
    let longest = server.json(&format!("{base}/stages/8/0/tasks?sort=-duration_ms&limit=1"));
    assert_eq!(longest["tasks"][0]["duration_ms"], duration["max"]);
    assert!(stage["differs"].as_array().unwrap().iter().any(|d| d["what"] == "Shuffle read"), "{}", stage["differs"]);
    let timeline = server.json(&format!("{base}/timeline"));
    assert_eq!(timeline["tasks"], page["counts"]["tasks"]);
    let query = server.json(&format!("{base}/sql/0"));
    let nodes = query["plans"][0]["nodes"].as_array().unwrap();
    assert!(nodes.iter().any(|node| node["kind"] == "join" && node["findings"][0] == 1), "{nodes:?}");
    let (status, columns) = server.bytes(&format!("{base}/stages/8/0/tasks.columns"));
    assert_eq!(status, 200);
    let header = u32::from_le_bytes(columns[..4].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&columns[4..4 + header]).unwrap();
    assert_eq!(header["rows"], 14);
    for path in ["settings", "streams", "sql", "stages/8/0/shuffle", "timeline/tasks", "diagnosis"] {
        assert_eq!(server.bytes(&format!("{base}/{path}")).0, 200, "{path}");
    }
    for (path, words) in [
        ("stages/99/0", "no stage 99"),
        ("sql/99", "no SQL execution 99"),
        ("stages/8/0/tasks?sort=colour", "cannot sort by"),
        ("timeline?by=colour", "executor, stage or host"),
    ] {
        let (status, body) = server.get(&format!("{base}/{path}"));
        assert!((400..500).contains(&status) && body.contains(words), "{path}: {status} {body}");
    }
}

/// What Spark's own server answered over the samples, by application; see `tests/rest/README.md`.
fn sql_answers() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/rest/sql");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let answer = |path: PathBuf| {
        let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (id, serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
    };
    files.map(answer).collect()
}

/// How long an execution without an end takes depends on when one asks.
fn without_clock(mut execution: Value) -> Value {
    if execution["status"] == "RUNNING" {
        execution["duration"] = Value::Null;
    }
    execution
}

#[test]
fn sql_executions_read_as_in_spark() {
    let server = Server::start(&samples());
    let answers = sql_answers();
    assert_eq!(answers.len(), 5);
    for (id, expected) in answers {
        let base = format!("/api/v1/applications/{id}/sql");
        let got = server.json(&format!("{base}?length=100"));
        let (expected, got) = (expected.as_array().unwrap(), got.as_array().unwrap());
        assert_eq!(got.len(), expected.len(), "{id}");
        for (expected, got) in expected.iter().zip(got) {
            assert_eq!(without_clock(got.clone()), without_clock(expected.clone()), "{id}");
            let one = server.json(&format!("{base}/{}", expected["id"]));
            assert_eq!(without_clock(one), without_clock(expected.clone()), "{id}");
        }
    }
}

#[test]
fn sql_is_asked_for_in_part() {
    let server = Server::start(&samples());
    let base = "/api/v1/applications/app-20261129210950-0000/sql";
    let short = server.json(&format!("{base}?details=false&planDescription=false&offset=1&length=1"));
    assert_eq!(short.as_array().unwrap().len(), 1);
    let first = &short[0];
    assert_eq!((&first["id"], &first["planDescription"]), (&Value::from(1), &Value::from("")));
    assert!(first["nodes"].as_array().unwrap().is_empty() && first["edges"].as_array().unwrap().is_empty());
    assert_eq!(server.json(&format!("{base}?offset=-1")).as_array().unwrap().len(), 3);
    assert!(server.json(&format!("{base}?offset=99")).as_array().unwrap().is_empty());
    for (path, body) in [("/99", "unknown query execution id: 99"), ("/first", ""), ("?length=many", "")] {
        let (status, text) = server.get(&format!("{base}{path}"));
        assert_eq!(status, 404, "{path}: {text}");
        assert!(body.is_empty() || text == body, "{path}: {text}");
    }
}

#[test]
fn sql_of_a_log_that_is_gone_tells_only_what_is_known() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let log = folder.path().join("app.zstd");
    std::fs::copy(samples().join("shop_daily.zstd"), &log).unwrap();
    drop(Server::over(folder.path(), &data_in(&data), &["--no-auth"]));
    // The same size and time, and nothing in it.
    let about = std::fs::metadata(&log).unwrap();
    std::fs::write(&log, vec![b'x'; about.len() as usize]).unwrap();
    std::fs::File::options().write(true).open(&log).unwrap().set_modified(about.modified().unwrap()).unwrap();
    let server = Server::over(folder.path(), &data_in(&data), &["--no-auth"]);
    let (id, expected) = sql_answers().into_iter().find(|(id, _)| id.starts_with("app-")).unwrap();
    let mut got = server.json(&format!("/api/v1/applications/{id}/sql"));
    let is_sum = |metric: &Value| metric["value"].as_str().unwrap().bytes().all(|b| b.is_ascii_digit() || b == b',');
    let mut sums = 0;
    for (expected, got) in expected.as_array().unwrap().iter().zip(got.as_array_mut().unwrap()) {
        for (expected, got) in expected["nodes"].as_array().unwrap().iter().zip(got["nodes"].as_array_mut().unwrap()) {
            let known = got["metrics"].as_array().unwrap().clone();
            assert!(known.iter().all(is_sum), "{known:?}");
            let of_spark = expected["metrics"].as_array().unwrap();
            assert_eq!(known, of_spark.iter().filter(|m| is_sum(m)).cloned().collect::<Vec<_>>());
            sums += known.len();
            got["metrics"] = expected["metrics"].clone();
        }
        assert_eq!(got, expected);
    }
    assert!(sums > 50, "{sums}");
}
