//! CACHE_MISSING: the same rows are computed again and again, and nothing is cached (section 4.3).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use crate::run_model::Change;
use crate::signature::{self, Columns};
use crate::words;
use model::{Bytes, Confidence, Metric, Millis, Operator, RemedyKind, Severity, Share, Stage};
use std::collections::{BTreeMap, BTreeSet};

/// A scan alone is worth caching only when it comes this often.
const BARE_SCANS: usize = 3;
/// Smallest repeated work, ms, whatever its share.
const LEAST_MS: i64 = 1_000;

/// Looks for equal parts over all executions, then for RDDs that several jobs compute.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    if cx.app.pasted.is_some() || cx.stages.is_empty() {
        return;
    }
    let total: i64 = cx.stages.iter().map(|s| s.sum(Metric::RunMs)).sum();
    let before = out.drafts.len();
    let queries: Vec<Query<'_>> = queries::of_users(cx).into_iter().filter(|q| counts(cx, q)).collect();
    for group in groups(cx, &queries) {
        if matters(cx, group.repeated_ms(), total) {
            out.push(draft(cx, &queries, &group, total));
        }
    }
    for rdd in rdds(cx).into_iter().filter(|r| matters(cx, r.repeated_ms, total)) {
        out.push(rdd_draft(cx, &rdd, total));
    }
    if out.drafts.len() == before && !queries.is_empty() {
        out.fine(
            "repeated work",
            format!("less than {} of all task time computes the same again", Share(cx.config.repeat_share)),
        );
    }
}

fn matters(cx: &Context<'_>, repeated: i64, total: i64) -> bool {
    repeated >= LEAST_MS && repeated as f64 >= cx.config.repeat_share * total as f64
}

/// Micro-batches look alike by design, and parts of Delta's commands are not the user's to cache.
fn counts(cx: &Context<'_>, query: &Query<'_>) -> bool {
    let Some(sql) = query.sql else { return false };
    let of_delta = |root: i64| {
        let nested = cx.app.sql.iter().filter(|s| s.root_id == Some(root));
        nested.into_iter().any(|s| queries::has_delta_frame(&s.details))
    };
    let nested = sql.root_id.is_some_and(|root| root != sql.id);
    query.stream(cx).is_none() && !(nested && sql.root_id.is_some_and(of_delta))
}

/// One computation of a part: which query, which node, which stages, at what cost.
struct Use {
    query: usize,
    node: usize,
    stages: BTreeSet<usize>,
    run_ms: i64,
}

/// A part that is computed several times.
struct Group {
    uses: Vec<Use>,
}

impl Group {
    /// All but the dearest computation.
    fn repeated_ms(&self) -> i64 {
        let all: i64 = self.uses.iter().map(|u| u.run_ms).sum();
        all - self.uses.iter().map(|u| u.run_ms).max().unwrap_or(0)
    }
}

/// The largest parts that occur more than once: those whose consumer does not occur as often.
fn groups(cx: &Context<'_>, queries: &[Query<'_>]) -> Vec<Group> {
    let signatures: Vec<_> = queries.iter().map(|q| signature::of_plan(q.plan, Columns::Ignore)).collect();
    let mut places: BTreeMap<u64, Vec<(usize, usize)>> = BTreeMap::new();
    for (at, query) in queries.iter().enumerate() {
        for (node, of) in query.nodes().filter(|(_, n)| is_part(&n.op)) {
            if let Some(signature) = signatures[at][node] {
                let _ = of;
                places.entry(signature).or_default().push((at, node));
            }
        }
    }
    let often = |at: usize, node: usize| signatures[at][node].and_then(|s| places.get(&s)).map_or(0, Vec::len);
    let mut groups = Vec::new();
    for (signature, found) in &places {
        let covered = found.iter().all(|&(at, node)| {
            above(&queries[at], node).any(|up| signatures[at][up] != Some(*signature) && often(at, up) >= found.len())
        });
        let bare = found.iter().all(|&(at, node)| is_bare_scan(&queries[at], node));
        if found.len() < if bare { BARE_SCANS } else { 2 } || covered {
            continue;
        }
        let uses: Vec<Use> = found.iter().filter_map(|&(at, node)| use_of(cx, queries, at, node)).collect();
        if uses.len() >= if bare { BARE_SCANS } else { 2 } && !rewritten(cx, queries, &uses) {
            groups.push(Group { uses });
        }
    }
    groups.sort_by_key(|g| std::cmp::Reverse(g.repeated_ms()));
    without_overlap(groups)
}

/// Of parts that lie in the same stages only the dearest is said.
fn without_overlap(groups: Vec<Group>) -> Vec<Group> {
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    let mut kept = Vec::new();
    for group in groups {
        let stages: BTreeSet<usize> = group.uses.iter().flat_map(|u| u.stages.iter().copied()).collect();
        if stages.is_disjoint(&taken) {
            taken.extend(&stages);
            kept.push(group);
        }
    }
    kept
}

/// Operators whose result is worth keeping.
fn is_part(op: &Operator) -> bool {
    matches!(
        op,
        Operator::Scan(_)
            | Operator::Join(_)
            | Operator::Aggregate(_)
            | Operator::Exchange(_)
            | Operator::Filter { .. }
            | Operator::Generate { .. }
            | Operator::Python { .. }
            | Operator::Window { .. }
            | Operator::Limit { .. }
            | Operator::Union
    )
}

fn above<'q>(query: &'q Query<'_>, node: usize) -> impl Iterator<Item = usize> + 'q {
    std::iter::successors(query.plan.consumer(node), |&n| query.plan.consumer(n))
}

fn is_bare_scan(query: &Query<'_>, node: usize) -> bool {
    query.plan.below(node).into_iter().all(|n| {
        let op = &query.plan.nodes[n].op;
        matches!(op, Operator::Scan(_) | Operator::Filter { .. } | Operator::Project { .. }) || op.is_wrapper()
    })
}

/// Stages that computed the part. The stage in which it ends may do more than that; its time
/// counts whole, and the finding says so.
fn use_of(cx: &Context<'_>, queries: &[Query<'_>], at: usize, node: usize) -> Option<Use> {
    let query = &queries[at];
    let below = query.plan.below(node);
    let stages: BTreeSet<usize> = below.iter().filter_map(|&n| query.stage_of(cx, n)).map(|s| s.position).collect();
    let run = |p: &usize| cx.stages.iter().find(|s| s.position == *p).map_or(0, |s| s.sum(Metric::RunMs));
    let run_ms: i64 = stages.iter().map(run).sum();
    (run_ms > 0).then_some(Use { query: at, node, stages, run_ms })
}

/// Whether something wrote to a source between the first and the last use: then it is not the same.
fn rewritten(cx: &Context<'_>, queries: &[Query<'_>], uses: &[Use]) -> bool {
    let paths: Vec<String> = uses
        .iter()
        .flat_map(|u| queries[u.query].scans_below(u.node))
        .filter_map(|(_, s)| queries::path_of(s).or_else(|| s.table.clone()))
        .collect();
    let times = uses.iter().filter_map(|u| queries[u.query].sql?.started_ms);
    let (Some(first), Some(last)) = (times.clone().min(), times.max()) else { return false };
    let between = cx.app.sql.iter().filter(|s| s.started_ms.is_some_and(|t| t > first && t < last));
    let mut targets = between.flat_map(|s| &s.plan().nodes).filter_map(|n| match &n.op {
        Operator::Write { target: Some(target), .. } if target != "noop" => Some(target.as_str()),
        _ => None,
    });
    let same = |path: &str, target: &str| {
        let bare = |p: &str| p.trim_start_matches("file:").trim_end_matches('/').to_owned();
        bare(path) == bare(target)
    };
    targets.any(|t| paths.iter().any(|p| same(p, t)))
}

fn draft(cx: &Context<'_>, queries: &[Query<'_>], group: &Group, total: i64) -> Draft {
    let first = &group.uses[0];
    let query = &queries[first.query];
    let repeated = group.repeated_ms();
    let share = repeated as f64 / total.max(1) as f64;
    let sqls: BTreeSet<i64> = group.uses.iter().filter_map(|u| Some(queries[u.query].sql?.id)).collect();
    let what = describe(query, first.node);
    let times = words::count(group.uses.len() as u64, "time");
    let inputs: i64 = group
        .uses
        .iter()
        .flat_map(|u| &u.stages)
        .filter_map(|p| cx.stages.iter().find(|s| s.position == *p))
        .map(|s| s.sum(Metric::InputBytes))
        .sum();
    let several = sqls.len() > 1;
    let how = if several { format!("{times} and never cached") } else { format!("{times} in one query") };
    let title =
        format!("{what} is computed {how}: {} ({} of all task time) is repeated", Millis(repeated), Share(share));
    let mut draft = Draft::new("CACHE_MISSING", title)
        .fix(if several { "caching it" } else { "one pass" })
        .estimate(estimate(cx, group))
        .evidence("times_computed", group.uses.len(), "times")
        .evidence("repeated_run_ms", repeated, "ms")
        .evidence("repeated_share", share, "share")
        .over(cx.config.repeat_share)
        .evidence("input_bytes", inputs, "bytes")
        .evidence("run_ms_total", total, "ms")
        .at_node(queries::human(query.plan, first.node));
    draft.finding.scope.sqls = sqls.iter().copied().collect();
    draft.finding.scope.sql = sqls.first().copied();
    let stage_ids = group.uses.iter().flat_map(|u| &u.stages).filter_map(|p| cx.app.stages.get(*p)).map(|s| s.id);
    draft.finding.scope.stages = stage_ids.collect::<BTreeSet<_>>().into_iter().collect();
    draft.finding.scope.source_line = group.uses.iter().find_map(|u| crate::source_line::of_sql(queries[u.query].sql?));
    if !several {
        draft = draft
            .at_most(Severity::High)
            .sure(Confidence::Medium, "whether one pass can answer all of them is not in the plan");
    }
    with_remedies(draft, group, sqls.len())
}

/// What the part does, in words: its tables, and whether it joins or aggregates them.
fn describe(query: &Query<'_>, node: usize) -> String {
    let sources: BTreeSet<String> =
        query.scans_below(node).into_iter().map(|(_, s)| queries::short_source(s)).collect();
    let sources = sources.into_iter().collect::<Vec<_>>().join(" and ");
    let below = query.plan.below(node);
    let any = |f: fn(&Operator) -> bool| below.iter().any(|&n| f(&query.plan.nodes[n].op));
    match (any(|op| matches!(op, Operator::Join(_))), any(|op| matches!(op, Operator::Aggregate(_)))) {
        (true, _) => format!("the join of {sources}"),
        (false, true) => format!("the aggregate of {sources}"),
        _ if any(|op| {
            !matches!(op, Operator::Scan(_) | Operator::Filter { .. } | Operator::Project { .. }) && !op.is_wrapper()
        }) =>
        {
            format!("the same part of {sources}")
        }
        _ => format!("the same scan of {sources}"),
    }
}

/// Every computation but the dearest goes away.
fn estimate(cx: &Context<'_>, group: &Group) -> Option<model::Estimate> {
    let run = cx.run.as_ref()?;
    let kept = group.uses.iter().enumerate().max_by_key(|(_, u)| u.run_ms).map(|(at, _)| at);
    let kept_stages = kept.map(|at| &group.uses[at].stages);
    let repeated = group.uses.iter().enumerate().filter(|(at, _)| Some(*at) != kept).flat_map(|(_, u)| &u.stages);
    let stages: BTreeSet<usize> = repeated.filter(|p| kept_stages.is_none_or(|k| !k.contains(p))).copied().collect();
    let shorter = |&p: &usize| (p, run.tasks_of(p).iter().map(|d| d / 5).collect());
    let change = Change { stages: stages.iter().map(shorter).collect(), driver_ms: 0 };
    Some(run.estimate(
        &change,
        "the repeated stages in a fifth of their time: reading cached rows and the work above them stay",
    ))
}

fn with_remedies(draft: Draft, group: &Group, sqls: usize) -> Draft {
    let draft = match sqls > 1 {
        true => draft
            .remedy(RemedyKind::Code, format!("Cache the common part before the first of the {sqls} actions, with all the columns that they use, and unpersist it after the last"))
            .snippet("common = df.select(…).cache()\n…\ncommon.unpersist()")
            .not("reads of cached data", "none of these plans reads a cache")
            .confirm("InMemoryTableScan in the later plans, and the input bytes of their stages"),
        false => draft
            .remedy(RemedyKind::Code, "Compute it once: read it in one pass with conditional aggregates")
            .snippet("SELECT count_if(<condition 1>), count_if(<condition 2>) FROM …")
            .confirm("how often the part stands in the plan, and the input bytes of its stages"),
    };
    draft
        .computed(format!(
            "{} computations, all but the dearest repeated: {}",
            group.uses.len(),
            Millis(group.repeated_ms())
        ))
        .not(
            "other filters",
            "filters and join conditions inside the part are equal; its columns, and what is done with its rows, may differ",
        )
        .useless("more executors", "they repeat the same work in parallel")
}

/// An RDD that several jobs computed.
struct Recomputed<'a> {
    rdd: u32,
    call_site: String,
    stages: Vec<&'a Stage>,
    repeated_ms: i64,
}

/// RDDs outside SQL that stages of several jobs computed from their source: the same RDD id, so
/// the very same lineage, not merely the same line of code.
fn rdds<'a>(cx: &Context<'a>) -> Vec<Recomputed<'a>> {
    let mut by_rdd: BTreeMap<u32, Vec<&Stage>> = BTreeMap::new();
    for facts in cx.stages.iter().filter(|s| s.sql.is_none() && s.stage.attempt == 0 && s.stage.parents.is_empty()) {
        let persisted = facts.stage.rdds.iter().any(|r| r.storage.is_persisted());
        for rdd in facts.stage.rdds.iter().filter(|_| !persisted) {
            by_rdd.entry(rdd.id).or_default().push(facts.stage);
        }
    }
    let mut found: Vec<Recomputed<'a>> = Vec::new();
    // Highest id first: the last RDD of a chain that is shared stands for the whole chain.
    for (rdd, stages) in by_rdd.into_iter().rev().filter(|(_, s)| s.len() > 1) {
        if found.iter().any(|f| f.stages.iter().map(|s| s.id).eq(stages.iter().map(|s| s.id))) {
            continue;
        }
        let runs: Vec<i64> = stages.iter().map(|s| s.sum(Metric::RunMs)).collect();
        let repeated_ms = runs.iter().sum::<i64>() - runs.iter().max().copied().unwrap_or(0);
        let call_site =
            stages[0].rdds.iter().find(|r| r.id == rdd).map(|r| r.call_site.to_string()).unwrap_or_default();
        found.push(Recomputed { rdd, call_site, stages, repeated_ms });
    }
    found.sort_by_key(|f| std::cmp::Reverse(f.repeated_ms));
    found.truncate(1);
    found
}

fn rdd_draft(cx: &Context<'_>, found: &Recomputed<'_>, total: i64) -> Draft {
    let share = found.repeated_ms as f64 / total.max(1) as f64;
    let times = words::count(found.stages.len() as u64, "stage");
    let place = if found.call_site.is_empty() { String::new() } else { format!(" ({})", found.call_site) };
    let title = format!(
        "RDD {}{place} is computed by {times} and never cached: {} ({} of all task time) is repeated",
        found.rdd,
        Millis(found.repeated_ms),
        Share(share)
    );
    let bytes: i64 = found.stages.iter().map(|s| s.sum(Metric::InputBytes)).sum();
    let mut draft = Draft::new("CACHE_MISSING", title)
        .evidence("times_computed", found.stages.len(), "times")
        .evidence("repeated_run_ms", found.repeated_ms, "ms")
        .evidence("repeated_share", share, "share")
        .over(cx.config.repeat_share)
        .evidence("input_bytes", bytes, "bytes")
        .at_least(Severity::Low)
        .not("the same code over other data", "it is the same RDD id, hence the same lineage")
        .remedy(RemedyKind::Code, "Persist the RDD before the first action and unpersist it after the last")
        .snippet("rdd.persist(StorageLevel.MEMORY_AND_DISK)")
        .computed(format!("{} read in all", Bytes(bytes.max(0) as u64)))
        .confirm("input of the later stages, which then comes from blocks");
    draft.finding.scope.rdds = vec![found.rdd];
    draft.finding.scope.stages = found.stages.iter().map(|s| s.id).collect();
    draft
}
