//! GC_PRESSURE: too much of the task time is garbage collection (section 4.3 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::{memory, sizing, words};
use model::{Bytes, Confidence, Metric, Millis, Operator, RemedyKind, Severity, Share};
use std::collections::BTreeMap;

/// Time after the start of an executor in which collection counts as start-up, ms.
const START_UP_MS: i64 = 5_000;
/// Tasks that read less hold nothing that more of them would spread, bytes.
const SMALL_TASK: i64 = 8 << 20;

/// Looks at every stage, then at every executor.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let before = out.drafts.len();
    let (mut gc, mut all) = (0, 0);
    for facts in &cx.stages {
        gc += facts.q(Metric::GcMs).sum;
        all += facts.q(Metric::DurationMs).sum;
        if let Some(draft) = stage(cx, facts) {
            out.push(draft);
        }
    }
    if out.drafts.len() == before {
        executors(cx, out);
    }
    if all > 0 && out.drafts.len() == before {
        let share = gc as f64 / all as f64;
        let where_ = if share > cx.config.gc_share { ", in start-up and short stages only" } else { "" };
        out.fine("garbage collection", format!("{} of the task time{where_}", Share(share)));
    }
}

/// Collection and task time of a stage, its executors' start-up left out.
#[derive(Clone, Copy, Default)]
struct Pressure {
    gc: i64,
    duration: i64,
    /// Largest share of one task of a second or more, and its collection time.
    worst: (f64, i64),
}

impl Pressure {
    fn share(&self) -> f64 {
        self.gc as f64 / self.duration.max(1) as f64
    }
}

fn pressure(cx: &Context<'_>, facts: &StageFacts<'_>) -> Pressure {
    if !facts.has_tasks() {
        return Pressure { gc: facts.sum(Metric::GcMs), duration: facts.sum(Metric::DurationMs), worst: (0.0, 0) };
    }
    let tasks = &facts.stage.tasks;
    let mut sum = Pressure::default();
    for row in facts.warm_rows() {
        let started = cx.executor(tasks.executor(row)).and_then(|e| e.added_ms).unwrap_or(i64::MIN);
        if tasks.value(Metric::LaunchMs, row).saturating_sub(started) < START_UP_MS && started != i64::MIN {
            continue;
        }
        let (gc, duration) = (tasks.value(Metric::GcMs, row), tasks.value(Metric::DurationMs, row));
        sum.gc += gc;
        sum.duration += duration;
        let share = gc as f64 / duration.max(1) as f64;
        if duration >= 1_000 && share > sum.worst.0 {
            sum.worst = (share, gc);
        }
    }
    sum
}

fn stage(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let c = cx.config;
    let pressure = pressure(cx, facts);
    let slots = facts.slots.round().max(1.0) as i64;
    let wall_gc = pressure.gc / slots.min(facts.n.max(1) as i64);
    let base = cx.base_wall_ms();
    let long = facts.wall_ms >= c.noise_stage_ms && facts.wall_ms as f64 >= c.noise_stage_share * base as f64;
    let outlier = pressure.worst.0 > c.gc_task_share && pressure.worst.1 >= c.noise_stage_ms.max(facts.wall_ms / 5);
    let high = pressure.share() > c.gc_share && wall_gc >= c.noise_stage_ms;
    if !long || !(high || outlier) {
        return None;
    }
    Some(draft(cx, facts, &pressure, wall_gc))
}

fn draft(cx: &Context<'_>, facts: &StageFacts<'_>, pressure: &Pressure, wall_gc: i64) -> Draft {
    let c = cx.config;
    let share = pressure.share();
    let title = match share > c.gc_share {
        true => format!(
            "{} of the task time is garbage collection: {} of the {} of all tasks together{}",
            Share(share),
            Millis(pressure.gc),
            Millis(pressure.duration),
            options(cx).map(|o| format!(", with {}", o.bad.join(" "))).unwrap_or_default()
        ),
        false => format!(
            "One task spends {} of its time in garbage collection ({})",
            Share(pressure.worst.0),
            Millis(pressure.worst.1)
        ),
    };
    let run = facts.sum(Metric::RunMs);
    let mut draft = Draft::new("GC_PRESSURE", title)
        .at_stage(facts)
        .estimate(estimate(cx, facts))
        .fix("relief for the heap")
        .figures(facts, &[Metric::GcMs, Metric::DurationMs, Metric::RunMs, Metric::PeakExecutionBytes])
        .evidence("gc_ms", pressure.gc, "ms")
        .evidence("task_ms", pressure.duration, "ms")
        .evidence("gc_share", share, "share")
        .over(c.gc_share)
        .evidence("gc_share_of_run", facts.sum(Metric::GcMs) as f64 / run.max(1) as f64, "share")
        .evidence("gc_worst_task_share", pressure.worst.0, "share")
        .evidence("gc_worst_task_ms", pressure.worst.1, "ms")
        .not(
            "start-up of executors",
            format!("first tasks, and the first {} of every executor, are left out", Millis(START_UP_MS)),
        );
    let matters = |share: f64| wall_gc as f64 >= share * cx.base_wall_ms() as f64;
    draft = match () {
        () if memory::is_local(cx) => draft.at_most(Severity::Info).sure(
            Confidence::Low,
            "in local mode the driver shares the heap, and its collection is counted in every task",
        ),
        () if share > c.gc_high_share && matters(c.high_share) => draft.at_least(Severity::High),
        () if share > c.gc_share && matters(c.medium_share) => draft.at_least(Severity::Medium),
        () if matters(c.low_share) || wall_gc >= c.low_ms => draft.at_least(Severity::Low),
        () => draft,
    };
    if pressure.worst.1 * 2 > pressure.gc {
        draft = draft.explained_by(&["SKEW_NULL_KEY", "SKEW_KEY", "SKEW_INPUT", "SKEW_EXPLODE", "STRAGGLER_TASK"]);
    }
    remedies(cx, draft, facts)
}

/// Every task with a twentieth of its run time in collection.
fn estimate(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<model::Estimate> {
    let method = "collection down to 5 % of the run time of every task";
    if !facts.has_tasks() {
        let excess = facts.sum(Metric::GcMs) as f64 / facts.sum(Metric::DurationMs).max(1) as f64 - 0.05;
        let changed = cx.durations(facts).into_iter().map(|d| (d as f64 * (1.0 - excess.max(0.0))) as i64);
        return cx.estimate(facts, changed.collect(), method);
    }
    let tasks = &facts.stage.tasks;
    let changed =
        facts.redone(cx, |row, d| d - (tasks.value(Metric::GcMs, row) - tasks.value(Metric::RunMs, row) / 20).max(0));
    cx.estimate(facts, changed, method)
}

fn remedies(cx: &Context<'_>, mut draft: Draft, facts: &StageFacts<'_>) -> Draft {
    let work = facts.work(cx);
    let gathers = facts
        .operators()
        .any(|(_, n)| matches!(&n.op, Operator::Aggregate(a) if a.functions.iter().any(|f| gathers(f))));
    let objects = facts.operators().any(|(_, n)| matches!(n.op, Operator::Objects));
    if let Some(options) = options(cx) {
        draft = options.remedy(draft).explained_anywhere_by(&["GC_PRESSURE"]);
    }
    if gathers {
        draft = draft.remedy(RemedyKind::Sql, "An aggregate gathers whole groups on the heap (collect_list, exact percentiles and the like): use approx_percentile or gather fewer columns");
    }
    if objects {
        draft = draft
            .remedy(RemedyKind::Code, "Replace user functions by built-in ones: each row becomes JVM objects for them");
    }
    if work.reads_cache {
        draft = draft
            .remedy(
                RemedyKind::Code,
                "Cached data fills the heap: keep it serialised, or unpersist what is not read again",
            )
            .snippet("df.persist(StorageLevel.MEMORY_AND_DISK_SER)");
    }
    draft = more_tasks(draft, facts);
    let cores = cx.app.executors.iter().filter(|e| e.added).map(|e| e.cores).max().unwrap_or(0);
    if cores > 8 && !cx.app.is_databricks() && !memory::is_local(cx) {
        draft = draft
            .remedy(RemedyKind::Compute, format!("{cores} cores share one heap: take executors of 4 to 5 cores"))
            .snippet("spark.executor.cores=5");
    }
    draft
        .remedy(RemedyKind::Compute, memory::more_heap(cx))
        .useless("more executors of the same kind", "every heap stays as full")
        .confirm("GC time over task time of the stage: below 10 %")
}

/// Smaller tasks, where a setting of the query decides about their number.
fn more_tasks(draft: Draft, facts: &StageFacts<'_>) -> Draft {
    let (read, input) = (facts.q(Metric::ShuffleReadBytes), facts.q(Metric::InputBytes));
    if facts.sql.is_none() || read.max < SMALL_TASK || read.max < input.max {
        return draft;
    }
    let slots = (facts.slots.round() as i64).max(1);
    let wanted = sizing::round_up(facts.n as i64 * 2, slots);
    draft
        .remedy(RemedyKind::Conf, format!("Use {wanted} tasks instead of {}: each holds half", facts.n))
        .snippet(format!("SET spark.sql.shuffle.partitions = {wanted}"))
        .computed(format!(
            "{} × 2, rounded up to a multiple of {}",
            facts.n,
            words::counted(slots.unsigned_abs(), "slot")
        ))
}

/// Java options of the executors that make collection slow.
struct JavaOptions<'o> {
    key: &'static str,
    bad: Vec<&'o str>,
    /// The others, which stay.
    rest: Vec<&'o str>,
    young: Option<i64>,
}

/// The serial collector, and a young generation fixed at less than a tenth of the heap.
fn options<'c>(cx: &'c Context<'_>) -> Option<JavaOptions<'c>> {
    let key = match memory::is_local(cx) {
        true => "spark.driver.extraJavaOptions",
        false => "spark.executor.extraJavaOptions",
    };
    let heap = cx.app.conf_bytes(memory::heap_key(cx), 1 << 20).unwrap_or(1 << 30);
    let young = |option: &str| option.strip_prefix("-Xmn").and_then(|v| model::parse_bytes(v, 1));
    let small = |option: &str| young(option).is_some_and(|y| y < heap / 10);
    let all = cx.app.conf(key)?.split_whitespace();
    let (bad, rest): (Vec<_>, Vec<_>) = all.partition(|o| *o == "-XX:+UseSerialGC" || small(o));
    let young = bad.iter().find_map(|o| young(o));
    (!bad.is_empty()).then_some(JavaOptions { key, bad, rest, young })
}

impl JavaOptions<'_> {
    fn remedy(&self, draft: Draft) -> Draft {
        let because = match self.young {
            Some(young) => format!(
                "only {} are left for new objects, so that they are collected over and over",
                Bytes(young.unsigned_abs())
            ),
            None => "the serial collector stops all tasks of an executor and works with one thread".to_owned(),
        };
        let kept = [self.rest.as_slice(), &["-XX:+UseG1GC"]].concat();
        draft
            .remedy(
                RemedyKind::Conf,
                format!("Take {} out of {} and let G1 size itself: {because}", self.bad.join(" and "), self.key),
            )
            .snippet(format!("{} {}", self.key, kept.join(" ")))
            .evidence("java_options", self.bad.join(" "), "")
    }
}

fn gathers(function: &str) -> bool {
    ["collect_list", "collect_set", "percentile(", "array_agg", "median(", "mode("]
        .iter()
        .any(|name| function.contains(name))
        && !function.contains("approx")
}

/// Executors whose tasks collect too much over the whole run while no stage stands out.
fn executors(cx: &Context<'_>, out: &mut Findings) {
    if memory::is_local(cx) || cx.app.pasted.is_some() {
        return;
    }
    let mut sums: BTreeMap<usize, (i64, i64)> = BTreeMap::new();
    for facts in cx.stages.iter().filter(|f| f.has_tasks()) {
        let tasks = &facts.stage.tasks;
        for row in facts.warm_rows() {
            let sum = sums.entry(tasks.executor(row)).or_default();
            sum.0 += tasks.value(Metric::GcMs, row);
            sum.1 += tasks.value(Metric::DurationMs, row);
        }
    }
    let c = cx.config;
    for (at, (gc, duration)) in sums {
        let share = gc as f64 / duration.max(1) as f64;
        let cores = cx.executor(at).map_or(1, |e| i64::from(e.cores.max(1)));
        if share <= c.gc_share
            || ((gc / cores) as f64) < c.medium_share * cx.wall_ms as f64
            || gc / cores < c.noise_stage_ms
        {
            continue;
        }
        let id = cx.executor(at).map(|e| e.id.to_string()).unwrap_or_default();
        let title =
            format!("Executor {id} spends {} of its task time in garbage collection ({})", Share(share), Millis(gc));
        let mut draft = Draft::new("GC_PRESSURE", title)
            .at_least(Severity::Low)
            .evidence("gc_ms", gc, "ms")
            .evidence("task_ms", duration, "ms")
            .evidence("gc_share", share, "share")
            .over(c.gc_share)
            .remedy(RemedyKind::Compute, memory::more_heap(cx))
            .useless("more executors of the same kind", "every heap stays as full")
            .confirm("GC time over task time of the executor: below 10 %");
        draft.finding.scope.executor = Some(id);
        out.push(draft);
    }
}
