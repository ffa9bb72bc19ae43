//! STREAM_OVERHEAD: batches that are mostly bookkeeping (section 4.7 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::streams::{self, Stream, trigger_ms};
use model::{Confidence, Count, Millis, RemedyKind, Severity, Share};

/// Batches shorter than this cost little, whatever they do.
const LEAST_MS: f64 = 500.0;

/// Looks at every query.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for stream in streams::all(cx) {
        let found = [bookkeeping(&stream), empty(&stream), partitions(cx, &stream)];
        found.into_iter().flatten().for_each(|d| out.push(stream.place(d)));
    }
}

/// Adding rows takes less than half of the batch.
fn bookkeeping(stream: &Stream<'_>) -> Option<Draft> {
    let share = stream.median(|b| Some(b.phase_ms("addBatch")? as f64 / trigger_ms(b) as f64))?;
    let batch = stream.median(|b| Some(trigger_ms(b) as f64))?;
    if share >= 0.5 || stream.recent.len() < 3 || batch < LEAST_MS {
        return None;
    }
    let title = format!(
        "query {} works on rows for {} of a batch of {}; the rest is listing, planning and checkpoints",
        stream.name(),
        Share(share),
        Millis(batch as i64)
    );
    let mut draft = Draft::new("STREAM_OVERHEAD", title)
        .severity(Severity::Low)
        .evidence("add_batch_share", share, "share")
        .over(0.5)
        .seen_at(format!("query {}", stream.name()))
        .evidence("batch_ms_median", batch, "ms")
        .evidence("batches", stream.recent.len(), "batches");
    for phase in ["latestOffset", "getBatch", "queryPlanning", "walCommit", "commitOffsets"] {
        if let Some(ms) = stream.median(|b| b.phase_ms(phase).map(|ms| ms as f64)) {
            draft = draft.evidence(&format!("{phase}_ms_median"), ms, "ms");
        }
    }
    Some(
        draft
            .remedy(
                RemedyKind::Code,
                "Do more per batch: a longer trigger interval spreads the fixed cost over more rows",
            )
            .snippet(format!(".trigger(processingTime=\"{} seconds\")", ((batch * 5.0 / 1_000.0).ceil() as i64).max(5)))
            .computed(format!("five times the median batch of {}", Millis(batch as i64)))
            .useless("more executors", "this time is the driver's and the storage's")
            .confirm("share of addBatch in triggerExecution"),
    )
}

/// Most batches have no data although the query asks every few seconds.
fn empty(stream: &Stream<'_>) -> Option<Draft> {
    let trigger = stream.trigger.filter(|t| t.ms < 10_000)?;
    let all = stream.query.batches.len();
    let empty = stream.query.batches.iter().filter(|b| b.input_rows == 0).count();
    let share = empty as f64 / all.max(1) as f64;
    if share <= 0.8 || all < 10 {
        return None;
    }
    let title = format!(
        "{} of {all} batches of query {} had no data: it asks every {}",
        Count(empty as u64),
        stream.name(),
        Millis(trigger.ms)
    );
    let draft = Draft::new("STREAM_OVERHEAD", title)
        .severity(Severity::Low)
        .evidence("empty_batches", empty, "batches")
        .seen_at(format!("query {}", stream.name()))
        .evidence("batches", all, "batches")
        .evidence("trigger_ms", trigger.ms, "ms")
        .remedy(RemedyKind::Code, "Ask less often, or run it as a job with a trigger that takes what is there and ends")
        .snippet(".trigger(availableNow=True)")
        .confirm("share of batches without data");
    Some(if trigger.inferred {
        draft.sure(Confidence::Medium, "the trigger interval was read from the times at which batches begin")
    } else {
        draft
    })
}

/// Far more state partitions than slots for few rows.
fn partitions(cx: &Context<'_>, stream: &Stream<'_>) -> Option<Draft> {
    let partitions = stream.recent.last()?.state.iter().map(|s| s.partitions).max()?;
    let slots = f64::from(cx.slots.most());
    let rows = stream.median(|b| Some(b.input_rows as f64))?;
    let per_partition = rows / partitions.max(1) as f64;
    if slots == 0.0 || (partitions as f64) < 4.0 * slots || per_partition >= 1_000.0 {
        return None;
    }
    let title = format!(
        "query {} spreads {} rows a batch over {partitions} state partitions on {slots:.0} slots",
        stream.name(),
        Count(rows as u64)
    );
    Some(
        Draft::new("STREAM_OVERHEAD", title)
            .severity(Severity::Low)
            .evidence("state_partitions", partitions, "partitions")
            .seen_at(format!("query {}", stream.name()))
            .evidence("slots", slots, "slots")
            .evidence("rows_per_batch", rows, "rows")
            .remedy(RemedyKind::Conf, format!("Start the query anew with {slots:.0} shuffle partitions and a new checkpoint: the number is fixed at its first start"))
            .snippet(format!("spark.sql.shuffle.partitions {slots:.0}"))
            .computed(format!("one wave on {slots:.0} slots"))
            .useless("changing spark.sql.shuffle.partitions and restarting on the same checkpoint", "the number of state partitions is read from the checkpoint")
            .confirm("tasks of the state stage a batch"),
    )
}
