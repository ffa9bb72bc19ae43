//! Order, stopping, panics and progress.

use super::{joined, options, read, sample, small};
use read::source::{Batch, Options, Part, Progress, Stop, run};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

fn log() -> Vec<Part> {
    vec![Part::bytes("a", joined(&sample(400))), Part::bytes("b", joined(&sample(100)))]
}

#[test]
fn any_number_of_threads_folds_in_order() {
    let expected = read(log(), &options(1, small()));
    for threads in [2, 3, 8] {
        assert_eq!(read(log(), &options(threads, small())), expected);
    }
    let mut places = Vec::new();
    let slow_first = |batch: &Batch| {
        // Late batches finish first.
        let bytes = batch.bytes().len() as u64;
        std::thread::sleep(Duration::from_micros(bytes % 7 * 50));
    };
    run(log(), &options(4, small()), slow_first, |place, ()| {
        places.push((place.part, place.first_line, place.at_byte));
        ControlFlow::Continue(())
    });
    assert!(places.is_sorted());
    assert!(places.len() > 100);
}

#[test]
fn the_fold_can_stop() {
    for threads in [1, 4] {
        let mut folded = 0;
        let stats = run(
            log(),
            &options(threads, small()),
            |_| (),
            |_, ()| {
                folded += 1;
                if folded == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        assert_eq!(folded, 5);
        assert_eq!(stats.stopped, Some(Stop::Asked));
        assert!(stats.lines() < 100);
    }
}

#[test]
fn a_panic_reaches_the_caller_and_nothing_hangs() {
    let message = |result: std::thread::Result<()>| {
        let panic = result.unwrap_err();
        panic.downcast_ref::<&str>().map(|s| s.to_string()).unwrap_or_default()
    };
    for threads in [1, 2, 4] {
        let options = options(threads, small());
        let in_parser = catch_unwind(AssertUnwindSafe(|| {
            run(
                log(),
                &options,
                |batch| assert!(!batch.bytes().windows(12).any(|w| w == b"\"Task ID\":77"), "parser"),
                |_, ()| ControlFlow::Continue(()),
            );
        }));
        assert_eq!(message(in_parser), "parser");
        let in_fold = catch_unwind(AssertUnwindSafe(|| {
            run(
                log(),
                &options,
                |_| (),
                |place, ()| {
                    assert!(place.first_line < 50, "fold");
                    ControlFlow::Continue(())
                },
            );
        }));
        assert_eq!(message(in_fold), "fold");
    }
}

#[test]
fn progress_reaches_the_size_of_the_parts() {
    let parts = log();
    let size: u64 = parts.iter().filter_map(|p| p.size).sum();
    let progress = Progress::default();
    let options = Options { progress: progress.clone(), ..options(2, small()) };
    let mut seen = Vec::new();
    let stats = run(
        parts,
        &options,
        |_| (),
        |_, ()| {
            seen.push(progress.stored_bytes());
            ControlFlow::Continue(())
        },
    );
    assert_eq!(progress.stored_bytes(), size);
    assert_eq!(progress.decoded_bytes(), stats.decoded_bytes());
    assert!(seen.is_sorted());
}

#[test]
fn nothing_to_read_is_no_error() {
    let (got, stats) = read(Vec::new(), &options(2, small()));
    assert!(got.is_empty() && stats.parts.is_empty() && stats.is_complete());
}
