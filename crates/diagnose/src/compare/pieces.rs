//! The wall time of a run in pieces that add up to it.

use model::{Application, Metric, Plan, Stage};
use std::collections::HashMap;

/// A stage with its part of the wall time, ms.
pub type Timed<'a> = (&'a Stage, i64);

/// Start-up, pieces, what is between them, and the end: together the wall time.
pub struct Pieces<'a> {
    /// From the start of the application to the first piece, ms.
    pub start_ms: i64,
    /// SQL executions and jobs outside SQL, in order.
    pub pieces: Vec<Piece<'a>>,
    /// Between pieces, ms.
    pub between_ms: i64,
    /// After the last piece, ms.
    pub after_ms: i64,
}

/// A SQL execution, or a job outside SQL.
pub struct Piece<'a> {
    /// `SQL 3`, `job 7`.
    pub key: String,
    /// SQL execution.
    pub sql: Option<i64>,
    /// Description.
    pub name: String,
    /// Its plan.
    pub plan: Option<&'a Plan>,
    /// Fingerprint of the plan, or of the stage names of a job.
    pub fingerprint: u64,
    /// Wall time that is its own: time shared with an earlier piece counts there, ms.
    pub own_ms: i64,
    /// Its stages that ran, by id, with their part of `own_ms`: time in which several run is
    /// shared evenly among them. An attempt that was repeated stands in `repeats`.
    pub stages: Vec<Timed<'a>>,
    /// Attempts of the same stages other than the largest one, with their part of `own_ms`.
    pub repeats: Vec<Timed<'a>>,
}

impl Piece<'_> {
    /// Bytes that its stages read from files and shuffles.
    #[must_use]
    pub fn bytes(&self) -> i64 {
        self.stages.iter().map(|(s, _)| stage_bytes(s)).sum()
    }

    /// Own time outside its stages: planning, listing, commit, ms.
    #[must_use]
    pub fn rest_ms(&self) -> i64 {
        self.own_ms - self.stages.iter().chain(&self.repeats).map(|(_, ms)| ms).sum::<i64>()
    }
}

/// Bytes that a stage read from files and shuffles.
#[must_use]
pub fn stage_bytes(stage: &Stage) -> i64 {
    stage.sum(Metric::InputBytes) + stage.sum(Metric::ShuffleReadBytes)
}

/// Rows that a stage read from files and shuffles.
#[must_use]
pub fn stage_rows(stage: &Stage) -> i64 {
    stage.sum(Metric::InputRecords) + stage.sum(Metric::ShuffleRecordsRead)
}

/// Cuts a run into pieces.
#[must_use]
pub fn of(app: &Application) -> Pieces<'_> {
    let (start, end) = (app.start_ms().unwrap_or(0), app.end_ms().unwrap_or(0));
    let mut spans = spans(app);
    spans.sort_by_key(|s| (s.from, s.to));
    let mut at = start;
    let mut cut = Pieces { start_ms: 0, pieces: Vec::new(), between_ms: 0, after_ms: 0 };
    for span in spans {
        let (from, to) = (span.from.clamp(at, end), span.to.clamp(at, end));
        match cut.pieces.is_empty() {
            true => cut.start_ms += from - at,
            false => cut.between_ms += from - at,
        }
        cut.pieces.push(piece(app, span, from, to));
        at = to;
    }
    cut.after_ms = end - at;
    cut
}

struct Span {
    sql: Option<usize>,
    job: Option<usize>,
    from: i64,
    to: i64,
}

/// SQL executions that are roots, and jobs that belong to none.
fn spans(app: &Application) -> Vec<Span> {
    let end = app.end_ms().unwrap_or(0);
    let roots = app.sql.iter().enumerate().filter(|(_, s)| s.root_id.is_none_or(|r| r == s.id || app.sql(r).is_none()));
    let sql = roots.filter_map(|(at, s)| {
        Some(Span { sql: Some(at), job: None, from: s.started_ms?, to: s.ended_ms.unwrap_or(end) })
    });
    let jobs = app.jobs.iter().enumerate().filter(|(_, j)| j.sql.is_none_or(|id| app.sql(id).is_none()));
    let jobs = jobs.filter_map(|(at, j)| {
        Some(Span { sql: None, job: Some(at), from: j.submitted_ms?, to: j.completed_ms.unwrap_or(end) })
    });
    sql.chain(jobs).collect()
}

fn piece(app: &Application, span: Span, from: i64, to: i64) -> Piece<'_> {
    let sql = span.sql.map(|at| &app.sql[at]);
    let job = span.job.map(|at| &app.jobs[at]);
    let mut stages: Vec<&Stage> = app
        .stages
        .iter()
        .filter(|s| match (sql, job) {
            (Some(sql), _) => {
                s.sql.is_some_and(|id| id == sql.id || app.sql(id).and_then(|x| x.root_id) == Some(sql.id))
            }
            (_, Some(job)) => s.jobs.first() == Some(&job.id),
            _ => false,
        })
        .filter(|s| s.span_ms().is_some())
        .collect();
    stages.sort_by_key(|s| (s.id, s.attempt));
    let (stages, repeats) = without_repeats(own_times(&stages, from, to));
    Piece {
        key: match (sql, job) {
            (Some(sql), _) => format!("SQL {}", sql.id),
            (_, job) => format!("job {}", job.map_or(0, |j| j.id)),
        },
        sql: sql.map(|s| s.id),
        name: sql.map(|s| s.description.to_string()).or_else(|| job.map(|j| j.name.to_string())).unwrap_or_default(),
        plan: sql.map(|s| s.plan()),
        fingerprint: sql.map_or_else(|| of_names(&stages), |s| s.plan().fingerprint()),
        own_ms: to - from,
        stages,
        repeats,
    }
}

/// Wall time of each stage, time in which several run shared evenly among them: the parts add up to
/// the time in which any runs.
fn own_times<'a>(stages: &[&'a Stage], from: i64, to: i64) -> Vec<Timed<'a>> {
    let span = |stage: &Stage| {
        let (begin, end) = stage.span_ms().unwrap_or((from, from));
        (begin.clamp(from, to), end.clamp(from, to))
    };
    let spans: Vec<(i64, i64)> = stages.iter().map(|stage| span(stage)).collect();
    let mut edges: Vec<i64> = spans.iter().flat_map(|(begin, end)| [*begin, *end]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut own = vec![0; stages.len()];
    for edge in edges.windows(2) {
        let running: Vec<usize> =
            (0..spans.len()).filter(|at| spans[*at].0 <= edge[0] && spans[*at].1 >= edge[1]).collect();
        let Some(n) = i64::try_from(running.len()).ok().filter(|n| *n > 0) else { continue };
        let (each, left) = ((edge[1] - edge[0]) / n, (edge[1] - edge[0]) % n);
        for (i, at) in running.into_iter().enumerate() {
            own[at] += each + i64::from((i as i64) < left);
        }
    }
    stages.iter().copied().zip(own).collect()
}

/// Splits off attempts of a stage beside the one with most tasks, so that a run with a lost
/// executor still stands beside one without.
fn without_repeats(all: Vec<Timed<'_>>) -> (Vec<Timed<'_>>, Vec<Timed<'_>>) {
    let (mut stages, mut repeats): (Vec<Timed<'_>>, Vec<Timed<'_>>) = (Vec::new(), Vec::new());
    for one in all {
        match stages.last_mut() {
            Some(last) if last.0.id == one.0.id && one.0.tasks.len() > last.0.tasks.len() => {
                repeats.push(std::mem::replace(last, one));
            }
            Some(last) if last.0.id == one.0.id => repeats.push(one),
            _ => stages.push(one),
        }
    }
    (stages, repeats)
}

/// Stage names without their call sites: `sum at report.py:38` is the same work in another line.
fn of_names(stages: &[(&Stage, i64)]) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hash = std::hash::DefaultHasher::new();
    stages.iter().for_each(|(s, _)| s.name.split(" at ").next().hash(&mut hash));
    hash.finish()
}

/// Pairs pieces: equal plans with equal descriptions first, then equal plans, then equal
/// descriptions, each in order. Unmatched ones of either side stand alone.
#[must_use]
pub fn pairs(base: &[Piece<'_>], new: &[Piece<'_>]) -> Vec<(Option<usize>, Option<usize>)> {
    let mut partner: Vec<Option<usize>> = vec![None; new.len()];
    let mut taken = vec![false; base.len()];
    pair_by(base, new, &mut partner, &mut taken, |p| format!("{} {}", p.fingerprint, p.name));
    pair_by(base, new, &mut partner, &mut taken, |p| p.fingerprint.to_string());
    pair_by(base, new, &mut partner, &mut taken, |p| p.name.clone());
    let mut pairs: Vec<_> = partner.into_iter().enumerate().map(|(n, b)| (b, Some(n))).collect();
    pairs.extend(taken.iter().enumerate().filter(|(_, t)| !**t).map(|(b, _)| (Some(b), None)));
    pairs
}

fn pair_by(
    base: &[Piece<'_>],
    new: &[Piece<'_>],
    partner: &mut [Option<usize>],
    taken: &mut [bool],
    key: impl Fn(&Piece<'_>) -> String,
) {
    let mut free: HashMap<String, std::collections::VecDeque<usize>> = HashMap::new();
    for (at, piece) in base.iter().enumerate().filter(|(at, _)| !taken[*at]) {
        free.entry(key(piece)).or_default().push_back(at);
    }
    for (at, piece) in new.iter().enumerate() {
        if partner[at].is_some() {
            continue;
        }
        let Some(found) = free.get_mut(&key(piece)).and_then(std::collections::VecDeque::pop_front) else { continue };
        partner[at] = Some(found);
        taken[found] = true;
    }
}
