//! `lakescope shuffle`: a calculator for partitions, waves and the wait for the slowest task.

use crate::cli::{self, Global};
use crate::commands::reading::Reading;
use crate::output;
use anyhow::{Result, bail};
use clap::ValueEnum;
use diagnose::shuffle::{self, Outcome, Recorded, Risk, Shuffle};
use model::{Bytes, Count, Factor, Millis, Share};
use serde::Serialize;
use std::fmt::Write;
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

/// The whole answer, as JSON writes it.
#[derive(Serialize)]
struct Answer<'a> {
    given: &'a Shuffle,
    proposed_partitions: i64,
    outcome: Outcome,
    others: Vec<Outcome>,
    /// The stage as it ran, where it comes from a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<&'a Recorded>,
}

pub fn run(args: &Args, global: &Global) -> Result<ExitCode> {
    let recorded = match (&args.from, args.stage) {
        (Some(log), Some(stage)) => Some(recorded(args, global, log, stage)?),
        _ => None,
    };
    let given = given(args, recorded.as_ref().map(|r| r.shuffle.clone()).unwrap_or_default());
    let proposed_partitions = shuffle::propose(&given);
    let chosen = args.partitions.unwrap_or(proposed_partitions);
    let others = choices(proposed_partitions, chosen).into_iter().map(|n| shuffle::play(&given, n)).collect();
    let outcome = shuffle::play(&given, chosen);
    let answer = Answer { given: &given, proposed_partitions, outcome, others, recorded: recorded.as_ref() };
    let text = match args.format {
        Format::Text => text(&answer, global.columns()),
        Format::Json => format!("{}\n", serde_json::to_string_pretty(&answer)?),
    };
    output::put(&text, None, global.color)?;
    Ok(ExitCode::SUCCESS)
}

/// The last attempt of a stage in a log.
fn recorded(args: &Args, global: &Global, log: &str, id: u32) -> Result<Recorded> {
    let app = args.reading.only(log, global)?;
    let stage = app.stages.iter().rev().find(|s| s.id == id && !s.tasks.is_empty());
    let Some(stage) = stage else { bail!("no stage {id} with tasks in {log}; `lakescope diagnose` names stages") };
    match shuffle::of_stage(&app, stage) {
        Some(recorded) => Ok(recorded),
        None => bail!("stage {id} of {log} reads no shuffle; choose one that does"),
    }
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

/// Numbers of partitions to compare: around the proposal, Spark's default, and what was asked.
fn choices(proposed: i64, chosen: i64) -> Vec<i64> {
    const SPARKS_DEFAULT: i64 = 200;
    let mut all = vec![proposed / 4, proposed / 2, proposed, proposed * 2, proposed * 4, SPARKS_DEFAULT, chosen];
    all.retain(|n| (1..=1_000_000).contains(n));
    all.sort_unstable();
    all.dedup();
    all
}

fn text(answer: &Answer<'_>, width: usize) -> String {
    let (given, o) = (answer.given, &answer.outcome);
    let mut text = String::new();
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "  {label:<14}{value}");
    };
    if let Some(recorded) = answer.recorded {
        line("as it ran", as_it_ran(recorded));
    }
    line("partitions", partitions(answer));
    line("a task reads", format!("{}, the largest {}", bytes(o.task_bytes), bytes(o.largest_bytes)));
    line(
        "waves",
        format!("{} on {}: {}", plural(o.tasks, "task"), plural(given.cores, "slot"), plural(o.waves, "round")),
    );
    line("the stage", format!("takes {}, a usual task {}", Millis(o.stage_ms), Millis(o.task_ms)));
    line("waiting", waiting(given, o));
    line("memory", memory(given, o));
    line("adaptive", adaptive(given, o));
    let _ = writeln!(text, "\n  Run time by number of partitions (█ all work, ░ only the slowest task)");
    plot(&mut text, answer, width);
    let rate = bytes(given.bytes_per_second as i64);
    let _ = writeln!(text, "\n  Times: {rate} a second and core (--bytes-per-second); spilling makes them longer.");
    text
}

fn as_it_ran(recorded: &Recorded) -> String {
    let (wall, played) = (recorded.wall_ms, recorded.played_ms);
    let off = Share((played - wall).abs() as f64 / wall.max(1) as f64);
    format!(
        "{} in {} tasks took {}; these rules give {}, {off} off",
        bytes(recorded.shuffle.bytes),
        Count(recorded.tasks as u64),
        Millis(wall),
        Millis(played)
    )
}

fn plural(n: i64, what: &str) -> String {
    format!("{} {what}{}", Count(n.max(0) as u64), if n == 1 { "" } else { "s" })
}

fn bytes(n: i64) -> Bytes {
    Bytes(n.max(0) as u64)
}

fn partitions(answer: &Answer<'_>) -> String {
    let (given, n) = (answer.given, answer.proposed_partitions);
    let slots = plural(given.cores, "slot");
    let formula = format!("{} ÷ {} rounded up to a multiple of {slots}", bytes(given.bytes), bytes(given.target));
    match answer.outcome.partitions {
        chosen if chosen == n => format!("{n} = {formula}"),
        chosen => format!("{chosen} as asked; proposed: {n} = {formula}"),
    }
}

fn waiting(given: &Shuffle, o: &Outcome) -> String {
    if o.waiting_ms * 50 < o.stage_ms {
        return "hardly any: all tasks end together".to_owned();
    }
    let share = Share(o.waiting_ms as f64 / o.stage_ms.max(1) as f64);
    let ratio = Factor(o.largest_bytes as f64 / o.task_bytes.max(1) as f64);
    let idle = crate::render::core_time(o.idle_core_ms);
    format!(
        "{} ({share}) for the slowest task, {ratio} the usual one; {} idle, {idle}",
        Millis(o.waiting_ms),
        plural(given.cores - 1, "slot")
    )
}

fn memory(given: &Shuffle, o: &Outcome) -> String {
    let m = o.memory;
    let verdict = match m.risk {
        Risk::None => "no spill",
        Risk::Tight => "tight",
        Risk::LargestSpills => "the largest task spills",
        Risk::AllSpill => "every task spills",
    };
    format!(
        "{verdict}: {} for a task ((heap − 300 MiB) × {}), needed {}, by the largest {} (shuffle × {})",
        bytes(m.available),
        given.memory_fraction,
        bytes(m.needed),
        bytes(m.needed_by_largest),
        given.expansion
    )
}

fn adaptive(given: &Shuffle, o: &Outcome) -> String {
    let mut said = Vec::new();
    if o.split_partitions > 0 {
        said.push(format!("splits the largest partition into {} pieces", o.split_pieces));
    }
    if o.merged_away > 0 {
        said.push(format!("merges {} small partitions into others", Count(o.merged_away as u64)));
    }
    if let Some(why) = &o.not_split_because {
        said.push(format!("does not split the largest partition: {why}"));
    }
    match (said.is_empty(), given.adaptive) {
        (false, _) => said.join("; "),
        (true, true) => format!(
            "on; would split a join's partition over {} × the median and {}",
            given.skew_factor,
            bytes(given.skew_threshold)
        ),
        (true, false) => "off".to_owned(),
    }
}

fn plot(text: &mut String, answer: &Answer<'_>, width: usize) {
    let longest = answer.others.iter().map(|o| o.stage_ms).max().unwrap_or(1).max(1);
    let room = width.saturating_sub(34).clamp(10, 60) as i64;
    for o in &answer.others {
        let all = (o.stage_ms * room / longest).max(1);
        let waiting = o.waiting_ms * room / longest;
        let bar = "█".repeat((all - waiting).max(0) as usize) + &"░".repeat(waiting as usize);
        let mark = if o.partitions == answer.outcome.partitions { '→' } else { ' ' };
        let spill = matches!(o.memory.risk, Risk::AllSpill | Risk::LargestSpills);
        let spill = if spill { ", spills" } else { "" };
        let _ = writeln!(text, "{mark} {:>7}  {bar} {}{spill}", o.partitions, Millis(o.stage_ms));
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

    #[test]
    fn compares_around_the_proposal() {
        assert_eq!(choices(512, 300), [128, 200, 256, 300, 512, 1_024, 2_048]);
        assert_eq!(choices(1, 1), [1, 2, 4, 200]);
    }
}
