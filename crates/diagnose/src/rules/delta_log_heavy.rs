//! DELTA_LOG_HEAVY: reading Delta's own log takes much of the run (section 4.4 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::queries;
use model::{Count, Job, Millis, RemedyKind, Severity, Share, SqlExecution};

/// Share of the run from which it is a finding.
const SHARE: f64 = 0.1;

/// Adds up the jobs that compute snapshots of Delta tables.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let jobs: Vec<&Job> = cx.app.jobs.iter().filter(|j| is_bookkeeping(cx, j)).collect();
    if jobs.is_empty() || cx.wall_ms == 0 {
        return;
    }
    let spans = jobs.iter().filter_map(|j| Some((j.submitted_ms?, j.completed_ms?))).collect();
    let busy: i64 = crate::run_model::union(spans).iter().map(|(from, to)| to - from).sum();
    let share = busy as f64 / cx.wall_ms as f64;
    let growth = growth(&jobs);
    match share >= SHARE && busy >= 5_000 || growth.is_some() {
        true => out.push(draft(cx, &jobs, busy, share, growth)),
        false => out.fine("Delta log", format!("{} of the run", Share(share))),
    }
}

fn is_bookkeeping(cx: &Context<'_>, job: &Job) -> bool {
    job.sql.and_then(|id| cx.app.sql(id)).is_some_and(queries::is_delta_bookkeeping)
}

/// Grows from batch to batch: the last third takes twice as long as the first.
fn growth(jobs: &[&Job]) -> Option<(i64, i64)> {
    let batches: Vec<i64> =
        jobs.iter().filter(|j| j.batch.is_some()).filter_map(|j| Some(j.completed_ms? - j.submitted_ms?)).collect();
    let third = batches.len() / 3;
    if third < 5 {
        return None;
    }
    let median = |part: &[i64]| model::Quantiles::of(part.to_vec()).median;
    let (first, last) = (median(&batches[..third]), median(&batches[batches.len() - third..]));
    (last >= 2 * first && last >= 1_000).then_some((first, last))
}

fn files(cx: &Context<'_>, jobs: &[&Job]) -> i64 {
    let executions = jobs.iter().filter_map(|j| cx.app.sql(j.sql?));
    let read =
        |sql: &SqlExecution| sql.plan().nodes.iter().filter_map(|n| cx.metric(n, "number of files read")).sum::<i64>();
    executions.map(read).max().unwrap_or(0)
}

fn draft(cx: &Context<'_>, jobs: &[&Job], busy: i64, share: f64, growth: Option<(i64, i64)>) -> Draft {
    let title = match growth {
        Some((first, last)) if share < SHARE => {
            format!("reading the Delta log grows from {} to {} a batch", Millis(first), Millis(last))
        }
        _ => format!(
            "{} of the run ({}) reads and computes the Delta log, not data: {} jobs",
            Share(share),
            Millis(busy),
            jobs.len()
        ),
    };
    let files = files(cx, jobs);
    let severity = match share {
        s if s >= 0.25 => Severity::Medium,
        _ => Severity::Low,
    };
    let mut draft = Draft::new("DELTA_LOG_HEAVY", title)
        .severity(severity)
        .evidence("delta_log_ms", busy, "ms")
        .evidence("delta_log_share", share, "share")
        .over(SHARE)
        .evidence("jobs", jobs.len(), "jobs")
        .evidence("log_files_read_most", files, "files")
        .not("work on the table's data", "the jobs read only the log of the table, or its state");
    if let Some((first, last)) = growth {
        draft = draft.evidence("first_third_ms", first, "ms").evidence("last_third_ms", last, "ms");
    }
    let partitions = cx.slots.most().max(1);
    draft
        .remedy(RemedyKind::Layout, format!("Keep the log short: compact the table's files, and write a checkpoint more often than every {} commits if that many log files are read each time", Count(files.max(0) as u64)))
        .snippet("OPTIMIZE <table>;\nALTER TABLE <table> SET TBLPROPERTIES ('delta.checkpointInterval' = '10')")
        .remedy(RemedyKind::Conf, format!("Compute the snapshot with as many partitions as there are slots: {partitions} rather than 50"))
        .snippet(format!("spark.databricks.delta.snapshotPartitions {partitions}"))
        .computed(format!("one wave on {partitions} slots"))
        .useless("more executors", "a snapshot is a small job; its cost is in its fixed steps")
        .confirm("duration of the jobs that compute snapshots")
}
