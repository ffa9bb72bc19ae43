//! AQE_CHANGED: what adaptive execution did, with its numbers (section 4.4 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use model::{Join, JoinAlgorithm, Operator, Plan, Severity};

/// Looks at every execution with an adaptive plan.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let queries = queries::of_users(cx);
    for query in queries.iter().filter(|q| q.sql.is_some_and(|s| s.last_plan.is_some())) {
        let changes = Changes::of(cx, query);
        if !changes.said.is_empty() {
            out.push(draft(cx, query, changes));
        }
    }
}

#[derive(Default)]
struct Changes {
    said: Vec<String>,
    numbers: Vec<(&'static str, i64)>,
    /// A node that reads a changed shuffle: places the finding at its stage.
    read: Option<usize>,
}

impl Changes {
    fn of(cx: &Context<'_>, query: &Query<'_>) -> Self {
        let mut changes = Self::default();
        changes.shuffle_reads(cx, query);
        if let Some(first) = query.sql.map(|s| &s.first_plan) {
            changes.joins(first, query.plan);
            changes.empty(first, query.plan);
        }
        changes
    }

    fn shuffle_reads(&mut self, cx: &Context<'_>, query: &Query<'_>) {
        let (mut skewed, mut splits, mut local) = (0, 0, 0);
        let mut merges: Vec<[i64; 3]> = Vec::new();
        for (at, node) in query.nodes() {
            let Operator::ShuffleRead { coalesced, skewed: split, local: is_local } = node.op else { continue };
            let metric = |name| query.metric(cx, at, name).unwrap_or(0);
            if coalesced {
                let merge = [
                    planned(query.plan, at).unwrap_or(0),
                    metric("number of partitions"),
                    metric("number of coalesced partitions"),
                ];
                // Both sides of a join are merged alike.
                if merge[0] > merge[1] && merge[1] > 0 && !merges.contains(&merge) {
                    merges.push(merge);
                }
                self.read = self.read.or(Some(at));
            }
            if split {
                skewed += metric("number of skewed partitions");
                splits += metric("number of skewed partition splits");
                self.read = Some(at);
            }
            local += i64::from(is_local);
        }
        if skewed > 0 {
            self.said
                .push(format!("split {skewed} skewed partition{} into {splits}", if skewed == 1 { "" } else { "s" }));
            self.numbers
                .extend([("number_of_skewed_partitions", skewed), ("number_of_skewed_partition_splits", splits)]);
        }
        for [from, to, merged] in merges {
            self.said.push(format!("merged {from} shuffle partitions into {to}"));
            self.numbers.extend([
                ("partitions_planned", from),
                ("number_of_partitions", to),
                ("number_of_coalesced_partitions", merged),
            ]);
        }
        if local > 0 {
            self.said.push(format!("read {local} shuffle{} locally", if local == 1 { "" } else { "s" }));
            self.numbers.push(("local_reads", local));
        }
    }

    /// Joins whose algorithm is another one now; a join is known by its keys.
    fn joins(&mut self, first: &Plan, last: &Plan) {
        let before = joins(first);
        let mut turned = 0;
        for (join, from) in joins(last).into_iter().filter_map(|j| {
            let from = before
                .iter()
                .find(|b| b.left_keys == j.left_keys && b.right_keys == j.right_keys && b.kind == j.kind)?;
            (from.algorithm != j.algorithm).then_some((j, *from))
        }) {
            turned += 1;
            let keys = join.left_keys.join(", ");
            self.said.push(format!(
                "turned the {} join on {keys} into a {} join",
                words_of(from.algorithm),
                words_of(join.algorithm)
            ));
        }
        if turned > 0 {
            self.numbers.push(("joins_turned", turned));
        }
    }

    /// Inputs that turned out empty: operators vanish and a local relation without rows appears.
    fn empty(&mut self, first: &Plan, last: &Plan) {
        let count = |p: &Plan| {
            p.nodes
                .iter()
                .filter(|n| n.name.contains("EmptyRelation") || n.detail.starts_with("LocalTableScan <empty>"))
                .count()
        };
        let appeared = count(last).saturating_sub(count(first));
        if appeared > 0 {
            self.said
                .push(format!("replaced {appeared} input{} that had no rows", if appeared == 1 { "" } else { "s" }));
            self.numbers.push(("empty_inputs", appeared as i64));
        }
    }
}

/// The operator that a changed shuffle is read for: past the sorts below a join.
fn reader(plan: &Plan, read: usize) -> usize {
    let mut at = read;
    while let Some(up) = plan.consumer(at) {
        at = up;
        if !matches!(plan.nodes[at].op, Operator::Sort { .. } | Operator::Project { .. }) {
            break;
        }
    }
    at
}

/// Partitions as planned of the exchange below a shuffle read.
fn planned(plan: &Plan, at: usize) -> Option<i64> {
    plan.below(at).into_iter().find_map(|n| match &plan.nodes[n].op {
        Operator::Exchange(e) => e.partitions.map(|n| n as i64),
        _ => None,
    })
}

fn joins(plan: &Plan) -> Vec<&Join> {
    plan.nodes.iter().filter_map(|n| if let Operator::Join(j) = &n.op { Some(j) } else { None }).collect()
}

fn words_of(algorithm: JoinAlgorithm) -> &'static str {
    match algorithm {
        JoinAlgorithm::SortMerge => "sort-merge",
        JoinAlgorithm::ShuffledHash => "shuffled hash",
        JoinAlgorithm::BroadcastHash => "broadcast hash",
        JoinAlgorithm::NestedLoop => "nested loop",
        JoinAlgorithm::Cartesian => "cartesian",
    }
}

fn draft(cx: &Context<'_>, query: &Query<'_>, changes: Changes) -> Draft {
    let draft =
        Draft::new("AQE_CHANGED", format!("adaptive execution {}", changes.said.join("; "))).severity(Severity::Info);
    let draft = match changes.read.map(|at| reader(query.plan, at)) {
        Some(reader) => query.place_node(cx, reader, draft),
        None => query.place(cx, draft),
    };
    let location = query.location();
    changes.numbers.into_iter().fold(draft, |d, (name, n)| d.evidence(name, n, "partitions").seen_at(location.clone()))
}
