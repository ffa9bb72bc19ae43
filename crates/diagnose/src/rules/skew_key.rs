//! SKEW_KEY: one or few tasks read far more of a shuffle than their peers and run far longer
//! (section 4.1 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::uneven::{beside_peers, peers_words, top_share};
use crate::work::{JoinWork, Operation, Work};
use crate::{sizing, words};
use model::{
    Bytes, Confidence, Count, ExchangeOrigin, Factor, Metric, Millis, Partitioning, RemedyKind, Severity, Side,
};

/// Size that adaptive execution aims at by default, bytes.
const PIECE: i64 = 64 << 20;
/// Largest side that is proposed for a broadcast, bytes of its shuffle.
const MOST_BROADCAST: i64 = 100 << 20;

/// Looks at every stage that reads a shuffle.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let mut looked_at = 0;
    let before = out.drafts.len();
    for facts in cx.stages.iter().filter(|s| s.q(Metric::ShuffleReadBytes).max > 0) {
        looked_at += 1;
        if let Some(skew) = Skew::of(cx, facts) {
            // What NULL keys cost is said there, once.
            let nulls = out.any_at(&["SKEW_NULL_KEY"], facts.stage.id, facts.stage.attempt);
            out.push(draft(cx, facts, &skew, nulls));
        }
    }
    if looked_at > 0 && out.drafts.len() == before {
        let stages = words::count(looked_at, "stage");
        out.fine("key skew", format!("no task of {stages} that read a shuffle is slow because it read more"));
    }
}

/// A stage whose slow task is slow because it reads more.
#[derive(Clone, Copy, Debug)]
pub struct Skew {
    /// What is uneven: bytes, or records where bytes are even.
    pub metric: Metric,
    /// Row of the heavy task; `None` for a paste.
    pub row: Option<usize>,
    /// Its duration, ms.
    pub duration_ms: i64,
    /// Largest value of `metric`.
    pub max: i64,
    /// What the other tasks have, and how that is measured.
    pub peers: i64,
    /// `the 75th percentile`, or `the median` of few tasks.
    pub peers_are: &'static str,
    /// Its mean.
    pub mean: i64,
    /// Its median.
    pub median: i64,
    /// Ten times the median or more.
    pub severe: bool,
}

impl Skew {
    /// The skew of a stage, if time and data both say so and the excess is above the noise.
    #[must_use]
    pub fn of(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Self> {
        let c = cx.config;
        let uneven = facts.uneven();
        let (d, read, records) = (uneven.duration, uneven.read, uneven.records);
        let bytes_skewed = read.max >= c.skew_min_bytes && read.max_over_peers() >= c.skew_ratio;
        let records_skewed = records.max >= c.skew_min_records && records.max_over_peers() >= c.skew_ratio;
        let (metric, q, row) = match (bytes_skewed, records_skewed) {
            (true, _) => (Metric::ShuffleReadBytes, read, uneven.largest),
            (false, true) => (Metric::ShuffleRecordsRead, records, uneven.fullest),
            (false, false) => return None,
        };
        let duration_ms = row.map_or(d.max, |row| facts.stage.tasks.value(Metric::DurationMs, row));
        let slow = duration_ms as f64 >= c.skew_ratio * d.peers() as f64;
        let tiny = d.median < 50 && facts.wall_ms < 5_000;
        if facts.n < 4 || !slow || tiny || !spread_by_key(facts.work(cx)) {
            return None;
        }
        if !cx.above_noise(facts, duration_ms - d.peers()) || explodes(cx, facts) {
            return None;
        }
        let severe = duration_ms as f64 > c.skew_severe_ratio * d.median as f64
            || q.max as f64 > c.skew_severe_ratio * q.median as f64;
        Some(Self {
            metric,
            row,
            duration_ms,
            max: q.max,
            peers: q.peers(),
            peers_are: peers_words(&q),
            mean: q.sum / facts.n.max(1) as i64,
            median: q.median,
            severe,
        })
    }

    /// What a task has where all have the same, or what the others have if that is more: smaller
    /// pieces give nothing.
    fn usual(&self) -> i64 {
        self.peers.max(self.mean).max(1)
    }

    fn usual_are(&self) -> &'static str {
        if self.mean > self.peers { "the mean" } else { self.peers_are }
    }

    /// Pieces that make the heavy task as large as its neighbours.
    #[must_use]
    pub fn pieces(&self) -> i64 {
        sizing::ceil_div(self.max, self.usual()).clamp(2, 512)
    }

    /// What the heavy task is cut down to: from twice 64 MiB on a join's task to the size that
    /// adaptive execution aims at, else to its neighbours.
    #[must_use]
    pub fn target(&self, work: &Work) -> i64 {
        match self.metric {
            Metric::ShuffleReadBytes if self.max >= 2 * PIECE && work.operation == Operation::Join => {
                self.median.max(PIECE)
            }
            _ => self.usual(),
        }
    }

    /// Bytes or rows, as they are shown.
    #[must_use]
    pub fn shown(&self, value: i64) -> String {
        match self.metric {
            Metric::ShuffleReadBytes => Bytes(value.unsigned_abs()).to_string(),
            _ => format!("{} rows", Count(value.unsigned_abs())),
        }
    }
}

/// Round-robin and single-partition shuffles know no keys; rebalancing is about files.
fn spread_by_key(work: &Work) -> bool {
    let by_key = !matches!(work.partitioning(), Some(Partitioning::RoundRobin | Partitioning::Single));
    by_key && work.exchanges.first().is_none_or(|e| e.origin != ExchangeOrigin::Rebalance)
}

/// Rows that multiply explain more than bytes that differ by less than three times.
fn explodes(cx: &Context<'_>, facts: &StageFacts<'_>) -> bool {
    facts.uneven().read.max_over_peers() < 3.0 && super::skew_explode::multiplies(cx, facts).is_some()
}

fn draft(cx: &Context<'_>, facts: &StageFacts<'_>, skew: &Skew, nulls: bool) -> Draft {
    let work = facts.work(cx);
    let uneven = facts.uneven();
    let excess = skew.duration_ms - uneven.duration.median;
    let wall = cx.base_wall_ms();
    let reaches_low = excess >= cx.config.low_ms || excess as f64 >= cx.config.low_share * wall as f64;
    let mut draft = Draft::new("SKEW_KEY", title(facts, skew, work))
        .at_stage(facts)
        .at_least(if reaches_low { Severity::Low } else { Severity::Info })
        .explained_by(&["SKEW_NULL_KEY"]);
    if !nulls {
        let pieces = sizing::ceil_div(skew.max, skew.target(work)).max(2);
        draft = draft.estimate(estimate(cx, facts, skew, work)).fix(format!("spreading it over {pieces} tasks"));
    }
    if let Some(label) = &work.label {
        draft = draft.at_node(label.clone());
    }
    draft.finding.scope.task = skew.row.map(|row| facts.stage.tasks.id(row));
    draft = evidence(draft, facts, skew);
    draft = exclusions(draft, facts, skew);
    draft = certainty(draft, facts);
    remedies(cx, draft, facts, skew)
}

/// `One task of 16 reads 71.2 MiB of 117 MiB and runs 19 s while the others take 2.9 s`, and why.
fn title(facts: &StageFacts<'_>, skew: &Skew, work: &Work) -> String {
    let q = facts.q(skew.metric);
    let what = format!(
        "One task of {} reads {} of {} and runs {} while the others take {}",
        facts.n,
        skew.shown(q.max),
        skew.shown(q.sum),
        Millis(skew.duration_ms),
        Millis(facts.uneven().duration.median),
    );
    // Of partitions that adaptive execution merged, one as they were before is the measure.
    let before = work.exchanges.first().and_then(|e| e.partitions).filter(|_| work.merged);
    let above_merged = before.is_some_and(|n| skew.max as f64 * n as f64 >= 5.0 * q.sum as f64);
    let hot = above_merged || skew.max >= 5 * skew.peers.max(1);
    format!("{what}: {}", cause(hot, work, q.max as f64 / q.sum.max(1) as f64))
}

/// What the heavy task's data is: a partition far above the others holds one hot value, one that
/// is a few times larger may hold several that met by chance.
fn cause(hot: bool, work: &Work, share: f64) -> String {
    let keys = work.key_words().unwrap_or_else(|| "the key".to_owned());
    let (who, verb) = match (hot, work.partitioning()) {
        (_, Some(Partitioning::Range)) => (format!("one range of {keys}"), "holds"),
        (true, _) => (format!("one value of {keys}"), "holds"),
        (false, _) => (format!("a few values of {keys}"), "hold"),
    };
    let how_much = if share >= 0.5 { "most of the data" } else { "far more than the others" };
    let split = match &work.join {
        Some(join) if join.skew => ", even after adaptive execution split it",
        _ => "",
    };
    format!("{who} {verb} {how_much}{split}")
}

fn evidence(draft: Draft, facts: &StageFacts<'_>, skew: &Skew) -> Draft {
    let uneven = facts.uneven();
    let draft = draft.figures(
        facts,
        &[
            Metric::DurationMs,
            Metric::RunMs,
            Metric::GcMs,
            Metric::ShuffleReadBytes,
            Metric::ShuffleRecordsRead,
            Metric::PeakExecutionBytes,
        ],
    );
    let draft = beside_peers(draft, "max", skew.duration_ms, &uneven.duration, 1.5);
    let mut draft = beside_peers(draft, "read_max", skew.max, &facts.q(skew.metric), 1.5)
        .evidence("stage_wall_ms", facts.wall_ms, "ms")
        .evidence("stage_floor_ms", skew.duration_ms, "ms")
        .evidence("stage_floor_share", skew.duration_ms as f64 / facts.wall_ms.max(1) as f64, "share")
        .evidence("pieces", skew.pieces(), "tasks");
    for top in [1, 5] {
        if let Some(share) = top_share(facts, skew.metric, top) {
            draft = draft.evidence(&format!("share_of_top_{top}"), share, "share");
        }
    }
    if skew.severe {
        draft = draft.evidence("level", "severe: more than ten times the median", "");
    }
    draft
}

fn exclusions(draft: Draft, facts: &StageFacts<'_>, skew: &Skew) -> Draft {
    let ratio = Factor(skew.max as f64 / skew.peers.max(1) as f64);
    let draft = draft.not("slow executor", format!("the slow task reads {ratio} {}", skew.peers_are));
    let mut draft = match others_on_executor(facts, skew) {
        Some(median) => draft.not(
            "slow executor",
            format!(
                "other tasks on the same executor take {} (all: {})",
                Millis(median),
                Millis(facts.uneven().duration.median)
            ),
        ),
        None => draft,
    };
    if let Some(row) = skew.row {
        let attempt = facts.stage.tasks.attempt(row);
        draft = match attempt {
            0 => draft.not("a task that was run again", "the slow task is the first attempt"),
            n => draft.not(
                "a task that was run again",
                format!("it is attempt {n}, but what a partition holds does not change with attempts"),
            ),
        };
        if facts.cold.binary_search(&row).is_ok() {
            draft = draft.not("cold JVM", "it was the first task of its slot, but its bytes confirm the skew");
        } else if facts.uneven().slowest_was_cold {
            draft = draft.not(
                "cold JVM",
                format!(
                    "the slowest task of all ({}) was a first task of a slot and is left out",
                    Millis(facts.uneven().duration.max)
                ),
            );
        }
    }
    if facts.q(Metric::ShuffleReadBytes).min * 4 < facts.q(Metric::ShuffleReadBytes).median {
        draft = draft.not("small partitions", "that some tasks read little is no evidence and was not used");
    }
    draft
}

/// Median duration, ms, of the other tasks on the heavy task's executor.
fn others_on_executor(facts: &StageFacts<'_>, skew: &Skew) -> Option<i64> {
    let Some(row) = skew.row else { return facts.stage.pasted.as_ref()?.peers_on_executor_ms };
    let tasks = &facts.stage.tasks;
    let at = tasks.executor(row);
    let mut others: Vec<i64> = facts
        .warm_rows()
        .filter(|&r| r != row && tasks.executor(r) == at)
        .map(|r| tasks.value(Metric::DurationMs, r))
        .collect();
    others.sort_unstable();
    model::quantile(&others, 0.5)
}

fn certainty(draft: Draft, facts: &StageFacts<'_>) -> Draft {
    let Some(pasted) = facts.stage.pasted.as_ref().filter(|_| !facts.has_tasks()) else { return draft };
    match pasted.peers_on_executor_ms {
        Some(_) => draft
            .sure(Confidence::Medium, "from quantiles alone: that the slowest task is also the largest is inferred"),
        None => draft.sure(Confidence::Low, "from quantiles alone: neither the task nor its executor can be looked at"),
    }
}

/// Splits what is above the target; tasks keep their share of time by share of data.
fn estimate(cx: &Context<'_>, facts: &StageFacts<'_>, skew: &Skew, work: &Work) -> Option<model::Estimate> {
    let target = skew.target(work);
    let extra = if work.operation == Operation::Aggregate { 1.1 } else { 1.0 };
    let split = |target: i64| split_tasks(cx, facts, skew, target.max(1), extra);
    let method = format!("the heavy tasks in pieces of {}, on the recorded slots", skew.shown(target));
    let mut estimate = cx.estimate(facts, split(target), &method)?;
    let best = cx.estimate(facts, split(skew.peers), &method)?;
    estimate.saved_ms_high = estimate.saved_ms_high.max(best.saved_ms);
    if estimate.saved_ms == 0 {
        estimate.method = format!(
            "{method}: no effect on the run time, the other slots had work meanwhile; with more slots the stage cannot be shorter than its slowest task"
        );
    }
    Some(estimate)
}

fn split_tasks(cx: &Context<'_>, facts: &StageFacts<'_>, skew: &Skew, target: i64, extra: f64) -> Vec<i64> {
    if !facts.has_tasks() {
        let mut durations = cx.durations(facts);
        let heavy = durations.pop().unwrap_or_default();
        durations.extend(pieces(heavy, sizing::ceil_div(skew.max, target), extra));
        return durations;
    }
    let rows = facts.launch_order();
    let durations = facts.redone(cx, |_, d| d);
    rows.into_iter()
        .zip(durations)
        .flat_map(|(row, duration)| {
            let amount = facts.stage.tasks.value(skew.metric, row);
            // A task a little over the target is left whole: two halves of it gain nothing.
            let parts = if amount as f64 >= 1.5 * target as f64 { sizing::ceil_div(amount, target) } else { 1 };
            pieces(duration, parts, if parts > 1 { extra } else { 1.0 })
        })
        .collect()
}

fn pieces(duration: i64, parts: i64, extra: f64) -> impl Iterator<Item = i64> {
    let parts = parts.clamp(1, 10_000);
    let each = (duration as f64 * extra / parts as f64).ceil() as i64;
    (0..parts).map(move |_| each.max(1))
}

fn remedies(cx: &Context<'_>, draft: Draft, facts: &StageFacts<'_>, skew: &Skew) -> Draft {
    let work = facts.work(cx);
    let draft = find_hot_keys(draft, work, skew);
    let draft = match work.operation {
        Operation::Join => join_remedies(cx, draft, facts, skew, work),
        Operation::Aggregate => aggregate_remedies(draft, skew, work),
        Operation::Window => window_remedies(draft, skew, work),
        _ => unknown_remedies(draft, skew, work),
    };
    draft
        .useless(
            "more executors",
            format!("the one task runs {} on one slot however many there are", Millis(skew.duration_ms)),
        )
        .useless("more shuffle partitions", "all rows of one key stay in one task whatever their number")
        .confirm(format!(
            "shuffle read of the largest task over {}: now {}, below 1.5 × when cured",
            skew.peers_are,
            Factor(skew.max as f64 / skew.peers.max(1) as f64)
        ))
}

fn find_hot_keys(draft: Draft, work: &Work, skew: &Skew) -> Draft {
    let Some(keys) = work.key_words() else {
        return draft.remedy(RemedyKind::Sql, "Find the hot key first; the log does not tell the key of this shuffle");
    };
    let side = work.join.as_ref().and_then(|j| Some(j.side(j.side_of(skew.max)?)));
    let table = side.and_then(|s| s.table.clone()).unwrap_or_else(|| "<the larger input>".to_owned());
    let null = work.keys.iter().map(|k| format!("{k} IS NULL")).collect::<Vec<_>>().join(" OR ");
    let (what, column) = match null_keys_arrive(work) {
        true => ("a real key, NULL, or a default such as 0, -1 or 'unknown'", format!(", bool_or({null}) AS is_null")),
        false => ("a real key, or a default such as 0, -1 or 'unknown'", String::new()),
    };
    draft.remedy(RemedyKind::Sql, format!("See which values are hot: {what}")).snippet(format!(
        "SELECT {keys}, count(*) AS rows{column}\nFROM {table} GROUP BY {keys} ORDER BY rows DESC LIMIT 10"
    ))
}

/// Whether rows with a NULL key can be in this shuffle: Spark drops them before inner and semi
/// joins, and a filter below may do so.
fn null_keys_arrive(work: &Work) -> bool {
    let Some(join) = &work.join else { return true };
    join.kind.is_empty() || join.keeps_nulls().iter().any(|side| !join.side(*side).rejects_null)
}

fn join_remedies(cx: &Context<'_>, draft: Draft, facts: &StageFacts<'_>, skew: &Skew, work: &Work) -> Draft {
    let Some(join) = &work.join else { return unknown_remedies(draft, skew, work) };
    let draft = broadcast_remedy(cx, draft, facts, skew, join);
    let draft = match join.skew {
        true => split_already(cx, draft, facts, skew),
        false => super::skew_aqe_missed::split(cx, draft, facts, skew),
    };
    salted_join(draft, skew, join)
}

/// Adaptive execution cut the partition as far as it can: along the outputs of the map tasks.
fn split_already(cx: &Context<'_>, draft: Draft, facts: &StageFacts<'_>, skew: &Skew) -> Draft {
    let maps = map_tasks(cx, facts);
    let outputs = maps.map_or_else(|| "the map tasks".to_owned(), |n| words::count(n as u64, "map task"));
    let wanted = sizing::ceil_div(skew.max, skew.peers.max(1)) * maps.unwrap_or(1) as i64;
    let input = writer(cx, facts).map_or(0, |w| w.sum(Metric::InputBytes));
    let draft = draft.remedy(
        RemedyKind::Conf,
        format!("Adaptive execution split the partition already, but only along the outputs of {outputs}: read the input in more tasks so that there are more outputs to cut along"),
    );
    match input > 0 {
        true => draft
            .snippet(format!(
                "SET spark.sql.files.maxPartitionBytes = {}MB",
                sizing::power_of_two_mib(input / wanted.max(1))
            ))
            .computed(format!(
                "{} of input / {wanted} tasks, for pieces of {}",
                Bytes(input.unsigned_abs()),
                skew.shown(skew.peers)
            )),
        false => draft.computed(format!("{} over {} a piece", skew.shown(skew.max), skew.shown(skew.peers))),
    }
}

/// The stage that wrote the largest shuffle read here: by the plan, as the parents of a stage that
/// adaptive execution made are skipped copies; else by its parents.
fn writer<'c, 'a>(cx: &'c Context<'a>, facts: &StageFacts<'_>) -> Option<&'c StageFacts<'a>> {
    let plan = |s: &StageFacts<'_>| s.plan_of.map(|sql| sql.id);
    let wrote = |s: &&StageFacts<'_>| {
        plan(s).is_some() && plan(s) == plan(facts) && s.writes.is_some_and(|exchange| facts.reads.contains(&exchange))
    };
    let most = |s: &&StageFacts<'_>| s.sum(Metric::ShuffleBytesWritten);
    let parent = |s: &&StageFacts<'_>| facts.stage.parents.contains(&s.stage.id);
    let by_plan = cx.stages.iter().filter(wrote).max_by_key(most);
    by_plan.or_else(|| cx.stages.iter().filter(parent).max_by_key(most))
}

/// Tasks of the stage that wrote the largest shuffle read here: a partition can be cut into no
/// more pieces than they are.
pub(super) fn map_tasks(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<usize> {
    writer(cx, facts).map(|s| s.n)
}

fn broadcast_remedy(cx: &Context<'_>, draft: Draft, facts: &StageFacts<'_>, skew: &Skew, join: &JoinWork) -> Draft {
    let Some(hot) = join.side_of(skew.max) else { return draft };
    let (small, side) = match hot {
        Side::Left => (&join.right, "right"),
        Side::Right => (&join.left, "left"),
    };
    let may_build = match join.kind.as_str() {
        "Inner" | "Cross" => true,
        "LeftOuter" | "LeftAnti" | "LeftSemi" => hot == Side::Left,
        "RightOuter" => hot == Side::Right,
        _ => false,
    };
    // Bytes of a shuffle are compressed; pasted text tells no heaps to compare with.
    let room = if facts.has_tasks() { super::join_should_broadcast::room(cx) } else { MOST_BROADCAST };
    let most = room.min(MOST_BROADCAST);
    let Some(bytes) = small.bytes.filter(|&b| may_build && b <= most) else { return draft };
    let name = small.name.as_deref();
    let what = name.map_or_else(|| format!("the {side} side"), |n| format!("{n}, the {side} side"));
    draft
        .remedy(RemedyKind::Sql, format!("Broadcast {what}, which is small: no shuffle, no skew"))
        .snippet(format!("/*+ BROADCAST({}) */", name.unwrap_or("<the small side>")))
        .computed(format!("the {side} side wrote {} to its shuffle", Bytes(bytes.unsigned_abs())))
}

/// Two inputs with a random part of the key: the heavy side gets one value a row, the other side
/// every value. Where that would change the result nothing is written.
fn salted_join(draft: Draft, skew: &Skew, join: &JoinWork) -> Draft {
    let hot = join.side_of(skew.max).unwrap_or(Side::Left);
    if !join.may_split(hot) {
        return draft.useless(
            "salting the join as it is",
            format!(
                "repeating the other side of {} join would repeat its unmatched rows",
                words::a_join_kind(&join.kind)
            ),
        );
    }
    let (heavy_keys, light_keys) = match hot {
        Side::Left => (&join.left_keys, &join.right_keys),
        Side::Right => (&join.right_keys, &join.left_keys),
    };
    if heavy_keys.is_empty() || heavy_keys.len() != light_keys.len() {
        return draft.remedy(RemedyKind::Sql, "Salt the join key: the keys of this join are not in what was read");
    }
    let on: Vec<String> = heavy_keys.iter().zip(light_keys).map(|(a, b)| format!("h.{a} = l.{b}")).collect();
    let (heavy, light) = (table(join.side(hot), "heavy side"), table(join.side(other(hot)), "other side"));
    let (k, join_words) = (skew.pieces(), join_words(&join.kind, hot));
    draft
        .remedy(RemedyKind::Sql, format!("Salt the key: {k} tasks share what one does now"))
        .snippet(format!(
            "SELECT … FROM (SELECT *, CAST(floor(rand() * {k}) AS INT) AS salt FROM {heavy}) h\n{join_words} (SELECT *, explode(sequence(0, {})) AS salt FROM {light}) l\n  ON {} AND h.salt = l.salt",
            k - 1,
            on.join(" AND ")
        ))
        .computed(format!("{} / {} (largest task over {})", skew.shown(skew.max), skew.shown(skew.usual()), skew.usual_are()))
}

/// The join as written with the heavy side first.
fn join_words(kind: &str, hot: Side) -> &'static str {
    match (kind, hot) {
        ("LeftOuter", _) | ("RightOuter", Side::Right) => "LEFT JOIN",
        ("LeftAnti", _) => "LEFT ANTI JOIN",
        ("LeftSemi", _) => "LEFT SEMI JOIN",
        _ => "JOIN",
    }
}

fn other(side: Side) -> Side {
    if side == Side::Left { Side::Right } else { Side::Left }
}

fn table(side: &crate::work::SideFacts, what: &str) -> String {
    side.table.clone().unwrap_or_else(|| format!("<{what}>"))
}

fn aggregate_remedies(draft: Draft, skew: &Skew, work: &Work) -> Draft {
    let k = skew.pieces();
    let draft = draft
        .remedy(RemedyKind::Sql, format!("Aggregate in two steps, first by key and a salt of {k} values, then by key"))
        .snippet(two_steps(work, k))
        .computed(format!(
            "{} / {} (largest task over {})",
            skew.shown(skew.max),
            skew.shown(skew.usual()),
            skew.usual_are()
        ));
    draft.useless("adaptive skew handling", "it splits joins only; a groupBy must see a key in one task")
}

/// The two-step aggregate with the real keys and functions; functions that cannot be put
/// together from parts are left to the reader, by name.
fn two_steps(work: &Work, k: i64) -> String {
    let keys = work.key_words().unwrap_or_else(|| "<key>".to_owned());
    let functions = work.aggregate.as_ref().map(|a| a.functions.as_slice()).unwrap_or_default();
    let mut parts: Vec<(String, String)> = Vec::new();
    for (i, function) in functions.iter().enumerate() {
        parts.extend(partial(function, i));
    }
    if parts.is_empty() {
        parts.push(("sum(x) AS p0".to_owned(), "sum(p0)".to_owned()));
    }
    let (first, second): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    format!(
        "SELECT {keys}, {}\nFROM (SELECT {keys}, salt, {}\n      FROM (SELECT *, CAST(floor(rand() * {k}) AS INT) AS salt FROM <input>)\n      GROUP BY {keys}, salt)\nGROUP BY {keys}",
        second.join(", "),
        first.join(", ")
    )
}

/// First and second step of an aggregate function.
fn partial(function: &str, i: usize) -> Option<(String, String)> {
    let text =
        function.trim().trim_start_matches("partial_").trim_start_matches("merge_").trim_start_matches("finalmerge_");
    let (name, rest) = text.split_once('(')?;
    let inside = rest.rsplit_once(')').map_or(rest, |(inside, _)| inside);
    let argument = strip_ids(inside.split(", 0, 0").next().unwrap_or(inside));
    let p = format!("p{i}");
    Some(match name {
        _ if argument.starts_with("distinct ") => (
            format!("collect_set({}) AS {p}", argument.trim_start_matches("distinct ")),
            format!("size(array_distinct(flatten(collect_list({p}))))"),
        ),
        "count" => (format!("count({argument}) AS {p}"), format!("sum({p})")),
        "sum" | "min" | "max" | "first" | "last" | "bool_or" | "bool_and" => {
            (format!("{name}({argument}) AS {p}"), format!("{name}({p})"))
        }
        "avg" => (format!("sum({argument}) AS {p}, count({argument}) AS {p}n"), format!("sum({p}) / sum({p}n)")),
        "collect_list" => (format!("collect_list({argument}) AS {p}"), format!("flatten(collect_list({p}))")),
        "collect_set" => {
            (format!("collect_set({argument}) AS {p}"), format!("array_distinct(flatten(collect_list({p})))"))
        }
        _ => (
            format!("{name}({argument}) AS {p} /* check that it can be put together from parts */"),
            format!("{name}({p})"),
        ),
    })
}

/// `amount#12L` is `amount`.
fn strip_ids(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '#' && rest.peek().is_some_and(char::is_ascii_digit) {
            while rest.peek().is_some_and(|c| c.is_ascii_digit() || *c == 'L') {
                rest.next();
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn window_remedies(draft: Draft, skew: &Skew, work: &Work) -> Draft {
    let keys = work.key_words().unwrap_or_else(|| "<key>".to_owned());
    let k = skew.pieces();
    draft
        .remedy(
            RemedyKind::Sql,
            format!("If only the first rows of each {keys} are kept, rank inside {k} salted parts first, keep the first n of each, then rank the rest"),
        )
        .snippet(format!(
            "SELECT *, row_number() OVER (PARTITION BY {keys} ORDER BY …) AS rank FROM (\n  SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY {keys}, pmod(hash(*), {k}) ORDER BY …) AS part_rank FROM <input>)\n  WHERE part_rank <= n)"
        ))
        .computed(format!("{} / {} (largest task over {})", skew.shown(skew.max), skew.shown(skew.usual()), skew.usual_are()))
        .useless("adaptive skew handling", "it splits joins only; a window must see a key in one task")
}

fn unknown_remedies(draft: Draft, skew: &Skew, work: &Work) -> Draft {
    let keys = work.key_words().unwrap_or_else(|| "the key".to_owned());
    let k = skew.pieces();
    draft
        .remedy(
            RemedyKind::Code,
            format!("Add a random part of {k} values to {keys}, do the work by both, then put the parts together by {keys} alone; which operation it is, is not in what was read"),
        )
        .computed(format!("{} / {} (largest task over {})", skew.shown(skew.max), skew.shown(skew.usual()), skew.usual_are()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_step_aggregates_keep_their_meaning() {
        for (function, first, second) in [
            ("sum(amount#12L)", "sum(amount) AS p0", "sum(p0)"),
            ("count(1)", "count(1) AS p0", "sum(p0)"),
            ("avg(x#1)", "sum(x) AS p0, count(x) AS p0n", "sum(p0) / sum(p0n)"),
            ("collect_list(payload#3, 0, 0)", "collect_list(payload) AS p0", "flatten(collect_list(p0))"),
            ("count(distinct u#9)", "collect_set(u) AS p0", "size(array_distinct(flatten(collect_list(p0))))"),
        ] {
            assert_eq!(partial(function, 0), Some((first.to_owned(), second.to_owned())), "{function}");
        }
    }
}
