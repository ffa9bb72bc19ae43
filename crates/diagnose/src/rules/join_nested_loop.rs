//! JOIN_NESTED_LOOP: every row of one side is compared with every row of the other (section 4.4).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::plan_text::{columns, conjuncts, disjuncts, unwrapped, without_ids};
use crate::queries::{self, Query};
use model::{Confidence, Count, Join, JoinAlgorithm, Operator, RemedyKind, Severity, Side};

/// Pairs from which it is high.
const HIGH: f64 = 1e10;
/// Pairs below which nobody waits for it.
const LITTLE: f64 = 1e6;

/// Looks at every nested loop join.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for query in queries::of_users(cx) {
        for (at, node) in query.nodes() {
            let Operator::Join(join) = &node.op else { continue };
            if join.algorithm == JoinAlgorithm::NestedLoop
                && let Some(draft) = draft(cx, &query, at, join)
            {
                out.push(draft);
            }
        }
    }
}

struct Sides {
    left: Option<i64>,
    right: Option<i64>,
}

impl Sides {
    fn pairs(&self) -> Option<f64> {
        Some(self.left? as f64 * self.right? as f64)
    }

    /// A side of at most one row: what a scalar subquery or a total gives.
    fn scalar(&self) -> bool {
        [self.left, self.right].into_iter().flatten().any(|rows| rows <= 1)
    }
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize, join: &Join) -> Option<Draft> {
    let inputs = query.plan.inputs(at);
    let rows = |n: usize| inputs.get(n).and_then(|&i| query.rows(cx, i));
    let sides = Sides { left: rows(0), right: rows(1) };
    if sides.scalar() || inputs.iter().any(|&i| is_total(query, i)) {
        return None;
    }
    let condition = join.condition.as_deref().unwrap_or_default();
    let cause = Cause::of(condition, &join.kind);
    let pairs = sides.pairs();
    let title = match pairs {
        Some(_) => {
            format!("{} × {} rows are compared pair by pair: {}", shown(sides.left), shown(sides.right), cause.what)
        }
        None => format!("a nested loop join compares every row with every other: {}", cause.what),
    };
    let severity = match pairs {
        Some(p) if p >= HIGH => Severity::High,
        Some(p) if p >= cx.config.nested_loop_rows => Severity::Medium,
        Some(p) if p >= LITTLE => Severity::Low,
        Some(_) => Severity::Info,
        None if query.is_lint() => Severity::Medium,
        None => Severity::Low,
    };
    let mut draft = Draft::new("JOIN_NESTED_LOOP", title)
        .severity(severity)
        .evidence("join_type", join.kind.clone(), "")
        .seen_at(query.location())
        .evidence("cause", cause.what.clone(), "");
    if let Some(key) = &cause.key {
        draft = draft.evidence("equi_key", key.clone(), "");
    }
    if let (Some(l), Some(r), Some(p)) = (sides.left, sides.right, pairs) {
        draft = draft
            .evidence("left_rows", l, "rows")
            .evidence("right_rows", r, "rows")
            .evidence("pairs", p, "rows")
            .over(cx.config.nested_loop_rows);
    } else if !query.is_lint() {
        draft = draft.sure(Confidence::Medium, "the plan does not tell the rows of both sides");
    }
    if let Some(out) = query.rows(cx, at) {
        draft = draft.evidence("number_of_output_rows", out, "rows");
    }
    draft = draft.evidence("condition", without_ids(condition), "");
    Some(with_remedies(query.place_node(cx, at, draft), join, &cause))
}

fn shown(rows: Option<i64>) -> String {
    rows.map_or_else(|| "?".to_owned(), |r| Count(r.max(0) as u64).to_string())
}

/// An input that has one row by its plan: an aggregate without keys, or `LIMIT 1`.
fn is_total(query: &Query<'_>, at: usize) -> bool {
    let node = &query.plan.nodes[at];
    match &node.op {
        Operator::Aggregate(a) => a.keys.is_empty(),
        Operator::Limit { limit } | Operator::TopK { limit } => *limit == Some(1),
        Operator::BroadcastExchange { .. }
        | Operator::Exchange(_)
        | Operator::Project { .. }
        | Operator::Filter { .. } => query.plan.inputs(at).first().is_some_and(|&i| is_total(query, i)),
        _ => false,
    }
}

/// Why there is no key to join by.
struct Cause {
    what: String,
    kind: Kind,
    key: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    NullSafe,
    NotIn,
    Or,
    Range,
    Function,
    Nothing,
}

impl Cause {
    fn of(condition: &str, kind: &str) -> Self {
        let cause = |what: &str, kind, key| Self { what: what.to_owned(), kind, key };
        if condition.is_empty() {
            return cause("no condition between the two sides", Kind::Nothing, None);
        }
        let parts = conjuncts(condition);
        if let Some(key) = parts.iter().find_map(|p| null_safe(p)) {
            return cause("equality with OR isnull AND isnull", Kind::NullSafe, Some(key));
        }
        if let Some(key) = parts.iter().find_map(|p| not_in(p)).filter(|_| kind == "LeftAnti") {
            return cause("NOT IN over columns that may be NULL", Kind::NotIn, Some(key));
        }
        if parts.iter().any(|p| disjuncts(p).len() > 1) {
            return cause("OR in the join condition", Kind::Or, None);
        }
        if parts.iter().any(|p| [" >= ", " <= ", " > ", " < "].iter().any(|o| p.contains(o))) {
            return cause("only inequalities in the join condition", Kind::Range, None);
        }
        cause("a condition that mixes columns of both sides in one expression", Kind::Function, None)
    }
}

/// The two sides of `(a#1 = b#2)`.
fn equality(text: &str) -> Option<(&str, &str)> {
    let (left, right) = unwrapped(text).split_once(" = ")?;
    (!right.contains(" = ")).then(|| (left.trim(), right.trim()))
}

/// Key of `((a = b) OR (isnull(a) AND isnull(b)))`, in any order.
fn null_safe(part: &str) -> Option<String> {
    let either = disjuncts(part);
    let [one, other] = either[..] else { return None };
    let of = |equal: &str, nulls: &str| {
        let (left, right) = equality(equal)?;
        let nulls = conjuncts(nulls);
        let is_null = |side: &str| nulls.iter().any(|n| unwrapped(n) == format!("isnull({side})"));
        (nulls.len() == 2 && is_null(left) && is_null(right)).then(|| key_name(left))
    };
    of(one, other).or_else(|| of(other, one))
}

/// Key of `((a = b) OR isnull((a = b)))`: what NOT IN becomes.
fn not_in(part: &str) -> Option<String> {
    let either = disjuncts(part);
    let [one, other] = either[..] else { return None };
    let of = |equal: &str, null: &str| {
        let (left, _) = equality(equal)?;
        let inside = null.trim().strip_prefix("isnull(")?.strip_suffix(')')?;
        (unwrapped(inside) == unwrapped(equal)).then(|| key_name(left))
    };
    of(one, other).or_else(|| of(other, one))
}

fn key_name(side: &str) -> String {
    columns(side).first().cloned().unwrap_or_else(|| without_ids(side))
}

fn with_remedies(draft: Draft, join: &Join, cause: &Cause) -> Draft {
    let key = cause.key.clone().unwrap_or_else(|| "key".to_owned());
    let draft = match cause.kind {
        Kind::NullSafe => draft
            .remedy(RemedyKind::Code, format!("Join by {key} <=> {key}: null-safe equality means the same and gives a hash join"))
            .snippet(format!("ON a.{key} <=> b.{key}")),
        Kind::NotIn => draft
            .remedy(RemedyKind::Code, "Write NOT EXISTS, or filter NULLs on both sides first: NOT IN with a NULL in the list keeps no row at all")
            .snippet(format!("WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.{key} = a.{key})")),
        Kind::Or => draft
            .remedy(RemedyKind::Code, "Make one join for each branch of the OR, and unite them without doubles")
            .snippet("SELECT … FROM a JOIN b ON <branch 1>\nUNION\nSELECT … FROM a JOIN b ON <branch 2>"),
        Kind::Range => draft
            .remedy(RemedyKind::Code, "Join by a bin as well: cut the range into bins of equal width, explode the bins of each interval, join by bin and keep the inequality")
            .snippet("ON a.bin = b.bin AND a.x >= b.low AND a.x < b.high   -- bin = floor(x / width)"),
        Kind::Function => draft
            .remedy(RemedyKind::Code, "Compute the expression of each side in a column of its own first, so that the join is an equality of two columns")
            .snippet("ON a.k = b.k   -- k computed on each side before the join"),
        Kind::Nothing => draft.remedy(RemedyKind::Code, "Add a condition, or aggregate one side to a single row first"),
    };
    let built = match join.build {
        Some(Side::Left) => "the left side is broadcast already",
        Some(Side::Right) => "the right side is broadcast already",
        None => "one side is broadcast already",
    };
    draft
        .useless("a broadcast hint", format!("{built}; every pair is compared all the same"))
        .useless("more shuffle partitions", "a nested loop does not shuffle by a key")
        .confirm("a BroadcastHashJoin or SortMergeJoin in place of the BroadcastNestedLoopJoin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_why_there_is_no_key() {
        for (condition, kind, what, key) in [
            ("((ref#256 = ref#270) OR (isnull(ref#256) AND isnull(ref#270)))", "LeftAnti", Kind::NullSafe, Some("ref")),
            ("((isnull(a#1) AND isnull(b#2)) OR (a#1 = b#2))", "Inner", Kind::NullSafe, Some("a")),
            ("((x#1 = y#2) OR isnull((x#1 = y#2)))", "LeftAnti", Kind::NotIn, Some("x")),
            ("((a#1 = b#2) OR (c#3 = d#4))", "Inner", Kind::Or, None),
            ("((id#0L >= low#10L) AND (id#0L < high#11L))", "Inner", Kind::Range, None),
            ("(concat(a#1, b#2) = x)", "Inner", Kind::Function, None),
            ("", "Inner", Kind::Nothing, None),
        ] {
            let cause = Cause::of(condition, kind);
            assert!(cause.kind == what && cause.key.as_deref() == key, "{condition}: {}", cause.what);
        }
    }
}
