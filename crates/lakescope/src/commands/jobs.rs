//! `lakescope jobs`: jobs and their runs on a server, with the words of the Databricks command line.

use super::apply;
use super::follow::{Watch, is_final, state, took};
use super::remote::{self, Column, Form, Remote, Server, body, show, show_list, text};
use crate::cli::Global;
use crate::definitions;
use crate::output;
use anyhow::{Result, bail};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  lakescope jobs create --json @night.json
  lakescope jobs apply night.yml --dry-run
  lakescope jobs run-now 7 --param day=2026-11-30 --follow
  lakescope jobs list-runs --job-id 7 --limit 5 -o json
  lakescope jobs get-run-output 4711
  lakescope jobs repair-run 42 --rerun-all-failed-tasks

run-now, submit, repair-run and cancel-run wait for the end of the run; --no-wait does not, --follow
shows its tasks and what they write.
Exit codes: 0 the run went well, 1 it did not, 2 the command could not be done.";

/// Options of the command.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub action: Action,
    /// Which server.
    #[command(flatten)]
    pub remote: Remote,
}

/// What can be done with jobs and runs.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Give the server what files define: makes jobs that are not there, changes those that differ.
    Apply(apply::Args),
    /// Say what is wrong with files that define jobs, without a server.
    Validate(definitions::Options),
    /// Make a job; prints its id.
    Create(Json),
    /// Show a job.
    Get {
        /// Its id.
        job_id: i64,
    },
    /// List jobs, the newest first.
    List {
        /// Only jobs of this name.
        #[arg(long)]
        name: Option<String>,
        /// Most jobs.
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// With their tasks.
        #[arg(long)]
        expand_tasks: bool,
    },
    /// Change parts of a job: the fields of new_settings, fields_to_remove.
    Update {
        /// Its id.
        job_id: i64,
        /// What changes.
        #[command(flatten)]
        json: Json,
    },
    /// Replace the whole definition of a job by new_settings.
    Reset {
        /// Its id.
        job_id: i64,
        /// The new definition.
        #[command(flatten)]
        json: Json,
    },
    /// Delete a job; its runs stay.
    Delete {
        /// Its id.
        job_id: i64,
    },
    /// Run a job and wait for its end.
    RunNow {
        /// Its id.
        job_id: i64,
        /// A job parameter; may be given several times.
        #[arg(long = "param", value_name = "NAME=VALUE")]
        params: Vec<String>,
        /// Only these tasks: KEY, +KEY with all upstream, KEY+ with all downstream.
        #[arg(long, value_name = "KEY", value_delimiter = ',')]
        only: Vec<String>,
        /// The same token, the same run.
        #[arg(long, value_name = "TOKEN")]
        idempotency_token: Option<String>,
        /// More fields of the request.
        #[command(flatten)]
        json: Json,
        /// Whether to wait.
        #[command(flatten)]
        wait: Wait,
    },
    /// Run something once, without a job, and wait for its end.
    Submit {
        /// What to run.
        #[command(flatten)]
        json: Json,
        /// Whether to wait.
        #[command(flatten)]
        wait: Wait,
    },
    /// Show a run, or a task run.
    GetRun {
        /// Its id.
        run_id: i64,
        /// With its repairs.
        #[arg(long)]
        include_history: bool,
        /// With what the references in its settings stood for.
        #[arg(long)]
        include_resolved_values: bool,
    },
    /// List runs, the latest first.
    ListRuns {
        /// Only runs of this job.
        #[arg(long, value_name = "ID")]
        job_id: Option<i64>,
        /// Most runs.
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// Only those that are not over.
        #[arg(long, conflicts_with = "completed_only")]
        active_only: bool,
        /// Only those that are over.
        #[arg(long)]
        completed_only: bool,
        /// With their tasks.
        #[arg(long)]
        expand_tasks: bool,
        /// JOB_RUN, SUBMIT_RUN or WORKFLOW_RUN.
        #[arg(long, value_name = "TYPE")]
        run_type: Option<String>,
        /// Started at this time or later, epoch ms.
        #[arg(long, value_name = "MS")]
        start_time_from: Option<i64>,
        /// Started at this time or before, epoch ms.
        #[arg(long, value_name = "MS")]
        start_time_to: Option<i64>,
    },
    /// Show the tasks of a run and what they write until it is over.
    Follow {
        /// Its id.
        run_id: i64,
        /// Most minutes to wait.
        #[arg(long, value_name = "MINUTES", default_value_t = 1_440)]
        timeout: u64,
    },
    /// Show what a task run wrote and what went wrong.
    GetRunOutput {
        /// Id of the task run.
        run_id: i64,
    },
    /// Run failed or named tasks of a run again and wait for its end.
    RepairRun {
        /// Its id.
        run_id: i64,
        /// All tasks that failed, and those that were not started for it.
        #[arg(long)]
        rerun_all_failed_tasks: bool,
        /// These tasks.
        #[arg(long, value_name = "KEY", value_delimiter = ',')]
        rerun_tasks: Vec<String>,
        /// And everything that depends on them.
        #[arg(long)]
        rerun_dependent_tasks: bool,
        /// Id of the repair before; found out where it is not given.
        #[arg(long, value_name = "ID")]
        latest_repair_id: Option<i64>,
        /// More fields of the request.
        #[command(flatten)]
        json: Json,
        /// Whether to wait.
        #[command(flatten)]
        wait: Wait,
    },
    /// Cancel a run or a task run and wait for its end.
    CancelRun {
        /// Its id.
        run_id: i64,
        /// Whether to wait.
        #[command(flatten)]
        wait: Wait,
    },
    /// Cancel all runs of a job, or all that are queued.
    CancelAllRuns {
        /// Of this job.
        #[arg(long, value_name = "ID")]
        job_id: Option<i64>,
        /// Only those that are queued.
        #[arg(long)]
        all_queued_runs: bool,
    },
    /// Delete a run that is over.
    DeleteRun {
        /// Its id.
        run_id: i64,
    },
}

/// The body of a request.
#[derive(Debug, clap::Args)]
pub struct Json {
    /// Body of the request, or @FILE with it.
    #[arg(long, value_name = "JSON")]
    pub json: Option<String>,
}

/// Whether a command waits.
#[derive(Debug, clap::Args)]
pub struct Wait {
    /// Do not wait for the end of the run.
    #[arg(long, conflicts_with = "follow")]
    pub no_wait: bool,
    /// Show the tasks and what they write while they run.
    #[arg(long)]
    pub follow: bool,
    /// Most minutes to wait.
    #[arg(long, value_name = "MINUTES", default_value_t = 1_440)]
    pub timeout: u64,
}

pub fn run(args: &Args, global: &Global) -> Result<ExitCode> {
    let form = args.remote.output;
    if let Action::Validate(options) = &args.action {
        return apply::validate(options, form, global);
    }
    let server = args.remote.server()?;
    remote::block_on(async {
        match &args.action {
            Action::Apply(apply) => apply::apply(apply, &server, form, global).await,
            Action::Follow { run_id, timeout } => {
                let watch = Watch::follow(form, BTreeSet::new());
                let run = over(&server, *run_id, minutes(*timeout), watch).await?;
                shown(&run, true, form, global)?;
                Ok(exit(&run))
            }
            Action::List { .. } | Action::ListRuns { .. } => list(args, &server, global).await,
            Action::Get { .. } | Action::GetRun { .. } | Action::GetRunOutput { .. } => {
                get(args, &server, global).await
            }
            Action::RunNow { .. } | Action::Submit { .. } | Action::RepairRun { .. } | Action::CancelRun { .. } => {
                start(&args.action, &server, form, global).await
            }
            _ => change(&args.action, &server, global).await,
        }
    })
}

async fn list(args: &Args, server: &Server, global: &Global) -> Result<ExitCode> {
    let mut query: Vec<(&str, String)> = Vec::new();
    let mut flag = |name: &'static str, set: bool| query.extend(set.then(|| (name, "true".to_owned())));
    match &args.action {
        Action::List { name, limit, expand_tasks } => {
            flag("expand_tasks", *expand_tasks);
            query.extend(name.clone().map(|name| ("name", name)));
            query.push(("limit", page(*limit, 100)));
            let jobs = server.list("/api/2.2/jobs/list", "jobs", &query, limit.unwrap_or(usize::MAX)).await?;
            let columns: [Column; 2] =
                [("ID", |job| text(job, "job_id")), ("Name", |job| text(&job["settings"], "name"))];
            show_list(jobs, &columns, args.remote.output, global)?;
        }
        Action::ListRuns {
            job_id,
            limit,
            active_only,
            completed_only,
            expand_tasks,
            run_type,
            start_time_from,
            start_time_to,
        } => {
            flag("active_only", *active_only);
            flag("completed_only", *completed_only);
            flag("expand_tasks", *expand_tasks);
            query.extend(run_type.clone().map(|kind| ("run_type", kind)));
            let numbers = [("job_id", job_id), ("start_time_from", start_time_from), ("start_time_to", start_time_to)];
            query.extend(numbers.into_iter().filter_map(|(name, number)| Some((name, number.as_ref()?.to_string()))));
            query.push(("limit", page(*limit, 25)));
            let runs = server.list("/api/2.2/jobs/runs/list", "runs", &query, limit.unwrap_or(usize::MAX)).await?;
            let columns: [Column; 6] = [
                ("Job ID", |run| text(run, "job_id")),
                ("Run ID", |run| text(run, "run_id")),
                ("Name", |run| text(run, "run_name")),
                ("State", state),
                ("Started", |run| time(&run["start_time"])),
                ("Took", |run| took(&run["run_duration"])),
            ];
            show_list(runs, &columns, args.remote.output, global)?;
        }
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Items on a page: no more than are wanted.
fn page(limit: Option<usize>, most: usize) -> String {
    limit.unwrap_or(most).clamp(1, most).to_string()
}

fn time(ms: &Value) -> String {
    let at = ms.as_i64().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    at.map(|at| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()).unwrap_or_default()
}

async fn get(args: &Args, server: &Server, global: &Global) -> Result<ExitCode> {
    let flag = |name: &'static str, set: bool| (name, set.to_string());
    let answer = match &args.action {
        Action::Get { job_id } => whole(server, "/api/2.2/jobs/get", &[("job_id", job_id.to_string())]).await?,
        Action::GetRun { run_id, include_history, include_resolved_values } => {
            let query = [
                ("run_id", run_id.to_string()),
                flag("include_history", *include_history),
                flag("include_resolved_values", *include_resolved_values),
            ];
            whole(server, "/api/2.2/jobs/runs/get", &query).await?
        }
        Action::GetRunOutput { run_id } => {
            server.get("/api/2.2/jobs/runs/get-output", &[("run_id", run_id.to_string())]).await?
        }
        _ => return Ok(ExitCode::SUCCESS),
    };
    show(&answer, global)?;
    Ok(ExitCode::SUCCESS)
}

/// An object whose arrays come a hundred items at a time, put together.
pub async fn whole(server: &Server, path: &str, query: &[(&str, String)]) -> Result<Value> {
    let mut all = server.get(path, query).await?;
    while let Some(token) = all["next_page_token"].as_str().map(str::to_owned) {
        let mut query = query.to_vec();
        query.push(("page_token", token));
        let next = server.get(path, &query).await?;
        join(&mut all, &next);
        if let Some(fields) = all.as_object_mut() {
            fields.remove("next_page_token");
            fields.remove("has_more");
            fields.extend(next.get("next_page_token").map(|token| ("next_page_token".to_owned(), token.clone())));
        }
    }
    Ok(all)
}

fn join(all: &mut Value, next: &Value) {
    const PAGED: [&str; 7] =
        ["tasks", "job_clusters", "job_parameters", "parameters", "environments", "iterations", "repair_history"];
    for name in PAGED {
        if let (Some(Value::Array(all)), Some(Value::Array(next))) = (all.get_mut(name), next.get(name)) {
            all.extend(next.iter().cloned());
        }
    }
    if let (Some(all), Some(next)) = (all.get_mut("settings"), next.get("settings")) {
        join(all, next);
    }
}

async fn change(action: &Action, server: &Server, global: &Global) -> Result<ExitCode> {
    let (path, sent): (&str, Value) = match action {
        Action::Create(json) => ("create", needed(json)?.into()),
        Action::Update { job_id, json } => ("update", with(needed(json)?, "job_id", *job_id)),
        Action::Reset { job_id, json } => ("reset", with(needed(json)?, "job_id", *job_id)),
        Action::Delete { job_id } => ("delete", json!({ "job_id": job_id })),
        Action::DeleteRun { run_id } => ("runs/delete", json!({ "run_id": run_id })),
        Action::CancelAllRuns { job_id, all_queued_runs } => {
            let mut sent = json!({ "all_queued_runs": all_queued_runs });
            if let Some(job_id) = job_id {
                sent["job_id"] = (*job_id).into();
            }
            ("runs/cancel-all", sent)
        }
        _ => return Ok(ExitCode::SUCCESS),
    };
    let answer = server.post(&format!("/api/2.2/jobs/{path}"), &sent).await?;
    if answer.as_object().is_some_and(|fields| !fields.is_empty()) {
        show(&answer, global)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn needed(json: &Json) -> Result<Map<String, Value>> {
    match &json.json {
        None => bail!("say what with --json, such as --json @job.json"),
        json => body(json.as_deref()),
    }
}

fn with(mut fields: Map<String, Value>, name: &str, id: i64) -> Value {
    fields.insert(name.to_owned(), id.into());
    fields.into()
}

/// Starts or stops a run, and waits for its end.
async fn start(action: &Action, server: &Server, form: Form, global: &Global) -> Result<ExitCode> {
    let (path, sent, wait) = request(action, server).await?;
    let known = match action {
        // What was done before the repair is not told again.
        Action::RepairRun { run_id, .. } if wait.follow => task_runs(server, *run_id).await?,
        _ => BTreeSet::new(),
    };
    let answer = server.post(&format!("/api/2.2/jobs/{path}"), &sent).await?;
    if wait.no_wait {
        if answer.as_object().is_some_and(|fields| !fields.is_empty()) {
            show(&answer, global)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let run_id = answer["run_id"].as_i64().or_else(|| sent["run_id"].as_i64()).unwrap_or_default();
    let watch = if wait.follow { Watch::follow(form, known) } else { Watch::state(global.quiet) };
    let run = over(server, run_id, minutes(wait.timeout), watch).await?;
    shown(&run, wait.follow, form, global)?;
    Ok(if matches!(action, Action::CancelRun { .. }) { ExitCode::SUCCESS } else { exit(&run) })
}

/// Shows a run that is over. What was followed has been told already.
fn shown(run: &Value, was_followed: bool, form: Form, global: &Global) -> Result<()> {
    if was_followed && form == Form::Text {
        return Ok(());
    }
    show(run, global)?;
    if !went_well(run) && !global.quiet && !was_followed {
        let said = text(&run["state"], "state_message");
        output::remark(&format!("run {}: {}; {said}", run["run_id"], state(run)));
    }
    Ok(())
}

fn went_well(run: &Value) -> bool {
    ["SUCCESS", "SUCCESS_WITH_FAILURES"].contains(&state(run).as_str())
}

fn exit(run: &Value) -> ExitCode {
    if went_well(run) { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes.saturating_mul(60))
}

/// Ids of all task runs of a run.
async fn task_runs(server: &Server, run_id: i64) -> Result<BTreeSet<i64>> {
    let run = whole(server, "/api/2.2/jobs/runs/get", &[("run_id", run_id.to_string())]).await?;
    Ok(run["tasks"].as_array().into_iter().flatten().filter_map(|task| task["run_id"].as_i64()).collect())
}

async fn request<'a>(action: &'a Action, server: &Server) -> Result<(&'static str, Value, &'a Wait)> {
    Ok(match action {
        Action::RunNow { job_id, params, only, idempotency_token, json, wait } => {
            let mut sent = body(json.json.as_deref())?;
            if !params.is_empty() {
                sent.insert("job_parameters".to_owned(), parameters(params)?);
            }
            if !only.is_empty() {
                sent.insert("only".to_owned(), only.clone().into());
            }
            sent.extend(idempotency_token.clone().map(|token| ("idempotency_token".to_owned(), token.into())));
            ("run-now", with(sent, "job_id", *job_id), wait)
        }
        Action::Submit { json, wait } => ("runs/submit", needed(json)?.into(), wait),
        Action::RepairRun {
            run_id,
            rerun_all_failed_tasks,
            rerun_tasks,
            rerun_dependent_tasks,
            latest_repair_id,
            json,
            wait,
        } => {
            let mut sent = body(json.json.as_deref())?;
            if *rerun_all_failed_tasks {
                sent.insert("rerun_all_failed_tasks".to_owned(), true.into());
            }
            if *rerun_dependent_tasks {
                sent.insert("rerun_dependent_tasks".to_owned(), true.into());
            }
            if !rerun_tasks.is_empty() {
                sent.insert("rerun_tasks".to_owned(), rerun_tasks.clone().into());
            }
            let latest = match latest_repair_id {
                Some(id) => Some(*id),
                None if sent.contains_key("latest_repair_id") => None,
                None => latest_repair(server, *run_id).await?,
            };
            sent.extend(latest.map(|id| ("latest_repair_id".to_owned(), id.into())));
            ("runs/repair", with(sent, "run_id", *run_id), wait)
        }
        Action::CancelRun { run_id, wait } => ("runs/cancel", json!({ "run_id": run_id }), wait),
        _ => bail!("this is no command that waits"),
    })
}

async fn latest_repair(server: &Server, run_id: i64) -> Result<Option<i64>> {
    let query = [("run_id", run_id.to_string()), ("include_history", "true".to_owned())];
    let run = whole(server, "/api/2.2/jobs/runs/get", &query).await?;
    Ok(run["repair_history"].as_array().and_then(|rounds| rounds.last()?["id"].as_i64()))
}

fn parameters(params: &[String]) -> Result<Value> {
    let mut map = Map::new();
    for param in params {
        let Some((name, value)) = param.split_once('=') else {
            bail!("--param {param:?} is not of the form NAME=VALUE")
        };
        map.insert(name.to_owned(), value.into());
    }
    Ok(map.into())
}

/// How long a server may be away while a run is waited for: it may be started again meanwhile.
const AWAY: Duration = Duration::from_secs(300);

/// The run when it is over.
async fn over(server: &Server, run_id: i64, patience: Duration, mut watch: Watch) -> Result<Value> {
    let begun = std::time::Instant::now();
    let longest = Duration::from_secs(if watch.is_close() { 1 } else { 5 });
    let mut pause = Duration::from_millis(100);
    let mut answered = begun;
    loop {
        let run = match whole(server, "/api/2.2/jobs/runs/get", &[("run_id", run_id.to_string())]).await {
            Err(error) if remote::may_pass(&error) && answered.elapsed() < AWAY => {
                tokio::time::sleep(pause).await;
                continue;
            }
            run => run?,
        };
        answered = std::time::Instant::now();
        watch.see(&run, server).await;
        if is_final(&text(&run["state"], "life_cycle_state")) {
            return Ok(run);
        }
        if begun.elapsed() > patience {
            bail!("run {run_id} is not over after {} min; it goes on", patience.as_secs() / 60);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 3 / 2).min(longest);
    }
}
