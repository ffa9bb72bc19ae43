//! What the slow tasks of a stage have in common that the others lack.

use crate::spark_rest::locality;
use diagnose::telling::one_line;
use model::{Application, Bytes, Count, Executor, Factor, Metric, Millis, Share, Stage};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Fewer tasks have nothing in common that says much.
const LEAST_TASKS: usize = 4;
/// A task is slow from this multiple of what its peers take.
const SLOW: f64 = 1.5;
/// More than one in three tasks are not the slow ones: they are the usual ones.
const MOST_SLOW: f64 = 1.0 / 3.0;
/// A value that so much more of the slow tasks have than of the rest tells them apart.
const APART: f64 = 0.4;
/// A figure that the slow tasks have so many times of tells them apart.
const MORE: f64 = 1.5;

/// The slow tasks of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SlowTasks)]
pub(in super::super) struct Slow {
    /// How many there are.
    tasks: usize,
    /// Duration of the shortest of them, ms.
    from_ms: i64,
}

/// Something in which slow tasks differ from the others.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = SlowDifference)]
pub(in super::super) struct Difference {
    /// What differs, e.g. `Host` or `Shuffle read`.
    what: &'static str,
    /// Value of the slow tasks, for people.
    slow: String,
    /// Value of the others, for people.
    rest: String,
    /// How much it tells, 0 to 1.
    score: f64,
}

/// The slow tasks and in what they differ, what tells most first.
pub(in super::super) fn of(app: &Application, stage: &Stage) -> (Option<Slow>, Vec<Difference>) {
    let durations = stage.tasks.values(Metric::DurationMs);
    let (slow, rest) = parts(stage, &durations);
    let Some(from_ms) = slow.iter().map(|&row| durations[row]).min() else { return (None, Vec::new()) };
    let mut found = values(app, stage, &slow, &rest);
    found.extend(figures(stage, &slow, &rest));
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    (Some(Slow { tasks: slow.len(), from_ms }), found)
}

/// Rows of the slow tasks, and of the others that ended well.
fn parts(stage: &Stage, durations: &[i64]) -> (Vec<usize>, Vec<usize>) {
    let rows: Vec<usize> = stage.tasks.successful().collect();
    let usual = stage.quantiles(Metric::DurationMs).peers();
    let limit = (usual as f64 * SLOW) as i64;
    let (slow, rest): (Vec<usize>, Vec<usize>) = rows.iter().partition(|&&row| durations[row] > limit);
    match rows.len() >= LEAST_TASKS && slow.len() as f64 <= rows.len() as f64 * MOST_SLOW {
        true => (slow, rest),
        false => (Vec::new(), rows),
    }
}

/// How many of the slow tasks and of the others have each value.
type Counts<K> = BTreeMap<K, (usize, usize)>;

/// Where they ran and how: one value that most of the slow tasks have and few of the others.
fn values(app: &Application, stage: &Stage, slow: &[usize], rest: &[usize]) -> Vec<Difference> {
    let tasks = &stage.tasks;
    let executors = counted(slow, rest, |row| tasks.executor(row));
    let of_executor = |name: fn(&Executor) -> &str| {
        named(&executors, |&at| app.executors.get(at).map_or_else(String::new, |e| one_line(name(e))))
    };
    let attempt = |&attempt: &u32| match attempt {
        0 => "first".to_owned(),
        n => format!("{}", n + 1),
    };
    let copy = |&is: &bool| if is { "speculative" } else { "not speculative" }.to_owned();
    let of = [
        ("Executor", of_executor(|e| &e.id)),
        ("Host", of_executor(|e| &e.host)),
        ("Locality", named(&counted(slow, rest, |row| locality(tasks.locality(row))), |&name| name.to_owned())),
        ("Attempt", named(&counted(slow, rest, |row| tasks.attempt(row)), attempt)),
        ("Copy", named(&counted(slow, rest, |row| tasks.speculative(row)), copy)),
    ];
    of.into_iter().filter_map(|(what, counts)| commonest(what, counts, slow, rest)).collect()
}

fn counted<K: Ord>(slow: &[usize], rest: &[usize], value: impl Fn(usize) -> K) -> Counts<K> {
    let mut counts = Counts::new();
    slow.iter().for_each(|&row| counts.entry(value(row)).or_default().0 += 1);
    rest.iter().for_each(|&row| counts.entry(value(row)).or_default().1 += 1);
    counts
}

/// The counts by name: of hundreds of thousands of tasks not each is given one.
fn named<K: Ord>(counts: &Counts<K>, name: impl Fn(&K) -> String) -> Counts<String> {
    let mut by_name = Counts::new();
    for (key, (slow, rest)) in counts {
        let both: &mut (usize, usize) = by_name.entry(name(key)).or_default();
        *both = (both.0 + slow, both.1 + rest);
    }
    by_name
}

fn commonest(what: &'static str, counts: Counts<String>, slow: &[usize], rest: &[usize]) -> Option<Difference> {
    let share = |n: usize, of: &[usize]| n as f64 / of.len().max(1) as f64;
    let apart = |(n, m): (usize, usize)| share(n, slow) - share(m, rest);
    let (name, both) = counts.into_iter().max_by(|a, b| apart(a.1).total_cmp(&apart(b.1)))?;
    let score = apart(both);
    // One task alone is somewhere: its executor says something only if others there are slow, too.
    (score >= APART && slow.len() > 1).then(|| Difference {
        what,
        slow: format!("{name}: {} of {}", both.0, slow.len()),
        rest: format!("{} of {}", both.1, rest.len()),
        score,
    })
}

/// Figures beside the duration that stand out.
const FIGURES: [(&str, Metric); 10] = [
    ("Shuffle read", Metric::ShuffleReadBytes),
    ("Shuffle rows", Metric::ShuffleRecordsRead),
    ("Input", Metric::InputBytes),
    ("Input rows", Metric::InputRecords),
    ("Spill to disk", Metric::DiskSpillBytes),
    ("Fetch wait", Metric::FetchWaitMs),
    ("Shuffle written", Metric::ShuffleBytesWritten),
    ("Peak memory", Metric::PeakExecutionBytes),
    ("Scheduler delay", Metric::SchedulerDelayMs),
    ("Deserialization", Metric::DeserializeMs),
];

fn figures(stage: &Stage, slow: &[usize], rest: &[usize]) -> Vec<Difference> {
    let mut found: Vec<Difference> = Vec::new();
    for (what, metric) in FIGURES {
        let values = stage.tasks.values(metric);
        let (of_slow, of_rest) = (median(&values, slow), median(&values, rest));
        if of_slow > 0 && of_slow as f64 >= MORE * of_rest.max(0) as f64 && is_noticed(metric, of_slow) {
            found.push(Difference {
                what,
                slow: format!("{}{}", shown(metric, of_slow), times(of_slow, of_rest)),
                rest: shown(metric, of_rest),
                score: 1.0 - of_rest.max(0) as f64 / of_slow as f64,
            });
        }
    }
    found.extend(gc(stage, slow, rest));
    found
}

/// A time below a tenth of a second, or a few bytes, make no task slow.
fn is_noticed(metric: Metric, value: i64) -> bool {
    match unit(metric) {
        "ms" => value >= 100,
        "bytes" => value >= 1 << 20,
        _ => value >= 1_000,
    }
}

fn gc(stage: &Stage, slow: &[usize], rest: &[usize]) -> Option<Difference> {
    let (gc, run) = (stage.tasks.values(Metric::GcMs), stage.tasks.values(Metric::RunMs));
    let share = |rows: &[usize]| {
        let sum = |values: &[i64]| rows.iter().map(|&row| values[row]).sum::<i64>();
        sum(&gc) as f64 / sum(&run).max(1) as f64
    };
    let (of_slow, of_rest) = (share(slow), share(rest));
    (of_slow >= 0.05 && of_slow >= MORE * of_rest).then(|| Difference {
        what: "Garbage collection",
        slow: Share(of_slow).to_string(),
        rest: Share(of_rest).to_string(),
        score: 1.0 - of_rest / of_slow,
    })
}

fn median(values: &[i64], rows: &[usize]) -> i64 {
    let mut of_rows: Vec<i64> = rows.iter().map(|&row| values[row]).collect();
    model::quantiles(&mut of_rows, [0.5]).unwrap_or_default()[0]
}

fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::FetchWaitMs | Metric::SchedulerDelayMs | Metric::DeserializeMs => "ms",
        Metric::ShuffleRecordsRead | Metric::InputRecords => "rows",
        _ => "bytes",
    }
}

fn shown(metric: Metric, value: i64) -> String {
    match unit(metric) {
        "ms" => Millis(value).to_string(),
        "rows" => Count(value.max(0).unsigned_abs()).to_string(),
        _ => Bytes(value.max(0).unsigned_abs()).to_string(),
    }
}

/// How many times, where there is something to compare with.
fn times(slow: i64, rest: i64) -> String {
    match rest > 0 {
        true => format!(", {}", Factor(slow as f64 / rest as f64)),
        false => String::new(),
    }
}
