//! The description of the API, held against what a server answers.

use crate::serve::{Server, data_in, samples};
use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const ROOT: &str = "/api/lakescope/v1";
/// Stages and queries of an application that are asked for.
const MOST: usize = 12;

/// A server over the samples, an application with an attempt and streams, and what is no log; with
/// the document of its API.
struct Described {
    server: Server,
    document: Value,
    schemas: Value,
    _folders: [tempfile::TempDir; 2],
}

/// An answer with its media type.
struct Answer {
    status: u16,
    kind: String,
    body: Vec<u8>,
}

impl Described {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for sample in std::fs::read_dir(samples()).unwrap().map(|entry| entry.unwrap().path()) {
            if sample.extension().is_some_and(|extension| extension == "zstd") {
                std::fs::copy(&sample, folder.path().join(sample.file_name().unwrap())).unwrap();
            }
        }
        std::fs::write(folder.path().join("app-attempt_1"), with_attempt_and_streams()).unwrap();
        std::fs::write(folder.path().join("app-broken"), "no log at all").unwrap();
        let data = tempfile::tempdir().unwrap();
        let server = Server::over(folder.path(), &data_in(&data), &["--no-auth", "--jobs"]);
        let document = server.json(&format!("{ROOT}/openapi.json"));
        let mut schemas = document["components"]["schemas"].clone();
        forbid_what_is_not_described(&mut schemas);
        Self { server, document, schemas, _folders: [folder, data] }
    }

    fn ask(&self, request: reqwest::RequestBuilder) -> Answer {
        self.server.runtime.block_on(async {
            let answer = request.send().await.unwrap();
            let kind = answer.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
            let status = answer.status().as_u16();
            Answer { status, kind: kind.unwrap_or_default(), body: answer.bytes().await.unwrap().to_vec() }
        })
    }

    fn get(&self, path: &str) -> Answer {
        self.ask(self.server.client.get(format!("{}{ROOT}{path}", self.server.serving.address)))
    }

    fn post(&self, path: &str, body: &str) -> Answer {
        let request = self.server.client.post(format!("{}{ROOT}{path}", self.server.serving.address));
        self.ask(request.body(body.to_owned()))
    }

    /// Holds an answer against what an operation says of its status; gives the status.
    fn check(&self, operation: &Value, asked: &str, answer: &Answer) -> u16 {
        let said = String::from_utf8_lossy(&answer.body);
        let described = self.resolved(&operation["responses"][answer.status.to_string()]);
        assert!(described.is_object(), "{asked}: {} is not described: {said}", answer.status);
        let kind = answer.kind.split(';').next().unwrap();
        let content = &described["content"][kind];
        assert!(content.is_object(), "{asked}: {kind} is not described for {}", answer.status);
        if kind == "application/json" {
            let body = serde_json::from_slice(&answer.body).unwrap();
            self.validate(&content["schema"], asked, &body);
        }
        answer.status
    }

    fn validate(&self, schema: &Value, asked: &str, body: &Value) {
        let validator = self.validator(schema);
        let wrong: Vec<String> = validator.iter_errors(body).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(wrong.is_empty(), "{asked}:\n{}", wrong.join("\n"));
    }

    fn validator(&self, schema: &Value) -> Validator {
        let mut whole = schema.clone();
        whole["components"] = json!({ "schemas": self.schemas });
        jsonschema::draft202012::new(&whole).unwrap()
    }

    fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(to) => self.document.pointer(to.trim_start_matches('#')).unwrap(),
            None => value,
        }
    }

    /// Addresses of a path that is about a task run.
    fn of_task_run(&self, path: &str) -> String {
        let run =
            r#"{ "tasks": [{ "task_key": "a", "condition_task": { "left": "1", "op": "EQUAL_TO", "right": "1" } }] }"#;
        let submit = format!("{}/api/2.2/jobs/runs/submit", self.server.serving.address);
        let answer = self.ask(self.server.client.post(submit).body(run));
        let run: Value = serde_json::from_slice(&answer.body).unwrap();
        let run = self.server.json(&format!("/api/2.2/jobs/runs/get?run_id={}", run["run_id"]));
        path.replace("{run_id}", &run["tasks"][0]["run_id"].to_string())
    }

    /// Every address that a path of the document stands for, over all applications.
    fn addresses(&self, path: &str) -> Vec<String> {
        let rows = self.server.json(&format!("{ROOT}/applications"));
        let rows = rows["applications"].as_array().unwrap().clone();
        let mut all = Vec::new();
        for row in rows {
            let id = row["id"].as_str().unwrap();
            if path.contains("{attempt}") != row["attempt"].is_string() {
                continue;
            }
            let attempt = row["attempt"].as_str().unwrap_or_default();
            let path = path.replace("{id}", id).replace("{attempt}", attempt);
            let key = [id, attempt].join("/");
            all.extend(self.addresses_in(&path, key.trim_end_matches('/')));
        }
        all
    }

    fn addresses_in(&self, path: &str, key: &str) -> Vec<String> {
        if path.contains("{stage}") {
            let timeline = self.server.json(&format!("{ROOT}/applications/{key}/timeline"));
            let stages = timeline["stages"].as_array().unwrap().iter().take(MOST);
            let place = |stage: &Value| {
                let (id, attempt) = (stage["stage"].to_string(), stage["attempt"].to_string());
                path.replace("{stage}", &id).replace("{stage_attempt}", &attempt)
            };
            return stages.map(place).collect();
        }
        if path.contains("{execution}") {
            let queries = self.server.json(&format!("{ROOT}/applications/{key}/sql"));
            let queries = queries.as_array().unwrap().iter().take(MOST);
            return queries.map(|query| path.replace("{execution}", &query["id"].to_string())).collect();
        }
        vec![path.to_owned()]
    }

    /// Queries that an operation needs, or that show more of its answer.
    fn queries(&self, path: &str) -> Vec<String> {
        let rows = self.server.json(&format!("{ROOT}/applications"));
        let id = |at: usize| rows["applications"][at]["id"].as_str().unwrap().to_owned();
        match path {
            "/compare" => {
                let many: String = (0..5).map(|at| format!("base={}&", id(at % 2))).collect();
                let two = |base, new| format!("base={}&new={}", id(base), id(new));
                vec![two(1, 2), two(2, 1), two(1, 3), two(3, 2), format!("{many}new={}", id(2)), String::new()]
            }
            "/shuffle" => vec!["bytes=412GB&cores=64&skew=0.4".to_owned(), "bytes=1".to_owned(), String::new()],
            _ if path.ends_with("/settings") => vec![String::new(), format!("against={}", id(1))],
            _ if path.ends_with("/tasks") && path.contains("stage") => {
                vec![String::new(), "sort=-duration_ms&limit=3&offset=1&status=success,failed".to_owned()]
            }
            _ => vec![String::new()],
        }
    }

    fn gets(&self) -> BTreeMap<&str, &Value> {
        let paths = self.document["paths"].as_object().unwrap().iter();
        paths.filter(|(_, item)| item["get"].is_object()).map(|(path, item)| (path.as_str(), &item["get"])).collect()
    }
}

/// An object may have no field that its schema does not name.
fn forbid_what_is_not_described(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("properties").is_some_and(Value::is_object) && !fields.contains_key("additionalProperties") {
                fields.insert("additionalProperties".to_owned(), false.into());
            }
            fields.values_mut().for_each(forbid_what_is_not_described);
        }
        Value::Array(items) => items.iter_mut().for_each(forbid_what_is_not_described),
        _ => {}
    }
}

/// A sample as the first attempt of another application, with a streaming query.
fn with_attempt_and_streams() -> String {
    const STREAM: &str = r#"{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent","progress":{"id":"q","runId":"r","name":"n","batchId":7,"timestamp":"2025-10-01T06:00:00.000Z","numInputRows":10,"inputRowsPerSecond":2.0,"processedRowsPerSecond":1.5,"durationMs":{"triggerExecution":9,"addBatch":5},"eventTime":{"watermark":"2025-10-01T05:00:00.000Z"},"stateOperators":[{"operatorName":"dedupe","numRowsTotal":3,"memoryUsedBytes":9,"numRowsDroppedByWatermark":1}],"sources":[{"description":"KafkaV2","numInputRows":10,"endOffset":{"t":{"0":1}}}],"sink":{"description":"X"}}}"#;
    let log = testkit::logs::plain(&samples().join("shop_daily.zstd")).unwrap();
    let log = String::from_utf8(log).unwrap();
    let start = log.find("\"App ID\":\"").unwrap() + "\"App ID\":\"".len();
    let end = start + log[start..].find('"').unwrap();
    let (before, after) = (&log[..start], &log[end..]);
    let (first, rest) = after.split_once('\n').unwrap();
    format!("{before}application_1_0001\",\"App Attempt ID\":\"1{first}\n{STREAM}\n{rest}")
}

#[test]
fn answers_are_as_they_are_described() {
    let described = Described::start();
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
    let served = described.server.get(&format!("{ROOT}/openapi.json")).1;
    assert!(served == std::fs::read_to_string(reference).unwrap(), "run `UPDATE=1 cargo test -p serve`");
    for (path, operation) in described.gets() {
        if path == "/events" {
            continue;
        }
        let about_one = path.contains("{id}");
        let addresses = match path {
            _ if about_one => described.addresses(path),
            _ if path.contains("{run_id}") => vec![described.of_task_run(path), path.replace("{run_id}", "7")],
            path => vec![path.to_owned()],
        };
        let mut statuses = BTreeSet::new();
        for (address, query) in addresses.iter().flat_map(|a| described.queries(path).into_iter().map(move |q| (a, q)))
        {
            let asked = format!("{address}?{query}");
            statuses.insert(described.check(operation, &asked, &described.get(&asked)));
        }
        assert!(statuses.contains(&200), "{path}: {statuses:?} for {addresses:?}");
        if about_one {
            let nobody = path.replace("{id}", "nobody");
            let nobody = ["{attempt}", "{stage}", "{stage_attempt}", "{execution}"]
                .iter()
                .fold(nobody, |p, name| p.replace(name, "0"));
            assert_eq!(described.check(operation, &nobody, &described.get(&nobody)), 404, "{nobody}");
        }
    }
}

#[test]
fn a_field_that_is_not_described_is_found() {
    let described = Described::start();
    let schema = &described.gets()["/applications"]["responses"]["200"]["content"]["application/json"]["schema"];
    let validator = described.validator(schema);
    let list = described.server.json(&format!("{ROOT}/applications"));
    assert!(validator.is_valid(&list));
    let changed = |change: fn(&mut serde_json::Map<String, Value>)| {
        let mut list = list.clone();
        change(list["applications"][0].as_object_mut().unwrap());
        list
    };
    assert!(!validator.is_valid(&changed(|row| drop(row.insert("colour".to_owned(), 1.into())))));
    assert!(!validator.is_valid(&changed(|row| drop(row.remove("usual_ms")))));
    assert!(!validator.is_valid(&changed(|row| drop(row.insert("started_ms".to_owned(), Value::Null)))));
}

#[test]
fn parameters_are_as_they_are_described() {
    let described = Described::start();
    let mut checked = 0;
    for (path, operation) in described.gets() {
        let query = if path == "/shuffle" { "bytes=1GB&" } else { "" };
        let address = match path {
            _ if path.contains("{id}") => described.addresses(path).pop().unwrap(),
            _ if path.contains("{run_id}") => described.of_task_run(path),
            path => path.to_owned(),
        };
        for parameter in operation["parameters"].as_array().into_iter().flatten().filter(|p| p["in"] == "query") {
            let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
            let words = schema["enum"].as_array().or(schema["items"]["enum"].as_array());
            if words.is_none() && !matches!(schema["type"].as_str(), Some("integer" | "number")) {
                continue;
            }
            let given =
                [&schema["default"], &schema["minimum"], &schema["maximum"]].into_iter().filter(|v| !v.is_null());
            for value in words.into_iter().flatten().chain(given) {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let asked = format!("{address}?{query}{name}={value}");
                let status = described.check(operation, &asked, &described.get(&asked));
                assert!(status == 200 || path.ends_with("/shuffle"), "{asked}: {status}");
                assert!(status != 400, "{asked}: {status}");
            }
            let asked = format!("{address}?{query}{name}=nonsense");
            let status = described.check(operation, &asked, &described.get(&asked));
            assert!(status == 400 || (status == 404 && path.ends_with("/shuffle")), "{asked}: {status}");
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn a_text_is_read_as_it_is_described() {
    let described = Described::start();
    let operation = &described.document["paths"]["/read"]["post"];
    let plan = "== Physical Plan ==\n*(1) Project [id#0L]\n+- *(1) Filter (id#0L > 5)\n   +- FileScan parquet [id#0L] Batched: true\n";
    for (query, text, status) in [
        ("", plan, 200),
        ("?kind=plan", plan, 200),
        ("?kind=stack", "java.lang.OutOfMemoryError: Java heap space\n\tat a.B.c(B.java:1)", 200),
        ("?kind=colour", plan, 400),
        ("", " ", 400),
        ("", &"x".repeat((4 << 20) + 1), 413),
    ] {
        let asked = format!("/read{query}");
        assert_eq!(described.check(operation, &asked, &described.post(&asked, text)), status, "{asked}");
    }
    let operation = &described.document["paths"]["/logs"]["post"];
    let log = with_attempt_and_streams();
    assert_eq!(described.check(operation, "/logs", &described.post("/logs?name=x", &log)), 201);
    assert_eq!(described.check(operation, "/logs", &described.post("/logs", "no log")), 400);
}

#[test]
fn events_are_as_they_are_described() {
    let described = Described::start();
    let operation = &described.document["paths"]["/events"]["get"];
    let events = format!("{}{ROOT}/events", described.server.serving.address);
    let first = described.server.runtime.block_on(async {
        let mut answer = described.server.client.get(events).send().await.unwrap();
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        String::from_utf8(answer.chunk().await.unwrap().unwrap().to_vec()).unwrap()
    });
    assert!(first.contains("event: applications\n"), "{first}");
    let data = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let schema = &operation["responses"]["200"]["content"]["text/event-stream"]["schema"];
    described.validate(schema, "/events", &serde_json::from_str(data).unwrap());
}
