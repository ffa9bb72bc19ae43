//! LOW_PARALLELISM: fewer tasks than slots (section 4.2 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::run_model::Change;
use crate::{sizing, words};
use model::{Bytes, ExchangeOrigin, Metric, Operator, Partitioning, RemedyKind, Share};

/// Looks at every stage.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for facts in &cx.stages {
        if let Some(draft) = stage(cx, facts) {
            out.push(draft);
        }
    }
}

fn stage(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let tasks = facts.n as f64;
    let slots = facts.slots.round();
    let idle = (1.0 - tasks / slots) * facts.wall_ms as f64;
    let matters = facts.wall_ms as f64 >= 0.05 * cx.base_wall_ms() as f64;
    if tasks == 0.0 || tasks >= slots || idle < 0.2 * facts.wall_ms as f64 || !matters {
        return None;
    }
    let bytes = bytes(facts);
    let wanted = sizing::partitions(bytes, cx.config.target_partition_bytes, slots as i64);
    if wanted <= facts.n as i64 {
        return None;
    }
    let work: i64 = facts.sum(Metric::DurationMs);
    let change = Change::stage(facts.position, vec![(work / wanted).max(1); wanted as usize]);
    let estimate = cx.run.as_ref().map(|r| r.estimate(&change, "the same work in even tasks, on the recorded slots"));
    let cause = cause(facts);
    let because = cause.as_ref().map(|c| format!(" because of {}", c.what)).unwrap_or_default();
    let title = format!("{} for {} slots{because}", words::count(facts.n as u64, "task"), words::number(slots as u64));
    let draft = Draft::new("LOW_PARALLELISM", title)
        .at_stage(facts)
        .fixes(format!("{wanted} partitions"))
        .estimate(estimate)
        .evidence("tasks", facts.n, "tasks")
        .over(slots)
        .seen_at(format!("stage {}", facts.key()))
        .evidence("slots", slots, "slots")
        .evidence("stage_wall_ms", facts.wall_ms, "ms")
        .evidence("bytes_per_task", bytes / facts.n as i64, "bytes")
        .evidence("partitions_proposed", wanted, "partitions")
        .evidence("cpu_share", cpu_share(facts), "share")
        .not("key skew", format!("ratios between {} mean nothing", words::count(facts.n as u64, "task")));
    Some(with_remedies(draft, cx, facts, cause, wanted))
}

fn bytes(facts: &StageFacts<'_>) -> i64 {
    facts.sum(Metric::ShuffleReadBytes).max(facts.sum(Metric::InputBytes))
}

fn cpu_share(facts: &StageFacts<'_>) -> f64 {
    facts.sum(Metric::CpuMs) as f64 / facts.sum(Metric::RunMs).max(1) as f64
}

struct Cause {
    what: String,
    change: &'static str,
}

/// What fixed the number of tasks: an explicit number before anything else.
fn cause(facts: &StageFacts<'_>) -> Option<Cause> {
    let plan = facts.plan()?;
    let exchanges = facts.reads.iter().map(|&n| &plan.nodes[n]);
    for node in exchanges {
        let Operator::Exchange(exchange) = &node.op else { continue };
        if exchange.origin == ExchangeOrigin::RepartitionByNumber {
            let n = exchange.partitions.unwrap_or(facts.n as u64);
            return Some(Cause { what: format!("repartition({n})"), change: "repartition" });
        }
        if exchange.partitioning == Partitioning::Single {
            return Some(Cause { what: "a single partition".to_owned(), change: "single" });
        }
    }
    let coalesce = facts.operators().find_map(|(_, n)| match n.op {
        Operator::Coalesce { partitions } => Some(partitions.unwrap_or(facts.n as u64)),
        _ => None,
    });
    coalesce.map(|n| Cause { what: format!("coalesce({n})"), change: "coalesce" })
}

fn with_remedies(draft: Draft, cx: &Context<'_>, facts: &StageFacts<'_>, cause: Option<Cause>, wanted: i64) -> Draft {
    let (bytes, slots) = (bytes(facts), facts.slots.round());
    let target = Bytes(cx.config.target_partition_bytes as u64);
    let formula = format!("{} / {target}, rounded up to a multiple of {slots} slots", Bytes(bytes as u64));
    let what = match cause.as_ref().map(|c| c.change) {
        Some("repartition") => "Write with more partitions: replace the fixed number",
        Some("coalesce") => "Replace coalesce(n), which also starves everything before it up to the last shuffle,",
        _ => "Give the stage more partitions: replace the number",
    };
    let idle = Share(1.0 - facts.n as f64 / slots);
    draft
        .remedy(RemedyKind::Code, format!("{what} by {wanted}"))
        .snippet(format!("df.repartition({wanted})"))
        .computed(formula)
        .remedy(RemedyKind::Sql, "Or drop the fixed number and let adaptive execution size the output")
        .snippet("SELECT /*+ REBALANCE */ * FROM …")
        .useless("more executors", format!("{idle} of the slots that are there have no task to run"))
        .confirm("number of tasks of the stage, and its wall time")
}
