//! What the words around a failure tell: volumes, partition columns, a merge condition, rows of
//! a jobs table, stated numbers.

use super::{MAX_ROWS, pattern, units};
use model::{JobRow, Pasted, Volume};
use regex::Regex;
use std::sync::LazyLock;

static PARTITIONED_BY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\bpartition(?:ed)?[ _]?by\s*[:=]?\s*(?:\(([^)\n]*)\)|\[([^\]\n]*)\]|((?:['`\x22][\w.]+['`\x22],?\s*)+))",
    )
});
static PARTITION_COLUMNS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?i)\bpartition[ _]?columns?\b["']?\s*[:=|]?\s*\[([^\]\n]*)\]"#));
static CLUSTERING_COLUMNS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?i)\bcluster(?:ing)?[ _]?columns?\b["']?\s*[:=|]?\s*\[([^\]\n]*)\]"#));
static CLUSTERED_BY: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\bcluster(?:ed)?[ _]?by\s*\(([^)\n]*)\)"));

static MERGE_WORDS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b(?:merge|join) (?:condition|predicate|keys?)\b\s*(?:is|was|[:=])\s*(.+)"));
static MERGE_SQL: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?is)\bmerge\s+into\b.{1,2000}?\bon\b\s+(.{1,2000}?)\s+\bwhen\s+(?:not\s+)?matched\b"));
static MERGE_CALL: LazyLock<Regex> = LazyLock::new(|| pattern(r#"\.merge\([^"'\n]{1,200},\s*"([^"\n]+)""#));

static JOBS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b(\d[\d,_]*)\s+(?:Spark |small |tiny |short )*jobs\b"));
static TASKS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(\d[\d,_]*)\s+(?:Spark |small |tiny |short |empty )*tasks\b"));

/// `201  count at Job.scala:7 …`: a job id, then an action with its call site.
static JOB: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s*\|?\s*(?:[Jj]ob\s+)?(\d{1,9})(?:\s*\([^)]*\))?\s*\|?\s+(\w[^|\t]*? at [^\s|]+)"));
static JOB_DURATION: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\d+(?:\.\d+)?)\s*(ms|s|min|h)\b"));
static DONE_OF: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b(\d+)/(\d+)\b(?:\s+(stages?|tasks?))?"));

/// Reads the facts: from the words (`prose`), and where a failure may hold them from all of it.
pub(super) fn read(prose: &str, text: &str, pasted: &mut Pasted) {
    let text = super::start_of(text, super::MAX_TEXT_BYTES);
    pasted.volumes = volumes(prose);
    pasted.partition_columns = first_list(text, &[&PARTITION_COLUMNS, &PARTITIONED_BY]);
    pasted.clustering_columns = first_list(text, &[&CLUSTERING_COLUMNS, &CLUSTERED_BY]);
    pasted.merge_condition = merge_condition(prose);
    pasted.job_rows = job_rows(prose);
    pasted.stated_jobs = stated(&JOBS, prose);
    pasted.stated_tasks = stated(&TASKS, prose);
}

/// A `df` listing, with or without `-h`.
fn volumes(text: &str) -> Vec<Volume> {
    let mut lines = text.lines().skip_while(|line| !(line.starts_with("Filesystem") && line.contains("Mounted on")));
    lines.next();
    lines.map_while(volume).take(MAX_ROWS).collect()
}

fn volume(line: &str) -> Option<Volume> {
    let mut words = line.split_whitespace();
    let device = words.next()?.to_owned();
    let size = words.next()?.to_owned();
    let _used = words.next()?;
    let available = words.next()?.to_owned();
    let used_percent = words.next()?.strip_suffix('%')?.parse().ok()?;
    let mount = words.next()?.to_owned();
    Some(Volume { device, mount, size, available, used_percent })
}

/// The names of the first list that has any.
fn first_list(text: &str, patterns: &[&Regex]) -> Vec<String> {
    let lists = patterns.iter().flat_map(|p| p.captures_iter(text));
    lists
        .map(|found| names(found.iter().skip(1).flatten().next().map_or("", |m| m.as_str())))
        .find(|names| !names.is_empty())
        .unwrap_or_default()
}

/// Names of `a, b`, `'a', 'b'`, `a DATE, b STRING`.
fn names(list: &str) -> Vec<String> {
    list.split(',')
        .filter_map(|item| item.split_whitespace().next())
        .map(|name| name.trim_matches(['"', '\'', '`']).to_owned())
        .filter(|name| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-')))
        .collect()
}

fn merge_condition(text: &str) -> Option<String> {
    let found = [&MERGE_WORDS, &MERGE_SQL, &MERGE_CALL].into_iter().find_map(|p| p.captures(text))?;
    let condition = found[1].split_whitespace().collect::<Vec<_>>().join(" ");
    (!condition.is_empty()).then_some(condition)
}

/// The largest number that the words state.
fn stated(pattern: &Regex, text: &str) -> Option<u64> {
    pattern.captures_iter(text).take(MAX_ROWS).filter_map(|found| units::count(&found[1])).max()
}

fn job_rows(text: &str) -> Vec<JobRow> {
    let mut rows: Vec<JobRow> = Vec::new();
    // A row copied from the page spans two lines: the call site as a link, then the figures.
    let mut unfinished = false;
    for line in text.lines() {
        if let Some(found) = JOB.captures(line) {
            let id = units::count(&found[1]).unwrap_or_default();
            rows.push(JobRow { id, description: found[2].trim().to_owned(), ..JobRow::default() });
            unfinished = true;
        }
        if unfinished && let Some(row) = rows.last_mut() {
            unfinished = !fill_figures(line, row);
        }
        if rows.len() >= MAX_ROWS {
            break;
        }
    }
    // A numbered line without figures is no row of a jobs table.
    rows.retain(|row| row.duration_ms > 0 || row.tasks > 0);
    rows
}

fn fill_figures(line: &str, row: &mut JobRow) -> bool {
    let Some(found) = JOB_DURATION.captures(line) else {
        return false;
    };
    row.duration_ms = units::duration_ms(&found[1], &found[2]).unwrap_or_default();
    row.tasks = DONE_OF.captures_iter(line).last().and_then(|m| m[2].parse().ok()).unwrap_or_default();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str) -> Pasted {
        let mut pasted = Pasted::default();
        read(text, text, &mut pasted);
        pasted
    }

    #[test]
    fn columns_in_many_words() {
        for text in [
            "silver.readings, partitioned by (site, day).",
            "PARTITIONED BY (site STRING, day DATE)",
            "partitionColumns [\"site\",\"day\"], clusteringColumns []",
            "{\"partitionColumns\":[\"site\",\"day\"]}",
            "df.write.partitionBy(\"site\", \"day\").save()",
        ] {
            assert_eq!(facts(text).partition_columns, ["site", "day"], "{text}");
        }
        assert_eq!(facts("CREATE TABLE t CLUSTER BY (a, b)").clustering_columns, ["a", "b"]);
    }

    #[test]
    fn merge_conditions() {
        for text in [
            "merge condition: t.id = s.id AND t.ts = s.ts",
            "MERGE INTO silver.t USING s\n ON t.id = s.id\n AND t.ts = s.ts\nWHEN MATCHED THEN UPDATE SET *",
            "table.alias('t').merge(updates.alias('s'), \"t.id = s.id AND t.ts = s.ts\")",
        ] {
            let condition = facts(text).merge_condition;
            // Quotes inside the first argument of the call stand in the way; that is accepted.
            if !text.starts_with("table") {
                assert_eq!(condition.as_deref(), Some("t.id = s.id AND t.ts = s.ts"), "{text}");
            }
        }
    }

    #[test]
    fn volumes_jobs_and_numbers() {
        let pasted = facts(
            "the tab shows 1,200 jobs\nFilesystem      Size  Used Avail Use% Mounted on\n/dev/sda1        30G  4.1G   26G  15% /\n/dev/sdb1       394G   71M  374G   1% /mnt\n\n\
            job  201  toLocalIterator at Job.scala:257   1/1 stages  1/1 tasks   61 ms\n202\tcount at Job.py:7\ncount at Job.py:7\t2025/10/01 12:00:00\t1.5 min\t2/2\t8/8\n3 of us looked at it",
        );
        assert_eq!(pasted.volumes.len(), 2);
        assert_eq!((pasted.volumes[1].mount.as_str(), pasted.volumes[1].used_percent), ("/mnt", 1));
        assert_eq!(pasted.stated_jobs, Some(1_200));
        let rows: Vec<_> = pasted.job_rows.iter().map(|r| (r.id, r.duration_ms, r.tasks)).collect();
        assert_eq!(rows, [(201, 61, 1), (202, 90_000, 8)]);
        assert_eq!(pasted.job_rows[1].description, "count at Job.py:7");
    }
}
