//! The client side: a server that speaks the Databricks APIs, ours or theirs, over HTTP.

use crate::cli::Global;
use crate::output;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use reqwest::{Client, Method};
use serde_json::{Map, Value};
use std::process::ExitCode;
use std::time::Duration;

/// Longest answer to one request.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which server, and in which form its answers are shown.
#[derive(Clone, Debug, clap::Args)]
pub struct Remote {
    /// Address of the server [default: $DATABRICKS_HOST, else http://127.0.0.1:8484].
    #[arg(long, value_name = "URL", env = "LAKESCOPE_HOST", global = true)]
    pub host: Option<String>,
    /// How answers are printed.
    #[arg(short, long, value_enum, default_value_t = Form::Text, global = true)]
    pub output: Form,
}

/// Forms of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Tables for people; what is no list comes as JSON.
    #[default]
    Text,
    /// JSON.
    Json,
}

/// A server that is asked.
#[derive(Clone, Debug)]
pub struct Server {
    client: Client,
    base: String,
    token: Option<String>,
}

impl Remote {
    /// The server that is meant.
    ///
    /// # Errors
    /// When its address is none.
    pub fn server(&self) -> Result<Server> {
        let set = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
        // A token goes to the server that it is for: each host with its own.
        let (host, token) = match (&self.host, set("DATABRICKS_HOST")) {
            (Some(host), _) => (Some(host.clone()), set("LAKESCOPE_TOKEN")),
            (None, Some(host)) => (Some(host), set("DATABRICKS_TOKEN")),
            (None, None) => (None, set("LAKESCOPE_TOKEN")),
        };
        let mut base = host.unwrap_or_else(|| "http://127.0.0.1:8484".to_owned());
        if !base.contains("://") {
            base = format!("https://{base}");
        }
        let address = url::Url::parse(&base).with_context(|| format!("{base} is no address of a server"))?;
        let is_here = matches!(address.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        if token.is_some() && address.scheme() == "http" && !is_here {
            output::remark("the token goes over the network in clear: the address begins with http://");
        }
        let client = Client::builder().timeout(PATIENCE).build()?;
        Ok(Server { client, base: base.trim_end_matches('/').to_owned(), token })
    }
}

impl Server {
    /// The server at an address, without a token.
    ///
    /// # Errors
    /// When there is no way to speak HTTP.
    #[cfg(target_os = "linux")]
    pub fn at(address: &str) -> Result<Self> {
        Ok(Self { client: Client::builder().timeout(PATIENCE).build()?, base: address.to_owned(), token: None })
    }

    /// What `GET` gives.
    ///
    /// # Errors
    /// When the server does not answer, or refuses: in its words.
    pub async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Value> {
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let join = if query.is_empty() {
            ""
        } else if path.contains('?') {
            "&"
        } else {
            "?"
        };
        self.ask(Method::GET, &format!("{path}{join}{query}"), None).await
    }

    /// What `POST` gives.
    ///
    /// # Errors
    /// As [`Server::get`].
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask(Method::POST, path, Some(body)).await
    }

    /// What a request gives.
    ///
    /// # Errors
    /// As [`Server::get`].
    pub async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
        let mut request = self.client.request(method, format!("{}/{}", self.base, path.trim_start_matches('/')));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let answer = request.send().await.with_context(|| {
            format!("{} does not answer; is `lakescope serve` running there? (--host names another server)", self.base)
        })?;
        let status = answer.status();
        let text = answer.text().await.with_context(|| format!("{} broke off its answer", self.base))?;
        let value: Option<Value> = serde_json::from_str(&text).ok();
        if !status.is_success() {
            let said = value.as_ref().and_then(|value| value["message"].as_str()).unwrap_or(text.trim());
            let hint =
                if status == 401 { "; set LAKESCOPE_TOKEN, or DATABRICKS_TOKEN with DATABRICKS_HOST" } else { "" };
            let said = format!("{said}{hint} ({status})");
            return match status.as_u16() {
                429 | 503 => Err(Busy(said).into()),
                _ => bail!(said),
            };
        }
        value.with_context(|| format!("{}/{path} answers with something that is no JSON", self.base))
    }

    /// All items of a list over its pages, at most so many.
    ///
    /// # Errors
    /// As [`Server::get`].
    pub async fn list(&self, path: &str, items: &str, query: &[(&str, String)], most: usize) -> Result<Vec<Value>> {
        let (mut all, mut token) = (Vec::new(), String::new());
        loop {
            let mut query = query.to_vec();
            query.push(("page_token", token));
            let page = self.get(path, &query).await?;
            all.extend(page[items].as_array().into_iter().flatten().cloned());
            token = page["next_page_token"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() || all.len() >= most {
                all.truncate(most);
                return Ok(all);
            }
        }
    }
}

/// A server that asks to come back later.
#[derive(Debug)]
struct Busy(String);

impl std::fmt::Display for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Busy {}

/// Whether a request that failed so may go well a little later.
#[must_use]
pub fn may_pass(error: &anyhow::Error) -> bool {
    error.is::<Busy>() || error.chain().any(|cause| cause.is::<reqwest::Error>())
}

/// The object of `--json`: as it stands, or of the file behind an `@`.
///
/// # Errors
/// When the file cannot be read or holds no JSON object.
pub fn body(json: Option<&str>) -> Result<Map<String, Value>> {
    let Some(json) = json else { return Ok(Map::new()) };
    let text = match json.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?,
        None => json.to_owned(),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => bail!("--json must be an object"),
        Err(error) => bail!("--json is no JSON: {error}"),
    }
}

/// Prints a value as JSON.
///
/// # Errors
/// When standard output is gone.
pub fn show(value: &Value, global: &Global) -> Result<()> {
    output::put(&(serde_json::to_string_pretty(value)? + "\n"), None, global.color)
}

/// A column of a table: its heading, and what it shows of an item.
pub type Column = (&'static str, fn(&Value) -> String);

/// Prints a list: as a JSON array, or as a table of these columns, each a heading and what it shows.
///
/// # Errors
/// When standard output is gone.
pub fn show_list(items: Vec<Value>, columns: &[Column], form: Form, global: &Global) -> Result<()> {
    if form == Form::Json {
        return show(&items.into(), global);
    }
    let mut rows = vec![columns.iter().map(|(heading, _)| (*heading).to_owned()).collect::<Vec<_>>()];
    rows.extend(
        items.iter().map(|item| columns.iter().map(|(_, cell)| crate::render::one_line(&cell(item))).collect()),
    );
    let width =
        |column: usize| rows.iter().map(|row| unicode_width::UnicodeWidthStr::width(row[column].as_str())).max();
    let widths: Vec<usize> = (0..columns.len()).map(|column| width(column).unwrap_or_default()).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let pad = width - unicode_width::UnicodeWidthStr::width(cell.as_str()).min(*width);
            format!("{cell}{}", " ".repeat(pad))
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    output::put(&text, None, global.color)
}

/// Runs a request to its end.
///
/// # Errors
/// As the request.
pub fn block_on(work: impl Future<Output = Result<ExitCode>>) -> Result<ExitCode> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// `lakescope api`: any call of the server.
#[derive(Debug, clap::Args)]
pub struct ApiArgs {
    /// How it is asked.
    #[arg(value_enum)]
    pub method: Verb,
    /// What is asked, such as /api/2.2/jobs/list.
    pub path: String,
    /// Body, or @FILE with it.
    #[arg(long, value_name = "JSON")]
    pub json: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub remote: Remote,
}

/// Methods of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// Asks anything.
pub fn api(args: &ApiArgs, global: &Global) -> Result<ExitCode> {
    let method = match args.method {
        Verb::Get => Method::GET,
        Verb::Post => Method::POST,
        Verb::Put => Method::PUT,
        Verb::Patch => Method::PATCH,
        Verb::Delete => Method::DELETE,
    };
    let sent = if args.json.is_some() { Some(Value::Object(body(args.json.as_deref())?)) } else { None };
    block_on(async {
        show(&args.remote.server()?.ask(method, &args.path, sent.as_ref()).await?, global)?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Commands that only list.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: ListAction,
    /// Which server.
    #[command(flatten)]
    pub remote: Remote,
}

/// The one thing that can be done.
#[derive(Debug, clap::Subcommand)]
pub enum ListAction {
    /// List all.
    List,
}

/// `lakescope clusters list`.
pub fn clusters(args: &ListArgs, global: &Global) -> Result<ExitCode> {
    let columns: [Column; 3] =
        [("ID", |c| text(c, "cluster_id")), ("Name", |c| text(c, "cluster_name")), ("State", |c| text(c, "state"))];
    listed(args, "/api/2.1/clusters/list", "clusters", &columns, global)
}

/// `lakescope warehouses list`.
pub fn warehouses(args: &ListArgs, global: &Global) -> Result<ExitCode> {
    let columns: [Column; 3] =
        [("ID", |w| text(w, "id")), ("Name", |w| text(w, "name")), ("State", |w| text(w, "state"))];
    listed(args, "/api/2.0/sql/warehouses", "warehouses", &columns, global)
}

fn listed(args: &ListArgs, path: &str, items: &str, columns: &[Column], global: &Global) -> Result<ExitCode> {
    let ListAction::List = args.action;
    block_on(async {
        let items = args.remote.server()?.list(path, items, &[], usize::MAX).await?;
        show_list(items, columns, args.remote.output, global)?;
        Ok(ExitCode::SUCCESS)
    })
}

/// `lakescope current-user me`.
#[derive(Debug, clap::Args)]
pub struct UserArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: UserAction,
    /// Which server.
    #[command(flatten)]
    pub remote: Remote,
}

/// What can be asked of the user.
#[derive(Debug, clap::Subcommand)]
pub enum UserAction {
    /// Show who the token makes you.
    Me,
}

/// Shows who asks.
pub fn current_user(args: &UserArgs, global: &Global) -> Result<ExitCode> {
    let UserAction::Me = args.action;
    block_on(async {
        show(&args.remote.server()?.get("/api/2.0/preview/scim/v2/Me", &[]).await?, global)?;
        Ok(ExitCode::SUCCESS)
    })
}

/// A field as text: ids and names alike.
pub fn text(value: &Value, field: &str) -> String {
    match &value[field] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
