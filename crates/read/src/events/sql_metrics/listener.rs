//! Spark's SQL listener over the events in the order of the log: which updates count for which
//! execution, and when they are summed up.

use super::parse::{Event, Parsed, Planned};
use super::stage::{Gathered, MetricValue, StageMetrics, Task, UPDATE_BYTES};
use super::{GraphMetric, SqlFigures, SqlMetrics, ValueKind};
use foldhash::{HashMap, HashSet};
use std::collections::BTreeMap;

/// The listener so far.
#[derive(Debug)]
pub(crate) struct Listener {
    found: BTreeMap<i64, SqlFigures>,
    live: BTreeMap<i64, Live>,
    stages: HashMap<u32, StageMetrics>,
    /// Live executions by the stages that work for them.
    users: HashMap<u32, u32>,
    /// Live executions by job.
    owners: HashMap<u32, HashSet<i64>>,
    /// Metrics of each execution; stages refer to them by number, because adaptive execution adds
    /// metrics while stages run.
    metrics: Vec<HashMap<i64, ValueKind>>,
    bytes: u64,
    max_bytes: u64,
}

/// An execution that has not ended, or not all of whose jobs have.
#[derive(Debug, Default)]
struct Live {
    metrics: usize,
    jobs: HashSet<u32>,
    /// In the order in which jobs brought them.
    stages: Vec<u32>,
    driver: Vec<(i64, i64)>,
    /// Ends of jobs and of the execution itself.
    ends: usize,
    summed_up: bool,
}

impl Listener {
    pub fn new(max_bytes: u64) -> Self {
        Self {
            found: BTreeMap::new(),
            live: BTreeMap::new(),
            stages: HashMap::default(),
            users: HashMap::default(),
            owners: HashMap::default(),
            metrics: Vec::new(),
            bytes: 0,
            max_bytes,
        }
    }

    /// Takes the next batch of the log.
    pub fn batch(&mut self, parsed: Parsed) {
        for event in parsed.events {
            match event {
                Event::TaskEnd { stage, attempt, task, updates } => {
                    self.task_end(stage, attempt, task, &parsed.updates[updates]);
                }
                Event::JobStart { job, execution, stage_ids, stages } => {
                    self.job_start(job, execution, &stage_ids, &stages);
                }
                Event::JobEnd { job } => self.job_end(job),
                Event::StageSubmitted { stage, attempt } => self.stage_submitted(stage, attempt),
                Event::Start(planned) | Event::Update(planned) => self.planned(planned),
                Event::Metrics { execution, metrics } => self.add_metrics(execution, &metrics),
                Event::Driver { execution, updates } => {
                    if let Some(live) = self.live.get_mut(&execution) {
                        live.driver.extend(updates);
                    }
                }
                Event::End { execution } => self.end(execution),
            }
        }
    }

    /// Sums up what never ended, as a server that reads a log to its end does.
    pub fn finish(mut self) -> SqlMetrics {
        let open: Vec<i64> = self.live.keys().copied().collect();
        for execution in open {
            self.sum_up(execution);
        }
        SqlMetrics { executions: self.found }
    }

    fn live(&mut self, execution: i64) -> &mut Live {
        let metrics = &mut self.metrics;
        self.live.entry(execution).or_insert_with(|| {
            metrics.push(HashMap::default());
            Live { metrics: metrics.len() - 1, ..Live::default() }
        })
    }

    fn planned(&mut self, planned: Planned) {
        let metrics: Vec<GraphMetric> = planned.graph.metrics().cloned().collect();
        self.add_metrics(planned.execution, &metrics);
        self.found.entry(planned.execution).or_default().graph = Some(planned.graph);
    }

    fn add_metrics(&mut self, execution: i64, metrics: &[GraphMetric]) {
        let known = self.live(execution).metrics;
        self.metrics[known].extend(metrics.iter().map(|m| (m.accumulator, m.kind)));
    }

    /// Stages of the job begin anew, also those that have run before.
    fn job_start(&mut self, job: u32, execution: i64, stage_ids: &[u32], stages: &[(u32, u32)]) {
        self.revive(execution);
        let metrics = self.live(execution).metrics;
        if !self.metrics[metrics].is_empty() {
            for &(stage, tasks) in stages {
                self.put(stage, StageMetrics::new(0, tasks, metrics));
            }
        }
        let live = self.live(execution);
        live.jobs.insert(job);
        let new: Vec<u32> = stage_ids.iter().copied().filter(|stage| !live.stages.contains(stage)).collect();
        live.stages.extend(&new);
        for stage in new {
            *self.users.entry(stage).or_default() += 1;
        }
        self.owners.entry(job).or_default().insert(execution);
    }

    /// A job that comes after all of an execution has ended brings it back, with its figures as
    /// they are.
    fn revive(&mut self, execution: i64) {
        if self.live.contains_key(&execution) || !self.found.contains_key(&execution) {
            return;
        }
        let live = self.live(execution);
        live.summed_up = true;
        // As many as are awaited without the new job.
        live.ends = 1;
        let metrics = live.metrics;
        let figures = self.found.get(&execution).and_then(|found| found.graph.as_ref());
        let kinds = figures.into_iter().flat_map(|graph| graph.metrics()).map(|m| (m.accumulator, m.kind));
        self.metrics[metrics].extend(kinds);
    }

    fn job_end(&mut self, job: u32) {
        for execution in self.owners.get(&job).cloned().unwrap_or_default() {
            if let Some(live) = self.live.get_mut(&execution) {
                live.ends += 1;
                self.drop_if_over(execution);
            }
        }
    }

    /// A new attempt of a stage begins with nothing.
    fn stage_submitted(&mut self, stage: u32, attempt: u32) {
        let Some(known) = self.stages.get(&stage).filter(|known| known.attempt != attempt) else { return };
        let new = StageMetrics::new(attempt, known.tasks, known.metrics);
        self.put(stage, new);
    }

    fn task_end(&mut self, stage: u32, attempt: u32, task: Task, updates: &[(i64, i64)]) {
        if !self.users.contains_key(&stage) {
            return;
        }
        let Some(known) = self.stages.get_mut(&stage).filter(|known| known.attempt == attempt) else { return };
        self.bytes += UPDATE_BYTES * known.task(task, updates, &self.metrics[known.metrics]);
        if self.bytes > self.max_bytes {
            self.bytes -= known.bytes();
            known.give_up();
        }
    }

    fn end(&mut self, execution: i64) {
        if !self.live.contains_key(&execution) {
            return;
        }
        self.sum_up(execution);
        self.forget_stages_of(execution);
        if let Some(live) = self.live.get_mut(&execution) {
            live.ends += 1;
        }
        self.drop_if_over(execution);
    }

    /// Lets an execution go once it and all of its jobs have ended.
    fn drop_if_over(&mut self, execution: i64) {
        let over = self.live.get(&execution).is_some_and(|live| live.ends > live.jobs.len());
        if !over {
            return;
        }
        self.forget_stages_of(execution);
        let Some(live) = self.live.remove(&execution) else { return };
        self.metrics[live.metrics] = HashMap::default();
        for job in live.jobs {
            self.owners.remove(&job);
        }
        for stage in live.stages {
            if let Some(users) = self.users.get_mut(&stage) {
                *users -= 1;
                if *users == 0 {
                    self.users.remove(&stage);
                }
            }
        }
    }

    /// Lets the updates of those stages go that no other live execution has.
    fn forget_stages_of(&mut self, execution: i64) {
        let Some(live) = self.live.get(&execution) else { return };
        for stage in live.stages.iter().filter(|stage| self.users.get(stage) == Some(&1)) {
            let gone = self.stages.remove(stage);
            self.bytes -= gone.map_or(0, |gone| gone.bytes());
        }
    }

    fn put(&mut self, stage: u32, new: StageMetrics) {
        let before = self.stages.insert(stage, new);
        self.bytes -= before.map_or(0, |before| before.bytes());
    }

    fn sum_up(&mut self, execution: i64) {
        let Some(live) = self.live.get_mut(&execution).filter(|live| !live.summed_up) else { return };
        live.summed_up = true;
        let live = &*live;
        let stages = in_set_order(&live.stages).into_iter().filter_map(|id| Some((id, self.stages.get(&id)?)));
        let stages: Vec<(u32, &StageMetrics)> = stages.collect();
        let found = self.found.entry(execution).or_default();
        found.too_large = stages.iter().any(|(_, stage)| stage.too_large);
        if !found.too_large {
            found.values = values(&stages, &live.driver, &self.metrics[live.metrics]);
        }
    }
}

/// What the updates of the tasks of some stages and those of the driver come to.
fn values(
    stages: &[(u32, &StageMetrics)],
    driver: &[(i64, i64)],
    kinds: &HashMap<i64, ValueKind>,
) -> HashMap<i64, MetricValue> {
    let mut gathered: HashMap<i64, Gathered> = HashMap::default();
    for (id, stage) in stages {
        for (accumulator, updates) in &stage.updates {
            gathered.entry(*accumulator).or_default().stage(updates, *id, stage);
        }
    }
    for (accumulator, value) in driver {
        gathered.entry(*accumulator).or_default().driver(*value);
    }
    let sum = |(id, all): (i64, Gathered)| kinds.get(&id).map(|kind| (id, all.value(*kind)));
    gathered.into_iter().filter_map(sum).collect()
}

/// The order in which Scala 2.13 walks an immutable set or map of integers: up to four as they
/// came, more by their hash. Spark takes the first of equal largest updates in this order, and
/// lists jobs in it.
#[must_use]
pub fn in_set_order(ids: &[u32]) -> Vec<u32> {
    if ids.len() <= 4 {
        return ids.to_vec();
    }
    let mut hashed: Vec<(u32, u32)> = ids.iter().map(|&id| (improved(id), id)).collect();
    let mut ordered = Vec::with_capacity(ids.len());
    by_trie(&mut hashed, 0, &mut ordered);
    ordered
}

/// `scala.collection.Hashing.improve`: what the standard library does to a hash code.
fn improved(hash: u32) -> u32 {
    let h = hash.wrapping_add(!(hash << 9));
    let h = h ^ (h >> 14);
    let h = h.wrapping_add(h << 4);
    h ^ (h >> 10)
}

/// A node of the trie gives what stands in it first, then what stands below it, five bits a level.
fn by_trie(ids: &mut [(u32, u32)], shift: u32, ordered: &mut Vec<u32>) {
    let bits = |hash: u32| hash.checked_shr(shift).unwrap_or_default() & 31;
    ids.sort_by_key(|(hash, _)| bits(*hash));
    let groups = |a: &(u32, u32), b: &(u32, u32)| bits(a.0) == bits(b.0);
    ordered.extend(ids.chunk_by(groups).filter(|group| group.len() == 1).map(|group| group[0].1));
    for group in ids.chunk_by_mut(groups).filter(|group| group.len() > 1) {
        match shift < 32 {
            true => by_trie(group, shift + 5, ordered),
            false => ordered.extend(group.iter().map(|(_, id)| *id)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MetricValue, TaskPlace, ValueKind};
    use super::in_set_order;
    use crate::source::Part;
    use crate::{Options, sql_metrics};

    const START: &str = r#"{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart","executionId":0,
        "sparkPlanInfo":{"nodeName":"Scan ","simpleString":"Scan","children":[],"metadata":{},"metrics":[
        {"name":"rows","accumulatorId":1,"metricType":"sum"},{"name":"bytes","accumulatorId":2,"metricType":"size"},
        {"name":"mean","accumulatorId":3,"metricType":"average"}]},"time":1}"#;
    const JOB: &str = r#"{"Event":"SparkListenerJobStart","Job ID":0,"Stage IDs":[4],"Stage Infos":[{"Stage ID":4,
        "Number of Tasks":3}],"Properties":{"spark.sql.execution.id":"0"}}"#;
    const END: &str =
        r#"{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd","executionId":0,"time":9}"#;
    const AGAIN: &str = r#"{"Event":"SparkListenerStageSubmitted","Stage Info":{"Stage ID":4,"Stage Attempt ID":1}}"#;
    const DRIVER: &str = r#"{"Event":"org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates","executionId":0,"accumUpdates":[[2,70],[9,1]]}"#;

    /// The end of a task with an update of each metric, and of one that is none of the plan's.
    fn task(attempt: u32, id: i64, index: u32, succeeded: bool, value: i64) -> String {
        let reason = if succeeded { "Success" } else { "TaskResultLost" };
        let updates = [1, 2, 3, 8].map(|id| {
            format!(r#"{{"ID":{id},"Name":"n","Update":"{value}","Value":"1","Internal":true,"Count Failed Values":true,"Metadata":"sql"}}"#)
        });
        format!(
            r#"{{"Event":"SparkListenerTaskEnd","Stage ID":4,"Stage Attempt ID":{attempt},"Task End Reason":{{"Reason":"{reason}"}},"Task Info":{{"Task ID":{id},"Index":{index},"Attempt":0,"Launch Time":1,"Finish Time":2,"Executor ID":"1","Host":"h","Locality":"ANY","Speculative":false,"Accumulables":[{}]}}}}"#,
            updates.join(",")
        )
    }

    fn values(lines: &[&str]) -> Vec<(i64, MetricValue)> {
        let log: Vec<String> = lines.iter().map(|line| line.replace('\n', "")).collect();
        let told = sql_metrics(vec![Part::bytes("log", log.join("\n").into_bytes())], &Options::default()).unwrap();
        let mut values: Vec<_> = told.executions[&0].values.iter().map(|(id, value)| (*id, *value)).collect();
        values.sort_unstable_by_key(|(id, _)| *id);
        values
    }

    fn place(attempt: u32, task: i64) -> Option<TaskPlace> {
        Some(TaskPlace { stage: 4, attempt, task })
    }

    #[test]
    fn updates_count_as_the_listener_counts_them() {
        let tasks = [
            // Failed, then done: the later value counts, the larger one stays the largest's owner.
            task(0, 10, 0, false, 50),
            task(0, 11, 0, true, 20),
            // A copy that comes too late, an attempt that is over, an index that there is not.
            task(0, 12, 0, true, 99),
            task(7, 13, 1, true, 99),
            task(0, 14, 3, true, 99),
            task(0, 15, 1, true, -1),
        ];
        let mut lines = vec![START, JOB];
        lines.extend(tasks.iter().map(String::as_str));
        lines.push(END);
        let [(1, sum), (2, size), (3, mean)] = values(&lines)[..] else { panic!("{:?}", values(&lines)) };
        assert_eq!((sum.kind, sum.sum), (ValueKind::Sum, 19));
        // The third task counts as 0, what was never set does not.
        assert_eq!((size.count, size.sum, size.min, size.median, size.max), (2, 20, 0, 20, 20));
        assert_eq!(size.task, place(0, 10));
        assert_eq!((mean.count, mean.max), (1, 20));
    }

    #[test]
    fn a_retried_stage_begins_anew_and_the_driver_may_have_the_largest() {
        let tasks = [task(0, 10, 0, true, 50), task(0, 11, 1, true, 60), task(1, 12, 0, true, 5)];
        let lines = [START, JOB, &tasks[0], &tasks[1], AGAIN, &tasks[2], END, &tasks[1]];
        let size = values(&lines)[1].1;
        assert_eq!((size.count, size.sum, size.max, size.task), (3, 5, 5, place(1, 12)));
        let lines = [START, JOB, &tasks[0], DRIVER];
        let size = values(&lines)[1].1;
        assert_eq!((size.count, size.sum, size.max, size.task), (4, 120, 70, None));
        assert!(values(&lines).iter().all(|(id, _)| *id != 9));
    }

    #[test]
    fn sets_are_walked_as_scala_walks_them() {
        assert_eq!(in_set_order(&[9, 2, 7, 4]), [9, 2, 7, 4]);
        // As Spark 4.0.1 lists the jobs of an execution.
        assert_eq!(in_set_order(&[3, 4, 5, 6, 7, 8, 9]), [5, 6, 9, 7, 3, 8, 4]);
        assert_eq!(in_set_order(&[2, 3, 4, 5, 6]), [5, 6, 2, 3, 4]);
        let many: Vec<u32> = (0..5_000).collect();
        let mut walked = in_set_order(&many);
        walked.sort_unstable();
        assert_eq!(walked, many);
    }
}
