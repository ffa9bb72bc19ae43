//! Any bytes as an event log: codec, lines, events, fold, diagnosis.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let part = read::source::Part::bytes("log", data);
    if let Ok(app) = read::event_log(vec![part], &read::Options::default()) {
        let _ = diagnose::diagnose(&app, &diagnose::Config::default());
    }
});
