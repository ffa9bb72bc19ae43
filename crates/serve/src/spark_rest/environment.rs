//! `/environment`: settings, sorted and with secrets redacted.

use model::{Application, ResourceProfile, Text};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EnvironmentInfo<'a> {
    runtime: Runtime<'a>,
    spark_properties: Vec<(&'a str, &'a str)>,
    hadoop_properties: Vec<(&'a str, &'a str)>,
    system_properties: Vec<(&'a str, &'a str)>,
    metrics_properties: Vec<(&'a str, &'a str)>,
    classpath_entries: Vec<(&'a str, &'a str)>,
    resource_profiles: Vec<Profile<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Runtime<'a> {
    java_version: &'a str,
    java_home: &'a str,
    scala_version: &'a str,
}

struct Profile<'a>(&'a ResourceProfile);

impl Serialize for Profile<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct ExecutorRequest<'a> {
            resource_name: &'a str,
            amount: i64,
            discovery_script: &'a str,
            vendor: &'a str,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct TaskRequest<'a> {
            resource_name: &'a str,
            amount: f64,
        }
        let executor: BTreeMap<&str, ExecutorRequest<'_>> = self
            .0
            .executor
            .iter()
            .map(|r| {
                let (discovery_script, vendor) = (&*r.discovery_script, &*r.vendor);
                (&*r.name, ExecutorRequest { resource_name: &r.name, amount: r.amount, discovery_script, vendor })
            })
            .collect();
        let task: BTreeMap<&str, TaskRequest<'_>> = self
            .0
            .task
            .iter()
            .map(|(name, amount)| (&**name, TaskRequest { resource_name: name, amount: *amount }))
            .collect();
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("id", &self.0.id)?;
        map.serialize_entry("executorResources", &executor)?;
        map.serialize_entry("taskResources", &task)?;
        map.end()
    }
}

const REDACTED: &str = "*********(redacted)";

/// Words in a key, or in a value, that make it a secret: Spark's default of
/// `spark.redaction.regex`.
const SECRET: [&str; 6] = ["secret", "password", "token", "accesskey", "access.key", "access_key"];

fn redacted<'a>(key: &'a str, value: &'a str) -> (&'a str, &'a str) {
    let secret = |text: &str| {
        let lower = text.to_ascii_lowercase();
        SECRET.iter().any(|word| lower.contains(word))
    };
    if secret(key) || secret(value) { (key, REDACTED) } else { (key, value) }
}

pub(super) fn of(app: &Application) -> EnvironmentInfo<'_> {
    let env = &app.environment;
    let jvm = |key: &str| env.jvm.get(key).map(|v| &**v).unwrap_or_default();
    let mut class_path: Vec<(&str, &str)> = env.class_path.iter().map(|(path, source)| (&**path, &**source)).collect();
    class_path.sort_unstable();
    EnvironmentInfo {
        runtime: Runtime {
            java_version: jvm("Java Version"),
            java_home: jvm("Java Home"),
            scala_version: jvm("Scala Version"),
        },
        spark_properties: sorted(&env.spark),
        hadoop_properties: sorted(&env.hadoop),
        system_properties: sorted(&env.system),
        metrics_properties: sorted(&env.metrics),
        classpath_entries: class_path,
        resource_profiles: app.profiles.iter().map(Profile).collect(),
    }
}

fn sorted(map: &BTreeMap<Text, Text>) -> Vec<(&str, &str)> {
    map.iter().map(|(key, value)| redacted(key, value)).collect()
}
