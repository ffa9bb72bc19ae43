//! Operators as people write them beside pasted stage figures: one node's text, or a chain such
//! as `WriteFiles <- Exchange RoundRobinPartitioning(2), REPARTITION_BY_NUM <- Scan parquet`.

use crate::work::{JoinWork, Operation, Work};
use model::{Exchange, ExchangeOrigin, JoinAlgorithm, Partitioning, Scan};

/// What the operators of a sketch do; the first one that combines rows counts.
pub fn work(text: &str) -> Work {
    let mut work = Work::default();
    for piece in text.split("<-").flat_map(str::lines).map(str::trim).filter(|p| !p.is_empty()) {
        node(piece.trim_start_matches([':', '+', '-', ' ', '*']), &mut work);
    }
    work
}

fn node(text: &str, work: &mut Work) {
    let name: String = text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let combines = work.operation == Operation::Unknown;
    work.known = true;
    match name.trim_start_matches("Photon") {
        n if n.ends_with("Join") && combines => join(n, text, work),
        "CartesianProduct" if combines => join("CartesianProduct", text, work),
        "HashAggregate" | "SortAggregate" | "ObjectHashAggregate" | "Agg" | "GroupingAgg" if combines => {
            work.operation = Operation::Aggregate;
            work.keys = text.split_once("keys=").map(|(_, rest)| list(rest)).unwrap_or_default();
            work.label = Some(labelled(&name, &work.keys));
        }
        "Window" if combines => {
            work.operation = Operation::Window;
            work.keys = text.splitn(3, '[').nth(2).map(|rest| list(&format!("[{rest}"))).unwrap_or_default();
            work.label = Some(labelled(&name, &work.keys));
        }
        n if n.ends_with("Exchange") && !n.starts_with("Broadcast") => exchange(text, work),
        "Coalesce" => work.coalesce = number_after(text, "Coalesce"),
        "Scan" | "FileScan" | "BatchScan" => {
            let format = text.split_whitespace().nth(1).unwrap_or_default().to_ascii_lowercase();
            work.scan = Some(Scan { format, ..Scan::default() });
        }
        n if n.starts_with("Write") || n.starts_with("InsertInto") || n.contains("Overwrite") => work.writes = true,
        _ => {}
    }
}

fn join(name: &str, text: &str, work: &mut Work) {
    let algorithm = match name {
        "SortMergeJoin" => JoinAlgorithm::SortMerge,
        "ShuffledHashJoin" => JoinAlgorithm::ShuffledHash,
        "BroadcastHashJoin" => JoinAlgorithm::BroadcastHash,
        "BroadcastNestedLoopJoin" => JoinAlgorithm::NestedLoop,
        _ => JoinAlgorithm::Cartesian,
    };
    let kinds = ["LeftOuter", "RightOuter", "FullOuter", "LeftAnti", "LeftSemi", "Inner", "Cross"];
    let kind = kinds.into_iter().find(|k| text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == *k));
    let mut lists = text.match_indices('[').map(|(at, _)| list(&text[at..]));
    let (left_keys, right_keys) = (lists.next().unwrap_or_default(), lists.next().unwrap_or_default());
    work.operation = Operation::Join;
    work.keys = left_keys.clone();
    work.label = Some(labelled(name, &left_keys));
    work.join = Some(JoinWork {
        algorithm,
        kind: kind.unwrap_or_default().to_owned(),
        left_keys,
        right_keys,
        skew: text.contains("skew=true"),
        ..JoinWork::default()
    });
}

fn exchange(text: &str, work: &mut Work) {
    let lower = text.to_ascii_lowercase();
    let partitioning = match () {
        () if lower.contains("hashpartitioning") => Partitioning::Hash,
        () if lower.contains("rangepartitioning") => Partitioning::Range,
        () if lower.contains("roundrobin") => Partitioning::RoundRobin,
        () if lower.contains("singlepartition") => Partitioning::Single,
        () => Partitioning::Other,
    };
    let origin = match () {
        () if lower.contains("repartition_by_num") => ExchangeOrigin::RepartitionByNumber,
        () if lower.contains("repartition_by_col") => ExchangeOrigin::RepartitionByColumns,
        () if lower.contains("rebalance") => ExchangeOrigin::Rebalance,
        () => ExchangeOrigin::Requirements,
    };
    let inside = text.split_once('(').map(|(_, rest)| rest.split(')').next().unwrap_or_default()).unwrap_or_default();
    let mut parts: Vec<String> = inside.split(',').map(|p| without_id(p.trim())).collect();
    let partitions = parts.last().and_then(|p| p.parse().ok());
    if partitions.is_some() || inside.is_empty() {
        parts.pop();
    }
    if work.keys.is_empty() && work.operation == Operation::Unknown {
        work.keys.clone_from(&parts);
    }
    work.exchanges.push(Exchange { partitioning, keys: parts, partitions, origin, plan_id: None });
}

/// `SortMergeJoin on a, b`.
pub fn labelled(name: &str, keys: &[String]) -> String {
    if keys.is_empty() { name.to_owned() } else { format!("{name} on {}", keys.join(", ")) }
}

/// Items of the bracketed list that `text` begins with, without ids.
fn list(text: &str) -> Vec<String> {
    let inside = text.trim_start().trim_start_matches('[').split(']').next().unwrap_or_default();
    inside.split(',').map(|k| without_id(k.trim())).filter(|k| !k.is_empty()).collect()
}

/// `order_key#12L` is `order_key`.
fn without_id(text: &str) -> String {
    match text.split_once('#') {
        Some((name, rest)) if rest.trim_end_matches('L').chars().all(|c| c.is_ascii_digit()) => name.to_owned(),
        _ => text.to_owned(),
    }
}

fn number_after(text: &str, word: &str) -> Option<u64> {
    let rest = text.split_once(word)?.1;
    let digits: String = rest.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_one_node_and_a_chain() {
        let one = work("SortMergeJoin [order_key#12], [order_key#40], LeftOuter");
        assert_eq!((one.operation, one.keys.join(",")), (Operation::Join, "order_key".to_owned()));
        assert_eq!(one.join.expect("a join").kind, "LeftOuter");
        let chain = work("WriteFiles <- Exchange RoundRobinPartitioning(2), REPARTITION_BY_NUM <- Scan parquet");
        assert!(chain.writes && chain.operation == Operation::Unknown && chain.keys.is_empty());
        assert_eq!(chain.exchanges[0].origin, ExchangeOrigin::RepartitionByNumber);
        assert_eq!(chain.exchanges[0].partitions, Some(2));
        assert_eq!(chain.scan.expect("a scan").format, "parquet");
        let aggregate = work("HashAggregate(keys=[customer_id#3L, day#4], functions=[sum(x#1)])");
        assert_eq!(aggregate.keys, ["customer_id", "day"]);
        let window = work("Window [row_number() AS n#1], [account#4], [ts#5 ASC NULLS FIRST]");
        assert_eq!((window.operation, window.keys), (Operation::Window, vec!["account".to_owned()]));
        assert_eq!(work("Exchange hashpartitioning(k#1, 200)").keys, ["k"]);
    }
}
