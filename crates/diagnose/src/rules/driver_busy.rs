//! DRIVER_BUSY: the driver alone takes much of the run in many short pieces (section 4.6).

use super::driver_gap;
use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::gaps::Gap;
use model::{Bytes, Metric, Millis, RemedyKind, Severity, Share};

/// What an application takes to end by itself, ms, at most.
const END_MS: i64 = 10_000;

/// Results from which collecting them is a likely reason, bytes.
const COLLECTED: i64 = 64 << 20;

/// Adds up the times without a task that are no gap of their own.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    let gaps = cx.gaps();
    if cx.wall_ms == 0 || cx.app.pasted.is_some() || gaps.is_empty() || driver_gap::is_interactive(cx, gaps) {
        return;
    }
    // Start-up is counted apart, and a moment after the last task is Spark's own end.
    let counts = |g: &Gap| !g.before_all && (!g.after_all || (g.ms() >= END_MS && cx.app.ended_ms.is_some()));
    let short: Vec<&Gap> = gaps
        .iter()
        .filter(|g| counts(g) && g.ms() <= cx.config.gap_ms && !driver_gap::is_trigger_wait(cx, g))
        .collect();
    let driver: i64 = short.iter().map(|g| g.ms()).sum();
    let share = driver as f64 / cx.wall_ms as f64;
    match share < cx.config.driver_busy_share {
        true => out.fine("driver", format!("{} of the run without a task, in short pieces", Share(share))),
        false => {
            let causes = sufficient_causes(out, driver);
            let looped = out.any(&["MANY_TINY_JOBS"]);
            out.push(draft(cx, &short, driver, share, looped).explained_anywhere_by(&causes));
        }
    }
}

/// Findings whose own time makes up half of the driver's or more: less explains nothing.
fn sufficient_causes(out: &Findings, driver_ms: i64) -> Vec<&'static str> {
    let spent = |id: &str| -> i64 {
        let of = out.drafts.iter().filter(|d| d.finding.id == id);
        of.filter_map(|d| d.finding.estimate.as_ref()).map(|e| e.saved_ms_high).sum()
    };
    let known = ["MANY_TINY_JOBS", "DELTA_LOG_HEAVY", "FILE_LISTING"];
    known.into_iter().filter(|id| spent(id) * 2 >= driver_ms).collect()
}

fn draft(cx: &Context<'_>, short: &[&Gap], driver: i64, share: f64, looped: bool) -> Draft {
    let jobs = cx.app.jobs.len();
    let longest = short.iter().map(|g| g.ms()).max().unwrap_or(0);
    let result: i64 = cx.stages.iter().map(|s| s.sum(Metric::ResultBytes)).sum();
    let pieces = match short.iter().find(|g| g.ms() * 2 >= driver) {
        Some(gap) => format!("{} of it {}", Millis(gap.ms()), driver_gap::place(cx, gap)),
        None => format!("in {} pieces of at most {}", short.len(), Millis(longest)),
    };
    let line = driver_gap::usual_line(cx, short);
    let before = line.as_ref().map(|l| format!(" that {l} starts")).unwrap_or_default();
    let title = format!("the driver alone takes {} of the run, {pieces}", Share(share));
    let severity = if share >= 0.5 || driver >= 60_000 { Severity::Medium } else { Severity::Low };
    let draft = Draft::new("DRIVER_BUSY", title)
        .severity(if driver >= 10_000 { severity } else { Severity::Info })
        .evidence("driver_share", share, "share")
        .over(cx.config.driver_busy_share)
        .seen_at("event timeline")
        .evidence("driver_ms", driver, "ms")
        .evidence("pieces", short.len(), "pieces")
        .evidence("longest_ms", longest, "ms")
        .evidence("jobs", jobs, "jobs")
        .evidence("result_bytes", result, "bytes")
        .not("a driver gap", format!("no piece is longer than {}", Millis(cx.config.gap_ms)));
    let draft = match looped {
        true => draft
            .remedy(RemedyKind::Code, "Ask one question over all items instead of one job each")
            .computed(format!("{jobs} jobs, {} of the driver's time a job", Millis(driver / jobs.max(1) as i64))),
        false if result >= COLLECTED => draft.remedy(
            RemedyKind::Code,
            format!(
                "Write results to a table instead of collecting them: {} were brought to the driver, which turns them into objects one by one",
                Bytes(result.unsigned_abs())
            ),
        ),
        false => draft.remedy(
            RemedyKind::Code,
            format!("See what runs before the jobs{before}: planning of long queries, single-threaded code, a wait, collected results"),
        ),
    };
    let mut draft = draft;
    draft.finding.scope.source_line = line;
    draft.useless("more executors", "they wait for the driver").confirm("share of the run without a running task")
}
