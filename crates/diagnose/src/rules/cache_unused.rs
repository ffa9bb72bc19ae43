//! CACHE_UNUSED: persisted data that nothing read again (section 4.3 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::queries;
use model::{Bytes, CachedRdd, Operator, RemedyKind, Severity, Stage};

/// Looks at every persisted RDD.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for rdd in &cx.app.cached {
        let users: Vec<&Stage> = cx.app.stages.iter().filter(|s| uses(s, rdd.id)).collect();
        if let Some(draft) = draft(cx, rdd, &users) {
            out.push(draft);
        }
    }
}

/// Whether tasks of the stage computed or read it.
fn uses(stage: &Stage, rdd: u32) -> bool {
    stage.attempt == 0 && !stage.tasks.is_empty() && stage.rdds.iter().any(|r| r.id == rdd)
}

/// Whether the query that filled the cache is the only one that reads it, and reads it once:
/// adaptive execution fills it in a stage of its own.
fn one_query(cx: &Context<'_>, users: &[&Stage]) -> bool {
    let Some(sql) = users.first().and_then(|s| s.sql) else { return false };
    let reads = |s: &model::SqlExecution| s.plan().nodes.iter().filter(|n| matches!(n.op, Operator::CacheScan)).count();
    users.iter().all(|s| s.sql == Some(sql)) && cx.app.sql(sql).is_some_and(|s| reads(s) == 1)
}

/// The stage that fills the cache is the first that uses it; with no second one it served nobody.
fn draft(cx: &Context<'_>, rdd: &CachedRdd, users: &[&Stage]) -> Option<Draft> {
    let only = match users {
        [only] => only,
        [first, ..] if one_query(cx, users) => first,
        _ => return None,
    };
    let delta = only.sql.and_then(|id| cx.app.sql(id)).is_some_and(queries::is_delta_bookkeeping);
    // A log that stops early may have been about to read it.
    if delta || queries::has_delta_frame(&only.details) || cx.app.ended_ms.is_none() {
        return None;
    }
    let held = rdd.peak_memory_bytes + rdd.peak_disk_bytes;
    let size = if held > 0 { format!("{} of cached data were", Bytes(held)) } else { "cached data was".to_owned() };
    let title = match users.len() {
        1 => format!("{size} read by no later stage: only stage {}.{} that stored it used it", only.id, only.attempt),
        _ => format!("{size} read by no later query: only SQL {} that stored it used it", only.sql.unwrap_or_default()),
    };
    let pressed = cx.stages.iter().any(|s| s.sum(model::Metric::DiskSpillBytes) > 0);
    let heavy = pressed && held as f64 >= 0.2 * storage(cx);
    let mut draft = Draft::new("CACHE_UNUSED", title)
        .severity(if heavy { Severity::Medium } else { Severity::Info })
        .evidence("cached_bytes", held, "bytes")
        .seen_at("storage page")
        .evidence("stages_that_used_it", users.len(), "stages")
        .evidence("partitions", rdd.partitions, "partitions")
        .evidence("spilled_bytes", cx.stages.iter().map(|s| s.sum(model::Metric::DiskSpillBytes)).sum::<i64>(), "bytes")
        .not("data cached for a later run", "cached blocks end with the application")
        .remedy(RemedyKind::Code, "Remove the cache call, or unpersist once nothing reads it any more")
        .snippet("df.unpersist()")
        .confirm("storage memory used by the executors");
    draft.finding.scope.rdds = vec![rdd.id];
    draft.finding.scope.stage = Some(only.id);
    draft.finding.scope.attempt = Some(only.attempt);
    draft.finding.scope.sql = only.sql;
    Some(draft)
}

fn storage(cx: &Context<'_>) -> f64 {
    cx.app.executors.iter().filter(|e| e.added).map(|e| e.max_memory_bytes as f64).sum()
}
