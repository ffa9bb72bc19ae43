//! Checks on whole plans: the logs' two forms against each other, pasted texts, mutations.

use super::*;
use model::{Operator, Plan};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A path among the shared samples, where there are any.
fn shared(below: &str) -> Option<PathBuf> {
    let path = testkit::shared().map(|folder| folder.join(below)).filter(|p| p.exists());
    if path.is_none() {
        eprintln!("skipped: no shared samples at {below}");
    }
    path
}

/// `explain` texts of real Spark, made by `tests/plans/make_plans.py`.
fn explained() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/plans");
    if !path.exists() {
        eprintln!("skipped: no explain texts at tests/plans");
    }
    path.exists().then_some(path)
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        match path.is_dir() {
            true if path.ends_with("generate") => {}
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

/// The lines of a log in a codec that needs no code of ours; other codecs repeat logs that are
/// here in plain form as well.
fn log_text(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    let mut text = Vec::new();
    let read = match bytes.get(..2) {
        Some([0x28, 0xb5]) => zstd::stream::read::Decoder::new(&bytes[..]).and_then(|mut d| d.read_to_end(&mut text)),
        Some([0x1f, 0x8b]) => flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut text),
        _ => (&bytes[..]).read_to_end(&mut text),
    };
    drop(read);
    String::from_utf8_lossy(&text).into_owned()
}

#[derive(serde::Deserialize)]
struct SqlEvent<'a> {
    #[serde(rename = "physicalPlanDescription")]
    description: String,
    #[serde(rename = "sparkPlanInfo", borrow)]
    info: PlanInfo<'a>,
}

/// Calls back with every plan of every shared log.
fn each_logged_plan(mut call: impl FnMut(&str, &PlanInfo<'_>, &str)) {
    let mut logs = Vec::new();
    for folder in ["data/eventlogs", "data/public-logs", "data/spark-history"] {
        shared(folder).iter().for_each(|path| files(path, &mut logs));
    }
    for log in logs {
        let text = log_text(&log);
        let name = log.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        for line in text.lines().filter(|l| l.contains("\"physicalPlanDescription\"")) {
            if let Ok(event) = serde_json::from_str::<SqlEvent>(line) {
                call(&name, &event.info, &event.description);
            }
        }
    }
}

fn first_difference(json: &str, text: &str) -> String {
    let (json, text): (Vec<_>, Vec<_>) = (json.lines().collect(), text.lines().collect());
    let at = (0..json.len().max(text.len())).find(|&n| json.get(n) != text.get(n)).unwrap_or(0);
    format!("line {at}, JSON {:?}, text {:?}", json.get(at), text.get(at))
}

/// Names of a plan by depth, without what only one of the two forms has.
fn drawing(plan: &Plan) -> String {
    let mut trees: Vec<String> = plan.subqueries.iter().map(|&root| draw(plan, root)).collect();
    trees.sort();
    trees.insert(0, if plan.nodes.is_empty() { String::new() } else { draw(plan, 0) });
    trees.join("---\n")
}

fn draw(plan: &Plan, root: usize) -> String {
    let mut text = String::new();
    let mut open = vec![(root, 0)];
    while let Some((at, depth)) = open.pop() {
        let node = &plan.nodes[at];
        let word = node.name.split(['(', ' ']).next().unwrap_or_default();
        let only_one = ["WholeStageCodegen", "InputAdapter", "InMemoryRelation"].contains(&word);
        // In text a formatted subquery has its name in the line that introduces it.
        let hidden = only_one || node.op == Operator::Subquery;
        if !hidden {
            text.push_str(&format!("{}{}\n", "  ".repeat(depth), node.name));
        }
        if draws_inputs(plan, at) {
            let below = if hidden { depth } else { depth + 1 };
            open.extend(node.children.iter().rev().map(|&child| (child, below)));
        }
    }
    text
}

/// A command's logical plan and the command behind a result are drawn below in text, and are in
/// no JSON.
fn draws_inputs(plan: &Plan, node: usize) -> bool {
    let name = &*plan.nodes[node].name;
    let logical = |child: &usize| {
        let child = &*plan.nodes[*child].name;
        child == "LogicalRelation" || child.ends_with("Command") && name.ends_with(child)
    };
    name != "CommandResult" && !plan.nodes[node].children.iter().any(logical)
}

#[test]
fn the_two_forms_of_every_logged_plan_are_the_same_tree() {
    let (mut plans, mut nodes, mut before_photon) = (0, 0, 0);
    let mut different = Vec::new();
    let mut unknown = std::collections::BTreeSet::new();
    each_logged_plan(|log, info, description| {
        let json = from_info(info, None);
        let text = parse_text(description).into_iter().next().unwrap_or_default();
        let photon = |plan: &Plan| plan.nodes.iter().any(|n| n.photon);
        plans += 1;
        nodes += json.nodes.len();
        unknown.extend(json.unknown.iter().chain(&text.unknown).cloned());
        if drawing(&json) == drawing(&text) {
            return;
        }
        // At the start of a query Databricks logs the JSON of before and the text of after Photon.
        match photon(&json) == photon(&text) {
            false => before_photon += 1,
            true => different.push(format!("{log}: {}", first_difference(&drawing(&json), &drawing(&text)))),
        }
    });
    println!("{plans} plans, {nodes} nodes: {} differ, {before_photon} logged before Photon", different.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// What a reader of the plan is told, a line a node.
fn told(plan: &Plan) -> String {
    let mut text = String::new();
    let mut open: Vec<(usize, usize)> = plan.subqueries.iter().rev().map(|&root| (root, 0)).collect();
    open.extend(plan.nodes.first().map(|_| (0, 0)));
    while let Some((at, depth)) = open.pop() {
        let node = &plan.nodes[at];
        let number = node.number.map_or(String::new(), |n| format!("{n} "));
        let codegen = node.codegen.map_or(String::new(), |n| format!("*{n} "));
        let size = node.statistics.map_or(String::new(), |s| format!(" ~{} bytes {:?} rows", s.size_bytes, s.rows));
        text.push_str(&format!("{}{number}{codegen}{}{size}\n", "  ".repeat(depth), op(&node.op, &node.name)));
        open.extend(node.children.iter().rev().map(|&child| (child, depth + 1)));
    }
    let heading = format!("{} final {:?} cut {} unknown {:?}\n", plan.title, plan.is_final, plan.cut, plan.unknown);
    heading + &text
}

fn op(op: &Operator, name: &str) -> String {
    match op {
        Operator::Scan(s) => {
            let place = s.table.clone().or_else(|| s.location.clone()).unwrap_or_default();
            format!(
                "scan {} {place} {:?} pushed {:?} partition {:?} by {:?} schema {}",
                s.format,
                s.columns,
                s.pushed,
                s.partition_filters,
                s.partition_columns,
                s.schema.len()
            )
        }
        Operator::Exchange(e) => {
            format!("exchange {:?} {:?} {:?} {:?} {:?}", e.partitioning, e.keys, e.partitions, e.origin, e.plan_id)
        }
        Operator::Join(j) => format!(
            "join {:?} {} {:?} = {:?} build {:?} if {:?}{}{}",
            j.algorithm,
            j.kind,
            j.left_keys,
            j.right_keys,
            j.build,
            j.condition,
            if j.skew { " skew" } else { "" },
            if j.null_aware { " null-aware" } else { "" },
        ),
        Operator::Aggregate(a) => format!("aggregate {:?} {:?} partial {}", a.keys, a.functions, a.partial),
        Operator::Filter { condition } => format!("filter {condition}"),
        Operator::Project { .. } => "project".to_owned(),
        Operator::Other => format!("other {name}"),
        Operator::Plumbing | Operator::QueryStage | Operator::Subquery => name.to_owned(),
        known => format!("{known:?}"),
    }
}

/// Every plan in a text as a reader is told.
fn check(text: &str, expected: expect_test::Expect) {
    expected.assert_eq(&parse_text(text).iter().map(told).collect::<String>());
}

fn shared_text(below: &str) -> Option<String> {
    std::fs::read_to_string(shared(below)?).ok()
}

#[test]
fn an_outline_alone_gives_the_tree() {
    let Some(text) = shared_text("data/queries/code/02-explain-outline.txt") else { return };
    check(
        &text,
        expect_test::expect![[r#"
        Physical Plan final Some(false) cut false unknown []
        11 Adaptive
          10 aggregate [] [] partial false
            9 exchange Other [] None Requirements None
              8 aggregate [] [] partial true
                7 project
                  6 join BroadcastHash Inner [] = [] build Some(Right) if None
                    2 filter 
                      1 scan parquet  [] pushed None partition None by [] schema 0
                    5 BroadcastExchange { mode: "" }
                      4 filter 
                        3 scan parquet  [] pushed None partition None by [] schema 0
    "#]],
    );
}

#[test]
fn pasted_cases() {
    for (case, expected) in [
        (
            "06-plan-cast-on-column-blocks-pushdown",
            expect_test::expect![[r#"
            Physical Plan final None cut false unknown []
            *1 filter (isnotnull(created_at#2) AND (cast(created_at#2 as string) >= 2025-01-01))
              *1 ColumnarToRow
                scan parquet InMemoryFileIndex(1 paths)[s3a://lake/items] ["code", "label", "created_at"] pushed Some(["IsNotNull(created_at)"]) partition Some([]) by [] schema 3
        "#]],
        ),
        (
            "07-plan-null-safe-or-join",
            expect_test::expect![[r#"
            Physical Plan final Some(false) cut false unknown []
            Adaptive
              join NestedLoop LeftAnti [] = [] build Some(Right) if Some("((ref#256 = ref#270) OR (isnull(ref#256) AND isnull(ref#270)))")
                scan parquet ops.orders ["order_id", "ref", "amount"] pushed Some([]) partition Some([]) by [] schema 3
                BroadcastExchange { mode: "IdentityBroadcastMode" }
                  scan parquet ops.blocked ["ref"] pushed Some([]) partition Some([]) by [] schema 1
        "#]],
        ),
        (
            "08-plan-constant-join-key",
            expect_test::expect![[r#"
            Physical Plan final None cut true unknown []
            join Cartesian Inner [] = [] build None if None
              *3 aggregate ["20251216_20251222"] ["count(distinct host_id)"] partial false
                exchange Hash ["20251216_20251222"] Some(1000) Requirements None
              *6 aggregate ["20251216_20251222"] ["count(1)"] partial false
                exchange Hash ["20251216_20251222"] Some(1000) Requirements None
        "#]],
        ),
        (
            "04-broadcast-larger-than-estimated",
            expect_test::expect![[r#"
             final None cut true unknown []
            join BroadcastHash Inner ["account_id"] = ["account_id"] build Some(Right) if None
              scan parquet lake.invoices ["account_id", "amount"] pushed None partition None by [] schema 0
              BroadcastExchange { mode: "HashedRelationBroadcastMode" }
                filter isnotnull(account_id#88L)
                  scan parquet lake.accounts_wide ["account_id"] pushed None partition None by [] schema 0
        "#]],
        ),
        ("11-lost-heartbeats-hide-a-library-conflict", expect_test::expect![[""]]),
        ("12-vacuum-one-job-per-partition", expect_test::expect![[""]]),
    ] {
        let Some(text) = shared_text(&format!("data/cases/{case}/input.txt")) else { return };
        check(&text, expected);
    }
}

#[test]
fn adaptive_text_gives_the_plan_that_ran_and_the_first_one() {
    check(
        "25/01/01 10:00:00 INFO Q: == Physical Plan ==\r
AdaptiveSparkPlan isFinalPlan=true\r
+- == Final Plan ==\r
   *(3) HashAggregate(keys=[k#1L], functions=[sum(v#2)], output=[k#1L, s#9])\r
   +- AQEShuffleRead coalesced\r
      +- ShuffleQueryStage 0\r
         +- Exchange hashpartitioning(k#1L, 200), ENSURE_REQUIREMENTS, [plan_id=31]\r
            +- *(1) HashAggregate(keys=[k#1L], functions=[partial_sum(v#2)], output=[k#1L, sum#5])\r
               +- *(1) ColumnarToRow\r
                  +- FileScan parquet lake.t[k#1L,v#2,dt#3] Batched: true, DataFilters: [], Format: Parquet, Location: InMemoryFileIndex(1 paths)[file:/lake/t], PartitionFilters: [isnotnull(dt#3), (dt#3 = 2025-01-01)], PushedFilters: [], ReadSchema: struct<k:bigint,v:double>\r
+- == Initial Plan ==\r
   HashAggregate(keys=[k#1L], functions=[sum(v#2)], output=[k#1L, s#9])\r
   +- Exchange hashpartitioning(k#1L, 200), ENSURE_REQUIREMENTS, [plan_id=12]\r
      +- HashAggregate(keys=[k#1L], functions=[partial_sum(v#2)], output=[k#1L, sum#5])\r
         +- FileScan parquet lake.t[k#1L,v#2] Batched: true\r
",
        expect_test::expect![[r#"
            Final Plan final Some(true) cut false unknown []
            Adaptive
              *3 aggregate ["k"] ["sum(v)"] partial false
                ShuffleRead { coalesced: true, skewed: false, local: false }
                  ShuffleQueryStage
                    exchange Hash ["k"] Some(200) Requirements Some(31)
                      *1 aggregate ["k"] ["partial_sum(v)"] partial true
                        *1 ColumnarToRow
                          scan parquet lake.t ["k", "v", "dt"] pushed Some([]) partition Some(["isnotnull(dt#3)", "(dt#3 = 2025-01-01)"]) by ["dt"] schema 2
            Initial Plan final Some(false) cut false unknown []
            Adaptive
              aggregate ["k"] ["sum(v)"] partial false
                exchange Hash ["k"] Some(200) Requirements Some(12)
                  aggregate ["k"] ["partial_sum(v)"] partial true
                    scan parquet lake.t ["k", "v"] pushed None partition None by [] schema 0
        "#]],
    );
}

#[test]
fn cost_and_extended_text() {
    check(
        "== Parsed Logical Plan ==
'Filter ('id > 5)
+- Relation lake.o[id#1L,v#2] parquet

== Analyzed Logical Plan ==
id: bigint, v: double
Filter (id#1L > cast(5 as bigint))
+- Relation lake.o[id#1L,v#2] parquet

== Optimized Logical Plan ==
Filter (isnotnull(id#1L) AND (id#1L > 5)), Statistics(sizeInBytes=1.5 KiB)
+- Relation lake.o[id#1L,v#2] parquet, Statistics(sizeInBytes=160.2 MiB, rowCount=1.50E+6)

== Physical Plan ==
*(1) Filter (isnotnull(id#1L) AND (id#1L > 5))
+- *(1) ColumnarToRow
   +- FileScan parquet lake.o[id#1L,v#2] Batched: true, DataFilters: [isnotnull(id#1L), (id#1L > 5)], Format: Parquet, Location: InMemoryFileIndex(1 paths)[s3://lake/o], PartitionFilters: [], PushedFilters: [IsNotNull(id), GreaterThan(id,5)], ReadSchema: struct<id:bigint,v:double>
",
        expect_test::expect![[r#"
            Physical Plan final None cut false unknown []
            *1 filter (isnotnull(id#1L) AND (id#1L > 5))
              *1 ColumnarToRow
                scan parquet lake.o ["id", "v"] pushed Some(["IsNotNull(id)", "GreaterThan(id,5)"]) partition Some([]) by [] schema 2 ~167981875.2 bytes Some(1500000.0) rows
        "#]],
    );
}

#[test]
fn sources_of_all_kinds() {
    check(
        "== Physical Plan ==
Union
:- Scan JDBCRelation(SALES.ORDERS) [numPartitions=4] [ID#1,NAME#2] PushedFilters: [*IsNotNull(ID), *GreaterThan(ID,3)], ReadSchema: struct<ID:int,NAME:string>
:- Scan hive default.events [id#10, dt#11], HiveTableRelation [`default`.`events`, org.apache.hadoop.hive.ql.io.orc.OrcSerde, Data Cols: [id#10], Partition Cols: [dt#11], Pruned Partitions: [(dt=1)]], [isnotnull(dt#11), (dt#11 = 1)]
:- BatchScan spark_catalog.db.ice[id#20L, data#21] spark_catalog.db.ice (branch=null) [filters=id IS NOT NULL, id > 5, groupedBy=] RuntimeFilters: []
:- BatchScan parquet file:/lake/p[a#30] ParquetScan DataFilters: [], Format: parquet, Location: InMemoryFileIndex(1 paths)[file:/lake/p], PartitionFilters: [], PushedAggregation: [], PushedFilters: [], PushedGroupBy: [], ReadSchema: struct<a:int> RuntimeFilters: []
:- FileScan parquet spark_catalog.default.d[a#40,day#41] Batched: true, DataFilters: [], Format: Parquet, Location: PreparedDeltaFileIndex(1 paths)[file:/lake/d], PartitionFilters: [], PushedFilters: [], ReadSchema: struct<a:int>
:- *(2) Scan ExistingRDD[id#0L]
:- LocalTableScan [a#1]
:- *(3) Range (0, 10, step=1, splits=2)
:- InMemoryTableScan [a#50]
:     +- InMemoryRelation [a#50], StorageLevel(disk, memory, deserialized, 1 replicas)
:           +- FileScan csv [a#50] Batched: false, DataFilters: [], Format: CSV, Location: InMemoryFileIndex(1 paths)[file:/lake/c], PartitionFilters: [], PushedFilters: [], ReadSchema: struct<a:int>
+- NewFangledScanner [a#1]
",
        expect_test::expect![[r#"
            Physical Plan final None cut false unknown ["NewFangledScanner"]
            Union
              scan jdbc SALES.ORDERS ["ID", "NAME"] pushed Some(["*IsNotNull(ID)", "*GreaterThan(ID,3)"]) partition None by [] schema 2
              scan hive default.events ["id", "dt"] pushed None partition Some(["isnotnull(dt#11)", "(dt#11 = 1)"]) by ["dt"] schema 0
              scan iceberg spark_catalog.db.ice ["id", "data"] pushed Some(["id IS NOT NULL", "id > 5"]) partition None by [] schema 0
              scan parquet file:/lake/p ["a"] pushed Some([]) partition Some([]) by [] schema 1
              scan delta spark_catalog.default.d ["a", "day"] pushed Some([]) partition Some([]) by ["day"] schema 1
              *2 scan rdd  ["id"] pushed None partition None by [] schema 0
              Local
              *3 Local
              CacheScan
                CacheBuild
                  scan csv InMemoryFileIndex(1 paths)[file:/lake/c] ["a"] pushed Some([]) partition Some([]) by [] schema 1
              other NewFangledScanner
        "#]],
    );
}

#[test]
fn subqueries_dynamic_pruning_and_reuse() {
    check(
        "== Physical Plan ==
*(2) BroadcastHashJoin [dt#3], [dt#65], Inner, BuildRight, false
:- *(2) Filter (v#1 > Subquery scalar-subquery#7, [id=#50])
:  :  +- Subquery scalar-subquery#7, [id=#50]
:  :     +- *(1) HashAggregate(keys=[], functions=[max(x#9)])
:  :        +- LocalTableScan [x#9]
:  +- FileScan parquet [v#1,dt#3] Batched: true, PartitionFilters: [isnotnull(dt#3), dynamicpruningexpression(dt#3 IN dynamicpruning#86)], PushedFilters: [], ReadSchema: struct<v:int>
:        +- SubqueryBroadcast dynamicpruning#86, 0, [dt#65], [id=#310]
:           +- ReusedExchange [dt#65], BroadcastExchange HashedRelationBroadcastMode(List(input[0, date, true]),false), [plan_id=262]
+- BroadcastExchange HashedRelationBroadcastMode(List(input[0, date, true]),false), [plan_id=262]
   +- LocalTableScan [dt#65]
",
        expect_test::expect![[r#"
            Physical Plan final None cut false unknown []
            *2 join BroadcastHash Inner ["dt"] = ["dt"] build Some(Right) if None
              *2 filter (v#1 > Subquery scalar-subquery#7, [id=#50])
                scan parquet  ["v", "dt"] pushed Some([]) partition Some(["isnotnull(dt#3)", "dynamicpruningexpression(dt#3 IN dynamicpruning#86)"]) by ["dt"] schema 1
              BroadcastExchange { mode: "HashedRelationBroadcastMode" }
                Local
            Subquery
              *1 aggregate [] ["max(x)"] partial false
                Local
            SubqueryBroadcast
              Reused
        "#]],
    );
}

#[test]
fn exchanges_of_every_origin() {
    for (line, expected) in [
        ("Exchange hashpartitioning(order_id#7, 200)", "Hash [\"order_id\"] Some(200) Requirements None"),
        (
            "Exchange hashpartitioning(country_id#1, 200), REPARTITION_BY_COL, [plan_id=3]",
            "Hash [\"country_id\"] Some(200) RepartitionByColumns Some(3)",
        ),
        (
            "Exchange rangepartitioning(k#2L ASC NULLS FIRST, 8), true, [id=#9]",
            "Range [\"k\"] Some(8) Requirements Some(9)",
        ),
        ("Exchange RoundRobinPartitioning(2), REPARTITION_BY_NUM", "RoundRobin [] Some(2) RepartitionByNumber None"),
        ("Exchange RoundRobinPartitioning(2), false, [id=#9]", "RoundRobin [] Some(2) RepartitionByNumber Some(9)"),
        ("Exchange SinglePartition, ENSURE_REQUIREMENTS, [plan_id=5]", "Single [] Some(1) Requirements Some(5)"),
        (
            "Exchange RoundRobinPartitioning(200), REBALANCE_PARTITIONS_BY_NONE, [plan_id=5]",
            "RoundRobin [] Some(200) Rebalance Some(5)",
        ),
        (
            "GpuColumnarExchange gpuhashpartitioning(a#1, coalesce(b#2, 0), 64), ENSURE_REQUIREMENTS",
            "Hash [\"a\", \"coalesce(b, 0)\"] Some(64) Requirements None",
        ),
        ("PhotonShuffleExchangeSink hashpartitioning(a#1, 64)", "Hash [\"a\"] Some(64) Requirements None"),
    ] {
        let plans = parse_text(line);
        assert_eq!(op(&plans[0].nodes[0].op, ""), format!("exchange {expected}"), "{line}");
    }
}

#[test]
fn a_sketch_is_a_chain() {
    let plan =
        parse_sketch("WriteFiles <- Exchange RoundRobinPartitioning(2), REPARTITION_BY_NUM <- Project <- Scan parquet");
    expect_test::expect![[r#"
        Sketch final None cut false unknown []
        Write { command: "WriteFiles", target: None }
          exchange RoundRobin [] Some(2) RepartitionByNumber None
            project
              scan parquet  [] pushed None partition None by [] schema 0
    "#]]
    .assert_eq(&told(&plan));
}

#[test]
fn details_without_an_outline_give_the_tree_back() {
    check(
        "(1) Scan parquet lake.a
Output [1]: [id#1L]
Location: InMemoryFileIndex [file:/lake/a]
ReadSchema: struct<id:bigint>

(2) Scan parquet lake.b
Output [1]: [id#2L]
ReadSchema: struct<id:bigint>

(3) BroadcastExchange
Input [1]: [id#2L]
Arguments: HashedRelationBroadcastMode(List(input[0, bigint, false]),false), [plan_id=12]

(4) BroadcastHashJoin [codegen id : 2]
Left keys [1]: [id#1L]
Right keys [1]: [id#2L]
Join type: LeftOuter
Join condition: None
",
        expect_test::expect![[r#"
             final None cut false unknown []
            4 *2 join BroadcastHash LeftOuter ["id"] = ["id"] build None if None
              1 scan parquet lake.a ["id"] pushed Some([]) partition Some([]) by [] schema 1
              3 BroadcastExchange { mode: "HashedRelationBroadcastMode" }
                2 scan parquet lake.b ["id"] pushed None partition None by [] schema 1
        "#]],
    );
}

#[test]
fn prose_and_traces_are_no_plan() {
    for text in [
        "",
        "Sort the data, then Filter it",
        "java.lang.OutOfMemoryError: Java heap space\n\tat org.apache.spark.sql.execution.SortExec.x(SortExec.scala:1)",
        "Exchange\nUnion",
        "- Filter\n- Project",
    ] {
        assert_eq!(parse_text(text), [], "{text}");
    }
}

#[test]
fn no_mutation_panics() {
    let mut texts: Vec<String> = Vec::new();
    each_logged_plan(|_, _, description| {
        if texts.len() < 400 && description.len() < 8_000 {
            texts.push(description.to_owned());
        }
    });
    let mut seed = 7_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below.max(1)
    };
    for round in 0..4_000 {
        let Some(text) = texts.get(round % texts.len().max(1)) else { return };
        let mut bytes = text.clone().into_bytes();
        for _ in 0..1 + random(8) {
            let (at, other) = (random(bytes.len()), random(bytes.len()));
            match random(4) {
                0 => bytes.truncate(at),
                1 => drop(bytes.drain(at.min(other)..at.max(other))),
                2 => bytes.insert(at.min(bytes.len()), b"([{}]),#\n:+- *'`\"=.\xc3"[random(20)]),
                _ => bytes.get_mut(at).into_iter().for_each(|b| *b = b"([{}]),#\n:+- *'`\"=.\xc3"[other % 20]),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        for plan in parse_text(&text) {
            assert!(plan.nodes.iter().all(|n| n.parent.is_none_or(|p| p < plan.nodes.len())));
        }
        let _ = parse_sketch(&text);
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "([ :+*|-]{0,6}(Sort|Filter|FileScan parquet|Exchange|== Final Plan ==|== Physical Plan ==|\\PC{0,12})[ \\[(#a-z0-9,)\\]:.]{0,20}\n){0,12}") {
        let _ = parse_text(&text);
        let _ = parse_sketch(&text);
    }
}

/// What two forms of one plan have in common: everything but numbers, ids and sizes, and the
/// names that only one of the forms gives a wrapper.
fn essence(plan: &Plan) -> Vec<String> {
    let mut plan = plan.clone();
    if plan.title == "Initial Plan" {
        // Formatted text lists each subquery once, as it ran.
        plan.subqueries.clear();
    }
    for node in &mut plan.nodes {
        (node.number, node.codegen, node.statistics) = (None, None, None);
        match &mut node.op {
            Operator::Exchange(exchange) => exchange.plan_id = None,
            Operator::Scan(scan) => {
                scan.location = scan.location.take().map(|l| l.split([' ', '(']).next().unwrap_or_default().to_owned());
            }
            // Expression ids differ from one `explain` to the next.
            Operator::Filter { condition } => *condition = list::without_ids(condition),
            // Formatted text does not say that an anti join is null-aware.
            Operator::Join(join) => {
                join.null_aware = false;
                join.condition = join.condition.as_deref().map(list::without_ids);
            }
            Operator::Subquery => node.name = "Subquery".into(),
            _ => {}
        }
    }
    let ids = regex::Regex::new(r"#\d+L?").expect("a pattern");
    let told = told(&plan);
    let mut lines: Vec<String> = told.lines().skip(1).map(|l| ids.replace_all(l, "").trim().to_owned()).collect();
    // Formatted text names a subquery in a line of its own.
    lines.retain(|l| l != "Subquery" && l != "CacheBuild");
    lines
}

#[test]
fn every_mode_of_explain_tells_the_same() {
    let Some(folder) = explained() else { return };
    let mut texts = Vec::new();
    files(&folder, &mut texts);
    let (mut compared, mut plans, mut different) = (0, 0, Vec::new());
    for path in &texts {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.ends_with(".txt") {
            continue;
        }
        let read = parse_text(&text);
        plans += read.len();
        assert!(!read.is_empty() || name.contains("codegen"), "{name}");
        for plan in &read {
            assert!(plan.unknown.is_empty(), "{name}: {:?}", plan.unknown);
        }
        let Some(other) =
            ["simple.txt", "extended.txt", "cost.txt"].iter().find_map(|m| name.strip_suffix(m).map(|_| m))
        else {
            let Some(stem) = name.strip_suffix("simple.final.txt") else { continue };
            compare(path, &format!("{stem}formatted.final.txt"), &mut compared, &mut different);
            continue;
        };
        let stem = name.strip_suffix(other).unwrap_or_default();
        compare(path, &format!("{stem}formatted.txt"), &mut compared, &mut different);
    }
    println!("{plans} plans in {} texts, {compared} compared, {} differ", texts.len(), different.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
}

fn compare(path: &Path, formatted: &str, compared: &mut usize, different: &mut Vec<String>) {
    let Ok(one) = std::fs::read_to_string(path) else { return };
    let Ok(two) = std::fs::read_to_string(path.with_file_name(formatted)) else { return };
    let (one, two) = (parse_text(&one), parse_text(&two));
    *compared += 1;
    if one.len() != two.len() {
        different.push(format!("{}: {} and {} plans", path.display(), one.len(), two.len()));
    }
    for (one, two) in one.iter().zip(&two) {
        let (one, two) = (essence(one), essence(two));
        if let Some(at) = (0..one.len().max(two.len())).find(|&n| one.get(n) != two.get(n)) {
            different.push(format!("{}: {at}\n  {:?}\n  {:?}", path.display(), one.get(at), two.get(at)));
        }
    }
}

#[test]
fn a_relation_that_does_not_close_reaches_to_the_end() {
    for (line, table) in [
        ("Scan JDBCRelation(orders) [numPartitions=4] [id#1]", "orders"),
        ("Scan JDBCRelation((SELECT 1) t) [numPartitions=4] [id#1]", "(SELECT 1) t"),
        ("Scan JDBCRelation(orders \u{e9}\u{fffd}\u{fffd}\u{fffd}", "orders \u{e9}\u{fffd}\u{fffd}\u{fffd}"),
    ] {
        let plans = parse_text(&format!("== Physical Plan ==\n{line}\n"));
        let scan = plans[0].nodes.iter().find_map(|n| match &n.op {
            Operator::Scan(scan) => Some(scan),
            _ => None,
        });
        assert_eq!(scan.and_then(|s| s.table.as_deref()), Some(table), "{line}");
    }
}
