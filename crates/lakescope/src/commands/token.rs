//! `lakescope token`: makes, lists and revokes access tokens. Works beside a running server.

use crate::cli::Global;
use crate::{data, output};
use anyhow::{Context, Result, bail};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use store::{Accounts, Entry, Role, Token};

const EXAMPLES: &str = "\
Examples:
  lakescope token create --name ada
  lakescope token create --name ci --role operator --expires 90
  lakescope token list
  lakescope token revoke 6f1c0b1e9a52d3c4";

/// Options of the command.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub action: Action,
}

/// What can be done with tokens.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Make a token; its secret is printed once and kept nowhere.
    Create {
        /// Whose it is.
        #[arg(long)]
        name: String,
        /// What it may do: viewers look, operators also add and run, admins do all.
        #[arg(long, value_enum, default_value_t = RoleName::Viewer)]
        role: RoleName,
        /// Days until it is worth nothing [default: until it is revoked].
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3_650))]
        expires: Option<u32>,
        /// Where tokens are kept.
        #[command(flatten)]
        data: data::DataDir,
    },
    /// List tokens, without their secrets.
    List {
        /// Where tokens are kept.
        #[command(flatten)]
        data: data::DataDir,
    },
    /// Make a token worth nothing, at once.
    Revoke {
        /// Its id, as `token list` shows it.
        id: String,
        /// Where tokens are kept.
        #[command(flatten)]
        data: data::DataDir,
    },
}

/// Roles by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[allow(missing_docs)]
pub enum RoleName {
    Viewer,
    Operator,
    Admin,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Viewer => Self::Viewer,
            RoleName::Operator => Self::Operator,
            RoleName::Admin => Self::Admin,
        }
    }
}

pub fn run(args: &Args, global: &Global) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let text = runtime.block_on(async {
        match &args.action {
            Action::Create { name, role, expires, data } => create(name, (*role).into(), *expires, data).await,
            Action::List { data } => list(data).await,
            Action::Revoke { id, data } => revoke(id, data).await,
        }
    })?;
    output::put(&text, None, global.color)?;
    Ok(ExitCode::SUCCESS)
}

async fn create(name: &str, role: Role, days: Option<u32>, data: &data::DataDir) -> Result<String> {
    if name.trim().is_empty() {
        bail!("a token needs a name: say whose it is with --name");
    }
    let accounts = open(data).await?;
    let now = now_ms();
    let expires = days.map(|days| now + i64::from(days) * 24 * 60 * 60 * 1_000);
    let made = accounts.create_token(name, role, expires, now).await?;
    accounts.audit(&entry("token.create", &made.id)).await?;
    output::remark(&format!("token {} for {name}, {}; it is not shown again:", made.id, role.name()));
    Ok(format!("{}\n", made.secret))
}

async fn list(data: &data::DataDir) -> Result<String> {
    let tokens = open(data).await?.tokens().await?;
    if tokens.is_empty() {
        output::remark("there is no token; `lakescope token create --name NAME` makes one");
    }
    let mut text = String::new();
    for token in &tokens {
        text.push_str(&line(token));
    }
    Ok(text)
}

fn line(token: &Token) -> String {
    let day = |ms: i64| jiff::Timestamp::from_millisecond(ms).map(|t| t.strftime("%Y-%m-%d").to_string());
    let day = |ms: Option<i64>, none: &str| ms.and_then(|ms| day(ms).ok()).unwrap_or_else(|| none.to_owned());
    format!(
        "{}  {:<8}  created {}  expires {:<10}  used {:<10}  {}\n",
        token.id,
        token.role.name(),
        day(Some(token.created_ms), "–"),
        day(token.expires_ms, "never"),
        day(token.last_used_ms, "never"),
        crate::render::one_line(&token.name)
    )
}

async fn revoke(id: &str, data: &data::DataDir) -> Result<String> {
    let accounts = open(data).await?;
    accounts.audit(&entry("token.revoke", id)).await?;
    match accounts.revoke(id).await? {
        true => Ok(format!("token {id} is revoked\n")),
        false => bail!("there is no token {id}; `lakescope token list` shows all"),
    }
}

async fn open(data: &data::DataDir) -> Result<Accounts> {
    Accounts::open(data.dir()?).await.context("cannot open the tokens")
}

fn entry(what: &str, object: &str) -> Entry {
    Entry {
        at_ms: now_ms(),
        who: std::env::var("USER").unwrap_or_else(|_| "command line".to_owned()),
        what: what.to_owned(),
        object: object.to_owned(),
        outcome: "done".to_owned(),
        address: String::new(),
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
