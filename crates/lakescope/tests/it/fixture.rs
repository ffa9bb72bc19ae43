//! Reports and applications made by hand, so that what is shown can be tested without a log.

use model::{
    Application, ApplicationFacts, Checked, Confidence, Counterfactual, Counts, Estimate, Evidence, Excluded, Executor,
    Finding, Metric, ModelFit, Part, Remedy, RemedyKind, Report, Scope, Severity, Stage, Summary, TaskRow, Value,
    Warning, WillNotHelp,
};

const START_MS: i64 = 1_763_085_852_000;
const WALL_MS: i64 = 2_538_000;

/// One hot key in a left join, what follows from it, and two lesser findings.
pub fn skewed() -> Report {
    Report {
        version: model::REPORT_VERSION,
        application: application_facts(),
        summary: summary(),
        findings: vec![skew(), spill(), full_scan(), collections(), worth_knowing()],
        checked: ["lost executors", "failed tasks", "fetch failures", "driver memory", "broadcast sizes", "file sizes"]
            .map(|what| Checked { what: what.into(), result: format!("{what}: none"), ..Checked::default() })
            .to_vec(),
        warnings: vec![Warning {
            code: "LOG_UNKNOWN".into(),
            text: "3 events of 1 kind are not known: com.example.ListenerEvent".into(),
        }],
    }
}

fn application_facts() -> ApplicationFacts {
    ApplicationFacts {
        id: "app-20251114020412-0317".into(),
        name: "enrich_orders".into(),
        user: "etl".into(),
        spark_version: "3.5.3".into(),
        started_ms: Some(START_MS),
        ended_ms: Some(START_MS + WALL_MS),
        wall_ms: WALL_MS,
        complete: true,
        counts: Counts { jobs: 11, tasks: 8_413, ..Counts::default() },
        ..ApplicationFacts::default()
    }
}

fn summary() -> Summary {
    let part = |name: &str, ms| Part { name: name.into(), ms };
    let other = |change: &str, slots: f64, wall_ms: i64| Counterfactual {
        change: change.into(),
        slots,
        wall_ms,
        core_ms: (slots * wall_ms as f64) as i64,
    };
    Summary {
        sentence: "One task held the whole cluster for 26 m 10 s: in stage 14 the join on customer_id put 38.2 GiB \
                   in a single partition."
            .into(),
        severity: Some(Severity::Critical),
        counts: vec![(Severity::Critical, 1), (Severity::High, 1), (Severity::Medium, 1), (Severity::Low, 1)],
        time: vec![
            part("waiting for one task", 1_570_000),
            part("computing", 580_000),
            part("shuffle and I/O", 185_000),
            part("garbage collection", 108_000),
            part("driver, idle", 95_000),
        ],
        core_time: vec![
            part("tasks", 50_300_000),
            part("tail of a stage", 98_910_000),
            part("driver only", 6_080_000),
            part("start-up", 7_142_000),
        ],
        slots: 64.0,
        run_ms: 50_300_000,
        model: Some(ModelFit { simulated_ms: 2_490_000, error: 0.019, unlimited_ms: 1_800_000, fair_ms: 880_000 }),
        counterfactuals: vec![
            other("25 % of the slots", 16.0, 3_921_000),
            other("50 % of the slots", 32.0, 2_930_000),
            other("150 % of the slots", 96.0, 2_402_000),
            other("200 % of the slots", 128.0, 2_338_000),
            other("without skew", 64.0, 1_028_000),
        ],
        more: vec![("SCAN_FULL".into(), 2)],
    }
}

fn evidence(metric: &str, value: impl Into<Value>, unit: &str, threshold: Option<f64>, location: &str) -> Evidence {
    Evidence { metric: metric.into(), value: value.into(), unit: unit.into(), threshold, location: location.into() }
}

fn skew() -> Finding {
    Finding {
        id: "SKEW_KEY".into(),
        title: "Key skew in stage 14: one partition is 40 × its peers".into(),
        severity: Severity::Critical,
        confidence: Confidence::High,
        scope: Scope {
            stage: Some(14),
            sql: Some(3),
            node: Some("SortMergeJoin LeftOuter on customer_id".into()),
            source_line: Some("enrich_orders.py:41".into()),
            ..Scope::default()
        },
        evidence: vec![
            evidence("duration_ms_max", 1_622_000_i64, "ms", Some(61_500.0), "stage 14 summary"),
            evidence("duration_ms_p75", 41_000_i64, "ms", None, "stage 14 summary"),
            evidence("shuffle_read_bytes_max", 41_017_000_000_i64, "bytes", Some(1.5e9), "stage 14 summary"),
            evidence("max_over_p75", 40.6, "ratio", Some(1.5), "stage 14 summary"),
            evidence("share_of_bytes_in_largest", 0.178, "share", None, "stage 14, task 117"),
        ],
        excluded: vec![
            Excluded {
                lookalike: "a slow executor".into(),
                because: "the other 12 tasks on executor 7 ran at the usual 37 s".into(),
            },
            Excluded {
                lookalike: "split by adaptive execution".into(),
                because: "in a left outer join it can split the left side only, and orders stands on the right".into(),
            },
        ],
        estimate: Some(Estimate {
            saved_ms_low: 1_380_000,
            saved_ms: 1_510_000,
            saved_ms_high: 1_560_000,
            saved_core_ms: 3_400_000,
            method: "the simulation with the partition of 38.2 GiB split into 42 tasks".into(),
        }),
        remedies: skew_remedies(),
        will_not_help: vec![
            WillNotHelp { what: "more memory".into(), because: "the one huge task stays".into() },
            WillNotHelp { what: "more workers".into(), because: "63 of 64 slots wait already".into() },
        ],
        confirm: Some("max ÷ P75 of shuffle read in the join's stage falls below 2".into()),
        links: vec!["/stages/stage/?id=14&attempt=0".into()],
        causes: vec![1],
        ..Finding::default()
    }
}

fn skew_remedies() -> Vec<Remedy> {
    vec![
        Remedy {
            kind: RemedyKind::Code,
            text: "Sum the orders before the join: each map task then sends one row per customer".into(),
            snippet: Some(
                "totals = orders.groupBy(\"customer_id\").agg(F.sum(\"amount\").alias(\"amount\"))\n\
                 customers.join(totals, \"customer_id\", \"left\")"
                    .into(),
            ),
            computed_from: Some("412 M rows of the hot key fall to one per map task".into()),
        },
        Remedy {
            kind: RemedyKind::Code,
            text: "Salt the key with k = 41 and add up in two steps".into(),
            computed_from: Some("ceil(38.2 GiB ÷ 964 MiB), largest over 75th percentile".into()),
            ..Remedy::default()
        },
    ]
}

fn spill() -> Finding {
    Finding {
        id: "SPILL_SKEW".into(),
        title: "One task of stage 14 spilled 41.6 GiB to disk".into(),
        severity: Severity::Medium,
        confidence: Confidence::High,
        scope: Scope { stage: Some(14), task: Some(8_117), ..Scope::default() },
        evidence: vec![evidence("disk_spill_bytes", 44_667_000_000_i64, "bytes", None, "stage 14, task 117")],
        caused_by: Some(0),
        ..Finding::default()
    }
}

fn full_scan() -> Finding {
    Finding {
        id: "SCAN_FULL".into(),
        title: "Stage 3 read every file of main.sales.orders for one day of data".into(),
        severity: Severity::High,
        confidence: Confidence::Medium,
        confidence_because: Some("the log does not say how the files are laid out".into()),
        scope: Scope { stage: Some(3), sql: Some(3), ..Scope::default() },
        evidence: vec![
            evidence("files_read", 4_212_i64, "files", None, "Scan main.sales.orders"),
            evidence("files_total", 4_212_i64, "files", None, "Scan main.sales.orders"),
            evidence("filter", "(order_date = 2025-11-13)", "", None, "Filter (3)"),
        ],
        estimate: Some(Estimate {
            saved_ms_low: 75_000,
            saved_ms: 110_000,
            saved_ms_high: 150_000,
            saved_core_ms: 9_600_000,
            method: String::new(),
        }),
        remedies: vec![Remedy {
            kind: RemedyKind::Layout,
            text: "Cluster the table by order_date".into(),
            snippet: Some("ALTER TABLE main.sales.orders CLUSTER BY (order_date);\nOPTIMIZE main.sales.orders".into()),
            computed_from: None,
        }],
        ..Finding::default()
    }
}

fn collections() -> Finding {
    Finding {
        id: "GC_HIGH".into(),
        title: "Executor 7 spent 14 % of its task time in garbage collection".into(),
        severity: Severity::Low,
        confidence: Confidence::Low,
        scope: Scope { executor: Some("7".into()), ..Scope::default() },
        evidence: vec![evidence("gc_share", 0.14, "share", Some(0.1), "executor 7")],
        estimate: Some(Estimate { saved_core_ms: 20_000, ..Estimate::default() }),
        ..Finding::default()
    }
}

fn worth_knowing() -> Finding {
    Finding {
        id: "AQE_CHANGED".into(),
        title: "Adaptive execution coalesced 200 partitions to 12 in SQL 1".into(),
        scope: Scope { sql: Some(1), ..Scope::default() },
        ..Finding::default()
    }
}

/// A report in which every name that a user may choose tries to break out.
pub fn hostile() -> Report {
    const NAME: &str = "</b><script>alert(1)</script>\u{1b}[31m\u{202e}evil`|**x**\u{200b}\r\nsecond 'line' \"q\"";
    let mut report = skewed();
    report.application.name = NAME.into();
    report.application.id = NAME.into();
    report.application.spark_version = NAME.into();
    report.summary.sentence = NAME.into();
    report.summary.time[0].name = NAME.into();
    report.summary.core_time[0].name = NAME.into();
    report.summary.counterfactuals[0].change = NAME.into();
    report.checked[0] = Checked { what: NAME.into(), result: NAME.into(), ..Checked::default() };
    report.warnings[0].text = NAME.into();
    let finding = &mut report.findings[0];
    finding.id = NAME.into();
    finding.title = NAME.into();
    finding.scope.node = Some(NAME.into());
    finding.evidence[0].metric = NAME.into();
    finding.evidence[1] = evidence("text", NAME, "", None, NAME);
    finding.evidence[2].unit = NAME.into();
    finding.excluded[0].because = NAME.into();
    finding.remedies[0].text = NAME.into();
    finding.remedies[0].snippet = Some(format!("{NAME}\n```\n</pre>"));
    finding.will_not_help[0].what = NAME.into();
    finding.confirm = Some(NAME.into());
    finding.links = vec![NAME.into()];
    report
}

/// Sixteen executors of four cores: five busy stages, one task that runs for 27 minutes.
pub fn application() -> Application {
    let mut app = Application {
        id: "app-20251114020412-0317".into(),
        name: "enrich_orders".into(),
        started_ms: Some(START_MS),
        ended_ms: Some(START_MS + WALL_MS),
        ..Application::default()
    };
    for id in 1..=16_u32 {
        app.executors.push(Executor {
            id: id.to_string().as_str().into(),
            cores: 4,
            added: true,
            added_ms: Some(START_MS + 4_000),
            removed_ms: (id == 12).then_some(START_MS + 1_900_000),
            removed_reason: (id == 12).then(|| "worker lost".into()),
            ..Executor::default()
        });
    }
    let mut random = Random(7);
    for (id, from_s, to_s) in [(3, 8, 150), (5, 160, 300), (8, 310, 470), (9, 480, 640), (15, 2_300, 2_420)] {
        app.stages.push(busy_stage(id, from_s * 1_000, to_s * 1_000, &mut random));
    }
    app.stages.insert(4, skewed_stage(&mut random));
    app
}

fn busy_stage(id: u32, from_ms: i64, to_ms: i64, random: &mut Random) -> Stage {
    let mut stage = Stage::new(id, 0);
    for slot in 0..64 {
        let mut at = from_ms + random.below(5_000);
        while at < to_ms - 4_000 {
            let end = (at + 6_000 + random.below(22_000)).min(to_ms + 6_000);
            push(&mut stage, slot, at, end, 900 << 20);
            at = end + random.below(2_000);
        }
    }
    stage
}

fn skewed_stage(random: &mut Random) -> Stage {
    let mut stage = Stage::new(14, 0);
    for slot in 0..64_u32 {
        let mut at = 655_000 + random.below(4_000);
        for _ in 0..3 {
            let end = at + 22_000 + random.below(11_000) + random.below(12_000);
            push(&mut stage, slot, at, end, (700 << 20) + random.below(260) * (1 << 20));
            at = end + 200;
        }
    }
    push(&mut stage, 27, 668_000, 668_000 + 1_622_000, 41_017_000_000);
    stage
}

fn push(stage: &mut Stage, slot: u32, from_ms: i64, to_ms: i64, bytes: i64) {
    let index = stage.tasks.len() as u32;
    let mut row = TaskRow::new(i64::from(stage.id) * 10_000 + i64::from(index));
    row.index = index;
    row.executor = slot / 4;
    row.set(Metric::LaunchMs, START_MS + from_ms).set(Metric::FinishMs, START_MS + to_ms);
    row.set(Metric::RunMs, to_ms - from_ms).set(Metric::GcMs, (to_ms - from_ms) / 30);
    row.set(Metric::LocalBytesRead, bytes).set(Metric::ShuffleRecordsRead, bytes / 100);
    if bytes > 10 << 30 {
        row.set(Metric::DiskSpillBytes, 44_667_000_000);
    }
    stage.tasks.push(row);
}

/// The same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i64 % limit
    }
}
