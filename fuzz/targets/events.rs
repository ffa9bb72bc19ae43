//! Lines that begin like events: the typed parsers behind the dispatch.
#![no_main]
use libfuzzer_sys::fuzz_target;

/// Names of the events, given to the lines of an input in turn.
const HEADS: &str = include_str!("../heads.txt");

fuzz_target!(|data: &[u8]| {
    let mut log = b"{\"Event\":\"SparkListenerLogStart\",\"Spark Version\":\"4.0.1\"}\n".to_vec();
    for (body, head) in data.split(|&b| b == b'\n').zip(HEADS.lines().cycle()) {
        log.extend(format!("{{\"Event\":\"{head}\",").as_bytes());
        log.extend(body);
        log.extend(b"}\n");
    }
    let part = read::source::Part::bytes("log", log);
    if let Ok(app) = read::event_log(vec![part], &read::Options::default()) {
        let _ = diagnose::diagnose(&app, &diagnose::Config::default());
    }
});
