//! FAIL_FILE_MISSING: a file that the list of files named was gone when a task opened it.

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, find, has_any};
use model::RemedyKind;

/// Looks at files that are not there.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::FileMissing, missing);
}

/// Who keeps the list of files decides what helps.
enum Kind {
    /// A folder that Spark listed.
    Folder,
    /// A table format: the log of the table names the file.
    Delta,
    /// State or offsets of a stream.
    Checkpoint,
}

impl Kind {
    fn of(text: &str) -> Self {
        let lower = text.to_lowercase();
        match () {
            () if has_any(&lower, &["/state/", "checkpoint", "/offsets/", "/commits/"]) => Self::Checkpoint,
            () if has_any(&lower, &["delta_file_not_found", "_delta_log", "time travel", "vacuum"]) => Self::Delta,
            () => Self::Folder,
        }
    }
}

fn missing(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let path = find(r#"((?:s3[an]?|abfss?|wasbs?|gs|hdfs|dbfs|adl|file):/{1,3}[^\s'"),;\]]+|/[\w./=%-]+\.\w+)"#, &text)
        .map(|m| m[1].trim_end_matches(['.', ':']).to_owned());
    let name = path.as_deref().and_then(|p| p.rsplit('/').next()).unwrap_or("a file").to_owned();
    let draft = f.draft(format!(
        "{name} was gone when a task opened it: something deleted or replaced files that this run still reads"
    ));
    let draft = match path {
        Some(path) => draft.evidence("path", path, ""),
        None => draft,
    };
    let draft = draft
        .evidence("class", f.class(), "")
        .not("missing rights", "the storage says that the file does not exist, not that access is denied")
        .useless("more retries", "the file does not come back; every attempt at this task fails alike")
        .confirm("the history of the path: who wrote to it between the start of this run and the failure");
    match Kind::of(&text) {
        Kind::Folder => draft
            .remedy(RemedyKind::Ops, "Find the job that overwrites or cleans this path while it is read, and run them one after the other")
            .remedy(RemedyKind::Sql, "Where the files were replaced before this query: make Spark list them again")
            .snippet("REFRESH TABLE <table>   -- or spark.catalog.refreshByPath(\"<path>\"), or read the path anew")
            .remedy(RemedyKind::Layout, "Use a table format with snapshots (Delta, Iceberg): a reader keeps its files while a writer replaces them")
            .useless("spark.sql.files.ignoreMissingFiles=true", "it hides the loss: the rows of the missing files are left out without a word"),
        Kind::Delta => draft
            .remedy(RemedyKind::Sql, "See what removed it: VACUUM with a retention shorter than this read, or a deletion by hand")
            .snippet("DESCRIBE HISTORY <table>")
            .remedy(RemedyKind::Conf, "Keep removed files longer than the longest query and the oldest version that is read: delta.deletedFileRetentionDuration (7 days by default)")
            .remedy(RemedyKind::Sql, "If it was deleted by hand: restore it from the storage's versions, or RESTORE the table to a version whose files are there"),
        Kind::Checkpoint => draft
            .remedy(RemedyKind::Ops, "See what cleans the checkpoint folder: lifecycle rules of the bucket, or a second query with the same checkpoint")
            .remedy(RemedyKind::Ops, "Restore the folder from the storage's versions; without them start with a new checkpoint and say from where to read"),
    }
}
