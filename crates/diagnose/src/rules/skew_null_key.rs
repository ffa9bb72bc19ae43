//! SKEW_NULL_KEY: rows without a key all go to one task (section 4.1 of the rules).
//!
//! A log does not show values. NULL keys are named when somebody says how many there are, and
//! named as likely when they can be there at all: on the side of an outer or anti join that
//! keeps its unmatched rows, with nothing below that drops them. An inner join gets
//! `isnotnull(key)` on both sides from Spark itself, so NULLs never arrive there.

use super::skew_key::Skew;
use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::uneven::beside_peers;
use crate::words;
use crate::work::{JoinWork, Operation, Work};
use model::{Confidence, Factor, Metric, Millis, RemedyKind, Severity, Share, Side};

/// Looks at every stage with key skew.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for facts in &cx.stages {
        let Some(skew) = Skew::of(cx, facts) else { continue };
        if let Some(nulls) = Nulls::of(facts, facts.work(cx), &skew) {
            out.push(draft(cx, facts, &skew, &nulls));
        }
    }
}

/// Where NULL keys may come from, and how that is known.
struct Nulls {
    /// Share of NULL among the keys, where told.
    share: Option<f64>,
    /// The side of the join that has them; `None` for an aggregate.
    side: Option<Side>,
    /// Its keys.
    keys: Vec<String>,
    /// Whether the heavy task's bytes can only come from that side.
    side_is_proved: bool,
}

impl Nulls {
    fn of(facts: &StageFacts<'_>, work: &Work, skew: &Skew) -> Option<Self> {
        let share = facts.stage.pasted.as_ref().and_then(|p| p.null_share);
        match (&work.join, work.operation) {
            (Some(join), Operation::Join) => Self::of_join(join, share, skew),
            _ if share.is_some_and(|s| s > 0.05) => {
                Some(Self { share, side: None, keys: work.keys.clone(), side_is_proved: false })
            }
            // Whether a grouping key can be NULL is in no plan text; every groupBy would be named.
            _ => None,
        }
    }

    fn of_join(join: &JoinWork, share: Option<f64>, skew: &Skew) -> Option<Self> {
        if share.is_some_and(|s| s < 0.05) {
            return None;
        }
        let proved = join.side_of(skew.max).filter(|_| skew.metric == Metric::ShuffleReadBytes);
        let open = join
            .keeps_nulls()
            .iter()
            .copied()
            .find(|&side| !join.side(side).rejects_null && proved.is_none_or(|p| p == side));
        // A stated share counts for a join whose type was not given.
        let side = open.or_else(|| share.filter(|_| join.kind.is_empty()).map(|_| Side::Left))?;
        Some(Self { share, side: Some(side), keys: join.keys(side).to_vec(), side_is_proved: proved.is_some() })
    }
}

fn draft(cx: &Context<'_>, facts: &StageFacts<'_>, skew: &Skew, nulls: &Nulls) -> Draft {
    let work = facts.work(cx);
    let draft = Draft::new("SKEW_NULL_KEY", title(facts, skew, nulls))
        .at_stage(facts)
        .estimate(estimate(cx, facts, skew))
        .fix("joining the rows with a key and adding the others back");
    let draft = match &work.label {
        Some(label) => draft.at_node(label.clone()),
        None => draft,
    };
    let draft = certainty(evidence(draft, facts, skew, nulls), nulls, facts);
    let draft = draft.at_least(if nulls.share.is_some() { Severity::Medium } else { Severity::Low });
    let draft = remedies(exclusions(draft, skew, nulls, work), skew, nulls, work);
    // Rows without a key may be cut apart like any others, where the join allows that.
    super::skew_aqe_missed::split(cx, draft, facts, skew)
}

fn title(facts: &StageFacts<'_>, skew: &Skew, nulls: &Nulls) -> String {
    let q = facts.q(skew.metric);
    let keys = if nulls.keys.is_empty() { "the key".to_owned() } else { nulls.keys.join(", ") };
    let task = format!(
        "one task of {} reads {} of {} and runs {} while the others take {}",
        facts.n,
        skew.shown(q.max),
        skew.shown(q.sum),
        Millis(skew.duration_ms),
        Millis(facts.uneven().duration.median),
    );
    match nulls.share {
        Some(share) => format!("The {} of rows whose {keys} is NULL all go to one task: {task}", Share(share)),
        None => format!("Rows whose {keys} is NULL probably all go to one task: {task}"),
    }
}

fn evidence(draft: Draft, facts: &StageFacts<'_>, skew: &Skew, nulls: &Nulls) -> Draft {
    let uneven = facts.uneven();
    let draft = draft.figures(facts, &[Metric::DurationMs, Metric::ShuffleReadBytes, Metric::ShuffleRecordsRead]);
    let draft = beside_peers(draft, "max", skew.duration_ms, &uneven.duration, 1.5);
    let draft = beside_peers(draft, "read_max", skew.max, &facts.q(skew.metric), 1.5)
        .evidence("stage_wall_ms", facts.wall_ms, "ms")
        .evidence("stage_floor_ms", skew.duration_ms, "ms");
    match nulls.share {
        Some(share) => draft.evidence("null_share_of_key", share, "share"),
        None => draft,
    }
}

fn exclusions(draft: Draft, skew: &Skew, nulls: &Nulls, work: &Work) -> Draft {
    let Some(join) = &work.join else { return draft };
    let draft = match join.kind.as_str() {
        "" => draft,
        kind => draft.not(
            "an inner join, where Spark drops NULL keys itself",
            format!(
                "it is {} join, which keeps the rows of its {} side without a match",
                words::a_join_kind(kind),
                side_name(nulls.side)
            ),
        ),
    };
    match nulls.side_is_proved {
        true => draft.not(
            "a hot key of the other side",
            format!("the task reads {}, more than the whole other side", skew.shown(skew.max)),
        ),
        false => draft,
    }
}

fn certainty(draft: Draft, nulls: &Nulls, facts: &StageFacts<'_>) -> Draft {
    if nulls.share.is_some() {
        return match facts.has_tasks() {
            true => draft,
            false => draft.sure(
                Confidence::Medium,
                "from quantiles: that the slowest task is the one with the NULLs is inferred",
            ),
        };
    }
    let because = "the log cannot see NULLs: nothing drops them before the join, but the hot value may be another one";
    let confidence = if nulls.side_is_proved { Confidence::Medium } else { Confidence::Low };
    draft.sure(confidence, because)
}

/// Rows without a key need no join: the heavy task shrinks to its neighbours.
fn estimate(cx: &Context<'_>, facts: &StageFacts<'_>, skew: &Skew) -> Option<model::Estimate> {
    let normal = facts.uneven().duration.median.max(1);
    let durations = cx.durations(facts);
    let at = durations.iter().rposition(|&d| d == skew.duration_ms)?;
    let changed = durations.into_iter().enumerate().map(|(i, d)| if i == at { normal } else { d });
    cx.estimate(facts, changed.collect(), "the task with the NULL keys as long as the median task")
}

fn remedies(draft: Draft, skew: &Skew, nulls: &Nulls, work: &Work) -> Draft {
    let keys = if nulls.keys.is_empty() { vec!["key".to_owned()] } else { nulls.keys.clone() };
    let any_null = keys.iter().map(|k| format!("{k} IS NULL")).collect::<Vec<_>>().join(" OR ");
    let kind = work.join.as_ref().map_or("", |j| j.kind.as_str());
    let draft = match nulls.share {
        Some(_) => draft,
        None => {
            draft.remedy(RemedyKind::Sql, format!("Count them first: how many rows have {any_null}")).snippet(format!(
                "SELECT count(*) AS rows, count_if({any_null}) AS nulls FROM {}",
                input(nulls, work, "<the input>")
            ))
        }
    };
    let draft = match (nulls.side, kind) {
        (None, _) => draft
            .remedy(RemedyKind::Sql, "Aggregate the rows with a key as now, those without one separately (one row comes out), and put both together")
            .snippet(format!("SELECT … WHERE NOT ({any_null}) GROUP BY {}\nUNION ALL\nSELECT … WHERE {any_null}", keys.join(", "))),
        (Some(side), _) => draft
            .remedy(RemedyKind::Sql, "Split the NULL keys off, join the rest, and union them back: they can match nothing, but an outer join must keep them")
            .snippet(split_join(side, kind, &keys, &any_null, work, nulls)),
    };
    draft
        .useless(
            "more shuffle partitions",
            "every NULL hashes to the same value: they stay in one task whatever the number",
        )
        .useless("dropping the rows with a NULL key", "an outer join must return them: the result would lose rows")
        .useless("more executors", format!("the one task still runs {} on one slot", Millis(skew.duration_ms)))
        .confirm(format!(
            "shuffle read of the largest task over {}: now {}, below 1.5 × when cured",
            skew.peers_are,
            Factor(skew.max as f64 / skew.peers.max(1) as f64)
        ))
}

fn split_join(side: Side, kind: &str, keys: &[String], any_null: &str, work: &Work, nulls: &Nulls) -> String {
    let join = work.join.clone().unwrap_or_default();
    let other_keys = join.keys(if side == Side::Left { Side::Right } else { Side::Left });
    let on: Vec<String> =
        keys.iter().enumerate().map(|(i, k)| format!("a.{k} = b.{}", other_keys.get(i).unwrap_or(k))).collect();
    let named = join.side(if side == Side::Left { Side::Right } else { Side::Left }).table.clone();
    let (this, other) = (input(nulls, work, "<this side>"), named.unwrap_or_else(|| "<other side>".to_owned()));
    let words = match kind {
        "LeftAnti" => "LEFT ANTI JOIN",
        // The rows without a key are added below; those of the other side must be kept here.
        "FullOuter" => "FULL JOIN",
        _ => "LEFT JOIN",
    };
    let missing = if kind == "LeftAnti" { "a.*" } else { "a.*, NULL AS <columns of the other side>" };
    format!(
        "SELECT a.*, … FROM (SELECT * FROM {this} WHERE NOT ({any_null})) a\n{words} {other} b ON {}\nUNION ALL\nSELECT {missing} FROM {this} a WHERE {any_null}",
        on.join(" AND ")
    )
}

fn input(nulls: &Nulls, work: &Work, unknown: &str) -> String {
    let side = nulls.side.and_then(|s| Some(work.join.as_ref()?.side(s).table.clone()));
    side.flatten().unwrap_or_else(|| unknown.to_owned())
}

fn side_name(side: Option<Side>) -> &'static str {
    if side == Some(Side::Right) { "right" } else { "left" }
}
