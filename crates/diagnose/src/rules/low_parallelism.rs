//! LOW_PARALLELISM: fewer tasks than slots (section 4.2 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::work::Work;
use crate::{sizing, words};
use model::{Bytes, Confidence, ExchangeOrigin, Metric, Millis, Partitioning, RemedyKind, Share};

/// Looks at every stage.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let (mut looked_at, before) = (0, out.drafts.len());
    for facts in &cx.stages {
        looked_at += 1;
        if out.any_at(&["SINGLE_PARTITION", "STRAGGLER_TASK"], facts.stage.id, facts.stage.attempt) {
            continue;
        }
        if let Some(draft) = stage(cx, facts) {
            out.push(draft);
        }
    }
    if looked_at > 0 && out.drafts.len() == before {
        out.fine("parallelism", "no stage of weight has fewer tasks than slots");
    }
}

fn stage(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let slots = facts.slots.round() as i64;
    let tasks = facts.n as i64;
    let matters = facts.wall_ms as f64 >= 0.05 * cx.base_wall_ms() as f64;
    if tasks == 0 || tasks >= slots || !matters || idle_share(cx, facts) < 0.2 {
        return None;
    }
    let work = facts.work(cx);
    // One partition for all rows is a finding of its own, or a small last step.
    if work.partitioning() == Some(Partitioning::Single) {
        return None;
    }
    let target = cx.config.target_partition_bytes;
    let by_size = sizing::ceil_div(facts.bytes_read(), target);
    let wanted = sizing::partitions(facts.bytes_read(), target, slots);
    let cause = Cause::of(cx, facts, work);
    let fixed = !matches!(cause, None | Some(Cause::Merged));
    let worth_more = if fixed { cx.config.fixed_task_ms } else { cx.config.long_task_ms };
    let long = facts.q(Metric::DurationMs).median >= worth_more;
    // Little data that is done soon: more tasks would cost more than they give.
    if by_size <= tasks && !long {
        return None;
    }
    let even = Even::of(facts, wanted, slots);
    // One long task among short ones is no matter of their number.
    let noticed = cx.above_noise(facts, facts.wall_ms - even.then_ms);
    noticed.then(|| draft(cx, facts, cause, wanted, &even))
}

/// The stage's work in another number of even tasks.
struct Even {
    /// Run time of the tasks that succeeded, ms: what can be divided.
    work_ms: i64,
    /// Time of one of the new tasks, ms, with the overhead that each task has.
    each_ms: i64,
    /// Wall time of the stage then, ms.
    then_ms: i64,
}

impl Even {
    fn of(facts: &StageFacts<'_>, wanted: i64, slots: i64) -> Self {
        let (run, duration) = (facts.q(Metric::RunMs), facts.q(Metric::DurationMs));
        // A task whose run time is not known is all work.
        let work_ms = if run.sum > 0 { run.sum.min(duration.sum) } else { duration.sum };
        // Loading classes for the first task of an executor is overhead that no number of tasks changes.
        let overhead = (duration.median - run.median).max(0);
        let each_ms = (work_ms / wanted.max(1) + overhead).max(1);
        let then_ms = crate::stage_model::play(&vec![each_ms; wanted.max(1) as usize], slots.max(1) as usize);
        Self { work_ms, each_ms, then_ms }
    }
}

/// Share of the stage's slot time in which slots had nothing to do, other stages counted as work.
fn idle_share(cx: &Context<'_>, facts: &StageFacts<'_>) -> f64 {
    let total = facts.slots * facts.wall_ms as f64;
    let own = facts.n as f64 * facts.wall_ms as f64;
    let elsewhere = facts.stage.span_ms().map_or(0, |(from, to)| cx.busy_elsewhere_ms(facts, from, to));
    1.0 - (own + elsewhere as f64) / total.max(1.0)
}

fn draft(cx: &Context<'_>, facts: &StageFacts<'_>, cause: Option<Cause>, wanted: i64, even: &Even) -> Draft {
    let slots = facts.slots.round() as i64;
    let (total, each, then) = (even.work_ms, even.each_ms, even.then_ms);
    let method = format!(
        "{} of work in {wanted} even tasks on {slots} slots takes {} instead of {}",
        Millis(total),
        Millis(then),
        Millis(facts.wall_ms)
    );
    let because = cause.as_ref().map(|c| format!(" because of {}", c.words())).unwrap_or_default();
    let title = format!("{} for {}{because}", words::count(facts.n as u64, "task"), words::count(slots as u64, "slot"));
    let mut draft = Draft::new("LOW_PARALLELISM", title)
        .at_stage(facts)
        .fix_partitions(wanted)
        .estimate(cx.estimate(facts, vec![each; wanted as usize], &method))
        .figures(
            facts,
            &[Metric::DurationMs, Metric::RunMs, Metric::ShuffleReadBytes, Metric::InputBytes, Metric::OutputBytes],
        )
        .evidence("slots", slots, "slots")
        .evidence("stage_wall_ms", facts.wall_ms, "ms")
        .evidence("stage_wall_then_ms", then, "ms")
        .evidence("work_ms", total, "ms")
        .evidence("idle_share", idle_share(cx, facts), "share")
        .over(0.2)
        .evidence("bytes_per_task", facts.bytes_read() / facts.n.max(1) as i64, "bytes")
        .evidence("partitions_proposed", wanted, "partitions")
        .evidence("cpu_share", cpu_share(facts), "share")
        .not("key skew", format!("ratios between {} mean nothing", words::count(facts.n as u64, "task")));
    if let Some(cause) = &cause {
        draft = draft.evidence("cause", cause.words(), "");
    } else {
        draft = draft.sure(Confidence::Medium, "what fixed the number of tasks is not in what was read");
    }
    remedies(draft, cx, facts, cause, wanted)
}

fn cpu_share(facts: &StageFacts<'_>) -> f64 {
    facts.sum(Metric::CpuMs) as f64 / facts.sum(Metric::RunMs).max(1) as f64
}

/// What fixed the number of tasks, in the order of the rules.
enum Cause {
    Repartition(u64),
    Coalesce(u64),
    Jdbc,
    Unsplittable,
    Merged,
    /// `spark.sql.shuffle.partitions` itself.
    Setting(u64),
}

impl Cause {
    fn of(cx: &Context<'_>, facts: &StageFacts<'_>, work: &Work) -> Option<Self> {
        let fixed = work.exchanges.iter().find(|e| e.origin == ExchangeOrigin::RepartitionByNumber);
        if let Some(exchange) = fixed {
            return Some(Self::Repartition(exchange.partitions.unwrap_or(facts.n as u64)));
        }
        if let Some(n) = work.coalesce {
            return Some(Self::Coalesce(n));
        }
        let scan = work.scan.as_ref();
        let limit = cx.conf(facts.sql, "spark.sql.files.maxPartitionBytes").and_then(|v| model::parse_bytes(v, 1));
        match () {
            () if scan.is_some_and(|s| s.format == "jdbc") => Some(Self::Jdbc),
            () if super::skew_input::unsplittable(work) => Some(Self::Unsplittable),
            () if scan.is_some() && facts.q(Metric::InputBytes).max > 2 * limit.unwrap_or(128 << 20) => {
                Some(Self::Unsplittable)
            }
            () if work.merged => Some(Self::Merged),
            () if by_setting(cx, facts, work) => Some(Self::Setting(facts.n as u64)),
            () => None,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Repartition(n) => format!("repartition({n})"),
            Self::Coalesce(n) => format!("coalesce({n})"),
            Self::Jdbc => "a JDBC read in one query".to_owned(),
            Self::Unsplittable => "files that cannot be split".to_owned(),
            Self::Merged => "adaptive execution, which merged partitions".to_owned(),
            Self::Setting(n) => format!("spark.sql.shuffle.partitions = {n}"),
        }
    }
}

/// Whether the stage reads a shuffle that Spark put in, with as many partitions as is set.
fn by_setting(cx: &Context<'_>, facts: &StageFacts<'_>, work: &Work) -> bool {
    let set = cx.conf(facts.sql, "spark.sql.shuffle.partitions").and_then(|v| v.parse::<usize>().ok());
    set == Some(facts.n) && work.exchanges.iter().any(|e| e.origin == ExchangeOrigin::Requirements)
}

fn remedies(draft: Draft, cx: &Context<'_>, facts: &StageFacts<'_>, cause: Option<Cause>, wanted: i64) -> Draft {
    let slots = facts.slots.round();
    let bytes = Bytes(facts.bytes_read().unsigned_abs());
    let target = Bytes(cx.config.target_partition_bytes.unsigned_abs());
    let formula = format!("{bytes} / {target}, rounded up to a multiple of {slots} slots");
    let draft = match cause {
        Some(Cause::Repartition(n)) => draft
            .remedy(RemedyKind::Code, format!("Write with more partitions: replace the fixed number {n} by {wanted}"))
            .snippet(format!("df.repartition({wanted})"))
            .computed(formula)
            .remedy(RemedyKind::Sql, "Or drop the fixed number and let adaptive execution size the output")
            .snippet("SELECT /*+ REBALANCE */ * FROM …"),
        Some(Cause::Coalesce(n)) => draft
            .remedy(
                RemedyKind::Code,
                format!(
                    "Use repartition({n}) instead of coalesce({n}) if {} needed: coalesce also starves everything before it, up to the last shuffle",
                    if n == 1 { "one file is".to_owned() } else { format!("{n} files are") }
                ),
            )
            .snippet(format!("df.repartition({n})"))
            .remedy(RemedyKind::Code, format!("Better, {wanted} partitions"))
            .snippet(format!("df.repartition({wanted})"))
            .computed(formula),
        Some(Cause::Jdbc) => draft
            .remedy(RemedyKind::Code, format!("Read in {wanted} queries side by side, no more than the database allows"))
            .snippet(format!(
                ".option(\"partitionColumn\", \"<numeric or date column>\").option(\"lowerBound\", \"<min>\").option(\"upperBound\", \"<max>\").option(\"numPartitions\", \"{wanted}\")"
            ))
            .computed(formula),
        Some(Cause::Unsplittable) => draft
            .remedy(RemedyKind::Layout, "Rewrite the source in a format that can be split, in files of 128 MB to 1 GB")
            .remedy(RemedyKind::Code, "Or spread the rows right after reading")
            .snippet(format!("df.repartition({wanted})"))
            .computed(formula),
        Some(Cause::Merged) => draft
            .remedy(RemedyKind::Conf, "Let adaptive execution merge less")
            .snippet(format!(
                "SET spark.sql.adaptive.advisoryPartitionSizeInBytes = {}MB",
                sizing::power_of_two_mib(facts.bytes_read() / wanted.max(1))
            ))
            .computed(format!("{bytes} / {wanted} tasks")),
        Some(Cause::Setting(n)) => draft
            .remedy(RemedyKind::Conf, format!("Raise the number of shuffle partitions from {n} to {wanted}; with adaptive execution on it may be large, small ones are merged"))
            .snippet(format!("SET spark.sql.shuffle.partitions = {wanted}"))
            .computed(formula),
        None => draft
            .remedy(RemedyKind::Code, format!("Give the stage {wanted} partitions"))
            .snippet(format!("df.repartition({wanted})"))
            .computed(formula),
    };
    let idle = Share(1.0 - facts.n as f64 / slots.max(1.0));
    draft
        .useless("more executors", format!("{idle} of the slots that are there have no task to run"))
        .confirm("number of tasks of the stage, and its wall time")
}
