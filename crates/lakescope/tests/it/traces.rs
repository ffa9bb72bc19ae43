//! Traces of `lakescope serve`, as a collector gets them.
#![cfg(unix)]

use crate::serve::{binary, samples};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testkit::serving::{Serving, command};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// Requests that came: path and body.
type Came = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A collector that takes everything.
fn collector() -> (String, Came) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let came = Came::default();
    let kept = Arc::clone(&came);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || while take(stream.as_ref().unwrap(), &kept).is_some() {});
        }
    });
    (address, came)
}

/// Takes a request; `None` when no more come.
fn take(mut stream: &TcpStream, came: &Came) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0).map(|_| line)
    };
    let path = line()?.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    while let Some(header) = line().filter(|header| header != "\r\n") {
        if let Some(bytes) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    came.lock().unwrap().push((path, body));
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()
}

fn serve(data: &tempfile::TempDir, endpoint: &str) -> Serving {
    let folder = samples();
    let args = [folder.to_str().unwrap(), "--no-auth", "--otlp-endpoint", endpoint];
    let mut command = command(binary(), &data.path().join("data"), args);
    command
        .env("OTEL_BSP_SCHEDULE_DELAY", "100")
        .env_remove("OTEL_SERVICE_NAME")
        .env_remove("OTEL_RESOURCE_ATTRIBUTES");
    Serving::start_as(&mut command, |line| eprintln!("{line}")).unwrap()
}

/// Stops it as a supervisor does; gives how long that took.
fn stop(serving: &mut Serving) -> Duration {
    let begun = Instant::now();
    assert!(Command::new("kill").args(["-TERM", &serving.id().to_string()]).status().unwrap().success());
    while serving.runs().unwrap() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not stop");
        std::thread::sleep(Duration::from_millis(20));
    }
    begun.elapsed()
}

fn text(attributes: &[KeyValue], name: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == name);
    match found.and_then(|attribute| attribute.value.as_ref()) {
        Some(AnyValue { value: Some(Value::StringValue(text)) }) => text.clone(),
        Some(AnyValue { value: Some(Value::IntValue(number)) }) => number.to_string(),
        other => panic!("{name}: {other:?}"),
    }
}

fn ask(address: &str) -> u16 {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let request = reqwest::Client::new().get(address).bearer_auth("lks_secret1");
    let request = request.header("traceparent", format!("00-{TRACE}-{PARENT}-01"));
    runtime.block_on(async { request.send().await.unwrap().status().as_u16() })
}

#[test]
fn a_collector_gets_a_span_for_each_request() {
    let data = tempfile::tempdir().unwrap();
    let (endpoint, came) = collector();
    let mut serving = serve(&data, &endpoint);
    let page = "/api/lakescope/v1/applications/app-20261129210950-0000/page";
    let begun = Instant::now();
    while ask(&format!("{}{page}?token=secret2", serving.address)) != 200 {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited for a minute");
        std::thread::sleep(Duration::from_millis(50));
    }
    stop(&mut serving);
    let came = came.lock().unwrap();
    let mut spans: Vec<Span> = Vec::new();
    for (path, body) in came.iter() {
        assert_eq!(path, "/v1/traces");
        assert!(!String::from_utf8_lossy(body).contains("secret"), "{body:?}");
        for resource in ExportTraceServiceRequest::decode(body.as_slice()).unwrap().resource_spans {
            assert_eq!(text(&resource.resource.unwrap().attributes, "service.name"), "lakescope");
            spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let route = "/api/lakescope/v1/applications/{id}/page";
    let of_route = |span: &&Span| span.name == format!("GET {route}");
    let request = spans.iter().rev().find(of_route).unwrap_or_else(|| panic!("{spans:?}"));
    assert_eq!((hex(&request.trace_id), hex(&request.parent_span_id)), (TRACE.to_owned(), PARENT.to_owned()));
    for (name, value) in [
        ("http.request.method", "GET"),
        ("http.route", route),
        ("url.path", page),
        ("http.response.status_code", "200"),
    ] {
        assert_eq!(text(&request.attributes, name), value);
    }
    let opens = |span: &&Span| span.name == "open application" && span.parent_span_id == request.span_id;
    let opened = spans.iter().find(opens).unwrap_or_else(|| panic!("{spans:?}"));
    assert_eq!(text(&opened.attributes, "lakescope.application"), "app-20261129210950-0000");
    // The logs were read before anybody asked.
    let read: Vec<String> =
        spans.iter().filter(|s| s.name == "read log").map(|s| text(&s.attributes, "lakescope.log")).collect();
    assert!(read.iter().any(|log| log.ends_with("shop_daily.zstd")), "{read:?}");
}

#[test]
fn a_collector_that_is_not_there_is_told_of_once() {
    let data = tempfile::tempdir().unwrap();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut serving = serve(&data, &format!("http://user:secret@{nobody}"));
    for _ in 0..5 {
        assert_eq!(ask(&format!("{}/health", serving.address)), 200);
        std::thread::sleep(Duration::from_millis(300));
    }
    let took = stop(&mut serving);
    assert!(took < Duration::from_secs(10), "{took:?}");
    let said = serving.said();
    let told: Vec<&String> = said.iter().filter(|line| line.contains("traces do not reach 127.0.0.1")).collect();
    assert!(told.len() == 1 && told[0].contains("WARN"), "{said:?}");
    assert!(!said.iter().any(|line| line.contains("secret") || line.contains("ERROR")), "{said:?}");
}
