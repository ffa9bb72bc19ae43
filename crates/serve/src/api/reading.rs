//! Pasted text: what it is, and what it says.

use super::applications::Usual;
use super::failure::{self, Failure};
use super::openapi::{shapes, words};
use super::{Answer, Shared, json, page, sql, waiting};
use crate::Opened;
use crate::params::Params;
use axum::extract::{RawQuery, State};
use diagnose::Config;
use model::PasteKind;
use serde::Serialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// What a text says.
#[derive(Serialize, ToSchema)]
struct Reading {
    /// What it was taken for.
    #[schema(value_type = shapes::PasteKind)]
    kind: PasteKind,
    /// What is wrong, as the page of an application shows it.
    page: page::Page,
    /// Plans that stand in it.
    plans: Vec<sql::PlanGraph>,
}

/// What a text is.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code)] // Says what `Params` are asked for.
struct Kind {
    /// What the text is, where it alone would be taken for another.
    #[param(inline, required = false, default = "auto")]
    kind: words::TextKind,
}

/// Reads a pasted text.
///
/// The output of `explain()`, a stack trace, an excerpt of a log, figures of a stage or progress of
/// a streaming query. It is not kept. A viewer may ask, although it is a POST.
#[utoipa::path(
    post, path = "/read", operation_id = "readText", tag = "tools", params(Kind),
    request_body(content = String, description = "The text, UTF-8, at most 4 MiB", content_type = "text/plain"),
    responses(
        (status = 200, description = "What it says", body = Reading),
        (status = 400, description = "There is no text to read, or no such kind", body = failure::Body),
        (status = 413, description = "The text is longer than 4 MiB", body = String, content_type = "text/plain"),
    ),
)]
pub(super) async fn read(State(history): Shared, RawQuery(query): RawQuery, body: String) -> Answer {
    waiting(move || answer(&history.config(), &Params::of(query.as_deref()), &body)).await
}

fn answer(config: &Arc<Config>, params: &Params, text: &str) -> Answer {
    let words = [
        ("auto", None),
        ("plan", Some(PasteKind::Plan)),
        ("stack", Some(PasteKind::Stack)),
        ("stage-metrics", Some(PasteKind::StageMetrics)),
        ("streaming", Some(PasteKind::Streaming)),
        ("question", Some(PasteKind::Question)),
    ];
    let kind = params.word("kind", &words, "auto, plan, stack, stage-metrics, streaming or question")?;
    if text.trim().is_empty() {
        let next = "paste the output of explain(), a stack trace, stage figures or streaming progress";
        return Err(Failure::bad_request("there is no text to read".to_owned(), next));
    }
    let opened = Opened::new(Arc::new(read::paste::read(text, kind)), Arc::clone(config));
    let pasted = opened.app().pasted.as_ref();
    let plans = pasted.map(|pasted| pasted.plans.as_slice()).unwrap_or_default();
    let graph = |plan: &model::Plan| {
        let title = if plan.title.is_empty() { "Plan" } else { &plan.title };
        sql::graph(plan, None, &[], title)
    };
    Ok(json(&Reading {
        kind: pasted.map(|pasted| pasted.kind).unwrap_or_default(),
        plans: plans.iter().map(graph).collect(),
        page: page::of(&opened, Usual::default(), false),
    }))
}
