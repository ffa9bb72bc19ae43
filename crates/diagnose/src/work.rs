//! What the tasks of a stage do with the rows that they read, as far as the plan (or a pasted
//! node) tells: which operator combines them, by which keys, and from which shuffles.

use crate::context::{Context, StageFacts};
use crate::{queries, sketch};
use model::{Aggregate, Exchange, JoinAlgorithm, Operator, Partitioning, Plan, Scan, Side};

/// Operators of a stage in the terms that rules ask for.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// The operator that takes the rows of the largest shuffle that is read.
    pub operation: Operation,
    /// Keys by which that shuffle spreads rows; empty when unknown or none.
    pub keys: Vec<String>,
    /// That operator, e.g. `SortMergeJoin on customer_id`.
    pub label: Option<String>,
    /// The join, where it is one.
    pub join: Option<JoinWork>,
    /// The aggregate, where it is one.
    pub aggregate: Option<Aggregate>,
    /// Shuffles that are read, largest first.
    pub exchanges: Vec<Exchange>,
    /// `coalesce(n)` in the stage.
    pub coalesce: Option<u64>,
    /// Whether adaptive execution merged partitions for it.
    pub merged: bool,
    /// The source that it reads.
    pub scan: Option<Scan>,
    /// Whether it reads cached data.
    pub reads_cache: bool,
    /// Whether it writes to a table or files.
    pub writes: bool,
    /// Names of operators that multiply or gather rows: explode, windows.
    pub multiplies: Option<String>,
    /// Whether an operator above the join needs rows spread by keys without a further shuffle.
    pub needs_same_keys: bool,
    /// `(rows in, rows out)` of the operator with the largest growth.
    pub growth: Option<(String, i64, i64)>,
    /// Whether any operator of the stage is known.
    pub known: bool,
}

/// What the combining operator is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// Joins.
    Join,
    /// Aggregates by keys.
    Aggregate,
    /// Window functions.
    Window,
    /// Sorts over all partitions.
    Sort,
    /// None of these, or not known.
    #[default]
    Unknown,
}

/// A join with what is known of its sides.
#[derive(Clone, Debug, Default)]
pub struct JoinWork {
    /// Algorithm.
    pub algorithm: JoinAlgorithm,
    /// Type as Spark writes it; empty when unknown.
    pub kind: String,
    /// Keys of the left side.
    pub left_keys: Vec<String>,
    /// Keys of the right side.
    pub right_keys: Vec<String>,
    /// Whether adaptive execution split it.
    pub skew: bool,
    /// Left input.
    pub left: SideFacts,
    /// Right input.
    pub right: SideFacts,
}

/// An input of a join.
#[derive(Clone, Debug, Default)]
pub struct SideFacts {
    /// Bytes its shuffle wrote.
    pub bytes: Option<i64>,
    /// Rows its shuffle wrote.
    pub rows: Option<i64>,
    /// Whether something below rejects NULL keys: a filter, or a join that drops them.
    pub rejects_null: bool,
    /// The one source it comes from, as SQL names it.
    pub table: Option<String>,
    /// Its short name, for sentences and hints.
    pub name: Option<String>,
}

impl JoinWork {
    /// The sides whose NULL keys reach the join: Spark infers `isnotnull` for both sides of inner
    /// and semi joins, for the right side of left outer and anti joins, for the left side of right
    /// outer joins, and for none of full outer joins.
    #[must_use]
    pub fn keeps_nulls(&self) -> &'static [Side] {
        match self.kind.as_str() {
            "LeftOuter" | "LeftAnti" => &[Side::Left],
            "RightOuter" => &[Side::Right],
            "FullOuter" => &[Side::Left, Side::Right],
            _ => &[],
        }
    }

    /// Whether adaptive execution may split a side: the one whose rows may be repeated by reading
    /// the other side more than once.
    #[must_use]
    pub fn may_split(&self, side: Side) -> bool {
        match self.kind.as_str() {
            "LeftOuter" | "LeftAnti" | "LeftSemi" => side == Side::Left,
            "RightOuter" => side == Side::Right,
            "FullOuter" => false,
            _ => true,
        }
    }

    /// An input.
    #[must_use]
    pub fn side(&self, side: Side) -> &SideFacts {
        if side == Side::Left { &self.left } else { &self.right }
    }

    /// Keys of an input.
    #[must_use]
    pub fn keys(&self, side: Side) -> &[String] {
        if side == Side::Left { &self.left_keys } else { &self.right_keys }
    }

    /// The side that a task of `bytes` must have them from: the other one is smaller altogether.
    #[must_use]
    pub fn side_of(&self, bytes: i64) -> Option<Side> {
        match (self.left.bytes?, self.right.bytes?) {
            (left, right) if right < bytes / 2 && left >= bytes / 2 => Some(Side::Left),
            (left, right) if left < bytes / 2 && right >= bytes / 2 => Some(Side::Right),
            _ => None,
        }
    }
}

impl Work {
    pub(crate) fn of(cx: &Context<'_>, facts: &StageFacts<'_>) -> Self {
        match facts.plan() {
            Some(plan) if !facts.nodes.is_empty() => from_plan(cx, facts, plan),
            _ => from_paste(facts),
        }
    }

    /// How rows find their task: the largest shuffle that is read.
    #[must_use]
    pub fn partitioning(&self) -> Option<Partitioning> {
        self.exchanges.first().map(|e| e.partitioning)
    }

    /// The keys for a sentence: `customer_id`, `a and b`; `None` when unknown.
    #[must_use]
    pub fn key_words(&self) -> Option<String> {
        (!self.keys.is_empty()).then(|| self.keys.join(", "))
    }
}

fn from_paste(facts: &StageFacts<'_>) -> Work {
    let Some(pasted) = &facts.stage.pasted else { return Work::default() };
    let mut work = sketch::work(pasted.node.as_deref().unwrap_or_default());
    let chain = sketch::work(pasted.plan.as_deref().unwrap_or_default());
    if !work.known || work.operation == Operation::Unknown && chain.operation != Operation::Unknown {
        return chain;
    }
    work.exchanges.extend(chain.exchanges);
    work.coalesce = work.coalesce.or(chain.coalesce);
    work.scan = work.scan.or(chain.scan);
    work.writes |= chain.writes;
    work
}

fn from_plan(cx: &Context<'_>, facts: &StageFacts<'_>, plan: &Plan) -> Work {
    let mut reads: Vec<(i64, usize)> = facts.reads.iter().map(|&n| (exchange_bytes(cx, plan, n), n)).collect();
    reads.sort_by_key(|&(bytes, node)| (std::cmp::Reverse(bytes), node));
    let exchanges = reads.iter().filter_map(|&(_, n)| match &plan.nodes[n].op {
        Operator::Exchange(exchange) => Some(exchange.clone()),
        _ => None,
    });
    let mut work = Work { exchanges: exchanges.collect(), known: true, ..Work::default() };
    for (_, node) in facts.operators() {
        match &node.op {
            Operator::Scan(scan) => work.scan = Some(scan.clone()),
            Operator::CacheScan => work.reads_cache = true,
            Operator::ShuffleRead { coalesced: true, .. } => work.merged = true,
            Operator::Write { .. } => work.writes = true,
            Operator::Coalesce { partitions } => work.coalesce = Some(partitions.unwrap_or(facts.n as u64)),
            Operator::Generate { .. } | Operator::Expand => work.multiplies = Some(node.name.to_string()),
            _ => {}
        }
    }
    work.growth = growth(cx, facts, plan);
    if let Some(exchange) = work.exchanges.first() {
        work.keys.clone_from(&exchange.keys);
    }
    if let Some(at) = reads.first().and_then(|&(_, n)| combining(facts, plan, n)) {
        describe(cx, facts, plan, at, &mut work);
    }
    work
}

fn exchange_bytes(cx: &Context<'_>, plan: &Plan, node: usize) -> i64 {
    let node = &plan.nodes[node];
    cx.metric(node, "shuffle bytes written").or_else(|| cx.metric(node, "data size")).unwrap_or_default()
}

/// The operator of the stage that combines the rows of an exchange: nothing but sorts within
/// partitions, filters and projections lies between.
fn combining(facts: &StageFacts<'_>, plan: &Plan, exchange: usize) -> Option<usize> {
    let mut at = plan.consumer(exchange)?;
    loop {
        if facts.nodes.binary_search(&at).is_err() {
            return None;
        }
        match &plan.nodes[at].op {
            Operator::Join(_) | Operator::Aggregate(_) | Operator::Window { .. } => return Some(at),
            Operator::Sort { global: true, .. } => return Some(at),
            _ => at = plan.consumer(at)?,
        }
    }
}

fn describe(cx: &Context<'_>, facts: &StageFacts<'_>, plan: &Plan, at: usize, work: &mut Work) {
    let node = &plan.nodes[at];
    match &node.op {
        Operator::Join(join) => {
            work.operation = Operation::Join;
            let inputs = plan.inputs(at);
            let side = |i: usize, keys: &[String]| {
                let input = inputs.get(i).copied();
                input.map(|input| side_facts(cx, plan, input, keys)).unwrap_or_default()
            };
            work.join = Some(JoinWork {
                algorithm: join.algorithm,
                kind: join.kind.clone(),
                skew: join.skew,
                left: side(0, &join.left_keys),
                right: side(1, &join.right_keys),
                left_keys: join.left_keys.clone(),
                right_keys: join.right_keys.clone(),
            });
            work.needs_same_keys = needs_same_keys(facts, plan, at);
        }
        Operator::Aggregate(aggregate) => {
            work.operation = Operation::Aggregate;
            work.aggregate = Some(aggregate.clone());
        }
        Operator::Window { partition_by, .. } => {
            work.operation = Operation::Window;
            if work.keys.is_empty() {
                work.keys.clone_from(partition_by);
            }
        }
        _ => work.operation = Operation::Sort,
    }
    work.label = Some(sketch::labelled(&node.name, &work.keys));
}

/// Whether an operator above a join, in the same stage, relies on its spread of rows: splitting
/// the join would need one more shuffle below it.
fn needs_same_keys(facts: &StageFacts<'_>, plan: &Plan, join: usize) -> bool {
    let mut at = join;
    while let Some(above) = plan.consumer(at).filter(|n| facts.nodes.binary_search(n).is_ok()) {
        let relies = match &plan.nodes[above].op {
            Operator::Aggregate(aggregate) => !aggregate.partial,
            Operator::Window { .. } => true,
            Operator::Join(join) => {
                matches!(join.algorithm, JoinAlgorithm::SortMerge | JoinAlgorithm::ShuffledHash)
            }
            _ => false,
        };
        if relies {
            return true;
        }
        at = above;
    }
    false
}

fn side_facts(cx: &Context<'_>, plan: &Plan, input: usize, keys: &[String]) -> SideFacts {
    let below = plan.below(input);
    let exchange = below.iter().copied().find(|&n| matches!(plan.nodes[n].op, Operator::Exchange(_)));
    let metric = |name| exchange.and_then(|n| cx.metric(&plan.nodes[n], name));
    let mut scans = below.iter().filter_map(|&n| match &plan.nodes[n].op {
        Operator::Scan(scan) => Some(scan),
        _ => None,
    });
    let source = scans.next().filter(|_| scans.next().is_none());
    let named = source.filter(|s| s.table.is_some() || queries::path_of(s).is_some());
    SideFacts {
        bytes: metric("shuffle bytes written").or_else(|| metric("data size")),
        rows: metric("shuffle records written"),
        rejects_null: !keys.is_empty() && keys.iter().all(|key| rejects_null(plan, &below, key)),
        table: named.map(queries::sql_source),
        name: named.map(queries::short_source),
    }
}

/// Whether an operator among `nodes` drops rows in which `key` is NULL.
fn rejects_null(plan: &Plan, nodes: &[usize], key: &str) -> bool {
    let has = |keys: &[String]| keys.iter().any(|k| k == key);
    key.starts_with("coalesce(")
        || nodes.iter().any(|&n| match &plan.nodes[n].op {
            Operator::Filter { condition } => condition_rejects_null(condition, key),
            Operator::Scan(scan) => {
                let filters = [&scan.pushed, &scan.data_filters, &scan.partition_filters];
                filters.into_iter().flatten().flatten().any(|f| condition_rejects_null(f, key))
            }
            Operator::Join(join) => {
                matches!(join.kind.as_str(), "Inner" | "LeftSemi") && (has(&join.left_keys) || has(&join.right_keys))
            }
            _ => false,
        })
}

/// Whether a condition cannot hold for a NULL `key`: one of its conjuncts is about the key and
/// has no way to accept NULL.
fn condition_rejects_null(condition: &str, key: &str) -> bool {
    const ACCEPT: [&str; 8] = [" or ", "isnull(", "is null", "<=>", "coalesce(", "nvl(", "eqnullsafe", "if("];
    condition.split(" AND ").any(|part| {
        let lower = part.to_ascii_lowercase();
        mentions(part, key) && !ACCEPT.iter().any(|a| lower.contains(a)) && !lower.starts_with("or(")
    })
}

/// Whether a text names an identifier, not just a longer one that contains it.
fn mentions(text: &str, key: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(key)
        .any(|(at, _)| !text[..at].ends_with(inside) && !text[at + key.len()..].starts_with(inside) && !key.is_empty())
}

/// The operator of the stage whose rows out exceed its rows in the most.
fn growth(cx: &Context<'_>, facts: &StageFacts<'_>, plan: &Plan) -> Option<(String, i64, i64)> {
    let rows = |n: usize| cx.metric(&plan.nodes[n], "number of output rows");
    let candidates = facts
        .nodes
        .iter()
        .copied()
        .filter(|&n| matches!(plan.nodes[n].op, Operator::Join(_) | Operator::Generate { .. } | Operator::Expand));
    let grown = candidates.filter_map(|n| {
        let inputs = plan.inputs(n);
        let rows_in = inputs.into_iter().filter_map(|i| rows_below(cx, plan, i)).max()?;
        let name = match &plan.nodes[n].op {
            Operator::Generate { .. } => crate::queries::subject(plan, n),
            _ => plan.nodes[n].name.to_string(),
        };
        Some((name, rows_in, rows(n)?))
    });
    grown.max_by(|a, b| {
        let ratio = |g: &(String, i64, i64)| g.2 as f64 / g.1.max(1) as f64;
        ratio(a).total_cmp(&ratio(b))
    })
}

/// Rows that come out of a node, or of the nearest node below it that counts them.
fn rows_below(cx: &Context<'_>, plan: &Plan, node: usize) -> Option<i64> {
    let here = &plan.nodes[node];
    let own = cx.metric(here, "number of output rows").or_else(|| cx.metric(here, "shuffle records written"));
    own.or_else(|| match plan.inputs(node).as_slice() {
        [one] => rows_below(cx, plan, *one),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_which_conditions_reject_null() {
        for (condition, rejects) in [
            ("isnotnull(coupon#5)", true),
            ("(isnotnull(coupon#5) AND (day#1 = 3))", true),
            ("(coupon#5 > 4)", true),
            ("IsNotNull(coupon)", true),
            ("isnotnull(coupon_code#5)", false),
            ("((coupon#5 = 3) OR isnull(coupon#5))", false),
            ("(coupon#5 <=> 3)", false),
            ("(day#1 = 3)", false),
        ] {
            assert_eq!(condition_rejects_null(condition, "coupon"), rejects, "{condition}");
        }
    }

    #[test]
    fn knows_where_nulls_reach_a_join_and_what_may_be_split() {
        let join = |kind: &str| JoinWork { kind: kind.to_owned(), ..JoinWork::default() };
        assert_eq!(join("LeftOuter").keeps_nulls(), [Side::Left]);
        assert_eq!(join("RightOuter").keeps_nulls(), [Side::Right]);
        assert_eq!(join("FullOuter").keeps_nulls(), [Side::Left, Side::Right]);
        assert!(join("Inner").keeps_nulls().is_empty() && join("LeftSemi").keeps_nulls().is_empty());
        assert!(join("Inner").may_split(Side::Right) && !join("LeftOuter").may_split(Side::Right));
        assert!(!join("FullOuter").may_split(Side::Left));
    }
}
