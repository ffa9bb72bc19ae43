//! Any text as something that people paste.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let app = read::paste::read(&text, None);
    let _ = diagnose::diagnose(&app, &diagnose::Config::default());
});
