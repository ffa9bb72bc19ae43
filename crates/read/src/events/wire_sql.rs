//! SQL and streaming events.

use super::wire::{CowStr, Loose, Map, Str};
use crate::plan::{self, PlanInfo};
use model::{MetricKind, Plan};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// `SparkListenerSQLExecutionStart`, the plan read.
#[derive(Debug)]
pub(super) struct SqlStart {
    pub id: i64,
    pub root_id: Option<i64>,
    pub description: Str,
    pub details: Str,
    pub time_ms: Option<i64>,
    pub modified_configs: Vec<(Str, Str)>,
    pub plan: Plan,
    pub plan_text: Option<Str>,
}

/// `SparkListenerSQLAdaptiveExecutionUpdate`, the plan read.
#[derive(Debug)]
pub(super) struct SqlUpdate {
    pub id: i64,
    pub plan: Plan,
    pub plan_text: Option<Str>,
}

#[derive(Deserialize)]
struct StartForm<'a> {
    #[serde(rename = "executionId")]
    id: i64,
    #[serde(rename = "rootExecutionId", default)]
    root_id: Option<i64>,
    #[serde(default)]
    description: Option<Str>,
    #[serde(default)]
    details: Option<Str>,
    #[serde(rename = "physicalPlanDescription", borrow, default)]
    plan_text: Option<CowStr<'a>>,
    #[serde(rename = "sparkPlanInfo", borrow, default)]
    plan: Option<&'a RawValue>,
    #[serde(rename = "time", default)]
    time_ms: Option<i64>,
    #[serde(rename = "modifiedConfigs", default)]
    modified_configs: Map,
}

#[derive(Deserialize)]
struct UpdateForm<'a> {
    #[serde(rename = "executionId")]
    id: i64,
    #[serde(rename = "physicalPlanDescription", borrow, default)]
    plan_text: Option<CowStr<'a>>,
    #[serde(rename = "sparkPlanInfo", borrow, default)]
    plan: Option<&'a RawValue>,
}

pub(super) fn sql_start(line: &[u8]) -> serde_json::Result<SqlStart> {
    let form: StartForm<'_> = serde_json::from_slice(line)?;
    let (plan, plan_text) = plan_of(form.plan, form.plan_text);
    Ok(SqlStart {
        id: form.id,
        root_id: form.root_id,
        description: form.description.unwrap_or_default(),
        details: form.details.unwrap_or_default(),
        time_ms: form.time_ms,
        modified_configs: form.modified_configs.0,
        plan,
        plan_text,
    })
}

pub(super) fn sql_update(line: &[u8]) -> serde_json::Result<SqlUpdate> {
    let form: UpdateForm<'_> = serde_json::from_slice(line)?;
    let (plan, plan_text) = plan_of(form.plan, form.plan_text);
    Ok(SqlUpdate { id: form.id, plan, plan_text })
}

/// A plan that cannot be understood costs the plan, not the execution.
fn plan_of(json: Option<&RawValue>, text: Option<CowStr<'_>>) -> (Plan, Option<Str>) {
    let text = text.map(|t| t.0);
    let info = json.and_then(|json| PlanInfo::parse(json.get()).ok());
    let plan = info.map(|info| plan::from_info(&info, text.as_deref())).unwrap_or_default();
    (plan, text.map(|t| t.into_owned().into()))
}

#[derive(Debug, Deserialize)]
pub(super) struct SqlEnd {
    #[serde(rename = "executionId")]
    pub id: i64,
    #[serde(rename = "time", default)]
    pub time_ms: Option<i64>,
    #[serde(rename = "errorMessage", default)]
    pub error: Option<Str>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DriverAccumUpdates {
    #[serde(rename = "accumUpdates", default)]
    pub updates: Vec<(i64, i64)>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SqlMetricUpdates {
    #[serde(rename = "sqlPlanMetrics", default)]
    pub metrics: Vec<SqlMetric>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SqlMetric {
    #[serde(rename = "accumulatorId")]
    pub accumulator: i64,
    #[serde(rename = "metricType", default, deserialize_with = "kind")]
    pub kind: MetricKind,
}

fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<MetricKind, D::Error> {
    Ok(match &*CowStr::deserialize(deserializer)?.0 {
        "size" => MetricKind::Size,
        "timing" => MetricKind::Timing,
        "nsTiming" => MetricKind::NsTiming,
        "average" => MetricKind::Average,
        _ => MetricKind::Sum,
    })
}

/// Started, idle and terminated events of a streaming query.
#[derive(Debug, Deserialize)]
pub(super) struct QueryEvent {
    #[serde(default)]
    pub id: Option<Str>,
    #[serde(rename = "runId", default)]
    pub run_id: Option<Str>,
    #[serde(default)]
    pub name: Option<Str>,
    #[serde(default)]
    pub timestamp: Option<Str>,
    #[serde(default)]
    pub exception: Option<Str>,
}

/// The progress of a batch, which some versions write as JSON in a text.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Progress {
    pub id: Option<Str>,
    pub run_id: Option<Str>,
    pub name: Option<Str>,
    pub timestamp: Option<Str>,
    pub batch_id: i64,
    pub batch_duration: Option<i64>,
    pub duration_ms: Numbers,
    pub event_time: Map,
    pub state_operators: Vec<StateOperator>,
    pub sources: Vec<Source>,
    pub sink: Sink,
    /// Only in progress objects taken from the API, not in event logs.
    pub num_input_rows: Option<i64>,
    pub input_rows_per_second: Rate,
    pub processed_rows_per_second: Rate,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct StateOperator {
    pub operator_name: Option<Str>,
    pub num_rows_total: i64,
    pub num_rows_updated: i64,
    pub num_rows_removed: i64,
    pub num_rows_dropped_by_watermark: i64,
    pub memory_used_bytes: i64,
    pub num_shuffle_partitions: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Source {
    pub description: Option<Str>,
    pub end_offset: AsWritten,
    pub latest_offset: AsWritten,
    pub num_input_rows: i64,
    pub input_rows_per_second: Rate,
    pub processed_rows_per_second: Rate,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sink {
    pub description: Option<Str>,
}

/// Rows a second; `None` when missing, NaN or infinite (which Spark writes as text).
#[derive(Debug, Default)]
pub(super) struct Rate(pub Option<f64>);

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Loose::deserialize(deserializer)?.0;
        Ok(Self(text.and_then(|t| t.parse().ok()).filter(|rate: &f64| rate.is_finite())))
    }
}

/// A text, or the JSON of anything else.
#[derive(Debug, Default)]
pub(super) struct AsWritten(pub Option<Str>);

impl<'de> Deserialize<'de> for AsWritten {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::Null => None,
            serde_json::Value::String(text) => Some(text.into()),
            other => Some(other.to_string().into()),
        }))
    }
}

/// Integers by name in the order written; what is no integer is left out.
#[derive(Debug, Default)]
pub(super) struct Numbers(pub Vec<(Str, i64)>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entries = Map::deserialize(deserializer)?.0;
        Ok(Self(entries.into_iter().filter_map(|(name, n)| Some((name, n.parse().ok()?))).collect()))
    }
}

/// A `QueryProgressEvent`'s progress.
pub(super) fn progress(line: &[u8]) -> serde_json::Result<Box<Progress>> {
    struct Either(Box<Progress>);

    impl<'de> Deserialize<'de> for Either {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Forms;
            impl<'de> Visitor<'de> for Forms {
                type Value = Either;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("a progress object, or its JSON as text")
                }

                fn visit_str<E: Error>(self, text: &str) -> Result<Either, E> {
                    serde_json::from_str(text).map(Either).map_err(E::custom)
                }

                fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Either, A::Error> {
                    Progress::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(|p| Either(p.into()))
                }
            }
            deserializer.deserialize_any(Forms)
        }
    }

    #[derive(Deserialize)]
    struct Form {
        progress: Either,
    }
    serde_json::from_slice(line).map(|form: Form| form.progress.0)
}
