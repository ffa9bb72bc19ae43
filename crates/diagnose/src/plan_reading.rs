//! A plan from data to result, as a reader goes through it: steps, stages, and what to notice.

use crate::plan_text::without_ids;
use crate::plans::{BlockedBy, bytes, joined, own_time, pruned, row_count, sources, stage_of_node, unpushed};
use crate::queries::short_source;
use model::{Application, Bytes, Count, ExchangeOrigin, Join, JoinAlgorithm, Operator, Partitioning, Plan, Scan, Side};
use serde::Serialize;

/// A plan in the order in which rows pass through it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlanReading {
    /// Heading that the plan stood under.
    pub title: String,
    /// One line: what it reads, moves and joins.
    pub summary: String,
    /// Operators, leaves first; each stands after its inputs.
    pub steps: Vec<Step>,
    /// Parts between shuffles, in the order in which they run.
    pub stages: Vec<StageBox>,
    /// What to notice, worst first.
    pub notes: Vec<Note>,
    /// Up to which size Spark broadcasts a side of a join by itself, where the plan has joins.
    pub broadcast_threshold: Option<String>,
    /// `isFinalPlan` of adaptive execution.
    pub is_final: Option<bool>,
    /// Node names that nobody knows.
    pub unknown: Vec<String>,
    /// Whether Spark cut its text.
    pub cut: bool,
}

/// An operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Step {
    /// From 1, in reading order.
    pub number: usize,
    /// Position in [`Plan::nodes`].
    pub node: usize,
    /// As people say it: `Read lake.orders`.
    pub name: String,
    /// As Spark says it: `Scan parquet lake.orders`.
    pub operator: String,
    /// Number in a formatted plan.
    pub operator_number: Option<u32>,
    /// Steps whose rows it takes.
    pub inputs: Vec<usize>,
    /// The stage it is in, from 1.
    pub stage: usize,
    /// What the plan says of it, in short lines.
    pub details: Vec<String>,
    /// Rows that leave it, where the run was measured.
    pub rows: Option<i64>,
    /// Bytes that it read, wrote or sent.
    pub bytes: Option<i64>,
    /// Its time over all tasks, ms.
    pub time_ms: Option<i64>,
    /// Whether that time was shared out by rows rather than measured.
    pub time_estimated: bool,
}

/// A part of the plan without a shuffle in it: its operators run in the same tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StageBox {
    /// From 1.
    pub number: usize,
    /// Its steps.
    pub steps: Vec<usize>,
    /// How its rows leave it.
    pub ends: String,
    /// Spark's stage id, where the run is known.
    pub spark_stage: Option<u32>,
}

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
    NoPartitionFilter,
    Join,
    Broadcast,
    Shuffle,
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

/// Reads a plan; with an application also its rows, bytes, times and settings.
#[must_use]
pub fn read_plan(plan: &Plan, app: Option<&Application>) -> PlanReading {
    let order = order(plan);
    let mut reading = PlanReading {
        title: plan.title.clone(),
        is_final: plan.is_final,
        unknown: plan.unknown.clone(),
        cut: plan.cut,
        ..PlanReading::default()
    };
    let numbers = numbers(plan, &order);
    let regions = regions(plan, &order);
    reading.steps = order.iter().map(|&at| step(plan, at, &numbers, &regions)).collect();
    reading.stages = stages(plan, &reading.steps, app);
    if let Some(app) = app {
        measure(plan, app, &mut reading.steps);
    }
    reading.notes = notes(plan, app, &reading.steps);
    reading.broadcast_threshold = has_joins(plan).then(|| threshold_words(app));
    reading.summary = summary(plan, &order);
    reading
}

fn has_joins(plan: &Plan) -> bool {
    plan.nodes.iter().any(|n| matches!(n.op, Operator::Join(_)))
}

/// Nodes from data to result without wrappers: subqueries before what asks for them, inputs
/// before what takes them.
fn order(plan: &Plan) -> Vec<usize> {
    let mut asked = vec![Vec::new(); plan.nodes.len()];
    for &root in &plan.subqueries {
        if let Some(host) = plan.nodes[root].parent {
            asked[host].push(root);
        }
    }
    let mut order = Vec::new();
    let mut open: Vec<(usize, bool)> = plan.nodes.first().map(|_| (0, false)).into_iter().collect();
    while let Some((at, entered)) = open.pop() {
        if entered {
            order.push(at);
            continue;
        }
        open.push((at, true));
        let inputs = plan.nodes[at].children.iter().chain(&asked[at]);
        open.extend(inputs.rev().map(|&child| (child, false)));
    }
    order.retain(|&at| !plan.nodes[at].op.is_wrapper() && plan.nodes[at].op != Operator::Subquery);
    order
}

/// Step number of each node, 0 for wrappers.
fn numbers(plan: &Plan, order: &[usize]) -> Vec<usize> {
    let mut numbers = vec![0; plan.nodes.len()];
    for (index, &at) in order.iter().enumerate() {
        numbers[at] = index + 1;
    }
    numbers
}

fn is_exchange(op: &Operator) -> bool {
    matches!(op, Operator::Exchange(_) | Operator::BroadcastExchange { .. })
}

/// Stage number of each node: an exchange ends the stage of what it takes, its consumer is in the
/// next one. Numbered as they first appear on the way from data to result.
fn regions(plan: &Plan, order: &[usize]) -> Vec<usize> {
    // The region of a node is named by the node that ends it: an exchange, a subquery, the result.
    let mut ends = vec![0; plan.nodes.len()];
    for at in 0..plan.nodes.len() {
        let own = is_exchange(&plan.nodes[at].op) || plan.subqueries.contains(&at) || plan.nodes[at].parent.is_none();
        ends[at] = if own { at } else { plan.nodes[at].parent.map_or(at, |p| ends[p]) };
    }
    let mut seen: Vec<usize> = Vec::new();
    let mut regions = vec![0; plan.nodes.len()];
    for &at in order {
        let index = seen.iter().position(|&end| end == ends[at]);
        regions[at] = index.map_or_else(
            || {
                seen.push(ends[at]);
                seen.len()
            },
            |index| index + 1,
        );
    }
    regions
}

fn step(plan: &Plan, at: usize, numbers: &[usize], regions: &[usize]) -> Step {
    let node = &plan.nodes[at];
    Step {
        number: numbers[at],
        node: at,
        name: human_name(plan, at),
        operator: node.name.to_string(),
        operator_number: node.number,
        inputs: plan.inputs(at).into_iter().map(|n| numbers[n]).filter(|&n| n > 0).collect(),
        stage: regions[at],
        details: details(plan, at),
        ..Step::default()
    }
}

/// An operator as people say it: `Read lake.orders`, `Join orders with customers on customer_id
/// (broadcast right)`.
#[must_use]
pub fn human_name(plan: &Plan, at: usize) -> String {
    let node = &plan.nodes[at];
    match &node.op {
        Operator::Scan(scan) => format!("Read {}", short_source(scan)),
        Operator::Exchange(_) => exchange_name(plan, at),
        Operator::BroadcastExchange { .. } => format!("Broadcast {}", joined(&sources(plan, at))),
        Operator::Join(join) => join_name(plan, at, join),
        Operator::Filter { condition } if condition.is_empty() => "Filter".to_owned(),
        Operator::Filter { condition } => format!("Filter {}", short(&without_ids(condition), 80)),
        Operator::Project { .. } => "Choose columns".to_owned(),
        Operator::Aggregate(a) => {
            let by = if a.keys.is_empty() { String::new() } else { format!(" by {}", list(&a.keys)) };
            format!("Aggregate{by}{}", if a.partial { " (first step, before the shuffle)" } else { "" })
        }
        Operator::Sort { order, global } => {
            format!("Sort by {}{}", list(&bare_order(order)), if *global { " over all partitions" } else { "" })
        }
        Operator::TopK { limit } => limited("Keep the first", *limit),
        Operator::Limit { limit } => limited("Take", *limit),
        Operator::Window { partition_by, .. } if partition_by.is_empty() => "Window over all rows".to_owned(),
        Operator::Window { partition_by, .. } => format!("Window by {}", list(partition_by)),
        Operator::Generate { generator } => {
            format!("Generate rows: {}", short(&without_ids(generator), 60))
        }
        Operator::Expand => "Expand: one row becomes several".to_owned(),
        Operator::Python { functions, .. } => format!("Run Python {}", short(functions, 60)),
        Operator::Objects => format!("Run code on objects ({})", node.name),
        Operator::Write { target: Some(target), .. } => format!("Write to {target}"),
        Operator::Write { .. } => "Write".to_owned(),
        Operator::Union => format!("Union of {} inputs", plan.inputs(at).len()),
        Operator::Coalesce { partitions } => {
            format!("Merge into {} partitions, no shuffle", partitions.map_or("fewer".to_owned(), |n| n.to_string()))
        }
        Operator::CacheScan => "Read cached data".to_owned(),
        Operator::CacheBuild => "Cache".to_owned(),
        Operator::Reused => format!(
            "Reuse {}",
            node.reuses.map_or_else(|| "an exchange".to_owned(), |n| lower(&human_name_once(plan, n)))
        ),
        Operator::Local => "Local rows".to_owned(),
        _ => node.name.to_string(),
    }
}

/// The name of what is reused, which itself never is a reuse.
fn human_name_once(plan: &Plan, at: usize) -> String {
    match plan.nodes[at].op {
        Operator::Reused => "an exchange".to_owned(),
        _ => human_name(plan, at),
    }
}

fn lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

fn limited(words: &str, limit: Option<u64>) -> String {
    limit.map_or_else(|| format!("{words} rows"), |n| format!("{words} {} rows", Count(n)))
}

/// `k ASC NULLS FIRST` without its direction.
fn bare_order(order: &[String]) -> Vec<String> {
    let bare = |item: &String| {
        without_ids(item.split(" ASC").next().unwrap_or(item))
            .replace(" DESC NULLS LAST", " descending")
            .replace(" DESC NULLS FIRST", " descending")
    };
    order.iter().map(bare).collect()
}

/// A list for a sentence, long ones shortened.
fn list(items: &[String]) -> String {
    match items.len() {
        0..=4 => items.join(", "),
        n => format!("{}, … ({n} in all)", items[..3].join(", ")),
    }
}

fn short(text: &str, width: usize) -> String {
    let text =
        text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).filter(|t| !t.contains(['(', ')'])).unwrap_or(text);
    match text.char_indices().nth(width) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn exchange_name(plan: &Plan, at: usize) -> String {
    let Operator::Exchange(e) = &plan.nodes[at].op else { return String::new() };
    let into = e.partitions.map_or_else(String::new, |n| format!(" into {}", crate::words::count(n, "partition")));
    match e.partitioning {
        Partitioning::Single => "Shuffle everything into one partition".to_owned(),
        Partitioning::RoundRobin => format!("Shuffle evenly{into}"),
        Partitioning::Range => format!("Shuffle by ranges of {}{into}", list(&e.keys)),
        Partitioning::Hash if !e.keys.is_empty() => format!("Shuffle by {}{into}", list(&e.keys)),
        _ => format!("Shuffle{into}"),
    }
}

fn join_name(plan: &Plan, at: usize, join: &Join) -> String {
    let inputs = plan.inputs(at);
    let side = |n: usize| inputs.get(n).map_or_else(|| "rows".to_owned(), |&i| joined(&sources(plan, i)));
    let on = match (join.left_keys.as_slice(), join.right_keys.as_slice()) {
        ([], _) => String::new(),
        (left, right) if left == right => format!(" on {}", list(left)),
        (left, right) => {
            let pairs: Vec<String> =
                left.iter().zip(right).map(|(l, r)| if l == r { l.clone() } else { format!("{l} = {r}") }).collect();
            format!(" on {}", list(&pairs))
        }
    };
    format!("Join {} with {}{on} ({})", side(0), side(1), algorithm_words(join))
}

fn algorithm_words(join: &Join) -> String {
    let side = match join.build {
        Some(Side::Left) => " left",
        Some(Side::Right) => " right",
        None => "",
    };
    let kind = if join.kind.is_empty() || join.kind == "Inner" { String::new() } else { format!("{}, ", join.kind) };
    let how = match join.algorithm {
        JoinAlgorithm::SortMerge => "sort-merge".to_owned(),
        JoinAlgorithm::ShuffledHash => {
            format!("shuffled hash, table of the{} side", if side.is_empty() { " smaller" } else { side })
        }
        JoinAlgorithm::BroadcastHash => format!("broadcast{side}"),
        JoinAlgorithm::NestedLoop => format!("nested loop, broadcast{side}"),
        JoinAlgorithm::Cartesian => "cartesian product".to_owned(),
    };
    format!("{kind}{how}{}", if join.skew { ", skewed partitions split" } else { "" })
}

/// What the plan says of an operator.
fn details(plan: &Plan, at: usize) -> Vec<String> {
    match &plan.nodes[at].op {
        Operator::Scan(scan) => scan_details(scan),
        Operator::Exchange(e) => vec![asked_by(e.origin).to_owned()],
        Operator::Filter { .. } => filter_details(plan, at),
        Operator::Join(join) => join.condition.iter().map(|c| format!("condition {}", without_ids(c))).collect(),
        Operator::Aggregate(a) if !a.functions.is_empty() => vec![format!("computes {}", list(&a.functions))],
        Operator::BroadcastExchange { mode } if !mode.is_empty() => vec![mode.clone()],
        Operator::Write { command, .. } => vec![command.clone()],
        _ => Vec::new(),
    }
}

fn scan_details(scan: &Scan) -> Vec<String> {
    let mut details = Vec::new();
    if !scan.format.is_empty() {
        details.push(format!("format {}", scan.format));
    }
    let columns = scan.columns.len() as u64 + scan.more_columns;
    if columns > 0 {
        details.push(format!("{}: {}", crate::words::count(columns, "column"), list(&scan.columns)));
    }
    for (label, filters) in [("pushed", &scan.pushed), ("partition filters", &scan.partition_filters)] {
        match filters.as_deref() {
            Some([]) => details.push(format!("{label}: none")),
            Some(some) => details.push(format!("{label}: {}", without_ids(&some.join(", ")))),
            None => {}
        }
    }
    if !scan.partition_columns.is_empty() {
        details.push(format!("partitioned by {}", list(&scan.partition_columns)));
    }
    if let Some(partitions) = scan.partitions {
        details.push(format!("read in {}", crate::words::count(partitions, "partition")));
    }
    if scan.cut {
        details.push("its text is cut".to_owned());
    }
    details
}

fn filter_details(plan: &Plan, at: usize) -> Vec<String> {
    let Some(found) = unpushed(plan, at) else { return Vec::new() };
    let left = found.not_pushed.iter().map(|n| format!("not pushed: {} ({})", n.predicate, n.blocked_by.words()));
    found.pushed.iter().map(|p| format!("pushed: {p}")).chain(left).collect()
}

fn asked_by(origin: ExchangeOrigin) -> &'static str {
    match origin {
        ExchangeOrigin::Requirements => "asked for by the planner",
        ExchangeOrigin::RepartitionByNumber => "asked for by repartition(n): the number is kept whatever the data",
        ExchangeOrigin::RepartitionByColumns => "asked for by repartition(columns)",
        ExchangeOrigin::Rebalance => "asked for by the REBALANCE hint",
        ExchangeOrigin::Stateful => "asked for by a stateful operator: the number is fixed when the query first starts",
    }
}

fn stages(plan: &Plan, steps: &[Step], app: Option<&Application>) -> Vec<StageBox> {
    let count = steps.iter().map(|s| s.stage).max().unwrap_or(0);
    let stage = |number: usize| {
        let own: Vec<&Step> = steps.iter().filter(|s| s.stage == number).collect();
        let last = own.last().map_or("", |s| match plan.nodes[s.node].op {
            Operator::Exchange(_) => "writes a shuffle",
            Operator::BroadcastExchange { .. } => "is broadcast to every executor",
            Operator::Write { .. } => "writes the result",
            _ => "gives the result",
        });
        let spark_stage = app.and_then(|app| {
            // The exchange's own metrics belong to both sides of it.
            let ran = own.iter().filter(|s| !is_exchange(&plan.nodes[s.node].op));
            ran.filter_map(|s| stage_of_node(app, &plan.nodes[s.node])).next()
        });
        let id = spark_stage.and_then(|at| Some(app?.stages.get(at)?.id));
        StageBox { number, steps: own.iter().map(|s| s.number).collect(), ends: last.to_owned(), spark_stage: id }
    };
    (1..=count).map(stage).collect()
}

fn measure(plan: &Plan, app: &Application, steps: &mut [Step]) {
    let times = own_time(app, plan);
    for step in steps {
        step.rows = row_count(app, plan, step.node);
        step.bytes = bytes(app, plan, step.node);
        if let Some(time) = times.iter().find(|t| t.node == step.node) {
            step.time_ms = Some(time.ms);
            step.time_estimated = time.estimated;
        }
    }
}

fn notes(plan: &Plan, app: Option<&Application>, steps: &[Step]) -> Vec<Note> {
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
                        "{} {how}: rows leave the JVM and come back; filters above it cannot go below it.",
                        step.name
                    ),
                );
            }
            Operator::Window { partition_by, .. } if partition_by.is_empty() => {
                add(NoteKind::SinglePartition, "The window has no PARTITION BY: one task gets all rows.".to_owned());
            }
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
    if plan.cut {
        add(NoteKind::Cut, "Parts of this text are missing (`...`): what they would say is not known. spark.sql.debug.maxToStringFields makes Spark print more.".to_owned());
    }
    notes
}

fn scan_notes(plan: &Plan, app: Option<&Application>, step: &Step, scan: &Scan, add: &mut dyn FnMut(NoteKind, String)) {
    let name = short_source(scan);
    let filters = scan.partition_filters.as_deref();
    let real = |f: &&String| !f.starts_with("isnotnull(");
    if !scan.partition_columns.is_empty() && filters.is_some_and(|f| !f.iter().any(|f| real(&f))) {
        add(
            NoteKind::NoPartitionFilter,
            format!(
                "{name} is partitioned by {} and no filter is on that: every partition is read.",
                list(&scan.partition_columns)
            ),
        );
    }
    let useful: Vec<String> = scan.pushed.iter().flatten().filter(|f| !is_not_null(f)).cloned().collect();
    if !useful.is_empty() {
        add(NoteKind::Pushed, format!("{name}: the source itself filters by {}.", without_ids(&useful.join(", "))));
    }
    if scan.partitions == Some(1) {
        add(NoteKind::SinglePartition, format!("{name} is read by one task: numPartitions is 1."));
    }
    if let Some((read, all)) = app.and_then(|app| pruned(app, &plan.nodes[step.node])) {
        let share = model::Share(1.0 - read as f64 / all.max(1) as f64);
        add(
            NoteKind::Pruned,
            format!(
                "{name}: {} of {} files read, {share} pruned.",
                Count(read.max(0) as u64),
                Count(all.max(0) as u64)
            ),
        );
    }
}

fn is_not_null(filter: &str) -> bool {
    filter.trim_start_matches('*').starts_with("IsNotNull(")
        || filter.starts_with("isnotnull(")
        || filter.ends_with(" IS NOT NULL")
}

fn filter_notes(plan: &Plan, at: usize, add: &mut dyn FnMut(NoteKind, String)) {
    let Some(found) = unpushed(plan, at) else { return };
    for left in found.not_pushed {
        let may = if left.blocked_by == BlockedBy::Cut {
            "may not be pushed"
        } else {
            "is not pushed: every row is read, then filtered"
        };
        add(NoteKind::NotPushed, format!("{} {may} ({}).", left.predicate, left.blocked_by.words()));
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
        origin => add(NoteKind::Repartition, repartition_words(plan, step, origin, consumer) + &moved),
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
    let measured = step.bytes.map(|b| format!("{} measured", Bytes(b.max(0) as u64)));
    let estimated = || estimate(plan, step.node).map(|b| format!("{} estimated", Bytes(b as u64)));
    let size = measured.or_else(estimated).map_or_else(String::new, |s| format!(", {s}"));
    let Operator::BroadcastExchange { mode } = &plan.nodes[step.node].op else { return };
    let way = if mode == "EXECUTOR_BROADCAST" { "sent from executor to executor" } else { "collected by the driver" };
    add(NoteKind::Broadcast, format!("{}{size}: {way}, then held by every executor.", step.name));
}

/// Size that the optimizer or adaptive execution gave to a node or to the nearest one below.
fn estimate(plan: &Plan, node: usize) -> Option<f64> {
    let mut at = node;
    if let Some(stage) = plan.nodes[at].parent.filter(|&p| plan.nodes[p].op == Operator::QueryStage)
        && let Some(known) = plan.nodes[stage].statistics
    {
        return Some(known.size_bytes);
    }
    loop {
        if let Some(known) = plan.nodes[at].statistics {
            return Some(known.size_bytes);
        }
        let [only] = plan.nodes[at].children[..] else { return None };
        at = only;
    }
}

/// The broadcast threshold in force, or the default where no application says.
fn threshold_words(app: Option<&Application>) -> String {
    let static_ = "spark.sql.autoBroadcastJoinThreshold";
    let own = app.and_then(|a| a.conf_bytes(static_, 1));
    let databricks = app.is_some_and(Application::is_databricks);
    match own {
        Some(n) if n < 0 => format!("{static_} is {n}: only a hint or adaptive execution broadcasts."),
        Some(n) => format!("Broadcast without a hint: up to {} ({static_}).", Bytes(n as u64)),
        None if databricks => format!(
            "Broadcast without a hint: up to {} as planned, {} once measured (Databricks defaults).",
            Bytes(10 << 20),
            Bytes(30 << 20)
        ),
        None => format!("Broadcast without a hint: up to {} (default of {static_}).", Bytes(10 << 20)),
    }
}

fn join_notes(plan: &Plan, app: Option<&Application>, at: usize, join: &Join, add: &mut dyn FnMut(NoteKind, String)) {
    let name = human_name(plan, at);
    match join.algorithm {
        JoinAlgorithm::Cartesian => add(
            NoteKind::Cartesian,
            format!(
                "{name}: every row meets every row; tasks = partitions of the left times partitions of the right. {}",
                constant_key(plan, at)
            ),
        ),
        JoinAlgorithm::NestedLoop => add(
            NoteKind::NestedLoop,
            format!("{name}: every row is compared with every broadcast row. {}", nested_loop_cause(join)),
        ),
        _ => add(NoteKind::Join, format!("{name}. {}", why(plan, app, at, join))),
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

fn nested_loop_cause(join: &Join) -> String {
    let condition = join.condition.as_deref().unwrap_or_default();
    let text = without_ids(condition);
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
            format!(
                "Both sides are shuffled by the key and sorted: neither was known to be small enough to broadcast.{sizes}{}",
                outer_rule(&join.kind)
            )
        }
    }
}

/// Bytes of a join's side: measured at its exchange, else estimated.
fn side_bytes(plan: &Plan, app: Option<&Application>, input: usize) -> Option<f64> {
    let below = plan.below(input);
    let exchange = below.iter().copied().find(|&n| matches!(plan.nodes[n].op, Operator::Exchange(_)))?;
    app.and_then(|app| bytes(app, plan, exchange)).map(|b| b as f64).or_else(|| estimate(plan, exchange))
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

fn summary(plan: &Plan, order: &[usize]) -> String {
    let count = |wanted: fn(&Operator) -> bool| order.iter().filter(|&&at| wanted(&plan.nodes[at].op)).count() as u64;
    let parts = [
        (count(|op| matches!(op, Operator::Scan(_) | Operator::CacheScan)), "read"),
        (count(|op| matches!(op, Operator::Exchange(_))), "shuffle"),
        (count(|op| matches!(op, Operator::BroadcastExchange { .. })), "broadcast"),
        (count(|op| matches!(op, Operator::Join(_))), "join"),
        (count(|op| matches!(op, Operator::Reused)), "reused exchange"),
        (count(|op| matches!(op, Operator::Write { .. })), "write"),
    ];
    let told = parts.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| crate::words::count(*n, noun));
    let told: Vec<String> = told.collect();
    let operators = crate::words::count(order.len() as u64, "operator");
    if told.is_empty() { operators } else { format!("{operators}: {}", told.join(", ")) }
}

/// What adaptive execution changed between the first plan and the last.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// What was changed.
    pub kind: ChangeKind,
    /// One sentence.
    pub text: String,
    /// Node of the first plan, where there is one.
    pub before: Option<usize>,
    /// Node of the last plan, where there is one.
    pub after: Option<usize>,
}

/// Kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ChangeKind {
    JoinAlgorithm,
    SkewSplit,
    Coalesced,
    LocalRead,
    EmptyRelation,
    Removed,
}

/// Compares the plan before the run with the one after.
#[must_use]
pub fn read_change(first: &Plan, last: &Plan) -> Vec<Change> {
    let mut changes = join_changes(first, last);
    let (mut merged, mut split, mut local) = (Vec::new(), Vec::new(), Vec::new());
    for (at, node) in last.nodes.iter().enumerate() {
        let Operator::ShuffleRead { coalesced, skewed, local: near } = node.op else { continue };
        for (flag, list) in [(coalesced, &mut merged), (skewed, &mut split), (near, &mut local)] {
            if flag {
                list.push(at);
            }
        }
    }
    let each = |kind, nodes: &[usize], text: &dyn Fn(String) -> String| {
        let change = |&at: &usize| Change { kind, text: text(shuffle_below(last, at)), before: None, after: Some(at) };
        nodes.iter().map(change).collect::<Vec<_>>()
    };
    changes.extend(each(ChangeKind::SkewSplit, &split, &|shuffle| {
        format!("Skewed partitions were split after: {shuffle}.")
    }));
    changes.extend(each(ChangeKind::Coalesced, &merged, &|shuffle| {
        format!("Small partitions were merged after: {shuffle}.")
    }));
    changes.extend(each(ChangeKind::LocalRead, &local, &|shuffle| {
        format!("Read on the same executor, without the network: {shuffle}.")
    }));
    changes.extend(removed(first, last));
    changes
}

fn shuffle_below(plan: &Plan, at: usize) -> String {
    let below = plan.below(at);
    let exchange = below.into_iter().find(|&n| matches!(plan.nodes[n].op, Operator::Exchange(_)));
    exchange.map_or_else(|| "a shuffle".to_owned(), |n| lower(&human_name(plan, n)))
}

/// Joins by their keys: the order of joins stays, their algorithm may not.
fn join_changes(first: &Plan, last: &Plan) -> Vec<Change> {
    let joins = |plan: &'_ Plan| -> Vec<(usize, Join)> {
        let join = |(at, node): (usize, &model::PlanNode)| match &node.op {
            Operator::Join(join) => Some((at, join.clone())),
            _ => None,
        };
        plan.nodes.iter().enumerate().filter_map(join).collect()
    };
    let mut left = joins(last);
    let mut changes = Vec::new();
    for (before, old) in joins(first) {
        let same =
            |new: &Join| new.left_keys == old.left_keys && new.right_keys == old.right_keys && new.kind == old.kind;
        let Some(index) = left.iter().position(|(_, new)| same(new)) else { continue };
        let (after, new) = left.remove(index);
        if new.algorithm != old.algorithm {
            let text = format!(
                "{} became {}: {}.",
                algorithm_words(&old),
                algorithm_words(&new),
                lower(&human_name(last, after))
            );
            changes.push(Change { kind: ChangeKind::JoinAlgorithm, text, before: Some(before), after: Some(after) });
        }
    }
    changes
}

/// Joins and aggregates that are gone: a side turned out to be empty.
fn removed(first: &Plan, last: &Plan) -> Option<Change> {
    let count = |plan: &Plan| plan.nodes.iter().filter(|n| matches!(n.op, Operator::Join(_))).count();
    let empty = |plan: &Plan| plan.nodes.iter().any(|n| &*n.name == "EmptyRelation" || &*n.name == "LocalTableScan");
    let gone = count(first).saturating_sub(count(last)) as u64;
    if gone == 0 {
        return None;
    }
    let kind = if empty(last) && !empty(first) { ChangeKind::EmptyRelation } else { ChangeKind::Removed };
    let why = if kind == ChangeKind::EmptyRelation { ": an input turned out to be empty" } else { "" };
    Some(Change {
        kind,
        text: format!("{} left out{why}.", crate::words::count(gone, "join")),
        before: None,
        after: None,
    })
}

#[cfg(test)]
mod tests;
