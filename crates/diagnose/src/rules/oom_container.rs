//! OOM_CONTAINER and FAIL_CONTAINER_VMEM: a container went over its limit (section 4.3).

use crate::cause::Cause;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::failure::{self, Failure, find, size};
use crate::sizing;
use model::{Confidence, RemedyKind};

/// YARN's default `yarn.nodemanager.vmem-pmem-ratio`.
const VMEM_RATIO: f64 = 2.1;
const MIB: i64 = 1 << 20;

/// Looks at containers that were killed.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    failure::each(cx, out, Cause::ContainerVirtual, virtual_memory);
    failure::each(cx, out, Cause::Container, physical_memory);
}

/// `5.0 GB of 4.2 GB virtual memory used`: used and limit, as written.
fn usage(text: &str, kind: &str) -> Option<(String, String)> {
    let before = &text[..text.find(&format!(" {kind} memory used"))?];
    let found = find(r"(\d[\d.]* ?[KMGT]?i?B?) of (\d[\d.]* ?[KMGT]?i?B?)$", before)?;
    Some((found[1].to_owned(), found[2].to_owned()))
}

fn virtual_memory(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let Some((used, limit)) = usage(&text, "virtual") else {
        return vmem_remedies(
            f.draft("YARN killed a container for its virtual memory").evidence("measure", "virtual", ""),
            None,
        );
    };
    let container = failure::bytes(&limit).map(|b| (b as f64 / VMEM_RATIO) as i64);
    let mut draft = f
        .draft(format!("YARN killed a container for virtual memory: {used} of {limit} used"))
        .evidence("used", used.clone(), "")
        .evidence("limit", limit.clone(), "")
        .evidence("measure", "virtual", "")
        .not("physical memory", format!("the line says virtual: {used} of address space, not of memory in use"))
        .not("Java heap", "no OutOfMemoryError stands before the kill");
    if let Some(container) = container {
        let gb = container as f64 / (1_i64 << 30) as f64;
        let formula = format!("{gb:.1} GB = {limit} / {VMEM_RATIO} (YARN's default virtual-to-physical ratio)");
        draft = draft.evidence("container", formula, "").evidence("container_bytes", container, "bytes");
    }
    let missing = failure::bytes(&used).zip(container).map(|(used, c)| (used as f64 / VMEM_RATIO) as i64 - c);
    vmem_remedies(draft, missing)
}

fn vmem_remedies(draft: Draft, missing: Option<i64>) -> Draft {
    let step = sizing::round_up(missing.unwrap_or(384 * MIB).max(1), 256 * MIB) / MIB;
    draft
        .remedy(
            RemedyKind::Ops,
            "Switch the check off on the cluster side: yarn.nodemanager.vmem-check-enabled=false, or raise yarn.nodemanager.vmem-pmem-ratio above 2.1",
        )
        .remedy(
            RemedyKind::Conf,
            format!("Without access to the cluster: a larger container, by {step} MB more spark.executor.memoryOverhead (spark.yarn.executor.memoryOverhead is its old name)"),
        )
        .computed("used / 2.1 less the container, rounded up to 256 MB")
        .useless("a larger heap", "address space is not heap: spark.executor.memory is innocent")
        .confirm("no more containers killed for virtual memory")
}

fn physical_memory(f: &Failure<'_>) -> Draft {
    let text = f.text();
    let used = usage(&text, "physical").or_else(|| beyond(&text));
    let killed = if failure::has_any(&text, &["OOMKilled", "OOM killed", "OOMkilled"]) { " (OOMKilled)" } else { "" };
    let title = match &used {
        Some((used, limit)) => format!("a container was killed at its memory limit: {used} of {limit} used"),
        None => format!("a container was killed at its memory limit{killed}"),
    };
    let mut draft = f.draft(title).evidence("measure", "physical", "").evidence("executors", f.executors(), "");
    if let Some((used, limit)) = &used {
        draft = draft.evidence("used", used.clone(), "").evidence("limit", limit.clone(), "");
    }
    if let Some(code) = find(r"(?i)exit(?:ed)?(?: with)?[ _]?(?:exit )?(?:code|status)?:? ?(\d+)", &text) {
        draft = draft.evidence("exit_code", code[1].parse::<i64>().unwrap_or_default(), "");
    }
    if used.is_none()
        && !failure::has_any(&text, &["OOMKilled", "oom-kill", "Out of memory", "exceeding memory limits", "cgroup"])
    {
        draft = draft
            .sure(Confidence::Medium, "exit code 137 is any SIGKILL; memory is the usual reason, not the proven one");
    }
    draft = draft
        .not("Java heap", "no OutOfMemoryError: the JVM did not run out, the container around it did")
        .not("spot loss or scale-down", "the record names memory, not the machine");
    remedies(f, draft, used.and_then(|(used, _)| failure::bytes(&used)))
}

/// `running 4509715660B beyond the 'PHYSICAL' memory limit. Current usage: …` without a pair.
fn beyond(text: &str) -> Option<(String, String)> {
    let found = find(r"memory (?:usage|used):? (\d[\d.]* ?[KMGT]i?B?),? (?:limit|of) (\d[\d.]* ?[KMGT]i?B?)", text)?;
    Some((found[1].to_owned(), found[2].to_owned()))
}

fn remedies(f: &Failure<'_>, draft: Draft, used: Option<i64>) -> Draft {
    let app = f.cx.app;
    let heap = app.conf_bytes("spark.executor.memory", MIB as u64);
    let now = app
        .conf_bytes("spark.executor.memoryOverhead", MIB as u64)
        .or_else(|| app.conf_bytes("spark.yarn.executor.memoryOverhead", MIB as u64));
    let needed =
        used.zip(heap).map(|(used, heap)| sizing::round_up((1.2 * (used - heap).max(0) as f64) as i64, 256 * MIB));
    let mut draft = draft;
    for key in app.environment.spark.keys().filter(|k| is_unknown_overhead(k)) {
        draft = draft.useless(key, "Spark does not know this key; the name is spark.executor.memoryOverhead");
    }
    draft = match (needed, heap) {
        (Some(needed), Some(heap)) if now.is_none_or(|now| now < needed) => draft
            .remedy(RemedyKind::Conf, format!("Give what is outside the heap more room: spark.executor.memoryOverhead={}m", needed / MIB))
            .computed(format!("1.2 × (used − heap of {}), rounded up to 256 MB", size(heap)))
            .evidence("executor_heap_bytes", heap, "bytes"),
        _ => draft.remedy(
            RemedyKind::Conf,
            "Give what is outside the heap more room: spark.executor.memoryOverhead = 1.2 × (peak use of the process − spark.executor.memory); heap, off-heap, overhead and Python must fit into the container together",
        ),
    };
    draft
        .remedy(RemedyKind::Code, "Need less outside the heap: fewer spark.executor.cores (each slot has its own Python worker and buffers), smaller Arrow batches, smaller shuffle blocks in flight")
        .remedy(RemedyKind::Compute, "Or take nodes with more memory per core")
        .useless("a larger spark.executor.memory alone", "in a container of the same size it leaves even less room outside the heap")
        .confirm("peak RSS of the executors against the container's limit")
}

fn is_unknown_overhead(key: &str) -> bool {
    matches!(
        key,
        "spark.kubernetes.executor.memoryOverhead"
            | "spark.executor.memory.overhead"
            | "spark.mesos.executor.memoryoverhead"
    )
}
