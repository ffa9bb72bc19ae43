//! From a node's name and one-line text to what it does.

use super::kind::{Kind, kind};
use super::list::{closing, cut_at, first_number, items, names, split, without_ids};
use super::scan::scan;
use model::{Aggregate, Exchange, ExchangeOrigin, Join, JoinAlgorithm, Operator, Partitioning, Side};

/// Reads a node. `detail` is the whole line, e.g. `Exchange hashpartitioning(id#7, 200)`.
pub(crate) fn operator(name: &str, detail: &str) -> Operator {
    let Some(kind) = kind(name) else { return Operator::Other };
    let args = arguments(name, detail);
    match kind {
        Kind::Scan => Operator::Scan(scan(name, detail)),
        Kind::Exchange => exchange(args),
        Kind::BroadcastExchange => Operator::BroadcastExchange { mode: cut_at(args, &['(', ',', ' ']).0.to_owned() },
        Kind::SortMergeJoin => join(JoinAlgorithm::SortMerge, name, args),
        Kind::ShuffledHashJoin => join(JoinAlgorithm::ShuffledHash, name, args),
        Kind::BroadcastHashJoin => join(JoinAlgorithm::BroadcastHash, name, args),
        Kind::NestedLoopJoin => join(JoinAlgorithm::NestedLoop, name, args),
        Kind::CartesianProduct => join(JoinAlgorithm::Cartesian, name, args),
        Kind::Filter => Operator::Filter { condition: args.to_owned() },
        Kind::Project => Operator::Project { expressions: args.to_owned() },
        Kind::Aggregate => aggregate(args, false),
        Kind::SortAggregate => aggregate(args, true),
        Kind::Sort => sort(args),
        Kind::TopK => Operator::TopK { limit: limit_of(args) },
        Kind::Window => window(args),
        Kind::Generate => Operator::Generate { generator: split(args).first().copied().unwrap_or_default().to_owned() },
        Kind::PythonRows => Operator::Python { row_at_a_time: true, functions: python(args) },
        Kind::PythonBatches => Operator::Python { row_at_a_time: false, functions: python(args) },
        Kind::Write => write(name, args),
        Kind::Limit => Operator::Limit { limit: first_number(args) },
        Kind::Coalesce => Operator::Coalesce { partitions: first_number(args) },
        Kind::ShuffleRead => shuffle_read(args),
        Kind::Codegen => Operator::Codegen { id: codegen_id(name, args) },
        other => plain(other),
    }
}

/// Operators without arguments worth reading.
fn plain(kind: Kind) -> Operator {
    match kind {
        Kind::Expand => Operator::Expand,
        Kind::Objects => Operator::Objects,
        Kind::Union => Operator::Union,
        Kind::CacheScan => Operator::CacheScan,
        Kind::CacheBuild => Operator::CacheBuild,
        Kind::Reused => Operator::Reused,
        Kind::Adaptive => Operator::Adaptive,
        Kind::QueryStage => Operator::QueryStage,
        Kind::Plumbing => Operator::Plumbing,
        Kind::Subquery => Operator::Subquery,
        Kind::Local => Operator::Local,
        _ => Operator::Other,
    }
}

/// What follows the name in a line. The line of a file scan begins with another word than its
/// name, and a name may be repeated with arguments in it (`HashAggregate(keys=…)`).
pub(crate) fn arguments<'t>(name: &str, detail: &'t str) -> &'t str {
    let detail = detail.trim_start_matches(['*', '!', ' ']);
    let name = name.trim();
    let rest = detail.strip_prefix(name).unwrap_or_else(|| cut_at(detail, &[' ', '(', '[']).1);
    rest.trim()
}

fn codegen_id(name: &str, args: &str) -> Option<u32> {
    let text = name.find('(').map_or(args, |n| &name[n..]);
    text.starts_with('(').then(|| first_number(text)).flatten().and_then(|n| u32::try_from(n).ok())
}

/// `hashpartitioning(a#1, b#2L, 200), ENSURE_REQUIREMENTS, [plan_id=50]`; before 3.1 a boolean
/// stands where the origin is now: false when the user gave the number of partitions.
fn exchange(args: &str) -> Operator {
    let parts = split(args);
    // Databricks broadcasts from executors: written as a shuffle, read as a broadcast.
    if parts.iter().any(|part| part.ends_with("EXECUTOR_BROADCAST")) {
        return Operator::BroadcastExchange { mode: "EXECUTOR_BROADCAST".to_owned() };
    }
    let mut exchange = Exchange::default();
    for (at, part) in parts.iter().enumerate() {
        let lower = part.to_ascii_lowercase();
        if at == 0 {
            partitioning(part, &lower, &mut exchange);
        } else if lower.starts_with("[plan_id=") || lower.starts_with("[id=#") {
            exchange.plan_id = first_number(part);
        } else if let Some(origin) = origin(part) {
            exchange.origin = origin;
        }
    }
    Operator::Exchange(exchange)
}

/// Who asked for an exchange, as Spark names it; `None` for other words.
pub(crate) fn origin(word: &str) -> Option<ExchangeOrigin> {
    Some(match word {
        "ENSURE_REQUIREMENTS" | "true" => ExchangeOrigin::Requirements,
        // `REPARTITION` and `REPARTITION_WITH_NUM` are the names of 3.0 and 3.1.
        "REPARTITION_BY_NUM" | "REPARTITION_WITH_NUM" | "false" => ExchangeOrigin::RepartitionByNumber,
        "REPARTITION_BY_COL" | "REPARTITION" => ExchangeOrigin::RepartitionByColumns,
        "REQUIRED_BY_STATEFUL_OPERATOR" => ExchangeOrigin::Stateful,
        _ if word.starts_with("REBALANCE") => ExchangeOrigin::Rebalance,
        _ => return None,
    })
}

fn partitioning(text: &str, lower: &str, exchange: &mut Exchange) {
    let inside = match text.find('(') {
        Some(open) => text[open + 1..closing(text, open)].strip_suffix(')').unwrap_or(&text[open + 1..]),
        None => "",
    };
    let mut items = split(inside);
    let partitions = items.last().and_then(|n| n.parse().ok());
    exchange.partitioning = match lower {
        _ if lower.contains("rangepartitioning") => Partitioning::Range,
        _ if lower.contains("hashpartitioning") => Partitioning::Hash,
        _ if lower.contains("roundrobinpartitioning") => Partitioning::RoundRobin,
        _ if lower.contains("singlepartition") => Partitioning::Single,
        _ => Partitioning::Other,
    };
    exchange.partitions = match exchange.partitioning {
        Partitioning::Single => Some(1),
        _ => partitions,
    };
    items.truncate(items.len() - usize::from(partitions.is_some()));
    let ranged = exchange.partitioning == Partitioning::Range;
    let key = |item: &&str| without_ids(if ranged { without_order(item) } else { item });
    exchange.keys = items.iter().filter(|i| !i.starts_with("...")).map(key).collect();
}

/// `k#2L ASC NULLS FIRST` without its direction.
fn without_order(item: &str) -> &str {
    [" ASC", " DESC"].iter().filter_map(|d| item.find(d)).min().map_or(item, |end| &item[..end])
}

const JOIN_TYPES: [&str; 11] = [
    "Inner",
    "LeftOuter",
    "RightOuter",
    "FullOuter",
    "LeftSemi",
    "LeftAnti",
    "Cross",
    "LeftSingle",
    "ExistenceJoin",
    "InnerLike",
    "RightSemi",
];

/// `[l#1], [r#2], Inner, BuildRight, (a#3 < b#4), false`, in any order, any part missing.
fn join(algorithm: JoinAlgorithm, name: &str, args: &str) -> Operator {
    let mut join =
        Join { algorithm, skew: name.contains("skew=true") || args.starts_with("(skew=true)"), ..Join::default() };
    let args = args.strip_prefix("(skew=true)").unwrap_or(args);
    let mut lists = 0;
    for part in split(args).into_iter().flat_map(join_words) {
        match part {
            "BuildLeft" => join.build = Some(Side::Left),
            "BuildRight" => join.build = Some(Side::Right),
            // The first flag of a broadcast hash join says that it is a null-aware anti join.
            "true" => join.null_aware |= algorithm == JoinAlgorithm::BroadcastHash && join.kind == "LeftAnti",
            "false" | "None" => {}
            _ if is_join_type(part) => join.kind = part.to_owned(),
            _ if part.starts_with('[') && lists == 0 => {
                join.left_keys = names(part);
                lists = 1;
            }
            _ if part.starts_with('[') && lists == 1 => {
                join.right_keys = names(part);
                lists = 2;
            }
            _ => join.condition = join.condition.take().or_else(|| Some(part.to_owned())),
        }
    }
    if join.kind.is_empty() && algorithm == JoinAlgorithm::Cartesian {
        join.kind = "Inner".to_owned();
    }
    Operator::Join(join)
}

/// The outline of a formatted plan has `Inner BuildRight` with no comma between.
fn join_words(part: &str) -> Vec<&str> {
    let words: Vec<&str> = part.split(' ').collect();
    let all = words.iter().all(|w| is_join_type(w) || matches!(*w, "BuildLeft" | "BuildRight"));
    if all { words } else { vec![part] }
}

fn is_join_type(word: &str) -> bool {
    let bare = word.split('(').next().unwrap_or_default();
    JOIN_TYPES.contains(&bare)
}

/// `(keys=[k#1], functions=[partial_sum(x#2)], output=[…])`; Photon's formatted text has bare
/// lists instead, the functions before the attributes.
fn aggregate(args: &str, sort_based: bool) -> Operator {
    let inside = args.strip_prefix('(').map_or(args, |inner| inner.strip_suffix(')').unwrap_or(inner));
    let mut aggregate = Aggregate { sort_based, ..Aggregate::default() };
    for part in split(inside) {
        match part.split_once('=') {
            Some(("keys" | "key", list)) => aggregate.keys = names(list),
            Some(("functions", list)) => aggregate.functions = items(list).into_iter().map(without_ids).collect(),
            _ => {}
        }
    }
    if !inside.contains("functions=") {
        bare_lists(inside, &mut aggregate);
    }
    aggregate.partial = aggregate.functions.iter().any(|f| f.starts_with("partial_"));
    Operator::Aggregate(aggregate)
}

fn bare_lists(inside: &str, aggregate: &mut Aggregate) {
    let lists: Vec<&str> = split(inside).into_iter().filter(|p| p.starts_with('[')).collect();
    match lists.iter().position(|list| list.contains('(')) {
        Some(at) => {
            aggregate.functions = items(lists[at]).into_iter().map(without_ids).collect();
            aggregate.keys = lists[..at].last().map(|list| names(list)).unwrap_or_default();
        }
        None => aggregate.keys = lists.first().map(|list| names(list)).unwrap_or_default(),
    }
}

/// `[k#2L ASC NULLS FIRST], false, 0`.
fn sort(args: &str) -> Operator {
    let parts = split(args);
    let order = parts.first().map(|list| items(list)).unwrap_or_default();
    Operator::Sort { order: order.into_iter().map(str::to_owned).collect(), global: parts.get(1) == Some(&"true") }
}

/// `(limit=100, orderBy=[…])`, or `100, […]` in formatted text.
fn limit_of(args: &str) -> Option<u64> {
    match args.find("limit=") {
        Some(at) => first_number(&args[at..]),
        None => split(args).into_iter().find_map(|part| part.parse().ok()),
    }
}

/// `[expressions], [partition columns], [order]`; an empty list is left out of the text.
fn window(args: &str) -> Operator {
    let lists: Vec<&str> = split(args).into_iter().filter(|p| p.starts_with('[')).collect();
    let ordered = |list: &&str| items(list).iter().all(|i| i.ends_with("NULLS FIRST") || i.ends_with("NULLS LAST"));
    let (mut partition_by, mut order_by) = (Vec::new(), Vec::new());
    for list in lists.iter().skip(1) {
        match ordered(list) && *list != "[]" {
            true => order_by = names(list),
            false if partition_by.is_empty() => partition_by = names(list),
            false => {}
        }
    }
    Operator::Window { partition_by, order_by }
}

/// The functions of a Python node: its first list or call, or all that is there.
fn python(args: &str) -> String {
    let calls = split(args).into_iter().find(|part| part.contains('('));
    without_ids(calls.unwrap_or(args))
}

/// Commands name a path or a table first, savers hide it in `Map(path -> …)`.
fn write(name: &str, args: &str) -> Operator {
    let words: Vec<&str> = name.split_whitespace().collect();
    let command = match words.as_slice() {
        ["Execute", command, ..] => command,
        [first, ..] => first,
        [] => "",
    };
    let args = args.strip_prefix(command).unwrap_or(args).trim();
    let target = option(args, "path -> ").or_else(|| args_target(args)).or_else(|| sink_target(args));
    Operator::Write { command: command.to_owned(), target: target.filter(|t| !t.is_empty()) }
}

fn option(args: &str, key: &str) -> Option<String> {
    let rest = &args[args.find(key)? + key.len()..];
    Some(cut_at(rest, &[',', ')']).0.trim().to_owned())
}

fn args_target(args: &str) -> Option<String> {
    let first = split(args).into_iter().next()?;
    let path = first.contains('/') && !first.contains('@') && !first.contains(' ');
    (path || first.starts_with('`')).then(|| first.replace('`', ""))
}

/// `OverwriteByExpression … NoopWrite`, `delta.`/lake/t``, `MicroBatchWrite[…]`.
fn sink_target(args: &str) -> Option<String> {
    if args.contains("noop") || args.contains("Noop") {
        return Some("noop".to_owned());
    }
    let first = split(args).into_iter().find(|part| part.contains('`'))?;
    Some(first.replace('`', ""))
}

fn shuffle_read(args: &str) -> Operator {
    Operator::ShuffleRead {
        coalesced: args.contains("coalesced"),
        skewed: args.contains("skewed"),
        local: args.split([' ', ',']).any(|word| word == "local"),
    }
}
