"""Make the explain() texts of this folder with real Spark.

    python make_plans.py OUT      with pyspark installed, writes OUT/spark-VERSION/QUERY.MODE.txt

Each query gives simple, extended, cost and formatted text before it ran, simple and formatted
text again after it ran if adaptive execution had a say (`.final`), and codegen text where that
is short. Tables live under /tmp/shop so that no path of a machine gets into the texts.
"""
import contextlib
import io
import pathlib
import shutil
import sys

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

SHOP = "/tmp/shop"
CODEGEN_LIMIT = 5_000  # characters; longer ones teach nothing new

# Name -> SQL. What each is for stands in README.md.
SQL = {
    "scan_pushed": "SELECT order_id, amount FROM orders WHERE amount > 50 AND product_id = 7",
    "scan_not_pushed": "SELECT order_id FROM orders WHERE upper(note) = 'RUSH' AND CAST(product_id AS string) = '7'",
    "scan_partition_filter": "SELECT order_id, amount FROM orders WHERE day >= '2025-03-03' AND amount > 50",
    "scan_csv": "SELECT id, price FROM csv_prices WHERE price > 3",
    "join_broadcast": "SELECT o.order_id, p.category FROM orders o JOIN products p ON o.product_id = p.product_id",
    "join_sort_merge": "SELECT /*+ MERGE(c) */ o.order_id, c.segment FROM orders o JOIN customers c ON o.customer_id = c.customer_id",
    "join_sort_merge_left": "SELECT /*+ MERGE(c) */ o.order_id, c.segment FROM orders o LEFT JOIN customers c ON o.customer_id = c.customer_id",
    "join_shuffled_hash": "SELECT /*+ SHUFFLE_HASH(c) */ o.order_id, c.segment FROM orders o JOIN customers c ON o.customer_id = c.customer_id",
    "join_nested_loop": "SELECT o.order_id, p.category FROM orders o LEFT JOIN products p ON o.product_id = p.product_id OR o.amount < p.price",
    "join_range": "SELECT o.order_id, p.category FROM orders o JOIN products p ON o.amount BETWEEN p.price AND p.price + 5",
    "join_cartesian": "SELECT /*+ SHUFFLE_REPLICATE_NL(p) */ o.order_id, p.category FROM orders o CROSS JOIN products p",
    "join_not_in": "SELECT order_id FROM orders WHERE customer_id NOT IN (SELECT customer_id FROM customers WHERE segment = 'a')",
    "window": "SELECT order_id, row_number() OVER (PARTITION BY customer_id ORDER BY amount DESC) AS place FROM orders",
    "window_no_partition": "SELECT order_id, sum(amount) OVER (ORDER BY order_id) AS running FROM orders",
    "aggregate": "SELECT product_id, count(*) AS n, sum(amount) AS amount FROM orders GROUP BY product_id",
    "aggregate_distinct": "SELECT product_id, count(DISTINCT customer_id) AS people FROM orders GROUP BY product_id",
    "aggregate_object": "SELECT customer_id, collect_list(order_id) AS orders FROM orders GROUP BY customer_id",
    "explode": "SELECT order_id, tag FROM orders LATERAL VIEW explode(split(note, ' ')) t AS tag",
    "union": "SELECT order_id FROM orders WHERE day = '2025-03-01' UNION ALL SELECT order_id FROM orders WHERE amount < 5",
    "sort_limit": "SELECT order_id, amount FROM orders ORDER BY amount DESC LIMIT 10",
    "sort_global": "SELECT order_id, amount FROM orders ORDER BY amount",
    "subquery_scalar": "SELECT order_id FROM orders WHERE amount > (SELECT avg(price) FROM products)",
    "subquery_exists": "SELECT order_id FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.customer_id = o.customer_id AND c.segment = 'b')",
    "dynamic_pruning": "SELECT o.order_id FROM orders o JOIN days d ON o.day = d.day WHERE d.kind = 'holiday'",
    "exchange_reused": "SELECT a.product_id, a.n, b.n FROM (SELECT product_id, count(*) AS n FROM orders GROUP BY product_id) a "
    "JOIN (SELECT product_id, count(*) AS n FROM orders GROUP BY product_id) b ON a.product_id = b.product_id",
    "empty_relation": "SELECT /*+ MERGE(c) */ o.order_id FROM orders o JOIN (SELECT customer_id FROM customers WHERE segment = 'no such') c ON o.customer_id = c.customer_id",
    "hint_repartition": "SELECT /*+ REPARTITION(6, customer_id) */ * FROM orders",
    "hint_coalesce": "SELECT /*+ COALESCE(2) */ * FROM orders",
    "hint_rebalance": "SELECT /*+ REBALANCE(product_id) */ * FROM orders",
}


def make_tables(spark):
    """Small tables in the catalog; what the texts look like does not depend on their size."""
    columns = [
        "id AS order_id",
        "id % 500 AS customer_id",
        "id % 40 AS product_id",
        "double(id % 100) AS amount",
        "concat('note ', id % 9) AS note",
        "date_add(DATE'2025-03-01', int(id % 5)) AS day",
    ]
    spark.range(5000).selectExpr(*columns).write.partitionBy("day").saveAsTable("orders")
    spark.range(500).selectExpr("id AS customer_id", "substr('abc', int(id % 3) + 1, 1) AS segment").write.saveAsTable("customers")
    spark.range(40).selectExpr("id AS product_id", "id % 4 AS category", "double(id) AS price").write.saveAsTable("products")
    days = spark.range(5).selectExpr("date_add(DATE'2025-03-01', int(id)) AS day", "if(id = 2, 'holiday', 'workday') AS kind")
    days.write.saveAsTable("days")
    prices = f"{SHOP}/prices.csv"
    spark.range(100).selectExpr("id", "double(id) / 7 AS price").write.option("header", True).csv(prices)
    spark.read.option("header", True).schema("id long, price double").csv(prices).createOrReplaceTempView("csv_prices")
    # Statistics, so that cost mode has rows to show.
    for table in ("orders", "customers"):
        spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")


def from_code(spark):
    """Queries that SQL cannot say."""
    orders = spark.table("orders")
    shout = F.udf(lambda note: note.upper(), StringType())
    yield "udf_python", orders.select("order_id", shout("note").alias("loud"))
    yield "udf_python_filter", orders.where(shout("note") == "NOTE 3").select("order_id")
    yield "repartition_then_group", orders.repartition(8).groupBy("customer_id").count()
    yield "coalesce_one", orders.where("amount > 10").coalesce(1)
    cached = orders.where("amount > 20").cache()
    yield "cache", cached.groupBy("product_id").count()


def text(frame, mode):
    """What explain() prints, as a person would copy it."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        frame.explain(mode=mode)
    return out.getvalue()


def write_texts(folder, name, frame):
    def keep(stem, content):
        assert "/home/" not in content and "/root" not in content, name
        (folder / f"{name}.{stem}.txt").write_text(content.rstrip() + "\n")

    for mode in ("simple", "extended", "cost", "formatted"):
        keep(mode, text(frame, mode))
    codegen = text(frame, "codegen")
    if len(codegen) < CODEGEN_LIMIT:
        keep("codegen", codegen)
    frame.collect()
    for mode in ("simple", "formatted"):
        if "isFinalPlan=true" in (final := text(frame, mode)):  # else it is the same text again
            keep(f"{mode}.final", final)


def write_conf_variants(spark, folder):
    """The same query with adaptive execution off: no AdaptiveSparkPlan around the plan."""
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    for name in ("join_sort_merge", "aggregate", "dynamic_pruning"):
        write_texts(folder, f"{name}.aqe_off", spark.sql(SQL[name]))
    spark.conf.unset("spark.sql.adaptive.enabled")


def main(out):
    folder = pathlib.Path(out) / f"spark-{pyspark.__version__}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(SHOP, ignore_errors=True)
    folder.mkdir(parents=True)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("plans")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.warehouse.dir", f"{SHOP}/warehouse")
        .config("spark.sql.cbo.enabled", "true")
        .config("spark.sql.catalogImplementation", "in-memory")
        .getOrCreate()
    )
    make_tables(spark)
    for name, query in SQL.items():
        write_texts(folder, name, spark.sql(query))
    for name, frame in from_code(spark):
        write_texts(folder, name, frame)
    write_conf_variants(spark, folder)
    spark.stop()
    shutil.rmtree(SHOP)


main(sys.argv[1] if len(sys.argv) > 1 else sys.exit(__doc__))
