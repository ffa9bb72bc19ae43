//! Settings that differ: from Spark's defaults, or from another run.

use super::asked::Asked;
use super::failure::{self, Failure};
use super::openapi::words::SettingGroup;
use super::{Answer, json, open};
use crate::History;
use crate::params::Params;
use diagnose::telling::one_line;
use model::{Application, Environment};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use utoipa::{IntoParams, ToSchema};

/// Settings that differ.
#[derive(Serialize, ToSchema)]
#[schema(as = SettingDifferences)]
struct Differences {
    /// What they differ from: `defaults`, or the other run as it was asked for.
    against: String,
    /// The settings, by kind and key.
    rows: Vec<Row>,
}

/// A setting that differs.
#[derive(Serialize, ToSchema)]
#[schema(as = SettingDifference)]
struct Row {
    /// Key, e.g. `spark.sql.shuffle.partitions`.
    key: String,
    /// Value here; null when it was not set.
    value: Option<String>,
    /// Spark's default, or the value of the other run; null when it is not known or was not set.
    other: Option<String>,
    /// Kind of setting.
    #[schema(value_type = SettingGroup)]
    group: &'static str,
}

/// What settings are compared with.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)] // Says what `Params` are asked for.
struct Against {
    /// `defaults` for Spark's defaults, else an application id or `ID/ATTEMPT`.
    #[param(required = false, default = "defaults")]
    against: String,
}

/// Settings that differ from Spark's defaults, or from another run.
///
/// Keys that are another in every run, such as ids and ports, are left out.
#[utoipa::path(
    get, path = "/settings", operation_id = "listSettings", tag = "applications", params(Against),
    responses(
        (status = 200, description = "Settings that differ", body = Differences),
        (status = 404, description = "There is no such application or attempt", body = failure::Body),
    ),
)]
pub(super) async fn show(asked: Asked) -> Answer {
    asked.answer(|history, opened, params| Ok(json(&differences(history, opened.app(), params)?))).await
}

/// Keys that are another in every run, or say where it ran, not how.
const IDENTITY: [&str; 15] = [
    "spark.app.id",
    "spark.app.name",
    "spark.app.startTime",
    "spark.app.submitTime",
    "spark.app.initial.",
    "spark.driver.host",
    "spark.driver.port",
    "spark.driver.appUIAddress",
    "spark.executor.id",
    "spark.repl.",
    "spark.submit.",
    "spark.ui.",
    "spark.eventLog.",
    "spark.yarn.dist.",
    "spark.org.apache.",
];

/// Defaults of Spark 4.0 (of its configuration pages) for the settings that people ask about.
const DEFAULTS: [(&str, &str); 40] = [
    ("spark.broadcast.compress", "true"),
    ("spark.default.parallelism", "cores"),
    ("spark.driver.cores", "1"),
    ("spark.driver.maxResultSize", "1g"),
    ("spark.driver.memory", "1g"),
    ("spark.dynamicAllocation.enabled", "false"),
    ("spark.dynamicAllocation.executorIdleTimeout", "60s"),
    ("spark.dynamicAllocation.maxExecutors", "infinity"),
    ("spark.dynamicAllocation.minExecutors", "0"),
    ("spark.dynamicAllocation.shuffleTracking.enabled", "true"),
    ("spark.executor.cores", "all, or 1 on YARN and Kubernetes"),
    ("spark.executor.instances", "2"),
    ("spark.executor.memory", "1g"),
    ("spark.executor.memoryOverhead", "a tenth of the memory, at least 384m"),
    ("spark.excludeOnFailure.enabled", "false"),
    ("spark.io.compression.codec", "lz4"),
    ("spark.locality.wait", "3s"),
    ("spark.memory.fraction", "0.6"),
    ("spark.memory.offHeap.enabled", "false"),
    ("spark.memory.storageFraction", "0.5"),
    ("spark.network.timeout", "120s"),
    ("spark.rdd.compress", "false"),
    ("spark.scheduler.mode", "FIFO"),
    ("spark.serializer", "org.apache.spark.serializer.JavaSerializer"),
    ("spark.shuffle.compress", "true"),
    ("spark.shuffle.service.enabled", "false"),
    ("spark.speculation", "false"),
    ("spark.sql.adaptive.advisoryPartitionSizeInBytes", "64MB"),
    ("spark.sql.adaptive.coalescePartitions.enabled", "true"),
    ("spark.sql.adaptive.enabled", "true"),
    ("spark.sql.adaptive.skewJoin.enabled", "true"),
    ("spark.sql.adaptive.skewJoin.skewedPartitionFactor", "5.0"),
    ("spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "256MB"),
    ("spark.sql.autoBroadcastJoinThreshold", "10MB"),
    ("spark.sql.broadcastTimeout", "300"),
    ("spark.sql.files.maxPartitionBytes", "128MB"),
    ("spark.sql.join.preferSortMergeJoin", "true"),
    ("spark.sql.shuffle.partitions", "200"),
    ("spark.task.cpus", "1"),
    ("spark.task.maxFailures", "4"),
];

/// What differs from the defaults, or from another application (`against=ID` or `ID/ATTEMPT`).
fn differences(history: &dyn History, app: &Application, params: &Params) -> Result<Differences, Failure> {
    match params.get("against").unwrap_or("defaults") {
        "" | "defaults" => Ok(from_defaults(app)),
        other => {
            let (id, attempt) = other.split_once('/').map_or((other, None), |(id, attempt)| (id, Some(attempt)));
            Ok(from_other(app, open(history, id, attempt)?.app(), other))
        }
    }
}

fn is_identity(key: &str) -> bool {
    IDENTITY.iter().any(|prefix| key.starts_with(prefix))
}

/// What was set; a setting that repeats its default is none.
fn from_defaults(app: &Application) -> Differences {
    let set = app.environment.spark.iter().filter(|(key, _)| !is_identity(key));
    let default = |key: &str| DEFAULTS.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
    let rows = set.filter(|(key, value)| default(key).is_none_or(|default| !value.eq_ignore_ascii_case(default)));
    let row = |(key, value): (&model::Text, &model::Text)| Row {
        key: one_line(key),
        value: Some(one_line(value)),
        other: default(key).map(str::to_owned),
        group: "spark",
    };
    Differences { against: "defaults".to_owned(), rows: rows.map(row).collect() }
}

type Settings = BTreeMap<model::Text, model::Text>;

/// The kinds of settings that two runs are compared in.
fn groups(environment: &Environment) -> [(&'static str, &Settings); 4] {
    let Environment { spark, jvm, hadoop, system, .. } = environment;
    [("spark", spark), ("jvm", jvm), ("hadoop", hadoop), ("system", system)]
}

fn from_other(app: &Application, other: &Application, name: &str) -> Differences {
    let mut rows = Vec::new();
    for ((group, ours), (_, theirs)) in groups(&app.environment).into_iter().zip(groups(&other.environment)) {
        let keys: BTreeSet<&model::Text> = ours.keys().chain(theirs.keys()).collect();
        let differs = keys.into_iter().filter(|key| !is_identity(key) && ours.get(*key) != theirs.get(*key));
        rows.extend(differs.map(|key| Row {
            key: one_line(key),
            value: ours.get(key).map(|value| one_line(value)),
            other: theirs.get(key).map(|value| one_line(value)),
            group,
        }));
    }
    Differences { against: one_line(name), rows }
}
