//! SKEW_INPUT: some tasks of a scan read far more than the others (section 4.1 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::uneven::{beside_peers, peers_words, top_share};
use crate::work::Work;
use crate::{sizing, words};
use model::{Bytes, Confidence, Metric, Millis, RemedyKind, Share};

/// Looks at every stage that reads a source.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for facts in &cx.stages {
        if let Some(draft) = stage(cx, facts) {
            out.push(draft);
        }
    }
}

fn stage(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let c = cx.config;
    let input = facts.q(Metric::InputBytes);
    let d = facts.uneven().duration;
    if facts.n < 4 || input.max < c.skew_min_bytes || input.max_over_peers() < c.skew_ratio {
        return None;
    }
    let tasks = &facts.stage.tasks;
    let row = tasks.successful().max_by_key(|&r| tasks.value(Metric::InputBytes, r));
    let duration = row.map_or(d.max, |r| tasks.value(Metric::DurationMs, r));
    if (duration as f64) < c.skew_ratio * d.peers() as f64 || !cx.above_noise(facts, duration - d.peers()) {
        return None;
    }
    let estimate = even(cx, facts, input.max, input.peers(), duration);
    let saved = estimate.as_ref().map_or(i64::MAX, |e| e.saved_ms);
    if input.sum < c.target_partition_bytes && saved < c.medium_ms {
        return None;
    }
    let work = facts.work(cx);
    let share = top_share(facts, Metric::InputBytes, 1).unwrap_or_default();
    let title = format!(
        "One task of {} reads {} of {} of input and runs {} while the others take {}{}",
        facts.n,
        Bytes(input.max.unsigned_abs()),
        Bytes(input.sum.unsigned_abs()),
        Millis(duration),
        Millis(d.median),
        cause(cx, facts, work).map(|c| format!(": {c}")).unwrap_or_default(),
    );
    let draft = Draft::new("SKEW_INPUT", title)
        .at_stage(facts)
        .estimate(estimate)
        .fix("even input splits")
        .figures(facts, &[Metric::DurationMs, Metric::InputBytes, Metric::InputRecords]);
    let draft = beside_peers(draft, "input_max", input.max, &input, c.skew_ratio);
    let mut draft = beside_peers(draft, "max", duration, &d, c.skew_ratio)
        .evidence("share_of_top_1", share, "share")
        .not("slow executor", format!("the slow task holds {} of the input", Share(share)))
        .not("key skew", "the stage reads a source here, no shuffle");
    draft.finding.scope.task = row.map(|r| tasks.id(r));
    Some(remedies(cx, draft, facts, work))
}

fn even(cx: &Context<'_>, facts: &StageFacts<'_>, max: i64, peers: i64, duration: i64) -> Option<model::Estimate> {
    let pieces = sizing::ceil_div(max, peers.max(1)).clamp(2, 512);
    let mut durations = cx.durations(facts);
    let at = durations.iter().rposition(|&d| d == duration)?;
    let heavy = durations.remove(at);
    durations.extend((0..pieces).map(|_| (heavy / pieces).max(1)));
    cx.estimate(facts, durations, "the largest split as large as its neighbours")
}

/// Formats and codecs of which a file is one task whatever its size.
pub(super) fn unsplittable(work: &Work) -> bool {
    let Some(scan) = &work.scan else { return false };
    let place = scan.location.as_deref().unwrap_or_default().to_ascii_lowercase();
    let packed = [".gz", ".zip", ".gzip", ".xml"].iter().any(|end| place.contains(end));
    packed || matches!(scan.format.as_str(), "xml" | "binaryfile")
}

fn cause(cx: &Context<'_>, facts: &StageFacts<'_>, work: &Work) -> Option<&'static str> {
    let limit = max_partition_bytes(cx, facts);
    match () {
        () if work.reads_cache => Some("a cached partition is larger than the others"),
        () if unsplittable(work) => Some("a file that cannot be split is one task"),
        () if facts.q(Metric::InputBytes).max > limit + limit / 4 => Some("a file larger than a split was not cut"),
        () => None,
    }
}

fn max_partition_bytes(cx: &Context<'_>, facts: &StageFacts<'_>) -> i64 {
    let conf = cx.conf(facts.sql, "spark.sql.files.maxPartitionBytes");
    conf.and_then(|v| model::parse_bytes(v, 1)).unwrap_or(128 << 20)
}

fn remedies(cx: &Context<'_>, draft: Draft, facts: &StageFacts<'_>, work: &Work) -> Draft {
    let slots = (facts.slots.round() as i64).max(1);
    let draft = match cause(cx, facts, work) {
        Some(_) => draft,
        None => draft.sure(Confidence::Medium, "neither file sizes nor codecs are in the log"),
    };
    // Little input needs no more tasks than there are slots.
    let spread = if facts.sum(Metric::InputBytes) < cx.config.target_partition_bytes { slots } else { slots * 3 };
    let draft = if work.reads_cache {
        draft.remedy(RemedyKind::Code, format!("Spread the rows before caching them: repartition({spread})"))
    } else {
        let draft = match facts.sum(Metric::InputBytes) >= cx.config.target_partition_bytes {
            true => draft.remedy(RemedyKind::Layout, "Rewrite the source in files of 128 MB to 1 GB in a format that can be split (for gzip: zstd inside Parquet, or bzip2 for text)"),
            false => draft.remedy(RemedyKind::Layout, "Rewrite the source in files of the same size, in a format that can be split"),
        };
        draft
            .remedy(RemedyKind::Code, "Spread the rows right after reading, so that the rest of the job is even")
            .snippet(format!("df.repartition({spread})"))
    };
    draft
        .computed(format!("{} × {}", words::counted(slots.unsigned_abs(), "slot"), spread / slots))
        .useless("salting a key", "the unevenness is in the files, before any key is looked at")
        .confirm(format!("input of the largest task over {}", peers_words(&facts.q(Metric::InputBytes))))
}
