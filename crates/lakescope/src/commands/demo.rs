//! `lakescope demo`: something to practise on, made with the user's own Spark.

use crate::cli::Global;
use crate::commands::lab::{Home, Spark};
use crate::commands::remote::Server;
use crate::output;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  lakescope demo shop                     on the Spark that is found here; then look at the pages
  lakescope demo shop --scale 0.5 --once  smaller, and no server stays

The shop's orders and customers are made, the job `shop_daily` is deployed and run. Its task
daily_sales fails by a skewed join; it is repaired by a parameter for that repair alone.";

/// The job and its program.
const FILES: [(&str, &str); 2] = [
    ("shop_daily.py", include_str!("../../demo/shop_daily.py")),
    ("shop_daily.json", include_str!("../../demo/shop_daily.json")),
];

/// How long a run may take.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// How long after its end an application may be read.
const READING: Duration = Duration::from_secs(60);
/// Between two looks at a run.
const PAUSE: Duration = Duration::from_millis(500);
/// The task that fails, and what mends it.
const FAILS: &str = "daily_sales";
const SPREAD: &str = "64";

/// Make something to practise on: a job that fails, its diagnosis and its repair.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What is made.
    #[arg(value_enum)]
    pub what: Demo,
    /// Folder for data, program and server.
    #[arg(long, value_name = "FOLDER", default_value = "shop")]
    pub folder: PathBuf,
    /// Size of the data: 1 is six million orders.
    #[arg(long, default_value_t = 1.0)]
    pub scale: f64,
    /// A Python with PySpark to use [default: SPARK_HOME, spark-submit of the PATH, python3].
    #[arg(long, value_name = "FILE")]
    pub python: Option<PathBuf>,
    /// Address that the server listens on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    pub listen: String,
    /// Stop the server at the end instead of leaving it for a look at the pages.
    #[arg(long)]
    pub once: bool,
}

/// What there is to practise on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Demo {
    /// The daily job of a small web shop.
    Shop,
}

/// Makes it, runs it, repairs it.
pub fn run(args: &Args, global: &Global) -> Result<ExitCode> {
    if !(args.scale > 0.0 && args.scale <= 100.0) {
        bail!("--scale {} is not above 0 and at most 100", args.scale);
    }
    let spark = Spark::find(None, args.python.as_deref())?.home()?;
    let folder = made(&args.folder)?;
    let mut serving = Serving::start(args, &folder, &spark)?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
    runtime.block_on(shop(&serving.server()?, &folder, args.scale))?;
    if args.once || !std::io::stdin().is_terminal() {
        return Ok(ExitCode::SUCCESS);
    }
    if !global.quiet {
        output::remark(&format!("look at {}; Ctrl-C stops the server", serving.address));
    }
    serving.process.wait().context("the server is lost")?;
    Ok(ExitCode::SUCCESS)
}

/// The folder with the program and the definition of the job in it.
fn made(folder: &Path) -> Result<PathBuf> {
    let make = || -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        for (name, text) in FILES {
            // What the job is told of its folder stands inside of JSON.
            let path = serde_json::to_string(&folder.display().to_string())?;
            std::fs::write(folder.join(name), text.replace("FOLDER", path.trim_matches('"')))?;
        }
        Ok(folder)
    };
    make().with_context(|| format!("cannot make {}", folder.display()))
}

/// A server of our own, which ends with this process.
struct Serving {
    process: Child,
    address: String,
}

impl Serving {
    fn start(args: &Args, folder: &Path, spark: &Home) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.args(["serve", "--jobs", "--no-auth", "--interval", "1", "--listen", &args.listen, "--data-dir"]);
        command.arg(folder.join("data")).arg("--python").arg(&spark.python).arg("--spark-home").arg(&spark.folder);
        command.env("PYSPARK_PYTHON", &spark.python).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().context("cannot start the server")?;
        let mut said = BufReader::new(process.stderr.take().context("the server has no output")?);
        let mut line = String::new();
        loop {
            line.clear();
            if said.read_line(&mut line).context("the server is lost")? == 0 {
                bail!("the server ended at once ({})", process.wait()?);
            }
            if let Some((_, address)) = line.trim().split_once("listening on ") {
                let address = address.to_owned();
                // What else it says is shown as it comes.
                std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::stderr()));
                return Ok(Self { process, address });
            }
            output::remark(line.trim());
        }
    }

    fn server(&self) -> Result<Server> {
        Server::at(&self.address)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn shop(server: &Server, folder: &Path, scale: f64) -> Result<()> {
    let job: Value = serde_json::from_slice(&std::fs::read(folder.join(FILES[1].0))?)?;
    let keys: Vec<&str> =
        job["tasks"].as_array().into_iter().flatten().filter_map(|t| t["task_key"].as_str()).collect();
    let job_id = deployed(server, &job).await?;
    println!("Job {job_id} \"shop_daily\": {}", keys.join(" → "));
    let asked = json!({ "job_id": job_id, "job_parameters": { "scale": scale.to_string() } });
    let run_id = server.post("/api/2.2/jobs/run-now", &asked).await?["run_id"].clone();
    println!("\nRun {run_id}");
    let mut told = BTreeSet::new();
    let run = seen_through(server, &run_id, &mut told).await?;
    let failed = task(&run, FAILS).context("the run has no such task")?;
    if failed["state"]["result_state"] != "FAILED" {
        bail!("{FAILS} did not fail: this Spark has more memory than the demo knows; try a larger --scale");
    }
    tell_why(server, &failed["run_id"]).await?;
    let request = json!({ "run_id": run_id, "rerun_all_failed_tasks": true, "job_parameters":
        { "scale": scale.to_string(), "spread": SPREAD } });
    let repair = server.post("/api/2.2/jobs/runs/repair", &request).await?["repair_id"].clone();
    println!("\nRepair {repair}, with spread={SPREAD} for this repair alone");
    let run = seen_through(server, &run_id, &mut told).await?;
    if run["state"]["result_state"] != "SUCCESS" {
        bail!("the repair did not go well: {}", run["state"]["state_message"].as_str().unwrap_or_default());
    }
    let report = task(&run, "report").context("the run has no such task")?;
    let output = server.get("/api/2.2/jobs/runs/get-output", &[("run_id", report["run_id"].to_string())]).await?;
    let lines = output["logs"].as_str().unwrap_or_default().lines();
    println!("\nThe report");
    lines.filter(|line| line.starts_with("country")).for_each(|line| println!("  {line}"));
    Ok(())
}

/// The job of this name, made or brought to this definition.
async fn deployed(server: &Server, job: &Value) -> Result<Value> {
    let name = job["name"].as_str().unwrap_or_default().to_owned();
    let known = server.get("/api/2.2/jobs/list", &[("name", name)]).await?;
    let Some(known) = known["jobs"][0]["job_id"].as_i64() else {
        return Ok(server.post("/api/2.2/jobs/create", job).await?["job_id"].clone());
    };
    server.post("/api/2.2/jobs/reset", &json!({ "job_id": known, "new_settings": job })).await?;
    Ok(known.into())
}

/// Tells once of each task when it is over; gives the run when that is.
async fn seen_through(server: &Server, run_id: &Value, told: &mut BTreeSet<i64>) -> Result<Value> {
    let begun = Instant::now();
    loop {
        let run = server.get("/api/2.2/jobs/runs/get", &[("run_id", run_id.to_string())]).await?;
        for task in run["tasks"].as_array().into_iter().flatten() {
            let id = task["run_id"].as_i64().unwrap_or_default();
            if task["state"]["result_state"].is_string() && told.insert(id) {
                tell(task);
            }
        }
        if run["state"]["result_state"].is_string() {
            return Ok(run);
        }
        if begun.elapsed() > PATIENCE {
            bail!("run {run_id} is not over after {} minutes", PATIENCE.as_secs() / 60);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn tell(task: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (key, result) = (text(&task["task_key"]), text(&task["state"]["result_state"]));
    let seconds = task["execution_duration"].as_i64().unwrap_or_default() as f64 / 1e3;
    let took = if seconds > 0.0 { format!("{seconds:.0} s") } else { String::new() };
    println!("  {key:14} {result:16} {took}");
}

/// The newest attempt of a task.
fn task<'a>(run: &'a Value, key: &str) -> Option<&'a Value> {
    let tasks = run["tasks"].as_array()?;
    tasks.iter().filter(|task| task["task_key"] == key).max_by_key(|task| task["start_time"].as_i64())
}

/// What the diagnosis of the Spark application of a task says.
async fn tell_why(server: &Server, task_run_id: &Value) -> Result<()> {
    let begun = Instant::now();
    loop {
        let output = server.get("/api/2.2/jobs/runs/get-output", &[("run_id", task_run_id.to_string())]).await?;
        let application = &output["spark_applications"][0];
        if application["diagnosis"].is_string() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            println!("\nWhy {FAILS} failed\n  {}", text(&output["error"]));
            println!("  {}: {}", text(&application["finding"]["id"]), text(&application["diagnosis"]));
            println!("  {}", text(&application["page_url"]));
            return Ok(());
        }
        if begun.elapsed() > READING {
            bail!("the event log of {FAILS} was not read: is spark.eventLog.dir set elsewhere?");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
