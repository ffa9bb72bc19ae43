//! `lakescope diagnose`: from an input to the answer.

use crate::cli::Global;
use crate::commands::reading::Reading;
use crate::inputs::{self, Content, Findings, Found};
use crate::render::{self, Look};
use crate::{output, settings};
use anyhow::{Result, bail};
use clap::ValueEnum;
use diagnose::Config;
use model::{Application, PasteKind, Report, Severity};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  lakescope diagnose app-20251114020412-0317.zstd        an event log, whatever its codec
  lakescope diagnose /var/log/spark-events               a folder: a table, the worst first
  lakescope diagnose spark-events --app app-2025-0317    one application of a folder
  lakescope diagnose s3://logs/eventlog_v2_app-1/        a rolling log in a bucket
  lakescope diagnose eventlog.zip -o report.html         one HTML file to send on
  pbpaste | lakescope diagnose -                         a plan, a stack trace, stage figures
  lakescope diagnose app.zstd --fail-on high -q          for CI: exit code 1 when found

Exit codes: 0 nothing at or above --fail-on, 1 found, 2 could not read.";

/// Find what is wrong in event logs, plans, stack traces, stage figures or streaming progress.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, a folder, a zip, `-`, or a file://, s3://, abfss:// or gs:// address.
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<String>,
    /// Take the input for this instead of looking.
    #[arg(long, value_enum)]
    pub kind: Option<Kind>,
    /// The application to report, where the input holds several: its id, or a part of it.
    #[arg(long, value_name = "ID")]
    pub app: Option<String>,
    /// How the answer is written [default: by the name of --output, else text].
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Write the answer to this file.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Everything: all findings, evidence, other slot counts.
    #[arg(long)]
    pub all: bool,
    /// Exit with 1 when a finding is at least this bad.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub fail_on: Option<Level>,
    /// Reading.
    #[command(flatten)]
    pub reading: Reading,
    /// Thresholds and prices.
    #[command(flatten)]
    pub settings: settings::Options,
}

/// Kinds of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Kind {
    Log,
    Plan,
    Stack,
    StageMetrics,
    Streaming,
    Question,
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

/// Severities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Level {
    Info,
    Low,
    Medium,
    High,
    Critical,
}

pub fn run(args: &Args, global: &Global) -> Result<ExitCode> {
    let config = settings::load(&args.settings)?;
    let session = Session { args, global, config, unread: Cell::new(false) };
    let found = session.find()?;
    let answer = session.answer(found)?;
    output::put(&answer.text, args.output.as_deref(), global.color)?;
    Ok(match args.fail_on {
        _ if session.unread.get() => ExitCode::from(2),
        Some(level) if answer.worst >= Some(level.into()) => ExitCode::from(1),
        _ => ExitCode::SUCCESS,
    })
}

struct Answer {
    text: String,
    worst: Option<Severity>,
}

/// One call of the command.
struct Session<'a> {
    args: &'a Args,
    global: &'a Global,
    config: Config,
    /// Whether an input could not be read while others could.
    unread: Cell<bool>,
}

impl Session<'_> {
    /// All that the inputs hold. What can not be read among others is named and passed over.
    fn find(&self) -> Result<Vec<Found>> {
        let as_text = self.args.kind.is_some_and(|kind| kind != Kind::Log);
        let mut all = Findings::default();
        for input in &self.args.inputs {
            match inputs::find(input, as_text) {
                Ok(found) => all.extend(found),
                Err(error) if self.args.inputs.len() == 1 => return Err(error),
                Err(error) => self.left_out(&error),
            }
        }
        for warning in &all.warnings {
            if self.args.reading.strict {
                bail!("{warning} (--strict)");
            }
            if !self.global.quiet {
                output::complain(self.global.color, "warning", warning);
            }
        }
        for (name, why) in &all.skipped {
            if self.global.verbose {
                output::remark(&format!("passed over {name}: {why}"));
            }
        }
        if self.args.reading.strict
            && let Some((name, why)) = all.skipped.first()
        {
            bail!("cannot read {name}: it {why} (--strict)");
        }
        if all.found.is_empty() && self.unread.get() {
            bail!("none of the {} inputs can be read", self.args.inputs.len());
        }
        if all.found.is_empty() {
            let why = all.skipped.first().map(|(name, why)| format!("; {name} {why}")).unwrap_or_default();
            bail!("no event log in {}{why}", self.args.inputs.join(", "));
        }
        Ok(all.found)
    }

    /// Names an input that is not among the answers; the exit code tells it, too.
    fn left_out(&self, error: &anyhow::Error) {
        self.unread.set(true);
        output::complain(self.global.color, "error", &format!("{error:#}"));
    }

    fn answer(&self, mut found: Vec<Found>) -> Result<Answer> {
        if let (Some(id), true) = (&self.args.app, found.len() > 1) {
            return self.chosen(found, id);
        }
        match (found.len(), found.pop()) {
            (1, Some(one)) => {
                let name = one.name.clone();
                let app = self.read(one)?;
                let report = diagnose::diagnose(&app, &self.config);
                self.says_something(&name, &app, &report)?;
                let answer = self.one(&report, &app);
                // The process ends after this: to give memory back piece by piece only takes time.
                std::mem::forget((app, report));
                answer
            }
            (_, last) => self.many(found.into_iter().chain(last).collect()),
        }
    }

    /// A text in which nothing was recognised is no healthy run.
    fn says_something(&self, name: &str, app: &Application, report: &Report) -> Result<()> {
        let question = app.pasted.as_ref().is_some_and(|p| p.kind == PasteKind::Question);
        if question && report.findings.is_empty() && self.args.kind != Some(Kind::Question) {
            bail!(
                "nothing to diagnose in {name}: it holds no event log, plan, stack trace, stage figures or streaming progress; --kind says what it is"
            );
        }
        Ok(())
    }

    /// The one application asked for. Names are tried first, so that others need not be read.
    fn chosen(&self, found: Vec<Found>, id: &str) -> Result<Answer> {
        let total = found.len();
        let (named, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.name.contains(id));
        for one in named.into_iter().chain(others) {
            let likely = one.name.contains(id);
            let Ok(app) = self.read(one) else { continue };
            if likely || app.id.contains(id) || &*app.name == id {
                let report = diagnose::diagnose(&app, &self.config);
                return self.one(&report, &app);
            }
        }
        bail!("no application {id} among {total}; without --app they are listed")
    }

    fn one(&self, report: &Report, app: &Application) -> Result<Answer> {
        let look = self.look();
        let text = match self.format() {
            Format::Text => render::text(report, &look),
            Format::Json => render::json(report)?,
            Format::Markdown => render::markdown(report, &look),
            Format::Html => render::html(report, Some(app), &look),
        };
        Ok(Answer { text, worst: report.summary.severity })
    }

    /// A table of applications, the worst first. Each is let go before the next is read.
    fn many(&self, found: Vec<Found>) -> Result<Answer> {
        let mut reports = Vec::new();
        let mut last_error = None;
        for one in found {
            let name = one.name.clone();
            match self.read(one) {
                Ok(app) => reports.push(diagnose::diagnose(&app, &self.config)),
                Err(error) if self.args.reading.strict => return Err(error),
                Err(error) => {
                    if !self.global.quiet {
                        output::complain(self.global.color, "warning", &format!("{name} is left out: {error:#}"));
                    }
                    last_error = Some(error);
                }
            }
        }
        match (reports.is_empty(), last_error) {
            (true, Some(error)) => return Err(error),
            _ => reports.sort_by_key(|r| std::cmp::Reverse((r.summary.severity, saved_ms(r)))),
        }
        let text = match self.format() {
            Format::Text => render::list_text(&reports, &self.look()),
            Format::Json => format!("{}\n", serde_json::to_string_pretty(&reports)?),
            Format::Markdown => render::list_markdown(&reports),
            Format::Html => render::list_html(&reports),
        };
        Ok(Answer { text, worst: reports.iter().map(|r| r.summary.severity).max().flatten() })
    }

    fn read(&self, found: Found) -> Result<Application> {
        if self.args.kind == Some(Kind::Log) && matches!(found.content, Content::Text(_)) {
            bail!("cannot read {}: it is no Spark event log; leave out --kind to have it detected", found.name);
        }
        let kind = self.args.kind.and_then(Kind::of_paste);
        self.args.reading.read(found, kind, self.global)
    }

    fn look(&self) -> Look {
        Look { all: self.args.all, width: self.global.columns(), ..Look::of(&self.config) }
    }

    fn format(&self) -> Format {
        self.args.format.unwrap_or_else(|| self.args.output.as_deref().map_or(Format::Text, by_name))
    }
}

/// The form that the name of a file asks for.
fn by_name(file: &Path) -> Format {
    match file.extension().and_then(|e| e.to_str()).unwrap_or_default() {
        "html" | "htm" => Format::Html,
        "json" => Format::Json,
        "md" | "markdown" => Format::Markdown,
        _ => Format::Text,
    }
}

fn saved_ms(report: &Report) -> i64 {
    report.findings.first().and_then(|f| f.estimate.as_ref()).map_or(0, |e| e.saved_ms)
}

impl Kind {
    fn of_paste(self) -> Option<PasteKind> {
        match self {
            Self::Log => None,
            Self::Plan => Some(PasteKind::Plan),
            Self::Stack => Some(PasteKind::Stack),
            Self::StageMetrics => Some(PasteKind::StageMetrics),
            Self::Streaming => Some(PasteKind::Streaming),
            Self::Question => Some(PasteKind::Question),
        }
    }
}

impl From<Level> for Severity {
    fn from(level: Level) -> Self {
        match level {
            Level::Info => Self::Info,
            Level::Low => Self::Low,
            Level::Medium => Self::Medium,
            Level::High => Self::High,
            Level::Critical => Self::Critical,
        }
    }
}
