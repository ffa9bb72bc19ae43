//! TINY_TASKS: so many small tasks that starting them takes longer than running them
//! (section 4.2 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::sizing;
use crate::work::Work;
use model::{
    Bytes, Confidence, Count, ExchangeOrigin, JoinAlgorithm, Metric, Millis, Operator, Pasted, Plan, RemedyKind,
    Severity, Share,
};

/// Looks at every stage, or at a number of tasks told in words.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let (mut looked_at, before) = (0, out.drafts.len());
    for facts in cx.stages.iter().filter(|f| !in_stream(cx, f)) {
        looked_at += 1;
        if let Some(draft) = stage(cx, facts) {
            out.push(draft);
        }
    }
    if let Some(draft) = cx.app.pasted.as_ref().and_then(told) {
        out.push(draft);
    } else if looked_at > 0 && out.drafts.len() == before {
        out.fine("task size", "no stage spends its time on starting tiny tasks");
    }
}

/// The partitions of a streaming state are fixed at its first start: another finding.
fn in_stream(cx: &Context<'_>, facts: &StageFacts<'_>) -> bool {
    facts.stage.jobs.iter().filter_map(|&j| cx.app.job(j)).any(|j| j.stream.is_some())
}

fn stage(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let c = cx.config;
    let slots = facts.slots.round().max(1.0) as i64;
    let (n, d, run) = (facts.n as i64, facts.q(Metric::DurationMs), facts.q(Metric::RunMs));
    // The run time is what the task itself does; on a busy driver the rest alone passes 100 ms.
    let work_ms = if run.max > 0 { run.median.min(d.median) } else { d.median };
    let tiny = n >= 4 * slots && work_ms < c.tiny_task_ms || n > 5_000 && d.median < 5 * c.tiny_task_ms;
    if !tiny {
        return None;
    }
    let overhead = overhead_ms(facts);
    let share = overhead as f64 / facts.uneven().warm.sum.max(1) as f64;
    if share < c.tiny_overhead_share || !cx.above_noise(facts, overhead / slots) {
        return None;
    }
    let work = facts.work(cx);
    let read = facts.bytes_read();
    let wanted = sizing::partitions(read, c.target_partition_bytes, slots).min(n);
    let title = format!(
        "{} tasks for {}: {} of their time goes into starting them, the median task works {}",
        Count(n.unsigned_abs()),
        if read > 0 { Bytes(read.unsigned_abs()).to_string() } else { "next to no data".to_owned() },
        Share(share),
        Millis(work_ms)
    );
    let draft = Draft::new("TINY_TASKS", title)
        .at_stage(facts)
        .estimate(estimate(cx, facts, wanted))
        .fix_partitions(wanted)
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
        .evidence("overhead_share", share, "share")
        .over(c.tiny_overhead_share)
        .evidence("overhead_ms", overhead, "ms")
        .evidence("slots", slots, "slots")
        .evidence("bytes_per_task", read / n.max(1), "bytes")
        .evidence("partitions_proposed", wanted, "partitions")
        .not(
            "key skew",
            format!("the largest task reads {}", Bytes(facts.q(Metric::ShuffleReadBytes).max.unsigned_abs())),
        );
    Some(remedies(cx, draft, facts, work, wanted))
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

/// The same work in fewer tasks, each with the usual overhead of one.
fn estimate(cx: &Context<'_>, facts: &StageFacts<'_>, wanted: i64) -> Option<model::Estimate> {
    let work = facts.q(Metric::RunMs).sum.min(facts.q(Metric::DurationMs).sum);
    let each = work / wanted.max(1) + overhead_ms(facts) / facts.n.max(1) as i64;
    let method = "the run time of all tasks in fewer of them, each with the overhead of one";
    cx.estimate(facts, vec![each.max(1); wanted.max(1) as usize], method)
}

fn remedies(cx: &Context<'_>, draft: Draft, facts: &StageFacts<'_>, work: &Work, wanted: i64) -> Draft {
    let slots = facts.slots.round().max(1.0);
    let bytes = Bytes(facts.bytes_read().unsigned_abs());
    let formula = format!("max({slots} slots, {bytes} / 128 MiB), rounded up to a multiple of the slots");
    let fixed = work.exchanges.iter().find(|e| e.origin == ExchangeOrigin::RepartitionByNumber);
    let aqe = cx.aqe(facts.sql);
    let merging =
        cx.conf(facts.sql, "spark.sql.adaptive.coalescePartitions.enabled").is_none_or(|v| v.trim() == "true");
    let parallelism_first =
        cx.conf(facts.sql, "spark.sql.adaptive.coalescePartitions.parallelismFirst").is_none_or(|v| v.trim() == "true");
    let draft = match (fixed, aqe, facts.sql.is_some()) {
        (Some(exchange), _, _) => draft
            .remedy(RemedyKind::Code, format!("Drop the fixed number {} of repartition: adaptive execution keeps it whatever the data", exchange.partitions.unwrap_or(facts.n as u64)))
            .snippet(format!("df.repartition({wanted})"))
            .computed(formula),
        (None, Some(false), true) => draft
            .remedy(RemedyKind::Conf, "Switch adaptive execution on: it merges small partitions")
            .snippet("SET spark.sql.adaptive.enabled = true")
            .remedy(RemedyKind::Conf, format!("Or use {wanted} partitions"))
            .snippet(format!("SET spark.sql.shuffle.partitions = {wanted}"))
            .computed(formula),
        (None, _, true) if !merging => draft
            .remedy(RemedyKind::Conf, "Let adaptive execution merge small partitions")
            .snippet("SET spark.sql.adaptive.coalescePartitions.enabled = true"),
        (None, _, true) if parallelism_first && facts.q(Metric::ShuffleReadBytes).max > 0 => draft
            .remedy(RemedyKind::Conf, "Merge up to the advisory size: by default adaptive execution prefers as many tasks as slots")
            .snippet("SET spark.sql.adaptive.coalescePartitions.parallelismFirst = false\nSET spark.sql.adaptive.advisoryPartitionSizeInBytes = 128MB"),
        _ => draft
            .remedy(RemedyKind::Code, format!("Use {wanted} partitions: the number of the source, of parallelize, of repartition or of the shuffle"))
            .snippet(format!("rdd.coalesce({wanted})"))
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
                left,
                right,
                left * right
            )
        }
        _ => format!("One stage has {tasks} tasks: starting them takes longer than their work"),
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
