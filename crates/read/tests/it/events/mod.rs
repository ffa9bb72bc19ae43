//! Whole logs through [`read::event_log`].

mod damage;
mod real;
mod shapes;

use model::Application;
use read::source::Part;
use read::{Options, event_log};

/// Reads a text as a log.
fn read(log: impl AsRef<[u8]>) -> Application {
    event_log(vec![Part::bytes("log", log.as_ref())], &Options::default()).unwrap()
}

/// Reads lines as a log.
fn read_lines(lines: &[&str]) -> Application {
    read(lines.join("\n") + "\n")
}

/// Codes of the warnings, in order.
fn codes(app: &Application) -> Vec<&str> {
    app.log.warnings.iter().map(|w| w.code.as_str()).collect()
}

const START: &str =
    r#"{"Event":"SparkListenerApplicationStart","App Name":"a","App ID":"app-1","Timestamp":1000,"User":"u"}"#;
const END: &str = r#"{"Event":"SparkListenerApplicationEnd","Timestamp":9000}"#;

/// A task's start.
fn task_start(id: i64, stage: u32, index: u32) -> String {
    format!(
        r#"{{"Event":"SparkListenerTaskStart","Stage ID":{stage},"Stage Attempt ID":0,"Task Info":{{"Task ID":{id},"Index":{index},"Attempt":0,"Launch Time":2000,"Executor ID":"1","Host":"h1","Locality":"ANY","Speculative":false,"Getting Result Time":0,"Finish Time":0,"Failed":false,"Killed":false,"Accumulables":[]}}}}"#
    )
}

/// A task's end with a run time in ms; `reason` is the JSON of its end reason.
fn task_end_as(id: i64, stage: u32, index: u32, run_ms: i64, reason: &str) -> String {
    format!(
        r#"{{"Event":"SparkListenerTaskEnd","Stage ID":{stage},"Stage Attempt ID":0,"Task Type":"ResultTask","Task End Reason":{reason},"Task Info":{{"Task ID":{id},"Index":{index},"Attempt":0,"Launch Time":2000,"Executor ID":"1","Host":"h1","Locality":"ANY","Speculative":false,"Getting Result Time":0,"Finish Time":3000,"Failed":false,"Killed":false,"Accumulables":[]}},"Task Metrics":{{"Executor Run Time":{run_ms}}}}}"#
    )
}

/// The end of a task that succeeded.
fn task_end(id: i64, stage: u32, index: u32) -> String {
    task_end_as(id, stage, index, 700, r#"{"Reason":"Success"}"#)
}

/// A stage's submission or completion.
fn stage_event(event: &str, id: u32, attempt: u32, tasks: u32, more: &str) -> String {
    format!(
        r#"{{"Event":"SparkListener{event}","Stage Info":{{"Stage ID":{id},"Stage Attempt ID":{attempt},"Stage Name":"count at a.py:1","Number of Tasks":{tasks},"RDD Info":[],"Parent IDs":[],"Details":"","Submission Time":2000{more}}}}}"#
    )
}
