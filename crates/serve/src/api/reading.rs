//! Pasted text: what it is, and what it says.

use super::applications::Usual;
use super::failure::Failure;
use super::{Answer, json, page, sql};
use crate::Opened;
use crate::params::Params;
use diagnose::Config;
use model::PasteKind;
use serde::Serialize;
use std::sync::Arc;

/// The answer.
#[derive(Serialize)]
struct Reading {
    kind: PasteKind,
    page: page::Page,
    plans: Vec<sql::PlanGraph>,
}

/// Reads a text; `kind` says what it is, where the text alone would be taken for another.
pub(super) fn answer(config: &Arc<Config>, params: &Params, text: &str) -> Answer {
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
