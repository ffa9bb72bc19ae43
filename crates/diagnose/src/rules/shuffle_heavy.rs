//! SHUFFLE_HEAVY: far more bytes cross shuffles than are read (section 4.4 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use model::{Bytes, Count, Factor, Metric, Operator, RemedyKind, Severity};

/// From this ratio on it is at least medium.
const MEDIUM: f64 = 3.0;
/// Exchanges that are listed.
const LISTED: usize = 5;

/// Looks at every execution.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let (mut shuffled, mut read) = (0, 0);
    let before = out.drafts.len();
    for query in queries::of_users(cx) {
        let sr = query.shuffled_bytes(cx);
        let input: i64 = query.stages(cx).map(|s| s.sum(Metric::InputBytes)).sum();
        (shuffled, read) = (shuffled + sr, read + input);
        let ratio = sr as f64 / input.max(1) as f64;
        // Without any input (generated or cached rows, old versions) the ratio means nothing.
        if input > 0 && ratio >= cx.config.shuffle_ratio && sr >= cx.config.shuffle_min_bytes {
            out.push(draft(cx, &query, sr, input, ratio));
        }
    }
    if out.drafts.len() == before && shuffled > 0 {
        out.fine("shuffle", format!("{} through shuffles, {} read", Bytes(shuffled as u64), Bytes(read as u64)));
    }
}

struct Moved {
    at: usize,
    bytes: i64,
    rows_in: Option<i64>,
}

fn exchanges(cx: &Context<'_>, query: &Query<'_>) -> Vec<Moved> {
    let mut moved: Vec<Moved> = query
        .nodes()
        .filter(|(_, n)| matches!(n.op, Operator::Exchange(_)))
        .filter_map(|(at, _)| {
            let written =
                ["shuffle bytes written", "num bytes written"].iter().find_map(|m| query.metric(cx, at, m))?;
            Some(Moved { at, bytes: written, rows_in: query.rows(cx, at) })
        })
        .collect();
    moved.sort_by_key(|m| std::cmp::Reverse(m.bytes));
    moved
}

fn draft(cx: &Context<'_>, query: &Query<'_>, sr: i64, input: i64, ratio: f64) -> Draft {
    let moved = exchanges(cx, query);
    let name = query.location();
    let title = format!(
        "{name} moves {} through shuffles for {} read: {}",
        Bytes(sr as u64),
        Bytes(input as u64),
        Factor(ratio)
    );
    let list: Vec<String> = moved
        .iter()
        .take(LISTED)
        .map(|m| {
            let rows = m.rows_in.map(|r| format!(", {} rows", Count(r.max(0) as u64))).unwrap_or_default();
            format!("{}: {}{rows}", queries::human(query.plan, m.at), Bytes(m.bytes as u64))
        })
        .collect();
    let draft = Draft::new("SHUFFLE_HEAVY", title)
        .severity(if ratio >= MEDIUM { Severity::Medium } else { Severity::Low })
        .evidence("shuffle_read_bytes", sr, "bytes")
        .over(cx.config.shuffle_min_bytes as f64)
        .seen_at(name)
        .evidence("input_bytes", input, "bytes")
        .evidence("shuffle_over_input", ratio, "ratio")
        .over(cx.config.shuffle_ratio)
        .evidence("exchanges", list, "")
        .not("input and output", "bytes read from and written to tables are not counted")
        .explained_by(&["ROWS_EXPLODE", "JOIN_CARTESIAN", "EXCHANGE_NOT_REUSED", "EXCHANGE_REDUNDANT"]);
    let draft = match moved.first() {
        Some(m) => query.place_node(cx, m.at, draft),
        None => query.place(cx, draft),
    };
    with_remedies(query, draft, &moved)
}

fn with_remedies(query: &Query<'_>, draft: Draft, moved: &[Moved]) -> Draft {
    let largest = moved.first().map(|m| (queries::human(query.plan, m.at), m));
    let keys = moved.iter().find_map(|m| match &query.plan.nodes[m.at].op {
        Operator::Exchange(e) if !e.keys.is_empty() => Some(e.keys.join(", ")),
        _ => None,
    });
    let draft = match &largest {
        Some((name, m)) => draft
            .remedy(RemedyKind::Code, format!("Filter, aggregate and drop columns before {name}, the largest shuffle"))
            .computed(format!("it moves {}", Bytes(m.bytes as u64))),
        None => draft.remedy(RemedyKind::Code, "Filter, aggregate and drop columns before the joins"),
    };
    let draft = match keys {
        Some(keys) => draft.remedy(
            RemedyKind::Layout,
            format!("If these tables are joined by {keys} again and again, bucket or cluster both by it"),
        ),
        None => draft,
    };
    draft
        .useless("repartition by the join key", "it is the same shuffle once more")
        .useless("caching before the join", "cached rows are shuffled all the same")
        .confirm("shuffle read of the execution's stages against their input")
}
