//! Lists of runs with a million of them, over HTTP: every filter, pages deep in the past.

use super::past::{self, Past};
use crate::accept::Outcome;
use crate::accept::jobs_api::JobsApi;
use crate::accept::random::Random;
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use testkit::serving::Serving;

/// Requests of each kind.
const SAMPLES: usize = 200;
/// Runs on a page.
const LIMIT: &str = "limit=25";
/// Largest `offset`.
const FURTHEST: f64 = 10_000.0;
/// Runs that are not over, all but one of them waiting.
const OPEN: usize = 40;
const HOUR_MS: i64 = 3_600_000;
const SEED: u64 = 0x7061_6765;

/// Medians of our lists of 25 runs, ms: the slowest of each kind; and the slowest of all requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pages {
    pub newest_ms: f64,
    pub filtered_ms: f64,
    pub deep_ms: f64,
    pub slowest_p50_ms: f64,
    pub slowest_p99_ms: f64,
}

/// What a list is held against of the peers'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Like {
    Newest,
    Filtered,
    Deep,
    /// They have none like it.
    Nothing,
}

/// Requests that are alike.
struct Asked {
    what: String,
    like: Like,
    paths: Vec<String>,
}

/// Measures a server on that past, and checks that walking through a job's pages meets each run once.
pub async fn run(binary: &Path, data: &Path, past: &Past, outcome: &mut Outcome) -> Result<Pages> {
    let folder = tempfile::tempdir()?;
    let long = folder.path().join("long");
    std::fs::write(&long, "exec sleep 600")?;
    let serving = Serving::start(binary, data, ["--no-auth", "--jobs", "--python", "/bin/sh", "--stop-grace", "0"])?;
    let api = JobsApi::at(&serving.address);
    let open_job = open(&api, &long).await?;
    let all = Asking { api: &api, past, random: Random(SEED), open_job }.all().await?;
    println!("| list of runs | p50 ms | p99 ms |\n| --- | ---: | ---: |");
    let mut pages = Pages::default();
    for asked in &all {
        measured(&api, asked, &mut pages).await?;
    }
    walk(&api, past, outcome).await?;
    api.post("runs/cancel-all", &json!({ "job_id": open_job })).await?;
    println!("the server has {:.0} MB after that", serving.resident_mb()?);
    Ok(pages)
}

/// A job with runs that are not over.
async fn open(api: &JobsApi, long: &Path) -> Result<i64> {
    let job = json!({ "name": "long", "max_concurrent_runs": 1, "queue": { "enabled": true },
        "tasks": [{ "task_key": "wait", "spark_python_task": { "python_file": long } }] });
    let job_id = past::id(&api.post("create", &job).await?, "job_id")?;
    for _ in 0..OPEN {
        api.post("run-now", &json!({ "job_id": job_id })).await?;
    }
    Ok(job_id)
}

async fn measured(api: &JobsApi, asked: &Asked, pages: &mut Pages) -> Result<()> {
    let mut times = Vec::with_capacity(asked.paths.len());
    for path in &asked.paths {
        let begun = Instant::now();
        api.get(path).await?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("| {} | {p50:.1} | {p99:.1} |", asked.what);
    let slowest = |known: &mut f64, new: f64| *known = known.max(new);
    slowest(&mut pages.slowest_p50_ms, p50);
    slowest(&mut pages.slowest_p99_ms, p99);
    match asked.like {
        Like::Newest => slowest(&mut pages.newest_ms, p50),
        Like::Filtered => slowest(&mut pages.filtered_ms, p50),
        Like::Deep => slowest(&mut pages.deep_ms, p50),
        Like::Nothing => {}
    }
    Ok(())
}

/// All pages of a job in the middle, one after the other.
async fn walk(api: &JobsApi, past: &Past, outcome: &mut Outcome) -> Result<()> {
    let (job_id, count) = (past.jobs[past.jobs.len() / 2], past.counts[past.jobs.len() / 2]);
    let first = format!("runs/list?{LIMIT}&job_id={job_id}");
    let (mut met, mut path) = (Vec::new(), Some(first.clone()));
    while let Some(asked) = path.take() {
        let page = api.get(&asked).await?;
        met.extend(page["runs"].as_array().into_iter().flatten().map(|run| run["number_in_job"].clone()));
        path = page["next_page_token"].as_str().map(|token| format!("{first}&page_token={token}"));
    }
    let wanted: Vec<Value> = (1..=count).rev().map(Value::from).collect();
    outcome.check(
        met == wanted,
        format!("the pages of job {job_id} give {} runs of {count}, or not each once", met.len()),
    );
    Ok(())
}

/// Makes up requests.
struct Asking<'a> {
    api: &'a JobsApi,
    past: &'a Past,
    random: Random,
    open_job: i64,
}

impl Asking<'_> {
    async fn all(mut self) -> Result<Vec<Asked>> {
        let mut all = vec![Asked { what: "newest".to_owned(), like: Like::Newest, paths: vec![list(""); SAMPLES] }];
        for (what, filters) in self.filters() {
            let paths = filters.iter().map(|filter| list(filter)).collect();
            all.push(Asked { what: what.to_owned(), like: Like::Filtered, paths });
        }
        for (what, filter) in self.long_lists() {
            let paths = self.by_token(&filter).await?;
            all.push(Asked { what: format!("{what}, by token"), like: Like::Deep, paths });
            let paths = self.by_offset(&filter);
            all.push(Asked { what: format!("{what}, by offset"), like: Like::Nothing, paths });
        }
        all.extend(self.others());
        Ok(all)
    }

    fn job(&mut self) -> i64 {
        let at = self.random.share() * self.past.jobs.len() as f64;
        self.past.jobs[at as usize]
    }

    fn moment(&mut self) -> i64 {
        let Past { from_ms, to_ms, .. } = *self.past;
        from_ms + (self.random.share() * (to_ms - from_ms) as f64) as i64
    }

    /// Each filter and combination of them: what is common, rare, or nowhere.
    fn filters(&mut self) -> Vec<(&'static str, Vec<String>)> {
        let (hot, open) = (self.past.jobs[0], self.open_job);
        let after = self.past.to_ms + 48 * HOUR_MS;
        let one = |what: &'static str, filter: String| (what, vec![filter; SAMPLES]);
        let mut all = vec![
            one("job_id, the one with the most runs", format!("job_id={hot}")),
            one("active_only", "active_only=true".to_owned()),
            one("active_only, job_id", format!("active_only=true&job_id={open}")),
            one("active_only, job_id, none", format!("active_only=true&job_id={hot}")),
            one("active_only, run_type", "active_only=true&run_type=JOB_RUN".to_owned()),
            one("active_only, run_type, none", "active_only=true&run_type=WORKFLOW_RUN".to_owned()),
            one("active_only, job_id, run_type, none", format!("active_only=true&job_id={hot}&run_type=JOB_RUN")),
            one("completed_only", "completed_only=true".to_owned()),
            one("completed_only, job_id", format!("completed_only=true&job_id={hot}")),
            one("completed_only, job_id, none", format!("completed_only=true&job_id={open}")),
            one("run_type, nearly all", "run_type=JOB_RUN".to_owned()),
            one("run_type, one in 16", "run_type=SUBMIT_RUN".to_owned()),
            one("run_type, one in 500", "run_type=WORKFLOW_RUN".to_owned()),
            one("job_id, run_type, rare", format!("job_id={hot}&run_type=WORKFLOW_RUN")),
            one("job_id, run_type, none", format!("job_id={hot}&run_type=SUBMIT_RUN")),
            one("start_time_from, none", format!("start_time_from={after}")),
            one("job_id, unknown", "job_id=1000000000000".to_owned()),
        ];
        let mut many = |what: &'static str, filter: fn(i64, i64) -> String| {
            let filters = (0..SAMPLES).map(|_| filter(self.job(), self.moment())).collect();
            all.push((what, filters));
        };
        many("job_id, any", |job, _| format!("job_id={job}"));
        many("job_id, run_type", |job, _| format!("job_id={job}&run_type=JOB_RUN"));
        many("start_time_from", |_, at| format!("start_time_from={at}"));
        many("start_time_to", |_, at| format!("start_time_to={at}"));
        many("start_time_from, start_time_to, an hour", |_, at| hour(at));
        many("an hour, job_id", |job, at| format!("job_id={job}&{}", hour(at)));
        many("an hour, run_type, rare", |_, at| format!("run_type=WORKFLOW_RUN&{}", hour(at)));
        many("an hour, active_only, none", |_, at| format!("active_only=true&{}", hour(at)));
        many("all filters", |job, at| format!("completed_only=true&job_id={job}&run_type=JOB_RUN&start_time_to={at}"));
        all
    }

    /// Filters that leave very many runs.
    fn long_lists(&self) -> Vec<(&'static str, String)> {
        let Past { jobs, from_ms, to_ms, .. } = self.past;
        let hot = jobs[0];
        vec![
            ("all", String::new()),
            ("job_id", format!("job_id={hot}")),
            ("completed_only", "completed_only=true".to_owned()),
            ("completed_only, job_id", format!("completed_only=true&job_id={hot}")),
            ("run_type", "run_type=SUBMIT_RUN".to_owned()),
            ("completed_only, run_type", "completed_only=true&run_type=SUBMIT_RUN".to_owned()),
            ("job_id, run_type", format!("job_id={hot}&run_type=JOB_RUN")),
            ("start_time_from, start_time_to", format!("start_time_from={from_ms}&start_time_to={to_ms}")),
            (
                "all filters",
                format!(
                    "completed_only=true&job_id={hot}&run_type=JOB_RUN&start_time_from={from_ms}&start_time_to={to_ms}"
                ),
            ),
        ]
    }

    /// Pages somewhere in the past, in both directions: the tokens that stand next to a moment.
    async fn by_token(&mut self, filter: &str) -> Result<Vec<String>> {
        let mut paths = Vec::with_capacity(SAMPLES);
        // What the list itself says of the time is left for the page alone.
        let words: Vec<&str> = filter.split('&').filter(|word| !word.starts_with("start_time")).collect();
        let begun = words.join("&");
        while paths.len() < SAMPLES {
            let there = list(&format!("{begun}&start_time_to={}", self.moment()));
            let token = |page: &Value, way: &str| page[way].as_str().map(str::to_owned);
            // None: the moment is so early that its page is the last one.
            let Some(next) = token(&self.api.get(&there).await?, "next_page_token") else { continue };
            let path = list(&format!("{filter}&page_token={next}"));
            let prev = token(&self.api.get(&path).await?, "prev_page_token");
            paths.push(path);
            paths.extend(prev.map(|prev| list(&format!("{filter}&page_token={prev}"))));
        }
        Ok(paths)
    }

    fn by_offset(&mut self, filter: &str) -> Vec<String> {
        let mut path = |_| list(&format!("{filter}&offset={}", (self.random.share() * FURTHEST) as i64));
        (0..SAMPLES).map(&mut path).collect()
    }

    /// Lists with tasks, single runs, jobs.
    fn others(&mut self) -> Vec<Asked> {
        let other = |what: &str, paths| Asked { what: what.to_owned(), like: Like::Nothing, paths };
        let each = |path: &dyn Fn(&(i64, i64)) -> String| -> Vec<String> {
            self.past.samples.iter().cycle().take(SAMPLES).map(path).collect()
        };
        let runs = each(&|(run_id, _)| format!("runs/get?run_id={run_id}&include_history=true"));
        let tasks = each(&|(_, task_run_id)| format!("runs/get?run_id={task_run_id}"));
        let mut expanded = |_| list(&format!("expand_tasks=true&start_time_to={}", self.moment()));
        let expanded = (0..SAMPLES).map(&mut expanded).collect();
        let jobs: Vec<String> = (0..SAMPLES).map(|n| format!("list?limit=100&offset={n}")).collect();
        let named = (0..SAMPLES).map(|n| format!("list?name=job_{n:03}")).collect();
        let single = self.past.jobs.iter().map(|job| format!("get?job_id={job}")).collect();
        vec![
            other("expand_tasks", expanded),
            other("runs/get of a run, with history", runs),
            other("runs/get of a task run", tasks),
            other("jobs/list, a hundred", jobs),
            other("jobs/list by name", named),
            other("jobs/get", single),
        ]
    }
}

/// The hour from a moment on.
fn hour(from_ms: i64) -> String {
    format!("start_time_from={from_ms}&start_time_to={}", from_ms + HOUR_MS)
}

fn list(filter: &str) -> String {
    format!("runs/list?{LIMIT}&{filter}")
}
