//! Tests of the rules on stages, on small made-up applications.

use crate::testing::{T, number, pasted, t, world};
use model::{Confidence, Exchange, ExchangeOrigin, Metric, Operator, Partitioning, Severity, TaskStatus};

const MB: i64 = 1_000_000;

/// `n` tasks of `ms` with 10 MB each, the last one with these times as much of both.
fn uneven(n: usize, ms: i64, times: f64, bytes_times: f64) -> Vec<T> {
    let mut tasks: Vec<T> = (0..n - 1).map(|_| t(ms).read(10 * MB, 100_000)).collect();
    tasks.push(
        t((ms as f64 * times) as i64).read((10.0 * MB as f64 * bytes_times) as i64, (100_000.0 * bytes_times) as i64),
    );
    tasks
}

#[test]
fn key_skew_begins_at_one_and_a_half_times_the_75th_percentile() {
    for (times, bytes_times, found) in [
        (1.49, 4.0, false),
        (1.5, 4.0, true),
        (1.51, 4.0, true),
        (4.0, 1.49, false),
        (4.0, 1.5, true),
        (4.0, 1.51, true),
    ] {
        // One wave, so that the excess is a good part of the stage.
        let mut w = world(8, 1);
        w.stage(&uneven(8, 10_000, times, bytes_times));
        assert_eq!(w.has("SKEW_KEY"), found, "{times} {bytes_times}");
    }
}

#[test]
fn small_stages_few_tasks_and_small_minima_are_no_skew() {
    let found = |tasks: &[T], wait| {
        let mut w = world(8, 1);
        w.stage(tasks);
        w.wait(wait).ids()
    };
    // Shorter than a second.
    assert!(found(&uneven(8, 100, 8.0, 8.0), 0).is_empty());
    // Three tasks only.
    assert!(!found(&uneven(3, 10_000, 5.0, 5.0), 0).contains(&"SKEW_KEY".to_owned()));
    // Less than a hundredth of the run.
    assert!(!found(&uneven(8, 1_000, 3.0, 3.0), 1_000_000).contains(&"SKEW_KEY".to_owned()));
    // Bytes below a megabyte and few records.
    let tiny: Vec<T> =
        (0..8).map(|i| t(if i == 7 { 20_000 } else { 2_000 }).read(if i == 7 { 900 } else { 30 }, 10)).collect();
    assert!(!found(&tiny, 0).contains(&"SKEW_KEY".to_owned()));
    // A small minimum.
    let mut tasks = uneven(8, 10_000, 1.0, 1.0);
    tasks[0] = t(10).read(100, 1);
    assert!(found(&tasks, 0).is_empty());
}

#[test]
fn of_few_tasks_the_heavy_ones_are_measured_against_the_median() {
    // Milliseconds and megabytes of each task: of four the 75th percentile is the largest itself,
    // of eight with two heavy ones it is the smaller of these.
    for (tasks, found) in [
        (vec![(5_000, 60), (5_000, 60), (6_000, 60), (15_000, 190)], true),
        (vec![(5_000, 60), (5_000, 60), (6_000, 60), (15_000, 80)], false),
        (vec![(5_000, 60), (5_000, 60), (6_000, 100), (8_000, 150)], false),
        (vec![(5_000, 60); 6].into_iter().chain([(14_000, 160), (15_000, 190)]).collect(), true),
        (vec![(5_000, 60); 4].into_iter().chain([(14_000, 160); 4]).collect(), false),
    ] {
        let mut w = world(8, 1);
        let rows: Vec<T> = tasks.iter().map(|&(ms, mb)| t(ms).read(mb * MB, mb * 10_000)).collect();
        w.stage(&rows);
        assert_eq!(w.has("SKEW_KEY"), found, "{tasks:?}");
    }
}

#[test]
fn a_slow_task_with_normal_data_is_a_straggler_and_no_skew() {
    let mut w = world(4, 1);
    w.stage(&uneven(16, 3_000, 1.0, 1.0));
    let mut tasks = uneven(16, 3_000, 10.0, 1.0);
    tasks.rotate_right(6);
    w.stage(&tasks);
    let straggler = w.find("STRAGGLER_TASK");
    assert!(!w.has("SKEW_KEY") && !w.has("STRAGGLER_NODE"));
    assert!(straggler.will_not_help.iter().any(|h| h.what.contains("salting")));
    assert!(straggler.remedies.iter().all(|r| !r.text.to_lowercase().contains("salt")));
    assert_eq!(number(&straggler, "task_duration_ms"), 30_000.0);
}

#[test]
fn the_first_wave_of_a_stage_on_a_young_executor_is_no_straggler() {
    let mut tasks = uneven(40, 1_500, 12.0, 1.0);
    tasks.rotate_right(1);
    let mut w = world(2, 1);
    w.stage(&tasks);
    assert!(!w.has("STRAGGLER_TASK") && !w.has("SKEW_KEY"));
}

#[test]
fn an_executor_that_is_slow_at_the_same_time_as_others_are_not() {
    let tasks: Vec<T> = (0..40).map(|i| t(if i % 4 == 0 { 9_000 } else { 2_000 }).read(10 * MB, 1).on(i % 4)).collect();
    let mut w = world(4, 1);
    w.stage(&tasks);
    let slow = w.find("STRAGGLER_NODE");
    assert_eq!(slow.scope.executor.as_deref(), Some("0"));
    assert_eq!(number(&slow, "executor_median_duration_ms"), 9_000.0);
    assert!(slow.estimate.is_some_and(|e| e.saved_ms > 15_000));
    // The same times, but the slow executor has more data: no slow executor.
    let tasks: Vec<T> =
        tasks.into_iter().map(|t| if t.ms > 5_000 { t.with(Metric::LocalBytesRead, 45 * MB) } else { t }).collect();
    let mut w = world(4, 1);
    w.stage(&tasks);
    assert!(!w.has("STRAGGLER_NODE"));
}

#[test]
fn tasks_that_run_again_after_a_loss_are_a_tail_and_no_skew() {
    let mut tasks: Vec<T> = (0..12).map(|_| t(5_000).read(10 * MB, 1)).collect();
    tasks.push(T { status: TaskStatus::Failed, ..t(4_000) });
    let mut w = world(4, 1);
    w.stage(&tasks);
    w.again(&[t(14_000).read(10 * MB, 1).attempt(1), t(14_000).read(10 * MB, 1).attempt(1)]);
    let tail = w.find("RETRY_TAIL");
    assert_eq!(number(&tail, "tasks_run_again"), 2.0);
    assert!(!w.has("SKEW_KEY") && !w.has("STRAGGLER_TASK"));
}

#[test]
fn null_keys_are_named_where_they_can_be() {
    let skewed = uneven(16, 3_000, 10.0, 20.0);
    for (kind, left, right, filter, found) in [
        ("LeftOuter", 350 * MB, 2 * MB, None, true),
        ("LeftAnti", 350 * MB, 2 * MB, None, true),
        ("FullOuter", 350 * MB, 2 * MB, None, true),
        ("RightOuter", 2 * MB, 350 * MB, None, true),
        ("Inner", 350 * MB, 2 * MB, None, false),
        ("LeftSemi", 350 * MB, 2 * MB, None, false),
        // Spark itself drops NULLs of the left side here, and the heavy side is the left one.
        ("RightOuter", 350 * MB, 2 * MB, None, false),
        ("LeftOuter", 350 * MB, 2 * MB, Some("isnotnull(coupon#3)"), false),
        ("LeftOuter", 350 * MB, 2 * MB, Some("(coupon#3 > 17)"), false),
        // The left side is too small to hold what the heavy task reads.
        ("LeftOuter", 2 * MB, 350 * MB, None, false),
    ] {
        let mut w = world(16, 1);
        w.stage(&skewed);
        w.join(kind, &["coupon"], left, right, filter);
        assert_eq!(w.has("SKEW_NULL_KEY"), found, "{kind} {left} {filter:?}");
        assert!(w.has("SKEW_KEY"), "{kind}");
        if found {
            let null = w.find("SKEW_NULL_KEY");
            assert!(null.title.contains("coupon") && null.confidence < Confidence::High);
            assert!(null.caused_by.is_none() && w.find("SKEW_KEY").caused_by.is_some());
        }
    }
}

#[test]
fn the_reason_why_adaptive_execution_did_not_split() {
    let mb = 1 << 20;
    let skewed = |heavy: i64, other: i64| -> Vec<T> {
        let mut tasks: Vec<T> = (0..15).map(|_| t(3_000).read(other, 1_000)).collect();
        tasks.push(t(40_000).read(heavy, 9_000));
        tasks
    };
    for (kind, heavy, other, conf, said) in [
        ("Inner", 200 * mb, 6 * mb, None, "below the 256 MiB threshold"),
        ("Inner", 300 * mb, 100 * mb, None, "is not above 5 x the median"),
        ("Inner", 300 * mb, 10 * mb, Some(("spark.sql.adaptive.enabled", "false")), "adaptive execution is off"),
        ("Inner", 300 * mb, 10 * mb, Some(("spark.sql.adaptive.skewJoin.enabled", "false")), "skew handling is off"),
        ("FullOuter", 300 * mb, 10 * mb, None, "allows neither side"),
        ("RightOuter", 300 * mb, 10 * mb, None, "does not allow to split"),
        ("Inner", 300 * mb, 10 * mb, None, "what was read does not tell why"),
    ] {
        let mut w = world(16, 1);
        w.stage(&skewed(heavy, other));
        w.join(kind, &["k"], heavy + 15 * other, mb, None);
        if let Some((key, value)) = conf {
            w = w.conf(key, value);
        }
        let missed = w.find("SKEW_AQE_MISSED");
        assert!(missed.title.contains(said), "{kind}: {}", missed.title);
        assert!(missed.caused_by.is_some());
        assert!(missed.remedies.iter().all(|r| !r.text.contains("raise")));
    }
    let mut w = world(16, 1);
    w.stage(&skewed(200 * mb, 6 * mb));
    w.join("Inner", &["k"], 290 * mb, mb, None);
    let snippet = w.find("SKEW_AQE_MISSED").remedies[0].snippet.clone().unwrap_or_default();
    assert!(snippet.contains("skewedPartitionThresholdInBytes = 64MB"), "{snippet}");
}

#[test]
fn rows_that_multiply_are_told_from_skew() {
    let mut tasks: Vec<T> =
        (0..15).map(|_| t(2_000).read(10 * MB, 1).with(Metric::ShuffleRecordsWritten, 1_000)).collect();
    tasks.push(t(40_000).read(12 * MB, 1).with(Metric::ShuffleRecordsWritten, 5_000_000));
    let mut w = world(16, 1);
    w.stage(&tasks);
    w.join("Inner", &["k"], 160 * MB, MB, None);
    assert!(w.has("SKEW_EXPLODE") && !w.has("SKEW_KEY") && !w.has("STRAGGLER_TASK"));
}

#[test]
fn uneven_input_and_uneven_output() {
    let mut tasks: Vec<T> = (0..11).map(|_| t(3_000).with(Metric::InputBytes, 60 * MB)).collect();
    tasks.push(t(60_000).with(Metric::InputBytes, 900 * MB));
    let mut w = world(12, 1);
    w.stage(&tasks);
    assert!(w.has("SKEW_INPUT") && !w.has("SKEW_KEY"));
    let mut tasks: Vec<T> = (0..30).map(|_| t(200)).collect();
    for task in &mut tasks[..2] {
        *task = t(60_000).with(Metric::OutputBytes, 400 * MB).with(Metric::OutputRecords, 1_000_000);
    }
    let mut w = world(12, 1);
    w.stage(&tasks);
    let write = w.find("SKEW_WRITE");
    assert!(write.remedies.iter().any(|r| r.snippet.as_deref().is_some_and(|s| s.contains("REBALANCE"))));
    assert!(write.will_not_help.iter().any(|h| h.what.contains("COALESCE")));
}

#[test]
fn collection_counts_from_ten_per_cent_on() {
    for (share, found) in [(99, false), (100, false), (101, true)] {
        let tasks: Vec<T> = (0..16).map(|_| t(10_000).with(Metric::GcMs, 10 * share)).collect();
        let mut w = world(4, 1);
        w.stage(&tasks);
        assert_eq!(w.has("GC_PRESSURE"), found, "{share} per mille");
    }
    // In a stage that hardly ran, as in the listing of files.
    let tasks: Vec<T> = (0..60).map(|_| t(30).with(Metric::GcMs, 29)).collect();
    let mut w = world(4, 1);
    w.stage(&tasks);
    assert!(!w.wait(200_000).has("GC_PRESSURE"));
}

#[test]
fn severity_of_collection_follows_its_share() {
    for (gc, severity) in [(1_500, Severity::Medium), (3_000, Severity::High)] {
        let tasks: Vec<T> = (0..16).map(|_| t(10_000).with(Metric::GcMs, gc)).collect();
        let mut w = world(4, 1);
        w.stage(&tasks);
        assert!(w.find("GC_PRESSURE").severity >= severity, "{gc}");
    }
}

#[test]
fn even_spill_wants_more_partitions_and_not_more_workers() {
    let spill = |disk: i64, memory: i64| {
        t(12_000)
            .read(30 * MB, 1)
            .with(Metric::DiskSpillBytes, disk)
            .with(Metric::MemorySpillBytes, memory)
            .with(Metric::PeakExecutionBytes, 36 * MB)
    };
    let mut w = world(2, 1);
    w.stage(&(0..4).map(|_| spill(22 * MB, 27 * MB)).collect::<Vec<_>>());
    let even = w.find("SPILL_EVEN");
    // 4 × (36 + 27) / 36 = 7, to a multiple of two slots.
    assert_eq!(number(&even, "partitions_proposed"), 8.0);
    assert_eq!(number(&even, "spill_disk_total_bytes"), 88.0 * MB as f64);
    assert!(even.severity >= Severity::Medium);
    assert!(even.will_not_help.iter().any(|h| h.what.contains("more workers of the same type")));
    // Memory and disk are one thing measured twice: nothing shows their sum.
    assert!(even.evidence.iter().all(|e| e.value != model::Value::Int(4 * 49 * MB)));
}

#[test]
fn a_low_memory_fraction_comes_before_everything_else() {
    let task = t(12_000)
        .read(30 * MB, 1)
        .with(Metric::DiskSpillBytes, 22 * MB)
        .with(Metric::MemorySpillBytes, 27 * MB)
        .with(Metric::PeakExecutionBytes, 36 * MB);
    let first = |fraction: &str| {
        let mut w = world(2, 1).conf("spark.memory.fraction", fraction);
        w.stage(&vec![task.clone(); 4]);
        w.find("SPILL_EVEN").remedies[0].text.clone()
    };
    // (1024 - 300) MiB × 0.05 is 36.2 MiB a slot; 36.2 × (36 + 27) / 36 are needed.
    let low = first("0.05");
    assert!(low.starts_with("spark.memory.fraction is 0.05 (default 0.6)") && low.contains("434 MiB"), "{low}");
    assert!(!first("0.6").contains("fraction"));
}

#[test]
fn the_spill_of_one_heavy_task_is_its_skew() {
    let mut tasks = uneven(16, 2_000, 10.0, 20.0);
    tasks[15] = tasks[15].clone().with(Metric::DiskSpillBytes, 60 * MB).with(Metric::MemorySpillBytes, 80 * MB);
    let mut w = world(16, 1);
    w.stage(&tasks);
    let spill = w.find("SPILL_SKEW");
    let report = w.report();
    let cause = spill.caused_by.map(|c| report.findings[c].id.clone());
    assert_eq!(cause.as_deref(), Some("SKEW_KEY"));
    for wrong in ["fewer partitions", "more memory"] {
        assert!(spill.will_not_help.iter().any(|h| h.what == wrong), "{wrong}");
    }
}

#[test]
fn no_spill_and_no_collection_are_said_to_be_fine() {
    let mut w = world(4, 1);
    w.stage(&uneven(16, 3_000, 1.0, 1.0));
    let report = w.report();
    assert!(report.findings.iter().all(|f| f.severity == Severity::Info), "{:?}", w.ids());
    for what in ["spill", "garbage collection", "key skew", "slow executors", "stragglers"] {
        assert!(report.checked.iter().any(|c| c.what == what), "{what}");
    }
}

#[test]
fn a_fixed_number_of_partitions_starves_the_slots() {
    let mut w = world(4, 1);
    w.stage(&[t(240_000).read(5_000 * MB, 1), t(280_000).read(5_000 * MB, 1)]);
    let exchange = Exchange {
        partitioning: Partitioning::RoundRobin,
        partitions: Some(2),
        origin: ExchangeOrigin::RepartitionByNumber,
        ..Exchange::default()
    };
    w.reads("WriteFiles", Operator::Write { command: "x".to_owned(), target: None }, exchange);
    let low = w.find("LOW_PARALLELISM");
    assert!(
        low.title.starts_with("two tasks for four slots because of repartition(2); 76 partitions save about"),
        "{}",
        low.title
    );
    assert!(!w.has("SKEW_KEY"));
    // Little data: worth a note only.
    let mut w = world(4, 1);
    w.stage(&[t(20_000).read(5 * MB, 1)]);
    assert!(w.ids().is_empty(), "{:?}", w.ids());
    // Little data that one task works on for long, because somebody asked for one task.
    let mut w = world(4, 1);
    w.stage(&[t(20_000).read(5 * MB, 1)]);
    w.reads("Coalesce", Operator::Coalesce { partitions: Some(1) }, Exchange::default());
    let low = w.find("LOW_PARALLELISM");
    assert!(low.title.starts_with("one task for four slots because of coalesce(1)"), "{}", low.title);
}

#[test]
fn slots_that_other_stages_use_are_not_idle() {
    let mut w = world(4, 1);
    w.stage(&[t(100_000).read(400 * MB, 1)]);
    w.app.stages[1].jobs = vec![1];
    assert!(w.has("LOW_PARALLELISM"));
    // The same three slots busy with another stage at the same time.
    let mut other = w.app.stages[1].clone();
    other.id = 2;
    for executor in 1..4_u32 {
        let mut row = model::TaskRow::new(1_000 + i64::from(executor));
        row.executor = executor;
        row.set(Metric::LaunchMs, 60_000).set(Metric::FinishMs, 160_000).set(Metric::RunMs, 100_000);
        other.tasks.push(row);
    }
    w.app.stages.push(other);
    let lows: Vec<_> =
        w.report().findings.into_iter().filter(|f| f.id == "LOW_PARALLELISM" && f.scope.stage == Some(1)).collect();
    assert!(lows.is_empty());
}

#[test]
fn one_partition_for_all_rows() {
    let window = |partition_by: Vec<String>| Operator::Window { partition_by, order_by: vec!["ts".to_owned()] };
    let single = || Exchange { partitioning: Partitioning::Single, ..Exchange::default() };
    let mut w = world(4, 1);
    w.stage(&[t(90_000).read(300 * MB, 5_000_000)]);
    w.reads("Window", window(Vec::new()), single());
    let found = w.find("SINGLE_PARTITION");
    assert!(found.title.contains("PARTITION BY") && !w.has("LOW_PARALLELISM"));
    // A last total: as many rows as tasks before it.
    let mut w = world(4, 1);
    w.stage(&[t(20_000).read(1_000, 4)]);
    w.app.stages[1].parents = vec![0];
    w.reads("HashAggregate", Operator::Aggregate(model::Aggregate::default()), single());
    assert!(!w.has("SINGLE_PARTITION") && !w.has("LOW_PARALLELISM"));
}

#[test]
fn big_partitions_in_two_steps() {
    let gib = 1 << 30;
    for (bytes, severity) in [(gib, None), (2 * gib, Some(Severity::Medium)), (6 * gib, Some(Severity::High))] {
        let mut w = world(4, 1);
        w.stage(&(0..8).map(|_| t(50_000).read(bytes, 1)).collect::<Vec<_>>());
        let found = w.report().findings.into_iter().find(|f| f.id == "BIG_PARTITION").map(|f| f.severity);
        assert_eq!(found, severity, "{bytes}");
    }
}

#[test]
fn tiny_tasks_by_their_own_work_and_overhead() {
    let task = |run: i64, rest: i64| t(run + rest).read(200, 3).with(Metric::RunMs, run);
    for (n, run, rest, found) in
        [(400, 60, 120, true), (400, 60, 10, false), (7, 60, 1_200, false), (400, 600, 700, false)]
    {
        let mut w = world(2, 1);
        w.stage(&vec![task(run, rest); n]);
        assert_eq!(w.has("TINY_TASKS"), found, "{n} {run} {rest}");
    }
}

#[test]
fn a_loop_of_small_jobs() {
    for (jobs, ms, found) in [(60, 100, true), (49, 100, false), (60, 1_100, false)] {
        let mut w = world(2, 1);
        for _ in 0..jobs {
            w.stage(&[t(ms)]);
            w.app.jobs.last_mut().expect("a job").call_site = Some("count at loop.py:7".into());
            w = w.wait(300);
        }
        assert_eq!(w.has("MANY_TINY_JOBS"), found, "{jobs} {ms}");
    }
}

#[test]
fn waiting_to_start_and_waiting_for_slots() {
    let mut w = world(2, 1);
    w.stage(&vec![t(4_000).with(Metric::RunMs, 2_000); 12]);
    assert!(w.has("SCHED_WAIT"));
    let mut w = world(2, 1);
    w.stage(&vec![t(4_000); 12]);
    assert!(!w.has("SCHED_WAIT"));
}

#[test]
fn a_heap_that_is_too_large_or_too_full() {
    let with_peak = |share: f64, gc: i64| {
        let mut w = world(2, 1).conf("spark.executor.memory", "8g");
        w.stage(&vec![t(20_000).with(Metric::GcMs, gc); 4]);
        for executor in &mut w.app.executors {
            executor.peaks.push(("JVMHeapMemory".into(), ((8_i64 << 30) as f64 * share) as i64));
        }
        w
    };
    assert_eq!(with_peak(0.3, 0).find("MEM_SIZE").severity, Severity::Info);
    // What spills or collects too much is not to get a smaller heap.
    assert!(!with_peak(0.3, 5_000).has("MEM_SIZE"));
    assert!(!with_peak(0.98, 10).has("MEM_SIZE"));
    assert_eq!(with_peak(0.98, 5_000).find("MEM_SIZE").severity, Severity::Medium);
}

#[test]
fn a_pasted_stage_with_null_keys() {
    let mut app = pasted(
        20,
        487_000,
        20.0,
        &[
            (Metric::DurationMs, [24_000, 28_000, 30_000, 31_000, 480_000]),
            (Metric::ShuffleReadBytes, [11_200_000, 12_100_000, 12_600_000, 13_000_000, 168_000_000]),
            (Metric::ShuffleRecordsRead, [290_000, 312_000, 320_000, 330_000, 4_260_000]),
            (Metric::GcMs, [100, 140, 180, 210, 2_900]),
        ],
    );
    if let Some(p) = &mut app.stages[0].pasted {
        p.node = Some("SortMergeJoin [order_key#12], [order_key#40], LeftOuter".to_owned());
        p.null_share = Some(0.4);
        p.aqe = Some(true);
        p.aqe_skew_join = Some(true);
        p.peers_on_executor_ms = Some(30_100);
    }
    let report = crate::diagnose(&app, &crate::Config::default());
    let ids: Vec<&str> = report.findings.iter().map(|f| f.id.as_str()).collect();
    assert_eq!(ids, ["SKEW_NULL_KEY", "SKEW_KEY", "SKEW_AQE_MISSED"]);
    let null = &report.findings[0];
    assert!((number(null, "max_over_median") - 16.0).abs() < 0.1);
    assert!((number(null, "read_max_over_p75") - 12.9).abs() < 0.1);
    assert!(null.estimate.as_ref().is_some_and(|e| (440_000..460_000).contains(&e.saved_ms)), "{:?}", null.estimate);
    assert!(null.title.contains("seven and a half minutes of eight"), "{}", null.title);
}

#[test]
fn a_pasted_straggler_is_told_by_its_executor_and_its_attempt() {
    let figures = [
        (Metric::DurationMs, [24_000, 28_000, 30_000, 31_000, 480_000]),
        (Metric::ShuffleReadBytes, [11_200_000, 12_100_000, 12_600_000, 13_000_000, 13_100_000]),
    ];
    for (peers, attempt, expected) in [
        (Some(30_000), None, "STRAGGLER_TASK"),
        (Some(95_000), None, "STRAGGLER_NODE"),
        (Some(30_000), Some(2), "RETRY_TAIL"),
    ] {
        let mut app = pasted(20, 487_000, 20.0, &figures);
        if let Some(p) = &mut app.stages[0].pasted {
            (p.peers_on_executor_ms, p.slowest_attempt) = (peers, attempt);
        }
        let report = crate::diagnose(&app, &crate::Config::default());
        let ids: Vec<&str> = report.findings.iter().map(|f| f.id.as_str()).collect();
        assert_eq!(ids, [expected], "{peers:?} {attempt:?}");
    }
}

#[test]
fn spill_on_one_executor_names_it() {
    let tasks: Vec<T> = (0..16)
        .map(|i| {
            let task = t(5_000).read(30 * MB, 1).with(Metric::PeakExecutionBytes, 36 * MB).on(i % 2);
            if i % 2 == 1 {
                task.with(Metric::DiskSpillBytes, 20 * MB).with(Metric::MemorySpillBytes, 30 * MB)
            } else {
                task
            }
        })
        .collect();
    let mut w = world(2, 2);
    w.stage(&tasks);
    let spill = w.find("SPILL_EVEN");
    assert!(
        spill
            .evidence
            .iter()
            .any(|e| e.metric == "spilled_on_executor" && e.value == model::Value::Text("1".to_owned()))
    );
}
