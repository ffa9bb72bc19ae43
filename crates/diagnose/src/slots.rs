//! How many tasks could run at once, over time.

use model::{Application, Metric};

/// Slots as a step function: from each time on, so many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// Time (epoch ms) and slots from then on, ascending.
    pub steps: Vec<(i64, u32)>,
}

impl Slots {
    /// Slots of the executors' cores over `spark.task.cpus`; in local mode those of the driver.
    /// A log without executor events gives the largest number of tasks seen at once.
    #[must_use]
    pub fn of(app: &Application) -> Self {
        let cpus = app.conf("spark.task.cpus").and_then(|v| v.trim().parse().ok()).unwrap_or(1).max(1);
        let workers: Vec<_> = app.executors.iter().filter(|e| e.added && e.cores / cpus > 0).collect();
        let only_driver = workers.iter().all(|e| e.is_driver());
        let mut changes: Vec<(i64, i64)> = Vec::new();
        for executor in workers.into_iter().filter(|e| only_driver || !e.is_driver()) {
            let slots = i64::from(executor.cores / cpus);
            changes.push((executor.added_ms.unwrap_or_default(), slots));
            changes.extend(executor.removed_ms.map(|t| (t, -slots)));
        }
        if changes.is_empty() { Self::from_tasks(app) } else { Self::from_changes(changes).in_time(app) }
    }

    /// Slots that all come after the end of the application have a wrong clock: tasks ran, so the
    /// executors were there from the start.
    fn in_time(self, app: &Application) -> Self {
        let late = self.steps.first().zip(app.end_ms()).is_some_and(|(first, end)| first.0 > end);
        match app.start_ms().filter(|_| late) {
            Some(start) => Self { steps: vec![(start, self.most())] },
            None => self,
        }
    }

    fn from_changes(mut changes: Vec<(i64, i64)>) -> Self {
        changes.sort_unstable();
        let mut steps: Vec<(i64, u32)> = Vec::new();
        let mut now = 0;
        for (time, change) in changes {
            now += change;
            let slots = u32::try_from(now).unwrap_or(0);
            match steps.last_mut() {
                Some(last) if last.0 == time => last.1 = slots,
                _ => steps.push((time, slots)),
            }
        }
        Self { steps }
    }

    fn from_tasks(app: &Application) -> Self {
        let mut events: Vec<(i64, i64)> = Vec::new();
        for stage in &app.stages {
            for row in 0..stage.tasks.len() {
                let (from, to) = (stage.tasks.value(Metric::LaunchMs, row), stage.tasks.value(Metric::FinishMs, row));
                if to > from {
                    events.extend([(from, 1), (to, -1)]);
                }
            }
        }
        events.sort_unstable();
        let begin = events.first().map(|e| e.0);
        let mut running = 0;
        let most = events
            .into_iter()
            .map(|(_, c)| {
                running += c;
                running
            })
            .max()
            .unwrap_or(0);
        Self { steps: begin.map(|t| (t, most as u32)).into_iter().collect() }
    }

    /// Slots at a time.
    #[must_use]
    pub fn at(&self, time_ms: i64) -> u32 {
        match self.steps.partition_point(|s| s.0 <= time_ms) {
            0 => 0,
            n => self.steps[n - 1].1,
        }
    }

    /// Slots × time between two times, ms.
    #[must_use]
    pub fn integral(&self, from_ms: i64, to_ms: i64) -> i64 {
        let mut total = 0;
        let mut at = from_ms;
        let first = self.steps.partition_point(|s| s.0 <= from_ms);
        for &(time, _) in &self.steps[first..] {
            if time >= to_ms {
                break;
            }
            total += i64::from(self.at(at)) * (time - at);
            at = time;
        }
        total + i64::from(self.at(at)) * (to_ms - at).max(0)
    }

    /// Time average between two times.
    #[must_use]
    pub fn average(&self, from_ms: i64, to_ms: i64) -> f64 {
        match to_ms - from_ms {
            0 => f64::from(self.at(from_ms)),
            span => self.integral(from_ms, to_ms) as f64 / span as f64,
        }
    }

    /// Most slots at any time.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.steps.iter().map(|s| s.1).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executors_after_the_end_were_there_from_the_start() {
        let app = Application { started_ms: Some(10), ended_ms: Some(500), ..Application::default() };
        let slots = |added| Slots::from_changes(vec![(added, 8), (added + 2, 8)]).in_time(&app);
        assert_eq!(slots(90_000).steps, [(10, 16)]);
        assert_eq!(slots(20).steps, [(20, 8), (22, 16)]);
    }

    #[test]
    fn a_step_function_with_exact_integrals() {
        let slots = Slots::from_changes(vec![(100, 2), (200, 2), (300, -3)]);
        assert_eq!(slots.steps, [(100, 2), (200, 4), (300, 1)]);
        assert_eq!((slots.at(99), slots.at(100), slots.at(250), slots.at(400)), (0, 2, 4, 1));
        assert_eq!(slots.integral(50, 350), 200 + 400 + 50);
        assert_eq!(slots.integral(150, 160), 20);
        assert_eq!(slots.average(100, 300), 3.0);
    }
}
