//! `explain()` text: sections, trees, details, subqueries.

use super::build::{Raw, build};
use super::clean::clean;
use super::details::{Blocks, blocks, title};
use super::kind::{Kind, kind};
use super::list::is_cut;
use super::operator::operator;
use super::tree::{Part, TreeLine, drawn, name, number, outline_name, tree};
use model::{Operator, Plan, Statistics};

/// Reads every physical plan in a text. Where an adaptive plan shows how it ran and how it was
/// planned at first, the first comes before the second.
///
/// Nothing fails: a text without a plan gives an empty list.
#[must_use]
pub fn parse_text(text: &str) -> Vec<Plan> {
    let text = clean(text);
    let lines: Vec<&str> = text.lines().collect();
    let mut plans = Vec::new();
    let mut query = Query::default();
    for section in sections(&lines) {
        if query.ends_before(section.title) {
            plans.append(&mut std::mem::take(&mut query).finish());
        }
        query.add(&section);
    }
    plans.append(&mut query.finish());
    plans
}

/// Reads a chain as people sketch it, result first:
/// `WriteFiles <- Exchange RoundRobinPartitioning(2), REPARTITION_BY_NUM <- Scan parquet`.
#[must_use]
pub fn parse_sketch(text: &str) -> Plan {
    let steps = text.split("<-").map(str::trim).filter(|step| !step.is_empty());
    let raw = steps.enumerate().map(|(at, step)| Raw { parent: at.checked_sub(1), ..one(step) });
    let mut plan = build(raw.collect());
    plan.title = "Sketch".to_owned();
    plan
}

/// What stands below a heading `== Title ==`; the part before the first one has no title.
struct Section<'t> {
    title: &'t str,
    lines: &'t [&'t str],
}

fn sections<'t>(lines: &'t [&'t str]) -> Vec<Section<'t>> {
    let mut found = Vec::new();
    let (mut title, mut begin) = ("", 0);
    for (at, line) in lines.iter().enumerate() {
        if let Some(next) = heading(line) {
            found.push(Section { title, lines: &lines[begin..at] });
            (title, begin) = (next, at + 1);
        }
    }
    found.push(Section { title, lines: &lines[begin..] });
    found
}

/// The title of `== Physical Plan ==`; adaptive headings inside a tree are drawn with `+- ` or
/// indented, and are none.
fn heading(line: &str) -> Option<&str> {
    let inner = line.strip_prefix("== ")?;
    inner.strip_suffix(" ==").or_else(|| inner.split_once(" == ").map(|(title, _)| title))
}

/// The sections that belong to one `explain`.
#[derive(Default)]
struct Query {
    sections: Vec<(String, String)>,
    logical: Option<Box<Plan>>,
    plans: Vec<Plan>,
}

impl Query {
    /// Whether a section with this title begins another query.
    fn ends_before(&self, title: &str) -> bool {
        let opens = is_physical(title) || title.ends_with("Logical Plan");
        opens && !self.plans.is_empty()
    }

    fn add(&mut self, section: &Section<'_>) {
        let body = section.lines.join("\n");
        match section.title {
            "" => self.plans.append(&mut fragments(section.lines)),
            title if is_physical(title) => self.plans.append(&mut physical(title, section.lines)),
            title => {
                if title == "Optimized Logical Plan" {
                    self.logical = logical(section.lines).map(Box::new);
                }
                self.sections.push((title.to_owned(), body.trim().to_owned()));
            }
        }
    }

    /// The plans of the query, each with what stood beside them. A query with logical plans only
    /// gives one plan without nodes.
    fn finish(mut self) -> Vec<Plan> {
        if self.plans.is_empty() && self.logical.is_some() {
            self.plans.push(Plan::default());
        }
        if let Some(first) = self.plans.first_mut() {
            first.sections = self.sections;
            first.logical = self.logical;
        }
        self.plans.iter_mut().for_each(sizes_from_logical);
        self.plans
    }
}

fn is_physical(title: &str) -> bool {
    let adaptive = ["Final Plan", "Current Plan", "Initial Plan"].contains(&title);
    title == "Physical Plan" || adaptive || title.starts_with("Subtree ")
}

fn logical(lines: &[&str]) -> Option<Plan> {
    let begin = lines.iter().position(|l| !l.trim().is_empty())?;
    let (lines, _) = tree(&lines[begin..]);
    let mut plan = build(raw(&lines, |_| true));
    plan.title = "Optimized Logical Plan".to_owned();
    Some(plan)
}

/// Plans in text without a heading: where a tree begins in the middle of something else.
fn fragments(lines: &[&str]) -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let taken = if begins_tree(&lines[at..]) { tree(&lines[at..]).1 } else { 0 };
        if taken == 0 {
            at += 1;
            continue;
        }
        let rest = &lines[at + taken..];
        let details = rest.iter().position(|l| begins_tree(std::slice::from_ref(l))).map_or(rest.len(), |n| n);
        plans.append(&mut physical("", &lines[at..at + taken + details]));
        at += taken + details;
    }
    if plans.is_empty() {
        plans.extend(details_only(lines));
    }
    plans
}

/// Whether a tree begins in the first line: drawn and known, or known with a drawn line below, or
/// known with arguments that no prose has.
fn begins_tree(lines: &[&str]) -> bool {
    let Some((_, connector, text)) = lines.first().and_then(|l| drawn(l)) else { return false };
    let text = text.trim_start_matches(['*', '!', ' ']);
    let text = text.split_once(") ").filter(|_| text.starts_with('(')).map_or(text, |(_, rest)| rest);
    if kind(&name(text)).is_none() || title(lines[0]).is_some() {
        return false;
    }
    let drawn_below = lines.get(1).and_then(|l| drawn(l)).is_some_and(|(_, connector, _)| connector);
    connector || drawn_below || is_unmistakable(text)
}

/// Arguments of operators that do not occur in sentences: `Exchange hashpartitioning(order_id#7, 200)`.
fn is_unmistakable(text: &str) -> bool {
    const SIGNS: [&str; 6] =
        ["partitioning(", "SinglePartition", "Partitioning(", "PushedFilters:", "ReadSchema:", "(keys=["];
    SIGNS.iter().any(|sign| text.contains(sign)) || text.contains('#') && text.contains('[')
}

/// The physical plan of a section: how it ran, and how it was planned at first if both are there.
fn physical(title: &str, lines: &[&str]) -> Vec<Plan> {
    let Some(begin) = lines.iter().position(|l| !l.trim().is_empty()) else { return Vec::new() };
    let lines = &lines[begin..];
    let (main, taken) = tree(lines);
    if main.is_empty() {
        return Vec::new();
    }
    let rest = &lines[taken..];
    let text = PlanText { main, subqueries: subqueries(rest), blocks: blocks(rest) };
    let ran = text.main.iter().chain(text.subqueries.iter().flat_map(|s| &s.lines)).find_map(|l| match l.part {
        Some(Part::Ran(name)) => Some(name),
        _ => None,
    });
    let mut plans = vec![text.plan(ran.unwrap_or(title), false)];
    if ran.is_some() && text.main.iter().any(|l| l.part == Some(Part::Initial)) {
        plans.push(text.plan("Initial Plan", true));
    }
    plans
}

/// A physical plan as written.
struct PlanText<'t> {
    main: Vec<TreeLine<'t>>,
    subqueries: Vec<SubqueryText<'t>>,
    blocks: Blocks,
}

/// `Subquery:1 Hosting operator id = 3 Hosting Expression = …` and the outline below it.
struct SubqueryText<'t> {
    host: Option<u32>,
    expression: &'t str,
    lines: Vec<TreeLine<'t>>,
}

impl SubqueryText<'_> {
    /// The node that asks for it. Spark gives the operator number in the plan that ran; in the
    /// initial plan it is the node that names the same expression.
    fn host_among(&self, nodes: &[Raw]) -> Option<usize> {
        let numbered = nodes.iter().position(|n| n.number.is_some() && n.number == self.host);
        numbered.or_else(|| {
            let hash = self.expression.find("subquery#").or_else(|| self.expression.find("dynamicpruning#"))?;
            let key = self.expression[hash..].split([',', ' ', ')']).next()?;
            nodes.iter().position(|n| n.detail.contains(key))
        })
    }
}

fn subqueries<'t>(lines: &[&'t str]) -> Vec<SubqueryText<'t>> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((_, rest)) = line.split_once("Hosting operator id = ") else { continue };
        let Some((host, expression)) = rest.split_once(" Hosting Expression = ") else { continue };
        let (outline, _) = tree(&lines[at + 1..]);
        found.push(SubqueryText { host: host.trim().parse().ok(), expression, lines: outline });
    }
    found
}

impl PlanText<'_> {
    /// One of the plans that the text draws: as it ran, or the initial one.
    fn plan(&self, title: &str, initial: bool) -> Plan {
        let other = if initial { |p| matches!(p, Part::Ran(_)) } else { |p| p == Part::Initial };
        let mut nodes = self.nodes(&self.main, &other);
        for subquery in &self.subqueries {
            let host = subquery.host_among(&nodes);
            if host.is_some() {
                self.append(&mut nodes, subquery, host, &other);
            }
        }
        let mut plan = build(nodes);
        plan.title = if title.is_empty() { String::new() } else { title.to_owned() };
        if initial {
            plan.is_final = Some(false);
        }
        plan
    }

    /// Nodes of an outline without those of the other adaptive part.
    fn nodes(&self, lines: &[TreeLine<'_>], other: &dyn Fn(Part) -> bool) -> Vec<Raw> {
        // A part is left out only where its adaptive node has both.
        let both = |l: &TreeLine<'_>| lines.iter().any(|o| o.parent == l.parent && o.part.is_some_and(|p| !other(p)));
        let mut nodes = raw(lines, |line| !(line.part.is_some_and(other) && both(line)));
        for node in &mut nodes {
            if let Some(block) = node.number.and_then(|n| self.blocks.get(&n)) {
                block.fill(node);
            }
        }
        nodes
    }

    fn append(
        &self,
        nodes: &mut Vec<Raw>,
        subquery: &SubqueryText<'_>,
        host: Option<usize>,
        other: &dyn Fn(Part) -> bool,
    ) {
        let name = if subquery.expression.starts_with("ReusedSubquery") { "ReusedSubquery" } else { "Subquery" };
        let root = nodes.len();
        nodes.push(Raw {
            parent: host,
            name: name.to_owned(),
            detail: format!("{name} {}", subquery.expression),
            ..Raw::default()
        });
        for node in self.nodes(&subquery.lines, other) {
            let parent = node.parent.map_or(root, |p| p + root + 1);
            nodes.push(Raw { parent: Some(parent), ..node });
        }
    }
}

/// Lines to nodes; `keep` says which lines stay, what is below a dropped line goes with it.
fn raw(lines: &[TreeLine<'_>], keep: impl Fn(&TreeLine<'_>) -> bool) -> Vec<Raw> {
    let mut position: Vec<Option<usize>> = Vec::with_capacity(lines.len());
    let mut nodes = Vec::with_capacity(lines.len());
    for line in lines {
        let parent = line.parent.map(|p| position[p]);
        let kept = keep(line) && parent != Some(None);
        position.push(kept.then_some(nodes.len()));
        if kept {
            let node = one(&line.text);
            nodes.push(Raw { parent: parent.flatten(), codegen: line.codegen, ..node });
        }
    }
    nodes
}

/// A node from its text without drawing.
fn one(text: &str) -> Raw {
    let (number, text) = number(text);
    Raw {
        name: if number.is_some() { outline_name(&text) } else { name(&text) },
        statistics: statistics(&text),
        number,
        detail: text,
        ..Raw::default()
    }
}

/// Details without an outline. Spark numbers inputs before what takes them, so the tree follows
/// from how many inputs each operator has; a union takes all that is there.
fn details_only(lines: &[&str]) -> Option<Plan> {
    let blocks = blocks(lines);
    let mut nodes: Vec<Raw> = Vec::new();
    let mut parents: Vec<Option<usize>> = Vec::new();
    let mut stack: Vec<usize> = Vec::new();
    for (number, block) in &blocks {
        let mut node = Raw { number: Some(*number), ..one(&block.title) };
        block.fill(&mut node);
        let wanted = arity(&operator(&node.name, &node.detail)).unwrap_or(stack.len());
        for input in stack.split_off(stack.len().saturating_sub(wanted)) {
            parents[input] = Some(nodes.len());
        }
        stack.push(nodes.len());
        nodes.push(node);
        parents.push(None);
    }
    let known = nodes.iter().filter(|n| kind(&n.name).is_some()).count();
    (known * 2 > nodes.len()).then(|| build(in_pre_order(nodes, &parents)))
}

/// Inputs of an operator; `None` for any number.
fn arity(op: &Operator) -> Option<usize> {
    match op {
        Operator::Join(_) => Some(2),
        Operator::Union => None,
        Operator::Scan(_) | Operator::Local | Operator::Reused | Operator::CacheScan => Some(0),
        _ => Some(1),
    }
}

/// Turns post-order into pre-order: the last root first, inputs in their order.
fn in_pre_order(nodes: Vec<Raw>, parents: &[Option<usize>]) -> Vec<Raw> {
    let mut children = vec![Vec::new(); nodes.len()];
    for (at, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent {
            children[*parent].push(at);
        }
    }
    let mut slots: Vec<Option<Raw>> = nodes.into_iter().map(Some).collect();
    let mut open: Vec<(usize, Option<usize>)> = Vec::new();
    open.extend((0..slots.len()).filter(|&at| parents[at].is_none()).map(|at| (at, None)));
    let mut ordered = Vec::with_capacity(slots.len());
    while let Some((at, parent)) = open.pop() {
        open.extend(children[at].iter().rev().map(|&child| (child, Some(ordered.len()))));
        if let Some(node) = slots[at].take() {
            ordered.push(Raw { parent, ..node });
        }
    }
    ordered
}

/// Estimates of `explain cost` stand on the logical plan: gives each scan those of its relation,
/// known by the id of its first column.
fn sizes_from_logical(plan: &mut Plan) {
    let Some(logical) = plan.logical.take() else { return };
    for node in plan.nodes.iter_mut().filter(|n| matches!(n.op, Operator::Scan(_))) {
        let Some(column) = first_column(&node.detail) else { continue };
        let relation = logical
            .nodes
            .iter()
            .find(|l| kind(&l.name) == Some(Kind::Scan) && l.statistics.is_some() && l.detail.contains(column));
        node.statistics = node.statistics.or(relation.and_then(|r| r.statistics));
    }
    plan.logical = Some(logical);
}

/// `order_id#7L` of `FileScan parquet [order_id#7L,amount#8] …`: unique to one reading of a table.
pub(crate) fn first_column(detail: &str) -> Option<&str> {
    let mut lists = detail.match_indices('[').map(|(at, _)| &detail[at + 1..]);
    lists.find_map(|list| {
        let column = &list[..list.find([',', ']'])?];
        let (_, id) = column.split_once('#')?;
        (id.starts_with(|c: char| c.is_ascii_digit()) && !is_cut(column)).then(|| column.trim())
    })
}

/// `Statistics(sizeInBytes=160.2 MiB, rowCount=1.50E+6)` in a line.
pub(crate) fn statistics(line: &str) -> Option<Statistics> {
    let text = &line[line.find("Statistics(")? + "Statistics(".len()..];
    let text = &text[..text.find(')').unwrap_or(text.len())];
    let value = |key: &str| text.split(',').find_map(|part| part.trim().strip_prefix(key));
    let size_bytes = size_bytes(value("sizeInBytes=")?)?;
    Some(Statistics { size_bytes, rows: value("rowCount=").and_then(|n| n.parse().ok()) })
}

/// `160.2 MiB`, `8.0 EiB`, `2.4 KB` (Spark 2), in bytes; all binary, as Spark counts them.
fn size_bytes(text: &str) -> Option<f64> {
    let (number, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), "B"));
    let power = "BKMGTPE".find(unit.chars().next()?)?;
    Some(number.parse::<f64>().ok()? * 1024_f64.powi(i32::try_from(power).ok()?))
}
