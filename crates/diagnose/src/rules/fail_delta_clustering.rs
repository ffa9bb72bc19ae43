//! FAIL_DELTA_CLUSTERING: a statement that liquid clustering does not allow (section 4.5).

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, find, has_any};
use model::RemedyKind;

/// Looks at errors of clustering.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::DeltaClustering, clustering);
}

/// What is in the way, and the statement that helps.
struct Case {
    words: &'static [&'static str],
    cause: &'static str,
    remedy: &'static str,
    statement: &'static str,
}

/// By parts of the error class, most special first.
const CASES: [Case; 8] = [
    Case {
        words: &["PARTITIONED_TABLE", "WITH_PARTITIONED_BY", "PARTITION"],
        cause: "the table is partitioned, and a partitioned table cannot be clustered",
        remedy: "To really convert: ALTER TABLE … REPLACE PARTITIONED BY WITH CLUSTER BY (Databricks runtime 18.1 and later), or rebuild it by CREATE TABLE AS SELECT … CLUSTER BY",
        statement: "CREATE TABLE <new> CLUSTER BY (<columns>) AS SELECT * FROM <old>",
    },
    Case {
        words: &["ZORDER", "Z_ORDER"],
        cause: "Z-order on a clustered table",
        remedy: "Run plain OPTIMIZE: a clustered table is ordered by its clustering columns",
        statement: "OPTIMIZE <table>",
    },
    Case {
        words: &["WITH_PREDICATE", "PREDICATE"],
        cause: "OPTIMIZE with a predicate on a clustered table",
        remedy: "Run OPTIMIZE without WHERE: clustering is incremental by itself",
        statement: "OPTIMIZE <table>",
    },
    Case {
        words: &["INVALID_NUMBER", "TOO_MANY", "MAXIMUM"],
        cause: "more than four clustering columns",
        remedy: "Name at most four clustering columns: those that most queries filter by",
        statement: "ALTER TABLE <table> CLUSTER BY (<up to four columns>)",
    },
    Case {
        words: &["MISSING_STATS", "NO_STATS", "STATS"],
        cause: "a clustering column without statistics",
        remedy: "Collect statistics for it: move the column among the first 32, or name it in delta.dataSkippingStatsColumns",
        statement: "ALTER TABLE <table> SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = '<columns>')",
    },
    Case {
        words: &["DATATYPE", "DATA_TYPE"],
        cause: "a clustering column whose type has no data skipping",
        remedy: "Cluster by columns of types with minimum and maximum statistics (numbers, dates, timestamps, strings)",
        statement: "ALTER TABLE <table> CLUSTER BY (<other columns>)",
    },
    Case {
        words: &["MISMATCH", "PROVIDED_MISMATCH"],
        cause: "the statement names other clustering columns than the table has",
        remedy: "Leave the clustering out of the append, or change the table's first with ALTER TABLE … CLUSTER BY",
        statement: "ALTER TABLE <table> CLUSTER BY (<columns>)",
    },
    Case {
        words: &["DROP", "UNSUPPORTED_DROP"],
        cause: "a clustering column cannot be dropped",
        remedy: "Choose other clustering columns first, then drop the column",
        statement: "ALTER TABLE <table> CLUSTER BY (<other columns>)",
    },
];

fn clustering(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let class = f.error_class().unwrap_or("DELTA_CLUSTER_BY").to_owned();
    let case = CASES.iter().find(|c| has_any(&class, c.words)).or_else(|| by_words(&text));
    let cause = case.map_or("clustering does not allow the statement", |c| c.cause);
    let table = find(r"(?i)(?:ALTER TABLE|OPTIMIZE|DESCRIBE DETAIL|INSERT INTO)\s+([`\w.]+)", f.pasted_text())
        .map(|m| m[1].replace('`', ""));
    let mut draft = f
        .draft(format!("{cause} ({class})"))
        .evidence("error_class", class, "")
        .evidence("cause", cause, "")
        .evidence("transient", "false", "");
    if let Some(table) = &table {
        draft = draft.evidence("table", table.clone(), "");
    }
    if let Some(columns) = f.cx.app.pasted.as_ref().map(|p| &p.partition_columns).filter(|c| !c.is_empty()) {
        draft = draft.evidence("partition_columns", columns.clone(), "");
    }
    draft = tool(f, draft);
    if let Some(case) = case {
        let name = table.as_deref().unwrap_or("<table>");
        draft = draft
            .remedy(RemedyKind::Layout, case.remedy)
            .snippet(case.statement.replace("<table>", name).replace("<old>", name));
    } else {
        draft = draft.remedy(
            RemedyKind::Layout,
            "See the table's clustering and partition columns with DESCRIBE DETAIL, and change the statement to fit",
        );
    }
    draft
        .useless("running it again", "the table's layout forbids the statement every time")
        .confirm("the statement goes through")
}

fn by_words(text: &str) -> Option<&'static Case> {
    let upper = text.to_uppercase();
    CASES.iter().find(|c| c.words.iter().any(|w| upper.contains(&w.replace('_', " "))))
}

/// A build tool may issue the statement by itself.
fn tool(f: &Failure<'_>, draft: Draft) -> Draft {
    let text = f.pasted_text();
    let named = has_any(text, &["dbt", "On model", "adapter", "sqlmesh", "dataform"]);
    let statement = has_any(text, &["CLUSTER BY NONE", "CLUSTER BY AUTO"]);
    if !named || !statement {
        return draft;
    }
    let lower = text.to_lowercase();
    let unwanted = has_any(
        &lower,
        &["no clustering setting", "no liquid", "no clustering", "without clustering", "asks for no clustering"],
    );
    let who = match unwanted {
        true => "the build tool, although the model asks for no clustering",
        false => "the build tool",
    };
    draft.evidence("who_issued_it", who, "").remedy(
        RemedyKind::Ops,
        "Upgrade or pin the tool, so that it does not issue CLUSTER BY NONE for partitioned tables",
    )
}
