//! AQE_OFF: adaptive execution is off and would have cured something (section 4.4 of the rules).
//! Runs after the rules whose findings it names.

use super::tiny_tasks::{self, Tiny};
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::words;
use model::{Count, RemedyKind, Severity, Share};
use std::collections::BTreeSet;

/// What adaptive execution does about a finding.
const CURES: [(&str, &str); 5] = [
    ("TINY_TASKS", "merges small shuffle partitions"),
    ("SKEW_KEY", "splits skewed partitions of joins"),
    ("SKEW_AQE_MISSED", "splits skewed partitions of joins"),
    ("JOIN_SHOULD_BROADCAST", "turns a sort-merge join into a broadcast join once it sees the sizes"),
    ("FILE_SMALL_WRITE", "merges small partitions before a write with the REBALANCE hint"),
];

/// Looks at executions for which it was off.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    if cx.app.pasted.is_some() || cx.app.sql.is_empty() {
        return;
    }
    let off: BTreeSet<i64> = cx.app.sql.iter().filter(|s| is_off(cx, s)).map(|s| s.id).collect();
    if off.is_empty() {
        return out.fine("adaptive execution", "on");
    }
    let cured: Vec<(&str, &str, i64)> = out
        .drafts
        .iter()
        .filter_map(|d| {
            let (id, what) = *CURES.iter().find(|(id, _)| *id == d.finding.id)?;
            Some((id, what, d.finding.scope.sql.filter(|s| off.contains(s))?))
        })
        .collect();
    let tiny = tiny_tasks::merged_by_aqe(cx);
    let estimate = tiny_tasks::estimate(cx, &tiny).filter(|e| !tiny.is_empty() && e.saved_ms >= MERGED_MS);
    if !cured.is_empty() || estimate.is_some() {
        out.push(draft(cx, &cured, &tiny, estimate));
    }
}

/// Saving over all stages of tiny tasks from which merging them is worth a finding, ms.
const MERGED_MS: i64 = 1_000;

/// Off by its setting; a plan that is adaptive proves that it was on.
fn is_off(cx: &Context<'_>, sql: &model::SqlExecution) -> bool {
    let vendor = cx
        .conf(Some(sql), "spark.databricks.optimizer.adaptive.enabled")
        .is_some_and(|v| v.eq_ignore_ascii_case("false"));
    sql.plan().is_final.is_none() && (vendor || cx.aqe(Some(sql)) == Some(false))
}

fn draft(cx: &Context<'_>, cured: &[(&str, &str, i64)], tiny: &[Tiny<'_>], estimate: Option<model::Estimate>) -> Draft {
    let ids: BTreeSet<&str> = cured.iter().map(|c| c.0).collect();
    let does: BTreeSet<&str> = cured.iter().map(|c| c.1).collect();
    let does = does.into_iter().collect::<Vec<_>>().join(" and ");
    let overhead_ms: i64 = tiny.iter().map(|t| t.overhead_ms).sum();
    let all_ms: i64 = tiny.iter().map(|t| t.facts.uneven().warm.sum).sum();
    let share = overhead_ms as f64 / all_ms.max(1) as f64;
    let tasks: usize = tiny.iter().map(|t| t.facts.n).sum();
    let title = match (&estimate, tiny.len()) {
        (Some(_), n) => format!(
            "adaptive execution is off: {} of the time of {} tasks in {} goes into starting them",
            Share(share),
            Count(tasks as u64),
            words::count(n as u64, "stage")
        ),
        (None, _) => format!("adaptive execution is off; it {does}"),
    };
    let default_on = cx.app.version().is_some_and(|v| v >= (3, 2));
    let mut draft = Draft::new("AQE_OFF", title)
        .at_least(Severity::Low)
        .estimate(estimate)
        .fix("merging them")
        .evidence("tasks", tasks, "tasks")
        .evidence("stages", tiny.len(), "stages")
        .evidence("overhead_ms", overhead_ms, "ms")
        .evidence("overhead_share", share, "share")
        .evidence("spark.sql.adaptive.enabled", "false", "")
        .seen_at("environment page")
        .not("a setting that has no effect", "no plan of these executions is adaptive")
        .remedy(RemedyKind::Conf, if default_on { "Remove the setting: it is on by default" } else { "Turn it on" })
        .snippet("spark.sql.adaptive.enabled true")
        .confirm("AdaptiveSparkPlan isFinalPlan=true in the plan");
    if !ids.is_empty() {
        draft = draft.evidence("would_cure", ids.into_iter().map(str::to_owned).collect::<Vec<_>>(), "");
    }
    let of_tiny = tiny.iter().filter_map(|t| t.facts.sql).map(|s| s.id);
    let sqls: BTreeSet<i64> = cured.iter().map(|c| c.2).chain(of_tiny).collect();
    draft.finding.scope.stages = tiny.iter().map(|t| t.facts.stage.id).collect();
    draft.finding.scope.sql = sqls.first().copied();
    draft.finding.scope.sqls = sqls.into_iter().collect();
    draft
}
