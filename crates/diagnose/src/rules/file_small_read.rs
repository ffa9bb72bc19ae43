//! FILE_SMALL_READ: many small files are read (section 4.4 of the rules).

use crate::context::{Context, StageFacts};
use crate::draft::{Draft, Findings};
use crate::queries::{self, Query};
use crate::run_model::Change;
use crate::sizing;
use model::{Bytes, Count, Metric, Operator, RemedyKind, Scan, Severity, Share};

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
        out.fine("file sizes read", format!("{scans} scans, none of more than {} small files", cx.config.small_files));
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
    let name = queries::short_source(scan);
    let title = format!("{name} is read from {} files of {} on average", Count(files as u64), Bytes(average as u64));
    let draft = Draft::new("FILE_SMALL_READ", title)
        .fix("compacting it")
        .estimate(facts.filter(|_| tiny).and_then(|f| estimate(cx, f, bytes)))
        .at_least(severity)
        .evidence("files", files, "files")
        .over(cx.config.small_files as f64)
        .seen_at(query.location())
        .evidence("bytes", bytes, "bytes")
        .evidence("average_bytes", average, "bytes")
        .over(if tiny { cx.config.small_file_bytes } else { cx.config.smallish_file_bytes } as f64)
        .evidence("stage_share", share, "share")
        .not(
            "slow storage",
            format!(
                "each task opens {:.0} files for {}",
                files as f64 / facts.map_or(1, |f| f.n.max(1)) as f64,
                Bytes((bytes / facts.map_or(1, |f| f.n.max(1)) as i64) as u64)
            ),
        );
    with_remedies(cx, query.place_node(cx, at, draft), scan, files, bytes, share)
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

fn with_remedies(cx: &Context<'_>, draft: Draft, scan: &Scan, files: i64, bytes: i64, share: f64) -> Draft {
    let target = cx.config.target_partition_bytes;
    let wanted = sizing::ceil_div(bytes, target).max(1);
    let formula = format!(
        "{} / {} = {wanted} files instead of {}",
        Bytes(bytes as u64),
        Bytes(target as u64),
        Count(files as u64)
    );
    let source = queries::sql_source(scan);
    let draft = match scan.format.as_str() {
        "delta" => draft
            .remedy(RemedyKind::Layout, format!("Compact the table: about {wanted} files will do"))
            .snippet(format!("OPTIMIZE {source}"))
            .computed(formula),
        _ => draft
            .remedy(RemedyKind::Layout, format!("Rewrite the data once: about {wanted} files will do"))
            .snippet(format!(
                "spark.read.format(\"{}\").load(\"{}\").repartition({wanted}).write.format(\"{0}\").save(…)",
                scan.format,
                queries::path_of(scan).unwrap_or_default()
            ))
            .computed(formula),
    };
    draft
        .remedy(RemedyKind::Code, "Mend the writer: fewer partitions at its end, or the REBALANCE hint")
        .useless(
            "more executors",
            format!("opening files is most of the work; reading takes {} of the run", Share(share)),
        )
        .useless(
            "a larger spark.sql.files.maxPartitionBytes",
            "it packs more files into a task; each is opened all the same",
        )
        .confirm("number of files read, and size of files read")
}
