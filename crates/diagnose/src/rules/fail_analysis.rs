//! FAIL_ANALYSIS and FAIL_SCHEMA: the statement or the data does not fit (section 4.5).

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, find, has_any};
use model::RemedyKind;

/// Looks at statements that Spark refused and at data that it could not read.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::Analysis, analysis);
    failure::each(cx, out, Cause::Schema, schema);
}

fn with_class(f: &Failure<'_>, draft: Draft) -> Draft {
    let draft = draft.evidence("class", f.class(), "");
    match f.error_class() {
        Some(class) => draft.evidence("error_class", class, ""),
        None => draft,
    }
}

/// The name that a message puts into backticks or quotes: a column, a table, a path.
fn object(text: &str) -> Option<String> {
    let found = find(r"((?:`[^`\n]+`\.?)+)", text)
        .or_else(|| find(r"'([^'\n]+)'", text))
        .or_else(|| find(r"(?:not found|does not exist):? (\S+)", text))?;
    Some(found[1].replace('`', "").trim_end_matches(['.', ';', ',']).to_owned())
}

fn analysis(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let class = f.error_class().unwrap_or_default();
    let mut draft =
        f.draft(format!("Spark refused the statement before any task ran: {}", failure::shortened(&f.first.message)));
    draft = with_class(f, draft);
    let name = object(&f.first.message);
    if let Some(name) = &name {
        draft = draft.evidence("object", name.clone(), "");
    }
    let suggested = find(r"(?i)did you mean one of the following\? \[([^\]]+)\]", &text).map(|m| m[1].replace('`', ""));
    if let Some(suggested) = &suggested {
        draft = draft.evidence("suggestion", suggested.clone(), "");
    }
    let what = name.as_deref().unwrap_or("what the message names");
    let column =
        has_any(class, &["COLUMN", "FIELD", "ATTRIBUTE"]) || has_any(&text, &["cannot resolve", "annot be resolved"]);
    let remedy = if column {
        let hint = suggested.map(|s| format!(" (Spark suggests {s})")).unwrap_or_default();
        format!("Correct the column {what}{hint}: its name, or the table's schema that changed")
    } else if has_any(class, &["TABLE", "VIEW", "SCHEMA"]) || text.contains("not found") {
        format!(
            "Correct the table {what}: catalog and schema in force, the name, whether it exists and the identity may see it"
        )
    } else if class.contains("PATH") || text.contains("Path does not exist") {
        format!("Correct the path {what}, or write it first")
    } else {
        "Correct the statement where the message points".to_owned()
    };
    draft
        .remedy(RemedyKind::Sql, remedy)
        .useless("more retries or resources", "the statement is refused before anything runs")
        .confirm("the statement is analysed")
}

fn schema(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let corrupt = has_any(
        &text,
        &[
            "not a Parquet file",
            "read footer",
            "Corrupt",
            "corrupt",
            "Malformed",
            "MALFORMED",
            "magic number",
            "FOOTER",
        ],
    );
    let cause = if corrupt { "a file that cannot be read" } else { "types or columns that do not fit" };
    let mut draft = f.draft(format!("{cause}: {}", failure::shortened(&f.first.message))).evidence("cause", cause, "");
    draft = with_class(f, draft);
    if let Some(column) = find(r"(?i)(?:column:? \[?|fields? ')([\w.`, ]+)", &text) {
        draft = draft.evidence("column", column[1].trim().replace('`', ""), "");
    }
    if let Some(types) =
        find(r"physicalType: (\w+), logicalType: (\w+)|Expected:? (\w+), (?:Found|Actual):? (\w+)", &text)
    {
        draft = draft.evidence("types", types[0].to_owned(), "");
    }
    if let Some(path) = find(r#"((?:s3[an]?|abfss?|wasbs?|gs|hdfs|dbfs|file)://?[^\s'"),;\]]+)"#, &text) {
        draft = draft.evidence("path", path[1].trim_end_matches(['.', ':']).to_owned(), "");
    }
    let draft = draft.not("the cluster", "the same file or column fails wherever the task runs");
    let draft = match corrupt {
        true => draft
            .remedy(RemedyKind::Ops, "Find the file that the message names: is it complete, of that format, still being written? Restore or remove it")
            .remedy(RemedyKind::Conf, "To go on without such files: spark.sql.files.ignoreCorruptFiles=true, or for text mode PERMISSIVE with a _corrupt_record column; count what is left out"),
        false => draft
            .remedy(RemedyKind::Sql, "Cast to the table's type before the write, or read old and new files with their own schema")
            .remedy(RemedyKind::Layout, "Change the table on purpose: ALTER TABLE, mergeSchema for new columns, overwriteSchema with a rewrite for changed types"),
    };
    draft.useless("more retries", "the data stays as it is").confirm("the file or column is read")
}
