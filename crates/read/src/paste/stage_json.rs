//! Figures of a stage as JSON: quantiles by metric, a list of tasks, or Spark's own REST answers
//! (`taskSummary`, a stage, `taskList`).

use super::json::{integer, number};
use super::{MAX_ROWS, header, summary};
use model::{Application, Executor, Metric, PastedSummary, Quantiles, Stage, TaskRow, TaskStatus};
use serde_json::Value;

/// Names of a metric in lower case without separators: ours, and Spark's in REST and event log.
const NAMES: [(&str, Metric); 58] = [
    ("durationms", Metric::DurationMs),
    ("duration", Metric::DurationMs),
    ("runms", Metric::RunMs),
    ("executorruntime", Metric::RunMs),
    ("executorrunms", Metric::RunMs),
    ("cpums", Metric::CpuMs),
    ("cpuns", Metric::CpuNs),
    ("executorcputime", Metric::CpuNs),
    ("gcms", Metric::GcMs),
    ("gctimems", Metric::GcMs),
    ("jvmgctime", Metric::GcMs),
    ("deserializems", Metric::DeserializeMs),
    ("executordeserializetime", Metric::DeserializeMs),
    ("executordeserializecputime", Metric::DeserializeCpuNs),
    ("resultserializationms", Metric::ResultSerializationMs),
    ("resultserializationtime", Metric::ResultSerializationMs),
    ("resultbytes", Metric::ResultBytes),
    ("resultsizebytes", Metric::ResultBytes),
    ("resultsize", Metric::ResultBytes),
    ("gettingresultms", Metric::GettingResultTimeMs),
    ("gettingresulttime", Metric::GettingResultTimeMs),
    ("schedulerdelayms", Metric::SchedulerDelayMs),
    ("schedulerdelay", Metric::SchedulerDelayMs),
    ("peakexecutionbytes", Metric::PeakExecutionBytes),
    ("peakexecutionmemorybytes", Metric::PeakExecutionBytes),
    ("peakexecutionmemory", Metric::PeakExecutionBytes),
    ("peakmemorybytes", Metric::PeakExecutionBytes),
    ("spillmemorybytes", Metric::MemorySpillBytes),
    ("memoryspillbytes", Metric::MemorySpillBytes),
    ("memorybytesspilled", Metric::MemorySpillBytes),
    ("spilldiskbytes", Metric::DiskSpillBytes),
    ("diskspillbytes", Metric::DiskSpillBytes),
    ("diskbytesspilled", Metric::DiskSpillBytes),
    ("shufflereadbytes", Metric::ShuffleReadBytes),
    ("readbytes", Metric::ShuffleReadBytes),
    ("shufflereadrecords", Metric::ShuffleRecordsRead),
    ("readrecords", Metric::ShuffleRecordsRead),
    ("shuffleremotebytes", Metric::RemoteBytesRead),
    ("remotebytesread", Metric::RemoteBytesRead),
    ("localbytesread", Metric::LocalBytesRead),
    ("fetchwaitms", Metric::FetchWaitMs),
    ("shufflefetchwaitms", Metric::FetchWaitMs),
    ("shufflefetchwaittime", Metric::FetchWaitMs),
    ("fetchwaittime", Metric::FetchWaitMs),
    ("shufflewritebytes", Metric::ShuffleBytesWritten),
    ("writebytes", Metric::ShuffleBytesWritten),
    ("shufflewriterecords", Metric::ShuffleRecordsWritten),
    ("writerecords", Metric::ShuffleRecordsWritten),
    ("shufflewritems", Metric::ShuffleWriteMs),
    ("shufflewritetime", Metric::ShuffleWriteNs),
    ("writetime", Metric::ShuffleWriteNs),
    ("inputbytes", Metric::InputBytes),
    ("inputrecords", Metric::InputRecords),
    ("outputbytes", Metric::OutputBytes),
    ("outputrecords", Metric::OutputRecords),
    ("remoteblocksfetched", Metric::RemoteBlocksFetched),
    ("localblocksfetched", Metric::LocalBlocksFetched),
    ("recordsread", Metric::InputRecords),
];

/// Reads a value as a stage, where it is one.
pub(super) fn read(value: &Value, app: &mut Application) {
    let stage = match value {
        Value::Array(items) if items.first().is_some_and(is_rest_task) => Some(rest_tasks(items, app)),
        // `GET /stages` answers with a list.
        Value::Array(items) => {
            items.iter().filter(|v| is_rest_stage(v)).take(MAX_ROWS).for_each(|v| read(v, app));
            None
        }
        _ if is_rest_stage(value) => Some(rest_stage(value, app)),
        _ if value["quantiles"].is_array() => Some(rest_summary(value)),
        _ if value["summary"].is_object() || value["tasks"].is_array() => Some(plain(value, app)),
        _ => None,
    };
    app.stages.extend(stage);
    app.stages.sort_by_key(|s| (s.id, s.attempt));
    app.stages.dedup_by_key(|s| (s.id, s.attempt));
}

fn metric_of(name: &str) -> Option<Metric> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    NAMES.iter().find(|(known, _)| *known == plain).map(|(_, metric)| *metric)
}

fn u32_of(value: &Value) -> Option<u32> {
    u32::try_from(integer(value)?).ok()
}

/// `{app, stage, summary | tasks, sql_node, plan, aqe, …}`.
fn plain(value: &Value, app: &mut Application) -> Stage {
    let facts = &value["stage"];
    let mut stage = Stage::new(u32_of(&facts["id"]).unwrap_or_default(), u32_of(&facts["attempt"]).unwrap_or_default());
    stage.name = facts["name"].as_str().unwrap_or_default().into();
    stage.num_tasks = u32_of(&facts["tasks"]).unwrap_or_default();
    let mut pasted = summary_facts(value);
    read_app(&value["app"], app, &mut pasted);
    read_settings(value, app, &mut pasted);
    if let Some(map) = value["summary"].as_object() {
        let count = u64::from(stage.num_tasks);
        pasted.quantiles = map.iter().filter_map(|(name, q)| Some((metric_of(name)?, quantiles(q, count)?))).collect();
    }
    if let Some(tasks) = value["tasks"].as_array() {
        let slots = pasted.slots.unwrap_or(1.0).max(1.0) as usize;
        push_tasks(tasks, slots, app, &mut stage);
        stage.num_tasks = stage.num_tasks.max(stage.tasks.len() as u32);
    }
    stage.pasted = Some(pasted);
    stage
}

fn summary_facts(value: &Value) -> PastedSummary {
    let stage = &value["stage"];
    let slowest = &value["slowest_task"];
    PastedSummary {
        wall_ms: integer(&stage["wall_ms"]),
        slots: number(&stage["slots"]),
        node: value["sql_node"].as_str().or_else(|| value["node"].as_str()).map(str::to_owned),
        plan: value["plan"].as_str().map(str::to_owned),
        null_share: number(&value["null_share_of_key"]).or_else(|| number(&value["null_share"])),
        peers_on_executor_ms: integer(&slowest["other_tasks_on_same_executor_median_ms"]),
        slowest_executor: slowest["executor"].as_str().map(str::to_owned),
        slowest_attempt: u32_of(&slowest["attempt"]),
        ..PastedSummary::default()
    }
}

fn read_app(facts: &Value, app: &mut Application, pasted: &mut PastedSummary) {
    if let Some(wall) = integer(&facts["wall_ms"]) {
        // Not as start and end of the application: what ran besides the stage is not known.
        pasted.app_wall_ms = Some(wall);
    }
    let executors = u32_of(&facts["executors"]).unwrap_or_default().min(MAX_ROWS as u32);
    let cores = u32_of(&facts["cores_per_executor"]).unwrap_or(1);
    for id in 1..=executors {
        app.executors.push(Executor {
            id: id.to_string().as_str().into(),
            cores,
            added: true,
            added_ms: Some(0),
            ..Executor::default()
        });
    }
    if pasted.slots.is_none() && executors > 0 {
        pasted.slots = Some(f64::from(executors) * f64::from(cores));
    }
    for (key, setting) in [("executor_memory", "spark.executor.memory"), ("driver_memory", "spark.driver.memory")] {
        if let Some(memory) = facts[key].as_str() {
            app.environment.spark.insert(setting.into(), memory.into());
        }
    }
    if let Some(version) = facts["spark_version"].as_str() {
        app.spark_version = version.into();
    }
}

/// Adaptive execution as told, and settings by name in `conf`.
fn read_settings(value: &Value, app: &mut Application, pasted: &mut PastedSummary) {
    pasted.aqe = value["aqe"]["enabled"].as_bool().or_else(|| value["aqe"].as_bool());
    pasted.aqe_skew_join = value["aqe"]["skewJoin"].as_bool().or_else(|| value["aqe"]["skew_join"].as_bool());
    let told =
        [("spark.sql.adaptive.enabled", pasted.aqe), ("spark.sql.adaptive.skewJoin.enabled", pasted.aqe_skew_join)];
    for (key, on) in told {
        if let Some(on) = on {
            app.environment.spark.insert(key.into(), on.to_string().into());
        }
    }
    for key in ["conf", "settings", "spark_conf", "configuration"] {
        for (name, setting) in value[key].as_object().into_iter().flatten().take(MAX_ROWS) {
            if let Some(text) = super::json::text(setting) {
                app.environment.spark.insert(name.as_str().into(), text.into());
            }
        }
    }
}

/// `{min, p25, median, p75, max}` or a list of five.
fn quantiles(value: &Value, count: u64) -> Option<Quantiles> {
    let at = |names: [&str; 4]| names.iter().find_map(|name| integer(&value[*name]));
    let mut q = match value.as_array() {
        Some(list) if list.len() == 5 => {
            let at = |i: usize| integer(&list[i]);
            Quantiles { min: at(0)?, p25: at(1)?, median: at(2)?, p75: at(3)?, max: at(4)?, ..Quantiles::default() }
        }
        Some(_) => return None,
        None => {
            let median = at(["median", "p50", "50", "q2"])?;
            Quantiles {
                min: at(["min", "p0", "0", "q0"]).unwrap_or_default(),
                p25: at(["p25", "25", "q1", "25th"]).unwrap_or(median),
                median,
                p75: at(["p75", "75", "q3", "75th"]).unwrap_or(median),
                max: at(["max", "p100", "100", "q4"])?,
                ..Quantiles::default()
            }
        }
    };
    q.count = count;
    q.sum = integer(&value["sum"]).or_else(|| integer(&value["total"])).unwrap_or_else(|| summary::sum_of_five(&q));
    Some(q)
}

/// Tasks without times get the next free slot in the order given, so that they overlap as they
/// must have. Time begins at 1 ms, because 0 means "never".
fn push_tasks(tasks: &[Value], slots: usize, app: &mut Application, stage: &mut Stage) {
    let mut free = vec![1_i64; slots.clamp(1, MAX_ROWS)];
    for (index, task) in tasks.iter().take(MAX_ROWS).enumerate() {
        let mut row = task_row(index, task, app);
        if row.get(Metric::LaunchMs) == 0 {
            let slot = (0..free.len()).min_by_key(|&s| free[s]).unwrap_or_default();
            let duration =
                value_of(task, Metric::DurationMs).or_else(|| value_of(task, Metric::RunMs)).unwrap_or_default();
            row.set(Metric::LaunchMs, free[slot]);
            free[slot] = free[slot].saturating_add(duration.max(0));
            row.set(Metric::FinishMs, free[slot]);
        }
        stage.tasks.push(row);
    }
}

fn value_of(task: &Value, wanted: Metric) -> Option<i64> {
    task.as_object()?.iter().find(|(name, _)| metric_of(name) == Some(wanted)).and_then(|(_, v)| integer(v))
}

fn task_row(index: usize, task: &Value, app: &mut Application) -> TaskRow {
    let mut row = TaskRow::new(integer(&task["id"]).or_else(|| integer(&task["task_id"])).unwrap_or(index as i64));
    row.index = u32_of(&task["index"]).unwrap_or(index as u32);
    row.attempt = u32_of(&task["attempt"]).unwrap_or_default();
    row.speculative = task["speculative"].as_bool().unwrap_or_default();
    row.status = status_of(task["status"].as_str().unwrap_or_default());
    if let Some(id) = ["executor", "executorId", "executor_id"].iter().find_map(|k| super::json::text(&task[*k])) {
        row.executor = executor_row(&id, task["host"].as_str().unwrap_or_default(), app);
    }
    set_metrics(task, &mut row);
    row
}

fn status_of(name: &str) -> TaskStatus {
    match name.to_ascii_uppercase().as_str() {
        "FAILED" => TaskStatus::Failed,
        "KILLED" => TaskStatus::Killed,
        "RUNNING" => TaskStatus::Running,
        _ => TaskStatus::Success,
    }
}

fn executor_row(id: &str, host: &str, app: &mut Application) -> u32 {
    let at = app.executors.iter().position(|e| &*e.id == id).unwrap_or_else(|| {
        app.executors.push(Executor { id: id.into(), host: host.into(), cores: 1, ..Executor::default() });
        app.executors.len() - 1
    });
    at as u32
}

/// Sets what a task tells. Derived metrics are put into the stored ones that make them up.
fn set_metrics(task: &Value, row: &mut TaskRow) {
    for (name, value) in task.as_object().into_iter().flatten() {
        let (Some(metric), Some(value)) = (metric_of(name), integer(value)) else {
            continue;
        };
        match metric {
            Metric::ShuffleReadBytes => row.set(Metric::LocalBytesRead, value),
            Metric::CpuMs => row.set(Metric::CpuNs, value.saturating_mul(1_000_000)),
            Metric::ShuffleWriteMs => row.set(Metric::ShuffleWriteNs, value.saturating_mul(1_000_000)),
            stored => row.set(stored, value),
        };
    }
}

fn is_rest_stage(value: &Value) -> bool {
    value["stageId"].is_number() && (value["numTasks"].is_number() || value["attemptId"].is_number())
}

fn is_rest_task(value: &Value) -> bool {
    value["taskId"].is_number() && value["launchTime"].is_string()
}

/// `/stages/14/0/taskSummary`.
fn rest_summary(value: &Value) -> Stage {
    let summary = PastedSummary { quantiles: rest_quantiles(value, 0), ..PastedSummary::default() };
    Stage { pasted: Some(summary), ..Stage::default() }
}

/// Lists of five by metric; those of input, output and shuffle stand in objects of their own.
fn rest_quantiles(value: &Value, count: u64) -> Vec<(Metric, Quantiles)> {
    let mut found = Vec::new();
    for (name, part) in value.as_object().into_iter().flatten() {
        if let Some(metric) = metric_of(name)
            && let Some(q) = quantiles(part, count)
        {
            found.push((metric, q));
        }
        for (inner, list) in part.as_object().into_iter().flatten() {
            let metric = nested_metric(name, inner);
            if let Some(metric) = metric
                && let Some(q) = quantiles(list, count)
            {
                found.push((metric, q));
            }
        }
    }
    found
}

fn nested_metric(group: &str, name: &str) -> Option<Metric> {
    match (group, name) {
        ("inputMetrics", "bytesRead") => Some(Metric::InputBytes),
        ("inputMetrics", "recordsRead") => Some(Metric::InputRecords),
        ("outputMetrics", "bytesWritten") => Some(Metric::OutputBytes),
        ("outputMetrics", "recordsWritten") => Some(Metric::OutputRecords),
        ("shuffleReadMetrics", "recordsRead") => Some(Metric::ShuffleRecordsRead),
        ("shuffleWriteMetrics", "bytesWritten") => Some(Metric::ShuffleBytesWritten),
        ("shuffleWriteMetrics", "recordsWritten") => Some(Metric::ShuffleRecordsWritten),
        ("inputMetrics" | "outputMetrics" | "shuffleReadMetrics" | "shuffleWriteMetrics", _) => metric_of(name),
        _ => None,
    }
}

/// `/stages/14/0`, with tasks and quantiles where they were asked for.
fn rest_stage(value: &Value, app: &mut Application) -> Stage {
    let mut stage =
        Stage::new(u32_of(&value["stageId"]).unwrap_or_default(), u32_of(&value["attemptId"]).unwrap_or_default());
    stage.name = value["name"].as_str().unwrap_or_default().into();
    stage.details = value["details"].as_str().unwrap_or_default().into();
    stage.num_tasks = u32_of(&value["numTasks"]).unwrap_or_default();
    let time = |key: &str| value[key].as_str().and_then(header::time_ms);
    stage.submitted_ms = time("submissionTime");
    stage.completed_ms = time("completionTime");
    stage.failure = value["failureReason"].as_str().map(model::Text::from);
    for task in value["tasks"].as_object().into_iter().flat_map(|m| m.values()).take(MAX_ROWS) {
        push_rest_task(task, app, &mut stage);
    }
    let wall = time("firstTaskLaunchedTime").or(stage.submitted_ms).zip(stage.completed_ms).map(|(from, to)| to - from);
    let count = u64::from(stage.num_tasks);
    let mut quantiles = rest_quantiles(&value["taskMetricsDistributions"], count);
    if stage.tasks.is_empty() {
        let sums =
            value.as_object().into_iter().flatten().filter_map(|(name, v)| Some((metric_of(name)?, integer(v)?)));
        for (metric, sum) in sums {
            match quantiles.iter_mut().find(|(m, _)| *m == metric) {
                Some((_, q)) => q.sum = sum,
                // Only the sum is known; the zeros around it compare as "unknown".
                None => quantiles.push((metric, Quantiles { sum, ..Quantiles::default() })),
            }
        }
    }
    stage.pasted = Some(PastedSummary { quantiles, wall_ms: wall, ..PastedSummary::default() });
    stage
}

/// `/stages/14/0/taskList`.
fn rest_tasks(tasks: &[Value], app: &mut Application) -> Stage {
    let mut stage = Stage::default();
    for task in tasks.iter().take(MAX_ROWS) {
        push_rest_task(task, app, &mut stage);
    }
    stage.num_tasks = stage.tasks.len() as u32;
    stage
}

fn push_rest_task(task: &Value, app: &mut Application, stage: &mut Stage) {
    let mut row = task_row(stage.tasks.len(), task, app);
    row.id = integer(&task["taskId"]).unwrap_or(row.id);
    let launch = task["launchTime"].as_str().and_then(header::time_ms).unwrap_or_default();
    row.set(Metric::LaunchMs, launch);
    row.set(Metric::FinishMs, launch.saturating_add(integer(&task["duration"]).unwrap_or_default()));
    let metrics = &task["taskMetrics"];
    row.has_metrics = metrics.is_object();
    set_metrics(metrics, &mut row);
    for (group, part) in metrics.as_object().into_iter().flatten() {
        for (name, value) in part.as_object().into_iter().flatten() {
            if let (Some(metric), Some(value)) = (nested_metric(group, name), integer(value)) {
                row.set(metric, value);
            }
        }
    }
    stage.tasks.push(row);
}

#[cfg(test)]
mod tests {
    use crate::paste;
    use model::{Metric, PasteKind};

    #[test]
    fn quantiles_with_what_stands_around() {
        let app = paste::read(
            r#"{"stage":{"id":3,"attempt":1,"tasks":8,"wall_ms":9000,"slots":4},"sql_node":"SortMergeJoin [a#1], [b#2], LeftOuter",
            "null_share_of_key":0.4,"aqe":{"enabled":true,"skewJoin":false},"app":{"wall_ms":20000,"executors":2,"cores_per_executor":2},
            "summary":{"duration_ms":{"min":1,"p25":2,"median":3,"p75":4,"max":50},"shuffle_read_bytes":[1,2,3,4,5]}}"#,
            None,
        );
        assert_eq!(app.pasted.as_ref().unwrap().kind, PasteKind::StageMetrics);
        let stage = app.stage(3, 1).unwrap();
        assert_eq!((stage.num_tasks, stage.wall_ms()), (8, 9_000));
        assert_eq!(stage.quantiles(Metric::DurationMs).max, 50);
        assert_eq!(stage.quantiles(Metric::ShuffleReadBytes).median, 3);
        let pasted = stage.pasted.as_ref().unwrap();
        assert_eq!((pasted.null_share, pasted.aqe_skew_join, pasted.slots), (Some(0.4), Some(false), Some(4.0)));
        assert_eq!((pasted.app_wall_ms, app.executors.len()), (Some(20_000), 2));
        assert!(!app.conf_bool("spark.sql.adaptive.skewJoin.enabled", true));
    }

    #[test]
    fn tasks_overlap_as_their_slots_allow() {
        let app = paste::read(
            r#"{"stage":{"id":7,"slots":2},"tasks":[{"duration_ms":100,"cpu_ms":90,"shuffle_read_bytes":5},{"duration_ms":300},{"duration_ms":100}]}"#,
            None,
        );
        let stage = app.stage(7, 0).unwrap();
        assert_eq!((stage.tasks.len(), stage.wall_ms()), (3, 300));
        assert_eq!(stage.tasks.value(Metric::CpuMs, 0), 90);
        assert_eq!(stage.sum(Metric::ShuffleReadBytes), 5);
        assert_eq!(stage.tasks.value(Metric::DurationMs, 2), 100);
    }

    #[test]
    fn answers_of_sparks_rest_interface() {
        let summary = paste::read(
            r#"{"quantiles":[0,0.25,0.5,0.75,1],"executorRunTime":[1.0,2.0,3.0,4.0,5.0],"shuffleReadMetrics":{"readBytes":[10.0,20.0,30.0,40.0,50.0],"readRecords":[1.0,1.0,1.0,1.0,9.0]},"inputMetrics":{"bytesRead":[0.0,0.0,0.0,0.0,7.0],"recordsRead":[0.0,0.0,0.0,0.0,1.0]}}"#,
            None,
        );
        let stage = &summary.stages[0];
        assert_eq!(stage.quantiles(Metric::RunMs).p75, 4);
        assert_eq!(stage.quantiles(Metric::ShuffleRecordsRead).max, 9);
        assert_eq!(stage.quantiles(Metric::InputBytes).max, 7);

        let stage = paste::read(
            r#"{"status":"COMPLETE","stageId":4,"attemptId":0,"numTasks":2,"executorRunTime":70,"shuffleReadBytes":99,"name":"count at A.py:1","submissionTime":"2025-10-01T06:00:00.000GMT","completionTime":"2025-10-01T06:00:09.000GMT",
            "tasks":{"8":{"taskId":8,"index":1,"attempt":0,"launchTime":"2025-10-01T06:00:01.000GMT","duration":40,"executorId":"2","host":"w2","status":"SUCCESS","taskMetrics":{"executorRunTime":35,"shuffleReadMetrics":{"localBytesRead":4,"remoteBytesRead":5,"recordsRead":6}}}}}"#,
            None,
        );
        let stage = stage.stage(4, 0).unwrap();
        assert_eq!((stage.tasks.len(), stage.num_tasks), (1, 2));
        assert_eq!(stage.tasks.value(Metric::ShuffleReadBytes, 0), 9);
        assert_eq!(stage.tasks.value(Metric::ShuffleRecordsRead, 0), 6);
        assert_eq!(stage.tasks.value(Metric::DurationMs, 0), 40);
    }
}
