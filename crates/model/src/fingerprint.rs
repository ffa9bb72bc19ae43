//! When two plans are the same query: what they do, without ids, literals, sizes and dates.
//!
//! Used to match the executions of two runs and to find what is computed twice. Two plans with
//! one fingerprint read the same relations and do the same steps by the same keys. What changes
//! from day to day is left out: literals, expression ids, plan ids, numbers of partitions, dates
//! in paths, and the wrappers that engines and adaptive execution put around operators.

use crate::{Operator, Plan, Scan};
use std::fmt::Write;

impl Plan {
    /// The plan as indented lines, one an operator, without what differs from run to run.
    #[must_use]
    pub fn normalised(&self) -> String {
        let mut text = String::new();
        let mut open: Vec<(usize, usize)> = self.subqueries.iter().rev().map(|&root| (root, 0)).collect();
        open.extend(self.nodes.first().map(|_| (0, 0)));
        while let Some((node, depth)) = open.pop() {
            let step = self.step(node);
            let below = depth + usize::from(step.is_some());
            if let Some(step) = step {
                let _ = writeln!(text, "{:width$}{step}", "", width = depth * 2);
            }
            open.extend(self.nodes[node].children.iter().rev().map(|&child| (child, below)));
        }
        text
    }

    /// A hash of [`Plan::normalised`]; stable across versions of this program.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        fnv(self.normalised().bytes())
    }

    /// The fingerprint of what a node computes: itself and all below it.
    #[must_use]
    pub fn subtree_fingerprint(&self, node: usize) -> u64 {
        self.subtree_fingerprints().get(node).copied().unwrap_or_default()
    }

    /// Fingerprints of all nodes. A wrapper has that of its only input, so that a sub-plan is
    /// the same with or without a stage of adaptive execution around it.
    #[must_use]
    pub fn subtree_fingerprints(&self) -> Vec<u64> {
        let mut found = vec![0; self.nodes.len()];
        // Inputs stand after what takes them.
        for at in (0..self.nodes.len()).rev() {
            let inputs = self.nodes[at].children.iter().map(|&c| found[c]);
            found[at] = match (self.step(at), self.nodes[at].children.as_slice()) {
                (None, &[only]) => found[only],
                (step, _) => {
                    let inputs: Vec<u8> = inputs.flat_map(u64::to_le_bytes).collect();
                    fnv(step.unwrap_or_default().bytes().chain(inputs))
                }
            };
        }
        found
    }

    /// What a node does, in one line; `None` for wrappers.
    fn step(&self, node: usize) -> Option<String> {
        let node = &self.nodes[node];
        let op = &node.op;
        if op.is_wrapper() || *op == Operator::Subquery {
            return None;
        }
        Some(match op {
            Operator::Scan(scan) => format!("scan {}", relation(scan)),
            Operator::Exchange(e) => format!("exchange {:?} {}", e.partitioning, list(&e.keys)),
            Operator::BroadcastExchange { .. } => "broadcast".to_owned(),
            Operator::Join(j) => {
                let condition = shape(j.condition.as_deref().unwrap_or_default());
                format!(
                    "join {:?} {} {} = {} {condition}",
                    j.algorithm,
                    j.kind,
                    list(&j.left_keys),
                    list(&j.right_keys)
                )
            }
            Operator::Filter { condition } => format!("filter {}", shape(condition)),
            Operator::Project { .. } => "project".to_owned(),
            Operator::Aggregate(a) => {
                format!("aggregate {} {} partial {}", list(&a.keys), list(&a.functions), a.partial)
            }
            Operator::Sort { order, .. } => format!("sort {}", list(order)),
            Operator::Window { partition_by, order_by } => format!("window {} {}", list(partition_by), list(order_by)),
            Operator::Generate { generator } => format!("generate {}", shape(generator)),
            Operator::Python { functions, .. } => format!("python {}", shape(functions)),
            Operator::Write { command, target } => {
                format!("write {command} {}", path_shape(target.as_deref().unwrap_or_default()))
            }
            Operator::Reused => "reused".to_owned(),
            Operator::Other => node.name.split(['(', '[', ' ']).next().unwrap_or_default().to_owned(),
            named => format!("{named:?}").split([' ', '{']).next().unwrap_or_default().to_lowercase(),
        })
    }
}

fn list(items: &[String]) -> String {
    items.iter().map(|item| shape(item)).collect::<Vec<_>>().join(", ")
}

/// Format and table, else the path without dates and numbers; filters by their shape.
fn relation(scan: &Scan) -> String {
    let place = match (&scan.table, &scan.location) {
        (Some(table), _) => table.clone(),
        (None, Some(location)) => path_shape(first_path(location)),
        (None, None) => String::new(),
    };
    let filters = scan.partition_filters.iter().flatten().map(|f| shape(f)).collect::<Vec<_>>().join(", ");
    format!("{} {place} [{filters}]", scan.format)
}

/// The first path of `InMemoryFileIndex(9 paths)[s3://lake/t/dt=2025-01-01, ... 8 entries]`,
/// without the folders of partitions: which ones are read changes from run to run.
fn first_path(location: &str) -> &str {
    let inside = location.split_once('[').map_or(location, |(_, inside)| inside);
    let path = inside.split([',', ']']).next().unwrap_or_default();
    let folder = path.find('=').and_then(|equals| path[..equals].rfind('/'));
    &path[..folder.unwrap_or(path.len())]
}

/// A path with numbers, dates and long hexadecimal names left out.
fn path_shape(path: &str) -> String {
    let parts = path.split_inclusive(['/', ',', '=']).map(|part| {
        let name = part.trim_end_matches(['/', ',', '=']);
        let hex = name.len() >= 8 && name.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        if hex { part.replace(name, "?") } else { without_numbers(part) }
    });
    parts.collect()
}

/// An expression without ids and literals: `(amount#3 > 50.0)` is `(amount > ?)`.
fn shape(expression: &str) -> String {
    let text = without_aliases(&without_literals(expression));
    without_numbers(&without_ids(&text))
}

/// Spark writes literals bare, so a side of a comparison that names no attribute is one.
fn without_literals(text: &str) -> String {
    const BEFORE: [&str; 10] =
        [" <=> ", " >= ", " <= ", " = ", " > ", " < ", " IN (", " INSET ", " LIKE ", "StartsWith("];
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let next = BEFORE.iter().filter_map(|b| Some((rest.find(b)?, b.len()))).min();
        let Some((at, width)) = next else { break };
        out.push_str(&rest[..at + width]);
        rest = &rest[at + width..];
        let end = end_of_operand(rest);
        let literal = !rest[..end].contains('#') && end > 0;
        out.push_str(if literal { "?" } else { &rest[..end] });
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// Up to the bracket that closes around the operand, or a connective at its level.
fn end_of_operand(text: &str) -> usize {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' if depth == 0 => return at,
            b')' | b']' => depth -= 1,
            b' ' if depth == 0 && (text[at..].starts_with(" AND ") || text[at..].starts_with(" OR ")) => return at,
            _ => {}
        }
    }
    text.len()
}

fn without_ids(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(hash) = rest.find('#') {
        out.push_str(&rest[..hash]);
        let after = &rest[hash + 1..];
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        rest = &after[digits..];
        rest = rest.strip_prefix('L').filter(|_| digits > 0).unwrap_or(rest);
    }
    out + rest
}

/// ` AS name` at the end of an expression or before a comma.
fn without_aliases(text: &str) -> String {
    let mut parts = text.split(" AS ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // `cast(a as string)` is written in lower case; an alias ends at the next bracket or comma.
        out.push_str(part.find([',', ')', ']']).map_or("", |end| &part[end..]));
    }
    out
}

/// Numbers that are not part of a name become `?`, runs of them with their separators one.
fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut named = false;
    for c in text.chars() {
        if c.is_ascii_digit() && !named {
            if !out.ends_with('?') {
                out.push('?');
            }
            continue;
        }
        let joins = out.ends_with('?') && matches!(c, '.' | '-' | ':' | 'T' | 'Z');
        if !joins {
            out.push(c);
        }
        named = c.is_alphabetic() && !joins || c == '_' || named && c.is_ascii_digit();
    }
    out
}

/// FNV-1a, 64 bits: small, and the same everywhere.
fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_ids_and_dates_go() {
        for (one, other) in [
            ("(amount#3 > 50.0)", "(amount#99 > 7)"),
            ("((dt#9 >= 2025-01-01) AND (label#2 = promo))", "((dt#1 >= 2024-12-31) AND (label#7 = other text))"),
            ("sum(v#2) AS total#3", "sum(v#9) AS s#4"),
            ("a#1 IN (1,2,3)", "a#5 IN (7)"),
        ] {
            assert_eq!(shape(one), shape(other));
        }
        assert_ne!(shape("(a#1 > b#2)"), shape("(a#1 > 5)"));
        assert_ne!(shape("col1#1"), shape("col2#1"));
        assert_eq!(shape("((dt#9 >= 2025-01-01) AND (label#2 = promo))"), "((dt >= ?) AND (label = ?))");
        assert_eq!(path_shape("s3://lake/t/dt=2025-01-01/part"), path_shape("s3://lake/t/dt=2024-11-30/part"));
        assert_eq!(first_path("InMemoryFileIndex(9 paths)[s3://lake/t/dt=2025-01-01, ... 8 entries]"), "s3://lake/t");
        assert_eq!(path_shape("s3://lake/t/deadbeef-12ab/x"), "s3://lake/t/?/x");
    }
}
