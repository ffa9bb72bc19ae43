//! SQL executions of a log and pasted plans as one list, for the rules that look at plans.

use crate::context::{Context, StageFacts};
use crate::draft::Draft;
use crate::plan_text;
use foldhash::HashSet;
use model::{Application, Metric, Operator, Plan, PlanNode, Scan, SqlExecution, Text};
use std::sync::Arc;

/// A plan with what is known of its run.
#[derive(Clone)]
pub struct Query<'a> {
    /// The plan that ran, or that was pasted.
    pub plan: &'a Plan,
    /// Its execution; `None` for a pasted plan.
    pub sql: Option<&'a SqlExecution>,
    /// Positions of its own nodes: see [`Query::own_nodes`].
    own: Arc<[usize]>,
}

/// Frames and plan texts of Delta's own work on its log. The names of tables, jobs and
/// applications are the user's and prove nothing.
const DELTA_FRAMES: [&str; 3] = ["org.apache.spark.sql.delta.", "io.delta.", "com.databricks.sql.transaction.tahoe."];

/// All plans: those of the log, else the pasted ones.
#[must_use]
pub fn all<'a>(cx: &Context<'a>) -> Vec<Query<'a>> {
    of_application(cx.app).collect()
}

fn of_application<'a>(app: &'a Application) -> impl Iterator<Item = Query<'a>> {
    let logged = app.sql.iter().map(|s| Query::new(s.plan(), Some(s)));
    let pasted = app.pasted.iter().flat_map(|p| &p.plans).map(|plan| Query::new(plan, None));
    logged.chain(pasted)
}

/// What [`of_users`] gives, for a context that is being made.
pub(crate) fn written_by_users(app: &Application) -> Vec<Query<'_>> {
    of_application(app).filter(|q| !q.sql.is_some_and(is_delta_bookkeeping)).collect()
}

/// The plans that users wrote: without Delta's work on its own log.
#[must_use]
pub fn of_users<'a>(cx: &Context<'a>) -> Vec<Query<'a>> {
    cx.of_users().to_vec()
}

/// Whether an execution reads or computes a Delta log rather than data, by its call stack and by
/// what it scans.
#[must_use]
pub fn is_delta_bookkeeping(sql: &SqlExecution) -> bool {
    let reads_log = |n: &PlanNode| {
        n.detail.contains("DeltaLogFileIndex")
            || n.detail.contains("/_delta_log")
            || n.detail.contains("spark.sql.delta.Snapshot")
    };
    if sql.plan().nodes.iter().any(reads_log) {
        return true;
    }
    let reads_data = sql.plan().nodes.iter().any(|n| matches!(&n.op, Operator::Scan(s) if s.format != "rdd"));
    !reads_data && has_delta_frame(&sql.details)
}

/// Whether a call stack goes through Delta.
#[must_use]
pub fn has_delta_frame(stack: &str) -> bool {
    stack.lines().any(|l| DELTA_FRAMES.iter().any(|f| l.trim_start().starts_with(f)))
}

impl<'a> Query<'a> {
    /// Nodes that this plan computes itself, in pre-order: without copies below a reused exchange,
    /// without the plan of cached data below its scan, and each set of metrics once.
    #[must_use]
    pub fn own_nodes(&self) -> &[usize] {
        &self.own
    }

    /// A plan, and the execution that ran it.
    #[must_use]
    pub fn new(plan: &'a Plan, sql: Option<&'a SqlExecution>) -> Self {
        let nodes = &plan.nodes;
        let mut elsewhere = vec![false; nodes.len()];
        let mut seen: HashSet<i64> = HashSet::default();
        let mut own = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            let above = node
                .parent
                .is_some_and(|p| elsewhere[p] || matches!(nodes[p].op, Operator::Reused | Operator::CacheScan));
            let counted = !node.metrics.is_empty() && node.metrics.iter().all(|m| seen.contains(&m.accumulator));
            elsewhere[at] = above || counted;
            if !elsewhere[at] {
                seen.extend(node.metrics.iter().map(|m| m.accumulator));
                own.push(at);
            }
        }
        Self { plan, sql, own: own.into() }
    }

    /// Own nodes with their position.
    pub fn nodes(&self) -> impl Iterator<Item = (usize, &'a PlanNode)> {
        let (plan, own) = (self.plan, Arc::clone(&self.own));
        (0..own.len()).map(move |i| (own[i], &plan.nodes[own[i]]))
    }

    /// Whether the text or log tells no run: a pasted plan, or one without a single metric.
    #[must_use]
    pub fn is_lint(&self) -> bool {
        self.sql.is_none()
    }

    /// The value of a node's metric.
    #[must_use]
    pub fn metric(&self, cx: &Context<'_>, at: usize, name: &str) -> Option<i64> {
        cx.metric(&self.plan.nodes[at], name)
    }

    /// Stage attempts that worked for it.
    pub fn stages<'c>(&self, cx: &'c Context<'a>) -> impl Iterator<Item = &'c StageFacts<'a>> {
        cx.stages_of_sql(self.sql.map(|s| s.id))
    }

    /// Run time of its tasks, ms.
    #[must_use]
    pub fn run_ms(&self, cx: &Context<'a>) -> i64 {
        self.stages(cx).map(|s| s.sum(Metric::RunMs)).sum()
    }

    /// Bytes that its stages read through shuffles.
    #[must_use]
    pub fn shuffled_bytes(&self, cx: &Context<'a>) -> i64 {
        self.stages(cx).map(|s| s.sum(Metric::ShuffleReadBytes)).sum()
    }

    /// The stage attempt whose tasks ran a node.
    #[must_use]
    pub fn stage_of<'c>(&self, cx: &'c Context<'a>, at: usize) -> Option<&'c StageFacts<'a>> {
        let own = |s: &&StageFacts<'_>| s.plan_of.map(|q| q.id) == self.sql.map(|q| q.id) && s.nodes.contains(&at);
        let by_plan = self.stages(cx).find(own);
        by_plan.or_else(|| {
            let metrics = self.plan.nodes[at].metrics.iter();
            let stage = metrics.filter_map(|m| cx.app.accumulators.get(&m.accumulator)?.stage).next()?;
            cx.stages.iter().find(|s| s.position == stage as usize)
        })
    }

    /// Where it is seen: `SQL 3` or `plan`.
    #[must_use]
    pub fn location(&self) -> String {
        self.sql.map_or_else(|| "plan".to_owned(), |s| format!("SQL {}", s.id))
    }

    /// Places a finding at this query, with its source line and first job.
    #[must_use]
    pub fn place(&self, cx: &Context<'a>, mut draft: Draft) -> Draft {
        let Some(sql) = self.sql else { return draft };
        draft.finding.scope.sql = Some(sql.id);
        draft.finding.scope.job = sql.jobs.first().copied();
        let of_stages = || self.stages(cx).find_map(|s| s.source_line.clone());
        draft.finding.scope.source_line = crate::source_line::of_sql(sql).or_else(of_stages);
        draft
    }

    /// Places a finding at a node of this query and at the stage that ran it.
    #[must_use]
    pub fn place_node(&self, cx: &Context<'a>, at: usize, draft: Draft) -> Draft {
        let mut draft = self.place(cx, draft).at_node(human(self.plan, at));
        if let Some(facts) = self.stage_of(cx, at) {
            draft.finding.scope.stage = Some(facts.stage.id);
            draft.finding.scope.attempt = Some(facts.stage.attempt);
            draft.finding.scope.job = facts.stage.jobs.first().copied();
        }
        draft
    }

    /// The streaming query it is a micro-batch of.
    #[must_use]
    pub fn stream(&self, cx: &Context<'a>) -> Option<&'a Text> {
        self.sql?.jobs.iter().find_map(|&j| cx.app.job(j)?.stream.as_ref())
    }
}

pub use crate::plan_reading::human_name as human;

/// Characters of a generator that a sentence quotes.
const SUBJECT: usize = 60;

/// An operator as the subject of a sentence: of a generator its function, `explode(items)`.
#[must_use]
pub fn subject(plan: &Plan, at: usize) -> String {
    match &plan.nodes[at].op {
        Operator::Generate { generator } => crate::words::clipped(&plan_text::without_ids(generator), SUBJECT),
        _ => human(plan, at),
    }
}

/// A table's name, else the end of its path.
#[must_use]
pub fn short_source(scan: &Scan) -> String {
    if let Some(table) = &scan.table {
        return table.rsplit("spark_catalog.").next().unwrap_or(table).to_owned();
    }
    match path_of(scan) {
        Some(path) => path.trim_end_matches('/').rsplit('/').next().unwrap_or(&path).to_owned(),
        None => format!("{} data", scan.format),
    }
}

/// How a scan's data is named in SQL: its table, or its format and path.
#[must_use]
pub fn sql_source(scan: &Scan) -> String {
    match (&scan.table, path_of(scan)) {
        (Some(table), _) => table.clone(),
        (None, Some(path)) => format!("{}.`{}`", scan.format, path.strip_prefix("file:").unwrap_or(&path)),
        (None, None) => "<table>".to_owned(),
    }
}

/// The first path of `InMemoryFileIndex(1 paths)[file:/lake/orders]`.
#[must_use]
pub fn path_of(scan: &Scan) -> Option<String> {
    let location = scan.location.as_deref()?;
    let inside = location.rsplit_once('[').map_or(location, |(_, rest)| rest);
    let path = inside.split([',', ']']).next().unwrap_or(inside).trim();
    // The folders of partitions are no part of the name: `lake/orders/day=2025-01-01`.
    let folder = path.find('=').and_then(|equals| path[..equals].rfind('/'));
    let path = &path[..folder.unwrap_or(path.len())];
    (!path.is_empty() && !path.contains("...")).then(|| path.to_owned())
}

impl<'a> Query<'a> {
    /// Rows that leave a node, where the run tells. A metric that no task ever updated is 0.
    #[must_use]
    pub fn rows(&self, cx: &Context<'_>, at: usize) -> Option<i64> {
        const NAMES: [&str; 3] = ["number of output rows", "shuffle records written", "records read"];
        let node = &self.plan.nodes[at];
        for name in NAMES {
            if node.metrics.iter().any(|m| &*m.name == name) {
                return match cx.metric(node, name) {
                    Some(rows) => Some(rows),
                    None => self.ran(cx).then_some(0),
                };
            }
        }
        let keeps = node.op.is_wrapper()
            || matches!(
                node.op,
                Operator::Project { .. }
                    | Operator::Sort { .. }
                    | Operator::Window { .. }
                    | Operator::Coalesce { .. }
                    | Operator::Exchange(_)
                    | Operator::BroadcastExchange { .. }
                    | Operator::Reused
            );
        match node.children.as_slice() {
            [only] if keeps => self.rows(cx, *only),
            _ => None,
        }
    }

    /// Whether its execution ended and left metrics.
    fn ran(&self, cx: &Context<'_>) -> bool {
        let ended = self.sql.is_some_and(|s| s.ended_ms.is_some() && s.error.is_none());
        ended
            && self
                .plan
                .nodes
                .iter()
                .any(|n| n.metrics.iter().any(|m| cx.app.accumulators.contains_key(&m.accumulator)))
    }

    /// The exchange that feeds a node, looked up through what keeps rows as they are.
    #[must_use]
    pub fn feeding_exchange(&self, at: usize) -> Option<usize> {
        let node = &self.plan.nodes[at];
        match node.op {
            Operator::Exchange(_) | Operator::BroadcastExchange { .. } => Some(at),
            Operator::Sort { .. } | Operator::Project { .. } | Operator::Filter { .. } | Operator::Reused => {
                self.feeding_exchange(*node.children.first()?)
            }
            _ if node.op.is_wrapper() => self.feeding_exchange(*node.children.first()?),
            _ => None,
        }
    }

    /// Bytes that leave a node, where the run tells: data size of an exchange.
    #[must_use]
    pub fn data_size(&self, cx: &Context<'_>, at: usize) -> Option<i64> {
        let names = ["data size", "num uncompressed bytes written", "shuffle bytes written", "num bytes written"];
        names.iter().find_map(|n| self.metric(cx, at, n)).filter(|b| *b > 0)
    }

    /// Files and bytes of a scan: names of Spark and of Photon.
    #[must_use]
    pub fn files(&self, cx: &Context<'_>, at: usize) -> Option<(i64, i64)> {
        let first = |names: &[&str]| names.iter().find_map(|n| self.metric(cx, at, n));
        let files = first(&["number of files read", "files read"])?;
        let bytes =
            first(&["size of files read", "size of row groups before filtering", "cloud storage response size"])
                .unwrap_or(0);
        Some((files, bytes))
    }

    /// Scans below a node, through anything but another exchange's copy.
    #[must_use]
    pub fn scans_below(&self, at: usize) -> Vec<(usize, &'a Scan)> {
        let below = self.plan.below(at).into_iter();
        below
            .filter_map(|n| match &self.plan.nodes[n].op {
                Operator::Scan(scan) => Some((n, scan)),
                _ => None,
            })
            .collect()
    }

    /// Filters, projections and Python code between a node and the next join, aggregate or
    /// exchange above it, nearest first.
    #[must_use]
    pub fn chain_above(&self, at: usize) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut now = at;
        while let Some(next) = self.plan.consumer(now) {
            let passes = matches!(
                self.plan.nodes[next].op,
                Operator::Filter { .. } | Operator::Project { .. } | Operator::Python { .. }
            );
            if !passes {
                break;
            }
            chain.push(next);
            now = next;
        }
        chain
    }
}

pub use crate::plan_text::is_not_null_only;

/// Whether a condition was made by Spark from another part of the plan: a runtime filter, or the
/// value of a subquery.
#[must_use]
pub fn is_runtime_filter(conjunct: &str) -> bool {
    plan_text::is_runtime_filter(conjunct) || ["subquery#", "Subquery"].iter().any(|w| conjunct.contains(w))
}
