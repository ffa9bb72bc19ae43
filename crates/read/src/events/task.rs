//! Task events: read by hand, because they are nine tenths of a log's bytes.
//!
//! A TaskEnd line is mostly accumulables, which repeat the task metrics and carry the SQL metrics.
//! Figures are taken from `Task Metrics`; of the accumulables the SQL ones are kept, and the rare
//! ones that the user's code made.

use super::scan::Cursor;
use super::texts::TextTable;
use model::{EndReason, Locality, Metric, TaskRow, TaskStatus, Text};
use std::ops::Range;

/// A task that was started, or is having its result fetched.
#[derive(Debug)]
pub(super) struct TaskStart {
    pub stage: u32,
    pub stage_attempt: u32,
    pub info: TaskInfo,
}

/// A task's end.
#[derive(Debug)]
pub(super) struct TaskEnd {
    pub stage: u32,
    pub stage_attempt: u32,
    /// All but the executor's position, which only the fold knows.
    pub row: TaskRow,
    /// Numbers in the batch's texts.
    pub executor: u32,
    pub host: u32,
    /// A second end of a task whose output was lost.
    pub resubmitted: bool,
    /// SQL metric updates, in [`TaskSink::updates`].
    pub updates: Range<usize>,
    /// Updates of the user's accumulators, in [`TaskSink::user_updates`].
    pub user_updates: Range<usize>,
}

/// What all task events carry.
#[derive(Debug)]
pub(super) struct TaskInfo {
    pub id: i64,
    pub index: u32,
    pub attempt: u32,
    pub partition: i64,
    pub launch_ms: i64,
    pub finish_ms: i64,
    pub getting_result_ms: i64,
    pub executor: u32,
    pub host: u32,
    pub locality: Locality,
    pub speculative: bool,
}

/// Where the variable parts of a batch's task events go.
#[derive(Debug, Default)]
pub(super) struct TaskSink {
    pub texts: TextTable,
    /// SQL metric updates: accumulator id and value.
    pub updates: Vec<(i64, i64)>,
    /// Updates of accumulators that the user's code made.
    pub user_updates: Vec<UserUpdate>,
    /// Highest executor metrics seen on tasks.
    pub peaks: Peaks,
}

/// An update of an accumulator that the user's code made, values as written.
#[derive(Debug, Default)]
pub(super) struct UserUpdate {
    pub id: i64,
    pub name: Option<Box<str>>,
    pub update: Option<Box<str>>,
    pub value: Option<Box<str>>,
}

/// Whose peaks: the executor (a number in the batch's texts), the stage and its attempt.
pub(super) type PeakOf = (u32, u32, u32);

/// Highest values of executor metrics.
#[derive(Debug, Default)]
pub(super) struct Peaks {
    /// Metric names by position.
    pub names: Vec<Box<str>>,
    /// Values by position in `names`, of each executor in each stage.
    pub executors: Vec<(PeakOf, Vec<i64>)>,
    /// The values of the task at hand.
    current: Vec<(usize, i64)>,
}

/// Reads a `SparkListenerTaskStart` or `SparkListenerTaskGettingResult`; the latter names no stage.
pub(super) fn start(line: &[u8], sink: &mut TaskSink) -> Option<TaskStart> {
    let (mut stage, mut stage_attempt, mut info) = (0, 0, None);
    let mut cursor = Cursor::new(line);
    cursor.object(|c, key| {
        match key {
            b"Stage ID" => stage = c.id()?,
            b"Stage Attempt ID" => stage_attempt = c.id()?,
            b"Task Info" => info = Some(task_info(c, sink)?),
            _ => c.skip()?,
        }
        Some(())
    })?;
    cursor.end()?;
    Some(TaskStart { stage, stage_attempt, info: info? })
}

/// Reads a `SparkListenerTaskEnd`.
pub(super) fn end(line: &[u8], sink: &mut TaskSink) -> Option<Box<TaskEnd>> {
    let (first_update, first_user) = (sink.updates.len(), sink.user_updates.len());
    let end = end_line(line, sink);
    let Some(mut end) = end else {
        sink.updates.truncate(first_update);
        sink.user_updates.truncate(first_user);
        return None;
    };
    end.updates = first_update..sink.updates.len();
    end.user_updates = first_user..sink.user_updates.len();
    Some(end)
}

fn end_line(line: &[u8], sink: &mut TaskSink) -> Option<Box<TaskEnd>> {
    let mut row = TaskRow::new(0);
    row.has_metrics = false;
    let (mut stage, mut stage_attempt) = (None, 0);
    let (mut info, mut reason) = (None, None);
    sink.peaks.current.clear();
    let mut cursor = Cursor::new(line);
    cursor.object(|c, key| {
        match key {
            b"Stage ID" => stage = Some(c.id()?),
            b"Stage Attempt ID" => stage_attempt = c.id()?,
            b"Task End Reason" => reason = Some(end_reason(c)?),
            b"Task Info" => info = Some(task_info(c, sink)?),
            b"Task Executor Metrics" if !c.null() => sink.peaks.read(c)?,
            b"Task Metrics" if !c.null() => {
                row.has_metrics = true;
                task_metrics(c, &mut row)?;
            }
            b"Task Executor Metrics" | b"Task Metrics" => {}
            _ => c.skip()?,
        }
        Some(())
    })?;
    cursor.end()?;
    let (info, reason) = (info?, reason?);
    info.put_into(&mut row);
    let stage = stage?;
    sink.peaks.keep_for((info.executor, stage, stage_attempt));
    row.status = status(reason.as_ref());
    let resubmitted = matches!(reason, Some(EndReason::Resubmitted));
    row.failure = reason.map(Box::new);
    Some(Box::new(TaskEnd {
        stage,
        stage_attempt,
        row,
        executor: info.executor,
        host: info.host,
        resubmitted,
        updates: 0..0,
        user_updates: 0..0,
    }))
}

fn status(reason: Option<&EndReason>) -> TaskStatus {
    match reason {
        None => TaskStatus::Success,
        // Spark counts a refused commit among the killed ones: it is nobody's failure.
        Some(EndReason::Killed { .. } | EndReason::CommitDenied { .. }) => TaskStatus::Killed,
        Some(_) => TaskStatus::Failed,
    }
}

impl TaskInfo {
    fn put_into(&self, row: &mut TaskRow) {
        row.id = self.id;
        row.index = self.index;
        row.attempt = self.attempt;
        row.partition = self.partition;
        row.locality = self.locality;
        row.speculative = self.speculative;
        row.set(Metric::LaunchMs, self.launch_ms);
        row.set(Metric::FinishMs, self.finish_ms);
        row.set(Metric::GettingResultMs, self.getting_result_ms);
    }
}

fn task_info(cursor: &mut Cursor<'_>, sink: &mut TaskSink) -> Option<TaskInfo> {
    let mut id = None;
    let (mut index, mut attempt, mut partition) = (0, 0, -1);
    let (mut launch_ms, mut finish_ms, mut getting_result_ms) = (0, 0, 0);
    let (mut executor, mut host) = (None, None);
    let (mut locality, mut speculative) = (Locality::Any, false);
    cursor.object(|c, key| {
        match key {
            b"Task ID" => id = Some(c.int()?).filter(|id| *id >= 0),
            b"Index" => index = c.id()?,
            b"Attempt" => attempt = c.id()?,
            b"Partition ID" => partition = c.int()?,
            b"Launch Time" => launch_ms = c.time()?,
            b"Finish Time" => finish_ms = c.time()?,
            b"Getting Result Time" => getting_result_ms = c.time()?,
            b"Executor ID" => executor = Some(sink.texts.number(&c.text()?)),
            b"Host" => host = Some(sink.texts.number(&c.text()?)),
            b"Locality" => locality = locality_of(c.string()?),
            b"Speculative" => speculative = c.bool()?,
            b"Accumulables" => c.array(|c| accumulable(c, &mut sink.updates, &mut sink.user_updates))?,
            _ => c.skip()?,
        }
        Some(())
    })?;
    let executor = executor.unwrap_or_else(|| sink.texts.number(""));
    let host = host.unwrap_or_else(|| sink.texts.number(""));
    Some(TaskInfo {
        id: id?,
        index,
        attempt,
        partition,
        launch_ms,
        finish_ms,
        getting_result_ms,
        executor,
        host,
        locality,
        speculative,
    })
}

fn locality_of(name: &[u8]) -> Locality {
    match name {
        b"PROCESS_LOCAL" => Locality::ProcessLocal,
        b"NODE_LOCAL" => Locality::NodeLocal,
        b"NO_PREF" => Locality::NoPref,
        b"RACK_LOCAL" => Locality::RackLocal,
        _ => Locality::Any,
    }
}

/// Reads one accumulable; keeps it when it is an SQL metric's update or the user's own.
fn accumulable(
    cursor: &mut Cursor<'_>,
    updates: &mut Vec<(i64, i64)>,
    user_updates: &mut Vec<UserUpdate>,
) -> Option<()> {
    let start = *cursor;
    if let Some(found) = accumulable_as_written(cursor) {
        updates.extend(found);
        return Some(());
    }
    *cursor = start;
    match accumulable_in_any_order(cursor)? {
        Accumulable::Sql(id, update) => updates.push((id, update)),
        Accumulable::User(update) => user_updates.push(update),
        Accumulable::Passed => {}
    }
    Some(())
}

/// Whose an accumulable is.
enum Accumulable {
    /// An SQL metric's, with a number as update.
    Sql(i64, i64),
    User(UserUpdate),
    /// Spark's own, or none that could be read.
    Passed,
}

/// The form that every Spark writes, byte for byte. It is tried first, because a line holds
/// dozens of them and walking their keys costs three times as much.
#[inline]
fn accumulable_as_written(c: &mut Cursor<'_>) -> Option<Option<(i64, i64)>> {
    c.eat(b"{\"ID\":")?;
    let id = c.int()?;
    c.eat(b",\"Name\":\"")?;
    c.string_end()?;
    c.eat(b",\"Update\":")?;
    let update = int_as_written(c)?;
    c.eat(b",\"Value\":")?;
    int_as_written(c)?;
    c.eat(b",\"Internal\":true,\"Count Failed Values\":true")?;
    if c.eat(b"}").is_some() {
        return Some(None);
    }
    c.eat(b",\"Metadata\":\"sql\"}")?;
    Some(Some((id, update)))
}

/// A number, in quotes or without.
#[inline]
fn int_as_written(c: &mut Cursor<'_>) -> Option<i64> {
    match c.eat(b"\"") {
        Some(()) => {
            let value = c.int()?;
            c.eat(b"\"").map(|()| value)
        }
        None => c.int(),
    }
}

/// An accumulable with its keys in any order, of any kind. Its values may be long (the statuses of
/// all blocks): they are copied only when they are the user's.
fn accumulable_in_any_order(cursor: &mut Cursor<'_>) -> Option<Accumulable> {
    let (mut id, mut number, mut is_sql, mut internal) = (None, None, false, false);
    let (mut name, mut update, mut value) = (None, None, None);
    cursor.object(|c, key| {
        let mut ahead = *c;
        match key {
            b"ID" => id = Some(ahead.int()?),
            b"Name" => name = ahead.any_text()?,
            b"Update" => {
                number = int_as_written(&mut ahead);
                update = { *c }.any_text()?;
            }
            b"Value" => value = ahead.any_text()?,
            b"Internal" => internal = ahead.bool() == Some(true),
            b"Metadata" => is_sql = ahead.string() == Some(b"sql"),
            _ => {}
        }
        c.skip()
    })?;
    Some(match (id, number) {
        (Some(id), Some(update)) if is_sql => Accumulable::Sql(id, update),
        (Some(id), _) if !is_sql && !internal => {
            let [name, update, value] = [name, update, value].map(|text| text.map(Into::into));
            Accumulable::User(UserUpdate { id, name, update, value })
        }
        _ => Accumulable::Passed,
    })
}

fn task_metrics(cursor: &mut Cursor<'_>, row: &mut TaskRow) -> Option<()> {
    cursor.object(|c, key| {
        let metric = match key {
            b"Executor Deserialize Time" => Metric::DeserializeMs,
            b"Executor Deserialize CPU Time" => Metric::DeserializeCpuNs,
            b"Executor Run Time" => Metric::RunMs,
            b"Executor CPU Time" => Metric::CpuNs,
            b"Peak Execution Memory" => Metric::PeakExecutionBytes,
            b"Peak On Heap Execution Memory" => Metric::PeakOnHeapExecutionBytes,
            b"Peak Off Heap Execution Memory" => Metric::PeakOffHeapExecutionBytes,
            b"Result Size" => Metric::ResultBytes,
            b"JVM GC Time" => Metric::GcMs,
            b"Result Serialization Time" => Metric::ResultSerializationMs,
            b"Memory Bytes Spilled" => Metric::MemorySpillBytes,
            b"Disk Bytes Spilled" => Metric::DiskSpillBytes,
            b"Shuffle Read Metrics" | b"Shuffle Write Metrics" | b"Input Metrics" | b"Output Metrics" => {
                return if c.null() { Some(()) } else { io_metrics(c, key == b"Input Metrics", row) };
            }
            _ => return c.skip(),
        };
        row.set(metric, c.figure()?);
        Some(())
    })
}

/// Shuffle, input and output: their keys are distinct but for the two `Records`-less ones of input.
fn io_metrics(cursor: &mut Cursor<'_>, input: bool, row: &mut TaskRow) -> Option<()> {
    cursor.object(|c, key| {
        let metric = match key {
            b"Remote Blocks Fetched" => Metric::RemoteBlocksFetched,
            b"Local Blocks Fetched" => Metric::LocalBlocksFetched,
            b"Fetch Wait Time" => Metric::FetchWaitMs,
            b"Remote Bytes Read" => Metric::RemoteBytesRead,
            b"Remote Bytes Read To Disk" => Metric::RemoteBytesReadToDisk,
            b"Local Bytes Read" => Metric::LocalBytesRead,
            b"Total Records Read" => Metric::ShuffleRecordsRead,
            b"Remote Requests Duration" => Metric::RemoteRequestsMs,
            b"Shuffle Bytes Written" => Metric::ShuffleBytesWritten,
            b"Shuffle Write Time" => Metric::ShuffleWriteNs,
            b"Shuffle Records Written" => Metric::ShuffleRecordsWritten,
            b"Bytes Read" if input => Metric::InputBytes,
            b"Records Read" if input => Metric::InputRecords,
            b"Bytes Written" => Metric::OutputBytes,
            b"Records Written" => Metric::OutputRecords,
            b"Push Based Shuffle" | b"Shuffle Push Read Metrics" if !c.null() => return push_metrics(c, row),
            _ => return c.skip(),
        };
        row.set(metric, c.figure()?);
        Some(())
    })
}

/// Push-based shuffle. Snapshots of 3.1 write other names than 3.5 and later.
fn push_metrics(cursor: &mut Cursor<'_>, row: &mut TaskRow) -> Option<()> {
    cursor.object(|c, key| {
        let metric = match key {
            b"Corrupt Merged Block Chunks" => Metric::CorruptMergedBlockChunks,
            b"Merged Fetch Fallback Count" | b"Merged Fallback Count" => Metric::MergedFetchFallbacks,
            b"Merged Remote Blocks Fetched" => Metric::MergedRemoteBlocks,
            b"Merged Local Blocks Fetched" => Metric::MergedLocalBlocks,
            b"Merged Remote Chunks Fetched" => Metric::MergedRemoteChunks,
            b"Merged Local Chunks Fetched" => Metric::MergedLocalChunks,
            b"Merged Remote Bytes Read" => Metric::MergedRemoteBytes,
            b"Merged Local Bytes Read" => Metric::MergedLocalBytes,
            b"Merged Remote Requests Duration" => Metric::MergedRemoteRequestsMs,
            _ => return c.skip(),
        };
        row.set(metric, c.figure()?);
        Some(())
    })
}

impl Peaks {
    fn read(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let mut position = 0;
        cursor.object(|c, key| {
            let value = c.figure()?;
            if value > 0 {
                self.current.push((position_of(&mut self.names, position, key), value));
            }
            position += 1;
            Some(())
        })
    }

    fn keep_for(&mut self, of: PeakOf) {
        if self.current.is_empty() {
            return;
        }
        let at = self.executors.iter().rposition(|(known, _)| *known == of).unwrap_or_else(|| {
            self.executors.push((of, Vec::new()));
            self.executors.len() - 1
        });
        let values = &mut self.executors[at].1;
        for &(name, value) in &self.current {
            if values.len() <= name {
                values.resize(name + 1, 0);
            }
            values[name] = values[name].max(value);
        }
    }
}

/// Position of a name, which is mostly where it was in the event before.
fn position_of(names: &mut Vec<Box<str>>, likely: usize, key: &[u8]) -> usize {
    if names.get(likely).is_some_and(|n| n.as_bytes() == key) {
        return likely;
    }
    names.iter().position(|n| n.as_bytes() == key).unwrap_or_else(|| {
        names.push(String::from_utf8_lossy(key).into());
        names.len() - 1
    })
}

/// The fields of a `Task End Reason`, whatever its kind.
#[derive(Default)]
struct Reason {
    reason: String,
    class: Option<Text>,
    description: Option<Text>,
    full_stack: Option<Text>,
    frames: String,
    message: Option<Text>,
    executor: Option<Text>,
    address: (Option<Text>, Option<Text>),
    shuffle: i64,
    map_index: i64,
    reduce: i64,
    caused_by_app: bool,
    loss: Option<Text>,
    kill: Option<Text>,
}

/// Why a task ended; `None` inside means that it succeeded.
fn end_reason(cursor: &mut Cursor<'_>) -> Option<Option<EndReason>> {
    let before = *cursor;
    if cursor.eat(b"{\"Reason\":\"Success\"}").is_some() {
        return Some(None);
    }
    *cursor = before;
    let mut r = Reason { map_index: -1, ..Reason::default() };
    cursor.object(|c, key| {
        match key {
            b"Reason" => r.reason = c.text()?.into_owned(),
            b"Class Name" => r.class = text(c)?,
            b"Description" => r.description = text(c)?,
            b"Full Stack Trace" => r.full_stack = text(c)?,
            b"Stack Trace" => c.array(|c| frame(c, &mut r.frames))?,
            b"Message" => r.message = text(c)?,
            b"Executor ID" => r.executor = text(c)?,
            b"Block Manager Address" if !c.null() => r.address = address(c)?,
            b"Block Manager Address" => {}
            b"Shuffle ID" => r.shuffle = c.int()?,
            b"Map Index" => r.map_index = c.int()?,
            b"Reduce ID" => r.reduce = c.int()?,
            b"Exit Caused By App" => r.caused_by_app = c.bool()?,
            b"Loss Reason" => r.loss = text(c)?,
            b"Kill Reason" => r.kill = text(c)?,
            _ => c.skip()?,
        }
        Some(())
    })?;
    Some(r.into_end())
}

fn text(c: &mut Cursor<'_>) -> Option<Option<Text>> {
    Some(c.text_or_null()?.map(Text::from))
}

fn address(c: &mut Cursor<'_>) -> Option<(Option<Text>, Option<Text>)> {
    let (mut executor, mut host) = (None, None);
    c.object(|c, key| {
        match key {
            b"Executor ID" => executor = text(c)?,
            b"Host" => host = text(c)?,
            _ => c.skip()?,
        }
        Some(())
    })?;
    Some((executor, host))
}

/// A stack frame as an object, which logs of 1.x have instead of the full text.
fn frame(c: &mut Cursor<'_>, out: &mut String) -> Option<()> {
    let (mut class, mut method, mut file, mut line) = (None, None, None, 0);
    c.object(|c, key| {
        match key {
            b"Declaring Class" => class = c.text_or_null()?,
            b"Method Name" => method = c.text_or_null()?,
            b"File Name" => file = c.text_or_null()?,
            b"Line Number" => line = c.int()?,
            _ => c.skip()?,
        }
        Some(())
    })?;
    let (class, method) = (class.unwrap_or_default(), method.unwrap_or_default());
    match file {
        Some(file) => out.push_str(&format!("\tat {class}.{method}({file}:{line})\n")),
        None => out.push_str(&format!("\tat {class}.{method}(Unknown Source)\n")),
    }
    Some(())
}

impl Reason {
    fn into_end(self) -> Option<EndReason> {
        let or_empty = |t: Option<Text>| t.unwrap_or_default();
        Some(match &*self.reason {
            "Success" => return None,
            "ExceptionFailure" => EndReason::Exception {
                class: or_empty(self.class),
                message: or_empty(self.description),
                stack: self.full_stack.unwrap_or_else(|| self.frames.into()),
            },
            "FetchFailed" => EndReason::FetchFailed {
                executor: self.address.0,
                host: self.address.1,
                shuffle: self.shuffle,
                map_index: self.map_index,
                reduce: self.reduce,
                message: or_empty(self.message),
            },
            "ExecutorLostFailure" => EndReason::ExecutorLost {
                executor: or_empty(self.executor),
                caused_by_app: self.caused_by_app,
                reason: or_empty(self.loss),
            },
            "TaskKilled" => EndReason::Killed { reason: or_empty(self.kill) },
            "TaskCommitDenied" => EndReason::CommitDenied { message: or_empty(self.message) },
            "TaskResultLost" => EndReason::ResultLost,
            "Resubmitted" => EndReason::Resubmitted,
            other => EndReason::Other { reason: other.into() },
        })
    }
}
