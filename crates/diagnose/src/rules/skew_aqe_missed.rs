//! SKEW_AQE_MISSED: adaptive execution could have split a skewed join and did not
//! (section 4.1 of the rules). The reason that holds is named, with its numbers.

use super::skew_key::{self, Skew};
use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::work::{JoinWork, Operation, Work};
use crate::{sizing, words};
use model::{Bytes, Confidence, JoinAlgorithm, Metric, RemedyKind, Side, parse_bytes};

/// Looks at every join stage with key skew that was not split.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for facts in &cx.stages {
        let Some(skew) = Skew::of(cx, facts) else { continue };
        let work = facts.work(cx);
        let Some(join) = work.join.as_ref().filter(|j| may_apply(work, j)) else { continue };
        let limits = Limits::of(cx, facts);
        if let Some(why) = Why::of(&limits, work, join, &skew) {
            out.push(draft(cx, facts, &skew, &limits, &why, join));
        }
    }
}

/// How adaptive execution could be brought to split the heavy partition, for the finding that
/// names the skew; nothing where no setting does.
pub(super) fn split(cx: &Context<'_>, draft: Draft, facts: &StageFacts<'_>, skew: &Skew) -> Draft {
    let work = facts.work(cx);
    let Some(join) = work.join.as_ref().filter(|j| may_apply(work, j)) else { return draft };
    let limits = Limits::of(cx, facts);
    match Why::of(&limits, work, join, skew).filter(Why::has_setting) {
        Some(why) => remedies(draft, skew, &limits, &why, &Pieces::of(cx, facts, skew)),
        None => draft,
    }
}

fn may_apply(work: &Work, join: &JoinWork) -> bool {
    let shuffled = matches!(join.algorithm, JoinAlgorithm::SortMerge | JoinAlgorithm::ShuffledHash);
    work.operation == Operation::Join && shuffled && !join.skew
}

/// The settings that decide, as they were in force.
struct Limits {
    adaptive: Option<bool>,
    skew_join: bool,
    factor: f64,
    threshold: i64,
    forced: bool,
    /// Whether the default of a setting had to be taken.
    defaults: bool,
}

/// Into how many pieces a partition may be cut: each is the output of one or more map tasks.
struct Pieces {
    /// Map tasks of the shuffle; `None` when not known.
    maps: Option<i64>,
    /// `spark.sql.adaptive.advisoryPartitionSizeInBytes` in force.
    advisory: i64,
    /// Advisory size that gives the pieces that are possible, bytes; `None` when the present one does.
    smaller: Option<i64>,
}

impl Pieces {
    fn of(cx: &Context<'_>, facts: &StageFacts<'_>, skew: &Skew) -> Self {
        let maps = skew_key::map_tasks(cx, facts).map(|n| n as i64).filter(|n| *n > 0);
        let conf = cx.conf(facts.sql, "spark.sql.adaptive.advisoryPartitionSizeInBytes");
        let advisory = conf.and_then(|v| parse_bytes(v, 1)).unwrap_or(64 << 20);
        let wanted = maps.unwrap_or(i64::MAX).min(skew.pieces());
        // A piece is made of whole outputs of map tasks, taken up to the advisory size.
        let now = match maps {
            Some(maps) => sizing::ceil_div(maps, (advisory * maps / skew.max.max(1)).max(1)),
            None => skew.max / advisory.max(1),
        };
        let size = sizing::power_of_two_mib(skew.max / wanted.max(1)) << 20;
        let smaller = (skew.metric == Metric::ShuffleReadBytes && size < advisory && now < wanted).then_some(size);
        Self { maps, advisory, smaller }
    }

    /// The limit, as the end of a sentence.
    fn limit(&self) -> String {
        match self.maps {
            Some(n) => {
                format!("; into at most {n} pieces, as its input has {n} map tasks: read that in more tasks for more")
            }
            None => String::new(),
        }
    }

    /// The line that makes pieces smaller, where it is needed.
    fn line(&self) -> String {
        let Some(size) = self.smaller else { return String::new() };
        format!("\nSET spark.sql.adaptive.advisoryPartitionSizeInBytes = {}MB", size >> 20)
    }

    /// What the further line does besides.
    fn note(&self) -> String {
        match self.smaller {
            Some(_) => {
                format!("; the advisory size ({} now) holds for all shuffles of the query", bytes(self.advisory))
            }
            None => String::new(),
        }
    }
}

impl Limits {
    fn of(cx: &Context<'_>, facts: &StageFacts<'_>) -> Self {
        let conf = |key| cx.conf(facts.sql, key);
        let pasted = facts.stage.pasted.as_ref();
        let on = |key, default| conf(key).map_or(default, |v| v.trim().eq_ignore_ascii_case("true"));
        let factor = conf("spark.sql.adaptive.skewJoin.skewedPartitionFactor").and_then(|v| v.trim().parse().ok());
        let threshold = conf("spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes");
        Self {
            adaptive: pasted.and_then(|p| p.aqe).or_else(|| cx.aqe(facts.sql)),
            skew_join: pasted
                .and_then(|p| p.aqe_skew_join)
                .unwrap_or_else(|| on("spark.sql.adaptive.skewJoin.enabled", true)),
            factor: factor.unwrap_or(5.0),
            threshold: threshold.and_then(|v| parse_bytes(v, 1)).unwrap_or(256 << 20),
            forced: on("spark.sql.adaptive.forceOptimizeSkewedJoin", false),
            defaults: factor.is_none() && threshold.is_none(),
        }
    }
}

/// Why adaptive execution did not split, in the order in which Spark decides.
enum Why {
    AdaptiveOff,
    SkewJoinOff,
    RowsNotBytes,
    BelowFactor,
    BelowThreshold,
    SideNotAllowed(Side),
    NoSideAllowed,
    ExtraShuffle,
    Unknown,
}

impl Why {
    fn of(limits: &Limits, work: &Work, join: &JoinWork, skew: &Skew) -> Option<Self> {
        let limit = limits.factor * skew.median as f64;
        let side = join.side_of(skew.max);
        Some(match () {
            () if limits.adaptive == Some(false) => Self::AdaptiveOff,
            () if !limits.skew_join => Self::SkewJoinOff,
            () if skew.metric != Metric::ShuffleReadBytes => Self::RowsNotBytes,
            () if join.kind == "FullOuter" => Self::NoSideAllowed,
            () if side.is_some_and(|s| !join.may_split(s)) => Self::SideNotAllowed(side.unwrap_or(Side::Left)),
            () if skew.max as f64 <= limit => Self::BelowFactor,
            () if skew.max <= limits.threshold => Self::BelowThreshold,
            () if work.needs_same_keys && !limits.forced => Self::ExtraShuffle,
            // Not even whether adaptive execution was on is known: nothing to say.
            () if limits.adaptive.is_none() => return None,
            () => Self::Unknown,
        })
    }

    /// Whether a setting makes adaptive execution split.
    fn has_setting(&self) -> bool {
        matches!(
            self,
            Self::AdaptiveOff | Self::SkewJoinOff | Self::BelowFactor | Self::BelowThreshold | Self::ExtraShuffle
        )
    }

    fn say(&self, limits: &Limits, skew: &Skew, join: &JoinWork) -> String {
        let (max, median) = (bytes(skew.max), bytes(skew.median));
        let limit = bytes((limits.factor * skew.median as f64) as i64);
        let (factor, threshold) = (limits.factor, bytes(limits.threshold));
        match self {
            Self::AdaptiveOff => "adaptive execution is off (spark.sql.adaptive.enabled)".to_owned(),
            Self::SkewJoinOff => "its skew handling is off (spark.sql.adaptive.skewJoin.enabled)".to_owned(),
            Self::RowsNotBytes => "it compares bytes, and here the rows are uneven while the bytes are not".to_owned(),
            Self::BelowFactor => format!("{max} is not above {factor} x the median of {median}, which is {limit}"),
            Self::BelowThreshold => {
                format!("{max} is above {factor} x median ({limit}) but below the {threshold} threshold")
            }
            Self::SideNotAllowed(side) => {
                let side = if *side == Side::Left { "left" } else { "right" };
                format!("the heavy side is the {side} one, which {} join does not allow to split", words::a_join_kind(&join.kind))
            }
            Self::NoSideAllowed => "a full outer join allows neither side to be split".to_owned(),
            Self::ExtraShuffle => {
                "an operator after the join needs the same spread of rows, so that splitting would cost one more shuffle".to_owned()
            }
            Self::Unknown => format!("{max} is above both limits ({limit} and {threshold}); what was read does not tell why"),
        }
    }
}

fn bytes(n: i64) -> Bytes {
    Bytes(n.unsigned_abs())
}

fn draft(cx: &Context<'_>, facts: &StageFacts<'_>, skew: &Skew, limits: &Limits, why: &Why, join: &JoinWork) -> Draft {
    let reason = why.say(limits, skew, join);
    let draft =
        Draft::new("SKEW_AQE_MISSED", format!("Adaptive execution did not split the heavy partition: {reason}"))
            .at_stage(facts)
            .explained_by(&["SKEW_NULL_KEY", "SKEW_KEY"])
            .evidence("shuffle_read_bytes_max", skew_bytes(facts), "bytes")
            .evidence("shuffle_read_bytes_median", facts.q(Metric::ShuffleReadBytes).median, "bytes")
            .evidence("skewed_partition_factor", limits.factor, "ratio")
            .evidence("factor_x_median_bytes", (limits.factor * skew.median as f64) as i64, "bytes")
            .evidence("skewed_partition_threshold_bytes", limits.threshold, "bytes")
            .evidence("why_aqe_missed", reason, "");
    let draft = match limits.defaults {
        true => draft.evidence("settings", "Spark's defaults, as nothing else was read", ""),
        false => draft,
    };
    let draft = match why {
        Why::Unknown => draft.sure(Confidence::Low, "the partition sizes that Spark compared are not in the log"),
        Why::BelowFactor | Why::BelowThreshold => draft.sure(
            Confidence::Medium,
            "Spark compares the two sides of the join one by one; a task's shuffle read is their sum",
        ),
        _ => draft,
    };
    let pieces = Pieces::of(cx, facts, skew);
    remedies(draft, skew, limits, why, &pieces)
        .confirm("`skew=true` on the join of the final plan, and more tasks in the stage")
}

fn skew_bytes(facts: &StageFacts<'_>) -> i64 {
    facts.q(Metric::ShuffleReadBytes).max
}

fn remedies(draft: Draft, skew: &Skew, limits: &Limits, why: &Why, pieces: &Pieces) -> Draft {
    let max = bytes(skew.max);
    let threshold = sizing::power_of_two_mib(skew.max / 2);
    let factor = ((skew.max as f64 / skew.median.max(1) as f64) / 2.0).floor().max(1.0);
    let (limit, line, note) = (pieces.limit(), pieces.line(), pieces.note());
    // What it cannot cut it need not be told to cut.
    let draft = if pieces.maps == Some(1) { return uncut(draft, why) } else { draft };
    match why {
        Why::AdaptiveOff => draft
            .remedy(RemedyKind::Conf, format!("Switch adaptive execution on, with a threshold below {max}{limit}"))
            .snippet(format!(
                "SET spark.sql.adaptive.enabled = true\nSET spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes = {}MB{line}",
                threshold.min(256)
            ))
            .computed(format!("2^⌊log2({max} / 2)⌋, at most the default of 256 MB{note}")),
        Why::SkewJoinOff => draft
            .remedy(RemedyKind::Conf, format!("Switch the skew handling of adaptive execution on{limit}"))
            .snippet("SET spark.sql.adaptive.skewJoin.enabled = true"),
        Why::BelowFactor => draft
            .remedy(RemedyKind::Conf, format!("Lower the factor of adaptive skew handling to {factor}: the largest task is twice that above the median{limit}"))
            .snippet(format!("SET spark.sql.adaptive.skewJoin.skewedPartitionFactor = {factor}"))
            .computed(format!("⌊{max} / {} / 2⌋", bytes(skew.median)))
            .useless("a higher factor", format!("{} is a multiple of the median: raising it makes the test stricter", limits.factor)),
        Why::BelowThreshold => draft
            .remedy(
                RemedyKind::Conf,
                format!("Let adaptive execution split it: set spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes below {max}, for example {threshold} MB{limit}"),
            )
            .snippet(format!(
                "SET spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes = {threshold}MB{line}"
            ))
            .computed(format!("2^⌊log2({max} / 2)⌋{note}"))
            .useless("a higher skewedPartitionFactor", "it makes the test stricter, and the size test is the one that fails"),
        Why::ExtraShuffle => draft
            .remedy(RemedyKind::Conf, format!("Accept the further shuffle that splitting costs{limit}"))
            .snippet("SET spark.sql.adaptive.forceOptimizeSkewedJoin = true"),
        Why::RowsNotBytes | Why::NoSideAllowed | Why::SideNotAllowed(_) | Why::Unknown => draft
            .remedy(RemedyKind::Sql, "Cure the skew in the query, see the finding above: no setting makes adaptive execution split this join"),
    }
}

/// One map task wrote the shuffle: there is nothing to cut a partition along.
fn uncut(draft: Draft, why: &Why) -> Draft {
    if !why.has_setting() {
        return draft;
    }
    draft.remedy(
        RemedyKind::Code,
        "Read the input in more tasks: one map task wrote the shuffle, and adaptive execution cuts a partition only between the outputs of map tasks",
    )
}
