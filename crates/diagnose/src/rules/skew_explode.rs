//! SKEW_EXPLODE: rows multiply in one task although it reads no more than the others
//! (section 4.1 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::uneven::beside_peers;
use crate::work::Operation;
use model::{Confidence, Count, Factor, Metric, Millis, RemedyKind};

/// Looks at every stage.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for facts in &cx.stages {
        if let Some(draft) = stage(cx, facts) {
            out.push(draft);
        }
    }
}

/// How rows multiply in a stage.
pub struct Multiplied {
    /// The operator, where the plan tells.
    pub operator: Option<String>,
    /// Rows in and out of it.
    pub rows: Option<(i64, i64)>,
    /// Rows written by the fullest task over the median one.
    pub written: Option<f64>,
    /// What was counted.
    pub metric: Metric,
}

/// Whether rows multiply: an operator gives ten times the rows it takes, or one task writes ten
/// times the rows of the median task.
#[must_use]
pub fn multiplies(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Multiplied> {
    let ratio = cx.config.explode_ratio;
    let growth = facts
        .work(cx)
        .growth
        .as_ref()
        .filter(|(_, rows_in, rows_out)| *rows_out as f64 >= ratio * (*rows_in).max(1) as f64);
    let written = [Metric::ShuffleRecordsWritten, Metric::OutputRecords].into_iter().find_map(|metric| {
        let q = facts.q(metric);
        let over = q.max as f64 / q.median.max(1) as f64;
        (q.max >= cx.config.skew_min_records && over >= ratio).then_some((metric, over))
    });
    if growth.is_none() && written.is_none() {
        return None;
    }
    Some(Multiplied {
        operator: growth.map(|g| g.0.clone()),
        rows: growth.map(|g| (g.1, g.2)),
        written: written.map(|w| w.1),
        metric: written.map_or(Metric::ShuffleRecordsWritten, |w| w.0),
    })
}

fn stage(cx: &Context<'_>, facts: &StageFacts<'_>) -> Option<Draft> {
    let uneven = facts.uneven();
    let (d, read) = (uneven.duration, uneven.read);
    let duration = uneven.slowest.map_or(d.max, |row| facts.stage.tasks.value(Metric::DurationMs, row));
    let slow = duration as f64 >= cx.config.skew_ratio * uneven.warm.peers() as f64;
    let tiny = d.median < 50 && facts.wall_ms < 5_000;
    // What a stage makes rows of is a shuffle, a source, or nothing that has a size.
    let bytes = if read.max > 0 { read } else { facts.q(Metric::InputBytes) };
    let normal_bytes = bytes.max_over_peers() < 3.0;
    if facts.n < 4 || !slow || tiny || !normal_bytes || !cx.above_noise(facts, duration - uneven.warm.peers()) {
        return None;
    }
    let how = multiplies(cx, facts)?;
    // A filter leaves more of one split of a source than of another: only an operator multiplies.
    if read.max == 0 && how.operator.is_none() {
        return None;
    }
    if super::straggler_node::slow_executor_of(cx, facts, uneven.slowest?).is_some() {
        return None;
    }
    // Rows that multiply evenly do not make one task slow.
    if !slowest_wrote_most(facts, uneven.slowest?, how.metric) && how.written.is_some() {
        return None;
    }
    Some(draft(cx, facts, duration, &how))
}

fn slowest_wrote_most(facts: &StageFacts<'_>, slowest: usize, metric: Metric) -> bool {
    let q = facts.q(metric);
    facts.stage.tasks.value(metric, slowest) * 2 >= q.max
}

fn draft(cx: &Context<'_>, facts: &StageFacts<'_>, duration: i64, how: &Multiplied) -> Draft {
    let work = facts.work(cx);
    let d = facts.uneven().duration;
    let what = match (&how.rows, &how.operator) {
        (Some((rows_in, rows_out)), Some(operator)) => {
            format!("{operator} makes {} rows of {}", Count(rows_out.unsigned_abs()), Count(rows_in.unsigned_abs()))
        }
        _ => format!("it writes {} the rows of the median task", Factor(how.written.unwrap_or_default())),
    };
    let title = format!(
        "One task of {} runs {} while the others take {}, although it reads no more: {what}",
        facts.n,
        Millis(duration),
        Millis(d.median)
    );
    let draft = Draft::new("SKEW_EXPLODE", title)
        .at_stage(facts)
        .estimate(estimate(cx, facts, duration))
        .figures(facts, &[Metric::DurationMs, Metric::ShuffleReadBytes, how.metric]);
    let read = facts.uneven().read;
    let mut draft = beside_peers(draft, "read_max", read.max, &read, 3.0);
    if let Some((rows_in, rows_out)) = how.rows {
        draft = draft
            .evidence("rows_in", rows_in, "rows")
            .evidence("rows_out", rows_out, "rows")
            .evidence("rows_out_over_in", rows_out as f64 / rows_in.max(1) as f64, "ratio")
            .over(cx.config.explode_ratio);
    }
    if let Some(written) = how.written {
        draft = draft.evidence("rows_written_max_over_median", written, "ratio").over(cx.config.explode_ratio);
    } else {
        draft = draft.sure(Confidence::Medium, "rows out are known for the stage, not for the one task");
    }
    if let Some(label) = &work.label {
        draft = draft.at_node(label.clone());
    }
    let draft = draft.not("slow executor", "its executor's other tasks are as fast as everybody's");
    remedies(draft, facts, work.operation, work.key_words())
}

fn estimate(cx: &Context<'_>, facts: &StageFacts<'_>, duration: i64) -> Option<model::Estimate> {
    let normal = facts.uneven().duration.peers();
    let changed = cx.durations(facts).into_iter().map(|d| if d == duration { normal.max(1) } else { d });
    cx.estimate(facts, changed.collect(), "the task whose rows multiply as long as its peers")
}

fn remedies(draft: Draft, facts: &StageFacts<'_>, operation: Operation, keys: Option<String>) -> Draft {
    let keys = keys.unwrap_or_else(|| "the key".to_owned());
    let draft = match operation {
        Operation::Join => draft
            .remedy(RemedyKind::Sql, format!("Make {keys} unique on one side before the join: equal keys on both sides multiply, rows left × rows right"))
            .snippet(format!("SELECT {keys}, count(*) AS rows FROM <each side> GROUP BY {keys} HAVING count(*) > 1 ORDER BY rows DESC LIMIT 10"))
            .remedy(RemedyKind::Sql, format!("Treat a default value of {keys} apart, or add a condition to the join that tells its rows apart")),
        _ => draft.remedy(RemedyKind::Sql, "Filter or aggregate before the rows multiply, and select only the columns that are used after it"),
    };
    let draft = match operation {
        Operation::Join => {
            draft.useless("salting alone", "the number of pairs stays the same; it only leaves one task")
        }
        _ => {
            let tasks = (facts.slots.round() as usize).max(1) * 3;
            draft
                .remedy(
                    RemedyKind::Code,
                    "Spread the rows before they multiply: those that become many lie side by side in one task",
                )
                .snippet(format!("df.repartition({tasks})   // before the explode"))
        }
    };
    draft
        .useless("adaptive skew handling", "it compares bytes read, and those are even")
        .confirm("rows written by the largest task over the median")
}
