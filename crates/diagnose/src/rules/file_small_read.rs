//! FILE_SMALL_READ: many small files are read (section 4.4 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use crate::run_model::Change;
use crate::{sizing, words};
use model::{Bytes, Count, Metric, Operator, RemedyKind, Scan, Severity};

/// Throughput of one task that reads a large file, bytes a second: what is left after compaction.
const READ_BYTES_PER_S: i64 = 20 << 20;
/// Shortest task, ms.
const TASK_MS: i64 = 500;

/// Looks at every scan of files.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let (mut scans, mut found) = (0, 0);
    for query in queries::of_users(cx) {
        for (at, node) in query.nodes() {
            let Operator::Scan(scan) = &node.op else { continue };
            let Some((files, bytes)) = query.files(cx, at) else { continue };
            scans += 1;
            let average = bytes / files.max(1);
            if files > cx.config.small_files && average < cx.config.smallish_file_bytes && bytes > 0 {
                found += 1;
                out.push(draft(cx, &query, at, scan, files, bytes));
            }
        }
    }
    if scans > 0 && found == 0 {
        out.fine(
            "file sizes read",
            format!("{}, none of more than {} small files", words::count(scans, "scan"), cx.config.small_files),
        );
    }
}

fn draft(cx: &Context<'_>, query: &Query<'_>, at: usize, scan: &Scan, files: i64, bytes: i64) -> Draft {
    let average = bytes / files;
    let tiny = average < cx.config.small_file_bytes;
    let facts = query.stage_of(cx, at);
    let share = facts.map_or(0.0, |f| f.wall_ms as f64 / cx.base_wall_ms().max(1) as f64);
    // The rules' severity by size holds where reading takes time at all.
    let severity = match (tiny, share) {
        (true, s) if s >= 0.05 => Severity::High,
        (_, s) if s >= 0.01 => Severity::Low,
        _ => Severity::Info,
    };
    let partitions = query.metric(cx, at, "number of partitions read").unwrap_or(0);
    let read = Files { files, bytes, partitions };
    let name = queries::short_source(scan);
    let title = format!("{} files of {} on average are read for {name}", Count(files as u64), Bytes(average as u64));
    let draft = Draft::new("FILE_SMALL_READ", title)
        .fix(if read.by_partitions() { "a coarser partitioning" } else { "compacting it" })
        .estimate(facts.filter(|_| tiny).and_then(|f| estimate(cx, f, bytes)))
        .at_least(severity)
        .evidence("files", files, "files")
        .over(cx.config.small_files as f64)
        .seen_at(query.location())
        .evidence("bytes", bytes, "bytes")
        .evidence("average_bytes", average, "bytes")
        .evidence(
            "average_limit_bytes",
            if tiny { cx.config.small_file_bytes } else { cx.config.smallish_file_bytes },
            "bytes",
        )
        .evidence("stage_share", share, "share")
        .not(
            "slow storage",
            format!(
                "each task opens {:.0} files for {}",
                files as f64 / facts.map_or(1, |f| f.n.max(1)) as f64,
                Bytes((bytes / facts.map_or(1, |f| f.n.max(1)) as i64) as u64)
            ),
        );
    let draft = match partitions {
        0 => draft,
        n => draft.evidence("partitions_read", n, "partitions"),
    };
    with_remedies(cx, query.place_node(cx, at, draft), scan, &read)
}

/// The same bytes in files of the usual size, read at an ordinary pace.
fn estimate(cx: &Context<'_>, facts: &StageFacts<'_>, bytes: i64) -> Option<model::Estimate> {
    let run = cx.run.as_ref()?;
    let slots = facts.slots.round().max(1.0) as i64;
    let tasks = sizing::partitions(bytes, cx.config.target_partition_bytes, slots);
    let each = (bytes / tasks * 1_000 / READ_BYTES_PER_S).max(TASK_MS);
    // Never slower than it was: the change is what the files cost, not what the rows cost.
    let now = facts.sum(Metric::DurationMs) / tasks.max(1);
    let change = Change::stage(facts.position, vec![each.min(now).max(1); tasks as usize]);
    let method = format!(
        "the same bytes in {tasks} tasks at {} a second, at least {TASK_MS} ms each",
        Bytes(READ_BYTES_PER_S as u64)
    );
    Some(run.estimate(&change, &method))
}

/// What a scan read.
struct Files {
    files: i64,
    bytes: i64,
    /// Partition values read; 0 for a table without partitions.
    partitions: i64,
}

impl Files {
    /// Whether there is hardly more than one file for each partition value: only fewer values make
    /// files larger.
    fn by_partitions(&self) -> bool {
        self.partitions > 1 && self.files < 2 * self.partitions
    }

    /// Files that would do: one of the target size each, at least one for each partition value.
    fn wanted(&self, target: i64) -> i64 {
        sizing::ceil_div(self.bytes, target).max(self.partitions).max(1)
    }

    fn formula(&self, target: i64) -> String {
        let wanted = words::counted(self.wanted(target).unsigned_abs(), "file");
        let least = match self.partitions {
            0 => String::new(),
            n => format!(", at least one for each of {}", words::counted(n.unsigned_abs(), "partition value")),
        };
        format!(
            "{} / {}{least}: {wanted} instead of {}",
            Bytes(self.bytes.unsigned_abs()),
            Bytes(target.unsigned_abs()),
            Count(self.files.unsigned_abs())
        )
    }
}

fn with_remedies(cx: &Context<'_>, draft: Draft, scan: &Scan, read: &Files) -> Draft {
    if read.by_partitions() {
        return coarser(draft, read);
    }
    let target = cx.config.target_partition_bytes;
    let wanted = read.wanted(target);
    let about = words::counted(wanted.unsigned_abs(), "file");
    let source = queries::sql_source(scan);
    let draft = match scan.format.as_str() {
        "delta" => draft
            .remedy(RemedyKind::Layout, format!("Compact the table: about {about} will do"))
            .snippet(format!("OPTIMIZE {source}")),
        _ => draft
            .remedy(RemedyKind::Layout, format!("Rewrite the data once: about {about} will do"))
            .snippet(rewrite(scan, read, wanted)),
    }
    .computed(read.formula(target));
    // Even one file for each value stays small: the partitions are the cause.
    let each = read.bytes / read.partitions.max(1);
    let draft = match read.partitions > 1 && each < cx.config.small_file_bytes {
        true => coarser(draft, read),
        false => draft,
    };
    draft
        .remedy(RemedyKind::Code, "Mend the writer: fewer partitions at its end, or the REBALANCE hint")
        .useless(
            "a larger spark.sql.files.maxPartitionBytes",
            "it packs more files into a task; each is opened all the same",
        )
        .confirm("number of files read, and size of files read")
}

/// Fewer partition values, so that the file of each is larger.
fn coarser(draft: Draft, read: &Files) -> Draft {
    draft
        .remedy(
            RemedyKind::Layout,
            format!(
                "Partition by something coarser, or not at all: {} in {} is {} each",
                Bytes(read.bytes.unsigned_abs()),
                words::counted(read.partitions.unsigned_abs(), "partition"),
                Bytes((read.bytes / read.partitions.max(1)).unsigned_abs())
            ),
        )
        .confirm("number of files read, and size of files read")
}

/// The rewrite in code; a partitioned layout keeps its partitions.
fn rewrite(scan: &Scan, read: &Files, wanted: i64) -> String {
    let (read_from, write_to) = match (&scan.table, queries::path_of(scan)) {
        (Some(table), _) => (format!("spark.read.table(\"{table}\")"), "saveAsTable(…)".to_owned()),
        (None, path) => (
            format!("spark.read.format(\"{}\").load(\"{}\")", scan.format, path.unwrap_or_default()),
            "save(…)".to_owned(),
        ),
    };
    let columns: Vec<String> = partition_columns(scan).iter().map(|c| format!("\"{c}\"")).collect();
    let columns = if columns.is_empty() { "\"<partition column>\"".to_owned() } else { columns.join(", ") };
    match read.partitions {
        0 => format!("{read_from}.repartition({wanted}).write.format(\"{}\").{write_to}", scan.format),
        _ => format!(
            "{read_from}.repartition({columns}).write.format(\"{}\").partitionBy({columns}).{write_to}",
            scan.format
        ),
    }
}

/// Partition columns, from the plan or from the folders of its first path.
fn partition_columns(scan: &Scan) -> Vec<String> {
    if !scan.partition_columns.is_empty() {
        return scan.partition_columns.clone();
    }
    let location = scan.location.as_deref().unwrap_or_default();
    let first =
        location.rsplit_once('[').map_or(location, |(_, rest)| rest).split([',', ']']).next().unwrap_or_default();
    first.split('/').filter_map(|folder| folder.split_once('=')).map(|(column, _)| column.to_owned()).collect()
}
