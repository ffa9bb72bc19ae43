//! Times in which no task ran.

pub use crate::rules::driver_gap::told;

use crate::run_model::union;
use model::{Application, Metric};

/// A time in which no task ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// From, epoch ms.
    pub from_ms: i64,
    /// To, epoch ms.
    pub to_ms: i64,
    /// Before the first task.
    pub before_all: bool,
    /// After the last task.
    pub after_all: bool,
}

impl Gap {
    /// Length, ms.
    #[must_use]
    pub fn ms(&self) -> i64 {
        self.to_ms - self.from_ms
    }

    /// How much of it lies between two times, ms.
    #[must_use]
    pub fn overlap(&self, from_ms: i64, to_ms: i64) -> i64 {
        (self.to_ms.min(to_ms) - self.from_ms.max(from_ms)).max(0)
    }
}

/// All gaps in time order; none when no task ran at all.
#[must_use]
pub fn of(app: &Application) -> Vec<Gap> {
    let (Some(start), Some(end)) = (app.start_ms(), app.end_ms()) else { return Vec::new() };
    let busy = union(intervals(app, end));
    let (Some(first), Some(last)) = (busy.first(), busy.last()) else { return Vec::new() };
    let mut gaps = vec![Gap { from_ms: start, to_ms: first.0, before_all: true, after_all: false }];
    let inner = busy.windows(2).map(|w| Gap { from_ms: w[0].1, to_ms: w[1].0, before_all: false, after_all: false });
    gaps.extend(inner);
    gaps.push(Gap { from_ms: last.1, to_ms: end, before_all: false, after_all: true });
    gaps.retain(|g| g.ms() > 0);
    gaps
}

/// Task intervals; a task that never ended is busy until its stage, or the log, ends.
fn intervals(app: &Application, end: i64) -> Vec<(i64, i64)> {
    let mut all = Vec::new();
    for stage in &app.stages {
        let open_end = stage.completed_ms.unwrap_or(end);
        for row in 0..stage.tasks.len() {
            let from = stage.tasks.value(Metric::LaunchMs, row);
            let to = match stage.tasks.value(Metric::FinishMs, row) {
                0 => open_end.max(from),
                to => to.max(from),
            };
            if from > 0 {
                all.push((from, to));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Stage, TaskRow};

    #[test]
    fn gaps_before_between_and_after() {
        let mut app = Application { started_ms: Some(1_000), ended_ms: Some(9_000), ..Application::default() };
        let mut stage = Stage::new(0, 0);
        for (from, to) in [(2_000, 3_000), (2_500, 4_000), (6_000, 7_000)] {
            let mut row = TaskRow::new(0);
            row.set(Metric::LaunchMs, from).set(Metric::FinishMs, to);
            stage.tasks.push(row);
        }
        app.stages.push(stage);
        let spans: Vec<_> = of(&app).iter().map(|g| (g.from_ms, g.to_ms, g.before_all, g.after_all)).collect();
        assert_eq!(spans, [(1_000, 2_000, true, false), (4_000, 6_000, false, false), (7_000, 9_000, false, true)]);
        assert_eq!(of(&app)[1].overlap(5_000, 20_000), 1_000);
    }
}
