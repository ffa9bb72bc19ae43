//! Lines that begin like events: the second reading of a log, for the figures of SQL executions.
#![no_main]
use libfuzzer_sys::fuzz_target;

/// Names of the events, given to the lines of an input in turn.
const HEADS: &str = include_str!("../heads.txt");

fuzz_target!(|data: &[u8]| {
    let mut log = Vec::new();
    for (body, head) in data.split(|&b| b == b'\n').zip(HEADS.lines().cycle()) {
        log.extend(format!("{{\"Event\":\"{head}\",").as_bytes());
        log.extend(body);
        log.extend(b"}\n");
    }
    let part = read::source::Part::bytes("log", log);
    let _ = read::sql_metrics(vec![part], &read::Options::default());
});
