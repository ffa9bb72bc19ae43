//! What every rule needs to know, computed once: stages with their figures, the operators they
//! ran, the slots they had, and the model of the run.

use crate::blame::Blame;
use crate::budget::{self, Budget};
use crate::config::Config;
use crate::gaps::{self, Gap};
use crate::queries::{self, Query};
use crate::run_model::{self, Change, RunModel};
use crate::slots::Slots;
use crate::uneven::Uneven;
use crate::work::Work;
use crate::{cold, stage_model};
use foldhash::HashMap;
use model::{Application, Estimate, Executor, Metric, Plan, PlanNode, Quantiles, SqlExecution, Stage, TaskStatus};
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// The application with what was computed from it.
pub struct Context<'a> {
    /// What was read.
    pub app: &'a Application,
    /// Thresholds.
    pub config: &'a Config,
    /// Stage attempts that have figures, in the order of [`Application::stages`].
    pub stages: Vec<StageFacts<'a>>,
    /// Slots over time.
    pub slots: Slots,
    /// Model of the run; `None` for a paste.
    pub run: Option<RunModel>,
    /// Wall time of the application, ms; 0 when unknown.
    pub wall_ms: i64,
    /// What went wrong, and which of it is to blame.
    pub blame: Blame,
    budget: Budget,
    gaps: Vec<Gap>,
    of_users: Vec<Query<'a>>,
    /// Positions in `stages` by SQL execution.
    by_sql: OnceCell<HashMap<i64, Vec<usize>>>,
}

/// A stage attempt with its figures.
pub struct StageFacts<'a> {
    /// The stage.
    pub stage: &'a Stage,
    /// Position in [`Application::stages`].
    pub position: usize,
    /// Tasks that succeeded (or the stated number, for a paste).
    pub n: usize,
    /// Last finish minus first launch, ms.
    pub wall_ms: i64,
    /// Slots, time average over the stage; 0 when unknown.
    pub slots: f64,
    /// Its SQL execution.
    pub sql: Option<&'a SqlExecution>,
    /// The SQL execution whose plan its operators stand in: `sql`, or one nested in it.
    pub plan_of: Option<&'a SqlExecution>,
    /// Operators that its tasks ran: positions in that plan.
    pub nodes: Vec<usize>,
    /// Exchanges that it reads: positions in that plan.
    pub reads: Vec<usize>,
    /// The exchange that it writes.
    pub writes: Option<usize>,
    /// Line of the user's code.
    pub source_line: Option<String>,
    /// Rows that were a cold start: the first tasks of an executor's slots.
    pub cold: Vec<usize>,
    uneven: OnceCell<Uneven>,
    work: OnceCell<Work>,
    quantiles: [OnceCell<Quantiles>; METRICS],
    sums: [OnceCell<i64>; METRICS],
}

const METRICS: usize = Metric::IoWaitMs as usize + 1;

impl<'a> StageFacts<'a> {
    /// Quantiles over successful tasks, by Spark's definition.
    #[must_use]
    pub fn q(&self, metric: Metric) -> Quantiles {
        *self.quantiles[metric as usize].get_or_init(|| self.stage.quantiles(metric))
    }

    /// Sum over all tasks that reported.
    #[must_use]
    pub fn sum(&self, metric: Metric) -> i64 {
        *self.sums[metric as usize].get_or_init(|| self.stage.sum(metric))
    }

    /// Whether figures of single tasks are there.
    #[must_use]
    pub fn has_tasks(&self) -> bool {
        !self.stage.tasks.is_empty()
    }

    /// `6.0`: stage and attempt, as the UI writes them.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}.{}", self.stage.id, self.stage.attempt)
    }

    /// The plan it belongs to.
    #[must_use]
    pub fn plan(&self) -> Option<&'a Plan> {
        self.plan_of.map(SqlExecution::plan)
    }

    /// Its operators.
    pub fn operators(&self) -> impl Iterator<Item = (usize, &'a PlanNode)> + '_ {
        let plan = self.plan();
        self.nodes.iter().filter_map(move |&n| Some((n, plan?.nodes.get(n)?)))
    }

    /// Rows of successful tasks that are no cold start.
    pub fn warm_rows(&self) -> impl Iterator<Item = usize> + '_ {
        self.stage.tasks.successful().filter(|row| self.cold.binary_search(row).is_err())
    }

    /// Rows of tasks that took a slot, in launch order.
    #[must_use]
    pub fn launch_order(&self) -> Vec<usize> {
        run_model::launch_order(self.stage)
    }

    /// Durations, ms, in launch order after a change of single tasks.
    #[must_use]
    pub fn redone(&self, cx: &Context<'_>, change: impl Fn(usize, i64) -> i64) -> Vec<i64> {
        let until = run_model::last_moment(cx.app, self.stage);
        let rows = self.launch_order();
        rows.into_iter().map(|r| change(r, run_model::slot_ms(self.stage, r, until)).max(1)).collect()
    }

    /// How unevenly time and data are spread over its tasks.
    #[must_use]
    pub fn uneven(&self) -> &Uneven {
        self.uneven.get_or_init(|| Uneven::of(self))
    }

    /// What its tasks do with the rows that they read: join, aggregate, …
    #[must_use]
    pub fn work(&self, cx: &Context<'_>) -> &Work {
        self.work.get_or_init(|| Work::of(cx, self))
    }

    /// Durations, ms, of its tasks in launch order, each less what `less` says of its row.
    pub fn shortened(&self, less: impl Fn(usize) -> i64) -> Vec<i64> {
        let tasks = &self.stage.tasks;
        let mut rows: Vec<usize> = (0..tasks.len()).filter(|&r| tasks.status(r) != TaskStatus::Running).collect();
        rows.sort_by_key(|&r| tasks.value(Metric::LaunchMs, r));
        rows.into_iter().map(|r| (tasks.value(Metric::DurationMs, r) - less(r)).max(1)).collect()
    }

    /// Bytes that its tasks read, from a shuffle or from a source, whichever is more.
    #[must_use]
    pub fn bytes_read(&self) -> i64 {
        self.sum(Metric::ShuffleReadBytes).max(self.sum(Metric::InputBytes))
    }
}

impl<'a> Context<'a> {
    /// Computes what the rules need.
    #[must_use]
    pub fn new(app: &'a Application, config: &'a Config) -> Self {
        let slots = Slots::of(app);
        let (run, budget, gaps) = match app.pasted {
            Some(_) => (None, Budget::default(), gaps::of(app)),
            // Each goes over all tasks and needs nothing of the others.
            None => std::thread::scope(|scope| {
                let budget = scope.spawn(|| budget::split(app, &slots));
                let (run, gaps) = (RunModel::new(app, &slots), gaps::of(app));
                (run, budget.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), gaps)
            }),
        };
        let stages = stages(app, config, &slots);
        Self {
            app,
            config,
            stages,
            slots,
            run,
            wall_ms: app.wall_ms(),
            blame: Blame::of(app),
            budget,
            gaps,
            of_users: queries::written_by_users(app),
            by_sql: OnceCell::new(),
        }
    }

    /// The plans that users wrote: without Delta's work on its own log.
    #[must_use]
    pub fn of_users(&self) -> &[Query<'a>] {
        &self.of_users
    }

    /// Stage attempts that worked for an SQL execution, or whose operators stand in its plan.
    pub fn stages_of_sql(&self, id: Option<i64>) -> impl Iterator<Item = &StageFacts<'a>> {
        let by_sql = self.by_sql.get_or_init(|| {
            let mut by_sql: HashMap<i64, Vec<usize>> = HashMap::default();
            for (at, stage) in self.stages.iter().enumerate() {
                let ids = [stage.sql, stage.plan_of].map(|sql| sql.map(|s| s.id));
                let second = ids[1].filter(|id| ids[0] != Some(*id));
                ids[0].into_iter().chain(second).for_each(|id| by_sql.entry(id).or_default().push(at));
            }
            by_sql
        });
        let positions = id.and_then(|id| by_sql.get(&id)).map(Vec::as_slice).unwrap_or_default();
        positions.iter().map(|&at| &self.stages[at])
    }

    /// Where wall time and slot time went; empty for a paste.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Times in which no task ran.
    #[must_use]
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Wall time that severities are measured against: the application's, else what a paste says.
    #[must_use]
    pub fn base_wall_ms(&self) -> i64 {
        let pasted = self.app.stages.iter().filter_map(|s| s.pasted.as_ref());
        let stated = pasted.filter_map(|p| p.app_wall_ms.or(p.wall_ms)).max();
        if self.wall_ms > 0 && self.app.pasted.is_none() { self.wall_ms } else { stated.unwrap_or(self.wall_ms) }
    }

    /// What it would save to run a stage with other tasks: by the model of the run, or, for a
    /// paste, by playing that one stage on its slots. The low end removes half of the excess.
    #[must_use]
    pub fn estimate(&self, facts: &StageFacts<'_>, tasks: Vec<i64>, method: &str) -> Option<Estimate> {
        match &self.run {
            Some(run) => Some(run.estimate(&Change::stage(facts.position, tasks), method)),
            None => stage_model::estimate(facts, &tasks, method),
        }
    }

    /// Task time, ms, that other stages spent between two times.
    #[must_use]
    pub fn busy_elsewhere_ms(&self, facts: &StageFacts<'_>, from: i64, to: i64) -> i64 {
        let others = self.stages.iter().filter(|s| s.position != facts.position);
        let near = others.filter(|s| s.stage.span_ms().is_some_and(|(begin, end)| begin < to && end > from));
        near.map(|s| self.busy_ms(s, from, to)).sum()
    }

    /// Task time, ms, that a stage spent between two times; a task without an end counts until
    /// its stage, or the application, ended.
    #[must_use]
    pub fn busy_ms(&self, facts: &StageFacts<'_>, from: i64, to: i64) -> i64 {
        let until = run_model::last_moment(self.app, facts.stage);
        let tasks = &facts.stage.tasks;
        let overlap = |row| {
            let begin = tasks.value(Metric::LaunchMs, row);
            ((begin + run_model::slot_ms(facts.stage, row, until)).min(to) - begin.max(from)).max(0)
        };
        (0..tasks.len()).map(overlap).sum()
    }

    /// Durations, ms, of a stage's tasks in launch order; for a summary without tasks a row of
    /// tasks that has its quantiles.
    #[must_use]
    pub fn durations(&self, facts: &StageFacts<'_>) -> Vec<i64> {
        match &self.run {
            Some(run) => run.tasks_of(facts.position).to_vec(),
            None => stage_model::durations(facts),
        }
    }

    /// Figures of a stage attempt.
    #[must_use]
    pub fn stage(&self, id: u32, attempt: u32) -> Option<&StageFacts<'a>> {
        self.stages.iter().find(|s| s.stage.id == id && s.stage.attempt == attempt)
    }

    /// The value of a node's SQL metric (its sum over tasks and driver).
    #[must_use]
    pub fn metric(&self, node: &PlanNode, name: &str) -> Option<i64> {
        let metric = node.metrics.iter().find(|m| &*m.name == name)?;
        self.app.accumulators.get(&metric.accumulator).map(|a| a.sum)
    }

    /// The executor of a task row.
    #[must_use]
    pub fn executor(&self, at: usize) -> Option<&'a Executor> {
        self.app.executors.get(at)
    }

    /// The floor under timing findings: is the stage long enough, and the excess large enough?
    #[must_use]
    pub fn above_noise(&self, facts: &StageFacts<'_>, excess_ms: i64) -> bool {
        let c = self.config;
        let wall = facts.wall_ms;
        let long_enough = wall >= c.noise_stage_ms && wall as f64 >= c.noise_stage_share * self.base_wall_ms() as f64;
        let floor = c.noise_stage_ms.max((c.noise_excess_share * wall as f64) as i64);
        long_enough && excess_ms >= floor
    }

    /// Whether adaptive execution was on: the SQL execution's own setting, else the application's,
    /// else the default of its version (on since 3.2). `None` when not even the version is known.
    #[must_use]
    pub fn aqe(&self, sql: Option<&SqlExecution>) -> Option<bool> {
        self.conf(sql, "spark.sql.adaptive.enabled").map(|v| v.eq_ignore_ascii_case("true")).or_else(|| {
            let version = self.app.version()?;
            Some(version >= (3, 2))
        })
    }

    /// A setting in force for an SQL execution.
    #[must_use]
    pub fn conf(&self, sql: Option<&'a SqlExecution>, key: &str) -> Option<&'a str>
    where
        'a: 'a,
    {
        let own = sql.and_then(|s| s.modified_configs.iter().find(|(k, _)| &**k == key)).map(|(_, v)| &**v);
        own.or_else(|| self.app.conf(key))
    }
}

/// Stages with figures, with what the rules ask of them.
fn stages<'a>(app: &'a Application, config: &Config, slots: &Slots) -> Vec<StageFacts<'a>> {
    let by_stage = operators_by_stage(app);
    let mut cold = cold::rows(app, config.cold_start_ms);
    let with_figures = app.stages.iter().enumerate().filter(|(_, s)| !s.tasks.is_empty() || s.pasted.is_some());
    with_figures
        .map(|(position, stage)| {
            let cold = cold.remove(&position).unwrap_or_default();
            stage_facts(app, slots, &by_stage, position, stage, cold)
        })
        .collect()
}

fn stage_facts<'a>(
    app: &'a Application,
    slots: &Slots,
    by_stage: &BTreeMap<usize, StageOperators>,
    position: usize,
    stage: &'a Stage,
    cold: Vec<usize>,
) -> StageFacts<'a> {
    let operators = by_stage.get(&position).cloned().unwrap_or_default();
    let plan_of = operators.sql.and_then(|at| app.sql.get(at));
    let sql = stage.sql.and_then(|id| app.sql(id)).or(plan_of);
    let pasted = stage.pasted.as_ref();
    let average = stage.span_ms().map(|(from, to)| slots.average(from, to));
    StageFacts {
        stage,
        position,
        n: if stage.tasks.is_empty() { stage.num_tasks as usize } else { stage.tasks.successful().count() },
        wall_ms: stage.wall_ms(),
        slots: pasted.and_then(|p| p.slots).or(average).unwrap_or_default(),
        sql,
        plan_of: plan_of.or(sql),
        nodes: operators.nodes,
        reads: operators.reads,
        writes: operators.writes,
        source_line: crate::source_line::of_stage(app, stage),
        cold,
        uneven: OnceCell::new(),
        work: OnceCell::new(),
        quantiles: [const { OnceCell::new() }; METRICS],
        sums: [const { OnceCell::new() }; METRICS],
    }
}

#[derive(Clone, Default)]
struct StageOperators {
    sql: Option<usize>,
    nodes: Vec<usize>,
    reads: Vec<usize>,
    writes: Option<usize>,
}

/// Which operators the tasks of each stage ran. A plan falls into regions at its exchanges; the
/// stage of a region is the one whose tasks updated most of its metrics. An exchange is written
/// in the region below it and read in the one above.
fn operators_by_stage(app: &Application) -> BTreeMap<usize, StageOperators> {
    let mut by_stage: BTreeMap<usize, StageOperators> = BTreeMap::new();
    for (at, sql) in app.sql.iter().enumerate() {
        let plan = sql.plan();
        let regions = regions(plan);
        for (region, stage) in stages_of_regions(app, plan, &regions) {
            let entry = by_stage.entry(stage).or_default();
            // A nested execution may repeat the plan of its root: the stage's own one counts.
            if entry.sql.is_some_and(|other| other != at) {
                if app.stages[stage].sql != Some(sql.id) {
                    continue;
                }
                *entry = StageOperators::default();
            }
            entry.sql = Some(at);
            for node in (0..plan.nodes.len()).filter(|&n| regions[n] == region) {
                if is_exchange(&plan.nodes[node]) {
                    entry.writes = Some(node);
                }
                entry.nodes.push(node);
                entry.reads.extend(exchanges_below(plan, &regions, node));
            }
            entry.nodes.sort_unstable();
            entry.nodes.dedup();
            entry.reads.sort_unstable();
            entry.reads.dedup();
        }
    }
    by_stage
}

fn is_exchange(node: &PlanNode) -> bool {
    use model::Operator::{BroadcastExchange, Exchange, Reused, Subquery};
    matches!(node.op, Exchange(_) | BroadcastExchange { .. } | Subquery | Reused)
}

/// Region of each node: that of its parent, unless it is an exchange, which opens a new one.
fn regions(plan: &Plan) -> Vec<usize> {
    let mut regions = vec![0; plan.nodes.len()];
    let mut next = 1;
    for at in 0..plan.nodes.len() {
        regions[at] = match plan.nodes[at].parent {
            Some(parent) if !is_exchange(&plan.nodes[at]) => regions[parent],
            None if at == 0 => 0,
            _ => {
                next += 1;
                next
            }
        };
    }
    regions
}

fn exchanges_below(plan: &Plan, regions: &[usize], node: usize) -> Vec<usize> {
    let below = plan.nodes[node].children.iter().copied();
    below.filter(|&c| regions[c] != regions[node] && matches!(plan.nodes[c].op, model::Operator::Exchange(_))).collect()
}

/// For each region the stages that updated its metrics, the metrics of reading an exchange
/// counted for the region above it.
fn stages_of_regions(app: &Application, plan: &Plan, regions: &[usize]) -> Vec<(usize, usize)> {
    let mut votes: BTreeMap<usize, BTreeMap<usize, u32>> = BTreeMap::new();
    for (at, node) in plan.nodes.iter().enumerate() {
        for metric in &node.metrics {
            let Some(stage) = app.accumulators.get(&metric.accumulator).and_then(|a| a.stage) else { continue };
            let read = is_exchange(node) && is_read_metric(&metric.name);
            let Some(region) = (if read { node.parent.map(|p| regions[p]) } else { Some(regions[at]) }) else {
                continue;
            };
            *votes.entry(region).or_default().entry(stage as usize).or_default() += 1;
        }
    }
    let winner = |v: BTreeMap<usize, u32>| v.into_iter().max_by_key(|(_, n)| *n).map(|(stage, _)| stage);
    votes.into_iter().filter_map(|(region, v)| Some((region, winner(v)?))).collect()
}

/// Metrics of an exchange that the reading tasks update.
fn is_read_metric(name: &str) -> bool {
    name.contains("read")
        || name.starts_with("fetch wait")
        || name.contains("fetched")
        || name.starts_with("remote reqs")
}
