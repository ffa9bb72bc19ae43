//! Numbers of Spark's own History Server against ours.
//!
//! Spark's tests ship event logs of 1.3 to 3.3 and the REST answers that its server must give for
//! them. Each answer is walked here, and of each object in it the fields listed below are
//! computed from the model and compared. What a field list does not name is not in the model, or
//! is the REST layer's own (order, paging, filters, links).

use crate::counts::Compared;
use crate::logs::read_log;
use anyhow::{Context, Result, bail};
use model::{Application, EndReason, Executor, Job, Locality, Metric, Stage, StageStatus, TaskStatus, Tasks, quantile};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// Endpoints whose answers the model has nothing for.
const NOT_COMPARED: [&str; 1] = ["/allmiscellaneousprocess"];

/// Sums over the tasks of a stage: REST name and metric.
const STAGE_SUMS: [(&str, Metric); 35] = {
    use Metric::*;
    [
        ("executorDeserializeTime", DeserializeMs),
        ("executorDeserializeCpuTime", DeserializeCpuNs),
        ("executorRunTime", RunMs),
        ("executorCpuTime", CpuNs),
        ("resultSize", ResultBytes),
        ("jvmGcTime", GcMs),
        ("resultSerializationTime", ResultSerializationMs),
        ("memoryBytesSpilled", MemorySpillBytes),
        ("diskBytesSpilled", DiskSpillBytes),
        ("peakExecutionMemory", PeakExecutionBytes),
        ("inputBytes", InputBytes),
        ("inputRecords", InputRecords),
        ("outputBytes", OutputBytes),
        ("outputRecords", OutputRecords),
        ("shuffleRemoteBlocksFetched", RemoteBlocksFetched),
        ("shuffleLocalBlocksFetched", LocalBlocksFetched),
        ("shuffleFetchWaitTime", FetchWaitMs),
        ("shuffleRemoteBytesRead", RemoteBytesRead),
        ("shuffleRemoteBytesReadToDisk", RemoteBytesReadToDisk),
        ("shuffleLocalBytesRead", LocalBytesRead),
        ("shuffleReadBytes", ShuffleReadBytes),
        ("shuffleReadRecords", ShuffleRecordsRead),
        ("shuffleRemoteReqsDuration", RemoteRequestsMs),
        ("shuffleCorruptMergedBlockChunks", CorruptMergedBlockChunks),
        ("shuffleMergedFetchFallbackCount", MergedFetchFallbacks),
        ("shuffleMergedRemoteBlocksFetched", MergedRemoteBlocks),
        ("shuffleMergedLocalBlocksFetched", MergedLocalBlocks),
        ("shuffleMergedRemoteChunksFetched", MergedRemoteChunks),
        ("shuffleMergedLocalChunksFetched", MergedLocalChunks),
        ("shuffleMergedRemoteBytesRead", MergedRemoteBytes),
        ("shuffleMergedLocalBytesRead", MergedLocalBytes),
        ("shuffleMergedRemoteReqsDuration", MergedRemoteRequestsMs),
        ("shuffleWriteBytes", ShuffleBytesWritten),
        ("shuffleWriteTime", ShuffleWriteNs),
        ("shuffleWriteRecords", ShuffleRecordsWritten),
    ]
};

/// Figures of one task: path in its `taskMetrics` and metric.
const TASK_FIGURES: [(&str, Metric); 34] = {
    use Metric::*;
    [
        ("executorDeserializeTime", DeserializeMs),
        ("executorDeserializeCpuTime", DeserializeCpuNs),
        ("executorRunTime", RunMs),
        ("executorCpuTime", CpuNs),
        ("resultSize", ResultBytes),
        ("jvmGcTime", GcMs),
        ("resultSerializationTime", ResultSerializationMs),
        ("memoryBytesSpilled", MemorySpillBytes),
        ("diskBytesSpilled", DiskSpillBytes),
        ("peakExecutionMemory", PeakExecutionBytes),
        ("inputMetrics/bytesRead", InputBytes),
        ("inputMetrics/recordsRead", InputRecords),
        ("outputMetrics/bytesWritten", OutputBytes),
        ("outputMetrics/recordsWritten", OutputRecords),
        ("shuffleReadMetrics/remoteBlocksFetched", RemoteBlocksFetched),
        ("shuffleReadMetrics/localBlocksFetched", LocalBlocksFetched),
        ("shuffleReadMetrics/fetchWaitTime", FetchWaitMs),
        ("shuffleReadMetrics/remoteBytesRead", RemoteBytesRead),
        ("shuffleReadMetrics/remoteBytesReadToDisk", RemoteBytesReadToDisk),
        ("shuffleReadMetrics/localBytesRead", LocalBytesRead),
        ("shuffleReadMetrics/recordsRead", ShuffleRecordsRead),
        ("shuffleReadMetrics/remoteReqsDuration", RemoteRequestsMs),
        ("shuffleReadMetrics/shufflePushReadMetrics/corruptMergedBlockChunks", CorruptMergedBlockChunks),
        ("shuffleReadMetrics/shufflePushReadMetrics/mergedFetchFallbackCount", MergedFetchFallbacks),
        ("shuffleReadMetrics/shufflePushReadMetrics/remoteMergedBlocksFetched", MergedRemoteBlocks),
        ("shuffleReadMetrics/shufflePushReadMetrics/localMergedBlocksFetched", MergedLocalBlocks),
        ("shuffleReadMetrics/shufflePushReadMetrics/remoteMergedChunksFetched", MergedRemoteChunks),
        ("shuffleReadMetrics/shufflePushReadMetrics/localMergedChunksFetched", MergedLocalChunks),
        ("shuffleReadMetrics/shufflePushReadMetrics/remoteMergedBytesRead", MergedRemoteBytes),
        ("shuffleReadMetrics/shufflePushReadMetrics/localMergedBytesRead", MergedLocalBytes),
        ("shuffleReadMetrics/shufflePushReadMetrics/remoteMergedReqsDuration", MergedRemoteRequestsMs),
        ("shuffleWriteMetrics/bytesWritten", ShuffleBytesWritten),
        ("shuffleWriteMetrics/writeTime", ShuffleWriteNs),
        ("shuffleWriteMetrics/recordsWritten", ShuffleRecordsWritten),
    ]
};

/// Quantiles over the successful tasks of a stage: path in the summary and metric.
const QUANTILES: [(&str, Metric); 35] = {
    use Metric::*;
    [
        ("duration", DurationMs),
        ("schedulerDelay", SchedulerDelayMs),
        ("gettingResultTime", GettingResultTimeMs),
        ("executorDeserializeTime", DeserializeMs),
        ("executorDeserializeCpuTime", DeserializeCpuNs),
        ("executorRunTime", RunMs),
        ("executorCpuTime", CpuNs),
        ("resultSize", ResultBytes),
        ("jvmGcTime", GcMs),
        ("resultSerializationTime", ResultSerializationMs),
        ("memoryBytesSpilled", MemorySpillBytes),
        ("diskBytesSpilled", DiskSpillBytes),
        ("peakExecutionMemory", PeakExecutionBytes),
        ("inputMetrics/bytesRead", InputBytes),
        ("inputMetrics/recordsRead", InputRecords),
        ("outputMetrics/bytesWritten", OutputBytes),
        ("outputMetrics/recordsWritten", OutputRecords),
        ("shuffleReadMetrics/readBytes", ShuffleReadBytes),
        ("shuffleReadMetrics/readRecords", ShuffleRecordsRead),
        ("shuffleReadMetrics/remoteBlocksFetched", RemoteBlocksFetched),
        ("shuffleReadMetrics/localBlocksFetched", LocalBlocksFetched),
        ("shuffleReadMetrics/fetchWaitTime", FetchWaitMs),
        ("shuffleReadMetrics/remoteBytesRead", RemoteBytesRead),
        ("shuffleReadMetrics/remoteBytesReadToDisk", RemoteBytesReadToDisk),
        ("shuffleReadMetrics/remoteReqsDuration", RemoteRequestsMs),
        ("shuffleReadMetrics/shufflePushReadMetricsDist/corruptMergedBlockChunks", CorruptMergedBlockChunks),
        ("shuffleReadMetrics/shufflePushReadMetricsDist/mergedFetchFallbackCount", MergedFetchFallbacks),
        ("shuffleReadMetrics/shufflePushReadMetricsDist/remoteMergedBlocksFetched", MergedRemoteBlocks),
        ("shuffleReadMetrics/shufflePushReadMetricsDist/localMergedBlocksFetched", MergedLocalBlocks),
        ("shuffleReadMetrics/shufflePushReadMetricsDist/remoteMergedBytesRead", MergedRemoteBytes),
        ("shuffleReadMetrics/shufflePushReadMetricsDist/localMergedBytesRead", MergedLocalBytes),
        ("shuffleReadMetrics/shufflePushReadMetricsDist/remoteMergedReqsDuration", MergedRemoteRequestsMs),
        ("shuffleWriteMetrics/writeBytes", ShuffleBytesWritten),
        ("shuffleWriteMetrics/writeTime", ShuffleWriteNs),
        ("shuffleWriteMetrics/writeRecords", ShuffleRecordsWritten),
    ]
};

/// What was compared, and how it came out.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Values compared, and where they differ.
    pub compared: Compared,
    /// Answers walked.
    pub answers: usize,
    /// Answers that the model has nothing for.
    pub skipped: Vec<String>,
    /// Fields by kind of object.
    pub fields: BTreeMap<&'static str, Vec<String>>,
}

/// Loads every log of `spark-history/spark-events` and holds it against Spark's answers.
///
/// # Errors
/// When a log or an answer cannot be read, or an answer is of a kind that is not known.
pub fn compare(data: &Path) -> Result<Outcome> {
    let folder = data.join("spark-history");
    let mut history = History { apps: BTreeMap::new(), outcome: Outcome::default() };
    for entry in std::fs::read_dir(folder.join("spark-events"))? {
        let app = read_log(&entry?.path())?;
        let attempt = app.attempt_id.as_deref().unwrap_or_default().to_owned();
        history.apps.insert((app.id.to_string(), attempt), app);
    }
    let endpoints: Value = serde_json::from_slice(&std::fs::read(folder.join("endpoints.json"))?)?;
    for endpoint in endpoints["endpoints"].as_array().context("no endpoints")? {
        let path = endpoint["path"].as_str().context("an endpoint without a path")?;
        let file = endpoint["file"].as_str().context("an endpoint without a file")?;
        let answer: Value = serde_json::from_slice(&std::fs::read(folder.join(file))?)?;
        history.answer(path, &answer).with_context(|| path.to_owned())?;
    }
    Ok(history.outcome)
}

struct History {
    /// By id and attempt.
    apps: BTreeMap<(String, String), Application>,
    outcome: Outcome,
}

impl History {
    fn answer(&mut self, path: &str, answer: &Value) -> Result<()> {
        if NOT_COMPARED.iter().any(|end| path.ends_with(end)) {
            self.outcome.skipped.push(path.to_owned());
            return Ok(());
        }
        self.outcome.answers += 1;
        let (route, query) = path.split_once('?').unwrap_or((path, ""));
        let route = route.trim_start_matches("/api/v1/applications").trim_matches('/');
        let mut parts: Vec<&str> = route.split('/').filter(|p| !p.is_empty()).collect();
        if parts.len() < 2 {
            return self.applications(answer);
        }
        let id = parts.remove(0).to_owned();
        let is_attempt = parts[0].bytes().all(|b| b.is_ascii_digit());
        let attempt = if is_attempt { parts.remove(0).to_owned() } else { String::new() };
        let app = self.apps.get(&(id, attempt)).context("no such application")?.clone();
        match parts[..] {
            ["jobs"] => self.jobs(&app, answer, query.is_empty()),
            ["jobs", id] => self.job(&app, id.parse()?, answer),
            ["stages"] => self.stages(&app, answer, query.is_empty().then_some(app.stages.len())),
            ["stages", _] => self.stages(&app, answer, None),
            ["stages", _, _] => self.stage(&app, answer),
            ["stages", stage, attempt, "taskList"] => {
                self.tasks(&app, find_stage(&app, stage.parse()?, attempt.parse()?)?, items(answer))
            }
            ["stages", stage, attempt, "taskSummary"] => {
                self.summary(find_stage(&app, stage.parse()?, attempt.parse()?)?, answer)
            }
            ["executors"] => self.executors(&app, answer),
            ["storage", "rdd"] => Ok(()),
            ["storage", "rdd", id] => self.rdd(&app, id.parse()?, answer),
            ["environment"] => self.environment(&app, answer),
            _ => bail!("unknown endpoint"),
        }
    }

    /// Compares the fields that `ours` has.
    fn fields(&mut self, kind: &'static str, place: &str, expected: &Value, ours: &[(String, Value)]) {
        let names: Vec<String> = ours.iter().map(|(name, _)| name.clone()).collect();
        let known = self.outcome.fields.entry(kind).or_default();
        known.extend(names.into_iter().filter(|name| !known.contains(name)).collect::<Vec<_>>());
        for (name, got) in ours {
            let theirs = expected.pointer(&format!("/{name}")).unwrap_or(&Value::Null);
            self.outcome.compared.value(|| format!("{kind} {place}: {name}"), theirs, got);
        }
    }

    fn same_length(&mut self, what: &str, expected: usize, got: usize) {
        self.outcome.compared.value(|| format!("number of {what}"), &json!(expected), &json!(got));
    }

    fn applications(&mut self, answer: &Value) -> Result<()> {
        let list = if answer.is_array() { items(answer) } else { vec![answer] };
        for theirs in list {
            let id = text(theirs, "id")?.to_owned();
            for attempt in items(&theirs["attempts"]) {
                let number = attempt["attemptId"].as_str().unwrap_or_default().to_owned();
                let app = self.apps.get(&(id.clone(), number.clone())).context("no such application")?;
                let ours = application_fields(app);
                let name = json!(&*app.name);
                self.fields("application", &id, theirs, &[("name".to_owned(), name)]);
                self.fields("application attempt", &format!("{id} {number}"), attempt, &ours);
            }
        }
        Ok(())
    }

    fn jobs(&mut self, app: &Application, answer: &Value, all: bool) -> Result<()> {
        for theirs in items(answer) {
            self.job(app, number(theirs, "jobId")? as u32, theirs)?;
        }
        if all {
            self.same_length("jobs", items(answer).len(), app.jobs.len());
        }
        Ok(())
    }

    fn job(&mut self, app: &Application, id: u32, theirs: &Value) -> Result<()> {
        let job = app.job(id).context("no such job")?;
        self.fields("job", &format!("{} {id}", &*app.id), theirs, &job_fields(app, job));
        Ok(())
    }

    fn stages(&mut self, app: &Application, answer: &Value, all: Option<usize>) -> Result<()> {
        for theirs in items(answer) {
            self.stage(app, theirs)?;
        }
        if let Some(all) = all {
            self.same_length("stages", items(answer).len(), all);
        }
        Ok(())
    }

    fn stage(&mut self, app: &Application, theirs: &Value) -> Result<()> {
        let (id, attempt) = (number(theirs, "stageId")? as u32, number(theirs, "attemptId")? as u32);
        let stage = find_stage(app, id, attempt)?;
        let theirs = &with_sorted_rdds(theirs);
        let place = format!("{} {id}.{attempt}", &*app.id);
        self.fields("stage", &place, theirs, &stage_fields(stage));
        if let Some(tasks) = theirs["tasks"].as_object() {
            self.tasks(app, stage, tasks.values().collect())?;
        }
        if let Some(executors) = theirs["executorSummary"].as_object() {
            for (executor, summary) in executors {
                let ours = stage_executor_fields(app, stage, executor);
                self.fields("executor in stage", &format!("{place} {executor}"), summary, &ours);
            }
        }
        if let Some(summary) = theirs.get("taskMetricsDistributions") {
            self.summary(stage, summary)?;
        }
        Ok(())
    }

    fn tasks(&mut self, app: &Application, stage: &Stage, list: Vec<&Value>) -> Result<()> {
        for theirs in list {
            let id = number(theirs, "taskId")?;
            let row = stage.tasks.find(id).context("no such task")?;
            let ours = task_fields(app, &stage.tasks, row);
            self.fields("task", &format!("{} {id}", &*app.id), theirs, &ours);
        }
        Ok(())
    }

    fn summary(&mut self, stage: &Stage, theirs: &Value) -> Result<()> {
        let wanted: Vec<f64> = items(&theirs["quantiles"]).into_iter().filter_map(Value::as_f64).collect();
        let ours: Vec<(String, Value)> = QUANTILES
            .iter()
            .map(|(name, metric)| {
                let rows = stage.tasks.successful();
                let mut values: Vec<i64> = rows.map(|row| stage.tasks.value(*metric, row)).collect();
                values.sort_unstable();
                let at = |q: &f64| quantile(&values, *q).unwrap_or_default() as f64;
                ((*name).to_owned(), json!(wanted.iter().map(at).collect::<Vec<_>>()))
            })
            .collect();
        self.fields("task quantiles", &format!("stage {}.{}", stage.id, stage.attempt), theirs, &ours);
        Ok(())
    }

    fn executors(&mut self, app: &Application, answer: &Value) -> Result<()> {
        self.same_length("executors", items(answer).len(), app.executors.len());
        for theirs in items(answer) {
            let id = text(theirs, "id")?;
            let at = app.executors.iter().position(|e| *e.id == *id).context("no such executor")?;
            let mut ours = executor_fields(app, at);
            ours.extend(peak_fields(&app.executors[at], theirs));
            self.fields("executor", &format!("{} {id}", &*app.id), theirs, &ours);
        }
        Ok(())
    }

    fn rdd(&mut self, app: &Application, id: u32, theirs: &Value) -> Result<()> {
        let rdd = app.cached.iter().find(|rdd| rdd.id == id).context("no such RDD")?;
        let ours = [
            ("id", json!(rdd.id)),
            ("name", json!(&*rdd.name)),
            ("numPartitions", json!(rdd.partitions)),
            ("numCachedPartitions", json!(rdd.blocks)),
            ("memoryUsed", json!(rdd.memory_bytes)),
            ("diskUsed", json!(rdd.disk_bytes)),
        ];
        self.fields("cached RDD", &format!("{} {id}", &*app.id), theirs, &owned(ours));
        Ok(())
    }

    fn environment(&mut self, app: &Application, theirs: &Value) -> Result<()> {
        let place = app.id.to_string();
        let env = &app.environment;
        let pairs = |map: &BTreeMap<model::Text, model::Text>| -> Value {
            map.iter().map(|(key, value)| json!([&**key, &**value])).collect()
        };
        let ours = [
            ("sparkProperties", pairs(&env.spark)),
            ("hadoopProperties", pairs(&env.hadoop)),
            ("systemProperties", pairs(&env.system)),
            ("metricsProperties", pairs(&env.metrics)),
            ("runtime/javaHome", json!(env.jvm.get("Java Home").map(|v| &**v))),
            ("runtime/javaVersion", json!(env.jvm.get("Java Version").map(|v| &**v))),
            ("runtime/scalaVersion", json!(env.jvm.get("Scala Version").map(|v| &**v))),
        ];
        self.fields("environment", &place, theirs, &owned(ours));
        self.same_length("resource profiles", items(&theirs["resourceProfiles"]).len(), app.profiles.len());
        for (theirs, profile) in items(&theirs["resourceProfiles"]).into_iter().zip(&app.profiles) {
            let mut ours = owned([("id", json!(profile.id))]);
            let executor =
                profile.executor.iter().map(|r| (format!("executorResources/{}/amount", r.name), json!(r.amount)));
            let task = profile.task.iter().map(|(n, v)| (format!("taskResources/{n}/amount"), json!(v)));
            ours.extend(executor.chain(task));
            self.fields("resource profile", &place, theirs, &ours);
        }
        Ok(())
    }
}

fn application_fields(app: &Application) -> Vec<(String, Value)> {
    owned([
        ("startTimeEpoch", json!(app.started_ms)),
        ("endTimeEpoch", json!(app.ended_ms.unwrap_or(-1))),
        ("duration", json!(app.wall_ms())),
        ("sparkUser", json!(&*app.user)),
        ("completed", json!(app.ended_ms.is_some())),
        ("appSparkVersion", json!(&*app.spark_version)),
    ])
}

fn job_fields(app: &Application, job: &Job) -> Vec<(String, Value)> {
    let attempts: Vec<&Stage> = app.stages.iter().filter(|s| job.stages.contains(&s.id)).collect();
    let stages = |status| attempts.iter().filter(|s| s.status == status).count();
    let tasks = |status| attempts.iter().map(|s| s.count(status)).sum::<usize>();
    let resubmitted: u32 = attempts.iter().map(|s| s.resubmitted).sum();
    let first = || attempts.iter().filter(|s| s.attempt == 0);
    let skipped = || first().filter(|s| s.status == StageStatus::Skipped);
    let mut stage_ids = job.stages.clone();
    stage_ids.sort_unstable();
    owned([
        ("jobId", json!(job.id)),
        ("name", json!(&*job.name)),
        ("status", json!(job_status(job.status))),
        ("submissionTime", time(job.submitted_ms)),
        ("completionTime", time(job.completed_ms)),
        ("stageIds", json!(stage_ids)),
        ("jobGroup", json!(job.group.as_deref())),
        ("description", json!(job.description.as_deref())),
        ("numTasks", json!(first().map(|s| u64::from(s.num_tasks)).sum::<u64>())),
        ("numActiveTasks", json!(tasks(TaskStatus::Running))),
        ("numCompletedTasks", json!(tasks(TaskStatus::Success))),
        ("numFailedTasks", json!(tasks(TaskStatus::Failed) + resubmitted as usize)),
        ("numKilledTasks", json!(tasks(TaskStatus::Killed))),
        ("numSkippedTasks", json!(skipped().map(|s| u64::from(s.num_tasks)).sum::<u64>())),
        ("numCompletedIndices", json!(attempts.iter().map(|s| completed_indices(s)).sum::<usize>())),
        ("numActiveStages", json!(stages(StageStatus::Active))),
        ("numCompletedStages", json!(stages(StageStatus::Complete))),
        ("numFailedStages", json!(stages(StageStatus::Failed))),
        ("numSkippedStages", json!(skipped().count())),
    ])
}

fn stage_fields(stage: &Stage) -> Vec<(String, Value)> {
    let count = |status| stage.count(status);
    let launched = (0..stage.tasks.len()).map(|row| stage.tasks.value(Metric::LaunchMs, row)).min();
    let mut rdd_ids: Vec<u32> = stage.rdds.iter().map(|rdd| rdd.id).collect();
    rdd_ids.sort_unstable();
    let mut fields = owned([
        ("status", json!(stage_status(stage.status))),
        ("name", json!(&*stage.name)),
        ("details", json!(&*stage.details)),
        ("description", json!(stage.description.as_deref())),
        ("schedulingPool", json!(stage.pool.as_deref().unwrap_or("default"))),
        ("resourceProfileId", json!(stage.resource_profile)),
        ("rddIds", json!(rdd_ids)),
        ("numTasks", json!(stage.num_tasks)),
        ("numActiveTasks", json!(count(TaskStatus::Running))),
        ("numCompleteTasks", json!(count(TaskStatus::Success))),
        ("numFailedTasks", json!(count(TaskStatus::Failed) + stage.resubmitted as usize)),
        ("numKilledTasks", json!(count(TaskStatus::Killed))),
        ("numCompletedIndices", json!(completed_indices(stage))),
        ("submissionTime", time(stage.submitted_ms)),
        ("firstTaskLaunchedTime", time(launched)),
        ("completionTime", time(stage.completed_ms)),
        ("failureReason", json!(stage.failure.as_deref())),
        ("killedTasksSummary", killed_by_reason(&stage.tasks)),
    ]);
    fields.extend(speculation(&stage.tasks));
    fields.extend(STAGE_SUMS.iter().map(|&(name, metric)| (name.to_owned(), json!(stage.sum(metric)))));
    for (at, accumulable) in stage.accumulables.iter().enumerate() {
        let (name, value) = (&accumulable.name, &accumulable.value);
        fields.push((format!("accumulatorUpdates/{at}/name"), json!(&**name)));
        fields.push((format!("accumulatorUpdates/{at}/value"), json!(&**value)));
    }
    fields
}

/// Spark lists the RDDs of a stage in the order of a hash set.
fn with_sorted_rdds(stage: &Value) -> Value {
    let mut stage = stage.clone();
    if let Some(ids) = stage["rddIds"].as_array_mut() {
        ids.sort_by_key(Value::as_u64);
    }
    stage
}

fn completed_indices(stage: &Stage) -> usize {
    stage.tasks.successful().map(|row| stage.tasks.index(row)).collect::<HashSet<_>>().len()
}

fn killed_by_reason(tasks: &Tasks) -> Value {
    let mut reasons = Map::new();
    for (row, reason) in tasks.failures() {
        if let (TaskStatus::Killed, EndReason::Killed { reason }) = (tasks.status(row), reason) {
            let n = reasons.get(&**reason).and_then(Value::as_u64).unwrap_or_default();
            reasons.insert(reason.to_string(), json!(n + 1));
        }
    }
    Value::Object(reasons)
}

/// Spark gives the counts only for stages that have speculative tasks.
fn speculation(tasks: &Tasks) -> Vec<(String, Value)> {
    let copies: Vec<usize> = (0..tasks.len()).filter(|&row| tasks.speculative(row)).collect();
    if copies.is_empty() {
        return owned([("speculationSummary", Value::Null)]);
    }
    let count = |status| copies.iter().filter(|&&row| tasks.status(row) == status).count();
    owned([
        ("speculationSummary/numTasks", json!(copies.len())),
        ("speculationSummary/numActiveTasks", json!(count(TaskStatus::Running))),
        ("speculationSummary/numCompletedTasks", json!(count(TaskStatus::Success))),
        ("speculationSummary/numFailedTasks", json!(count(TaskStatus::Failed))),
        ("speculationSummary/numKilledTasks", json!(count(TaskStatus::Killed))),
    ])
}

fn stage_executor_fields(app: &Application, stage: &Stage, executor: &str) -> Vec<(String, Value)> {
    let tasks = &stage.tasks;
    let rows: Vec<usize> =
        (0..tasks.len()).filter(|&row| *app.executors[tasks.executor(row)].id == *executor).collect();
    let sum = |metric| json!(rows.iter().map(|&row| tasks.value(metric, row)).sum::<i64>());
    let count = |status| json!(rows.iter().filter(|&&row| tasks.status(row) == status).count());
    let excluded = app.executors.iter().filter(|e| *e.id == *executor).flat_map(|e| &e.exclusions);
    let excluded = excluded.filter(|e| e.stage == Some((stage.id, stage.attempt))).count() > 0;
    owned([
        ("taskTime", sum(Metric::DurationMs)),
        ("succeededTasks", count(TaskStatus::Success)),
        ("failedTasks", count(TaskStatus::Failed)),
        ("killedTasks", count(TaskStatus::Killed)),
        ("inputBytes", sum(Metric::InputBytes)),
        ("inputRecords", sum(Metric::InputRecords)),
        ("outputBytes", sum(Metric::OutputBytes)),
        ("outputRecords", sum(Metric::OutputRecords)),
        ("shuffleRead", sum(Metric::ShuffleReadBytes)),
        ("shuffleReadRecords", sum(Metric::ShuffleRecordsRead)),
        ("shuffleWrite", sum(Metric::ShuffleBytesWritten)),
        ("shuffleWriteRecords", sum(Metric::ShuffleRecordsWritten)),
        ("memoryBytesSpilled", sum(Metric::MemorySpillBytes)),
        ("diskBytesSpilled", sum(Metric::DiskSpillBytes)),
        ("isExcludedForStage", json!(excluded)),
    ])
}

fn task_fields(app: &Application, tasks: &Tasks, row: usize) -> Vec<(String, Value)> {
    let executor = &app.executors[tasks.executor(row)];
    let value = |metric| json!(tasks.value(metric, row));
    let mut fields = owned([
        ("taskId", json!(tasks.id(row))),
        ("index", json!(tasks.index(row))),
        ("attempt", json!(tasks.attempt(row))),
        ("partitionId", json!(tasks.partition(row))),
        ("launchTime", time(Some(tasks.value(Metric::LaunchMs, row)))),
        ("duration", value(Metric::DurationMs)),
        ("executorId", json!(&*executor.id)),
        ("host", json!(&*executor.host)),
        ("status", json!(task_status(tasks.status(row)))),
        ("taskLocality", json!(locality(tasks.locality(row)))),
        ("speculative", json!(tasks.speculative(row))),
        ("schedulerDelay", value(Metric::SchedulerDelayMs)),
        ("gettingResultTime", value(Metric::GettingResultTimeMs)),
    ]);
    if tasks.has_metrics(row) {
        fields.extend(TASK_FIGURES.iter().map(|&(name, metric)| (format!("taskMetrics/{name}"), value(metric))));
    }
    fields
}

fn executor_fields(app: &Application, at: usize) -> Vec<(String, Value)> {
    let executor = &app.executors[at];
    let mut tasks = ExecutorTasks::default();
    for stage in &app.stages {
        tasks.add(&stage.tasks, at);
    }
    let excluded = executor.exclusions.iter().any(|e| e.stage.is_none() && e.until_ms.is_none());
    let cpus = app.conf("spark.task.cpus").and_then(|v| v.parse().ok()).unwrap_or(1).max(1);
    // In the driver's row Spark shows the application's time and the driver's own collections.
    let (duration, gc_ms) = match executor.is_driver() {
        true => (app.wall_ms(), executor.peak("TotalGCTime").unwrap_or_default()),
        false => (tasks.duration_ms, tasks.gc_ms),
    };
    owned([
        ("hostPort", json!(executor.host_port.as_deref().unwrap_or(&executor.host))),
        ("isActive", json!(executor.removed_ms.is_none())),
        ("totalCores", json!(executor.cores)),
        ("maxTasks", json!(executor.cores / cpus)),
        ("addTime", time(executor.added_ms)),
        ("removeTime", time(executor.removed_ms)),
        ("removeReason", json!(executor.removed_reason.as_deref())),
        ("resourceProfileId", json!(executor.resource_profile)),
        ("maxMemory", json!(executor.max_memory_bytes)),
        ("memoryMetrics/totalOnHeapStorageMemory", json!(executor.max_on_heap_bytes)),
        ("memoryMetrics/totalOffHeapStorageMemory", json!(executor.max_off_heap_bytes)),
        ("isExcluded", json!(excluded)),
        ("activeTasks", json!(tasks.active)),
        ("completedTasks", json!(tasks.completed)),
        ("failedTasks", json!(tasks.failed)),
        ("totalTasks", json!(tasks.all)),
        ("totalDuration", json!(duration)),
        ("totalGCTime", json!(gc_ms)),
        ("totalInputBytes", json!(tasks.input_bytes)),
        ("totalShuffleRead", json!(tasks.shuffle_read_bytes)),
        ("totalShuffleWrite", json!(tasks.shuffle_write_bytes)),
    ])
}

#[derive(Default)]
struct ExecutorTasks {
    all: u64,
    active: u64,
    completed: u64,
    failed: u64,
    duration_ms: i64,
    gc_ms: i64,
    input_bytes: i64,
    shuffle_read_bytes: i64,
    shuffle_write_bytes: i64,
}

impl ExecutorTasks {
    fn add(&mut self, tasks: &Tasks, executor: usize) {
        for row in (0..tasks.len()).filter(|&row| tasks.executor(row) == executor) {
            self.all += 1;
            match tasks.status(row) {
                TaskStatus::Running => self.active += 1,
                TaskStatus::Success => self.completed += 1,
                TaskStatus::Failed => self.failed += 1,
                TaskStatus::Killed => {}
            }
            self.duration_ms += tasks.value(Metric::DurationMs, row);
            self.gc_ms += tasks.value(Metric::GcMs, row);
            self.input_bytes += tasks.value(Metric::InputBytes, row);
            self.shuffle_read_bytes += tasks.value(Metric::ShuffleReadBytes, row);
            self.shuffle_write_bytes += tasks.value(Metric::ShuffleBytesWritten, row);
        }
    }
}

/// Peaks are compared by the names that Spark shows.
fn peak_fields(executor: &Executor, theirs: &Value) -> Vec<(String, Value)> {
    let names = theirs["peakMemoryMetrics"].as_object().into_iter().flat_map(Map::keys);
    names.map(|name| (format!("peakMemoryMetrics/{name}"), json!(executor.peak(name).unwrap_or_default()))).collect()
}

fn job_status(status: StageStatus) -> &'static str {
    match status {
        StageStatus::Complete => "SUCCEEDED",
        StageStatus::Failed => "FAILED",
        _ => "RUNNING",
    }
}

fn stage_status(status: StageStatus) -> &'static str {
    match status {
        StageStatus::Pending => "PENDING",
        StageStatus::Active => "ACTIVE",
        StageStatus::Complete => "COMPLETE",
        StageStatus::Failed => "FAILED",
        StageStatus::Skipped => "SKIPPED",
    }
}

fn task_status(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Running => "RUNNING",
        TaskStatus::Success => "SUCCESS",
        TaskStatus::Failed => "FAILED",
        TaskStatus::Killed => "KILLED",
    }
}

fn locality(locality: Locality) -> &'static str {
    match locality {
        Locality::ProcessLocal => "PROCESS_LOCAL",
        Locality::NodeLocal => "NODE_LOCAL",
        Locality::NoPref => "NO_PREF",
        Locality::RackLocal => "RACK_LOCAL",
        Locality::Any => "ANY",
    }
}

/// A time as Spark's REST writes it: `2015-02-03T16:43:05.829GMT`.
fn time(ms: Option<i64>) -> Value {
    let time = ms.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map_or(Value::Null, |t| json!(t.strftime("%Y-%m-%dT%H:%M:%S.%3fGMT").to_string()))
}

fn find_stage(app: &Application, id: u32, attempt: u32) -> Result<&Stage> {
    app.stage(id, attempt).with_context(|| format!("no stage {id}.{attempt}"))
}

fn items(value: &Value) -> Vec<&Value> {
    value.as_array().into_iter().flatten().collect()
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().with_context(|| format!("no {key}"))
}

fn number(value: &Value, key: &str) -> Result<i64> {
    value[key].as_i64().with_context(|| format!("no {key}"))
}

fn owned<const N: usize>(fields: [(&str, Value); N]) -> Vec<(String, Value)> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
