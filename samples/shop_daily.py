"""The nightly job of a small web shop, and the event log that lakescope ships as its sample.

    python samples/shop_daily.py            makes samples/shop_daily.zstd

That command finds Spark (SPARK_HOME, spark-submit on PATH, or an installed pyspark), makes
the input under /tmp/shop, runs the job there on two executors of two cores each and keeps
the log. Spark runs this same file again with a step name as its argument.

What is wrong with the job is deliberate and described in samples/README.md.
"""
import glob
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

SHOP = "/tmp/shop"  # the one path in the log, so it has to be the same for everyone
TARGET = pathlib.Path(__file__).resolve().parent / "shop_daily.zstd"

ORDERS = 16_000_000
DELIVERIES = 4_000_000
CUSTOMERS = 900_000
PRODUCTS = 4_000
GUEST = 0  # every order without an account is booked on this customer


def make_input(spark):
    """Writes the four tables. Every value is a hash of a row number: same rows each time."""
    from pyspark.sql import functions as F

    def pick(salt, n, of="id"):
        return F.pmod(F.xxhash64(F.col(of), F.lit(salt)), F.lit(n))

    def save(frame, name):
        frame.write.mode("overwrite").parquet(f"{SHOP}/{name}")

    save(
        spark.range(ORDERS, numPartitions=8).select(
            F.col("id").alias("order_id"),
            F.when(pick("guest", 100) < 82, GUEST).otherwise(1 + pick("customer", CUSTOMERS - 1)).alias("customer_id"),
            pick("product", PRODUCTS).alias("product_id"),
            (1 + pick("quantity", 5)).cast("int").alias("quantity"),
            (pick("amount", 20_000) / 100).alias("amount"),
            F.expr("date_add(DATE'2025-03-01', int(pmod(xxhash64(id, 'day'), 28)))").alias("day"),
        ),
        "orders",
    )
    save(
        spark.range(CUSTOMERS, numPartitions=4).select(
            F.col("id").alias("customer_id"),
            F.concat(F.lower(F.hex(F.xxhash64("id", F.lit("mail")))), F.lit("@shop.example")).alias("email"),
            F.concat(F.lit("segment "), pick("segment", 6)).alias("segment"),
            F.concat(F.lit("country "), pick("country", 30)).alias("country"),
        ),
        "customers",
    )
    save(
        spark.range(PRODUCTS, numPartitions=1).select(
            F.col("id").alias("product_id"), F.concat(F.lit("category "), pick("category", 25)).alias("category")
        ),
        "products",
    )
    save(
        spark.range(DELIVERIES, numPartitions=8).select(
            F.col("id").alias("delivery_id"),
            pick("order", ORDERS).alias("order_id"),
            F.concat(F.lit("depot "), pick("depot", 12)).alias("depot"),
            (pick("minutes", 5_000) + 30).alias("minutes_on_the_way"),
        ),
        "deliveries",
    )


def run_job(spark):
    """The job itself: three reports, as somebody in a hurry wrote them."""
    from pyspark.sql import functions as F

    def table(name):
        return spark.read.parquet(f"{SHOP}/{name}")

    def step(text):
        spark.sparkContext.setJobDescription(text)

    step("sales by day, category and segment")
    account = F.regexp_replace("email", "@.*", "")
    pseudonym = F.sha2(F.concat_ws("|", F.lit("shop"), account), 512)
    fingerprint = F.sha2(F.concat_ws("|", pseudonym, "order_id", "amount", "day"), 512)
    sales = (
        table("orders")
        .join(F.broadcast(table("products")), "product_id")
        .join(table("customers"), "customer_id")
        .groupBy("day", "category", "segment")
        .agg(
            F.sum("amount").alias("amount"),
            F.count("*").alias("orders"),
            F.approx_count_distinct(pseudonym).alias("buyers"),
            F.approx_count_distinct(fingerprint).alias("distinct_orders"),
        )
    )
    sales.write.mode("overwrite").parquet(f"{SHOP}/sales")

    step("customers by country")
    table("customers").repartition(16, "country").groupBy("country").count().collect()

    step("delivery feed for the partner")
    feed = (
        table("deliveries")
        .where("minutes_on_the_way > 60")
        .withColumn("reference", F.sha2(F.concat_ws("-", "delivery_id", "order_id", "depot"), 256))
        .repartition(2)
    )
    feed.write.mode("overwrite").option("compression", "gzip").csv(f"{SHOP}/feed")


SETTINGS = {
    "spark.master": "local-cluster[2,2,1024]",
    "spark.executor.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.driver.host": "localhost",
    "spark.sql.shuffle.partitions": "48",
    # Smaller than the default, as teams set it on small executors. Without it the pieces
    # beside the hot one would be merged to 64 MB.
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "8m",
    "spark.sql.warehouse.dir": f"{SHOP}/warehouse",
    "spark.eventLog.compress": "true",
    "spark.eventLog.compression.codec": "zstd",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.dir": f"file://{SHOP}/log",
}


def in_spark(step):
    """Runs one step as a Spark application. Only the job's own log is kept."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("shop_daily")
    for key, value in {**SETTINGS, "spark.eventLog.enabled": str(step == "run").lower()}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    {"input": make_input, "run": run_job}[step](spark)
    spark.stop()


def find_spark():
    home = os.environ.get("SPARK_HOME")
    if not home and (submit := shutil.which("spark-submit")):
        home = os.path.dirname(os.path.dirname(os.path.realpath(submit)))
    if not home or not os.path.isdir(f"{home}/jars"):
        spec = importlib.util.find_spec("pyspark")
        home = spec and os.path.dirname(spec.origin)
    if not home:
        sys.exit("no Spark found: set SPARK_HOME or install pyspark")
    return home


def make_sample():
    shutil.rmtree(SHOP, ignore_errors=True)
    os.makedirs(f"{SHOP}/log")
    # A log tells where Spark is installed, who ran it and on which host and kernel. These
    # make them the same everywhere.
    os.symlink(find_spark(), f"{SHOP}/spark")
    shutil.copy(__file__, f"{SHOP}/shop_daily.py")
    env = {
        "PATH": os.environ["PATH"],
        "SPARK_HOME": f"{SHOP}/spark",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "SPARK_USER": "spark",
        "PYSPARK_PYTHON": sys.executable,
        "JDK_JAVA_OPTIONS": "-Duser.name=spark -Duser.home=/tmp/shop -Dos.version=6.1",
    }
    if "JAVA_HOME" in os.environ:
        env["JAVA_HOME"] = os.environ["JAVA_HOME"]
    for step in ("input", "run"):
        subprocess.run([f"{SHOP}/spark/bin/spark-submit", "shop_daily.py", step], cwd=SHOP, env=env, check=True)
    (log,) = glob.glob(f"{SHOP}/log/app-*.zstd")
    shutil.copy(log, TARGET)
    shutil.rmtree(SHOP)
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        in_spark(sys.argv[1])
    else:
        make_sample()
