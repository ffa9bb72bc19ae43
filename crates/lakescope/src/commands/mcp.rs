//! `lakescope mcp`: the answers for a model, over standard input and output.

use crate::data::DataDir;
use crate::duties::ingest::{self, Ingest};
use crate::inputs::watch::Source;
use crate::settings;
use anyhow::{Context, Result};
use serve::History;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  lakescope mcp /var/log/spark-events
  lakescope mcp s3://company-logs/spark logs/

A client starts it by itself: give it this command in its list of servers.
A running `lakescope serve` answers the same at /mcp over HTTP.";

/// Seconds between two looks at the sources.
const INTERVAL: Duration = Duration::from_secs(10);
/// Memory for whole applications, bytes.
const MEMORY: usize = 1 << 30;

/// Options of the command.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folders or buckets of event logs.
    #[arg(required = true, value_name = "SOURCE")]
    pub sources: Vec<String>,
    /// Limits of the findings.
    #[command(flatten)]
    pub settings: settings::Options,
    /// Where what was read of the logs outlives the process.
    #[command(flatten)]
    pub data: DataDir,
}

/// Answers until the client closes the input.
pub fn run(args: &Args) -> Result<ExitCode> {
    let sources = args.sources.iter().map(|address| Source::open(address)).collect::<Result<Vec<_>>>()?;
    let config = settings::load(&args.settings)?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start the threads")?;
    runtime.block_on(async {
        let kept = store::Settings { reader: ingest::reader(&config), ..store::Settings::default() };
        // A server may have the directory already: then every log is read by this process, too.
        let store = match store::Store::open(args.data.dir()?, kept).await {
            Ok(store) => Some(Arc::new(store)),
            Err(store::Error::InUse { .. }) => None,
            Err(error) => return Err(error).context("cannot keep what is read"),
        };
        let settings = ingest::Settings {
            sources,
            uploads: None,
            max_upload_bytes: 0,
            reading: read::Options::default(),
            config,
            memory_bytes: MEMORY,
            store,
        };
        let ingest = Arc::new(Ingest::new(settings)?);
        tokio::spawn(ingest::watch(Arc::clone(&ingest), INTERVAL));
        let history: Arc<dyn History> = ingest;
        serve::mcp_over_stdio(history).await.map_err(anyhow::Error::msg)?;
        Ok(ExitCode::SUCCESS)
    })
}
