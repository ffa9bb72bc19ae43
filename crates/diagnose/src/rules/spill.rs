//! SPILL_EVEN, SPILL_SKEW: data did not fit in execution memory (section 4.3 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::memory::{self, Memory};
use crate::{plan_text, sizing, words};
use model::{Bytes, Confidence, ExchangeOrigin, Factor, Metric, Operator, Plan, RemedyKind, Severity};
use std::collections::BTreeSet;

/// Looks at every stage.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let before = out.drafts.len();
    let mut tasks = 0;
    for facts in &cx.stages {
        tasks += facts.n;
        // What tasks spilled before they failed is part of the failure.
        if facts.n > 0
            && let Some(spill) = Spill::of(cx, facts)
        {
            out.push(draft(cx, facts, &spill));
        }
    }
    if tasks > 0 && out.drafts.len() == before {
        out.fine("spill", format!("no task of {} spilled", words::number(tasks as u64)));
    }
}

/// What a stage spilled.
struct Spill {
    /// Serialised bytes on disk: the whole of the spill.
    disk: i64,
    /// The same, deserialised in memory.
    memory: i64,
    /// Tasks that spilled, where known.
    tasks: Option<usize>,
    /// Few tasks hold most of it.
    skewed: bool,
    /// Whether it comes from SQL metrics, as Photon counts no spill in its tasks.
    from_sql: bool,
}

impl Spill {
    fn of(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Self> {
        let (disk, memory) = (facts.sum(Metric::DiskSpillBytes), facts.sum(Metric::MemorySpillBytes));
        if disk == 0 && memory == 0 {
            return photon(cx, facts);
        }
        let metric = if disk > 0 { Metric::DiskSpillBytes } else { Metric::MemorySpillBytes };
        let (tasks, skewed) = if facts.has_tasks() { spread(facts, metric) } else { guess(facts, metric) };
        Some(Self { disk, memory, tasks, skewed, from_sql: false })
    }
}

/// Tasks that spilled, and whether fewer than a quarter of all tasks hold three quarters of it.
fn spread(facts: &StageFacts<'_>, metric: Metric) -> (Option<usize>, bool) {
    let tasks = &facts.stage.tasks;
    let mut values: Vec<i64> = (0..tasks.len()).map(|r| tasks.value(metric, r)).filter(|&v| v > 0).collect();
    values.sort_unstable_by_key(|v| std::cmp::Reverse(*v));
    let most = values.iter().sum::<i64>() as f64 * 0.75;
    let mut sum = 0.0;
    let holders = values
        .iter()
        .take_while(|&&v| {
            let more = sum < most;
            sum += v as f64;
            more
        })
        .count();
    let one_alone = values.len() == 1 && facts.n >= 4;
    (Some(values.len()), holders * 4 < facts.n || one_alone)
}

/// From quantiles: where three quarters of the tasks spilled nothing, few spilled all.
fn guess(facts: &StageFacts<'_>, metric: Metric) -> (Option<usize>, bool) {
    (None, facts.q(metric).peers() == 0 && facts.n >= 4)
}

/// Photon's own counters.
fn photon(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Spill> {
    const NAME: &str = "num bytes spilled to disk due to memory pressure";
    let nodes = facts.operators().filter(|(_, n)| n.photon);
    let counters = nodes.filter_map(|(_, n)| {
        let metric = n.metrics.iter().find(|m| &*m.name == NAME)?;
        cx.app.accumulators.get(&metric.accumulator)
    });
    let (disk, most) = counters.fold((0, 0), |(sum, most), a| (sum + a.sum, most.max(a.max)));
    let skewed = facts.n >= 4 && most as f64 >= 0.75 * disk as f64;
    (disk > 0).then_some(Spill { disk, memory: 0, tasks: None, skewed, from_sql: true })
}

fn draft(cx: &Context<'_>, facts: &StageFacts<'_>, spill: &Spill) -> Draft {
    let id = if spill.skewed { "SPILL_SKEW" } else { "SPILL_EVEN" };
    let mut draft = Draft::new(id, format!("{}{}", title(facts, spill), by_setting(cx, facts, spill)))
        .at_stage(facts)
        .estimate(estimate(cx, facts))
        .at_least(severity(cx, facts, spill))
        .figures(
            facts,
            &[
                Metric::DiskSpillBytes,
                Metric::MemorySpillBytes,
                Metric::PeakExecutionBytes,
                Metric::DurationMs,
                Metric::RunMs,
                Metric::GcMs,
                Metric::ShuffleReadBytes,
                Metric::ShuffleRecordsRead,
                Metric::InputBytes,
                Metric::ShuffleBytesWritten,
            ],
        )
        .evidence("pattern", if spill.skewed { "skewed" } else { "even" }, "")
        .evidence("spill_disk_total_bytes", spill.disk, "bytes");
    // Rows that are made in the stage itself are not read.
    let share = spill.disk as f64 / facts.bytes_read().max(1) as f64;
    if share < 100.0 {
        draft = draft.evidence("spill_share_of_read", share, "share").over(cx.config.spill_share);
    }
    if let Some(tasks) = spill.tasks {
        draft = draft.evidence("tasks_that_spilled", tasks, "tasks");
    }
    if spill.memory > 0 && spill.disk > 0 {
        let ratio = spill.memory as f64 / spill.disk as f64;
        draft = draft.evidence("memory_over_disk", ratio, "ratio").evidence(
            "note",
            "spill (memory) and spill (disk) are the same data measured twice, deserialised in memory and serialised on disk; they do not add up",
            "",
        );
    }
    if let Some(node) = operator(cx, facts) {
        draft = draft.at_node(node);
    }
    if spill.from_sql {
        draft = draft.sure(Confidence::Medium, "from SQL metrics: Photon counts spill for operators, not for tasks");
    } else if !facts.has_tasks() {
        draft = draft.sure(Confidence::Low, "from quantiles alone: how many tasks spilled is inferred");
    }
    draft = draft
        .not("cached data on disk", "blocks of the cache are not counted as spill")
        .not("shuffle files", "writing a shuffle is not spill");
    if spill.skewed { of_skew(cx, draft, facts) } else { of_even(cx, draft, facts) }
}

fn title(facts: &StageFacts<'_>, spill: &Spill) -> String {
    let disk = Bytes(spill.disk.unsigned_abs());
    let all = words::count(facts.n as u64, "task");
    let what = match (spill.skewed, spill.tasks) {
        (true, Some(1)) => format!("One task of {} spills {disk} to disk, the others nothing or little", facts.n),
        (true, Some(n)) => format!("Few of {} tasks hold the {disk} spilled to disk ({n} spilled at all)", facts.n),
        (true, None) => format!("The largest of {all} spill {disk} to disk, most spill nothing"),
        (false, Some(1)) if facts.n == 1 => format!("The one task spills {disk} to disk"),
        (false, Some(n)) if n >= facts.n && n == 2 => format!("Both tasks spill, {disk} to disk altogether"),
        (false, Some(n)) if n >= facts.n => format!("All {all} spill, {disk} to disk altogether"),
        (false, Some(n)) => format!("{n} of {all} spill, {disk} to disk altogether"),
        (false, None) => format!("The tasks spill evenly, {disk} to disk altogether"),
    };
    match facts.bytes_read() {
        0 => what,
        read => format!("{what}, of {} read", Bytes(read.unsigned_abs())),
    }
}

/// The setting that makes a heavy task spill, for a finding whose remedies stand under its skew.
fn by_setting(cx: &Context<'_>, facts: &StageFacts<'_>, spill: &Spill) -> String {
    let needed = heaviest(facts);
    let memory = Memory::of(cx).filter(|m| spill.skewed && needed > 0 && m.unified_by_default().is_some());
    match memory.filter(|m| m.default_fits(cx, needed)) {
        Some(memory) => {
            format!(", because spark.memory.fraction is {} (default {})", memory.fraction, memory::FRACTION)
        }
        None => String::new(),
    }
}

fn severity(cx: &Context<'_>, facts: &StageFacts<'_>, spill: &Spill) -> Severity {
    let c = cx.config;
    let long =
        facts.wall_ms >= c.noise_stage_ms && facts.wall_ms as f64 >= c.noise_stage_share * cx.base_wall_ms() as f64;
    let read = facts.sum(Metric::ShuffleReadBytes) + facts.sum(Metric::InputBytes);
    let io_ms = 2 * spill.disk / (c.spill_bytes_per_s / 1_000).max(1) / (facts.slots.round() as i64).max(1);
    match () {
        () if spill.disk >= c.spill_high_bytes => Severity::High,
        () if spill.disk >= c.spill_medium_bytes => Severity::Medium,
        () if !long => Severity::Info,
        () if spill.disk as f64 >= c.spill_share * read as f64 => Severity::Medium,
        () if io_ms as f64 >= c.spill_share * facts.wall_ms as f64 => Severity::Medium,
        () => Severity::Info,
    }
}

/// Every task without the time that its spilled bytes took to be written and read again.
fn estimate(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<model::Estimate> {
    if !facts.has_tasks() {
        return None;
    }
    let tasks = &facts.stage.tasks;
    let per_ms = (cx.config.spill_bytes_per_s / 1_000).max(1);
    let changed = facts.redone(cx, |row, d| {
        d - (2 * tasks.value(Metric::DiskSpillBytes, row) / per_ms).min(tasks.value(Metric::IoWaitMs, row))
    });
    let speed = Bytes(cx.config.spill_bytes_per_s.unsigned_abs());
    cx.estimate(facts, changed, &format!("spilled bytes written and read at {speed}/s, at most the time a task waited"))
}

/// The operator that spilled most: its position in the plan.
fn spiller(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<usize> {
    let spilled = |node| cx.metric(node, "spill size").unwrap_or_default();
    let (at, _) = facts.operators().max_by_key(|(_, n)| spilled(n)).filter(|(_, n)| spilled(n) > 0)?;
    Some(at)
}

fn operator(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<String> {
    Some(facts.plan()?.nodes[spiller(cx, facts)?].name.to_string())
}

fn of_skew(cx: &Context<'_>, draft: Draft, facts: &StageFacts<'_>) -> Draft {
    let read = facts.q(Metric::ShuffleReadBytes);
    let needed = heaviest(facts);
    let memory = Memory::of(cx).filter(|m| needed > 0 && m.default_fits(cx, needed));
    let draft = match memory {
        Some(memory) => memory.restore_defaults(cx, draft, needed),
        None => draft.useless("more memory", "the heavy task stays in front of all others"),
    };
    let draft = draft
        .explained_by(&["SKEW_NULL_KEY", "SKEW_KEY", "SKEW_INPUT", "SKEW_EXPLODE"])
        .fix("curing the skew")
        .remedy(RemedyKind::Sql, "Cure the skew: the spill is that of its heavy task")
        .confirm("spill (disk) of the largest task: 0");
    if read.max == 0 {
        return draft;
    }
    draft.useless("fewer partitions", "each would hold more, the heavy one too").useless(
        "more shuffle partitions",
        format!(
            "rows of one key stay together: the largest task reads {} {}",
            Factor(read.max_over_peers()),
            crate::uneven::peers_words(&read)
        ),
    )
}

/// Execution memory that the task needed that spilled most, bytes.
fn heaviest(facts: &StageFacts<'_>) -> i64 {
    let tasks = &facts.stage.tasks;
    let spilled = |row: &usize| tasks.value(Metric::MemorySpillBytes, *row);
    let of = |row| tasks.value(Metric::PeakExecutionBytes, row) + tasks.value(Metric::MemorySpillBytes, row);
    tasks.successful().filter(|row| spilled(row) > 0).map(of).max().unwrap_or(0)
}

fn of_even(cx: &Context<'_>, draft: Draft, facts: &StageFacts<'_>) -> Draft {
    // One task that does the work of many spills what they would have held.
    let few = (facts.n as f64) < facts.slots.round();
    let draft = if few { draft.explained_by(&["LOW_PARALLELISM", "SINGLE_PARTITION"]) } else { draft };
    let draft = draft
        .not("key skew", even_words(facts))
        .useless("more workers of the same type", "each slot has the same memory and each task the same data")
        .confirm("spill (disk) of the stage: 0");
    let Some(need) = Need::of(cx, facts) else {
        let draft = of_operator(on_one_executor(cx, multiplied(draft, cx, facts), facts), cx, facts);
        let at_least =
            sizing::partitions(facts.bytes_read(), 200 << 20, facts.slots.round() as i64).max(2 * facts.n as i64);
        let why = "twice the tasks: the peak memory is not in what was read".to_owned();
        return more_partitions(cx, draft, facts, at_least, why);
    };
    let by_setting = need.memory.is_some_and(|m| m.default_fits(cx, need.slot));
    let draft = match need.memory.filter(|_| by_setting) {
        // Cached data that the same setting pushed out tells the same cause, and costs more.
        Some(memory) => memory
            .restore_defaults(cx, draft, need.slot)
            .fix("the usual memory setting")
            .explained_anywhere_by(&["CACHE_EVICTED"]),
        None => draft,
    };
    let draft = of_operator(on_one_executor(cx, multiplied(draft, cx, facts), facts), cx, facts);
    let (wanted, formula) = need.partitions(facts);
    let draft = if by_setting { draft } else { draft.fix_partitions(wanted) };
    let draft =
        more_partitions(cx, draft, facts, wanted, formula).evidence("partitions_proposed", wanted, "partitions");
    more_memory(cx, draft, &need, by_setting)
}

/// What a task of an even spill would need.
struct Need {
    memory: Option<Memory>,
    /// 75th percentile of the peak of execution memory, bytes.
    peak: i64,
    /// 75th percentile of what was spilled, as it lay in memory, bytes.
    spilled: i64,
    /// How much more memory a task would need.
    grow: f64,
    /// Execution memory a slot would need, bytes.
    slot: i64,
}

impl Need {
    fn of(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Self> {
        let (peak, spilled) = (facts.q(Metric::PeakExecutionBytes).p75, facts.q(Metric::MemorySpillBytes).p75);
        let grow = (peak + spilled) as f64 / peak.max(1) as f64;
        let memory = Memory::of(cx);
        let slot = memory.map_or(0, |m| (m.slot() as f64 * grow) as i64);
        (peak > 0).then_some(Self { memory, peak, spilled, grow, slot })
    }

    /// Tasks whose data would fit, with the formula.
    fn partitions(&self, facts: &StageFacts<'_>) -> (i64, String) {
        let slots = (facts.slots.round() as i64).max(1);
        let by_memory = sizing::round_up((facts.n as f64 * self.grow).ceil() as i64, slots);
        let by_size = sizing::ceil_div(facts.sum(Metric::ShuffleReadBytes), 200 << 20);
        let formula = format!(
            "{} × ({} peak + {} spilled) / {} peak, rounded up to a multiple of {}",
            facts.n,
            Bytes(self.peak.unsigned_abs()),
            Bytes(self.spilled.unsigned_abs()),
            Bytes(self.peak.unsigned_abs()),
            words::counted(slots.unsigned_abs(), "slot")
        );
        (by_memory.max(sizing::round_up(by_size, slots)), formula)
    }
}

fn even_words(facts: &StageFacts<'_>) -> String {
    let (read, input) = (facts.q(Metric::ShuffleReadBytes), facts.q(Metric::InputBytes));
    let q = if read.max >= input.max { read } else { input };
    format!("the largest task reads {}, the median one {}", Bytes(q.max.unsigned_abs()), Bytes(q.median.unsigned_abs()))
}

/// More and smaller tasks, by the way that sets their number here.
fn more_partitions(cx: &Context<'_>, draft: Draft, facts: &StageFacts<'_>, wanted: i64, formula: String) -> Draft {
    let work = facts.work(cx);
    let fixed = work.exchanges.iter().any(|e| e.origin == ExchangeOrigin::RepartitionByNumber);
    let bytes = facts.bytes_read();
    let text = format!("Use {wanted} tasks instead of {}, so that the data of one fits", facts.n);
    match () {
        () if work.reads_cache => draft
            .remedy(RemedyKind::Code, format!("{text}: spread the rows before they are cached"))
            .snippet(format!("df.repartition({wanted}).cache()")),
        () if fixed || facts.sql.is_none() && facts.has_tasks() => {
            draft.remedy(RemedyKind::Code, text).snippet(format!("df.repartition({wanted})"))
        }
        () if facts.q(Metric::InputBytes).max > facts.q(Metric::ShuffleReadBytes).max => {
            draft.remedy(RemedyKind::Conf, format!("{text}: read in smaller splits")).snippet(format!(
                "SET spark.sql.files.maxPartitionBytes = {}MB",
                sizing::power_of_two_mib(bytes / wanted.max(1))
            ))
        }
        () if work.merged => draft
            .remedy(RemedyKind::Conf, format!("{text}: adaptive execution merged partitions, let it merge less"))
            .snippet(format!(
                "SET spark.sql.adaptive.advisoryPartitionSizeInBytes = {}MB",
                sizing::power_of_two_mib(bytes / wanted.max(1))
            )),
        () => draft.remedy(RemedyKind::Conf, text).snippet(format!("SET spark.sql.shuffle.partitions = {wanted}")),
    }
    .computed(formula)
}

/// More memory a slot, by what decides about it: node type, driver or executors.
fn more_memory(cx: &Context<'_>, draft: Draft, need: &Need, by_setting: bool) -> Draft {
    let Some(memory) = need.memory else {
        let factor = Factor(need.grow);
        return draft.remedy(RemedyKind::Compute, format!("Or take workers with {factor} the memory a core"));
    };
    let draft = draft.evidence("execution_memory_a_slot_bytes", memory.slot(), "bytes").evidence(
        "execution_memory_needed_bytes",
        need.slot,
        "bytes",
    );
    if by_setting {
        return draft;
    }
    let draft = memory.restore_defaults(cx, draft, need.slot);
    let (needed, now) = (Bytes(need.slot.unsigned_abs()), Bytes(memory.slot().unsigned_abs()));
    let heap = memory::setting(memory.heap_for(need.slot));
    let (text, snippet) = match memory.local {
        true if !cx.app.is_databricks() => (
            format!(
                "Or give local mode more memory, or fewer tasks at once (local[n]): {needed} for execution in each slot instead of {now}"
            ),
            Some(format!("spark.driver.memory {heap}")),
        ),
        _ => (
            format!("Or take workers with more memory a core: {needed} for execution in each slot instead of {now}"),
            None,
        ),
    };
    let draft = draft.remedy(RemedyKind::Compute, text);
    let draft = match snippet {
        Some(snippet) => draft.snippet(snippet),
        None => draft,
    };
    draft.computed(format!("{} (heap - 300 MiB) × spark.memory.fraction / slots", Factor(need.grow)))
}

/// Spill on one executor alone: its memory, not the data, is smaller than the others'.
fn on_one_executor(cx: &Context<'_>, draft: Draft, facts: &StageFacts<'_>) -> Draft {
    let tasks = &facts.stage.tasks;
    let spilled = |row: &usize| tasks.value(Metric::DiskSpillBytes, *row) > 0;
    let on: BTreeSet<usize> = tasks.successful().filter(spilled).map(|r| tasks.executor(r)).collect();
    let without = tasks.successful().filter(|r| !spilled(r)).count();
    let Some(&at) = on.first().filter(|_| on.len() == 1 && without >= 3) else { return draft };
    let id = cx.executor(at).map(|e| e.id.to_string()).unwrap_or_default();
    draft.evidence("spilled_on_executor", id.clone(), "").remedy(
        RemedyKind::Compute,
        format!(
            "Only executor {id} spills: look at what else uses its memory, cached blocks or more tasks side by side"
        ),
    )
}

/// What helps the operator that spills.
fn of_operator(draft: Draft, cx: &Context<'_>, facts: &StageFacts<'_>) -> Draft {
    let (Some(plan), Some(at)) = (facts.plan(), spiller(cx, facts)) else { return draft };
    let joins = facts.work(cx).join.is_some();
    match advice(plan, at, joins) {
        Some(advice) => draft.remedy(RemedyKind::Sql, advice),
        None => draft,
    }
}

fn advice(plan: &Plan, at: usize, joins: bool) -> Option<String> {
    let above = plan.consumer(at).map(|n| &plan.nodes[n]);
    let advice = match (&plan.nodes[at].op, above.map(|n| &n.op)) {
        (Operator::Window { .. }, _) | (Operator::Sort { global: false, .. }, Some(Operator::Window { .. })) => {
            "The window sorts and holds the rows of each key: select only the columns that it and later steps read before it"
        }
        (Operator::Aggregate(aggregate), _) if aggregate.functions.iter().any(|f| f.contains("collect_")) => {
            "collect_list and collect_set hold every value of a key: aggregate to what is used of them (a count, a sum, the first n), or collect fewer columns"
        }
        (Operator::Aggregate(_), _) => {
            "An aggregate holds its groups: aggregate on fewer keys first, or count distinct values approximately"
        }
        (Operator::Sort { global: true, .. }, _) => {
            "Sort within partitions only (sortWithinPartitions) if the whole order is not needed"
        }
        (Operator::Sort { .. }, Some(Operator::Aggregate(aggregate))) => {
            let of_text = |f: &&String| ["max(", "min(", "first(", "last("].iter().any(|name| f.contains(name));
            let function = aggregate.functions.iter().find(of_text)?;
            let function = plan_text::without_ids(function.trim_start_matches("partial_").trim_start_matches("merge_"));
            return Some(format!(
                "Spark sorts here because {function} cannot be kept in a hash table, as with values of variable length such as strings: aggregate a number or a date, or narrow the rows before"
            ));
        }
        (Operator::Sort { .. }, Some(Operator::Join(_))) if joins => {
            "The sort is for a sort-merge join: where one side is small, a broadcast join sorts nothing"
        }
        _ => return None,
    };
    Some(advice.to_owned())
}

/// What multiplies rows below the operator that spills.
fn multiplied(draft: Draft, cx: &Context<'_>, facts: &StageFacts<'_>) -> Draft {
    let below = facts.plan().and_then(|plan| Some(plan.below(spiller(cx, facts)?)));
    let culprit = facts.operators().find(|(at, n)| {
        matches!(n.op, Operator::Generate { .. } | Operator::Expand) && below.as_ref().is_none_or(|b| b.contains(at))
    });
    match culprit {
        Some((_, node)) => draft.remedy(
            RemedyKind::Sql,
            format!("Select fewer columns and rows before {}: it multiplies the rows that do not fit", node.name),
        ),
        None => draft,
    }
}
