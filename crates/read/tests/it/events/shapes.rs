//! What logs really look like: any order, any version, things twice or never.

use super::*;
use model::{EndReason, Metric, StageStatus, TaskStatus};

#[test]
fn a_resubmitted_task_stands_once() {
    let again = task_end_as(0, 0, 0, 0, r#"{"Reason":"Resubmitted"}"#);
    let app = read_lines(&[START, &task_start(0, 0, 0), &task_end(0, 0, 0), &again, END]);
    let stage = &app.stages[0];
    assert_eq!((stage.tasks.len(), stage.resubmitted, stage.resubmitted_run_ms), (1, 1, 700));
    assert_eq!(stage.tasks.status(0), TaskStatus::Success);
    assert_eq!((app.log.task_ends, app.log.task_ends_not_successful), (2, 1));
}

#[test]
fn what_is_said_twice_counts_once() {
    let (start, end) = (task_start(0, 0, 0), task_end(0, 0, 0));
    let other = task_end(1, 0, 1);
    let app = read_lines(&[START, &start, &start, &end, &end, &other, &end, END, END]);
    assert_eq!((app.stages[0].tasks.len(), app.log.task_ends, app.log.task_starts), (2, 2, 1));
    assert_eq!((app.log.repeated_lines, app.log.lines), (4, 9));
    assert_eq!(app.log.events["SparkListenerTaskEnd"], 3);
}

#[test]
fn tasks_that_never_ended_run_and_stand_last() {
    let app = read_lines(&[START, &task_start(7, 0, 0), &task_start(8, 0, 1), &task_end(8, 0, 1)]);
    let tasks = &app.stages[0].tasks;
    let rows: Vec<_> = (0..tasks.len()).map(|row| (tasks.id(row), tasks.status(row))).collect();
    assert_eq!(rows, [(8, TaskStatus::Success), (7, TaskStatus::Running)]);
    assert_eq!((tasks.value(Metric::LaunchMs, 1), tasks.value(Metric::DurationMs, 1)), (2_000, 0));
    assert!(!tasks.has_metrics(1));
    // Without an end of the application nothing is missing.
    assert_eq!(codes(&app), [""; 0]);
}

#[test]
fn executor_events_of_a_wrong_clock_are_not_the_end_of_the_run() {
    let added = |ms: i64| {
        format!(
            r#"{{"Event":"SparkListenerExecutorAdded","Timestamp":{ms},"Executor ID":"1","Executor Info":{{"Host":"h","Total Cores":4}}}}"#
        )
    };
    let wrong = added(80_000_000_000);
    let app = read_lines(&[START, &wrong, &task_start(7, 0, 0), &task_end(7, 0, 0)]);
    assert_eq!((app.last_event_ms < Some(10_000), codes(&app)), (true, vec!["LOG_CLOCK"]));
    // The same event at the end: the cluster got an executor after days without work.
    let app = read_lines(&[START, &task_start(7, 0, 0), &task_end(7, 0, 0), &wrong]);
    assert_eq!((app.last_event_ms, codes(&app)), (Some(80_000_000_000), Vec::<&str>::new()));
}

#[test]
fn lost_events_are_told_from_copies_that_lost_a_race() {
    let copy = task_start(9, 0, 0);
    let app = read_lines(&[START, &task_start(8, 0, 0), &copy, &task_end(8, 0, 0), END]);
    assert_eq!(codes(&app), [""; 0]);
    // Of a stage that did not complete the end stopped what ran.
    let app = read_lines(&[START, &task_start(8, 0, 0), END]);
    assert_eq!(codes(&app), [""; 0]);
    let completed = stage_event("StageCompleted", 0, 0, 2, "");
    let app = read_lines(&[START, &task_start(8, 0, 0), &task_end(9, 0, 1), &completed, END]);
    assert_eq!(codes(&app), ["LOG_EVENTS_DROPPED"]);
    assert!(app.log.warnings[0].text.contains("1 task started and never ended, 1 task ended without a start"));
    let completed = stage_event("StageCompleted", 0, 0, 3, "");
    let app = read_lines(&[START, &task_start(8, 0, 0), &task_end(8, 0, 0), &completed, END]);
    assert!(app.log.warnings[0].text.contains("2 tasks left no event"), "{:?}", app.log.warnings);
}

#[test]
fn ends_before_starts_and_after_everything() {
    let job = r#"{"Event":"SparkListenerJobStart","Job ID":0,"Submission Time":1500,"Stage IDs":[0]}"#;
    let job_end =
        r#"{"Event":"SparkListenerJobEnd","Job ID":0,"Completion Time":8000,"Job Result":{"Result":"JobSucceeded"}}"#;
    let completed = stage_event("StageCompleted", 0, 0, 2, r#","Completion Time":7000"#);
    let lines = [&*task_end(0, 0, 0), START, job, &task_start(0, 0, 0), &completed, job_end, END, &task_end(1, 0, 1)];
    let app = read_lines(&lines);
    let stage = &app.stages[0];
    assert_eq!((stage.status, stage.tasks.len(), stage.count(TaskStatus::Success)), (StageStatus::Complete, 2, 2));
    assert_eq!((app.jobs[0].status, &*app.jobs[0].name), (StageStatus::Complete, "count at a.py:1"));
    assert_eq!((stage.jobs.as_slice(), app.ended_ms, app.last_event_ms), (&[0][..], Some(9_000), Some(9_000)));
}

#[test]
fn stages_that_never_ran_are_skipped_once_their_job_has_ended() {
    let info = |id| format!(r#"{{"Stage ID":{id},"Stage Attempt ID":0,"Stage Name":"s{id}","Number of Tasks":4}}"#);
    let job = format!(
        r#"{{"Event":"SparkListenerJobStart","Job ID":3,"Submission Time":1500,"Stage IDs":[1,2],"Stage Infos":[{},{}],
        "Properties":{{"spark.sql.execution.id":"5","spark.sql.execution.root.id":"4","spark.job.description":"d","spark.jobGroup.id":"g",
        "callSite.short":"c","spark.job.tags":"x, y","spark.databricks.job.runId":"77","spark.other":"no","sql.streaming.queryId":"q","streaming.sql.batchId":"6"}}}}"#,
        info(1),
        info(2)
    )
    .replace('\n', "");
    let submitted = stage_event("StageSubmitted", 2, 0, 4, "");
    let retried = stage_event("StageSubmitted", 2, 1, 1, "");
    let failed = stage_event("StageCompleted", 2, 0, 4, r#","Failure Reason":"fetch""#);
    let open = read_lines(&[START, &job, &submitted]);
    assert_eq!(open.stage(1, 0).unwrap().status, StageStatus::Pending);
    let end =
        r#"{"Event":"SparkListenerJobEnd","Job ID":3,"Job Result":{"Result":"JobFailed","Exception":{"Message":"m"}}}"#;
    let app = read_lines(&[START, &job, &submitted, &failed, &retried, end]);
    let statuses: Vec<_> = app.stages.iter().map(|s| (s.id, s.attempt, s.status)).collect();
    let expected = [(1, 0, StageStatus::Skipped), (2, 0, StageStatus::Failed), (2, 1, StageStatus::Active)];
    assert_eq!(statuses, expected);
    let job = &app.jobs[0];
    assert_eq!((&*job.name, job.error.as_deref(), job.status), ("s2", Some("m"), StageStatus::Failed));
    assert_eq!((job.sql, job.sql_root, job.batch, job.stream.as_deref()), (Some(5), Some(4), Some(6), Some("q")));
    assert_eq!(job.tags.iter().map(|t| &**t).collect::<Vec<_>>(), ["x", "y"]);
    assert_eq!(job.ties, [("spark.databricks.job.runId".into(), "77".into())]);
    // No properties on the stage's own event: those of its job.
    let stage = app.stage(2, 1).unwrap();
    assert_eq!((stage.sql, stage.description.as_deref(), stage.jobs.as_slice()), (Some(5), Some("d"), &[3][..]));
}

#[test]
fn jobs_that_end_before_they_start_or_without_a_start() {
    let end = |id| {
        format!(
            r#"{{"Event":"SparkListenerJobEnd","Job ID":{id},"Completion Time":8000,"Job Result":{{"Result":"JobSucceeded"}}}}"#
        )
    };
    let start = r#"{"Event":"SparkListenerJobStart","Job ID":1,"Submission Time":1500,"Stage IDs":[]}"#;
    let app = read_lines(&[START, &end(1), &end(2), start, END]);
    let [job] = &app.jobs[..] else { panic!("{:?}", app.jobs) };
    assert_eq!((job.id, job.status, job.completed_ms), (1, StageStatus::Complete, Some(8_000)));
    assert!(app.log.warnings[0].text.contains("1 job ended without a start"), "{:?}", app.log.warnings);
}

#[test]
fn a_job_started_twice_is_one_job() {
    let start = |name: &str| {
        format!(
            r#"{{"Event":"SparkListenerJobStart","Job ID":1,"Submission Time":1500,"Stage IDs":[1],"Stage Infos":[{{"Stage ID":1,"Stage Name":"{name}"}}]}}"#
        )
    };
    let app = read_lines(&[START, &start("a"), &start("b")]);
    assert_eq!((app.jobs.len(), &*app.jobs[0].name, app.stages.len()), (1, "b", 1));
}

#[test]
fn executors_unknown_added_again_and_excluded_once() {
    let manager = r#"{"Event":"SparkListenerBlockManagerAdded","Block Manager ID":{"Executor ID":"1","Host":"h1","Port":7},"Maximum Memory":100,"Timestamp":1100}"#;
    let added = r#"{"Event":"SparkListenerExecutorAdded","Timestamp":1200,"Executor ID":"1","Executor Info":{"Host":"h1","Total Cores":4,"Log Urls":{}}}"#;
    let removed = r#"{"Event":"SparkListenerExecutorRemoved","Timestamp":1300,"Executor ID":"1","Removed Reason":"Command exited with code 52"}"#;
    let excluded =
        |name: &str| format!(r#"{{"Event":"SparkListener{name}","time":1400,"executorId":"1","taskFailures":2}}"#);
    let node = r#"{"Event":"SparkListenerNodeExcludedForStage","time":1450,"hostId":"h1","executorFailures":2,"stageId":0,"stageAttemptId":0}"#;
    let back = r#"{"Event":"SparkListenerExecutorUnexcluded","time":1500,"executorId":"1"}"#;
    let (new, old) = (excluded("ExecutorExcluded"), excluded("ExecutorBlacklisted"));
    let task = task_end(0, 0, 0).replace(r#""Executor ID":"1","Host":"h1""#, r#""Executor ID":"9","Host":"h9""#);
    let app = read_lines(&[manager, START, added, removed, &new, &old, node, back, &task]);
    let [first, unknown] = &app.executors[..] else { panic!("{:?}", app.executors) };
    assert_eq!((first.host_port.as_deref(), first.cores, first.added_ms), (Some("h1:7"), 4, Some(1_200)));
    assert_eq!((first.removed_ms, first.removed_reason.as_deref()), (Some(1_300), Some("Command exited with code 52")));
    let exclusions: Vec<_> = first.exclusions.iter().map(|e| (e.from_ms, e.until_ms, e.stage, e.node)).collect();
    assert_eq!(exclusions, [(1_400, Some(1_500), None, false), (1_450, None, Some((0, 0)), true)]);
    assert_eq!((&*unknown.id, &*unknown.host, unknown.added), ("9", "h9", false));
    assert_eq!(app.stages[0].tasks.executor(0), 1);
    let app = read_lines(&[manager, START, added, removed, &added.replace("1200", "2200")]);
    assert_eq!((app.executors.len(), app.executors[0].removed_ms, app.executors[0].added_ms), (1, None, Some(2_200)));
}

#[test]
fn peaks_are_the_highest_of_all_sources() {
    let stage = r#"{"Event":"SparkListenerStageExecutorMetrics","Executor ID":"1","Stage ID":0,"Stage Attempt ID":0,"Executor Metrics":{"JVMHeapMemory":500,"MajorGCCount":0}}"#;
    let update = r#"{"Event":"SparkListenerExecutorMetricsUpdate","Executor ID":"driver","Metrics Updated":[],"Executor Metrics Updated":[{"Stage ID":-1,"Stage Attempt ID":-1,"Executor Metrics":{"JVMHeapMemory":40}},{"Stage ID":0,"Stage Attempt ID":0,"Executor Metrics":{"JVMHeapMemory":60}}]}"#;
    let task = |heap: u32, id| {
        task_end(id, 0, 0).replace(
            r#""Task Metrics""#,
            &format!(r#""Task Executor Metrics":{{"JVMHeapMemory":{heap},"OnHeapExecutionMemory":9}},"Task Metrics""#),
        )
    };
    let app = read_lines(&[START, stage, &task(700, 0), &task(600, 1), update]);
    let peaks: Vec<_> = app.executors.iter().map(|e| (&*e.id, e.peak("JVMHeapMemory"))).collect();
    assert_eq!(peaks, [("1", Some(700)), ("driver", Some(60))]);
    assert_eq!(
        (app.executors[0].peak("OnHeapExecutionMemory"), app.executors[0].peak("MajorGCCount")),
        (Some(9), None)
    );
}

#[test]
fn settings_of_later_updates_win() {
    let update = |spark: &str| {
        format!(
            r#"{{"Event":"SparkListenerEnvironmentUpdate","Spark Properties":{{{spark}}},"JVM Information":{{"Java Home":"/j"}}}}"#
        )
    };
    let app = read_lines(&[START, &update(r#""a":"1","b":"1""#), &update(r#""b":"2","c":3"#)]);
    let spark: Vec<_> = app.environment.spark.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(spark, ["a=1", "b=2", "c=3"]);
}

#[test]
fn a_databricks_log_that_begins_in_the_middle() {
    let start = r#"{"Event":"DBCEventLoggingListenerMetadata","Spark Version":"3.4.1","Timestamp":5000,"Rollover Number":3,"SparkContext Id":1}"#;
    let app = read_lines(&[start, &task_end(0, 0, 0)]);
    assert_eq!((&*app.spark_version, app.log.starts_at_beginning), ("3.4.1", false));
    assert_eq!((codes(&app), app.start_ms()), (vec!["LOG_PARTIAL"], Some(2_000)));
}

#[test]
fn unknown_events_are_counted_and_named() {
    let unknown = r#"{"Event":"com.vendor.Thing","x":[1,{"y":null}]}"#;
    let app = read_lines(&[START, unknown, r#"{"Event":"com.vendor.Thing"}"#]);
    assert_eq!((app.log.unknown_events["com.vendor.Thing"], app.log.bad_lines), (2, 0));
    assert_eq!(app.log.warnings[0].text, "2 events of unknown kinds passed over: Thing (2).");
}

#[test]
fn json_in_any_dress() {
    let dressed = r#" { "Timestamp" : 9000 , "Event" : "SparkListenerApplicationEnd" } "#;
    let escaped = r#"{"Event":"SparkListener\u0041pplicationStart","App Name":"\u00e9","Timestamp":1000}"#;
    let task = task_end(0, 0, 0).replace(':', " : ").replace(',', " ,\t");
    let app = read_lines(&[escaped, &task, dressed]);
    assert_eq!((&*app.name, app.ended_ms, app.stages[0].tasks.len()), ("é", Some(9_000), 1));
    assert_eq!(app.stages[0].tasks.value(Metric::RunMs, 0), 700);
}

#[test]
fn why_tasks_failed() {
    let reasons = [
        r#"{"Reason":"ExceptionFailure","Class Name":"java.lang.E","Description":"no","Stack Trace":[{"Declaring Class":"a.B","Method Name":"c","File Name":"B.scala","Line Number":3}]}"#,
        r#"{"Reason":"FetchFailed","Block Manager Address":null,"Shuffle ID":1,"Map ID":2,"Map Index":3,"Reduce ID":4,"Message":"gone"}"#,
        r#"{"Reason":"ExecutorLostFailure","Executor ID":"1","Exit Caused By App":true,"Loss Reason":"137"}"#,
        r#"{"Reason":"TaskKilled","Kill Reason":"another attempt succeeded","Accumulator Updates":[]}"#,
        r#"{"Reason":"TaskCommitDenied","Job ID":1,"Partition ID":2,"Attempt Number":0}"#,
        r#"{"Reason":"TaskResultLost"}"#,
        r#"{"Reason":"NewKindOfEnd","more":{}}"#,
    ];
    let lines: Vec<String> = reasons.iter().enumerate().map(|(i, r)| task_end_as(i as i64, 0, 0, 1, r)).collect();
    let mut log = vec![START];
    log.extend(lines.iter().map(String::as_str));
    let app = read_lines(&log);
    let tasks = &app.stages[0].tasks;
    let failures: Vec<EndReason> = tasks.failures().map(|(_, reason)| reason.clone()).collect();
    let expected = [
        EndReason::Exception {
            class: "java.lang.E".into(),
            message: "no".into(),
            stack: "\tat a.B.c(B.scala:3)\n".into(),
        },
        EndReason::FetchFailed {
            executor: None,
            host: None,
            shuffle: 1,
            map_index: 3,
            reduce: 4,
            message: "gone".into(),
        },
        EndReason::ExecutorLost { executor: "1".into(), caused_by_app: true, reason: "137".into() },
        EndReason::Killed { reason: "another attempt succeeded".into() },
        EndReason::CommitDenied { message: "".into() },
        EndReason::ResultLost,
        EndReason::Other { reason: "NewKindOfEnd".into() },
    ];
    assert_eq!(failures, expected);
    use TaskStatus::{Failed, Killed};
    let statuses: Vec<_> = (0..7).map(|row| tasks.status(row)).collect();
    assert_eq!(statuses, [Failed, Failed, Failed, Killed, Killed, Failed, Failed]);
}

#[test]
fn stacks_are_kept_whole_for_the_first_failures_only() {
    let end = |id| {
        task_end_as(
            id,
            0,
            0,
            1,
            &format!(
                r#"{{"Reason":"ExceptionFailure","Class Name":"E","Description":"{}","Full Stack Trace":"stack {id}"}}"#,
                "é".repeat(5_000)
            ),
        )
    };
    let lines: Vec<String> = (0..100).map(end).collect();
    let app = read(START.to_owned() + "\n" + &lines.join("\n"));
    let kept = app.stages[0]
        .tasks
        .failures()
        .filter(|(_, r)| matches!(r, EndReason::Exception { stack, .. } if !stack.is_empty()));
    assert_eq!((kept.count(), app.stages[0].tasks.failures().count()), (20, 100));
    let Some((_, EndReason::Exception { class, message, .. })) = app.stages[0].tasks.failures().last() else {
        panic!()
    };
    assert_eq!((&**class, message.len()), ("E", 2_000));
}

#[test]
fn sql_metrics_add_up_and_minus_one_is_no_size() {
    let metric = |name: &str, id, kind| format!(r#"{{"name":"{name}","accumulatorId":{id},"metricType":"{kind}"}}"#);
    let plan = |id: i64| {
        format!(
            r#"{{"nodeName":"Scan parquet t","simpleString":"FileScan parquet t","children":[],"metadata":{{}},"metrics":[{},{}]}}"#,
            metric("number of output rows", id, "sum"),
            metric("size of files read", id + 1, "size")
        )
    };
    let start = format!(
        r#"{{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart","executionId":7,"rootExecutionId":6,"description":"d","details":"s","physicalPlanDescription":"first","sparkPlanInfo":{},"time":1500,"modifiedConfigs":{{"k":"v"}}}}"#,
        plan(10)
    );
    let update = format!(
        r#"{{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLAdaptiveExecutionUpdate","executionId":7,"physicalPlanDescription":"last","sparkPlanInfo":{}}}"#,
        plan(20)
    );
    let with = |id, accumulables: &str| {
        task_end(id, 0, 0).replace(r#""Accumulables":[]"#, &format!(r#""Accumulables":[{accumulables}]"#))
    };
    let sql = |id, value: &str| {
        format!(
            r#"{{"ID":{id},"Name":"n","Update":{value},"Value":"9","Internal":true,"Count Failed Values":true,"Metadata":"sql"}}"#
        )
    };
    let user = r#"{"ID":30,"Name":"u","Update":"<b>[1]","Value":"x","Internal":false,"Count Failed Values":false}"#;
    let internal =
        r#"{"ID":31,"Name":"internal.metrics.x","Update":4,"Value":4,"Internal":true,"Count Failed Values":true}"#;
    let reordered = r#"{"Metadata":"sql","Update":"5","ID":10}"#;
    let first = with(0, &[&*sql(10, r#""3""#), &sql(11, r#""-1""#), user, internal].join(","));
    let second = with(1, &[&*sql(21, r#""100""#), &sql(20, "-1"), reordered].join(","));
    let failed = task_end_as(2, 0, 0, 1, r#"{"Reason":"TaskResultLost"}"#)
        .replace(r#""Accumulables":[]"#, &format!(r#""Accumulables":[{}]"#, sql(10, r#""1000""#)));
    let driver = r#"{"Event":"org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates","executionId":7,"accumUpdates":[[21,40]]}"#;
    let job =
        r#"{"Event":"SparkListenerJobStart","Job ID":2,"Stage IDs":[0],"Properties":{"spark.sql.execution.id":"7"}}"#;
    let end = r#"{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd","executionId":7,"time":5000,"errorMessage":""}"#;
    let app = read_lines(&[START, &start, job, &first, &update, &second, &failed, driver, end]);
    let sum = |id: i64| app.accumulators.get(&id).map(|a| (a.sum, a.max, a.updates, a.stage));
    assert_eq!(sum(10), Some((8, 5, 2, Some(0))));
    assert_eq!(sum(11), Some((0, 0, 0, Some(0))), "-1 is no size");
    assert_eq!(sum(20), Some((-1, -1, 1, Some(0))), "-1 may be a sum");
    assert_eq!(sum(21), Some((140, 100, 2, Some(0))));
    assert_eq!((sum(30), sum(31)), (None, None));
    let sql = &app.sql[0];
    assert_eq!((sql.id, sql.root_id, sql.updates, sql.error.as_deref()), (7, Some(6), 1, None));
    assert_eq!(
        (sql.jobs.as_slice(), sql.duration_ms(), sql.plan_text.as_deref()),
        (&[2][..], Some(3_500), Some("last"))
    );
    let ids =
        |plan: &model::Plan| plan.nodes.iter().flat_map(|n| &n.metrics).map(|m| m.accumulator).collect::<Vec<_>>();
    assert_eq!((ids(&sql.first_plan), ids(sql.plan())), (vec![10, 11], vec![20, 21]));
}

#[test]
fn cached_blocks_move_drop_and_come_back() {
    let block = |memory, disk, uses: (bool, bool)| {
        format!(
            r#"{{"Event":"SparkListenerBlockUpdated","Block Updated Info":{{"Block Manager ID":{{"Executor ID":"1","Host":"h","Port":1}},"Block ID":"rdd_4_0","Storage Level":{{"Use Disk":{},"Use Memory":{},"Deserialized":true,"Replication":1}},"Memory Size":{memory},"Disk Size":{disk}}}}}"#,
            uses.1, uses.0
        )
    };
    let broadcast = block(5, 0, (true, false)).replace("rdd_4_0", "broadcast_1");
    let lines = [
        START,
        &broadcast,
        &block(100, 0, (true, false)),
        // To disk: what was freed stands beside a flag that is false.
        &block(100, 80, (false, true)),
        &block(0, 80, (false, false)),
        &block(100, 0, (true, false)),
        r#"{"Event":"SparkListenerUnpersistRDD","RDD ID":4}"#,
        &block(100, 0, (false, false)),
    ];
    let app = read_lines(&lines);
    let [rdd] = &app.cached[..] else { panic!("{:?}", app.cached) };
    assert_eq!((rdd.id, rdd.peak_memory_bytes, rdd.peak_disk_bytes), (4, 100, 80));
    assert_eq!((rdd.moved_to_disk, rdd.dropped, rdd.stored_again), (1, 1, 1));
    assert_eq!((rdd.unpersisted_ms, app.log.block_updates), (Some(1_000), 6));
}

#[test]
fn streaming_progress_as_object_and_as_text() {
    let progress = r#"{"id":"q","runId":"r","name":null,"timestamp":"2026-11-29T18:00:00.500Z","batchId":3,"durationMs":{"addBatch":40,"triggerExecution":55},"eventTime":{"watermark":"w"},"stateOperators":[{"operatorName":"dedupe","numRowsTotal":9,"numRowsUpdated":2,"memoryUsedBytes":77}],"sources":[{"description":"s1","numInputRows":5,"inputRowsPerSecond":2.5,"processedRowsPerSecond":"NaN","endOffset":{"a":1},"latestOffset":null},{"description":"s2","numInputRows":7,"inputRowsPerSecond":"Infinity"}],"sink":{"description":"k"}}"#;
    let name = "org.apache.spark.sql.streaming.StreamingQueryListener$Query";
    let started = format!(
        r#"{{"Event":"{name}StartedEvent","id":"q","runId":"r","name":"n","timestamp":"2026-11-29T17:59:59Z"}}"#
    );
    let object = format!(r#"{{"Event":"{name}ProgressEvent","progress":{progress}}}"#);
    let in_text = format!(
        r#"{{"Event":"{name}ProgressEvent","progress":{}}}"#,
        serde_json::to_string(&progress.replace(r#""batchId":3"#, r#""batchId":4"#)).unwrap()
    );
    let idle = format!(r#"{{"Event":"{name}IdleEvent","id":"q","runId":"r","timestamp":"2026-11-29T18:00:01Z"}}"#);
    let ended = format!(r#"{{"Event":"{name}TerminatedEvent","id":"q","runId":"r","exception":"boom"}}"#);
    let app = read_lines(&[START, &started, &object, &in_text, &idle, &ended]);
    let [query] = &app.streams[..] else { panic!("{:?}", app.streams) };
    assert_eq!((&*query.id, query.name.as_deref(), query.error.as_deref()), ("q", Some("n"), Some("boom")));
    assert_eq!((query.idle_events, query.batches.len()), (1, 2));
    assert_eq!((query.started_ms, query.ended_ms), (Some(1_795_975_199_000), Some(1_795_975_201_000)));
    for (batch, id) in query.batches.iter().zip([3, 4]) {
        assert_eq!((batch.id, batch.input_rows, batch.input_rate, batch.process_rate), (id, 12, Some(2.5), None));
        assert_eq!((batch.phase_ms("addBatch"), batch.watermark.as_deref()), (Some(40), Some("w")));
        assert_eq!((batch.state[0].rows_total, batch.state[0].memory_bytes), (9, 77));
        assert_eq!(batch.sources[0].end_offset.as_deref(), Some(r#"{"a":1}"#));
    }
}

#[test]
fn logs_of_spark_1_3() {
    let submitted = r#"{"Event":"SparkListenerStageSubmitted","Stage Info":{"Stage ID":0,"Stage Attempt ID":0,"Stage Name":"s","Number of Tasks":1,"RDD Info":[{"RDD ID":0,"Name":"r","Storage Level":{"Use Disk":false,"Use Memory":true,"Use Tachyon":false,"Deserialized":true,"Replication":1},"Number of Partitions":1,"Number of Cached Partitions":0,"Memory Size":0,"Tachyon Size":0,"Disk Size":0}],"Details":"","Accumulables":[]},"Properties":{}}"#;
    let job = r#"{"Event":"SparkListenerJobStart","Job ID":0,"Stage IDs":[0,1]}"#;
    let app = read_lines(&[START, job, submitted, &task_end(0, 0, 0)]);
    assert_eq!((app.jobs[0].submitted_ms, app.stages.len()), (None, 2));
    assert_eq!((app.stages[0].status, app.stages[0].submitted_ms), (StageStatus::Active, None));
    assert_eq!((app.stages[1].status, &*app.spark_version), (StageStatus::Pending, ""));
    assert!(app.cached[0].level.memory && app.stages[0].tasks.partition(0) == -1);
}

#[test]
fn push_based_shuffle_under_both_names() {
    let with = |id, block: &str| {
        task_end(id, 0, 0).replace(
            r#""Executor Run Time":700"#,
            &format!(r#""Executor Run Time":700,"Shuffle Read Metrics":{{"Local Bytes Read":5,{block}}}"#),
        )
    };
    let new = with(0, r#""Push Based Shuffle":{"Merged Fetch Fallback Count":3}"#);
    let old = with(1, r#""Shuffle Push Read Metrics":{"Merged Fallback Count":4}"#);
    let app = read_lines(&[START, &new, &old]);
    let tasks = &app.stages[0].tasks;
    let fallbacks = [0, 1].map(|row| tasks.value(Metric::MergedFetchFallbacks, row));
    assert_eq!((fallbacks, tasks.value(Metric::ShuffleReadBytes, 0)), ([3, 4], 5));
}
