//! LONG_FILTER: a condition so long that planning and evaluating it costs (section 4.4).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::plan_text::{columns, disjuncts};
use crate::queries;
use model::{Count, Operator, RemedyKind, Severity};

/// Characters from which a condition is long.
const LONG: usize = 1_000;

/// Looks at every filter.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for query in queries::of_users(cx) {
        let longest = query
            .nodes()
            .filter_map(|(at, n)| match &n.op {
                Operator::Filter { condition } => Some((at, condition.as_str())),
                _ => None,
            })
            .max_by_key(|(_, c)| c.len())
            .filter(|(_, c)| c.len() > LONG);
        let Some((at, condition)) = longest else { continue };
        let names = columns(condition);
        let parts = disjuncts(condition).len().max(condition.matches(',').count());
        let title = format!("a filter of {} characters on {}", Count(condition.len() as u64), short(&names));
        let draft = Draft::new("LONG_FILTER", title)
            .severity(Severity::Low)
            .evidence("condition_characters", condition.len(), "characters")
            .over(LONG as f64)
            .seen_at(query.location())
            .evidence("parts", parts, "parts")
            .evidence("columns", names.clone(), "")
            .remedy(
                RemedyKind::Code,
                "Put the values in a table and join with it: a broadcast join looks them up in a hash table",
            )
            .snippet(format!("… JOIN wanted USING ({})", names.first().map_or("<column>", String::as_str)))
            .confirm("length of the condition in the plan, and time before the first job");
        out.push(query.place_node(cx, at, draft));
    }
}

fn short(names: &[String]) -> String {
    match names {
        [] => "no column".to_owned(),
        [a] => a.clone(),
        [a, b] => format!("{a} and {b}"),
        [a, rest @ ..] => format!("{a} and {} other columns", rest.len()),
    }
}
