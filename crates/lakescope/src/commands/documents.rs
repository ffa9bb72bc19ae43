//! Completions and the manual page, made from the commands themselves.

use crate::cli::Cli;
use crate::output;
use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print a completion script for a shell.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  lakescope completions bash > ~/.local/share/bash-completion/completions/lakescope")]
pub struct Completions {
    /// Which shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Print the manual page.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  lakescope man | man -l -\n  lakescope man --dir /usr/local/share/man/man1")]
pub struct Man {
    /// Write one page a command into this folder.
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
}

pub fn completions(args: &Completions) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "lakescope", &mut script);
    output::put(&String::from_utf8(script)?, None, crate::cli::Color::Never)?;
    Ok(ExitCode::SUCCESS)
}

pub fn manual(args: &Man) -> Result<ExitCode> {
    match &args.dir {
        Some(folder) => pages(folder)?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            output::put(&String::from_utf8(page)?, None, crate::cli::Color::Never)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn pages(folder: &Path) -> Result<()> {
    let cannot = || format!("cannot write into {}", folder.display());
    std::fs::create_dir_all(folder).with_context(cannot)?;
    clap_mangen::generate_to(Cli::command(), folder).with_context(cannot)
}
