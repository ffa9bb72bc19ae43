//! TINY_TASKS: so many small tasks that starting them takes longer than running them
//! (section 4.2 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::run_model::Change;
use crate::{sizing, words};
use model::{
    Bytes, Confidence, Count, ExchangeOrigin, JoinAlgorithm, Metric, Millis, Operator, Pasted, Plan, RemedyKind,
    Severity, Share,
};
use std::collections::BTreeMap;

/// Findings of stages that adaptive execution would merge; the rest is counted with AQE_OFF.
const SHOWN: usize = 3;

/// Looks at every stage, or at a number of tasks told in words. Stages with the same reason and
/// the same cure are one finding, told by the one that loses most.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let (mut looked_at, before) = (0, out.drafts.len());
    let mut groups: BTreeMap<Reason, Vec<Tiny<'_>>> = BTreeMap::new();
    for facts in cx.stages.iter().filter(|f| !in_stream(cx, f)) {
        looked_at += 1;
        if let Some(tiny) = Tiny::of(cx, facts).filter(|t| t.matters(cx)) {
            groups.entry(Reason::of(cx, facts)).or_default().push(tiny);
        }
    }
    for (reason, mut group) in groups {
        group.sort_by_key(|t| std::cmp::Reverse(t.overhead_ms));
        match reason {
            // AQE_OFF is their root and says in how many stages.
            Reason::AqeOff => {
                group.iter().take(SHOWN).for_each(|t| out.push(draft(cx, reason, std::slice::from_ref(t))))
            }
            _ => out.push(draft(cx, reason, &group)),
        }
    }
    if let Some(draft) = cx.app.pasted.as_ref().and_then(told) {
        out.push(draft);
    } else if looked_at > 0 && out.drafts.len() == before {
        out.fine("task size", "no stage spends its time on starting tiny tasks");
    }
}

/// Why a stage has the number of tasks that it has; decides what helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// Spark's own job that lists the files of so many paths.
    Listing(u64),
    /// `repartition(n)`.
    Fixed(u64),
    AqeOff,
    NoMerging,
    ParallelismFirst,
    Other,
}

impl Reason {
    fn of(cx: &Context<'_>, facts: &StageFacts<'_>) -> Self {
        let on = |key| cx.conf(facts.sql, key).is_none_or(|v| v.trim().eq_ignore_ascii_case("true"));
        let mut exchanges = facts.work(cx).exchanges.iter();
        let fixed = exchanges.find(|e| e.origin == ExchangeOrigin::RepartitionByNumber);
        let reads_shuffle = facts.q(Metric::ShuffleReadBytes).max > 0;
        if let Some(paths) = listed_paths(facts) {
            return Self::Listing(paths);
        }
        match (fixed, facts.sql.is_some() && reads_shuffle) {
            (Some(exchange), _) => Self::Fixed(exchange.partitions.unwrap_or(facts.n as u64)),
            (None, false) => Self::Other,
            (None, true) if cx.aqe(facts.sql) == Some(false) => Self::AqeOff,
            (None, true) if !on("spark.sql.adaptive.coalescePartitions.enabled") => Self::NoMerging,
            (None, true) if on("spark.sql.adaptive.coalescePartitions.parallelismFirst") => Self::ParallelismFirst,
            (None, true) => Self::Other,
        }
    }
}

/// Paths of Spark's own listing job, whose description is Spark's: `Listing leaf files and
/// directories for 60 paths:<br/>…` (`HadoopFSUtils`).
fn listed_paths(facts: &StageFacts<'_>) -> Option<u64> {
    let said = facts.stage.description.as_deref()?.strip_prefix("Listing leaf files and directories for ")?;
    said.split(' ').next()?.parse().ok()
}

/// The partitions of a streaming state are fixed at its first start: another finding.
fn in_stream(cx: &Context<'_>, facts: &StageFacts<'_>) -> bool {
    facts.stage.jobs.iter().filter_map(|&j| cx.app.job(j)).any(|j| j.stream.is_some())
}

/// A stage of tiny tasks.
pub struct Tiny<'a> {
    /// The stage.
    pub facts: &'a StageFacts<'a>,
    /// Time of its tasks before and after their own work, ms.
    pub overhead_ms: i64,
    slots: i64,
    share: f64,
    work_ms: i64,
    wanted: i64,
}

impl<'a> Tiny<'a> {
    fn of(cx: &Context<'_>, facts: &'a StageFacts<'a>) -> Option<Self> {
        let c = cx.config;
        let slots = facts.slots.round().max(1.0) as i64;
        let (n, d, run) = (facts.n as i64, facts.q(Metric::DurationMs), facts.q(Metric::RunMs));
        // The run time is what the task itself does; on a busy driver the rest alone passes 100 ms.
        let work_ms = if run.max > 0 { run.median.min(d.median) } else { d.median };
        let tiny = n >= 4 * slots && work_ms < c.tiny_task_ms || n > 5_000 && d.median < 5 * c.tiny_task_ms;
        if !tiny {
            return None;
        }
        let overhead_ms = overhead_ms(facts);
        let share = overhead_ms as f64 / facts.uneven().warm.sum.max(1) as f64;
        let wanted = sizing::partitions(facts.bytes_read(), c.target_partition_bytes, slots).min(n);
        (share >= c.tiny_overhead_share).then_some(Self { facts, overhead_ms, slots, share, work_ms, wanted })
    }

    fn matters(&self, cx: &Context<'_>) -> bool {
        cx.above_noise(self.facts, self.overhead_ms / self.slots)
    }

    /// The same work in fewer tasks, each with the usual overhead of one: durations, ms.
    fn then(&self) -> Vec<i64> {
        let work = self.facts.q(Metric::RunMs).sum.min(self.facts.q(Metric::DurationMs).sum);
        let each = work / self.wanted.max(1) + self.overhead_ms / self.facts.n.max(1) as i64;
        vec![each.max(1); self.wanted.max(1) as usize]
    }
}

/// Stages of tiny tasks that adaptive execution would have merged, however short each of them is.
#[must_use]
pub fn merged_by_aqe<'a>(cx: &'a Context<'a>) -> Vec<Tiny<'a>> {
    let batch = cx.stages.iter().filter(|f| !in_stream(cx, f) && Reason::of(cx, f) == Reason::AqeOff);
    batch.filter_map(|f| Tiny::of(cx, f)).collect()
}

/// What it saves when all of these stages have fewer tasks.
#[must_use]
pub fn estimate(cx: &Context<'_>, stages: &[Tiny<'_>]) -> Option<model::Estimate> {
    let method = "the run time of all tasks in fewer of them, each with the overhead of one";
    match (stages, &cx.run) {
        ([one], _) => cx.estimate(one.facts, one.then(), method),
        (many, Some(run)) => {
            let stages = many.iter().map(|t| (t.facts.position, t.then())).collect();
            Some(run.estimate(&Change { stages, driver_ms: 0 }, method))
        }
        _ => None,
    }
}

fn draft(cx: &Context<'_>, reason: Reason, group: &[Tiny<'_>]) -> Draft {
    let c = cx.config;
    let worst = &group[0];
    let facts = worst.facts;
    let (n, read) = (facts.n as i64, facts.bytes_read());
    let what = match (reason, read) {
        (Reason::Listing(paths), _) => format!("listing the files of {}", words::count(paths, "path")),
        (_, 0) => "next to no data".to_owned(),
        (_, read) => Bytes(read.unsigned_abs()).to_string(),
    };
    let again = match group.len() {
        1 => String::new(),
        n => format!(", in {} alike", words::count(n as u64, "stage")),
    };
    let title = format!(
        "{} tasks for {what}{again}: {} of their time goes into starting them, the median task works {}",
        Count(n.unsigned_abs()),
        Share(worst.share),
        Millis(worst.work_ms)
    );
    let mut draft = Draft::new("TINY_TASKS", title)
        .at_stage(facts)
        .estimate(estimate(cx, group))
        .fix_partitions(worst.wanted)
        .figures(
            facts,
            &[
                Metric::DurationMs,
                Metric::RunMs,
                Metric::GcMs,
                Metric::ShuffleReadBytes,
                Metric::ShuffleRecordsRead,
                Metric::ShuffleBytesWritten,
                Metric::PeakExecutionBytes,
            ],
        )
        .evidence("overhead_share", worst.share, "share")
        .over(c.tiny_overhead_share)
        .evidence("overhead_ms", group.iter().map(|t| t.overhead_ms).sum::<i64>(), "ms")
        .evidence("stages", group.len(), "stages")
        .evidence("slots", worst.slots, "slots")
        .evidence("bytes_per_task", read / n.max(1), "bytes")
        .evidence("partitions_proposed", worst.wanted, "partitions")
        .not(
            "key skew",
            format!("the largest task reads {}", Bytes(facts.q(Metric::ShuffleReadBytes).max.unsigned_abs())),
        );
    draft.finding.scope.stages = group[1..].iter().map(|t| t.facts.stage.id).collect();
    if reason == Reason::AqeOff {
        draft = draft.explained_anywhere_by(&["AQE_OFF"]);
    }
    remedies(draft, reason, worst, group.len())
}

/// Time of tasks before and after their own work, ms: scheduling, shipping code, sending results.
fn overhead_ms(facts: &StageFacts<'_>) -> i64 {
    let parts = [Metric::SchedulerDelayMs, Metric::DeserializeMs, Metric::ResultSerializationMs];
    let tasks = &facts.stage.tasks;
    match facts.has_tasks() {
        // A cold start takes seconds however many tasks there are.
        true => facts.warm_rows().map(|row| parts.map(|m| tasks.value(m, row)).iter().sum::<i64>()).sum(),
        false => parts.into_iter().map(|m| facts.q(m).sum).sum(),
    }
}

fn remedies(draft: Draft, reason: Reason, worst: &Tiny<'_>, stages: usize) -> Draft {
    let (facts, wanted) = (worst.facts, worst.wanted);
    let (slots, bytes) = (worst.slots, Bytes(facts.bytes_read().unsigned_abs()));
    let formula = format!("max({slots} slots, {bytes} / 128 MiB), rounded up to a multiple of the slots");
    let draft = match reason {
        Reason::Listing(_) => draft
            .remedy(RemedyKind::Layout, match stages {
                1 => "Read a table of a catalog or a table format, which keep the list of files".to_owned(),
                n => format!("Make the DataFrame once and use it again: its files were listed {n} times; or read a table format, which keeps the list"),
            })
            .remedy(RemedyKind::Conf, format!("Or list in {wanted} tasks"))
            .snippet(format!("SET spark.sql.sources.parallelPartitionDiscovery.parallelism = {wanted}"))
            .computed(format!("one task a slot of {slots}; the default of 10000 makes a task of each path")),
        Reason::Fixed(n) => draft
            .remedy(RemedyKind::Code, format!("Drop the fixed number {n} of repartition: adaptive execution keeps it whatever the data"))
            .snippet(format!("df.repartition({wanted})"))
            .computed(formula),
        Reason::AqeOff => draft
            .remedy(RemedyKind::Conf, "Switch adaptive execution on: it merges small partitions")
            .snippet("SET spark.sql.adaptive.enabled = true")
            .remedy(RemedyKind::Conf, format!("Or use {}", words::count(wanted.unsigned_abs(), "partition")))
            .snippet(format!("SET spark.sql.shuffle.partitions = {wanted}"))
            .computed(formula),
        Reason::NoMerging => draft
            .remedy(RemedyKind::Conf, "Let adaptive execution merge small partitions")
            .snippet("SET spark.sql.adaptive.coalescePartitions.enabled = true"),
        Reason::ParallelismFirst => draft
            .remedy(RemedyKind::Conf, "Merge up to the advisory size: by default adaptive execution prefers as many tasks as slots")
            .snippet("SET spark.sql.adaptive.coalescePartitions.parallelismFirst = false\nSET spark.sql.adaptive.advisoryPartitionSizeInBytes = 128MB"),
        Reason::Other => draft
            .remedy(RemedyKind::Code, format!("Use {}: the number of the source, of parallelize, of repartition or of the shuffle", words::count(wanted.unsigned_abs(), "partition")))
            .snippet(format!("{}.coalesce({wanted})", if facts.sql.is_some() { "df" } else { "rdd" }))
            .computed(formula),
    };
    draft
        .useless("more executors", "each task is short already; what it takes to start one is not divided")
        .confirm("number of tasks of the stage, and the share of their time before and after the run")
}

/// A number of tasks told beside a plan: a cartesian product makes left × right tasks.
fn told(pasted: &Pasted) -> Option<Draft> {
    let tasks = pasted.stated_tasks.filter(|&n| n >= 10_000)?;
    let product = pasted.plans.iter().find_map(cartesian_partitions);
    let title = match product {
        Some((left, right)) if left * right == tasks => {
            format!(
                "{} x {} partitions make {} tasks of one stage, most of them without rows",
                Count(left),
                Count(right),
                Count(left * right)
            )
        }
        _ => format!("One stage has {} tasks: starting them takes longer than their work", Count(tasks)),
    };
    let mut draft = Draft::new("TINY_TASKS", title)
        .at_least(Severity::Medium)
        .evidence("tasks", tasks, "tasks")
        .explained_anywhere_by(&["JOIN_CARTESIAN"])
        .sure(Confidence::Low, "from a number in the text: the tasks themselves cannot be looked at");
    if let Some((left, right)) = product {
        draft = draft.evidence("partitions_left", left, "partitions").evidence("partitions_right", right, "partitions");
    }
    Some(
        draft
            .remedy(RemedyKind::Sql, "Give the join a real key, so that it is no cartesian product")
            .remedy(RemedyKind::Code, "Or coalesce both sides first: sides of a few rows need one partition each")
            .snippet("left.coalesce(1).crossJoin(right.coalesce(1))")
            .useless(
                "another number of shuffle partitions",
                "the product of both sides stays; a larger number makes it larger",
            )
            .confirm("number of tasks of the stage"),
    )
}

fn cartesian_partitions(plan: &Plan) -> Option<(u64, u64)> {
    let join = plan
        .nodes
        .iter()
        .position(|n| matches!(&n.op, Operator::Join(j) if j.algorithm == JoinAlgorithm::Cartesian))?;
    let partitions = |input: usize| {
        plan.below(input).into_iter().find_map(|n| match &plan.nodes[n].op {
            Operator::Exchange(exchange) => exchange.partitions,
            _ => None,
        })
    };
    match plan.inputs(join).as_slice() {
        [left, right] => Some((partitions(*left)?, partitions(*right)?)),
        _ => None,
    }
}
