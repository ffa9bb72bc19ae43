//! What one incident is, by itself: a table of words for each finding id (sections 4.3 and 4.5
//! of the rules). Which of several incidents is to blame is the business of [`crate::blame`].

use model::{Incident, Origin};
use regex::{Regex, RegexSet};
use std::sync::LazyLock;

/// Kinds of failures; each has the finding id of its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // The ids say it; see `rules::RULES`.
pub enum Cause {
    ContainerVirtual,
    Container,
    Spot,
    Decommission,
    Autoscale,
    DiskFull,
    BroadcastTooLarge,
    BroadcastTimeout,
    ResultSize,
    TaskSize,
    Serializer,
    Dependency,
    Python,
    DriverHeap,
    ExecutorHeap,
    Heartbeat,
    DeltaClustering,
    DeltaConflict,
    FileMissing,
    Schema,
    Analysis,
    Throttle,
    Auth,
    Startup,
    Timeout,
    Fetch,
    ExecutorLost,
    Code,
    /// Stopped from outside. A cause of its own only where the whole context was shut down.
    Cancelled,
}

impl Cause {
    /// The finding id.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::ContainerVirtual => "FAIL_CONTAINER_VMEM",
            Self::Container => "OOM_CONTAINER",
            Self::Spot => "FAIL_SPOT",
            Self::Decommission => "FAIL_DECOMMISSION",
            Self::Autoscale => "AUTOSCALE_REMOVED",
            Self::DiskFull => "FAIL_DISK_FULL",
            Self::BroadcastTooLarge => "BROADCAST_TOO_LARGE",
            Self::BroadcastTimeout => "BROADCAST_TIMEOUT",
            Self::ResultSize => "FAIL_RESULT_SIZE",
            Self::TaskSize => "FAIL_TASK_SIZE",
            Self::Serializer => "FAIL_SERIALIZER",
            Self::Dependency => "FAIL_DEPENDENCY",
            Self::Python => "OOM_PYTHON",
            Self::DriverHeap => "OOM_DRIVER",
            Self::ExecutorHeap => "OOM_EXECUTOR_HEAP",
            Self::Heartbeat => "FAIL_HEARTBEAT",
            Self::DeltaClustering => "FAIL_DELTA_CLUSTERING",
            Self::DeltaConflict => "FAIL_DELTA_CONFLICT",
            Self::FileMissing => "FAIL_FILE_MISSING",
            Self::Schema => "FAIL_SCHEMA",
            Self::Analysis => "FAIL_ANALYSIS",
            Self::Throttle => "FAIL_STORAGE_THROTTLE",
            Self::Auth => "FAIL_AUTH",
            Self::Startup => "FAIL_STARTUP",
            Self::Timeout => "FAIL_TIMEOUT",
            Self::Fetch => "FAIL_FETCH",
            Self::ExecutorLost => "EXECUTOR_LOST",
            Self::Code => "FAIL_CODE",
            Self::Cancelled => "JOB_CANCELLED",
        }
    }

    /// Whether it takes an executor (or the driver) away with it, so that what its peers see
    /// next is a consequence.
    #[must_use]
    pub fn kills(self) -> bool {
        matches!(
            self,
            Self::ContainerVirtual
                | Self::Container
                | Self::Spot
                | Self::Decommission
                | Self::Autoscale
                | Self::DiskFull
                | Self::Dependency
                | Self::Python
                | Self::DriverHeap
                | Self::ExecutorHeap
                | Self::Heartbeat
                | Self::ExecutorLost
                | Self::Startup
        )
    }

    /// How much a reason of an executor's loss tells; the reason that tells most counts.
    #[must_use]
    pub fn tells(self) -> u8 {
        match self {
            Self::Code | Self::Cancelled => 0,
            Self::ExecutorLost => 1,
            Self::Heartbeat | Self::Timeout => 2,
            _ => 3,
        }
    }
}

/// Words of each cause, in the order in which they are tried. Searched in what the failure says
/// of itself (message and `Caused by` lines), never in the names of stack frames.
static WORDS: LazyLock<(RegexSet, Vec<Cause>)> = LazyLock::new(|| {
    let table: &[(Cause, &str)] = &[
        (
            Cause::ContainerVirtual,
            r"memory limits\.? \S+ ?\S* of \S+ ?\S* virtual memory used|beyond (?:the )?'?(?:VIRTUAL'?|virtual) memory limit",
        ),
        (Cause::ContainerVirtual, r"^[^,;]*\bvirtual memory used"),
        (
            Cause::DiskFull,
            r"(?i)no space left on device|disk quota exceeded|errno 28\b|enospc|not enough space on the disk|low on resource: ephemeral-storage|ephemeral local storage usage exceeds|local-dirs usable space is below|\b1/1 local-dirs",
        ),
        (
            Cause::Container,
            r"OOM ?[Kk]illed|physical memory used|beyond (?:the )?'?(?:PHYSICAL'?|physical) memory limit|exceeding memory limits|possible container OOM|\boom-kill|[Mm]emory cgroup out of memory|Out of memory: Kill|Killed process \d+|low on resource: memory|container .*memory limit",
        ),
        (
            Cause::Spot,
            r"(?i)\bspot\b|\bpreempt|reclaimed|instance[- ]?terminat|terminated by the cloud|exit(?:ed)?(?: with)?[ _]?(?:status|code)?:? ?-?(?:143|-102|102)\b|SIGTERM|node (?:was )?(?:lost|terminated)|\bEC2 instance|rebalance recommendation|scheduled (?:event|maintenance)",
        ),
        (Cause::Decommission, r"(?i)decommission"),
        (
            Cause::Autoscale,
            r"(?i)executor killed by driver|exited from explicit termination request|\bidle (?:for|timeout)|due to idle|scal(?:e|ed|ing)[ -]?(?:down|in)|autoscal|killed by driver|dynamic allocation|resiz(?:e|ing)",
        ),
        (
            Cause::BroadcastTooLarge,
            r"(?i)cannot broadcast the table|far exceeds estimates|not enough memory to build and broadcast|larger than (?:8|\S+) ?(?:GB|GiB)?.*broadcast",
        ),
        (Cause::BroadcastTimeout, r"(?i)could not execute broadcast in|spark\.sql\.broadcastTimeout"),
        (Cause::ResultSize, r"Total size of serialized results|is bigger than spark\.driver\.maxResultSize"),
        (
            Cause::TaskSize,
            r"Serialized task \S+ was \d+ bytes|exceeds max allowed: spark\.rpc\.message|spark\.akka\.frameSize",
        ),
        (
            Cause::Serializer,
            r"Buffer overflow\. Available|Kryo serialization failed|KryoException|spark\.kryoserializer\.buffer",
        ),
        (
            Cause::DeltaClustering,
            r"DELTA_[A-Z_]*CLUSTER|CLUSTER BY .*(?:not allowed|cannot|not supported)|(?i)clustering columns? .*(?:not|cannot|mismatch)",
        ),
        (
            Cause::DeltaConflict,
            r"DELTA_(?:CONCURRENT_|METADATA_CHANGED|PROTOCOL_CHANGED|MAX_COMMIT_RETRIES)|Concurrent(?:Append|DeleteRead|DeleteDelete|Transaction|Write|Modification)Exception: .*(?:concurrent|Conflict)|(?:MetadataChanged|ProtocolChanged)Exception|by a concurrent update|Conflicting commit:",
        ),
        (
            Cause::Dependency,
            r"\b(?:NoSuchMethodError|NoSuchFieldError|NoClassDefFoundError|ClassNotFoundException|AbstractMethodError|IncompatibleClassChangeError|UnsupportedClassVersionError|UnsatisfiedLinkError|VerifyError|LinkageError|IllegalAccessError|ServiceConfigurationError|ExceptionInInitializerError|InvalidClassException|ModuleNotFoundError|ImportError|PackageNotFoundError)\b",
        ),
        (
            Cause::Dependency,
            r"(?i)No module named|failed to find data source|DATA_SOURCE_NOT_FOUND|no filesystem for scheme|has different version .* than that in driver|PYTHON_VERSION_MISMATCH|different (?:minor )?versions.*python|Cannot run program .python|PACKAGE_NOT_INSTALLED|UNSUPPORTED_PACKAGE_VERSION|serialVersionUID|unresolved dependency|Python worker failed to connect back|GLIBC.*not found|no suitable driver",
        ),
        (
            Cause::Python,
            r"Python worker exited unexpectedly|PYTHON_WORKER_EXITED|\bMemoryError\b|_ArrayMemoryError|ArrowMemoryError|malloc of size \d+ failed|Unable to allocate .* for an array",
        ),
        (
            Cause::ExecutorHeap,
            r"OutOfMemoryError|GC overhead limit|Java heap space|[Uu]nable to acquire \d+ bytes of memory|[Cc]an.t acquire \d+ bytes memory|no enough memory to build hash map|UNABLE_TO_ACQUIRE_MEMORY|SparkOutOfMemoryError|(?i:exit(?:ed)?(?: with)?[ _]?(?:exit )?(?:code|status)?:? ?52\b)|driver has stopped unexpectedly|Driver is (?:up but )?not responsive.*GC",
        ),
        (
            Cause::Heartbeat,
            r"no recent heartbeats|[Hh]eartbeat timed out|heartbeatInterval|heartbeat.*timeout|Cannot receive any reply|(?:rpc\.(?:ask|lookup)Timeout|spark\.network\.timeout)",
        ),
        (
            Cause::Throttle,
            r"(?i)slow ?down|reduce your request rate|too ?many ?requests|throttl|rate exceeded|requestlimitexceeded|server ?(?:is )?busy|status code:? (?:503|429)|\b(?:503|429)\b.*(?:service unavailable|too many)|over the account limit|provisionedthroughput",
        ),
        (
            Cause::Auth,
            r"(?i)access ?denied|accesscontrolexception|access control|expired ?token|token (?:is |has |was )?expired|invalid(?:accesskeyid|token|clienttokenid|authenticationtoken)|signaturedoesnotmatch|authorizationpermissionmismatch|authorization(?:failure|permission)|status code:? (?:401|403)|\b(?:401|403)\b.{0,20}(?:forbidden|unauthori[sz]ed)|\bforbidden\b|unauthori[sz]ed|gss initiate failed|unable to load (?:aws )?credentials|no aws credentials|does not have (?:permission|privilege|sufficient)|permission_denied|insufficient_p(?:ermissions|rivileges)|insufficient privileges|not authorized|kerberos|authenticationfailed|user does not have",
        ),
        (
            Cause::FileMissing,
            r"FILE_NOT_EXIST|FileNotFoundException|DELTA_FILE_NOT_FOUND|underlying files have been updated|(?i)the specified (?:key|blob) does not exist|\bNoSuchKey\b|BlobNotFound",
        ),
        (
            Cause::Schema,
            r"SchemaColumnConvertNotSupported|column cannot be converted|COLUMN_DATA_TYPE_MISMATCH|DELTA_FAILED_TO_MERGE_FIELDS|DELTA_MERGE_INCOMPATIBLE|DELTA_SCHEMA|DELTA_METADATA_MISMATCH|schema mismatch|[Ff]ailed to merge (?:fields|incompatible)|CANNOT_MERGE|INCOMPATIBLE_DATA_FOR_TABLE|[Mm]alformed (?:records?|CSV)|MALFORMED_|_corrupt_record|is not a Parquet file|[Cc]ould not read footer|CANNOT_READ_FILE_FOOTER|FAILED_READ_FILE|[Cc]orrupt (?:parquet|footer|file|block|record)|can not read value at|Expected magic number|BadRecordException|INCONSISTENT_BEHAVIOR_CROSS_VERSION\.(?:READ|WRITE)_ANCIENT|UnknownFieldException|UNKNOWN_FIELD_EXCEPTION|_LEGACY_ERROR_TEMP_2\d{3}.*schema",
        ),
        (
            Cause::Analysis,
            r"\b(?:AnalysisException|ParseException|NoSuchTableException|NoSuchDatabaseException|TableAlreadyExistsException|ExtendedAnalysisException)\b|UNRESOLVED_(?:COLUMN|ROUTINE|FIELD|MAP)|TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND|PARSE_SYNTAX_ERROR|PATH_NOT_FOUND|PATH_ALREADY_EXISTS|AMBIGUOUS_REFERENCE|MISSING_(?:AGGREGATION|GROUP_BY|ATTRIBUTES)|DATATYPE_MISMATCH|UNSUPPORTED_(?:FEATURE|EXPR|SUBQUERY)|TABLE_OR_VIEW_ALREADY_EXISTS|INVALID_(?:PARAMETER|SQL)|cannot resolve '|Table or view not found|Path does not exist|extraneous input|mismatched input",
        ),
        (
            Cause::Startup,
            r"(?i)init(?:ialization)?[ _-]?script|initial job has not accepted any resources|sparkcontext did not initialize|insufficientinstancecapacity|insufficient capacity|cloud_provider_|cluster (?:was )?terminated|failed to (?:start|launch) (?:the )?cluster|imagepullbackoff|errimagepull|unschedulable|insufficient (?:cpu|memory)\b|could not (?:reach|start) (?:the )?driver|driver (?:did not|failed to) start|library installation failed|bootstrap|application attempt .* failed .*am container|waiting for (?:the )?spark ?context|quota exceeded",
        ),
        (
            Cause::Cancelled,
            r"(?i)sparkcontext was shut ?down|\bcancell?ed\b(?:.*(?:group|user|part of|because sparkcontext))|stopped sparkcontext|keyboardinterrupt|task ?killed|stage cancelled|another attempt succeeded|sparkcontext has been shutdown|spark_job_cancelled|\bjob \d+ cancell?ed\b|query \[id = [^\]]*\] was stopped|\binterrupted(?:io)?exception\b|closedbyinterruptexception",
        ),
        (
            Cause::Timeout,
            r"(?i)run (?:exceeded|timed out)|job timed out|exceeded (?:the )?(?:configured |maximum |max )?(?:timeout|run ?time|duration|execution time)|timeout of \d+|timed ?out after|timeout_seconds|queryexecutiontimeout|QUERY_EXECUTION_TIMEOUT|TIMEDOUT|Timed ?out",
        ),
    ];
    #[allow(clippy::expect_used)] // Constants that a test compiles.
    let set = RegexSet::new(table.iter().map(|(_, words)| words)).expect("constant patterns compile");
    (set, table.iter().map(|(cause, _)| *cause).collect())
});

/// What an incident is; `None` when it says nothing that could be judged.
#[must_use]
pub fn of(incident: &Incident) -> Option<Cause> {
    let heads: Vec<&str> = incident.heads().collect();
    let class = incident.class.as_deref().unwrap_or_default();
    let text = [class, incident.error_class.as_deref().unwrap_or_default(), &heads.join("\n")].join("\n");
    let found = by_words(incident, &text);
    found.or_else(|| by_origin(incident))
}

fn by_words(incident: &Incident, text: &str) -> Option<Cause> {
    let lost = matches!(incident.origin, Origin::Executor | Origin::TaskOfLostExecutor);
    let (set, causes) = &*WORDS;
    let matching = set.matches(text).into_iter().map(|at| causes[at]);
    let cause = matching.into_iter().find(|&cause| fits(cause, incident, text, lost))?;
    Some(refine(cause, incident, text))
}

/// Words that mean a cause only in their place.
fn fits(cause: Cause, incident: &Incident, text: &str, lost: bool) -> bool {
    match cause {
        // Of an executor, or of a machine in plain words; an exception about "spot prices" is none.
        Cause::Spot | Cause::Decommission | Cause::Autoscale => lost || incident.class.is_none(),
        // Both limits stand in one line of YARN: the one that is exceeded counts.
        Cause::ContainerVirtual => !beyond_physical(text),
        Cause::Fetch | Cause::ExecutorLost | Cause::Code => false,
        // A fetch that timed out or was refused is a fetch failure.
        Cause::Timeout | Cause::Heartbeat | Cause::Auth | Cause::Throttle | Cause::Startup
            if incident.origin == Origin::Fetch =>
        {
            false
        }
        Cause::Timeout | Cause::Startup | Cause::Cancelled => !is_futures_timeout(text) || cause != Cause::Timeout,
        // Local files of Spark itself, and files that are there but cannot be opened.
        Cause::FileMissing => {
            let other = ["blockmgr-", "shuffle_", "(Permission denied)", "(Too many open files)", "(Is a directory)"];
            !lost && incident.origin != Origin::Fetch && !other.iter().any(|words| text.contains(words))
        }
        Cause::Schema | Cause::Analysis | Cause::Auth | Cause::Throttle if lost => false,
        // A python library may be named in the trace of a crashed worker: the worker's own words count.
        Cause::Python => !is_native_crash(text),
        _ => true,
    }
}

fn refine(cause: Cause, incident: &Incident, text: &str) -> Cause {
    match cause {
        Cause::ExecutorHeap if is_driver(incident, text) => Cause::DriverHeap,
        Cause::Python if is_driver(incident, text) && incident.origin == Origin::Text => Cause::DriverHeap,
        _ => cause,
    }
}

fn by_origin(incident: &Incident) -> Option<Cause> {
    let text = || [incident.message.as_str(), &incident.stack].join("\n");
    if is_fetch(incident) {
        return Some(Cause::Fetch);
    }
    if let Some(cause) = futures_timeout(&text()) {
        return Some(cause);
    }
    match incident.origin {
        Origin::Executor | Origin::TaskOfLostExecutor => Some(Cause::ExecutorLost),
        // The abort of a job quotes what its task said.
        _ if incident.class.as_deref() == Some("ExecutorLostFailure") => Some(Cause::ExecutorLost),
        Origin::Task => Some(Cause::Code),
        // A record of logging without an exception is no failure; a driver's exit code is.
        _ => (incident.class.is_some() || incident.error_class.is_some()).then_some(Cause::Code),
    }
}

/// Whether a job ended because the context was stopped under it, and for no reason of its own.
#[must_use]
pub fn is_shutdown(text: &str) -> bool {
    ["SparkContext was shut down", "SparkContext has been shutdown"].iter().any(|words| text.contains(words))
}

fn is_fetch(incident: &Incident) -> bool {
    let words = ["FetchFailed", "Missing an output location for shuffle", "Unable to fetch", "Failed to get block"];
    incident.origin == Origin::Fetch
        || incident.class.as_deref().is_some_and(|c| c.ends_with("FetchFailedException"))
        || incident.heads().any(|line| words.iter().any(|w| line.contains(w)))
}

fn is_futures_timeout(text: &str) -> bool {
    text.contains("Futures timed out after")
}

/// `Futures timed out after [n seconds]`: what it waited for shows in its frames and in n.
fn futures_timeout(text: &str) -> Option<Cause> {
    static SECONDS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"Futures timed out after \[?(\d+) ?(milli)?seconds").ok());
    let found = SECONDS.as_ref()?.captures(text)?;
    let scale = if found.get(2).is_some() { 0.001 } else { 1.0 };
    let seconds = found[1].parse::<f64>().ok()? * scale;
    let has = |word: &str| text.contains(word);
    Some(if has("roadcast") {
        Cause::BroadcastTimeout
    } else if has("eartbeat") || has("RpcTimeout") || has("rpc") || seconds == 10.0 {
        Cause::Heartbeat
    } else if has("ApplicationMaster") || seconds == 100.0 {
        Cause::Startup
    } else if seconds == 300.0 {
        // The default of spark.sql.broadcastTimeout; nothing else of Spark waits that long.
        Cause::BroadcastTimeout
    } else {
        Cause::Timeout
    })
}

/// YARN's line gives both usages; `beyond the 'PHYSICAL' memory limit` says which one counts.
fn beyond_physical(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.contains("beyond physical")
        || lower.contains("beyond the 'physical'")
        || lower.contains("beyond the physical")
}

/// A segmentation fault takes a worker or a JVM down without any memory being short.
#[must_use]
pub fn is_native_crash(text: &str) -> bool {
    ["SIGSEGV", "SIGABRT", "Segmentation fault", "segfault", "Fatal Python error", "fatal error has been detected"]
        .iter()
        .any(|word| text.contains(word))
}

/// Whether an error of memory was the driver's: its threads and calls, or a trace without a task.
fn is_driver(incident: &Incident, text: &str) -> bool {
    if matches!(incident.origin, Origin::Task | Origin::TaskOfLostExecutor | Origin::Executor) {
        return false;
    }
    let whole = [text, &incident.stack].join("\n");
    let has = |words: &[&str]| words.iter().any(|w| whole.contains(w));
    let of_executor = [
        "Executor task launch worker",
        "executor.Executor$TaskRunner",
        "scheduler.Task.run",
        "Lost task ",
        "Exception in task ",
        "ShuffleMapTask",
        "ResultTask",
        "CoarseGrainedExecutorBackend",
        "exit code 52",
        "exited with code 52",
    ];
    let of_driver = [
        "thread \"main\"",
        "dag-scheduler-event-loop",
        "task-result-getter",
        "broadcast-exchange",
        "spark-listener",
        "map-output-dispatcher",
        "thread \"Driver\"",
        "DAGScheduler.",
        "collectToPython",
        "toPandas",
        "Dataset.collect",
        "RDD.collect",
        "driver has stopped",
        "TaskResultGetter",
        "Py4JJavaError",
        "org.apache.spark.sql.Dataset.",
        ".collect()",
        "Driver is",
        "driver: ",
    ];
    if has(&of_executor) { has(&["driver has stopped"]) } else { has(&of_driver) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, wanted: Option<Cause>) {
        let app = read::paste::read(text, None);
        let incidents = app.pasted.map(|p| p.incidents).unwrap_or_default();
        assert_eq!(incidents.first().and_then(of), wanted, "{text}\n{incidents:#?}");
    }

    #[test]
    fn what_people_paste() {
        use Cause::*;
        let task = "26/01/09 10:00:00 WARN TaskSetManager: Lost task 3.0 in stage 5.0 (TID 71) (node-4 executor 9): ";
        for (line, cause) in [
            ("java.lang.OutOfMemoryError: GC overhead limit exceeded", ExecutorHeap),
            (
                "org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes of memory, got 0.",
                ExecutorHeap,
            ),
            (
                "org.apache.spark.SparkException: Can't acquire 134217728 bytes memory to build hash relation, got 46091587 bytes.",
                ExecutorHeap,
            ),
            ("com.esotericsoftware.kryo.KryoException: Buffer overflow. Available: 0, required: 93", Serializer),
            ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", Python),
            (
                "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n  File \"/a/b.py\", line 3, in f\nModuleNotFoundError: No module named 'rapidfuzz'",
                Dependency,
            ),
            (
                "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n  File \"/a/b.py\", line 3, in f\nMemoryError",
                Python,
            ),
            (
                "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n  File \"/a/b.py\", line 3, in f\nRuntimeError: Python in worker has different version 3.9 than that in driver 3.11, PySpark cannot run with different minor versions.",
                Dependency,
            ),
            ("java.io.IOException: Disk quota exceeded", DiskFull),
            (
                "com.amazonaws.services.s3.model.AmazonS3Exception: Please reduce your request rate. (Service: Amazon S3; Status Code: 503; Error Code: SlowDown)",
                Throttle,
            ),
            ("java.nio.file.AccessDeniedException: s3a://lake/x: getFileStatus: Forbidden (Status Code: 403)", Auth),
            (
                "com.amazonaws.services.s3.model.AmazonS3Exception: The provided token has expired. (Error Code: ExpiredToken)",
                Auth,
            ),
            ("java.lang.ClassNotFoundException: org.postgresql.Driver", Dependency),
            (
                "org.apache.spark.sql.execution.datasources.SchemaColumnConvertNotSupportedException: column: [qty], physicalType: INT64, logicalType: string",
                Schema,
            ),
            (
                "java.lang.RuntimeException: s3a://lake/t/part-0.parquet is not a Parquet file. Expected magic number at tail",
                Schema,
            ),
            (
                "FetchFailed(BlockManagerId(4, node-9, 7337, None), shuffleId=2, mapIndex=7, mapId=70, reduceId=3, message=",
                Fetch,
            ),
            ("org.apache.spark.shuffle.MetadataFetchFailedException: Missing an output location for shuffle 2", Fetch),
            (
                "ExecutorLostFailure (executor 9 exited caused by one of the running tasks) Reason: Container killed by YARN for exceeding memory limits. 12.1 GB of 12 GB physical memory used.",
                Container,
            ),
            (
                "ExecutorLostFailure (executor 9 exited unrelated to the running tasks) Reason: Container marked as failed. Exit status: -102. Container preempted by scheduler",
                Spot,
            ),
            (
                "ExecutorLostFailure (executor 9 exited caused by one of the running tasks) Reason: Command exited with code 137",
                ExecutorLost,
            ),
            (
                "ExecutorLostFailure (executor 9 exited caused by one of the running tasks) Reason: The executor with id 9 exited with exit code 137(SIGKILL, possible container OOM).",
                Container,
            ),
            ("java.lang.ArithmeticException: divide by zero", Code),
            ("java.io.IOException: No space left on device", DiskFull),
        ] {
            check(&format!("{task}{line}"), Some(cause));
        }
    }

    #[test]
    fn what_the_driver_says() {
        use Cause::*;
        for (text, cause) in [
            (
                "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space\n\tat org.apache.spark.sql.Dataset.collect(Dataset.scala:1)",
                DriverHeap,
            ),
            (
                "java.util.concurrent.TimeoutException: Futures timed out after [300 seconds]\n\tat org.apache.spark.sql.execution.joins.BroadcastHashJoinExec.doExecute(B.scala:1)",
                BroadcastTimeout,
            ),
            (
                "org.apache.spark.SparkException: Could not execute broadcast in 300 secs. You can increase the timeout for broadcasts via spark.sql.broadcastTimeout",
                BroadcastTimeout,
            ),
            (
                "org.apache.spark.rpc.RpcTimeoutException: Futures timed out after [10 seconds]. This timeout is controlled by spark.executor.heartbeatInterval",
                Heartbeat,
            ),
            (
                "org.apache.spark.SparkException: Cannot broadcast the table that is larger than 8.0 GiB: 11.2 GiB.",
                BroadcastTooLarge,
            ),
            (
                "java.lang.OutOfMemoryError: Not enough memory to build and broadcast the table to all worker nodes.",
                BroadcastTooLarge,
            ),
            (
                "org.apache.spark.SparkException: Job aborted due to stage failure: Serialized task 4:0 was 141234567 bytes, which exceeds max allowed: spark.rpc.message.maxSize (134217728 bytes).",
                TaskSize,
            ),
            (
                "pyspark.errors.exceptions.captured.AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `qty` cannot be resolved.",
                Analysis,
            ),
            ("[TABLE_OR_VIEW_NOT_FOUND] The table or view `shop`.`orders` cannot be found.", Analysis),
            ("[DELTA_FAILED_TO_MERGE_FIELDS] Failed to merge fields 'qty' and 'qty'", Schema),
            (
                "delta.exceptions.ProtocolChangedException: The protocol version of the Delta table has been changed by a concurrent update.",
                DeltaConflict,
            ),
            (
                "io.delta.exceptions.ConcurrentDeleteReadException: This transaction attempted to read one or more files that were deleted",
                DeltaConflict,
            ),
            (
                "[DELTA_CLUSTERING_COLUMN_MISSING_STATS] Clustering requires clustering columns to have stats.",
                DeltaClustering,
            ),
            (
                "26/01/09 10:00:00 WARN HeartbeatReceiver: Removing executor 5 with no recent heartbeats: 131072 ms exceeds timeout 120000 ms",
                Heartbeat,
            ),
            ("26/01/09 10:00:00 ERROR TaskSchedulerImpl: Lost executor 5 on node-4: worker lost", ExecutorLost),
            (
                "26/01/09 10:00:00 ERROR TaskSchedulerImpl: Lost executor 5 on node-4: Executor decommission: spot instance interruption",
                Spot,
            ),
            ("26/01/09 10:00:00 INFO K: Executor 5 on node-4 removed: Executor killed by driver.", Autoscale),
            (
                "26/01/09 10:00:00 ERROR TaskSchedulerImpl: Lost executor 5 on node-4: Container container_1_1_01_000007 exited from explicit termination request.",
                Autoscale,
            ),
            (
                "26/01/09 10:00:00 WARN TaskSchedulerImpl: Initial job has not accepted any resources; check your cluster UI",
                Startup,
            ),
            ("java.sql.SQLException: No suitable driver", Dependency),
        ] {
            check(text, Some(cause));
        }
    }

    #[test]
    fn yarn_names_both_limits_and_means_one() {
        let line = |which: &str| {
            format!(
                "26/01/09 10:00:00 ERROR X: Lost executor 5 on node-4: Container [pid=1] is running beyond the '{which}' memory limit. Current usage: 4.1 GB of 4 GB physical memory used; 6.0 GB of 8.4 GB virtual memory used. Killing container."
            )
        };
        check(&line("PHYSICAL"), Some(Cause::Container));
        check(&line("VIRTUAL"), Some(Cause::ContainerVirtual));
    }
}
