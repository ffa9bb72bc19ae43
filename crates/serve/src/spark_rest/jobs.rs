//! `/jobs`: newest first.

use super::errors::Failure;
use super::tasks::killed_by_reason;
use super::times::Time;
use crate::params::Params;
use model::{Application, Job, Stage, StageStatus, TaskStatus};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobData<'a> {
    job_id: u32,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    submission_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_time: Option<Time>,
    stage_ids: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_group: Option<&'a str>,
    job_tags: Vec<&'a str>,
    status: &'static str,
    num_tasks: u64,
    num_active_tasks: usize,
    num_completed_tasks: usize,
    num_skipped_tasks: u64,
    num_failed_tasks: usize,
    num_killed_tasks: usize,
    num_completed_indices: usize,
    num_active_stages: usize,
    num_completed_stages: usize,
    num_skipped_stages: usize,
    num_failed_stages: usize,
    killed_tasks_summary: BTreeMap<String, u64>,
}

impl<'a> JobData<'a> {
    fn of(app: &'a Application, job: &'a Job) -> Self {
        let attempts: Vec<&Stage> = job.stages.iter().flat_map(|&id| super::stages::of_id(app, id)).collect();
        let first = || attempts.iter().filter(|s| s.attempt == 0);
        let skipped = || first().filter(|s| s.status == StageStatus::Skipped);
        let stages = |status| attempts.iter().filter(|s| s.status == status).count();
        let tasks = |status| attempts.iter().map(|s| s.count(status)).sum::<usize>();
        let resubmitted: usize = attempts.iter().map(|s| s.resubmitted as usize).sum();
        let mut killed = BTreeMap::new();
        for stage in &attempts {
            killed_by_reason(&stage.tasks, &mut killed);
        }
        let mut stage_ids = job.stages.clone();
        stage_ids.sort_unstable();
        Self {
            job_id: job.id,
            name: &job.name,
            description: job.description.as_deref(),
            submission_time: job.submitted_ms.map(Time),
            completion_time: job.completed_ms.map(Time),
            stage_ids,
            job_group: job.group.as_deref(),
            job_tags: job.tags.iter().map(|tag| &**tag).collect(),
            status: status(job.status),
            num_tasks: first().map(|s| u64::from(s.num_tasks)).sum(),
            num_active_tasks: tasks(TaskStatus::Running),
            num_completed_tasks: tasks(TaskStatus::Success),
            num_skipped_tasks: skipped().map(|s| u64::from(s.num_tasks)).sum(),
            num_failed_tasks: tasks(TaskStatus::Failed) + resubmitted,
            num_killed_tasks: tasks(TaskStatus::Killed),
            num_completed_indices: attempts.iter().map(|s| super::stages::completed_indices(s)).sum(),
            num_active_stages: stages(StageStatus::Active),
            num_completed_stages: stages(StageStatus::Complete),
            num_skipped_stages: skipped().count(),
            num_failed_stages: stages(StageStatus::Failed),
            killed_tasks_summary: killed,
        }
    }
}

fn status(status: StageStatus) -> &'static str {
    match status {
        StageStatus::Complete => "SUCCEEDED",
        StageStatus::Failed => "FAILED",
        _ => "RUNNING",
    }
}

pub(super) fn list<'a>(app: &'a Application, params: &Params) -> Result<Vec<JobData<'a>>, Failure> {
    let words = [("running", "RUNNING"), ("succeeded", "SUCCEEDED"), ("failed", "FAILED"), ("unknown", "UNKNOWN")];
    let wanted = params.choices("status", &words)?;
    let jobs = app.jobs.iter().rev().filter(|job| wanted.is_empty() || wanted.contains(&status(job.status)));
    Ok(jobs.map(|job| JobData::of(app, job)).collect())
}

pub(super) fn one(app: &Application, id: u32) -> Result<JobData<'_>, Failure> {
    let job = app.job(id).ok_or_else(|| Failure::not_found(format!("unknown job: {id}")))?;
    Ok(JobData::of(app, job))
}
