//! BIG_PARTITION: tasks handle far more bytes than they should (section 4.2 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::{sizing, words};
use model::{Bytes, Metric, RemedyKind, Severity};

/// Looks at every stage.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for facts in &cx.stages {
        if let Some(draft) = stage(cx, facts) {
            out.push(draft);
        }
    }
}

fn stage(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let (read, input) = (facts.q(Metric::ShuffleReadBytes), facts.q(Metric::InputBytes));
    let (metric, q) =
        if read.max >= input.max { (Metric::ShuffleReadBytes, read) } else { (Metric::InputBytes, input) };
    let c = cx.config;
    let severity = match () {
        () if q.max > c.huge_partition_bytes => Severity::High,
        () if q.p75 > c.big_partition_bytes => Severity::Medium,
        () => return None,
    };
    let wanted = sizing::partitions(q.sum, c.target_partition_bytes, facts.slots.round() as i64);
    let target = Bytes(c.target_partition_bytes.unsigned_abs());
    let title = format!(
        "{} handle up to {} each, {} altogether",
        words::count(facts.n as u64, "task"),
        Bytes(q.max.unsigned_abs()),
        Bytes(q.sum.unsigned_abs())
    );
    let draft = Draft::new("BIG_PARTITION", title)
        .at_stage(facts)
        .at_least(severity)
        .figures(facts, &[metric, Metric::DurationMs, Metric::PeakExecutionBytes])
        .evidence("bytes_per_task", q.sum / facts.n.max(1) as i64, "bytes")
        .over(c.big_partition_bytes as f64)
        .evidence("partitions_proposed", wanted, "partitions")
        .explained_by(&["SKEW_NULL_KEY", "SKEW_KEY", "SKEW_INPUT", "LOW_PARALLELISM", "SINGLE_PARTITION"]);
    let formula = format!(
        "{} / {target}, rounded up to a multiple of {} slots",
        Bytes(q.sum.unsigned_abs()),
        facts.slots.round()
    );
    let draft = match metric {
        Metric::ShuffleReadBytes if facts.sql.is_none() && facts.has_tasks() => draft
            .remedy(RemedyKind::Code, format!("Give the shuffle {wanted} partitions"))
            .snippet(format!("rdd.reduceByKey(…, {wanted})\n# or the like: the number of partitions is an argument"))
            .computed(formula),
        Metric::ShuffleReadBytes => draft
            .remedy(RemedyKind::Conf, format!("Use {wanted} partitions"))
            .snippet(format!("SET spark.sql.shuffle.partitions = {wanted}"))
            .computed(formula),
        _ => input_remedy(cx, draft, facts, wanted, formula, q.max),
    };
    Some(draft.confirm("bytes read by the largest task"))
}

/// What decides how input is cut: a cached data set keeps the partitions that it was made with,
/// files are split by the reader.
fn input_remedy(
    cx: &Context<'_>,
    draft: Draft,
    facts: &StageFacts<'_>,
    wanted: i64,
    formula: String,
    max: i64,
) -> Draft {
    let cached = facts.work(cx).reads_cache || facts.stage.rdds.iter().any(|r| r.storage.is_persisted());
    match (cached, facts.sql.is_none() && facts.has_tasks()) {
        (true, true) => draft
            .remedy(
                RemedyKind::Code,
                format!("The tasks read cached blocks: make {wanted} of them before they are persisted"),
            )
            .snippet(format!("sc.parallelize(…, {wanted})\n# or: rdd.repartition({wanted}).persist(…)"))
            .computed(formula),
        (true, false) => draft
            .remedy(
                RemedyKind::Code,
                format!(
                    "The tasks read cached blocks: spread the rows over {wanted} partitions before they are cached"
                ),
            )
            .snippet(format!("df.repartition({wanted}).cache()"))
            .computed(formula),
        (false, true) => draft
            .remedy(RemedyKind::Code, format!("Read into {wanted} partitions (files that cannot be split stay whole)"))
            .snippet(format!("sc.textFile(path, {wanted})\n# or: rdd.repartition({wanted})"))
            .computed(formula),
        (false, false) => draft
            .remedy(RemedyKind::Conf, "Read in smaller splits (files that cannot be split stay whole)")
            .snippet(format!("SET spark.sql.files.maxPartitionBytes = {}MB", split_mib(cx, facts, max)))
            .computed("128 MB × the current limit / the largest split"),
    }
}

fn split_mib(cx: &Context<'_>, facts: &StageFacts<'_>, max: i64) -> i64 {
    let conf = cx.conf(facts.sql, "spark.sql.files.maxPartitionBytes");
    let current = conf.and_then(|v| model::parse_bytes(v, 1)).unwrap_or(128 << 20) as f64;
    sizing::power_of_two_mib((cx.config.target_partition_bytes as f64 * current / max.max(1) as f64) as i64)
}
