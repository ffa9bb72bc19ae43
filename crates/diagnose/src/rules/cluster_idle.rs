//! CLUSTER_IDLE: slots that are paid for and do nothing (section 4.6 of the rules).

use crate::budget;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::words;
use model::{Part, RemedyKind, Severity, Share};

const HOUR_MS: f64 = 3_600_000.0;

/// Compares run time with slots × time.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    if cx.app.pasted.is_some() || cx.wall_ms == 0 {
        return;
    }
    let parts = &cx.budget().core;
    let total: i64 = parts.iter().map(|p| p.ms).sum();
    let unused: i64 = parts.iter().filter(|p| is_idle(p)).map(|p| p.ms).sum();
    if total <= 0 || unused == total {
        return;
    }
    let idle = unused as f64 / total as f64;
    match idle < cx.config.idle_share {
        true => out.fine("slots", format!("{} of slots × time were idle", Share(idle))),
        false => out.push(draft(cx, parts, total, idle)),
    }
}

/// Time of slots without a task; starting tasks and lost work are other findings.
fn is_idle(part: &Part) -> bool {
    use budget::part::{AFTER, BETWEEN, DRIVER_ONLY, START_UP, TAIL, TOO_FEW};
    [AFTER, BETWEEN, DRIVER_ONLY, START_UP, TAIL, TOO_FEW].contains(&part.name.as_str())
}

fn draft(cx: &Context<'_>, parts: &[Part], total: i64, idle: f64) -> Draft {
    let hours = total as f64 * idle / HOUR_MS;
    let largest = parts.iter().filter(|p| is_idle(p)).max_by_key(|p| p.ms);
    let mostly =
        largest.map(|p| format!(", mostly {}: {}", p.name, Share(p.ms as f64 / total as f64))).unwrap_or_default();
    let smaller = smaller(cx);
    let title = match &smaller {
        Some(s) => format!(
            "{} of the slot time was idle{mostly}; {} would take {} more time and {} less slot time",
            Share(idle),
            words::count(s.slots.into(), "slot"),
            Share(s.slower),
            Share(s.cheaper)
        ),
        None => format!("{} of the slot time was idle{mostly}", Share(idle)),
    };
    let draft = Draft::new("CLUSTER_IDLE", title)
        .severity(severity(hours, smaller.is_some()))
        .evidence("idle_share", idle, "share")
        .over(cx.config.idle_share)
        .seen_at("executors page")
        .evidence("idle_core_hours", hours, "core hours")
        .evidence("slots_average", cx.run.as_ref().map_or(0.0, |r| r.slots), "slots");
    let draft = parts.iter().filter(|p| p.ms > 0).fold(draft, |draft, p| {
        draft.evidence(&format!("{}_share", p.name.replace([' ', ','], "_")), p.ms as f64 / total as f64, "share")
    });
    with_remedies(cx, draft, smaller)
}

/// By what it costs: an hour of a core is little, ten are worth a look.
fn severity(idle_core_hours: f64, has_smaller: bool) -> Severity {
    match idle_core_hours {
        h if h >= 10.0 && has_smaller => Severity::Medium,
        h if h >= 1.0 => Severity::Low,
        _ => Severity::Info,
    }
}

struct Smaller {
    slots: u32,
    slower: f64,
    cheaper: f64,
}

/// The fewest slots that lose less than 5 % of the time.
fn smaller(cx: &Context<'_>) -> Option<Smaller> {
    let run = cx.run.as_ref()?;
    let whole = run.with_slots(1.0).max(1);
    let most = cx.slots.most();
    // Whole slots only: at most sixteen choices, of which the smallest good one is taken.
    let step = most.div_ceil(16).max(1) as usize;
    (1..most).step_by(step).find_map(|slots| {
        let factor = f64::from(slots) / f64::from(most);
        let slower = (run.with_slots(factor) as f64 / whole as f64 - 1.0).max(0.0);
        (slower < 0.05).then_some(Smaller { slots, slower, cheaper: 1.0 - factor * (1.0 + slower) })
    })
}

fn with_remedies(cx: &Context<'_>, draft: Draft, smaller: Option<Smaller>) -> Draft {
    let draft = match smaller {
        Some(s) => draft
            .evidence("slots_proposed", s.slots, "slots")
            .evidence("slower_share", s.slower, "share")
            .evidence("cheaper_share", s.cheaper, "share")
            .remedy(RemedyKind::Compute, format!("Run with {}", words::count(s.slots.into(), "slot")))
            .computed(format!("the recorded tasks played again on {}: {} longer, {} less slot time", words::count(s.slots.into(), "slot"), Share(s.slower), Share(s.cheaper))),
        None => draft.remedy(RemedyKind::Code, "Fewer slots would cost time here: give them work, by running independent jobs at the same time or by cutting the driver's share"),
    };
    let dynamic = cx.app.conf_bool("spark.dynamicAllocation.enabled", false);
    let draft = match dynamic {
        true => draft,
        false => draft
            .remedy(RemedyKind::Conf, "Or let Spark give executors back while they have nothing to do")
            .snippet("spark.dynamicAllocation.enabled true\nspark.dynamicAllocation.shuffleTracking.enabled true"),
    };
    draft.useless("more slots", "those that are there are idle most of the time").confirm("idle share of slots × time")
}
