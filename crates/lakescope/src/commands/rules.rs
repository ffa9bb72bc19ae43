//! `lakescope rules`: what a diagnosis can find, and the lines it measures against.

use crate::cli::Global;
use crate::{output, render, settings};
use anyhow::{Result, bail};
use diagnose::rules::{RULES, Rule, about};
use std::fmt::Write;
use std::process::ExitCode;

/// List the findings that a diagnosis can give, or explain one.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  lakescope rules\n  lakescope rules SKEW_KEY\n  lakescope rules --settings")]
pub struct Args {
    /// A finding id, or a part of one.
    pub id: Option<String>,
    /// List the thresholds with their defaults instead.
    #[arg(long, conflicts_with = "id")]
    pub settings: bool,
}

pub fn run(args: &Args, global: &Global) -> Result<ExitCode> {
    let mut text = String::new();
    if args.settings {
        for (name, value) in settings::defaults() {
            let _ = writeln!(text, "{name:<28} {value}");
        }
    } else {
        let rules = chosen(args.id.as_deref())?;
        match (args.id.is_some(), rules.as_slice()) {
            (true, [first, rest @ ..]) if rest.iter().all(|rule| rule.id == first.id) => {
                text.push_str(&explained(first, global.columns()));
            }
            (_, many) => {
                let width = many.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
                for rule in many {
                    let _ = writeln!(text, "{:<width$}  {}", rule.id, rule.meaning);
                }
            }
        }
    }
    output::put(&text, None, global.color)?;
    Ok(ExitCode::SUCCESS)
}

/// One rule: when it is found, against what, what it is not, what helps.
fn explained(rule: &Rule, width: usize) -> String {
    let mut lines = vec![("means", rule.meaning.to_owned())];
    if let Some(about) = about::about(rule.id) {
        let defaults = settings::defaults();
        let limit = |name: &&str| {
            let value = defaults.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str());
            format!("{name} = {value}")
        };
        lines.push(("found when", about.when.to_owned()));
        lines.push(("measured by", about.limits.iter().map(limit).collect::<Vec<_>>().join(", ")));
        lines.push(("is not", about.lookalike.to_owned()));
        lines.push(("helps", about.fix.to_owned()));
    }
    lines.retain(|(_, text)| !text.is_empty());
    render::labelled_text(rule.id, &lines, width)
}

fn chosen(id: Option<&str>) -> Result<Vec<&'static Rule>> {
    let Some(id) = id else { return Ok(RULES.iter().collect()) };
    let wanted = id.to_ascii_uppercase().replace('-', "_");
    if let Some(exact) = RULES.iter().find(|rule| rule.id == wanted) {
        return Ok(vec![exact]);
    }
    let near: Vec<&Rule> = RULES.iter().filter(|rule| rule.id.contains(&wanted)).collect();
    if near.is_empty() {
        bail!("there is no finding {id}; `lakescope rules` lists them");
    }
    Ok(near)
}
