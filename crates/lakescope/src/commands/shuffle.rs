//! `lakescope shuffle`: a calculator for partitions, waves and the wait for the slowest task.

use crate::cli::{self, Global};
use crate::commands::reading::Reading;
use crate::render::heap_too_small;
use crate::{output, render};
use anyhow::{Result, bail};
use clap::ValueEnum;
use diagnose::shuffle::{self, Answer, Recorded, Shuffle};
use model::{Application, Bytes, Metric};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  lakescope shuffle --bytes 412GB --cores 64 --memory-per-core 4GB
  lakescope shuffle --bytes 412GB --cores 64 --memory-per-core 4GB --skew 0.4 --aqe off
  lakescope shuffle --bytes 64GB --cores 32 --memory-per-core 2GB --partitions 200 --format json
  lakescope shuffle --from app.zstd --stage 14
  lakescope shuffle --from app.zstd --stage 14 --partitions 800 --aqe off";

/// Compute partitions, waves and waiting time of a shuffle.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Bytes that the stage reads.
    #[arg(long, value_name = "SIZE", value_parser = cli::size, required_unless_present = "from")]
    pub bytes: Option<i64>,
    /// Slots: cores over all executors.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=1_000_000), required_unless_present = "from")]
    pub cores: Option<i64>,
    /// Heap of an executor divided by its cores.
    #[arg(long, value_name = "SIZE", value_parser = cli::size, required_unless_present = "from")]
    pub memory_per_core: Option<i64>,
    /// Fill everything from a stage of this event log; options given beside it win.
    #[arg(long, value_name = "LOG", requires = "stage")]
    pub from: Option<String>,
    /// The stage that reads the shuffle.
    #[arg(long, value_name = "ID", requires = "from")]
    pub stage: Option<u32>,
    /// Bytes that a task should read.
    #[arg(long, value_name = "SIZE", value_parser = cli::size, default_value = "128MB")]
    pub target: i64,
    /// Share of the rows that have the most frequent key, 0 to 1.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub skew: Option<f64>,
    /// Whether adaptive execution is on.
    #[arg(long, value_enum)]
    pub aqe: Option<Switch>,
    /// What the stage does with the rows; adaptive execution splits joins only.
    #[arg(long, value_enum)]
    pub operation: Option<Operation>,
    /// Partitions to look at [default: those proposed].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=1_000_000))]
    pub partitions: Option<i64>,
    /// Cores of an executor [default: 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=1_024))]
    pub cores_per_executor: Option<i64>,
    /// Bytes that one core gets through in a second [default: 32MB].
    #[arg(long, value_name = "SIZE", value_parser = cli::size)]
    pub bytes_per_second: Option<i64>,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Reading.
    #[command(flatten)]
    pub reading: Reading,
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Switch {
    On,
    Off,
}

/// What a stage does with the rows of a shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Operation {
    Join,
    Aggregate,
    Window,
}

/// Forms of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Format {
    Text,
    Json,
}

fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    match number.trim().parse::<f64>().map(|x| x * scale) {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("not a share from 0 to 1, or from 0 % to 100 %".to_owned()),
    }
}

pub fn run(args: &Args, global: &Global) -> Result<ExitCode> {
    let recorded = match (&args.from, args.stage) {
        (Some(log), Some(stage)) => Some(recorded(args, global, log, stage)?),
        _ => None,
    };
    let given = given(args, recorded.as_ref().map(|r| r.shuffle.clone()).unwrap_or_default());
    // A log shows an executor that started.
    let asked = args.memory_per_core.or(args.cores_per_executor);
    if let Some(why) = asked.and_then(|_| heap_too_small(&given)) {
        bail!("{why}: raise --memory-per-core or --cores-per-executor");
    }
    let as_ran = args.aqe.is_none();
    let answer = Answer::new(&given, recorded.as_ref(), args.partitions, as_ran);
    let text = match args.format {
        Format::Text => render::shuffle_text(&answer, global.columns()),
        Format::Json => format!("{}\n", serde_json::to_string_pretty(&answer)?),
    };
    output::put(&text, None, global.color)?;
    Ok(ExitCode::SUCCESS)
}

/// The last attempt of a stage in a log.
fn recorded(args: &Args, global: &Global, log: &str, id: u32) -> Result<Recorded> {
    let app = args.reading.only(log, global)?;
    let stage = app.stages.iter().rev().find(|s| s.id == id && !s.tasks.is_empty());
    let why = match stage {
        Some(stage) => match shuffle::of_stage(&app, stage) {
            Some(recorded) => return Ok(recorded),
            None => format!("stage {id} of {log} reads no shuffle"),
        },
        None => format!("no stage {id} with tasks in {log}"),
    };
    let readers = readers(&app);
    match readers.is_empty() {
        true => bail!("{why}; no stage of this log reads one"),
        false => bail!("{why}; these read one: {readers}"),
    }
}

/// Stages that read a shuffle, the largest first.
fn readers(app: &Application) -> String {
    const MOST: usize = 10;
    let mut all: Vec<(u32, i64)> = app.stages.iter().map(|s| (s.id, s.sum(Metric::ShuffleReadBytes))).collect();
    all.retain(|(_, bytes)| *bytes > 0);
    all.sort_by_key(|(id, bytes)| (std::cmp::Reverse(*bytes), *id));
    all.dedup_by_key(|(id, _)| *id);
    let shown = |(id, bytes): &(u32, i64)| format!("{id} ({})", Bytes(bytes.unsigned_abs()));
    let mut list: Vec<String> = all.iter().take(MOST).map(shown).collect();
    if all.len() > MOST {
        list.push(format!("{} more", all.len() - MOST));
    }
    list.join(", ")
}

/// What was asked for, on top of what a log says.
fn given(args: &Args, from: Shuffle) -> Shuffle {
    Shuffle {
        bytes: args.bytes.unwrap_or(from.bytes),
        cores: args.cores.unwrap_or(from.cores),
        memory_per_core: args.memory_per_core.unwrap_or(from.memory_per_core),
        cores_per_executor: args.cores_per_executor.unwrap_or(from.cores_per_executor),
        target: args.target,
        skew: args.skew.unwrap_or(from.skew),
        adaptive: args.aqe.map_or(from.adaptive, |aqe| aqe == Switch::On),
        join: args.operation.map_or(from.join, |operation| operation == Operation::Join),
        bytes_per_second: args.bytes_per_second.map_or(from.bytes_per_second, |bytes| bytes as f64),
        ..from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_may_be_per_cent() {
        assert_eq!((share("0.4"), share("40 %").map(|x| (x * 100.0).round())), (Ok(0.4), Ok(40.0)));
        assert!(share("1.2").is_err() && share("x").is_err());
    }
}
