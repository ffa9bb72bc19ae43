//! Log lines and traces to incidents: which lines belong together, and which of them say that
//! something went wrong.

use super::header::{self, Header, Level};
use super::{MAX_INCIDENTS, MAX_STACK_BYTES, pattern, trace};
use model::{Incident, Pasted};
use regex::{Regex, RegexSet};
use std::sync::LazyLock;

/// Lines that say a failure whatever their level. Some loggers tell of a lost container at INFO.
static FAILURE: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        // Exceptions and errors by class, JVM and Python.
        r"(?:^|[\s:('\x22])(?:[a-z_][\w]*\.)+[A-Z][\w$]*(?:Exception|Error|Throwable|ClosedChannel)\b",
        r"^(?:[a-z_]\w*\.)*(?:[A-Z]\w*)?(?:Error|Exception|Interrupt)(?::|$)",
        r"^Traceback \(most recent call last\)",
        r"\[[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:\.[A-Z0-9_]+)*\]",
        r"^Exception in thread ",
        // Tasks and executors.
        r"\bLost task \d",
        r"\bException in task \d",
        r"\bExecutorLostFailure\b|\bFetchFailed\(",
        r"\bLost executor \S+ on ",
        r"\bRemoving executor \S+ with no recent heartbeats",
        r"\b[Rr]equesting driver to remove executor|\bExecutor \S+ on \S+ (?:was |is )?(?:removed|decommissioned)",
        r"\bfailed \d+ times?; aborting job|\bJob aborted\b",
        // Containers and machines.
        r"\b[Kk]illed by YARN|\bmemory used\. ?(?:Killing|Consider)|(?:physical|virtual) memory used",
        r"\bOOM ?[Kk]illed\b|\b[Oo]ut of memory\b|\bOutOfMemory",
        r"\bKilled process \d+|\boom-kill",
        r"(?i)\bexit(?:ed)?[ _]?(?:code|status|with code)?(?: with exit code| with code)?:? ?\(?(?:1|50|52|56|134|137|139|143|-9|-100)\b",
        r"(?i)\bdecommission(?:ed|ing)\b|\bpreempt(?:ed|ion)\b|\bspot (?:instance )?(?:termination|interruption|reclaim)",
        r"(?i)\bworker lost\b|\bnode lost\b|\bEvicted\b|\bnode was terminated\b",
        r"(?i)no space left on device|disk quota exceeded",
        r"\bTotal size of serialized results\b|\bSerialized task \S+ was \d+ bytes",
        r"(?i)slow ?down\b.*\b(?:503|rate)|\b503\b.*slow ?down|\b429\b.*too many requests|status code:? (?:401|403|429|503)",
        r"\bSIGSEGV\b|\bSIGABRT\b|A fatal error has been detected by the Java Runtime Environment",
        // Starts that failed, and time limits.
        r"(?i)initial job has not accepted|init(?:ialization)?[ _-]script.*(?:fail|exit|error|non-zero)|insufficientinstancecapacity|cloud_provider_\w+|cluster (?:was )?terminated|imagepullbackoff|errimagepull|\bunschedulable\b|insufficient (?:cpu|memory)\b|did not initialize|driver has stopped|driver is up but",
        r"(?i)\brun (?:exceeded|timed out)|\bjob timed out|exceeded (?:the )?(?:maximum |max |configured )?(?:timeout|execution time)",
        r"(?i)could not execute broadcast in|futures timed out after|not enough memory to build and broadcast|cannot broadcast the table",
    ])
});

/// Heads of lines that only introduce a failure told elsewhere, or that are no failure.
static NOISE: LazyLock<RegexSet> = LazyLock::new(|| {
    set(&[
        r"^(?:Asked to remove non-existent executor|Ignored failure|Removed \S+ successfully|Executor lost: )",
        r"^Current batch is falling behind",
        r"\bexit(?:ed)?[ _]?(?:code|status|Code)?:? ?0\b",
        r"^\s*(?:at|import|from|except|catch|raise|throw|throws) ",
        r"^(?:Starting|Finished|Launching|Registering|Registered|Submitting|Submitted|Added|Got|Running|Killing) ",
    ])
});

/// Lines that go on with the record above even without its indentation.
static CONTINUES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:\s+at |\s*\.\.\. \d+ (?:more|common)|\s*Caused by: |\s*Suppressed: |\s+File \x22|\s*\[CIRCULAR|Driver stacktrace:|Driver stack trace:|Conflicting commit:|Refer to https?:|SQLSTATE: |(?:During handling of|The above exception) |: (?:[a-z]\w*\.)+[A-Z]|JVM stacktrace:)",
    )
});

static NEW_TRACE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:Exception in thread |Traceback \(most|Py4JJavaError|(?:[a-z_]\w*\.)+[A-Z][\w$]*(?:Exception|Error)\b)",
    )
});

fn set(patterns: &[&str]) -> RegexSet {
    #[allow(clippy::expect_used)] // Constants that a test compiles.
    RegexSet::new(patterns).expect("constant patterns compile")
}

/// A record under way: its first line and what followed.
#[derive(Default)]
struct Record {
    line: u64,
    time_ms: Option<i64>,
    first: String,
    rest: String,
    in_traceback: bool,
    after_blank: bool,
    has_frames: bool,
}

/// Reads the incidents of a text into `pasted` and returns the lines that are no part of one.
pub(super) fn read(text: &str, pasted: &mut Pasted) -> String {
    let mut prose = String::new();
    let mut open: Option<Record> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if let Some(record) = &mut open
            && goes_on(record, line)
        {
            take(record, line);
            continue;
        }
        let head = header::split(line);
        if let Some(record) = open.take() {
            finish(record, pasted);
        }
        match says_failure(&head) {
            true => open = Some(begin(number as u64 + 1, &head)),
            false => push_prose(&mut prose, line),
        }
    }
    if let Some(record) = open {
        finish(record, pasted);
    }
    prose
}

fn push_prose(prose: &mut String, line: &str) {
    if prose.len() + line.len() < super::MAX_TEXT_BYTES {
        prose.push_str(line);
        prose.push('\n');
    }
}

fn begin(line: u64, head: &Header<'_>) -> Record {
    Record {
        line,
        time_ms: head.time_ms,
        first: super::start_of(head.rest, MAX_STACK_BYTES).to_owned(),
        in_traceback: head.rest.contains("Traceback (most recent call last)"),
        ..Record::default()
    }
}

/// Whether a line belongs to the record above it.
fn goes_on(record: &mut Record, line: &str) -> bool {
    if line.is_empty() {
        record.after_blank = true;
        return true;
    }
    if CONTINUES.is_match(line) {
        return true;
    }
    if record.in_traceback && line.starts_with([' ', '\t']) {
        return true;
    }
    if header::split(line).found {
        return false;
    }
    if record.after_blank {
        return record.in_traceback && trace::is_python_error(line);
    }
    // The exception that a log line announces stands below it without a head; one that follows
    // frames begins something new.
    let begins_new_trace = record.has_frames && !record.in_traceback && NEW_TRACE.is_match(line);
    !begins_new_trace && !begins_new_task_line(line)
}

fn begins_new_task_line(line: &str) -> bool {
    ["Lost task ", "Lost executor ", "Removing executor "].iter().any(|start| line.starts_with(start))
}

fn take(record: &mut Record, line: &str) {
    if line.is_empty() {
        return;
    }
    record.after_blank = false;
    record.has_frames |= line.trim_start().starts_with("at ");
    record.in_traceback = match line.starts_with([' ', '\t']) {
        true => record.in_traceback,
        // The line after the frames names the error and ends the traceback.
        false => line.contains("Traceback (most recent call last)"),
    };
    if record.rest.len() + line.len() < MAX_STACK_BYTES {
        record.rest.push_str(line);
        record.rest.push('\n');
    }
}

fn says_failure(head: &Header<'_>) -> bool {
    if NOISE.is_match(head.rest) || head.rest.is_empty() {
        return false;
    }
    head.level == Some(Level::Error) || FAILURE.is_match(head.rest) && !is_plan_line(head.rest)
}

/// Plan lines hold words such as `raise_error` or classes in brackets.
fn is_plan_line(line: &str) -> bool {
    ["+- ", ":- ", ":  ", "*("].iter().any(|start| line.trim_start().starts_with(start))
}

fn finish(record: Record, pasted: &mut Pasted) {
    if pasted.incidents.len() >= MAX_INCIDENTS {
        pasted.incidents_left_out += 1;
        return;
    }
    let mut incident = Incident { time_ms: record.time_ms, line: Some(record.line), ..Incident::default() };
    trace::fill(&record.first, &record.rest, &mut incident);
    pasted.incidents.push(incident);
}
