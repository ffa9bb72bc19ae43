//! The rules on plans, SQL figures, driver, cluster and streams, on small inputs: what must be
//! said, what must not, and with which numbers.

#![allow(clippy::panic)] // A test that finds nothing says what it found instead.
use crate::{Config, diagnose};
use model::{
    Accumulator, Application, Batch, CachedRdd, Executor, Finding, Job, Metric, PasteKind, Pasted, Plan, PlanMetric,
    Report, Severity, SqlExecution, Stage, StageStatus, StateProgress, StorageLevel, StreamingQuery, TaskRow, Value,
};

/// A pasted plan.
fn lint(text: &str) -> Report {
    let plans = read::plan::parse_text(text);
    assert!(!plans.is_empty(), "no plan in {text}");
    let pasted = Pasted { kind: PasteKind::Plan, text: text.to_owned(), plans, ..Pasted::default() };
    diagnose(&Application { pasted: Some(pasted), ..Application::default() }, &Config::default())
}

fn ids(report: &Report) -> Vec<&str> {
    report.findings.iter().filter(|f| f.severity > Severity::Info).map(|f| f.id.as_str()).collect()
}

fn check_lint(text: &str, wanted: &[&str]) {
    let report = lint(text);
    assert_eq!(ids(&report), wanted, "{text}");
}

fn find<'r>(report: &'r Report, id: &str) -> &'r Finding {
    report.findings.iter().find(|f| f.id == id).unwrap_or_else(|| panic!("no {id} among {:?}", ids(report)))
}

fn evidence<'f>(finding: &'f Finding, metric: &str) -> &'f Value {
    &finding.evidence.iter().find(|e| e.metric == metric).unwrap_or_else(|| panic!("no {metric} in {finding:?}")).value
}

fn says(finding: &Finding, words: &str) -> bool {
    finding.remedies.iter().any(|r| r.text.contains(words) || r.snippet.as_deref().is_some_and(|s| s.contains(words)))
}

const EVENTS: &str = "FileScan parquet lake.events[id#0L,day#1,kind#2,dt#3] Batched: true, DataFilters: [], Format: Parquet, \
    Location: InMemoryFileIndex(1 paths)[s3a://lake/events], PartitionFilters: [PF], PushedFilters: [PU], \
    ReadSchema: struct<id:bigint,day:date,kind:int>";

/// The scan of a partitioned table with these partition filters and pushed filters.
fn events(partition_filters: &str, pushed: &str) -> String {
    EVENTS.replace("PF", partition_filters).replace("PU", pushed)
}

/// A plan from its lines, each below the one before.
fn tower(lines: &[&str]) -> String {
    let mut text = "== Physical Plan ==\n".to_owned();
    for (depth, line) in lines.iter().enumerate() {
        if depth > 0 {
            text += &format!("{}+- ", "   ".repeat(depth - 1));
        }
        text += line;
        text += "\n";
    }
    text
}

#[test]
fn a_cast_keeps_a_filter_from_its_source() {
    let text = "== Physical Plan ==\n\
        *(1) Filter (isnotnull(seen#2) AND (cast(seen#2 as string) >= 2025-01-01))\n\
        +- *(1) ColumnarToRow\n   +- FileScan parquet [code#0,seen#2] Batched: true, DataFilters: [], Format: Parquet, \
        Location: InMemoryFileIndex(1 paths)[s3a://lake/items], PartitionFilters: [], PushedFilters: [IsNotNull(seen)], \
        ReadSchema: struct<code:string,seen:timestamp>\n";
    let report = lint(text);
    assert_eq!(ids(&report), ["FILTER_NOT_PUSHED"]);
    let finding = find(&report, "FILTER_NOT_PUSHED");
    assert_eq!(evidence(finding, "blocked_by"), &Value::from("cast on the column"));
    assert_eq!(evidence(finding, "column"), &Value::from("seen"));
    assert_eq!(evidence(finding, "not_pushed"), &Value::Texts(vec!["cast(seen as string) >= 2025-01-01".to_owned()]));
    assert!(says(finding, "seen >= TIMESTAMP '2025-01-01'"));
}

#[test]
fn filters_that_are_pushed_are_none() {
    check_lint(
        &tower(&[
            "Filter (isnotnull(kind#2) AND (kind#2 > 5))",
            &events("(dt#3 = 1)", "IsNotNull(kind), GreaterThan(kind,5)"),
        ]),
        &[],
    );
    check_lint(&tower(&["Filter isnotnull(id#0L)", &events("", "IsNotNull(id)")]), &[]);
}

#[test]
fn partitions_are_pruned_by_filters_on_their_column_only() {
    let pruned = events("isnotnull(dt#3), (dt#3 = 2026-01-01)", "");
    let open = events("", "IsNotNull(kind), EqualTo(kind,7)");
    check_lint(&tower(&["Project [id#0L]", &pruned]), &[]);
    check_lint(&tower(&["Filter (isnotnull(kind#2) AND (kind#2 = 7))", &open]), &["PARTITION_NOT_PRUNED"]);
    // No filter at all: everything is wanted.
    check_lint(&tower(&["HashAggregate(keys=[kind#2], functions=[count(1)])", &events("", "")]), &[]);
    // Pruned while running.
    let dynamic = events("isnotnull(dt#3), dynamicpruningexpression(dt#3 IN dynamicpruning#86)", "");
    check_lint(
        &tower(&["Filter (kind#2 = 7)", &dynamic.replace("PushedFilters: []", "PushedFilters: [EqualTo(kind,7)]")]),
        &[],
    );
    let hidden =
        tower(&["Filter pythonUDF0#50: boolean", "BatchEvalPython [late(dt#3)#39], [pythonUDF0#50]", &events("", "")]);
    let report = lint(&hidden);
    assert!(find(&report, "PARTITION_NOT_PRUNED").title.contains("hidden in a Python function"));
    assert!(ids(&report).contains(&"UDF_PYTHON"));
}

#[test]
fn a_star_join_prunes_the_side_that_may_lose_rows() {
    let plan = |kind: &str| {
        format!(
            "== Physical Plan ==\nBroadcastHashJoin [dt#3], [d#9], {kind}, BuildRight, false\n:- {}\n\
             +- BroadcastExchange HashedRelationBroadcastMode(List(input[0, date, true]),false), [plan_id=2]\n   \
             +- Filter (label#8 = promo)\n      +- FileScan parquet lake.days[d#9,label#8] Batched: true, DataFilters: [], \
             Format: Parquet, PartitionFilters: [], PushedFilters: [EqualTo(label,promo)], ReadSchema: struct<d:date,label:string>\n",
            events("isnotnull(dt#3)", "")
        )
    };
    check_lint(&plan("Inner"), &["PARTITION_NOT_PRUNED"]);
    check_lint(&plan("LeftOuter"), &[]);
}

fn nested(kind: &str, condition: &str, right: &str) -> String {
    format!(
        "== Physical Plan ==\nBroadcastNestedLoopJoin BuildRight, {kind}{condition}\n:- {}\n+- BroadcastExchange IdentityBroadcastMode, \
         [plan_id=91]\n   +- {right}\n",
        events("", "")
    )
}

const BLOCKED: &str = "FileScan parquet ops.blocked[ref#270] Batched: true, DataFilters: [], Format: Parquet, \
    PartitionFilters: [], PushedFilters: [], ReadSchema: struct<ref:string>";

#[test]
fn nested_loops_say_why_and_scalars_are_none() {
    let report = lint(&nested("LeftAnti", ", ((id#0L = ref#270) OR (isnull(id#0L) AND isnull(ref#270)))", BLOCKED));
    assert_eq!(ids(&report), ["JOIN_NESTED_LOOP"]);
    let finding = find(&report, "JOIN_NESTED_LOOP");
    assert_eq!(evidence(finding, "cause"), &Value::from("equality with OR isnull AND isnull"));
    assert!(says(finding, "id <=> id"));
    assert!(!finding.remedies.iter().any(|r| r.text.contains("roadcast")), "it is broadcast already");
    let total = format!("HashAggregate(keys=[], functions=[max(ref#270)])\n      +- {BLOCKED}");
    check_lint(&nested("Inner", "", &total), &[]);
}

#[test]
fn a_constant_key_makes_a_product() {
    let side = |id: u32| format!("HashAggregate(keys=[20251216_20251222#{id}], functions=[count(1)])");
    let text = format!(
        "== Physical Plan ==\nCartesianProduct\n:- {}\n:  +- Exchange hashpartitioning(20251216_20251222#70, 1000)\n:     +- {}\n\
         +- {}\n   +- Exchange hashpartitioning(20251216_20251222#71, 1000)\n      +- {BLOCKED}\n",
        side(70),
        events("", ""),
        side(71)
    );
    let report = lint(&text);
    let finding = find(&report, "JOIN_CARTESIAN");
    assert_eq!(evidence(finding, "tasks"), &Value::from("1000 x 1000 = 1000000"));
    assert_eq!(
        evidence(finding, "cause"),
        &Value::from("the join key is a constant, so the optimizer dropped the condition")
    );
    assert!(says(finding, "coalesce(1)") && finding.severity == Severity::High);
    assert!(!finding.remedies.iter().any(|r| r.text.contains("shuffle.partitions")));
}

#[test]
fn shuffles_in_a_row_are_one_too_many() {
    let twice = [
        "Exchange hashpartitioning(kind#2, 200), ENSURE_REQUIREMENTS, [plan_id=1]",
        "Exchange RoundRobinPartitioning(8), REPARTITION_BY_NUM, [plan_id=2]",
    ];
    check_lint(
        &tower(&["HashAggregate(keys=[kind#2], functions=[count(1)])", twice[0], twice[1], &events("", "")]),
        &["EXCHANGE_REDUNDANT"],
    );
    // Work between the two may be why rows were spread out.
    let python = "BatchEvalPython [f(id#0L)#9], [pythonUDF0#10]";
    let report = lint(&tower(&[twice[0], python, twice[1], &events("", "")]));
    assert!(!ids(&report).contains(&"EXCHANGE_REDUNDANT"));
}

#[test]
fn user_functions_in_a_filter_are_opaque() {
    let report = lint(&tower(&["Filter UDF(kind#2)", &events("(dt#3 = 1)", "")]));
    assert_eq!(ids(&report), ["FILTER_NOT_PUSHED", "UDF_SCALA"]);
    assert_eq!(evidence(find(&report, "FILTER_NOT_PUSHED"), "blocked_by"), &Value::from("a user function"));
}

/// A run of one SQL execution: a plan, and metrics for the nodes whose name begins so.
struct Run {
    app: Application,
}

impl Run {
    fn new() -> Self {
        let mut app = Application { started_ms: Some(0), ended_ms: Some(100_000), ..Application::default() };
        app.spark_version = "3.5.6".into();
        app.executors.push(Executor {
            id: "1".into(),
            cores: 4,
            added: true,
            added_ms: Some(0),
            ..Executor::default()
        });
        app.log.lines = 10;
        Self { app }
    }

    /// Adds an execution whose one stage has a task of this length.
    fn sql(mut self, text: &str, from: i64, ms: i64, metrics: &[(&str, &str, i64)]) -> Self {
        let id = self.app.sql.len() as i64;
        let (stage, job) = (self.app.stages.len() as u32, self.app.jobs.len() as u32);
        let mut plan = read::plan::parse_text(text).into_iter().next().unwrap_or_default();
        for (name, metric, value) in metrics {
            self.metric(&mut plan, name, metric, *value, stage);
        }
        let mut row = TaskRow::new(i64::from(stage));
        row.set(Metric::LaunchMs, from).set(Metric::FinishMs, from + ms).set(Metric::RunMs, ms);
        let mut of = Stage {
            num_tasks: 1,
            jobs: vec![job],
            sql: Some(id),
            status: StageStatus::Complete,
            ..Stage::new(stage, 0)
        };
        of.tasks.push(row);
        self.app.stages.push(of);
        self.app.jobs.push(Job {
            id: job,
            submitted_ms: Some(from),
            completed_ms: Some(from + ms),
            status: StageStatus::Complete,
            stages: vec![stage],
            sql: Some(id),
            ..Job::default()
        });
        self.app.sql.push(SqlExecution {
            id,
            root_id: Some(id),
            started_ms: Some(from),
            ended_ms: Some(from + ms),
            jobs: vec![job],
            first_plan: plan,
            ..SqlExecution::default()
        });
        self
    }

    /// Gives a metric to the first node with this name that has none of that name yet.
    fn metric(&mut self, plan: &mut Plan, name: &str, metric: &str, value: i64, stage: u32) {
        let accumulator = self.app.accumulators.len() as i64;
        let free =
            |n: &&mut model::PlanNode| n.detail.starts_with(name) && !n.metrics.iter().any(|m| &*m.name == metric);
        let node = plan.nodes.iter_mut().find(free).unwrap_or_else(|| panic!("no node {name} for {metric}"));
        node.metrics.push(PlanMetric { name: metric.into(), accumulator, ..PlanMetric::default() });
        let kept = Accumulator { sum: value, max: value, updates: 1, stage: Some(stage) };
        self.app.accumulators.insert(accumulator, kept);
    }

    fn report(&self) -> Report {
        diagnose(&self.app, &Config::default())
    }
}

#[test]
fn small_files_and_what_they_cost() {
    let text = tower(&["HashAggregate(keys=[], functions=[count(1)])", &events("(dt#3 = 1)", "")]);
    let run = |files, bytes| {
        Run::new()
            .sql(
                &text,
                1_000,
                60_000,
                &[("FileScan", "number of files read", files), ("FileScan", "size of files read", bytes)],
            )
            .report()
    };
    let report = run(3_000, 3_193_654);
    let finding = find(&report, "FILE_SMALL_READ");
    assert!(finding.severity >= Severity::High);
    assert_eq!(evidence(finding, "average_bytes"), &Value::Int(1_064));
    for (files, bytes) in [(60, 3_599_097), (200, 40 << 30)] {
        assert!(!run(files, bytes).findings.iter().any(|f| f.id == "FILE_SMALL_READ"), "{files} files");
    }
}

fn join(kind: &str) -> String {
    format!(
        "== Physical Plan ==\nSortMergeJoin [id#0L], [ref#270], {kind}\n:- Sort [id#0L ASC NULLS FIRST], false, 0\n:  \
         +- Exchange hashpartitioning(id#0L, 16), ENSURE_REQUIREMENTS, [plan_id=80]\n:     +- {}\n\
         +- Sort [ref#270 ASC NULLS FIRST], false, 0\n   +- Exchange hashpartitioning(ref#270, 16), ENSURE_REQUIREMENTS, [plan_id=97]\n      +- {BLOCKED}\n",
        events("(dt#3 = 1)", "")
    )
}

#[test]
fn a_small_side_is_broadcast_where_the_join_type_allows_it() {
    let run = |kind: &str, left: i64, right: i64| {
        let metrics = [
            ("Exchange hashpartitioning(id", "data size", left),
            ("Exchange hashpartitioning(ref", "data size", right),
        ];
        Run::new().sql(&join(kind), 1_000, 60_000, &metrics).report()
    };
    let missed = |report: &Report| report.findings.iter().any(|f| f.id == "JOIN_SHOULD_BROADCAST");
    assert!(missed(&run("Inner", 144_000_000, 120_000)));
    assert!(missed(&run("LeftOuter", 144_000_000, 120_000)));
    assert!(!missed(&run("LeftOuter", 120_000, 144_000_000)), "the left side of a left join cannot be built");
    assert!(!missed(&run("FullOuter", 144_000_000, 120_000)));
    assert!(!missed(&run("Inner", 144_000_000, 60_000_000)));
    let report = run("Inner", 144_000_000, 120_000);
    assert_eq!(evidence(find(&report, "JOIN_SHOULD_BROADCAST"), "small_side_bytes"), &Value::Int(120_000));
}

#[test]
fn rows_that_multiply() {
    let run = |out: i64| {
        let metrics = [
            ("SortMergeJoin", "number of output rows", out),
            ("Exchange hashpartitioning(id", "shuffle records written", 5_000_000),
            ("Exchange hashpartitioning(ref", "shuffle records written", 1_000_000),
        ];
        Run::new().sql(&join("Inner"), 1_000, 60_000, &metrics).report()
    };
    let report = run(60_000_000);
    assert_eq!(evidence(find(&report, "ROWS_EXPLODE"), "rows_out_over_in"), &Value::from(12.0));
    assert!(!run(40_000_000).findings.iter().any(|f| f.id == "ROWS_EXPLODE"));
}

#[test]
fn the_same_part_in_several_executions_is_not_cached() {
    let text = |filter: &str| {
        tower(&[
            "HashAggregate(keys=[kind#2], functions=[count(1)])",
            "Exchange hashpartitioning(kind#2, 16), ENSURE_REQUIREMENTS",
            filter,
            &events("(dt#3 = 1)", "EqualTo(kind,7)"),
        ])
    };
    let scan = |run: Run, text: &str, at: i64| {
        run.sql(
            text,
            at,
            10_000,
            &[
                ("FileScan", "number of output rows", 10),
                ("Exchange", "data size", 10),
                ("HashAggregate", "number of output rows", 3),
            ],
        )
    };
    let same = text("Filter (kind#2 = 7)");
    let report = scan(scan(Run::new(), &same, 1_000), &same, 20_000).report();
    let finding = find(&report, "CACHE_MISSING");
    assert_eq!(finding.scope.sqls, [0, 1]);
    assert_eq!(evidence(finding, "repeated_run_ms"), &Value::Int(10_000));
    // Another filter is another question.
    let report = scan(scan(Run::new(), &same, 1_000), &text("Filter (kind#2 = 8)"), 20_000).report();
    assert!(!report.findings.iter().any(|f| f.id == "CACHE_MISSING"));
    // Micro-batches look alike by design.
    let mut run = scan(scan(Run::new(), &same, 1_000), &same, 20_000);
    run.app.jobs.iter_mut().for_each(|j| j.stream = Some("q".into()));
    assert!(!run.report().findings.iter().any(|f| f.id == "CACHE_MISSING"));
}

#[test]
fn a_broadcast_far_above_its_threshold() {
    let text = nested("Inner", "", BLOCKED).replace(
        "BroadcastNestedLoopJoin BuildRight, Inner",
        "BroadcastHashJoin [id#0L], [ref#270], Inner, BuildRight, false",
    );
    let run = |bytes: i64, driver: &str| {
        let mut run = Run::new().sql(
            &text,
            1_000,
            60_000,
            &[("BroadcastExchange", "data size", bytes), ("BroadcastExchange", "number of output rows", 1_500_000)],
        );
        for key in ["spark.driver.memory", "spark.executor.memory"] {
            run.app.environment.spark.insert(key.into(), driver.into());
        }
        run.report()
    };
    let found = |report: &Report| report.findings.iter().any(|f| f.id == "BROADCAST_TOO_LARGE");
    assert!(found(&run(268_835_456, "3g")) && found(&run(268_835_456, "1g")));
    assert!(!found(&run(8_389_632, "1g")));
    let report = run(268_835_456, "3g");
    assert_eq!(evidence(find(&report, "BROADCAST_TOO_LARGE"), "threshold_bytes"), &Value::Int(10_485_760));
}

#[test]
fn a_gap_is_told_by_what_surrounds_it() {
    let scan = tower(&["Project [id#0L]", &events("(dt#3 = 1)", "")]);
    let gap = |pause: i64| {
        let mut run = Run::new().sql(&scan, 1_000, 5_000, &[]).sql(&scan, 6_000 + pause, 5_000, &[]);
        run.app.ended_ms = Some(20_000 + pause);
        run
    };
    let report = gap(67_000).report();
    let finding = find(&report, "DRIVER_GAP");
    assert_eq!((evidence(finding, "ms"), evidence(finding, "before_job")), (&Value::Int(67_000), &Value::Int(1)));
    assert!(finding.title.contains("its own code between job 0 and job 1"), "{}", finding.title);
    assert!(!gap(42_000).report().findings.iter().any(|f| f.id == "DRIVER_GAP"));
    let mut planned = gap(67_000);
    planned.app.sql[1].started_ms = Some(6_500);
    let report = planned.report();
    assert!(find(&report, "DRIVER_GAP").title.contains("SQL 1 was being planned"));
    let mut shell = gap(67_000);
    shell.app.environment.spark.insert("spark.repl.class.uri".into(), "spark://x".into());
    assert!(!shell.report().findings.iter().any(|f| f.id == "DRIVER_GAP"));
}

#[test]
fn cached_blocks_that_left_memory() {
    let level =
        StorageLevel { memory: true, disk: true, deserialized: true, replication: 1, ..StorageLevel::default() };
    let run = |moved: u32, disk: u64| {
        let mut run = Run::new().sql(&tower(&["Project [id#0L]", &events("(dt#3 = 1)", "")]), 1_000, 5_000, &[]);
        run.app.log.block_updates = 8;
        run.app.cached.push(CachedRdd {
            id: 6,
            level,
            partitions: 2,
            moved_to_disk: moved,
            disk_bytes: disk,
            blocks: 2,
            ..CachedRdd::default()
        });
        run.report()
    };
    assert_eq!(find(&run(2, 100_231_537), "CACHE_EVICTED").scope.rdds, [6]);
    assert!(!run(0, 0).findings.iter().any(|f| f.id == "CACHE_EVICTED"));
}

/// Batches that each begin as the one before ends, unless a start is given.
fn stream(batches: &[(i64, f64, f64)]) -> StreamingQuery {
    let mut query = StreamingQuery { name: Some("counts".into()), started_ms: Some(0), ..StreamingQuery::default() };
    let mut start = 1_003;
    for (id, &(ms, input, processed)) in batches.iter().enumerate() {
        query.batches.push(Batch {
            id: id as i64,
            started_ms: Some(start),
            phases: vec![("triggerExecution".into(), ms), ("addBatch".into(), ms * 9 / 10)],
            input_rows: 100,
            input_rate: Some(input),
            process_rate: Some(processed),
            ..Batch::default()
        });
        start += ms + 5;
    }
    query
}

fn diagnose_stream(query: StreamingQuery) -> Report {
    let app =
        Application { started_ms: Some(0), ended_ms: Some(10_000_000), streams: vec![query], ..Application::default() };
    diagnose(&app, &Config::default())
}

#[test]
fn a_stream_that_falls_behind_and_one_that_does_not() {
    let lags =
        |batches: &[(i64, f64, f64)]| diagnose_stream(stream(batches)).findings.iter().any(|f| f.id == "STREAM_LAG");
    assert!(lags(&[
        (9_000, 50.0, 40.0),
        (3_000, 50.0, 45.0),
        (3_300, 50.0, 44.0),
        (3_600, 50.0, 43.0),
        (4_000, 50.0, 42.0)
    ]));
    assert!(!lags(&[
        (9_000, 50.0, 40.0),
        (3_000, 50.0, 55.0),
        (3_000, 50.0, 55.0),
        (3_000, 50.0, 51.0),
        (3_000, 50.0, 55.0)
    ]));
    let mut stated =
        stream(&[(9_000, 5.0, 5.0), (3_000, 5.0, 5.0), (3_100, 5.0, 5.0), (2_900, 5.0, 5.0), (2_500, 5.0, 5.0)]);
    stated.trigger_ms = Some(2_000);
    let report = diagnose_stream(stated);
    assert_eq!(evidence(find(&report, "STREAM_LAG"), "batches_over_trigger"), &Value::from("4 of 4"));
    assert_eq!(evidence(find(&report, "STREAM_LAG"), "dominant_phase"), &Value::from("addBatch 90 %"));
}

#[test]
fn state_that_only_grows_and_rows_that_come_late() {
    let query = |removed: i64, dropped: i64| {
        let mut query = stream(&vec![(3_000, 50.0, 60.0); 30]);
        for (at, batch) in query.batches.iter_mut().enumerate() {
            batch.state.push(StateProgress {
                operator: "dedupe".into(),
                rows_total: 1_000 + 100 * at as i64,
                rows_updated: 100,
                rows_removed: removed,
                rows_dropped: dropped,
                ..StateProgress::default()
            });
        }
        diagnose_stream(query)
    };
    let report = query(0, 1);
    assert_eq!(find(&report, "STREAM_STATE_GROWTH").severity, Severity::Medium);
    assert!(find(&report, "STREAM_LATE").title.contains("1 %"));
    let report = query(50, 0);
    assert!(!report.findings.iter().any(|f| f.id == "STREAM_STATE_GROWTH" || f.id == "STREAM_LATE"));
}

#[test]
fn a_log_without_an_end_and_one_with_losses() {
    let mut run = Run::new().sql(&tower(&["Project [id#0L]", &events("(dt#3 = 1)", "")]), 1_000, 5_000, &[]);
    assert!(!run.report().findings.iter().any(|f| f.id.starts_with("LOG_")));
    run.app.ended_ms = None;
    run.app.last_event_ms = Some(60_000);
    run.app.jobs[0].status = StageStatus::Active;
    run.app.stages[0].num_tasks = 4;
    run.app.log.clock_errors = 2;
    let report = run.report();
    assert!(find(&report, "LOG_INCOMPLETE").title.contains("while job 0 is running"));
    assert_eq!(evidence(find(&report, "LOG_EVENTS_DROPPED"), "missing_task_ends"), &Value::Int(3));
    assert_eq!(evidence(find(&report, "LOG_CLOCK"), "clock_errors"), &Value::Int(2));
}

#[test]
fn names_change_nothing() {
    let plan = tower(&["Filter (isnotnull(kind#2) AND (kind#2 = 7))", &events("", "IsNotNull(kind), EqualTo(kind,7)")]);
    let renamed = plan.replace("lake.events", "lake.delta_log_heavy").replace("kind", "skew");
    assert_eq!(ids(&lint(&plan)), ids(&lint(&renamed)));
}
