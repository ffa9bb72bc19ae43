//! From a batch of lines to events; runs on many threads at once.

use super::task::{self, TaskEnd, TaskSink, TaskStart};
use super::wire::{self, CowStr};
use super::wire_sql::{self, Progress, QueryEvent, SqlStart, SqlUpdate};
use foldhash::HashMap;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::hash::BuildHasher;

/// All that the fold needs of one batch.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// The events in order.
    pub(super) events: Vec<Event>,
    /// Texts that task events refer to by number.
    pub(super) texts: Vec<Box<str>>,
    /// SQL metric updates that task ends refer to.
    pub(super) updates: Vec<(i64, i64)>,
    /// Updates of the user's accumulators that task ends refer to.
    pub(super) user_updates: Vec<task::UserUpdate>,
    pub(super) peaks: task::Peaks,
    /// Lines that are not empty.
    pub(super) lines: u64,
    pub(super) bad: Vec<BadLine>,
    pub(super) repeated: u64,
    /// Known events by position in [`KNOWN`].
    pub(super) known: Vec<u64>,
    pub(super) unknown: HashMap<Box<str>, u64>,
    /// Fingerprints of the first and last line, to find a repetition across batches.
    pub(super) first: Option<First>,
    pub(super) last: u64,
}

impl Parsed {
    /// Leaves the first line out again: it repeats the last one of the batch before.
    pub(super) fn take_back_first(&mut self) {
        let Some(first) = self.first.take() else { return };
        self.repeated += 1;
        match first.kind {
            LineKind::Known(at) => self.known[at] -= 1,
            LineKind::Unknown(name) => *self.unknown.entry(name).or_insert(1) -= 1,
            LineKind::Bad => drop(self.bad.remove(0)),
        }
        if first.has_event {
            self.events.remove(0);
        }
    }
}

/// A line that is no event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BadLine {
    /// Line in the batch, from 0.
    pub index: usize,
    /// Whether a damage or the open end of a part touches it.
    pub maybe_cut: bool,
}

/// The first line of a batch, so that it can be taken back when it repeats the line before.
#[derive(Clone, Debug)]
pub(super) struct First {
    pub fingerprint: u64,
    pub kind: LineKind,
    /// Whether the first event came from it.
    pub has_event: bool,
}

/// What a line is counted as.
#[derive(Clone, Debug)]
pub(super) enum LineKind {
    /// A known event: position in [`KNOWN`].
    Known(usize),
    /// An unknown event, by its full name.
    Unknown(Box<str>),
    /// No event.
    Bad,
}

/// An event that changes the application.
#[derive(Debug)]
pub(super) enum Event {
    TaskStart(TaskStart),
    TaskEnd(Box<TaskEnd>),
    LogStart(wire::LogStart),
    DatabricksStart(wire::DatabricksStart),
    ApplicationStart(Box<wire::ApplicationStart>),
    ApplicationEnd(wire::ApplicationEnd),
    Environment(Box<wire::EnvironmentUpdate>),
    BlockManagerAdded(Box<wire::BlockManagerAdded>),
    ExecutorAdded(Box<wire::ExecutorAdded>),
    ExecutorRemoved(Box<wire::ExecutorRemoved>),
    Excluded(Box<wire::Exclusion>),
    Unexcluded(Box<wire::Exclusion>),
    ResourceProfile(wire::ResourceProfileAdded),
    ExecutorMetrics(Box<wire::StageExecutorMetrics>),
    Process(Box<wire::ProcessAdded>),
    JobStart(Box<wire::JobStart>),
    JobEnd(Box<wire::JobEnd>),
    StageSubmitted(Box<wire::StageEvent>),
    StageCompleted(Box<wire::StageEvent>),
    BlockUpdated(Box<wire::BlockUpdatedInfo>),
    Unpersist(wire::UnpersistRdd),
    SqlStart(Box<SqlStart>),
    SqlUpdate(Box<SqlUpdate>),
    SqlMetrics(wire_sql::SqlMetricUpdates),
    DriverUpdates(wire_sql::DriverAccumUpdates),
    SqlEnd(Box<wire_sql::SqlEnd>),
    QueryStarted(Box<QueryEvent>),
    QueryProgress(Box<Progress>),
    QueryIdle(Box<QueryEvent>),
    QueryTerminated(Box<QueryEvent>),
    /// A known event that changes nothing.
    Nothing,
}

/// Short names of the events that are known.
pub(super) const KNOWN: [&str; 46] = [
    "SparkListenerTaskEnd",
    "SparkListenerTaskStart",
    "SparkListenerTaskGettingResult",
    "SparkListenerLogStart",
    "DBCEventLoggingListenerMetadata",
    "SparkListenerApplicationStart",
    "SparkListenerApplicationEnd",
    "SparkListenerEnvironmentUpdate",
    "SparkListenerBlockManagerAdded",
    "SparkListenerBlockManagerRemoved",
    "SparkListenerExecutorAdded",
    "SparkListenerExecutorRemoved",
    "SparkListenerExecutorExcluded",
    "SparkListenerExecutorExcludedForStage",
    "SparkListenerNodeExcluded",
    "SparkListenerNodeExcludedForStage",
    "SparkListenerExecutorUnexcluded",
    "SparkListenerNodeUnexcluded",
    "SparkListenerExecutorBlacklisted",
    "SparkListenerExecutorBlacklistedForStage",
    "SparkListenerNodeBlacklisted",
    "SparkListenerNodeBlacklistedForStage",
    "SparkListenerExecutorUnblacklisted",
    "SparkListenerNodeUnblacklisted",
    "SparkListenerResourceProfileAdded",
    "SparkListenerMiscellaneousProcessAdded",
    "SparkListenerStageExecutorMetrics",
    "SparkListenerExecutorMetricsUpdate",
    "SparkListenerJobStart",
    "SparkListenerJobEnd",
    "SparkListenerStageSubmitted",
    "SparkListenerStageCompleted",
    "SparkListenerSpeculativeTaskSubmitted",
    "SparkListenerUnschedulableTaskSetAdded",
    "SparkListenerUnschedulableTaskSetRemoved",
    "SparkListenerBlockUpdated",
    "SparkListenerUnpersistRDD",
    "SparkListenerSQLExecutionStart",
    "SparkListenerSQLAdaptiveExecutionUpdate",
    "SparkListenerSQLAdaptiveSQLMetricUpdates",
    "SparkListenerDriverAccumUpdates",
    "SparkListenerSQLExecutionEnd",
    "StreamingQueryListener$QueryStartedEvent",
    "StreamingQueryListener$QueryProgressEvent",
    "StreamingQueryListener$QueryIdleEvent",
    "StreamingQueryListener$QueryTerminatedEvent",
];

/// A line to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawLine<'a> {
    pub bytes: &'a [u8],
    /// Line in the batch, from 0.
    pub index: usize,
    pub maybe_cut: bool,
}

/// Reads the lines of one batch.
pub(crate) fn batch<'a>(lines: impl Iterator<Item = RawLine<'a>>) -> Parsed {
    let mut reader = Reader::default();
    reader.parsed.known = vec![0; KNOWN.len()];
    let mut before: &[u8] = &[];
    for line in lines {
        reader.parsed.lines += 1;
        if line.bytes == before {
            reader.parsed.repeated += 1;
            continue;
        }
        reader.line(line);
        before = line.bytes;
    }
    reader.finish(before)
}

/// Tells lines apart; equal in one run of the program only.
fn fingerprint(line: &[u8]) -> u64 {
    foldhash::quality::FixedState::with_seed(0).hash_one(line)
}

#[derive(Default)]
struct Reader {
    parsed: Parsed,
    sink: TaskSink,
}

impl Reader {
    fn line(&mut self, line: RawLine<'_>) {
        let events_before = self.parsed.events.len();
        let kind = self.read(line.bytes).unwrap_or(LineKind::Bad);
        match &kind {
            LineKind::Known(at) => self.parsed.known[*at] += 1,
            LineKind::Unknown(name) => *self.parsed.unknown.entry(name.clone()).or_default() += 1,
            LineKind::Bad => self.parsed.bad.push(BadLine { index: line.index, maybe_cut: line.maybe_cut }),
        }
        if self.parsed.first.is_none() {
            let has_event = self.parsed.events.len() > events_before;
            self.parsed.first = Some(First { fingerprint: fingerprint(line.bytes), kind, has_event });
        }
    }

    fn finish(mut self, last: &[u8]) -> Parsed {
        self.parsed.last = fingerprint(last);
        self.parsed.texts = self.sink.texts.into_texts();
        self.parsed.updates = self.sink.updates;
        self.parsed.user_updates = self.sink.user_updates;
        self.parsed.peaks = self.sink.peaks;
        self.parsed
    }

    /// Reads a line; `None` when it is no event.
    fn read(&mut self, line: &[u8]) -> Option<LineKind> {
        self.read_valid(line).or_else(|| {
            // Invalid UTF-8 is replaced rather than refused, but only once it stood in the way.
            match String::from_utf8_lossy(line) {
                Cow::Owned(repaired) => self.read_valid(repaired.as_bytes()),
                Cow::Borrowed(_) => None,
            }
        })
    }

    fn read_valid(&mut self, line: &[u8]) -> Option<LineKind> {
        let name = event_name(line)?;
        let short = short_name(&name);
        let Some(known) = KNOWN.iter().position(|k| *k == short) else {
            serde_json::from_slice::<IgnoredAny>(line).ok()?;
            return Some(LineKind::Unknown(name.into()));
        };
        match self.event(short, line)? {
            Event::Nothing => {}
            event => self.parsed.events.push(event),
        }
        Some(LineKind::Known(known))
    }

    fn event(&mut self, name: &str, line: &[u8]) -> Option<Event> {
        Some(match name {
            "SparkListenerTaskEnd" => Event::TaskEnd(task::end(line, &mut self.sink)?),
            "SparkListenerTaskStart" => Event::TaskStart(task::start(line, &mut self.sink)?),
            _ => return rare_event(name, line).ok(),
        })
    }
}

fn rare_event(name: &str, line: &[u8]) -> serde_json::Result<Event> {
    fn json<'a, T: Deserialize<'a>>(line: &'a [u8]) -> serde_json::Result<T> {
        serde_json::from_slice(line)
    }
    Ok(match name {
        "SparkListenerLogStart" => Event::LogStart(json(line)?),
        "DBCEventLoggingListenerMetadata" => Event::DatabricksStart(json(line)?),
        "SparkListenerApplicationStart" => Event::ApplicationStart(json(line)?),
        "SparkListenerApplicationEnd" => Event::ApplicationEnd(json(line)?),
        "SparkListenerEnvironmentUpdate" => Event::Environment(json(line)?),
        "SparkListenerBlockManagerAdded" => Event::BlockManagerAdded(json(line)?),
        "SparkListenerExecutorAdded" => Event::ExecutorAdded(json(line)?),
        "SparkListenerExecutorRemoved" => Event::ExecutorRemoved(json(line)?),
        "SparkListenerExecutorExcluded"
        | "SparkListenerExecutorExcludedForStage"
        | "SparkListenerNodeExcluded"
        | "SparkListenerNodeExcludedForStage"
        | "SparkListenerExecutorBlacklisted"
        | "SparkListenerExecutorBlacklistedForStage"
        | "SparkListenerNodeBlacklisted"
        | "SparkListenerNodeBlacklistedForStage" => Event::Excluded(json(line)?),
        "SparkListenerExecutorUnexcluded"
        | "SparkListenerNodeUnexcluded"
        | "SparkListenerExecutorUnblacklisted"
        | "SparkListenerNodeUnblacklisted" => Event::Unexcluded(json(line)?),
        "SparkListenerResourceProfileAdded" => Event::ResourceProfile(json(line)?),
        "SparkListenerMiscellaneousProcessAdded" => Event::Process(json(line)?),
        "SparkListenerStageExecutorMetrics" => Event::ExecutorMetrics(json(line)?),
        "SparkListenerExecutorMetricsUpdate" => Event::ExecutorMetrics(metrics_update(json(line)?)),
        "SparkListenerJobStart" => Event::JobStart(json(line)?),
        "SparkListenerJobEnd" => Event::JobEnd(json(line)?),
        "SparkListenerStageSubmitted" => Event::StageSubmitted(json(line)?),
        "SparkListenerStageCompleted" => Event::StageCompleted(json(line)?),
        "SparkListenerBlockUpdated" => Event::BlockUpdated(Box::new(json::<wire::BlockUpdated>(line)?.info)),
        "SparkListenerUnpersistRDD" => Event::Unpersist(json(line)?),
        "SparkListenerSQLExecutionStart" => Event::SqlStart(Box::new(wire_sql::sql_start(line)?)),
        "SparkListenerSQLAdaptiveExecutionUpdate" => Event::SqlUpdate(Box::new(wire_sql::sql_update(line)?)),
        "SparkListenerSQLAdaptiveSQLMetricUpdates" => Event::SqlMetrics(json(line)?),
        "SparkListenerDriverAccumUpdates" => Event::DriverUpdates(json(line)?),
        "SparkListenerSQLExecutionEnd" => Event::SqlEnd(json(line)?),
        "StreamingQueryListener$QueryStartedEvent" => Event::QueryStarted(json(line)?),
        "StreamingQueryListener$QueryProgressEvent" => Event::QueryProgress(wire_sql::progress(line)?),
        "StreamingQueryListener$QueryIdleEvent" => Event::QueryIdle(json(line)?),
        "StreamingQueryListener$QueryTerminatedEvent" => Event::QueryTerminated(json(line)?),
        _ => {
            json::<IgnoredAny>(line)?;
            Event::Nothing
        }
    })
}

/// The highest of the metrics in an `ExecutorMetricsUpdate`.
fn metrics_update(update: wire::ExecutorMetricsUpdate) -> Box<wire::StageExecutorMetrics> {
    let mut metrics = std::collections::BTreeMap::new();
    for (name, value) in update.updates.into_iter().flat_map(|u| u.metrics) {
        let highest = metrics.entry(name).or_insert(value);
        *highest = value.max(*highest);
    }
    Box::new(wire::StageExecutorMetrics { executor: update.executor, stage: None, stage_attempt: 0, metrics })
}

/// The value of `Event`, which every writer puts first; else it is looked for.
pub(super) fn event_name(line: &[u8]) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(rename = "Event", borrow)]
        event: CowStr<'a>,
    }
    if let Some(rest) = line.strip_prefix(b"{\"Event\":\"")
        && let Some(end) = memchr::memchr2(b'"', b'\\', rest)
        && rest[end] == b'"'
    {
        return std::str::from_utf8(&rest[..end]).ok().map(Into::into);
    }
    serde_json::from_slice::<Named<'_>>(line).ok().map(|named| named.event.0)
}

/// The name without its package: `SparkListenerSQLExecutionStart`.
pub(super) fn short_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
