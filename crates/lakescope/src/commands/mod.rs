//! One file a command.

#[cfg(feature = "serve")]
pub mod apply;
pub mod compare;
#[cfg(all(feature = "serve", feature = "lab", target_os = "linux"))]
pub mod demo;
pub mod diagnose;
pub mod documents;
#[cfg(feature = "serve")]
pub mod follow;
#[cfg(feature = "serve")]
pub mod jobs;
#[cfg(feature = "lab")]
pub mod lab;
#[cfg(feature = "serve")]
pub mod mcp;
pub mod plan;
pub mod reading;
#[cfg(feature = "serve")]
pub mod remote;
pub mod rules;
#[cfg(feature = "serve")]
pub mod serve;
pub mod shuffle;
#[cfg(feature = "serve")]
pub mod token;

use crate::cli::{Cli, Command};
use anyhow::Result;
use std::process::ExitCode;

/// Runs what was asked for.
pub fn run(cli: Cli) -> Result<ExitCode> {
    let global = cli.global;
    match cli.command {
        Command::Diagnose(args) => diagnose::run(&args, &global),
        Command::Compare(args) => compare::run(&args, &global),
        Command::Plan(args) => plan::run(&args, &global),
        Command::Shuffle(args) => shuffle::run(&args, &global),
        #[cfg(feature = "lab")]
        Command::Lab(args) => lab::run(&args, &global),
        #[cfg(all(feature = "serve", feature = "lab", target_os = "linux"))]
        Command::Demo(args) => demo::run(&args, &global),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(&args, &global),
        #[cfg(feature = "serve")]
        Command::Mcp(args) => mcp::run(&args),
        #[cfg(feature = "serve")]
        Command::Jobs(args) => jobs::run(&args, &global),
        #[cfg(feature = "serve")]
        Command::Clusters(args) => remote::clusters(&args, &global),
        #[cfg(feature = "serve")]
        Command::Warehouses(args) => remote::warehouses(&args, &global),
        #[cfg(feature = "serve")]
        Command::CurrentUser(args) => remote::current_user(&args, &global),
        #[cfg(feature = "serve")]
        Command::Api(args) => remote::api(&args, &global),
        #[cfg(feature = "serve")]
        Command::Token(args) => token::run(&args, &global),
        Command::Rules(args) => rules::run(&args, &global),
        Command::Completions(args) => documents::completions(&args),
        Command::Man(args) => documents::manual(&args),
    }
}
