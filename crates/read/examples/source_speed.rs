//! Reads files as one log and prints how fast that was: `source_speed THREADS FILE...`
use read::source::{Options, Part, run};
use std::fs::File;
use std::ops::ControlFlow;
use std::time::Instant;

fn main() {
    let mut args = std::env::args().skip(1);
    let Some(threads) = args.next().and_then(|n| n.parse().ok()) else {
        eprintln!("usage: source_speed THREADS FILE...");
        return;
    };
    let parts: Vec<Part> = args
        .map(|path| {
            let size = std::fs::metadata(&path).ok().map(|m| m.len());
            Part::new(path.clone(), size, move || Ok(Box::new(File::open(&path)?)))
        })
        .collect();
    let options = Options { threads, ..Options::default() };
    let start = Instant::now();
    let mut lines = 0;
    let parse = |batch: &read::source::Batch| batch.lines().count() as u64;
    let stats = run(parts, &options, parse, |_, n| {
        lines += n;
        ControlFlow::Continue(())
    });
    let seconds = start.elapsed().as_secs_f64();
    let mb = stats.decoded_bytes() as f64 / 1e6;
    println!("{lines} lines, {mb:.0} MB, {seconds:.2} s, {:.0} MB/s", mb / seconds);
    for part in stats.parts {
        println!("{} {} {} damages", part.name, part.codec, part.damage_count);
        part.damages.iter().take(5).for_each(|d| println!("  {d}"));
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().filter(|l| l.starts_with("VmHWM")).for_each(|l| println!("{l}"));
}
