//! `lakescope compare`: where the added time came from.

use crate::cli::Global;
use crate::commands::reading::Reading;
use crate::{output, render, settings};
use anyhow::{Result, bail};
use clap::ValueEnum;
use diagnose::compare::{Comparison, compare};
use model::{Application, Severity};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  lakescope compare yesterday.zstd today.zstd
  lakescope compare history/*.zstd today.zstd            one run against its usual time
  lakescope compare before.zstd after.zstd --format markdown -o change.md
  lakescope compare main.zstd branch.zstd --fail-on medium

The last log is the run in question. With several before it, the baseline is the one of median
run time among the last ten that ended well, and slower means beyond their usual spread.

Exit codes: 0 no regression at or above --fail-on, 1 found, 2 could not read.";

/// Take the difference of two runs apart: data, plan, cluster, configuration, findings, rest.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Logs: one or more earlier runs, then the run in question.
    #[arg(required = true, num_args = 2.., value_name = "LOG")]
    pub logs: Vec<String>,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Write the answer to this file.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Everything: all places, all queries side by side, all settings.
    #[arg(long)]
    pub all: bool,
    /// Exit with 1 when a regression is at least this bad.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub fail_on: Option<super::diagnose::Level>,
    /// Reading.
    #[command(flatten)]
    pub reading: Reading,
    /// Thresholds and prices.
    #[command(flatten)]
    pub settings: settings::Options,
}

/// Forms of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Format {
    Text,
    Json,
    Markdown,
    Html,
}

pub fn run(args: &Args, global: &Global) -> Result<ExitCode> {
    let config = settings::load(&args.settings)?;
    let mut apps = Vec::with_capacity(args.logs.len());
    for log in &args.logs {
        apps.push(args.reading.only(log, global)?);
    }
    let comparison = of(&apps, &config)?;
    let text = write(&comparison, args, global)?;
    output::put(&text, args.output.as_deref(), global.color)?;
    let worst = comparison.findings.iter().map(|f| f.severity).max();
    Ok(match args.fail_on.map(Severity::from) {
        Some(level) if worst >= Some(level) => ExitCode::from(1),
        _ => ExitCode::SUCCESS,
    })
}

fn of(apps: &[Application], config: &diagnose::Config) -> Result<Comparison> {
    let apps: Vec<&Application> = apps.iter().collect();
    let compared = apps.split_last().and_then(|(new, base)| compare(base, new, config));
    match compared {
        Some(comparison) => Ok(comparison),
        None => bail!("nothing to compare with: name an earlier run before the run in question"),
    }
}

fn write(comparison: &Comparison, args: &Args, global: &Global) -> Result<String> {
    Ok(match args.format {
        Format::Text => render::compare_text(comparison, global.columns(), args.all),
        Format::Json => serde_json::to_string_pretty(comparison)? + "\n",
        Format::Markdown => render::compare_markdown(comparison, args.all),
        Format::Html => render::compare_html(comparison),
    })
}
