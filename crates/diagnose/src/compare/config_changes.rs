//! Settings that differ between two runs and can matter.

use model::Application;
use serde::Serialize;
use std::fmt;

/// A setting with its two values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigChange {
    /// Key, or `Spark version`, `Java Version`.
    pub key: String,
    /// Value in the baseline; absent when not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Value in the new run; absent when not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// Whether it can change plans or the number of partitions.
    pub changes_plans: bool,
}

impl fmt::Display for ConfigChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |v: &Option<String>| v.clone().unwrap_or_else(|| "unset".to_owned());
        write!(f, "{} changed from {} to {}", self.key, shown(&self.base), shown(&self.new))
    }
}

/// Prefixes of settings that matter to run time.
const MATTERS: [&str; 18] = [
    "spark.sql.adaptive.",
    "spark.sql.shuffle.",
    "spark.sql.autoBroadcast",
    "spark.sql.broadcast",
    "spark.sql.files.",
    "spark.sql.join.",
    "spark.sql.optimizer.",
    "spark.sql.cbo.",
    "spark.sql.execution.",
    "spark.executor.",
    "spark.driver.memory",
    "spark.memory.",
    "spark.default.parallelism",
    "spark.dynamicAllocation.",
    "spark.speculation",
    "spark.task.",
    "spark.shuffle.",
    "spark.serializer",
];

/// Among those, prefixes of settings that can change plans or partitions.
const PLANS: [&str; 8] = [
    "spark.sql.adaptive.",
    "spark.sql.shuffle.",
    "spark.sql.autoBroadcast",
    "spark.sql.join.",
    "spark.sql.optimizer.",
    "spark.sql.cbo.",
    "spark.sql.files.",
    "spark.default.parallelism",
];

/// Settings that are another for every run, whatever their prefix.
const IDENTITY: [&str; 4] =
    ["spark.executor.id", "spark.executor.extraJavaOptions", "spark.shuffle.push.", "spark.executorEnv."];

/// Differences that matter, sorted by key.
#[must_use]
pub fn changes(base: &Application, new: &Application) -> Vec<ConfigChange> {
    let mut changes = versions(base, new);
    let keys: std::collections::BTreeSet<_> =
        base.environment.spark.keys().chain(new.environment.spark.keys()).filter(|k| matters(k)).collect();
    for key in keys {
        let (old, now) = (base.conf(key), new.conf(key));
        if old != now {
            changes.push(ConfigChange {
                key: key.to_string(),
                base: old.map(str::to_owned),
                new: now.map(str::to_owned),
                changes_plans: PLANS.iter().any(|p| key.starts_with(p)),
            });
        }
    }
    changes
}

fn matters(key: &str) -> bool {
    MATTERS.iter().any(|p| key.starts_with(p)) && !IDENTITY.iter().any(|p| key.starts_with(p))
}

fn versions(base: &Application, new: &Application) -> Vec<ConfigChange> {
    let java = |app: &Application| app.environment.jvm.get("Java Version").map(|v| v.to_string());
    let spark = |app: &Application| Some(app.spark_version.to_string()).filter(|v| !v.is_empty());
    [("Spark version", spark(base), spark(new), true), ("Java version", java(base), java(new), false)]
        .into_iter()
        .filter(|(_, old, now, _)| old != now)
        .map(|(key, base, new, changes_plans)| ConfigChange { key: key.to_owned(), base, new, changes_plans })
        .collect()
}
