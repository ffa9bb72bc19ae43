//! Small made-up applications for the tests of rules.

use model::{
    Accumulator, Application, Exchange, Executor, Job, Join, Metric, Operator, Partitioning, PastedSummary, Plan,
    PlanMetric, PlanNode, Quantiles, SqlExecution, Stage, StageStatus, TaskRow, TaskStatus,
};

/// A task to be placed on the first free slot.
#[derive(Clone, Debug)]
pub struct T {
    pub values: Vec<(Metric, i64)>,
    pub ms: i64,
    pub executor: Option<usize>,
    pub attempt: u32,
    pub status: TaskStatus,
    pub speculative: bool,
}

/// A task of so many milliseconds, all of it run time.
pub fn t(ms: i64) -> T {
    T { values: Vec::new(), ms, executor: None, attempt: 0, status: TaskStatus::Success, speculative: false }
}

impl T {
    pub fn with(mut self, metric: Metric, value: i64) -> Self {
        self.values.push((metric, value));
        self
    }

    pub fn read(self, bytes: i64, records: i64) -> Self {
        self.with(Metric::LocalBytesRead, bytes).with(Metric::ShuffleRecordsRead, records)
    }

    pub fn on(mut self, executor: usize) -> Self {
        self.executor = Some(executor);
        self
    }

    pub fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }
}

/// An application that grows stage by stage. Its executors are warm: each slot ran a task at the
/// start, a minute before the first stage of a test.
pub struct World {
    pub app: Application,
    free: Vec<(i64, usize)>,
    now: i64,
    next_task: i64,
}

pub fn world(executors: usize, cores: u32) -> World {
    let mut app = Application { started_ms: Some(0), spark_version: "3.5.6".into(), ..Application::default() };
    let mut free = Vec::new();
    for at in 0..executors {
        let (id, host) = (at.to_string(), format!("host-{at}"));
        app.executors.push(Executor {
            id: id.as_str().into(),
            host: host.as_str().into(),
            cores,
            added: true,
            added_ms: Some(0),
            ..Executor::default()
        });
        free.extend((0..cores).map(|_| (0, at)));
    }
    let mut world = World { app, free, now: 0, next_task: 0 };
    let warm_up: Vec<T> = (0..executors * cores as usize).map(|_| t(100)).collect();
    world.stage(&warm_up);
    world.now = 60_000;
    world
}

impl World {
    /// Adds a job of one stage; gives the position of the stage.
    pub fn stage(&mut self, tasks: &[T]) -> usize {
        let id = self.app.stages.len() as u32;
        let mut stage = Stage { jobs: vec![id], num_tasks: tasks.len() as u32, ..Stage::new(id, 0) };
        stage.status = StageStatus::Complete;
        stage.submitted_ms = Some(self.now);
        let end = self.place(&mut stage, tasks);
        stage.completed_ms = Some(end);
        self.app.jobs.push(Job {
            id,
            submitted_ms: Some(self.now),
            completed_ms: Some(end),
            stages: vec![id],
            status: StageStatus::Complete,
            ..Job::default()
        });
        self.app.stages.push(stage);
        self.now = end;
        self.app.ended_ms = Some(end);
        self.app.stages.len() - 1
    }

    /// Adds another attempt of the last stage.
    pub fn again(&mut self, tasks: &[T]) {
        let (id, attempt) = self.app.stages.last().map(|s| (s.id, s.attempt + 1)).expect("a stage");
        let mut stage = Stage { jobs: vec![id], num_tasks: tasks.len() as u32, ..Stage::new(id, attempt) };
        stage.status = StageStatus::Complete;
        let end = self.place(&mut stage, tasks);
        self.app.stages.push(stage);
        self.app.jobs.last_mut().expect("a job").completed_ms = Some(end);
        self.now = end;
        self.app.ended_ms = Some(end);
    }

    fn place(&mut self, stage: &mut Stage, tasks: &[T]) -> i64 {
        let mut end = self.now;
        for (index, task) in tasks.iter().enumerate() {
            let fits = |slot: &&mut (i64, usize)| task.executor.is_none_or(|e| e == slot.1);
            let slot = self.free.iter_mut().filter(fits).min_by_key(|s| (s.0, s.1)).expect("a slot");
            let launch = slot.0.max(self.now);
            slot.0 = launch + task.ms;
            end = end.max(slot.0);
            let mut row = TaskRow::new(self.next_task);
            self.next_task += 1;
            row.index = index as u32;
            row.executor = slot.1 as u32;
            row.attempt = task.attempt;
            row.status = task.status;
            row.speculative = task.speculative;
            row.set(Metric::LaunchMs, launch).set(Metric::FinishMs, launch + task.ms);
            row.set(Metric::RunMs, task.ms).set(Metric::CpuNs, task.ms * 900_000);
            for &(metric, value) in &task.values {
                row.set(metric, value);
            }
            stage.tasks.push(row);
        }
        end
    }

    /// Lets time pass after the last stage.
    pub fn wait(mut self, ms: i64) -> Self {
        self.now += ms;
        self.app.ended_ms = Some(self.now);
        self
    }

    /// Makes the last stage the reader of a plan's exchanges: a sort-merge join by `keys`, with
    /// the bytes that its two sides wrote.
    pub fn join(&mut self, kind: &str, keys: &[&str], left: i64, right: i64, filter: Option<&str>) {
        let stage = self.app.stages.len() - 1;
        let keys: Vec<String> = keys.iter().map(|k| (*k).to_owned()).collect();
        let mut plan = Plan::default();
        let join = Join { kind: kind.to_owned(), left_keys: keys.clone(), right_keys: keys.clone(), ..Join::default() };
        add(&mut plan, None, "SortMergeJoin", Operator::Join(join));
        for side in 0..2 {
            let exchange = Exchange { partitioning: Partitioning::Hash, keys: keys.clone(), ..Exchange::default() };
            let at = add(&mut plan, Some(0), "Exchange", Operator::Exchange(exchange));
            if let Some(condition) = filter.filter(|_| side == 0) {
                add(&mut plan, Some(at), "Filter", Operator::Filter { condition: condition.to_owned() });
            }
        }
        self.metric(&mut plan, 0, "number of output rows", 1, stage);
        for (node, bytes) in [(1, left), (plan.nodes.len() - 1, right)] {
            self.metric(&mut plan, node, "records read", 1, stage);
            self.metric(&mut plan, node, "shuffle bytes written", bytes, 0);
        }
        self.sql(plan, stage);
    }

    /// Makes the last stage the reader of one exchange under an operator.
    pub fn reads(&mut self, name: &str, op: Operator, exchange: Exchange) {
        let stage = self.app.stages.len() - 1;
        let mut plan = Plan::default();
        add(&mut plan, None, name, op);
        add(&mut plan, Some(0), "Exchange", Operator::Exchange(exchange));
        self.metric(&mut plan, 0, "number of output rows", 1, stage);
        self.metric(&mut plan, 1, "records read", 1, stage);
        self.sql(plan, stage);
    }

    fn sql(&mut self, plan: Plan, stage: usize) {
        let id = self.app.sql.len() as i64;
        self.app.stages[stage].sql = Some(id);
        self.app.sql.push(SqlExecution { id, first_plan: plan, ..SqlExecution::default() });
    }

    fn metric(&mut self, plan: &mut Plan, node: usize, name: &str, value: i64, stage: usize) {
        let accumulator = self.app.accumulators.len() as i64;
        let sum = Accumulator { sum: value, max: value, updates: 1, stage: Some(stage as u32) };
        self.app.accumulators.insert(accumulator, sum);
        plan.nodes[node].metrics.push(PlanMetric { name: name.into(), accumulator, ..PlanMetric::default() });
    }

    pub fn conf(mut self, key: &str, value: &str) -> Self {
        self.app.environment.spark.insert(key.into(), value.into());
        self
    }

    pub fn report(&self) -> model::Report {
        crate::diagnose(&self.app, &crate::Config::default())
    }

    /// Ids of findings above info, worst first.
    pub fn ids(&self) -> Vec<String> {
        let report = self.report();
        report.findings.into_iter().filter(|f| f.severity > model::Severity::Info).map(|f| f.id).collect()
    }

    pub fn has(&self, id: &str) -> bool {
        self.report().findings.iter().any(|f| f.id == id)
    }

    pub fn find(&self, id: &str) -> model::Finding {
        let report = self.report();
        let ids: Vec<_> = report.findings.iter().map(|f| f.id.clone()).collect();
        report.findings.into_iter().find(|f| f.id == id).unwrap_or_else(|| panic!("no {id} among {ids:?}"))
    }
}

fn add(plan: &mut Plan, parent: Option<usize>, name: &str, op: Operator) -> usize {
    let at = plan.nodes.len();
    plan.nodes.push(PlanNode { parent, name: name.into(), op, ..PlanNode::default() });
    if let Some(parent) = parent {
        plan.nodes[parent].children.push(at);
    }
    at
}

/// A pasted stage.
pub fn pasted(tasks: u32, wall_ms: i64, slots: f64, figures: &[(Metric, [i64; 5])]) -> Application {
    let mut stage = Stage { num_tasks: tasks, ..Stage::new(14, 0) };
    let quantiles = figures.iter().map(|&(metric, [min, p25, median, p75, max])| {
        let sum = median * i64::from(tasks - 1) + max;
        (metric, Quantiles { min, p25, median, p75, max, sum, count: u64::from(tasks) })
    });
    let summary = PastedSummary {
        quantiles: quantiles.collect(),
        wall_ms: Some(wall_ms),
        slots: Some(slots),
        ..PastedSummary::default()
    };
    stage.pasted = Some(summary);
    let pasted = model::Pasted { kind: model::PasteKind::StageMetrics, ..model::Pasted::default() };
    Application { stages: vec![stage], pasted: Some(pasted), ..Application::default() }
}

/// The number of a piece of evidence.
pub fn number(finding: &model::Finding, metric: &str) -> f64 {
    let evidence = finding.evidence.iter().find(|e| e.metric == metric);
    match evidence.map(|e| &e.value) {
        Some(model::Value::Int(n)) => *n as f64,
        Some(model::Value::Float(n)) => *n,
        other => panic!("{metric} of {} is {other:?}", finding.id),
    }
}
