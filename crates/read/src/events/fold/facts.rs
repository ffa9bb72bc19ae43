//! What the reading itself found: counts, and the warnings that follow from them.

use super::super::parse::{KNOWN, Parsed, short_name};
use super::work::{Lost, TaskCounts};
use super::{At, Clock, Fold};
use crate::source::{PartStats, ReadStats};
use model::{Application, CachedRdd, Executor, LogFacts, Text, Warning};

/// Unknown kinds of events that a warning names.
const MAX_KINDS_NAMED: usize = 5;

pub(super) const DAY_MS: i64 = 86_400_000;

#[derive(Debug, Default)]
pub(super) struct Facts {
    pub log: LogFacts,
    /// By position in [`KNOWN`].
    known: Vec<u64>,
    /// Bad lines in the middle: the first of them, and how many.
    first_bad: Option<Line>,
    bad_in_middle: u64,
    /// Bad lines at the open end of a part or beside a damage, which names them already.
    cut: Option<Line>,
}

/// A line, as a reader counts.
#[derive(Clone, Copy, Debug)]
struct Line {
    part: usize,
    /// From 1.
    number: u64,
}

impl Facts {
    /// Takes the counts of a batch.
    pub fn batch(&mut self, at: At, parsed: &Parsed) {
        self.log.lines += parsed.lines;
        self.log.repeated_lines += parsed.repeated;
        self.known.resize(KNOWN.len(), 0);
        for (sum, n) in self.known.iter_mut().zip(&parsed.known) {
            *sum += n;
        }
        for (name, n) in parsed.unknown.iter().filter(|(_, n)| **n > 0) {
            *self.log.unknown_events.entry(Text::from(&**name)).or_default() += n;
        }
        for bad in &parsed.bad {
            self.log.bad_lines += 1;
            let line = Line { part: at.part, number: at.first_line + bad.index as u64 + 1 };
            if bad.maybe_cut {
                self.cut = Some(line);
            } else {
                self.bad_in_middle += 1;
                self.first_bad.get_or_insert(line);
            }
        }
    }

    fn finish(&mut self, counts: TaskCounts, task_starts: u64, stats: &ReadStats) {
        let log = &mut self.log;
        for (name, n) in KNOWN.iter().zip(self.known.iter().copied()).filter(|(_, n)| *n > 0) {
            log.events.insert(Text::from(*name), n);
        }
        for (name, n) in &log.unknown_events {
            *log.events.entry(Text::from(short_name(name))).or_default() += n;
        }
        let long: u64 = stats.parts.iter().map(|p| p.long_line_count).sum();
        log.lines += long;
        log.bad_lines += long;
        log.bytes_stored = stats.stored_bytes();
        log.bytes = stats.decoded_bytes();
        log.repeated_lines += counts.repeated_ends;
        log.task_starts = task_starts;
        log.task_ends = counts.ends;
        log.task_ends_not_successful = counts.ends_not_successful;
        log.clock_errors = counts.backwards;
        log.block_updates = log.events.get("SparkListenerBlockUpdated").copied().unwrap_or_default();
        log.in_progress = stats.parts.iter().any(|p| p.name.ends_with(".inprogress"));
    }
}

impl Fold {
    /// Ends the reading.
    pub fn finish(mut self, stats: &ReadStats) -> Application {
        self.facts.finish(self.work.counts, self.work.task_starts(), stats);
        let counts = self.work.counts;
        let clock_off_ms = self.executors_off_ms();
        let (jobs, stages, lost, moved) = self.work.finish();
        let (mut sql, mut accumulators) = self.sql.finish();
        for accumulator in accumulators.values_mut() {
            accumulator.stage = accumulator.stage.map(|old| moved[old as usize]);
        }
        for job in &jobs {
            let of = job.sql.and_then(|id| sql.binary_search_by_key(&id, |s| s.id).ok());
            if let Some(at) = of {
                sql[at].jobs.push(job.id);
            }
        }
        let Clock { first_ms, last_ms } = match clock_off_ms {
            Some(_) => self.clock,
            None => self.clock.and(&self.executor_clock),
        };
        let mut app = Application { first_event_ms: first_ms, last_event_ms: last_ms, ..self.app };
        app.cached = self.storage.finish();
        app.streams = self.streams.finish();
        (app.executors, app.processes, app.profiles) = self.executors.finish();
        add_cached(&mut app.executors, &app.cached);
        (app.jobs, app.stages, app.sql, app.accumulators) = (jobs, stages, sql, accumulators);
        let facts = self.facts;
        let mut warnings = facts.damage_warnings(stats);
        warnings.extend(facts.content_warnings(counts, lost, app.ended_ms.is_some()));
        warnings.extend(clock_off_ms.map(clock_warning));
        warnings.extend(self.budget.warning());
        app.log = facts.log;
        app.log.warnings = warnings;
        app
    }
}

impl Fold {
    /// By how much, ms, the times of executor events lie past all others, when they cannot be true:
    /// other events that were written after them happened a day or more before them.
    fn executors_off_ms(&self) -> Option<i64> {
        let past = self.executor_clock.last_ms? - self.clock.last_ms?;
        (past > DAY_MS && self.clock.last_ms > self.before_jump_ms).then_some(past)
    }
}

fn clock_warning(off_ms: i64) -> Warning {
    let days = count((off_ms / DAY_MS).unsigned_abs(), "day");
    let text = format!(
        "Executor events are {days} away from all other events: their clock is wrong, and their times are not used."
    );
    warning("LOG_CLOCK", text)
}

impl Facts {
    /// What could not be read.
    fn damage_warnings(&self, stats: &ReadStats) -> Vec<Warning> {
        let name = |part: usize| stats.parts.get(part).map_or("the log", |p| &*p.name);
        let mut warnings = Vec::new();
        for part in &stats.parts {
            warnings.extend(part_warnings(part));
        }
        if let Some(stop) = &stats.stopped {
            warnings.push(warning("LOG_TRUNCATED", format!("Reading ended early: {stop}.")));
        }
        if let Some(line) = self.cut.filter(|line| stats.parts.get(line.part).is_none_or(|p| p.damage_count == 0)) {
            let (number, name) = (line.number, name(line.part));
            let text = format!("The last line of {name} (line {number}) is cut; everything before it was read.");
            warnings.push(warning("LOG_TRUNCATED", text));
        }
        if let Some(line) = self.first_bad {
            let (bad, lines, name) = (self.bad_in_middle, self.log.lines, name(line.part));
            let text = format!("{bad} of {lines} lines cannot be read, first line {} of {name}.", line.number);
            warnings.push(warning("LOG_EVENTS_DROPPED", text));
        }
        warnings
    }

    /// What the events themselves say about the log.
    fn content_warnings(&self, counts: TaskCounts, lost: Lost, ended: bool) -> Vec<Warning> {
        let log = &self.log;
        let mut warnings = Vec::new();
        if !log.starts_at_beginning {
            let text = "There is no ApplicationStart: the log begins in the middle, or its first file is missing.";
            warnings.push(warning("LOG_PARTIAL", text.to_owned()));
        }
        warnings.extend(self.lost_events(lost, ended));
        if counts.backwards > 0 {
            let tasks = count(counts.backwards, "task");
            let text = format!("{tasks} with a finish before the start; such a duration counts as 0.");
            warnings.push(warning("LOG_CLOCK", text));
        }
        if log.repeated_lines > 0 {
            let text = format!("{} left out that repeat what was said before.", count(log.repeated_lines, "line"));
            warnings.push(warning("LOG_REPEATED", text));
        }
        warnings.extend(self.unknown_events());
        warnings
    }

    fn lost_events(&self, lost: Lost, ended: bool) -> Option<Warning> {
        // A log that goes on, or begins in the middle, has half of some things by nature.
        let at_end = |n| if ended { n } else { 0 };
        let at_start = |n| if self.log.starts_at_beginning { n } else { 0 };
        let parts: Vec<String> = [
            (at_end(lost.without_end), "task", "started and never ended"),
            (at_start(lost.without_start), "task", "ended without a start"),
            (lost.without_event, "task", "left no event although the stage completed"),
            (
                at_start(lost.jobs_without_start),
                "job",
                match lost.jobs_without_start {
                    1 => "ended without a start and is left out",
                    _ => "ended without a start and are left out",
                },
            ),
        ]
        .into_iter()
        .filter(|(n, ..)| *n > 0)
        .map(|(n, thing, what)| format!("{} {what}", count(n, thing)))
        .collect();
        let text = format!(
            "Events are missing: {}. Sums are lower bounds; a larger spark.scheduler.listenerbus.eventqueue.capacity \
             loses fewer.",
            parts.join(", ")
        );
        (!parts.is_empty()).then(|| warning("LOG_EVENTS_DROPPED", text))
    }

    fn unknown_events(&self) -> Option<Warning> {
        let unknown = &self.log.unknown_events;
        let total: u64 = unknown.values().sum();
        let mut kinds: Vec<(&Text, &u64)> = unknown.iter().collect();
        kinds.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        let named: Vec<String> =
            kinds.iter().take(MAX_KINDS_NAMED).map(|(name, n)| format!("{} ({n})", short_name(name))).collect();
        let more = kinds.len().saturating_sub(MAX_KINDS_NAMED);
        let more = if more > 0 { format!(" and {more} other kinds") } else { String::new() };
        let text = format!("{} of unknown kinds passed over: {}{more}.", count(total, "event"), named.join(", "));
        (total > 0).then(|| warning("LOG_UNKNOWN", text))
    }
}

fn part_warnings(part: &PartStats) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for damage in &part.damages {
        warnings.push(warning("LOG_TRUNCATED", format!("In {}: {damage}.", part.name)));
    }
    let unnamed = part.damage_count - part.damages.len() as u64;
    if unnamed > 0 {
        warnings.push(warning("LOG_TRUNCATED", format!("In {}: {} more.", part.name, count(unnamed, "damage"))));
    }
    if let Some(longest) = part.long_lines.iter().map(|l| l.bytes).max() {
        let text = format!(
            "{} of {} left out, longer than --max-line-bytes or --max-memory allow (up to {longest} bytes).",
            count(part.long_line_count, "line"),
            part.name
        );
        warnings.push(warning("LOG_EVENTS_DROPPED", text));
    }
    warnings
}

impl super::Budget {
    fn warning(&self) -> Option<Warning> {
        let plans = if self.keep.plans { "" } else { ", and later plans," };
        let text = format!(
            "The application needs more than {} bytes, so plan texts and call stacks{plans} were left out; a larger \
             --max-memory keeps them.",
            self.max_bytes
        );
        (!self.keep.texts).then(|| warning("LOG_LIMIT", text))
    }
}

/// `1 line`, `2 lines`.
fn count(n: u64, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

fn warning(code: &str, text: String) -> Warning {
    Warning { code: code.to_owned(), text }
}

/// Adds up what each executor holds of cached data at the end.
fn add_cached(executors: &mut [Executor], cached: &[CachedRdd]) {
    for rdd in cached.iter().filter(|rdd| rdd.unpersisted_ms.is_none()) {
        for block in &rdd.held {
            let Some(executor) = executors.iter_mut().find(|e| *e.id == *block.executor) else { continue };
            executor.rdd_blocks += 1;
            executor.cached_disk_bytes += block.disk_bytes;
            match rdd.level.off_heap {
                true => executor.cached_off_heap_bytes += block.memory_bytes,
                false => executor.cached_on_heap_bytes += block.memory_bytes,
            }
        }
    }
}
