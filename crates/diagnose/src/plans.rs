//! What can be read off a plan and the figures of its run: conditions and what became of them,
//! names for people, rows, bytes and time of operators.

use crate::plan_text::{
    columns, conjuncts, disjuncts, is_not_null_only, is_runtime_filter, unwrapped, without_ids, without_links,
};
use crate::queries::short_source;
use model::{Accumulator, Application, JoinAlgorithm, Metric, MetricKind, Operator, Plan, PlanNode, Scan};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a filter's parts became in the scan below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unpushed {
    /// Parts that the source evaluates, or prunes partitions by. An `isnotnull` is among them but
    /// says nothing: Spark adds it to every comparison.
    pub pushed: Vec<String>,
    /// Parts that Spark applies to every row after reading it.
    pub not_pushed: Vec<NotPushed>,
}

/// A part of a condition that the source was not asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotPushed {
    /// The part, without ids.
    pub predicate: String,
    /// The first column that it speaks of.
    pub column: Option<String>,
    /// What is in the way.
    pub blocked_by: BlockedBy,
}

/// Why a predicate cannot be handed to the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedBy {
    /// The column is converted before it is compared.
    Cast,
    /// The column has another type than what it is compared with.
    TypeMismatch,
    /// A function is applied to the column.
    Function,
    /// Code that Spark cannot look into.
    Udf,
    /// One of several alternatives cannot be pushed, so none is.
    Or,
    /// A pattern that no range of values stands for.
    Like,
    /// A field inside a struct, of a source that takes none.
    Nested,
    /// The value differs from row to row or call to call.
    Random,
    /// The source takes no filters.
    Source,
    /// Spark cut the text: it may have been pushed.
    Cut,
    /// Nothing known.
    Unknown,
}

impl BlockedBy {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Cast => "cast on the column",
            Self::TypeMismatch => "the column is compared with a value of another type",
            Self::Function => "a function on the column",
            Self::Udf => "a user function",
            Self::Or => "OR with a part that cannot be pushed",
            Self::Like => "a pattern",
            Self::Nested => "a field inside a struct",
            Self::Random => "an expression that differs from row to row",
            Self::Source => "the source takes no filters",
            Self::Cut => "the plan's text is cut: it may have been pushed",
            Self::Unknown => "an expression that the source does not know",
        }
    }
}

/// What became of each part of a filter that stands above a scan, wrappers and projections looked
/// through; `None` for other nodes.
#[must_use]
pub fn unpushed(plan: &Plan, filter: usize) -> Option<Unpushed> {
    let Operator::Filter { condition } = &plan.nodes.get(filter)?.op else { return None };
    let scan = scan_below(plan, filter)?;
    let mut found = Unpushed::default();
    for part in conjuncts(condition).into_iter().map(unwrapped).filter(|part| !part.is_empty()) {
        if is_runtime_filter(part) {
            continue;
        }
        let part = &without_links(part);
        let predicate = without_ids(part);
        match (is_pushed(scan, part), is_not_null_only(part)) {
            (true, _) => found.pushed.push(predicate),
            (false, true) => {}
            (false, false) => {
                let blocked_by = blocked_by(scan, part);
                found.not_pushed.push(NotPushed { predicate, column: columns(part).into_iter().next(), blocked_by });
            }
        }
    }
    Some(found)
}

/// The scan that a filter reads with nothing in between that drops or adds rows on its own; a
/// Python step in between is what keeps the filter up there.
fn scan_below(plan: &Plan, filter: usize) -> Option<&Scan> {
    let mut at = filter;
    loop {
        let [only] = plan.inputs(at)[..] else { return None };
        match &plan.nodes[only].op {
            Operator::Scan(scan) if scan.format != "rdd" => return Some(scan),
            Operator::Project { .. } | Operator::Filter { .. } | Operator::Python { .. } => at = only,
            _ => return None,
        }
    }
}

/// Whether the scan's lists have this part: the same comparison of the same columns. Values are
/// not compared, Spark writes dates and times differently in the two places.
fn is_pushed(scan: &Scan, part: &str) -> bool {
    let pushed = scan.pushed.iter().flatten().map(|f| f.trim_start_matches('*'));
    let names = columns(part);
    let Some(wanted) = source_filter(part) else {
        return scan.partition_filters.iter().flatten().any(|f| unwrapped(f) == part);
    };
    let same = |filter: &str| filter.split('(').next() == Some(wanted) && names.iter().all(|n| mentions(filter, n));
    // Photon and Iceberg list expressions as SQL has them.
    let as_written = |filter: &str| unwrapped(filter) == part || unwrapped(filter) == without_ids(part);
    let partitioned = scan.partition_filters.iter().flatten().any(|f| as_written(f));
    partitioned || pushed.into_iter().any(|f| same(f) || as_written(f))
}

/// Name that Spark's data sources have for a part; `None` when there is none, so that it cannot
/// be pushed. Source: `DataSourceStrategy.translateLeafNodeFilter`, Spark 2.4 to 4.1.
fn source_filter(part: &str) -> Option<&'static str> {
    let part = unwrapped(part);
    if disjuncts(part).len() > 1 {
        let all = disjuncts(part).into_iter().all(|p| conjuncts(p).iter().all(|c| source_filter(c).is_some()));
        return all.then_some("Or");
    }
    if let Some(inner) = part.strip_prefix("NOT ") {
        return source_filter(inner).map(|_| "Not");
    }
    const CALLS: [(&str, &str); 5] = [
        ("isnotnull(", "IsNotNull"),
        ("isnull(", "IsNull"),
        ("StartsWith(", "StringStartsWith"),
        ("EndsWith(", "StringEndsWith"),
        ("Contains(", "StringContains"),
    ];
    if let Some((call, name)) = CALLS.iter().find(|(call, _)| part.starts_with(call)) {
        let inside = part[call.len()..].split([',', ')']).next().unwrap_or_default();
        return is_column(inside).then_some(*name);
    }
    comparison(part)
}

fn comparison(part: &str) -> Option<&'static str> {
    const SIGNS: [(&str, &str, &str); 8] = [
        (" <=> ", "EqualNullSafe", "EqualNullSafe"),
        (" >= ", "GreaterThanOrEqual", "LessThanOrEqual"),
        (" <= ", "LessThanOrEqual", "GreaterThanOrEqual"),
        (" = ", "EqualTo", "EqualTo"),
        (" > ", "GreaterThan", "LessThan"),
        (" < ", "LessThan", "GreaterThan"),
        (" IN ", "In", "In"),
        (" INSET ", "In", "In"),
    ];
    for (sign, name, turned) in SIGNS {
        let Some((left, right)) = part.split_once(sign) else { continue };
        // The value of a subquery is known before the scan begins (`ScalarSubquery`, Spark 3.4+).
        let is_value = |text: &str| !text.contains('#') || text.trim().starts_with("subquery#");
        return match (is_column(left), is_column(right)) {
            (true, false) if is_value(right) => Some(name),
            (true, true) if is_value(right) => Some(name),
            (false, true) if is_value(left) => Some(turned),
            (true, true) if is_value(left) => Some(turned),
            _ => None,
        };
    }
    // A boolean column stands for `column = true`.
    is_column(part).then_some("EqualTo")
}

/// `created_at#2`, `info#3.city`.
fn is_column(text: &str) -> bool {
    let text = text.trim();
    text.contains('#') && !text.contains(['(', ' ', '+', '*', '/', '%'])
}

fn blocked_by(scan: &Scan, part: &str) -> BlockedBy {
    let lower = part.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|w| lower.contains(w));
    let plain = source_filter(part).is_some();
    match () {
        () if part.contains("...") || scan.cut && plain => BlockedBy::Cut,
        () if scan.pushed.is_none() && scan.location.is_none() && plain => BlockedBy::Cut,
        () if says(&["udf(", "pythonudf"]) => BlockedBy::Udf,
        () if says(&["rand(", "randn(", "uuid("]) => BlockedBy::Random,
        () if disjuncts(part).len() > 1 => BlockedBy::Or,
        () if says(&[" like ", " rlike ", " ilike "]) => BlockedBy::Like,
        () if lower.contains("cast(") => cast(scan, part),
        () if plain && part.split_once('#').is_some_and(|(_, rest)| nested(rest)) => BlockedBy::Nested,
        () if plain && takes_no_filters(scan) => BlockedBy::Source,
        () if part.contains('(') || part.contains([' ']) && !plain => BlockedBy::Function,
        () => BlockedBy::Unknown,
    }
}

/// `3L.city = x`: a field of the attribute.
fn nested(after_hash: &str) -> bool {
    after_hash.trim_start_matches(|c: char| c.is_ascii_digit() || c == 'L').starts_with('.')
}

/// A text compared with a number is converted by Spark on its own; other casts are the user's.
fn cast(scan: &Scan, part: &str) -> BlockedBy {
    let column = columns(part).into_iter().next().unwrap_or_default();
    let of = scan.schema.iter().find(|(name, _)| *name == column).map(|(_, of)| of.as_str());
    let to_number = [" as int)", " as bigint)", " as double)", " as decimal("].iter().any(|t| part.contains(t));
    match of {
        Some("string") if to_number => BlockedBy::TypeMismatch,
        _ => BlockedBy::Cast,
    }
}

fn takes_no_filters(scan: &Scan) -> bool {
    let none = scan.pushed.as_ref().is_none_or(Vec::is_empty);
    none && matches!(scan.format.as_str(), "csv" | "json" | "text" | "xml" | "avro" | "binaryfile")
}

/// Whether a text has a name as a whole word.
fn mentions(text: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_none_or(|c| !word(c));
        let after = text[at + name.len()..].chars().next().is_none_or(|c| !word(c));
        before && after
    })
}

/// The relations whose rows a node takes, in their order: `["lake.orders", "lake.customers"]`.
#[must_use]
pub fn sources(plan: &Plan, node: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = vec![node];
    let mut budget = plan.nodes.len();
    while let Some(at) = open.pop() {
        let name = match &plan.nodes[at].op {
            Operator::Scan(scan) => Some(short_source(scan)),
            Operator::Local if &*plan.nodes[at].name == "Range" => Some("a range".to_owned()),
            Operator::Local => Some("local rows".to_owned()),
            Operator::CacheScan => Some("cached data".to_owned()),
            _ => None,
        };
        if let Some(name) = name {
            if !found.contains(&name) {
                found.push(name);
            }
            continue;
        }
        open.extend(plan.nodes[at].children.iter().rev());
        // A reused exchange has no input of its own. The budget ends a circle in a damaged text.
        if let Some(original) = plan.nodes[at].reuses.filter(|_| budget > 0) {
            budget -= 1;
            open.push(original);
        }
    }
    found
}

/// A few names as one: `orders and customers`, `4 tables`.
pub(crate) fn joined(names: &[String]) -> String {
    match names {
        [] => "rows".to_owned(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [one, two, three] => format!("{one}, {two} and {three}"),
        more => format!("{} tables", more.len()),
    }
}

/// The value of a node's SQL metric: its sum over tasks and driver, in the metric's own unit.
#[must_use]
pub fn metric(app: &Application, node: &PlanNode, name: &str) -> Option<i64> {
    accumulator(app, node, name).map(|a| a.sum)
}

fn accumulator<'a>(app: &'a Application, node: &PlanNode, name: &str) -> Option<&'a Accumulator> {
    let metric = node.metrics.iter().find(|m| &*m.name == name)?;
    app.accumulators.get(&metric.accumulator)
}

/// A timer in ms, whatever its unit.
fn timer_ms(app: &Application, node: &PlanNode, name: &str) -> Option<i64> {
    let metric = node.metrics.iter().find(|m| &*m.name == name)?;
    let sum = app.accumulators.get(&metric.accumulator)?.sum;
    Some(if metric.kind == MetricKind::NsTiming { sum / 1_000_000 } else { sum })
}

/// Rows that leave a node; a wrapper passes on those of its input.
#[must_use]
pub fn row_count(app: &Application, plan: &Plan, node: usize) -> Option<i64> {
    let names = ["number of output rows", "rows output", "shuffle records written", "records read"];
    names.iter().find_map(|name| metric(app, &plan.nodes[node], name))
}

/// Bytes that a node moves: written to a shuffle, broadcast, read. The size of the files of a scan is
/// none of these: columns and row groups that are left out count in it.
#[must_use]
pub fn bytes(app: &Application, plan: &Plan, node: usize) -> Option<i64> {
    let names = ["shuffle bytes written", "data size", "data size (bytes)", "num bytes read"];
    names.iter().find_map(|name| metric(app, &plan.nodes[node], name))
}

/// Files that a scan read, and files that it could have read, where its metrics say both.
#[must_use]
pub fn pruned(app: &Application, node: &PlanNode) -> Option<(i64, i64)> {
    let read = ["number of files read", "files read"].iter().find_map(|n| metric(app, node, n))?;
    if let Some(all) = metric(app, node, "static number of files read").filter(|all| *all > read) {
        return Some((read, all));
    }
    let away = ["number of files pruned", "files pruned"].iter().find_map(|n| metric(app, node, n))?;
    Some((read, read + away))
}

/// Positions in [`Application::stages`] of the stage whose tasks updated most of a node's metrics.
#[must_use]
pub fn stage_of_node(app: &Application, node: &PlanNode) -> Option<usize> {
    let stages: Vec<u32> = node.metrics.iter().filter_map(|m| app.accumulators.get(&m.accumulator)?.stage).collect();
    let votes = |stage: &u32| stages.iter().filter(|s| *s == stage).count();
    stages.iter().max_by_key(|s| votes(s)).map(|&s| s as usize)
}

/// Nodes whose metrics the tasks of a stage updated; `stage` is a position in
/// [`Application::stages`].
#[must_use]
pub fn nodes_of_stage(app: &Application, plan: &Plan, stage: usize) -> Vec<usize> {
    let ran = |node: &PlanNode| {
        let mut stages = node.metrics.iter().filter_map(|m| app.accumulators.get(&m.accumulator)?.stage);
        stages.any(|s| s as usize == stage)
    };
    (0..plan.nodes.len()).filter(|&at| ran(&plan.nodes[at])).collect()
}

/// Time of an operator, over all its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OwnTime {
    /// Position in [`Plan::nodes`].
    pub node: usize,
    /// Milliseconds, summed over tasks.
    pub ms: i64,
    /// Shared out of a whole-stage codegen's duration by rows, rather than measured.
    pub estimated: bool,
}

/// Own timers by metric name. `time in aggregation build` is none: it runs while the aggregate
/// takes its input and holds that input's time too. Sources: the operators' `metrics` in Spark 3.1 to 4.1 and the plans
/// of Databricks runtime 13.3.
const TIMERS: [&str; 13] = [
    "exclusive time",
    "sort time",
    "time to collect",
    "time to build",
    "time to broadcast",
    "scan time",
    "shuffle write time",
    "fetch wait time",
    "time to run Python workers",
    "time spent executing Python",
    "time in hash build",
    "metadata time",
    "dynamic partition pruning time",
];

/// Time of each operator: its own timers where it has them; what is left of a stage's codegen
/// time is shared among the operators without one by the rows that they give.
///
/// The `duration` of a whole-stage codegen runs from its first row asked for to its last, so the
/// codegens of one stage overlap: the longest counts, and all own timers of the stage go off it.
#[must_use]
pub fn own_time(app: &Application, plan: &Plan) -> Vec<OwnTime> {
    let mut own: Vec<Option<OwnTime>> = (0..plan.nodes.len()).map(|at| timed(app, plan, at)).collect();
    let ends = stage_ends(plan);
    let mut codegens: BTreeMap<usize, i64> = BTreeMap::new();
    for (at, node) in plan.nodes.iter().enumerate() {
        if matches!(node.op, Operator::Codegen { .. }) && !node.photon {
            let longest = codegens.entry(ends[at]).or_default();
            *longest = timer_ms(app, node, "duration").unwrap_or(0).max(*longest);
        }
    }
    for (end, duration) in codegens {
        let stage: Vec<usize> = (0..plan.nodes.len()).filter(|&at| ends[at] == end).collect();
        share(app, plan, &stage, duration, &mut own);
    }
    own.into_iter().flatten().collect()
}

/// The node that ends the stage of each node: the exchange that takes its rows, the root of its
/// subquery, or the result.
fn stage_ends(plan: &Plan) -> Vec<usize> {
    let mut ends: Vec<usize> = (0..plan.nodes.len()).collect();
    for at in 0..plan.nodes.len() {
        let node = &plan.nodes[at];
        let opens = matches!(node.op, Operator::Exchange(_) | Operator::BroadcastExchange { .. } | Operator::Subquery);
        if let (Some(parent), false) = (node.parent, opens) {
            ends[at] = ends[parent];
        }
    }
    ends
}

fn timed(app: &Application, plan: &Plan, at: usize) -> Option<OwnTime> {
    let node = &plan.nodes[at];
    if let Some(ms) = timer_ms(app, node, "exclusive time") {
        return Some(OwnTime { node: at, ms, estimated: false });
    }
    let times: Vec<i64> = TIMERS.iter().filter_map(|name| timer_ms(app, node, name)).collect();
    (!times.is_empty()).then(|| OwnTime { node: at, ms: times.iter().sum(), estimated: false })
}

/// Shares what own timers leave of a stage's codegen time among the operators that have none; no
/// more than the tasks of the stage ran.
fn share(app: &Application, plan: &Plan, stage: &[usize], duration: i64, own: &mut [Option<OwnTime>]) {
    // The driver's waiting for a broadcast is not time of the tasks that made it.
    let in_tasks = |at: &&usize| !is_broadcast(&plan.nodes[**at].op);
    let measured: i64 = stage.iter().filter(in_tasks).filter_map(|&at| own[at]).map(|t| t.ms).sum();
    let rest = (duration.min(stage_run_ms(app, plan, stage)) - measured).max(0);
    let untimed = untimed(plan, stage, own);
    let weights: Vec<i64> = untimed.iter().map(|&at| rows_through(app, plan, at).max(1)).collect();
    let total: i64 = weights.iter().sum();
    for (at, weight) in untimed.into_iter().zip(weights) {
        let ms = (rest as f64 * weight as f64 / total.max(1) as f64) as i64;
        own[at] = Some(OwnTime { node: at, ms, estimated: true });
    }
}

/// Operators without a timer that a stage's codegen time may have gone to. What runs Python or
/// compares rows with rows takes next to all of it.
fn untimed(plan: &Plan, stage: &[usize], own: &[Option<OwnTime>]) -> Vec<usize> {
    let open = || stage.iter().copied().filter(|&at| own[at].is_none() && !plan.nodes[at].op.is_wrapper());
    let heavy: Vec<usize> = open().filter(|&at| is_heavy(&plan.nodes[at].op)).collect();
    if !heavy.is_empty() {
        return heavy;
    }
    let shares = |at: &usize| plan.nodes[*at].codegen.is_some() || plan.nodes[*at].op == Operator::CacheScan;
    open().filter(shares).collect()
}

fn is_heavy(op: &Operator) -> bool {
    match op {
        Operator::Python { .. } => true,
        Operator::Join(join) => matches!(join.algorithm, JoinAlgorithm::Cartesian | JoinAlgorithm::NestedLoop),
        _ => false,
    }
}

/// Run time of the tasks that ran a stage of the plan; no limit where that is not known.
fn stage_run_ms(app: &Application, plan: &Plan, stage: &[usize]) -> i64 {
    let inside = stage.iter().filter(|&&at| !matches!(plan.nodes[at].op, Operator::Exchange(_)));
    let ran = inside.filter_map(|&at| stage_of_node(app, &plan.nodes[at])).next();
    let run = ran.and_then(|at| Some(app.stages.get(at)?.sum(Metric::RunMs)));
    run.filter(|run| *run > 0).unwrap_or(i64::MAX)
}

fn is_broadcast(op: &Operator) -> bool {
    matches!(op, Operator::BroadcastExchange { .. } | Operator::Subquery)
}

/// Rows that leave a node, those of its input where it does not count (projections).
fn rows_through(app: &Application, plan: &Plan, node: usize) -> i64 {
    let mut at = node;
    loop {
        if let Some(rows) = row_count(app, plan, at) {
            return rows;
        }
        let [only] = plan.nodes[at].children[..] else { return 0 };
        at = only;
    }
}
