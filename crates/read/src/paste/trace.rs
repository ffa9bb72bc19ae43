//! One record to one incident: which task, which executor, and which of the nested exceptions
//! is the one that went wrong.

use super::pattern;
use model::{Incident, Origin, Text, error_class_of};
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// `Lost task 0.1 in stage 0.0 (TID 2, wrk-03, executor 2): …` of 2.x, `(TID 25) (host executor
/// 3): …` of 3.x and later, `(TID 10, wrk-11): …` of 1.x, `(TID 3) on wrk-03, executor 2: …` of
/// repeated failures, `Exception in task 8.0 in stage 0.0 (TID 10)` of the executor.
static TASK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:Lost|Exception in) task (?<index>\d+)\.(?<attempt>\d+) in stage (?<stage>\d+)\.(?<stage_attempt>\d+) \(TID (?<tid>\d+)(?:, (?<host1>[^\s,)]+))?(?:, executor (?<exec1>[^\s,):]+))?[^):]*\)(?: \((?<host2>\S+) executor (?<exec2>[^\s):]+)\))?(?: on (?<host3>[^\s,:]+)(?:, executor (?<exec3>[^\s,:]+))?)?:?\s*",
    )
});

static ABORT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\bJob aborted\b|\bTask (?<index>\d+) in stage (?<stage>\d+)\.(?<attempt>\d+) failed \d+ times?")
});

static LOST_EXECUTOR: LazyLock<[Regex; 7]> = LazyLock::new(|| {
    [
        pattern(r"Removing executor (?<id>\S+) with (?<why>no recent heartbeats.*)"),
        pattern(r"Lost executor (?<id>\S+) on (?<host>[^\s:]+)(?::\d+)?:\s*(?<why>.*)"),
        pattern(r"[Rr]equesting driver to remove executor (?<id>\S+) for reason:?\s*(?<why>.*)"),
        pattern(r"Executor (?<id>\S+) on (?<host>[^\s:]+) (?:was |is )?(?<why>removed.*|decommissioned.*)"),
        pattern(r"[Ee]xecutor with id (?<id>\S+) (?<why>.*)"),
        pattern(r"(?i)decommission(?:ing|ed)?(?: of)? executors?:? \[?(?<id>\d+)(?<why>.*)"),
        pattern(
            r"(?i)Executor (?<id>\d+) (?<why>(?:is |was |has been )?(?:decommission|preempt|killed|lost|removed|exited).*)",
        ),
    ]
});

static EXECUTOR_LOST: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"ExecutorLostFailure \(executor (?<id>[^\s)]+)[^)]*\)(?: Reason:)?\s*(?<why>.*)"));

static CONTAINER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\bcontainer\b.*\b(?:exit(?:ed)?|killed|released|memory used)|\bOOM ?killed\b|oom-kill|Killed process \d+|memory used",
    )
});

static FETCH: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"FetchFailed\((?:BlockManagerId\((?<id>[^,)]+), (?<host>[^,)]+)|null)"));

/// An exception at the start of a text: `java.io.IOException: No space left on device`,
/// `java.lang.X (message) [duplicate 1]`, `ValueError: bad`.
static EXCEPTION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?<class>(?:[a-z_]\w*\.)*(?:[A-Z][\w$]*\.)*(?:[A-Z][\w$]*(?:Exception|Error|Throwable|Interrupt|Exit|Failure|Conflict)|Exception|Error))(?:\s*:\s*(?<msg>.*)| \((?<msg2>.*)\)(?: \[duplicate \d+\])?)?$",
    )
});

static UDF: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"thrown from a UDF: '(?<class>\w+(?:\.\w+)*): (?<msg>.*?)(?:', from .*)?$"));

/// Exceptions that only carry another one.
const CARRIERS: [&str; 13] = [
    "SparkException",
    "PythonException",
    "Py4JJavaError",
    "ExecutionException",
    "UncheckedExecutionException",
    "ExecutionError",
    "InvocationTargetException",
    "UndeclaredThrowableException",
    "RuntimeException",
    "StreamingQueryException",
    "QueryExecutionException",
    "SparkUpgradeException",
    "Exception",
];

/// Beginnings of messages that tell nothing of their own.
const EMPTY_WORDS: [&str; 16] = [
    "Job aborted",
    "Writing job aborted",
    "Task failed while writing rows",
    "Exception thrown in ",
    "[TASK_WRITE_FAILED",
    "[PYTHON_EXCEPTION",
    "[FAILED_EXECUTE_UDF",
    "[STREAM_FAILED",
    "[UNCLASSIFIED_ERROR",
    "[USER_DEFINED_FUNCTIONS",
    "An error occurred while calling",
    "Traceback (most recent",
    "An exception was thrown from",
    "Failed to execute user defined function",
    "Query [id",
    "=== Streaming Query",
];

/// What follows from another failure in the same trace: kept only when nothing else is told.
const FOLLOW_UPS: [&str; 6] = [
    "java.io.EOFException",
    "java.net.SocketException",
    "java.lang.InterruptedException",
    "java.nio.channels.ClosedChannelException",
    "java.nio.channels.ClosedByInterruptException",
    "org.apache.spark.TaskKilledException",
];

/// Fills class, message, place and origin of an incident from its first line and the rest.
pub(super) fn fill(first: &str, rest: &str, incident: &mut Incident) {
    fill_place(first, rest, incident);
    let mut chosen = choose(first, rest);
    if let Some(found) = &mut chosen
        && found.message.is_empty()
        && !found.carrier
    {
        found.message = message_below(&found.class, first, rest);
    }
    let outer = without_task(first);
    incident.message = match &chosen {
        Some(found) => found.message.clone(),
        None => told_of_loss(incident).unwrap_or(outer).to_owned(),
    };
    // Kubernetes breaks the line before the reason.
    let why =
        reason_of_loss(first).map(|why| if why.is_empty() { rest.lines().next().unwrap_or_default() } else { why });
    if let Some(why) = why
        && !why.is_empty()
        && matches!(incident.origin, Origin::Executor | Origin::TaskOfLostExecutor)
    {
        incident.message = why.to_owned();
    }
    incident.class = chosen.as_ref().map(|found| Text::from(found.class.as_str()));
    if first.trim() != incident.message.trim() {
        incident.stack.push_str(first);
        incident.stack.push('\n');
    }
    incident.stack.push_str(rest);
    let text = [incident.message.as_str(), first, rest].join("\n");
    incident.error_class = error_class_of(incident.class.as_deref(), &text).map(Text::from);
}

/// The line below a class that stands alone: some tools break the line after it.
fn message_below(class: &str, first: &str, rest: &str) -> String {
    let mut lines = std::iter::once(first).chain(rest.lines()).skip_while(|line| !line.trim_end().ends_with(class));
    lines.next();
    let below = lines.next().unwrap_or_default();
    let is_frame =
        below.starts_with([' ', '\t']) || ["Caused by", "Driver stack", "..."].iter().any(|s| below.starts_with(s));
    if is_frame { String::new() } else { below.to_owned() }
}

fn told_of_loss(incident: &Incident) -> Option<&'static str> {
    (incident.origin == Origin::Fetch).then_some("shuffle blocks could not be fetched")
}

/// Where and what: task, executor, stage and the kind of record.
fn fill_place(first: &str, rest: &str, incident: &mut Incident) {
    let whole = || std::iter::once(first).chain(rest.lines());
    if let Some(found) = whole().find_map(|line| TASK.captures(line)) {
        fill_task(&found, incident);
        incident.origin = Origin::Task;
    }
    if let Some(found) = whole().find_map(|line| FETCH.captures(line)) {
        incident.origin = Origin::Fetch;
        incident.from_executor = text(&found, &["id"]);
        incident.from_host = text(&found, &["host"]);
    }
    if let Some(found) = EXECUTOR_LOST.captures(first) {
        incident.origin = Origin::TaskOfLostExecutor;
        incident.executor = text(&found, &["id"]).or(incident.executor.take());
    } else if incident.origin == Origin::Text {
        fill_executor(first, incident);
    }
    if let Some(found) = whole().find_map(|line| ABORT.captures(line)) {
        incident.origin = Origin::Job;
        if incident.stage.is_none() {
            incident.stage = number(&found, "stage").zip(number(&found, "attempt"));
            incident.task_index = number(&found, "index");
        }
    }
    // Whatever stands below the line that tells of the loss came after it.
    if !EXECUTOR_LOST.is_match(first) && LOST_EXECUTOR.iter().any(|p| p.is_match(first)) {
        fill_executor(first, incident);
    }
    if whole().any(|line| line.contains("StreamingQueryException") || line.contains("[STREAM_FAILED]")) {
        incident.origin = Origin::Stream;
    }
}

fn fill_task(found: &Captures<'_>, incident: &mut Incident) {
    incident.task_index = number(found, "index");
    incident.task_attempt = number(found, "attempt");
    incident.stage = number(found, "stage").zip(number(found, "stage_attempt"));
    incident.task_id = number(found, "tid").map(i64::from);
    incident.host = text(found, &["host1", "host2", "host3"]);
    incident.executor = text(found, &["exec1", "exec2", "exec3"]);
}

fn fill_executor(first: &str, incident: &mut Incident) {
    if let Some(found) = LOST_EXECUTOR.iter().find_map(|p| p.captures(first)) {
        incident.origin = Origin::Executor;
        incident.executor = text(&found, &["id"]);
        incident.host = text(&found, &["host"]);
    } else if CONTAINER.is_match(first) {
        incident.origin = Origin::Executor;
    }
}

/// The reason behind `Lost executor 1 on wrk-07: `, in the line's own words.
fn reason_of_loss(first: &str) -> Option<&str> {
    let found = EXECUTOR_LOST.captures(first).or_else(|| LOST_EXECUTOR.iter().find_map(|p| p.captures(first)))?;
    let why = found.name("why")?.as_str().trim();
    Some(why.strip_prefix("removed").map_or(why, |w| w.trim_start_matches([':', ',', ' '])))
}

fn number(found: &Captures<'_>, name: &str) -> Option<u32> {
    found.name(name)?.as_str().parse().ok()
}

fn text(found: &Captures<'_>, names: &[&str]) -> Option<Text> {
    let value = names.iter().find_map(|name| found.name(name))?.as_str().trim_end_matches([',', ':', '.', ')', ']']);
    (!value.is_empty() && value != "null").then(|| value.into())
}

/// An exception with its message.
struct Exception {
    class: String,
    message: String,
    carrier: bool,
}

/// The exception to show: the innermost that says something of its own.
fn choose(first: &str, rest: &str) -> Option<Exception> {
    let mut found: Vec<Exception> = Vec::new();
    let mut handling = false;
    for line in std::iter::once(first).chain(rest.lines()) {
        if line.trim_start().starts_with("at ") || line.starts_with("  ") && !line.contains("Caused by: ") {
            continue;
        }
        // Python prints the original error first and those raised while handling it after it.
        handling |= line.starts_with("During handling of") || line.starts_with("The above exception");
        let Some(exception) = exception_in(line) else {
            continue;
        };
        let python = !exception.class.contains('.') || exception.class.starts_with("pyspark.");
        if handling && python && found.iter().any(|e| !e.carrier) {
            continue;
        }
        found.push(exception);
    }
    let telling = |e: &Exception| !e.carrier && !FOLLOW_UPS.contains(&e.class.as_str());
    let at = found
        .iter()
        .rposition(telling)
        .or_else(|| found.iter().rposition(|e| !e.carrier))
        .or_else(|| found.len().checked_sub(1))?;
    Some(found.swap_remove(at))
}

/// The exception of a line, carriers and heads of other lines peeled off.
fn exception_in(line: &str) -> Option<Exception> {
    let mut text = without_task(line.trim_start());
    for prefix in ["Caused by: ", "Suppressed: ", ": "] {
        text = text.strip_prefix(prefix).unwrap_or(text);
    }
    if let Some(after) = text.strip_prefix("Exception in thread ") {
        text = after.split_once("\" ").map_or(after, |(_, rest)| rest);
    }
    let found = peel(text);
    found.or_else(|| peel_later(text))
}

/// Peels carriers: `SparkException: Job aborted …: Lost task …: PythonException: ValueError: x`
/// is a `ValueError`.
fn peel(text: &str) -> Option<Exception> {
    let mut text = text;
    let mut best: Option<Exception> = None;
    // Each round takes at least a class name off, so this ends; nobody nests deeper than this.
    for _ in 0..8 {
        let Some(found) = EXCEPTION.captures(text) else {
            break;
        };
        let class = &found["class"];
        let message = found.name("msg").or(found.name("msg2")).map_or("", |m| m.as_str());
        let carrier = is_carrier(class, message);
        best = Some(Exception { class: class.to_owned(), message: message.trim().to_owned(), carrier });
        if let Some(udf) = UDF.captures(message) {
            return Some(Exception { class: udf["class"].to_owned(), message: udf["msg"].to_owned(), carrier: false });
        }
        let inner = without_task(message);
        if !carries(class) || inner.is_empty() {
            break;
        }
        text = inner;
    }
    best
}

/// An exception behind words: `Databricks adapter: error: org.apache…`, `Uncaught exception: x.Y`.
fn peel_later(text: &str) -> Option<Exception> {
    static LATER: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?:^|[:(]\s*|\s)((?:[a-z_]\w*\.)+[A-Z][\w$]*(?:Exception|Error|Throwable)\b.*)$"));
    peel(LATER.captures(text)?.get(1)?.as_str())
}

fn carries(class: &str) -> bool {
    CARRIERS.contains(&class.rsplit('.').next().unwrap_or(class))
}

fn is_carrier(class: &str, message: &str) -> bool {
    let empty = message.trim().is_empty() || EMPTY_WORDS.iter().any(|words| message.trim_start().starts_with(words));
    carries(class) && (empty || EXCEPTION.is_match(message))
}

/// What a task said: the text after `Lost task … :`, after the last one in the line.
fn without_task(line: &str) -> &str {
    match TASK.find_iter(line).last() {
        Some(found) => line.get(found.end()..).unwrap_or_default(),
        None => line,
    }
}

/// Whether a line ends a Python traceback.
pub(super) fn is_python_error(line: &str) -> bool {
    EXCEPTION.is_match(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, class: Option<&str>, message: &str) -> Incident {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let mut incident = Incident::default();
        fill(first, rest, &mut incident);
        assert_eq!((incident.class.as_deref(), incident.message.as_str()), (class, message), "{text}");
        incident
    }

    #[test]
    fn task_heads_of_every_version() {
        for (head, host, executor) in [
            ("Lost task 4.2 in stage 7.1 (TID 33, wrk-03, executor 2): ", Some("wrk-03"), Some("2")),
            ("Lost task 4.2 in stage 7.1 (TID 33) (wrk-03 executor 2): ", Some("wrk-03"), Some("2")),
            ("Lost task 4.2 in stage 7.1 (TID 33, wrk-03): ", Some("wrk-03"), None),
            ("Lost task 4.2 in stage 7.1 (TID 33) on wrk-03, executor 2: ", Some("wrk-03"), Some("2")),
            ("Exception in task 4.2 in stage 7.1 (TID 33)\n", None, None),
        ] {
            let incident = check(&format!("{head}java.io.IOException: disk"), Some("java.io.IOException"), "disk");
            assert_eq!((incident.host.as_deref(), incident.executor.as_deref()), (host, executor), "{head}");
            assert_eq!((incident.stage, incident.task_index), (Some((7, 1)), Some(4)));
            assert_eq!((incident.task_attempt, incident.task_id), (Some(2), Some(33)));
            assert_eq!(incident.origin, Origin::Task);
        }
    }

    #[test]
    fn the_innermost_telling_exception_counts() {
        check(
            "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in stage 1.0 (TID 9) (h executor 1): org.apache.spark.api.python.PythonException: KeyError: 'k'",
            Some("KeyError"),
            "'k'",
        );
        check(
            "Py4JJavaError: An error occurred while calling o1.save.\n: org.apache.spark.SparkException: Job aborted.\n\tat a.B.c(B.scala:1)\nCaused by: org.apache.spark.SparkException: Task failed while writing rows.\nCaused by: java.lang.ArithmeticException: / by zero",
            Some("java.lang.ArithmeticException"),
            "/ by zero",
        );
        check(
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n\tat a.B.c(B.scala:1)\nCaused by: java.io.EOFException",
            Some("org.apache.spark.SparkException"),
            "Python worker exited unexpectedly (crashed)",
        );
        check(
            "java.lang.RuntimeException: java.lang.ClassNotFoundException: org.shop.OrderException",
            Some("java.lang.ClassNotFoundException"),
            "org.shop.OrderException",
        );
        check(
            "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x()\nKeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: other",
            Some("KeyError"),
            "'a'",
        );
        check(
            "Lost task 1.1 in stage 0.0 (TID 3) on w, executor 2: java.io.IOException (disk) [duplicate 1]",
            Some("java.io.IOException"),
            "disk",
        );
    }

    #[test]
    fn executors_that_went_away() {
        for (line, id, why) in [
            (
                "Removing executor 8 with no recent heartbeats: 124251 ms exceeds timeout 120000 ms",
                "8",
                "no recent heartbeats: 124251 ms exceeds timeout 120000 ms",
            ),
            ("Lost executor 8 on wrk-06: worker lost", "8", "worker lost"),
            (
                "Requesting driver to remove executor 1 for reason Container from a bad node",
                "1",
                "Container from a bad node",
            ),
            (
                "The executor with id 3 exited with exit code 137(SIGKILL, possible container OOM).",
                "3",
                "exited with exit code 137(SIGKILL, possible container OOM).",
            ),
        ] {
            let incident = check(line, None, why);
            assert_eq!((incident.executor.as_deref(), incident.origin), (Some(id), Origin::Executor), "{line}");
        }
        let line = "Lost task 0.0 in stage 0.0 (TID 0, wrk-07, executor 1): ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: worker lost";
        assert_eq!(check(line, None, "worker lost").origin, Origin::TaskOfLostExecutor);
    }

    #[test]
    fn fetch_failures_name_the_side_that_is_gone() {
        let line = "Lost task 0.0 in stage 2.0 (TID 6) (w2 executor 5): FetchFailed(BlockManagerId(1, w1, 7337, None), shuffleId=0, mapIndex=1, mapId=1, reduceId=2, message=";
        let mut incident = Incident::default();
        fill(line, "org.apache.spark.shuffle.FetchFailedException: Failed to connect to w1:7337\n", &mut incident);
        assert_eq!((incident.from_executor.as_deref(), incident.from_host.as_deref()), (Some("1"), Some("w1")));
        assert_eq!((incident.executor.as_deref(), incident.origin), (Some("5"), Origin::Fetch));
    }
}
