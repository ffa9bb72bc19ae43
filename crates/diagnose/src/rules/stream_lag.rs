//! STREAM_LAG: a streaming query falls behind its input (section 4.7 of the rules).

use crate::context::Context;
use crate::draft::{Draft, Findings};
use crate::report;
use crate::streams::{self, Stream, Trigger, trigger_ms};
use crate::words;
use model::{Batch, Confidence, Count, Factor, Millis, RemedyKind, Severity, Share, SourceProgress};

/// Fewer batches than this say nothing.
const LEAST: usize = 3;

/// Looks at every query.
pub fn check(cx: &Context<'_>, out: &mut Findings) {
    for stream in streams::all(cx) {
        match Lag::of(&stream, cx.config.stream_ratio) {
            Some(lag) => out.push(draft(cx, &stream, &lag)),
            None if stream.recent.len() >= LEAST => {
                out.fine("streaming", format!("query {} keeps up with its input", stream.name()))
            }
            None if cx.app.pasted.is_none() => out.unknown("streaming", too_few(&stream)),
            None => {}
        }
    }
}

/// What little is known of a query with too few batches to judge it.
fn too_few(stream: &Stream<'_>) -> String {
    let batches = stream.query.batches.len() as u64;
    let last = stream.query.batches.last().filter(|b| trigger_ms(b) > 0).map(|batch| {
        let longest = batch.phases.iter().filter(|(name, _)| &**name != "triggerExecution").max_by_key(|p| p.1);
        let share = |ms: i64| Share(ms as f64 / trigger_ms(batch) as f64);
        let most = longest.map(|(name, ms)| format!(", {} of it {name}", share(*ms))).unwrap_or_default();
        format!("; batch {} took {}{most}", batch.id, Millis(trigger_ms(batch)))
    });
    let told = words::count(batches, "progress event");
    format!("query {} has {told}, too few to judge it{}", stream.name(), last.unwrap_or_default())
}

struct Lag {
    batches: usize,
    /// Batches that took longer than the interval.
    over: Option<usize>,
    ratio: Option<f64>,
    /// Backlog of three batches in a row that grew.
    backlog: Option<[i64; 3]>,
    /// Backlog of the last batch, where offsets tell it.
    left: Option<i64>,
    /// Batches take about as long whatever their rows.
    fixed: Option<FixedCost>,
    first_ms: i64,
    last_ms: i64,
    median_ms: i64,
    last_id: i64,
}

/// Batches of many rows beside batches of few: median rows and time, ms, of each half.
#[derive(Clone, Copy)]
struct FixedCost {
    few: (i64, i64),
    many: (i64, i64),
}

impl FixedCost {
    /// `None` unless rows differ twofold between the halves and times by less than half of that.
    fn of(batches: &[&Batch]) -> Option<Self> {
        let mut by_rows: Vec<(i64, i64)> = batches.iter().map(|b| (b.input_rows, trigger_ms(b))).collect();
        if by_rows.len() < 6 {
            return None;
        }
        by_rows.sort_unstable();
        let (low, high) = by_rows.split_at(by_rows.len() / 2);
        let median = |half: &[(i64, i64)]| {
            let mut times: Vec<i64> = half.iter().map(|b| b.1).collect();
            times.sort_unstable();
            (half[half.len() / 2].0, times[times.len() / 2])
        };
        let (few, many) = (median(low), median(high));
        let rows = many.0 as f64 / few.0.max(1) as f64;
        let time = many.1 as f64 / few.1.max(1) as f64;
        (rows >= 2.0 && time - 1.0 < (rows - 1.0) / 2.0).then_some(Self { few, many })
    }
}

impl Lag {
    /// `None` when none of the three signs is there.
    fn of(stream: &Stream<'_>, limit: f64) -> Option<Self> {
        let recent = &stream.recent;
        if recent.len() < LEAST {
            return None;
        }
        let over = stream.trigger.map(|t| recent.iter().filter(|b| trigger_ms(b) > t.ms).count());
        let ratio = stream.median(|b| Some(b.input_rate? / b.process_rate.filter(|r| *r > 0.0)?));
        let backlog = growing_backlog(recent);
        let lags = over.is_some_and(|n| n * 2 >= recent.len()) || ratio.is_some_and(|r| r > limit) || backlog.is_some();
        let median_ms = stream.median(|b| Some(trigger_ms(b) as f64)).unwrap_or(0.0) as i64;
        let (first, last) = (recent.first()?, recent.last()?);
        lags.then_some(Self {
            batches: recent.len(),
            over,
            ratio,
            backlog,
            left: last_backlog(recent),
            fixed: FixedCost::of(&counted(stream)),
            first_ms: trigger_ms(first),
            last_ms: trigger_ms(last),
            median_ms,
            last_id: last.id,
        })
    }

    /// Throughput that is missing, as a factor of what there is.
    fn missing(&self, trigger: Option<Trigger>) -> Option<f64> {
        let by_rate = self.ratio.filter(|r| *r > 1.0);
        by_rate.or_else(|| trigger.map(|t| self.median_ms as f64 / t.ms as f64).filter(|r| *r > 1.0))
    }
}

/// The last four known backlogs, when each is larger than the one before: three growths.
fn growing_backlog(recent: &[&Batch]) -> Option<[i64; 3]> {
    let known: Vec<i64> = recent.iter().filter_map(|b| backlog(b)).collect();
    let [a, b, c, d] = *known.last_chunk::<4>()?;
    (a < b && b < c && c < d).then_some([b, c, d])
}

/// All batches with data but the first, which starts everything.
fn counted<'a>(stream: &Stream<'a>) -> Vec<&'a Batch> {
    let all = stream.query.batches.iter().skip(1);
    all.filter(|b| b.input_rows > 0 && trigger_ms(b) > 0).collect()
}

fn last_backlog(recent: &[&Batch]) -> Option<i64> {
    recent.iter().rev().find_map(|b| backlog(b))
}

fn backlog(batch: &Batch) -> Option<i64> {
    let of = |s: &SourceProgress| Some(offset(s.latest_offset.as_deref()?)? - offset(s.end_offset.as_deref()?)?);
    batch.sources.iter().map(of).try_fold(0, |sum, n| Some(sum + n?)).filter(|_| !batch.sources.is_empty())
}

/// An offset as one number: a plain one, or the sum over Kafka's `{"topic":{"0":17,"1":18}}`.
/// Other shapes (file sources, Delta) do not count rows.
fn offset(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let (mut depth, mut sum, mut any) = (0, 0, false);
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}', ':']) {
        let after = &rest[at + 1..];
        match rest.as_bytes()[at] {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {
                let digits = after.trim_start();
                let end = digits.find([',', '}', '{']).unwrap_or(digits.len());
                match (depth, digits[..end].trim().parse::<i64>()) {
                    (2, Ok(number)) => (sum, any) = (sum + number, true),
                    (1, Err(_)) if digits.starts_with('{') => {}
                    _ => return None,
                }
            }
        }
        rest = after;
    }
    any.then_some(sum)
}

/// The longest phase, with its share of the whole.
fn dominant(stream: &Stream<'_>) -> Option<(String, f64)> {
    let total: i64 = stream.recent.iter().map(|b| trigger_ms(b)).sum();
    let names = stream.recent.last()?.phases.iter().map(|(n, _)| n).filter(|n| &***n != "triggerExecution");
    let time = |name: &str| stream.recent.iter().filter_map(|b| b.phase_ms(name)).sum::<i64>();
    let longest = names.max_by_key(|n| time(n))?;
    Some((longest.to_string(), time(longest) as f64 / total.max(1) as f64))
}

fn draft(cx: &Context<'_>, stream: &Stream<'_>, lag: &Lag) -> Draft {
    let draft = Draft::new("STREAM_LAG", title(stream, lag)).at_least(severity(cx, stream, lag));
    let draft = stream
        .place(draft)
        .evidence("batches", lag.batches, "batches")
        .seen_at(format!("query {}", stream.name()))
        .evidence("batch_ms_median", lag.median_ms, "ms")
        .evidence("growth_of_batch", format!("{} s -> {} s", lag.first_ms / 1_000, lag.last_ms / 1_000), "")
        .evidence("batch_ms_last", lag.last_ms, "ms")
        .evidence("last_batch", lag.last_id, "");
    let draft = match lag.left {
        Some(rows) if lag.backlog.is_none() => draft.evidence("backlog", rows, "rows"),
        _ => draft,
    };
    let draft = with_signs(cx, draft, stream, lag);
    with_remedies(draft, stream, lag)
}

fn title(stream: &Stream<'_>, lag: &Lag) -> String {
    let name = stream.name();
    match (stream.trigger, lag.over, lag.ratio) {
        (Some(t), Some(over), _) if over * 2 >= lag.batches => {
            format!(
                "query {name} falls behind: {over} of the last {} batches took longer than the trigger interval of {}",
                lag.batches,
                Millis(t.ms)
            )
        }
        (_, _, Some(ratio)) if ratio > 1.0 && lag.left == Some(0) => format!(
            "query {name} has no time to spare: a batch takes {ratio:.2} times as long as its rows took to arrive, though no backlog is left so far"
        ),
        (_, _, Some(ratio)) if ratio > 1.0 => {
            format!("query {name} falls behind: rows arrive {} as fast as they are processed", Factor(ratio))
        }
        _ => format!("query {name} falls behind: its backlog grew from batch to batch"),
    }
}

/// By the time of a batch that is too much; falling behind is never small.
fn severity(cx: &Context<'_>, stream: &Stream<'_>, lag: &Lag) -> Severity {
    let missing = lag.missing(stream.trigger).unwrap_or(1.0);
    let excess = lag.median_ms as f64 * (1.0 - 1.0 / missing);
    report::severity(cx.config, excess as i64, lag.median_ms).max(Severity::Medium)
}

fn with_signs(cx: &Context<'_>, mut draft: Draft, stream: &Stream<'_>, lag: &Lag) -> Draft {
    if let Some(ratio) = lag.ratio {
        draft = draft.evidence("input_over_process", ratio, "ratio").over(cx.config.stream_ratio);
    }
    match (stream.trigger, lag.over) {
        (Some(trigger), Some(over)) => {
            draft = draft.evidence("batches_over_trigger", format!("{over} of {}", lag.batches), "").evidence(
                "trigger_ms",
                trigger.ms,
                "ms",
            );
            if trigger.inferred {
                draft = draft.sure(
                    Confidence::Medium,
                    "the trigger interval is not in the log; it was read from the times at which batches begin",
                );
            }
        }
        _ => {
            draft = draft.evidence("batches_at_once", format!("{} of {}", stream.at_once, stream.pairs), "").sure(
                Confidence::Medium,
                "the trigger interval is not in the log and no batch waited for it, so only the rates tell",
            );
        }
    }
    if let Some([a, _, c]) = lag.backlog {
        draft = draft.evidence("backlog", c, "rows").evidence("backlog_before", a, "rows");
    }
    if let Some((phase, share)) = dominant(stream) {
        draft = draft.evidence("dominant_phase", format!("{phase} {:.0} %", share * 100.0), "").evidence(
            "dominant_phase_share",
            share,
            "share",
        );
    }
    draft
}

fn with_remedies(draft: Draft, stream: &Stream<'_>, lag: &Lag) -> Draft {
    let batch_name = format!("batch {}", lag.last_id);
    let draft = draft
        .not(
            "the first batch after a start",
            format!("it is left out; {batch_name} is the latest of {} counted", lag.batches),
        )
        .confirm("triggerExecution against the interval, and inputRowsPerSecond against processedRowsPerSecond");
    match lag.fixed {
        Some(fixed) => of_fixed_cost(draft, stream, lag, fixed),
        None => of_throughput(draft, stream, lag),
    }
}

/// A batch takes its time whatever it holds: fewer, larger batches, or less to do for each.
fn of_fixed_cost(draft: Draft, stream: &Stream<'_>, lag: &Lag, fixed: FixedCost) -> Draft {
    let size = |(rows, ms): (i64, i64)| format!("{} rows take {}", Count(rows.unsigned_abs()), Millis(ms));
    let because = format!("batches of {}, of {}", size(fixed.few), size(fixed.many));
    let double = (lag.median_ms as f64 * 2.0 / 1_000.0).ceil() as i64;
    draft
        .evidence("rows_of_small_batches", fixed.few.0, "rows")
        .evidence("ms_of_small_batches", fixed.few.1, "ms")
        .evidence("rows_of_large_batches", fixed.many.0, "rows")
        .evidence("ms_of_large_batches", fixed.many.1, "ms")
        .remedy(
            RemedyKind::Code,
            format!(
                "Most of a batch is a fixed cost ({because}): trigger less often, so that a batch carries more rows"
            ),
        )
        .snippet(format!(".trigger(processingTime=\"{double} seconds\")"))
        .computed(format!("twice the median batch of {}", Millis(lag.median_ms)))
        .remedy(
            RemedyKind::Code,
            format!("Make a batch cheaper: fewer stages and state partitions; {}", phase_remedy(stream, lag)),
        )
        .useless("more slots", format!("time does not follow the rows: {because}"))
        .useless("maxOffsetsPerTrigger (or maxFilesPerTrigger)", "smaller batches pay the fixed cost more often")
}

fn of_throughput(mut draft: Draft, stream: &Stream<'_>, lag: &Lag) -> Draft {
    if let Some(missing) = lag.missing(stream.trigger) {
        let percent = Share(missing - 1.0);
        draft = draft
            .evidence("throughput_missing_share", missing - 1.0, "share")
            .remedy(
                RemedyKind::Code,
                format!(
                    "{percent} more throughput is needed {}; {}",
                    if lag.left == Some(0) { "to keep up for good" } else { "just to stop falling behind" },
                    phase_remedy(stream, lag)
                ),
            )
            .computed(match lag.ratio {
                Some(r) if r > 1.0 => format!("rows arriving / rows processed = {r:.2}"),
                _ => format!("median batch {} / interval", Millis(lag.median_ms)),
            });
    } else {
        draft = draft.remedy(RemedyKind::Code, phase_remedy(stream, lag));
    }
    draft
        .remedy(RemedyKind::Compute, "More slots help while the stages of a batch have more tasks than slots; read from more partitions at the source if they have fewer")
        .useless("maxOffsetsPerTrigger (or maxFilesPerTrigger)", "it bounds a batch, it does not raise throughput: the rest waits at the source")
        .useless("a longer trigger interval", "an overrun starts the next batch at once; a batch of more rows takes longer")
}

/// What to look at, by the phase that takes the time.
fn phase_remedy(stream: &Stream<'_>, lag: &Lag) -> String {
    let phase = dominant(stream).map(|d| d.0).unwrap_or_default();
    match phase.as_str() {
        "latestOffset" | "getBatch" | "getOffset" => {
            "listing the source takes the time: fewer files in its folder, or notifications instead of listing"
                .to_owned()
        }
        "queryPlanning" => {
            "planning takes the time: shorten the plan, and the log of the tables that it reads".to_owned()
        }
        "walCommit" | "commitOffsets" | "commitBatch" => {
            "the checkpoint takes the time: put it on faster storage".to_owned()
        }
        _ => format!("look at the stages of batch {}", lag.last_id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_fixed_cost_takes_its_time_whatever_it_holds() {
        let batch = |(rows, ms): &(i64, i64)| Batch {
            input_rows: *rows,
            phases: vec![("triggerExecution".into(), *ms)],
            ..Batch::default()
        };
        let is_fixed = |all: &[(i64, i64)]| {
            let batches: Vec<Batch> = all.iter().map(batch).collect();
            FixedCost::of(&batches.iter().collect::<Vec<_>>()).is_some()
        };
        assert!(is_fixed(&[(50, 1_800), (100, 5_000), (150, 2_000), (300, 2_200), (450, 5_300), (500, 2_100)]));
        assert!(!is_fixed(&[(50, 500), (100, 1_000), (150, 1_500), (300, 3_000), (450, 4_500), (500, 5_000)]));
        assert!(!is_fixed(&[(50, 500), (100, 1_000)]));
    }

    #[test]
    fn offsets_count_rows_only_where_they_are_numbers_of_rows() {
        for (text, number) in [
            ("42", Some(42)),
            (r#"{"orders":{"0":10,"1":5}}"#, Some(15)),
            (r#"{"a":{"0":1},"b":{"0":2}}"#, Some(3)),
            (r#"{"logOffset":3}"#, None),
            (r#"{"reservoirVersion":7,"index":-1}"#, None),
            ("", None),
        ] {
            assert_eq!(offset(text), number, "{text}");
        }
    }
}
