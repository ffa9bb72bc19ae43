//! What a shuffle will do, as text: labelled lines and a bar for each number of partitions.

use super::text::paper::{Paper, Role, span};
use super::words;
use diagnose::shuffle::{Answer, LEAST_HEAP_BYTES, Outcome, Recorded, Risk, Shuffle};
use model::{Bytes, Count, Factor, Millis, Share};

/// For a terminal.
#[must_use]
pub fn shuffle_text(answer: &Answer<'_>, width: usize) -> String {
    let (given, o) = (answer.given, &answer.outcome);
    let mut paper = Paper::new(width);
    let mut line = |label: &str, value: String| {
        paper.flow(&[span(Role::Quiet, format!("  {label:<14}"))], &[span(Role::Plain, words::glued(&value))]);
    };
    if let Some(recorded) = answer.recorded {
        line("as it ran", as_it_ran(recorded));
    }
    line("partitions", partitions(answer));
    line("a task reads", reads(o));
    line("waves", waves(given, o));
    line("the stage", format!("takes {}, a usual task {}", Millis(o.stage_ms), Millis(o.task_ms)));
    line("waiting", waiting(given, o));
    line("memory", memory(given, o));
    line("adaptive", adaptive(given, o));
    paper.blank();
    let legend = "  Run time by number of partitions (█ all work, ░ only the slowest task)";
    paper.flow(&[], &[span(Role::Plain, legend)]);
    plot(&mut paper, answer);
    paper.blank();
    let (rate, fixed) = (bytes(given.bytes_per_second as i64), Millis(given.fixed_ms as i64));
    let times = format!(
        "Times: {rate} a second and core (--bytes-per-second), {fixed} for each task, and what a spill writes and reads back."
    );
    paper.flow(&[span(Role::Plain, "  ")], &[span(Role::Quiet, words::glued(&times))]);
    paper.finish()
}

/// Why a heap is too small for Spark to start, if it is.
#[must_use]
pub fn heap_too_small(given: &Shuffle) -> Option<String> {
    let heap = given.memory_per_core.saturating_mul(given.cores_per_executor.max(1));
    (heap < LEAST_HEAP_BYTES).then(|| {
        format!(
            "{} of {} make an executor heap of {}; Spark refuses to start below {}",
            plural(given.cores_per_executor, "core"),
            bytes(given.memory_per_core),
            bytes(heap),
            bytes(LEAST_HEAP_BYTES)
        )
    })
}

fn as_it_ran(recorded: &Recorded) -> String {
    let (wall, played) = (recorded.wall_ms, recorded.played_ms);
    let off = Share((played - wall).abs() as f64 / wall.max(1) as f64);
    format!(
        "{} in {} took {}; these rules give {}, {off} off",
        bytes(recorded.shuffle.bytes),
        plural(recorded.tasks, "task"),
        Millis(wall),
        Millis(played)
    )
}

fn plural(n: i64, what: &str) -> String {
    format!("{} {what}{}", count(n), if n == 1 { "" } else { "s" })
}

fn count(n: i64) -> Count {
    Count(n.max(0) as u64)
}

fn bytes(n: i64) -> Bytes {
    Bytes(n.max(0) as u64)
}

fn partitions(answer: &Answer<'_>) -> String {
    let (proposed, because) = (count(answer.proposed_partitions), &answer.proposed_because);
    match answer.outcome.partitions {
        chosen if chosen == answer.proposed_partitions => format!("{proposed} = {because}"),
        chosen => format!("{} as asked; proposed: {proposed} = {because}", count(chosen)),
    }
}

fn reads(o: &Outcome) -> String {
    match o.tasks {
        ..=1 => format!("{}: it is the only one", bytes(o.largest_bytes)),
        _ => format!("{}, the largest {}", bytes(o.task_bytes), bytes(o.largest_bytes)),
    }
}

fn waves(given: &Shuffle, o: &Outcome) -> String {
    format!("{} on {}: {}", plural(o.tasks, "task"), plural(given.cores, "slot"), plural(o.waves, "round"))
}

fn waiting(given: &Shuffle, o: &Outcome) -> String {
    if o.waiting_ms * 50 < o.stage_ms {
        return "hardly any: all tasks end together".to_owned();
    }
    let share = Share(o.waiting_ms as f64 / o.stage_ms.max(1) as f64);
    let idle = super::core_time(o.idle_core_ms);
    let largest = match o.largest_bytes as f64 / o.task_bytes.max(1) as f64 {
        ratio if ratio >= 1.2 => format!(", {} the usual one", Factor(ratio)),
        _ => String::new(),
    };
    let (waited, others) = (Millis(o.waiting_ms), plural(given.cores - 1, "slot"));
    format!("{waited} ({share}) for the slowest task{largest}; {others} idle, {idle}")
}

fn memory(given: &Shuffle, o: &Outcome) -> String {
    let m = o.memory;
    let verdict = match m.risk {
        Risk::None => "no spill".to_owned(),
        Risk::Tight => "tight, no spill".to_owned(),
        Risk::LargestSpills if m.spilling_tasks == 1 => "the largest task spills".to_owned(),
        Risk::LargestSpills => format!("{} of {} spill", count(m.spilling_tasks), plural(o.tasks, "task")),
        Risk::AllSpill => "every task spills".to_owned(),
    };
    let largest = match m.needed_by_largest > m.needed {
        true => format!(", {} by the largest", bytes(m.needed_by_largest)),
        false => String::new(),
    };
    format!(
        "{verdict}: {} for a task ((heap − 300 MiB) × {} ÷ cores), needed {}{largest} (shuffle × {:.1})",
        bytes(m.available),
        given.memory_fraction,
        bytes(m.needed),
        given.expansion
    )
}

fn adaptive(given: &Shuffle, o: &Outcome) -> String {
    if !given.adaptive {
        return match o.not_split_because {
            Some(_) => "off: the largest partition stays whole".to_owned(),
            None => "off".to_owned(),
        };
    }
    let mut said = Vec::new();
    if o.split_partitions > 0 {
        let most = match given.map_tasks {
            Some(tasks) => format!(", no more than the {} that wrote it", plural(tasks, "task")),
            None => ", if as many tasks wrote it: it is split between their outputs".to_owned(),
        };
        said.push(format!("splits the largest partition into {}{most}", plural(o.split_pieces, "piece")));
    }
    if o.merged_away > 0 {
        said.push(format!("merges {} into others", plural(o.merged_away, "small partition")));
    } else if !given.merging {
        said.push("merges nothing: spark.sql.adaptive.coalescePartitions.enabled is false, or the number was asked for by repartition(n)".to_owned());
    }
    if let Some(why) = &o.not_split_because {
        said.push(format!("does not split the largest partition: {why}"));
    } else if o.split_partitions == 0 {
        said.push(idle(given));
    }
    said.join("; ")
}

/// What adaptive execution would do about a skewed partition, where there is none.
fn idle(given: &Shuffle) -> String {
    match given.join && given.splitting {
        true => format!(
            "would split a partition over {} × the median and over {}",
            given.skew_factor,
            bytes(given.skew_threshold)
        ),
        false if given.join => "splits nothing: spark.sql.adaptive.skewJoin.enabled is false".to_owned(),
        false => "splits nothing: only joins are split".to_owned(),
    }
}

fn plot(paper: &mut Paper, answer: &Answer<'_>) {
    let longest = answer.others.iter().map(|o| o.stage_ms).max().unwrap_or(1).max(1);
    let room = paper.width().saturating_sub(46).clamp(8, 60) as f64;
    let part = |ms: i64| (ms as f64 * room / longest as f64) as usize;
    let ran = answer.recorded.map(|recorded| recorded.tasks);
    for o in &answer.others {
        let all = part(o.stage_ms).max(1);
        let waiting = part(o.waiting_ms).min(all);
        let bar = "█".repeat(all - waiting) + &"░".repeat(waiting);
        let mark = if o.partitions == answer.outcome.partitions { '→' } else { ' ' };
        let spill = match o.memory.risk {
            Risk::AllSpill | Risk::LargestSpills => ", spills",
            Risk::Tight | Risk::None => "",
        };
        let ran = if ran == Some(o.partitions) { ", as it ran" } else { "" };
        let number = count(o.partitions).to_string();
        let line = format!("{mark} {number:>9}  {bar} {}{spill}{ran}", Millis(o.stage_ms));
        paper.line(&[span(Role::Plain, line)]);
    }
}
