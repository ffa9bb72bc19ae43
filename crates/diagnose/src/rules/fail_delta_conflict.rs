//! FAIL_DELTA_CONFLICT: two writers of one Delta table (section 4.5).

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, find, has_any};
use model::RemedyKind;

/// Looks at conflicts of Delta transactions.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::DeltaConflict, conflict);
}

fn conflict(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let class = f.error_class().unwrap_or("DELTA_CONCURRENT_WRITE").to_owned();
    let winner = find(r#""operation"\s*:\s*"([^"]+)""#, &text).map(|m| m[1].to_owned());
    let version = find(r#""readVersion"\s*:\s*(\d+)"#, &text).and_then(|m| m[1].parse::<i64>().ok());
    let partition = find(r"partition \[([^\]]+)\]", &text).map(|m| m[1].to_owned());
    let missing = missing_in_condition(f);
    let by = winner.as_ref().map(|w| format!(" with {w}")).unwrap_or_default();
    let on = partition.as_ref().map(|p| format!(" on partition {p}")).unwrap_or_default();
    let transient = is_transient(&class, &text);
    let mut draft = f
        .draft(format!("a Delta transaction lost a conflict{by}{on} ({class})"))
        .evidence("error_class", class.clone(), "")
        .evidence("transient", if transient { "true" } else { "false" }, "");
    for (metric, value) in [("winner", &winner), ("partition", &partition)] {
        if let Some(value) = value {
            draft = draft.evidence(metric, value.clone(), "");
        }
    }
    if let Some(version) = version {
        // The winner read this version, so its own commit is a later one.
        draft = draft.evidence("winner_read_version", version, "");
    }
    if !missing.is_empty() {
        draft = draft.evidence("missing_in_condition", missing.clone(), "");
    }
    draft = draft.not("a damaged table", "the losing transaction wrote nothing; the table is as the winner left it");
    remedies(draft, &class, winner.as_deref(), &missing, transient)
}

/// Partition columns that the MERGE condition does not name, as identifiers.
fn missing_in_condition(f: &Failure<'_>) -> Vec<String> {
    let Some(pasted) = f.cx.app.pasted.as_ref() else { return Vec::new() };
    let Some(condition) = &pasted.merge_condition else { return Vec::new() };
    let named: Vec<&str> = condition.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    pasted.partition_columns.iter().filter(|c| !named.iter().any(|n| n.eq_ignore_ascii_case(c))).cloned().collect()
}

/// Two streams with one checkpoint, or an upgrade of the protocol, come back as they are.
fn is_transient(class: &str, text: &str) -> bool {
    !class.contains("CONCURRENT_TRANSACTION") && !has_any(text, &["same checkpoint", "same streaming checkpoint"])
}

fn remedies(draft: Draft, class: &str, winner: Option<&str>, missing: &[String], transient: bool) -> Draft {
    let mut draft = draft;
    if !transient {
        draft = draft
            .remedy(RemedyKind::Ops, "Give each streaming query its own checkpoint, and stop the second run of the same query: two writers share one transaction id")
            .useless("retry", "the second writer meets the first one again");
        return draft.confirm("one running query per checkpoint");
    }
    draft = match (class.contains("METADATA") || class.contains("PROTOCOL"), missing.is_empty()) {
        (true, _) => draft.remedy(RemedyKind::Ops, "Change schema, properties or protocol of the table while nothing else writes it; then start the statement again"),
        (_, false) => draft
            .remedy(RemedyKind::Sql, format!("Put the partition columns with explicit values into the merge condition: {}", missing.join(", ")))
            .snippet(missing.iter().map(|c| format!("AND t.{c} = s.{c} AND t.{c} IN (<values of this batch>)")).collect::<Vec<_>>().join("\n")),
        _ => draft.remedy(RemedyKind::Sql, "Let the two statements touch different files: explicit partition or clustering values in their conditions"),
    };
    draft = draft.remedy(
        RemedyKind::Code,
        "Catch the conflict and retry with back-off: the loser can start again at once from the new version",
    );
    let winner = winner.unwrap_or_default();
    if has_any(winner, &["OPTIMIZE", "COMPACTION", "ZORDER"]) {
        draft = draft.remedy(
            RemedyKind::Ops,
            "Run OPTIMIZE only on partitions that the stream no longer writes, or in the same job after the write",
        );
    } else {
        draft = draft.remedy(RemedyKind::Ops, "Or run the two writers one after the other");
    }
    draft.confirm("conflicts per day, and retries")
}
