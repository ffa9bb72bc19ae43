//! What a reader must notice in a plan.

use super::names::{human_name, list, lower, qualified, readable};
use super::{Step, is_exchange};
use crate::plan_text::is_not_null_only;
use crate::plans::{BlockedBy, bytes, metric, pruned, unpushed};
use crate::queries::short_source;
use model::{Application, Bytes, Count, ExchangeOrigin, Join, JoinAlgorithm, Operator, Partitioning, Plan, Scan};
use serde::Serialize;

/// Moving fewer bytes than this costs next to nothing.
const FEW_BYTES: i64 = 1 << 20;

/// Something a reader must notice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Note {
    /// What it is about.
    pub kind: NoteKind,
    /// One or two sentences.
    pub text: String,
    /// The step it is about.
    pub step: Option<usize>,
}

/// Kinds of notes, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum NoteKind {
    Cartesian,
    NestedLoop,
    SinglePartition,
    NotPushed,
    Udf,
    Repartition,
    SmallSide,
    NoPartitionFilter,
    Join,
    Broadcast,
    Shuffle,
    Unfiltered,
    Pruned,
    Pushed,
    Reused,
    Cache,
    Adaptive,
    Unknown,
    Cut,
}

impl NoteKind {
    /// Whether it costs something, rather than only explains.
    #[must_use]
    pub fn is_warning(self) -> bool {
        self <= Self::NoPartitionFilter
    }
}

pub(super) fn notes(plan: &Plan, app: Option<&Application>, steps: &[Step]) -> Vec<Note> {
    let mut notes = Vec::new();
    for step in steps {
        let mut add = |kind, text: String| notes.push(Note { kind, text, step: Some(step.number) });
        match &plan.nodes[step.node].op {
            Operator::Scan(scan) => scan_notes(plan, app, step, scan, &mut add),
            Operator::Filter { .. } => filter_notes(plan, step.node, &mut add),
            Operator::Join(join) => join_notes(plan, app, step.node, join, &mut add),
            Operator::Exchange(_) => exchange_notes(plan, step, &mut add),
            Operator::BroadcastExchange { .. } => broadcast_note(plan, step, &mut add),
            Operator::Python { row_at_a_time, .. } => {
                let how = if *row_at_a_time { "row by row, pickled" } else { "in Arrow batches" };
                add(
                    NoteKind::Udf,
                    format!(
                        "{} {how}: rows leave the JVM and come back; a filter on its result cannot go below it.",
                        step.name
                    ),
                );
            }
            Operator::Window { partition_by, .. } if partition_by.is_empty() => {
                add(NoteKind::SinglePartition, "The window has no PARTITION BY: one task gets all rows.".to_owned());
            }
            Operator::Coalesce { partitions: Some(1) } => add(
                NoteKind::SinglePartition,
                "coalesce(1) is no shuffle: one task does everything in this part, reading included. repartition(1) keeps the reading in many tasks."
                    .to_owned(),
            ),
            Operator::Reused => add(NoteKind::Reused, format!("{}: computed once, read again here.", step.name)),
            Operator::CacheScan => add(
                NoteKind::Cache,
                "Rows come from the cache, as far as it holds them; what it does not hold is computed again."
                    .to_owned(),
            ),
            _ => {}
        }
    }
    notes.extend(whole_plan_notes(plan));
    notes.sort_by_key(|n| n.kind);
    notes
}

fn whole_plan_notes(plan: &Plan) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut add = |kind, text: String| notes.push(Note { kind, text, step: None });
    if plan.is_final == Some(false) {
        add(NoteKind::Adaptive, "isFinalPlan=false: this is the plan before it ran. Once sizes are measured, joins may become broadcasts, small partitions are merged, skewed ones split.".to_owned());
    }
    if !plan.unknown.is_empty() {
        add(NoteKind::Unknown, format!("Not known here: {}.", list(&plan.unknown)));
    }
    for (cut, setting) in [
        (fields_cut(plan), "spark.sql.debug.maxToStringFields"),
        (metadata_cut(plan), "spark.sql.maxMetadataStringLength"),
    ] {
        if cut {
            add(
                NoteKind::Cut,
                format!(
                    "Parts of this text are missing (`...`): what they would say is not known. {setting} makes Spark print more."
                ),
            );
        }
    }
    if notes.iter().all(|note| note.kind != NoteKind::Cut) && elsewhere_cut(plan) {
        let text = "Parts of this text are missing (`...`): what they would say is not known.".to_owned();
        notes.push(Note { kind: NoteKind::Cut, text, step: None });
    }
    notes
}

/// `...` in an operator that is no scan: somebody shortened the text.
fn elsewhere_cut(plan: &Plan) -> bool {
    plan.cut && plan.nodes.iter().any(|node| !matches!(node.op, Operator::Scan(_)) && node.detail.contains("..."))
}

/// Lists that end in `... 12 more fields`.
fn fields_cut(plan: &Plan) -> bool {
    plan.nodes.iter().any(|node| node.detail.contains(" more field"))
}

/// Filters or columns of a scan that end in `...`. A cut location hides nothing of interest.
fn metadata_cut(plan: &Plan) -> bool {
    let cut = |scan: &Scan| {
        let lists = [&scan.pushed, &scan.partition_filters, &scan.data_filters];
        lists.into_iter().flatten().flatten().any(|filter| filter.contains("...") && !filter.contains(" more field"))
    };
    plan.nodes.iter().any(|node| matches!(&node.op, Operator::Scan(scan) if cut(scan)))
}

fn scan_notes(plan: &Plan, app: Option<&Application>, step: &Step, scan: &Scan, add: &mut dyn FnMut(NoteKind, String)) {
    let name = short_source(scan);
    let filters = scan.partition_filters.as_deref();
    let real = |f: &&String| !is_not_null_only(f);
    if !scan.partition_columns.is_empty() && filters.is_some_and(|f| !f.iter().any(|f| real(&f))) {
        // A query that filters nothing may want every row; one that filters reads too much.
        let filtered = is_filtered(plan, step.node, scan);
        let kind = if filtered { NoteKind::NoPartitionFilter } else { NoteKind::Unfiltered };
        let on = list(&scan.partition_columns);
        add(kind, format!("every partition of {name} is read: it is partitioned by {on}, and no filter is on {on}."));
    }
    let useful: Vec<String> = scan.pushed.iter().flatten().filter(|f| !is_not_null_only(f)).cloned().collect();
    if !useful.is_empty() {
        add(NoteKind::Pushed, format!("the source of {name} itself filters by {}.", readable(&useful.join(", "))));
    }
    let dynamic = filters.unwrap_or_default().iter().find(|filter| filter.contains("dynamicpruning"));
    if let Some(column) = dynamic.and_then(|filter| crate::plan_text::columns(filter).into_iter().next()) {
        add(
            NoteKind::Pruned,
            format!(
                "the partitions of {name} are chosen at run time, by the values of {column} on the other side of a join."
            ),
        );
    }
    if scan.partitions == Some(1) {
        add(NoteKind::SinglePartition, format!("one task reads {name}: numPartitions is 1."));
    }
    if let Some((read, all)) = app.and_then(|app| pruned(app, &plan.nodes[step.node])) {
        let share = model::Share(1.0 - read as f64 / all.max(1) as f64);
        add(
            NoteKind::Pruned,
            format!(
                "of {name}, {} of {} files were read: {share} pruned.",
                Count(read.max(0) as u64),
                Count(all.max(0) as u64)
            ),
        );
    }
}

/// Whether a condition that a user wrote stands on a scan: pushed into it or right above it.
fn is_filtered(plan: &Plan, scan_at: usize, scan: &Scan) -> bool {
    if scan.pushed.iter().flatten().any(|filter| !is_not_null_only(filter)) {
        return true;
    }
    let mut at = scan_at;
    while let Some(next) = plan.consumer(at) {
        match &plan.nodes[next].op {
            Operator::Filter { condition } => {
                return crate::plan_text::conjuncts(condition).iter().any(|part| !is_not_null_only(part));
            }
            Operator::Project { .. } | Operator::Python { .. } => at = next,
            _ => return false,
        }
    }
    false
}

fn filter_notes(plan: &Plan, at: usize, add: &mut dyn FnMut(NoteKind, String)) {
    let Some(found) = unpushed(plan, at) else { return };
    for left in found.not_pushed {
        let how =
            if left.blocked_by == BlockedBy::Cut { "maybe not pushed" } else { "every row is read, then filtered" };
        add(NoteKind::NotPushed, format!("filter {}: {how} ({}).", left.predicate, left.blocked_by.words()));
    }
}

fn exchange_notes(plan: &Plan, step: &Step, add: &mut dyn FnMut(NoteKind, String)) {
    let Operator::Exchange(e) = &plan.nodes[step.node].op else { return };
    let consumer = past_sorts(plan, step.node);
    let after = consumer.map_or_else(String::new, |c| format!(" Needed by: {}.", lower(&human_name(plan, c))));
    let moved = step.bytes.map_or_else(String::new, |b| format!(" {} moved.", Bytes(b.max(0) as u64)));
    match e.origin {
        ExchangeOrigin::Requirements | ExchangeOrigin::Stateful => {
            add(NoteKind::Shuffle, format!("{}.{after}{moved}", step.name));
        }
        origin => {
            let few = step.bytes.is_some_and(|bytes| bytes < FEW_BYTES);
            let kind = if few { NoteKind::Shuffle } else { NoteKind::Repartition };
            add(kind, repartition_words(plan, step, origin, consumer) + &moved);
        }
    }
    let windowed = consumer.is_some_and(|c| is_open_window(&plan.nodes[c].op));
    if e.partitioning == Partitioning::Single && !windowed && !takes_few_rows(plan, step.node) {
        add(NoteKind::SinglePartition, format!("{}: one task does all that follows.", step.name));
    }
}

fn repartition_words(plan: &Plan, step: &Step, origin: ExchangeOrigin, consumer: Option<usize>) -> String {
    let asked = match origin {
        ExchangeOrigin::RepartitionByNumber => "repartition(n) asked for it and keeps the number whatever the data",
        ExchangeOrigin::Rebalance => "the REBALANCE hint asked for it",
        _ => "repartition(columns) asked for it",
    };
    let again = " Another shuffle follows at once and moves every row again.";
    let undone = consumer.filter(|&c| is_exchange(&plan.nodes[c].op)).map_or("", |_| again);
    format!("{}: a full shuffle of its own; {asked}.{undone}", step.name)
}

/// What an exchange is for: its consumer, a sort in between left out.
fn past_sorts(plan: &Plan, exchange: usize) -> Option<usize> {
    let mut at = plan.consumer(exchange)?;
    while matches!(plan.nodes[at].op, Operator::Sort { global: false, .. }) {
        let Some(above) = plan.consumer(at) else { break };
        at = above;
    }
    Some(at)
}

fn is_open_window(op: &Operator) -> bool {
    matches!(op, Operator::Window { partition_by, .. } if partition_by.is_empty())
}

/// A single partition is harmless behind a first aggregation step or a limit.
fn takes_few_rows(plan: &Plan, exchange: usize) -> bool {
    plan.inputs(exchange).iter().all(|&at| match &plan.nodes[at].op {
        Operator::Aggregate(a) => a.keys.is_empty(),
        Operator::Limit { .. } | Operator::TopK { .. } | Operator::Local => true,
        _ => false,
    })
}

fn broadcast_note(plan: &Plan, step: &Step, add: &mut dyn FnMut(NoteKind, String)) {
    let size = match (step.bytes, estimate(plan, step.node)) {
        (Some(bytes), _) => format!(", {} measured", Bytes(bytes.unsigned_abs())),
        (None, Some(Known { bytes, measured: true })) => format!(", {} once built, as measured", Bytes(bytes as u64)),
        (None, Some(Known { bytes, .. })) => format!(", {} estimated", Bytes(bytes as u64)),
        (None, None) => String::new(),
    };
    let Operator::BroadcastExchange { mode } = &plan.nodes[step.node].op else { return };
    let way = if mode == "EXECUTOR_BROADCAST" { "sent from executor to executor" } else { "collected by the driver" };
    add(NoteKind::Broadcast, format!("{}{size}: {way}, then held by every executor.", step.name));
}

/// A size that the plan's text tells.
#[derive(Clone, Copy)]
struct Known {
    bytes: f64,
    /// By adaptive execution, rather than estimated by the optimizer.
    measured: bool,
}

/// Size that the optimizer or adaptive execution gave to a node or to the nearest one below.
fn estimate(plan: &Plan, node: usize) -> Option<Known> {
    let mut at = node;
    if let Some(stage) = plan.nodes[at].parent.filter(|&p| plan.nodes[p].op == Operator::QueryStage)
        && let Some(known) = plan.nodes[stage].statistics
    {
        return Some(Known { bytes: known.size_bytes, measured: true });
    }
    loop {
        if let Some(known) = plan.nodes[at].statistics {
            return Some(Known { bytes: known.size_bytes, measured: false });
        }
        let [only] = plan.nodes[at].children[..] else { return None };
        at = only;
    }
}

const THRESHOLD: &str = "spark.sql.autoBroadcastJoinThreshold";
/// Adaptive execution's own limit, the same as the other one unless it is set.
const ADAPTIVE_THRESHOLD: &str = "spark.sql.adaptive.autoBroadcastJoinThreshold";

/// The size up to which a side that was measured is broadcast without a hint; below 0 for never.
fn threshold(app: Option<&Application>) -> i64 {
    let conf = |key| app.and_then(|app| app.conf_bytes(key, 1));
    conf(ADAPTIVE_THRESHOLD).or_else(|| conf(THRESHOLD)).unwrap_or(10 << 20)
}

/// The broadcast threshold in force, or the default where no application says.
pub(super) fn threshold_words(app: Option<&Application>) -> String {
    let conf = |key| app.and_then(|app| app.conf_bytes(key, 1));
    let databricks = app.is_some_and(Application::is_databricks);
    match (conf(THRESHOLD), conf(ADAPTIVE_THRESHOLD)) {
        (Some(n), Some(late)) if n < 0 && late >= 0 => format!(
            "{THRESHOLD} is {n}: before the run only a hint broadcasts; once measured, sides up to {} ({ADAPTIVE_THRESHOLD}).",
            Bytes(late.unsigned_abs())
        ),
        (Some(n), _) if n < 0 => format!("{THRESHOLD} is {n}: only a hint broadcasts."),
        (Some(n), _) => format!("Broadcast without a hint: up to {} ({THRESHOLD}).", Bytes(n.unsigned_abs())),
        (None, _) if databricks => format!(
            "Broadcast without a hint: up to {} as planned, {} once measured (Databricks defaults).",
            Bytes(10 << 20),
            Bytes(30 << 20)
        ),
        (None, _) => format!("Broadcast without a hint: up to {} (default of {THRESHOLD}).", Bytes(10 << 20)),
    }
}

fn join_notes(plan: &Plan, app: Option<&Application>, at: usize, join: &Join, add: &mut dyn FnMut(NoteKind, String)) {
    let name = human_name(plan, at);
    match join.algorithm {
        JoinAlgorithm::Cartesian => add(
            NoteKind::Cartesian,
            format!("{name}: every row meets every row; {} {}", product_tasks(plan, at), constant_key(plan, at)),
        ),
        JoinAlgorithm::NestedLoop => add(
            NoteKind::NestedLoop,
            format!("{name}: every row is compared with every broadcast row. {}", nested_loop_cause(plan, at, join)),
        ),
        _ => {
            add(NoteKind::Join, format!("{name}. {}", why(plan, app, at, join)));
            if join.null_aware {
                add(
                    NoteKind::Join,
                    "It is NOT IN: a single NULL on the right leaves no row, and a broadcast is the only way to run it. NOT EXISTS is what is mostly meant."
                        .to_owned(),
                );
            }
            small_side_note(plan, app, at, join, add);
        }
    }
}

/// Tasks of a product: partitions of one side for each of the other.
fn product_tasks(plan: &Plan, at: usize) -> String {
    let sides: Vec<u64> = plan.inputs(at).into_iter().filter_map(|input| partitions_of(plan, input)).collect();
    match sides.as_slice() {
        [left, right] => format!(
            "{} × {} partitions make {} tasks.",
            Count(*left),
            Count(*right),
            Count(left.saturating_mul(*right))
        ),
        _ => "it has a task for each pair of partitions.".to_owned(),
    }
}

/// Partitions in which a node gives its rows: those of the exchange below it.
fn partitions_of(plan: &Plan, node: usize) -> Option<u64> {
    let mut at = node;
    loop {
        if let Operator::Exchange(exchange) = &plan.nodes[at].op {
            return exchange.partitions;
        }
        let [only] = plan.inputs(at)[..] else { return None };
        at = only;
    }
}

/// A sort-merge join one of whose sides turned out to be below the threshold: something kept it
/// from being broadcast.
fn small_side_note(
    plan: &Plan,
    app: Option<&Application>,
    at: usize,
    join: &Join,
    add: &mut dyn FnMut(NoteKind, String),
) {
    let limit = threshold(app);
    if join.algorithm != JoinAlgorithm::SortMerge || limit < 0 || plan.is_final == Some(false) {
        return;
    }
    let may = match join.kind.as_str() {
        "LeftOuter" | "LeftSemi" | "LeftAnti" => [false, true],
        "RightOuter" => [true, false],
        "FullOuter" => [false, false],
        _ => [true, true],
    };
    let inputs = plan.inputs(at);
    let sides = inputs.iter().zip(may).filter(|(_, may)| *may);
    let known = sides.filter_map(|(&input, _)| Some((in_memory(plan, app, input)?, input)));
    let Some((size, input)) = known.filter(|(size, _)| *size <= limit as f64).min_by(|a, b| a.0.total_cmp(&b.0)) else {
        return;
    };
    let side = crate::plans::joined(&crate::plans::sources(plan, input));
    let set = app.is_some_and(|app| app.conf(THRESHOLD).is_some() || app.conf(ADAPTIVE_THRESHOLD).is_some());
    let limit = Bytes(limit.unsigned_abs());
    let limit = if set || app.is_some() {
        format!("the threshold of {limit}")
    } else {
        format!("the default threshold of {limit}")
    };
    let off = if app.is_some() { "" } else { "the threshold is lower in this session, " };
    add(
        NoteKind::SmallSide,
        format!(
            "the side of {side} is {} in memory, below {limit}, and is not broadcast: {off}a hint asks for this join, or its size was known too late.",
            Bytes(size as u64)
        ),
    );
}

/// Bytes of a join's side as rows in memory, which is what Spark holds against the threshold: as
/// adaptive execution measured them.
fn in_memory(plan: &Plan, app: Option<&Application>, input: usize) -> Option<f64> {
    let exchange = exchange_below(plan, input)?;
    let logged = app.and_then(|app| metric(app, &plan.nodes[exchange], "data size"));
    let told = || estimate(plan, exchange).filter(|known| known.measured).map(|known| known.bytes);
    logged.map(|bytes| bytes as f64).or_else(told)
}

fn exchange_below(plan: &Plan, input: usize) -> Option<usize> {
    let mut at = input;
    loop {
        if matches!(plan.nodes[at].op, Operator::Exchange(_)) {
            return Some(at);
        }
        let [only] = plan.nodes[at].children[..] else { return None };
        at = only;
    }
}

/// A join key that the optimizer replaced by its constant value: no attribute of either side.
fn constant_key(plan: &Plan, at: usize) -> String {
    let keys = plan.inputs(at).into_iter().filter_map(|input| match &plan.nodes[input].op {
        Operator::Aggregate(a) => a.keys.first().filter(|k| k.starts_with(|c: char| c.is_ascii_digit() || c == '\'')),
        _ => None,
    });
    match keys.collect::<Vec<_>>().as_slice() {
        [first, ..] => format!("The key is the constant {first}, so the optimizer dropped the join condition."),
        [] => "There is no join condition left: none was written, or its key is a constant.".to_owned(),
    }
}

fn nested_loop_cause(plan: &Plan, at: usize, join: &Join) -> String {
    let condition = join.condition.as_deref().unwrap_or_default();
    let text = qualified(plan, at, condition);
    match () {
        () if null_safe_equality(condition) => "The condition is an equality that also lets NULL meet NULL, written with OR: `<=>` says the same and gives a hash join.".to_owned(),
        () if condition.contains(" OR ") => format!("An OR stands in the way of a hash join: {text}."),
        () if condition.is_empty() => "There is no condition.".to_owned(),
        () if [" < ", " > ", " <= ", " >= "].iter().any(|s| condition.contains(s)) => format!("Only a range ties the sides: {text}."),
        () => format!("No plain equality of columns ties the sides: {text}."),
    }
}

/// `(a = b) OR (isnull(a) AND isnull(b))`.
fn null_safe_equality(condition: &str) -> bool {
    condition.contains(" = ") && condition.contains(" OR ") && condition.matches("isnull(").count() >= 2
}

/// Why Spark chose a join.
fn why(plan: &Plan, app: Option<&Application>, at: usize, join: &Join) -> String {
    let inputs = plan.inputs(at);
    match join.algorithm {
        JoinAlgorithm::BroadcastHash => {
            let local =
                plan.below(at).iter().any(|&n| matches!(plan.nodes[n].op, Operator::ShuffleRead { local: true, .. }));
            let late =
                if local { "Adaptive execution chose it after measuring: the shuffle had been written. " } else { "" };
            format!("{late}One side is sent to every executor, the other stays where it is.")
        }
        JoinAlgorithm::ShuffledHash => {
            "Both sides are shuffled by the key; one fits a hash table in each task, so neither is sorted.".to_owned()
        }
        _ => {
            let sizes: Vec<String> =
                inputs.iter().filter_map(|&i| Some(Bytes(side_bytes(plan, app, i)? as u64).to_string())).collect();
            let sizes =
                if sizes.len() == 2 { format!(" Sides: {} and {}.", sizes[0], sizes[1]) } else { String::new() };
            let reason = match threshold(app) {
                ..0 => "broadcasting is off",
                _ if app.is_none() => "neither was known to be small enough to broadcast, or a hint asks for it",
                _ => "neither was known to be small enough to broadcast when it was chosen",
            };
            format!("Both sides are shuffled by the key and sorted: {reason}.{sizes}{}", outer_rule(&join.kind))
        }
    }
}

/// Bytes of a join's side: measured at its exchange, else estimated.
fn side_bytes(plan: &Plan, app: Option<&Application>, input: usize) -> Option<f64> {
    let exchange = exchange_below(plan, input)?;
    app.and_then(|app| bytes(app, plan, exchange))
        .map(|b| b as f64)
        .or_else(|| estimate(plan, exchange).map(|k| k.bytes))
}

/// Which side of an outer join may be broadcast. Source: `JoinSelectionHelper.canBuildBroadcast…`.
fn outer_rule(kind: &str) -> &'static str {
    match kind {
        "LeftOuter" | "LeftSemi" | "LeftAnti" => " Of this join type only the right side can be broadcast.",
        "RightOuter" => " Of this join type only the left side can be broadcast.",
        "FullOuter" => " A full outer join cannot be a broadcast join.",
        _ => "",
    }
}
