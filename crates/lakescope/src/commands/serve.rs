//! `lakescope serve`: a history server over folders and buckets of event logs, and jobs.

use crate::cli::{self, Global};
use crate::data;
use crate::duties::ingest::{self, Ingest};
use crate::inputs::watch::Source;
use crate::output;
use crate::settings;
use crate::traces::Traces;
use ::serve::{App, Door, History, Limits};
use anyhow::{Context, Result, bail};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use store::{Accounts, Store};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const EXAMPLES: &str = "\
Examples:
  lakescope serve /var/log/spark-events --no-auth
  lakescope serve logs/ s3://company-logs/spark --listen 0.0.0.0:8484
  lakescope serve logs/ --no-auth --open
  curl http://127.0.0.1:8484/api/v1/applications

The first page says which applications need a person, and why. What reads a Spark
History Server reads this: Spark's REST API is under /api/v1. Others than this
machine need a token: `lakescope token create` makes one.";

/// How long requests may take to end when the server is stopped.
const PATIENCE: Duration = Duration::from_secs(5);

/// Options of the command.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders or buckets of event logs; new and growing logs are noticed.
    #[arg(value_name = "SOURCE")]
    pub sources: Vec<String>,
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:8484", value_name = "ADDRESS", env = "LAKESCOPE_LISTEN")]
    pub listen: SocketAddr,
    /// Answer everybody on this machine, without a token.
    #[arg(long)]
    pub no_auth: bool,
    /// Show a page in the browser [default: the first].
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true, default_missing_value = "/")]
    pub open: Option<String>,
    /// Seconds between two looks at the sources.
    #[arg(long, default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub interval: u64,
    /// How the server's own log is written to standard error.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// OpenTelemetry collector that gets a trace of each request, by OTLP over HTTP, such as
    /// http://127.0.0.1:4318 [default: none].
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT", hide_env_values = true)]
    pub otlp_endpoint: Option<String>,
    /// Where what was read of the logs outlives the process.
    #[command(flatten)]
    pub data: data::DataDir,
    /// Limits of the findings.
    #[command(flatten)]
    pub settings: settings::Options,
    /// Bounds of the server.
    #[command(flatten)]
    pub bounds: Bounds,
    /// How tasks of jobs run.
    #[command(flatten)]
    pub tasks: Tasks,
}

/// How tasks of jobs run.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Tasks of jobs")]
pub struct Tasks {
    /// Run jobs: whoever may (operators; with --no-auth every program on this machine) then runs
    /// anything as the user of the server.
    #[arg(long)]
    pub jobs: bool,
    /// Programs that run at once; more of them wait.
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub task_slots: u16,
    /// Python of tasks that ask for no cluster.
    #[arg(long, default_value = "python3", value_name = "PROGRAM", env = "LAKESCOPE_PYTHON")]
    pub python: String,
    /// Folder of Spark, for tasks that ask for a cluster [default: spark-submit of the PATH].
    #[arg(long, value_name = "FOLDER", env = "SPARK_HOME")]
    pub spark_home: Option<PathBuf>,
    /// Master of tasks that ask for a cluster [default: that of Spark's own settings].
    #[arg(long, value_name = "URL", env = "LAKESCOPE_SPARK_MASTER")]
    pub spark_master: Option<String>,
    /// Folder in which Spark applications of tasks write their event logs, unless their settings say
    /// where; it is looked at like the sources [default: event-logs in the data directory].
    #[arg(long, value_name = "FOLDER", env = "LAKESCOPE_EVENT_LOGS")]
    pub event_logs: Option<PathBuf>,
    /// Keep jobs and runs in this PostgreSQL database, which several servers may share, such as
    /// postgresql://user:password@host/name [default: in the data directory].
    #[arg(long, value_name = "URL", env = "LAKESCOPE_DATABASE", hide_env_values = true)]
    pub database: Option<String>,
    /// Folder for the output and the state of tasks; servers of one machine that share a database
    /// name the same, and then take up one another's tasks [default: attempts in the data directory].
    #[arg(long, value_name = "FOLDER", env = "LAKESCOPE_ATTEMPTS")]
    pub attempts: Option<PathBuf>,
    /// Seconds that servers which share a database wait for one with another folder, once it is gone
    /// while runs are active; then they give up what ran there.
    #[arg(long, default_value_t = 300, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=31_536_000))]
    pub give_up_after: u64,
    /// Days that what a task wrote stays after its end.
    #[arg(long, default_value_t = 60, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub keep_output: u32,
    /// Seconds between two looks at the files and tables that triggers of jobs wait for.
    #[arg(long, default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub trigger_interval: u64,
    /// Seconds that a task which is to stop may take for it before it is killed.
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub stop_grace: u64,
}

/// Bounds of the server.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Bounds")]
pub struct Bounds {
    /// Memory for whole applications; those asked for last stay.
    #[arg(long, default_value = "1GB", value_name = "SIZE", value_parser = cli::size)]
    pub memory: i64,
    /// Disk for whole applications in the data directory.
    #[arg(long, default_value = "10GB", value_name = "SIZE", value_parser = cli::size)]
    pub max_store: i64,
    /// Size of a log that is dropped on the page.
    #[arg(long, default_value = "1GB", value_name = "SIZE", value_parser = cli::size)]
    pub max_upload: i64,
    /// Pages that may listen to live updates at once.
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    pub max_event_listeners: usize,
    /// Seconds that a client may stand still before its connection is closed.
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub client_timeout: u64,
}

/// Forms of the server's own log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Serves until it is interrupted.
pub fn run(args: &Args, global: &Global) -> Result<ExitCode> {
    refuse_what_is_unsafe(args)?;
    #[cfg(not(target_os = "linux"))]
    if args.tasks.jobs {
        bail!("jobs run on Linux only; leave --jobs out, or run the server on a Linux machine");
    }
    let runtime = tokio::runtime::Runtime::new().context("cannot start the server's threads")?;
    let collector = args.otlp_endpoint.as_deref().filter(|endpoint| !endpoint.is_empty());
    let traces = collector.map(|endpoint| Traces::to(endpoint, runtime.handle())).transpose()?;
    log_to_standard_error(args.log_format, traces.as_ref());
    let sources = args.sources.iter().map(|address| Source::open(address)).collect::<Result<Vec<_>>>()?;
    let config = settings::load(&args.settings)?;
    runtime.block_on(async {
        let ended = serve(sources, config, args, global).await;
        if let Some(traces) = traces {
            traces.end().await;
        }
        ended
    })
}

/// Logs hold settings and data: other machines may read them with a token only.
fn refuse_what_is_unsafe(args: &Args) -> Result<()> {
    if args.no_auth && !args.listen.ip().is_loopback() {
        bail!(
            "cannot listen on {} with --no-auth: other machines could read every log; leave --no-auth out, or use an address of this machine such as 127.0.0.1:{}",
            args.listen,
            args.listen.port()
        );
    }
    Ok(())
}

fn log_to_standard_error(format: LogFormat, traces: Option<&Traces>) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("LAKESCOPE_LOG");
    let filter = filter.unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let log = match format {
        LogFormat::Text => log.with_ansi(false).boxed(),
        LogFormat::Json => log.json().boxed(),
    };
    // A second call, of a test, changes nothing.
    let _ = tracing_subscriber::registry().with(log.with_filter(filter)).with(traces.map(Traces::layer)).try_init();
}

async fn serve(mut sources: Vec<Source>, config: diagnose::Config, args: &Args, global: &Global) -> Result<ExitCode> {
    let bounds = &args.bounds;
    let dir = args.data.dir()?;
    let event_logs = args.tasks.jobs.then(|| event_logs(&args.tasks, &dir)).transpose()?;
    sources.extend(event_logs.as_deref().map(|folder| Source::open(&folder.display().to_string())).transpose()?);
    let kept = store::Settings { max_bytes: bounds.max_store.unsigned_abs(), reader: ingest::reader(&config) };
    let store = Arc::new(Store::open(&dir, kept).await.context("cannot keep what is read")?);
    let door = door(args, store.accounts()).await?;
    let settings = ingest::Settings {
        sources,
        uploads: Some(dir.join("uploads")),
        max_upload_bytes: bounds.max_upload.unsigned_abs(),
        reading: read::Options::default(),
        config,
        memory_bytes: usize::try_from(bounds.memory).unwrap_or(usize::MAX),
        store: Some(Arc::clone(&store)),
    };
    let ingest = Arc::new(Ingest::new(settings)?);
    let listener = tokio::net::TcpListener::bind(args.listen).await;
    let listener = listener.with_context(|| format!("cannot listen on {}; choose another --listen", args.listen))?;
    let address = listener.local_addr().context("the address that is listened on is unknown")?;
    if !global.quiet {
        output::remark(&format!("listening on http://{address}"));
    }
    let watching = tokio::spawn(ingest::watch(Arc::clone(&ingest), Duration::from_secs(args.interval)));
    if let Some(path) = &args.open {
        show(&format!("http://{address}/{}", path.trim_start_matches('/')));
    }
    let history: Arc<dyn History> = ingest;
    let client_timeout = Duration::from_secs(bounds.client_timeout);
    let limits = Limits { event_listeners: bounds.max_event_listeners, client_timeout };
    let router = ::serve::router(App {
        history,
        door,
        limits,
        #[cfg(target_os = "linux")]
        workspace: match args.tasks.jobs {
            true => Some(crate::duties::jobs::workspace(&store, &args.tasks, event_logs).await?),
            false => None,
        },
    });
    tokio::select! {
        () = ::serve::serve(listener, router, limits, interrupted()) => {}
        () = out_of_patience() => {}
    }
    watching.abort();
    Ok(ExitCode::SUCCESS)
}

/// Where Spark applications of tasks write their event logs; made where it is missing.
fn event_logs(tasks: &Tasks, dir: &Path) -> Result<PathBuf> {
    let folder = tasks.event_logs.clone().unwrap_or_else(|| dir.join("event-logs"));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    std::path::absolute(&folder).with_context(|| format!("cannot find {}", folder.display()))
}

/// Requests that are under way when the server is stopped may end; live updates and slow clients,
/// which never do, hold it up no longer than this.
async fn out_of_patience() {
    interrupted().await;
    tokio::time::sleep(PATIENCE).await;
}

/// Everybody on this machine when that was asked for, else whoever has a token.
async fn door(args: &Args, accounts: Accounts) -> Result<Door> {
    if args.no_auth {
        return Ok(Door::Open);
    }
    if accounts.tokens().await?.is_empty() {
        bail!(
            "there is no token yet, so that nobody could read anything; `lakescope token create --name NAME` makes one, or --no-auth answers everybody on this machine"
        );
    }
    Ok(Door::Tokens(Arc::new(accounts)))
}

/// Shows a page in the browser of the person; where there is none, the address was printed.
fn show(address: &str) {
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let quiet = std::process::Stdio::null;
    let started =
        std::process::Command::new(program).arg(address).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
    if started.is_err() {
        output::remark(&format!("no browser could be started; open {address}"));
    }
}

/// Interrupt or termination.
async fn interrupted() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<()>();
    tokio::select! {
        _ = interrupt => {}
        () = terminate => {}
    }
}
