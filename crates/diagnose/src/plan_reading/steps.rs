//! Steps and stages of a reading: what the plan says of each, and what the run measured.

use super::names::{human_name, list, qualified, readable};
use super::{Order, StageBox, Step, is_exchange, of_cache};
use crate::plans::{bytes, metric, own_time, row_count, stage_of_node, unpushed};
use model::{Application, Bytes, Count, ExchangeOrigin, Operator, Plan, Scan};

pub(super) fn step(plan: &Plan, app: Option<&Application>, at: usize, order: &Order) -> Step {
    let node = &plan.nodes[at];
    Step {
        number: order.numbers[at],
        node: at,
        name: human_name(plan, at),
        operator: node.name.to_string(),
        operator_number: node.number,
        inputs: plan.inputs(at).into_iter().map(|n| order.numbers[n]).filter(|&n| n > 0).collect(),
        stage: order.parts[at],
        details: details(plan, app, at),
        ..Step::default()
    }
}

/// What the plan says of an operator.
fn details(plan: &Plan, app: Option<&Application>, at: usize) -> Vec<String> {
    match &plan.nodes[at].op {
        Operator::Scan(scan) => scan_details(plan, app, at, scan),
        Operator::Exchange(e) => {
            let asked = [asked_by(e.origin).to_owned()];
            asked.into_iter().chain(known(plan, app, at)).chain(read_again(plan, app, at)).collect()
        }
        Operator::Filter { .. } => filter_details(plan, at),
        Operator::Join(join) => {
            join.condition.iter().map(|c| format!("condition {}", qualified(plan, at, c))).collect()
        }
        Operator::Aggregate(a) if !a.functions.is_empty() => vec![format!("computes {}", list(&a.functions))],
        Operator::BroadcastExchange { mode } => {
            let mode = Some(mode.clone()).filter(|mode| !mode.is_empty());
            mode.into_iter().chain(known(plan, app, at)).collect()
        }
        Operator::Write { command, .. } => vec![command.clone()],
        _ => Vec::new(),
    }
}

/// What adaptive execution measured of an exchange, where only the text tells.
fn known(plan: &Plan, app: Option<&Application>, exchange: usize) -> Option<String> {
    let stage = plan.nodes[exchange].parent.filter(|&p| plan.nodes[p].op == Operator::QueryStage)?;
    let known = plan.nodes[stage].statistics.filter(|_| app.is_none())?;
    let rows =
        known.rows.map(|n| format!("{} row{}, ", Count(n as u64), if n == 1.0 { "" } else { "s" })).unwrap_or_default();
    Some(format!("measured by adaptive execution: {rows}{} in memory", Bytes(known.size_bytes as u64)))
}

/// How adaptive execution lets the next stage read an exchange.
fn read_again(plan: &Plan, app: Option<&Application>, exchange: usize) -> Option<String> {
    let mut at = exchange;
    while let Some(parent) = plan.nodes[at].parent.filter(|&p| plan.nodes[p].op.is_wrapper()) {
        at = parent;
        let Operator::ShuffleRead { coalesced, skewed, local } = plan.nodes[at].op else { continue };
        let into = app.and_then(|app| metric(app, &plan.nodes[at], "number of partitions"));
        let into = into.map(|n| format!(" into {}", crate::words::count(n.unsigned_abs(), "task"))).unwrap_or_default();
        let what = [
            (coalesced, "merges small partitions"),
            (skewed, "splits skewed partitions"),
            (local, "reads where it was written, without the network"),
        ];
        let said: Vec<&str> = what.into_iter().filter(|(does, _)| *does).map(|(_, said)| said).collect();
        return (!said.is_empty()).then(|| format!("adaptive execution {}{into}", said.join(" and ")));
    }
    None
}

fn scan_details(plan: &Plan, app: Option<&Application>, at: usize, scan: &Scan) -> Vec<String> {
    let mut details = Vec::new();
    if !scan.format.is_empty() {
        details.push(format!("format {}", scan.format));
    }
    let columns = scan.columns.len() as u64 + scan.more_columns;
    if columns > 0 {
        let shown = scan.columns.len().min(if scan.columns.len() > 4 || scan.more_columns > 0 { 3 } else { 4 });
        let more = if (shown as u64) < columns { ", …" } else { "" };
        details.push(format!("{}: {}{more}", crate::words::count(columns, "column"), scan.columns[..shown].join(", ")));
    }
    for (label, filters) in [("pushed", &scan.pushed), ("partition filters", &scan.partition_filters)] {
        match filters.as_deref() {
            Some([]) => details.push(format!("{label}: none")),
            Some(some) => details.push(format!("{label}: {}", readable(&some.join(", ")))),
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
    if let Some(size) = app.and_then(|app| metric(app, &plan.nodes[at], "size of files read")) {
        details.push(format!("files: {} (their size, not what was read of them)", Bytes(size.unsigned_abs())));
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

pub(super) fn stages(plan: &Plan, steps: &[Step], order: &Order, app: Option<&Application>) -> Vec<StageBox> {
    let count = steps.iter().map(|s| s.stage).max().unwrap_or(0);
    let cached = of_cache(plan);
    let stage = |number: usize| {
        let own: Vec<&Step> = steps.iter().filter(|s| s.stage == number).collect();
        let last = own.last().map_or_else(String::new, |s| ends(plan, s.node, order));
        let spark_stage = app.and_then(|app| {
            // The exchange's own metrics belong to both sides of it, those of cached data to the
            // query that filled the cache.
            let ran = own.iter().filter(|s| !is_exchange(&plan.nodes[s.node].op) && !cached[s.node]);
            ran.filter_map(|s| stage_of_node(app, &plan.nodes[s.node])).next()
        });
        let id = spark_stage.and_then(|at| Some(app?.stages.get(at)?.id));
        StageBox { number, steps: own.iter().map(|s| s.number).collect(), ends: last, spark_stage: id }
    };
    (1..=count).map(stage).collect()
}

/// How the rows of a part leave it.
fn ends(plan: &Plan, last: usize, order: &Order) -> String {
    match plan.nodes[last].op {
        Operator::Exchange(_) => return "writes a shuffle".to_owned(),
        Operator::BroadcastExchange { .. } => return "is broadcast to every executor".to_owned(),
        Operator::Write { .. } => return "writes the result".to_owned(),
        _ => {}
    }
    let mut at = last;
    loop {
        let node = &plan.nodes[at];
        let Some(parent) = node.parent else { return "gives the result".to_owned() };
        if plan.subqueries.contains(&at) {
            let host = order.numbers[parent];
            let what = if matches!(plan.nodes[parent].op, Operator::Scan(_)) {
                "chooses what is read in"
            } else {
                "gives its value to"
            };
            return if host > 0 { format!("{what} step {host}") } else { "gives its value to the plan".to_owned() };
        }
        if plan.nodes[parent].op == Operator::CacheScan {
            return "fills the cache, once and maybe for an earlier query".to_owned();
        }
        at = parent;
    }
}

pub(super) fn measure(plan: &Plan, app: &Application, steps: &mut [Step]) {
    let times = own_time(app, plan);
    let cached = of_cache(plan);
    for step in steps.iter_mut().filter(|step| !cached[step.node]) {
        step.rows = row_count(app, plan, step.node);
        step.bytes = bytes(app, plan, step.node);
        if let Some(time) = times.iter().find(|t| t.node == step.node) {
            step.time_ms = Some(time.ms);
            step.time_estimated = time.estimated;
        }
    }
}
