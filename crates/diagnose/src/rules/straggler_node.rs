//! STRAGGLER_NODE: one executor or host is slow whatever data it gets (section 4.1).
//!
//! Its tasks are compared with tasks that ran at the same time elsewhere: the first minutes of an
//! application are slow everywhere, and an executor that got more of them is not slow for that.

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::words;
use model::{Confidence, Executor, Metric, Millis, Quantiles, RemedyKind, Share, Tasks, quantile};
use std::collections::BTreeMap;

/// Looks at every stage, then at what each executor did in all of them.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let mut by_executor: BTreeMap<usize, Vec<(&StageFacts<'_>, Slow)>> = BTreeMap::new();
    let mut compared = 0;
    for facts in &cx.stages {
        let slow = slow_executors(cx, facts);
        compared += u64::from(is_comparable(cx, facts));
        for one in slow {
            by_executor.entry(one.executor).or_default().push((facts, one));
        }
        if let Some(draft) = pasted(cx, facts) {
            out.push(draft);
        }
    }
    let before = out.drafts.len();
    for (_, stages) in by_executor {
        let tasks: usize = stages.iter().map(|(_, s)| s.own.count as usize).sum();
        if stages.len() < 2 && tasks < 5 {
            continue;
        }
        if let Some((facts, slow)) = stages.iter().max_by_key(|(_, s)| s.excess_ms) {
            let others = stages.iter().map(|(f, _)| f.stage.id).filter(|id| *id != facts.stage.id).collect();
            out.push(draft(cx, facts, slow, others));
        }
    }
    if compared > 0 && out.drafts.len() == before {
        let stages = words::count(compared, "stage");
        out.fine("slow executors", format!("no executor is slower than the others in {stages} that can be compared"));
    }
}

/// An executor that is slow in a stage.
#[derive(Clone, Debug)]
pub struct Slow {
    /// Position in the application's executors.
    pub executor: usize,
    /// Durations of its tasks, ms.
    pub own: Quantiles,
    /// Durations of everybody else's, ms.
    pub others: Quantiles,
    /// Its median over that of tasks that ran elsewhere at the same time.
    pub ratio: f64,
    /// Time lost in one of its slots, ms.
    pub excess_ms: i64,
}

/// The executors that are slow in a stage.
#[must_use]
pub fn slow_executors(cx: &Context<'_>, facts: &StageFacts<'_>) -> Vec<Slow> {
    if !is_comparable(cx, facts) {
        return Vec::new();
    }
    let tasks = &facts.stage.tasks;
    let mut by: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for row in facts.warm_rows().filter(|&r| has_usual_bytes(facts, r)) {
        by.entry(tasks.executor(row)).or_default().push(row);
    }
    if by.len() < 2 {
        return Vec::new();
    }
    let all: Vec<(usize, i64)> = by.iter().flat_map(|(e, rows)| rows.iter().map(|&r| (*e, own_ms(tasks, r)))).collect();
    let suspects = by.iter().filter(|(_, rows)| rows.len() >= 3 && all.len() - rows.len() >= 3);
    suspects.filter_map(|(&executor, rows)| slow(cx, facts, executor, rows, &all)).collect()
}

/// Duration without collection, ms: a pause of one heap is no fault of the machine.
fn own_ms(tasks: &Tasks, row: usize) -> i64 {
    (tasks.value(Metric::DurationMs, row) - tasks.value(Metric::GcMs, row)).max(0)
}

fn slow(
    cx: &Context<'_>,
    facts: &StageFacts<'_>,
    executor: usize,
    rows: &[usize],
    all: &[(usize, i64)],
) -> Option<Slow> {
    let c = cx.config;
    let tasks = &facts.stage.tasks;
    let median = |of: &mut dyn Iterator<Item = i64>| {
        let mut values: Vec<i64> = of.collect();
        values.sort_unstable();
        quantile(&values, 0.5).unwrap_or_default()
    };
    let own = median(&mut all.iter().filter(|t| t.0 == executor).map(|t| t.1));
    let others = median(&mut all.iter().filter(|t| t.0 != executor).map(|t| t.1));
    if (own as f64) < c.straggler_ratio * others.max(1) as f64 {
        return None;
    }
    let ratio = ratio_at_the_same_time(facts, executor, rows)?;
    if ratio < c.straggler_ratio {
        return None;
    }
    let lost: i64 = rows.iter().map(|&r| (own_ms(tasks, r) - others).max(0)).sum();
    let slots = cx.executor(executor).map_or(1, |e| i64::from(e.cores.max(1)));
    let excess_ms = lost / slots;
    if !cx.above_noise(facts, excess_ms) {
        return None;
    }
    let quantiles = |mine: bool| {
        let of = tasks.successful().filter(|&r| (tasks.executor(r) == executor) == mine);
        Quantiles::of(of.map(|r| tasks.value(Metric::DurationMs, r)).collect())
    };
    Some(Slow { executor, own: quantiles(true), others: quantiles(false), ratio, excess_ms })
}

fn is_comparable(cx: &Context<'_>, facts: &StageFacts<'_>) -> bool {
    let long = facts.wall_ms >= cx.config.noise_stage_ms
        && facts.wall_ms as f64 >= cx.config.noise_stage_share * cx.base_wall_ms() as f64;
    facts.has_tasks() && facts.n >= 6 && long && cx.app.executors.len() > 1
}

/// Whether a task reads about what the median task reads.
fn has_usual_bytes(facts: &StageFacts<'_>, row: usize) -> bool {
    [Metric::ShuffleReadBytes, Metric::InputBytes].into_iter().all(|metric| {
        let median = facts.q(metric).median;
        let own = facts.stage.tasks.value(metric, row);
        median < 1 << 20 && own < 1 << 20 || (own as f64 / median.max(1) as f64 - 1.0).abs() < 0.3
    })
}

/// Median over the executor's tasks of: duration over the median of the tasks elsewhere that
/// overlap it in time. At most 200 tasks are looked at.
fn ratio_at_the_same_time(facts: &StageFacts<'_>, executor: usize, rows: &[usize]) -> Option<f64> {
    let tasks = &facts.stage.tasks;
    let mut elsewhere: Vec<(i64, i64)> = facts
        .warm_rows()
        .filter(|&r| tasks.executor(r) != executor && has_usual_bytes(facts, r))
        .map(|r| (tasks.value(Metric::LaunchMs, r), own_ms(tasks, r)))
        .collect();
    elsewhere.sort_unstable();
    let longest = elsewhere.iter().map(|t| t.1).max()?;
    let step = rows.len().div_ceil(200);
    let mut ratios: Vec<i64> = Vec::new();
    for &row in rows.iter().step_by(step) {
        let begin = tasks.value(Metric::LaunchMs, row);
        let end = begin + own_ms(tasks, row);
        let first = elsewhere.partition_point(|t| t.0 < begin - longest);
        let last = elsewhere.partition_point(|t| t.0 <= end);
        let mut near: Vec<i64> = elsewhere[first..last].iter().filter(|t| t.0 + t.1 >= begin).map(|t| t.1).collect();
        near.sort_unstable();
        if let Some(median) = quantile(&near, 0.5) {
            ratios.push((end - begin) * 1_000 / median.max(1));
        }
    }
    ratios.sort_unstable();
    quantile(&ratios, 0.5).map(|r| r as f64 / 1_000.0)
}

/// Whether the executor of a task is slow in this stage.
#[must_use]
pub fn slow_executor_of(cx: &Context<'_>, facts: &StageFacts<'_>, row: usize) -> Option<Slow> {
    let at = facts.stage.tasks.executor(row);
    slow_executors(cx, facts).into_iter().find(|s| s.executor == at)
}

fn draft(cx: &Context<'_>, facts: &StageFacts<'_>, slow: &Slow, other_stages: Vec<u32>) -> Draft {
    let id = cx.executor(slow.executor).map(|e| e.id.to_string()).unwrap_or_default();
    let host = cx.executor(slow.executor).map(|e| e.host.to_string()).unwrap_or_default();
    let title = format!(
        "Executor {id} is slow: its {} take {} each while the {} elsewhere take {}, on the same amount of data{}",
        words::count(slow.own.count, "task"),
        Millis(slow.own.median),
        slow.others.count,
        Millis(slow.others.median),
        off_cpu(facts, slow.executor)
    );
    let mut draft = Draft::new("STRAGGLER_NODE", title)
        .at_stage(facts)
        .estimate(estimate(cx, facts, slow))
        .fix("an executor as fast as the others")
        .figures(
            facts,
            &[
                Metric::DurationMs,
                Metric::RunMs,
                Metric::GcMs,
                Metric::ShuffleReadBytes,
                Metric::ShuffleRecordsRead,
                Metric::InputBytes,
            ],
        )
        .evidence("executor", id.clone(), "")
        .evidence("host", host.clone(), "")
        .evidence("executor_tasks", slow.own.count, "tasks")
        .evidence("executor_median_duration_ms", slow.own.median, "ms")
        .evidence("other_tasks", slow.others.count, "tasks")
        .evidence("others_median_duration_ms", slow.others.median, "ms")
        .evidence("ratio_at_the_same_time", slow.ratio, "ratio")
        .over(cx.config.straggler_ratio);
    draft.finding.scope.executor = Some(id);
    draft.finding.scope.stages = other_stages;
    draft = differences(draft, facts, slow.executor);
    draft = draft.not("cold JVM", "first tasks of its slots are left out of the comparison");
    let waits = !off_cpu(facts, slow.executor).is_empty();
    let sound = sound_neighbour(cx, facts, slow.executor);
    remedies(cx, draft, &Suspect { host: &host, waits, sound })
}

/// What is known of the slow executor.
struct Suspect<'a> {
    host: &'a str,
    /// Its tasks wait rather than compute.
    waits: bool,
    /// An executor on the same host that is not slow.
    sound: Option<String>,
}

/// `: its tasks wait off the CPU 99 % of the time`, where that is most of their run time.
fn off_cpu(facts: &StageFacts<'_>, executor: usize) -> String {
    let tasks = &facts.stage.tasks;
    let total = |metric| -> i64 {
        tasks.successful().filter(|&r| tasks.executor(r) == executor).map(|r| tasks.value(metric, r)).sum()
    };
    let share = total(Metric::IoWaitMs) as f64 / total(Metric::RunMs).max(1) as f64;
    if share < 0.8 {
        String::new()
    } else {
        format!(": its tasks wait off the CPU for {} of their run time", Share(share))
    }
}

/// An executor on the same host that ran tasks of the stage and is not slow: the node is not to
/// blame.
fn sound_neighbour(cx: &Context<'_>, facts: &StageFacts<'_>, executor: usize) -> Option<String> {
    let host = &cx.executor(executor)?.host;
    let tasks = &facts.stage.tasks;
    let slow: Vec<usize> = slow_executors(cx, facts).iter().map(|s| s.executor).collect();
    let ran = |at: usize| tasks.successful().filter(|&r| tasks.executor(r) == at).count() >= 3;
    let near = |e: &Executor| !host.is_empty() && e.host == *host && !e.is_driver();
    let mut others = cx.app.executors.iter().enumerate().filter(|(at, e)| *at != executor && near(e));
    others.find(|(at, _)| !slow.contains(at) && ran(*at)).map(|(_, e)| e.id.to_string())
}

/// What else differs between the executor and the others: data, collection, CPU, waiting.
fn differences(mut draft: Draft, facts: &StageFacts<'_>, executor: usize) -> Draft {
    let tasks = &facts.stage.tasks;
    let total = |metric, mine: bool| -> i64 {
        let rows = tasks.successful().filter(|&r| (tasks.executor(r) == executor) == mine);
        rows.map(|r| tasks.value(metric, r)).sum()
    };
    let share = |metric, mine| total(metric, mine) as f64 / total(Metric::RunMs, mine).max(1) as f64;
    for (name, metric) in [
        ("gc", Metric::GcMs),
        ("cpu", Metric::CpuMs),
        ("io_wait", Metric::IoWaitMs),
        ("fetch_wait", Metric::FetchWaitMs),
    ] {
        let (own, others) = (share(metric, true), share(metric, false));
        if own > 0.0 || others > 0.0 {
            draft = draft.evidence(&format!("executor_{name}_share"), own, "share").evidence(
                &format!("others_{name}_share"),
                others,
                "share",
            );
        }
    }
    for metric in [Metric::ShuffleReadBytes, Metric::InputBytes] {
        let median = |mine: bool| {
            let rows = tasks.successful().filter(|&r| (tasks.executor(r) == executor) == mine);
            Quantiles::of(rows.map(|r| tasks.value(metric, r)).collect()).median
        };
        let (own, others) = (median(true), median(false));
        if own > 0 {
            let name = crate::figures::name(metric).0;
            draft = draft
                .evidence(&format!("executor_median_{name}"), own, "bytes")
                .evidence(&format!("others_median_{name}"), others, "bytes")
                .not(
                    "key skew",
                    format!(
                        "its tasks read {} each, the others' {}",
                        model::Bytes(own.unsigned_abs()),
                        model::Bytes(others.unsigned_abs())
                    ),
                );
        }
    }
    let (own, others) = (share(Metric::GcMs, true), share(Metric::GcMs, false));
    draft.not("garbage collection", format!("{} of its run time, {} elsewhere", Share(own), Share(others)))
}

fn estimate(cx: &Context<'_>, facts: &StageFacts<'_>, slow: &Slow) -> Option<model::Estimate> {
    let tasks = &facts.stage.tasks;
    let factor = slow.others.median as f64 / slow.own.median.max(1) as f64;
    let changed = facts.redone(cx, |row, d| match tasks.executor(row) == slow.executor {
        true => (d as f64 * factor) as i64,
        false => d,
    });
    cx.estimate(facts, changed, "its tasks as fast as the others'")
}

fn remedies(cx: &Context<'_>, draft: Draft, suspect: &Suspect<'_>) -> Draft {
    let on = |key| cx.app.conf_bool(key, false);
    let draft = match (&suspect.sound, suspect.waits) {
        (Some(other), waits) => draft
            .not("the node", format!("executor {other} on the same host ({}) is not slow", suspect.host))
            .remedy(RemedyKind::Ops, format!(
                "See what this process {}: a thread dump of the executor while it runs, and its stderr; then restart it",
                if waits { "waits for" } else { "does" }
            )),
        (None, true) => draft.remedy(RemedyKind::Compute, format!(
            "Replace or decommission the node ({}); its tasks wait, so look at its disk and network first, and at a thread dump",
            suspect.host
        )),
        (None, false) => draft.remedy(RemedyKind::Compute, format!(
            "Replace or decommission the node ({}); look at its disk, CPU throttling and neighbours",
            suspect.host
        )),
    };
    let hosts: std::collections::BTreeSet<&str> =
        cx.app.executors.iter().filter(|e| !e.is_driver()).map(|e| &*e.host).collect();
    let draft = match (on("spark.speculation"), hosts.len() > 1) {
        (true, _) => draft,
        (false, true) => draft
            .remedy(RemedyKind::Conf, "As a stop-gap, let copies of its slow tasks run elsewhere")
            .snippet("spark.speculation=true\nspark.speculation.quantile=0.9\nspark.speculation.multiplier=3"),
        (false, false) => {
            draft.useless("speculation", "all executors are on one host, and a copy must run on another one")
        }
    };
    draft
        .useless("salting or more partitions", "the data is even; the same executor would be slow with any of it")
        .confirm("median duration of its tasks over that of the others")
}

/// A pasted summary that says how the slowest task's executor did otherwise.
fn pasted(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let peers = facts.stage.pasted.as_ref().filter(|_| !facts.has_tasks())?.peers_on_executor_ms?;
    let d = facts.uneven().duration;
    let slow = d.max as f64 >= cx.config.skew_ratio * d.p75 as f64 && cx.above_noise(facts, d.max - d.p75);
    if facts.n < 4
        || !slow
        || (peers as f64) < cx.config.straggler_ratio * d.median as f64
        || !usual_quantiles(cx, facts)
    {
        return None;
    }
    let id = facts.stage.pasted.as_ref().and_then(|p| p.slowest_executor.clone()).unwrap_or_else(|| "?".to_owned());
    let title = format!(
        "Executor {id} is slow: its tasks take {} while the median task takes {}, on the same amount of data",
        Millis(peers),
        Millis(d.median)
    );
    let mut changed = cx.durations(facts);
    changed.iter_mut().filter(|t| **t > d.p75).for_each(|t| *t = d.median.max(1));
    let mut draft = Draft::new("STRAGGLER_NODE", title)
        .at_stage(facts)
        .estimate(cx.estimate(facts, changed, "its slowest tasks as long as the median task"))
        .figures(facts, &[Metric::DurationMs, Metric::GcMs, Metric::ShuffleReadBytes, Metric::InputBytes])
        .evidence("executor_median_duration_ms", peers, "ms")
        .sure(Confidence::Low, "from a pasted summary: the executor's other tasks are known by their median only");
    draft.finding.scope.executor = Some(id);
    Some(remedies(cx, draft, &Suspect { host: "its host", waits: false, sound: None }))
}

/// Whether the largest task of a summary reads about what its peers read.
#[must_use]
pub fn usual_quantiles(cx: &Context<'_>, facts: &StageFacts<'_>) -> bool {
    [Metric::ShuffleReadBytes, Metric::InputBytes].into_iter().all(|metric| {
        let q = facts.q(metric);
        q.max < cx.config.skew_min_bytes || (q.max as f64) < cx.config.skew_ratio * q.p75 as f64
    })
}
