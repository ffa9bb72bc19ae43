//! JOIN_SHOULD_BROADCAST: both sides are shuffled although one is small (section 4.4 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use crate::run_model::Change;
use crate::{memory, words};
use model::{Bytes, Join, JoinAlgorithm, Metric, Operator, RemedyKind, Severity, Side};

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
/// What a broadcast may cost in memory: four times its size, a fifth of a heap.
const COPIES: i64 = 4;
const HEAP_SHARE: f64 = 0.20;

/// Looks at every join that shuffles both sides.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let (mut joins, mut found) = (0, 0);
    for query in queries::of_users(cx) {
        for (at, node) in query.nodes() {
            let Operator::Join(join) = &node.op else { continue };
            if !matches!(join.algorithm, JoinAlgorithm::SortMerge | JoinAlgorithm::ShuffledHash)
                || query.stream(cx).is_some()
            {
                continue;
            }
            joins += 1;
            if let Some(missed) = missed(cx, &query, at, join) {
                found += 1;
                out.push(draft(cx, &query, at, join, &missed));
            }
        }
    }
    if joins > 0 && found == 0 && cx.app.pasted.is_none() {
        out.fine(
            "join choice",
            match joins {
                1 => "one join shuffles both sides; neither is small enough to broadcast and may be".to_owned(),
                n => format!(
                    "{n} joins shuffle both sides; none has a side that is small enough to broadcast and may be"
                ),
            },
        );
    }
}

struct Missed {
    side: Side,
    small: i64,
    large: i64,
    /// Exchange of the large side.
    exchange: usize,
    /// Scan of the small side, for names.
    small_input: usize,
    limit: i64,
    threshold: Option<i64>,
}

/// Sides that a join type lets Spark build or broadcast.
fn may_build(join: &Join, side: Side) -> bool {
    match join.kind.split('(').next().unwrap_or_default() {
        "Inner" | "Cross" | "InnerLike" => true,
        "LeftOuter" | "LeftSemi" | "LeftAnti" | "LeftSingle" | "ExistenceJoin" => side == Side::Right,
        "RightOuter" => side == Side::Left,
        _ => false,
    }
}

fn threshold(cx: &Context<'_>, query: &Query<'_>) -> Option<i64> {
    let of = |key| cx.conf(query.sql, key).and_then(|v| model::parse_bytes(v, 1));
    of("spark.sql.adaptive.autoBroadcastJoinThreshold").or_else(|| of("spark.sql.autoBroadcastJoinThreshold"))
}

/// The size below which a side is small: the threshold, then a ladder by the other side.
fn limit(large: i64, threshold: Option<i64>, databricks: bool) -> i64 {
    let default = if databricks { 30 * MIB } else { 10 * MIB };
    let base = threshold.unwrap_or(default).max(10 * MIB);
    let ladder = [(1_024 * GIB, 5 * GIB), (300 * GIB, GIB), (10 * GIB, 100 * MIB)];
    ladder.into_iter().find(|(other, _)| large >= *other).map_or(base, |(_, small)| base.max(small))
}

fn missed(cx: &Context<'_>, query: &Query<'_>, at: usize, join: &Join) -> Option<Missed> {
    let [left, right] = query.plan.inputs(at)[..] else { return None };
    let (l, r) = (query.feeding_exchange(left)?, query.feeding_exchange(right)?);
    // Without a run only `explain cost` tells sizes, and those are what the planner decided by.
    let (ls, rs) = (query.data_size(cx, l)?, query.data_size(cx, r)?);
    let (side, small, large, exchange, small_input) =
        if ls <= rs { (Side::Left, ls, rs, r, left) } else { (Side::Right, rs, ls, l, right) };
    let threshold = threshold(cx, query);
    let limit = limit(large, threshold, cx.app.is_databricks());
    // A large side of a few megabytes costs nothing to shuffle.
    let worth = large >= 10 * MIB && large >= 2 * small;
    (worth && small <= limit && may_build(join, side) && small <= room(cx)).then_some(Missed {
        side,
        small,
        large,
        exchange,
        small_input,
        limit,
        threshold,
    })
}

/// Largest side that the smaller heap has room for, bytes.
pub(super) fn room(cx: &Context<'_>) -> i64 {
    let heap = |key| cx.app.conf_bytes(key, 1 << 20).unwrap_or(GIB);
    let smaller = match memory::is_local(cx) {
        true => heap("spark.driver.memory"),
        false => heap("spark.driver.memory").min(heap("spark.executor.memory")),
    };
    (smaller as f64 * HEAP_SHARE) as i64 / COPIES
}

fn reason(cx: &Context<'_>, query: &Query<'_>, missed: &Missed) -> &'static str {
    match missed.threshold {
        Some(t) if t < 0 => "broadcasts are switched off (threshold -1)",
        Some(t) if missed.small > t => "the side is above the threshold in force",
        _ if cx.aqe(query.sql) == Some(false) => {
            "the planner's estimate was too large or missing, and adaptive execution, which sees the true size, is off"
        }
        _ => "the planner's estimate was too large or missing, or a MERGE or SHUFFLE_HASH hint asks for the shuffle",
    }
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize, join: &Join, missed: &Missed) -> Draft {
    let (small, large) = (Bytes(missed.small as u64), Bytes(missed.large as u64));
    let name = query
        .scans_below(missed.small_input)
        .first()
        .map_or_else(|| "one side".to_owned(), |(_, s)| queries::short_source(s));
    let because = reason(cx, query, missed);
    let shuffled = query.metric(cx, missed.exchange, "shuffle bytes written").filter(|b| *b > 0);
    let moved = shuffled.map_or(large, |b| Bytes(b.unsigned_abs()));
    let title = format!(
        "the join on {} shuffles {moved} although {name} has only {small}: {because}",
        join.left_keys.join(", ")
    );
    let draft = Draft::new("JOIN_SHOULD_BROADCAST", title)
        .estimate(estimate(cx, query, at, missed.exchange))
        .at_least(Severity::Low)
        .evidence("small_side_bytes", missed.small, "bytes")
        .seen_at(query.location())
        .evidence("small_side_limit_bytes", missed.limit, "bytes")
        .evidence("large_side_bytes", missed.large, "bytes")
        .evidence("large_side_shuffled_bytes", shuffled.unwrap_or(missed.large), "bytes")
        .evidence("threshold_bytes", missed.threshold.unwrap_or(10 * MIB), "bytes")
        .evidence("join_type", join.kind.clone(), "")
        .evidence("reason", because, "")
        .not(
            "a side that may not be broadcast",
            format!(
                "{} join may build its {} side",
                words::a_join_kind(&join.kind),
                if missed.side == Side::Left { "left" } else { "right" }
            ),
        )
        .not("a join that adaptive execution already turned", "the final plan still shuffles both sides")
        .not("no room for it", format!("{COPIES} × {small} fit into a fifth of the smaller heap"));
    let draft = query.place_node(cx, at, draft);
    with_remedies(query, draft, missed, &name)
}

fn with_remedies(query: &Query<'_>, draft: Draft, missed: &Missed, name: &str) -> Draft {
    let table = query
        .scans_below(missed.small_input)
        .first()
        .map(|(_, s)| queries::sql_source(s))
        .unwrap_or_else(|| name.to_owned());
    let wanted = (missed.small.max(10 * MIB) as u64).next_power_of_two() >> 20;
    let draft = draft
        .remedy(RemedyKind::Code, format!("Broadcast {name}"))
        .snippet(format!("large.join(broadcast({}), …)\n-- or: SELECT /*+ BROADCAST({name}) */ …", "small"))
        .computed(format!(
            "{} measured, at most {} are small beside {}",
            Bytes(missed.small as u64),
            Bytes(missed.limit as u64),
            Bytes(missed.large as u64)
        ));
    let draft = match missed.threshold {
        Some(t) if t < 0 || t < missed.small => draft
            .remedy(RemedyKind::Conf, "Or let Spark choose it")
            .snippet(format!("spark.sql.autoBroadcastJoinThreshold {wanted}MB"))
            .computed(format!(
                "{} rounded up to a power of two MiB, at least the default of 10 MiB",
                Bytes(missed.small as u64)
            )),
        _ => draft
            .remedy(RemedyKind::Sql, "Or give the optimizer true sizes")
            .snippet(format!("ANALYZE TABLE {table} COMPUTE STATISTICS")),
    };
    draft
        .useless("more shuffle partitions", "the same bytes still cross the network")
        .confirm("BroadcastHashJoin in the plan and no exchange on the large side")
}

/// At least the large side is not written, fetched and sorted; at most the whole stage of the
/// join goes, but for its CPU time, as its work moves into the scan.
fn estimate(cx: &Context<'_>, query: &Query<'_>, join: usize, exchange: usize) -> Option<model::Estimate> {
    let run = cx.run.as_ref()?;
    let writer = query.stage_of(cx, exchange);
    let reader = query.stage_of(cx, join).filter(|r| writer.is_none_or(|w| w.position != r.position));
    let sort = query.plan.inputs(join).iter().filter_map(|&s| query.metric(cx, s, "sort time")).sum::<i64>();
    let mut least = Change::default();
    if let Some(facts) = writer {
        least
            .stages
            .push((facts.position, facts.shortened(|row| facts.stage.tasks.value(Metric::ShuffleWriteMs, row))));
    }
    let mut most = least.clone();
    if let Some(facts) = reader {
        let tasks = &facts.stage.tasks;
        let each = sort / (facts.n.max(1) as i64);
        least.stages.push((facts.position, facts.shortened(|row| tasks.value(Metric::FetchWaitMs, row) + each)));
        let idle = |row| tasks.value(Metric::DurationMs, row) - tasks.value(Metric::CpuMs, row);
        most.stages.push((facts.position, facts.shortened(|row| idle(row).max(0))));
    }
    let method = "at least the time of writing, waiting for and sorting the large side; at most all of the join's stage but its CPU time, as its work moves into the scan";
    let mut estimate = run.estimate(&least, method);
    estimate.saved_ms_low = estimate.saved_ms;
    estimate.saved_ms_high = run.estimate(&most, method).saved_ms.max(estimate.saved_ms);
    Some(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_grows_with_the_other_side() {
        for (large, threshold, databricks, wanted) in [
            (GIB, None, false, 10 * MIB),
            (GIB, None, true, 30 * MIB),
            (GIB, Some(-1), false, 10 * MIB),
            (GIB, Some(50 * MIB), false, 50 * MIB),
            (20 * GIB, None, false, 100 * MIB),
            (400 * GIB, None, false, GIB),
            (2_000 * GIB, None, false, 5 * GIB),
        ] {
            assert_eq!(limit(large, threshold, databricks), wanted, "{large}");
        }
    }

    #[test]
    fn only_the_sides_that_spark_may_build() {
        let join = |kind: &str| Join { kind: kind.to_owned(), ..Join::default() };
        for (kind, left, right) in [
            ("Inner", true, true),
            ("LeftOuter", false, true),
            ("RightOuter", true, false),
            ("LeftAnti", false, true),
            ("FullOuter", false, false),
            ("ExistenceJoin(exists#1)", false, true),
        ] {
            assert_eq!(
                (may_build(&join(kind), Side::Left), may_build(&join(kind), Side::Right)),
                (left, right),
                "{kind}"
            );
        }
    }
}
