//! How fast a kept application is there again, beside reading its log, and how fast the heads of
//! many logs are: `kept LOG`.

use anyhow::{Context, Result};
use peak_alloc::PeakAlloc;
use read::source::Part;
use std::fs::File;
use std::sync::Arc;
use std::time::Instant;
use store::{Head, LogKey, Mark, Settings, Store};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const LOADS: usize = 21;
const HEADS: usize = 2_000;

#[tokio::main]
async fn main() -> Result<()> {
    let log = std::env::args().nth(1).context("usage: kept LOG")?;
    let folder = tempfile::tempdir()?;
    let store = Store::open(folder.path().join("data"), Settings::default()).await?;
    let key = LogKey { path: log.clone(), mark: Mark::default() };
    let head = Head { application_id: "log".to_owned(), attempt_id: None, json: "{}".to_owned() };

    let (before, begin) = (HEAP.current_usage(), Instant::now());
    let opened = log.clone();
    let part = Part::new(log.clone(), None, move || Ok(Box::new(File::open(&opened)?)));
    let app = Arc::new(read::event_log(vec![part], &read::Options::default())?);
    let tasks: usize = app.stages.iter().map(|stage| stage.tasks.len()).sum();
    println!("tasks  {tasks:>9}");
    println!("read   {:>9.1} ms, heap {:>9} bytes", ms(begin), HEAP.current_usage() - before);

    let begin = Instant::now();
    let put = store.put_application(&key, &head, Arc::clone(&app), String::new()).await?;
    println!("put    {:>9.1} ms, file {:>9} bytes", ms(begin), put.file_bytes);
    drop(app);

    let mut took = Vec::new();
    for _ in 0..LOADS {
        let (before, begin) = (HEAP.current_usage(), Instant::now());
        HEAP.reset_peak_usage();
        let app = store.application(&key).await?.context("the application is not there")?;
        took.push(ms(begin));
        let (heap, peak) = (HEAP.current_usage() - before, HEAP.peak_usage() - before);
        if took.len() == LOADS {
            took.sort_by(f64::total_cmp);
            println!("load   {:>9.1} ms, heap {heap:>9} bytes, {peak} while loading", took[LOADS / 2]);
            println!("       {:>9.1} ms the fastest of {LOADS}", took[0]);
        }
        drop(app);
    }
    for number in 0..HEADS {
        let key = LogKey { path: format!("{log}/{number}"), mark: Mark::default() };
        store.put_unreadable(&key, "no event in it").await?;
    }
    let begin = Instant::now();
    let heads = store.heads().await?.len();
    println!("heads  {:>9.1} ms, {heads} of them", ms(begin));
    Ok(())
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
