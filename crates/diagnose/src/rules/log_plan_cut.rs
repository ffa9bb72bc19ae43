//! LOG_PLAN_CUT: Spark cut the text of plans, so that what is absent proves nothing (section 4.9).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::{queries, words};
use model::{Operator, RemedyKind, Severity};

/// Counts plans in which a scan or the text is cut.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let all = queries::of_users(cx);
    let cut: Vec<_> = all
        .iter()
        .filter(|q| q.plan.cut || q.plan.nodes.iter().any(|n| matches!(&n.op, Operator::Scan(s) if s.cut)))
        .collect();
    if cut.is_empty() {
        return;
    }
    let are = if cut.len() == 1 { "is" } else { "are" };
    let title = format!(
        "{} of {} {are} cut: some rules on filters and columns could not look",
        cut.len(),
        words::count(all.len() as u64, "plan"),
    );
    let mut draft = Draft::new("LOG_PLAN_CUT", title)
        .severity(Severity::Info)
        .evidence("plans_cut", cut.len(), "plans")
        .evidence("plans", all.len(), "plans")
        .remedy(RemedyKind::Conf, "Let Spark write plans in full")
        .snippet("spark.sql.debug.maxToStringFields 1000\nspark.sql.maxMetadataStringLength 10000")
        .computed("the first for \"... N more fields\" (25 are shown), the second for what a scan says of its files and filters (100 characters)")
        .confirm("no \"...\" in the plan");
    draft.finding.scope.sqls = cut.iter().filter_map(|q| q.sql.map(|s| s.id)).collect();
    out.push(draft);
}
