//! Damaged and hostile logs: what can be read is read, the rest is counted, nothing panics.

use super::*;
use proptest::prelude::*;
use read::Error;
use read::source::Limits;
use std::num::NonZeroUsize;

#[test]
fn a_cut_last_line_is_one_bad_line() {
    let log = format!("{START}\n{}\n{}\n{}", task_start(0, 0, 0), task_end(0, 0, 0), &task_end(1, 0, 1)[..200]);
    let app = read(log);
    assert_eq!((app.log.lines, app.log.bad_lines, codes(&app)), (4, 1, vec!["LOG_TRUNCATED"]));
    assert_eq!(app.log.warnings[0].text, "The last line of log (line 4) is cut; everything before it was read.");
    assert_eq!(app.stages[0].tasks.len(), 1);
    // A last line that is whole needs no line end.
    let app = read(format!("{START}\n{}", task_end(0, 0, 0)));
    assert_eq!((app.log.bad_lines, app.stages[0].tasks.len()), (0, 1));
    // Cut inside a character.
    let mut bytes = START.replace(r#""a""#, r#""é"#).into_bytes();
    bytes.truncate(bytes.iter().position(|&b| b >= 0x80).unwrap() + 1);
    let app = read([task_end(0, 0, 0).as_bytes(), b"\n", &bytes].concat());
    assert_eq!((app.log.bad_lines, app.stages[0].tasks.len()), (1, 1));
}

#[test]
fn garbage_in_the_middle_is_counted_and_named() {
    for garbage in [
        "garbage",
        "{}",
        "[]",
        "0",
        "{\"Event\":1}",
        "{\"Event\":\"SparkListenerTaskEnd\"}",
        "{\"Event\":\"SparkListenerJobStart\",\"Job ID\":-1}",
        "\0\0\0\0",
        "\u{1}\u{2}",
        "{\"Event\":\"com.vendor.X\",",
    ] {
        let app = read_lines(&[START, garbage, &task_end(0, 0, 0), END]);
        assert_eq!((app.log.bad_lines, codes(&app).contains(&"LOG_EVENTS_DROPPED")), (1, true), "{garbage:?}");
        let text = "1 of 4 lines cannot be read, first line 2 of log.";
        assert_eq!((&*app.log.warnings[0].text, app.ended_ms), (text, Some(9_000)));
    }
}

#[test]
fn numbers_that_no_log_has() {
    let end = task_end(0, 0, 0);
    for (from, to) in [
        (r#""Task ID":0"#, r#""Task ID":-1"#),
        (r#""Task ID":0"#, r#""Task ID":1.5"#),
        (r#""Task ID":0"#, r#""Task ID":99999999999999999999"#),
        (r#""Stage ID":0"#, r#""Stage ID":4294967296"#),
        (r#""Index":0"#, r#""Index":-7"#),
        (r#""Executor Run Time":700"#, r#""Executor Run Time":9223372036854775807"#),
        (r#""Executor Run Time":700"#, r#""Executor Run Time":-9223372036854775808"#),
        (r#""Executor Run Time":700"#, r#""Executor Run Time":1e300"#),
        (r#""Launch Time":2000"#, r#""Launch Time":9223372036854775807"#),
    ] {
        let app = read_lines(&[START, &end.replace(from, to)]);
        assert_eq!((app.log.bad_lines, app.stages.len()), (1, 0), "{to}");
    }
    let huge = "9223372036854775807";
    let job =
        format!(r#"{{"Event":"SparkListenerJobStart","Job ID":0,"Submission Time":{huge},"Stage IDs":[4294967295]}}"#);
    let driver = format!(
        r#"{{"Event":"org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates","executionId":0,"accumUpdates":[[1,{huge}],[1,{huge}],[{huge},-{huge}]]}}"#
    );
    let app = read_lines(&[START, &job, &driver, &task_end(i64::MAX, u32::MAX, u32::MAX)]);
    assert_eq!((app.log.bad_lines, app.jobs[0].submitted_ms, app.wall_ms()), (0, None, 2_000));
    assert_eq!((app.accumulators[&1].sum, app.stages[0].tasks.id(0)), (i64::MAX, i64::MAX));
}

#[test]
fn clocks_that_run_backwards() {
    let end = task_end(0, 0, 0).replace(r#""Finish Time":3000"#, r#""Finish Time":1500"#);
    let app = read_lines(&[START, &task_start(0, 0, 0), &end]);
    assert_eq!((app.log.clock_errors, codes(&app)), (1, vec!["LOG_CLOCK"]));
    assert_eq!(app.stages[0].tasks.value(model::Metric::DurationMs, 0), 0);
}

#[test]
fn nesting_of_any_depth_overflows_no_stack() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let unknown = format!(r#"{{"Event":"com.vendor.Deep","x":{deep}}}"#);
    let task = task_end(0, 0, 0).replace(r#""Accumulables":[]"#, &format!(r#""Accumulables":[],"x":{deep}"#));
    let job = format!(r#"{{"Event":"SparkListenerJobStart","Job ID":0,"Stage IDs":[1],"x":{deep}}}"#);
    let progress = format!(
        r#"{{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent","progress":{{"sources":[{{"endOffset":{deep}}}]}}}}"#
    );
    let objects = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    let plan = format!(
        r#"{{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart","executionId":7,"sparkPlanInfo":{objects}}}"#
    );
    let app = read_lines(&[START, &unknown, &task, &job, &progress, &plan, &deep, &objects]);
    assert_eq!((app.stages[0].tasks.len(), app.jobs.len(), app.log.unknown_events.len()), (1, 1, 1));
    assert!(app.log.bad_lines >= 2);
}

#[test]
fn a_line_of_200_mb() {
    let long = format!(r#"{{"Event":"com.vendor.Long","x":"{}"}}"#, "x".repeat(200_000_000));
    let app = read_lines(&[START, &long, &task_end(0, 0, 0)]);
    assert_eq!((app.log.lines, app.log.bad_lines, app.log.unknown_events.len()), (3, 0, 1));
    assert_eq!(app.stages[0].tasks.len(), 1);
    let limits = Limits { max_line_bytes: 1_000_000, max_memory_bytes: 64 << 20, ..Limits::default() };
    let log = [START, &long, &task_end(0, 0, 0)].join("\n");
    let options = Options { limits, ..Options::default() };
    let app = event_log(vec![Part::bytes("log", log.into_bytes())], &options).unwrap();
    assert_eq!((app.log.lines, app.log.bad_lines, app.stages[0].tasks.len()), (3, 1, 1));
    assert!(app.log.warnings[0].text.contains("--max-line-bytes"), "{:?}", app.log.warnings);
}

#[test]
fn bytes_that_are_no_utf8_are_replaced() {
    let mut start = START.replace(r#""a""#, r#""a?b""#).into_bytes();
    let at = start.windows(3).position(|w| w == b"a?b").unwrap() + 1;
    start[at] = 0xff;
    let task = task_end_as(0, 0, 0, 1, r#"{"Reason":"TaskKilled","Kill Reason":"?"}"#);
    let mut task = task.into_bytes();
    let at = task.windows(3).position(|w| w == b"\"?\"").unwrap() + 1;
    task[at] = 0xc3;
    let app = read([&start[..], b"\n", &task, b"\n"].concat());
    assert_eq!((&*app.name, app.log.bad_lines), ("a\u{fffd}b", 0));
    let killed = model::EndReason::Killed { reason: "\u{fffd}".into() };
    assert_eq!(app.stages[0].tasks.failure(0), Some(&killed));
}

#[test]
fn the_model_keeps_to_its_memory() {
    let sql = |id: u32| {
        format!(
            r#"{{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart","executionId":{id},"description":"d{id}","details":"","physicalPlanDescription":"{id}{}","time":1500}}
{{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd","executionId":{id},"time":1600}}"#,
            "x".repeat(100_000)
        )
    };
    let log: String = (0..200).map(|id| sql(id) + "\n").collect();
    let limits = Limits { max_memory_bytes: 24 << 20, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let app = event_log(vec![Part::bytes("log", format!("{START}\n{log}").into_bytes())], &options).unwrap();
    assert_eq!((app.sql.len(), codes(&app)), (200, vec!["LOG_LIMIT"]));
    assert!(app.log.warnings[0].text.contains("--max-memory"));
    assert!(app.sql.iter().filter_map(|s| s.plan_text.as_ref()).map(|t| t.len()).sum::<usize>() < 6 << 20);
}

#[test]
fn what_is_no_log_is_an_error() {
    let read = |bytes: &[u8], strict| {
        let options = Options { strict, ..Options::default() };
        event_log(vec![Part::bytes("x", bytes)], &options)
    };
    assert!(matches!(read(b"hello\nworld\n", false), Err(Error::NoEvents { lines: 2, .. })));
    assert!(matches!(read(b"", false), Err(Error::NoEvents { lines: 0, .. })));
    let gone = Part::new("gone", None, || Err(std::io::Error::other("no such thing")));
    let error = event_log(vec![gone], &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "gone cannot be opened: no such thing");
    let damaged = format!("{START}\ngarbage\n{END}\n");
    assert!(read(damaged.as_bytes(), false).is_ok());
    assert!(matches!(read(damaged.as_bytes(), true), Err(Error::Damaged(_))));
}

/// A log with a bit of everything, and lines that repeat across batch borders.
fn mixed() -> String {
    let mut lines = vec![START.to_owned()];
    for id in 0..60 {
        lines.extend([task_start(id, (id % 3) as u32, id as u32), task_end(id, (id % 3) as u32, id as u32)]);
        lines.extend((0..id % 4).map(|_| r#"{"Event":"com.vendor.Same"}"#.to_owned()));
        if id % 9 == 0 {
            lines.push("garbage".to_owned());
        }
    }
    lines.push(END.to_owned());
    lines.join("\n")
}

#[test]
fn threads_and_batches_change_nothing() {
    let read = |threads: usize, batch_bytes: usize| {
        let limits = Limits { batch_bytes, ..Limits::default() };
        let threads = NonZeroUsize::new(threads).unwrap();
        let options = Options { limits, threads, ..Options::default() };
        let app = event_log(vec![Part::bytes("log", mixed().into_bytes())], &options).unwrap();
        // Unordered parts aside, all of it.
        let accumulators = app.accumulators.len();
        format!("{:?} {accumulators}", model::Application { accumulators: Default::default(), ..app })
    };
    let expected = read(1, 1 << 20);
    for (threads, batch_bytes) in [(2, 1 << 20), (1, 400), (3, 100), (2, 1_000)] {
        assert!(read(threads, batch_bytes) == expected, "{threads} threads, batches of {batch_bytes}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_change_of_bytes_makes_it_panic(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let mut log = mixed().into_bytes();
        for (at, byte) in changes {
            let at = at.index(log.len());
            log[at] = byte;
        }
        let _ = event_log(vec![Part::bytes("log", log)], &Options::default());
    }
}
