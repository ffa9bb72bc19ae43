//! Lines that begin like events: the typed parsers behind the dispatch.
#![no_main]
use libfuzzer_sys::fuzz_target;

const HEADS: [&str; 8] = [
    "SparkListenerTaskEnd",
    "SparkListenerJobStart",
    "SparkListenerStageCompleted",
    "SparkListenerBlockUpdated",
    "SparkListenerExecutorRemoved",
    "SparkListenerEnvironmentUpdate",
    "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
    "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent",
];

fuzz_target!(|data: &[u8]| {
    let mut log = b"{\"Event\":\"SparkListenerLogStart\",\"Spark Version\":\"4.0.1\"}\n".to_vec();
    for (at, body) in data.split(|&b| b == b'\n').enumerate() {
        log.extend(format!("{{\"Event\":\"{}\",", HEADS[at % HEADS.len()]).as_bytes());
        log.extend(body);
        log.extend(b"}\n");
    }
    let part = read::source::Part::bytes("log", log);
    if let Ok(app) = read::event_log(vec![part], &read::Options::default()) {
        let _ = diagnose::diagnose(&app, &diagnose::Config::default());
    }
});
