//! DRIVER_GAP: a long time in which no task ran (section 4.6 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::gaps::Gap;
use crate::run_model::Change;
use crate::{source_line, words};
use model::{Confidence, Count, Job, Millis, Operator, RemedyKind, Severity, SqlExecution};

/// Gaps longer than this, three of them, make an interactive session.
const PAUSE_MS: i64 = 600_000;

/// A start longer than this is worth a change, ms.
const START_MS: i64 = 300_000;

/// Looks at every time without a task.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let all = cx.gaps();
    let longest = all.iter().map(Gap::ms).max().unwrap_or(0);
    let long: Vec<Gap> = all.iter().filter(|g| g.ms() > cx.config.gap_ms && !is_trigger_wait(cx, g)).copied().collect();
    if long.is_empty() {
        if longest > 0 && cx.app.pasted.is_none() {
            out.fine("driver gaps", format!("longest time without a task {}", Millis(longest)));
        }
        return;
    }
    if is_interactive(cx, &long) {
        return out.fine("driver gaps", format!("longest pause {}: an interactive session", Millis(longest)));
    }
    // Gaps before the same line for the same reason are one finding, told by the longest.
    let mut alike: Vec<Vec<(Gap, Cause)>> = Vec::new();
    for gap in long {
        // Before the first and after the last task only Spark's own reasons can be told apart.
        let Some(cause) = judged(cx, &gap) else { continue };
        match alike.iter_mut().find(|g| is_alike(cx, &g[0], &gap, &cause)) {
            Some(group) => group.push((gap, cause)),
            None => alike.push(vec![(gap, cause)]),
        }
    }
    alike.iter().filter_map(|group| draft(cx, group)).for_each(|d| out.push(d));
}

/// Every time without a task that is longer than the limit (`gap_ms`), with what the driver did in
/// it as far as the log tells, in time order.
#[must_use]
pub fn told(cx: &Context<'_>) -> Vec<(Gap, String)> {
    let long = cx.gaps().iter().filter(|gap| gap.ms() > cx.config.gap_ms);
    let what = |gap: &Gap| match is_trigger_wait(cx, gap) {
        true => "the stream waited for its trigger".to_owned(),
        false => judged(cx, gap).map_or_else(|| unknown(gap), |cause| cause.what),
    };
    long.map(|gap| (*gap, what(gap))).collect()
}

fn judged(cx: &Context<'_>, gap: &Gap) -> Option<Cause> {
    let before = cx.app.jobs.iter().rfind(|j| j.submitted_ms.is_some_and(|t| t < gap.from_ms));
    let cause = cause(cx, gap, before, next_job(cx, gap));
    let silent = (gap.before_all && cause.kind == Kind::Unknown) || (gap.after_all && cx.app.ended_ms.is_none());
    (!silent).then_some(cause)
}

fn is_alike(cx: &Context<'_>, (known, told): &(Gap, Cause), gap: &Gap, cause: &Cause) -> bool {
    let line = |gap: &Gap| next_job(cx, gap).and_then(|job| job_line(cx, job));
    let inner = |gap: &Gap| !gap.before_all && !gap.after_all;
    told.kind == cause.kind && inner(known) && inner(gap) && line(known).is_some() && line(known) == line(gap)
}

/// Three pauses of more than ten minutes, a shell, or a notebook that no job runs: someone reads
/// and types between the commands.
#[must_use]
pub fn is_interactive(cx: &Context<'_>, gaps: &[Gap]) -> bool {
    let pauses = gaps.iter().filter(|g| g.ms() > PAUSE_MS && !g.before_all && !g.after_all).count();
    let repl = ["spark.repl.class.uri", "spark.repl.class.outputDir"].iter().any(|k| cx.app.conf(k).is_some());
    // Call sites of spark-shell, pyspark and IPython.
    let typed = |line: &str| ["<console>:", "<stdin>:", "<ipython-input"].iter().any(|start| line.starts_with(start));
    let shell = repl || cx.stages.iter().any(|s| s.source_line.as_deref().is_some_and(typed));
    let tie = |job: &Job, key: &str| job.ties.iter().any(|(k, v)| &**k == key && !v.is_empty());
    let notebook =
        cx.app.jobs.iter().any(|j| tie(j, "spark.databricks.notebook.path") && !tie(j, "spark.databricks.job.id"));
    pauses >= 3 || shell || notebook
}

/// A stream that waits for its trigger is not a driver that keeps others waiting.
#[must_use]
pub fn is_trigger_wait(cx: &Context<'_>, gap: &Gap) -> bool {
    let end = cx.app.end_ms().unwrap_or(i64::MAX);
    cx.app.streams.iter().any(|s| {
        let (from, to) = (s.started_ms.unwrap_or(i64::MAX), s.ended_ms.unwrap_or(end));
        gap.overlap(from, to) * 2 >= gap.ms()
    })
}

/// What the driver did in a gap.
struct Cause {
    /// Clause for the title.
    what: String,
    kind: Kind,
    confidence: Confidence,
    /// Whether files had to be found for it.
    files: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Slots,
    Planning,
    Commit,
    Broadcast,
    Code,
    Unknown,
}

/// One finding of gaps that are alike.
fn draft(cx: &Context<'_>, group: &[(Gap, Cause)]) -> Option<Draft> {
    let (gap, cause) = group.iter().max_by_key(|(gap, _)| gap.ms())?;
    let next = next_job(cx, gap);
    let before = cx.app.jobs.iter().rfind(|j| j.submitted_ms.is_some_and(|t| t < gap.from_ms));
    let all_ms: i64 = group.iter().map(|(gap, _)| gap.ms()).sum();
    let wasted = group.iter().map(|(gap, _)| cx.slots.integral(gap.from_ms, gap.to_ms)).sum::<i64>();
    let change = Change { driver_ms: all_ms, ..Change::default() };
    let estimate = cx.run.as_ref().map(|r| r.estimate(&change, "the time without a task, at most"));
    let first = match (gap.before_all, group.len()) {
        (true, _) => " at the start".to_owned(),
        (false, 1) => String::new(),
        (false, n) => format!(", and {} altogether in {} like it", Millis(all_ms), words::count(n as u64, "gap")),
    };
    let title = format!("no task ran for {}{first}: {}", Millis(gap.ms()), cause.what);
    let mut draft = Draft::new("DRIVER_GAP", title)
        .estimate(estimate)
        .sure(cause.confidence, "the log shows what was before and after the gap, not what the driver did in it")
        .evidence("ms", gap.ms(), "ms")
        .over(cx.config.gap_ms as f64)
        .seen_at("event timeline")
        .evidence("gaps", group.len(), "gaps")
        .evidence("slots", cx.slots.average(gap.from_ms, gap.to_ms), "slots")
        .evidence("wasted_core_ms", wasted, "ms");
    // Nobody can start in no time: what is before the first task is a remark unless it is long.
    if gap.before_all {
        draft = draft.at_most(if gap.ms() > START_MS { Severity::Medium } else { Severity::Info });
    }
    if let Some(job) = next {
        draft = draft.evidence("before_job", job.id, "");
        draft.finding.scope.job = Some(job.id);
        draft.finding.scope.sql = job.sql;
        draft.finding.scope.source_line = job_line(cx, job);
    }
    if let Some(job) = before {
        draft = draft.evidence("after_job", job.id, "");
    }
    Some(with_remedies(cx, draft, gap, cause, before, next))
}

fn next_job<'a>(cx: &Context<'a>, gap: &Gap) -> Option<&'a Job> {
    // The job whose task ended the gap was submitted before that task was launched.
    let mut stages = cx.app.stages.iter().filter(|s| s.span_ms().is_some_and(|(from, _)| from == gap.to_ms));
    let stage = stages.next();
    let by_stage = stage.and_then(|s| {
        s.jobs.iter().filter_map(|&j| cx.app.job(j)).find(|j| j.submitted_ms.is_some_and(|t| t <= gap.to_ms))
    });
    by_stage
        .or_else(|| cx.app.jobs.iter().rfind(|j| j.submitted_ms.is_some_and(|t| t >= gap.from_ms && t <= gap.to_ms)))
}

/// The causes in the order of the rules; one must cover at least half of the gap.
fn cause(cx: &Context<'_>, gap: &Gap, before: Option<&Job>, next: Option<&Job>) -> Cause {
    no_slots(cx, gap)
        .or_else(|| planning(cx, gap))
        .or_else(|| commit(cx, gap))
        .or_else(|| broadcast(cx, gap))
        .or_else(|| user_code(cx, gap, before, next))
        .unwrap_or_else(|| Cause { what: unknown(gap), kind: Kind::Unknown, confidence: Confidence::Low, files: false })
}

fn unknown(gap: &Gap) -> String {
    match gap.before_all {
        true => "the application had not begun its first job".to_owned(),
        false => "the log does not say what the driver did".to_owned(),
    }
}

fn no_slots(cx: &Context<'_>, gap: &Gap) -> Option<Cause> {
    // A task that ran without a slot shows that the log knows the executors badly.
    let known = |t: i64| cx.slots.at(t) > 0;
    if !gap.after_all && !known(gap.to_ms) {
        return None;
    }
    let without: i64 = pieces(cx, gap).filter(|p| p.2 == 0).map(|p| p.1 - p.0).sum();
    let wanted =
        cx.app.stages.iter().any(|s| s.submitted_ms.is_some_and(|t| t < gap.to_ms && t >= gap.from_ms - 1_000));
    (without * 2 >= gap.ms() && (wanted || gap.before_all)).then(|| Cause {
        what: format!("there was no executor for {} of it", Millis(without)),
        kind: Kind::Slots,
        confidence: Confidence::High,
        files: false,
    })
}

/// Pieces of a gap with their slots.
fn pieces(cx: &Context<'_>, gap: &Gap) -> impl Iterator<Item = (i64, i64, u32)> {
    let inside = cx.slots.steps.iter().map(|s| s.0).filter(|&t| t > gap.from_ms && t < gap.to_ms);
    let mut times: Vec<i64> = std::iter::once(gap.from_ms).chain(inside).chain([gap.to_ms]).collect();
    times.dedup();
    let pieces: Vec<_> = times.windows(2).map(|w| (w[0], w[1], cx.slots.at(w[0]))).collect();
    pieces.into_iter()
}

fn jobs_of<'a>(cx: &Context<'a>, sql: &'a SqlExecution) -> impl Iterator<Item = &'a Job> {
    sql.jobs.iter().filter_map(|&j| cx.app.job(j))
}

/// Executions with the time between their start and their first job.
fn planning(cx: &Context<'_>, gap: &Gap) -> Option<Cause> {
    let candidates = cx.app.sql.iter().filter_map(|sql| {
        let first = jobs_of(cx, sql).filter_map(|j| j.submitted_ms).min().or(sql.ended_ms)?;
        Some((gap.overlap(sql.started_ms?, first), sql))
    });
    let (ms, sql) = candidates.max_by_key(|c| c.0).filter(|c| c.0 * 2 >= gap.ms())?;
    let (files, listing) = listing(cx, sql);
    let listed = match (files, listing) {
        (files, ms) if ms > 1_000 => format!(", listing {} files took {}", Count(files.max(0) as u64), Millis(ms)),
        _ => String::new(),
    };
    Some(Cause {
        what: match jobs_of(cx, sql).next() {
            Some(_) => format!("SQL {} was being planned for {}{listed}", sql.id, Millis(ms)),
            None => format!("SQL {}, which has no job, kept the driver for {}{listed}", sql.id, Millis(ms)),
        },
        kind: Kind::Planning,
        confidence: Confidence::High,
        files: files > 0 || listing > 1_000,
    })
}

/// Files and metadata time, ms, of an execution's scans.
fn listing(cx: &Context<'_>, sql: &SqlExecution) -> (i64, i64) {
    let nodes = sql.plan().nodes.iter().filter(|n| matches!(n.op, Operator::Scan(_)));
    let sum = |sum: (i64, i64), node| {
        let files = cx.metric(node, "number of files read").unwrap_or(0);
        (sum.0 + files, sum.1 + cx.metric(node, "metadata time").unwrap_or(0))
    };
    nodes.fold((0, 0), sum)
}

/// Executions with the time between their last job and their end: the commit of a write.
fn commit(cx: &Context<'_>, gap: &Gap) -> Option<Cause> {
    let candidates = cx.app.sql.iter().filter_map(|sql| {
        let last = jobs_of(cx, sql).filter_map(|j| j.completed_ms).max()?;
        Some((gap.overlap(last, sql.ended_ms?), sql))
    });
    let (ms, sql) = candidates.max_by_key(|c| c.0).filter(|c| c.0 * 2 >= gap.ms())?;
    let files = sql.plan().nodes.iter().filter_map(|n| cx.metric(n, "number of written files")).max().unwrap_or(0);
    let what = match files {
        0 => format!("SQL {} ended {} after its last job", sql.id, Millis(ms)),
        n => format!("SQL {} committed {} written files for {}", sql.id, Count(n as u64), Millis(ms)),
    };
    Some(Cause { what, kind: Kind::Commit, confidence: Confidence::High, files: files > 0 })
}

/// A gap inside an execution whose broadcasts were collected, built and sent as long as that.
fn broadcast(cx: &Context<'_>, gap: &Gap) -> Option<Cause> {
    let inside = |s: &&SqlExecution| {
        let (Some(from), Some(to)) = (s.started_ms, s.ended_ms) else { return false };
        gap.overlap(from, to) * 2 >= gap.ms()
    };
    cx.app.sql.iter().filter(inside).find_map(|sql| {
        let built: i64 = sql
            .plan()
            .nodes
            .iter()
            .filter(|n| matches!(n.op, Operator::BroadcastExchange { .. }))
            .map(|n| ["time to build", "time to broadcast"].iter().filter_map(|m| cx.metric(n, m)).sum::<i64>())
            .sum();
        (built * 2 >= gap.ms()).then(|| Cause {
            what: format!("SQL {} built and sent its broadcast for {}", sql.id, Millis(built)),
            kind: Kind::Broadcast,
            confidence: Confidence::Medium,
            files: false,
        })
    })
}

/// The line of user code before which most of the time of some gaps lies: half of it at least.
pub(super) fn usual_line(cx: &Context<'_>, gaps: &[&Gap]) -> Option<String> {
    let mut by_line: std::collections::BTreeMap<String, i64> = std::collections::BTreeMap::new();
    for gap in gaps {
        if let Some(line) = next_job(cx, gap).filter(|_| !gap.after_all).and_then(|job| job_line(cx, job)) {
            *by_line.entry(line).or_default() += gap.ms();
        }
    }
    let all: i64 = gaps.iter().map(|g| g.ms()).sum();
    by_line.into_iter().max_by_key(|(_, ms)| *ms).filter(|(_, ms)| ms * 2 >= all).map(|(line, _)| line)
}

/// Where in the run a gap lies.
pub(super) fn place(cx: &Context<'_>, gap: &Gap) -> String {
    let named = |job: &Job| job_line(cx, job).map_or_else(|| job.id.to_string(), |line| format!("{} ({line})", job.id));
    let before = cx.app.jobs.iter().rfind(|j| j.submitted_ms.is_some_and(|t| t < gap.from_ms));
    match (before, next_job(cx, gap)) {
        (Some(job), _) if gap.after_all => format!("after job {}, the last", named(job)),
        (_, Some(job)) => format!("before job {}", named(job)),
        _ => "without a task".to_owned(),
    }
}

/// Between two pieces of work: code of the driver itself.
fn user_code(cx: &Context<'_>, gap: &Gap, before: Option<&Job>, next: Option<&Job>) -> Option<Cause> {
    let (before, next) = (before?, next?);
    let running =
        |j: &Job| gap.overlap(j.submitted_ms.unwrap_or(gap.to_ms), j.completed_ms.unwrap_or(gap.to_ms)) * 2 >= gap.ms();
    if cx.app.jobs.iter().any(running) {
        return Some(Cause {
            what: format!("job {} was running but none of its tasks was", next.id),
            kind: Kind::Unknown,
            confidence: Confidence::Low,
            files: false,
        });
    }
    let named = |job: &Job| job_line(cx, job).map_or_else(|| job.id.to_string(), |line| format!("{} ({line})", job.id));
    Some(Cause {
        what: format!("the driver ran its own code between job {} and job {}", named(before), named(next)),
        kind: Kind::Code,
        confidence: Confidence::Medium,
        files: false,
    })
}

fn job_line(cx: &Context<'_>, job: &Job) -> Option<String> {
    let stage = job.stages.iter().filter_map(|&s| cx.app.stage(s, 0)).next_back();
    let of_sql = || job.sql.and_then(|id| cx.app.sql(id)).and_then(source_line::of_sql);
    stage.and_then(|s| source_line::of_stage(cx.app, s)).or_else(of_sql)
}

fn with_remedies(
    cx: &Context<'_>,
    draft: Draft,
    gap: &Gap,
    cause: &Cause,
    before: Option<&Job>,
    next: Option<&Job>,
) -> Draft {
    let draft = match cause.kind {
        Kind::Slots => slots_remedy(cx, draft.explained_anywhere_by(&["AUTOSCALE_LAG"])),
        Kind::Planning => planning_remedy(draft, cause.files),
        Kind::Commit if !cause.files => draft.remedy(
            RemedyKind::Code,
            "See what the driver does with the result: collecting it, or the commit of the sink",
        ),
        Kind::Commit => draft
            .remedy(RemedyKind::Layout, "Write fewer files, so that fewer must be renamed or listed at the commit")
            .remedy(RemedyKind::Conf, "On object storage use a table format or a committer that does not rename"),
        Kind::Broadcast => draft.remedy(RemedyKind::Code, "Broadcast less: fewer columns and rows of the small side"),
        Kind::Code | Kind::Unknown => draft
            .remedy(RemedyKind::Code, "Look at what the driver does there: a loop in plain Python or Scala, toPandas, a call to another service, a sleep; move the work into a DataFrame, or run it beside the next job in a thread")
            .computed(neighbours(cx, before, next)),
    };
    let draft = draft
        .not("a slow stage", "no task was running")
        .not("a stream that waits for its trigger", "no streaming query was active in that time")
        .confirm("time between the jobs on the event timeline");
    // Executors that were not there yet were not idle either.
    let idle = cx.slots.average(gap.from_ms, gap.to_ms).round() as u64;
    match cause.kind == Kind::Slots || idle == 0 {
        true => draft,
        false => {
            let were = if idle == 1 { "was" } else { "were" };
            let slots = words::count(idle, "slot");
            draft.useless("more executors", format!("{slots} {were} idle for {} already", Millis(gap.ms())))
        }
    }
}

/// What shortens the wait for the first executor: a smallest number only where Spark scales.
fn slots_remedy(cx: &Context<'_>, draft: Draft) -> Draft {
    match cx.app.conf_bool("spark.dynamicAllocation.enabled", false) {
        true => draft
            .remedy(RemedyKind::Conf, "Keep a smallest number of executors, so that work need not wait for the first one")
            .snippet("spark.dynamicAllocation.minExecutors 1"),
        false => draft.remedy(
            RemedyKind::Compute,
            "Use a pool of started machines, a cluster that is kept, or a smaller image: each run waits for its executors to come up",
        ),
    }
}

fn planning_remedy(draft: Draft, files: bool) -> Draft {
    let draft = match files {
        true => draft
            .remedy(RemedyKind::Layout, "Plan over fewer files: compact small ones and filter on partition columns"),
        false => draft,
    };
    draft.remedy(
        RemedyKind::Code,
        "See what the driver does before the first job: a catalog that answers late, or a very long chain of transformations, which a table or a checkpoint cuts",
    )
}

fn neighbours(cx: &Context<'_>, before: Option<&Job>, next: Option<&Job>) -> String {
    let name = |j: Option<&Job>| {
        j.map_or_else(
            || "the start".to_owned(),
            |j| job_line(cx, j).map_or_else(|| format!("job {}", j.id), |l| format!("job {} ({l})", j.id)),
        )
    };
    format!("gap between {} and {}", name(before), name(next))
}
