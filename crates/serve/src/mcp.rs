//! The Model Context Protocol: the same answers for a model, each sized for its context.

use crate::api::tools;
use crate::{History, Opened};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, Implementation, ServerCapabilities, ServerConfig};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a model is told before its first question.
const INSTRUCTIONS: &str = "Answers about Apache Spark applications from their event logs. Begin with list_applications, \
                            then diagnosis: it says what is wrong, with evidence, what mending it saves and what to change. \
                            stage, task_distribution and plan show what is behind a finding; compare takes the difference \
                            of two runs apart; read_text reads a pasted plan, stack trace or stage figures. Times are ms, \
                            sizes bytes.";

/// The tools over a history.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    history: Arc<dyn History>,
    tool_router: ToolRouter<Self>,
}

/// Which applications to list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Which {
    /// Only applications that failed or have a finding of severity high or critical.
    #[serde(default)]
    pub needs_a_person: bool,
    /// Only applications whose name or id contains this text.
    #[serde(default)]
    pub contains: Option<String>,
    /// At most so many, the worst first; 20 unless told otherwise.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// An application.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct App {
    /// Application id, as list_applications gives it.
    pub application: String,
    /// Attempt id, where the application has attempts.
    #[serde(default)]
    pub attempt: Option<String>,
}

/// Two runs.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Two {
    /// The earlier run, an application id.
    pub base: String,
    /// The run in question, an application id.
    pub new: String,
}

/// A stage of an application.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StageOf {
    /// Application id.
    pub application: String,
    /// Attempt id of the application, where it has attempts.
    #[serde(default)]
    pub attempt: Option<String>,
    /// Stage id.
    pub stage: u32,
    /// Attempt of the stage, from 0.
    #[serde(default)]
    pub stage_attempt: u32,
}

/// A query of an application.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct QueryOf {
    /// Application id.
    pub application: String,
    /// Attempt id of the application, where it has attempts.
    #[serde(default)]
    pub attempt: Option<String>,
    /// SQL execution id; without it the queries are listed.
    #[serde(default)]
    pub sql: Option<i64>,
}

/// A pasted text.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Text {
    /// Output of explain(), a stack trace, a log excerpt, figures of a stage or streaming progress.
    pub text: String,
}

#[tool_router]
impl Tools {
    fn new(history: Arc<dyn History>) -> Self {
        Self { history, tool_router: Self::tool_router() }
    }

    #[tool(
        description = "Lists Spark applications, the worst first: what is wrong in a sentence, what mending it would save."
    )]
    async fn list_applications(&self, Parameters(which): Parameters<Which>) -> Result<CallToolResult, ErrorData> {
        self.answer(move |history| Ok(tools::applications(history, &which))).await
    }

    #[tool(
        description = "What is wrong with an application: findings by cost with evidence, certainty, remedies and what would not help."
    )]
    async fn diagnosis(&self, Parameters(app): Parameters<App>) -> Result<CallToolResult, ErrorData> {
        self.about(app.application, app.attempt, |_, opened| Ok(tools::diagnosis(opened))).await
    }

    #[tool(description = "Takes the difference of two runs apart: data, plan, cluster, configuration, findings, rest.")]
    async fn compare(&self, Parameters(two): Parameters<Two>) -> Result<CallToolResult, ErrorData> {
        self.answer(move |history| tools::compare(history, &two.base, &two.new)).await
    }

    #[tool(
        description = "A stage: status, failure, quantiles of its tasks, what its slow tasks have in common, findings about it."
    )]
    async fn stage(&self, Parameters(of): Parameters<StageOf>) -> Result<CallToolResult, ErrorData> {
        self.about(of.application, of.attempt, move |_, opened| tools::stage(opened, of.stage, of.stage_attempt)).await
    }

    #[tool(description = "How the tasks of a stage are spread: quantiles of each figure and the slowest tasks.")]
    async fn task_distribution(&self, Parameters(of): Parameters<StageOf>) -> Result<CallToolResult, ErrorData> {
        self.about(of.application, of.attempt, move |_, opened| tools::tasks(opened, of.stage, of.stage_attempt)).await
    }

    #[tool(
        description = "A query's plan from data to result with time, rows and what to notice; without sql the queries of the application."
    )]
    async fn plan(&self, Parameters(of): Parameters<QueryOf>) -> Result<CallToolResult, ErrorData> {
        self.about(of.application, of.attempt, move |_, opened| tools::plan(opened, of.sql)).await
    }

    #[tool(
        description = "Reads a pasted plan, stack trace, log excerpt, stage figures or streaming progress and says what is wrong."
    )]
    async fn read_text(&self, Parameters(text): Parameters<Text>) -> Result<CallToolResult, ErrorData> {
        self.answer(move |history| Ok(tools::read(history, &text.text))).await
    }
}

impl Tools {
    /// Runs what may read a log on a thread that may wait.
    async fn answer<T: Serialize>(
        &self,
        answer: impl FnOnce(&dyn History) -> Result<T, String> + Send + 'static,
    ) -> Result<CallToolResult, ErrorData> {
        let history = Arc::clone(&self.history);
        let text = crate::spans::spawn_blocking(move || {
            let answer = answer(&*history)?;
            serde_json::to_string(&answer).map_err(|error| error.to_string())
        });
        let block = |text| vec![ContentBlock::text(text)];
        Ok(match text.await {
            Ok(Ok(text)) => CallToolResult::success(block(text)),
            Ok(Err(why)) => CallToolResult::error(block(why)),
            Err(_) => CallToolResult::error(block("answering failed".to_owned())),
        })
    }

    async fn about<T: Serialize>(
        &self,
        id: String,
        attempt: Option<String>,
        answer: impl FnOnce(&dyn History, &Opened) -> Result<T, String> + Send + 'static,
    ) -> Result<CallToolResult, ErrorData> {
        self.answer(move |history| {
            let opened = history.open(&id, attempt.as_deref())?;
            let opened = opened.ok_or_else(|| format!("there is no application {id}; list_applications lists all"))?;
            answer(history, &opened)
        })
        .await
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("lakescope", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }
}

/// The service over HTTP, without sessions: every question stands alone. The names that a server
/// may be asked by are the guard's affair.
pub(crate) fn over_http(history: Arc<dyn History>) -> StreamableHttpService<Tools, LocalSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts();
    StreamableHttpService::new(
        move || Ok(Tools::new(Arc::clone(&history))),
        LocalSessionManager::default().into(),
        config,
    )
}

/// Answers over standard input and output until the client closes them.
///
/// # Errors
/// When the client does not speak the protocol.
pub async fn over_stdio(history: Arc<dyn History>) -> Result<(), String> {
    let running = Tools::new(history).serve(rmcp::transport::stdio()).await;
    let running = running.map_err(|error| format!("the client does not speak the protocol: {error}"))?;
    running.waiting().await.map(drop).map_err(|error| error.to_string())
}
