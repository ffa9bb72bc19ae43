//! COLUMNS_WIDE: many columns are read and few are used (section 4.4 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::plan_text::columns;
use crate::queries::{self, Query};
use model::{Operator, RemedyKind, Scan, Severity, Share};
use std::collections::BTreeSet;

/// Columns read from which a scan is wide.
const WIDE: usize = 50;
/// Share of them that must be used.
const USED: f64 = 0.20;

/// Looks at every scan with many columns.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for query in queries::of_users(cx) {
        for (at, node) in query.nodes() {
            let Operator::Scan(scan) = &node.op else { continue };
            let read = width(scan);
            let Some(used) = used(&query, at, scan).filter(|_| read >= WIDE && !scan.cut) else { continue };
            let share = used.len() as f64 / read as f64;
            if share < USED {
                out.push(draft(cx, &query, at, scan, &used, share));
            }
        }
    }
}

/// Columns read from the files: those of the read schema, where the text has it.
fn width(scan: &Scan) -> usize {
    if scan.schema.is_empty() { scan.columns.len() } else { scan.schema.len() }
}

/// Columns that are spoken of up to the first projection or aggregate, which says what is kept.
/// `None` when something takes whole rows before that.
fn used(query: &Query<'_>, at: usize, scan: &Scan) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut now = at;
    loop {
        now = query.plan.consumer(now)?;
        let node = &query.plan.nodes[now];
        if node.detail.contains("...") {
            return None;
        }
        names.extend(columns(&node.detail).into_iter().filter(|c| scan.columns.contains(c)));
        match node.op {
            Operator::Filter { .. } => {}
            Operator::Project { .. } | Operator::Aggregate(_) => return Some(names),
            _ => return None,
        }
    }
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize, scan: &Scan, used: &BTreeSet<String>, share: f64) -> Draft {
    let name = queries::short_source(scan);
    let title = format!("{} columns of {name} are read and {} are used", width(scan), used.len());
    let few: Vec<String> = used.iter().take(12).cloned().collect();
    let mut draft = Draft::new("COLUMNS_WIDE", title)
        .severity(Severity::Low)
        .evidence("columns_read", width(scan), "columns")
        .over(WIDE as f64)
        .seen_at(query.location())
        .evidence("columns_used", used.len(), "columns")
        .evidence("used_share", share, "share")
        .evidence("names_used", few.clone(), "");
    if let Some((_, bytes)) = query.files(cx, at) {
        draft = draft.evidence("bytes", bytes, "bytes");
    }
    query
        .place_node(cx, at, draft)
        .remedy(RemedyKind::Code, format!("Select the {} columns right after reading; keep the data in a columnar format, where the others are then not read", used.len()))
        .snippet(format!("spark.read.table(\"{}\").select({})", queries::sql_source(scan), few.iter().map(|c| format!("\"{c}\"")).collect::<Vec<_>>().join(", ")))
        .computed(format!("{} of {} columns are used: {}", used.len(), width(scan), Share(share)))
        .confirm("columns in ReadSchema")
}
