//! FILTER_NOT_PUSHED: a condition is applied after every row was read (section 4.4 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::plans::{self, BlockedBy, NotPushed};
use crate::queries::{self, Query};
use crate::{plan_text, words};
use model::{Operator, RemedyKind, Scan, Severity};

/// Input from which it matters.
const BYTES: i64 = 100 << 20;
/// Or this many files.
const FILES: i64 = 100;
/// Share of the run that the stage must take.
const SHARE: f64 = 0.05;
/// Characters of a condition that a title quotes.
const QUOTED: usize = 100;

/// Looks at every filter that stands directly above a scan.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let (mut filters, mut found) = (0, Vec::new());
    for query in queries::of_users(cx) {
        for (at, scan, filter) in filtered_scans(&query) {
            filters += 1;
            let left = left(&query, scan, filter);
            if !left.is_empty() {
                found.push((draft(cx, &query, at, scan, &left), key(scan, &left)));
            }
        }
    }
    if filters > 0 && found.is_empty() {
        let filters = words::count(filters, "filter");
        out.fine("filter pushdown", format!("{filters} above scans, each is pushed as far as its source can"));
    }
    for draft in merged(found) {
        out.push(draft);
    }
}

/// What makes filters alike: the source, and what is not pushed whatever its numbers.
fn key(scan: &Scan, left: &[NotPushed]) -> String {
    let parts: Vec<String> = left.iter().map(|p| without_numbers(&p.predicate)).collect();
    format!("{} {}", queries::sql_source(scan), parts.join(" AND "))
}

/// `(order_id % 4) = 2` as `(order_id % ?) = ?`; digits inside names stay.
fn without_numbers(predicate: &str) -> String {
    let mut out = String::with_capacity(predicate.len());
    let mut before = ' ';
    for c in predicate.chars() {
        let in_name = before.is_alphanumeric() || before == '_';
        match c {
            '0'..='9' if before == '?' => continue,
            '0'..='9' if !in_name => out.push('?'),
            _ => out.push(c),
        }
        before = if out.ends_with('?') { '?' } else { c };
    }
    out
}

/// One finding for filters that are alike: that of the place where it matters most, with the others named.
fn merged(found: Vec<(Draft, String)>) -> Vec<Draft> {
    let mut groups: Vec<(Draft, String, Vec<i64>)> = Vec::new();
    for (draft, key) in found {
        let sqls = || draft.finding.scope.sql.into_iter();
        match groups.iter_mut().find(|g| g.1 == key) {
            Some(group) => {
                group.2.extend(sqls());
                if draft.at_least > group.0.at_least {
                    group.0 = draft;
                }
            }
            None => groups.push((draft.clone(), key, sqls().collect())),
        }
    }
    groups.into_iter().map(|(draft, _, sqls)| in_queries(draft, sqls)).collect()
}

fn in_queries(mut draft: Draft, mut sqls: Vec<i64>) -> Draft {
    let places = sqls.len();
    if places < 2 {
        return draft;
    }
    sqls.dedup();
    draft.finding.title =
        format!("{}; {} have such a filter", draft.finding.title, words::counted(places as u64, "scan"));
    draft.finding.scope.sqls = sqls;
    draft.evidence("scans_with_such_a_filter", places, "scans")
}

/// Filters above scans: scan, its position, and the filter's position.
fn filtered_scans<'a>(query: &Query<'a>) -> Vec<(usize, &'a Scan, usize)> {
    let scans = query.nodes().filter_map(|(at, node)| {
        let Operator::Scan(scan) = &node.op else { return None };
        let filter =
            query.chain_above(at).into_iter().find(|&n| !matches!(query.plan.nodes[n].op, Operator::Project { .. }))?;
        matches!(query.plan.nodes[filter].op, Operator::Filter { .. }).then_some((at, scan, filter))
    });
    scans.collect()
}

/// Parts that stayed in the filter and need not have. Where Spark cut the text nothing is known.
fn left(query: &Query<'_>, scan: &Scan, filter: usize) -> Vec<NotPushed> {
    let own = |part: &NotPushed| {
        let column = part.column.as_ref();
        let of_scan = column.is_some_and(|c| scan.columns.is_empty() || scan.columns.contains(c));
        of_scan
            && part.blocked_by != BlockedBy::Cut
            && !queries::is_not_null_only(&part.predicate)
            && !queries::is_runtime_filter(&part.predicate)
    };
    let parts = plans::unpushed(query.plan, filter).map(|u| u.not_pushed).unwrap_or_default();
    if scan.cut { Vec::new() } else { parts.into_iter().filter(own).collect() }
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize, scan: &Scan, left: &[NotPushed]) -> Draft {
    let first = &left[0];
    let column = first.column.clone().unwrap_or_default();
    let files = query.files(cx, at);
    let title = format!(
        "the filter {} is applied after reading: {}",
        words::clipped(&first.predicate, QUOTED),
        blocked(first.blocked_by)
    );
    let pushed = scan.pushed.clone().unwrap_or_default();
    let only_null = pushed.iter().all(|p| p.starts_with("IsNotNull(") || queries::is_not_null_only(p));
    let draft = Draft::new("FILTER_NOT_PUSHED", title)
        .severity(severity(cx, query, at, files))
        .evidence("blocked_by", blocked(first.blocked_by), "")
        .seen_at(query.location())
        .evidence("column", column.clone(), "")
        .evidence("pushed", pushed.clone(), "")
        .evidence("not_pushed", left.iter().map(|p| p.predicate.clone()).collect::<Vec<_>>(), "");
    let draft = match files {
        Some((files, bytes)) => draft.evidence("files", files, "files").evidence("bytes", bytes, "bytes"),
        None => draft,
    };
    let draft = rows(cx, query, at, draft);
    let draft = match (only_null, pushed.is_empty()) {
        (true, false) => {
            draft.not("a filter that was pushed", format!("{} alone skips no rows that matter", pushed.join(", ")))
        }
        _ => draft,
    };
    let draft = query.place_node(cx, at, draft);
    with_remedies(draft, scan, first, &column, only_null)
}

/// In words; arithmetic is called an expression, which a reader finds sooner than a function.
fn blocked(blocked_by: BlockedBy) -> &'static str {
    match blocked_by {
        BlockedBy::Function => "an expression around the column",
        other => other.words(),
    }
}

/// Rows read and rows kept, where the run tells both.
fn rows(cx: &Context<'_>, query: &Query<'_>, at: usize, draft: Draft) -> Draft {
    let kept = query.plan.consumer(at).and_then(|f| query.rows(cx, f));
    match (query.rows(cx, at), kept) {
        (Some(read), Some(kept)) if read > 0 => {
            draft.evidence("rows_read", read, "rows").evidence("rows_kept", kept, "rows")
        }
        _ => draft,
    }
}

/// Little input, or a stage that takes little time, is a remark; a pasted plan has neither to go by.
fn severity(cx: &Context<'_>, query: &Query<'_>, at: usize, files: Option<(i64, i64)>) -> Severity {
    let share = query.stage_of(cx, at).map_or(0.0, |f| f.wall_ms as f64 / cx.base_wall_ms().max(1) as f64);
    match files {
        None if query.is_lint() => Severity::Medium,
        _ if share < SHARE => Severity::Info,
        Some((_, bytes)) if bytes >= 100 * BYTES => Severity::Medium,
        Some((files, bytes)) if bytes >= BYTES || files >= FILES => Severity::Low,
        _ => Severity::Info,
    }
}

fn with_remedies(draft: Draft, scan: &Scan, part: &NotPushed, column: &str, only_null: bool) -> Draft {
    let kind = scan_type(scan, column);
    let draft = match part.blocked_by {
        BlockedBy::Cast | BlockedBy::TypeMismatch => cast_remedy(draft, &part.predicate, column, kind.as_deref()),
        BlockedBy::Function => function_remedy(draft, &part.predicate, column),
        BlockedBy::Udf => draft.remedy(
            RemedyKind::Code,
            format!("Write the condition on {column} with built-in functions, or add a plain one beside it that keeps what the function may keep"),
        ),
        BlockedBy::Or => draft.remedy(
            RemedyKind::Sql,
            "Make every branch of the OR a plain comparison of a column, or read the branches apart and unite them",
        ),
        BlockedBy::Like => draft.remedy(
            RemedyKind::Sql,
            format!("Begin the pattern with what is known: only {column} LIKE 'abc%' stands for a range of values"),
        ),
        BlockedBy::Source | BlockedBy::Nested => draft.remedy(
            RemedyKind::Layout,
            format!("Keep this data as Parquet or a table: {} cannot skip rows by it", source_name(scan)),
        ),
        _ => draft.remedy(RemedyKind::Sql, format!("Add a plain comparison of {column} beside it")),
    };
    let draft = match only_null {
        true => draft.useless("another IS NOT NULL", "Spark adds it by itself; it skips no rows that are there"),
        false => draft,
    };
    draft
        .useless("more executors", "every row is read and thrown away all the same")
        .confirm(format!("{column} in PushedFilters, and the rows that the scan gives out"))
}

/// A cast moves from the column to the literal.
fn cast_remedy(draft: Draft, predicate: &str, column: &str, kind: Option<&str>) -> Draft {
    match literal_form(predicate, column, kind) {
        Some(form) => draft
            .remedy(
                RemedyKind::Sql,
                format!("Leave the column as it is and compare with {}: {form}", literal_words(kind)),
            )
            .snippet(format!("WHERE {form}"))
            .computed(format!("{column} is {} in the read schema", kind.unwrap_or("of another type"))),
        None => draft.remedy(
            RemedyKind::Sql,
            format!("Cast the literal, not the column {column}: write it in the column's own type"),
        ),
    }
}

fn source_name(scan: &Scan) -> &str {
    if scan.format.is_empty() { "the source" } else { &scan.format }
}

/// Type of a column, from `ReadSchema: struct<code:string,created_at:timestamp>`.
fn scan_type(scan: &Scan, column: &str) -> Option<String> {
    scan.schema.iter().find(|(name, _)| name == column).map(|(_, kind)| kind.clone())
}

fn literal_words(kind: Option<&str>) -> &'static str {
    match kind {
        Some("timestamp" | "timestamp_ntz") => "a timestamp literal",
        Some("date") => "a date literal",
        _ => "a literal of its own type",
    }
}

/// `cast(created_at as string) >= 2025-01-01` as `created_at >= TIMESTAMP '2025-01-01'`.
fn literal_form(predicate: &str, column: &str, kind: Option<&str>) -> Option<String> {
    const TURNED: [(&str, &str); 6] = [("<=>", "<=>"), (">=", "<="), ("<=", ">="), (">", "<"), ("<", ">"), ("=", "=")];
    let (operator, turned) = TURNED.into_iter().find(|(o, _)| predicate.contains(&format!(" {o} ")))?;
    let (left, right) = predicate.split_once(&format!(" {operator} "))?;
    let (operator, value) = if left.contains("cast(") { (operator, right) } else { (turned, left) };
    if value.contains('(') || value.contains(column) {
        return None;
    }
    let literal = match kind? {
        "timestamp" | "timestamp_ntz" => format!("TIMESTAMP '{value}'"),
        "date" => format!("DATE '{value}'"),
        "string" => format!("'{value}'"),
        _ => value.to_owned(),
    };
    Some(format!("{column} {operator} {literal}"))
}

/// Functions that never turn the order of their argument round: a comparison of the result is a
/// range of the argument. `date_format` and `from_unixtime` only with a format that begins with
/// the year, as text then sorts as time does.
const IN_ORDER: [&str; 3] = ["year", "date_trunc", "trunc"];
const BY_FORMAT: [&str; 2] = ["date_format", "from_unixtime"];

/// How a column is freed from what is around it, as far as that is possible at all.
fn function_remedy(draft: Draft, predicate: &str, column: &str) -> Draft {
    let expression = side_of(predicate, column);
    let call = call_of(expression);
    let inverted = match call.as_str() {
        "" => is_shift(expression),
        name => IN_ORDER.contains(&name) || BY_FORMAT.contains(&name) && expression.contains(" yyyy"),
    };
    match (inverted, call.as_str()) {
        (true, "") => draft.remedy(
            RemedyKind::Sql,
            format!("Compare {column} itself: move what is added or taken away to the other side"),
        ),
        (true, name) => draft
            .remedy(RemedyKind::Sql, format!("Write {name}({column}) as a range of {column} itself"))
            .snippet(format!("WHERE {column} >= <from> AND {column} < <to>")),
        (false, _) => draft.remedy(
            RemedyKind::Layout,
            format!("No range of {column} stands for {expression}: where it is filtered often, store its result in a column of its own and filter that"),
        ),
    }
}

/// The side of a comparison that the column stands on.
fn side_of<'p>(predicate: &'p str, column: &str) -> &'p str {
    const SIGNS: [&str; 8] = [" <=> ", " >= ", " <= ", " = ", " > ", " < ", " IN ", " INSET "];
    let sides = SIGNS.into_iter().find_map(|sign| predicate.split_once(sign));
    let side = match sides {
        Some((left, right)) => {
            if left.contains(column) {
                left
            } else {
                right
            }
        }
        None => predicate,
    };
    plan_text::unwrapped(side)
}

/// The outermost function of an expression; empty for arithmetic.
fn call_of(expression: &str) -> String {
    let name = expression.split('(').next().unwrap_or_default();
    let is_name = !name.is_empty() && name.len() < expression.len() && !name.contains(' ');
    if is_name { name.to_lowercase() } else { String::new() }
}

/// `order_id + 5`, `amount - 10`: only additions of constants.
fn is_shift(expression: &str) -> bool {
    let parts: Vec<&str> = expression.split([' ', '(', ')']).filter(|p| !p.is_empty()).collect();
    let names = parts.iter().filter(|p| p.parse::<f64>().is_err() && !matches!(**p, "+" | "-")).count();
    let column_first = parts.first().is_some_and(|p| p.parse::<f64>().is_err());
    names == 1 && parts.len() >= 3 && (column_first || !parts.contains(&"-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_the_literal_in_the_columns_type() {
        let form = |c: &str, k| literal_form(c, "created_at", k);
        let condition = "cast(created_at as string) >= 2025-01-01";
        assert_eq!(form(condition, Some("timestamp")).as_deref(), Some("created_at >= TIMESTAMP '2025-01-01'"));
        assert_eq!(form(condition, Some("date")).as_deref(), Some("created_at >= DATE '2025-01-01'"));
        assert_eq!(form(condition, None), None);
        assert_eq!(form("7 < cast(created_at as int)", Some("string")).as_deref(), Some("created_at > '7'"));
    }

    #[test]
    fn filters_that_differ_in_numbers_are_alike() {
        assert_eq!(without_numbers("(order_id % 4) = 12"), "(order_id % ?) = ?");
        assert_eq!(without_numbers("upper(c2) = X"), "upper(c2) = X");
    }

    #[test]
    fn only_what_keeps_order_becomes_a_range() {
        for (predicate, column, says) in [
            ("(order_id % 4) = 0", "order_id", "No range of order_id stands for order_id % 4"),
            ("(order_id + 5) > 10", "order_id", "Compare order_id itself"),
            ("(5 - order_id) > 10", "order_id", "No range"),
            ("(amount * -1) > 10", "amount", "No range"),
            ("year(day) = 2025", "day", "Write year(day) as a range"),
            ("month(day) = 3", "day", "No range of day stands for month(day)"),
            ("date_format(day, yyyy-MM, Some(UTC)) = 2025-01", "day", "Write date_format(day) as a range"),
            ("date_format(day, MM, Some(UTC)) = 01", "day", "No range"),
            ("upper(code) = A", "code", "No range of code stands for upper(code)"),
        ] {
            let draft = function_remedy(Draft::new("FILTER_NOT_PUSHED", "x"), predicate, column);
            let text = &draft.finding.remedies[0].text;
            assert!(text.starts_with(says), "{predicate}: {text}");
        }
    }
}
