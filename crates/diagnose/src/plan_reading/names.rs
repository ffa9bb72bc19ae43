//! Operators as people say them.

use crate::plan_text::{columns, without_ids, without_links};
use crate::plans::{joined, sources};
use crate::queries::short_source;
use model::{Count, Join, JoinAlgorithm, Operator, Partitioning, Plan, PlanNode, Side};

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
        Operator::Filter { condition } => format!("Filter {}", short(&readable(condition), 80)),
        Operator::Project { .. } => "Choose columns".to_owned(),
        Operator::Aggregate(a) => {
            let by = if a.keys.is_empty() { String::new() } else { format!(" by {}", list(&a.keys)) };
            format!("Aggregate{by}{}", if a.partial { " (first step, before the shuffle)" } else { "" })
        }
        Operator::Sort { order, global } => {
            format!("Sort by {}{}", list(&bare_order(order)), if *global { " over all partitions" } else { "" })
        }
        Operator::TopK { limit } => format!("{}{}", limited("Keep the first", *limit), top_order(node)),
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
            let into =
                partitions.map_or_else(|| "fewer partitions".to_owned(), |n| crate::words::count(n, "partition"));
            format!("Merge into {into}, no shuffle")
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

/// ` by amount descending` of `TakeOrderedAndProject(limit=10, orderBy=[amount#3 DESC NULLS LAST], …)`.
fn top_order(node: &PlanNode) -> String {
    let lists = node.detail.split('[').skip(1).map(|rest| rest.split(']').next().unwrap_or_default());
    let order = lists.into_iter().find(|list| list.contains(" ASC") || list.contains(" DESC"));
    let order = order.map(|list| crate::plan_text::split(list).into_iter().map(str::to_owned).collect::<Vec<_>>());
    order.map_or_else(String::new, |order| format!(" by {}", list(&bare_order(&order))))
}

/// A condition for a reader: no ids, no links between parts of the text.
pub(super) fn readable(condition: &str) -> String {
    without_ids(&without_links(condition))
}

/// A join's condition with the table before each column that only one side has.
pub(super) fn qualified(plan: &Plan, at: usize, condition: &str) -> String {
    const LONG: usize = 2_000;
    if condition.len() > LONG {
        return readable(condition);
    }
    let inputs = plan.inputs(at);
    let sides: Vec<(String, Vec<usize>)> = inputs
        .iter()
        .filter_map(|&input| match sources(plan, input).as_slice() {
            [only] => Some((only.rsplit('.').next().unwrap_or(only).to_owned(), plan.below(input))),
            _ => None,
        })
        .collect();
    let mut text = condition.to_owned();
    for column in columns(condition) {
        for id in ids(condition, &column) {
            let whole = format!("{column}#{id}");
            let has = |nodes: &[usize]| nodes.iter().any(|&n| has_id(&plan.nodes[n], &whole));
            let mut owners = sides.iter().filter(|(_, nodes)| has(nodes));
            if let (Some((table, _)), None) = (owners.next(), owners.next()) {
                text = text.replace(&whole, &format!("{table}.{whole}"));
            }
        }
    }
    readable(&text)
}

/// Ids that a column has in a condition: `ref#4` and `ref#12` are two columns of one name.
fn ids(condition: &str, column: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (at, _) in condition.match_indices(&format!("{column}#")) {
        let digits: String = condition[at + column.len() + 1..].chars().take_while(char::is_ascii_digit).collect();
        let whole_word = condition[..at].chars().next_back().is_none_or(|c| !(c.is_alphanumeric() || c == '_'));
        if whole_word && !found.contains(&digits) {
            found.push(digits);
        }
    }
    found
}

fn has_id(node: &PlanNode, whole: &str) -> bool {
    let ends = |text: &str, at: usize| !text[at + whole.len()..].starts_with(|c: char| c.is_ascii_digit());
    let says = |text: &str| text.match_indices(whole).any(|(at, _)| ends(text, at));
    says(&node.detail) || node.output.iter().any(|column| says(column))
}

/// The name of what is reused, which itself never is a reuse.
fn human_name_once(plan: &Plan, at: usize) -> String {
    match plan.nodes[at].op {
        Operator::Reused => "an exchange".to_owned(),
        _ => human_name(plan, at),
    }
}

pub(super) fn lower(text: &str) -> String {
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
pub(super) fn list(items: &[String]) -> String {
    match items.len() {
        0..=4 => items.join(", "),
        n => format!("{} and {} more", items[..3].join(", "), n - 3),
    }
}

fn short(text: &str, width: usize) -> String {
    let text =
        text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).filter(|t| !t.contains(['(', ')'])).unwrap_or(text);
    crate::words::clipped(text, width)
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
    let (left, right) = (side(0), side(1));
    let sides =
        if left == "rows" && right == "rows" { "two inputs".to_owned() } else { format!("{left} with {right}") };
    format!("Join {sides}{on} ({})", algorithm_words(join))
}

pub(super) fn algorithm_words(join: &Join) -> String {
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
