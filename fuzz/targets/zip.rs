//! Any bytes as a zip archive of logs, and as names in a listing.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let names = String::from_utf8_lossy(data);
    let listing: Vec<_> =
        names.lines().map(|path| read::source::Entry { path: path.to_owned(), size: Some(path.len() as u64) }).collect();
    let _ = read::source::group(&listing);
    let bytes: std::sync::Arc<[u8]> = data.into();
    let open = move || Ok(std::io::Cursor::new(bytes.clone()));
    if let Ok(found) = read::source::zip_logs(open) {
        for (_, parts) in found.logs {
            let _ = read::event_log(parts, &read::Options::default());
        }
    }
});
