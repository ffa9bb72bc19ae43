//! A query plan as text: stage by stage from the data to the result.

use super::text::paper::{Paper, Role, span};
use super::{one_line, words};
use diagnose::plan_reading::{Change, PlanReading, Step};
use model::{Bytes, Count, Millis};

/// The plan, what to notice, and what adaptive execution changed.
#[must_use]
pub fn plan_text(plan: &PlanReading, changes: &[Change], width: usize) -> String {
    let mut page = Paper::new(width);
    let state = match plan.is_final {
        Some(true) => " (final)",
        Some(false) => " (may still change at run time)",
        None => "",
    };
    let title = if plan.title.is_empty() { "Plan" } else { &plan.title };
    page.flow(&[], &[span(Role::Strong, one_line(title)), span(Role::Quiet, state)]);
    page.flow(&[span(Role::Plain, "  ")], &[span(Role::Plain, words::glued(&one_line(&plan.summary)))]);
    steps(&mut page, plan);
    notes(&mut page, plan);
    for (i, change) in changes.iter().enumerate() {
        if i == 0 {
            heading(&mut page, "What adaptive execution changed");
        }
        page.flow(&[span(Role::Quiet, "  · ")], &[span(Role::Plain, words::glued(&one_line(&change.text)))]);
    }
    page.finish()
}

fn steps(page: &mut Paper, plan: &PlanReading) {
    for (i, stage) in plan.stages.iter().enumerate() {
        let spark = stage.spark_stage.map(|id| format!(", stage {id} of Spark")).unwrap_or_default();
        heading(page, &format!("Part {}{spark}", i + 1));
        for step in plan.steps.iter().filter(|step| stage.steps.contains(&step.number)) {
            one(page, step);
        }
        if !stage.ends.is_empty() {
            page.flow(&[span(Role::Shuffle, "    ↓ ")], &[span(Role::Quiet, words::glued(&one_line(&stage.ends)))]);
        }
    }
}

fn one(page: &mut Paper, step: &Step) {
    let number = format!("{:>3} ", step.number);
    let mut line = vec![span(Role::Strong, one_line(&step.name))];
    if let Some(number) = step.operator_number {
        line.push(span(Role::Quiet, format!(" ({number})")));
    }
    // A step that takes the rows of the one above it need not say so.
    let inputs: Vec<String> = step.inputs.iter().map(usize::to_string).collect();
    if inputs.len() > 1 || step.inputs.first().is_some_and(|input| input + 1 != step.number) {
        line.push(span(Role::Quiet, format!(" from {}", inputs.join(" and "))));
    }
    line.push(span(Role::Quiet, measured(step)));
    page.flow(&[span(Role::Quiet, number)], &line);
    for detail in &step.details {
        page.flow(&[span(Role::Plain, "      ")], &[span(Role::Quiet, words::glued(&one_line(detail)))]);
    }
}

fn measured(step: &Step) -> String {
    let positive = |n: i64| u64::try_from(n).unwrap_or(0);
    let estimated = if step.time_estimated { " (estimated)" } else { "" };
    [
        step.rows.map(|rows| format!("{} row{}", Count(positive(rows)), if rows == 1 { "" } else { "s" })),
        step.bytes.map(|bytes| Bytes(positive(bytes)).to_string()),
        step.time_ms.map(|ms| format!("{}{estimated}", Millis(ms))),
    ]
    .into_iter()
    .flatten()
    .map(|figure| format!(" · {}", figure.replace(' ', "\u{a0}")))
    .collect()
}

fn notes(page: &mut Paper, plan: &PlanReading) {
    let threshold = plan.broadcast_threshold.as_ref();
    if !plan.notes.is_empty() || threshold.is_some() {
        heading(page, "Notice");
    }
    for note in &plan.notes {
        let (mark, role) = if note.kind.is_warning() { ("  ▲ ", Role::High) } else { ("  · ", Role::Quiet) };
        let step = note.step.map(|step| format!("step\u{a0}{step}: ")).unwrap_or_default();
        let text = words::glued(&words::capital(&one_line(&note.text)));
        page.flow(&[span(role, mark)], &[span(Role::Quiet, step), span(Role::Plain, text)]);
    }
    if let Some(threshold) = threshold {
        page.flow(
            &[span(Role::Quiet, "  · ")],
            &[span(Role::Quiet, words::glued(&words::capital(&one_line(threshold))))],
        );
    }
}

fn heading(page: &mut Paper, text: &str) {
    page.blank();
    page.line(&[span(Role::Strong, text)]);
}

/// Queries of an application, the longest first: id, duration, description.
#[must_use]
pub fn queries_text(rows: &[(String, String, String)], width: usize) -> String {
    let mut page = Paper::new(width);
    for (id, duration, description) in rows {
        let lead = [span(Role::Strong, format!("{id:<8}")), span(Role::Quiet, format!("{duration:>11}  "))];
        page.flow(&lead, &[span(Role::Plain, description.as_str())]);
    }
    page.finish()
}

/// A heading with labelled texts below it.
#[must_use]
pub fn labelled_text(head: &str, lines: &[(&str, String)], width: usize) -> String {
    let mut page = Paper::new(width);
    page.line(&[span(Role::Strong, head)]);
    for (label, text) in lines {
        page.flow(&[span(Role::Quiet, format!("  {label:<13}"))], &[span(Role::Plain, words::glued(text))]);
    }
    page.finish()
}
