//! Pasted failures to findings: the first finding, a piece of evidence, and what must not be said.

use crate::{Config, diagnose};
use model::{Report, Value};

fn report(text: &str) -> Report {
    diagnose(&read::paste::read(text, None), &Config::default())
}

fn evidence(report: &Report, metric: &str) -> String {
    let found = report.findings[0].evidence.iter().find(|e| e.metric == metric);
    match found.map(|e| &e.value) {
        Some(Value::Text(text)) => text.clone(),
        Some(Value::Int(n)) => n.to_string(),
        Some(Value::Float(n)) => n.to_string(),
        Some(Value::Texts(list)) => list.join(" "),
        None => "nothing".to_owned(),
    }
}

fn check(text: &str, id: &str, metric: &str, value: &str) {
    let report = report(text);
    assert_eq!(report.findings.first().map(|f| f.id.as_str()), Some(id), "{text}\n{report:#?}");
    assert_eq!(evidence(&report, metric), value, "{metric}\n{:#?}", report.findings[0]);
}

#[test]
fn memory() {
    check(
        "2026-02-11T09:14:02.500Z ERROR TaskSchedulerImpl: Lost executor 14 on 10.40.3.17:\nThe executor with id 14 exited with exit code 137(SIGKILL, possible container OOM).\n\n\t exit code: 137\n\t termination reason: OOMKilled",
        "OOM_CONTAINER",
        "measure",
        "physical",
    );
    check(
        "spark.executor.memory=8g\n26/02/11 09:14:02 ERROR YarnClusterScheduler: Lost executor 3 on n7: Container killed by YARN for exceeding memory limits. 10.5 GB of 10 GB physical memory used.",
        "OOM_CONTAINER",
        "used",
        "10.5 GB",
    );
    check(
        "26/02/11 09:14:02 ERROR Executor: Exception in task 4.0 in stage 8.0 (TID 121)\njava.lang.OutOfMemoryError: Java heap space\n\tat org.apache.spark.util.collection.unsafe.sort.UnsafeExternalSorter.insertRecord(U.java:4)\n26/02/11 09:14:03 ERROR YarnScheduler: Lost executor 9 on n2: Container from a bad node: c1 on host: n2. Exit status: 52.",
        "OOM_EXECUTOR_HEAP",
        "cause",
        "big_partitions",
    );
    check(
        "java.lang.OutOfMemoryError: GC overhead limit exceeded\n\tat org.apache.spark.sql.Dataset.collectToPython(Dataset.scala:3997)",
        "OOM_DRIVER",
        "cause",
        "collect",
    );
    check(
        "26/02/11 09:14:02 ERROR Executor: Exception in task 0.0 in stage 2.0 (TID 5)\norg.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\nCaused by: java.io.EOFException\n\tat java.io.DataInputStream.readInt(D.java:3)",
        "OOM_PYTHON",
        "arrow_records_per_batch",
        "10000",
    );
    check(
        "Py4JJavaError: An error occurred while calling o9.collectToPython.\n: org.apache.spark.SparkException: Job aborted due to stage failure: Total size of serialized results of 16 tasks (4.1 GiB) is bigger than spark.driver.maxResultSize (4.0 GiB)",
        "FAIL_RESULT_SIZE",
        "cause",
        "collect",
    );
}

#[test]
fn executors() {
    check(
        "26/02/11 09:14:02 ERROR TaskSchedulerImpl: Lost executor 5 on n8: Executor decommission: spot instance interruption\n26/02/11 09:14:09 WARN TaskSetManager: Lost task 3.0 in stage 5.0 (TID 330) (n9 executor 6): FetchFailed(BlockManagerId(5, n8, 7337, None), shuffleId=3, mapIndex=12, mapId=320, reduceId=3, message=\norg.apache.spark.shuffle.FetchFailedException: Failed to connect to n8:7337",
        "FAIL_SPOT",
        "executors",
        "5",
    );
    check(
        "26/02/11 09:14:02 WARN HeartbeatReceiver: Removing executor 5 with no recent heartbeats: 131072 ms exceeds timeout 120000 ms",
        "FAIL_HEARTBEAT",
        "silence_ms_max",
        "131072",
    );
    check(
        "26/02/11 09:14:02 ERROR TaskSchedulerImpl: Lost executor 5 on n8: Command exited with code 139",
        "EXECUTOR_LOST",
        "cause",
        "native crash",
    );
    check(
        "26/02/11 09:14:02 WARN TaskSetManager: Lost task 3.0 in stage 5.0 (TID 330) (n9 executor 6): org.apache.spark.shuffle.MetadataFetchFailedException: Missing an output location for shuffle 3 partition 1",
        "FAIL_FETCH",
        "tasks",
        "1",
    );
}

#[test]
fn code_and_libraries() {
    check(
        "Exception: Python in worker has different version 3.8 than that in driver 3.10, PySpark cannot run with different minor versions.",
        "FAIL_DEPENDENCY",
        "driver_python",
        "3.10",
    );
    check(
        "java.lang.ClassNotFoundException: org.postgresql.Driver",
        "FAIL_DEPENDENCY",
        "missing",
        "org.postgresql.Driver",
    );
    check(
        "org.apache.spark.SparkException: Job aborted due to stage failure: Task 7 in stage 9.0 failed 4 times, most recent failure: Lost task 7.3 in stage 9.0 (TID 911) (n9 executor 3): org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n  File \"/home/u/fit.py\", line 18, in fit\n    x()\nKeyError: 'price'",
        "FAIL_CODE",
        "source_line",
        "/home/u/fit.py:18",
    );
    check(
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column or function parameter with name `qty` cannot be resolved. Did you mean one of the following? [`quantity`, `id`].",
        "FAIL_ANALYSIS",
        "suggestion",
        "quantity, id",
    );
    check(
        "com.esotericsoftware.kryo.KryoException: Buffer overflow. Available: 0, required: 77",
        "FAIL_SERIALIZER",
        "required",
        "77",
    );
    check(
        "org.apache.spark.SparkException: Job aborted due to stage failure: Serialized task 4:0 was 141234567 bytes, which exceeds max allowed: spark.rpc.message.maxSize (134217728 bytes).",
        "FAIL_TASK_SIZE",
        "task_bytes",
        "141234567",
    );
}

#[test]
fn storage_and_tables() {
    check(
        "com.amazonaws.services.s3.model.AmazonS3Exception: Please reduce your request rate. (Service: Amazon S3; Status Code: 503; Error Code: SlowDown)",
        "FAIL_STORAGE_THROTTLE",
        "status",
        "503",
    );
    check(
        "java.nio.file.AccessDeniedException: s3a://lake/x: Forbidden (Status Code: 403)",
        "FAIL_AUTH",
        "path",
        "s3a://lake/x",
    );
    check(
        "org.apache.spark.sql.streaming.StreamingQueryException: [DELTA_CONCURRENT_TRANSACTION] ConcurrentTransactionException: multiple streaming queries are using the same checkpoint",
        "FAIL_DELTA_CONFLICT",
        "transient",
        "false",
    );
    check(
        "[DELTA_CLUSTERING_WITH_ZORDER_BY] OPTIMIZE command for Delta table with clustering doesn't support ZORDER BY.",
        "FAIL_DELTA_CLUSTERING",
        "cause",
        "Z-order on a clustered table",
    );
    check(
        "java.lang.RuntimeException: hdfs://nn/t/part-0.parquet is not a Parquet file. Expected magic number at tail",
        "FAIL_SCHEMA",
        "path",
        "hdfs://nn/t/part-0.parquet",
    );
}

#[test]
fn files_that_are_gone() {
    let kinds = [
        (
            "Caused by: java.io.FileNotFoundException: File file:/lake/t/part-00004.parquet does not exist\nIt is possible the underlying files have been updated.",
            "file:/lake/t/part-00004.parquet",
        ),
        (
            "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file s3a://lake/t/part-1.parquet. File does not exist.",
            "s3a://lake/t/part-1.parquet",
        ),
        (
            "java.io.FileNotFoundException: No such file or directory: s3a://lake/t/_delta_log/00000000000000000010.json",
            "s3a://lake/t/_delta_log/00000000000000000010.json",
        ),
    ];
    for (text, path) in kinds {
        check(text, "FAIL_FILE_MISSING", "path", path);
    }
    // Spark's own files, and files that are there.
    for text in [
        "java.io.FileNotFoundException: /tmp/blockmgr-1/0d/shuffle_0_1_0.data (No such file or directory)",
        "java.io.FileNotFoundException: /data/x.csv (Permission denied)",
    ] {
        assert_ne!(report(text).findings[0].id, "FAIL_FILE_MISSING", "{text}");
    }
}

#[test]
fn what_was_stopped_is_no_failure_of_the_code() {
    for text in [
        "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\nThis stopped SparkContext was created at:\n\norg.apache.spark.api.java.JavaSparkContext.<init>(JavaSparkContext.scala:58)",
        "[SPARK_JOB_CANCELLED] Job 23 cancelled Query [id = 3aa6, runId = c9a2] was stopped SQLSTATE: XXKDA",
        "org.apache.spark.sql.streaming.StreamingQueryException: java.lang.InterruptedException",
    ] {
        assert_eq!(report(text).findings[0].id, "JOB_CANCELLED", "{text}");
    }
}

#[test]
fn a_copy_that_lost_its_race_is_no_trouble() {
    let text = "26/02/11 09:14:02 WARN TaskSetManager: Lost task 3.1 in stage 7.0 (TID 88) (n2 executor 4): TaskKilled (another attempt succeeded)";
    assert!(report(text).findings.is_empty(), "{:#?}", report(text).findings);
}

#[test]
fn errors_inside_json_and_behind_a_tool() {
    check(
        r#"{"status": "ERROR", "result": {"message": "Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent failure: Lost task 0.3 in stage 0.0 (TID 7, n3): ExecutorLostFailure (executor 0 lost)\nDriver stacktrace:"}}"#,
        "EXECUTOR_LOST",
        "removed_reason",
        "executor 0 lost",
    );
    check(
        "17/05/05 18:44:25 ERROR TaskSchedulerImpl: Lost executor driver on localhost: Executor heartbeat timed out after 148976 ms\n[info]   org.apache.spark.SparkException: Job aborted due to stage failure: Task 16 in stage 301.0 failed 1 times, most recent failure: Lost task 16.0 in stage 301.0 (TID 8122, localhost): ExecutorLostFailure (executor driver lost)\n[info] Driver stacktrace:",
        "FAIL_HEARTBEAT",
        "executors",
        "1",
    );
}

#[test]
fn errors_that_name_their_own_way_out() {
    for (text, words) in [
        (
            "[STREAM_FAILED] Query terminated with exception: Cannot fetch offsets: some data may have been lost. If you don't want your streaming query to fail on such cases, set the source option failOnDataLoss to false.",
            "retention",
        ),
        (
            "org.apache.spark.SparkUpgradeException: [INCONSISTENT_BEHAVIOR_CROSS_VERSION.PARSE_DATETIME_BY_NEW_PARSER] You can set \"spark.sql.legacy.timeParserPolicy\" to \"LEGACY\"",
            "LEGACY",
        ),
        (
            "org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0",
            "rows that hold such values",
        ),
    ] {
        let report = report(text);
        assert!(!report.findings.is_empty(), "{text}");
        assert!(report.findings[0].remedies[0].text.contains(words), "{:#?}", report.findings[0].remedies);
    }
}

#[test]
fn words_alone_are_no_failure() {
    assert!(report("My executors keep dying and nobody knows why. Any idea?").findings.is_empty());
}

#[test]
fn figures_that_cannot_be_are_no_reason_to_fail() {
    for bytes in [1 << 53, (1 << 53) + 2, u64::MAX] {
        let row = format!("[{bytes},{bytes},{bytes},{bytes},{bytes}]");
        report(&format!(
            r#"{{"stage":{{"id":1,"tasks":4000000000,"wall_ms":60000,"slots":4}},
            "summary":{{"duration_ms":{row},"spill_disk_bytes":{row},"shuffle_read_bytes":{row},"input_bytes":{row}}}}}"#
        ));
    }
}
