//! The answers of the API, cut to what a model needs.

use super::{applications, page, sql, stages};
use crate::mcp::Which;
use crate::{History, Opened};
use model::Severity;
use serde_json::{Map, Value, json};

/// Applications listed unless told otherwise, and at most.
const APPLICATIONS: usize = 20;
const MOST: usize = 200;
/// Lines of evidence and findings of a diagnosis.
const EVIDENCE: usize = 8;
const FINDINGS: usize = 12;
/// Slowest tasks of a distribution, rows of lists.
const SLOWEST: usize = 5;
const ROWS: usize = 40;
/// Characters of a text that may be long: a stack, a snippet, the detail of an operator.
const LONG: usize = 1_500;

/// Applications, the worst first.
pub(crate) fn applications(history: &dyn History, which: &Which) -> Value {
    let mut all = history.list();
    let text = which.contains.as_deref().unwrap_or_default().to_lowercase();
    all.retain(|app| {
        let wanted = app.verdict.failed || app.verdict.severity >= Some(Severity::High);
        let named = app.name.to_lowercase().contains(&text) || app.id.to_lowercase().contains(&text);
        named && (wanted || !which.needs_a_person)
    });
    let rank = |app: &crate::Listed| (app.verdict.failed, app.verdict.severity, app.verdict.saving_ms, app.started_ms);
    all.sort_by_key(|app| std::cmp::Reverse(rank(app)));
    let (total, now) = (all.len(), crate::clock::now_ms());
    let row = |app: &crate::Listed| {
        json!({
            "application": app.id, "attempt": app.attempt, "name": app.name, "started_ms": app.started_ms,
            "wall_ms": app.wall_ms(), "running": app.is_running(now), "failed": app.verdict.failed,
            "severity": app.verdict.severity, "what_is_wrong": app.verdict.sentence,
            "saving_ms": app.verdict.saving_ms, "tasks": app.usage.tasks, "spill_bytes": app.usage.spill_bytes,
        })
    };
    let limit = which.limit.unwrap_or(APPLICATIONS).min(MOST);
    let shown: Vec<Value> = all.iter().take(limit).map(row).collect();
    json!({ "total": total, "ready": history.is_ready(), "applications": shown })
}

/// What is wrong with an application.
pub(crate) fn diagnosis(opened: &Opened) -> Value {
    short(&page::of(opened, applications::Usual::default(), false))
}

/// A page without what only people look at.
fn short(page: &page::Page) -> Value {
    let mut page = serde_json::to_value(page).unwrap_or_default();
    let chapters = page["chapters"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let left_out = chapters.len().saturating_sub(FINDINGS);
    let findings: Vec<Value> = chapters.into_iter().take(FINDINGS).map(chapter).collect();
    let checked = page["checked"].as_array().into_iter().flatten().filter(|c| c["fine"] == true);
    json!({
        "application": page["application"], "state": page["state"], "sentence": page["verdict"]["sentence"],
        "where_the_time_went": page["budget"], "findings": findings, "findings_left_out": left_out,
        "checked_and_fine": checked.map(|c| c["what"].clone()).collect::<Vec<_>>(), "warnings": page["warnings"],
    })
}

fn chapter(mut chapter: Value) -> Value {
    let mut root = chapter["root"].take();
    let follows = chapter["follows"].as_array().into_iter().flatten();
    let mut finding = Map::new();
    finding.insert("number".to_owned(), chapter["number"].clone());
    let kept = [
        "id",
        "title",
        "severity",
        "certainty",
        "place",
        "stage",
        "attempt",
        "sql",
        "task",
        "saved",
        "saved_note",
        "excluded",
        "remedies",
        "will_not_help",
        "confirm",
    ];
    for key in kept {
        finding.insert(key.to_owned(), root[key].take());
    }
    let evidence = root["evidence"].as_array().into_iter().flatten().take(EVIDENCE);
    let line = |e: &Value| format!("{}: {}", text(&e["label"]), text(&e["value"]));
    finding.insert("evidence".to_owned(), evidence.map(line).collect());
    finding.insert("explains".to_owned(), follows.map(|f| f["title"].clone()).collect());
    let mut finding = Value::Object(finding);
    cut(&mut finding);
    finding
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Cuts long texts, and drops what is null or empty.
fn cut(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(LONG) {
                text.truncate(end);
                text.push('…');
            }
        }
        Value::Array(items) => items.iter_mut().for_each(cut),
        Value::Object(fields) => {
            fields.values_mut().for_each(cut);
            fields.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()));
        }
        _ => {}
    }
}

/// Two runs side by side.
pub(crate) fn compare(history: &dyn History, base: &str, new: &str) -> Result<Value, String> {
    let open = |id: &str| history.open(id, None)?.ok_or_else(|| format!("there is no application {id}"));
    let (base, new) = (open(base)?, open(new)?);
    let compared = diagnose::compare::compare(&[base.app()], new.app(), &history.config());
    let mut value = serde_json::to_value(compared).map_err(|error| error.to_string())?;
    if let Some(pieces) = value["pieces"].as_array_mut() {
        pieces.truncate(ROWS);
    }
    cut(&mut value);
    Ok(value)
}

/// A stage.
pub(crate) fn stage(opened: &Opened, id: u32, attempt: u32) -> Result<Value, String> {
    let stage = stages::one(opened, id, attempt).map_err(|failure| failure.message())?;
    let mut value = serde_json::to_value(stage).map_err(|error| error.to_string())?;
    if let Some(rows) = value["summary"].as_array_mut() {
        rows.retain(|row| row["show"] == true);
    }
    cut(&mut value);
    Ok(value)
}

/// Quantiles and the slowest tasks of a stage.
pub(crate) fn tasks(opened: &Opened, id: u32, attempt: u32) -> Result<Value, String> {
    let stage = stage(opened, id, attempt)?;
    let params = crate::params::Params::of(Some(&format!("sort=-duration_ms&limit={SLOWEST}")));
    let slowest = stages::tasks(opened.app(), id, attempt, &params).map_err(|failure| failure.message())?;
    let mut slowest = serde_json::to_value(slowest).map_err(|error| error.to_string())?;
    cut(&mut slowest);
    Ok(json!({
        "tasks": stage["tasks"], "quantiles": stage["summary"], "slow": stage["slow"],
        "slow_tasks_differ_in": stage["differs"], "slowest": slowest["tasks"],
    }))
}

/// A plan, or the queries.
pub(crate) fn plan(opened: &Opened, id: Option<i64>) -> Result<Value, String> {
    let Some(id) = id else {
        let mut rows = sql::list(opened);
        rows.sort_by_key(|row| std::cmp::Reverse(row.duration_ms()));
        let mut value = json!({ "total": rows.len(), "queries": rows.iter().take(ROWS).collect::<Vec<_>>() });
        cut(&mut value);
        return Ok(value);
    };
    let query = sql::one(opened, id).map_err(|failure| failure.message())?;
    let mut value = serde_json::to_value(query).map_err(|error| error.to_string())?;
    if let Some(plans) = value["plans"].as_array_mut() {
        plans.truncate(1);
        plans.iter_mut().for_each(operators);
    }
    if let Some(fields) = value.as_object_mut() {
        fields.remove("details");
    }
    cut(&mut value);
    Ok(value)
}

/// Of an operator what it does, what it took and what went through it.
fn operators(plan: &mut Value) {
    let kept = ["id", "human", "time_ms", "share", "rows", "bytes", "pruned", "stage", "findings", "notes"];
    for node in plan["nodes"].as_array_mut().into_iter().flatten() {
        if let Some(fields) = node.as_object_mut() {
            fields.retain(|key, _| kept.contains(&key.as_str()));
        }
    }
    if let Some(fields) = plan.as_object_mut() {
        fields.remove("text");
    }
}

/// A pasted text.
pub(crate) fn read(history: &dyn History, text: &str) -> Value {
    let app = std::sync::Arc::new(read::paste::read(text, None));
    let opened = Opened::new(app, history.config());
    short(&page::of(&opened, applications::Usual::default(), false))
}
