//! Triggers that wait for runs of other jobs.
//!
//! With several jobs, each of them has to have ended as wanted once more before the next run: of a
//! job that did so twice the later run counts. The rules are those of the public documentation of
//! job completion triggers.

use super::Fired;
use crate::settings::whole;
use crate::states::Code;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Most jobs that a trigger waits for.
pub const MOST_JOBS: usize = 10;

/// How the runs have to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum IfStatus {
    /// With success, that with failures in it included.
    #[default]
    Success,
    /// In any other way: a run that was cancelled or skipped counts, as its code is none of success.
    Failed,
    /// However.
    Done,
}

impl IfStatus {
    /// Whether a run ended so, by the code of its termination.
    #[must_use]
    pub fn is_met_by(self, code: &str) -> bool {
        let is_good = [Code::Success, Code::SuccessWithFailures].iter().any(|good| good.word() == code);
        match self {
            Self::Success => is_good,
            Self::Failed => !is_good,
            Self::Done => true,
        }
    }
}

/// What a trigger waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Runs of all these jobs.
    pub jobs: Vec<i64>,
    /// That end so.
    pub if_status: IfStatus,
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completed {
    /// Of which job.
    pub job_id: i64,
    /// Which.
    pub run_id: i64,
    /// `termination_code`.
    pub code: String,
    /// When, epoch ms.
    pub end_ms: i64,
}

/// What is known of a job that is waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitored {
    /// Its last run that ended as wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Completed>,
    /// Whether no run was started for that one.
    #[serde(default)]
    pub is_new: bool,
    /// Code of its latest run, where that ended in another way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
}

/// How a trigger stands: what it has to know when it goes on after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completions {
    /// In the order of the trigger's jobs.
    pub jobs: Vec<Monitored>,
    /// The last time that it fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fired: Option<Fired>,
}

impl Completions {
    /// Of a new trigger: runs that are over by now do not count.
    #[must_use]
    pub fn new(rules: &Rules) -> Self {
        Self { jobs: vec![Monitored::default(); rules.jobs.len()], fired: None }
    }

    /// As it was kept; a new one where that is of another trigger.
    #[must_use]
    pub fn restored(kept: &str, rules: &Rules) -> Self {
        let kept = serde_json::from_str(kept).ok();
        kept.filter(|kept: &Self| kept.jobs.len() == rules.jobs.len()).unwrap_or_else(|| Self::new(rules))
    }

    /// A run of one of the jobs is over. Gives the runs that a run is due for, if one is.
    pub fn take(&mut self, rules: &Rules, completed: &Completed) -> Option<Vec<Completed>> {
        let of_job = rules.jobs.iter().zip(&mut self.jobs).find(|(job_id, _)| **job_id == completed.job_id);
        let (_, monitored) = of_job?;
        if !rules.if_status.is_met_by(&completed.code) {
            monitored.other = Some(completed.code.clone());
            return None;
        }
        *monitored = Monitored { last: Some(completed.clone()), is_new: true, other: None };
        let all = self.jobs.iter().map(|job| job.last.clone().filter(|_| job.is_new)).collect();
        if Option::is_some(&all) {
            self.jobs.iter_mut().for_each(|job| job.is_new = false);
        }
        all
    }

    /// A run was started for them, or could not be.
    pub fn fire(&mut self, now_ms: i64, run_id: Option<i64>) {
        self.fired = Some(Fired { at_ms: now_ms, run_id });
    }
}

/// Jobs by their ids, and what each leads to: which it runs by a task, after which it runs.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    of_job: BTreeMap<i64, Way>,
}

#[derive(Clone, Debug, Default)]
struct Way {
    runs: Vec<i64>,
    after: Vec<i64>,
}

impl Ways {
    /// Takes up a job as it is defined now; `null`: there is none any more. A trigger that is paused
    /// counts, it can be switched on without anything else being changed.
    pub fn set(&mut self, job_id: i64, settings: &Value) {
        let (mut runs, after) = (Vec::new(), monitored(settings));
        settings["tasks"].as_array().into_iter().flatten().for_each(|task| add_children(task, &mut runs));
        match runs.is_empty() && after.is_empty() {
            true => drop(self.of_job.remove(&job_id)),
            false => drop(self.of_job.insert(job_id, Way { runs, after })),
        }
    }

    /// A circle in which the end of a job starts it again, from the job and back to it; tasks that run
    /// jobs are ways, too. Circles of such tasks alone are none: they are refused when they run.
    #[must_use]
    pub fn circle(&self, job_id: i64) -> Option<Vec<i64>> {
        let mut next: BTreeMap<i64, Vec<(i64, bool)>> = BTreeMap::new();
        for (&job, way) in &self.of_job {
            next.entry(job).or_default().extend(way.runs.iter().map(|child| (*child, false)));
            for upstream in &way.after {
                next.entry(*upstream).or_default().push((job, true));
            }
        }
        // A place is a job, and whether a trigger is on the way to it.
        let (begin, end) = ((job_id, false), (job_id, true));
        let mut from = BTreeMap::from([(begin, begin)]);
        let mut todo = VecDeque::from([begin]);
        while let Some((job, by_trigger)) = todo.pop_front() {
            for (to, is_trigger) in next.get(&job).into_iter().flatten() {
                let to = (*to, by_trigger || *is_trigger);
                from.entry(to).or_insert_with(|| {
                    todo.push_back(to);
                    (job, by_trigger)
                });
            }
        }
        from.get(&end)?;
        let mut circle = vec![end.0];
        let mut at = end;
        while at != begin {
            at = *from.get(&at)?;
            circle.push(at.0);
        }
        circle.reverse();
        Some(circle)
    }
}

/// Jobs after whose runs a job runs, whether its trigger is paused or not.
pub(crate) fn monitored(settings: &Value) -> Vec<i64> {
    let jobs = settings["trigger"]["job_completion"]["jobs"].as_array();
    let ids: BTreeSet<i64> = jobs.into_iter().flatten().filter_map(|job| whole(&job["job_id"])).collect();
    ids.into_iter().collect()
}

fn add_children(task: &Value, to: &mut Vec<i64>) {
    to.extend(whole(&task["run_job_task"]["job_id"]));
    if let Some(each) = task.get("for_each_task").and_then(|each| each.get("task")) {
        to.extend(whole(&each["run_job_task"]["job_id"]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_jobs_have_to_end_as_wanted_once_more() {
        use IfStatus::{Done, Failed, Success};
        let (good, bad) = ("SUCCESS", "RUN_EXECUTION_ERROR");
        for (what, if_status, runs, expected) in [
            ("one job, each run", Success, vec![(1, good), (1, "SUCCESS_WITH_FAILURES")], vec!["1", "2"]),
            ("of a failure nothing", Success, vec![(1, bad), (1, "USER_CANCELED")], vec![]),
            ("failures", Failed, vec![(1, bad), (1, good), (1, "USER_CANCELED")], vec!["1", "3"]),
            ("skipped runs are no success", Failed, vec![(1, "MAX_CONCURRENT_RUNS_EXCEEDED")], vec!["1"]),
            ("any", Done, vec![(1, bad), (1, good)], vec!["1", "2"]),
            ("another job", Done, vec![(9, good)], vec![]),
        ] {
            assert_eq!(fires(&[1], if_status, &runs), expected, "{what}");
        }
        for (what, runs, expected) in [
            ("both", vec![(1, good), (2, good)], vec!["1 2"]),
            ("the later run of one counts", vec![(1, good), (1, good), (2, good)], vec!["2 3"]),
            ("then both again", vec![(2, good), (1, good), (1, good), (1, bad), (2, good)], vec!["2 1", "3 5"]),
        ] {
            assert_eq!(fires(&[1, 2], Success, &runs), expected, "{what}");
        }
    }

    /// Runs are numbered from 1; gives those that each run follows. What is known is kept and
    /// restored after each.
    fn fires(jobs: &[i64], if_status: IfStatus, runs: &[(i64, &str)]) -> Vec<String> {
        let rules = Rules { jobs: jobs.to_vec(), if_status };
        let mut completions = Completions::new(&rules);
        let mut fired = Vec::new();
        for (nth, (job_id, code)) in runs.iter().enumerate() {
            let completed = Completed { job_id: *job_id, run_id: nth as i64 + 1, code: (*code).to_owned(), end_ms: 0 };
            let due = completions.take(&rules, &completed);
            fired.extend(due.map(|due| {
                let runs: Vec<String> = due.iter().map(|completed| completed.run_id.to_string()).collect();
                runs.join(" ")
            }));
            completions = Completions::restored(&serde_json::to_string(&completions).unwrap(), &rules);
        }
        fired
    }

    #[test]
    fn circles_are_found_through_triggers_and_tasks() {
        let after = |ids: &[i64]| {
            let jobs: Vec<Value> = ids.iter().map(|id| json!({ "job_id": id })).collect();
            json!({ "trigger": { "pause_status": "PAUSED", "job_completion": { "jobs": jobs } } })
        };
        let runs = |id: i64| json!({ "tasks": [{ "task_key": "a", "run_job_task": { "job_id": id.to_string() } }] });
        let runs_each =
            |id: i64| json!({ "tasks": [{ "for_each_task": { "task": { "run_job_task": { "job_id": id } } } }] });
        for (what, jobs, expected) in [
            ("itself", vec![(1, after(&[1]))], Some(vec![1, 1])),
            ("two", vec![(1, after(&[2])), (2, after(&[3, 1]))], Some(vec![1, 2, 1])),
            ("a chain", vec![(1, after(&[2])), (2, after(&[3])), (3, after(&[4]))], None),
            ("a diamond", vec![(1, after(&[2, 3])), (2, after(&[4])), (3, after(&[4]))], None),
            ("after a job that it runs", vec![(2, after(&[1])), (1, runs(3)), (3, runs_each(1))], None),
            (
                "after its own child",
                vec![(1, json!({ "trigger": after(&[2])["trigger"], "tasks": runs(2)["tasks"] }))],
                Some(vec![1, 2, 1]),
            ),
            (
                "through a child",
                vec![
                    (1, runs_each(2)),
                    (2, json!({})),
                    (3, after(&[2])),
                    (4, after(&[3])),
                    (5, runs(1)),
                    (1, json!({ "trigger": after(&[4])["trigger"], "tasks": runs(2)["tasks"] })),
                ],
                Some(vec![1, 2, 3, 4, 1]),
            ),
            ("tasks alone", vec![(1, runs(2)), (2, runs(1))], None),
            ("no more", vec![(1, after(&[2])), (2, after(&[1])), (2, Value::Null)], None),
        ] {
            let mut ways = Ways::default();
            jobs.iter().for_each(|(job_id, settings)| ways.set(*job_id, settings));
            assert_eq!(ways.circle(1), expected, "{what}");
        }
    }
}
