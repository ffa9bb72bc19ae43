//! Events as Spark writes them, all but the task events. Absent fields take Spark's defaults;
//! unknown fields are passed over.

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// A text that is kept only until the fold has shared it.
pub(super) type Str = Box<str>;

#[derive(Debug, Deserialize)]
pub(super) struct LogStart {
    #[serde(rename = "Spark Version")]
    pub spark_version: Str,
}

/// First line of each part of a Databricks log, instead of `SparkListenerLogStart`.
#[derive(Debug, Deserialize)]
pub(super) struct DatabricksStart {
    #[serde(rename = "Spark Version")]
    pub spark_version: Str,
    #[serde(rename = "Timestamp", default)]
    pub time_ms: Option<i64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ApplicationStart {
    #[serde(rename = "App Name")]
    pub name: Str,
    #[serde(rename = "App ID", default)]
    pub id: Option<Str>,
    #[serde(rename = "Timestamp")]
    pub time_ms: i64,
    #[serde(rename = "User", default)]
    pub user: Option<Str>,
    #[serde(rename = "App Attempt ID", default)]
    pub attempt_id: Option<Str>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ApplicationEnd {
    #[serde(rename = "Timestamp")]
    pub time_ms: i64,
    #[serde(rename = "ExitCode", default)]
    pub exit_code: Option<i32>,
}

/// Settings; a value that is no text is shown as its JSON.
#[derive(Debug, Default, Deserialize)]
pub(super) struct EnvironmentUpdate {
    #[serde(rename = "Spark Properties", default)]
    pub spark: Map,
    #[serde(rename = "System Properties", default)]
    pub system: Map,
    #[serde(rename = "Hadoop Properties", default)]
    pub hadoop: Map,
    #[serde(rename = "Metrics Properties", default)]
    pub metrics: Map,
    #[serde(rename = "JVM Information", default)]
    pub jvm: Map,
    #[serde(rename = "Classpath Entries", default)]
    pub class_path: Map,
}

#[derive(Debug, Deserialize)]
pub(super) struct BlockManagerId {
    #[serde(rename = "Executor ID")]
    pub executor: Str,
    #[serde(rename = "Host", default)]
    pub host: Str,
    #[serde(rename = "Port", default)]
    pub port: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct BlockManagerAdded {
    #[serde(rename = "Block Manager ID")]
    pub id: BlockManagerId,
    #[serde(rename = "Maximum Memory", default)]
    pub max_bytes: i64,
    #[serde(rename = "Maximum Onheap Memory", default)]
    pub max_on_heap_bytes: Option<i64>,
    #[serde(rename = "Maximum Offheap Memory", default)]
    pub max_off_heap_bytes: Option<i64>,
    #[serde(rename = "Timestamp", default)]
    pub time_ms: Option<i64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ExecutorAdded {
    #[serde(rename = "Timestamp", default)]
    pub time_ms: Option<i64>,
    #[serde(rename = "Executor ID")]
    pub id: Str,
    #[serde(rename = "Executor Info")]
    pub info: ExecutorInfo,
}

#[derive(Debug, Deserialize)]
pub(super) struct ExecutorInfo {
    #[serde(rename = "Host", default)]
    pub host: Str,
    #[serde(rename = "Total Cores", default)]
    pub cores: u32,
    #[serde(rename = "Log Urls", default)]
    pub log_urls: Map,
    #[serde(rename = "Attributes", default)]
    pub attributes: Map,
    #[serde(rename = "Resources", default)]
    pub resources: BTreeMap<String, Resource>,
    #[serde(rename = "Resource Profile Id", default)]
    pub resource_profile: u32,
}

/// What an executor was given of a resource.
#[derive(Debug, Deserialize)]
pub(super) struct Resource {
    #[serde(default)]
    pub addresses: Vec<Str>,
}

/// A process that is no executor.
#[derive(Debug, Deserialize)]
pub(super) struct ProcessAdded {
    #[serde(rename = "time", default)]
    pub time_ms: Option<i64>,
    #[serde(rename = "processId")]
    pub id: Str,
    pub info: ProcessInfo,
}

#[derive(Debug, Deserialize)]
pub(super) struct ProcessInfo {
    #[serde(rename = "hostPort", default)]
    pub host_port: Str,
    #[serde(default)]
    pub cores: u32,
    #[serde(rename = "logUrlInfo", default)]
    pub logs: Map,
}

#[derive(Debug, Deserialize)]
pub(super) struct ExecutorRemoved {
    #[serde(rename = "Timestamp", default)]
    pub time_ms: Option<i64>,
    #[serde(rename = "Executor ID")]
    pub id: Str,
    #[serde(rename = "Removed Reason", default)]
    pub reason: Option<Str>,
}

/// All exclusion events, excluded or un-excluded, of an executor or a node.
#[derive(Debug, Deserialize)]
pub(super) struct Exclusion {
    #[serde(rename = "executorId", default)]
    pub executor: Option<Str>,
    #[serde(rename = "hostId", default)]
    pub host: Option<Str>,
    #[serde(rename = "time", default)]
    pub time_ms: i64,
    #[serde(rename = "taskFailures", default)]
    pub task_failures: u32,
    #[serde(rename = "stageId", default)]
    pub stage: Option<u32>,
    #[serde(rename = "stageAttemptId", default)]
    pub stage_attempt: u32,
}

#[derive(Debug, Deserialize)]
pub(super) struct ResourceProfileAdded {
    #[serde(rename = "Resource Profile Id")]
    pub id: u32,
    #[serde(rename = "Executor Resource Requests", default)]
    pub executor: BTreeMap<String, ResourceRequest>,
    #[serde(rename = "Task Resource Requests", default)]
    pub task: BTreeMap<String, ResourceRequest>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ResourceRequest {
    #[serde(rename = "Amount", default)]
    pub amount: f64,
    #[serde(rename = "Discovery Script", default)]
    pub discovery_script: Option<Str>,
    #[serde(rename = "Vendor", default)]
    pub vendor: Option<Str>,
}

/// Executor metrics of one stage.
#[derive(Debug, Deserialize)]
pub(super) struct StageExecutorMetrics {
    #[serde(rename = "Executor ID")]
    pub executor: Str,
    #[serde(rename = "Stage ID", default)]
    pub stage: Option<u32>,
    #[serde(rename = "Stage Attempt ID", default)]
    pub stage_attempt: u32,
    #[serde(rename = "Executor Metrics", default)]
    pub metrics: BTreeMap<String, i64>,
}

/// Executor metrics between heartbeats; only the driver's are logged.
#[derive(Debug, Deserialize)]
pub(super) struct ExecutorMetricsUpdate {
    #[serde(rename = "Executor ID")]
    pub executor: Str,
    #[serde(rename = "Executor Metrics Updated", default)]
    pub updates: Vec<ExecutorMetrics>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ExecutorMetrics {
    #[serde(rename = "Executor Metrics", default)]
    pub metrics: BTreeMap<String, i64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct JobStart {
    #[serde(rename = "Job ID")]
    pub id: u32,
    #[serde(rename = "Submission Time", default)]
    pub time_ms: Option<i64>,
    #[serde(rename = "Stage IDs", default)]
    pub stage_ids: Vec<u32>,
    #[serde(rename = "Stage Infos", default)]
    pub stages: Vec<StageInfo>,
    #[serde(rename = "Properties", default)]
    pub properties: Properties,
}

#[derive(Debug, Deserialize)]
pub(super) struct JobEnd {
    #[serde(rename = "Job ID")]
    pub id: u32,
    #[serde(rename = "Completion Time", default)]
    pub time_ms: Option<i64>,
    #[serde(rename = "Job Result")]
    pub result: JobResult,
}

#[derive(Debug, Deserialize)]
pub(super) struct JobResult {
    #[serde(rename = "Result")]
    pub result: Str,
    #[serde(rename = "Exception", default)]
    pub exception: Option<JobException>,
}

#[derive(Debug, Deserialize)]
pub(super) struct JobException {
    #[serde(rename = "Message", default)]
    pub message: Option<Str>,
}

/// `StageSubmitted` and `StageCompleted`; only the former has properties.
#[derive(Debug, Deserialize)]
pub(super) struct StageEvent {
    #[serde(rename = "Stage Info")]
    pub info: StageInfo,
    #[serde(rename = "Properties", default)]
    pub properties: Option<Properties>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StageInfo {
    #[serde(rename = "Stage ID")]
    pub id: u32,
    #[serde(rename = "Stage Attempt ID", default)]
    pub attempt: u32,
    #[serde(rename = "Stage Name", default)]
    pub name: Str,
    #[serde(rename = "Number of Tasks", default)]
    pub num_tasks: u32,
    #[serde(rename = "RDD Info", default)]
    pub rdds: Vec<RddInfo>,
    #[serde(rename = "Parent IDs", default)]
    pub parents: Vec<u32>,
    #[serde(rename = "Details", default)]
    pub details: Str,
    #[serde(rename = "Submission Time", default)]
    pub submitted_ms: Option<i64>,
    #[serde(rename = "Completion Time", default)]
    pub completed_ms: Option<i64>,
    #[serde(rename = "Failure Reason", default)]
    pub failure: Option<Str>,
    #[serde(rename = "Accumulables", default, deserialize_with = "user_accumulables")]
    pub accumulables: Vec<UserAccumulable>,
    #[serde(rename = "Resource Profile Id", default)]
    pub resource_profile: u32,
    #[serde(rename = "Shuffle Push Enabled", default)]
    pub pushes: bool,
    #[serde(rename = "Shuffle Push Mergers Count", default)]
    pub mergers: u32,
}

#[derive(Debug, Deserialize)]
pub(super) struct RddInfo {
    #[serde(rename = "RDD ID")]
    pub id: u32,
    #[serde(rename = "Name", default)]
    pub name: Str,
    /// JSON in a text.
    #[serde(rename = "Scope", default)]
    pub scope: Option<Str>,
    #[serde(rename = "Callsite", default)]
    pub call_site: Str,
    #[serde(rename = "Parent IDs", default)]
    pub parents: Vec<u32>,
    #[serde(rename = "Storage Level", default)]
    pub level: StorageLevel,
    #[serde(rename = "Barrier", default)]
    pub barrier: bool,
    #[serde(rename = "Number of Partitions", default)]
    pub partitions: u32,
    #[serde(rename = "Number of Cached Partitions", default)]
    pub cached_partitions: u32,
    #[serde(rename = "Memory Size", default)]
    pub memory_bytes: i64,
    #[serde(rename = "Disk Size", default)]
    pub disk_bytes: i64,
}

/// What an RDD's `Scope` says.
#[derive(Debug, Deserialize)]
pub(super) struct Scope {
    #[serde(default)]
    pub id: Option<Str>,
    #[serde(default)]
    pub name: Option<Str>,
}

/// `Use Tachyon` (1.3) and `Use ExternalBlockStore` (1.5) are what later is off-heap.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct StorageLevel {
    #[serde(rename = "Use Disk", default)]
    pub disk: bool,
    #[serde(rename = "Use Memory", default)]
    pub memory: bool,
    #[serde(rename = "Use Off Heap", alias = "Use Tachyon", alias = "Use ExternalBlockStore", default)]
    pub off_heap: bool,
    #[serde(rename = "Deserialized", default)]
    pub deserialized: bool,
    #[serde(rename = "Replication", default)]
    pub replication: u32,
}

#[derive(Debug, Deserialize)]
pub(super) struct UnpersistRdd {
    #[serde(rename = "RDD ID")]
    pub id: u32,
}

#[derive(Debug, Deserialize)]
pub(super) struct BlockUpdated {
    #[serde(rename = "Block Updated Info")]
    pub info: BlockUpdatedInfo,
}

#[derive(Debug, Deserialize)]
pub(super) struct BlockUpdatedInfo {
    #[serde(rename = "Block Manager ID")]
    pub manager: BlockManagerId,
    #[serde(rename = "Block ID")]
    pub block: Str,
    #[serde(rename = "Storage Level", default)]
    pub level: StorageLevel,
    #[serde(rename = "Memory Size", default)]
    pub memory_bytes: i64,
    #[serde(rename = "Disk Size", default)]
    pub disk_bytes: i64,
}

/// The properties of a job or stage that tell what it was run for. Databricks writes hundreds of
/// others, which are passed over.
#[derive(Debug, Default)]
pub(super) struct Properties(pub Vec<(Str, Str)>);

impl Properties {
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| &**k == key).map(|(_, v)| &**v)
    }

    pub fn number(&self, key: &str) -> Option<i64> {
        self.get(key)?.parse().ok()
    }
}

/// Properties with a meaning of their own in the model.
const NAMED: [&str; 10] = [
    "spark.sql.execution.id",
    "spark.sql.execution.root.id",
    "spark.job.description",
    "spark.jobGroup.id",
    "spark.job.tags",
    "callSite.short",
    "spark.scheduler.pool",
    "sql.streaming.queryId",
    "streaming.sql.batchId",
    "spark.rdd.scope",
];

/// Properties that tie a job to whatever started it, kept as they are.
const TIES: [&str; 18] = [
    "spark.databricks.job.id",
    "spark.databricks.job.runId",
    "spark.databricks.job.parentRunId",
    "spark.databricks.job.type",
    "spark.databricks.notebook.id",
    "spark.databricks.notebook.path",
    "spark.databricks.workload.id",
    "spark.databricks.workload.name",
    "spark.databricks.replId",
    "spark.databricks.sessionUUID",
    "spark.databricks.clusterUsageTags.clusterId",
    "spark.databricks.clusterUsageTags.clusterName",
    "spark.databricks.pipelines.analysisId",
    "spark.databricks.execution.rootSqlExecutionId",
    "databricks.operationType",
    "spark.yarn.tags",
    "spark.app.run.id",
    "spark.connect.session.id",
];

/// Beginnings of such properties.
const TIE_PREFIXES: [&str; 3] = ["spark.airflow", "spark.dagster", "spark.openlineage.parent"];

/// Whether a property ties a job to whatever started it.
pub(super) fn is_tie(key: &str) -> bool {
    TIES.contains(&key) || TIE_PREFIXES.iter().any(|p| key.starts_with(p))
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pick;
        impl<'de> Visitor<'de> for Pick {
            type Value = Properties;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("properties")
            }

            fn visit_unit<E: Error>(self) -> Result<Properties, E> {
                Ok(Properties::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Properties, A::Error> {
                let mut picked = Vec::new();
                while let Some(key) = map.next_key::<CowStr<'de>>()? {
                    if NAMED.contains(&&*key.0) || is_tie(&key.0) {
                        if let Some(value) = map.next_value::<Loose>()?.0 {
                            picked.push((key.0.into_owned().into(), value));
                        }
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Properties(picked))
            }
        }
        deserializer.deserialize_any(Pick)
    }
}

/// A text, borrowed where it has no escapes.
pub(super) struct CowStr<'a>(pub std::borrow::Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for CowStr<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = CowStr<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<CowStr<'de>, E> {
                Ok(CowStr(text.into()))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<CowStr<'de>, E> {
                Ok(CowStr(text.to_owned().into()))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A scalar as text; `None` for null, objects and arrays.
#[derive(Debug, Default)]
pub(super) struct Loose(pub Option<Str>);

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Loose;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Loose, E> {
                Ok(Loose(Some(text.into())))
            }

            fn visit_i64<E: Error>(self, n: i64) -> Result<Loose, E> {
                Ok(Loose(Some(n.to_string().into())))
            }

            fn visit_u64<E: Error>(self, n: u64) -> Result<Loose, E> {
                Ok(Loose(Some(n.to_string().into())))
            }

            fn visit_f64<E: Error>(self, n: f64) -> Result<Loose, E> {
                Ok(Loose(Some(n.to_string().into())))
            }

            fn visit_bool<E: Error>(self, b: bool) -> Result<Loose, E> {
                Ok(Loose(Some(b.to_string().into())))
            }

            fn visit_unit<E: Error>(self) -> Result<Loose, E> {
                Ok(Loose(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Loose(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Loose, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Loose(None))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// Texts by key in the order written; `null` is empty.
#[derive(Debug, Default)]
pub(super) struct Map(pub Vec<(Str, Str)>);

impl<'de> Deserialize<'de> for Map {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Map;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("texts by key")
            }

            fn visit_unit<E: Error>(self) -> Result<Map, E> {
                Ok(Map::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Map, A::Error> {
                let mut entries = Vec::new();
                while let Some((key, value)) = map.next_entry::<Str, Loose>()? {
                    entries.push((key, value.0.unwrap_or_default()));
                }
                Ok(Map(entries))
            }
        }
        deserializer.deserialize_any(Entries)
    }
}

/// An accumulable that a user's code made.
#[derive(Debug)]
pub(super) struct UserAccumulable {
    pub id: i64,
    pub name: Str,
    pub value: Str,
}

/// Of a stage's accumulables, those that a user's code made.
fn user_accumulables<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<UserAccumulable>, D::Error> {
    #[derive(Deserialize)]
    struct Accumulable<'a> {
        #[serde(rename = "ID", default)]
        id: i64,
        #[serde(rename = "Name", borrow, default)]
        name: Option<CowStr<'a>>,
        #[serde(rename = "Value", default)]
        value: Loose,
        #[serde(rename = "Internal", default)]
        internal: bool,
        #[serde(rename = "Metadata", borrow, default)]
        metadata: Option<CowStr<'a>>,
    }
    struct Users;
    impl<'de> Visitor<'de> for Users {
        type Value = Vec<UserAccumulable>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("accumulables")
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut users = Vec::new();
            while let Some(a) = seq.next_element::<Accumulable<'de>>()? {
                let sql = a.metadata.is_some_and(|m| m.0 == "sql");
                if !a.internal && !sql {
                    let name = a.name.map(|n| n.0.into_owned().into()).unwrap_or_default();
                    users.push(UserAccumulable { id: a.id, name, value: a.value.0.unwrap_or_default() });
                }
            }
            Ok(users)
        }
    }
    deserializer.deserialize_any(Users)
}
