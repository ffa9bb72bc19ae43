//! Decompressing, parsing and folding side by side.

use super::batch::{Batch, Place};
use super::limits::Limits;
use super::part::Part;
use super::progress::Progress;
use super::split::Splitter;
use super::stats::ReadStats;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle, scope};

/// How to read.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bounds on memory and work.
    pub limits: Limits,
    /// Parser threads. With one, everything runs on the caller's thread; with more, one further
    /// thread decompresses and the caller's thread folds.
    pub threads: NonZeroUsize,
    /// Counters to watch from another thread.
    pub progress: Progress,
}

impl Default for Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Options { limits: Limits::default(), threads, progress: Progress::default() }
    }
}

/// Reads `parts` one after another, parses batches of whole lines in parallel and folds the
/// results in the order of the log.
///
/// `fold` runs on the caller's thread; it ends the reading with [`ControlFlow::Break`]. Buffers are
/// recycled and every queue is bounded, so memory does not grow with the log. A panic in `parse` or
/// `fold` ends all threads and goes on in the caller.
///
/// ```
/// use read::source::{Options, Part, run};
/// use std::ops::ControlFlow;
///
/// let part = Part::bytes("log", *b"{\"Event\":1}\n{\"Event\":2}\n");
/// let mut lines = 0;
/// let stats = run(vec![part], &Options::default(), |batch| batch.lines().count(), |_, n| {
///     lines += n;
///     ControlFlow::Continue(())
/// });
/// assert_eq!((lines, stats.lines()), (2, 2));
/// ```
pub fn run<T: Send>(
    parts: Vec<Part>,
    options: &Options,
    parse: impl Fn(&Batch) -> T + Sync,
    mut fold: impl FnMut(Place, T) -> ControlFlow<()>,
) -> ReadStats {
    let mut splitter = Splitter::new(parts, &options.limits, &options.progress);
    let mut counts = LineCounts::default();
    let mut fold = |parsed: Parsed<T>| fold(counts.place(&parsed), parsed.value);
    let threads = options.threads.get();
    let asked_to_stop = if threads == 1 {
        in_line(&mut splitter, &parse, &mut fold)
    } else {
        side_by_side(&mut splitter, threads, &parse, &mut fold)
    };
    let mut stats = splitter.finish(asked_to_stop);
    counts.add_to(&mut stats);
    stats
}

/// The result of one batch.
struct Parsed<T> {
    part: usize,
    at_byte: u64,
    dropped_lines: u64,
    lines: u64,
    value: T,
}

impl<T> Parsed<T> {
    fn new(batch: &Batch, parse: &impl Fn(&Batch) -> T) -> Parsed<T> {
        let value = parse(batch);
        Parsed {
            part: batch.part,
            at_byte: batch.at_byte,
            dropped_lines: batch.dropped_lines,
            lines: batch.line_count(),
            value,
        }
    }
}

/// Lines so far, part by part.
#[derive(Default)]
struct LineCounts {
    handed_on: Vec<u64>,
    /// Of the present part, dropped lines included.
    seen: u64,
}

impl LineCounts {
    fn place<T>(&mut self, parsed: &Parsed<T>) -> Place {
        if self.handed_on.len() <= parsed.part {
            self.handed_on.resize(parsed.part + 1, 0);
            self.seen = 0;
        }
        let first_line = self.seen + parsed.dropped_lines;
        self.seen = first_line + parsed.lines;
        self.handed_on[parsed.part] += parsed.lines;
        Place { part: parsed.part, first_line, at_byte: parsed.at_byte }
    }

    fn add_to(&self, stats: &mut ReadStats) {
        for (part, lines) in stats.parts.iter_mut().zip(&self.handed_on) {
            part.lines = *lines;
        }
    }
}

fn in_line<T>(
    splitter: &mut Splitter,
    parse: &impl Fn(&Batch) -> T,
    fold: &mut impl FnMut(Parsed<T>) -> ControlFlow<()>,
) -> bool {
    while let Some(batch) = splitter.next_batch() {
        let parsed = Parsed::new(&batch, parse);
        drop(batch);
        if fold(parsed).is_break() {
            return true;
        }
    }
    false
}

/// A batch and where its result is awaited.
type Job<T> = (Batch, SyncSender<Parsed<T>>);

fn side_by_side<T: Send>(
    splitter: &mut Splitter,
    threads: usize,
    parse: &(impl Fn(&Batch) -> T + Sync),
    fold: &mut impl FnMut(Parsed<T>) -> ControlFlow<()>,
) -> bool {
    // Short queues: they only have to bridge uneven batches, and each place holds a buffer.
    let (jobs_in, jobs) = sync_channel::<Job<T>>(threads);
    let (order_in, order) = sync_channel::<Receiver<Parsed<T>>>(2 * threads);
    let jobs = Mutex::new(jobs);
    scope(|s| {
        let jobs = &jobs;
        let mut handles: Vec<_> = (0..threads).map(|_| spawn_parser(s, jobs, parse)).collect();
        handles.push(s.spawn(move || hand_out(splitter, &jobs_in, &order_in)));
        let asked_to_stop = fold_in_order(order, fold);
        // With the order's receiver gone, the reader ends, and with it the parsers.
        handles.into_iter().for_each(join);
        asked_to_stop
    })
}

fn spawn_parser<'s, T: Send>(
    s: &'s Scope<'s, '_>,
    jobs: &'s Mutex<Receiver<Job<T>>>,
    parse: &'s (impl Fn(&Batch) -> T + Sync),
) -> ScopedJoinHandle<'s, ()> {
    s.spawn(move || {
        loop {
            let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((batch, result)) = next else { return };
            let parsed = Parsed::new(&batch, parse);
            drop(batch);
            // The receiver is gone when the reading was stopped.
            let _ = result.send(parsed);
        }
    })
}

fn hand_out<T>(splitter: &mut Splitter, jobs: &SyncSender<Job<T>>, order: &SyncSender<Receiver<Parsed<T>>>) {
    while let Some(batch) = splitter.next_batch() {
        let (result, awaited) = sync_channel(1);
        if order.send(awaited).is_err() || jobs.send((batch, result)).is_err() {
            return;
        }
    }
}

fn fold_in_order<T>(order: Receiver<Receiver<Parsed<T>>>, fold: &mut impl FnMut(Parsed<T>) -> ControlFlow<()>) -> bool {
    for awaited in order {
        // A parser that panicked leaves no result; joining it brings the panic here.
        let Ok(parsed) = awaited.recv() else {
            return false;
        };
        if fold(parsed).is_break() {
            return true;
        }
    }
    false
}

fn join(handle: ScopedJoinHandle<'_, ()>) {
    if let Err(panic) = handle.join() {
        resume_unwind(panic);
    }
}
