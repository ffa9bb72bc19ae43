//! Readings as data: a plan's text in, what a person is shown out.

use super::*;
use crate::plans::{BlockedBy, own_time};
use expect_test::{Expect, expect};
use read::plan::parse_text;

fn told(reading: &PlanReading) -> String {
    let mut text = format!("{} — {}\n", reading.title, reading.summary);
    for step in &reading.steps {
        let inputs = step.inputs.iter().map(|n| format!("<{n}")).collect::<String>();
        text.push_str(&format!("{}{inputs} s{} {}\n", step.number, step.stage, step.name));
        step.details.iter().for_each(|d| text.push_str(&format!("     {d}\n")));
    }
    reading.stages.iter().for_each(|s| text.push_str(&format!("s{} {}\n", s.number, s.ends)));
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
            s1 gives the result
            NotPushed Some(2) filter cast(created_at as string) >= 2025-01-01: every row is read, then filtered (cast on the column).
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
            1 s1 Read ops.blocked
                 format parquet
                 one column: ref
                 pushed: none
                 partition filters: none
            2<1 s1 Broadcast ops.blocked
                 IdentityBroadcastMode
            3 s2 Read ops.orders
                 format parquet
                 three columns: order_id, ref, amount
                 pushed: none
                 partition filters: none
            4<3<2 s2 Join ops.orders with ops.blocked (LeftAnti, nested loop, broadcast right)
                 condition ((orders.ref = blocked.ref) OR (isnull(orders.ref) AND isnull(blocked.ref)))
            s1 is broadcast to every executor
            s2 gives the result
            NestedLoop Some(4) Join ops.orders with ops.blocked (LeftAnti, nested loop, broadcast right): every row is compared with every broadcast row. The condition is an equality that also lets NULL meet NULL, written with OR: `<=>` says the same and gives a hash join.
            Broadcast Some(2) Broadcast ops.blocked: collected by the driver, then held by every executor.
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
            2 s2 Shuffle by 20251216_20251222 into 1 000 partitions
                 asked for by the planner
            3<1 s3 Aggregate by 20251216_20251222
                 computes count(distinct host_id)
            4<2 s3 Aggregate by 20251216_20251222
                 computes count(1)
            5<3<4 s3 Join two inputs (cartesian product)
            s1 writes a shuffle
            s2 writes a shuffle
            s3 gives the result
            Cartesian Some(5) Join two inputs (cartesian product): every row meets every row; 1 000 × 1 000 partitions make 1 000 000 tasks. The key is the constant 20251216_20251222, so the optimizer dropped the join condition.
            Shuffle Some(1) Shuffle by 20251216_20251222 into 1 000 partitions. Needed by: aggregate by 20251216_20251222.
            Shuffle Some(2) Shuffle by 20251216_20251222 into 1 000 partitions. Needed by: aggregate by 20251216_20251222.
            Cut None Parts of this text are missing (`...`): what they would say is not known.
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
            3<2 s1 Broadcast parquet data
            4 s2 Read parquet data
                 format parquet
            5<4 s2 Filter
            6<5<3 s2 Join parquet data with parquet data (broadcast right)
            7<6 s2 Choose columns
            8<7 s2 Aggregate (first step, before the shuffle)
            9<8 s2 Shuffle
                 asked for by the planner
            10<9 s3 Aggregate
            s1 is broadcast to every executor
            s2 writes a shuffle
            s3 gives the result
            Join Some(6) Join parquet data with parquet data (broadcast right). One side is sent to every executor, the other stays where it is.
            Broadcast Some(3) Broadcast parquet data: collected by the driver, then held by every executor.
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
            6 s3 Read customers
                 format parquet
                 one column: id
                 pushed: none
                 partition filters: none
            7<6 s3 Shuffle by id into 200 partitions
                 asked for by the planner
            8<5 s4 Sort by customer_id
            9<7 s4 Sort by id
            10<8<9 s4 Join lake.orders with customers on customer_id = id (LeftOuter, sort-merge)
            11<10 s4 Shuffle everything into one partition
                 asked for by the planner
            12<11 s5 Sort by amount
            13<12 s5 Window over all rows
            s1 writes a shuffle
            s2 writes a shuffle
            s3 writes a shuffle
            s4 writes a shuffle
            s5 gives the result
            SinglePartition Some(13) The window has no PARTITION BY: one task gets all rows.
            NotPushed Some(3) filter upper(name) = X: every row is read, then filtered (a function on the column).
            NotPushed Some(3) filter amount > 50.0: every row is read, then filtered (an expression that the source does not know).
            Udf Some(2) Run Python [f(name)] row by row, pickled: rows leave the JVM and come back; a filter on its result cannot go below it.
            Repartition Some(4) Shuffle evenly into eight partitions: a full shuffle of its own; repartition(n) asked for it and keeps the number whatever the data. Another shuffle follows at once and moves every row again.
            NoPartitionFilter Some(1) every partition of lake.orders is read: it is partitioned by dt, and no filter is on dt.
            Join Some(10) Join lake.orders with customers on customer_id = id (LeftOuter, sort-merge). Both sides are shuffled by the key and sorted: neither was known to be small enough to broadcast, or a hint asks for it. Of this join type only the right side can be broadcast.
            Shuffle Some(5) Shuffle by customer_id into 200 partitions. Needed by: join lake.orders with customers on customer_id = id (LeftOuter, sort-merge).
            Shuffle Some(7) Shuffle by id into 200 partitions. Needed by: join lake.orders with customers on customer_id = id (LeftOuter, sort-merge).
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
        read_change(&plans[1], &plans[0], None).iter().map(|c| format!("{:?} {}\n", c.kind, c.text)).collect();
    expect![[r#"
        JoinAlgorithm sort-merge became broadcast right: join a range with a range on k (broadcast right).
        Coalesced Small partitions were merged after: shuffle by k into 200 partitions.
        LocalRead Read on the same executor, without the network: shuffle by k into 200 partitions.
    "#]]
    .assert_eq(&changes);
}

/// A plan of the collection in `tests/plans`.
fn collected(name: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/plans");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn the_first_rows_have_an_order() {
    check(
        &collected("spark-3.5.6/sort_limit.simple.txt"),
        expect![[r#"
        Physical Plan — three operators: one read
        1 s1 Read default.orders
             format parquet
             three columns: order_id, amount, day
             pushed: none
             partition filters: none
             partitioned by day
        2<1 s1 Choose columns
        3<2 s1 Keep the first 10 rows by amount descending
        s1 gives the result
        Unfiltered Some(1) every partition of default.orders is read: it is partitioned by day, and no filter is on day.
    "#]],
    );
}

#[test]
fn a_coalesce_to_one_is_noticed() {
    check(
        &collected("spark-4.0.1/coalesce_one.simple.txt"),
        expect![[r#"
            Physical Plan — three operators: one read
            1 s1 Read default.orders
                 format parquet
                 six columns: order_id, customer_id, product_id, …
                 pushed: IsNotNull(amount), GreaterThan(amount,10.0)
                 partition filters: none
                 partitioned by day
            2<1 s1 Filter (isnotnull(amount) AND (amount > 10.0))
                 pushed: isnotnull(amount)
                 pushed: amount > 10.0
            3<2 s1 Merge into one partition, no shuffle
            s1 gives the result
            SinglePartition Some(3) coalesce(1) is no shuffle: one task does everything in this part, reading included. repartition(1) keeps the reading in many tasks.
            NoPartitionFilter Some(1) every partition of default.orders is read: it is partitioned by day, and no filter is on day.
            Pushed Some(1) the source of default.orders itself filters by GreaterThan(amount,10.0).
        "#]],
    );
}

#[test]
fn a_subquery_feeds_its_step() {
    check(
        &collected("spark-4.0.1/subquery_scalar.simple.final.txt"),
        expect![[r#"
        Final Plan — seven operators: two reads, one shuffle
        1 s1 Read default.products
             format parquet
             one column: price
             pushed: none
             partition filters: none
        2<1 s1 Aggregate (first step, before the shuffle)
             computes partial_avg(price)
        3<2 s1 Shuffle everything into one partition
             asked for by the planner
        4<3 s2 Aggregate
             computes avg(price)
        5 s3 Read default.orders
             format parquet
             three columns: order_id, amount, day
             pushed: IsNotNull(amount), GreaterThan(amount,ScalarSubquery)
             partition filters: none
             partitioned by day
        6<5 s3 Filter (isnotnull(amount) AND (amount > subquery))
             pushed: isnotnull(amount)
             pushed: amount > subquery
        7<6 s3 Choose columns
        s1 writes a shuffle
        s2 gives its value to step 6
        s3 gives the result
        NoPartitionFilter Some(5) every partition of default.orders is read: it is partitioned by day, and no filter is on day.
        Shuffle Some(3) Shuffle everything into one partition. Needed by: aggregate.
        Pushed Some(5) the source of default.orders itself filters by GreaterThan(amount,ScalarSubquery).
    "#]],
    );
}

#[test]
fn a_reused_broadcast_stands_behind_the_one_that_it_reuses() {
    check(
        &collected("spark-4.0.1/dynamic_pruning.formatted.final.txt"),
        expect![[r#"
            Final Plan — eight operators: two reads, one broadcast, one join, one reused exchange
            1 s1 Read default.days
                 format parquet
                 two columns: day, kind
                 pushed: IsNotNull(kind), EqualTo(kind,holiday), IsNotNull(day)
                 partition filters: none
            2<1 s1 Filter ((isnotnull(kind) AND (kind = holiday)) AND isnotnull(day))
                 pushed: isnotnull(kind)
                 pushed: kind = holiday
                 pushed: isnotnull(day)
            3<2 s1 Choose columns
            4<3 s1 Broadcast default.days
                 HashedRelationBroadcastMode
                 measured by adaptive execution: 1 row, 8 MiB in memory
            5 s2 Reuse broadcast default.days
            6 s3 Read default.orders
                 format parquet
                 two columns: order_id, day
                 pushed: none
                 partition filters: isnotnull(day), dynamicpruningexpression(day IN dynamicpruning)
                 partitioned by day
            7<6<4 s3 Join default.orders with default.days on day (broadcast right)
            8<7 s3 Choose columns
            s1 is broadcast to every executor
            s2 chooses what is read in step 6
            s3 gives the result
            Join Some(7) Join default.orders with default.days on day (broadcast right). One side is sent to every executor, the other stays where it is.
            Broadcast Some(4) Broadcast default.days, 8 MiB once built, as measured: collected by the driver, then held by every executor.
            Pruned Some(6) the partitions of default.orders are chosen at run time, by the values of day on the other side of a join.
            Pushed Some(1) the source of default.days itself filters by EqualTo(kind,holiday).
            Reused Some(5) Reuse broadcast default.days: computed once, read again here.
        "#]],
    );
}

#[test]
fn both_sides_of_a_condition_have_their_table() {
    check(
        &collected("spark-4.0.1/join_nested_loop.formatted.final.txt"),
        expect![[r#"
        Final Plan — six operators: two reads, one broadcast, one join
        1 s1 Read default.products
             format parquet
             three columns: product_id, category, price
             pushed: none
             partition filters: none
        2<1 s1 Broadcast default.products
             IdentityBroadcastMode
             measured by adaptive execution: 40 rows, 1.25 KiB in memory
        3 s2 Read default.orders
             format parquet
             four columns: order_id, product_id, amount, day
             pushed: none
             partition filters: none
             partitioned by day
        4<3 s2 Choose columns
        5<4<2 s2 Join default.orders with default.products (LeftOuter, nested loop, broadcast right)
             condition ((orders.product_id = products.product_id) OR (orders.amount < products.price))
        6<5 s2 Choose columns
        s1 is broadcast to every executor
        s2 gives the result
        NestedLoop Some(5) Join default.orders with default.products (LeftOuter, nested loop, broadcast right): every row is compared with every broadcast row. An OR stands in the way of a hash join: ((orders.product_id = products.product_id) OR (orders.amount < products.price)).
        Broadcast Some(2) Broadcast default.products, 1.25 KiB once built, as measured: collected by the driver, then held by every executor.
        Unfiltered Some(3) every partition of default.orders is read: it is partitioned by day, and no filter is on day.
    "#]],
    );
}

#[test]
fn a_small_side_that_is_not_broadcast_is_noticed() {
    check(
        &collected("spark-4.0.1/join_sort_merge.formatted.final.txt"),
        expect![[r#"
        Final Plan — eleven operators: two reads, two shuffles, one join
        1 s1 Read default.orders
             format parquet
             three columns: order_id, customer_id, day
             pushed: IsNotNull(customer_id)
             partition filters: none
             partitioned by day
        2<1 s1 Filter isnotnull(customer_id)
             pushed: isnotnull(customer_id)
        3<2 s1 Choose columns
        4<3 s1 Shuffle by customer_id into eight partitions
             asked for by the planner
             measured by adaptive execution: 5 000 rows, 117 KiB in memory
             adaptive execution merges small partitions
        5 s2 Read default.customers
             format parquet
             two columns: customer_id, segment
             pushed: IsNotNull(customer_id)
             partition filters: none
        6<5 s2 Filter isnotnull(customer_id)
             pushed: isnotnull(customer_id)
        7<6 s2 Shuffle by customer_id into eight partitions
             asked for by the planner
             measured by adaptive execution: 500 rows, 15.6 KiB in memory
             adaptive execution merges small partitions
        8<4 s3 Sort by customer_id
        9<7 s3 Sort by customer_id
        10<8<9 s3 Join default.orders with default.customers on customer_id (sort-merge)
        11<10 s3 Choose columns
        s1 writes a shuffle
        s2 writes a shuffle
        s3 gives the result
        SmallSide Some(10) the side of default.customers is 15.6 KiB in memory, below the default threshold of 10 MiB, and is not broadcast: the threshold is lower in this session, a hint asks for this join, or its size was known too late.
        Join Some(10) Join default.orders with default.customers on customer_id (sort-merge). Both sides are shuffled by the key and sorted: neither was known to be small enough to broadcast, or a hint asks for it. Sides: 117 KiB and 15.6 KiB.
        Shuffle Some(4) Shuffle by customer_id into eight partitions. Needed by: join default.orders with default.customers on customer_id (sort-merge).
        Shuffle Some(7) Shuffle by customer_id into eight partitions. Needed by: join default.orders with default.customers on customer_id (sort-merge).
        Unfiltered Some(1) every partition of default.orders is read: it is partitioned by day, and no filter is on day.
    "#]],
    );
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
        ("(a#1 > Subquery subquery#9, [id=#12])", "GreaterThan(a,ScalarSubquery#9)", vec![]),
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
             five columns: order_id, customer_id, coupon_id, …
             pushed: IsNotNull(customer_id)
             partition filters: none
             files: 109 MiB (their size, not what was read of them)
        2<1 s1 Filter isnotnull(customer_id)
             pushed: isnotnull(customer_id)
        3<2 s1 Shuffle by customer_id into 16 partitions
             asked for by the planner
        4 s2 Read customers
             format parquet
             three columns: customer_id, country_id, name
             pushed: IsNotNull(customer_id)
             partition filters: none
             files: 180 KiB (their size, not what was read of them)
        5<4 s2 Filter isnotnull(customer_id)
             pushed: isnotnull(customer_id)
        6<5 s2 Shuffle by customer_id into 16 partitions
             asked for by the planner
        7<3 s3 Sort by customer_id
        8<6 s3 Sort by customer_id
        9<7<8 s3 Join orders with customers on customer_id (sort-merge)
        10<9 s3 Choose columns
        11<10 s3 Write to noop
             OverwriteByExpression
        s1 writes a shuffle
        s2 writes a shuffle
        s3 writes the result
        Join Some(9) Join orders with customers on customer_id (sort-merge). Both sides are shuffled by the key and sorted: broadcasting is off. Sides: 117 MiB and 207 KiB.
        Shuffle Some(3) Shuffle by customer_id into 16 partitions. Needed by: join orders with customers on customer_id (sort-merge). 117 MiB moved.
        Shuffle Some(6) Shuffle by customer_id into 16 partitions. Needed by: join orders with customers on customer_id (sort-merge). 207 KiB moved.
        1 rows Some(1500000) bytes None ms Some(51592) estimated false
        2 rows Some(1500000) bytes None ms Some(34911) estimated true
        3 rows Some(1500000) bytes Some(122317111) ms Some(4152) estimated false
        4 rows Some(5000) bytes None ms Some(1284) estimated false
        5 rows Some(5000) bytes None ms Some(813) estimated true
        6 rows Some(5000) bytes Some(211821) ms Some(3) estimated false
        7 rows None bytes None ms Some(1837) estimated false
        8 rows None bytes None ms Some(0) estimated false
        9 rows Some(1500000) bytes None ms Some(29402) estimated true
        10 rows None bytes None ms Some(29402) estimated true
        11 rows None bytes None ms None estimated false
        stage 1 [1, 2, 3] writes a shuffle spark Some(2)
        stage 2 [4, 5, 6] writes a shuffle spark Some(3)
        stage 3 [7, 8, 9, 10, 11] writes the result spark Some(6)
    "#]].assert_eq(&text);
}
