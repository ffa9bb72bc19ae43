//! SHUFFLE_FETCH_WAIT: tasks wait for shuffle blocks (section 4.4 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::run_model::Change;
use crate::sizing;
use model::{Bytes, Metric, Millis, RemedyKind, Share};

/// Blocks below this are small: each is a request of its own.
const SMALL_BLOCK: i64 = 64 << 10;

/// Looks at every stage that reads a shuffle.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let before = out.drafts.len();
    for facts in &cx.stages {
        if let Some(draft) = stage(cx, facts) {
            out.push(draft);
        }
    }
    let (wait, run) =
        cx.stages.iter().fold((0, 0), |(wait, run), s| (wait + s.sum(Metric::FetchWaitMs), run + s.sum(Metric::RunMs)));
    if out.drafts.len() == before && run > 0 && cx.stages.iter().any(|s| s.sum(Metric::ShuffleReadBytes) > 0) {
        out.fine("shuffle fetch", format!("{} of the run time waits for blocks", Share(wait as f64 / run as f64)));
    }
}

fn stage(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let (wait, run) = (facts.sum(Metric::FetchWaitMs), facts.sum(Metric::RunMs));
    let share = wait as f64 / run.max(1) as f64;
    let excess = wait as f64 / facts.slots.round().max(1.0);
    if share < cx.config.fetch_wait_share || !cx.above_noise(facts, excess as i64) {
        return None;
    }
    let bytes = facts.sum(Metric::ShuffleReadBytes);
    let blocks = facts.sum(Metric::LocalBlocksFetched) + facts.sum(Metric::RemoteBlocksFetched);
    let average = bytes / blocks.max(1);
    let title = format!(
        "tasks of stage {} wait {} of their run time for shuffle blocks of {} each",
        facts.key(),
        Share(share),
        Bytes(average.max(0) as u64)
    );
    let draft = Draft::new("SHUFFLE_FETCH_WAIT", title)
        .at_stage(facts)
        .estimate(estimate(cx, facts))
        .evidence("fetch_wait_share", share, "share")
        .over(cx.config.fetch_wait_share)
        .seen_at(format!("stage {} summary", facts.key()))
        .evidence("fetch_wait_ms", wait, "ms")
        .evidence("run_ms", run, "ms")
        .evidence("shuffle_read_bytes", bytes, "bytes")
        .evidence("blocks", blocks, "blocks")
        .evidence("average_block_bytes", average, "bytes")
        .evidence("remote_bytes", facts.sum(Metric::RemoteBytesRead), "bytes")
        .explained_by(&["FAIL_FETCH", "EXECUTOR_LOST", "STRAGGLER_NODE"]);
    Some(with_remedies(cx, draft, facts, bytes, average))
}

fn estimate(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<model::Estimate> {
    let shorter = facts.shortened(|row| facts.stage.tasks.value(Metric::FetchWaitMs, row));
    let change = Change::stage(facts.position, shorter);
    cx.run.as_ref().map(|r| r.estimate(&change, "each task without its fetch wait"))
}

fn with_remedies(cx: &Context<'_>, draft: Draft, facts: &StageFacts<'_>, bytes: i64, average: i64) -> Draft {
    let remote = facts.sum(Metric::RemoteBytesRead);
    let remote_share = Share(remote as f64 / bytes.max(1) as f64);
    let mut draft = match average < SMALL_BLOCK {
        true => {
            let slots = facts.slots.round() as i64;
            let wanted = sizing::partitions(bytes, cx.config.target_partition_bytes, slots);
            draft
                .not(
                    "slow network",
                    format!(
                        "blocks of {} cost a request each; {} is the least that reads well",
                        Bytes(average.max(0) as u64),
                        Bytes(SMALL_BLOCK as u64)
                    ),
                )
                .remedy(
                    RemedyKind::Conf,
                    format!("Use {wanted} shuffle partitions, so that fewer and larger blocks are fetched"),
                )
                .snippet(format!("spark.sql.shuffle.partitions {wanted}"))
                .computed(format!(
                    "{} / {}, rounded up to a multiple of {slots} slots",
                    Bytes(bytes as u64),
                    Bytes(cx.config.target_partition_bytes as u64)
                ))
        }
        false => draft
            .not("small blocks", format!("blocks hold {} on average", Bytes(average as u64)))
            .remedy(RemedyKind::Code, "Send less through the shuffle: filter, drop columns and aggregate before it")
            .computed(format!("{} cross the shuffle, {remote_share} of them from other hosts", Bytes(bytes as u64)))
            .remedy(
                RemedyKind::Compute,
                "Workers with more network and local disk throughput each, rather than more workers",
            ),
    };
    draft.finding.confidence_because = None;
    draft
        .useless(
            "more cores per executor",
            format!("{} of waiting is for bytes, not for processors", Millis(facts.sum(Metric::FetchWaitMs))),
        )
        .confirm("shuffle read fetch wait time of the stage")
}
