//! MANY_TINY_JOBS: a loop on the driver runs one small job after the other (section 4.2).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::words;
use model::{Confidence, Count, Estimate, Job, Metric, Millis, Operator, Pasted, RemedyKind, Severity, quantile};
use std::collections::BTreeMap;

/// Looks at the jobs of the application, or at a pasted jobs table.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    if let Some(pasted) = &cx.app.pasted {
        if let Some(draft) = told(cx, pasted) {
            out.push(draft);
        }
        return;
    }
    let (jobs, before) = (cx.app.jobs.len(), out.drafts.len());
    for chain in chains(cx) {
        if let Some(draft) = chain_draft(cx, &chain) {
            out.push(draft);
        }
    }
    if jobs > 0 && out.drafts.len() == before {
        let jobs = words::count(jobs as u64, "job");
        out.fine(
            "driver loops",
            format!("no call site ran {} small jobs in a row ({jobs} in all)", cx.config.tiny_jobs),
        );
    }
}

/// Jobs of one call site that follow each other.
struct Chain<'a> {
    call_site: &'a str,
    jobs: Vec<&'a Job>,
}

impl<'a> Chain<'a> {
    /// Where the jobs come from: their query's call where theirs is in a thread that Spark made for
    /// a stage of it.
    fn place(&self, cx: &Context<'a>) -> &'a str {
        let threads = ["$anonfun$", "run at ", "submit at "];
        if !threads.iter().any(|t| self.call_site.starts_with(t)) {
            return self.call_site;
        }
        let sql = self.jobs.iter().find_map(|j| cx.app.sql(j.sql?));
        sql.map_or(self.call_site, |s| &s.description)
    }

    /// Turns of the loop: the jobs of one query count once, as far as its shuffles (each a job of
    /// its own under adaptive execution) and the growing tries of `take` and `show` explain them.
    fn turns(&self, cx: &Context<'_>) -> u64 {
        let mut by_query: BTreeMap<Option<i64>, u64> = BTreeMap::new();
        for job in &self.jobs {
            *by_query.entry(job.sql).or_default() += 1;
        }
        let of_query = |(id, jobs): (Option<i64>, u64)| {
            let sql = id.and_then(|id| cx.app.sql(id));
            let moves =
                |n: &model::PlanNode| matches!(n.op, Operator::Exchange(_) | Operator::BroadcastExchange { .. });
            let explained = sql.map(|s| s.plan().nodes.iter().filter(|n| moves(n)).count() as u64 + TRIES_OF_TAKE);
            if explained.is_some_and(|most| jobs <= most) { 1 } else { jobs }
        };
        by_query.into_iter().map(of_query).sum()
    }
}

/// `take` and `show` look at 1, 4, 20, 100, … partitions until they have enough rows.
const TRIES_OF_TAKE: u64 = 8;

/// Chains of jobs: a job continues the chain of its call site when it starts after the last one
/// ended, with no more than three other jobs between.
fn chains<'a>(cx: &Context<'a>) -> Vec<Chain<'a>> {
    let mut jobs: Vec<&Job> = cx.app.jobs.iter().filter(|j| j.stream.is_none() && j.submitted_ms.is_some()).collect();
    jobs.sort_by_key(|j| (j.submitted_ms, j.id));
    let mut open: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut chains: Vec<Chain<'a>> = Vec::new();
    for (at, job) in jobs.into_iter().enumerate() {
        let call_site = job.call_site.as_deref().unwrap_or(&job.name);
        let continued = open.get(call_site).filter(|(chain, last)| {
            let ended = chains[*chain].jobs.last().and_then(|j| j.completed_ms);
            at - last <= 4 && ended.zip(job.submitted_ms).is_some_and(|(end, begin)| end <= begin)
        });
        let chain = continued.map_or(chains.len(), |c| c.0);
        if chain == chains.len() {
            chains.push(Chain { call_site, jobs: Vec::new() });
        }
        chains[chain].jobs.push(job);
        open.insert(call_site, (chain, at));
    }
    chains.retain(|c| c.jobs.len() as u64 >= cx.config.tiny_jobs && c.turns(cx) >= cx.config.tiny_jobs);
    chains
}

fn chain_draft(cx: &Context<'_>, chain: &Chain<'_>) -> Option<Draft> {
    let mut durations: Vec<i64> =
        chain.jobs.iter().filter_map(|j| Some((j.completed_ms? - j.submitted_ms?).max(0))).collect();
    durations.sort_unstable();
    let median = quantile(&durations, 0.5)?;
    if median >= 1_000 {
        return None;
    }
    let (first, last) = (chain.jobs.first()?, chain.jobs.last()?);
    let span = last.completed_ms? - first.submitted_ms?;
    let n = chain.jobs.len() as u64;
    let call = Call::of(chain.place(cx));
    let title =
        format!("{} jobs of {} one after the other take {}{}", Count(n), Millis(median), Millis(span), call.words());
    let mut draft = Draft::new("MANY_TINY_JOBS", title)
        .estimate(Some(estimate(cx, chain, span, median)))
        .fix("one job over all items")
        .evidence("jobs", n, "jobs")
        .over(cx.config.tiny_jobs as f64)
        .evidence("job_ms_median", median, "ms")
        .evidence("span_ms", span, "ms")
        .evidence("call_site", chain.place(cx), "")
        .not("too few slots", "each job waits for the one before it, not for a slot");
    draft.finding.scope.job = Some(first.id);
    draft.finding.scope.sql = first.sql;
    Some(remedies(draft, &call))
}

/// All of the time but one job and the work itself.
fn estimate(cx: &Context<'_>, chain: &Chain<'_>, span: i64, median: i64) -> Estimate {
    let ids: std::collections::BTreeSet<u32> = chain.jobs.iter().map(|j| j.id).collect();
    let stages = cx.stages.iter().filter(|s| s.stage.jobs.iter().any(|j| ids.contains(j)));
    let run: i64 = stages.map(|s| s.sum(Metric::RunMs)).sum();
    let slots = cx.run.as_ref().map_or(1.0, |r| r.slots).max(1.0);
    let saved = (span - median - (run as f64 / slots) as i64).clamp(0, cx.wall_ms);
    Estimate {
        saved_ms_low: saved / 2,
        saved_ms: saved,
        saved_ms_high: saved,
        saved_core_ms: (saved as f64 * slots) as i64,
        method: "the time of all jobs but one, less their run time spread over the slots".to_owned(),
    }
}

/// An action and where it was called.
struct Call<'a> {
    action: &'a str,
    place: &'a str,
}

impl<'a> Call<'a> {
    fn of(text: &'a str) -> Self {
        let (action, place) = text.rsplit_once(" at ").unwrap_or((text, ""));
        Self { action: action.trim(), place: place.trim() }
    }

    /// The class of Delta whose code this is.
    fn is_vacuum(&self) -> bool {
        self.place.starts_with("VacuumCommand")
    }

    fn words(&self) -> String {
        let what = match self.action {
            "toLocalIterator" => "toLocalIterator, with which the driver pulls one partition per job",
            action => action,
        };
        let owner = if self.is_vacuum() { " inside the VACUUM command, not in user code" } else { "" };
        match self.place {
            "" => format!(": {what}"),
            place => format!(": {what} at {place}{owner}"),
        }
    }
}

fn remedies(draft: Draft, call: &Call<'_>) -> Draft {
    let draft = match () {
        () if call.is_vacuum() => draft
            .remedy(RemedyKind::Conf, "For a small table list its files in fewer partitions: each is pulled by a job of its own")
            .snippet("SET spark.sql.sources.parallelPartitionDiscovery.parallelism = 8")
            .remedy(RemedyKind::Conf, "Delete in parallel on the executors; needs a recent Delta")
            .snippet("SET spark.databricks.delta.vacuum.parallelDelete.enabled = true"),
        () if call.action == "toLocalIterator" => draft
            .remedy(RemedyKind::Code, "Handle the rows on the executors (foreachPartition), or coalesce to a few partitions before toLocalIterator: it runs one job a partition")
            .snippet("df.coalesce(8).toLocalIterator()"),
        () => draft
            .remedy(RemedyKind::Code, "Ask once for all items instead of once for each: join or group by the item, and collect one result")
            .remedy(RemedyKind::Code, "If the items are independent, start their jobs from several threads")
            .snippet("with ThreadPool(8) as pool: pool.map(handle, items)"),
    };
    draft
        .useless("more executors", "the jobs run one after the other and each fills a slot or two")
        .useless("a larger driver", "it waits for the next job, it does not compute")
        .confirm("number of jobs, and the time between the first and the last of them")
}

/// A jobs table: its rows, or the number in words beside a few of them.
fn told(cx: &Context<'_>, pasted: &Pasted) -> Option<Draft> {
    let first = pasted.job_rows.first()?;
    let same: Vec<&model::JobRow> = pasted.job_rows.iter().filter(|r| r.description == first.description).collect();
    let jobs = pasted.stated_jobs.unwrap_or(0).max(same.len() as u64);
    let mut durations: Vec<i64> = same.iter().map(|r| r.duration_ms).collect();
    durations.sort_unstable();
    let median = quantile(&durations, 0.5)?;
    if jobs < cx.config.tiny_jobs || median >= 1_000 || same.len() * 2 < pasted.job_rows.len() {
        return None;
    }
    let call = Call::of(&first.description);
    let title = format!("{} jobs of {} run one after the other{}", Count(jobs), Millis(median), call.words());
    let draft = Draft::new("MANY_TINY_JOBS", title)
        .at_least(Severity::Medium)
        .evidence("jobs", jobs, "jobs")
        .over(cx.config.tiny_jobs as f64)
        .evidence("job_ms_median", median, "ms")
        .evidence("call_site", first.description.clone(), "")
        .evidence("jobs_ms", median.saturating_mul(jobs as i64), "ms")
        .sure(Confidence::Medium, "from a pasted table: the time between the jobs is not in it");
    Some(remedies(draft, &call))
}
