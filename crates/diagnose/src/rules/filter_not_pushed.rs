//! FILTER_NOT_PUSHED: a condition is applied after every row was read (section 4.4 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::plan_text::{columns, conjuncts, disjuncts, unwrapped, without_ids};
use crate::queries::{self, Query};
use model::{Operator, RemedyKind, Scan, Severity};

/// Input from which it matters.
const BYTES: i64 = 100 << 20;
/// Or this many files.
const FILES: i64 = 100;
/// Share of the run that the stage must take.
const SHARE: f64 = 0.05;

/// Looks at every filter that stands directly above a scan.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let (mut filters, mut found) = (0, 0);
    for query in queries::of_users(cx) {
        for (at, scan, condition) in filtered_scans(&query) {
            filters += 1;
            if let Some(left) = Left::of(scan, condition) {
                found += 1;
                out.push(draft(cx, &query, at, scan, &left));
            }
        }
    }
    if filters > 0 && found == 0 {
        out.fine("filter pushdown", format!("{filters} filters above scans, each is pushed as far as its source can"));
    }
}

/// Scans with the condition of the filter directly above them.
fn filtered_scans<'a>(query: &Query<'a>) -> Vec<(usize, &'a Scan, &'a str)> {
    let scans = query.nodes().filter_map(|(at, node)| {
        let Operator::Scan(scan) = &node.op else { return None };
        let above = query.plan.consumer(at)?;
        match &query.plan.nodes[above].op {
            Operator::Filter { condition } => Some((at, scan, condition.as_str())),
            _ => None,
        }
    });
    scans.collect()
}

/// What stayed in the filter.
struct Left {
    conjuncts: Vec<(String, Cause)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Udf,
    Cast,
    Function,
    Or,
    Random,
    Source,
    Other,
}

impl Cause {
    fn words(self) -> &'static str {
        match self {
            Self::Udf => "a user function",
            Self::Cast => "cast on the column",
            Self::Function => "an expression around the column",
            Self::Or => "OR with a part that cannot be pushed",
            Self::Random => "an expression that differs from row to row",
            Self::Source => "the source takes no filters",
            Self::Other => "an expression that the source does not know",
        }
    }
}

impl Left {
    /// `None` when everything was pushed, or when Spark cut the lists, so that nothing can be told.
    fn of(scan: &Scan, condition: &str) -> Option<Self> {
        let reads_source =
            matches!(scan.format.as_str(), "rdd" | "") && scan.location.is_none() && scan.table.is_none();
        if scan.cut || reads_source || condition.contains("...") {
            return None;
        }
        let conjuncts: Vec<(String, Cause)> = conjuncts(condition)
            .into_iter()
            .filter(|c| {
                !queries::is_not_null_only(c)
                    && !queries::is_runtime_filter(c)
                    && speaks_of(scan, c)
                    && !is_pushed(scan, c)
            })
            .map(|c| (c.to_owned(), cause(scan, c)))
            .collect();
        (!conjuncts.is_empty()).then_some(Self { conjuncts })
    }
}

/// Whether a conjunct is about columns of the scan (and not about a constant or another source).
fn speaks_of(scan: &Scan, conjunct: &str) -> bool {
    let names = columns(conjunct);
    !names.is_empty() && names.iter().all(|n| scan.columns.is_empty() || scan.columns.iter().any(|c| c == n))
}

/// A plain comparison of a column is pushed when a filter on that column was; anything around the
/// column (a cast, a function) is not.
fn is_pushed(scan: &Scan, conjunct: &str) -> bool {
    let plain = disjuncts(conjunct).into_iter().flat_map(conjuncts).all(is_plain);
    plain && columns(conjunct).iter().all(|name| taken(scan, name))
}

/// Whether the source was given a filter on a column, other than that it is not NULL.
fn taken(scan: &Scan, column: &str) -> bool {
    let lists = scan.pushed.iter().flatten().chain(scan.partition_filters.iter().flatten());
    lists.into_iter().any(|f| !f.starts_with("IsNotNull(") && !queries::is_not_null_only(f) && mentions(f, column))
}

/// Whether a text has a name as a whole word.
fn mentions(text: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_none_or(|c| !word(c));
        let after = text[at + name.len()..].chars().next().is_none_or(|c| !word(c));
        before && after
    })
}

/// `(amount#12 > 50.0)`, `NOT (a#1 = x)`, `a#1 IN (1,2)`, `StartsWith(a#1, x)`, `flag#3`: what a
/// source can be asked for.
fn is_plain(part: &str) -> bool {
    let part = unwrapped(part);
    let part = unwrapped(part.strip_prefix("NOT ").unwrap_or(part));
    let call = |name: &str| part.strip_prefix(name).and_then(|rest| rest.strip_prefix('('));
    if let Some(inside) = ["isnull", "isnotnull", "StartsWith", "EndsWith", "Contains"].iter().find_map(|n| call(n)) {
        return !inside.contains('(');
    }
    if let Some((column, _)) = part.split_once(" IN ").or_else(|| part.split_once(" INSET ")) {
        return is_column(column);
    }
    let operator = [" <=> ", " >= ", " <= ", " > ", " < ", " = "].iter().find_map(|o| part.split_once(o));
    match operator {
        Some((left, right)) => is_column(left) && !right.contains('#') || is_column(right) && !left.contains('#'),
        None => is_column(part),
    }
}

/// `created_at#2`, `info#3.city`.
fn is_column(text: &str) -> bool {
    let text = text.trim();
    text.contains('#') && !text.contains(['(', ' ', '+', '*', '/', '%'])
}

fn cause(scan: &Scan, conjunct: &str) -> Cause {
    let lower = conjunct.to_lowercase();
    let source_takes_none = scan.pushed.as_ref().is_none_or(Vec::is_empty)
        && matches!(scan.format.as_str(), "csv" | "json" | "text" | "xml" | "avro");
    match () {
        () if conjunct.contains("UDF(") || lower.contains("pythonudf") => Cause::Udf,
        () if ["rand(", "randn(", "uuid(", "current_timestamp("].iter().any(|f| lower.contains(f)) => Cause::Random,
        () if disjuncts(conjunct).len() > 1 => Cause::Or,
        () if casts_column(&lower) => Cause::Cast,
        () if source_takes_none && is_plain(conjunct) => Cause::Source,
        () if lower.contains('(') && !is_plain(conjunct) => Cause::Function,
        () if is_plain(conjunct) => Cause::Source,
        () => Cause::Other,
    }
}

/// `cast(created_at#2 as string)`: a cast directly around a column.
fn casts_column(text: &str) -> bool {
    text.match_indices("cast(").any(|(at, _)| {
        let inside = &text[at + 5..];
        inside.split(" as ").next().is_some_and(is_column)
    })
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize, scan: &Scan, left: &Left) -> Draft {
    let (first, cause) = &left.conjuncts[0];
    let shown = without_ids(unwrapped(first));
    let names: Vec<String> = columns(first);
    let column = names.first().cloned().unwrap_or_default();
    let files = query.files(cx, at);
    let title = format!("the filter {} is applied after reading: {}", clipped(&shown), cause.words());
    let pushed = scan.pushed.clone().unwrap_or_default();
    let only_null = pushed.iter().all(|p| p.starts_with("IsNotNull(") || queries::is_not_null_only(p));
    let draft = Draft::new("FILTER_NOT_PUSHED", title)
        .severity(severity(cx, query, at, files))
        .evidence("blocked_by", cause.words(), "")
        .seen_at(query.location())
        .evidence("column", column.clone(), "")
        .evidence("pushed", pushed.clone(), "")
        .evidence("not_pushed", left.conjuncts.iter().map(|(c, _)| without_ids(unwrapped(c))).collect::<Vec<_>>(), "");
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
    with_remedies(draft, scan, first, *cause, &column, only_null)
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
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

fn with_remedies(draft: Draft, scan: &Scan, conjunct: &str, cause: Cause, column: &str, only_null: bool) -> Draft {
    let kind = scan_type(scan, column);
    let draft = match cause {
        Cause::Cast => match literal_form(conjunct, column, kind.as_deref()) {
            Some(form) => draft
                .remedy(RemedyKind::Sql, format!("Leave the column as it is and compare with {}: {form}", literal_words(kind.as_deref())))
                .snippet(format!("WHERE {form}"))
                .computed(format!("{column} is {} in the read schema", kind.as_deref().unwrap_or("of another type"))),
            None => draft.remedy(RemedyKind::Sql, format!("Cast the literal, not the column {column}: write it in the column's own type")),
        },
        Cause::Function => draft.remedy(RemedyKind::Sql, function_words(conjunct, column)).snippet(format!("WHERE {column} >= <from> AND {column} < <to>")),
        Cause::Udf => draft.remedy(RemedyKind::Code, format!("Write the condition on {column} with built-in functions, or add a plain one beside it that keeps what the function may keep")),
        Cause::Or => draft.remedy(RemedyKind::Sql, "Make every branch of the OR a plain comparison of a column, or read the branches apart and unite them"),
        Cause::Source => draft.remedy(RemedyKind::Layout, format!("Keep this data as Parquet or a table: {} cannot skip rows", source_name(scan))),
        Cause::Random | Cause::Other => draft.remedy(RemedyKind::Sql, format!("Add a plain comparison of {column} beside it")),
    };
    let draft = match only_null {
        true => draft.useless("another IS NOT NULL", "Spark adds it by itself; it skips no rows that are there"),
        false => draft,
    };
    draft
        .useless("more executors", "every row is read and thrown away all the same")
        .confirm(format!("{column} in PushedFilters, and the rows that the scan gives out"))
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
fn literal_form(conjunct: &str, column: &str, kind: Option<&str>) -> Option<String> {
    let text = unwrapped(conjunct);
    let operator = [">=", "<=", "<=>", ">", "<", "="].into_iter().find(|o| text.contains(&format!(" {o} ")))?;
    let (left, right) = text.split_once(&format!(" {operator} "))?;
    let value = if left.contains('#') { right } else { left };
    if value.contains('#') || value.contains('(') {
        return None;
    }
    let turned = match (left.contains('#'), operator) {
        (true, o) => o,
        (false, ">=") => "<=",
        (false, "<=") => ">=",
        (false, ">") => "<",
        (false, "<") => ">",
        (false, o) => o,
    };
    let literal = match kind {
        Some("timestamp" | "timestamp_ntz") => format!("TIMESTAMP '{value}'"),
        Some("date") => format!("DATE '{value}'"),
        Some("string") => format!("'{value}'"),
        Some(_) => value.to_owned(),
        None => return None,
    };
    Some(format!("{column} {turned} {literal}"))
}

fn function_words(conjunct: &str, column: &str) -> String {
    let call = unwrapped(conjunct).split('(').next().unwrap_or_default().trim().to_lowercase();
    match call.as_str() {
        "date_format" | "year" | "month" | "to_date" | "date_trunc" | "trunc" | "day" | "hour" | "dayofmonth"
        | "from_unixtime" => {
            format!("Write {call}({column}) as a range of {column} itself")
        }
        "upper" | "lower" | "trim" | "substring" | "regexp_extract" | "concat" => {
            format!("Store {call}({column}) in a column of its own and filter that")
        }
        _ => format!("Free {column} from the expression around it: compare the column itself with a value or a range"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_comparisons_can_be_pushed_and_others_not() {
        for (part, plain) in [
            ("(amount#12 > 50.0)", true),
            ("NOT (a#1 = x)", true),
            ("a#1 IN (1,2)", true),
            ("StartsWith(a#1, x)", true),
            ("(50 < amount#12)", true),
            ("flag#3", true),
            ("(cast(created_at#2 as string) >= 2025-01-01)", false),
            ("((order_id#128L % 4) = 0)", false),
            ("(upper(a#1) = X)", false),
            ("UDF(a#1)", false),
            ("(a#1 = b#2)", false),
        ] {
            assert_eq!(is_plain(part), plain, "{part}");
        }
    }

    #[test]
    fn writes_the_literal_in_the_columns_type() {
        let form = |c: &str, k| literal_form(c, "created_at", k);
        let condition = "(cast(created_at#2 as string) >= 2025-01-01)";
        assert_eq!(form(condition, Some("timestamp")).as_deref(), Some("created_at >= TIMESTAMP '2025-01-01'"));
        assert_eq!(form(condition, Some("date")).as_deref(), Some("created_at >= DATE '2025-01-01'"));
        assert_eq!(form(condition, None), None);
        assert_eq!(form("(7 < cast(created_at#2 as int))", Some("string")).as_deref(), Some("created_at > '7'"));
    }

    #[test]
    fn names_are_whole_words() {
        assert!(mentions("EqualTo(id,5)", "id") && !mentions("EqualTo(order_id,5)", "id"));
    }
}
