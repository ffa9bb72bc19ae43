//! Any text as a plan.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    for plan in read::plan::parse_text(&text) {
        let _ = plan.fingerprint();
        let _ = diagnose::plan_reading::read_plan(&plan, None);
    }
    let _ = read::plan::parse_sketch(&text);
});
