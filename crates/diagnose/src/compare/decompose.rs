//! Each difference goes to its cause.

use super::pieces::{self, Piece, Pieces};
use super::{Cause, CausePart, ConfigChange, PieceDelta, Place, Side};
use crate::words;
use model::{Bytes, Factor, Finding, Millis, Severity, Stage};
use std::collections::BTreeMap;

/// Time per byte counts as unchanged within this share (4.8).
const SAME_TIME_PER_BYTE: f64 = 0.2;
/// Changes of bytes or slots below this share are noise.
const NOISE: f64 = 0.05;

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
    ledger.add(Cause::Cluster, new.start_ms - base.start_ms, format!("start-up took {start}"), None, None);
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
    let rest = new.rest_ms() - base.rest_ms();
    let text = format!(
        "{}: planning and commit took {} instead of {}",
        new.key,
        Millis(new.rest_ms()),
        Millis(base.rest_ms())
    );
    ledger.add(Cause::Unexplained, rest, text, new.sql, None);
    let paired = base.stages.len() == new.stages.len();
    if !paired {
        let of = |p: &Piece<'_>| p.stages.iter().map(|(_, ms)| ms).sum::<i64>();
        let text = format!("{}: {} stages instead of {}", new.key, new.stages.len(), base.stages.len());
        ledger.add(Cause::Unexplained, of(new) - of(base), text, new.sql, None);
        return;
    }
    for ((before, before_ms), (after, after_ms)) in base.stages.iter().zip(&new.stages) {
        stage(ledger, (before, *before_ms), (after, *after_ms), old, now);
    }
}

fn stage(ledger: &mut Ledger, base: (&Stage, i64), new: (&Stage, i64), old: &Side<'_>, now: &Side<'_>) {
    let ((before, t0), (after, t1)) = (base, new);
    let mut left = t1 - t0;
    let mut take = |ledger: &mut Ledger, cause, ms: i64, text: String| {
        left -= ms;
        ledger.add(cause, ms, text, after.sql, Some(after.id));
        left
    };
    let name = format!("stage {}", after.id);
    let (b0, b1) = (pieces::stage_bytes(before), pieces::stage_bytes(after));
    let growth = b1 as f64 / b0.max(1) as f64;
    let per_byte = t1 as f64 / t0.max(1) as f64 / growth.max(f64::MIN_POSITIVE);
    let mut rest = t1 - t0;
    if b0 > 0 && (growth - 1.0).abs() > NOISE && (per_byte - 1.0).abs() <= SAME_TIME_PER_BYTE {
        let ms = (t0 as f64 * (growth - 1.0)) as i64;
        let text = format!("{name} reads {} instead of {} ({})", Bytes(b1 as u64), Bytes(b0 as u64), Factor(growth));
        rest = take(ledger, Cause::DataGrowth, ms, text);
    }
    if let Some(finding) = appeared(before, after, old, now).filter(|_| rest > 0) {
        take(ledger, Cause::NewFinding, rest, format!("{name}: {}", finding.title));
        return;
    }
    let (s0, s1) = (slots(before, old), slots(after, now));
    if s0 > 0.0 && s1 > 0.0 && (s1 / s0 - 1.0).abs() > 2.0 * NOISE && f64::from(after.num_tasks) > s0.min(s1) {
        let expected = (t0 as f64 * (s0 / s1 - 1.0)) as i64;
        // No more than what is to be explained, and only in its direction.
        let ms =
            if expected.signum() == rest.signum() { expected.signum() * expected.abs().min(rest.abs()) } else { 0 };
        rest = take(ledger, Cause::Cluster, ms, format!("{name} had {s1:.1} slots instead of {s0:.1}"));
    }
    take(ledger, Cause::Unexplained, rest, format!("{name} took {} instead of {}", Millis(t1), Millis(t0)));
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
