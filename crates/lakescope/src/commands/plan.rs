//! `lakescope plan`: a query plan read from data to result.

use crate::cli::Global;
use crate::commands::reading::Reading;
use crate::inputs::{self, Content};
use crate::{output, render};
use anyhow::{Result, bail};
use clap::ValueEnum;
use diagnose::plan_reading::{Change, ChangeKind, PlanReading, read_change, read_plan};
use model::{Application, Plan, SqlExecution};
use serde::Serialize;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  lakescope plan explain.txt                 what df.explain(\"formatted\") printed
  pbpaste | lakescope plan -
  lakescope plan --from app.zstd             the queries of a log
  lakescope plan --from app.zstd --sql 3     one of them, with rows, bytes and times";

/// Read a query plan from data to result, with what to notice.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file with explain text, or `-`.
    #[arg(value_name = "FILE", required_unless_present = "from", conflicts_with = "from")]
    pub file: Option<String>,
    /// An event log instead.
    #[arg(long, value_name = "LOG")]
    pub from: Option<String>,
    /// The query of the log; without it they are listed.
    #[arg(long, value_name = "ID", requires = "from")]
    pub sql: Option<i64>,
    /// The plan as it was before adaptive execution changed it.
    #[arg(long)]
    pub first: bool,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Reading.
    #[command(flatten)]
    pub reading: Reading,
}

/// Forms of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Format {
    Text,
    Json,
}

/// A plan with what adaptive execution changed in it.
#[derive(Serialize)]
struct Answer {
    plan: PlanReading,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<Change>,
}

pub fn run(args: &Args, global: &Global) -> Result<ExitCode> {
    let text = match (&args.file, &args.from) {
        (Some(file), _) => shown(&of_text(args, file)?, args, global)?,
        (None, Some(log)) => of_log(args, global, log)?,
        (None, None) => bail!("name a file with explain text, or a log with --from"),
    };
    output::put(&text, None, global.color)?;
    Ok(ExitCode::SUCCESS)
}

fn of_text(args: &Args, file: &str) -> Result<Vec<Answer>> {
    let found = inputs::find(file, true)?.found.pop();
    let text = match found.map(|found| found.content) {
        Some(Content::Text(text)) => text,
        Some(_) => bail!("{file} is an event log: `lakescope plan --from {file}` lists its queries"),
        None => bail!("cannot read {file}: it is no text"),
    };
    let plans = read::plan::parse_text(&text);
    if plans.is_empty() {
        bail!("no plan in {file}: paste what df.explain() or EXPLAIN printed, with its tree");
    }
    Ok(paired(&plans, args.first))
}

/// Readings of the plans of a text. A final plan with the initial one behind it is one answer with
/// what adaptive execution changed; with `first`, the initial one.
fn paired(plans: &[Plan], first: bool) -> Vec<Answer> {
    let mut answers = Vec::new();
    let mut at = 0;
    while let Some(plan) = plans.get(at) {
        let initial = plans.get(at + 1).filter(|next| plan.is_final == Some(true) && next.title == "Initial Plan");
        at += 1 + usize::from(initial.is_some());
        let shown = initial.filter(|_| first).unwrap_or(plan);
        let mut changes = initial.map(|initial| read_change(initial, plan, None)).unwrap_or_default();
        if initial.is_some() && changes.is_empty() {
            let text = "Nothing: the plan is as it was before the run.".to_owned();
            changes.push(Change { kind: ChangeKind::Nothing, text, before: None, after: None });
        }
        answers.push(Answer { plan: read_plan(shown, None), changes });
    }
    answers
}

fn of_log(args: &Args, global: &Global, log: &str) -> Result<String> {
    let app = args.reading.only(log, global)?;
    let Some(id) = args.sql else { return listed(&app, args, global, log) };
    let Some(sql) = app.sql(id) else {
        bail!("no SQL {id} in {log}; `lakescope plan --from {log}` lists the queries");
    };
    let plan = if args.first { &sql.first_plan } else { sql.plan() };
    if plan.nodes.is_empty() {
        bail!("the log {log} holds no plan of SQL {id}");
    }
    let changes = sql.last_plan.as_ref().map(|last| read_change(&sql.first_plan, last, Some(&app))).unwrap_or_default();
    shown(&[Answer { plan: read_plan(plan, Some(&app)), changes }], args, global)
}

fn shown(answers: &[Answer], args: &Args, global: &Global) -> Result<String> {
    match (args.format, answers) {
        (Format::Json, [one]) => Ok(format!("{}\n", serde_json::to_string_pretty(one)?)),
        (Format::Json, many) => Ok(format!("{}\n", serde_json::to_string_pretty(many)?)),
        (Format::Text, _) => {
            let each = answers.iter().map(|a| render::plan_text(&a.plan, &a.changes, global.columns()));
            Ok(each.collect::<Vec<_>>().join("\n"))
        }
    }
}

/// A query of a log in the list.
#[derive(Serialize)]
struct Listed<'a> {
    sql: i64,
    duration_ms: Option<i64>,
    description: &'a str,
}

fn listed(app: &Application, args: &Args, global: &Global, log: &str) -> Result<String> {
    if app.sql.is_empty() {
        bail!("no SQL in {log}: its jobs use RDDs only");
    }
    let mut queries: Vec<&SqlExecution> = app.sql.iter().collect();
    queries.sort_by_key(|sql| std::cmp::Reverse(sql.duration_ms()));
    let rows: Vec<Listed<'_>> = queries
        .into_iter()
        .map(|sql| Listed { sql: sql.id, duration_ms: sql.duration_ms(), description: &sql.description })
        .collect();
    if args.format == Format::Json {
        return Ok(format!("{}\n", serde_json::to_string_pretty(&rows)?));
    }
    let rows: Vec<(String, String, String)> = rows
        .iter()
        .map(|row| {
            let duration = row.duration_ms.map_or_else(|| "–".to_owned(), |ms| model::Millis(ms).to_string());
            (format!("SQL {}", row.sql), duration, render::one_line(row.description))
        })
        .collect();
    Ok(render::queries_text(&rows, global.columns()))
}
