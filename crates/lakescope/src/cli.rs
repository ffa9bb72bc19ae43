//! Every command and option.

#[cfg(all(feature = "serve", feature = "lab", target_os = "linux"))]
use crate::commands::demo;
#[cfg(feature = "lab")]
use crate::commands::lab;
use crate::commands::{compare, diagnose, documents, plan, rules, shuffle};
#[cfg(feature = "serve")]
use crate::commands::{jobs, mcp, remote, serve, token};
use clap::{Args, Parser, Subcommand, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  lakescope diagnose app-20251114020412-0317.zstd
  lakescope diagnose s3://logs/spark-events/ --fail-on high
  lakescope diagnose report.txt -o report.html
  pbpaste | lakescope diagnose -

Exit codes: 0 nothing at or above the severity asked for, 1 found, 2 could not read.";

/// Says what is wrong with a Spark application, what it costs and what to change.
#[derive(Debug, Parser)]
#[command(name = "lakescope", version, about, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find what is wrong in event logs, plans, stack traces, stage figures or streaming progress.
    Diagnose(Box<diagnose::Args>),
    /// Take the difference of two runs apart: data, plan, cluster, configuration, findings, rest.
    Compare(Box<compare::Args>),
    /// Read a query plan from data to result, with what to notice.
    Plan(Box<plan::Args>),
    /// Compute partitions, waves and waiting time of a shuffle.
    Shuffle(Box<shuffle::Args>),
    /// Make a bad and a repaired variant on your own Spark, diagnose both and compare.
    #[cfg(feature = "lab")]
    Lab(Box<lab::Args>),
    /// Make something to practise on: a job that fails, its diagnosis and its repair.
    #[cfg(all(feature = "serve", feature = "lab", target_os = "linux"))]
    Demo(Box<demo::Args>),
    /// Serve folders and buckets of event logs: pages, and Spark's REST API.
    #[cfg(feature = "serve")]
    Serve(Box<serve::Args>),
    /// Answer a model over standard input and output (Model Context Protocol).
    #[cfg(feature = "serve")]
    Mcp(Box<mcp::Args>),
    /// Make, run, repair and look at jobs on a server.
    #[cfg(feature = "serve")]
    Jobs(Box<jobs::Args>),
    /// List clusters of a server.
    #[cfg(feature = "serve")]
    Clusters(remote::ListArgs),
    /// List SQL warehouses of a server.
    #[cfg(feature = "serve")]
    Warehouses(remote::ListArgs),
    /// Show who a token makes you.
    #[cfg(feature = "serve")]
    CurrentUser(remote::UserArgs),
    /// Ask a server anything.
    #[cfg(feature = "serve")]
    Api(remote::ApiArgs),
    /// Make, list and revoke access tokens of the server.
    #[cfg(feature = "serve")]
    Token(token::Args),
    /// List the findings that a diagnosis can give, or explain one.
    Rules(rules::Args),
    /// Print a completion script for a shell.
    Completions(documents::Completions),
    /// Print the manual page.
    Man(documents::Man),
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// When to colour [NO_COLOR is respected].
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: Color,
    /// Columns of text [default: the terminal's, else $COLUMNS, else 100].
    #[arg(long, global = true, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(20..=1000))]
    pub width: Option<u16>,
    /// Print the answer only, no remarks.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say what was read and how long it took.
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal.
    #[default]
    Auto,
    /// Also into files and pipes.
    Always,
    /// Never.
    Never,
}

impl Global {
    /// Columns of text: as asked, else the terminal's up to 120, else those of `COLUMNS`, else 100.
    #[must_use]
    pub fn columns(&self) -> usize {
        const PIPED: usize = 100;
        const WIDEST: usize = 120;
        let terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0).clamp(40, WIDEST));
        let said = || std::env::var("COLUMNS").ok()?.parse::<usize>().ok().filter(|n| (20..=1000).contains(n));
        self.width.map(usize::from).or_else(terminal).or_else(said).unwrap_or(PIPED)
    }
}

/// Reads a size as people and Spark write it: `128MB`, `1g`, `4096`.
///
/// # Errors
/// When it is no size, not above 0, or above 1 EiB.
pub fn size(text: &str) -> Result<i64, String> {
    const MOST: i64 = 1 << 60;
    match model::parse_bytes(text, 1).ok_or("not a size such as 128MB, 4g or 1048576")? {
        ..=0 => Err("a size must be above 0".to_owned()),
        bytes if bytes > MOST => Err("a size must not be above 1 EiB".to_owned()),
        bytes => Ok(bytes),
    }
}
