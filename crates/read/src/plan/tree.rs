//! The drawn tree: `+- `, `:- `, and the adaptive `== Final Plan ==` inside it.

use super::kind::{Kind, kind};
use super::list::{closing, cut_at};

/// Which of the plans inside an adaptive plan a node belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// `== Final Plan ==` or `== Current Plan ==`: how it runs.
    Ran(&'static str),
    /// `== Initial Plan ==`: as planned at first.
    Initial,
}

/// A line of a tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct TreeLine<'t> {
    pub(crate) parent: Option<usize>,
    /// Text without tree drawing and codegen mark; lines that continue it follow after newlines.
    pub(crate) text: std::borrow::Cow<'t, str>,
    /// Id in `*(3) `.
    pub(crate) codegen: Option<u32>,
    /// The part of its adaptive parent that it is in.
    pub(crate) part: Option<Part>,
    /// Column of the text.
    column: usize,
    /// The part under which children are put, for adaptive nodes.
    open_part: Option<Part>,
}

/// Reads a tree from the first line on; returns it and the number of lines that it took.
pub(crate) fn tree<'t>(lines: &[&'t str]) -> (Vec<TreeLine<'t>>, usize) {
    let mut reader = Reader::default();
    let mut taken = 0;
    for line in lines {
        if !reader.line(line) {
            break;
        }
        taken += 1;
    }
    (reader.nodes, taken)
}

#[derive(Default)]
struct Reader<'t> {
    nodes: Vec<TreeLine<'t>>,
    /// Nodes that can still get children, outermost first.
    open: Vec<usize>,
    /// Column of an adaptive heading whose tree comes next.
    awaited: Option<usize>,
    /// Column of the last connector and whether it closed its level (`+- `).
    last: Option<(usize, bool)>,
}

impl<'t> Reader<'t> {
    /// Takes a line; false when it does not belong to the tree.
    fn line(&mut self, line: &'t str) -> bool {
        let Some((column, connector, text)) = drawn(line) else { return false };
        if let Some(part) = part(text)
            && (connector || !self.nodes.is_empty())
        {
            return self.heading(column, part);
        }
        let root = self.nodes.is_empty() || self.awaited == Some(column);
        if !connector && !root {
            return self.continuation(line);
        }
        self.awaited = None;
        if text == "..." {
            return self.missing(column);
        }
        let column = self.restored(column, connector, line);
        self.push(column, text);
        true
    }

    /// Belongs to the adaptive node above it. Inside a subquery Spark draws the heading in the
    /// column of that node itself, so the node gives way.
    fn heading(&mut self, column: usize, part: Part) -> bool {
        let adaptive = |&n: &usize| self.nodes[n].column <= column && kind(&self.nodes[n].text) == Some(Kind::Adaptive);
        match self.open.iter().rposition(adaptive) {
            Some(at) => {
                self.open.truncate(at + 1);
                let node = &mut self.nodes[self.open[at]];
                node.column = node.column.min(column.saturating_sub(1));
                node.open_part = Some(part);
            }
            None => self.close(column),
        }
        self.awaited = Some(column);
        self.last = None;
        true
    }

    /// A chat or a form may have eaten the leading spaces. A level has one last child (`+- `) at
    /// most, so a second one in the same column stands below the first.
    fn restored(&mut self, column: usize, connector: bool, line: &str) -> usize {
        let closes = line.trim_start().starts_with("+- ");
        let flattened = connector && self.last == Some((column, true)) && closes;
        let deeper = self.nodes.last().map_or(column, |n| n.column + 3);
        self.last = connector.then_some((column, closes));
        if flattened && self.nodes.last().is_some_and(|n| n.column >= column) { deeper } else { column }
    }

    fn push(&mut self, column: usize, text: &'t str) {
        self.close(column);
        let parent = self.open.last().copied();
        let (codegen, text) = without_marks(text);
        let part = parent.and_then(|p| self.nodes[p].open_part);
        self.open.push(self.nodes.len());
        self.nodes.push(TreeLine { parent, text: text.into(), codegen, part, column, open_part: None });
    }

    /// Closes the nodes that cannot be above something in this column.
    fn close(&mut self, column: usize) {
        while self.open.last().is_some_and(|&n| self.nodes[n].column >= column) {
            self.open.pop();
        }
    }

    /// `+- ...`: whoever pasted this left a part out.
    fn missing(&mut self, column: usize) -> bool {
        self.close(column);
        if let Some(&parent) = self.open.last() {
            self.nodes[parent].text.to_mut().push_str(" ...");
        }
        true
    }

    /// A line without drawing goes on with the node before when that one has open brackets.
    fn continuation(&mut self, line: &'t str) -> bool {
        let Some(node) = self.nodes.last_mut() else { return false };
        let open = node.text.find(['(', '[']).is_some_and(|at| !balanced(&node.text[at..]));
        if open && !line.trim().is_empty() {
            let text = node.text.to_mut();
            text.push('\n');
            text.push_str(line);
        }
        open && !line.trim().is_empty()
    }
}

fn balanced(text: &str) -> bool {
    let depth = |open: char, close: char| text.matches(open).count().saturating_sub(text.matches(close).count());
    depth('(', ')') + depth('[', ']') == 0
}

/// Column of the text, whether a connector stands before it, and the text; `None` when blank.
pub(crate) fn drawn(line: &str) -> Option<(usize, bool, &str)> {
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'+' | b':' if bytes[at + 1..].starts_with(b"- ") => {
                return Some((at + 3, true, line[at + 3..].trim())).filter(|(_, _, text)| !text.is_empty());
            }
            b' ' | b'|' => at += 1,
            b':' if bytes.get(at + 1) == Some(&b' ') => at += 1,
            _ => return Some((at, false, line[at..].trim())),
        }
    }
    None
}

fn part(text: &str) -> Option<Part> {
    match text {
        "== Final Plan ==" => Some(Part::Ran("Final Plan")),
        "== Current Plan ==" => Some(Part::Ran("Current Plan")),
        "== Initial Plan ==" => Some(Part::Initial),
        _ => None,
    }
}

/// `*(3) Sort`, `* Sort`, `!AggregateInPandas`: codegen id and the rest.
fn without_marks(text: &str) -> (Option<u32>, &str) {
    let Some(rest) = text.strip_prefix('*') else {
        return (None, text.strip_prefix('!').unwrap_or(text));
    };
    let Some(inside) = rest.strip_prefix('(') else { return (None, rest.trim_start()) };
    match inside.split_once(')') {
        Some((id, rest)) => (id.parse().ok(), rest.trim_start()),
        None => (None, rest),
    }
}

/// The name in a line, as the log's JSON has it: `FileScan parquet t[a#1] …` is `Scan parquet t`.
pub(crate) fn name(text: &str) -> String {
    let (first, _) = cut_at(text, &[' ', '(', '[', ',']);
    if first == "Execute" {
        return text.split_whitespace().take(2).collect::<Vec<_>>().join(" ").trim_end_matches(',').to_owned();
    }
    if text.contains(" JDBCRelation(") {
        let end = closing(text, text.find('(').unwrap_or(0));
        let width = text[end..].find(']').filter(|_| text[end..].starts_with(" [numPartitions="));
        return text[..end + width.map_or(0, |w| w + 1)].to_owned();
    }
    let kind = kind(first);
    if kind == Some(Kind::Scan) {
        let name = cut_at(text, &['[']).0.trim();
        let name = name.split(" ...").next().unwrap_or(name);
        return name.strip_prefix("File").unwrap_or(name).to_owned();
    }
    let skew = text[first.len()..].starts_with("(skew=true)");
    let numbered = kind == Some(Kind::Codegen) && text[first.len()..].starts_with(" (");
    match (skew, numbered) {
        (true, _) => format!("{first}(skew=true)"),
        (_, true) => text[..closing(text, first.len() + 1)].to_owned(),
        _ => first.to_owned(),
    }
}

/// The name in a line of an outline: all of it, but for joins, which have their type there.
pub(crate) fn outline_name(text: &str) -> String {
    let text = text.find(", Statistics(").map_or(text, |at| &text[..at]);
    let joins = [Kind::SortMergeJoin, Kind::ShuffledHashJoin, Kind::BroadcastHashJoin, Kind::NestedLoopJoin];
    match kind(text) {
        Some(kind) if joins.contains(&kind) || kind == Kind::CartesianProduct => name(text),
        _ => text.trim().to_owned(),
    }
}

/// Takes the operator number of an outline off its line: `Scan parquet  (1)`,
/// `ShuffleQueryStage (5), Statistics(…)`.
pub(crate) fn number(text: &str) -> (Option<u32>, String) {
    let head = text.find("), Statistics(").map_or(text, |at| &text[..=at]);
    let found = head.rfind(" (").and_then(|at| {
        let digits = head[at + 2..].strip_suffix(')')?;
        let codegen = at > 0 && kind(&head[..at]) == Some(Kind::Codegen) && head.starts_with("WholeStage");
        Some((at, digits.parse::<u32>().ok().filter(|_| !codegen)?))
    });
    match found {
        Some((at, number)) => (Some(number), format!("{}{}", text[..at].trim_end(), &text[head.len()..])),
        None => (None, text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_log() {
        for (text, expected) in [
            ("FileScan parquet lake.orders[a#1] Batched: true", "Scan parquet lake.orders"),
            ("FileScan parquet [a#1] Batched: true", "Scan parquet"),
            ("BatchScan lake.orders[a#1] lake.orders", "BatchScan lake.orders"),
            ("Scan JDBCRelation(TBLS) [numPartitions=1] [A#1]", "Scan JDBCRelation(TBLS) [numPartitions=1]"),
            ("Scan ExistingRDD[id#0L]", "Scan ExistingRDD"),
            ("Scan hive default.t [a#1], HiveTableRelation [x]", "Scan hive default.t"),
            ("HashAggregate(keys=[a#1], functions=[])", "HashAggregate"),
            ("SortMergeJoin(skew=true) [a#1], [b#2], Inner", "SortMergeJoin(skew=true)"),
            ("Execute InsertIntoHadoopFsRelationCommand file:/x, false", "Execute InsertIntoHadoopFsRelationCommand"),
            ("WholeStageCodegen (3)", "WholeStageCodegen (3)"),
            ("Filter (a#1 > 3)", "Filter"),
            ("AdaptiveSparkPlan(isFinalPlan=true)", "AdaptiveSparkPlan"),
        ] {
            assert_eq!(name(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_of_an_outline() {
        assert_eq!(number("Scan parquet  (1)"), (Some(1), "Scan parquet".to_owned()));
        let stage = "ShuffleQueryStage (5), Statistics(sizeInBytes=1.0 B)";
        assert_eq!(number(stage), (Some(5), "ShuffleQueryStage, Statistics(sizeInBytes=1.0 B)".to_owned()));
        assert_eq!(number("Filter (a#1 > 3)"), (None, "Filter (a#1 > 3)".to_owned()));
    }

    #[test]
    fn a_tree_whose_spaces_were_lost_is_a_chain() {
        let (nodes, taken) = tree(&["Sort [a#1]", "+- Exchange x", "+- Filter y", "+- Range"]);
        assert_eq!(taken, 4);
        assert_eq!(nodes.iter().map(|n| n.parent).collect::<Vec<_>>(), [None, Some(0), Some(1), Some(2)]);
    }
}
