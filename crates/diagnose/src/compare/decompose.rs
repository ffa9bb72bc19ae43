//! Each difference goes to its cause.

use super::pieces::{self, Piece, Pieces, Timed};
use super::{Cause, CausePart, ConfigChange, PieceDelta, Place, Side};
use crate::words;
use model::{Bytes, Factor, Finding, Metric, Millis, Severity, Stage};
use std::collections::BTreeMap;

/// Time per byte counts as unchanged within this share (4.8).
const SAME_TIME_PER_BYTE: f64 = 0.2;
/// Changes of bytes or slots below this share are noise.
const NOISE: f64 = 0.05;
/// CPU time counts as the same within this share.
const SAME_CPU: f64 = 0.15;

/// Contributions by cause.
#[derive(Default)]
struct Ledger(BTreeMap<Cause, Vec<Place>>);

impl Ledger {
    fn add(&mut self, cause: Cause, ms: i64, text: impl Into<String>, sql: Option<i64>, stage: Option<u32>) {
        if ms != 0 {
            self.0.entry(cause).or_default().push(Place { ms, text: text.into(), sql, stage });
        }
    }

    fn parts(mut self) -> Vec<CausePart> {
        let parts = Cause::ALL.into_iter().map(|cause| {
            let mut places = self.0.remove(&cause).unwrap_or_default();
            let ms = places.iter().map(|p| p.ms).sum();
            places.sort_by_key(|p| std::cmp::Reverse(p.ms.abs()));
            CausePart { cause, ms, places }
        });
        parts.collect()
    }
}

/// Parts of the difference, and the pieces side by side.
pub fn decompose(old: &Side<'_>, now: &Side<'_>, settings: &[ConfigChange]) -> (Vec<CausePart>, Vec<PieceDelta>) {
    let (base, new) = (pieces::of(old.app), pieces::of(now.app));
    let mut ledger = Ledger::default();
    frame(&mut ledger, &base, &new, now);
    let mut deltas = Vec::new();
    for (b, n) in pieces::pairs(&base.pieces, &new.pieces) {
        let (b, n) = (b.map(|at| &base.pieces[at]), n.map(|at| &new.pieces[at]));
        deltas.push(delta(b, n));
        match (b, n) {
            (Some(b), Some(n)) if b.fingerprint == n.fingerprint => same_plan(&mut ledger, b, n, old, now),
            (Some(b), Some(n)) => changed_plan(&mut ledger, b, n, settings),
            (None, Some(n)) => {
                ledger.add(Cause::PlanChange, n.own_ms, format!("{} is new: {}", n.key, n.name), n.sql, None)
            }
            (Some(b), None) => {
                ledger.add(Cause::PlanChange, -b.own_ms, format!("{} is gone: {}", b.key, b.name), None, None)
            }
            (None, None) => {}
        }
    }
    deltas.sort_by_key(|d| std::cmp::Reverse((d.new_ms - d.base_ms).abs()));
    (ledger.parts(), deltas)
}

/// Start-up, time between pieces and at the end.
fn frame(ledger: &mut Ledger, base: &Pieces<'_>, new: &Pieces<'_>, now: &Side<'_>) {
    let times = |a: i64, b: i64| format!("{} instead of {}", Millis(b), Millis(a));
    let start = times(base.start_ms, new.start_ms);
    ledger.add(Cause::StartUp, new.start_ms - base.start_ms, format!("start-up took {start}"), None, None);
    let gap = now.report.findings.iter().find(|f| f.id == "DRIVER_GAP" && f.severity > Severity::Info);
    let between = new.between_ms - base.between_ms;
    let text = format!("time between queries was {}", times(base.between_ms, new.between_ms));
    match gap.filter(|_| between > 0) {
        Some(gap) => ledger.add(Cause::NewFinding, between, format!("{text}: {}", gap.title), None, None),
        None => ledger.add(Cause::Unexplained, between, text, None, None),
    }
    let after = times(base.after_ms, new.after_ms);
    ledger.add(Cause::Unexplained, new.after_ms - base.after_ms, format!("the end took {after}"), None, None);
}

fn delta(base: Option<&Piece<'_>>, new: Option<&Piece<'_>>) -> PieceDelta {
    PieceDelta {
        name: new.or(base).map(|p| p.name.clone()).unwrap_or_default(),
        base: base.map(|p| p.key.clone()),
        new: new.map(|p| p.key.clone()),
        base_ms: base.map_or(0, |p| p.own_ms),
        new_ms: new.map_or(0, |p| p.own_ms),
        base_bytes: base.map_or(0, Piece::bytes),
        new_bytes: new.map_or(0, Piece::bytes),
        same_plan: base.zip(new).is_some_and(|(b, n)| b.fingerprint == n.fingerprint),
    }
}

/// Another plan under the same description: its whole difference, to the setting that can change
/// plans if one differs.
fn changed_plan(ledger: &mut Ledger, base: &Piece<'_>, new: &Piece<'_>, settings: &[ConfigChange]) {
    let what = plan_change(base, new);
    let by_setting = settings.iter().find(|s| s.changes_plans);
    let (cause, text) = match by_setting {
        Some(s) => (Cause::Configuration, format!("{}: {what} since {s}", new.key)),
        None => (Cause::PlanChange, format!("{}: {what}", new.key)),
    };
    ledger.add(cause, new.own_ms - base.own_ms, text, new.sql, None);
}

/// What a reader should know of two plans: joins that turned into others, exchanges that came.
fn plan_change(base: &Piece<'_>, new: &Piece<'_>) -> String {
    let (Some(old), Some(now)) = (base.plan, new.plan) else { return "other stages".to_owned() };
    let count = |plan: &model::Plan| {
        let mut names: BTreeMap<&'static str, i64> = BTreeMap::new();
        for node in &plan.nodes {
            let name = match &node.op {
                model::Operator::Join(join) => match join.algorithm {
                    model::JoinAlgorithm::SortMerge => "sort-merge join",
                    model::JoinAlgorithm::ShuffledHash => "shuffled hash join",
                    model::JoinAlgorithm::BroadcastHash => "broadcast join",
                    model::JoinAlgorithm::NestedLoop => "nested loop join",
                    model::JoinAlgorithm::Cartesian => "cartesian product",
                },
                model::Operator::Exchange(_) => "shuffle",
                model::Operator::Scan(_) => "scan",
                model::Operator::Python { .. } => "Python step",
                _ => continue,
            };
            *names.entry(name).or_default() += 1;
        }
        names
    };
    let (before, after) = (count(old), count(now));
    let names: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let changes: Vec<String> = names
        .into_iter()
        .filter_map(|name| {
            let (a, b) = (before.get(name).copied().unwrap_or(0), after.get(name).copied().unwrap_or(0));
            (a != b).then(|| format!("{} instead of {}", words::count(b as u64, name), words::number(a as u64)))
        })
        .collect();
    if changes.is_empty() { "other keys or tables in the plan".to_owned() } else { changes.join(", ") }
}

/// The same plan: stage by stage in order; what is outside stages is planning and commit.
fn same_plan(ledger: &mut Ledger, base: &Piece<'_>, new: &Piece<'_>, old: &Side<'_>, now: &Side<'_>) {
    let (was, is) = (base.rest_ms(), new.rest_ms());
    let what = if new.sql.is_some() { "planning and commit" } else { "time outside stages" };
    let text = format!("{}: {what} took {} instead of {}", new.key, Millis(is), Millis(was));
    ledger.add(Cause::Unexplained, is - was, text, new.sql, None);
    repeated(ledger, base, new);
    if base.stages.len() != new.stages.len() {
        let of = |p: &Piece<'_>| p.stages.iter().map(|(_, ms)| ms).sum::<i64>();
        let text = format!("{}: {} stages instead of {}", new.key, new.stages.len(), base.stages.len());
        ledger.add(Cause::Unexplained, of(new) - of(base), text, new.sql, None);
        return;
    }
    for (before, after) in side_by_side(&base.stages, &new.stages) {
        let again = |piece: &Piece<'_>, id| piece.repeats.iter().any(|(stage, _)| stage.id == id);
        let whole = !again(base, before.0.id) && !again(new, after.0.id);
        let pair = Pair { before: before.0, after: after.0, was_ms: before.1, is_ms: after.1, whole };
        stage(ledger, &pair, old, now);
    }
}

/// Stages of one plan in pairs: the same action, then the nearest number of rows, then the order.
/// Stages that run side by side have their ids by chance.
fn side_by_side<'s>(base: &[Timed<'s>], new: &[Timed<'s>]) -> Vec<(Timed<'s>, Timed<'s>)> {
    let mut left: Vec<(usize, Timed<'_>)> = new.iter().copied().enumerate().collect();
    let mut pairs = Vec::with_capacity(base.len());
    for (at, before) in base.iter().enumerate() {
        let name = |stage: &Stage| stage.name.split(" at ").next().unwrap_or_default().to_owned();
        let distance = |(index, (after, _)): &(usize, Timed<'_>)| {
            let rows = (pieces::stage_rows(after) - pieces::stage_rows(before.0)).abs();
            (name(after) != name(before.0), rows, index.abs_diff(at))
        };
        let nearest = left.iter().enumerate().min_by_key(|(_, one)| distance(one)).map(|(position, _)| position);
        let Some(position) = nearest else { break };
        pairs.push((*before, left.remove(position).1));
    }
    pairs
}

/// Stages that had to run again: what they held is a finding of that run.
fn repeated(ledger: &mut Ledger, base: &Piece<'_>, new: &Piece<'_>) {
    for (piece, sign, where_) in [(base, -1, " in the baseline"), (new, 1, "")] {
        for (stage, ms) in &piece.repeats {
            let text = format!(
                "stage {} ran in more than one attempt{where_}: attempt {} took {}",
                stage.id,
                stage.attempt,
                Millis(*ms)
            );
            ledger.add(Cause::NewFinding, sign * ms, text, new.sql, Some(stage.id));
        }
    }
}

/// A stage of both runs with its share of the wall time.
struct Pair<'s> {
    before: &'s Stage,
    after: &'s Stage,
    was_ms: i64,
    is_ms: i64,
    /// Whether neither ran in several attempts: else each holds a part of the work only.
    whole: bool,
}

fn stage(ledger: &mut Ledger, pair: &Pair<'_>, old: &Side<'_>, now: &Side<'_>) {
    let after = pair.after;
    let mut rest = pair.is_ms - pair.was_ms;
    let take = |ledger: &mut Ledger, cause, found: Option<(i64, String)>| {
        let Some((ms, text)) = found else { return 0 };
        ledger.add(cause, ms, text, after.sql, Some(after.id));
        ms
    };
    rest -= take(ledger, Cause::DataGrowth, growth(pair));
    rest -= take(ledger, Cause::NewFinding, new_finding(pair, rest, old, now));
    rest -= take(ledger, Cause::Cluster, fewer_slots(pair, rest, old, now));
    rest -= take(ledger, Cause::Contention, waiting(pair, rest));
    take(ledger, Cause::Unexplained, Some((rest, took(pair))));
}

/// What a stage took of the run, said so that it is true beside other stages too.
fn took(pair: &Pair<'_>) -> String {
    let (id, was, is) = (pair.after.id, Millis(pair.was_ms), Millis(pair.is_ms));
    let alone = |stage: &Stage, ms: i64| (stage.span_ms().map_or(0, |(from, to)| to - from) - ms).abs() < 100;
    match alone(pair.before, pair.was_ms) && alone(pair.after, pair.is_ms) {
        true => format!("stage {id} took {is} instead of {was}"),
        false => format!("stage {id} took {is} of the run instead of {was}, time beside other stages shared with them"),
    }
}

/// More bytes at the same time for each, unless the rows show that the data is the same: some
/// versions of Spark do not count all the bytes that they read.
fn growth(pair: &Pair<'_>) -> Option<(i64, String)> {
    let (b0, b1) = (pieces::stage_bytes(pair.before), pieces::stage_bytes(pair.after));
    let (r0, r1) = (pieces::stage_rows(pair.before), pieces::stage_rows(pair.after));
    let same_rows = r0 > 0 && r1 > 0 && (r1 as f64 / r0 as f64 - 1.0).abs() <= NOISE;
    let growth = b1 as f64 / b0.max(1) as f64;
    let per_byte = pair.is_ms as f64 / pair.was_ms.max(1) as f64 / growth.max(f64::MIN_POSITIVE);
    if !pair.whole
        || b0 <= 0
        || same_rows
        || (growth - 1.0).abs() <= NOISE
        || (per_byte - 1.0).abs() > SAME_TIME_PER_BYTE
    {
        return None;
    }
    let ms = (pair.was_ms as f64 * (growth - 1.0)) as i64;
    let (is, was) = (Bytes(b1.unsigned_abs()), Bytes(b0.unsigned_abs()));
    Some((ms, format!("stage {} reads {is} instead of {was} ({})", pair.after.id, Factor(growth))))
}

/// A finding at the stage that the baseline lacks, with no more than the time that it costs.
fn new_finding(pair: &Pair<'_>, rest: i64, old: &Side<'_>, now: &Side<'_>) -> Option<(i64, String)> {
    let finding = appeared(pair.before, pair.after, old, now).filter(|_| rest > 0)?;
    let most = finding.estimate.as_ref().map_or(rest, |estimate| estimate.saved_ms_high.max(0));
    let ms = rest.min(most);
    (ms > 0).then(|| (ms, format!("stage {}: {}", pair.after.id, finding.title)))
}

fn fewer_slots(pair: &Pair<'_>, rest: i64, old: &Side<'_>, now: &Side<'_>) -> Option<(i64, String)> {
    let (s0, s1) = (slots(pair.before, old), slots(pair.after, now));
    if s0 <= 0.0 || s1 <= 0.0 || (s1 / s0 - 1.0).abs() <= 2.0 * NOISE {
        return None;
    }
    if f64::from(pair.after.num_tasks) <= s0.min(s1) {
        return None;
    }
    let expected = (pair.was_ms as f64 * (s0 / s1 - 1.0)) as i64;
    // No more than what is to be explained, and only in its direction.
    let ms = within(expected, rest)?;
    Some((ms, format!("stage {} had {s1:.1} slots instead of {s0:.1}", pair.after.id)))
}

/// The same CPU time and another run time: tasks waited for the machine, its disk or its network.
fn waiting(pair: &Pair<'_>, rest: i64) -> Option<(i64, String)> {
    let sums = |stage: &Stage| (stage.sum(Metric::RunMs), stage.sum(Metric::CpuMs));
    let ((run0, cpu0), (run1, cpu1)) = (sums(pair.before), sums(pair.after));
    let same_cpu = pair.whole && cpu0 > 0 && (cpu1 as f64 / cpu0 as f64 - 1.0).abs() <= SAME_CPU;
    if !same_cpu || run0 <= 0 {
        return None;
    }
    let expected = (pair.was_ms as f64 * ((run1 - cpu1) - (run0 - cpu0)) as f64 / run0 as f64) as i64;
    let ms = within(expected, rest)?;
    let (id, was, is) = (pair.after.id, Millis(run0), Millis(run1));
    Some((ms, format!("stage {id}: its tasks ran {is} instead of {was} for the same CPU time, {}", Millis(cpu1))))
}

/// What is expected, no more than what is to be explained, and only in its direction.
fn within(expected: i64, rest: i64) -> Option<i64> {
    let ms = expected.signum() * expected.abs().min(rest.abs());
    (ms != 0 && expected.signum() == rest.signum()).then_some(ms)
}

fn slots(stage: &Stage, side: &Side<'_>) -> f64 {
    stage.span_ms().map_or(0.0, |(from, to)| side.slots.average(from, to))
}

/// The worst finding at a stage whose id its counterpart lacks.
fn appeared<'a>(before: &Stage, after: &Stage, old: &Side<'_>, now: &'a Side<'_>) -> Option<&'a Finding> {
    let at = |f: &&Finding, s: &Stage| f.scope.stage == Some(s.id) && f.scope.attempt.unwrap_or(0) == s.attempt;
    let had: Vec<&str> = old.report.findings.iter().filter(|f| at(f, before)).map(|f| f.id.as_str()).collect();
    now.report.findings.iter().find(|f| at(f, after) && f.severity > Severity::Info && !had.contains(&f.id.as_str()))
}
