//! FAIL_DISK_FULL: a local disk ran full (section 4.5).

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, find, has_any, size};
use model::{Metric, RemedyKind, Volume};

/// Where Spark puts shuffle and spill files when nothing else is set.
const DEFAULT_DIR: &str = "/tmp";

/// Looks at full disks.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::DiskFull, disk_full);
}

fn disk_full(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let set = f.cx.app.conf("spark.local.dir").or_else(|| f.cx.app.conf("spark.local.dirs"));
    let dir = set.unwrap_or(DEFAULT_DIR).split(',').next().unwrap_or(DEFAULT_DIR);
    let volumes = f.cx.app.pasted.as_ref().map_or(&[][..], |p| &p.volumes);
    let own = volume_of(volumes, dir);
    let roomy = roomiest(volumes).filter(|v| own.is_none_or(|o| o.mount != v.mount));
    let quota = has_any(&text.to_lowercase(), &["quota"]);
    let what = if quota { "the disk quota is used up" } else { "a local disk ran full" };
    let where_ = own.map(|v| format!(" ({})", on_volume(dir, v))).unwrap_or_default();
    let mut draft = f.draft(format!("{what}: {}{where_}", failure::shortened(&f.first.message)));
    if let Some(volume) = own {
        let key = if set.is_none() { "default_local_dir" } else { "local_dir" };
        draft = draft.evidence(key, on_volume(dir, volume), "");
    }
    if let Some(volume) = roomy {
        draft = draft.evidence(
            "large_volume",
            format!("{} {}, {}% used", volume.mount, volume.size, volume.used_percent),
            "",
        );
    }
    if !volumes.is_empty() {
        draft = draft
            .evidence("why_df_shows_free", "shuffle files are deleted when the application ends", "")
            .not("disks that have room", "df was taken while the application was down; the files are gone by then");
    }
    if let Some(path) = find(r"(/[\w./-]*(?:blockmgr|spark|appcache|local)[\w./-]*)", &text) {
        draft = draft.evidence("path", path[1].to_owned(), "");
    }
    let draft = with_need(f, draft);
    remedies(draft, dir, roomy, quota)
}

/// `/tmp, on the 30G root volume`.
fn on_volume(dir: &str, volume: &Volume) -> String {
    let name = if volume.mount == "/" { "root volume".to_owned() } else { format!("volume {}", volume.mount) };
    format!("{dir}, on the {} {name}", volume.size)
}

/// The file system of a directory: the longest mount point that it begins with.
fn volume_of<'a>(volumes: &'a [Volume], dir: &str) -> Option<&'a Volume> {
    let holds = |v: &&Volume| v.mount == "/" || dir == v.mount || dir.starts_with(&format!("{}/", v.mount));
    volumes.iter().filter(holds).max_by_key(|v| v.mount.len())
}

fn roomiest(volumes: &[Volume]) -> Option<&Volume> {
    let real = |v: &&Volume| !has_any(&v.device, &["tmpfs", "shm", "overlay", "udev"]);
    volumes.iter().filter(real).max_by_key(|v| model::parse_bytes(&v.available, 1_024).unwrap_or_default())
}

/// Bytes that the run wrote to local disks, where a log tells them.
fn with_need(f: &Failure<'_>, draft: Draft) -> Draft {
    let hosts =
        f.cx.app
            .executors
            .iter()
            .filter(|e| !e.is_driver())
            .map(|e| &*e.host)
            .collect::<std::collections::BTreeSet<_>>()
            .len();
    let sum = |m: Metric| f.cx.app.stages.iter().map(|s| s.sum(m)).sum::<i64>();
    let written = sum(Metric::ShuffleBytesWritten) + sum(Metric::DiskSpillBytes);
    if written == 0 || hosts == 0 {
        return draft;
    }
    let per_host = written / hosts as i64;
    draft.evidence("local_bytes_per_host", per_host, "bytes").not(
        "a large data set at rest",
        format!("what counts is shuffle and spill at the peak: up to {} a host", size(per_host)),
    )
}

fn remedies(draft: Draft, dir: &str, roomy: Option<&Volume>, quota: bool) -> Draft {
    let mut draft = match roomy {
        Some(volume) => {
            let target = if volume.mount == "/" { "/tmp/spark".to_owned() } else { format!("{}/spark", volume.mount) };
            draft
                .remedy(RemedyKind::Conf, format!("Put local files on the large volume {}: SPARK_LOCAL_DIRS={target} on the workers, or spark.local.dir={target}", volume.mount))
                .snippet(format!("export SPARK_LOCAL_DIRS={target}"))
        }
        None => draft.remedy(
            RemedyKind::Conf,
            format!("Put local files on a disk with room: SPARK_LOCAL_DIRS or spark.local.dir (now {dir}; on YARN yarn.nodemanager.local-dirs)"),
        ),
    };
    if quota {
        draft = draft.remedy(RemedyKind::Ops, "Or have the quota of that user or directory raised");
    }
    draft
        .remedy(
            RemedyKind::Code,
            "Write fewer bytes locally: filter and select columns before the shuffle, cure skew and spill",
        )
        .remedy(RemedyKind::Compute, "Or use machines with more or larger local disks")
        .useless("a larger heap", "the disk is full, not the memory")
        .confirm("free space of the local directory while the stage runs")
}
