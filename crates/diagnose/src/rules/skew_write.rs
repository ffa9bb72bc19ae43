//! SKEW_WRITE: a write with few huge tasks and many tiny files or empty tasks (section 4.1).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::sizing;
use model::{Bytes, ExchangeOrigin, Metric, Millis, Partitioning, RemedyKind, Share};

/// Looks at every stage that writes to a table or files.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for facts in cx.stages.iter().filter(|s| s.q(Metric::OutputBytes).max > 0) {
        if let Some(draft) = stage(cx, facts) {
            out.push(draft);
        }
    }
}

fn stage(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    const SMALL: i64 = 16 << 20;
    let (out, d) = (facts.q(Metric::OutputBytes), facts.uneven().duration);
    let tasks = &facts.stage.tasks;
    if facts.n < 4 || !facts.has_tasks() || out.max < cx.config.skew_min_bytes {
        return None;
    }
    let with_rows = tasks
        .successful()
        .filter(|&r| tasks.value(Metric::OutputRecords, r) > 0 || tasks.value(Metric::OutputBytes, r) > 0)
        .count();
    let small = tasks.successful().filter(|&r| tasks.value(Metric::OutputBytes, r) < SMALL).count();
    let few = with_rows * 4 <= facts.n;
    let uneven = out.max >= 5 * out.median.max(1) && small * 2 >= facts.n && out.max >= SMALL;
    let row = tasks.successful().max_by_key(|&r| tasks.value(Metric::OutputBytes, r))?;
    let duration = tasks.value(Metric::DurationMs, row);
    let slow = duration as f64 >= cx.config.skew_ratio * d.peers() as f64;
    if !(few || uneven) || !slow || !cx.above_noise(facts, duration - d.peers()) {
        return None;
    }
    let title = format!(
        "{with_rows} of {} tasks write anything: the largest writes {} of {} and runs {} while the others take {}",
        facts.n,
        Bytes(out.max.unsigned_abs()),
        Bytes(out.sum.unsigned_abs()),
        Millis(duration),
        Millis(d.median),
    );
    let wanted = sizing::partitions(out.sum, cx.config.target_partition_bytes, facts.slots.round() as i64);
    let work: i64 = cx.durations(facts).iter().sum();
    let draft = Draft::new("SKEW_WRITE", title)
        .at_stage(facts)
        .estimate(cx.estimate(facts, vec![(work / wanted).max(1); wanted as usize], "the same work in even files"))
        .fix("rebalancing before the write")
        .figures(facts, &[Metric::DurationMs, Metric::OutputBytes, Metric::OutputRecords])
        .evidence("tasks_with_rows", with_rows, "tasks")
        .evidence("files_below_16_mib", small, "files")
        .evidence("output_max_over_median", out.max as f64 / out.median.max(1) as f64, "ratio")
        .over(5.0)
        .evidence("files_proposed", wanted, "files")
        .explained_by(&["SKEW_NULL_KEY", "SKEW_KEY"])
        .not(
            "slow executor",
            format!("the slow task writes {} of the output", Share(out.max as f64 / out.sum.max(1) as f64)),
        );
    Some(remedies(cx, draft, facts, wanted))
}

fn remedies(cx: &Context<'_>, draft: Draft, facts: &StageFacts<'_>, wanted: i64) -> Draft {
    let work = facts.work(cx);
    let keys = work.key_words();
    let by_keys = matches!(work.partitioning(), Some(Partitioning::Hash));
    let aqe = cx.aqe(facts.sql).unwrap_or(true);
    let rebalances = work.exchanges.first().is_some_and(|e| e.origin == ExchangeOrigin::Rebalance);
    let mut draft = match (aqe, rebalances) {
        (_, true) => draft,
        (true, _) => draft.remedy(
            RemedyKind::Sql,
            "Let adaptive execution size the files: the REBALANCE hint splits large partitions and merges small ones",
        ),
        (false, _) => draft.remedy(
            RemedyKind::Sql,
            "Switch adaptive execution on and use the REBALANCE hint: it splits large partitions and merges small ones",
        ),
    };
    if !rebalances {
        let hint = keys.as_deref().filter(|_| by_keys).map_or("REBALANCE".to_owned(), |k| format!("REBALANCE({k})"));
        draft = draft.snippet(format!("INSERT INTO … SELECT /*+ {hint} */ …"));
    }
    if let Some(keys) = keys.filter(|_| by_keys) {
        draft = draft
            .remedy(RemedyKind::Code, format!("Or spread each value of {keys} over several tasks"))
            .snippet(format!(
                "df.repartition({wanted}, {}, (rand() * {}).cast('int'))",
                quoted(&keys),
                (wanted / 4).max(2)
            ))
            .computed(format!(
                "{} / 128 MiB, rounded up to a multiple of the slots",
                Bytes(facts.q(Metric::OutputBytes).sum.unsigned_abs())
            ));
    }
    draft
        .remedy(RemedyKind::Layout, "For Iceberg: write.distribution-mode none or range instead of hash")
        .useless("the COALESCE hint", "it merges partitions and splits none: the huge ones stay")
        .confirm("output of the largest task over the median, and the number of files")
}

fn quoted(keys: &str) -> String {
    keys.split(", ").map(|k| format!("\"{k}\"")).collect::<Vec<_>>().join(", ")
}
