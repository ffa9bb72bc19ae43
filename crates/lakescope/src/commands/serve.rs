//! `lakescope serve`: a history server over folders of event logs.

use crate::cli::Global;
use crate::duties::ingest::Ingest;
use crate::output;
use crate::settings;
use anyhow::{Context, Result, bail};
use serve::History;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  lakescope serve /var/log/spark-events --no-auth
  lakescope serve logs/ more-logs/ --listen 127.0.0.1:0 --no-auth
  curl http://127.0.0.1:8484/api/v1/applications

The first page says which applications need a person, and why. What reads a Spark
History Server reads this: Spark's REST API is under /api/v1.";

/// Options of the command.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders of event logs; new and growing logs are noticed.
    #[arg(required = true, value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:8484", value_name = "ADDRESS", env = "LAKESCOPE_LISTEN")]
    pub listen: SocketAddr,
    /// Answer everybody on this machine, without a token.
    #[arg(long)]
    pub no_auth: bool,
    /// Seconds between two looks at the folders.
    #[arg(long, default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub interval: u64,
    /// Limits of the findings.
    #[command(flatten)]
    pub settings: settings::Options,
    /// Applications that are kept open in memory; others are read again when asked for.
    #[arg(long, default_value_t = 32, value_name = "N")]
    pub max_open: usize,
}

/// Serves until it is interrupted.
pub fn run(args: &Args, global: &Global) -> Result<ExitCode> {
    refuse_what_is_unsafe(args)?;
    for folder in &args.folders {
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    }
    let ingest = Arc::new(Ingest::new(
        args.folders.clone(),
        read::Options::default(),
        settings::load(&args.settings)?,
        args.max_open,
    ));
    let runtime = tokio::runtime::Runtime::new().context("cannot start the server's threads")?;
    runtime.block_on(serve(ingest, args, global))
}

/// Nobody else may read logs, which hold settings and data, before there are tokens to tell who asks.
fn refuse_what_is_unsafe(args: &Args) -> Result<()> {
    if !args.listen.ip().is_loopback() {
        bail!(
            "cannot listen on {}: other machines could read every log, as there are no tokens yet; use an address of this machine such as 127.0.0.1:{}",
            args.listen,
            args.listen.port()
        );
    }
    if !args.no_auth {
        bail!("everybody on this machine could read every log at {}; say --no-auth to allow that", args.listen);
    }
    Ok(())
}

async fn serve(ingest: Arc<Ingest>, args: &Args, global: &Global) -> Result<ExitCode> {
    let listener = tokio::net::TcpListener::bind(args.listen).await;
    let listener = listener.with_context(|| format!("cannot listen on {}; choose another --listen", args.listen))?;
    let address = listener.local_addr().context("the address that is listened on is unknown")?;
    if !global.quiet {
        output::remark(&format!("listening on http://{address}"));
    }
    let interval = Duration::from_secs(args.interval);
    tokio::spawn(watch(Arc::clone(&ingest), interval));
    let history: Arc<dyn History> = ingest;
    let server = axum::serve(listener, ::serve::router(history)).with_graceful_shutdown(interrupted());
    server.await.context("the server ended")?;
    Ok(ExitCode::SUCCESS)
}

async fn watch(ingest: Arc<Ingest>, interval: Duration) {
    loop {
        let scanned = Arc::clone(&ingest);
        // A scan that panics is tried again: the server goes on with what it has.
        let _ = tokio::task::spawn_blocking(move || scanned.scan()).await;
        tokio::time::sleep(interval).await;
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
