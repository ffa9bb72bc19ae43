//! Readings as data: a plan's text in, what a person is shown out.

use super::*;
use expect_test::{Expect, expect};
use read::plan::parse_text;

fn told(reading: &PlanReading) -> String {
    let mut text = format!("{} — {}\n", reading.title, reading.summary);
    for step in &reading.steps {
        let inputs = step.inputs.iter().map(|n| format!("<{n}")).collect::<String>();
        text.push_str(&format!("{}{inputs} s{} {}\n", step.number, step.stage, step.name));
        step.details.iter().for_each(|d| text.push_str(&format!("     {d}\n")));
    }
    reading.notes.iter().for_each(|n| text.push_str(&format!("{:?} {:?} {}\n", n.kind, n.step, n.text)));
    text
}

fn check(plan: &str, expected: Expect) {
    let plans = parse_text(plan);
    expected.assert_eq(&told(&read_plan(&plans[0], None)));
}

fn shared(below: &str) -> Option<String> {
    let text = testkit::shared().and_then(|folder| std::fs::read_to_string(folder.join(below)).ok());
    if text.is_none() {
        eprintln!("skipped: no shared sample {below}");
    }
    text
}

#[test]
fn a_cast_blocks_the_pushdown() {
    let Some(text) = shared("data/cases/06-plan-cast-on-column-blocks-pushdown/input.txt") else { return };
    check(
        &text,
        expect![[r#"
        Physical Plan — two operators: one read
        1 s1 Read items
             format parquet
             three columns: code, label, created_at
             pushed: IsNotNull(created_at)
             partition filters: none
        2<1 s1 Filter (isnotnull(created_at) AND (cast(created_at as string) >= 2025-01-01))
             pushed: isnotnull(created_at)
             not pushed: cast(created_at as string) >= 2025-01-01 (cast on the column)
        NotPushed Some(2) cast(created_at as string) >= 2025-01-01 is not pushed: every row is read, then filtered (cast on the column).
    "#]],
    );
}

#[test]
fn an_or_makes_a_nested_loop() {
    let Some(text) = shared("data/cases/07-plan-null-safe-or-join/input.txt") else { return };
    check(
        &text,
        expect![[r#"
            Physical Plan — four operators: two reads, one broadcast, one join
            1 s1 Read ops.orders
                 format parquet
                 three columns: order_id, ref, amount
                 pushed: none
                 partition filters: none
            2 s2 Read ops.blocked
                 format parquet
                 one column: ref
                 pushed: none
                 partition filters: none
            3<2 s2 Broadcast ops.blocked
                 IdentityBroadcastMode
            4<1<3 s1 Join ops.orders with ops.blocked (LeftAnti, nested loop, broadcast right)
                 condition ((ref = ref) OR (isnull(ref) AND isnull(ref)))
            NestedLoop Some(4) Join ops.orders with ops.blocked (LeftAnti, nested loop, broadcast right): every row is compared with every broadcast row. The condition is an equality that also lets NULL meet NULL, written with OR: `<=>` says the same and gives a hash join.
            Broadcast Some(3) Broadcast ops.blocked: collected by the driver, then held by every executor.
            Adaptive None isFinalPlan=false: this is the plan before it ran. Once sizes are measured, joins may become broadcasts, small partitions are merged, skewed ones split.
        "#]],
    );
}

#[test]
fn a_constant_key_makes_a_cartesian_product() {
    let Some(text) = shared("data/cases/08-plan-constant-join-key/input.txt") else { return };
    check(
        &text,
        expect![[r#"
            Physical Plan — five operators: two shuffles, one join
            1 s1 Shuffle by 20251216_20251222 into 1 000 partitions
                 asked for by the planner
            2<1 s2 Aggregate by 20251216_20251222
                 computes count(distinct host_id)
            3 s3 Shuffle by 20251216_20251222 into 1 000 partitions
                 asked for by the planner
            4<3 s2 Aggregate by 20251216_20251222
                 computes count(1)
            5<2<4 s2 Join rows with rows (cartesian product)
            Cartesian Some(5) Join rows with rows (cartesian product): every row meets every row; tasks = partitions of the left times partitions of the right. The key is the constant 20251216_20251222, so the optimizer dropped the join condition.
            Shuffle Some(1) Shuffle by 20251216_20251222 into 1 000 partitions. Needed by: aggregate by 20251216_20251222.
            Shuffle Some(3) Shuffle by 20251216_20251222 into 1 000 partitions. Needed by: aggregate by 20251216_20251222.
            Cut None Parts of this text are missing (`...`): what they would say is not known. spark.sql.debug.maxToStringFields makes Spark print more.
        "#]],
    );
}

#[test]
fn an_outline_is_read_from_the_sources() {
    let Some(text) = shared("data/queries/code/02-explain-outline.txt") else { return };
    check(
        &text,
        expect![[r#"
            Physical Plan — ten operators: two reads, one shuffle, one broadcast, one join
            1 s1 Read parquet data
                 format parquet
            2<1 s1 Filter
            3 s2 Read parquet data
                 format parquet
            4<3 s2 Filter
            5<4 s2 Broadcast parquet data
            6<2<5 s1 Join parquet data with parquet data (broadcast right)
            7<6 s1 Choose columns
            8<7 s1 Aggregate (first step, before the shuffle)
            9<8 s1 Shuffle
                 asked for by the planner
            10<9 s3 Aggregate
            Join Some(6) Join parquet data with parquet data (broadcast right). One side is sent to every executor, the other stays where it is.
            Broadcast Some(5) Broadcast parquet data: collected by the driver, then held by every executor.
            Shuffle Some(9) Shuffle. Needed by: aggregate.
            Adaptive None isFinalPlan=false: this is the plan before it ran. Once sizes are measured, joins may become broadcasts, small partitions are merged, skewed ones split.
        "#]],
    );
}

#[test]
fn a_sort_merge_join_with_its_reasons() {
    check(
        "== Physical Plan ==
Window [row_number() windowspecdefinition(amount#3 ASC NULLS FIRST, specifiedwindowframe(RowFrame, unboundedpreceding$(), currentrow$())) AS rn#9], [amount#3 ASC NULLS FIRST]
+- Sort [amount#3 ASC NULLS FIRST], false, 0
   +- Exchange SinglePartition, ENSURE_REQUIREMENTS, [plan_id=9]
      +- *(5) SortMergeJoin [customer_id#1L], [id#8L], LeftOuter
         :- *(2) Sort [customer_id#1L ASC NULLS FIRST], false, 0
         :  +- Exchange hashpartitioning(customer_id#1L, 200), ENSURE_REQUIREMENTS, [plan_id=7]
         :     +- Exchange RoundRobinPartitioning(8), REPARTITION_BY_NUM, [plan_id=5]
         :        +- *(1) Filter (((upper(name#2) = X) AND isnotnull(amount#3)) AND (amount#3 > 50.0))
         :           +- BatchEvalPython [f(name#2)#30], [pythonUDF0#31]
         :              +- FileScan parquet lake.orders[customer_id#1L,name#2,amount#3,dt#4] Batched: true, DataFilters: [], Format: Parquet, Location: InMemoryFileIndex(1 paths)[s3://lake/orders], PartitionFilters: [], PushedFilters: [], ReadSchema: struct<customer_id:bigint,name:string,amount:double>
         +- *(4) Sort [id#8L ASC NULLS FIRST], false, 0
            +- Exchange hashpartitioning(id#8L, 200), ENSURE_REQUIREMENTS, [plan_id=8]
               +- FileScan parquet [id#8L] Batched: true, DataFilters: [], Format: Parquet, Location: InMemoryFileIndex(9 paths)[s3://lake/customers/dt=2025-01-01, ... 8 entries], PartitionFilters: [], PushedFilters: [], ReadSchema: struct<id:bigint>
",
        expect![[r#"
            Physical Plan — 13 operators: two reads, four shuffles, one join
            1 s1 Read lake.orders
                 format parquet
                 four columns: customer_id, name, amount, dt
                 pushed: none
                 partition filters: none
                 partitioned by dt
            2<1 s1 Run Python [f(name)]
            3<2 s1 Filter (((upper(name) = X) AND isnotnull(amount)) AND (amount > 50.0))
                 not pushed: upper(name) = X (a function on the column)
                 not pushed: amount > 50.0 (an expression that the source does not know)
            4<3 s1 Shuffle evenly into eight partitions
                 asked for by repartition(n): the number is kept whatever the data
            5<4 s2 Shuffle by customer_id into 200 partitions
                 asked for by the planner
            6<5 s3 Sort by customer_id
            7 s4 Read customers
                 format parquet
                 one column: id
                 pushed: none
                 partition filters: none
            8<7 s4 Shuffle by id into 200 partitions
                 asked for by the planner
            9<8 s3 Sort by id
            10<6<9 s3 Join lake.orders with customers on customer_id = id (LeftOuter, sort-merge)
            11<10 s3 Shuffle everything into one partition
                 asked for by the planner
            12<11 s5 Sort by amount
            13<12 s5 Window over all rows
            SinglePartition Some(13) The window has no PARTITION BY: one task gets all rows.
            NotPushed Some(3) upper(name) = X is not pushed: every row is read, then filtered (a function on the column).
            NotPushed Some(3) amount > 50.0 is not pushed: every row is read, then filtered (an expression that the source does not know).
            Udf Some(2) Run Python [f(name)] row by row, pickled: rows leave the JVM and come back; filters above it cannot go below it.
            Repartition Some(4) Shuffle evenly into eight partitions: a full shuffle of its own; repartition(n) asked for it and keeps the number whatever the data. Another shuffle follows at once and moves every row again.
            NoPartitionFilter Some(1) lake.orders is partitioned by dt and no filter is on that: every partition is read.
            Join Some(10) Join lake.orders with customers on customer_id = id (LeftOuter, sort-merge). Both sides are shuffled by the key and sorted: neither was known to be small enough to broadcast. Of this join type only the right side can be broadcast.
            Shuffle Some(5) Shuffle by customer_id into 200 partitions. Needed by: join lake.orders with customers on customer_id = id (LeftOuter, sort-merge).
            Shuffle Some(8) Shuffle by id into 200 partitions. Needed by: join lake.orders with customers on customer_id = id (LeftOuter, sort-merge).
            Shuffle Some(11) Shuffle everything into one partition. Needed by: window over all rows.
        "#]],
    );
}

#[test]
fn adaptive_changes_are_told() {
    let plans = parse_text(
        "== Physical Plan ==
AdaptiveSparkPlan isFinalPlan=true
+- == Final Plan ==
   *(3) BroadcastHashJoin [k#1], [k#2], Inner, BuildRight, false
   :- AQEShuffleRead local
   :  +- ShuffleQueryStage 0
   :     +- Exchange hashpartitioning(k#1, 200), ENSURE_REQUIREMENTS, [plan_id=1]
   :        +- Range (0, 9)
   +- BroadcastQueryStage 2
      +- BroadcastExchange HashedRelationBroadcastMode(List(input[0, bigint, false]),false), [plan_id=3]
         +- AQEShuffleRead coalesced
            +- ShuffleQueryStage 1
               +- Exchange hashpartitioning(k#2, 200), ENSURE_REQUIREMENTS, [plan_id=2]
                  +- Range (0, 9)
+- == Initial Plan ==
   SortMergeJoin [k#1], [k#2], Inner
   :- Sort [k#1 ASC NULLS FIRST], false, 0
   :  +- Exchange hashpartitioning(k#1, 200), ENSURE_REQUIREMENTS, [plan_id=1]
   :     +- Range (0, 9)
   +- Sort [k#2 ASC NULLS FIRST], false, 0
      +- Exchange hashpartitioning(k#2, 200), ENSURE_REQUIREMENTS, [plan_id=2]
         +- Range (0, 9)
",
    );
    let changes: String =
        read_change(&plans[1], &plans[0]).iter().map(|c| format!("{:?} {}\n", c.kind, c.text)).collect();
    expect![[r#"
        JoinAlgorithm sort-merge became broadcast right: join local rows with local rows on k (broadcast right).
        Coalesced Small partitions were merged after: shuffle by k into 200 partitions.
        LocalRead Read on the same executor, without the network: shuffle by k into 200 partitions.
    "#]]
    .assert_eq(&changes);
}

#[test]
fn predicates_and_what_became_of_them() {
    for (condition, pushed, expected) in [
        ("(a#1 > 50.0)", "GreaterThan(a,50.0)", vec![]),
        ("(50.0 < a#1)", "GreaterThan(a,50.0)", vec![]),
        ("(isnotnull(a#1) AND (a#1 = 3))", "IsNotNull(a)", vec![BlockedBy::Unknown]),
        ("isnotnull(a#1)", "", vec![]),
        ("(cast(s#2 as int) = 3)", "IsNotNull(s)", vec![BlockedBy::TypeMismatch]),
        ("(cast(t#3 as date) = 2025-01-01)", "IsNotNull(t)", vec![BlockedBy::Cast]),
        ("(upper(s#2) = X)", "IsNotNull(s)", vec![BlockedBy::Function]),
        ("UDF(s#2)", "", vec![BlockedBy::Udf]),
        ("s#2 LIKE %x_", "", vec![BlockedBy::Like]),
        ("StartsWith(s#2, x)", "StringStartsWith(s,x)", vec![]),
        ("((a#1 = 1) OR (upper(s#2) = X))", "", vec![BlockedBy::Or]),
        ("((a#1 = 1) OR (s#2 = x))", "Or(EqualTo(a,1),EqualTo(s,x))", vec![]),
        ("a#1 IN (1,2)", "In(a, [1,2])", vec![]),
        ("NOT (a#1 = 3)", "Not(EqualTo(a,3))", vec![]),
        ("(rand(1) < 0.5)", "", vec![BlockedBy::Random]),
        ("(st#4.city = Brno)", "IsNotNull(st)", vec![BlockedBy::Nested]),
        ("might_contain(Subquery subquery#9, xxhash64(a#1, 42))", "", vec![]),
    ] {
        let text = format!(
            "== Physical Plan ==\nFilter {condition}\n+- FileScan parquet t[a#1,s#2,t#3,st#4] Batched: true, DataFilters: [], Format: Parquet, Location: InMemoryFileIndex(1 paths)[file:/t], PartitionFilters: [], PushedFilters: [{pushed}], ReadSchema: struct<a:double,s:string,t:timestamp,st:struct<city:string>>"
        );
        let found = crate::plans::unpushed(&parse_text(&text)[0], 0).unwrap_or_default();
        let blocked: Vec<BlockedBy> = found.not_pushed.iter().map(|n| n.blocked_by).collect();
        assert_eq!(blocked, expected, "{condition}");
    }
}

/// Plans of a log of the shared samples, with the application.
fn logged(below: &str) -> Option<Application> {
    let Some(path) = testkit::shared().map(|folder| folder.join(below)).filter(|p| p.exists()) else {
        eprintln!("skipped: no shared sample {below}");
        return None;
    };
    let bytes = std::fs::read(&path).ok()?;
    read::event_log(vec![read::source::Part::bytes("log", bytes)], &read::Options::default()).ok()
}

fn is_driver_work(op: &Operator) -> bool {
    matches!(op, Operator::BroadcastExchange { .. } | Operator::Subquery)
}

#[test]
fn times_of_a_query_stay_within_its_tasks() {
    for log in [
        "data/public-logs/dataproc_join_query.zstd",
        "data/public-logs/databricks_photon_13_3.zstd",
        "data/eventlogs/skew_join_hot_key.zstd",
        "data/eventlogs/python_udf_heavy.zstd",
        "data/eventlogs/aqe_skew_join_split.zstd",
    ] {
        let Some(app) = logged(log) else { continue };
        for sql in &app.sql {
            let times = own_time(&app, sql.plan());
            let sum: i64 = times.iter().map(|t| t.ms).sum();
            let stages = app.stages.iter().filter(|s| s.sql == Some(sql.id));
            let run: i64 = stages.map(|s| s.sum(model::Metric::RunMs)).sum();
            let told = format!("{log} SQL {}: {sum} ms of operators, {run} ms of tasks", sql.id);
            println!("{told}, {} operators", times.len());
            // The driver's work on broadcasts stands beside the tasks'.
            let driver: i64 = times.iter().filter(|t| is_driver_work(&sql.plan().nodes[t.node].op)).map(|t| t.ms).sum();
            assert!(sum - driver <= run + run / 20, "{told}");
        }
    }
}

#[test]
fn a_run_gives_rows_bytes_and_times() {
    let Some(app) = logged("data/eventlogs/skew_join_hot_key.zstd") else { return };
    let Some(sql) = app.sql.last() else { return };
    let reading = read_plan(sql.plan(), Some(&app));
    let mut text = told(&reading);
    for s in &reading.steps {
        text.push_str(&format!(
            "{} rows {:?} bytes {:?} ms {:?} estimated {}\n",
            s.number, s.rows, s.bytes, s.time_ms, s.time_estimated
        ));
    }
    for stage in &reading.stages {
        text.push_str(&format!(
            "stage {} {:?} {} spark {:?}\n",
            stage.number, stage.steps, stage.ends, stage.spark_stage
        ));
    }
    expect![[r#"
        Physical Plan — eleven operators: two reads, two shuffles, one join, one write
        1 s1 Read orders
             format parquet
             five columns: order_id, customer_id, coupon_id, … (5 in all)
             pushed: IsNotNull(customer_id)
             partition filters: none
        2<1 s1 Filter isnotnull(customer_id)
             pushed: isnotnull(customer_id)
        3<2 s1 Shuffle by customer_id into 16 partitions
             asked for by the planner
        4<3 s2 Sort by customer_id
        5 s3 Read customers
             format parquet
             three columns: customer_id, country_id, name
             pushed: IsNotNull(customer_id)
             partition filters: none
        6<5 s3 Filter isnotnull(customer_id)
             pushed: isnotnull(customer_id)
        7<6 s3 Shuffle by customer_id into 16 partitions
             asked for by the planner
        8<7 s2 Sort by customer_id
        9<4<8 s2 Join orders with customers on customer_id (sort-merge)
        10<9 s2 Choose columns
        11<10 s2 Write to noop
             OverwriteByExpression
        Join Some(9) Join orders with customers on customer_id (sort-merge). Both sides are shuffled by the key and sorted: neither was known to be small enough to broadcast. Sides: 117 MiB and 207 KiB.
        Shuffle Some(3) Shuffle by customer_id into 16 partitions. Needed by: join orders with customers on customer_id (sort-merge). 117 MiB moved.
        Shuffle Some(7) Shuffle by customer_id into 16 partitions. Needed by: join orders with customers on customer_id (sort-merge). 207 KiB moved.
        1 rows Some(1500000) bytes Some(113828242) ms Some(51592) estimated false
        2 rows Some(1500000) bytes None ms Some(34911) estimated true
        3 rows Some(1500000) bytes Some(122317111) ms Some(4152) estimated false
        4 rows None bytes None ms Some(1837) estimated false
        5 rows Some(5000) bytes Some(184824) ms Some(1284) estimated false
        6 rows Some(5000) bytes None ms Some(813) estimated true
        7 rows Some(5000) bytes Some(211821) ms Some(3) estimated false
        8 rows None bytes None ms Some(0) estimated false
        9 rows Some(1500000) bytes None ms Some(29402) estimated true
        10 rows None bytes None ms Some(29402) estimated true
        11 rows None bytes None ms None estimated false
        stage 1 [1, 2, 3] writes a shuffle spark Some(2)
        stage 2 [4, 8, 9, 10, 11] writes the result spark Some(6)
        stage 3 [5, 6, 7] writes a shuffle spark Some(3)
    "#]].assert_eq(&text);
}
